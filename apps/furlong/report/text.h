#pragma once
// What a race shows on a terminal: the progress line while it runs, the table, the explanation.

#include <cstddef>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "furlong/race/race.h"

namespace furlong::app {

/// "118.3", with enough digits for 4 significant ones; "2.087e9" from a million on.
std::string rate_text(const program::WorkSpec& work, double units_per_second);

/// How variant i stands: "winner", "best so far" (the budget ended the race), "in", "not timed", "no time"
/// (the budget had none for it), or why it is out in a word or two.
std::string standing(const race::Outcome& outcome, std::size_t i);

/// Indices of all variants, the largest gain over base first, those without a rate last. By gain and not by
/// rate: gains are centred over paired heats as the decision is, while a rate is a median and may put near
/// equals in another order.
std::vector<std::size_t> by_gain(const race::Outcome& outcome);

/// "+2.10%" over base; empty for base itself and for a variant without a gain (in a race for energy all but
/// the finalists).
std::string gain_text(const race::Outcome& outcome, std::size_t i);

/// Whether any variant has the figure: else its column is left out.
bool any_known(const race::Outcome& outcome, std::optional<double> race::VariantOutcome::* figure);
/// "97.2%", or empty.
std::string share_text(const std::optional<double>& share, int decimals = 1);
/// "ceiling: 310.2 MH/s by random 4-byte loads", or empty where it is not known.
std::string ceiling_line(const program::Instance& instance, const race::Outcome& outcome);

/// What to do when the budget was too short for an answer; empty when it was not.
std::string budget_hint(const race::Outcome& outcome);

/// The table, the decision below it, in full whatever reason the table cuts, and what to do when the budget
/// ended the race.
std::string race_table(const program::Instance& instance, const race::Outcome& outcome);

/// The variants that are not dominated, with the figures by which they are not.
std::string pareto_table(const program::Instance& instance, const race::Outcome& outcome);

/// One line that is redrawn on a terminal; a line per phase elsewhere. Not thread safe.
class ProgressLine {
 public:
  explicit ProgressLine(std::FILE* out, bool enabled);
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  void show(const race::Progress& progress);
  /// Removes the line, so that a table can follow.
  void clear();

 private:
  void write(const std::string& text);

  std::FILE* out_;
  bool enabled_;
  bool terminal_;
  bool drawn_ = false;
  int last_phase_ = -1;
};

}  // namespace furlong::app
