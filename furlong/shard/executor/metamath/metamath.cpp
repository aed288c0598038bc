#include "furlong/shard/executor/metamath/metamath.h"

#include "furlong/base/os/clock.h"
#include "furlong/shard/executor/metamath/internal/certificate.h"
#include "furlong/shard/executor/metamath/internal/certificate_check.h"
#include "furlong/shard/executor/metamath/internal/record.h"
#include "furlong/shard/executor/metamath/make_store.h"
#include "furlong/shard/settings.h"

namespace furlong::shard::metamath {
namespace {

constexpr int kSettingsFormat = 1;

class MetamathExecutor : public Executor {
 public:
  std::string_view name() const override { return kExecutorName; }
  int version() const override { return kExecutorVersion; }
  bool rests_on_earlier() const override { return true; }
  bool holds_claim() const override { return true; }

  Result<std::unique_ptr<Record>> begin(const std::string& settings, std::uint64_t cap_bytes,
                                        std::stop_token stop) const override {
    FURLONG_CHECK(check_settings(settings, kSettingsFormat, {{"axioms"}, {"proofs"}}));
    return std::make_unique<MetamathRecord>(cap_bytes, std::move(stop));
  }

  Result<JobResult> run(const std::string& settings, const Claim& claim, std::span<const Unit> units,
                        ItemSource& items, const JobOptions& options) const override {
    FURLONG_CHECK(check_settings(settings, kSettingsFormat, {{"axioms"}, {"proofs"}}));
    FURLONG_CHECK(check_job(claim, claim_of(units), options));

    MetamathRecord record(options.record_cap_bytes, options.stop);
    for (const Unit& unit : units) FURLONG_CHECK(record.add(unit, items));
    JobResult result;
    result.check = record.cost();

    const std::int64_t begin = system_clock().now_ns();
    FURLONG_TRY(Bytes body, write_certificate(record, units, options.stop));
    result.receipt = seal_receipt(*this, claim, std::move(body), *options.signer);

    result.job = result.check;
    result.job.record_bytes += result.receipt.body.size();
    result.job.features["certificate_bytes"] = static_cast<double>(result.receipt.body.size());
    result.job.seconds += static_cast<double>(system_clock().now_ns() - begin) * 1e-9;
    return result;
  }

  Status verify(const std::string& settings, const Claim& claim, std::span<const Unit> units,
                ItemSource& items, const Receipt& receipt, const VerifyOptions& options) const override {
    FURLONG_CHECK(check_settings(settings, kSettingsFormat, {{"axioms"}, {"proofs"}}));
    FURLONG_CHECK(check_receipt_head(*this, claim, claim_of(units), receipt));
    return check_certificate(receipt.body, units, items, options);
  }
};

}  // namespace

std::unique_ptr<Executor> make_executor() { return std::make_unique<MetamathExecutor>(); }

ExecutorKind kind() {
  return {std::string(kExecutorName), "a Metamath database (.mm)", make_executor(),
          [](const StoreRequest& request) -> Result<StoreReport> {
            FURLONG_TRY(const StoreSummary summary,
                        make_metamath_store(request.input, request.out, request.progress, request.stop));
            return StoreReport{summary.units,
                               summary.items,
                               summary.item_bytes,
                               {{"axioms", std::to_string(summary.axioms)},
                                {"proofs", std::to_string(summary.proofs)},
                                {"restated", std::to_string(summary.restated)}}};
          }};
}

}  // namespace furlong::shard::metamath
