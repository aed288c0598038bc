#include "furlong/fleet/agent/nonces.h"

#include <gmock/gmock.h>

namespace furlong::fleet {
namespace {

using testing::ElementsAre;

TEST(Nonces, AllAreGivenAndNoneTwice) {
  EXPECT_THAT(*split_nonces(5, 0, 1), ElementsAre(NonceShare{5, 0}));
  EXPECT_THAT(*split_nonces(100, 10, 3),
              ElementsAre(NonceShare{100, 3}, NonceShare{103, 3}, NonceShare{106, 4}));
  constexpr std::uint64_t half = 1ull << 63;
  EXPECT_THAT(*split_nonces(0, 0, 2), ElementsAre(NonceShare{0, half}, NonceShare{half, half}));
  const auto thirds = *split_nonces(0, 0, 3);
  EXPECT_EQ(thirds[0].count + thirds[1].count + thirds[2].count, 0u) << "2^64";
  EXPECT_EQ(thirds[2].count, thirds[0].count + 1);
}

TEST(Nonces, AShareOfNoneIsRefused) {
  EXPECT_EQ(split_nonces(0, 2, 3).error().code(), Code::invalid);
  EXPECT_TRUE(split_nonces(0, 3, 3));
}

}  // namespace
}  // namespace furlong::fleet
