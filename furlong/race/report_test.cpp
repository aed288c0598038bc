// What is told of a race: record, line, JSON, explanation, knob effects, the undominated, the dispatch table.
#include <algorithm>
#include <cmath>

#include "furlong/base/json.h"
#include "furlong/race/dispatch.h"
#include "furlong/race/explain.h"
#include "furlong/race/internal/testing.h"
#include "furlong/race/knob_effects.h"
#include "furlong/race/pareto.h"
#include "furlong/record/race_line.h"

namespace furlong::race {
namespace {

using testing::Stage;

struct Raced : ::testing::Test {
  Raced() {
    stage.sim.timing.gain = {{"u2", 0.03}, {"c64", -0.04}, {"u2-c64", -0.01}};
    stage.sim.timing.noise = 0.001;
    stage.sim.registers = {{"u2", 40}, {"c64", 20}};
    stage.sim.faults = {{.variant = "u8", .fault = device::SimFault::compile_error}};
    outcome = stage.outcome("u2,c64,u2-c64,u8");
  }
  Stage stage;
  Outcome outcome;
};

TEST_F(Raced, MakesARecordThatReadsBack) {
  const record::RaceRecord record = make_record(*stage.instance, outcome);
  EXPECT_EQ(record.program, "mix");
  EXPECT_EQ(record.backend, "sim");
  EXPECT_EQ(record.winner, "u2");
  EXPECT_EQ(record.verdict, record::Verdict::winner);
  EXPECT_EQ(record.unit, "M/s");
  EXPECT_NEAR(record.gain_pct.value_or(0), 3, 0.5);
  ASSERT_TRUE(record.ci);
  EXPECT_LT(record.ci->lo, *record.gain_pct);
  EXPECT_EQ(record.variants.at(0).name, "base");
  EXPECT_NEAR(record.base_rate.value_or(0), 4096 / 0.25e-3 / 1e6, 1);
  const record::RacedVariant* broken = record.find("u8");
  ASSERT_NE(broken, nullptr);
  EXPECT_FALSE(broken->rate);
  EXPECT_FALSE(broken->detail.out.empty());
  EXPECT_EQ(broken->detail.exit, "compile");
  EXPECT_EQ(record.find("c64")->detail.exit, "eliminated");
  EXPECT_EQ(record.find("u2")->detail.exit, "") << "it stayed";
  EXPECT_EQ(record.language, stage.instance->edition().language);
  EXPECT_EQ(record.metric, "") << "the rate";
  EXPECT_EQ(record.find("u2")->detail.regs, 40);
  EXPECT_EQ(record.find("u2")->detail.error, 0) << "exact";
  EXPECT_EQ(record.slot.size(), 16u);
  EXPECT_GT(record.rate_per_w, 0);
  const auto back = record::parse_record(record::to_line(record), "record");
  ASSERT_TRUE(back) << back.error().text();
  EXPECT_EQ(*back, record);
}

TEST_F(Raced, PrintsARaceLineThatParses) {
  const std::string line = race_line(*stage.instance, outcome);
  const auto parsed = record::parse_race_line(line);
  ASSERT_TRUE(parsed) << parsed.error().text() << "\n" << line;
  EXPECT_EQ(parsed->winner, "u2");
  EXPECT_EQ(parsed->variants.size(), 5u);
  EXPECT_FALSE(parsed->outs.empty());
}

TEST_F(Raced, WritesEverythingAsJson) {
  const Json document = to_json(*stage.instance, outcome, stage.options);
  EXPECT_EQ(document["winner"], "u2");
  EXPECT_EQ(document["variants"].size(), 5u);
  EXPECT_EQ(document["variants"][1]["knobs"]["UNROLL"], 2);
  EXPECT_EQ(document["variants"][1]["defines"]["UNROLL"], "2");
  EXPECT_EQ(document["heats"].size(), outcome.heats.size());
  EXPECT_FALSE(document["heats"][0]["samples_ms"].empty());
  EXPECT_TRUE(document["heats"][0]["cost_ms"][4].is_null()) << "u8 was never timed";
  // What is written is what a strict reader takes.
  EXPECT_TRUE(json_parse(json_line(document), "outcome"));
}

TEST_F(Raced, ExplainsTheWinnerInTwoSentences) {
  const std::string text = explain(*stage.instance, outcome);
  EXPECT_NE(text.find("u2 won by"), std::string::npos) << text;
  EXPECT_NE(text.find("UNROLL 2 instead of 1"), std::string::npos) << text;
  EXPECT_NE(text.find("40 registers instead of 32"), std::string::npos) << text;
  EXPECT_NE(text.find("counter and branch cost as much"), std::string::npos) << text;
  EXPECT_NE(text.find("a test"), std::string::npos) << "the evidence is missing: " << text;
}

TEST_F(Raced, FindsTheKnobEffects) {
  const auto effects = knob_effects(*stage.instance, outcome);
  ASSERT_EQ(effects.size(), 2u);
  EXPECT_EQ(effects[0].knob, "UNROLL");
  EXPECT_EQ(effects[0].value, "2");
  EXPECT_NEAR(effects[0].gain, 0.03, 0.005);
  EXPECT_EQ(effects[1].knob, "CHUNK");
  EXPECT_NEAR(effects[1].gain, -0.04, 0.005);
}

TEST_F(Raced, ListsWhoIsNotDominated) {
  std::vector<std::string> names;
  for (const std::size_t i : pareto_front(outcome)) names.push_back(outcome.variants[i].name);
  // u2 is the fastest, base needs fewer registers, c64 the fewest; u2-c64 is slower than base at as many
  // registers.
  EXPECT_EQ(names, (std::vector<std::string>{"u2", "base", "c64"}));
}

TEST(Explain, SaysThatItIsADeadHeat) {
  Stage stage;
  const Outcome outcome = stage.outcome("u2,u4");
  EXPECT_NE(explain(*stage.instance, outcome).find("dead heat"), std::string::npos);
}

TEST(Explain, SpeaksOfEnergyWhereEnergyWasRaced) {
  Stage stage;
  stage.options.metric = Metric::energy;
  stage.options.keep_samples = false;
  stage.sim.timing.noise = 0.0005;
  stage.sim.power_w = {{"*", 300}, {"u2", 310}};
  Outcome outcome = stage.outcome("u2");
  // As fast as base, at more power: at the ceiling of the rate something may still be left to win.
  outcome.variants[0].share_of_ceiling = 0.99;
  outcome.variants[0].ceiling = "random 4-byte loads";
  const std::string text = explain(*stage.instance, outcome);
  EXPECT_NE(text.find("less work per joule than base"), std::string::npos) << text;
  EXPECT_EQ(text.find("slower"), std::string::npos) << text;
  stage.sim.power_w["u2"] = 280;
  stage.instance.reset();
  stage.device.reset();
  outcome = stage.outcome("u2");
  EXPECT_NE(explain(*stage.instance, outcome).find("u2 won by"), std::string::npos);
  EXPECT_NE(explain(*stage.instance, outcome).find("in work per joule over base"), std::string::npos);
}

TEST(Explain, SaysThatTheCeilingIsReached) {
  Stage stage;
  Outcome outcome = stage.outcome("u2,u4");
  outcome.variants[0].share_of_ceiling = 0.99;
  outcome.variants[0].ceiling = "random 4-byte loads";
  const std::string text = explain(*stage.instance, outcome);
  EXPECT_NE(text.find("random 4-byte loads"), std::string::npos) << text;
  EXPECT_NE(text.find("nothing is left to win"), std::string::npos) << text;
}

TEST(Pareto, TakesTheOneThatNeedsLessEnergy) {
  Outcome outcome;
  const auto add = [&](const char* name, double gain, double joules) {
    VariantOutcome one;
    one.name = name;
    one.rate = 1 + gain;
    one.gain = gain;
    one.energy_j_per_unit = joules;
    outcome.variants.push_back(one);
  };
  add("base", 0, 10);
  add("fast", 0.1, 12);
  add("slow", -0.1, 8);
  add("worse", -0.1, 11);
  EXPECT_EQ(pareto_front(outcome), (std::vector<std::size_t>{1, 0, 2}));
}

TEST(Pareto, OfEqualsTheFirstStandsForAll) {
  Stage stage;
  const Outcome outcome = stage.outcome("u2,u4");
  EXPECT_EQ(pareto_front(outcome, 0.01), std::vector<std::size_t>{0});
}

TEST(KnobEffects, NeedThreeTimedVariants) {
  Stage stage;
  const Outcome outcome = stage.outcome("u2");
  EXPECT_TRUE(knob_effects(*stage.instance, outcome).empty());
}

TEST(Dispatch, ChoosesPerSizeAndReadsBack) {
  DispatchTable table;
  for (const int n : {1024, 4096, 65536}) {
    Stage stage;
    stage.problem = {{"n", lattice::Value(n)}};
    stage.sim.timing.gain = {{"u2", n == 1024 ? 0.03 : 0.0}, {"u4", n == 65536 ? 0.04 : 0.0}};
    const Outcome outcome = stage.outcome("u2,u4");
    table.add(*stage.instance, outcome);
    table.add(*stage.instance, outcome);  // the later one replaces it
  }
  ASSERT_EQ(table.rows().size(), 3u);
  EXPECT_EQ(table.rows()[0].variant, "u2");
  EXPECT_EQ(table.rows()[1].variant, "base");
  EXPECT_EQ(table.rows()[2].variant, "u4");
  const auto variant_at = [&](int n) { return table.nearest({{"n", lattice::Value(n)}})->variant; };
  EXPECT_EQ(variant_at(1), "u2");
  EXPECT_EQ(variant_at(3000), "base");
  EXPECT_EQ(variant_at(1 << 20), "u4");
  EXPECT_NE(table.text().find("n=65536"), std::string::npos);
  const auto back = DispatchTable::parse(json_pretty(table.json()), "dispatch.json");
  ASSERT_TRUE(back) << back.error().text();
  EXPECT_EQ(*back, table);
}

TEST(Dispatch, SaysWhatIsWrongWithAFile) {
  const auto code = [](std::string_view text) { return DispatchTable::parse(text, "d.json").error().code(); };
  EXPECT_EQ(code("{"), Code::invalid);
  EXPECT_EQ(code(R"({"schema":2,"kind":"dispatch","rows":[]})"), Code::incompatible);
  EXPECT_EQ(code(R"({"schema":1,"kind":"dispatch","rows":[{"variant":"u2"}]})"), Code::invalid);
  EXPECT_EQ(code(R"({"schema":1,"kind":"dispatch","rows":[{"problem":{"n":[]},"variant":"u2"}]})"),
            Code::invalid);
  EXPECT_EQ(code(R"({"schema":1,"kind":"dispatch","rows":[],"row":[]})"), Code::invalid);
  EXPECT_EQ(DispatchTable{}.nearest({}), nullptr);
}

}  // namespace
}  // namespace furlong::race
