#include "furlong/shard/engine/slurm/slurm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "furlong/base/os/file.h"
#include "furlong/shard/engine/slurm/internal/fake_slurm.h"

namespace furlong::shard::slurm {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;
using testing::UnorderedElementsAre;

class SlurmEngineTest : public testing::Test {
 protected:
  SlurmEngineTest() : folder_(TemporaryFolder::make("furlong-slurm-test").value()) {
    options_.command = {"furlong", "run", "--shard", "{}"};
    options_.plan = "ab12";
    options_.logs = folder_.path() / "out.slurm";
    options_.has_receipt = [this](ShardId shard) { return slurm_.receipts.contains(shard); };
    options_.tell = [this](const std::string& line) { told_.push_back(line); };
    engine_options_.jobs = 0;
  }

  // Shards 0 to count - 1 of 100 MiB and 10 s each.
  void add_tasks(ShardId count) {
    for (ShardId shard = 0; shard < count; ++shard) add_task(shard, 100, 10);
  }
  void add_task(ShardId shard, std::uint64_t mib, double seconds) {
    tasks_.push_back({shard, fmt::format("shard {}", shard), mib << 20, seconds});
  }
  Status run() {
    const auto engine = make_engine(options_, slurm_, clock_);
    EXPECT_EQ(engine->name(), "slurm");
    return engine->run(tasks_, engine_options_, [this](const TaskEnd& end) {
      if (end.error)
        failed_.emplace(end.shard, *end.error);
      else
        done_.push_back(end.shard);
      ended_.push_back(end);
      return go_on_ || !end.error;
    });
  }
  std::string failure(ShardId shard) const {
    const auto found = failed_.find(shard);
    return found == failed_.end() ? "" : found->second.text();
  }
  std::string all_told() const { return join(told_, "\n"); }
  static std::string argument(const FakeSlurm::Array& array, std::string_view option) {
    return FakeSlurm::value_of(array.arguments, option).value_or("");
  }
  static std::optional<Result<ProcessEnd>> silence() {
    return Result<ProcessEnd>(
        FakeSlurm::said(1, "", "error: Unable to contact slurm controller (connect failure)"));
  }

