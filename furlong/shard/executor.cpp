#include "furlong/shard/executor.h"

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
