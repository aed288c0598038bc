#include "furlong/fleet/store/sql/row.h"

#include <gmock/gmock.h>

#include "furlong/base/random.h"

namespace furlong::fleet::sql {
namespace {

using testing::HasSubstr;

RaceRow random_row(Random& random, std::vector<PackedGain>& gains) {
  RaceRow row;
  row.verdict = static_cast<record::Verdict>(random.below(6));
  row.pinned = random.below(2) == 1;
  for (float* number :
       {&row.rate, &row.base_rate, &row.gain_pct, &row.ceiling, &row.power_limit_w, &row.power_pct})
    *number = random.below(4) == 0 ? absent : static_cast<float>(random.uniform() * 1000 - 500);
  gains.resize(random.below(6));
  for (PackedGain& gain : gains) gain.variant = static_cast<std::uint32_t>(random.below(1000));
  row.gains = gains;
  return row;
}

TEST(Row, ComesBackAsItWas) {
  Random random(4);
  for (int round = 0; round < 200; ++round) {
    std::vector<PackedGain> gains, back_gains;
    const RaceRow row = random_row(random, gains);
    const std::string bytes = pack_row(row);
    RaceRow back;
    const Status status = unpack_row(bytes, back, back_gains);
    ASSERT_TRUE(status) << status.error().text();
    EXPECT_EQ(pack_row(back), bytes);
    EXPECT_EQ(back.verdict, row.verdict);
    EXPECT_EQ(back.pinned, row.pinned);
    EXPECT_EQ(back.gains.size(), row.gains.size());
    EXPECT_EQ(std::isnan(back.power_pct), std::isnan(row.power_pct));
    RaceRow head;
    ASSERT_TRUE(unpack_head(bytes, head));
    EXPECT_EQ(head.verdict, row.verdict);
  }
}

TEST(Row, WhatIsTornOrImpossibleIsCorrupt) {
  RaceRow row;
  std::vector<PackedGain> gains;
  const std::string bytes = pack_row(row);
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const Status status = unpack_row(std::string_view(bytes).substr(0, size), row, gains);
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code(), Code::corrupt);
    EXPECT_THAT(status.error().text(), HasSubstr(fmt::format("byte {}", size)));
  }
  for (const std::size_t at : {0u, 1u}) {
    std::string wrong = bytes;
    wrong[at] = '\x70';
    EXPECT_EQ(unpack_row(wrong, row, gains).error().code(), Code::corrupt);
  }
  EXPECT_EQ(unpack_row(bytes + "\x01", row, gains).error().code(), Code::corrupt) << "a torn variant";
}

TEST(Row, AnEpochIsAllOfSixtyFourBitsOrNone) {
  for (const std::string text : {"", "0000000000000000", "00f1e2d3c4b5a697", "ffffffffffffffff"}) {
    const auto bytes = pack_epoch(text, 1'772'323'200'000'000);
    ASSERT_TRUE(bytes);
    RaceRow row;
    ASSERT_TRUE(unpack_epoch(as_bytes(*bytes), row));
    EXPECT_EQ(row.has_epoch, !text.empty());
    EXPECT_EQ(epoch_text(row), text);
  }
  for (const std::string text : {"x", "12 ", "-1", "00f1e2d3c4b5a6970"})
    EXPECT_EQ(pack_epoch(text, 0).error().code(), Code::invalid) << text;
  RaceRow row;
  EXPECT_EQ(unpack_epoch(ByteView(), row).error().code(), Code::corrupt);
  EXPECT_EQ(unpack_epoch(as_bytes("12345"), row).error().code(), Code::corrupt);
}

}  // namespace
}  // namespace furlong::fleet::sql
