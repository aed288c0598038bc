#pragma once
// The check of the executor: proofs verified by stack execution into tables whose rows are all different.
// What one unit derived costs the next one nothing.

#include <map>
#include <string>
#include <vector>

#include "furlong/shard/executor.h"
#include "furlong/shard/executor/metamath/internal/items.h"
#include "furlong/shard/executor/metamath/internal/tables.h"

namespace furlong::shard::metamath {

constexpr std::uint32_t kNoRow = 0xffffffffu;

/// Rows and what they are made of. Everything only grows, or is cut back to a Mark.
struct Tables {
  struct Symbol {
    std::string name;
    std::uint32_t type = kNoRow;  ///< a variable's: row of a constant; a variable is its name and its type
  };
  struct Expression {
    std::uint32_t run = 0, length = 0;  ///< in cells: rows of symbols
    std::uint32_t variables = 0, variable_count = 0;
  };
  struct Statement {
    std::uint32_t hypotheses = 0, hypothesis_count = 0;
    std::uint32_t distinct = 0, distinct_count = 0;
    std::uint32_t conclusion = 0;
    bool essentials = false;
  };
  struct Hypothesis {
    std::uint32_t expression = 0;
    std::uint32_t variable = kNoRow;  ///< floating: the variable
  };
  struct Pair {
    std::uint32_t first = 0, second = 0;  ///< rows of variables, first <= second
    auto operator<=>(const Pair&) const = default;
  };
  /// A rule with essential hypotheses, under expressions for its variables.
  struct Substitution {
    std::uint32_t rule = 0, bindings = 0, result = 0;
  };
  struct Step {
    std::uint32_t rule = 0;     ///< kFloatingRule, kEssentialRule, or row of statements + kFirstRule
    std::uint32_t parents = 0;  ///< as many as the rule has hypotheses; of a hypothesis: its expression
    std::uint32_t result = 0;
    std::uint32_t conditions = 0, condition_count = 0;  ///< variables that must be distinct for it
  };
  static constexpr std::uint32_t kFloatingRule = 0, kEssentialRule = 1, kFirstRule = 2;

  std::vector<Symbol> symbols;
  Runs cells;
  Column<Expression> expressions;
  Column<std::uint32_t> variables;
  Column<Key> keys;  ///< of statements
  Column<Statement> statements;
  Column<Hypothesis> hypotheses;
  Column<Pair> distinct;
  Column<Substitution> substitutions;
  Column<std::uint32_t> bindings;
  Column<Step> steps;
  Column<std::uint32_t> parents;
  Column<Pair> conditions;
  UniqueIndex symbol_index, expression_index, statement_index, substitution_index, step_index;

  std::uint32_t arity(std::uint32_t rule) const {
    return rule < kFirstRule ? 1 : statements[rule - kFirstRule].hypothesis_count;
  }
  const std::uint32_t* cells_of(std::uint32_t expression) const {
    return cells.at(expressions[expression].run);
  }

  struct Mark {
    std::size_t symbols, expressions, variables, statements, hypotheses, distinct, substitutions, bindings,
        steps, parents, conditions;
    Runs::Mark cells;
  };
  Mark mark() const;
  void truncate(const Mark& mark);

  /// One table: its name in features, numbers a row, rows.
  struct Size {
    const char* name;
    int width;
    std::uint64_t rows;
  };
  std::vector<Size> sizes() const;
  /// W: the sum of width * rows * log2(max(rows, 2)).
  double work() const;
};

/// Record of executor.h; also what a job makes its certificate of.
class MetamathRecord : public Record {
 public:
  MetamathRecord(std::uint64_t cap_bytes, std::stop_token stop) : meter_(cap_bytes), stop_(std::move(stop)) {}

  Status add(const Unit& unit, ItemSource& items) override;
  Cost cost() const override;
  std::vector<Key> last_touched() const override { return last_touched_; }

  const Tables& tables() const { return tables_; }
  /// Per unit added, in order: the row of steps that proves it, or kNoRow for axioms.
  const std::vector<std::uint32_t>& proved_by() const { return proved_by_; }

 private:
  friend class UnitCheck;

  Tables tables_;
  Meter meter_;
  std::stop_token stop_;
  std::vector<std::uint32_t> proved_by_;
  std::vector<Key> last_touched_;
  double seconds_ = 0;
  // Scratch, of no meaning between units: per symbol.
  std::vector<std::uint32_t> bound_;
  std::vector<std::uint64_t> seen_;
  std::uint64_t stamp_ = 0;
};

}  // namespace furlong::shard::metamath
