#include "furlong/shard/executor/metamath/make_store.h"

#include <algorithm>
#include <map>
#include <set>

#include "furlong/base/os/clock.h"
#include "furlong/shard/executor/metamath/internal/items.h"
#include "furlong/shard/executor/metamath/proof.h"

namespace furlong::shard::metamath {
namespace {

constexpr std::uint32_t kNone = 0xffffffffu;

class Maker {
 public:
  Maker(const Database& database, UnitSink& sink)
      : database_(database),
        sink_(sink),
        keys_(database.assertions().size()),
        local_(database.symbols().size(), kNone),
        rule_(database.assertions().size(), kNone),
        step_of_(database.hypotheses().size(), kNone) {}

  Result<StoreSummary> make(const Progress& progress, const std::stop_token& stop) {
    FURLONG_CHECK(axioms());
    const auto& assertions = database_.assertions();
    for (std::uint32_t i = 0; i < assertions.size(); ++i) {
      if (!assertions[i].theorem) continue;
      if (summary_.proofs % 1024 == 0) {
        if (stop.stop_requested())
          return fail(Code::timeout, "stopped after {} of {} theorems", summary_.proofs,
                      database_.theorem_count());
        tell(progress);
      }
      FURLONG_CHECK_DOING(theorem(i), "making the unit of {}", assertions[i].label);
      ++summary_.proofs;
    }
    tell(progress);
    return summary_;
  }

 private:
  void tell(const Progress& progress) const {
    if (!progress) return;
    ProgressState state{.step = "store", .done = summary_.proofs, .total = database_.theorem_count()};
    const double seconds = static_cast<double>(system_clock().now_ns() - begin_ns_) * 1e-9;
    if (seconds > 0) state.rate = static_cast<double>(state.done) / seconds;
    if (state.rate > 0) state.seconds_left = static_cast<double>(state.total - state.done) / state.rate;
    progress(state);
  }

  /// The item's key, and whether it is new.
  Result<std::pair<Key, bool>> add(const Bytes& bytes, bool shared) {
    FURLONG_TRY(const Key key, sink_.add_item(bytes, shared));
    const bool fresh = known_.insert(key).second;
    if (fresh) {
      ++summary_.items;
      summary_.item_bytes += bytes.size();
    }
    return std::pair{key, fresh};
  }

  // Before all theorems, also those that stand later in the text: what was proved first and then stated as an
  // axiom is owned by this unit.
  Status axioms() {
    std::vector<Key> items;
    for (std::uint32_t i = 0; i < keys_.size(); ++i) {
      if (database_.assertions()[i].theorem) continue;
      FURLONG_TRY(const auto made, add(encode(statement(database_.assertions()[i])), true));
      keys_[i] = made.first;
      if (made.second) items.push_back(made.first);
      ++summary_.axioms;
    }
    if (items.empty()) return {};
    ++summary_.units;
    return sink_.add_unit(std::string(kAxiomsUnit), std::move(items), {});
  }

  StatementItem statement(const Assertion& assertion) {
    StatementItem item;
    numbered_.clear();
    const auto number = [&](Range expression) {
      std::vector<std::uint32_t> out;
      out.reserve(expression.count);
      for (const Symbol symbol : database_.expression(expression)) {
        if (local_[symbol] == kNone) {
          local_[symbol] = static_cast<std::uint32_t>(numbered_.size());
          numbered_.push_back(symbol);
          const SymbolInfo& info = database_.symbols()[symbol];
          item.symbols.push_back({info.variable, info.name});
        }
        out.push_back(local_[symbol]);
      }
      return out;
    };
    for (const std::uint32_t index : database_.hypotheses_of(assertion)) {
      const Hypothesis& hypothesis = database_.hypotheses()[index];
      item.hypotheses.push_back({hypothesis.essential, number(hypothesis.expression)});
    }
    item.conclusion = number(assertion.conclusion);
    for (const Distinct pair : database_.distinct_of(assertion))
      item.distinct.push_back(ordered(local_[pair.first], local_[pair.second]));
    std::sort(item.distinct.begin(), item.distinct.end());
    for (const Symbol symbol : numbered_) local_[symbol] = kNone;
    return item;
  }

  static StatementItem::Pair ordered(std::uint32_t a, std::uint32_t b) {
    return {std::min(a, b), std::max(a, b)};
  }

  Status theorem(std::uint32_t index) {
    const Assertion& theorem = database_.assertions()[index];
    FURLONG_CHECK(decode_proof(database_, theorem, steps_));
    FURLONG_TRY(const auto stated, add(encode(statement(theorem)), true));
    keys_[index] = stated.first;

    ProofItem item = proof(theorem);
    item.statement = stated.first;
    Bytes bytes = encode(item);
    // Equal to the last byte: a unit must own something, so the copies are counted.
    while (known_.contains(blake2b_256(bytes))) {
      ++item.copy;
      bytes = encode(item);
    }
    FURLONG_TRY(const auto proved, add(bytes, false));

    std::vector<Key> items;
    std::vector<Key> references = item.rules;
    if (stated.second) {
      items.push_back(stated.first);
    } else {
      references.push_back(stated.first);
      ++summary_.restated;
    }
    items.push_back(proved.first);
    std::sort(references.begin(), references.end());
    references.erase(std::unique(references.begin(), references.end()), references.end());
    ++summary_.units;
    return sink_.add_unit(std::string(theorem.label), std::move(items), std::move(references));
  }