  TemporaryFolder folder_;
  FakeSlurm slurm_;
  FakeClock clock_;
  SlurmOptions options_;
  EngineOptions engine_options_;
  std::vector<EngineTask> tasks_;
  bool go_on_ = true;
  std::vector<ShardId> done_;
  std::map<ShardId, Error> failed_;
  std::vector<TaskEnd> ended_;
  std::vector<std::string> told_;
};

TEST_F(SlurmEngineTest, CarriesLikeShardsOutAsOneArray) {
  add_tasks(5);
  engine_options_.jobs = 2;
  const Status status = run();
  ASSERT_TRUE(status.has_value()) << status.error().text();
  EXPECT_THAT(done_, UnorderedElementsAre(0u, 1u, 2u, 3u, 4u));
  ASSERT_THAT(slurm_.arrays, SizeIs(1));
  EXPECT_EQ(argument(slurm_.arrays[0], "--array="), "0-4%2");
  EXPECT_EQ(argument(slurm_.arrays[0], "--mem="), "112M");
  EXPECT_EQ(argument(slurm_.arrays[0], "--time="), "10");
  EXPECT_EQ(argument(slurm_.arrays[0], "--output="), (options_.logs / "%A_%a.log").string());
  EXPECT_THAT(slurm_.arrays[0].script, HasSubstr("exec 'furlong' 'run' '--shard' \"$shard\"\n"));
  EXPECT_EQ(slurm_.most_at_once, 2u);
  EXPECT_THAT(all_told(), HasSubstr("array 10: shards 0-4, 112 MiB and 10 min each, 2 at a time"));
  EXPECT_EQ(ended_[0].seconds, 1);
  EXPECT_FALSE(slurm_.at_work_twice);
}

TEST_F(SlurmEngineTest, NothingToDoAsksForNothing) {
  ASSERT_TRUE(run().has_value());
  EXPECT_EQ(slurm_.calls("sbatch"), 0);
}

TEST_F(SlurmEngineTest, LimitsWhatIsAtWorkOverAllArrays) {
  add_task(7, 1000, 10);
  add_task(3, 1000, 10);
  add_task(1, 1000, 2000);
  for (ShardId shard = 10; shard < 16; ++shard) add_task(shard, 100, 10);
  engine_options_.jobs = 3;
  ASSERT_TRUE(run().has_value());
  EXPECT_THAT(done_, SizeIs(9));
  ASSERT_THAT(slurm_.arrays, SizeIs(3));
  EXPECT_EQ(argument(slurm_.arrays[0], "--array="), "3,7%2") << "the heaviest come first";
  EXPECT_EQ(argument(slurm_.arrays[1], "--array="), "1%1");
  EXPECT_EQ(argument(slurm_.arrays[1], "--time="), "160");
  EXPECT_EQ(argument(slurm_.arrays[2], "--mem="), "112M");
  EXPECT_LE(slurm_.most_at_once, 3u);
  EXPECT_EQ(slurm_.arrays[2].at_once, 3u) << "it gets what the others no longer need";
}

TEST_F(SlurmEngineTest, AShardWhoseNodeFailedIsSubmittedAgain) {
  add_tasks(4);
  slurm_.fates[1] = {"NODE_FAIL"};
  slurm_.fates[2] = {"NODE_FAIL", "PREEMPTED"};
  ASSERT_TRUE(run().has_value());
  EXPECT_THAT(done_, UnorderedElementsAre(0u, 1u, 2u, 3u));
  ASSERT_THAT(slurm_.arrays, SizeIs(3));
  EXPECT_EQ(argument(slurm_.arrays[1], "--array="), "1-2");
  EXPECT_EQ(argument(slurm_.arrays[2], "--array="), "2");
  EXPECT_THAT(all_told(), HasSubstr("shard 1 (job 10_1): its node n1 failed; submitting it again (1 of 2)"));
  EXPECT_THAT(all_told(), HasSubstr("shard 2 (job 11_2): PREEMPTED on n1; submitting it again (2 of 2)"));
  EXPECT_FALSE(slurm_.at_work_twice);
}

TEST_F(SlurmEngineTest, GivesUpAfterAsManySubmissions) {
  add_tasks(2);
  slurm_.fates[0] = {"NODE_FAIL", "NODE_FAIL", "NODE_FAIL", "NODE_FAIL"};
  ASSERT_TRUE(run().has_value());
  EXPECT_THAT(done_, ElementsAre(1u));
  EXPECT_EQ(failed_.at(0).code(), Code::unavailable);
  EXPECT_THAT(failure(0), HasSubstr("after 3 submissions"));
  EXPECT_THAT(failure(0), HasSubstr((options_.logs / "12_0.log").string()));
  EXPECT_EQ(slurm_.calls("sbatch"), 3);
}

TEST_F(SlurmEngineTest, WhatFailedForItselfIsToldWithItsLastWords) {
  add_tasks(2);
  slurm_.fates[1] = {"FAILED 3:0"};
  ASSERT_TRUE(system_files()
                  .write_atomic(options_.logs / "10_1.log", "begun\nfurlong: unit 'x' is wrong\n")
                  .has_value());
  ASSERT_TRUE(run().has_value());
  EXPECT_THAT(failure(1), HasSubstr("shard 1 (job 10_1): exit status 3 on n1: furlong: unit 'x' is wrong"));
  EXPECT_EQ(slurm_.calls("sbatch"), 1);
  EXPECT_THAT(done_, ElementsAre(0u));
}

TEST_F(SlurmEngineTest, AfterAFailureNothingMoreBegins) {
  go_on_ = false;
  add_tasks(6);
  add_task(20, 4000, 10);
  engine_options_.jobs = 2;
  slurm_.fates[0] = {"FAILED 3:0"};
  ASSERT_TRUE(run().has_value());
  EXPECT_EQ(ended_.front().shard, 0u);
  EXPECT_LE(ended_.size(), 4u) << "those that ran";
  EXPECT_EQ(slurm_.live(), 0u);
  EXPECT_FALSE(slurm_.receipts.contains(20)) << "its array was never submitted";
  EXPECT_EQ(slurm_.calls("sbatch"), 1);
  for (const auto& array : slurm_.arrays)
    for (const auto& element : array.elements)
      EXPECT_TRUE(element.state == "CANCELLED" || element.steps > 0) << element.index;
}

TEST_F(SlurmEngineTest, AMemoryKillIsExhaustedAtOnce) {
  add_tasks(2);
  slurm_.fates[0] = {"OUT_OF_MEMORY"};
  slurm_.fates[1] = {"FAILED 0:9"};
  ASSERT_TRUE(
      system_files()
          .write_atomic(options_.logs / "10_1.log", "slurmstepd-n1: error: Exceeded job memory limit\n")
          .has_value());
  ASSERT_TRUE(run().has_value());
  EXPECT_EQ(failed_.at(0).code(), Code::exhausted);
  EXPECT_EQ(failed_.at(1).code(), Code::exhausted);
  EXPECT_THAT(failure(1), HasSubstr("112 MiB"));
  EXPECT_THAT(failure(1), HasSubstr("rebudget"));
  EXPECT_EQ(slurm_.calls("sbatch"), 1);
}

TEST_F(SlurmEngineTest, ALimitThatWasReachedIsRaised) {
  add_tasks(2);
  slurm_.fates[0] = {"TIMEOUT"};
  slurm_.fates[1] = {"FAILED 0:9"};
  ASSERT_TRUE(run().has_value());
  EXPECT_THAT(done_, UnorderedElementsAre(0u, 1u));
  ASSERT_THAT(slurm_.arrays, SizeIs(3));
  EXPECT_EQ(argument(slurm_.arrays[1], "--time="), "20");
  EXPECT_EQ(argument(slurm_.arrays[1], "--mem="), "112M");
  EXPECT_EQ(argument(slurm_.arrays[2], "--time="), "10");
  EXPECT_EQ(argument(slurm_.arrays[2], "--mem="), "224M");
}

TEST_F(SlurmEngineTest, AnArrayThatSomebodyCancelledIsNotSubmittedAgain) {
  add_tasks(4);
  engine_options_.jobs = 1;
  int looks = 0;
  slurm_.at_look = [&] {
    if (++looks != 4) return;  // Slurm keeps one line for the elements that never came up
    FakeSlurm::Array& array = slurm_.arrays.at(0);
    array.rest_cancelled = true;
    for (auto& element : array.elements) {
      if (element.state == "PENDING") element.forgotten = true;
      if (element.state == "PENDING" || element.state == "RUNNING") element.state = "CANCELLED";
    }
  };
  ASSERT_TRUE(run().has_value());
  EXPECT_EQ(done_.size() + failed_.size(), 4u);
  EXPECT_GE(failed_.size(), 2u);
  for (const auto& [shard, error] : failed_) {
    EXPECT_EQ(error.code(), Code::denied) << error.text();
    EXPECT_THAT(error.text(), HasSubstr("somebody cancelled it"));
  }
  EXPECT_EQ(slurm_.calls("sbatch"), 1);
}

TEST_F(SlurmEngineTest, WaitsForAReceiptThatIsOnItsWay) {
  options_.receipt_patience_s = 30;
  add_tasks(1);
  slurm_.fates[0] = {"COMPLETED late"};
  ASSERT_TRUE(run().has_value());
  EXPECT_THAT(done_, ElementsAre(0u));
  EXPECT_EQ(slurm_.calls("sbatch"), 1);
}

TEST_F(SlurmEngineTest, AJobWithoutAReceiptIsSubmittedAgainHoweverWellItEnded) {
  add_tasks(1);
  slurm_.fates[0] = {"COMPLETED"};
  ASSERT_TRUE(run().has_value());
  EXPECT_THAT(done_, ElementsAre(0u));
  EXPECT_EQ(slurm_.calls("sbatch"), 2);
  EXPECT_THAT(all_told(), HasSubstr("left no receipt"));
}

TEST_F(SlurmEngineTest, AJobThatSlurmForgotIsJudgedByItsReceipt) {
  add_tasks(2);
  slurm_.fates[0] = {"forgotten ok"};
  slurm_.fates[1] = {"forgotten"};
  ASSERT_TRUE(run().has_value());
  EXPECT_THAT(done_, UnorderedElementsAre(0u, 1u));
  ASSERT_THAT(slurm_.arrays, SizeIs(2));
  EXPECT_EQ(argument(slurm_.arrays[1], "--array="), "1");
}

TEST_F(SlurmEngineTest, AJobThatIsQueuedAgainIsWaitedFor) {
  add_tasks(2);
  slurm_.fates[1] = {"requeued"};
  ASSERT_TRUE(run().has_value());
  EXPECT_THAT(done_, UnorderedElementsAre(0u, 1u));
  EXPECT_EQ(slurm_.calls("sbatch"), 1);
}

TEST_F(SlurmEngineTest, ASilentControllerIsAskedAgain) {
  add_tasks(3);
  slurm_.fault = [&](const ProcessRequest& request) -> std::optional<Result<ProcessEnd>> {
    const bool silent = slurm_.calls("squeue") > 2 && slurm_.calls("squeue") < 9;
    if (!silent || request.argv.back() == "--version") return std::nullopt;
    return silence();
  };
  const Status status = run();
  ASSERT_TRUE(status.has_value()) << status.error().text();
  EXPECT_THAT(done_, SizeIs(3));
  EXPECT_EQ(slurm_.calls("sbatch"), 1);
  EXPECT_THAT(all_told(), HasSubstr("Unable to contact slurm controller"));
}

TEST_F(SlurmEngineTest, ASilenceThatIsTooLongNamesWhatIsQueued) {
  options_.patience_s = 50;
  add_tasks(3);
  slurm_.fault = [&](const ProcessRequest& request) -> std::optional<Result<ProcessEnd>> {
    if (request.argv.back() == "--version" || slurm_.calls("squeue") < 3) return std::nullopt;
    return silence();
  };
  const Status status = run();
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().code(), Code::unavailable);
  EXPECT_THAT(status.error().text(), HasSubstr("the jobs 10 may still be in the queue"));
  EXPECT_GE(clock_.now_ms(), 50'000);
  EXPECT_LE(clock_.now_ms(), 90'000);
}

// Patience is for each command by itself: that squeue answers does not renew that for scontrol.
TEST_F(SlurmEngineTest, AnEndThatNobodyTellsIsAskedForOnlySoLong) {
  options_.patience_s = 50;
  add_tasks(4);
  slurm_.fates[1] = {"FAILED 1:0"};
  slurm_.fates[2] = {"FAILED 3:0"};
  slurm_.fates[3] = {"hang"};
  const auto run_with = [&](const ProcessEnd& answer, const std::string& of_job) {
    slurm_.arrays.clear();
    slurm_.receipts.clear();
    done_.clear();
    failed_.clear();
    told_.clear();
    const std::int64_t begin_ms = clock_.now_ms();
    slurm_.fault = [=](const ProcessRequest& request) -> std::optional<Result<ProcessEnd>> {
      if (request.argv[0] != "scontrol" || request.argv[1] != "--oneliner") return std::nullopt;
      if (!request.argv.back().ends_with(of_job)) return std::nullopt;
      return Result<ProcessEnd>(answer);
    };
    const Status status = run();
    EXPECT_FALSE(status.has_value());
    EXPECT_GE(clock_.now_ms() - begin_ms, 50'000);
    EXPECT_LE(clock_.now_ms() - begin_ms, 90'000);
    EXPECT_EQ(std::ranges::count_if(
                  told_, [](const std::string& line) { return line.find("again for") != line.npos; }),
              1);
    EXPECT_THAT(done_, ElementsAre(0u));
    return status ? Error(Code::internal, "") : status.error();
  };
  const Error silent = run_with(silence()->value(), "");
  EXPECT_EQ(silent.code(), Code::unavailable);
  EXPECT_THAT(silent.text(), HasSubstr("Unable to contact"));
  EXPECT_THAT(silent.text(), HasSubstr("the jobs 10 may still be in the queue"));
  EXPECT_THAT(failed_, IsEmpty());

  // What scontrol says of one job alone is not understood: the others are judged meanwhile.
  slurm_.fates[1] = {"FAILED 1:0"};
  slurm_.fates[2] = {"FAILED 3:0"};
  slurm_.fates[3] = {"hang"};
  const Error garbled = run_with(FakeSlurm::said(0, "ArrayTaskId=1 JobState=FAILED ExitCode=?\n"), "_1");
  EXPECT_EQ(garbled.code(), Code::unavailable);
  EXPECT_THAT(garbled.text(), HasSubstr("ExitCode=?"));
  EXPECT_THAT(failure(2), HasSubstr("exit status 3"));
}

TEST_F(SlurmEngineTest, ARefusalToTellAnEndNamesWhatIsQueued) {
  add_tasks(2);
  slurm_.fates[0] = {"FAILED 1:0"};
  slurm_.fates[1] = {"hang"};
  slurm_.fault = [&](const ProcessRequest& request) -> std::optional<Result<ProcessEnd>> {
    if (request.argv[0] != "scontrol" || request.argv[1] != "--oneliner") return std::nullopt;
    return Result<ProcessEnd>(FakeSlurm::said(1, "", "slurm_load_jobs error: Access/permission denied"));
  };
  const Status status = run();
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().code(), Code::invalid);
  EXPECT_THAT(status.error().text(), HasSubstr("permission denied"));
  EXPECT_THAT(status.error().text(), HasSubstr("the jobs 10 may still be in the queue"));
  EXPECT_EQ(slurm_.live(), 1u) << "what runs is left to the next run";
}

TEST_F(SlurmEngineTest, GarbageIsNotTakenForAnEmptyQueue) {
  add_tasks(2);
  int looks = 0;
  bool always = false;
  slurm_.lost_answer = [&](const ProcessRequest& request) -> std::optional<Result<ProcessEnd>> {
    if (request.argv[0] != "squeue" || request.argv.back() == "--version") return std::nullopt;
    if (++looks % 2 == 0 && !always) return std::nullopt;
    return Result<ProcessEnd>(FakeSlurm::said(0, "The cluster goes down on Friday\n"));
  };
  ASSERT_TRUE(run().has_value());
  EXPECT_THAT(done_, SizeIs(2));
  EXPECT_EQ(slurm_.calls("sbatch"), 1);
  always = true;
  slurm_.receipts.clear();
  const Status status = run();
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().code(), Code::unavailable);
  EXPECT_THAT(status.error().text(), HasSubstr("The cluster goes down on Friday"));
  EXPECT_EQ(slurm_.calls("sbatch"), 1) << "nothing is submitted by one who can't see the queue";
}

TEST_F(SlurmEngineTest, AnSbatchWhoseAnswerWasLostIsNotRepeated) {
  add_tasks(3);
  bool lost = false;
  slurm_.lost_answer = [&](const ProcessRequest& request) -> std::optional<Result<ProcessEnd>> {
    if (request.argv[0] != "sbatch" || request.argv.back() == "--version" || lost) return std::nullopt;
    lost = true;
    return Result<ProcessEnd>(FakeSlurm::said(
        1, "", "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation"));
  };
  for (ShardId shard = 0; shard < 3; ++shard)
    slurm_.fates[shard] = {"requeued"};  // still there at the next look
  ASSERT_TRUE(run().has_value());
  EXPECT_THAT(done_, SizeIs(3));
  EXPECT_EQ(slurm_.calls("sbatch"), 1);
  EXPECT_FALSE(slurm_.at_work_twice);
}

TEST_F(SlurmEngineTest, ARefusalEndsTheRunAndEmptiesTheQueue) {
  add_task(0, 100, 10);
  add_task(1, 1000, 10);
  slurm_.fates[0] = {"hang"};
  slurm_.fault = [&](const ProcessRequest& request) -> std::optional<Result<ProcessEnd>> {
    if (request.argv[0] != "sbatch" || slurm_.calls("sbatch") != 2) return std::nullopt;
    return Result<ProcessEnd>(FakeSlurm::said(
        1, "", "sbatch: error: Batch job submission failed: Invalid account or account/partition"));
  };
  const Status status = run();
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().code(), Code::invalid);
  EXPECT_THAT(status.error().text(), HasSubstr("Invalid account"));
  EXPECT_EQ(slurm_.live(), 0u);
  EXPECT_THAT(done_, IsEmpty());
}

TEST_F(SlurmEngineTest, WhatNoNodeCanGiveFailsThoseShardsAlone) {
  add_task(0, 1'000'000, 10);
  add_task(1, 100, 10);
  slurm_.fault = [&](const ProcessRequest& request) -> std::optional<Result<ProcessEnd>> {
    if (request.argv[0] != "sbatch" || FakeSlurm::value_of(request.argv, "--mem=").value_or("112M") == "112M")
      return std::nullopt;
    return Result<ProcessEnd>(FakeSlurm::said(1, "",
                                              "sbatch: error: Memory specification can not be "
                                              "satisfied\nsbatch: error: Batch job submission failed: "
                                              "Requested node configuration is not available"));
  };
  ASSERT_TRUE(run().has_value());
  EXPECT_EQ(failed_.at(0).code(), Code::exhausted);
  EXPECT_THAT(failure(0), HasSubstr("no node gives"));
  EXPECT_THAT(done_, ElementsAre(1u));
}

TEST_F(SlurmEngineTest, WaitsForTheArraysOfAnEarlierRun) {
  slurm_.add_array("furlong-ab12+0", {0, 1, 9}, 1);
  slurm_.add_array("furlong-ffff+0", {2});
  slurm_.add_array("bash", {3});
  slurm_.fates[9] = {};
  add_tasks(4);
  engine_options_.jobs = 3;
  ASSERT_TRUE(run().has_value());
  EXPECT_THAT(done_, UnorderedElementsAre(0u, 1u, 2u, 3u));
  ASSERT_THAT(slurm_.arrays, SizeIs(4));
  EXPECT_EQ(argument(slurm_.arrays[3], "--array="), "2-3%1");
  EXPECT_EQ(slurm_.arrays[0].at_once, 2u) << "the limit of this run";
  EXPECT_THAT(all_told(), HasSubstr("array 10: shards 0-1 are in the queue already, of an earlier run"));
  EXPECT_FALSE(slurm_.at_work_twice);
}

TEST_F(SlurmEngineTest, AReceiptThatCameMeanwhileIsTaken) {
  add_tasks(3);
  slurm_.receipts = {1};  // of a job that ended before the first look at the queue
  ASSERT_TRUE(run().has_value());
  EXPECT_THAT(done_, UnorderedElementsAre(0u, 1u, 2u));
  ASSERT_THAT(slurm_.arrays, SizeIs(1));
  EXPECT_EQ(argument(slurm_.arrays[0], "--array="), "0,2");
}

TEST_F(SlurmEngineTest, AStopTakesEverythingOutOfTheQueue) {
  slurm_.add_array("furlong-ab12+0", {0, 8});  // 8 is no task of this run
  slurm_.add_array("furlong-ffff+0", {2});
  for (auto& array : slurm_.arrays)
    for (auto& element : array.elements) element.fate = "hang";
  add_tasks(4);
  for (ShardId shard = 2; shard < 4; ++shard) slurm_.fates[shard] = {"hang"};
  engine_options_.jobs = 3;
  std::stop_source source;
  engine_options_.stop = source.get_token();
  slurm_.at_look = [&] {
    if (slurm_.calls("squeue") == 5) source.request_stop();
  };
  const Status status = run();
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().code(), Code::timeout);
  EXPECT_EQ(status.error().message(), "the run was stopped");
  EXPECT_THAT(done_, ElementsAre(1u)) << "its receipt was there";
  EXPECT_THAT(failed_, IsEmpty());
  EXPECT_EQ(slurm_.live(), 2u) << "the other plan's, and the shard that somebody else wants";
  EXPECT_EQ(slurm_.arrays[0].elements[0].state, "CANCELLED");
  EXPECT_EQ(slurm_.arrays[0].elements[1].state, "RUNNING");
  EXPECT_EQ(slurm_.arrays[1].elements[0].state, "RUNNING");
}

