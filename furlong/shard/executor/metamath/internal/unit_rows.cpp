// The part of UnitCheck that finds rows or makes them. Every row is charged before it is taken.
#include <algorithm>
#include <cstring>

#include "furlong/shard/executor/metamath/internal/unit_check.h"

namespace furlong::shard::metamath {

Status UnitCheck::room(std::size_t rows) const {
  if (rows < kNoRow) return {};
  return fail(Code::exhausted, "{}: a table of the record would have over {} rows", unit_.name, kNoRow - 1);
}

Result<UnitCheck::Row> UnitCheck::symbol(std::string_view name, Row type) {
  const std::uint64_t hash = RowHash().add(std::hash<std::string_view>()(name)).add(type).value();
  const Row known = tables_.symbol_index.find(
      hash, [&](Row row) { return tables_.symbols[row].type == type && tables_.symbols[row].name == name; });
  if (known != kNoRow) return known;
  FURLONG_CHECK(room(tables_.symbols.size()));
  FURLONG_CHECK(meter_.charge(sizeof(Tables::Symbol) + name.size() + UniqueIndex::kRowBytes));
  tables_.symbol_index.push_back(hash);
  tables_.symbols.push_back({std::string(name), type});
  return static_cast<Row>(tables_.symbols.size() - 1);
}

Result<UnitCheck::Row> UnitCheck::expression(std::span<const Row> cells) {
  RowHash hasher;
  for (const Row cell : cells) hasher.add(cell);
  const std::uint64_t hash = hasher.value();
  const Row known = tables_.expression_index.find(hash, [&](Row row) {
    const Tables::Expression& found = tables_.expressions[row];
    return found.length == cells.size() &&
           std::memcmp(tables_.cells.at(found.run), cells.data(), cells.size_bytes()) == 0;
  });
  if (known != kNoRow) return known;

  std::vector<std::uint64_t>& seen = record_.seen_;
  if (seen.size() < tables_.symbols.size()) seen.resize(tables_.symbols.size());
  const std::uint64_t stamp = ++record_.stamp_;
  Tables::Expression made{.length = static_cast<Row>(cells.size()),
                          .variables = static_cast<Row>(tables_.variables.size())};
  for (const Row cell : cells)
    if (tables_.symbols[cell].type != kNoRow && seen[cell] != stamp) {
      seen[cell] = stamp;
      ++made.variable_count;
    }
  FURLONG_CHECK(room(tables_.variables.size() + made.variable_count));
  if (tables_.cells.full()) FURLONG_CHECK(room(kNoRow));
  FURLONG_CHECK(meter_.charge(sizeof made + UniqueIndex::kRowBytes + cells.size_bytes() +
                              made.variable_count * sizeof(Row)));
  const std::uint64_t again = ++record_.stamp_;
  for (const Row cell : cells)
    if (tables_.symbols[cell].type != kNoRow && seen[cell] != again) {
      seen[cell] = again;
      tables_.variables.push_back(cell);
    }
  made.run = tables_.cells.append(cells);
  tables_.expression_index.push_back(hash);
  tables_.expressions.push_back(made);
  return static_cast<Row>(tables_.expressions.size() - 1);
}

Result<UnitCheck::Row> UnitCheck::add_statement(const Key& key, const StatementItem& item) {
  // Variables are known by their types, which stand in the floating hypotheses.
  std::vector<Row> rows(item.symbols.size(), kNoRow);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (item.symbols[i].variable) continue;
    FURLONG_TRY(rows[i], symbol(item.symbols[i].name, kNoRow));
  }
  for (const auto& hypothesis : item.hypotheses) {
    if (hypothesis.essential) continue;
    const Row variable = hypothesis.expression[1];
    FURLONG_TRY(rows[variable], symbol(item.symbols[variable].name, rows[hypothesis.expression[0]]));
  }
  std::vector<Row> cells;
  const auto intern = [&](const std::vector<std::uint32_t>& from) {
    cells.clear();
    for (const std::uint32_t number : from) cells.push_back(rows[number]);
    return expression(cells);
  };
  std::vector<Tables::Hypothesis> hypotheses;
  Tables::Statement made;
  for (const auto& hypothesis : item.hypotheses) {
    FURLONG_TRY(const Row row, intern(hypothesis.expression));
    hypotheses.push_back({row, hypothesis.essential ? kNoRow : rows[hypothesis.expression[1]]});
    made.essentials |= hypothesis.essential;
  }
  FURLONG_TRY(made.conclusion, intern(item.conclusion));
  FURLONG_CHECK(room(tables_.hypotheses.size() + hypotheses.size()));
  FURLONG_CHECK(room(tables_.distinct.size() + item.distinct.size()));
  FURLONG_CHECK(meter_.charge(sizeof(Key) + sizeof made + UniqueIndex::kRowBytes +
                              hypotheses.size() * sizeof(Tables::Hypothesis) +
                              item.distinct.size() * sizeof(Tables::Pair)));
  made.hypotheses = static_cast<Row>(tables_.hypotheses.size());
  made.hypothesis_count = static_cast<Row>(hypotheses.size());
  for (const auto& hypothesis : hypotheses) tables_.hypotheses.push_back(hypothesis);
  made.distinct = static_cast<Row>(tables_.distinct.size());
  made.distinct_count = static_cast<Row>(item.distinct.size());
  for (const auto& pair : item.distinct) {
    const Row a = rows[pair.first], b = rows[pair.second];
    tables_.distinct.push_back({std::min(a, b), std::max(a, b)});
  }
  tables_.statement_index.push_back(load_le<std::uint64_t>(key.bytes.data()));
  tables_.keys.push_back(key);
  tables_.statements.push_back(made);
  return static_cast<Row>(tables_.statements.size() - 1);
}

std::uint64_t UnitCheck::step_hash(Row rule, std::span<const Row> parents) const {
  RowHash hash;
  hash.add(rule);
  for (const Row parent : parents) hash.add(parent);
  return hash.value();
}

UnitCheck::Row UnitCheck::find_step(Row rule, std::span<const Row> parents, std::uint64_t hash) const {
  return tables_.step_index.find(hash, [&](Row row) {
    const Tables::Step& found = tables_.steps[row];
    if (found.rule != rule) return false;
    for (std::size_t i = 0; i < parents.size(); ++i)
      if (tables_.parents[found.parents + i] != parents[i]) return false;
    return true;
  });
}

Result<UnitCheck::Row> UnitCheck::step(Row rule, std::span<const Row> parents, Row result,
                                       std::uint64_t hash) {
  FURLONG_CHECK(room(tables_.steps.size()));
  FURLONG_CHECK(room(tables_.parents.size() + parents.size()));
  FURLONG_CHECK(room(tables_.conditions.size() + found_conditions_.size()));
  FURLONG_CHECK(meter_.charge(sizeof(Tables::Step) + UniqueIndex::kRowBytes + parents.size_bytes() +
                              found_conditions_.size() * sizeof(Tables::Pair)));
  const Tables::Step made{rule, static_cast<Row>(tables_.parents.size()), result,
                          static_cast<Row>(tables_.conditions.size()),
                          static_cast<Row>(found_conditions_.size())};
  for (const Row parent : parents) tables_.parents.push_back(parent);
  for (const Tables::Pair& condition : found_conditions_) tables_.conditions.push_back(condition);
  tables_.step_index.push_back(hash);
  tables_.steps.push_back(made);
  return static_cast<Row>(tables_.steps.size() - 1);
}

}  // namespace furlong::shard::metamath
