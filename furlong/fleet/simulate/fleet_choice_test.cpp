// Fifty simulated machines under different power caps, one liar and one clone among them: the true best is
// chosen, and over four windows with pins on the tuning does not flap.

#ifndef FURLONG_WITHOUT_FLEET_AGGREGATE

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "furlong/fleet/aggregate/aggregate.h"
#include "furlong/fleet/simulate/feed.h"
#include "furlong/fleet/simulate/simulate.h"
#include "furlong/fleet/store/memory/memory.h"

namespace furlong::fleet {
namespace {

constexpr double window_days = 7;
constexpr double as_good_pct = 0.5;
constexpr std::int64_t window_us = 7 * 86'400'000'000;

SimulateOptions fifty() {
  SimulateOptions options;
  options.machines = 50;
  options.most_cards = 1;
  options.days = 4 * window_days;
  options.cards = {"NVIDIA_H200", "NVIDIA_GeForce_RTX_4090"};
  options.programs = {"lottery"};
  options.liars = options.clones = 1;
  return options;
}

/// A hub of this process: races go in as machines send them, and the tuning comes out.
class Loop {
 public:
  explicit Loop(const SimulateOptions& options) : simulation_(*Simulation::make(options)) {
    for (const SimulatedMachine& machine : simulation_->machines())
      EXPECT_TRUE(store_->put_machine({.id = machine.id}));
  }

  /// The races of one week, and what follows from them.
  Aggregate window(int number) {
    const std::int64_t end_us = simulation_->options().from_us + (number + 1) * window_us;
    std::map<std::string, IncomingBatch> batches;
    DecodedRace race;
    while (simulation_->next(race)) {
      const std::string& machine = simulation_->machines()[simulation_->machine()].id;
      IncomingBatch& batch = batches[machine];
      IncomingBatch::Line line{.id = record_id_text(race.id)};
      line.race = race;
      batch.lines.push_back(std::move(line));
      pinned_ += race.pinned;
      if (simulation_->true_ts_us() >= end_us) break;
    }
    std::vector<IncomingBatch> all;
    for (auto& [machine, batch] : batches) {
      batch.id = fmt::format("window-{}", number);
      batch.machine = machine;
      batch.received_us = end_us;
      all.push_back(std::move(batch));
    }
    EXPECT_TRUE(store_->add(all));
    AggregateOptions options{.window_days = window_days, .until_us = end_us};
    options.previous = tuning_ ? std::optional(*tuning_) : std::nullopt;
    const auto result =
        aggregate([this]() -> Result<std::unique_ptr<Store>> { return open_memory_store(data_); }, options);
    EXPECT_TRUE(result) << (result ? "" : result.error().text());
    tuning_ = std::make_shared<record::Tuning>(to_tuning(*result));
    return *result;
  }

  /// Machines obey from now on.
  void publish() { simulation_->follow(tuning_); }
  const Simulation& simulation() const { return *simulation_; }
  std::uint64_t pinned() const { return pinned_; }

 private:
  std::shared_ptr<MemoryData> data_ = make_memory_data();
  std::unique_ptr<Store> store_ = open_memory_store(data_);
  std::unique_ptr<Simulation> simulation_;
  std::shared_ptr<record::Tuning> tuning_;
  std::uint64_t pinned_ = 0;
};

/// What a tuning says, row by row.
std::map<Subject, std::pair<std::string, bool>> said(const Aggregate& aggregate) {
  std::map<Subject, std::pair<std::string, bool>> rows;
  for (const CardEvidence& card : aggregate.cards)
    for (const RowEvidence& row : card.rows)
      rows[row.subject] = {row.variant, row.choice == Choice::pinned_by_stability};
  return rows;
}

/// What `variant` truly gains over the caps together.
double true_gain(const TruthRow& row, const std::string& variant) {
  for (const auto& [name, gain] : row.gains)
    if (name == variant) return gain;
  return 0;
}

TEST(FleetChoice, TheTrueBestIsChosenAndTheTuningDoesNotFlap) {
  Loop loop(fifty());
  std::set<int> caps;
  for (const SimulatedMachine& machine : loop.simulation().machines()) caps.insert(machine.cap_pct);
  ASSERT_EQ(caps.size(), 5u);
  const Truth truth = loop.simulation().truth();

  const Aggregate first = loop.window(0);
  const auto rows = said(first);
  EXPECT_EQ(rows.size(), truth.subjects.size());
  int pins = 0, clear = 0;
  for (const auto& [subject, choice] : rows) {
    const TruthSubject* is = truth.find(subject);
    ASSERT_NE(is, nullptr);
    pins += choice.second;
    const TruthRow& best = is->overall;
    // Over the caps together two variants may be as good as each other, and a variant whose gain differs by
    // cap has a median that moves with who raced in that week; within `as_good_pct` either may be chosen.
    EXPECT_GE(true_gain(best, choice.first), best.gain_pct - as_good_pct)
        << subject.program_class << " " << choice.first << " instead of " << best.best;
    if (best.best != "base" && best.lead_pct < as_good_pct) continue;
    ++clear;
    if (best.best == "base") {
      EXPECT_FALSE(choice.second) << "base is not pinned";
    } else {
      EXPECT_EQ(choice.first, best.best) << subject.program_class;
    }
  }
  EXPECT_GE(clear, 9) << "of 18 subjects";
  EXPECT_GT(pins, 8);

  for (int number = 1; number < 4; ++number) {
    loop.publish();
    const auto now = said(loop.window(number));
    for (const auto& [subject, before] : rows) {
      ASSERT_TRUE(now.contains(subject)) << subject.program_class;
      const auto& [variant, pinned] = now.at(subject);
      if (before.second) {
        EXPECT_EQ(now.at(subject), before) << "window " << number << " " << subject.program_class;
      }
      // What is raced may change for something as good, and not for anything else.
      const TruthRow& best = truth.find(subject)->overall;
      EXPECT_GE(true_gain(best, variant), best.gain_pct - as_good_pct)
          << "window " << number << " " << subject.program_class << " " << variant << " instead of "
          << best.best;
    }
  }
  EXPECT_GT(loop.pinned(), 5000u) << "machines obeyed";
}

TEST(FleetChoice, TheLiarIsTheOneThatWouldHaveWon) {
  // The same fleet believed blindly: the liar's favourite looks better than what is the best.
  const auto simulation = *Simulation::make(fifty());
  const auto liar =
      std::ranges::find(simulation->machines(), SimulatedRole::inflates, &SimulatedMachine::role);
  ASSERT_NE(liar, simulation->machines().end());
  const Truth truth = simulation->truth();
  int praised = 0, races = 0;
  DecodedRace race;
  while (races < 40 && simulation->next(race)) {
    if (race.slot != liar->slots.front()) continue;
    ++races;
    praised += race.winner == liar->favourite && truth.find(race.subject)->overall.best != liar->favourite;
  }
  EXPECT_GT(praised, races / 2);
}

}  // namespace
}  // namespace furlong::fleet

#endif
