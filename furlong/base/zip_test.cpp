#include "furlong/base/zip.h"

#include <gmock/gmock.h>

#include "furlong/base/random.h"

namespace furlong {
namespace {

using testing::HasSubstr;

constexpr std::size_t plenty = 1u << 24;

std::string some_bytes(Random& random, std::size_t size) {
  std::string bytes(size, '\0');
  const std::uint64_t letters = 1 + random.below(256);
  for (char& byte : bytes) byte = static_cast<char>(random.below(letters));
  return bytes;
}

TEST(Zip, GivesBackWhatWasCompressed) {
  Random random(1);
  for (const std::size_t size : {0u, 1u, 100u, 4095u, 4096u, 4097u, 100'000u, 1'000'000u}) {
    const std::string bytes = some_bytes(random, size);
    for (const Zip effort : {Zip::quick, Zip::usual}) {
      const auto packed = gzip(bytes, effort);
      ASSERT_TRUE(packed);
      const auto again = inflate_gzip(*packed, bytes.size());
      ASSERT_TRUE(again) << again.error().text();
      EXPECT_EQ(*again, bytes);
      const auto deflated = deflate(bytes, effort);
      ASSERT_TRUE(deflated);
      EXPECT_EQ(inflate(*deflated, plenty), bytes);
    }
  }
}

TEST(Zip, TheSameBytesGiveTheSame) {
  EXPECT_EQ(*gzip("abcabcabc"), *gzip("abcabcabc"));
  EXPECT_EQ(static_cast<unsigned char>((*gzip("a"))[0]), 0x1F);
  EXPECT_EQ(static_cast<unsigned char>((*gzip("a"))[1]), 0x8B);
}

TEST(Zip, MoreThanAllowedIsExhaustedAndNotHeld) {
  // A bomb: 16 MiB of zeros in some 16 KiB.
  const auto bomb = gzip(std::string(16u << 20, '\0'));
  ASSERT_TRUE(bomb);
  EXPECT_LT(bomb->size(), 20'000u);
  const auto refused = inflate_gzip(*bomb, 1000);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::exhausted);
  EXPECT_THAT(refused.error().text(), HasSubstr("1000"));
  EXPECT_FALSE(inflate_gzip(*gzip("abcd"), 3));
  EXPECT_TRUE(inflate_gzip(*gzip("abcd"), 4));
  EXPECT_TRUE(inflate_gzip(*gzip(""), 0));
  EXPECT_EQ(inflate_gzip(*gzip("a"), 0).error().code(), Code::exhausted);
}

TEST(Zip, EveryCutIsCorruptAndNamesTheByte) {
  const std::string bytes = "a race, a race, a kingdom for a race";
  const std::string packed = *gzip(bytes);
  for (std::size_t size = 0; size < packed.size(); ++size) {
    const auto cut = inflate_gzip(std::string_view(packed).substr(0, size), plenty);
    ASSERT_FALSE(cut) << size;
    EXPECT_EQ(cut.error().code(), Code::corrupt);
    EXPECT_THAT(cut.error().text(), HasSubstr(fmt::format("byte {}", size)));
  }
}

TEST(Zip, NoFlippedBitGivesOtherBytes) {
  const std::string bytes = "a race, a race, a kingdom for a race";
  const std::string packed = *gzip(bytes);
  for (std::size_t bit = 0; bit < packed.size() * 8; ++bit) {
    std::string flipped = packed;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
    const auto got = inflate_gzip(flipped, plenty);
    if (got) {
      EXPECT_EQ(*got, bytes) << "bit " << bit << " (the header's own fields may differ)";
    } else {
      EXPECT_EQ(got.error().code(), Code::corrupt) << got.error().text();
    }
  }
}

TEST(Zip, WhatFollowsTheMemberIsCorrupt) {
  const std::string packed = *gzip("first");
  for (const std::string& tail : {std::string("x"), packed}) {
    const auto got = inflate_gzip(packed + tail, plenty);
    ASSERT_FALSE(got);
    EXPECT_EQ(got.error().code(), Code::corrupt);
    EXPECT_THAT(got.error().text(), HasSubstr(fmt::format("byte {}: bytes after the end", packed.size())));
  }
}

TEST(Zip, OneFormatIsNotTheOther) {
  EXPECT_EQ(inflate(*gzip("abc"), plenty).error().code(), Code::corrupt);
  EXPECT_EQ(inflate_gzip(*deflate("abc"), plenty).error().code(), Code::corrupt);
  EXPECT_EQ(inflate("plain text", plenty).error().code(), Code::corrupt);
}

TEST(Zip, AnyBytesAreTakenOrRefusedWithinTheBound) {
  Random random(7);
  for (int i = 0; i < 3000; ++i) {
    std::string packed = *gzip(some_bytes(random, random.below(300)));
    for (int change = 0; change < 3; ++change)
      packed[random.below(packed.size())] = static_cast<char>(random.below(256));
    const auto got = inflate_gzip(packed, 200);
    if (got) {
      EXPECT_LE(got->size(), 200u);
    } else {
      EXPECT_TRUE(got.error().code() == Code::corrupt || got.error().code() == Code::exhausted);
    }
  }
}

}  // namespace
}  // namespace furlong
