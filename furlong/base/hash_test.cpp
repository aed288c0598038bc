#include "furlong/base/hash.h"

#include <gmock/gmock.h>

#include <utility>

#include "furlong/base/random.h"

namespace furlong {
namespace {

// BLAKE2b with a digest of 32 bytes and no key; `b2sum -l 256` gives the same.
TEST(Blake2b, KnownAnswers) {
  EXPECT_EQ(blake2b_256("").hex(), "0e5751c026e543b2e8ab2eb06099daa1d1e5df47778f7787faab45cdf12fe3a8");
  EXPECT_EQ(blake2b_256("abc").hex(), "bddd813c634239723171ef3fee98579b94964e3bb1cb3e427262c8c068d52319");
}

TEST(Blake2b, AnyCutGivesTheSameDigest) {
  Random random(2, "hash");
  std::string data(1000, ' ');
  for (char& c : data) c = static_cast<char>(random.below(256));
  for (int run = 0; run < 50; ++run) {
    Hasher hasher;
    std::string_view rest = data;
    while (!rest.empty()) {
      const std::size_t size = std::min<std::size_t>(rest.size(), random.below(300));
      hasher.add(as_bytes(rest.substr(0, size)));
      rest.remove_prefix(size);
    }
    EXPECT_EQ(hasher.finish(), blake2b_256(data));
  }
}

TEST(Hasher, FieldsKeepTheirBorders) {
  EXPECT_NE(Hasher().add_field("ab").add_field("c").finish(),
            Hasher().add_field("a").add_field("bc").finish());
  EXPECT_EQ(Hasher().add_field("ab").finish(), Hasher().add_field("ab").finish());
  EXPECT_NE(Hasher().add_field("").finish(), Hasher().finish());
}

TEST(Hasher, MovesWithItsState) {
  Hasher first;
  first.add(as_bytes("ab"));
  Hasher second = std::move(first);
  second.add(as_bytes("c"));
  EXPECT_EQ(second.finish(), blake2b_256("abc"));
}

TEST(Digest, ParsesItsOwnHexAndNothingElse) {
  const Digest digest = blake2b_256("x");
  EXPECT_EQ(*Digest::parse(digest.hex()), digest);
  EXPECT_EQ(digest.brief(), digest.hex().substr(0, 16));
  for (const std::string& bad : {std::string(), digest.brief(), digest.hex() + "00", std::string(64, 'x')}) {
    const auto parsed = Digest::parse(bad);
    ASSERT_FALSE(parsed) << bad;
    EXPECT_EQ(parsed.error().code(), Code::invalid);
  }
}

}  // namespace
}  // namespace furlong
