#include "apps/furlong/report/text.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "furlong/base/os/file.h"

namespace furlong::app {
namespace {

race::VariantOutcome timed(std::string name, double gain, double rate = 1) {
  race::VariantOutcome variant;
  variant.name = std::move(name);
  variant.gated = true;
  variant.rate = rate;
  variant.gain = gain;
  return variant;
}

race::VariantOutcome untimed(std::string name, race::Exit exit) {
  race::VariantOutcome variant;
  variant.name = std::move(name);
  variant.exit = exit;
  return variant;
}

TEST(RateText, FourSignificantDigitsAtEverySize) {
  program::WorkSpec work;
  work.rate_scale = 1;
  const std::vector<std::pair<double, std::string>> cases = {
      {0.012344, "0.01234"}, {0.5, "0.5000"},        {1, "1.000"},        {118.3, "118.3"},
      {99999, "99999"},      {999999, "999999"},     {1e6, "1.000e6"},    {2087297867, "2.087e9"},
      {9.9994e9, "9.999e9"}, {9.9999e9, "1.000e10"}, {2.5e19, "2.500e19"}};
  for (const auto& [value, text] : cases) EXPECT_EQ(rate_text(work, value), text) << value;
  work.rate_scale = 1e9;
  EXPECT_EQ(rate_text(work, 2087297867), "2.087");
  for (const double nothing : {0.0, -1.0, std::nan(""), std::numeric_limits<double>::infinity()})
    EXPECT_EQ(rate_text(work, nothing), "-");
}

TEST(ByGain, BaseStandsAtNothingAndTheUntimedLast) {
  race::Outcome outcome;
  // The rates contradict the gains, as they do where the device drifts and variants left at different heats.
  outcome.variants = {timed("base", 0, 50), untimed("bad", race::Exit::gate), timed("slow", -0.2, 90),
                      timed("fast", 0.1, 10), timed("unknown", std::nan(""), 99)};
  EXPECT_EQ(by_gain(outcome), (std::vector<std::size_t>{3, 0, 2, 4, 1}));
}

TEST(Standing, OnlyAFinishedRaceHasAWinner) {
  race::Outcome outcome;
  outcome.variants = {timed("base", 0), timed("fast", 0.1), untimed("late", race::Exit::none),
                      untimed("bad", race::Exit::compile)};
  outcome.winner = 1;
  outcome.verdict_word = "winner";
  EXPECT_EQ(standing(outcome, 1), "winner");
  outcome.verdict_word = "out-of-budget";
  EXPECT_EQ(standing(outcome, 1), "best so far");
  EXPECT_EQ(standing(outcome, 0), "in");
  EXPECT_EQ(standing(outcome, 2), "not timed");
  EXPECT_EQ(standing(outcome, 3), "no compile");
  outcome.winner = 0;
  EXPECT_EQ(standing(outcome, 0), "in");
}

TEST(BudgetHint, OnlyWhereMoreTimeWouldTellMore) {
  race::Outcome outcome;
  outcome.variants = {timed("base", 0), untimed("bad", race::Exit::gate)};
  outcome.verdict_word = "none";
  EXPECT_EQ(budget_hint(outcome), "");  // the only other variant is wrong
  outcome.verdict_word = "dead-heat";
  EXPECT_EQ(budget_hint(outcome), "");
  outcome.verdict_word = "out-of-budget";
  EXPECT_NE(budget_hint(outcome), "");
  outcome.verdict_word = "none";
  outcome.variants[1].exit = race::Exit::launch;
  outcome.variants[1].why = "not timed: budget";
  EXPECT_NE(budget_hint(outcome), "");
  EXPECT_EQ(standing(outcome, 1), "no time");
  outcome.variants = {untimed("base", race::Exit::none)};
  EXPECT_NE(budget_hint(outcome), "");
  outcome.dropped_heats = 40;  // throttled: more seconds change nothing
  EXPECT_EQ(budget_hint(outcome), "");
}

/// A program with a rate in M/s, for tables.
program::Instance tiny() {
  FakeFiles files;
  auto program = program::parse_program(R"(format = 1
[program]
name = "tiny"
[source.host]
text = "void tiny(const furlong_block&, int* y) {}"
entry = "tiny"
[problem]
n = 1000000
[launch]
grid = 1
[[argument]]
name = "y"
type = "i32"
size = "n"
direction = "out"
[work]
unit = "element"
amount = "n"
rate_unit = "M/s"
rate_scale = 1e6
[[knob]]
name = "U"
values = [1, 2, 4]
)",
                                        "tiny.toml", "/nowhere", files);
  EXPECT_TRUE(program) << program.error().text();
  auto instance = program::Instance::make(*program, "host", {}, {});
  EXPECT_TRUE(instance) << instance.error().text();
  return *std::move(instance);
}

TEST(RaceTable, ShowsTheShareOfTheCeilingWhereItIsKnown) {
  const program::Instance instance = tiny();
  race::Outcome outcome;
  outcome.variants = {timed("base", 0, 95e6), timed("u2", 0.02, 97e6), untimed("u4", race::Exit::gate)};
  outcome.sentence = "u2 beats base";
  outcome.reference = "base";
  const std::string without = race_table(instance, outcome);
  EXPECT_EQ(without.find("of ceiling"), std::string::npos) << without;
  EXPECT_EQ(without.find("occupancy"), std::string::npos) << without;
  EXPECT_EQ(without.find("ceiling: "), std::string::npos) << without;
  for (race::VariantOutcome& variant : outcome.variants) {
    variant.occupancy = 0.75;
    if (!variant.rate) continue;
    variant.ceiling_rate = 100e6;
    variant.share_of_ceiling = *variant.rate / 100e6;
    variant.ceiling = "random 4-byte loads";
  }
  const std::string with = race_table(instance, outcome);
  for (const char* part : {"occupancy  of ceiling", "75%       97.0%", "75%       95.0%",
                           "75%                 ", "\nceiling: 100.0 M/s by random 4-byte loads\n"})
    EXPECT_NE(with.find(part), std::string::npos) << part << "\n" << with;
  outcome.variants[0].ceiling_rate = 90e6;  // a variant with other work has another ceiling
  EXPECT_EQ(ceiling_line(instance, outcome),
            "ceiling: 90.00 M/s by random 4-byte loads; 100.0 M/s by random 4-byte loads");
}

}  // namespace
}  // namespace furlong::app
