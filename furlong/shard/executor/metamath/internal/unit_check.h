#pragma once
// One unit executed into the tables of a record. What it leaves in them on an error is for the record to cut
// off.

#include <span>
#include <string>
#include <vector>

#include "furlong/shard/executor/metamath/internal/record.h"

namespace furlong::shard::metamath {

class UnitCheck {
 public:
  UnitCheck(MetamathRecord& record, const Unit& unit, ItemSource& items)
      : record_(record), tables_(record.tables_), meter_(record.meter_), unit_(unit), items_(items) {}

  /// The row of steps that proves the unit's statement; kNoRow for a unit of axioms.
  Result<std::uint32_t> run();
  /// Items consulted; sorted, none twice.
  std::vector<Key> touched();

 private:
  using Row = std::uint32_t;

  // What the unit owns and refers to.
  Result<ByteView> read(const Key& key);
  Result<Row> statement(const Key& key);
  Status axioms();
  Result<Row> theorem(const Key& proof);
  Status check_references(const ProofItem& item) const;
  Status declare(const ProofItem& item, Row stated);

  // Execution.
  Result<Row> execute(const ProofItem& item, Row stated);
  Result<Row> hypothesis(Row rule, Row expression);
  Result<Row> apply(Row statement);
  Status bind(const Tables::Statement& rule, std::span<const Row> given);
  Status match(const Tables::Statement& rule, std::span<const Row> given);
  bool instance(Row pattern, Row given) const;
  Status find_conditions(const Tables::Statement& rule);
  Status check_conditions(const Tables::Step& step);
  Status check_distinct(Tables::Pair pair);
  Result<Row> conclude(Row statement);
  Result<Row> substitute(Row pattern);

  // Rows, found or made.
  Result<Row> symbol(std::string_view name, Row type);
  Result<Row> expression(std::span<const Row> cells);
  Result<Row> add_statement(const Key& key, const StatementItem& item);
  Result<Row> step(Row rule, std::span<const Row> parents, Row result, std::uint64_t hash);
  std::uint64_t step_hash(Row rule, std::span<const Row> parents) const;
  Row find_step(Row rule, std::span<const Row> parents, std::uint64_t hash) const;
  Status room(std::size_t rows) const;
  Status stopped();

  Error wrong(std::string message) const;
  Error wrong_step(Row statement, std::string message) const;
  std::string text(Row expression) const;
  std::string_view name(Row symbol) const { return tables_.symbols[symbol].name; }

  MetamathRecord& record_;
  Tables& tables_;
  Meter& meter_;
  const Unit& unit_;
  ItemSource& items_;
  std::vector<Key> touched_;            // in the order of use, with repetitions
  std::vector<Row> rules_;              // rows of statements, as the proof numbers them
  std::vector<Row> optional_;           // variables that only the proof has
  std::vector<Tables::Pair> distinct_;  // sorted
  std::vector<Row> stack_, saved_, scratch_, values_;
  std::vector<Tables::Pair> found_conditions_;
  std::uint64_t number_ = 0;
};

}  // namespace furlong::shard::metamath
