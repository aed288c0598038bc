#include "furlong/program/lottery/dataset.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "furlong/program/lottery/reference.h"

namespace furlong::program::lottery {
namespace {

constexpr std::uint32_t kLines = 256;  // a tiny cache: rows read all of it

Parameters of_day(std::int64_t day) { return {.epoch_seed = demonstration_seed(), .day = day}; }

TEST(LotteryCache, DependsOnSeedDayAndSize) {
  const Cache cache(of_day(0), kLines);
  EXPECT_EQ(cache.lines()[0], Cache(of_day(0), kLines).lines()[0]);
  EXPECT_NE(cache.lines()[0], Cache(of_day(1), kLines).lines()[0]);
  EXPECT_NE(cache.lines()[0], Cache(of_day(0), 2 * kLines).lines()[0]);
  Parameters other = of_day(0);
  other.epoch_seed[0] ^= 0x80;
  EXPECT_NE(cache.lines()[0], Cache(other, kLines).lines()[0]);
}

TEST(LotteryCache, HalfOfTheBitsAreSet) {
  const Cache cache(of_day(0), kLines);
  int ones = 0;
  for (const Row& line : cache.lines())
    for (const std::uint32_t word : line) ones += std::popcount(word);
  const int bits = static_cast<int>(kLines) * kRowBytes * 8;
  EXPECT_NEAR(ones, bits / 2, 5 * std::sqrt(bits) / 2);
}

TEST(LotteryDataset, FilledRowsAreTheComputedOnes) {
  const Cache cache(of_day(2), kLines);
  for (const int threads : {1, 3}) {
    Bytes data(9001 * kRowBytes);  // no whole number of the chunks that threads take
    ASSERT_TRUE(fill_dataset(cache, data, threads, {}));
    const RowSource rows = full_rows(data);
    for (std::uint32_t i = 0; i < 9001; i += i < 300 ? 1 : 97) ASSERT_EQ(rows(i), cache.dataset_row(i)) << i;
    EXPECT_EQ(rows(9000), cache.dataset_row(9000));
  }
}

TEST(LotteryDataset, RowsDiffer) {
  const Cache cache(of_day(0), kLines);
  std::vector<Row> rows;
  for (std::uint32_t i = 0; i < 20 * kLines; ++i) rows.push_back(cache.dataset_row(i));
  std::ranges::sort(rows);
  EXPECT_EQ(std::ranges::adjacent_find(rows), rows.end());
}

TEST(LotteryDataset, StopsWhenAsked) {
  const Cache cache(of_day(0), kLines);
  Bytes data(100'000 * kRowBytes);
  std::stop_source stop;
  stop.request_stop();
  const Status status = fill_dataset(cache, data, 2, stop.get_token());
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code(), Code::timeout);
  EXPECT_NE(status.error().message().find("of 100000 rows"), std::string::npos) << status.error().text();
}

TEST(LotteryDataset, RefusesPartOfARow) {
  const Cache cache(of_day(0), kLines);
  Bytes data(3 * kRowBytes + 4);
  const Status status = fill_dataset(cache, data, 1, {});
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code(), Code::invalid);
}

}  // namespace
}  // namespace furlong::program::lottery
