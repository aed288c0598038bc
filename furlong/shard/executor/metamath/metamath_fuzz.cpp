// Any text: reading answers with a database or an `invalid` error; then the plain verifier and the check of
// the store's units give one verdict on every theorem, and what holds can be certified and verified.

#include <cstdlib>
#include <map>
#include <set>

#include "furlong/shard/executor/metamath/internal/certificate_check.h"
#include "furlong/shard/executor/metamath/make_store.h"
#include "furlong/shard/executor/metamath/metamath.h"
#include "furlong/shard/executor/metamath/verify.h"

namespace {

using namespace furlong;
using namespace furlong::shard;

class Memory : public metamath::UnitSink, public ItemSource {
 public:
  Result<Key> add_item(ByteView bytes, bool) override {
    const Key key = blake2b_256(bytes);
    items_.try_emplace(key, bytes.begin(), bytes.end());
    return key;
  }
  Status add_unit(const std::string& name, std::vector<Key> items, std::vector<Key> references) override {
    for (const Key& key : items)
      if (!owned_.insert(key).second) std::abort();
    const Key key = unit_key(items, references);
    units.push_back({key, name, std::move(items), std::move(references)});
    return {};
  }
  Result<ByteView> item(const Key& key) override {
    const auto found = items_.find(key);
    if (found == items_.end()) std::abort();
    return ByteView(found->second);
  }
  std::vector<Unit> units;

 private:
  std::map<Key, Bytes> items_;
  std::set<Key> owned_;
};

void certify(Memory& store, const std::vector<Unit>& units, const std::string& settings) {
  static const KeyPair signer = *KeyPair::from_seed(Bytes(32, 1));
  const auto executor = metamath::make_executor();
  const Result<Claim> claim = metamath::claim_of(units);
  if (!claim) std::abort();
  JobOptions options;
  options.signer = &signer;
  options.record_cap_bytes = 1u << 24;
  const auto job = executor->run(settings, *claim, units, store, options);
  if (!job) {
    if (job.error().code() != Code::exhausted) std::abort();
    return;
  }
  if (!executor->verify(settings, *claim, units, store, job->receipt, {})) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto database = metamath::Database::parse(std::string(as_text({data, size})), "fuzz");
  if (!database) {
    if (database.error().code() != Code::invalid) std::abort();
    return 0;
  }
  const auto report = metamath::verify_database(*database, {.max_symbols = 1u << 20});
  if (!report) std::abort();
  std::set<std::string> unproved;
  bool units = true, exhausted = false;
  for (const auto& one : report->unproved) {
    unproved.insert(one.theorem);
    units &= one.error.code() != Code::invalid;
    exhausted |= one.error.code() == Code::exhausted;
  }
  Memory store;
  const auto made = metamath::make_units(*database, store);
  if (made.has_value() != units) std::abort();
  if (!made || exhausted) return 0;
  const std::string settings = R"({"format":1,"axioms":0,"proofs":0})";
  const auto record = metamath::make_executor()->begin(settings, 1u << 24, {});
  if (!record) std::abort();
  std::vector<Unit> held;
  for (const Unit& unit : store.units) {
    const Status added = (*record)->add(unit, store);
    if (!added && added.error().code() == Code::exhausted) return 0;
    if (added.has_value() == unproved.contains(unit.name)) std::abort();
    if (added) held.push_back(unit);
  }
  if (!held.empty()) certify(store, held, settings);
  return 0;
}
