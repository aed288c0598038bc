#include "furlong/shard/executor/command/command.h"

#include <algorithm>

#include "furlong/base/text.h"
#include "furlong/shard/executor/command/internal/execute.h"
#include "furlong/shard/executor/command/internal/receipt_body.h"
#include "furlong/shard/executor/command/make_store.h"
#include "furlong/shard/settings.h"

namespace furlong::shard::command {
namespace {

class CommandRecord : public Record {
 public:
  CommandRecord(std::uint64_t cap_bytes, std::stop_token stop) : options_{cap_bytes, std::move(stop)} {}

  Status add(const Unit& unit, ItemSource& items) override {
    FURLONG_TRY(const UnitRun run, execute_unit(unit, items, inputs_, options_));
    cost_ = join_in_turn(cost_, cost_of(run));
    // All of them were verified against their files, and what a command reads of them nobody sees.
    last_touched_ = unit.items;
    last_touched_.insert(last_touched_.end(), unit.references.begin(), unit.references.end());
    std::sort(last_touched_.begin(), last_touched_.end());
    return {};
  }
  Cost cost() const override { return cost_; }
  std::vector<Key> last_touched() const override { return last_touched_; }

 private:
  const ExecuteOptions options_;
  InputCheck inputs_;
  Cost cost_;
  std::vector<Key> last_touched_;
};

class CommandExecutor : public Executor {
 public:
  std::string_view name() const override { return kExecutorName; }
  int version() const override { return kExecutorVersion; }
  CostKind cost_kind() const override { return CostKind::command_seconds; }
  bool attests_files() const override { return true; }
  bool independent() const override { return true; }
  Cost join(const Cost& record, const Cost& unit) const override { return join_in_turn(record, unit); }

  Result<std::unique_ptr<Record>> begin(const std::string& settings, std::uint64_t cap_bytes,
                                        std::stop_token stop) const override {
    FURLONG_CHECK(check_settings(settings, kItemFormat));
    return std::make_unique<CommandRecord>(cap_bytes, std::move(stop));
  }

  Result<JobResult> run(const std::string& settings, const Claim& claim, std::span<const Unit> units,
                        ItemSource& items, const JobOptions& options) const override {
    FURLONG_CHECK(check_settings(settings, kItemFormat));
    FURLONG_CHECK(check_job(claim, claim_over(units), options));

    JobResult result;
    InputCheck inputs;
    std::vector<UnitRun> runs;
    for (const Unit& unit : units) {
      auto run = execute_unit(unit, items, inputs, {options.record_cap_bytes, options.stop});
      if (!run) return Error(run.error()).with(fmt::format("unit '{}'", one_line(unit.name)));
      result.check = join_in_turn(result.check, cost_of(*run));
      runs.push_back(*std::move(run));
    }
    result.job = result.check;
    result.receipt = seal_receipt(*this, claim, write_receipt_body(runs), *options.signer);
    return result;
  }

  Status verify(const std::string& settings, const Claim& claim, std::span<const Unit> units,
                ItemSource& items, const Receipt& receipt, const VerifyOptions& options) const override {
    FURLONG_CHECK(check_settings(settings, kItemFormat));
    FURLONG_CHECK(check_receipt_head(*this, claim, claim_over(units), receipt));
    return check_receipt_body(receipt.body, units, items, options);
  }
};

}  // namespace

std::unique_ptr<Executor> make_executor() { return std::make_unique<CommandExecutor>(); }

ExecutorKind kind() {
  return {std::string(kExecutorName), "commands as JSON lines, or a compile_commands.json", make_executor(),
          [](const StoreRequest& request) -> Result<StoreReport> {
            FURLONG_TRY(const StoreSummary summary,
                        make_command_store(request.input, request.out, request.progress, request.stop));
            StoreReport report{summary.units,
                               summary.items,
                               summary.item_bytes,
                               {{"commands", std::to_string(summary.commands)},
                                {"input files", std::to_string(summary.inputs)},
                                {"input bytes", std::to_string(summary.input_bytes)},
                                {"shared input files", std::to_string(summary.shared)}}};
            for (const std::string& why : summary.without_headers)
              report.notes.emplace_back("headers not found", why);
            return report;
          }};
}

}  // namespace furlong::shard::command
