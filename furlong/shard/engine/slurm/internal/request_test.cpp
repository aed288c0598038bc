#include "furlong/shard/engine/slurm/internal/request.h"

#include <gtest/gtest.h>

#include <limits>

namespace furlong::shard::slurm {
namespace {

TEST(SlurmRequest, MemoryClassesAreAtMostAQuarterTooMuch) {
  std::uint64_t previous = 0;
  for (std::uint64_t mib = 4; mib < 100'000; ++mib) {
    const std::uint64_t asked = memory_class_mib(mib);
    ASSERT_GE(asked, mib);
    ASSERT_LE(static_cast<double>(asked), 1.25 * static_cast<double>(mib) + 1e-9) << mib;
    ASSERT_GE(asked, previous);
    ASSERT_EQ(memory_class_mib(asked), asked);
    previous = asked;
  }
  EXPECT_EQ(memory_class_mib(0), 4u);
  EXPECT_EQ(memory_class_mib(1025), 1280u);
  EXPECT_EQ(memory_class_mib(1793), 2048u);
}

TEST(SlurmRequest, FollowsFromThePrediction) {
  SlurmOptions options;
  options.memory_margin = 1.1;
  options.time_factor = 3;
  options.time_floor_s = 600;
  const auto request = [&](std::uint64_t mib, double seconds) {
    return job_request({0, "shard 0", mib << 20, seconds}, options);
  };
  EXPECT_EQ(request(1000, 100), (JobRequest{1280, 10}));  // 1100 MiB, 300 s
  EXPECT_EQ(request(930, 200), (JobRequest{1024, 10}));   // 1023 MiB, 600 s
  EXPECT_EQ(request(931, 201), (JobRequest{1280, 20}));   // 1024.1 MiB, 603 s
  EXPECT_EQ(request(1, 0.001), (JobRequest{64, 10}));     // the least of both
  EXPECT_EQ(request(0, 0), (JobRequest{0, 0}));           // nothing is known: nothing is asked for
  EXPECT_EQ(request(0, std::numeric_limits<double>::infinity()), (JobRequest{0, 0}));
  EXPECT_EQ(request(1, 90'000).minutes, 5120u);
  EXPECT_EQ((JobRequest{640, 20}).text(), "640 MiB and 20 min");
  EXPECT_EQ((JobRequest{0, 20}).text(), "20 min");
  EXPECT_EQ(JobRequest().text(), "the partition's defaults");
}

TEST(SlurmRequest, IndicesAreWrittenAsRanges) {
  EXPECT_EQ(index_list({}), "");
  EXPECT_EQ(index_list({7}), "7");
  EXPECT_EQ(index_list({9, 3, 2, 1, 7, 8}), "1-3,7-9");
  EXPECT_EQ(index_list({0, 2, 4}), "0,2,4");
}

TEST(SlurmRequest, NamesTellThePlanAndTheOffset) {
  EXPECT_EQ(job_name("ab12", 0), "furlong-ab12+0");
  EXPECT_EQ(offset_of("furlong-ab12+0", "ab12"), 0u);
  EXPECT_EQ(offset_of("furlong-ab12+4004", "ab12"), 4004u);
  EXPECT_EQ(offset_of("furlong-ab123+0", "ab12"), std::nullopt);
  EXPECT_EQ(offset_of("furlong-ab12", "ab12"), std::nullopt);
  EXPECT_EQ(offset_of("furlong-ab12+", "ab12"), std::nullopt);
  EXPECT_EQ(offset_of("furlong-ab12+-1", "ab12"), std::nullopt);
  EXPECT_EQ(offset_of("furlong-ab12+99999999999", "ab12"), std::nullopt);
  EXPECT_EQ(offset_of("", "ab12"), std::nullopt);
}

TEST(SlurmRequest, TheScriptHandsArgumentsOnAsTheyAre) {
  const std::vector<std::string> command = {
      "printf", "<%s>\n", "two words", "it's", "$HOME `x` \\ \"q\" *", "/a{}/x.store", "{}", "new\nline", ""};
  ProcessRequest request{.argv = {"sh"}};
  request.environment = {{"SLURM_ARRAY_TASK_ID", "7"}};
  request.input = job_script(command, 1001);
  const auto end = system_processes().run(request, 60);
  ASSERT_TRUE(end.has_value()) << end.error().text();
  EXPECT_EQ(end->exit_code, 0) << end->standard_error;
  EXPECT_EQ(end->standard_output,
            "<two words>\n<it's>\n<$HOME `x` \\ \"q\" *>\n</a{}/x.store>\n<1008>\n<new\nline>\n<>\n");
}

}  // namespace
}  // namespace furlong::shard::slurm