TEST_F(SlurmEngineTest, AStopThatCanNotCancelNamesTheJobs) {
  add_tasks(2);
  for (ShardId shard = 0; shard < 2; ++shard) slurm_.fates[shard] = {"hang"};
  std::stop_source source;
  engine_options_.stop = source.get_token();
  slurm_.at_look = [&] {
    if (slurm_.calls("squeue") == 3) source.request_stop();
  };
  slurm_.fault = [&](const ProcessRequest& request) -> std::optional<Result<ProcessEnd>> {
    if (request.argv[0] != "scancel" || request.argv.back() == "--version") return std::nullopt;
    return silence();
  };
  const Status status = run();
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().code(), Code::timeout);
  EXPECT_THAT(status.error().text(), HasSubstr("scancel 10"));
  EXPECT_THAT(status.error().text(), HasSubstr("Unable to contact"));
}

TEST_F(SlurmEngineTest, IndicesStayBelowWhatSlurmTakes) {
  slurm_.max_array_size = 4;
  add_tasks(10);
  slurm_.fates[9] = {"NODE_FAIL"};
  ASSERT_TRUE(run().has_value());
  EXPECT_THAT(done_, SizeIs(10));
  ASSERT_THAT(slurm_.arrays, SizeIs(4));
  EXPECT_EQ(slurm_.arrays[2].name, "furlong-ab12+8");
  EXPECT_EQ(argument(slurm_.arrays[2], "--array="), "0-1");
  EXPECT_THAT(slurm_.arrays[2].script, HasSubstr("$((8 + SLURM_ARRAY_TASK_ID))"));
  EXPECT_EQ(argument(slurm_.arrays[3], "--array="), "1");
}

