#include "furlong/campaign/campaign.h"

#include <algorithm>
#include <utility>

#include "furlong/base/text.h"
#include "furlong/campaign/internal/execute.h"
#include "furlong/campaign/internal/receipt_body.h"
#include "furlong/campaign/make_store.h"
#include "furlong/shard/settings.h"

namespace furlong::campaign {
namespace {

class CampaignRecord : public shard::Record {
 public:
  CampaignRecord(std::unique_ptr<Devices> devices, std::uint64_t cap_bytes, std::stop_token stop)
      : cap_bytes_(cap_bytes), stage_(std::move(devices), cap_bytes, std::move(stop)) {}

  Status add(const shard::Unit& unit, shard::ItemSource& items) override {
    FURLONG_TRY(const shard::Cost cost, check_unit(unit, items, stage_));
    if (cap_bytes_ != 0 && cost.record_bytes > cap_bytes_)
      return fail(Code::exhausted, "its race takes {} on the device, over the cap of {}",
                  human_bytes(cost.record_bytes), human_bytes(cap_bytes_));
    cost_ = join_costs(cost_, cost);
    // The program's text and the dataset's recipe decide what runs: all of it was looked at.
    last_touched_ = unit.items;
    last_touched_.insert(last_touched_.end(), unit.references.begin(), unit.references.end());
    std::ranges::sort(last_touched_);
    return {};
  }
  shard::Cost cost() const override { return cost_; }
  std::vector<shard::Key> last_touched() const override { return last_touched_; }

 private:
  const std::uint64_t cap_bytes_;
  Stage stage_;
  shard::Cost cost_;
  std::vector<shard::Key> last_touched_;
};

class CampaignExecutor : public shard::Executor {
 public:
  explicit CampaignExecutor(MakeDevices devices) : devices_(std::move(devices)) {}

  std::string_view name() const override { return kExecutorName; }
  int version() const override { return kExecutorVersion; }
  shard::CostKind cost_kind() const override { return shard::CostKind::command_seconds; }
  bool independent() const override { return true; }
  shard::Cost join(const shard::Cost& record, const shard::Cost& unit) const override {
    return join_costs(record, unit);
  }

  Result<std::unique_ptr<shard::Record>> begin(const std::string& settings, std::uint64_t cap_bytes,
                                               std::stop_token stop) const override {
    FURLONG_CHECK(shard::check_settings(settings, kItemFormat));
    return std::make_unique<CampaignRecord>(devices_(), cap_bytes, std::move(stop));
  }

  Result<shard::JobResult> run(const std::string& settings, const shard::Claim& claim,
                               std::span<const shard::Unit> units, shard::ItemSource& items,
                               const shard::JobOptions& options) const override {
    FURLONG_CHECK(shard::check_settings(settings, kItemFormat));
    FURLONG_CHECK(shard::check_job(claim, shard::claim_over(units), options));

    shard::JobResult result;
    Stage stage(devices_(), options.record_cap_bytes, options.stop);
    Leftover leftover;  // goes before the devices
    std::vector<UnitRun> runs;
    for (const shard::Unit& unit : units) {
      auto run = race_unit(unit, items, stage, leftover);
      if (!run) return Error(run.error()).with(fmt::format("unit '{}'", one_line(unit.name)));
      result.check = join_costs(result.check, run->check);
      result.job = join_costs(result.job, run->job);
      runs.push_back(*std::move(run));
    }
    result.receipt = shard::seal_receipt(*this, claim, write_receipt_body(runs), *options.signer);
    return result;
  }

  Status verify(const std::string& settings, const shard::Claim& claim, std::span<const shard::Unit> units,
                shard::ItemSource& items, const shard::Receipt& receipt,
                const shard::VerifyOptions& options) const override {
    FURLONG_CHECK(shard::check_settings(settings, kItemFormat));
    FURLONG_CHECK(shard::check_receipt_head(*this, claim, shard::claim_over(units), receipt));
    return check_receipt_body(receipt.body, units, items, options, devices_);
  }

 private:
  const MakeDevices devices_;
};

}  // namespace

std::unique_ptr<shard::Executor> make_executor(MakeDevices devices) {
  return std::make_unique<CampaignExecutor>(std::move(devices));
}

shard::ExecutorKind kind(MakeDevices devices) {
  return {std::string(kExecutorName), "programs, problems and devices to race, as TOML or JSON lines",
          make_executor(std::move(devices)),
          [](const shard::StoreRequest& request) -> Result<shard::StoreReport> {
            FURLONG_TRY(const StoreSummary summary,
                        make_campaign_store(request.input, request.out, request.progress, request.stop));
            shard::StoreReport report{
                summary.units,
                summary.items,
                summary.item_bytes,
                {{"races", std::to_string(summary.races)}, {"programs", std::to_string(summary.programs)}}};
            if (summary.datasets > 0) report.notes.emplace_back("datasets", std::to_string(summary.datasets));
            if (summary.repeated > 0)
              report.notes.emplace_back("races listed twice", std::to_string(summary.repeated));
            return report;
          }};
}

}  // namespace furlong::campaign
