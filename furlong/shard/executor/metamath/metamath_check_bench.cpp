// metamath-check: one claim over a whole database: units made, checked into one record, certified, verified.
// What each costs, and how much of the memory that is taken was charged.

#include <malloc.h>

#include <algorithm>
#include <map>

#include "bench/harness.h"
#include "furlong/base/os/clock.h"
#include "furlong/base/os/memory.h"
#include "furlong/shard/executor/metamath/internal/certificate_check.h"
#include "furlong/shard/executor/metamath/make_store.h"
#include "furlong/shard/executor/metamath/metamath.h"

namespace {

using furlong::Bytes;
using furlong::ByteView;
using furlong::Result;
using furlong::Status;
using furlong::bench::Bench;
using furlong::bench::Better;
namespace shard = furlong::shard;
namespace metamath = furlong::shard::metamath;

/// Units and items in memory.
class Units : public metamath::UnitSink, public shard::ItemSource {
 public:
  Result<shard::Key> add_item(ByteView bytes, bool) override {
    const shard::Key key = furlong::blake2b_256(bytes);
    items_.try_emplace(key, bytes.begin(), bytes.end());
    return key;
  }
  Status add_unit(const std::string& name, std::vector<shard::Key> items,
                  std::vector<shard::Key> references) override {
    const shard::Key key = shard::unit_key(items, references);
    units.push_back({key, name, std::move(items), std::move(references)});
    return {};
  }
  Result<ByteView> item(const shard::Key& key) override { return ByteView(items_.at(key)); }

  std::vector<shard::Unit> units;

 private:
  std::map<shard::Key, Bytes> items_;
};

double heap_mib() { return static_cast<double>(mallinfo2().uordblks + mallinfo2().hblkhd) / (1 << 20); }

double seconds_since(std::int64_t begin) {
  return static_cast<double>(furlong::system_clock().now_ns() - begin) * 1e-9;
}

Status measure(Bench& bench, const std::string& name) {
  const std::filesystem::path file = std::filesystem::path(bench.option("databases")) / (name + ".mm");
  Units store;
  std::int64_t begin = furlong::system_clock().now_ns();
  FURLONG_TRY(const metamath::Database database, metamath::Database::read(file));
  FURLONG_TRY(const metamath::StoreSummary summary, metamath::make_units(database, store));
  const double units_s = seconds_since(begin);

  const std::string settings = R"({"format":1,"axioms":0,"proofs":0})";
  const auto executor = metamath::make_executor();
  const double heap_before = heap_mib();
  begin = furlong::system_clock().now_ns();
  FURLONG_TRY(auto record, executor->begin(settings, 0, {}));
  for (const shard::Unit& unit : store.units) FURLONG_CHECK(record->add(unit, store));
  const double check_s = seconds_since(begin);
  const shard::Cost cost = record->cost();
  const double taken = heap_mib() - heap_before;
  record.reset();

  const furlong::KeyPair signer = furlong::KeyPair::generate();
  shard::JobOptions options;
  options.signer = &signer;
  FURLONG_TRY(const shard::Claim claim, metamath::claim_of(store.units));
  begin = furlong::system_clock().now_ns();
  FURLONG_TRY(const shard::JobResult job, executor->run(settings, claim, store.units, store, options));
  const double job_s = seconds_since(begin);
  const double body_mib = static_cast<double>(job.receipt.body.size()) / (1 << 20);
  begin = furlong::system_clock().now_ns();
  FURLONG_CHECK(executor->verify(settings, claim, store.units, store, job.receipt, {}));
  const double verify_s = seconds_since(begin);
  const double charged = static_cast<double>(cost.record_bytes) / (1 << 20);
  bench.metric(name + "_work", cost.work, Better::lower, {0, 0});
  bench.metric(name + "_record_mib", charged, Better::lower, {0, 0});
  if (!bench.smoke()) {
    bench.metric(name + "_check_s", check_s, Better::lower, {0.3, 0.01});
    // Each table begins with a chunk that is not full.
    bench.at_most(name + ": memory taken but for 4 MiB, over memory charged", (taken - 4) / charged, 1.1);
  }
  bench.row({name,
             {{"proofs", static_cast<double>(summary.proofs)},
              {"restated", static_cast<double>(summary.restated)},
              {"item MiB", static_cast<double>(summary.item_bytes) / (1 << 20)},
              {"units s", units_s},
              {"check s", check_s},
              {"W / 1e9", cost.work * 1e-9},
              {"charged MiB", charged},
              {"taken MiB", taken},
              {"job s", job_s},
              {"receipt MiB", body_mib},
              {"verify s", verify_s}},
             "One claim over a whole database"});
  furlong::bench::BenchRow rows{name, {}, "Rows of the record's tables"};
  for (const auto& [feature, value] : cost.features) rows.values.emplace_back(feature, value);
  bench.row(rows);
  return {};
}

Status run(Bench& bench) {
  if (!std::filesystem::exists(bench.option("databases"))) {
    if (!bench.smoke())
      return furlong::fail(furlong::Code::unavailable, "this takes the package metamath-databases (no {})",
                           bench.option("databases"));
    bench.environment("skipped", "the package metamath-databases is not installed");
    return {};
  }
  for (const char* name : {"hol", "ql", "nf", "iset", "set"})
    if (!bench.smoke() || std::string_view(name) == "hol") FURLONG_CHECK(measure(bench, name));
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  return furlong::bench::bench_main(
      argc, argv, "metamath-check", run,
      {{"databases", "folder of the .mm files", "/usr/share/metamath/databases"}});
}
