// The executor on a simulated card: what a check tells, what a job leaves, and what is refused.
#include "furlong/campaign/campaign.h"

#include <gmock/gmock.h>

#include "furlong/campaign/internal/testing.h"
#include "furlong/shard/make_plan.h"

namespace furlong::campaign {
namespace {

using ::testing::HasSubstr;
using testing::kThree;

class CampaignRun : public testing::CampaignFixture {
 protected:
  /// Of the three races, where u2 is faster by 3%.
  shard::JobResult raced() {
    lab_->sim.timing.gain = {{"u2", 0.03}};
    make_store(kThree);
    auto job = run(all());
    if (!job) throw std::runtime_error(job.error().text());
    return *std::move(job);
  }
  /// Why a receipt does not hold.
  Error refused(const shard::Receipt& receipt, const shard::VerifyOptions& options = {}) const {
    const Status status = verify(all(), receipt, options);
    EXPECT_FALSE(status);
    return status ? Error(Code::internal, "") : status.error();
  }
};

TEST_F(CampaignRun, ACheckCompilesGatesAndLaunchesBase) {
  make_store(kThree);
  const auto cost = check(unit("mix n=4096 @ sim:0"));
  ASSERT_TRUE(cost) << cost.error().text();
  EXPECT_GT(cost->work, 0.05);  // the simulated compiler's 50 ms
  EXPECT_LT(cost->work, 1);
  EXPECT_DOUBLE_EQ(cost->seconds, cost->work + 10);  // and the race's budget
  EXPECT_GT(cost->record_bytes, 2u * 4 * 4096);      // two buffers and their guard zones
  EXPECT_LT(cost->record_bytes, 2u * 4 * 4096 + (1u << 16));
  EXPECT_EQ(cost->features.at("races"), 1);
  EXPECT_EQ(cost->features.at("variants"), 2);
  EXPECT_EQ(cost->features.at("race_budget_seconds"), 10);
  EXPECT_DOUBLE_EQ(cost->features.at("check_seconds"), cost->work);
  EXPECT_NEAR(cost->features.at("base_launch_seconds"), 0.25e-3, 0.05e-3);
}

TEST_F(CampaignRun, WhatIsSharedCostsNothing) {
  make_store(kThree);
  const auto cost = check(0);
  ASSERT_TRUE(cost) << cost.error().text();
  EXPECT_EQ(cost->seconds, 0);
  EXPECT_EQ(cost->record_bytes, 0u);
  EXPECT_EQ(lab_->opened, 0);
}

TEST_F(CampaignRun, TheSameUnitCostsTheSame) {
  make_store(kThree);
  const auto one = check(unit("mix n=1024 @ sim:0")), two = check(unit("mix n=1024 @ sim:0"));
  ASSERT_TRUE(one && two);
  EXPECT_EQ(one->features, two->features);
}

TEST_F(CampaignRun, RacesInTurnAddTimeAndNotMemory) {
  make_store(kThree);
  const auto small = check(unit("mix n=1024 @ sim:0")), large = check(unit("mix n=4096 @ sim:0"));
  ASSERT_TRUE(small && large);
  const shard::Cost both = executor_->join(*small, *large);
  EXPECT_DOUBLE_EQ(both.seconds, small->seconds + large->seconds);
  EXPECT_DOUBLE_EQ(both.work, small->work + large->work);
  EXPECT_EQ(both.record_bytes, large->record_bytes);
  EXPECT_EQ(both.features.at("device_bytes"), static_cast<double>(large->record_bytes));
  EXPECT_EQ(both.features.at("races"), 2);
  EXPECT_EQ(executor_->cost_kind(), shard::CostKind::command_seconds);
  EXPECT_TRUE(executor_->independent());
}

TEST_F(CampaignRun, TheCapIsOfTheDevicesMemory) {
  make_store(kThree);
  EXPECT_TRUE(check(unit("mix n=4096 @ sim:0"), 1 << 20));
  const auto cost = check(unit("mix n=4096 @ sim:0"), 40000);
  ASSERT_FALSE(cost);
  EXPECT_EQ(cost.error().code(), Code::exhausted);
  EXPECT_TRUE(check(unit("mix n=1024 @ sim:0"), 40000));
  const auto job = run(all(), {.record_cap_bytes = 40000});
  ASSERT_FALSE(job);
  EXPECT_EQ(job.error().code(), Code::exhausted);
  EXPECT_THAT(job.error().text(), HasSubstr("unit 'mix n=4096 @ sim:0'"));
}

TEST_F(CampaignRun, AJobsReceiptHasTheRaceRecords) {
  const shard::JobResult job = raced();
  EXPECT_TRUE(verify(all(), job.receipt));
  const auto lines = lines_of(job.receipt);
  ASSERT_EQ(lines.size(), 5u);
  EXPECT_EQ(lines[0], (Json{{"format", 1}, {"units", 4}}));
  EXPECT_FALSE(lines[1].contains("record"));
  EXPECT_EQ(lines[2]["name"], "mix n=1024 @ sim:0");
  EXPECT_EQ(lines[2]["problem"], (Json{{"n", 1024}}));
  EXPECT_EQ(lines[2]["device"], "sim:0");
  const auto record = record::from_json(lines[4]["record"], "a record");
  ASSERT_TRUE(record) << record.error().text();
  EXPECT_EQ(record->winner, "u2");
  EXPECT_EQ(record->verdict, record::Verdict::winner);
  EXPECT_NEAR(record->gain_pct.value_or(0), 3, 0.5);
  EXPECT_EQ(job.job.features.at("races"), 3);
  EXPECT_GT(job.job.features.at("heats"), 3);
  EXPECT_EQ(lab_->opened, 1 + 1);  // once by the job, once by the gate of its verification
  // What the job tells of the check is what a check tells.
  shard::Cost sum;
  for (const shard::UnitIndex index : all()) sum = executor_->join(sum, *check(index));
  EXPECT_EQ(job.check.record_bytes, sum.record_bytes);
  EXPECT_EQ(job.check.features.at("race_budget_seconds"), sum.features.at("race_budget_seconds"));
}

TEST_F(CampaignRun, BaseThatFailsItsGateRejectsTheUnit) {
  make_store(kThree);
  // Where base is the reference it must be the same twice, so it is made to differ.
  int launch = 0;
  lab_->on_launch = [&] {
    lab_->wrong = ++launch % 2 == 0 ? std::set<std::string>{"base"} : std::set<std::string>{};
  };
  const auto cost = check(unit("mix n=2048 @ sim:0"));
  ASSERT_FALSE(cost);
  EXPECT_EQ(cost.error().code(), Code::mismatch);
  const auto job = run(all());
  ASSERT_FALSE(job);
  EXPECT_EQ(job.error().code(), Code::mismatch);
  EXPECT_THAT(job.error().text(), HasSubstr("unit 'mix n=1024 @ sim:0'"));
  EXPECT_THAT(job.error().text(), HasSubstr("base"));
}

TEST_F(CampaignRun, ACompilerThatRefusesBaseRejectsTheUnit) {
  make_store(kThree);
  lab_->sim.compiler = [](const device::CompileRequest&) -> Status {
    return fail(Code::invalid, "line 1: no");
  };
  const auto cost = check(unit("mix n=2048 @ sim:0"));
  ASSERT_FALSE(cost);
  EXPECT_EQ(cost.error().code(), Code::mismatch);
  EXPECT_THAT(cost.error().text(), HasSubstr("line 1: no"));
}

TEST_F(CampaignRun, AWrongVariantIsOutAndNoError) {
  make_store(kThree);
  lab_->sim.timing.gain = {{"u2", 0.5}};
  lab_->wrong = {"u2"};
  const auto job = run(all());
  ASSERT_TRUE(job) << job.error().text();
  EXPECT_TRUE(verify(all(), job->receipt));
  EXPECT_EQ(lines_of(job->receipt)[2]["record"]["winner"], "base");
}

TEST_F(CampaignRun, ADeviceThatIsNotHereIsUnavailable) {
  make_store("format = 1\ndevices = [\"sim:3\"]\n[[program]]\nfile = \"mix.toml\"\n");
  for (const Error& error : {check(unit("mix n=4096 @ sim:3")).error(), run(all()).error()}) {
    EXPECT_EQ(error.code(), Code::unavailable);
    EXPECT_THAT(error.text(), HasSubstr("the device sim:3: there is no sim:3 here"));
  }
  make_store("format = 1\ndevices = [\"silicon:0123456789abcdef\"]\n[[program]]\nfile = \"mix.toml\"\n");
  const Error error = check(1).error();
  EXPECT_EQ(error.code(), Code::unavailable);
  EXPECT_THAT(error.text(), HasSubstr("no device here is silicon:0123456789abcdef: sim:0 is silicon:"));
}

TEST_F(CampaignRun, ADeviceMayBeNamedByItsSilicon) {
  const auto facts = device::make_sim_driver({lab_->sim})->list();
  ASSERT_TRUE(facts);
  const std::string hash = facts->at(0).silicon.hash();
  make_store("format = 1\ndevices = [\"silicon:" + hash +
             "\"]\n[race]\nvariants = \"base\"\n[[program]]\nfile = \"mix.toml\"\n");
  const auto job = run(all());
  ASSERT_TRUE(job) << job.error().text();
  EXPECT_TRUE(verify(all(), job->receipt));
  auto lines = lines_of(job->receipt);
  lines[2]["record"]["silicon"]["hash"] = "0123456789abcdef";
  EXPECT_THAT(refused(with_lines(job->receipt, lines)).text(),
              HasSubstr("silicon:0123456789abcdef), not of silicon:"));
}

TEST_F(CampaignRun, APointThatDoesNotFitRejectsTheUnit) {
  make_store(
      "format = 1\ndevices = [\"sim:0\"]\n[race]\nvariants = \"u3\"\n[[program]]\nfile = \"mix.toml\"\n");
  const auto cost = check(1);
  ASSERT_FALSE(cost);
  EXPECT_EQ(cost.error().code(), Code::mismatch);
  EXPECT_THAT(cost.error().text(), HasSubstr("u3"));
}

TEST_F(CampaignRun, ARaceWithoutTimeForAHeatFailsItsJob) {
  lab_->sim.timing.base_ms = 2000;
  make_store("format = 1\ndevices = [\"sim:0\"]\n[race]\nbudget_s = 0.1\n[[program]]\nfile = \"mix.toml\"\n");
  const auto job = run(all());
  ASSERT_FALSE(job);
  EXPECT_EQ(job.error().code(), Code::mismatch);
  EXPECT_THAT(job.error().text(), HasSubstr("nothing could be timed in its budget of 0.1 s"));
  EXPECT_THAT(job.error().text(), HasSubstr("budget_s"));
}

TEST_F(CampaignRun, StopsBetweenHeats) {
  make_store(kThree);
  std::stop_source stop;
  int launches = 0;
  lab_->on_launch = [&] {
    if (++launches == 20) stop.request_stop();
  };
  const auto job = run(all(), {.stop = stop.get_token()});
  ASSERT_FALSE(job);
  EXPECT_EQ(job.error().code(), Code::timeout);
  EXPECT_LT(launches, 40);
  const auto cost = check(1, 0, stop.get_token());
  ASSERT_FALSE(cost);
  EXPECT_EQ(cost.error().code(), Code::timeout);
}

TEST_F(CampaignRun, ADeviceThatALostVariantTookIsOpenedAgain) {
  make_store(kThree);
  lab_->sim.faults = {{.variant = "u2", .fault = device::SimFault::device_lost}};
  const auto job = run({0, 1});
  ASSERT_TRUE(job) << job.error().text();
  EXPECT_EQ(lab_->opened, 2);
  EXPECT_EQ(lines_of(job->receipt)[2]["record"]["winner"], "base");
}

// ---- Receipts that do not hold.

TEST_F(CampaignRun, ATamperedBodyIsDenied) {
  shard::Receipt receipt = raced().receipt;
  receipt.body[receipt.body.size() / 2] ^= 1;
  EXPECT_EQ(refused(receipt).code(), Code::denied);
}

TEST_F(CampaignRun, EachUnitIsThereOnceAndNoOther) {
  const shard::Receipt receipt = raced().receipt;
  const auto lines = lines_of(receipt);
  auto fewer = lines;
  fewer.pop_back();
  EXPECT_THAT(refused(with_lines(receipt, fewer)).text(), HasSubstr("says 4 units and has 3"));
  fewer[0]["units"] = 3;
  EXPECT_THAT(refused(with_lines(receipt, fewer)).text(), HasSubstr("does not tell of 'mix n=4096 @ sim:0'"));
  auto twice = lines;
  twice[3] = twice[2];
  EXPECT_THAT(refused(with_lines(receipt, twice)).text(), HasSubstr("tells of 'mix n=1024 @ sim:0' twice"));
  auto foreign = lines;
  foreign[2]["unit"] = std::string(64, '0');
  EXPECT_THAT(refused(with_lines(receipt, foreign)).text(), HasSubstr("not the claim's"));
}

TEST_F(CampaignRun, TheRecordOfAnotherUnitIsRefused) {
  const shard::Receipt receipt = raced().receipt;
  auto lines = lines_of(receipt);
  std::swap(lines[2]["record"], lines[3]["record"]);
  std::swap(lines[2]["problem"], lines[3]["problem"]);
  const Error error = refused(with_lines(receipt, lines));
  EXPECT_EQ(error.code(), Code::mismatch);
  EXPECT_THAT(error.text(), HasSubstr(R"(its record is of the problem {"n":2048}, not {"n":1024})"));
}

TEST_F(CampaignRun, ARecordMustBeOfItsProgramAndDevice) {
  const shard::Receipt receipt = raced().receipt;
  const auto changed = [&](const std::function<void(Json&)>& change) {
    auto lines = lines_of(receipt);
    change(lines[2]);
    const Error error = refused(with_lines(receipt, lines));
    EXPECT_EQ(error.code(), Code::mismatch) << error.text();
    return error.text();
  };
  EXPECT_THAT(changed([](Json& line) { line["record"]["source"] = std::string(64, 'a'); }),
              HasSubstr("its record is of the program 'mix' aaaaaaaaaaaaaaaa, not 'mix' "));
  EXPECT_THAT(changed([](Json& line) { line["record"]["program"] = "max"; }), HasSubstr("the program 'max'"));
  EXPECT_THAT(changed([](Json& line) { line["device"] = "sim:1"; }),
              HasSubstr("the device sim:1, not sim:0"));
  EXPECT_THAT(changed([](Json& line) { line["record"]["backend"] = "cuda"; }), HasSubstr("(cuda, silicon:"));
  EXPECT_THAT(changed([](Json& line) { line.erase("record"); }), HasSubstr("has a race of it: false"));
  EXPECT_THAT(changed([](Json& line) { line["record"].erase("variants"); }), HasSubstr("variants"));
  EXPECT_THAT(changed([](Json& line) { line["more"] = 1; }), HasSubstr("more"));
}

TEST_F(CampaignRun, ADecisionMustFollowFromItsRecord) {
  const shard::Receipt receipt = raced().receipt;
  const auto changed = [&](const std::function<void(Json&)>& change) {
    auto lines = lines_of(receipt);
    change(lines[2]["record"]);
    const Error error = refused(with_lines(receipt, lines));
    EXPECT_EQ(error.code(), Code::mismatch) << error.text();
    return error.text();
  };
  EXPECT_THAT(changed([](Json& record) { record["winner"] = "u4"; }),
              HasSubstr("'u4' is not among the variants"));
  EXPECT_THAT(changed([](Json& record) { record["winner"] = "base"; }), HasSubstr("its rates are not those"));
  EXPECT_THAT(changed([](Json& record) { record["verdict"] = "dead-heat"; }),
              HasSubstr("its verdict 'dead-heat' does not go with 'u2'"));
  EXPECT_THAT(changed([](Json& record) { record["verdict"] = "pinned"; }), HasSubstr("ends as 'pinned'"));
  EXPECT_THAT(changed([](Json& record) { record["gain_pct"] = -1.0; }),
              HasSubstr("its verdict 'winner' does not go with 'u2' at -1.000%"));
  EXPECT_THAT(changed([](Json& record) { record["rate"] = 1e9; }), HasSubstr("its rates are not those"));
}

TEST_F(CampaignRun, VariantsMustBeTheRacesOwn) {
  const shard::Receipt receipt = raced().receipt;
  const auto renamed = [&](const std::string& name) {
    std::string body(as_text(receipt.body));
    return refused(resigned(receipt, replace_all(body, "\"u2\"", "\"" + name + "\""))).text();
  };
  EXPECT_THAT(renamed("x9"), HasSubstr("'x9' is no variant of the program 'mix'"));
  EXPECT_THAT(renamed("u4"), HasSubstr("its record is of the variants base,u4, not base,u2"));
}

TEST_F(CampaignRun, OtherShapesOfBodiesAreRefused) {
  const shard::Receipt receipt = raced().receipt;
  const std::string body(as_text(receipt.body));
  for (const std::string& text :
       {std::string(), std::string("x"), std::string("{}\n"), body.substr(0, body.size() - 1), body + "\n",
        "\n" + body, std::string("{\"format\":1}\n\n")})
    EXPECT_EQ(refused(resigned(receipt, text)).code(), Code::mismatch) << text.substr(0, 40);
  EXPECT_EQ(refused(resigned(receipt, replace_all(body, "{\"format\":1", "{\"format\":2"))).code(),
            Code::incompatible);
  shard::Receipt other = receipt;
  other.version = kExecutorVersion + 1;
  EXPECT_EQ(refused(other).code(), Code::incompatible);
}

TEST_F(CampaignRun, TheReceiptOfAnotherClaimIsRefused) {
  const shard::Receipt receipt = raced().receipt;
  const Status status = verify({0, 1}, receipt);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code(), Code::mismatch);
}

// ---- The winner's second look.

TEST_F(CampaignRun, AWinnerThatFailsItsGateNowIsRefused) {
  const shard::Receipt receipt = raced().receipt;
  lab_->wrong = {"u2"};
  const Error error = refused(receipt);
  EXPECT_EQ(error.code(), Code::mismatch);
  EXPECT_THAT(error.text(), HasSubstr("its winner 'u2' does not pass its gate any more"));
  EXPECT_TRUE(verify(all(), receipt, {.sample = 0}));  // nobody asked
}

TEST_F(CampaignRun, WithoutTheCardOnlyTheRecordIsLookedAt) {
  const shard::Receipt receipt = raced().receipt;
  lab_->wrong = {"u2"};
  lab_->present = false;
  EXPECT_TRUE(verify(all(), receipt));
  lab_->present = true;
  lab_->sim.facts.silicon.vendor = "Another";
  lab_->sim.facts.silicon.arch = "other";
  EXPECT_TRUE(verify(all(), receipt));  // another card at that address
}

// ---- Plans.

TEST_F(CampaignRun, APlanCutsByTheTimeThatRacesMayTake) {
  make_store(
      "format = 1\ndevices = [\"sim:0\"]\n[race]\nbudget_s = 10\nvariants = \"u2\"\n[[program]]\nfile = "
      "\"mix.toml\"\n"
      "problems = { n = [512, 1024, 1536, 2048, 2560, 3072] }\n");
  shard::PlanRequest request;
  request.sizing.budget_seconds =
      40;  // three quarters of it: two races are 20.x s, three would reach the cut
  request.cost_kind = executor_->cost_kind();
  request.order = shard::OrderKind::plain;
  const auto outcome = shard::make_plan(store_, *executor_, request);
  ASSERT_TRUE(outcome) << outcome.error().text();
  EXPECT_TRUE(outcome->complete);
  EXPECT_EQ(outcome->plan.shards.size(), 3u);
  for (const shard::PlanShard& one : outcome->plan.shards) {
    EXPECT_EQ(one.cost_kind, shard::CostKind::command_seconds);
    EXPECT_LT(one.seconds, 30);
    EXPECT_EQ(outcome->costs.at(one.id).features.at("races"), 2);
  }
  const auto covered = shard::coverage(outcome->plan, *store_);
  ASSERT_TRUE(covered);
  EXPECT_TRUE(covered->complete());
}

TEST_F(CampaignRun, AUnitThatFailsIsNamedAndTheOthersPlanned) {
  make_store(
      "format = 1\ndevices = [\"sim:0\"]\n[[program]]\nfile = \"mix.toml\"\n[[program]]\nfile = "
      "\"mix.toml\"\nrace = "
      "{ variants = \"u3\" }\n");
  shard::PlanRequest request;
  request.sizing.budget_seconds = 1000;
  request.cost_kind = executor_->cost_kind();
  request.fail_fast = false;
  const auto outcome = shard::make_plan(store_, *executor_, request);
  ASSERT_TRUE(outcome) << outcome.error().text();
  ASSERT_EQ(outcome->plan.failed.size(), 1u);
  EXPECT_THAT(outcome->plan.failed[0].why, HasSubstr("u3"));
  EXPECT_EQ(outcome->plan.shards.size(), 1u);
}

}  // namespace
}  // namespace furlong::campaign
