#pragma once
// A fleet that is not there: machines, cards and the races that they would send, with the truth beside them,
// for tests, benches and demonstrations of store, hub and aggregation (docs/fleet-simulation.md).
//
// Everything follows from the seed: the same options give the same machines, keys, races and bytes.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "furlong/base/error.h"
#include "furlong/base/json_fwd.h"
#include "furlong/base/sign.h"
#include "furlong/fleet/store/race.h"
#include "furlong/record/record.h"
#include "furlong/record/tuning.h"

namespace furlong::fleet {

inline constexpr std::int64_t earliest_simulated_us = 631'152'000'000'000;  ///< 1990-01-01T00:00:00Z

/// What is wrong with a machine.
enum class SimulatedRole {
  honest,
  inflates,       ///< says that one variant, not the best, is some 10% faster than it is
  above_ceiling,  ///< says rates that its card cannot reach, and one variant the fastest of them
  wrong_base,     ///< its base is slowed down, so that everything else looks 40% better
  key_clone,      ///< another box with the key of `of`: an image that was copied
  card_clone,     ///< the cards of `of`, under a key of its own
};
std::string_view simulated_role_name(SimulatedRole role);

/// A variant that gets slower.
struct PlantedRegression {
  std::string card;     ///< model (simulated_models()): all of its labels
  std::string program;  ///< "lottery"
  std::string variant;  ///< "base": every variant, so that no gain changes
  std::string driver;   ///< from this version on; empty: with every driver
  double from_day = 0;  ///< since the fleet's first; where a driver is named: when machines take it
  double loss_pct = 5;
};

struct SimulateOptions {
  std::uint64_t seed = 1;
  /// All keys and boxes together, those with a role among them.
  std::size_t machines = 50;
  double days = 7;
  std::int64_t from_us = 1'772'323'200'000'000;  ///< first race: 2026-03-01T00:00:00Z
  double epoch_s = 3600;                         ///< of the lottery: every card races once in each
  /// Models of simulated_models(), by label; empty: all of them.
  std::vector<std::string> cards;
  /// Of "lottery" and "gemv"; empty: both. gemv is raced once a day, and only by CUDA cards.
  std::vector<std::string> programs;
  int most_cards = 8;  ///< of one machine; 1 to 8

  std::size_t liars = 0;         ///< the three kinds in turn
  std::size_t clones = 0;        ///< key_clone
  std::size_t shared_cards = 0;  ///< card_clone
  std::size_t clocks_off = 0;    ///< honest ones whose clock is wrong: by hours and by years in turn
  std::size_t canaries = 0;      ///< honest ones
  std::size_t regressions = 0;   ///< planted by chance besides `planted`: driver and variant in turn
  std::vector<PlantedRegression> planted;

  double tuned_share = 0;           ///< machines that race in the order of a tuning
  double pinned_share = 0;          ///< machines that are pinned to the best variant, and race one time in 20
  double guest_share = 0;           ///< machines that come after the beginning, or go before the end
  double absent_share = 0.03;       ///< races that did not happen
  double short_budget_share = 0.3;  ///< races that do not time every variant
  bool capped = true;  ///< false: every card at its default power limit, else at 60% to 100% of it
  double noise = 1;    ///< factor on all noise, of races and of machines; 0: gains are the truth
  /// By how much percent the best variant leads the next one where it beats base at all.
  double margin_pct = 0.6;
  /// Share of the subjects in which no variant beats base.
  double dead_heat_share = 0.15;
};

/// Labels of the built-in models, one each; a model may go by more (aliases), and a label may stand for two.
std::vector<std::string> simulated_models();

struct SimulatedMachine {
  std::string id;     ///< PublicKey::id(); of a key_clone that of the original
  std::string model;  ///< as in simulated_models()
  std::string label;  ///< of its cards, as its driver calls them
  std::string silicon;
  std::string backend;
  std::vector<std::string> slots;
  SimulatedRole role = SimulatedRole::honest;
  std::optional<std::size_t> of;  ///< of a clone: number of the original
  std::string favourite;          ///< of a liar: the variant that it praises most, of the lottery
  int cap_pct = 100;              ///< power limit, of the card's default
  std::int64_t clock_off_us = 0;
  bool tuned = false, pinned = false, canary = false;
  std::int64_t from_us = 0, to_us = 0;                        ///< it races in this time
  std::vector<std::pair<std::int64_t, std::string>> drivers;  ///< from when on which; the first at from_us
};

/// True gains of one subject at one power cap.
struct TruthRow {
  int cap_pct = 100;  ///< 0: over the honest machines' caps
  std::string best;   ///< "base" where nothing beats it by 0.5%
  double gain_pct = 0;
  double lead_pct = 0;      ///< of the best over the next variant that beats base, else over base
  std::string best_energy;  ///< by work per joule, where `best` is by rate
  /// Of every variant that compiles and passes its gate, over base, percent; the greatest first.
  std::vector<std::pair<std::string, double>> gains;
};

struct TruthSubject {
  Subject subject;
  std::string model;
  std::vector<std::string> labels;  ///< that machines of the fleet use
  std::size_t machines = 0;         ///< honest ones
  std::vector<TruthRow> caps;       ///< of the caps that honest machines have; the highest first
  TruthRow overall;                 ///< weighed as the honest machines are spread over the caps
  const TruthRow* at(int cap_pct) const;
};

struct Truth {
  std::int64_t at_us = 0;
  std::vector<TruthSubject> subjects;  ///< of cards that the fleet has; ordered by Subject
  std::vector<PlantedRegression> regressions;
  const TruthSubject* find(const Subject& subject) const;
};
Json to_json(const Truth& truth);
Json to_json(const SimulatedMachine& machine);

/// A stream of races in the order in which they happen (machines whose clocks are off stamp them otherwise).
/// Memory grows with machines and cards, not with races. For one thread.
class Simulation {
 public:
  /// `invalid` names the option, and of a card, program or driver what there is.
  static Result<std::unique_ptr<Simulation>> make(const SimulateOptions& options);
  ~Simulation();

  const SimulateOptions& options() const;
  const std::vector<SimulatedMachine>& machines() const;
  KeyPair key(std::size_t machine) const;
  /// What is true at that time with the drivers of then; default: at the end.
  Truth truth(std::optional<std::int64_t> at_us = {}) const;
  /// The best rows as a tuning that pins them: what a perfect fleet would publish.
  record::Tuning true_tuning() const;

  /// The next race; false: there is none left. Both forms tell the same races, and `race` is what decode()
  /// makes of `record`. Strings that `race` or `record` holds are overwritten in place: hand in the same one
  /// again to save their making.
  bool next(record::RaceRecord& record);
  bool next(DecodedRace& race);
  /// Of the race that next() told last: its box, as a number in machines().
  std::size_t machine() const;
  /// When it truly ended, whatever its machine's clock says.
  std::int64_t true_ts_us() const;
  /// 0 to 1: of the time that is simulated.
  double progress() const;

  /// From the next race on machines obey this tuning, as workers do (pins, order, one race in race_every_n),
  /// in place of `tuned_share` and `pinned_share`; nullptr: as before. Honest ones and liars alike.
  void follow(std::shared_ptr<const record::Tuning> tuning);

 private:
  struct State;
  explicit Simulation(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// Machines and truth() as one JSON document, indented.
std::string truth_text(const Simulation& simulation);

}  // namespace furlong::fleet
