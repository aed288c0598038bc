#include "furlong/race/internal/contest.h"

#include <algorithm>
#include <limits>

#include "furlong/base/text.h"

namespace furlong::race {
namespace {

using stats::Elimination;
using stats::Verdict;

class Contest {
 public:
  explicit Contest(const ContestAsked& asked) : asked_(asked), state_(fresh()) {}
  Result<ContestResult> run();

 private:
  Elimination fresh() const;
  void replay();
  void withdraw_those_out();
  Status heats();
  std::size_t decision() const;

  const ContestAsked& asked_;
  Elimination state_;
  std::vector<stats::Heat> accepted_;
  std::optional<std::string> ended_;
};

/// The fewer knobs are turned, the simpler; then the earlier.
std::vector<int> complexities(const std::vector<Entrant*>& entrants) {
  std::vector<int> list;
  for (std::size_t i = 0; i < entrants.size(); ++i) {
    const auto tags = i == 0 ? std::ptrdiff_t{0} : 1 + std::ranges::count(entrants[i]->name(), '-');
    list.push_back(static_cast<int>(1000 * tags + static_cast<std::ptrdiff_t>(i)));
  }
  return list;
}

Elimination Contest::fresh() const {
  Elimination state(asked_.entrants.size(), asked_.rules, complexities(asked_.entrants));
  for (std::size_t i = 1; i < asked_.entrants.size(); ++i)
    if (!asked_.entrants[i]->in()) state.withdraw(i, asked_.entrants[i]->outcome->why);
  return state;
}

void Contest::replay() {
  state_ = fresh();
  for (stats::Heat heat : accepted_) {
    for (std::size_t i = 0; i < heat.cost.size(); ++i)
      if (state_.states()[i].out) heat.cost[i] = std::numeric_limits<double>::quiet_NaN();
    state_.add(heat);
  }
}

void Contest::withdraw_those_out() {
  for (std::size_t i = 1; i < asked_.entrants.size(); ++i)
    if (!asked_.entrants[i]->in() && !state_.states()[i].out)
      state_.withdraw(i, asked_.entrants[i]->outcome->why);
}

Status Contest::heats() {
  while (state_.verdict() == Verdict::undecided) {
    ended_ = asked_.ended(state_);
    if (ended_) return {};
    FURLONG_TRY(const std::optional<stats::Heat> heat, asked_.take(state_.survivors(), state_));
    withdraw_those_out();
    if (!heat) continue;
    accepted_.push_back(*heat);
    state_.add(*heat);
  }
  return {};
}

std::size_t Contest::decision() const {
  if (ended_) return state_.decide_now();
  return state_.verdict() == Verdict::winner ? state_.leader() : 0;
}

Result<ContestResult> Contest::run() {
  for (;;) {
    FURLONG_CHECK(heats());
    const std::size_t winner = decision();
    if (winner != 0) {
      FURLONG_TRY(const bool passed, asked_.second_gate(*asked_.entrants[winner]));
      if (!passed) {
        replay();
        continue;
      }
    }
    ContestResult result;
    result.verdict = ended_ ? Verdict::out_of_budget : state_.verdict();
    result.winner = winner;
    result.states = state_.states();
    result.heats = state_.heats();
    result.why_ended = ended_.value_or("");
    for (stats::VariantState& state : result.states) {
      if (state.beaten_by == 0) continue;
      const std::string& by = asked_.entrants[state.beaten_by]->name();
      state.why_out = replace_all(replace_all(state.why_out, "the leader", by), "the winner", by);
    }
    return result;
  }
}

}  // namespace

Result<ContestResult> run_contest(const ContestAsked& asked) { return Contest(asked).run(); }

}  // namespace furlong::race
