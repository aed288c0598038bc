#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <thread>

#include "furlong/shard/internal/store_fixture.h"
#include "furlong/shard/internal/synthetic.h"
#include "furlong/shard/store.h"

namespace furlong::shard {
namespace {

using synthetic::Script;
using ::testing::HasSubstr;

class ClaimTest : public StoreFixture {
 protected:
  static Key item(const Store& store, UnitIndex unit) { return store.unit(unit)->items[0]; }
};

// 0 <- 1 <- 2 <- 3: each refers to the one before.
const std::vector<Script> kChain{
    {"a", "work=1"}, {"b", "work=1", {"a"}}, {"c", "work=1", {"b"}}, {"d", "work=1", {"c"}}};

TEST_F(ClaimTest, TheDigestDependsNeitherOnTheListsOrderNorOnAPlan) {
  const auto s = make_store(kChain);
  const std::vector<UnitIndex> there{1, 2, 3}, back{3, 1, 2};
  const auto one = make_claim(*s, there), two = make_claim(*s, back);
  ASSERT_TRUE(one && two);
  EXPECT_EQ(*one, *two);
  EXPECT_EQ(one->digest("synthetic", 1), two->digest("synthetic", 1));
  const std::vector<UnitIndex> other{1, 2};
  EXPECT_NE(*make_claim(*s, other), *one);
}

TEST_F(ClaimTest, TheFrontierIsWhatIsDirectlyReferredToAndNotOwned) {
  const auto s = make_store(kChain);
  const std::vector<UnitIndex> units{2, 3};
  const auto claim = make_claim(*s, units);
  ASSERT_TRUE(claim);
  EXPECT_EQ(claim->frontier, merkle_root({item(*s, 1)})) << "not c's, which is owned, nor a's, which is "
                                                            "behind b's";
  EXPECT_EQ(make_claim(*s, std::vector<UnitIndex>{0})->frontier, merkle_root({}));
}

TEST_F(ClaimTest, AnUnusedReferenceIsNotInTheFrontier) {
  // Only d refers to c: a claim without d does not have it, wherever the plan put d.
  const auto s =
      make_store({{"a", "work=1"}, {"b", "work=1", {"a"}}, {"c", "work=1"}, {"d", "work=1", {"c"}}});
  const auto claim = make_claim(*s, std::vector<UnitIndex>{1});
  ASSERT_TRUE(claim);
  EXPECT_EQ(claim->frontier, merkle_root({item(*s, 0)}));
}

TEST_F(ClaimTest, NoneAndTwiceAndUnknownUnitsAreErrors) {
  const auto s = make_store(kChain);
  EXPECT_EQ(make_claim(*s, {}).error().code(), Code::invalid);
  EXPECT_THAT(make_claim(*s, std::vector<UnitIndex>{1, 2, 1}).error().text(), HasSubstr("unit 'b' is in the "
                                                                                        "claim twice"));
  EXPECT_EQ(make_claim(*s, std::vector<UnitIndex>{9}).error().code(), Code::invalid);
  auto items = ClaimItems::open(s, std::vector<UnitIndex>{1});
  ASSERT_TRUE(items);
  EXPECT_THAT((*items)->add(1).error().text(), HasSubstr("twice"));
}

TEST_F(ClaimTest, ItemsFaultInOnceAndOnlyWhenAskedFor) {
  const auto s = make_store(kChain);
  auto items = ClaimItems::open(s, std::vector<UnitIndex>{1, 2, 3});
  ASSERT_TRUE(items);
  EXPECT_EQ((*items)->resident_bytes(), 0u);
  const auto bytes = (*items)->item(item(*s, 1));
  ASSERT_TRUE(bytes);
  EXPECT_EQ(as_text(*bytes), "b work=1");
  EXPECT_EQ((*items)->resident_bytes(), 8u);
  EXPECT_EQ((*items)->item(item(*s, 1))->data(), bytes->data()) << "mapped, not copied";
  EXPECT_EQ((*items)->resident_bytes(), 8u);
  EXPECT_EQ(as_text(*(*items)->item(item(*s, 0))), "a work=1") << "the frontier's";
}

TEST_F(ClaimTest, AMissingKeyNamesTheItemAndTheChannel) {
  const auto s = make_store(kChain);
  auto items = ClaimItems::open(s, std::vector<UnitIndex>{1});
  ASSERT_TRUE(items);
  const auto missing = (*items)->item(item(*s, 3));
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code(), Code::invalid);
  EXPECT_THAT(missing.error().text(), HasSubstr(item(*s, 3).hex()));
  EXPECT_THAT(missing.error().text(), HasSubstr("neither channel of the claim (owned, frontier)"));
  const auto frozen = (*items)->freeze();
  EXPECT_THAT(frozen->item(item(*s, 0)).error().text(), HasSubstr("channel 'frontier' was not read"));
  EXPECT_THAT(frozen->item(item(*s, 1)).error().text(), HasSubstr("channel 'owned' was not read"));
  EXPECT_THAT(frozen->item(item(*s, 3)).error().text(), HasSubstr("neither channel"));
}

TEST_F(ClaimTest, AGrowingClaimMovesItemsFromTheFrontierToTheOwned) {
  const auto s = make_store(kChain);
  auto items = ClaimItems::open(s, std::vector<UnitIndex>{1});
  ASSERT_TRUE(items);
  EXPECT_FALSE((*items)->item(item(*s, 2)));
  ASSERT_TRUE((*items)->add(0));
  ASSERT_TRUE((*items)->add(2));
  EXPECT_TRUE((*items)->item(item(*s, 2)));
  EXPECT_THAT((*items)->freeze()->item(item(*s, 0)).error().text(), HasSubstr("channel 'owned'"));
}

TEST_F(ClaimTest, AFlippedStoredByteFailsByItsKeyWithNothingMaterialised) {
  const std::filesystem::path file = folder_->path() / "s.store";
  make_store(kChain);
  std::string bytes;
  {
    std::ifstream in(file, std::ios::binary);
    bytes.assign(std::istreambuf_iterator<char>(in), {});
  }
  const auto at = bytes.find("b work=1");
  ASSERT_NE(at, bytes.npos);
  for (auto found = at; found != bytes.npos; found = bytes.find("b work=1", found + 1))
    bytes[found + 7] = '2';  // also in pages that were freed
  std::ofstream(file, std::ios::binary | std::ios::trunc) << bytes;
  auto s = Store::open(file);
  ASSERT_TRUE(s) << s.error().text();
  auto items = ClaimItems::open(*s, std::vector<UnitIndex>{1, 2});
  ASSERT_TRUE(items);
  for (int again = 0; again < 2; ++again) {
    const auto bad = (*items)->item(item(**s, 1));
    ASSERT_FALSE(bad);
    EXPECT_EQ(bad.error().code(), Code::corrupt);
    EXPECT_THAT(bad.error().text(), HasSubstr(item(**s, 1).hex()));
    EXPECT_EQ((*items)->resident_bytes(), 0u);
    EXPECT_FALSE((*items)->freeze()->item(item(**s, 1)));
  }
  EXPECT_TRUE((*items)->item(item(**s, 2))) << "its neighbours are whole";
}

TEST_F(ClaimTest, TheMapOutlivesEveryBorrow) {
  auto s = make_store(kChain);
  const Key key = item(*s, 1);
  auto items = ClaimItems::open(s, std::vector<UnitIndex>{1});
  ASSERT_TRUE(items && (*items)->item(key));
  const auto frozen = (*items)->freeze();
  s.reset();
  EXPECT_EQ(as_text(*(*items)->item(key)), "b work=1") << "the items hold the store";
  items->reset();
  EXPECT_EQ(as_text(*frozen->item(key)), "b work=1") << "and so does the frozen view";
}

// Run under the thread sanitizer as well: a frozen view is read by many while its claim goes on faulting.
TEST_F(ClaimTest, AFrozenMissNeverFaults) {
  const auto s = make_store(kChain);
  auto items = ClaimItems::open(s, std::vector<UnitIndex>{0, 1, 2, 3});
  ASSERT_TRUE(items && (*items)->item(item(*s, 0)));
  const std::uint64_t before = (*items)->resident_bytes();
  const auto frozen = (*items)->freeze();
  std::vector<Key> keys;
  for (UnitIndex unit = 0; unit < 4; ++unit) keys.push_back(item(*s, unit));
  std::atomic<int> hits{0}, misses{0};
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&] {
        for (int i = 0; i < 1000; ++i)
          ++(frozen->item(keys[static_cast<std::size_t>(i) % 4]) ? hits : misses);
      });
    threads.emplace_back([&] { EXPECT_TRUE((*items)->item(keys[2])); });
  }
  EXPECT_EQ(hits, 1000);
  EXPECT_EQ(misses, 3000) << "also for the item that was faulted in after";
  EXPECT_EQ((*items)->resident_bytes(), before + 8);
}

}  // namespace
}  // namespace furlong::shard
