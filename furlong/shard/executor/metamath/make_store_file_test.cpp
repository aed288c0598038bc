// From a database to a store file, and from the file to a receipt.
#include <gmock/gmock.h>

#include "furlong/base/os/file.h"
#include "furlong/shard/executor/metamath/internal/certificate_check.h"
#include "furlong/shard/executor/metamath/internal/testing.h"
#include "furlong/shard/store.h"

namespace furlong::shard::metamath {
namespace {

using ::testing::HasSubstr;

class MetamathStoreFile : public ::testing::Test {
 protected:
  void SetUp() override {
    auto made = TemporaryFolder::make("metamath-store-test");
    ASSERT_TRUE(made) << made.error().text();
    folder_.emplace(std::move(*made));
  }
  std::filesystem::path path(const char* name) const { return folder_->path() / name; }
  std::shared_ptr<const Store> made(std::string_view text) {
    if (const Status wrote = system_files().write_atomic(path("test.mm"), text); !wrote)
      throw std::runtime_error(wrote.error().text());
    const auto summary = make_metamath_store(path("test.mm"), path("test.store"));
    if (!summary) throw std::runtime_error(summary.error().text());
    auto store = Store::open(path("test.store"));
    if (!store) throw std::runtime_error(store.error().text());
    return *store;
  }
  static std::vector<Unit> units_of(const Store& store, std::span<const UnitIndex> indices) {
    std::vector<Unit> units;
    for (const UnitIndex index : indices) units.push_back(*store.unit(index));
    return units;
  }

  std::optional<TemporaryFolder> folder_;
};

TEST_F(MetamathStoreFile, NamesItsExecutorAndCounts) {
  const auto store = made(testing::small_text());
  EXPECT_EQ(store->executor(), kExecutorName);
  EXPECT_EQ(store->executor_version(), kExecutorVersion);
  EXPECT_EQ(store->settings(), R"({"format":1,"axioms":7,"proofs":6})");
  ASSERT_EQ(store->unit_count(), 7u);
  EXPECT_EQ(store->unit(0)->name, kAxiomsUnit);
  EXPECT_EQ(store->find_unit("gen")->value(), 6u);
  EXPECT_TRUE(make_executor()->begin(store->settings(), 0, {}));
}

TEST_F(MetamathStoreFile, EveryUnitRefersToEarlierOnes) {
  const auto store = made(testing::small_text());
  for (UnitIndex index = 0; index < store->unit_count(); ++index) {
    const Unit unit = *store->unit(index);
    for (const Key& reference : unit.references) EXPECT_LT(store->owner(reference)->value(), index);
  }
}

TEST_F(MetamathStoreFile, ClaimsOfTheStoreAreThoseOfTheExecutor) {
  const auto store = made(testing::small_text());
  const auto executor = make_executor();
  const KeyPair key = *KeyPair::from_seed(Bytes(32, 3));
  JobOptions options;
  options.signer = &key;
  for (std::uint32_t set = 1; set < (1u << store->unit_count()); set += 5) {
    std::vector<UnitIndex> indices;
    for (UnitIndex i = 0; i < store->unit_count(); ++i)
      if ((set >> i & 1) != 0) indices.push_back(i);
    const auto claim = make_claim(*store, indices);
    ASSERT_TRUE(claim) << claim.error().text();
    const std::vector<Unit> units = units_of(*store, indices);
    EXPECT_EQ(*claim_of(units), *claim) << set;
    auto items = ClaimItems::open(store, indices);
    ASSERT_TRUE(items) << items.error().text();
    const auto job = executor->run(store->settings(), *claim, units, **items, options);
    ASSERT_TRUE(job) << job.error().text();
    const Status verified = executor->verify(store->settings(), *claim, units, **items, job->receipt, {});
    EXPECT_TRUE(verified) << verified.error().text();
  }
}

TEST_F(MetamathStoreFile, LeavesNothingBehindWhenTheDatabaseIsWrong) {
  ASSERT_TRUE(system_files().write_atomic(
      path("test.mm"), replace_all(testing::small_text(), "wph id a1i $.", "wph gen a1i $.")));
  const auto summary = make_metamath_store(path("test.mm"), path("test.store"));
  ASSERT_FALSE(summary);
  EXPECT_THAT(summary.error().text(), HasSubstr("idd: the proof uses 'gen', which comes later"));
  EXPECT_FALSE(system_files().exists(path("test.store")));
  EXPECT_EQ(system_files().list(folder_->path())->size(), 1u);
  EXPECT_EQ(make_metamath_store(path("none.mm"), path("test.store")).error().code(), Code::unavailable);
}

TEST_F(MetamathStoreFile, ALibraryWithoutAnyStatementIsAStoreWithoutUnits) {
  EXPECT_EQ(made("$c a $.")->unit_count(), 0u);
}

}  // namespace
}  // namespace furlong::shard::metamath
