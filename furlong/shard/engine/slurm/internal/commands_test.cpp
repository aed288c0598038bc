#include "furlong/shard/engine/slurm/internal/commands.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "furlong/shard/engine/slurm/internal/fake_slurm.h"

namespace furlong::shard::slurm {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

TEST(SlurmCommands, ReadsALineOfTheQueue) {
  const auto rows = parse_queue(
      "12|3|RUNNING|1-02:03:04|n[1-2]|None|furlong-ab+0\n"
      "13|N/A|CANCELLED|0:00||Resources|a|strange|name\n"
      "\n"
      "14|0|PENDING|INVALID||ReqNodeNotAvail, UnavailableNodes:n2|x\n");
  ASSERT_TRUE(rows.has_value()) << rows.error().text();
  ASSERT_EQ(rows->size(), 3u);
  EXPECT_EQ((*rows)[0].array, 12u);
  EXPECT_EQ((*rows)[0].index, 3u);
  EXPECT_EQ((*rows)[0].state, "RUNNING");
  EXPECT_EQ((*rows)[0].seconds, 86400 + 2 * 3600 + 3 * 60 + 4);
  EXPECT_EQ((*rows)[0].nodes, "n[1-2]");
  EXPECT_EQ((*rows)[0].name, "furlong-ab+0");
  EXPECT_EQ((*rows)[1].index, std::nullopt);
  EXPECT_EQ((*rows)[1].name, "a|strange|name");
  EXPECT_EQ((*rows)[2].seconds, 0);
  EXPECT_EQ((*rows)[2].reason, "ReqNodeNotAvail, UnavailableNodes:n2");
  EXPECT_TRUE(parse_queue("")->empty());
}

TEST(SlurmCommands, QuotesWhatIsNoLineOfAQueue) {
  for (const char* line : {"Welcome to the cluster!", "12|3|RUNNING|0:01|n1|None",
                           "x|3|RUNNING|0:01|n1|None|name", "12|3||0:01|n1|None|name", "|||||||"}) {
    const auto rows = parse_queue(std::string("12|4|RUNNING|0:01|n1|None|name\n") + line + "\n");
    ASSERT_FALSE(rows.has_value()) << line;
    EXPECT_EQ(rows.error().code(), Code::incompatible);
    EXPECT_THAT(rows.error().message(), HasSubstr(line));
  }
}

TEST(SlurmCommands, ReadsHowAJobEnded) {
  const auto end = parse_job(
      "JobId=3 ArrayJobId=1 ArrayTaskId=1 JobName=x JobState=RUNNING ExitCode=0:0 NodeList=n2\n"
      "JobId=5 ArrayJobId=1 ArrayTaskId=3 JobName=x JobState=FAILED Reason=JobLaunchFailure ExitCode=2:9 "
      "ReqNodeList=(null) NodeList=n1 BatchHost=n1\n",
      {1, 3});
  ASSERT_TRUE(end.has_value() && end->has_value());
  EXPECT_EQ((*end)->state, "FAILED");
  EXPECT_EQ((*end)->exit_code, 2);
  EXPECT_EQ((*end)->signal, 9);
  EXPECT_EQ((*end)->nodes, "n1");
  EXPECT_FALSE(parse_job("", {1, 3})->has_value());
  EXPECT_FALSE(parse_job("JobId=3 ArrayTaskId=1 JobState=FAILED ExitCode=0:0", {1, 3})->has_value());
  for (const char* line :
       {"ArrayTaskId=3 ExitCode=0:0", "ArrayTaskId=3 JobState=FAILED",
        "ArrayTaskId=3 JobState=FAILED ExitCode=x:0", "ArrayTaskId=3 JobState=FAILED ExitCode=1"}) {
    const auto garbage = parse_job(line, {1, 3});
    ASSERT_FALSE(garbage.has_value()) << line;
    EXPECT_THAT(garbage.error().message(), HasSubstr("1_3"));
  }
}

TEST(SlurmCommands, AMissingOneIsNamedWithItsPackage) {
  for (const std::string name : {"sbatch", "squeue", "scontrol", "scancel"}) {
    FakeSlurm slurm;
    slurm.fault = [&](const ProcessRequest& request) -> std::optional<Result<ProcessEnd>> {
      if (request.argv[0] != name) return std::nullopt;
      return Result<ProcessEnd>(fail(Code::unavailable, "{}: not found in PATH", name));
    };
    Commands commands(slurm);
    const Status status = commands.present();
    ASSERT_FALSE(status.has_value());
    EXPECT_EQ(status.error().code(), Code::unavailable);
    EXPECT_THAT(status.error().message(), HasSubstr(name + " is not on this machine"));
    EXPECT_THAT(status.error().message(), HasSubstr("slurm-client"));
    EXPECT_FALSE(is_passing(status.error()));
  }
}

TEST(SlurmCommands, TellsARefusalFromASilence) {
  FakeSlurm slurm;
  Commands commands(slurm);
  ProcessEnd end;
  slurm.fault = [&](const ProcessRequest&) { return Result<ProcessEnd>(end); };
  end = FakeSlurm::said(
      1, "",
      "sbatch: error: Batch job submission failed: Unable to contact slurm controller (connect failure)");
  EXPECT_EQ(commands.submit({}).error().code(), Code::timeout);
  end = FakeSlurm::said(
      1, "", "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation");
  EXPECT_TRUE(is_passing(commands.submit({}).error()));
  end = FakeSlurm::said(1, "", "sbatch: error: invalid partition specified: nix\n");
  EXPECT_EQ(commands.submit({}).error().code(), Code::invalid);
  EXPECT_EQ(commands.submit({}).error().message(),
            "sbatch: exit status 1: sbatch: error: invalid partition specified: nix");
  end = FakeSlurm::said(0, "Submitted batch job 12\n");
  EXPECT_EQ(commands.submit({}).error().code(), Code::incompatible);
  end = FakeSlurm::said(0, "12;cluster\n");
  EXPECT_EQ(commands.submit({}).value(), 12u);
  end = FakeSlurm::said(1, "", "slurm_load_jobs error: Invalid user id");
  EXPECT_TRUE(is_passing(commands.queue().error()));
  end = FakeSlurm::said(-1, "");
  end.timed_out = true;
  end.limit_s = 60;
  EXPECT_EQ(commands.queue().error().message(), "squeue did not end in 60 s");
  end = FakeSlurm::said(0, "MaxArraySize = many\n");
  EXPECT_EQ(commands.max_array_size().error().code(), Code::incompatible);
  end = FakeSlurm::said(0, "MaxJobCount = 10\n");
  EXPECT_EQ(commands.max_array_size().error().code(), Code::incompatible);
  end = FakeSlurm::said(0, "MaxArraySize            = 1\n");
  EXPECT_EQ(commands.max_array_size().error().code(), Code::invalid);
  end = FakeSlurm::said(1, "", "slurm_load_jobs error: Invalid job id specified");
  EXPECT_FALSE(commands.ended({1, 2}).value().has_value());
}

TEST(SlurmCommands, AsksSbatchForWhatWasWanted) {
  FakeSlurm slurm;
  Commands commands(slurm);
  Submission submission;
  submission.name = "furlong-ab+0";
  submission.script = "#!/bin/sh\n";
  submission.indices = {0, 1, 2, 5};
  submission.at_once = 2;
  submission.request = {640, 20};
  submission.cpus = 3;
  submission.logs = "/a/100%/x.slurm";
  submission.arguments = {"--partition=long"};
  ASSERT_TRUE(commands.submit(submission).has_value());
  const auto& argv = slurm.arrays.at(0).arguments;
  for (const char* argument :
       {"--parsable", "--no-requeue", "--array=0-2,5%2", "--mem=640M", "--time=20", "--cpus-per-task=3",
        "--job-name=furlong-ab+0", "--output=/a/100%%/x.slurm/%A_%a.log"})
    EXPECT_THAT(argv, Contains(argument));
  EXPECT_EQ(argv.back(), "--partition=long");
  EXPECT_EQ(slurm.arrays.at(0).script, "#!/bin/sh\n");
  submission.request = {};
  submission.at_once = 0;
  ASSERT_TRUE(commands.submit(submission).has_value());
  EXPECT_THAT(slurm.arrays.at(1).arguments, Contains("--array=0-2,5"));
  EXPECT_THAT(slurm.arrays.at(1).arguments, Not(Contains(HasSubstr("--mem"))));
  EXPECT_THAT(slurm.arrays.at(1).arguments, Not(Contains(HasSubstr("--time"))));
}

TEST(SlurmCommands, CancelsManyInSeveralCalls) {
  FakeSlurm slurm;
  Commands commands(slurm);
  const std::vector<std::string> jobs(1201, "1_2");
  ASSERT_TRUE(commands.cancel(jobs, false).has_value());
  EXPECT_EQ(slurm.calls("scancel"), 3);
  ASSERT_TRUE(commands.cancel({}, false).has_value());
  EXPECT_EQ(slurm.calls("scancel"), 3) << "without a job, scancel would be an error";
}

}  // namespace
}  // namespace furlong::shard::slurm