  /// From steps_. Two rules with one content are one rule.
  ProofItem proof(const Assertion& theorem) {
    ProofItem item;
    const auto mandatory = database_.hypotheses_of(theorem);
    std::uint32_t number = 0;
    for (const std::uint32_t hypothesis : mandatory) step_of_[hypothesis] = number++;

    std::vector<std::uint32_t> optional, used;
    std::map<Key, std::uint32_t> rules;
    for (const ProofStep step : steps_) {
      if (step.kind == StepKind::hypothesis && step_of_[step.value] == kNone) {
        step_of_[step.value] = number++;
        optional.push_back(step.value);
        const Hypothesis& hypothesis = database_.hypotheses()[step.value];
        const Expression expression = database_.expression(hypothesis.expression);
        item.optional.push_back(
            {database_.symbols()[expression[0]].name, database_.symbols()[expression[1]].name});
      } else if (step.kind == StepKind::assertion && rule_[step.value] == kNone) {
        const auto [at, fresh] = rules.insert({keys_[step.value], static_cast<std::uint32_t>(rules.size())});
        if (fresh) item.rules.push_back(keys_[step.value]);
        rule_[step.value] = at->second;
        used.push_back(step.value);
      }
    }
    number_steps(item, number);
    keep_distinct(theorem, mandatory, optional, item);

    for (const std::uint32_t hypothesis : mandatory) step_of_[hypothesis] = kNone;
    for (const std::uint32_t hypothesis : optional) step_of_[hypothesis] = kNone;
    for (const std::uint32_t assertion : used) rule_[assertion] = kNone;
    return item;
  }

  /// Results that are saved but never recalled are not saved.
  void number_steps(ProofItem& item, std::uint32_t hypotheses) {
    std::vector<std::uint8_t> recalled;
    for (const ProofStep step : steps_) {
      if (step.kind == StepKind::save) recalled.push_back(0);
      if (step.kind == StepKind::recall) recalled[step.value] = 1;
    }
    std::vector<std::uint64_t> renumbered(recalled.size());
    std::uint64_t kept = kFirstStep + hypotheses + item.rules.size();
    for (std::size_t i = 0; i < recalled.size(); ++i) renumbered[i] = recalled[i] != 0 ? kept++ : 0;
    std::size_t saved = 0;
    for (const ProofStep step : steps_) {
      switch (step.kind) {
        case StepKind::hypothesis:
          item.steps.push_back(kFirstStep + step_of_[step.value]);
          break;
        case StepKind::assertion:
          item.steps.push_back(kFirstStep + hypotheses + rule_[step.value]);
          break;
        case StepKind::recall:
          item.steps.push_back(renumbered[step.value]);
          break;
        case StepKind::save:
          if (recalled[saved++] != 0) item.steps.push_back(kStepSave);
          break;
        case StepKind::unknown:
          item.steps.push_back(kStepUnknown);
          break;
      }
    }
  }

  void keep_distinct(const Assertion& theorem, std::span<const std::uint32_t> mandatory,
                     const std::vector<std::uint32_t>& optional, ProofItem& item) {
    if (optional.empty()) return;
    numbered_.clear();
    const auto number = [&](std::uint32_t index) {
      const Hypothesis& hypothesis = database_.hypotheses()[index];
      if (hypothesis.essential) return;
      local_[hypothesis.variable] = static_cast<std::uint32_t>(numbered_.size());
      numbered_.push_back(hypothesis.variable);
    };
    for (const std::uint32_t index : mandatory) number(index);
    const std::size_t floating = numbered_.size();
    for (const std::uint32_t index : optional) number(index);
    database_.all_distinct(theorem, pairs_);
    for (const Distinct pair : pairs_) {
      const std::uint32_t a = local_[pair.first], b = local_[pair.second];
      if (a != kNone && b != kNone && std::max(a, b) >= floating) item.distinct.push_back(ordered(a, b));
    }
    std::sort(item.distinct.begin(), item.distinct.end());
    for (const Symbol symbol : numbered_) local_[symbol] = kNone;
  }

  const Database& database_;
  UnitSink& sink_;
  StoreSummary summary_;
  const std::int64_t begin_ns_ = system_clock().now_ns();
  std::vector<Key> keys_;  // per assertion: its statement
  std::set<Key> known_;
  // Scratch, all kNone between uses: per symbol, assertion and hypothesis.
  std::vector<std::uint32_t> local_, rule_, step_of_;
  std::vector<Symbol> numbered_;
  std::vector<ProofStep> steps_;
  std::vector<Distinct> pairs_;
};

}  // namespace

Result<StoreSummary> make_units(const Database& database, UnitSink& sink, const Progress& progress,
                                std::stop_token stop) {
  return Maker(database, sink).make(progress, stop);
}

}  // namespace furlong::shard::metamath
