#include "furlong/shard/internal/independent_record.h"

#include <algorithm>

#include "furlong/base/json.h"
#include "furlong/base/text.h"
#include "furlong/shard/cost_json.h"

namespace furlong::shard {
namespace {

class IndependentRecord : public Record {
 public:
  IndependentRecord(const Executor& executor, std::string settings, std::uint64_t cap_bytes,
                    std::stop_token stop, Journal& journal)
      : executor_(executor),
        settings_(std::move(settings)),
        cap_bytes_(cap_bytes),
        stop_(std::move(stop)),
        journal_(journal) {}

  Status add(const Unit& unit, ItemSource& items) override {
    FURLONG_TRY(const Cost own, unit_cost(unit, items));
    const Cost joined = begun_ ? executor_.join(cost_, own) : own;
    if (cap_bytes_ != 0 && joined.record_bytes > cap_bytes_)
      return fail(Code::exhausted, "the record's cap of {} is reached: {}", human_bytes(cap_bytes_),
                  human_bytes(joined.record_bytes));
    cost_ = joined;
    begun_ = true;
    return {};
  }
  Cost cost() const override { return cost_; }
  std::vector<Key> last_touched() const override { return last_touched_; }

 private:
  Result<Cost> unit_cost(const Unit& unit, ItemSource& items) {
    const std::string key = unit.key.hex();
    if (const auto known = journal_.find("unit", key)) {
      FURLONG_TRY(const Json json, json_parse(*known, "a journal's unit"));
      last_touched_ = unit.items;
      std::sort(last_touched_.begin(), last_touched_.end());
      return parse_cost(json, "a journal's unit");
    }
    FURLONG_TRY(const auto record, executor_.begin(settings_, cap_bytes_, stop_));
    FURLONG_CHECK(record->add(unit, items));
    last_touched_ = record->last_touched();
    const Cost cost = record->cost();
    FURLONG_CHECK(journal_.add("unit", key, json_line(cost_json(cost))));
    return cost;
  }

  const Executor& executor_;
  const std::string settings_;
  const std::uint64_t cap_bytes_;
  const std::stop_token stop_;
  Journal& journal_;
  Cost cost_;
  bool begun_ = false;
  std::vector<Key> last_touched_;
};

}  // namespace

Result<std::unique_ptr<Record>> begin_record(const Executor& executor, const std::string& settings,
                                             std::uint64_t cap_bytes, std::stop_token stop,
                                             Journal& journal) {
  if (!executor.independent()) return executor.begin(settings, cap_bytes, std::move(stop));
  return std::unique_ptr<Record>(
      std::make_unique<IndependentRecord>(executor, settings, cap_bytes, std::move(stop), journal));
}

std::string journal_scope(const Executor& executor, const Sizing& sizing) {
  if (!executor.independent()) return "";
  const std::string text = fmt::format("{} {} {} {} {} {} {} {}", sizing.budget_bytes, sizing.budget_seconds,
                                       sizing.record_cap_bytes, sizing.usable, sizing.base_bytes,
                                       sizing.ram_per_work, sizing.base_seconds, sizing.seconds_per_work);
  return blake2b_256(text).brief();
}

std::string scoped_kind(std::string_view kind, const std::string& scope) {
  return scope.empty() ? std::string(kind) : fmt::format("{} {}", kind, scope);
}

}  // namespace furlong::shard
