// Fifty machines under different power caps, one liar and one clone among them, over four windows: the true
// best is chosen on each card, is pinned once it is sure, and stays although pinned cards race one time in
// twenty.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "furlong/base/random.h"
#include "furlong/fleet/aggregate/aggregate.h"
#include "furlong/fleet/aggregate/internal/testing.h"

namespace furlong::fleet {
namespace {

using testing::Fleet;
using testing::the_end_us;

struct Model {
  std::string label, silicon;
  double base_rate = 0;
  std::map<std::string, std::pair<double, double>> gains;  ///< at full power, and at half of it
};

const std::vector<Model>& models() {
  static const std::vector<Model> all{
      // u4 is better under a cap and much worse without: over the fleet's caps it loses.
      {"Fast", "00000000000000f1", 118, {{"u2", {3, 2.4}}, {"u4", {-4, 5}}, {"u8", {-9, -7}}}},
      // Nearly the same: which of the two does not matter, but it must not go to and fro.
      {"Even", "00000000000000e2", 60, {{"u2", {2.50, 2.50}}, {"ldg", {2.45, 2.45}}, {"u8", {1, 1}}}},
      // Nothing beats base.
      {"Plain", "00000000000000b3", 30, {{"u2", {-0.8, -0.8}}, {"u8", {-3, -3}}}}};
  return all;
}

/// Machines that follow a tuning.
class Simulation {
 public:
  static constexpr int machines = 50, epochs_a_day = 6, days = 7;

  /// What the machines send in window `number`, under the tuning that they have.
  Fleet window(int number, const record::Tuning* tuning) {
    Fleet fleet;
    const std::int64_t end_us = end_of(number);
    for (int machine = 0; machine < machines; ++machine)
      for (int epoch = 0; epoch < epochs_a_day * days; ++epoch) {
        const std::int64_t ts_us = end_us - (epoch + 1) * testing::day_us / epochs_a_day + machine * 1000;
        add(fleet, machine, static_cast<std::uint64_t>(number * 1000 + epoch + 1), ts_us, tuning);
      }
    return fleet;
  }
  static std::int64_t end_of(int number) { return the_end_us + number * days * testing::day_us; }

 private:
  void add(Fleet& fleet, int machine, std::uint64_t epoch, std::int64_t ts_us, const record::Tuning* tuning) {
    const Model& model = models()[static_cast<std::size_t>(machine) % models().size()];
    fleet.subject.silicon = model.silicon;
    fleet.label = model.label;
    const record::TuningRow* row = nullptr;
    if (tuning != nullptr)
      row = record::find_tuning(*tuning, {.silicon = {.hash = model.silicon}, .label = model.label}).row;
    testing::RaceSpec spec{.machine = fmt::format("m{:02}", machine), .epoch = epoch, .ts_us = ts_us};
    const bool liar = machine == 6;
    if (row != nullptr && !record::races_now(*row, ++prepares_[machine])) {
      spec.winner = row->variant;
      spec.pinned = true;
    }
    const double cap = 0.5 + 0.1 * (machine / 3 % 6);
    spec.power_limit_w = static_cast<float>(450 * cap);
    spec.base_rate = static_cast<float>(model.base_rate * (0.5 + 0.5 * cap) * (1 + 0.01 * random_.normal()));
    spec.ceiling = static_cast<float>(1.3 * model.base_rate);
    for (const auto& [name, gain] : model.gains) {
      const double here = gain.first + (gain.second - gain.first) * 2 * (1 - cap);
      spec.gains[name] = static_cast<float>(here + 0.4 * random_.normal());
    }
    if (liar) spec.gains = {{"u8", 400.F}, {"u2", -60.F}, {"u99", 900.F}};
    fleet.add(spec);
    // One box with a second key says everything twice.
    if (machine == 9) {
      spec.slot = "slot-" + spec.machine;
      spec.machine = "m09-again";
      fleet.add(spec);
    }
  }

