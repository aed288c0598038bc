// The executor: what is run, measured, attested and refused.
#include "furlong/shard/executor/command/command.h"

#include <gmock/gmock.h>

#include <functional>
#include <thread>

#include "furlong/base/os/clock.h"
#include "furlong/base/os/measured_process.h"
#include "furlong/base/text.h"
#include "furlong/shard/executor/command/internal/testing.h"
#include "furlong/shard/make_plan.h"

namespace furlong::shard::command {
namespace {

using ::testing::HasSubstr;

constexpr std::uint64_t kMiB = 1u << 20;
/// Holds much more than 64 MiB in a shell's variable until it is killed.
const std::string kHoarder = "x=$(head -c 128M /dev/zero | tr '\\0' a); sleep 1000";

class CommandRun : public testing::CommandFixture {
 protected:
  /// A list of one command.
  Error failure(const std::string& text, std::uint64_t cap_bytes = 0) {
    make_store(text);
    const auto cost = check(static_cast<UnitIndex>(store_->unit_count() - 1), cap_bytes);
    EXPECT_FALSE(cost) << text;
    return cost ? Error(Code::internal, "") : cost.error();
  }
  /// A store with one command that copies "in" to "out".
  JobResult copied() {
    write("in", "content");
    make_store(line("copy", "cat in > out", {"in"}, {"out"}));
    auto job = run(all());
    if (!job) throw std::runtime_error(job.error().text());
    return *job;
  }
};

TEST_F(CommandRun, RunsInItsFolderWithItsEnvironment) {
  write("sub/in", "x");
  make_store(line("a", "cat in > ../out; printf %s \"$WORD\" >> ../out; pwd >> ../out", {"in"}, {"../out"},
                  {{"folder", "sub"}, {"environment", {{"WORD", "word"}}}}));
  const auto job = run(all());
  ASSERT_TRUE(job) << job.error().text();
  EXPECT_EQ(read("out"), "xword" + path("sub") + "\n");
  EXPECT_TRUE(verify(all(), job->receipt));
}

TEST_F(CommandRun, TheFoldersOfOutputsAreMadeAndOldOutputsRemoved) {
  write("old", "old");
  make_store(
      line("a", "test ! -e old && echo new > old && echo x > deep/er/new", {}, {"old", "deep/er/new"}));
  const auto job = run(all());
  ASSERT_TRUE(job) << job.error().text();
  EXPECT_EQ(read("old"), "new\n");
}

TEST_F(CommandRun, CostsAreMeasured) {
  write("in", "12345");
  make_store(line("a", "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; cat in > out", {"in"}, {"out"}));
  const auto cost = check(0);
  ASSERT_TRUE(cost) << cost.error().text();
  EXPECT_GT(cost->seconds, 0);
  EXPECT_GT(cost->work, 0) << "processor seconds";
  EXPECT_GT(cost->record_bytes, 100u << 10);
  EXPECT_LT(cost->record_bytes, 100 * kMiB);
  EXPECT_EQ(cost->peak_bytes, cost->record_bytes);
  EXPECT_EQ(cost->features.at("commands"), 1);
  EXPECT_EQ(cost->features.at("inputs"), 1);
  EXPECT_EQ(cost->features.at("input_bytes"), 5);
  EXPECT_EQ(cost->features.at("outputs"), 1);
  EXPECT_EQ(cost->features.at("output_bytes"), 5);
  EXPECT_DOUBLE_EQ(cost->features.at("user_seconds") + cost->features.at("system_seconds"), cost->work);
  EXPECT_TRUE(executor_->independent());
  EXPECT_EQ(executor_->cost_kind(), CostKind::command_seconds);
}

TEST_F(CommandRun, JoinedCostsTakeTheLargestMemoryAndTheSumOfTheRest) {
  Cost a, b;
  a.work = 1, a.seconds = 2, a.record_bytes = 30, a.peak_bytes = 31, a.features = {{"x", 1}};
  b.work = 10, b.seconds = 20, b.record_bytes = 3, b.peak_bytes = 40, b.features = {{"x", 2}, {"y", 3}};
  const Cost joined = executor_->join(a, b);
  EXPECT_EQ(joined.work, 11);
  EXPECT_EQ(joined.seconds, 22);
  EXPECT_EQ(joined.record_bytes, 30u);
  EXPECT_EQ(joined.peak_bytes, 40u);
  EXPECT_EQ(joined.features, (std::map<std::string, double>{{"x", 3}, {"y", 3}}));
}

TEST_F(CommandRun, AFailureHasItsStatusAndTheEndOfWhatItSaid) {
  const Error failed =
      failure(line("a", "head -c 5000 /dev/zero | tr '\\0' x >&2; echo 'the cause' >&2; exit 3"));
  EXPECT_EQ(failed.code(), Code::mismatch);
  EXPECT_THAT(failed.text(), HasSubstr("exit status 3: …xxx"));
  EXPECT_THAT(failed.text(), ::testing::EndsWith("the cause"));
  EXPECT_LT(failed.text().size(), 1100u);
  EXPECT_THAT(failure(line("a", "kill -SEGV $$")).text(), HasSubstr("killed by signal 11"));
  const Error absent = failure(R"({"name":"a","argv":["no-such-program"]})");
  EXPECT_EQ(absent.code(), Code::mismatch);
  EXPECT_THAT(absent.text(), HasSubstr("no-such-program"));
  const Error folder = failure(line("a", "true", {}, {}, {{"folder", "none"}}));
  EXPECT_EQ(folder.code(), Code::mismatch);
  EXPECT_THAT(folder.text(), HasSubstr("none"));
}

TEST_F(CommandRun, AMissingOutputIsAMismatch) {
  const Error failed = failure(line("a", "echo x > one", {}, {"one", "two"}));
  EXPECT_EQ(failed.code(), Code::mismatch);
  EXPECT_THAT(failed.text(), HasSubstr("left its output " + path("two") + " out"));
  write("stale", "from before");
  EXPECT_THAT(failure(line("a", "true", {}, {"stale"})).text(), HasSubstr("left its output"));
  const Error wrong = failure(line("a", "mkdir dir", {}, {"dir"}));
  EXPECT_EQ(wrong.code(), Code::mismatch);
}

TEST_F(CommandRun, AFolderInTheWayOfAnOutputIsLeftAlone) {
  write("dir/precious", "x");
  const Error failed = failure(line("a", "true", {}, {"dir"}));
  EXPECT_EQ(failed.code(), Code::mismatch);
  EXPECT_THAT(failed.text(), HasSubstr("left alone"));
  EXPECT_EQ(read("dir/precious"), "x");
}

TEST_F(CommandRun, AChangedInputIsRefusedBeforeTheCommandRuns) {
  write("in", "before");
  make_store(line("a", "cat in > out; echo ran >> log", {"in"}, {"out"}));
  for (const char* text : {"after!", "longer than it was"}) {
    write("in", text);
    for (const auto& error : {check(0).error(), run(all()).error()}) {
      EXPECT_EQ(error.code(), Code::invalid);
      EXPECT_THAT(error.text(), HasSubstr("the input " + path("in") + " is not what it was"));
    }
  }
  ASSERT_TRUE(system_files().remove(path("in")));
  EXPECT_EQ(check(0).error().code(), Code::invalid);
  EXPECT_FALSE(system_files().exists(path("log")));
  write("in", "before");
  EXPECT_TRUE(check(0)) << "the same content again";
}

TEST_F(CommandRun, AnInputThatChangesMeanwhileIsRefused) {
  write("in", "before");
  const Error failed = failure(line("a", "cat in > out; echo more >> in", {"in"}, {"out"}));
  EXPECT_EQ(failed.code(), Code::invalid);
  EXPECT_THAT(failed.text(), HasSubstr(path("in")));
}

TEST_F(CommandRun, SharedInputsAreVerifiedByTheirUnit) {
  write("in", "x");
  make_store(line("a", "true", {"in"}) + line("b", "true", {"in"}));
  const auto cost = check(0);
  ASSERT_TRUE(cost) << cost.error().text();
  EXPECT_EQ(cost->seconds, 0);
  EXPECT_EQ(cost->record_bytes, 0u);
  EXPECT_EQ(cost->features.at("commands"), 0);
  write("in", "y");
  EXPECT_EQ(check(0).error().code(), Code::invalid);
}

TEST_F(CommandRun, ATreeOverTheCapIsKilledAndNotRunAgain) {
  make_store(line("a", "echo ran >> log; " + kHoarder));
  const auto killed = run(all(), {.record_cap_bytes = 64 * kMiB});
  ASSERT_FALSE(killed);
  EXPECT_EQ(killed.error().code(), Code::exhausted);
  EXPECT_THAT(killed.error().text(), HasSubstr("over the limit of 64 MiB"));
  EXPECT_THAT(killed.error().text(), HasSubstr("unit 'a'"));
  EXPECT_THAT(killed.error().text(), HasSubstr("were killed"));
  EXPECT_EQ(read("log"), "ran\n");
}

TEST_F(CommandRun, AMemoryKillIsAFailedUnitOfThePlanAndRunOnce) {
  make_store(line("small", "echo small >> log") + line("large", "echo large >> log; " + kHoarder));
  PlanRequest request;
  request.sizing.budget_bytes = 64 * kMiB;
  request.fail_fast = false;
  request.cost_kind = executor_->cost_kind();
  const auto plan = make_plan(store_, *executor_, request);
  ASSERT_TRUE(plan) << plan.error().text();
  ASSERT_EQ(plan->plan.failed.size(), 1u);
  EXPECT_EQ(plan->plan.failed[0].unit, 1u);
  EXPECT_EQ(plan->plan.failed[0].code, Code::exhausted);
  ASSERT_EQ(plan->plan.shards.size(), 1u);
  EXPECT_EQ(plan->plan.shards[0].cost_kind, CostKind::command_seconds);
  const std::string log = read("log");
  EXPECT_EQ(log.find("large"), log.rfind("large")) << log;
  EXPECT_EQ(log.find("small"), log.rfind("small")) << "executed once for scan and price: " << log;
}

TEST_F(CommandRun, ATimeLimitOfItsOwnRejectsAUnit) {
  const Error failed = failure(line("a", "sleep 1000", {}, {}, {{"timeout_s", 0.05}}));
  EXPECT_EQ(failed.code(), Code::mismatch);
  EXPECT_THAT(failed.text(), HasSubstr("ran past"));
}

TEST_F(CommandRun, AStopKillsTheTree) {
  make_store(line("a", "touch started; sleep 1000"));
  std::stop_source stop;
  std::jthread stopper([&] {
    while (!system_files().exists(path("started"))) system_clock().sleep_ns(1'000'000);
    stop.request_stop();
  });
  const auto job = run(all(), {.stop = stop.get_token()});
  ASSERT_FALSE(job);
  EXPECT_EQ(job.error().code(), Code::timeout);
  EXPECT_EQ(check(0, 0, stop.get_token()).error().code(), Code::timeout) << "nothing is begun after it";
}

TEST_F(CommandRun, AJobNeedsASignerAndItsOwnUnits) {
  make_store(line("a", "true") + line("b", "true"));
  auto items = ClaimItems::open(store_, all());
  const Claim claim = *make_claim(*store_, all());
  EXPECT_EQ(executor_->run(store_->settings(), claim, units(all()), **items, {}).error().code(),
            Code::invalid);
  const JobOptions options{.signer = &key_};
  EXPECT_EQ(executor_->run(store_->settings(), claim, units({0}), **items, options).error().code(),
            Code::mismatch);
  EXPECT_EQ(executor_->begin(R"({"format":9})", 0, {}).error().code(), Code::incompatible);
}

TEST_F(CommandRun, TheReceiptTellsHowEachUnitWas) {
  const JobResult job = copied();
  const auto body = json_parse(as_text(job.receipt.body), "body");
  ASSERT_TRUE(body);
  const Json& unit = (*body)["units"][0];
  EXPECT_EQ(unit["name"], "copy");
  EXPECT_EQ(unit["exit_status"], 0);
  EXPECT_THAT(unit["memory"].get<std::string>(), ::testing::AnyOf("sampled", "control group"));
  EXPECT_EQ(unit["outputs"][0]["path"], path("out"));
  EXPECT_EQ(unit["outputs"][0]["blake2b"], blake2b_256("content").hex());
  EXPECT_EQ(unit["outputs"][0]["bytes"], 7);
  EXPECT_GT(unit["peak_bytes"], 0);
  EXPECT_EQ(job.check.seconds, job.job.seconds) << "the check is the whole job";
}

TEST_F(CommandRun, AnOutputThatIsNotThereAnyMoreMakesTheJobRunAgain) {
  const JobResult job = copied();
  EXPECT_TRUE(verify(all(), job.receipt));
  write("out", "CONTENT");
  const Status other = verify(all(), job.receipt);
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code(), Code::mismatch);
  EXPECT_THAT(other.error().text(), HasSubstr(path("out")));
  EXPECT_TRUE(verify(all(), job.receipt, {.sample = 0})) << "files outside of the sample are not read";
  ASSERT_TRUE(system_files().remove(path("out")));
  EXPECT_THAT(verify(all(), job.receipt).error().text(), HasSubstr("is not there any more"));
}

TEST_F(CommandRun, ATamperedReceiptIsRefused) {
  const JobResult job = copied();
  Receipt receipt = job.receipt;
  receipt.body[10] ^= 1;
  EXPECT_EQ(verify(all(), receipt).error().code(), Code::denied);
  receipt = job.receipt;
  receipt.executor = "metamath";
  EXPECT_EQ(verify(all(), receipt).error().code(), Code::mismatch);
  receipt = job.receipt;
  receipt.version = 0;
  EXPECT_EQ(verify(all(), receipt).error().code(), Code::incompatible);
  receipt = job.receipt;
  receipt.claim.bytes[0] ^= 1;
  EXPECT_EQ(verify(all(), receipt).error().code(), Code::mismatch);
}

// Signed by whoever may sign, and still not what the claim asks for.
TEST_F(CommandRun, ASignedReceiptThatTellsOtherwiseIsRefused) {
  const JobResult job = copied();
  const Json good = *json_parse(as_text(job.receipt.body), "body");
  ASSERT_TRUE(verify(all(), resigned(job.receipt, json_line(good))));
  const auto with = [&](const std::function<void(Json&)>& change) {
    Json body = good;
    change(body);
    return json_line(body);
  };
  const std::vector<std::pair<std::string, std::string>> wrong{
      {"", "the receipt"},
      {"{}", "format"},
      {with([](Json& b) { b["more"] = 1; }), "more"},
      {with([](Json& b) { b["units"].clear(); }), "does not tell of 'copy'"},
      {with([](Json& b) { b["units"].push_back(b["units"][0]); }), "twice"},
      {with([](Json& b) { b["units"][0]["unit"] = std::string(64, '0'); }), "not the claim's"},
      {with([](Json& b) { b["units"][0]["exit_status"] = 1; }), "exit status 1"},
      {with([](Json& b) { b["units"][0].erase("exit_status"); }), "of a command"},
      {with([](Json& b) { b["units"][0].erase("peak_bytes"); }), "peak_bytes"},
      {with([](Json& b) { b["units"][0]["outputs"].clear(); }), "other outputs"},
      {with([](Json& b) { b["units"][0]["outputs"].push_back(b["units"][0]["outputs"][0]); }),
       "other outputs"},
      {with([](Json& b) { b["units"][0]["outputs"][0]["path"] = "/etc/hostname"; }), "other outputs"},
      {with([](Json& b) { b["units"][0]["outputs"][0]["bytes"] = 8; }), "other content"},
      {with([](Json& b) { b["units"][0]["outputs"][0]["blake2b"] = std::string(64, '0'); }), "other content"},
      {with([](Json& b) { b["units"][0]["outputs"][0]["blake2b"] = "x"; }), ""},
      {with([](Json& b) { b["units"][0]["seconds"] = "x"; }), "seconds"},
  };
  for (const auto& [body, why] : wrong) {
    const Status status = verify(all(), resigned(job.receipt, body));
    ASSERT_FALSE(status) << body;
    EXPECT_EQ(status.error().code(), Code::mismatch) << status.error().text();
    EXPECT_THAT(status.error().text(), HasSubstr(why)) << body;
  }
  const Status newer = verify(all(), resigned(job.receipt, with([](Json& b) { b["format"] = 2; })));
  EXPECT_EQ(newer.error().code(), Code::incompatible);
}

TEST_F(CommandRun, AReceiptIsOfItsClaimAlone) {
  make_store(line("a", "echo a > a", {}, {"a"}) + line("b", "echo b > b", {}, {"b"}));
  const auto a = run({0}), both = run({1, 0});
  ASSERT_TRUE(a && both);
  EXPECT_TRUE(verify({0, 1}, both->receipt)) << "in any order";
  EXPECT_EQ(verify({1}, a->receipt).error().code(), Code::mismatch);
  Receipt moved = a->receipt;
  moved.claim = both->receipt.claim;
  EXPECT_THAT(verify({0, 1}, resigned(moved, std::string(as_text(a->receipt.body)))).error().text(),
              HasSubstr("does not tell of 'b'"));
}

TEST_F(CommandRun, TheKindMakesStores) {
  const ExecutorKind made = kind();
  EXPECT_EQ(made.name, "command");
  ASSERT_NE(made.executor, nullptr);
  write("in", "x");
  write("list.jsonl", line("a", "true", {"in"}) + line("b", "true", {"in"}));
  StoreRequest request;
  request.input = path("list.jsonl");
  request.out = path("k.store");
  const auto report = made.make_store(request);
  ASSERT_TRUE(report) << report.error().text();
  EXPECT_EQ(report->units, 3u);
  EXPECT_EQ(report->items, 3u);
  EXPECT_THAT(report->notes, ::testing::Contains(::testing::Pair("shared input files", "1")));
  EXPECT_TRUE(Store::open(path("k.store")));
}

}  // namespace
}  // namespace furlong::shard::command