TEST_F(SlurmEngineTest, ProgressTellsTheJobs) {
  add_tasks(3);
  engine_options_.jobs = 1;
  std::vector<ProgressState> states;
  engine_options_.progress = [&](const ProgressState& state) { states.push_back(state); };
  ASSERT_TRUE(run().has_value());
  ASSERT_FALSE(states.empty());
  EXPECT_EQ(states.back().step, "run");
  EXPECT_EQ(states.back().done, 3u);
  EXPECT_EQ(states.back().total, 3u);
  std::vector<std::string> heaviest;
  for (const ProgressState& state : states) heaviest.push_back(state.heaviest);
  EXPECT_THAT(heaviest, Contains("shard 0 (job 10_0 on n1)"));
}

TEST_F(SlurmEngineTest, AnotherProcessKeepsItsJobs) {
  add_tasks(1);
  const auto lock = FileLock::acquire(options_.logs / "lock");
  ASSERT_TRUE(lock.has_value());
  const Status status = run();
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().code(), Code::denied);
  EXPECT_THAT(status.error().text(), HasSubstr("another furlong"));
  EXPECT_THAT(slurm_.arrays, IsEmpty());
}

TEST_F(SlurmEngineTest, AMissingCommandIsSaidBeforeAnythingBegins) {
  add_tasks(1);
  slurm_.fault = [&](const ProcessRequest& request) -> std::optional<Result<ProcessEnd>> {
    if (request.argv[0] != "scancel") return std::nullopt;
    return Result<ProcessEnd>(fail(Code::unavailable, "scancel: not found"));
  };
  const Status status = run();
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().code(), Code::unavailable);
  EXPECT_THAT(status.error().text(), HasSubstr("slurm-client"));
  EXPECT_EQ(slurm_.calls("sbatch"), 0);
}

