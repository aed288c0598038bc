#include "furlong/shard/executor/metamath/verify.h"

#include <algorithm>
#include <cstring>

#include "furlong/shard/executor/metamath/proof.h"

namespace furlong::shard::metamath {
namespace {

/// A stretch of the arena; offsets, since the arena may move when it grows.
struct Entry {
  std::uint32_t begin = 0, count = 0;
};

class Verifier {
 public:
  Verifier(const Database& database, std::uint64_t max_symbols)
      : database_(database),
        max_symbols_(std::min<std::uint64_t>(max_symbols, 0xffffffffu)),
        bound_(database.symbols().size()),
        seen_(database.symbols().size()) {
    is_variable_.reserve(database.symbols().size());
    for (const SymbolInfo& symbol : database.symbols()) is_variable_.push_back(symbol.variable ? 1 : 0);
  }

  /// False in `proved` for a proof that has a "?".
  Status verify(const Assertion& theorem, bool& proved) {
    theorem_ = &theorem;
    distinct_known_ = false;
    used_ = 0;
    stack_.clear();
    saved_.clear();
    number_ = 0;
    FURLONG_CHECK(decode_proof(database_, theorem, steps_));
    for (const ProofStep step : steps_) {
      if (step.kind != StepKind::save) ++number_;
      switch (step.kind) {
        case StepKind::hypothesis: {
          FURLONG_CHECK(push(database_.expression(database_.hypotheses()[step.value].expression)));
          break;
        }
        case StepKind::assertion:
          FURLONG_CHECK(apply(database_.assertions()[step.value]));
          break;
        case StepKind::recall:
          stack_.push_back(saved_[step.value]);
          break;
        case StepKind::save:
          saved_.push_back(stack_.back());
          break;
        case StepKind::unknown:
          proved = false;
          return {};
      }
    }
    if (stack_.size() != 1)
      return wrong(fmt::format("the proof ends with {} entries on the stack, not 1", stack_.size()));
    if (!std::ranges::equal(view(stack_.back()), database_.expression(theorem.conclusion)))
      return wrong(fmt::format("the proof proves '{}', not what is stated", text(view(stack_.back()))));
    proved = true;
    return {};
  }

  std::uint64_t steps() const { return number_; }

 private:
  Expression view(Entry entry) const { return {arena_.data() + entry.begin, entry.count}; }

  Error wrong(std::string message) const {
    return fail(Code::mismatch, "{}: {}: {}", database_.at(theorem_->place), theorem_->label, message);
  }
  Error wrong(const Assertion& used, std::string message) const {
    return wrong(fmt::format("step {}, {}: {}", number_, used.label, message));
  }

  /// At most the first symbols of a long one.
  std::string text(Expression expression) const {
    std::string out;
    for (const Symbol symbol : expression.first(std::min<std::size_t>(expression.size(), 60))) {
      if (!out.empty()) out += ' ';
      out += database_.symbols()[symbol].name;
    }
    if (expression.size() > 60) out += " …";
    return out;
  }

  Status reserve(std::uint64_t count) {
    if (used_ + count > max_symbols_)
      return fail(Code::exhausted, "{}: {}: the expressions of the proof have over {} symbols",
                  database_.at(theorem_->place), theorem_->label, max_symbols_);
    if (used_ + count > arena_.size())
      arena_.resize(
          std::max<std::size_t>(used_ + count, std::min<std::uint64_t>(max_symbols_, arena_.size() * 2)));
    return {};
  }

  Status push(Expression expression) {
    FURLONG_CHECK(reserve(expression.size()));
    std::copy(expression.begin(), expression.end(), arena_.begin() + used_);
    stack_.push_back({used_, static_cast<std::uint32_t>(expression.size())});
    used_ += static_cast<std::uint32_t>(expression.size());
    return {};
  }

  Status apply(const Assertion& rule) {
    const auto hypotheses = database_.hypotheses_of(rule);
    if (stack_.size() < hypotheses.size())
      return wrong(rule, fmt::format("it takes {} hypotheses, the stack has {} entries", hypotheses.size(),
                                     stack_.size()));
    const Entry* const given = stack_.data() + (stack_.size() - hypotheses.size());
    for (std::size_t i = 0; i < hypotheses.size(); ++i) {
      const Hypothesis& hypothesis = database_.hypotheses()[hypotheses[i]];
      if (hypothesis.essential) continue;
      if (arena_[given[i].begin] != database_.expression(hypothesis.expression)[0])
        return wrong(rule, fmt::format("'{}' is given for the hypothesis {} ('{}')", text(view(given[i])),
                                       hypothesis.label, text(database_.expression(hypothesis.expression))));
      bound_[hypothesis.variable] = {given[i].begin + 1, given[i].count - 1};
    }
    for (std::size_t i = 0; i < hypotheses.size(); ++i) {
      const Hypothesis& hypothesis = database_.hypotheses()[hypotheses[i]];
      if (hypothesis.essential && !instance(database_.expression(hypothesis.expression), given[i]))
        return wrong(rule,
                     fmt::format("'{}' is given for the hypothesis {} ('{}'), which it is no instance of",
                                 text(view(given[i])), hypothesis.label,
                                 text(database_.expression(hypothesis.expression))));
    }
    for (const Distinct pair : database_.distinct_of(rule)) FURLONG_CHECK(keep_distinct(rule, pair));
    return conclude(rule, hypotheses.size());
  }

