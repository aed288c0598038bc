#include "furlong/shard/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "furlong/base/os/file.h"
#include "furlong/shard/internal/csv.h"
#include "furlong/shard/internal/store_fixture.h"
#include "furlong/shard/internal/synthetic.h"

namespace furlong::shard {
namespace {

using ::testing::HasSubstr;

constexpr std::uint64_t kMiB = 1u << 20;

Plan sample() {
  Plan plan;
  plan.store = blake2b_256("store");
  plan.executor = "synthetic";
  plan.executor_version = 1;
  plan.sizing = {.budget_bytes = 64 * kMiB,
                 .budget_seconds = 0,
                 .record_cap_bytes = 16 * kMiB,
                 .usable = 0.75,
                 .base_bytes = 8 * kMiB,
                 .ram_per_work = 12.5,
                 .base_seconds = 0.25,
                 .seconds_per_work = 1e-6,
                 .fitted = true};
  plan.order = "sharing";
  plan.seed = 7;
  plan.journal = blake2b_256("journal");
  plan.shards = {{0, CostKind::work, 1234.5, 4096, 0.5, 900, 80, 2, {0, 2}},
                 {1, CostKind::command_seconds, 3, 0, 3, 700, 0, 0, {1}},
                 {4, CostKind::unknown, 0, 0, 0, 1, 2, 1, {4, 3}}};
  plan.failed = {{5, Code::mismatch, "no, \"really\""}, {6, Code::exhausted, "the record's cap of 16 MiB"}};
  const std::vector<ShardId> ids{0, 1, 4};
  plan.tree = balanced_tree(ids);
  return plan;
}

Error parse_error(std::string_view bytes) {
  const auto plan = parse_plan(bytes, "p.fsp");
  EXPECT_FALSE(plan);
  return plan ? Error(Code::internal, "read") : plan.error();
}

TEST(PlanFile, RoundTripsByteForByte) {
  const std::string bytes = print_plan(sample());
  const auto plan = parse_plan(bytes, "p.fsp");
  ASSERT_TRUE(plan) << plan.error().text();
  EXPECT_EQ(*plan, sample());
  EXPECT_EQ(print_plan(*plan), bytes);
}

TEST(PlanFile, TheGoldenFileIsReadAndWrittenTheSame) {
  const auto golden = system_files().read("furlong/shard/testdata/plan_v2.fsp");
  ASSERT_TRUE(golden) << golden.error().text();
  EXPECT_EQ(print_plan(sample()), *golden);
  EXPECT_EQ(parse_plan(*golden, "plan_v2.fsp").value(), sample());
}

TEST(PlanFile, WrongMagicOldAndNewVersionsAndUnknownTagsAreToldApart) {
  const std::string good = print_plan(sample());
  std::string bad = good;
  bad[0] = 'F';
  EXPECT_EQ(parse_error(bad).code(), Code::invalid);
  EXPECT_THAT(parse_error(bad).text(), HasSubstr("not a shard plan"));
  bad = good;
  bad[13] = 1;
  EXPECT_EQ(parse_error(bad).code(), Code::incompatible);
  EXPECT_THAT(parse_error(bad).text(),
              HasSubstr("found a plan of version 1, expected 2: regenerate it with furlong shard plan"));
  bad[13] = 3;
  EXPECT_EQ(parse_error(bad).code(), Code::incompatible);
  EXPECT_THAT(parse_error(bad).text(), HasSubstr("found a plan of version 3, expected 2: take a newer"));
  for (const char* tag : {"HEAD", "SHRD", "FAIL", "TREE", "SUM."}) {
    bad = good;
    bad[good.find(tag)] = '?';
    EXPECT_EQ(parse_error(bad).code(), Code::incompatible) << tag;
    EXPECT_THAT(parse_error(bad).text(), HasSubstr(fmt::format("expected {}", tag)));
  }
  bad = good;
  bad[good.find("SHRD") + 12 + 4 + 4] = 9;  // the first shard's cost
  EXPECT_EQ(parse_error(bad).code(), Code::incompatible);
  EXPECT_THAT(parse_error(bad).text(), HasSubstr("shard 0: unknown tag 9 of a cost"));
  bad = good;
  bad[good.find("FAIL") + 12 + 4 + 4] = 9;
  EXPECT_THAT(parse_error(bad).text(), HasSubstr("unknown tag 9 of a failure"));
}

TEST(PlanFile, EveryTruncationIsADistinctError) {
  const std::string good = print_plan(sample());
  std::set<std::string> texts;
  for (std::size_t keep = 0; keep < good.size(); ++keep) {
    const Error error = parse_error(std::string_view(good).substr(0, keep));
    EXPECT_EQ(error.code(), keep == 0 ? Code::invalid : Code::corrupt) << keep;
    texts.insert(error.text());
  }
  EXPECT_EQ(texts.size(), good.size());
}

TEST(PlanFile, AFlippedByteNeverPasses) {
  const std::string good = print_plan(sample());
  for (std::size_t at = 0; at < good.size(); ++at) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 0x10);
    EXPECT_FALSE(parse_plan(bad, "p.fsp")) << at;
  }
  EXPECT_EQ(parse_error(good + "x").code(), Code::corrupt);
}

