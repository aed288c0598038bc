#pragma once
// What a fleet's races say of each card: gains of every variant, machine by machine, and the choice that
// follows (docs/fleet-aggregation.md: every rule and its reason). The same races and options give the same
// result, in whatever order they came; the clock is not asked. Memory does not grow with the number of races.

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "furlong/base/error.h"
#include "furlong/base/json_fwd.h"
#include "furlong/fleet/store/store.h"
#include "furlong/record/tuning.h"

namespace furlong::fleet {

/// What the winner is chosen by: the rate, or the work per joule.
enum class By { rate, energy };
/// By what variants are ranked: the paired gain within races (the rule), or their plain median rates.
enum class Rank { gain, rate };

struct Pin {
  std::string card;  ///< key, label or silicon hash
  std::string variant;
  std::string program;  ///< empty: every program of it that has the variant
};

struct AggregateOptions {
  double window_days = 7;
  std::optional<std::int64_t> until_us;  ///< end of the window; nullopt: just after the newest race
  int min_samples = 3;                   ///< of a variant, before it can win
  By by = By::rate;
  Rank rank = Rank::gain;
  double near_pct = 1;         ///< candidates: within so much of the best
  double threshold_pct = 0.5;  ///< the interval of a pinned winner's gain lies above it
  int stable_races = 20;       ///< races that a winner must have, to be pinned
  int stable_machines = 3;     ///< at least 3 make sense: with fewer no liar is outvoted
  std::vector<Pin> pins;
  /// The tuning before: what it pins stays pinned until the evidence speaks against it, since a pinned card
  /// races seldom.
  std::optional<record::Tuning> previous;
  std::vector<std::string> unpin;  ///< cards for which `previous` pins nothing: key, label, alias or hash
  unsigned threads = 0;            ///< 0: as many as there are cores, one store each
};

/// Of numbers that machines contributed, one each.
struct Estimate {
  double median = std::numeric_limits<double>::quiet_NaN();
  std::optional<record::Interval> ci;  ///< 95%, for the median over machines; nullopt: too few to say
  int samples = 0;                     ///< races' slots: values that went into machines' medians
  int races = 0;                       ///< different races
  int machines = 0;                    ///< voices: machines, those that share a card counting once
};

struct Stratum {
  std::string name;  ///< by the card's power limit: "400 W"; "unknown"
  Estimate gain;     ///< percent
};

/// One variant on one card, for one program and class.
struct VariantEvidence {
  std::string name;
  Estimate gain_pct;  ///< over base, in what `by` says; strata weighed as the card's machines are spread
  /// What the choice compares: the median over all the card's voices, where those that have not raced the
  /// variant saw no gain. Equal to gain_pct.median where all have.
  double standing_pct = 0;
  double standing_rate = 0;  ///< likewise of rates, or of rates per watt
  double not_raced = 0;  ///< voices that count and have not raced it; parts where they have under other caps
  Estimate rate;
  Estimate rate_per_w;
  std::vector<Stratum> strata;              ///< by power cap
  std::map<std::string, Estimate> drivers;  ///< gain by driver
  std::map<std::string, Estimate> days;     ///< gain by day, "2026-03-01"
  std::map<std::string, int> exits;         ///< "gate" → races that it left so
  int won = 0;                              ///< races
  bool publishable = true;                  ///< the manifest takes its name
};

/// What was left out, and why.
struct SetAside {
  std::string machine;  ///< empty: of no one machine
  /// "above-ceiling", "base-disagrees", "same-card", "fallback", "no-base", "no-power", "flood", "name"
  std::string reason;
  std::string why;  ///< a sentence with the numbers
  int races = 0;
};

enum class Choice { none, race, pinned_by_operator, pinned_by_stability };
std::string_view choice_name(Choice choice);

/// One program and class on one card and back end.
struct RowEvidence {
  Subject subject;
  std::string variant;  ///< the winner; "base" where nothing beats it; empty: none has the samples
  Choice choice = Choice::none;
  std::string why;                           ///< the choice in a sentence, with numbers
  std::vector<std::string> candidates;       ///< best first, base last
  std::vector<VariantEvidence> variants;     ///< best first
  int samples = 0, races = 0, machines = 0;  ///< records and different races that gave gains, voices
  int seen_pinned = 0;                       ///< records of pinned runs, which give no gains
  std::vector<SetAside> set_aside;
  std::int64_t newest_us = 0;  ///< of what counted; 0: nothing did
  /// That all its races name; empty: they name several. Of a pin that holds: that it was raced with.
  std::string source;
  bool publishable = true;  ///< the manifest takes the program's name
  /// Of the back ends, metrics and units of one program and class: the one that the tuning takes.
  bool leads = false;
  int race_every_n = record::TuningRow{}.race_every_n;  ///< of the pin before that stays
  std::string min_driver;                               ///< likewise
  /// The row of the tuning before, which stays for want of new evidence.
  std::optional<record::TuningRow> carried;
};

struct CardEvidence {
  /// Label; LABEL@hash (LABEL@unknown without one) where another kind of silicon has it on more machines, or
  /// none on more than half.
  std::string key;
  record::Silicon silicon;
  std::string label;                 ///< the commonest; first by name among equals
  std::vector<std::string> aliases;  ///< the others
  std::vector<RowEvidence> rows;     ///< by program, class, back end
};

struct Aggregate {
  AggregateOptions options;
  Window window;
  std::int64_t updated_us = 0;  ///< of the newest race that counted
  std::uint64_t races = 0;      ///< that lay in the window
  std::uint64_t superseded =
      0;  ///< of these: a later one of the same machine, slot and epoch counted in its place
  std::vector<CardEvidence> cards;  ///< by key
};

/// One store per thread; called from several.
using OpenStore = std::function<Result<std::unique_ptr<Store>>()>;

/// `invalid`: a pin that fits nothing, naming it. Errors of the store as they are.
Result<Aggregate> aggregate(const OpenStore& open, const AggregateOptions& options);
/// Of one card alone (key, label, alias or silicon hash); `invalid` names the nearest ones.
Result<CardEvidence> explain(const OpenStore& open, std::string_view card, const AggregateOptions& options);
/// The one of that name among the cards of an Aggregate; errors as explain().
Result<CardEvidence> find_card(std::vector<CardEvidence> cards, std::string_view name);

/// What the fleet manifest carries: of each card, program and class the row of the back end with the best
/// median rate.
record::Tuning to_tuning(const Aggregate& aggregate);
/// For people: why the card has its entry, with the numbers (`furlong fleet explain`).
std::string explain_text(const CardEvidence& card, const AggregateOptions& options);
Json to_json(const CardEvidence& card);
Json to_json(const Aggregate& aggregate);

// ---- regressions ----

struct RegressionOptions {
  double window_days = 7;                ///< of each of the two windows, one after the other
  std::optional<std::int64_t> until_us;  ///< end of the later one; nullopt: just after the newest race
  double threshold_pct = 1;              ///< slower by less is none
  int min_machines = 1;
  int min_races = 0;                  ///< in each window, of what is compared; fewer are not judged
  double error = 0.05;                ///< chance that any interval of a card misses, at either end
  std::vector<std::string> machines;  ///< races of these alone; empty: of all
  unsigned threads = 0;               ///< as AggregateOptions::threads
};

/// A variant that got slower on a card, with a driver.
struct Regression {
  std::string card, silicon;  ///< key as in Aggregate
  Subject subject;
  std::string driver;         ///< of the later window
  std::string driver_before;  ///< the commonest before; the same: it is not the driver
  std::string variant;
  double before = 0, after = 0;  ///< median rates
  /// Per machine, of its own medians; its interval lies below -threshold_pct. All intervals of a card hold
  /// together with 95% (RegressionOptions::error).
  Estimate change_pct;
  bool all_variants = false;  ///< base got slower as much: the card, not the variant
};

struct Regressions {
  Window before, after;
  std::vector<Regression> regressions;  ///< the worst first
  int compared = 0;                     ///< (card, driver, variant) that both windows have
};
Result<Regressions> find_regressions(const OpenStore& open, const RegressionOptions& options);
Json to_json(const Regressions& regressions);
std::string show_text(const Regressions& regressions);

}  // namespace furlong::fleet
