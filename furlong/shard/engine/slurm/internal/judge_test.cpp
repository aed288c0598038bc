#include "furlong/shard/engine/slurm/internal/judge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace furlong::shard::slurm {
namespace {

using testing::HasSubstr;

constexpr JobRequest kAsked = {640, 20};
const std::vector<int> kFinal = {2, 3};

Verdict of(const JobEnd& end, const LogEnd& log = {}, const JobRequest& request = kAsked) {
  return judge(end, log, request, kFinal);
}

TEST(SlurmJudge, KnowsThePhasesOfAJob) {
  for (const char* state : {"PENDING", "REQUEUED", "REQUEUE_HOLD", "SPECIAL_EXIT"})
    EXPECT_EQ(phase_of(state), Phase::pending) << state;
  for (const char* state : {"RUNNING", "COMPLETING", "CONFIGURING", "SUSPENDED", "STAGE_OUT", "A_NEW_ONE"})
    EXPECT_EQ(phase_of(state), Phase::running) << state;
  for (const char* state : {"BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL",
                            "OUT_OF_MEMORY", "PREEMPTED", "REVOKED", "TIMEOUT"})
    EXPECT_EQ(phase_of(state), Phase::ended) << state;
}

TEST(SlurmJudge, WhatWasLostIsSubmittedAgainUnchanged) {
  for (const char* state : {"NODE_FAIL", "BOOT_FAIL", "PREEMPTED", "REVOKED", "DEADLINE", "COMPLETED", ""}) {
    const Verdict verdict = of({state, "n2", 0, 0});
    EXPECT_TRUE(verdict.again) << state;
    EXPECT_EQ(verdict.request, kAsked) << state;
    EXPECT_EQ(verdict.code, Code::unavailable) << state;
    EXPECT_FALSE(verdict.why.empty()) << state;
  }
  EXPECT_EQ(of({"NODE_FAIL", "n2", 0, 0}).why, "its node n2 failed");
  EXPECT_TRUE(of({"FAILED", "n2", 127, 0}).again) << "a node without the program";
  EXPECT_TRUE(of({"FAILED", "n2", 4, 0}).again) << "a node without the store";
}

TEST(SlurmJudge, WhatFailedForItselfIsNot) {
  for (const int code : kFinal) {
    LogEnd log;
    log.last_line = "furlong: unit 'x' is rejected";
    const Verdict verdict = of({"FAILED", "n1", code, 0}, log);
    EXPECT_FALSE(verdict.again);
    EXPECT_EQ(verdict.why, fmt::format("exit status {} on n1: furlong: unit 'x' is rejected", code));
  }
  EXPECT_FALSE(of({"CANCELLED", "", 0, 0}).again);
  EXPECT_EQ(of({"CANCELLED", "", 0, 0}).code, Code::denied);
}

TEST(SlurmJudge, AMemoryKillIsNotRetriedUnchanged) {
  const Verdict told = of({"OUT_OF_MEMORY", "n1", 0, 125});
  EXPECT_FALSE(told.again);
  EXPECT_EQ(told.code, Code::exhausted);
  EXPECT_THAT(told.why, HasSubstr("640 MiB"));
  LogEnd log;
  log.over_memory = true;
  EXPECT_EQ(of({"FAILED", "n1", 0, 9}, log).code, Code::exhausted);
  EXPECT_FALSE(of({"FAILED", "n1", 0, 9}, log).again);
  EXPECT_THAT(of({"OUT_OF_MEMORY", "n1", 0, 0}, {}, {}).why, HasSubstr("its partition gives"));
  // Nobody says that it was memory, but it may have been.
  const Verdict killed = of({"FAILED", "n1", 0, 9});
  EXPECT_TRUE(killed.again);
  EXPECT_EQ(killed.request, (JobRequest{1280, 20}));
  EXPECT_EQ(killed.code, Code::exhausted) << "once nothing is submitted any more";
  const Verdict unasked = of({"FAILED", "n1", 0, 9}, {}, {0, 20});
  EXPECT_FALSE(unasked.again) << "twice nothing is what it had";
  EXPECT_EQ(unasked.code, Code::exhausted);
  EXPECT_THAT(unasked.why, HasSubstr("killed by signal 9 on n1"));
  EXPECT_THAT(unasked.why, HasSubstr("--sbatch=--mem="));
  EXPECT_TRUE(of({"FAILED", "n1", 0, 15}, {}, {0, 20}).again);
  EXPECT_EQ(of({"FAILED", "n1", 0, 15}).request, kAsked);
}

TEST(SlurmJudge, ALimitOfTimeIsDoubled) {
  const Verdict verdict = of({"TIMEOUT", "n1", 0, 1});
  EXPECT_TRUE(verdict.again);
  EXPECT_EQ(verdict.request, (JobRequest{640, 40}));
  EXPECT_EQ(verdict.code, Code::timeout);
  EXPECT_THAT(verdict.why, HasSubstr("20 min"));
  EXPECT_FALSE(of({"TIMEOUT", "n1", 0, 1}, {}, {640, 0}).again) << "its partition would end it again";
}

TEST(SlurmJudge, ReadsTheEndOfALog) {
  const LogEnd over = parse_log(
      "working\nslurmstepd-n1: error: StepId=5.batch exceeded memory limit (215064576 > 67108864), being "
      "killed\n"
      "slurmstepd-n1: error: Exceeded job memory limit\n");
  EXPECT_TRUE(over.over_memory);
  EXPECT_EQ(over.last_line, "working");
  EXPECT_TRUE(
      parse_log("slurmstepd: error: Detected 1 oom_kill event in StepId=5.batch. Some of the step tasks have "
                "been OOM Killed.")
          .over_memory);
  EXPECT_FALSE(parse_log("a unit that exceeded memory limit of its own\n").over_memory)
      << "Slurm did not say it";
  EXPECT_EQ(parse_log("first\n  last \a one  \n\n \n").last_line, "last   one");
  EXPECT_EQ(parse_log("").last_line, "");
  EXPECT_EQ(read_log("/nowhere/1_2.log").last_line, "");
}

}  // namespace
}  // namespace furlong::shard::slurm
