#include "furlong/shard/executor/metamath/make_store.h"
#include "furlong/shard/executor/metamath/metamath.h"
#include "furlong/shard/store.h"

namespace furlong::shard::metamath {
namespace {

class WriterSink : public UnitSink {
 public:
  explicit WriterSink(StoreWriter& writer) : writer_(writer) {}
  Result<Key> add_item(ByteView bytes, bool shared) override { return writer_.add_item(bytes, shared); }
  Status add_unit(const std::string& name, std::vector<Key> items, std::vector<Key> references) override {
    FURLONG_CHECK(writer_.add_unit(name, std::move(items), std::move(references)));
    return {};
  }

 private:
  StoreWriter& writer_;
};

}  // namespace

Result<StoreSummary> make_metamath_store(const std::filesystem::path& database,
                                         const std::filesystem::path& store, const Progress& progress,
                                         std::stop_token stop) {
  FURLONG_TRY(const Database read, Database::read(database));
  const std::string settings =
      fmt::format(R"({{"format":1,"axioms":{},"proofs":{}}})", read.axiom_count(), read.theorem_count());
  FURLONG_TRY(StoreWriter writer,
              StoreWriter::create(store, std::string(kExecutorName), kExecutorVersion, settings));
  WriterSink sink(writer);
  FURLONG_TRY(const StoreSummary summary, make_units(read, sink, progress, stop));
  FURLONG_CHECK(writer.finish());
  return summary;
}

}  // namespace furlong::shard::metamath
