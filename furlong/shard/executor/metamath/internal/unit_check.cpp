#include "furlong/shard/executor/metamath/internal/unit_check.h"

#include <algorithm>
#include <cstring>

namespace furlong::shard::metamath {

Error UnitCheck::wrong(std::string message) const {
  return fail(Code::mismatch, "{}: {}", unit_.name, message);
}

Error UnitCheck::wrong_step(Row statement, std::string message) const {
  return fail(Code::mismatch, "{}: step {}, which uses the statement {}: {}", unit_.name, number_,
              tables_.keys[statement].brief(), message);
}

std::string UnitCheck::text(Row expression) const {
  constexpr std::uint32_t kMost = 60;
  std::string out;
  const Row* const cells = tables_.cells_of(expression);
  const std::uint32_t length = tables_.expressions[expression].length;
  for (std::uint32_t i = 0; i < std::min(length, kMost); ++i) {
    if (i > 0) out += ' ';
    out += name(cells[i]);
  }
  return length > kMost ? out + " …" : out;
}

Status UnitCheck::stopped() {
  if (!record_.stop_.stop_requested()) return {};
  return fail(Code::timeout, "stopped in {}", unit_.name);
}

Result<std::uint32_t> UnitCheck::run() {
  FURLONG_CHECK(stopped());
  if (unit_.items.empty()) return wrong("the unit owns nothing");
  FURLONG_TRY(const ByteView last, read(unit_.items.back()));
  if (last.empty() || last[0] != kProofItem) {
    FURLONG_CHECK(axioms());
    return kNoRow;
  }
  if (unit_.items.size() > 2) return wrong("a theorem owns a statement and a proof, and nothing more");
  return theorem(unit_.items.back());
}

std::vector<Key> UnitCheck::touched() {
  std::sort(touched_.begin(), touched_.end());
  touched_.erase(std::unique(touched_.begin(), touched_.end()), touched_.end());
  return std::move(touched_);
}

Result<ByteView> UnitCheck::read(const Key& key) {
  touched_.push_back(key);
  return items_.item(key);
}

Result<UnitCheck::Row> UnitCheck::statement(const Key& key) {
  touched_.push_back(key);
  const Row known = tables_.statement_index.find(load_le<std::uint64_t>(key.bytes.data()),
                                                 [&](Row row) { return tables_.keys[row] == key; });
  if (known != kNoRow) return known;
  FURLONG_TRY(const ByteView bytes, items_.item(key));
  auto item = decode_statement(bytes);
  if (!item) return wrong(fmt::format("the statement item {}: {}", key.brief(), item.error().message()));
  return add_statement(key, *item);
}

Status UnitCheck::axioms() {
  if (!unit_.references.empty()) return wrong("a unit of axioms refers to something");
  for (const Key& key : unit_.items) FURLONG_CHECK(statement(key));
  meter_.count("axioms", static_cast<double>(unit_.items.size()));
  return {};
}

Result<UnitCheck::Row> UnitCheck::theorem(const Key& proof) {
  FURLONG_TRY(const ByteView bytes, read(proof));
  auto item = decode_proof_item(bytes);
  if (!item) return wrong(fmt::format("the proof item {}: {}", proof.brief(), item.error().message()));
  FURLONG_CHECK(check_references(*item));
  FURLONG_TRY(const Row stated, statement(item->statement));
  FURLONG_CHECK(declare(*item, stated));
  FURLONG_TRY(const Row row, execute(*item, stated));
  meter_.count("theorems", 1);
  meter_.count("proof_steps", static_cast<double>(item->steps.size()));
  return row;
}

// The references must be exactly what is used, so that one proof makes one unit and one frontier.
Status UnitCheck::check_references(const ProofItem& item) const {
  std::vector<Key> needed = item.rules;
  std::sort(needed.begin(), needed.end());
  if (std::adjacent_find(needed.begin(), needed.end()) != needed.end()) return wrong("a rule twice");
  if (unit_.items.size() == 2) {
    if (unit_.items[0] != item.statement) return wrong("the proof is of another statement");
    if (std::binary_search(needed.begin(), needed.end(), item.statement))
      return wrong("the proof uses what it proves");
  } else if (!std::binary_search(needed.begin(), needed.end(), item.statement)) {
    needed.insert(std::lower_bound(needed.begin(), needed.end(), item.statement), item.statement);
  }
  if (needed != unit_.references) return wrong("the references are not what the proof uses");
  return {};
}

Status UnitCheck::declare(const ProofItem& item, Row stated) {
  std::vector<Row> variables;  // as pairs of the proof number them
  const Tables::Statement& statement = tables_.statements[stated];
  for (Row i = 0; i < statement.hypothesis_count; ++i) {
    const Row variable = tables_.hypotheses[statement.hypotheses + i].variable;
    if (variable != kNoRow) variables.push_back(variable);
  }
  const std::size_t mandatory = variables.size();
  for (const auto& optional : item.optional) {
    FURLONG_TRY(const Row type, symbol(optional.type, kNoRow));
    FURLONG_TRY(const Row variable, symbol(optional.name, type));
    if (std::find(variables.begin(), variables.end(), variable) != variables.end())
      return wrong(fmt::format("the variable '{}' twice", optional.name));
    variables.push_back(variable);
  }
  distinct_.clear();
  for (Row i = 0; i < statement.distinct_count; ++i)
    distinct_.push_back(tables_.distinct[statement.distinct + i]);
  for (const auto& pair : item.distinct) {
    if (pair.second >= variables.size() || pair.second < mandatory)
      return wrong("a pair of distinct variables without an optional one");
    const Row a = variables[pair.first], b = variables[pair.second];
    distinct_.push_back({std::min(a, b), std::max(a, b)});
  }
  std::sort(distinct_.begin(), distinct_.end());
  optional_.assign(variables.begin() + static_cast<std::ptrdiff_t>(mandatory), variables.end());
  return {};
}

Result<UnitCheck::Row> UnitCheck::execute(const ProofItem& item, Row stated) {
  rules_.clear();
  for (const Key& key : item.rules) {
    FURLONG_TRY(const Row rule, statement(key));
    rules_.push_back(rule);
  }
  const Tables::Statement goal = tables_.statements[stated];
  const std::vector<Row>& optional = optional_;
  const std::uint64_t first_optional = kFirstStep + goal.hypothesis_count;
  const std::uint64_t first_rule = first_optional + optional.size();
  const std::uint64_t first_saved = first_rule + rules_.size();
  std::vector<std::uint8_t> used(first_saved, 0);
  for (const std::uint64_t code : item.steps) {
    if (++number_ % 4096 == 0) FURLONG_CHECK(stopped());
    if (code < first_saved) used[code] = 1;
    if (code == kStepUnknown) return wrong(fmt::format("the proof is not finished: step {} is '?'", number_));
    if (code == kStepSave) {
      if (stack_.empty()) return wrong(fmt::format("step {} saves a result where there is none", number_));
      saved_.push_back(stack_.back());
    } else if (code < first_optional) {
      const Tables::Hypothesis given = tables_.hypotheses[goal.hypotheses + (code - kFirstStep)];
      const Row rule = given.variable == kNoRow ? Tables::kEssentialRule : Tables::kFloatingRule;
      FURLONG_TRY(const Row row, hypothesis(rule, given.expression));
      stack_.push_back(row);
    } else if (code < first_rule) {
      const Row variable = optional[code - first_optional];
      const Row cells[] = {tables_.symbols[variable].type, variable};
      FURLONG_TRY(const Row floating, expression(cells));
      FURLONG_TRY(const Row row, hypothesis(Tables::kFloatingRule, floating));
      stack_.push_back(row);
    } else if (code < first_saved) {
      FURLONG_TRY(const Row row, apply(rules_[code - first_rule]));
      stack_.push_back(row);
    } else if (code - first_saved < saved_.size()) {
      stack_.push_back(saved_[code - first_saved]);
    } else {
      return wrong(fmt::format("step {} recalls what was not saved", number_));
    }
  }
  if (stack_.size() != 1)
    return wrong(fmt::format("the proof ends with {} entries on the stack, not 1", stack_.size()));
  const Row result = tables_.steps[stack_.back()].result;
  if (result != goal.conclusion)
    return wrong(fmt::format("the proof proves '{}', not '{}'", text(result), text(goal.conclusion)));
  for (std::uint64_t code = first_optional; code < first_saved; ++code)
    if (used[code] == 0) return wrong("the proof lists a variable or a rule that it does not use");
  return stack_.back();
}

Result<UnitCheck::Row> UnitCheck::hypothesis(Row rule, Row expression) {
  const std::span<const Row> parents(&expression, 1);
  const std::uint64_t hash = step_hash(rule, parents);
  const Row known = find_step(rule, parents, hash);
  if (known != kNoRow) return known;
  found_conditions_.clear();
  return step(rule, parents, expression, hash);
}

Result<UnitCheck::Row> UnitCheck::apply(Row statement) {
  const Tables::Statement rule = tables_.statements[statement];
  if (stack_.size() < rule.hypothesis_count)
    return wrong_step(statement, fmt::format("it takes {} hypotheses, the stack has {} entries",
                                             rule.hypothesis_count, stack_.size()));
  const std::size_t base = stack_.size() - rule.hypothesis_count;
  const std::span<const Row> given(stack_.data() + base, rule.hypothesis_count);
  const Row code = statement + Tables::kFirstRule;
  const std::uint64_t hash = step_hash(code, given);
  Row row = find_step(code, given, hash);
  if (row == kNoRow) {
    auto bound = bind(rule, given);
    if (!bound) return wrong_step(statement, bound.error().message());
    auto matched = match(rule, given);
    if (!matched) return wrong_step(statement, matched.error().message());
    auto conditions = find_conditions(rule);
    if (!conditions) return wrong_step(statement, conditions.error().message());
    FURLONG_TRY(const Row result, conclude(statement));
    FURLONG_TRY(row, step(code, given, result, hash));
  }
  // Also for a step that another unit derived: its conditions must hold under this unit's own.
  auto kept = check_conditions(tables_.steps[row]);
  if (!kept) return wrong_step(statement, kept.error().message());
  stack_.resize(base);
  return row;
}

Status UnitCheck::bind(const Tables::Statement& rule, std::span<const Row> given) {
  std::vector<Row>& bound = record_.bound_;
  if (bound.size() < tables_.symbols.size()) bound.resize(tables_.symbols.size());
  for (Row i = 0; i < rule.hypothesis_count; ++i) {
    const Tables::Hypothesis hypothesis = tables_.hypotheses[rule.hypotheses + i];
    if (hypothesis.variable == kNoRow) continue;
    const Row result = tables_.steps[given[i]].result;
    if (tables_.cells_of(result)[0] != tables_.symbols[hypothesis.variable].type)
      return fail(Code::mismatch, "'{}' is given for '{}'", text(result), text(hypothesis.expression));
    bound[hypothesis.variable] = result;
  }
  return {};
}

Status UnitCheck::match(const Tables::Statement& rule, std::span<const Row> given) {
  if (!rule.essentials) return {};
  for (Row i = 0; i < rule.hypothesis_count; ++i) {
    const Tables::Hypothesis hypothesis = tables_.hypotheses[rule.hypotheses + i];
    if (hypothesis.variable != kNoRow) continue;
    const Row result = tables_.steps[given[i]].result;
    if (!instance(hypothesis.expression, result))
      return fail(Code::mismatch, "'{}' is no instance of the hypothesis '{}'", text(result),
                  text(hypothesis.expression));
  }
  return {};
}

bool UnitCheck::instance(Row pattern, Row given) const {
  const Row* at = tables_.cells_of(given);
  std::size_t left = tables_.expressions[given].length;
  const Row* const symbols = tables_.cells_of(pattern);
  const Row length = tables_.expressions[pattern].length;
  for (Row i = 0; i < length; ++i) {
    if (tables_.symbols[symbols[i]].type == kNoRow) {
      if (left == 0 || *at != symbols[i]) return false;
      ++at;
      --left;
      continue;
    }
    const Row value = record_.bound_[symbols[i]];
    const std::size_t count = tables_.expressions[value].length - 1;  // without its type
    if (left < count || std::memcmp(at, tables_.cells_of(value) + 1, count * sizeof(Row)) != 0) return false;
    at += count;
    left -= count;
  }
  return left == 0;
}

Status UnitCheck::find_conditions(const Tables::Statement& rule) {
  found_conditions_.clear();
  for (Row i = 0; i < rule.distinct_count; ++i) {
    const Tables::Pair pair = tables_.distinct[rule.distinct + i];
    const Tables::Expression left = tables_.expressions[record_.bound_[pair.first]];
    const Tables::Expression right = tables_.expressions[record_.bound_[pair.second]];
    for (Row a = 0; a < left.variable_count; ++a)
      for (Row b = 0; b < right.variable_count; ++b) {
        const Row first = tables_.variables[left.variables + a],
                  second = tables_.variables[right.variables + b];
        if (first == second)
          return fail(Code::mismatch, "{} and {} must be distinct, but both are given '{}'", name(pair.first),
                      name(pair.second), name(first));
        found_conditions_.push_back({std::min(first, second), std::max(first, second)});
      }
  }
  std::sort(found_conditions_.begin(), found_conditions_.end());
  found_conditions_.erase(std::unique(found_conditions_.begin(), found_conditions_.end()),
                          found_conditions_.end());
  return {};
}

Status UnitCheck::check_conditions(const Tables::Step& step) {
  for (Row i = 0; i < step.condition_count; ++i)
    FURLONG_CHECK(check_distinct(tables_.conditions[step.conditions + i]));
  return {};
}

Status UnitCheck::check_distinct(Tables::Pair pair) {
  if (std::binary_search(distinct_.begin(), distinct_.end(), pair)) return {};
  return fail(Code::mismatch, "{} and {} must be distinct, which the theorem does not say", name(pair.first),
              name(pair.second));
}

Result<UnitCheck::Row> UnitCheck::conclude(Row statement) {
  const Tables::Statement rule = tables_.statements[statement];
  // Without essential hypotheses, steps and substitutions are the same rows, so only steps are kept.
  if (!rule.essentials) return substitute(rule.conclusion);
  std::vector<Row>& values = values_;
  values.clear();
  RowHash hash;
  hash.add(statement);
  for (Row i = 0; i < rule.hypothesis_count; ++i) {
    const Row variable = tables_.hypotheses[rule.hypotheses + i].variable;
    if (variable == kNoRow) continue;
    values.push_back(record_.bound_[variable]);
    hash.add(values.back());
  }
  const Row known = tables_.substitution_index.find(hash.value(), [&](Row row) {
    const Tables::Substitution& found = tables_.substitutions[row];
    if (found.rule != statement) return false;
    for (std::size_t i = 0; i < values.size(); ++i)
      if (tables_.bindings[found.bindings + i] != values[i]) return false;
    return true;
  });
  if (known != kNoRow) return tables_.substitutions[known].result;
  FURLONG_TRY(const Row result, substitute(rule.conclusion));
  FURLONG_CHECK(room(tables_.bindings.size() + values.size()));
  FURLONG_CHECK(
      meter_.charge(sizeof(Tables::Substitution) + UniqueIndex::kRowBytes + values.size() * sizeof(Row)));
  tables_.substitution_index.push_back(hash.value());
  tables_.substitutions.push_back({statement, static_cast<Row>(tables_.bindings.size()), result});
  for (const Row value : values) tables_.bindings.push_back(value);
  return result;
}

Result<UnitCheck::Row> UnitCheck::substitute(Row pattern) {
  const Row* const symbols = tables_.cells_of(pattern);
  const Row length = tables_.expressions[pattern].length;
  std::uint64_t cells = 0;
  for (Row i = 0; i < length; ++i)
    cells += tables_.symbols[symbols[i]].type == kNoRow
                 ? 1
                 : tables_.expressions[record_.bound_[symbols[i]]].length - 1;
  FURLONG_CHECK(room(cells));
  // The scratch could be what bursts the cap, if the expression is new: charged, then given back.
  FURLONG_CHECK(meter_.charge(cells * sizeof(Row)));
  scratch_.clear();
  for (Row i = 0; i < length; ++i) {
    if (tables_.symbols[symbols[i]].type == kNoRow) {
      scratch_.push_back(symbols[i]);
      continue;
    }
    const Row value = record_.bound_[symbols[i]];
    const Row* const from = tables_.cells_of(value);
    scratch_.insert(scratch_.end(), from + 1, from + tables_.expressions[value].length);
  }
  meter_.release(cells * sizeof(Row));
  return expression(scratch_);
}

}  // namespace furlong::shard::metamath