  Random random_{7};
  std::map<int, std::uint64_t> prepares_;
};

std::string shape_of(const record::Tuning& tuning) {
  std::string text;
  for (const record::TuningCard& card : tuning.cards)
    for (const record::TuningRow& row : card.rows)
      text += fmt::format("{}: {} {}\n", card.key, row.variant, row.race ? "races" : "pinned");
  return text;
}

TEST(FleetWindows, TheTrueBestIsChosenAndTheTuningDoesNotFlap) {
  Simulation simulation;
  std::optional<record::Tuning> tuning;
  std::vector<std::string> shapes;
  for (int number = 0; number < 4; ++number) {
    const Fleet fleet = simulation.window(number, tuning ? &*tuning : nullptr);
    const Aggregate aggregate =
        fleet.aggregated({.until_us = Simulation::end_of(number), .previous = tuning});
    tuning = to_tuning(aggregate);
    shapes.push_back(shape_of(*tuning));
    if (number > 0) continue;
    ASSERT_EQ(aggregate.cards.size(), 3u);
    const auto card = find_card(aggregate.cards, "Fast");
    ASSERT_TRUE(card);
    // Liar and clone are named; the liar's rates lie above what the card can do.
    std::map<std::string, std::string> set_aside;
    for (const CardEvidence& each : aggregate.cards)
      for (const SetAside& one : each.rows.at(0).set_aside) set_aside[one.machine] = one.reason;
    EXPECT_EQ(set_aside,
              (std::map<std::string, std::string>{{"m06", "above-ceiling"}, {"m09-again", "same-card"}}));
  }
  EXPECT_THAT(shapes[0], ::testing::HasSubstr("Fast: u2 pinned"));
  EXPECT_THAT(shapes[0], ::testing::AnyOf(::testing::HasSubstr("Even: u2 pinned"),
                                          ::testing::HasSubstr("Even: ldg pinned")));
  EXPECT_THAT(shapes[0], ::testing::HasSubstr("Plain: base races"));
  for (const std::string& shape : shapes) EXPECT_EQ(shape, shapes[0]);
}

TEST(FleetWindows, WithoutTheTuningBeforeAPinnedCardWouldRaceAgain) {
  // The reason for `previous`: in a window of pinned runs there is too little to pin by.
  Simulation simulation;
  const Fleet first = simulation.window(0, nullptr);
  const record::Tuning tuning = to_tuning(first.aggregated({.until_us = Simulation::end_of(0)}));
  const Fleet second = simulation.window(1, &tuning);
  const AggregateOptions options{.until_us = Simulation::end_of(1), .stable_races = 100};
  EXPECT_THAT(shape_of(to_tuning(second.aggregated(options))), ::testing::HasSubstr("Fast: u2 races"));
  AggregateOptions with = options;
  with.previous = tuning;
  EXPECT_THAT(shape_of(to_tuning(second.aggregated(with))), ::testing::HasSubstr("Fast: u2 pinned"));
}

TEST(FleetWindows, ARealChangeIsFollowed) {
  Simulation simulation;
  const record::Tuning tuning =
      to_tuning(simulation.window(0, nullptr).aggregated({.until_us = Simulation::end_of(0)}));
  // A new driver slows u2 where it was pinned.
  Fleet second = simulation.window(1, &tuning);
  for (auto& [machine, race] : second.races())
    for (VariantGain& variant : race.variants)
      if (variant.name == "u2" && race.label == "Fast") variant.gain_pct -= 8;
  const Aggregate aggregate = second.aggregated({.until_us = Simulation::end_of(1), .previous = tuning});
  EXPECT_THAT(shape_of(to_tuning(aggregate)), ::testing::Not(::testing::HasSubstr("Fast: u2")));
  const auto card = find_card(aggregate.cards, "Fast");
  ASSERT_TRUE(card);
  EXPECT_THAT(card->rows.at(0).why, ::testing::HasSubstr("u2 was pinned, but"));
}

}  // namespace
}  // namespace furlong::fleet
