#include "furlong/shard/model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "furlong/base/random.h"

namespace furlong::shard {
namespace {

using ::testing::HasSubstr;

constexpr double kGiB = 1u << 30;

// W = 1e6 + 20 nlogn(rows) + 300 steps; a job takes 2 GiB + 80 bytes per W + the record, 5 s + 2e-7 s per W.
// Each figure is off by at most `noise`.
std::vector<FitRun> runs(int count, double noise, std::uint64_t seed = 7) {
  Random random(seed, "runs");
  const auto off = [&] { return 1 + noise * (2 * random.uniform() - 1); };
  std::vector<FitRun> list;
  for (int i = 0; i < count; ++i) {
    FitRun run;
    run.name = fmt::format("shard {}", i);
    const double rows = 1e4 * (1 + random.uniform() * 20), steps = 1e3 * (1 + random.uniform() * 50);
    run.counters = {{"rows", rows}, {"steps", steps}, {"noise", random.uniform() * 100}};
    run.check.work = (1e6 + 20 * nlogn(rows) + 300 * steps) * off();
    run.check.record_bytes = static_cast<std::uint64_t>(64 * rows * off());
    run.check.seconds = 1e-8 * run.check.work * off();
    run.check.peak_bytes =
        static_cast<std::uint64_t>((1e8 + 4 * run.check.work) * off()) + run.check.record_bytes;
    run.job_peak_bytes = static_cast<std::uint64_t>(
        (2 * kGiB + 80 * run.check.work + static_cast<double>(run.check.record_bytes)) * off());
    run.job_seconds = (5 + 2e-7 * run.check.work) * off();
    list.push_back(run);
  }
  return list;
}

Model fitted(int count, double noise) {
  FitOptions options;
  options.provenance = {.store = "made up",
                        .executor = "synthetic",
                        .executor_version = 1,
                        .machine = "box",
                        .date = "2026-03-01"};
  auto model = fit_model(runs(count, noise), options);
  if (!model) throw std::runtime_error(model.error().text());
  return *model;
}

TEST(Nlogn, IsSuperadditiveAndMonotone) {
  Random random(1);
  EXPECT_EQ(nlogn(0), 0);
  EXPECT_EQ(nlogn(2), 4);
  for (int i = 0; i < 1000; ++i) {
    const double a = std::exp(random.uniform() * 30), b = std::exp(random.uniform() * 30);
    EXPECT_GE(nlogn(a + b), nlogn(a) + nlogn(b));
    EXPECT_GT(nlogn(a + b), nlogn(a));
  }
}

TEST(Model, AFitFindsTheFormulaBehindExactRuns) {
  const Model model = fitted(40, 0);
  ASSERT_TRUE(model.work && model.memory && model.seconds && model.check_memory && model.check_seconds &&
              model.record_bytes);
  for (const FitRun& run : runs(40, 0, 99))
    EXPECT_NEAR(model.work->formula.at(run.counters), run.check.work, 1e-3 * run.check.work);
  EXPECT_NEAR(model.memory->formula.base, 2 * kGiB, 1e-3 * kGiB);
  EXPECT_NEAR(model.memory->formula.per_work, 80, 0.01);
  EXPECT_NEAR(model.seconds->formula.base, 5, 0.01);
  EXPECT_NEAR(model.seconds->formula.per_work, 2e-7, 1e-10);
  EXPECT_NEAR(model.check_memory->formula.per_work, 4, 0.01);
  EXPECT_LT(model.work->quality.unseen_mape, 1e-3);
  EXPECT_GT(model.usable.value(), 0.94);
}

TEST(Model, NoisyRunsAreForetoldOnShardsThatTheFitNeverSaw) {
  const Model model = fitted(60, 0.05);
  EXPECT_EQ(model.provenance.runs, 60u);
  EXPECT_EQ(model.provenance.held_out, 15u);
  EXPECT_EQ(model.work->quality.runs, 45u);
  EXPECT_EQ(model.work->quality.unseen, 15u);
  EXPECT_LT(model.work->quality.mape, 0.05);
  EXPECT_LT(model.work->quality.unseen_mape, 0.06);
  EXPECT_GT(model.work->quality.unseen_mape, 0) << "they are measured";
  EXPECT_LT(model.memory->quality.unseen_mape, 0.06);
  // The recommended share: the worst under-prediction, seen or not, less the margin.
  EXPECT_NEAR(*model.usable, 1 - model.memory->quality.worst() - 0.05, 1e-12);
  EXPECT_NEAR(*model.usable_from_counters, 1 - model.memory_from_counters->worst() - 0.05, 1e-12);
  EXPECT_GT(model.memory->quality.worst(), 0);
  // A job that the share admits by its predicted peak keeps within the budget, seen or not.
  for (const FitRun& run : runs(60, 0.05)) {
    const double predicted =
        model.memory->formula.at(run.check.work) + static_cast<double>(run.check.record_bytes);
    EXPECT_LE(static_cast<double>(run.job_peak_bytes) * *model.usable, predicted);
  }
}

TEST(Model, IsMonotoneInEachCounterAndInWork) {
  const Model model = fitted(60, 0.3);
  Counters counters{{"rows", 1e5}, {"steps", 1e4}, {"noise", 50}};
  for (const auto& [name, value] : Counters(counters)) {
    Counters more = counters;
    double before = model.work->formula.at(counters);
    for (int i = 0; i < 20; ++i) {
      more[name] *= 1.7;
      const double now = model.work->formula.at(more);
      EXPECT_GE(now, before) << name;
      before = now;
    }
  }
  for (const auto* line : {&model.memory, &model.seconds, &model.check_memory, &model.check_seconds}) {
    EXPECT_GE((*line)->formula.base, 0);
    EXPECT_GE((*line)->formula.per_work, 0);
  }
  for (const Term& term : model.work->formula.terms) EXPECT_GT(term.coefficient, 0);
}

TEST(Model, FewRunsAreExplainedByFewTermsAndNoneHeldOut) {
  const auto model = fit_model(runs(4, 0.1), {});
  ASSERT_TRUE(model) << model.error().text();
  EXPECT_EQ(model->provenance.held_out, 0u);
  EXPECT_LE(model->work->formula.terms.size() + (model->work->formula.base > 0), 1u);
  EXPECT_EQ(fit_model(runs(2, 0), {}).error().code(), Code::invalid);
}

TEST(Model, OnlyWhatWasMeasuredIsFitted) {
  std::vector<FitRun> list = runs(10, 0);
  for (FitRun& run : list) {
    run.job_peak_bytes = 0;
    run.check.peak_bytes = 0;
  }
  const auto model = fit_model(list, {});
  ASSERT_TRUE(model) << model.error().text();
  EXPECT_FALSE(model->memory || model->check_memory || model->usable || model->usable_from_counters);
  EXPECT_TRUE(model->seconds && model->work);
  Sizing sizing{.budget_bytes = 1};
  EXPECT_THAT(apply_model(*model, sizing).error().text(), HasSubstr("does not say how much memory"));
  for (FitRun& run : list) run.check = {}, run.job_seconds = 0;
  EXPECT_THAT(fit_model(list, {}).error().text(), HasSubstr("nothing can be fitted"));
}

TEST(Model, ImpossibleFiguresNameTheRun) {
  std::vector<FitRun> list = runs(6, 0);
  list[3].counters["rows"] = -1;
  EXPECT_THAT(fit_model(list, {}).error().text(), HasSubstr("shard 3: -1 of 'rows' is no amount"));
  list = runs(6, 0);
  list[4].name = "shard 1";
  EXPECT_THAT(fit_model(list, {}).error().text(), HasSubstr("'shard 1' is there twice"));
  list = runs(6, 0);
  list[2].check.work = std::nan("");
  EXPECT_EQ(fit_model(list, {}).error().code(), Code::invalid);
  FitOptions options;
  options.held_out = 1;
  EXPECT_EQ(fit_model(runs(6, 0), options).error().code(), Code::invalid);
}

TEST(Model, ACostsFileIsReadAsRuns) {
  const std::string text =
      "shard,units,cost_kind,work,record_bytes,seconds,peak_bytes,own_bytes,cross_bytes,foreign,job_peak_"
      "bytes,"
      "job_seconds,rows\n"
      "0,2,work W,100,4096,0.5,9000,900,80,2,123456,7.5,96\n"
      "4,1,work W,50,2048,0.25,0,900,80,2,,,48\n";
  const auto rows = parse_costs_csv(text, "c.csv");
  ASSERT_TRUE(rows) << rows.error().text();
  const std::vector<FitRun> list = fit_runs(*rows);
  ASSERT_EQ(list.size(), 2u);
  EXPECT_EQ(list[0].name, "shard 0");
  EXPECT_EQ(list[0].job_peak_bytes, 123456u);
  EXPECT_EQ(list[0].job_seconds, 7.5);
  EXPECT_EQ(list[0].counters, (Counters{{"rows", 96}}));
  EXPECT_EQ(list[0].check.peak_bytes, 9000u);
  EXPECT_EQ(list[1].name, "shard 4");
  EXPECT_EQ(list[1].job_seconds, 0) << "not measured";
}

TEST(Model, SetsASizing) {
  const Model model = fitted(40, 0.05);
  Sizing sizing{.budget_bytes = 1ull << 36};
  ASSERT_TRUE(apply_model(model, sizing));
  EXPECT_TRUE(sizing.fitted);
  EXPECT_EQ(sizing.base_bytes, static_cast<std::uint64_t>(std::ceil(model.memory->formula.base)));
  EXPECT_EQ(sizing.ram_per_work, model.memory->formula.per_work);
  EXPECT_EQ(sizing.base_seconds, model.seconds->formula.base);
  EXPECT_EQ(sizing.seconds_per_work, model.seconds->formula.per_work);
  EXPECT_EQ(sizing.usable, *model.usable);
  ASSERT_TRUE(apply_model(model, sizing, WorkSource::counters));
  EXPECT_EQ(sizing.usable, *model.usable_from_counters);
}

TEST(Model, AMeasuredWorkGoesStraightIntoStageTwo) {
  const Model model = fitted(40, 0);
  Cost check;
  check.work = 1e8;
  check.record_bytes = 1u << 20;
  const double peak = 2 * kGiB + 80 * 1e8 + (1 << 20);
  for (const auto& [budget, over, cut] :
       {std::tuple(peak * 0.9, true, true), std::tuple(peak * 1.01, false, true),
        std::tuple(peak * 2, false, false)}) {
    const auto found = gate(model, check, {.budget_bytes = static_cast<std::uint64_t>(budget)});
    ASSERT_TRUE(found) << found.error().text();
    EXPECT_NEAR(static_cast<double>(found->bytes), peak, 1e-3 * peak);
    EXPECT_NEAR(found->seconds, 25, 0.05);
    EXPECT_EQ(found->over_budget, over);
    EXPECT_EQ(found->reaches_cut, cut);
    EXPECT_THAT(found->text(), HasSubstr("predicted peak"));
  }
}

// The coefficients that the design gives for reference ship as a fixture, with that provenance, not as
// defaults.
TEST(ModelFile, TheReferenceModelIsReadAndForetells) {
  const auto model = read_model(system_files(), "furlong/shard/testdata/reference_model.json");
  ASSERT_TRUE(model) << model.error().text();
  EXPECT_THAT(model->provenance.note, HasSubstr("not a default"));
  const Counters counters{{"bytes", 1e6}, {"substitutions", 2e6}, {"equalities", 1e4}};
  EXPECT_NEAR(model->work->formula.at(counters),
              2.599e9 + 188.6 * nlogn(1e6) + 71.27 * nlogn(2e6) + 6548 * nlogn(1e4), 1);
  EXPECT_NEAR(model->memory->formula.at(10e9), (6.18 + 2.0425 * 10) * kGiB, 1e3);
  EXPECT_NEAR(model->seconds->formula.at(10e9), 13.59 + 2.3507 * 10, 1e-6);
  EXPECT_EQ(model->work->quality.worst_under, 0.185);
  EXPECT_EQ(*model->usable, 0.75);
  EXPECT_EQ(print_model(*model), system_files().read("furlong/shard/testdata/reference_model.json").value());
}

TEST(ModelFile, RoundTrips) {
  for (const Model& model : {fitted(40, 0.1), Model{}}) {
    const std::string text = print_model(model);
    const auto read = parse_model(text, "m.json");
    ASSERT_TRUE(read) << read.error().text();
    EXPECT_EQ(*read, model);
    EXPECT_EQ(print_model(*read), text);
  }
  EXPECT_EQ(print_model(fitted(40, 0.1)), print_model(fitted(40, 0.1))) << "the same runs and seed";
}

TEST(ModelFile, WhatIsWrongIsNamed) {
  const auto error = [](std::string_view text) {
    const auto model = parse_model(text, "m.json");
    return model ? std::string("read")
                 : fmt::format("{}: {}", code_name(model.error().code()), model.error().text());
  };
  EXPECT_THAT(error("{}"), HasSubstr("invalid: m.json: not a model of shards"));
  EXPECT_THAT(error(R"({"furlong_shard_model":2})"),
              HasSubstr("incompatible: m.json: found a model of version 2, expected 1: take a newer"));
  EXPECT_THAT(error(R"({"furlong_shard_model":0})"),
              HasSubstr("expected 1: fit it anew with furlong shard fit"));
  EXPECT_THAT(error(R"({"furlong_shard_model":1})"), HasSubstr("provenance"));
  EXPECT_THAT(error(R"({"furlong_shard_model":1,"provenance":{},"memry":{}})"), HasSubstr("memry"));
  EXPECT_THAT(error(R"({"furlong_shard_model":1,"provenance":{},"memory":{"base":1}})"),
              HasSubstr("per_work"));
  EXPECT_THAT(error(R"({"furlong_shard_model":1,"provenance":{},"memory":{"base":-1,"per_work":2}})"),
              HasSubstr("memory.base is -1"));
  EXPECT_THAT(
      error(
          R"({"furlong_shard_model":1,"provenance":{},"work":{"base":0,"terms":[{"feature":"x","form":"cubic","coefficient":1}]}})"),
      HasSubstr("work.terms[0].form: 'linear' or 'nlogn'"));
  EXPECT_THAT(error(R"({"furlong_shard_model":1,"provenance":{},"usable":1.5})"), HasSubstr("usable share"));
  EXPECT_THAT(error("[1]"), HasSubstr("invalid"));
  const std::string good = print_model(fitted(40, 0.1));
  for (std::size_t keep = 0; keep + 2 < good.size(); keep += 7)
    EXPECT_FALSE(parse_model(std::string_view(good).substr(0, keep), "m.json")) << keep;
}

TEST(ModelText, SaysFormulasQualityProvenanceAndShare) {
  const std::string text = model_text(fitted(40, 0.1));
  for (const char* part :
       {"nlogn(rows)", "MAPE unseen", "fitted on 40 runs, 10 of them held out, of synthetic 1",
        "machine box, 2026-03-01", "recommended usable share: 0."})
    EXPECT_THAT(text, HasSubstr(part));
}

}  // namespace
}  // namespace furlong::shard
