#include "furlong/fleet/agent/supervisor.h"

#include <gmock/gmock.h>

#include "furlong/base/os/file.h"
#include "furlong/fleet/agent/internal/testing.h"

namespace furlong::fleet {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing_support::ChildScript;

constexpr const char* ready = "ready 1 cuda:0 NVIDIA_H200 driver 580 arch sm_90";
const std::string a16(16, 'a'), b16(16, 'b');

class Sink : public WorkerSink {
 public:
  void say(LogLevel, std::string text) override { said.push_back(std::move(text)); }
  void say_plain(std::string line) override { plain.push_back(std::move(line)); }
  void record_written(const DeviceInfo&) override { ++records; }
  void found(const Find& find) override { finds.push_back(find); }
  void event(const DeviceInfo&, const record::WorkerEvent&) override {}
  std::vector<std::string> said, plain;
  std::vector<Find> finds;
  int records = 0;
};

class SupervisorTest : public testing::Test {
 protected:
  SupervisorTest() {
    setup.device = {.address = "cuda:0", .label = "H200", .slot = "slot"};
    setup.argv = {"furlong", "worker"};
    setup.hang_s = 10;
    setup.target = 255;
    spool = std::move(*Spool::open(folder.path() / "spool.sqlite"));
  }
  ChildScript& next_child() { return processes.scripts.emplace_back(); }
  Supervisor& supervisor() {
    if (!made) made = std::make_unique<Supervisor>(setup, processes, *spool, clock, sink);
    return *made;
  }
  void steps(int count) {
    for (int i = 0; i < count; ++i) supervisor().step(0.2);
  }
  static WorkerPlan::Step step(const std::string& epoch) {
    return {.pair = {.epoch = epoch, .day = 1}, .pack = "p-" + epoch.substr(0, 1)};
  }
  std::string job(const std::string& epoch, int number, const std::string& start = "0000000000000000") {
    return "job " + epoch + " 1 " + epoch + "-1-" + std::to_string(number) + " 00000000000000ff " + start +
           " 0";
  }
  std::string rate(const std::string& epoch, int number, const std::string& next) {
    return "rate " + epoch + " 1 u2 117.5 hashes 4096 job " + epoch + "-1-" + std::to_string(number) +
           " next " + next;
  }