  /// Whether the entry is the pattern under the substitution at hand.
  bool instance(Expression pattern, Entry entry) const {
    const Symbol* at = arena_.data() + entry.begin;
    std::size_t left = entry.count;
    for (const Symbol symbol : pattern) {
      if (is_variable_[symbol] != 0) {
        const Entry value = bound_[symbol];
        if (left < value.count ||
            std::memcmp(at, arena_.data() + value.begin, value.count * sizeof(Symbol)) != 0)
          return false;
        at += value.count;
        left -= value.count;
      } else {
        if (left == 0 || *at != symbol) return false;
        ++at;
        --left;
      }
    }
    return left == 0;
  }

  Status conclude(const Assertion& rule, std::size_t taken) {
    const Expression pattern = database_.expression(rule.conclusion);
    std::uint64_t count = 0;
    for (const Symbol symbol : pattern) count += is_variable_[symbol] != 0 ? bound_[symbol].count : 1;
    FURLONG_CHECK(reserve(count));
    Symbol* to = arena_.data() + used_;
    for (const Symbol symbol : pattern) {
      if (is_variable_[symbol] == 0) {
        *to++ = symbol;
        continue;
      }
      const Entry value = bound_[symbol];
      const Symbol* const from = arena_.data() + value.begin;
      for (std::uint32_t i = 0; i < value.count; ++i) to[i] = from[i];  // mostly short: no call
      to += value.count;
    }
    stack_.resize(stack_.size() - taken);
    stack_.push_back({used_, static_cast<std::uint32_t>(count)});
    used_ += static_cast<std::uint32_t>(count);
    return {};
  }

  void variables_of(Symbol variable, std::vector<Symbol>& into) {
    into.clear();
    ++stamp_;
    for (const Symbol symbol : view(bound_[variable])) {
      if (is_variable_[symbol] == 0 || seen_[symbol] == stamp_) continue;
      seen_[symbol] = stamp_;
      into.push_back(symbol);
    }
  }

  Status keep_distinct(const Assertion& rule, Distinct pair) {
    variables_of(pair.first, left_);
    if (left_.empty()) return {};
    variables_of(pair.second, right_);
    for (const Symbol a : left_)
      for (const Symbol b : right_) {
        if (a == b)
          return wrong(rule, fmt::format("{} and {} must be distinct, but both are given '{}'",
                                         name(pair.first), name(pair.second), name(a)));
        if (!distinct({std::min(a, b), std::max(a, b)}))
          return wrong(rule, fmt::format("{} and {} must be distinct, but no $d says so of {} and {}",
                                         name(pair.first), name(pair.second), name(a), name(b)));
      }
    return {};
  }

  bool distinct(Distinct pair) {
    if (!distinct_known_) {
      database_.all_distinct(*theorem_, distinct_);
      distinct_known_ = true;
    }
    return std::binary_search(distinct_.begin(), distinct_.end(), pair);
  }

  std::string_view name(Symbol symbol) const { return database_.symbols()[symbol].name; }

  const Database& database_;
  std::uint64_t max_symbols_;
  const Assertion* theorem_ = nullptr;
  std::vector<std::uint8_t> is_variable_;
  std::vector<ProofStep> steps_;
  std::vector<Symbol> arena_;
  std::uint32_t used_ = 0;
  std::vector<Entry> stack_, saved_;
  std::vector<Entry> bound_;  // per variable, the type left out
  std::uint64_t number_ = 0;
  std::vector<Distinct> distinct_;
  bool distinct_known_ = false;
  std::vector<std::uint32_t> seen_;
  std::uint32_t stamp_ = 0;
  std::vector<Symbol> left_, right_;
};

}  // namespace

Result<VerifyReport> verify_database(const Database& database, const VerifyDatabaseOptions& options) {
  Verifier verifier(database, options.max_symbols);
  VerifyReport report;
  report.axioms = database.axiom_count();
  for (const Assertion& assertion : database.assertions()) {
    if (!assertion.theorem) continue;
    if (report.proofs % 1024 == 0) {
      if (options.stop.stop_requested())
        return fail(Code::timeout, "stopped after {} of {} proofs", report.proofs, database.theorem_count());
      if (options.progress) options.progress(report.proofs, database.theorem_count());
    }
    ++report.proofs;
    bool proved = false;
    Status status = verifier.verify(assertion, proved);
    report.steps += verifier.steps();
    if (!status) {
      report.unproved.push_back({std::string(assertion.label), std::move(status).error()});
    } else if (!proved) {
      report.unproved.push_back({std::string(assertion.label),
                                 fail(Code::mismatch, "{}: {}: the proof is not finished: step {} is '?'",
                                      database.at(assertion.place), assertion.label, verifier.steps()),
                                 true});
    }
  }
  if (options.progress) options.progress(report.proofs, database.theorem_count());
  return report;
}

}  // namespace furlong::shard::metamath
