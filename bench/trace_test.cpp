#include "bench/trace.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include "furlong/base/os/file.h"

namespace furlong::bench {
namespace {

const std::string kHeading = "scenario,heat,kernel,t_ms,launch_ms...\n";

std::string window(std::string_view scenario, int heat, int kernel, std::string_view first = "2") {
  std::string line = fmt::format("{},{},{},0.5,{}", scenario, heat, kernel, first);
  for (int i = 1; i < 16; ++i) line += ",1";
  return line + "\n";
}

class TraceFile : public testing::Test {
 protected:
  void SetUp() override {
    auto made = TemporaryFolder::make("trace");
    ASSERT_TRUE(made) << made.error().text();
    folder_ = std::make_unique<TemporaryFolder>(std::move(*made));
  }
  Result<std::vector<Trace>> read(const std::string& text) {
    const auto path = folder_->path() / "t.csv.gz";
    gzFile file = gzopen(path.c_str(), "wb");
    EXPECT_EQ(gzwrite(file, text.data(), static_cast<unsigned>(text.size())), static_cast<int>(text.size()));
    EXPECT_EQ(gzclose(file), Z_OK);
    return read_traces(path);
  }
  std::unique_ptr<TemporaryFolder> folder_;
};

TEST_F(TraceFile, ReadsHeatsInAnyKernelOrder) {
  const auto traces = read(kHeading + window("a", 0, 1) + window("a", 0, 0, "17") + window("a", 1, 0) +
                           window("a", 1, 1) + window("b", 0, 0));
  ASSERT_TRUE(traces) << traces.error().text();
  ASSERT_EQ(traces->size(), 2u);
  const Trace& a = (*traces)[0];
  EXPECT_EQ(a.scenario, "a");
  EXPECT_EQ(a.kernels, 2u);
  ASSERT_EQ(a.heats.size(), 2u);
  EXPECT_DOUBLE_EQ(a.heats[0][0].median, 1);
  EXPECT_DOUBLE_EQ(a.heats[0][0].mean_with_first, 2);
  EXPECT_DOUBLE_EQ(a.heats[0][0].first, 17);
  EXPECT_DOUBLE_EQ(a.launch_ms, 1);
}

TEST_F(TraceFile, SaysWhichLineIsWrong) {
  struct Case {
    std::string text, part;
  };
  const std::vector<Case> cases{
      {kHeading + window("a", 0, 0) + "a,0,1,0.5,1\n", ":3"},
      {kHeading + window("a", 0, 0, "-1"), "-1"},
      {kHeading + window("a", 0, 0, "x"), "x"},
      {kHeading + window("a", 0, -1), "negative"},
      {kHeading + window("a", 1, 0), "out of order"},
      {kHeading + window("a", 0, 0) + window("a", 0, 1) + window("a", 1, 0), "heat 1"},
      {kHeading + window("a", 0, 1), "missing"},
      {kHeading, "no windows"},
  };
  for (const Case& c : cases) {
    const auto traces = read(c.text);
    ASSERT_FALSE(traces) << c.part;
    EXPECT_NE(traces.error().text().find(c.part), std::string::npos) << traces.error().text();
  }
}

TEST_F(TraceFile, TornGzipIsCorruptAndAbsentIsUnavailable) {
  const auto path = folder_->path() / "t.csv.gz";
  ASSERT_TRUE(read(kHeading + window("a", 0, 0)));
  auto bytes = system_files().read(path);
  ASSERT_TRUE(bytes);
  ASSERT_TRUE(system_files().write_atomic(path, std::string_view(*bytes).substr(0, bytes->size() / 2)));
  const auto torn = read_traces(path);
  ASSERT_FALSE(torn);
  EXPECT_EQ(torn.error().code(), Code::corrupt);
  const auto absent = read_traces(folder_->path() / "none.gz");
  ASSERT_FALSE(absent);
  EXPECT_EQ(absent.error().code(), Code::unavailable);
}

TEST(Trace, RecordedFileHasSevenScenariosOfSeventeenKernels) {
  const auto traces = read_traces("bench/data/h200-aa-trace.csv.gz");
  ASSERT_TRUE(traces) << traces.error().text();
  ASSERT_EQ(traces->size(), 7u);
  for (const Trace& trace : *traces) {
    EXPECT_EQ(trace.kernels, 17u) << trace.scenario;
    EXPECT_GT(trace.heats.size(), 50u) << trace.scenario;
    EXPECT_GT(trace.first_launch_ms, trace.launch_ms) << trace.scenario;
  }
}

}  // namespace
}  // namespace furlong::bench