TEST(PlanFile, LargeCountsTakeNoMemory) {
  const std::string good = print_plan(sample());
  for (const std::size_t at : {good.find("SHRD") + 4, good.find("SHRD") + 12, good.find("FAIL") + 12,
                               good.find("TREE") + 12, good.find("HEAD") + 12 + 32}) {
    std::string bad = good;
    bad.replace(at, 4, "\xF0\xFF\xFF\xFF");
    EXPECT_EQ(parse_error(bad).code(), Code::corrupt) << at << parse_error(bad).text();
  }
}

TEST(PlanFile, WhatContradictsItselfIsInvalid) {
  const auto refused = [](auto change) {
    Plan plan = sample();
    change(plan);
    const Error error = parse_error(print_plan(plan));
    EXPECT_EQ(error.code(), Code::invalid) << error.text();
    return error.text();
  };
  EXPECT_THAT(refused([](Plan& p) { p.shards[0].cost = -1; }), HasSubstr("a shard's cost of -1"));
  EXPECT_THAT(refused([](Plan& p) { p.shards[1].seconds = std::nan(""); }), HasSubstr("seconds of nan"));
  EXPECT_THAT(refused([](Plan& p) { p.shards[1].units.clear(); }), HasSubstr("shard 1 has no units"));
  EXPECT_THAT(refused([](Plan& p) { p.shards[1].id = 0; }), HasSubstr("ids must ascend"));
  EXPECT_THAT(refused([](Plan& p) { p.failed[1].unit = 5; }), HasSubstr("failed units must ascend"));
  EXPECT_THAT(refused([](Plan& p) { p.tree.pop_back(); }), HasSubstr("falls into 2 trees"));
}

TEST(Tree, IsBalancedOverTheShardsInOrder) {
  const std::vector<ShardId> ids{3, 5, 7, 9, 11};
  EXPECT_EQ(balanced_tree(ids), (AggregationTree{3, 5, kJoin, 7, kJoin, 9, 11, kJoin, kJoin}));
  EXPECT_TRUE(check_tree(balanced_tree(ids), ids));
  EXPECT_TRUE(check_tree({}, {}));
  EXPECT_EQ(balanced_tree(std::vector<ShardId>{8}), (AggregationTree{8}));
}

TEST(Tree, AMissingDuplicateOrForeignLeafIsRejected) {
  const std::vector<ShardId> ids{0, 1, 2};
  const auto error = [&](AggregationTree tree) {
    const Status status = check_tree(tree, ids);
    EXPECT_FALSE(status);
    return status ? std::string() : status.error().text();
  };
  EXPECT_THAT(error({0, 1, kJoin}), HasSubstr("lacks the leaf 2"));
  EXPECT_THAT(error({0, 1, kJoin, 1, kJoin, 2, kJoin}), HasSubstr("the leaf 1 twice"));
  EXPECT_THAT(error({0, 1, kJoin, 2, kJoin, 7, kJoin}), HasSubstr("the leaf 7, which is no shard"));
  EXPECT_THAT(error({0, kJoin, 1, 2}), HasSubstr("node 1 joins"));
  EXPECT_THAT(error({0, 1, kJoin, 2}), HasSubstr("falls into 2 trees"));
}

