#include "furlong/shard/order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "furlong/shard/internal/scotch.h"
#include "furlong/shard/internal/store_fixture.h"
#include "furlong/shard/internal/synthetic.h"
#include "furlong/shard/pace.h"

namespace furlong::shard {
namespace {

using synthetic::Script;
using ::testing::HasSubstr;

class OrderTest : public StoreFixture {
 protected:
  Sharing sharing(const std::vector<Script>& scripts) {
    auto read = Sharing::read(*make_store(scripts));
    if (!read) throw std::runtime_error(read.error().text());
    return std::move(*read);
  }
  // Groups whose members refer to their group's head alone, dealt out like cards.
  Sharing dealt(int groups, int members) {
    std::vector<Script> scripts;
    for (int m = 0; m < members; ++m)
      for (int g = 0; g < groups; ++g) {
        Script script{fmt::format("g{}m{}", g, m), "work=1", {}, {}};
        if (m == 0)
          script.text += std::string(2000, ' ');
        else
          script.references = {fmt::format("g{}m0", g)};
        scripts.push_back(std::move(script));
      }
    return sharing(scripts);
  }
};

TEST_F(OrderTest, CountsASharedItemOnceAndAnOwnedOneNot) {
  const Sharing s = sharing({{"a", "work=1"}, {"b", "work=22", {"a"}}, {"c", "work=1", {"a", "b"}}});
  const std::vector<UnitIndex> bc{1, 2}, c{2}, all{0, 1, 2};
  EXPECT_EQ(s.cross(bc).bytes, 8u) << "a's item, once";
  EXPECT_EQ(s.cross(bc).items, 1u);
  EXPECT_EQ(s.cross(c).bytes, 17u);
  EXPECT_EQ(s.cross(all).bytes, 0u);
  EXPECT_EQ(s.own_bytes(bc), 17u);
}

TEST_F(OrderTest, KeepsSharingTogetherAndSaysWhatItSaves) {
  const Sharing s = dealt(8, 40);
  const auto choice = choose_order(s, 8, 1);
  ASSERT_TRUE(choice) << choice.error().text();
  EXPECT_EQ(choice->kind, OrderKind::sharing);
  EXPECT_LT(choice->sharing_cross_bytes * 10, choice->plain_cross_bytes * 6) << choice->text();
  EXPECT_THAT(choice->text(), HasSubstr("saves"));
  std::vector<UnitIndex> sorted = choice->order;
  std::sort(sorted.begin(), sorted.end());
  std::vector<UnitIndex> all(s.units());
  std::iota(all.begin(), all.end(), 0u);
  EXPECT_EQ(sorted, all) << "every unit, once";
}

TEST_F(OrderTest, SaysWhereItDoesNotEarnItsKeep) {
  std::vector<Script> scripts;
  for (int i = 0; i < 100; ++i) scripts.push_back({fmt::format("u{}", i), "work=1", {}, {}});
  const auto choice = choose_order(sharing(scripts), 4, 1);
  ASSERT_TRUE(choice);
  EXPECT_EQ(choice->kind, OrderKind::plain);
  EXPECT_THAT(choice->text(), HasSubstr("does not earn its keep"));
  EXPECT_TRUE(std::is_sorted(choice->order.begin(), choice->order.end()));
}

TEST_F(OrderTest, TheSameStoreGivesTheSameOrder) {
  const Sharing s = dealt(7, 50);
  const auto first = order_units(s, OrderKind::sharing, 3);
  ASSERT_TRUE(first);
  for (int again = 0; again < 3; ++again) EXPECT_EQ(*order_units(s, OrderKind::sharing, 3), *first);
}

TEST_F(OrderTest, StopsWhenAsked) {
  auto store = synthetic::make_store(folder_->path() / "s.store", {{"a", "work=1"}});
  ASSERT_TRUE(store);
  std::stop_source source;
  source.request_stop();
  EXPECT_EQ(Sharing::read(**store, source.get_token()).error().code(), Code::timeout);
}

TEST(Scotch, CutsWhereTheLinksAreLight) {
  scotch::Graph graph;
  graph.vertex_weights.assign(40, 1);
  for (std::uint32_t v = 0; v < 40; ++v) {
    if (v + 2 < 40) graph.links.push_back({v, v + 2, 1'000'000'000'000ull});  // even with even, odd with odd
    if (v + 1 < 40) graph.links.push_back({v, v + 1, 1});
  }
  const auto part = scotch::bisect(graph, 2, 0.05, 1);
  ASSERT_TRUE(part) << part.error().text();
  for (std::size_t v = 2; v < 40; ++v) EXPECT_EQ((*part)[v], (*part)[v - 2]);
  EXPECT_NE((*part)[0], (*part)[1]);
}

TEST(Scotch, TakesHugeAndZeroWeightsAndNoGraphAtAll) {
  EXPECT_TRUE(scotch::bisect({}, 4, 0.05, 1)->empty());
  scotch::Graph graph;
  graph.vertex_weights = {0, ~0ull / 8, 5, 0};
  graph.links = {{0, 1, ~0ull / 4}, {2, 3, 0}};
  const auto part = scotch::bisect(graph, 2, 0.05, 1);
  ASSERT_TRUE(part) << part.error().text();
  EXPECT_EQ(part->size(), 4u);
  EXPECT_EQ(scotch::bisect(graph, 0, 0.05, 1).error().code(), Code::invalid);
}

TEST(PaceTest, TellsRateTimeLeftAndTheHeaviest) {
  FakeClock clock;
  std::vector<ProgressState> states;
  Pace pace("scan", 10, [&](const ProgressState& state) { states.push_back(state); }, clock);
  const auto slow = pace.begin("slow");
  pace.advance(1);
  EXPECT_TRUE(states.empty()) << "not more often than five times a second";
  clock.advance_ns(1'000'000'000);
  const auto quick = pace.begin("quick");
  pace.advance(1);
  ASSERT_EQ(states.size(), 1u);
  EXPECT_EQ(states[0].done, 2u);
  EXPECT_EQ(states[0].rate, 2);
  EXPECT_EQ(states[0].seconds_left, 4);
  EXPECT_EQ(states[0].heaviest, "slow");
  EXPECT_EQ(states[0].heaviest_seconds, 1);
  pace.finish(slow);
  pace.end();
  EXPECT_EQ(states.back().heaviest, "quick");
  pace.finish(quick);
  pace.end();
  EXPECT_EQ(states.back().heaviest, "");
}

}  // namespace
}  // namespace furlong::shard
