#include "furlong/base/bytes.h"

#include <gmock/gmock.h>

#include "furlong/base/random.h"

namespace furlong {
namespace {

using testing::HasSubstr;

TEST(Hex, KnownAnswers) {
  EXPECT_EQ(to_hex(Bytes{}), "");
  EXPECT_EQ(to_hex(Bytes{0x00, 0x7f, 0xAB, 0xff}), "007fabff");
  EXPECT_EQ(*from_hex("007FabfF"), (Bytes{0x00, 0x7f, 0xAB, 0xff}));
}

TEST(Hex, RoundTrip) {
  Random random(1, "hex");
  for (int run = 0; run < 200; ++run) {
    Bytes bytes(random.below(50));
    for (auto& byte : bytes) byte = static_cast<std::uint8_t>(random.below(256));
    EXPECT_EQ(*from_hex(to_hex(bytes)), bytes);
  }
}

TEST(Hex, ErrorsNameThePosition) {
  const auto foreign = from_hex("00g0");
  ASSERT_FALSE(foreign);
  EXPECT_EQ(foreign.error().code(), Code::invalid);
  EXPECT_THAT(foreign.error().text(), HasSubstr("byte 2"));
  const auto odd = from_hex("abc");
  ASSERT_FALSE(odd);
  EXPECT_THAT(odd.error().text(), HasSubstr("byte 3"));
  // Only the digits themselves: neighbours in ASCII and bytes past it are refused.
  for (const char c : std::string_view("/:@G`g \xB0")) EXPECT_FALSE(from_hex(std::string("0") + c)) << c;
}

TEST(LittleEndian, LoadsWhatItStores) {
  Bytes room(9);
  store_le<std::uint64_t>(room.data() + 1, 0x0102030405060708u);
  EXPECT_EQ(room, (Bytes{0, 8, 7, 6, 5, 4, 3, 2, 1}));
  EXPECT_EQ(load_le<std::uint64_t>(room.data() + 1), 0x0102030405060708u);
  store_le(room.data() + 3, 1.0f);
  EXPECT_EQ(load_le<std::uint32_t>(room.data() + 3), 0x3f800000u);
}

TEST(Views, TextAndBytesAreTheSameMemory) {
  const std::string text = "a\0b\xFF";
  EXPECT_EQ(as_text(as_bytes(text)), text);
  EXPECT_EQ(as_bytes(text).size(), text.size());
}

}  // namespace
}  // namespace furlong
