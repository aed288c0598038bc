// Any bytes as an item or as the body of a receipt: an answer or an error, and what is read as an item is
// what would be written.

#include <cstdlib>

#include "furlong/shard/executor/metamath/internal/certificate_check.h"
#include "furlong/shard/executor/metamath/internal/certificate_read.h"
#include "furlong/shard/executor/metamath/internal/items.h"

using namespace furlong;
using namespace furlong::shard;
using namespace furlong::shard::metamath;

namespace {

class OneItem : public ItemSource {
 public:
  explicit OneItem(ByteView bytes) : bytes_(bytes) {}
  Result<ByteView> item(const Key&) override { return bytes_; }

 private:
  ByteView bytes_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const ByteView bytes(data, size);
  const auto same = [&](const Bytes& written) {
    return std::equal(written.begin(), written.end(), data, data + size);
  };
  if (const auto statement = decode_statement(bytes); statement && !same(encode(*statement))) std::abort();
  if (const auto proof = decode_proof_item(bytes); proof && !same(encode(*proof))) std::abort();

  // The verifier's readers take no less than the check's.
  verifying::Cursor rows;
  verifying::SymbolTable symbols;
  (void)verifying::read_statement(bytes, symbols);
  const bool head = verifying::read_proof_head(bytes).has_value();
  if (decode_proof_item(bytes) && !head) std::abort();
  (void)verifying::read_certificate(bytes, rows);
  OneItem items(bytes);
  const Key key = blake2b_256(bytes);
  const Unit unit{unit_key({key}, {}), "fuzz", {key}, {}};
  (void)check_certificate(bytes, std::span(&unit, 1), items, {});
  return 0;
}
