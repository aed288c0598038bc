#include "furlong/shard/executor.h"

#include <algorithm>

namespace furlong::shard {
namespace {

void append_number(Bytes& to, std::uint64_t number) {
  to.resize(to.size() + sizeof number);
  store_le(to.data() + to.size() - sizeof number, number);
}
void append_field(Bytes& to, ByteView field) {
  append_number(to, field.size());
  to.insert(to.end(), field.begin(), field.end());
}

}  // namespace

Cost join_in_turn(const Cost& record, const Cost& unit) {
  Cost cost = record;
  cost.work += unit.work;
  cost.seconds += unit.seconds;
  cost.record_bytes = std::max(record.record_bytes, unit.record_bytes);
  cost.peak_bytes = std::max(record.peak_bytes, unit.peak_bytes);
  for (const auto& [name, value] : unit.features) cost.features[name] += value;
  return cost;
}

Cost Executor::join(const Cost& record, const Cost& unit) const {
  Cost cost = join_in_turn(record, unit);
  cost.record_bytes = record.record_bytes + unit.record_bytes;
  return cost;
}

Bytes receipt_message(const Receipt& receipt) {
  Bytes message;
  append_field(message, as_bytes("furlong receipt 1"));
  append_field(message, as_bytes(receipt.executor));
  append_number(message, static_cast<std::uint64_t>(receipt.version));
  append_field(message, receipt.claim.bytes);
  append_field(message, receipt.body);
  append_field(message, receipt.signer.bytes);
  return message;
}

namespace {

Status check_made(const Claim& claim, const Result<Claim>& made) {
  if (!made) return made.error();
  if (*made != claim) return fail(Code::mismatch, "the units are not those of the claim");
  return {};
}

}  // namespace

Status check_job(const Claim& claim, const Result<Claim>& made, const JobOptions& options) {
  if (options.signer == nullptr) return fail(Code::invalid, "a job needs a key to sign its receipt");
  return check_made(claim, made);
}

Receipt seal_receipt(const Executor& executor, const Claim& claim, Bytes body, const KeyPair& signer) {
  Receipt receipt;
  receipt.executor = executor.name();
  receipt.version = executor.version();
  receipt.claim = claim.digest(receipt.executor, receipt.version);
  receipt.body = std::move(body);
  receipt.signer = signer.public_key;
  receipt.signature = sign(receipt_message(receipt), signer);
  return receipt;
}

Status check_receipt_head(const Executor& executor, const Claim& claim, const Result<Claim>& made,
                          const Receipt& receipt) {
  if (receipt.executor != executor.name())
    return fail(Code::mismatch, "the receipt is of the executor '{}', not '{}'", receipt.executor,
                executor.name());
  if (receipt.version != executor.version())
    return fail(Code::incompatible,
                "the receipt is of version {} of the executor, this is {}: run the shard anew",
                receipt.version, executor.version());
  FURLONG_CHECK(check_made(claim, made));
  const Digest digest = claim.digest(receipt.executor, receipt.version);
  if (receipt.claim != digest)
    return fail(Code::mismatch, "the receipt is of the claim {}, not {}", receipt.claim.brief(),
                digest.brief());
  return furlong::verify(receipt_message(receipt), receipt.signature, receipt.signer);
}

}  // namespace furlong::shard
