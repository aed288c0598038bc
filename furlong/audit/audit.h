#pragma once
// The audit of a lattice (docs/lattice.md, "Audit"): what race records say of every value of every knob
// beside the knob's default, and whether they contradict the program's trade-off sentences.
//
// Ratios are natural logarithms of rate(value) / rate(default), both of one race, every other knob equal:
// above 0 the value is faster. Value types; every function is pure and may be called from any thread.

#include <cstddef>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "furlong/base/json_fwd.h"
#include "furlong/lattice/lattice.h"
#include "furlong/record/record.h"

namespace furlong::audit {

struct Options {
  std::string program;   ///< records of other programs are skipped and counted; empty: none is
  std::string language;  ///< the same for the kernel text's language
  /// Hash of the program's text (RaceRecord::source) that counts. Empty, as for programs whose text differs
  /// by class or day: of each class the newest record's.
  std::string source;
  bool any_source = false;        ///< records of every text count, pooled
  bool unstated_language = true;  ///< take records whose language neither they nor their back end tell
  double threshold = 0.005;       ///< ratio - 1 up to which two rates are a tie; above 0, finite
  int min_races = 2;  ///< of a regime, before it counts for min_regimes or contradicts a sentence; at least 1
  int min_regimes = 3;  ///< that "bake in" and "drop" must have; at least 1
};

/// What an interval says at the threshold. not_worse: a win or a tie; not_better: a loss or a tie.
enum class State { none, open, wins, loses, ties, not_worse, not_better };
std::string_view state_name(State state);

/// What the races of one regime (or of one context of it) measured.
struct Spread {
  int races = 0;
  int pairs = 0;
  double median = 0, min = 0, max = 0;  ///< over the pairs
  double estimate = 0;
  double low = -std::numeric_limits<double>::infinity();  ///< the interval (docs/lattice.md says which)
  double high = std::numeric_limits<double>::infinity();
  bool disagree = false;  ///< the races differ by more than their own intervals allow
};

/// A regime: one card model with one driver, running one class of the program.
struct Regime {
  std::string card, driver;
  record::ProgramClass program_class;
  lattice::Environment facts;  ///< class features and lattice::claim_facts(), as far as the records tell them
  /// "loads=128,wide=0 on NVIDIA_H200, driver 580.95.05", without control characters.
  std::string text() const;
};

/// The pairs of a regime whose other knobs stand as in one variant.
struct Context {
  std::string beside;  ///< the variant with the default: "base", "w4"
  Spread spread;
  State state = State::none;
};

/// Whether a variant that left with this word is wrong, not slow: "gate", "trial" and "quarantined". What is
/// wrong wins and loses nothing; it is to be mended. "compile" and "launch" are limits of a regime.
bool is_defect(std::string_view exit);
/// "failed its gate", "failed its trial", "is quarantined"; else "left with" and the word.
std::string exit_text(std::string_view exit);

/// A variant that left races before it was timed, while its partner of the pair was timed.
struct Fault {
  std::string variant;
  std::string exit;  ///< as VariantDetail::exit; "out" where the record does not state it
  std::string why;   ///< of the newest race that says so
  int races = 0;
  bool of_default = false;  ///< the pair's variant with the default failed, the one with the value ran
};

enum class Measure { error, memory, registers, spills, compile_time, energy };
std::string_view measure_name(Measure measure);

/// What the value takes beside the default in another currency than time; less is better.
struct Cost {
  Measure measure = Measure::error;
  int races = 0;
  double value = 0, beside = 0;  ///< medians over the pairs; energy from a race for energy: ratio and 1
  double log_ratio = 0;          ///< above 0: the value takes more; infinite when the default takes none
  State state = State::open;     ///< wins: takes less; loses: takes more
};

struct RegimeEvidence {
  Regime regime;
  int races = 0;  ///< that timed a pair or saw a fault; those that saw a defect alone are none
  Spread spread;
  State state = State::none;
  std::vector<Context> contexts;  ///< by name
  std::vector<Fault> faults;      ///< losses, of_default wins, of their own kind
  std::vector<Fault> defects;     ///< see is_defect: neither
  std::vector<Cost> costs;
  bool value_faulted() const;
  bool default_faulted() const;
  /// The first defect of the value's side; null: none.
  const Fault* value_defect() const;
};

enum class Verdict { trade_off, bake_in, drop, unproven };
std::string_view verdict_name(Verdict verdict);

/// A regime, or a context of it, that a verdict names.
struct Place {
  std::size_t regime = 0;                  ///< into ValueReport::regimes
  std::string beside;                      ///< not empty: in this context of it
  std::optional<Measure> measure;          ///< set: by this cost, not by its rate
  std::optional<std::size_t> fault;        ///< set: by this fault of the regime
  double estimate = 0, low = 0, high = 0;  ///< of the rate's ratio; unused with measure or fault
};

enum class ClaimState { confirmed, contradicted, open };
std::string_view claim_state_name(ClaimState state);

/// A claim of the program file beside the evidence.
struct ClaimReport {
  lattice::Claim claim;
  ClaimState state = ClaimState::open;  ///< contradicted in one regime is contradicted
  std::vector<std::size_t> confirming, contradicting, undecided;  ///< regimes that meet `where`
  std::vector<std::size_t> unjudged;  ///< regimes whose records do not tell what `where` asks
};

struct ValueReport {
  std::size_t value = 0;  ///< index into the knob's values
  Verdict verdict = Verdict::unproven;
  std::string why;                   ///< one sentence
  std::optional<Place> best, worst;  ///< by rate, a fault last; absent without evidence
  int races = 0;                     ///< distinct races with evidence
  int pairs = 0;
  int races_missing = 0, regimes_missing = 0;  ///< of unproven: at least so many more
  int without_partner = 0;              ///< times that it was raced, and nothing differed in this knob alone
  std::string partner;                  ///< one variant that should have been raced beside it then
  int fell_back = 0;                    ///< times that it or its partner was another kernel than named
  int untimed = 0;                      ///< pairs in which one had no turn or no interval
  std::vector<RegimeEvidence> regimes;  ///< by card, driver and class
  std::vector<ClaimReport> claims;
};

struct KnobReport {
  std::size_t knob = 0;  ///< index into the lattice's knobs
  Verdict verdict = Verdict::unproven;
  std::string summary;              ///< one sentence
  std::vector<ValueReport> values;  ///< all but the default, in order
};

/// A variant of records that is none of this lattice.
struct LostVariant {
  std::string name;
  std::string why;
  int records = 0;
};

struct Report {
  Options options;
  int records = 0;                                              ///< given
  int used = 0;                                                 ///< that held evidence
  int other_program = 0, other_language = 0, other_metric = 0;  ///< skipped
  int repeated = 0;                                             ///< the same record again, skipped
  int other_source = 0;                                         ///< of another text than counts, skipped
  int fallbacks = 0;    ///< variants of records that were another kernel than named; left out of pairs
  int sources = 0;      ///< different texts of the program among those used
  int no_interval = 0;  ///< rates without an interval (the plain rule's), which prove nothing
  std::vector<LostVariant> lost;
  std::vector<KnobReport> knobs;            ///< in the lattice's order
  std::vector<std::string> defects;         ///< variants that are wrong, one sentence a regime
  std::vector<std::string> contradictions;  ///< one sentence each; empty: the records contradict nothing
};

/// Never fails: what cannot be used is counted. Values of knobs that left the lattice are in `lost`.
Report audit(const lattice::Lattice& lattice, std::span<const record::RaceRecord> records,
             const Options& options);

/// For people: per knob its summary and a table of its values, then claims, faults, lost variants and
/// contradictions. Foreign words are shown without control characters.
std::string show_text(const lattice::Lattice& lattice, const Report& report);
/// Everything (docs/formats/audit.md), without `schema`, `program` and `language`.
Json to_json(const lattice::Lattice& lattice, const Report& report);

}  // namespace furlong::audit
