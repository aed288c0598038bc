#include "bench/compare.h"

#include <gtest/gtest.h>

namespace furlong::bench {
namespace {

const std::string kBefore = R"({"name": "b", "status": "ok",
  "metrics": {"time": 100, "rate": 10, "share": 0.0, "odd": null, "old": 1},
  "better": {"time": "lower", "rate": "higher", "share": "lower"},
  "noise": {"time": {"relative": 0.05, "absolute": 0}, "share": {"relative": 0, "absolute": 0.003}},
  "environment": {"device": "card A", "compiler": "g"}})";

std::string after(double time, double rate, double share) {
  return fmt::format(R"({{"name": "b", "status": "ok", "metrics": {{"time": {}, "rate": {}, "share": {},
    "odd": null, "old": 1}}, "environment": {{"device": "card B", "compiler": "g"}}}})",
                     time, rate, share);
}

Change change_of(const Comparison& c, std::string_view metric) {
  for (const MetricChange& m : c.metrics)
    if (m.metric == metric) return m.change;
  ADD_FAILURE() << "no metric " << metric;
  return Change::gone;
}

TEST(Compare, JudgesByDirectionAndNoise) {
  const auto c = compare(kBefore, "A", after(104, 10.1, 0.002), "B");
  ASSERT_TRUE(c) << c.error().text();
  EXPECT_EQ(change_of(*c, "time"), Change::same);
  EXPECT_EQ(change_of(*c, "rate"), Change::same);
  EXPECT_EQ(change_of(*c, "share"), Change::same);
  EXPECT_EQ(change_of(*c, "odd"), Change::same);
  EXPECT_FALSE(c->regressed());

  const auto worse = compare(kBefore, "A", after(106, 9, 0.01), "B");
  ASSERT_TRUE(worse);
  EXPECT_EQ(change_of(*worse, "time"), Change::regressed);
  EXPECT_EQ(change_of(*worse, "rate"), Change::regressed);
  EXPECT_EQ(change_of(*worse, "share"), Change::regressed);
  EXPECT_TRUE(worse->regressed());

  const auto better = compare(kBefore, "A", after(90, 11, 0), "B");
  ASSERT_TRUE(better);
  EXPECT_EQ(change_of(*better, "time"), Change::better);
  EXPECT_EQ(change_of(*better, "rate"), Change::better);
  EXPECT_FALSE(better->regressed());
}

TEST(Compare, MissingMetricsAndWorseStatusRegress) {
  const std::string fewer = R"({"name": "b", "status": "ok", "metrics": {"time": 100, "new": 2}})";
  const auto c = compare(kBefore, "A", fewer, "B");
  ASSERT_TRUE(c);
  EXPECT_EQ(change_of(*c, "old"), Change::gone);
  EXPECT_EQ(change_of(*c, "new"), Change::added);
  EXPECT_TRUE(c->regressed());

  const std::string one = R"({"name": "b", "status": "ok", "metrics": {"m": 1}})";
  const std::string missed = R"({"name": "b", "status": "missed", "metrics": {"m": 1}})";
  EXPECT_TRUE(compare(one, "A", missed, "B")->regressed());
  EXPECT_FALSE(compare(missed, "A", one, "B")->regressed());
}

TEST(Compare, SaysWhatElseDiffers) {
  const auto c = compare(kBefore, "A", after(100, 10, 0), "B");
  ASSERT_TRUE(c);
  EXPECT_NE(c->text().find("card A"), std::string::npos);
  EXPECT_NE(c->text().find("same"), std::string::npos);
}

TEST(Compare, RefusesWhatIsNotAResult) {
  for (const char* bad :
       {"", "[]", "{}", R"({"name": 1, "status": "ok", "metrics": {}})", R"({"metrics": 3})"}) {
    const auto c = compare(bad, "A", kBefore, "B");
    ASSERT_FALSE(c) << bad;
    EXPECT_EQ(c.error().code(), Code::invalid);
    EXPECT_NE(c.error().text().find("A"), std::string::npos);
  }
  const auto newer =
      compare(R"({"name": "b", "version": 2, "status": "ok", "metrics": {}})", "A", kBefore, "B");
  ASSERT_FALSE(newer);
  EXPECT_EQ(newer.error().code(), Code::incompatible);
  EXPECT_NE(newer.error().text().find("version 2, expected 1"), std::string::npos);
  const auto other = compare(kBefore, "A", R"({"name": "c", "status": "ok", "metrics": {}})", "B");
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code(), Code::invalid);
}

}  // namespace
}  // namespace furlong::bench