TEST_F(SlurmEngineTest, OptionsThatMakeNoSenseAreRefused) {
  const SlurmOptions good = options_;
  const auto refusal = [&](const std::function<void(SlurmOptions&)>& change) {
    options_ = good;
    change(options_);
    const Status status = run();
    EXPECT_FALSE(status.has_value());
    if (status) return std::string();
    EXPECT_EQ(status.error().code(), Code::invalid);
    return status.error().text();
  };
  EXPECT_THAT(refusal([](auto& o) { o.command = {"furlong"}; }), HasSubstr("no argument {}"));
  EXPECT_THAT(refusal([](auto& o) { o.command = {"furlong", "--shard={}"}; }), HasSubstr("no argument {}"));
  EXPECT_THAT(refusal([](auto& o) { o.plan = "a+b"; }), HasSubstr("a+b"));
  EXPECT_THAT(refusal([](auto& o) { o.logs.clear(); }), HasSubstr("logs"));
  EXPECT_THAT(refusal([](auto& o) { o.has_receipt = nullptr; }), HasSubstr("receipts"));
  EXPECT_THAT(refusal([](auto& o) { o.memory_margin = 0.5; }), HasSubstr("0.5"));
  EXPECT_THAT(refusal([](auto& o) { o.time_factor = 0; }), HasSubstr("factor"));
  EXPECT_THAT(refusal([](auto& o) { o.time_floor_s = 0; }), HasSubstr("60"));
  EXPECT_THAT(refusal([](auto& o) { o.cpus = 0; }), HasSubstr("CPU"));
}

}  // namespace
}  // namespace furlong::shard::slurm
