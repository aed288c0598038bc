#include "furlong/shard/executor/replay/replay.h"

#include <algorithm>

#include "furlong/shard/executor/replay/internal/items.h"

namespace furlong::shard::replay {
namespace {

class ReplayRecord : public Record {
 public:
  ReplayRecord(std::uint64_t cap_bytes, std::stop_token stop) : meter_(cap_bytes), stop_(std::move(stop)) {}

  Status add(const Unit& unit, ItemSource& items) override {
    if (stop_.stop_requested()) return fail(Code::timeout, "stopped");
    if (unit.items.empty())
      return fail(Code::corrupt, "a unit of a replay has no item that says what it cost");
    FURLONG_TRY(const ByteView bytes, items.item(unit.items.front()));
    FURLONG_TRY(const CostItem item, parse_cost_item(as_text(bytes)));
    if (item.failed) return *item.failed;
    const std::size_t others = unit.items.size() - 1 + unit.references.size();
    if (item.touched && item.touched->size() != others)
      return fail(Code::corrupt, "unit {} of a replay has {} items, its first one tells of {}", item.unit,
                  others, item.touched->size());
    meter_.begin_unit();
    if (Status status = meter_.charge(item.cost.record_bytes); !status) {
      meter_.rollback();
      return status;
    }
    // Only told of, not read: a replay executes nothing.
    meter_.touch(unit.items.front());
    for (std::size_t i = 0; i < others; ++i) {
      const std::size_t own = unit.items.size() - 1;
      if (!item.touched || (*item.touched)[i])
        meter_.touch(i < own ? unit.items[i + 1] : unit.references[i - own]);
    }
    for (const auto& [name, value] : item.cost.features) meter_.count(name, value);
    meter_.commit();
    work_ += item.cost.work;
    seconds_ += item.cost.seconds;
    peak_bytes_ = std::max(peak_bytes_, item.cost.peak_bytes);
    return {};
  }

  Cost cost() const override {
    Cost cost;
    cost.work = work_;
    cost.record_bytes = meter_.bytes();
    cost.seconds = seconds_;
    cost.peak_bytes = peak_bytes_;
    cost.features = meter_.features();
    return cost;
  }
  std::vector<Key> last_touched() const override { return meter_.last_touched(); }

 private:
  Meter meter_;
  const std::stop_token stop_;
  double work_ = 0, seconds_ = 0;
  std::uint64_t peak_bytes_ = 0;
};

class ReplayExecutor : public Executor {
 public:
  std::string_view name() const override { return kExecutorName; }
  int version() const override { return kExecutorVersion; }
  // A unit costs what was recorded, whoever comes before it; and there is no job that a model could be fitted
  // on.
  bool independent() const override { return true; }

  Result<std::unique_ptr<Record>> begin(const std::string& settings, std::uint64_t cap_bytes,
                                        std::stop_token stop) const override {
    FURLONG_CHECK(check_settings(settings));
    return std::unique_ptr<Record>(std::make_unique<ReplayRecord>(cap_bytes, std::move(stop)));
  }
  Result<JobResult> run(const std::string&, const Claim&, std::span<const Unit>, ItemSource&,
                        const JobOptions&) const override {
    return fail(Code::invalid, "a replay has no job: it plans by what was recorded, and attests nothing");
  }
  Status verify(const std::string&, const Claim&, std::span<const Unit>, ItemSource&, const Receipt&,
                const VerifyOptions&) const override {
    return fail(Code::invalid, "a replay has no receipts: it attests nothing");
  }
};

}  // namespace

std::unique_ptr<Executor> make_executor() { return std::make_unique<ReplayExecutor>(); }

ExecutorKind kind() {
  return {std::string(kExecutorName), "a recorded profile (.fprof)", make_executor(),
          [](const StoreRequest& request) { return make_replay_store(request); }};
}

}  // namespace furlong::shard::replay
