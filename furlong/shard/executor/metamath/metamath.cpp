#include "furlong/shard/executor/metamath/metamath.h"

#include "furlong/base/json.h"
#include "furlong/base/json_object.h"
#include "furlong/base/os/clock.h"
#include "furlong/shard/executor/metamath/internal/certificate.h"
#include "furlong/shard/executor/metamath/internal/certificate_check.h"
#include "furlong/shard/executor/metamath/internal/record.h"
#include "furlong/shard/executor/metamath/make_store.h"

namespace furlong::shard::metamath {
namespace {

constexpr int kSettingsFormat = 1;

Status check_settings(const std::string& settings) {
  FURLONG_TRY(const Json json, json_parse(settings, "settings of the store"));
  JsonObject object(json, "settings of the store");
  int format = 0;
  std::uint64_t axioms = 0, proofs = 0;
  object.integer("format", format);
  object.integer("axioms", axioms);
  object.integer("proofs", proofs);
  object.require({"format", "axioms", "proofs"});
  FURLONG_CHECK(object.strict());
  if (format == kSettingsFormat) return {};
  return fail(Code::incompatible,
              "the store's items are of format {}, this program reads {}: make the store anew", format,
              kSettingsFormat);
}

class MetamathExecutor : public Executor {
 public:
  std::string_view name() const override { return kExecutorName; }
  int version() const override { return kExecutorVersion; }
  bool rests_on_earlier() const override { return true; }

  Result<std::unique_ptr<Record>> begin(const std::string& settings, std::uint64_t cap_bytes,
                                        std::stop_token stop) const override {
    FURLONG_CHECK(check_settings(settings));
    return std::make_unique<MetamathRecord>(cap_bytes, std::move(stop));
  }

  Result<JobResult> run(const std::string& settings, const Claim& claim, std::span<const Unit> units,
                        ItemSource& items, const JobOptions& options) const override {
    FURLONG_CHECK(check_settings(settings));
    if (options.signer == nullptr) return fail(Code::invalid, "a job needs a key to sign its receipt");
    FURLONG_TRY(const Claim made, claim_of(units));
    if (made != claim) return fail(Code::mismatch, "the units are not those of the claim");

    MetamathRecord record(options.record_cap_bytes, options.stop);
    for (const Unit& unit : units) FURLONG_CHECK(record.add(unit, items));
    JobResult result;
    result.check = record.cost();

    const std::int64_t begin = system_clock().now_ns();
    result.receipt.executor = kExecutorName;
    result.receipt.version = kExecutorVersion;
    result.receipt.claim = claim.digest(result.receipt.executor, kExecutorVersion);
    FURLONG_TRY(result.receipt.body, write_certificate(record, units, options.stop));
    result.receipt.signer = options.signer->public_key;
    result.receipt.signature = sign(receipt_message(result.receipt), *options.signer);

    result.job = result.check;
    result.job.record_bytes += result.receipt.body.size();
    result.job.features["certificate_bytes"] = static_cast<double>(result.receipt.body.size());
    result.job.seconds += static_cast<double>(system_clock().now_ns() - begin) * 1e-9;
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
    FURLONG_TRY(const Claim made, claim_of(units));
    if (made != claim) return fail(Code::mismatch, "the units are not those of the claim");
    if (receipt.claim != claim.digest(receipt.executor, receipt.version))
      return fail(Code::mismatch, "the receipt is of the claim {}, not {}", receipt.claim.brief(),
                  claim.digest(receipt.executor, receipt.version).brief());
    FURLONG_CHECK(furlong::verify(receipt_message(receipt), receipt.signature, receipt.signer));
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
