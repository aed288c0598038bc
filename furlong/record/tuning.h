#pragma once
// The tuning file: per card model, the variant to use or the order to race in (docs/formats/tuning.md). The
// fleet writes it, the worker reads it at every prepare. Value types; pure functions, safe from any thread.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "furlong/base/error.h"
#include "furlong/base/json_fwd.h"
#include "furlong/record/record.h"

namespace furlong::record {

inline constexpr int tuning_schema = 1;

/// What one race found at one problem size. Gains are over base in percent.
struct TuningSize {
  ProgramClass problem;  ///< the parameters and their values; never empty
  std::string variant;   ///< the winner; "base" where nothing beat it
  std::optional<double> rate, base_rate;
  std::vector<std::pair<std::string, double>> gains_pct;  ///< of every variant that was timed, by name
  std::string extra;                                      ///< unknown keys, kept as in RaceRecord
  bool operator==(const TuningSize&) const = default;
};

/// What a card does for one program, or for one class of it.
struct TuningRow {
  std::string program = "lottery";
  ProgramClass program_class;                ///< empty: any class
  std::string variant;                       ///< the winner; empty only where `race` is true
  bool race = true;                          ///< false: build and gate `variant`, time nothing
  std::vector<std::string> candidates;       ///< to race first, best first
  int samples = 0, races = 0, machines = 0;  ///< the evidence
  std::optional<double> rate, base_rate;     ///< in the program's unit
  std::optional<double> gain_pct;
  std::optional<double> rate_per_w;
  std::string backend;     ///< `worker` in the file
  std::string by;          ///< "mhs", "mhw", "rate", "energy"
  int race_every_n = 20;   ///< of a pinned row: one prepare in so many races all the same; 0: none does
  std::string min_driver;  ///< the row holds from this driver on; empty: always
  std::string source;      ///< hash of the program that was raced (Program::source_hash); empty: not stated
  std::vector<TuningSize> sizes;  ///< the winners by problem size, none twice; may be empty
  std::string extra;              ///< unknown keys, kept as in RaceRecord
  bool operator==(const TuningRow&) const = default;
};

struct TuningCard {
  std::string key;  ///< label, or `LABEL@<silicon hash>`
  std::optional<Silicon> silicon;
  std::vector<std::string> aliases;  ///< other labels that drivers give the same silicon
  std::vector<TuningRow> rows;       ///< at most one a program and class
  std::string extra;
  bool operator==(const TuningCard&) const = default;
};

struct Tuning {
  std::string updated;  ///< time of the newest record in it, "2026-03-01T12:00:00Z"; may be empty
  int window_days = 0;  ///< 0: not stated
  std::vector<TuningCard> cards;
  std::string extra;
  bool operator==(const Tuning&) const = default;
};

/// `invalid` names `name` and the key; `incompatible` another schema. Two rows for one program and class of a
/// card, a row that says `race: false` and names no variant, two sizes of one problem, and an empty variant
/// name are `invalid`.
Result<Tuning> tuning_from_json(const Json& object, std::string_view name);
Result<Tuning> parse_tuning(std::string_view text, std::string_view name);
/// Cards by key, rows by program and class: the same content gives the same JSON, whatever the order it was
/// put in.
Json tuning_to_json(const Tuning& tuning);
/// The file's bytes: tuning_to_json, indented, newline at the end.
std::string print(const Tuning& tuning);

/// Replaces the rows of `tuning` that `with` has too (same card, program and class) and adds the others. A
/// card is the same by key, else by silicon.
void apply_override(Tuning& tuning, const Tuning& with);

/// What a worker knows of itself when it asks.
struct TuningQuery {
  Silicon silicon;
  std::string label;
  std::string program = "lottery";
  ProgramClass program_class;
  std::string driver;
};
/// `card` and `row` point into the tuning; both nullptr: there is no entry.
struct TuningMatch {
  const TuningCard* card = nullptr;
  const TuningRow* row = nullptr;
  std::string how;  ///< by what the card was found: "silicon", "key", "alias", "label"
  std::string
      note;  ///< why a nearer entry was passed over ("needs driver 580.10, this is 570.86"); may be empty
};
/// Cards are tried by silicon, then by the key `LABEL@hash`, by alias, by label; an entry that states another
/// silicon never matches by name. Within a card the row whose class has the most features wins; a row without
/// a class holds for every class. Rows whose min_driver is newer than the query's driver are passed over.
TuningMatch find_tuning(const Tuning& tuning, const TuningQuery& query);

/// By what `card` is the query's card: "silicon", "key", "alias", "label"; empty when it is not.
std::string_view card_way(const TuningCard& card, const TuningQuery& query);

/// Whether a worker races at its `prepare`-th prepare (counted from 1): always when the row says so, else one
/// time in race_every_n.
bool races_now(const TuningRow& row, std::uint64_t prepare);
/// Negative, 0, positive: `a` is older than, as old as, newer than `b`. Numbers between dots are compared one
/// by one
/// ("580.9" is older than "580.10"); what follows the first part that is no number does not count.
int compare_drivers(std::string_view a, std::string_view b);

}  // namespace furlong::record