  TemporaryFolder folder = std::move(*TemporaryFolder::make("supervisor"));
  FakeClock clock;
  testing_support::FakeProcesses processes{clock};
  std::unique_ptr<Spool> spool;
  Sink sink;
  WorkerSetup setup;
  std::unique_ptr<Supervisor> made;
};

TEST_F(SupervisorTest, PreparesBeforeTheJobAndTheNextPairOnceTheJobIsSeenAtWork) {
  ChildScript& child = next_child();
  supervisor().set_plan({.current = step(a16), .next = step(b16)});
  steps(2);
  EXPECT_THAT(child.heard, ElementsAre()) << "not before it is ready";
  child.says = {ready};
  steps(2);
  EXPECT_THAT(child.heard, ElementsAre("prepare " + a16 + " 1 p-a", job(a16, 1)));
  child.says = {"prepared " + a16 + " 1 u2 100.000"};
  steps(2);
  EXPECT_EQ(child.heard.size(), 2u) << "the job is not at work yet: a prepare would have it refused";
  child.says = {rate(a16, 1, "0000000000001000")};
  steps(2);
  EXPECT_THAT(child.heard.back(), "prepare " + b16 + " 1 p-b");
  supervisor().set_plan({.current = step(b16)});
  steps(1);
  EXPECT_THAT(child.heard.back(), job(b16, 2));
  EXPECT_EQ(child.heard.size(), 4u) << "it is prepared, or about to be";
}

TEST_F(SupervisorTest, TheNextPairWaitsForTheRaceOfThisOneOnlySoLong) {
  setup.patience_s = 3;
  ChildScript& child = next_child();
  child.says = {ready, rate(a16, 1, "0000000000001000")};
  supervisor().set_plan({.current = step(a16), .next = step(b16)});
  steps(2);
  EXPECT_EQ(child.heard.size(), 2u);
  child.says.push_back(rate(a16, 1, "0000000000002000"));
  steps(2);
  EXPECT_EQ(child.heard.size(), 2u);
  steps(20);
  EXPECT_EQ(child.heard.at(2), "prepare " + b16 + " 1 p-b");
}

TEST_F(SupervisorTest, RestartsWithPatienceAndGoesOnWhereItWas) {
  supervisor().set_plan({.current = step(a16)});
  ChildScript& first = next_child();
  next_child();
  first.says = {ready};
  steps(2);
  first.says = {rate(a16, 1, "0000000000005000")};
  first.ends = true;
  first.end = {.exit_code = 7, .standard_error = "x\nthe card fell over\n"};
  steps(2);
  EXPECT_EQ(supervisor().view().crashes, 1);
  EXPECT_EQ(supervisor().view().culprit, "exit status 7: the card fell over");
  EXPECT_EQ(processes.started, 1u);
  steps(10);
  EXPECT_EQ(processes.started, 2u) << "a second later";
  processes.scripts[1].says = {ready};
  steps(2);
  EXPECT_THAT(processes.scripts[1].heard,
              ElementsAre("prepare " + a16 + " 1 p-a", job(a16, 2, "0000000000005000")));
}

TEST_F(SupervisorTest, BacksOffUpToAMinuteAndForgetsAfterAGoodStretch) {
  std::vector<std::int64_t> starts;
  while (starts.size() < 10) {
    const std::size_t before = processes.requests.size();
    steps(1);
    if (processes.requests.size() > before) starts.push_back(clock.now_ns() / 1'000'000'000);
  }
  EXPECT_THAT(starts, ElementsAre(0, 1, 3, 7, 15, 31, 63, 123, 183, 243));
  ChildScript& good = next_child();
  good.says = {ready};
  setup.hang_s = 10;
  while (processes.started == 0) steps(1);
  for (int i = 0; i < 400; ++i) {
    clock.advance_ns(1'000'000'000);
    good.says = {"note fine"};
    steps(1);
  }
  good.ends = true;
  steps(1);
  const std::size_t before = processes.requests.size();
  steps(6);
  EXPECT_GT(processes.requests.size(), before) << "a second later again";
}

TEST_F(SupervisorTest, AsksAQuietWorkerAndKillsOneThatDoesNotAnswer) {
  ChildScript& child = next_child();
  next_child();
  child.says = {ready};
  steps(30);
  EXPECT_THAT(child.heard, ElementsAre("status"));
  child.says = {R"(status {"state":"fine"})"};
  steps(30);
  EXPECT_FALSE(child.killed);
  steps(40);
  EXPECT_TRUE(child.killed);
  EXPECT_THAT(supervisor().view().culprit, HasSubstr("hung: it said nothing for 10 s"));
}

TEST_F(SupervisorTest, ARefusedJobIsSentAgainLater) {
  ChildScript& child = next_child();
  child.says = {ready};
  supervisor().set_plan({.current = step(a16)});
  steps(2);
  child.says = {"error unavailable job " + a16 + "-1-1: its pair could not be prepared"};
  steps(10);
  EXPECT_EQ(child.heard.size(), 2u);
  for (int i = 0; i < 50; ++i) {
    child.says = {"note still here"};
    steps(2);
  }
  EXPECT_EQ(child.heard.at(2), job(a16, 2));
}

TEST_F(SupervisorTest, TheJobAtWorkIsRememberedHoweverManyAreRefused) {
  ChildScript& child = next_child();
  child.says = {ready};
  supervisor().set_plan({.current = step(a16)});
  steps(2);
  child.says = {rate(a16, 1, "0000000000001000")};
  steps(2);
  supervisor().set_plan({.current = step(b16)});
  for (int i = 2; i < 100; ++i) {
    child.says = {"error unavailable job " + b16 + "-1-" + std::to_string(i) + ": its pair is broken"};
    steps(1);
    clock.advance_ns(10'000'000'000);
    child.says = {"note still here"};
    steps(1);
  }
  EXPECT_THAT(child.heard.back(), HasSubstr("-1-100 "));
  child.says = {"found " + a16 + "-1-1 0000000000000007 0000000000000001"};
  steps(1);
  ASSERT_EQ(sink.finds.size(), 1u);
  EXPECT_EQ(sink.finds[0].pair.epoch, a16);
}

TEST_F(SupervisorTest, TheNextPairIsPreparedAlsoWhenNothingIsLeftOfThisOne) {
  setup.nonce_count = 4096;
  EXPECT_TRUE(spool->set_progress({.epoch = a16, .day = 1}, "slot", {.first = 0, .next = 4096}));
  ChildScript& child = next_child();
  child.says = {ready};
  supervisor().set_plan({.current = step(a16), .next = step(b16)});
  steps(2);
  child.says = {"prepared " + a16 + " 1 u2 100.000"};
  steps(2);
  EXPECT_THAT(child.heard, ElementsAre("prepare " + a16 + " 1 p-a", "stop", "prepare " + b16 + " 1 p-b"));
}

TEST_F(SupervisorTest, TheNextPairIsPreparedAlsoWhenThisOneCannotBe) {
  setup.hang_s = 1000;
  ChildScript& child = next_child();
  child.says = {ready};
  supervisor().set_plan({.current = step(a16), .next = step(b16)});
  steps(2);
  child.says = {"error invalid prepare " + a16 + " 1: no pack",
                "error unavailable job " + a16 + "-1-1: its pair could not be prepared"};
  steps(3);
  EXPECT_THAT(child.heard,
              ElementsAre("prepare " + a16 + " 1 p-a", job(a16, 1), "prepare " + b16 + " 1 p-b"));
  steps(200);
  EXPECT_EQ(child.heard.size(), 3u) << "which is left in peace";
  child.says = {"prepared " + b16 + " 1 u2 100.000"};
  steps(2);
  EXPECT_EQ(child.heard.at(3), "prepare " + a16 + " 1 p-a") << "tried again, once nothing is in its way";
}

TEST_F(SupervisorTest, FindsOutliveAFullDiskAndAreLoggedWhenItStaysFull) {
  SpoolLimits full;
  full.pages = 1;  // of which all are taken: nothing more goes in
  spool = std::move(*Spool::open(folder.path() / "spool.sqlite", full));
  ChildScript& child = next_child();
  child.says = {ready};
  supervisor().set_plan({.current = step(a16)});
  steps(2);
  for (int i = 0; i < 400; ++i) child.says.push_back(fmt::format("found {}-1-1 {:016x} {:016x}", a16, i, 1));
  steps(400);
  const std::int64_t stored = spool->counts()->finds;
  EXPECT_LT(stored, 400);
  const auto told = [&](const std::string& text) {
    return std::count_if(sink.said.begin(), sink.said.end(),
                         [&](const std::string& each) { return each.find(text) != std::string::npos; });
  };
  EXPECT_EQ(told("to be stored"), 1) << "not five times a second";
  supervisor().quit(1);
  EXPECT_EQ(told("is NOT stored: epoch " + a16 + " day 1 nonce "), 400 - stored);
}

TEST_F(SupervisorTest, FindsAreKeptOnceAndKnowTheirPair) {
  ChildScript& child = next_child();
  child.says = {ready};
  supervisor().set_plan({.current = step(a16)});
  steps(2);
  const std::string found = "found " + a16 + "-1-1 0000000000000007 0000000000000001";
  child.says = {found, found, "found another 0000000000000007 0000000000000001"};
  steps(4);
  ASSERT_EQ(sink.finds.size(), 1u);
  EXPECT_EQ(sink.finds[0].pair.epoch, a16);
  EXPECT_EQ(spool->counts()->finds, 1);
}

TEST_F(SupervisorTest, AnotherProtocolEndsTheWorkerAndIsTold) {
  ChildScript& child = next_child();
  child.says = {"ready 9 cuda:0 H200 driver 1 arch sm_90"};
  steps(2);
  EXPECT_TRUE(child.killed);
  EXPECT_THAT(supervisor().view().culprit, HasSubstr("9"));
}

TEST_F(SupervisorTest, QuitsInOrder) {
  ChildScript& child = next_child();
  child.says = {ready};
  supervisor().set_plan({.current = step(a16)});
  steps(2);
  child.says = {"done " + a16 + "-1-1 0000000000000000 81920 cut", "bye"};
  supervisor().quit(5);
  EXPECT_EQ(child.heard.back(), "quit");
  EXPECT_FALSE(child.killed);
  EXPECT_EQ(supervisor().view().state, "stopped");
  EXPECT_EQ(spool->progress({.epoch = a16, .day = 1}, "slot")->value().next, 81920u)
      << "its last words were heard";
}

TEST(RaceSummary, ForPeople) {
  record::RaceRecord record;
  record.card = "NVIDIA_GeForce_RTX_5090";
  record.winner = "u2-ldg";
  record.rate = 118.3;
  record.gain_pct = 2.07;
  record.total_ms = 41'200;
  record.variants.resize(17);
  EXPECT_EQ(race_summary(record),
            "RTX 5090 kernel race: u2-ldg at 118.3 MH/s (+2.1% over base, 17 variants, 41 s)");
  record.winner = "base";
  EXPECT_EQ(race_summary(record),
            "RTX 5090 kernel race: base at 118.3 MH/s (nothing beat base, 17 variants, 41 s)");
  record.winner = "";
  EXPECT_EQ(race_summary(record), "RTX 5090 kernel race: undecided, base serves (17 variants, 41 s)");
}

}  // namespace
}  // namespace furlong::fleet
