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

Cost Executor::join(const Cost& record, const Cost& unit) const {
  Cost cost = record;
  cost.work += unit.work;
  cost.seconds += unit.seconds;
  cost.record_bytes += unit.record_bytes;
  cost.peak_bytes = std::max(record.peak_bytes, unit.peak_bytes);
  for (const auto& [name, value] : unit.features) cost.features[name] += value;
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

}  // namespace furlong::shard