TEST(SizingTest, CutsBelowTheBudgetAndIsMonotone) {
  Sizing sizing{.budget_bytes = 1000, .usable = 0.75, .base_bytes = 100, .ram_per_work = 2};
  EXPECT_FALSE(sizing.reaches_cut({.work = 300, .record_bytes = 49}));
  EXPECT_TRUE(sizing.reaches_cut({.work = 300, .record_bytes = 50})) << "usable * budget - base, reached";
  EXPECT_TRUE(sizing.reaches_cut({.work = 300.5, .record_bytes = 49}));
  EXPECT_FALSE(sizing.over_budget({.work = 450, .record_bytes = 0}));
  EXPECT_TRUE(sizing.over_budget({.work = 450, .record_bytes = 1}));
  sizing.budget_seconds = 10;
  EXPECT_TRUE(sizing.reaches_cut({.work = 0, .record_bytes = 0, .seconds = 7.5}));
  sizing.seconds_per_work = 1;
  EXPECT_TRUE(sizing.reaches_cut({.work = 8, .record_bytes = 0, .seconds = 0})) << "fitted time goes by work";
  EXPECT_FALSE(sizing.reaches_cut({.work = 7, .record_bytes = 0, .seconds = 100}));
}

TEST(SizingTest, SaysUnderWhatNothingCanBePlanned) {
  EXPECT_THAT((Sizing{.budget_bytes = 1000, .base_bytes = 750}).check().error().text(),
              HasSubstr("give a larger budget"));
  EXPECT_TRUE((Sizing{.budget_bytes = 1000, .base_bytes = 749}).check());
  EXPECT_FALSE((Sizing{.budget_bytes = 1000, .usable = 1.5}).check());
  EXPECT_FALSE((Sizing{}).check());
  EXPECT_TRUE((Sizing{.budget_seconds = 5}).check());
  EXPECT_FALSE((Sizing{.budget_seconds = 5, .base_seconds = 4}).check());
}

class CoverageTest : public StoreFixture {
 protected:
  void SetUp() override {
    StoreFixture::SetUp();
    if (HasFatalFailure()) return;
    make_store({{"alpha", "work=1"}, {"beta", "work=1"}, {"gamma, \"g\"", "work=1"}, {"delta", "work=1"}});
    plan_.store = store_->digest();
    plan_.executor = "synthetic";
    plan_.executor_version = 1;
    plan_.shards = {{.id = 0, .units = {0, 2}}, {.id = 1, .units = {3, 1}}};
  }
  std::string gate() {
    const Status status = require_coverage(plan_, *store_);
    EXPECT_FALSE(status);
    return status ? std::string() : status.error().text();
  }
  Plan plan_;
};

TEST_F(CoverageTest, EachUnitInExactlyOneShardPasses) {
  EXPECT_TRUE(require_coverage(plan_, *store_));
  EXPECT_TRUE(coverage(plan_, *store_)->complete());
}

TEST_F(CoverageTest, NamesMissingAndRepeatedAndForeignUnits) {
  plan_.shards[1].units = {3, 0, 9};
  const auto found = coverage(plan_, *store_);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->missing, std::vector<UnitIndex>{1});
  EXPECT_EQ(found->twice, std::vector<UnitIndex>{0});
  EXPECT_EQ(found->foreign, std::vector<UnitIndex>{9});
  EXPECT_THAT(gate(),
              HasSubstr("1 in no shard: 'beta'; 1 there more than once: 'alpha'; 1 that the store does "
                        "not have: unit 9"));
}

TEST_F(CoverageTest, TheGateNamesExactlyTheFailedUnits) {
  plan_.shards[1].units = {3};
  plan_.shards[0].units = {0};
  plan_.failed = {{1, Code::mismatch, "bad"}, {2, Code::exhausted, "cap"}};
  EXPECT_THAT(gate(), ::testing::EndsWith("2 failed and in no shard: 'beta', 'gamma, \"g\"'"));
  plan_.shards[0].units = {0, 1};  // one that failed and is in a shard all the same
  EXPECT_EQ(coverage(plan_, *store_)->twice, std::vector<UnitIndex>{1});
}

TEST_F(CoverageTest, APlanOfASliceFailsByName) {
  plan_.slice = 2;
  plan_.shards = {{.id = 0, .units = {0, 1}}};
  EXPECT_THAT(gate(), HasSubstr("the plan of a slice, the first 2 of 4 units (FURLONG_SCAN_LIMIT_UNITS)"));
}

TEST_F(CoverageTest, LongListsAreCutAndCounted) {
  plan_.shards = {{.id = 0, .units = {0}}};
  const Status status = require_coverage(plan_, *store_, 1);
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().text(), HasSubstr("3 in no shard: 'beta' and 2 more"));
}

