#include "furlong/shard/executor/metamath/internal/tables.h"

#include <gtest/gtest.h>

#include <numeric>

#include "furlong/base/random.h"

namespace furlong::shard::metamath {
namespace {

TEST(MetamathTables, IndexFindsWhatAPlainSearchFindsAlsoAfterCuts) {
  Random random(1);
  UniqueIndex index;
  std::vector<std::uint64_t> rows;
  const auto hash = [](std::uint64_t value) { return RowHash().add(value).value(); };
  for (int step = 0; step < 60000; ++step) {
    if (random.below(2000) == 0) {
      const std::size_t size = random.below(rows.size() + 1);
      index.truncate(size);
      rows.resize(size);
    }
    const std::uint64_t value = random.below(20000);
    const auto found = index.find(hash(value), [&](std::uint32_t row) { return rows[row] == value; });
    const auto expected = std::find(rows.begin(), rows.end(), value);
    if (expected == rows.end()) {
      ASSERT_EQ(found, UniqueIndex::kNone);
      index.push_back(hash(value));
      rows.push_back(value);
    } else {
      ASSERT_EQ(found, expected - rows.begin());
    }
  }
  EXPECT_GT(rows.size(), 100u);
}

TEST(MetamathTables, RowsWithOneHashAreToldApart) {
  UniqueIndex index;
  for (std::uint32_t i = 0; i < 100; ++i) index.push_back(7);
  for (std::uint32_t i = 0; i < 100; ++i)
    EXPECT_EQ(index.find(7, [&](std::uint32_t row) { return row == i; }), i);
  index.truncate(50);
  EXPECT_EQ(index.find(7, [](std::uint32_t row) { return row == 50; }), UniqueIndex::kNone);
  EXPECT_EQ(index.find(7, [](std::uint32_t row) { return row == 49; }), 49u);
}

TEST(MetamathTables, ColumnsAreCutBack) {
  Column<std::uint32_t> column;
  for (std::uint32_t i = 0; i < 40000; ++i) column.push_back(i);
  column.truncate(16384);
  EXPECT_EQ(column.size(), 16384u);
  EXPECT_EQ(column[16383], 16383u);
  column.push_back(5);
  EXPECT_EQ(column[16384], 5u);
  column.truncate(0);
  column.push_back(9);
  EXPECT_EQ(column[0], 9u);
}

TEST(MetamathTables, RunsStandInOnePieceHoweverLong) {
  Runs runs;
  std::vector<std::pair<std::uint32_t, std::vector<std::uint32_t>>> kept;
  std::uint64_t cells = 0;
  for (const std::size_t length : {1u, 60000u, 6000u, 200000u, 3u, 65536u, 1u}) {
    std::vector<std::uint32_t> run(length);
    std::iota(run.begin(), run.end(), static_cast<std::uint32_t>(length));
    kept.emplace_back(runs.append(run), run);
    cells += length;
  }
  EXPECT_EQ(runs.cells(), cells);
  for (const auto& [name, run] : kept) EXPECT_TRUE(std::equal(run.begin(), run.end(), runs.at(name)));
  const Runs::Mark mark = runs.mark();
  const std::vector<std::uint32_t> more(70000, 1);
  runs.append(more);
  runs.truncate(mark);
  EXPECT_EQ(runs.cells(), cells);
  const std::vector<std::uint32_t> last{4, 5, 6};
  const std::uint32_t name = runs.append(last);
  EXPECT_TRUE(std::equal(last.begin(), last.end(), runs.at(name)));
  for (const auto& [at, run] : kept) EXPECT_TRUE(std::equal(run.begin(), run.end(), runs.at(at)));
}

}  // namespace
}  // namespace furlong::shard::metamath
