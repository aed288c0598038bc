#pragma once
// Heats until decided: the loop around stats::Elimination, whatever is measured (time or energy).

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "furlong/race/internal/entrant.h"
#include "furlong/stats/elimination.h"

namespace furlong::race {

struct ContestAsked {
  std::vector<Entrant*> entrants;  ///< base first; a variant's place is its index in what the callbacks get
  stats::RaceRules rules;
  /// One heat of these places (base among them). nullopt: it was dropped. A variant that failed in it is out
  /// afterwards (Entrant::in).
  std::function<Result<std::optional<stats::Heat>>(const std::vector<std::size_t>& places,
                                                   const stats::Elimination& state)>
      take;
  /// Before each heat: why the contest must end undecided, or nothing.
  std::function<std::optional<std::string>(const stats::Elimination& state)> ended;
  /// Whether the winner passes its second gate; if not it is out afterwards and the contest goes on without
  /// it.
  std::function<Result<bool>(Entrant&)> second_gate;
};

struct ContestResult {
  stats::Verdict verdict = stats::Verdict::undecided;  ///< out_of_budget: ended by ContestAsked::ended
  std::size_t winner = 0;                              ///< place
  std::vector<stats::VariantState> states;
  std::size_t heats = 0;
  std::string why_ended;  ///< for out_of_budget
};

/// Deterministic given the callbacks. When a winner fails its second gate the accepted heats are played again
/// without it: who was out only because of it comes back in.
Result<ContestResult> run_contest(const ContestAsked& asked);

}  // namespace furlong::race