TEST_F(CoverageTest, AnotherStoresOrVersionsPlanIsRefused) {
  plan_.executor_version = 2;
  EXPECT_EQ(coverage(plan_, *store_).error().code(), Code::incompatible);
  plan_.store = blake2b_256("other");
  EXPECT_EQ(coverage(plan_, *store_).error().code(), Code::mismatch);
}

TEST_F(CoverageTest, FailedUnitsAreSortedByNameAndEscaped) {
  const std::vector<FailedUnit> failed{{0, Code::mismatch, "line\nbreak"},
                                       {2, Code::mismatch, "say \"no\", twice"},
                                       {3, Code::exhausted, "cap"}};
  const auto text = failed_csv(failed, *store_);
  ASSERT_TRUE(text);
  const auto rows = parse_csv(*text, "f.csv");
  ASSERT_TRUE(rows);
  ASSERT_EQ(rows->size(), 4u);
  EXPECT_EQ((*rows)[0], (std::vector<std::string>{"unit", "key", "kind", "why"}));
  EXPECT_EQ((*rows)[1][0], "alpha");
  EXPECT_EQ((*rows)[1][3], "line\nbreak");
  EXPECT_EQ((*rows)[2][0], "delta");
  EXPECT_EQ((*rows)[2][2], "over the cap");
  EXPECT_EQ((*rows)[3][0], "gamma, \"g\"");
  EXPECT_EQ((*rows)[3][3], "say \"no\", twice");
}

TEST(CostsCsv, HoldsEveryFeatureAndReadsBack) {
  const Plan plan = sample();
  const std::map<ShardId, Cost> costs{{0, {1234.5, 4096, 0.5, 77, {{"rows", 3}, {"odd, name", 0.125}}}},
                                      {1, {3, 0, 3, 0, {{"rows", 4}}}}};
  const std::string text = costs_csv(plan, costs);
  EXPECT_THAT(text, HasSubstr("foreign,\"odd, name\",rows\n"));
  const auto rows = parse_costs_csv(text, "c.csv");
  ASSERT_TRUE(rows) << rows.error().text();
  ASSERT_EQ(rows->size(), 2u) << "what was not measured has no line";
  EXPECT_EQ((*rows)[0].cost.features, costs.at(0).features);
  EXPECT_EQ((*rows)[0].cost.work, 1234.5);
  EXPECT_EQ((*rows)[0].cost.peak_bytes, 77u);
  EXPECT_EQ((*rows)[0].units, 2u);
  EXPECT_EQ((*rows)[1].cost.features.count("odd, name"), 0u) << "absent is not 0";
}

TEST(CostsCsv, SaysWhichFieldIsWrong) {
  EXPECT_THAT(parse_costs_csv("a,b\n", "c.csv").error().text(), HasSubstr("c.csv:1: not a file of costs"));
  const std::string good = costs_csv(sample(), {{0, {1, 2, 3, 4, {}}}});
  EXPECT_THAT(parse_costs_csv(replace_all(good, ",2,3,", ",2,x,"), "c.csv").error().text(),
              HasSubstr("c.csv: row 2: column 'seconds': 'x' is no amount"));
  EXPECT_THAT(parse_costs_csv(replace_all(good, ",4,", ",-4,"), "c.csv").error().text(),
              HasSubstr("column 'peak_bytes'"));
  EXPECT_THAT(parse_costs_csv(good + "1\n", "c.csv").error().text(), HasSubstr("1 fields, expected 10"));
}

TEST(Csv, QuotesWhatMustBeAndReadsItBack) {
  const std::vector<std::string> fields{"", "a", "a,b", "\"", "two\r\nlines", " blank "};
  const std::string row = csv_row(fields);
  const auto rows = parse_csv(row + "x\r\n", "f");
  ASSERT_TRUE(rows);
  EXPECT_EQ(*rows, (std::vector<std::vector<std::string>>{fields, {"x"}}));
  EXPECT_THAT(parse_csv("a\n\"b", "f").error().text(), HasSubstr("f:2: a quote that is not closed"));
  EXPECT_FALSE(parse_csv("a\"b\n", "f"));
  EXPECT_FALSE(parse_csv("\"a\"b\n", "f"));
}

TEST(PlanPaths, StandBesideThePlan) {
  EXPECT_EQ(beside_plan("a/out.fsp", "failed"), "a/out.failed.csv");
  EXPECT_EQ(beside_plan("out.v2", "costs"), "out.v2.costs.csv");
}

}  // namespace
}  // namespace furlong::shard
