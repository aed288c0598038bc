#include "bench/harness.h"

#include <gtest/gtest.h>

#include <cmath>

#include "furlong/base/json.h"
#include "furlong/base/os/file.h"

namespace furlong::bench {
namespace {

int run_with(std::vector<std::string> words, const std::function<Status(Bench&)>& run,
             std::vector<BenchOption> options = {}) {
  std::vector<char*> argv;
  words.insert(words.begin(), "bench_test");
  for (std::string& word : words) argv.push_back(word.data());
  return bench_main(static_cast<int>(argv.size()), argv.data(), "test", run, std::move(options));
}

Status nothing(Bench&) { return {}; }

TEST(Harness, ExitCodesSayWhatHappened) {
  EXPECT_EQ(run_with({}, nothing), 0);
  EXPECT_EQ(run_with({"--help"}, nothing), 0);
  EXPECT_EQ(run_with({"--smok"}, nothing), 2);
  EXPECT_EQ(run_with({"--json"}, nothing), 2);
  EXPECT_EQ(run_with({"stray"}, nothing), 2);
  EXPECT_EQ(run_with({}, [](Bench& b) -> Status { return b.at_most("x", 2, 1), Status{}; }), 3);
  EXPECT_EQ(run_with({}, [](Bench&) -> Status { return Error(Code::unavailable, "no card"); }), 1);
}

TEST(Harness, OptionsReachTheBench) {
  bool smoke = false;
  std::string races, data;
  const auto run = [&](Bench& b) -> Status {
    smoke = b.smoke();
    races = b.option("races");
    data = b.option("data");
    return {};
  };
  EXPECT_EQ(run_with({"--smoke", "--races", "7"}, run, {{"races", "", "2000"}, {"data", "", "here"}}), 0);
  EXPECT_TRUE(smoke);
  EXPECT_EQ(races, "7");
  EXPECT_EQ(data, "here");
}

TEST(Harness, BoundsHoldAtTheirLimitAndMissOnNaN) {
  Bench bench("b", false);
  bench.at_most("a", 1, 1);
  bench.at_least("b", 1, 1);
  EXPECT_TRUE(bench.missed().empty());
  bench.at_most("low", NAN, 1);
  bench.at_least("high", 0.5, 0.99);
  ASSERT_EQ(bench.missed().size(), 2u);
  EXPECT_EQ(bench.missed()[1], "high is 0.5, at least 0.99 is needed");
}

TEST(Harness, FileHoldsMetricsRowsAndEnvironment) {
  Bench bench("b", false);
  bench.metric("rate", 2.5, Better::higher, {0.1, 0.2});
  bench.metric("gap", NAN, Better::lower);
  bench.row({"first", {{"x", 1}, {"y", INFINITY}}, "group"});
  bench.environment("device", "fake card");
  const auto file = json_parse(bench.json(""), "result");
  ASSERT_TRUE(file) << file.error().text();
  EXPECT_EQ((*file)["name"], "b");
  EXPECT_EQ((*file)["status"], "ok");
  EXPECT_EQ((*file)["metrics"]["rate"], 2.5);
  EXPECT_TRUE((*file)["metrics"]["gap"].is_null());
  EXPECT_EQ((*file)["better"]["rate"], "higher");
  EXPECT_EQ((*file)["noise"]["rate"]["absolute"], 0.2);
  EXPECT_EQ((*file)["rows"][0]["row"], "first");
  EXPECT_EQ((*file)["rows"][0]["group"], "group");
  EXPECT_TRUE((*file)["rows"][0]["y"].is_null());
  EXPECT_EQ((*file)["environment"]["device"], "fake card");
  for (const char* key : {"driver", "compiler", "commit", "date"})
    EXPECT_TRUE((*file)["environment"].contains(key)) << key;
}

TEST(Harness, FileIsWrittenAlsoWhenABoundIsMissed) {
  auto folder = TemporaryFolder::make("harness");
  ASSERT_TRUE(folder) << folder.error().text();
  const std::string path = (folder->path() / "r.json").string();
  EXPECT_EQ(run_with({"--json", path}, [](Bench& b) -> Status { return b.at_most("x", 2, 1), Status{}; }), 3);
  const auto text = system_files().read(path);
  ASSERT_TRUE(text) << text.error().text();
  const auto file = json_parse(*text, path);
  ASSERT_TRUE(file);
  EXPECT_EQ((*file)["status"], "missed");
  EXPECT_EQ((*file)["missed"].size(), 1u);
}

TEST(Harness, RowsOfOneGroupMakeOneTable) {
  Bench bench("b", false);
  bench.row({"r1", {{"x", 1}}, "first group"});
  bench.row({"r2", {{"x", 2}}, "first group"});
  bench.row({"r3", {{"z", 3}}, "second group"});
  const std::string text = bench.text();
  EXPECT_EQ(text.find("first group"), text.rfind("first group"));
  EXPECT_LT(text.find("r2"), text.find("second group"));
  EXPECT_NE(text.find("z"), std::string::npos);
}

}  // namespace
}  // namespace furlong::bench
