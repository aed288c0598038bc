#include "furlong/shard/executor/command/command.h"

#include <algorithm>

#include "furlong/base/json.h"
#include "furlong/base/json_object.h"
#include "furlong/base/text.h"
#include "furlong/shard/executor/command/internal/execute.h"
#include "furlong/shard/executor/command/internal/receipt_body.h"
#include "furlong/shard/executor/command/make_store.h"

namespace furlong::shard::command {
namespace {

Status check_settings(const std::string& settings) {
  FURLONG_TRY(const Json json, json_parse(settings, "settings of the store"));
  JsonObject object(json, "settings of the store");
  int format = 0;
  object.integer("format", format);
  object.require({"format"});
  FURLONG_CHECK(object.strict());
  if (format == kItemFormat) return {};
  return fail(Code::incompatible,
              "the store's items are of format {}, this program reads {}: make the store anew", format,
              kItemFormat);
}

Cost join_costs(const Cost& record, const Cost& unit) {
  Cost cost = record;
  cost.work += unit.work;
  cost.seconds += unit.seconds;
  // One after another: what the largest takes is what all take.
  cost.record_bytes = std::max(record.record_bytes, unit.record_bytes);
  cost.peak_bytes = std::max(record.peak_bytes, unit.peak_bytes);
  for (const auto& [name, value] : unit.features) cost.features[name] += value;
  return cost;
}

class CommandRecord : public Record {
 public:
  CommandRecord(std::uint64_t cap_bytes, std::stop_token stop) : options_{cap_bytes, std::move(stop)} {}

  Status add(const Unit& unit, ItemSource& items) override {
    FURLONG_TRY(const UnitRun run, execute_unit(unit, items, inputs_, options_));
    cost_ = join_costs(cost_, cost_of(run));
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
  Cost join(const Cost& record, const Cost& unit) const override { return join_costs(record, unit); }

  Result<std::unique_ptr<Record>> begin(const std::string& settings, std::uint64_t cap_bytes,
                                        std::stop_token stop) const override {
    FURLONG_CHECK(check_settings(settings));
    return std::make_unique<CommandRecord>(cap_bytes, std::move(stop));
  }

  Result<JobResult> run(const std::string& settings, const Claim& claim, std::span<const Unit> units,
                        ItemSource& items, const JobOptions& options) const override {
    FURLONG_CHECK(check_settings(settings));
    if (options.signer == nullptr) return fail(Code::invalid, "a job needs a key to sign its receipt");
    FURLONG_TRY(const Claim made, claim_over(units));
    if (made != claim) return fail(Code::mismatch, "the units are not those of the claim");

    JobResult result;
    InputCheck inputs;
    std::vector<UnitRun> runs;
    for (const Unit& unit : units) {
      auto run = execute_unit(unit, items, inputs, {options.record_cap_bytes, options.stop});
      if (!run) return Error(run.error()).with(fmt::format("unit '{}'", one_line(unit.name)));
      result.check = join_costs(result.check, cost_of(*run));
      runs.push_back(*std::move(run));
    }
    result.job = result.check;
    result.receipt.executor = kExecutorName;
    result.receipt.version = kExecutorVersion;
    result.receipt.claim = claim.digest(result.receipt.executor, kExecutorVersion);
    result.receipt.body = write_receipt_body(runs);
    result.receipt.signer = options.signer->public_key;
    result.receipt.signature = sign(receipt_message(result.receipt), *options.signer);
    return result;
  }

  Status verify(const std::string& settings, const Claim& claim, std::span<const Unit> units,
                ItemSource& items, const Receipt& receipt, const VerifyOptions& options) const override {
    FURLONG_CHECK(check_settings(settings));
    if (receipt.executor != kExecutorName)
      return fail(Code::mismatch, "the receipt is of the executor '{}', not '{}'", receipt.executor,
                  kExecutorName);
    if (receipt.version != kExecutorVersion)
      return fail(Code::incompatible,
                  "the receipt is of version {} of the executor, this is {}: run the shard anew",
                  receipt.version, kExecutorVersion);
    FURLONG_TRY(const Claim made, claim_over(units));
    if (made != claim) return fail(Code::mismatch, "the units are not those of the claim");
    if (receipt.claim != claim.digest(receipt.executor, receipt.version))
      return fail(Code::mismatch, "the receipt is of the claim {}, not {}", receipt.claim.brief(),
                  claim.digest(receipt.executor, receipt.version).brief());
    FURLONG_CHECK(furlong::verify(receipt_message(receipt), receipt.signature, receipt.signer));
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
