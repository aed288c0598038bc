#include "furlong/shard/executor/metamath/internal/record.h"

#include <cmath>

#include "furlong/base/os/clock.h"
#include "furlong/shard/executor/metamath/internal/unit_check.h"

namespace furlong::shard::metamath {

Tables::Mark Tables::mark() const {
  return {symbols.size(),    expressions.size(), variables.size(),     statements.size(),
          hypotheses.size(), distinct.size(),    substitutions.size(), bindings.size(),
          steps.size(),      parents.size(),     conditions.size(),    cells.mark()};
}

void Tables::truncate(const Mark& mark) {
  symbol_index.truncate(mark.symbols);
  expression_index.truncate(mark.expressions);
  statement_index.truncate(mark.statements);
  substitution_index.truncate(mark.substitutions);
  step_index.truncate(mark.steps);
  symbols.resize(mark.symbols);
  expressions.truncate(mark.expressions);
  variables.truncate(mark.variables);
  keys.truncate(mark.statements);
  statements.truncate(mark.statements);
  hypotheses.truncate(mark.hypotheses);
  distinct.truncate(mark.distinct);
  substitutions.truncate(mark.substitutions);
  bindings.truncate(mark.bindings);
  steps.truncate(mark.steps);
  parents.truncate(mark.parents);
  conditions.truncate(mark.conditions);
  cells.truncate(mark.cells);
}

std::vector<Tables::Size> Tables::sizes() const {
  return {{"symbols", 2, symbols.size()},       {"expressions", 3, expressions.size()},
          {"cells", 1, cells.cells()},          {"variables", 1, variables.size()},
          {"statements", 3, statements.size()}, {"hypotheses", 2, hypotheses.size()},
          {"distinct", 2, distinct.size()},     {"substitutions", 3, substitutions.size()},
          {"bindings", 1, bindings.size()},     {"steps", 4, steps.size()},
          {"parents", 1, parents.size()},       {"conditions", 2, conditions.size()}};
}

double Tables::work() const {
  double work = 0;
  for (const Size& size : sizes()) {
    const auto rows = static_cast<double>(size.rows);
    work += size.width * rows * std::log2(std::max(rows, 2.0));
  }
  return work;
}

namespace {

/// Leaves the time of reading out of the check's.
class TimedItems : public ItemSource {
 public:
  explicit TimedItems(ItemSource& items) : items_(items) {}
  Result<ByteView> item(const Key& key) override {
    const std::int64_t begin = system_clock().now_ns();
    Result<ByteView> bytes = items_.item(key);
    spent_ns_ += system_clock().now_ns() - begin;
    return bytes;
  }
  std::int64_t spent_ns() const { return spent_ns_; }

 private:
  ItemSource& items_;
  std::int64_t spent_ns_ = 0;
};

}  // namespace

Status MetamathRecord::add(const Unit& unit, ItemSource& items) {
  const std::int64_t begin = system_clock().now_ns();
  TimedItems timed(items);
  const Tables::Mark mark = tables_.mark();
  meter_.begin_unit();
  UnitCheck check(*this, unit, timed);
  auto proved = check.run();
  if (proved) {
    meter_.commit();
    proved_by_.push_back(*proved);
    last_touched_ = check.touched();
  } else {
    tables_.truncate(mark);
    meter_.rollback();
    last_touched_.clear();
  }
  seconds_ += static_cast<double>(system_clock().now_ns() - begin - timed.spent_ns()) * 1e-9;
  if (!proved) return Error(std::move(proved).error());
  return {};
}

Cost MetamathRecord::cost() const {
  Cost cost;
  cost.work = tables_.work();
  cost.record_bytes = meter_.bytes();
  cost.seconds = seconds_;
  cost.features = meter_.features();
  double& distinct = cost.features["distinct_work"];  // what is left of all steps once each is done once
  for (const Tables::Size& size : tables_.sizes()) {
    cost.features[size.name] = static_cast<double>(size.rows);
    distinct += static_cast<double>(size.rows);
  }
  return cost;
}

}  // namespace furlong::shard::metamath
