#include "furlong/shard/types.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "furlong/shard/executor.h"

namespace furlong::shard {
namespace {

const Key kA = blake2b_256("a"), kB = blake2b_256("b"), kC = blake2b_256("c");

TEST(Types, AUnitsKeyDependsOnItsItemsInOrderAndItsReferences) {
  const Key key = unit_key({kA, kB}, {kC});
  EXPECT_EQ(key, unit_key({kA, kB}, {kC}));
  EXPECT_NE(key, unit_key({kB, kA}, {kC}));
  EXPECT_NE(key, unit_key({kA}, {kB, kC})) << "no key moves from one list into the other";
  EXPECT_NE(key, unit_key({kA, kB}, {}));
}

TEST(Types, AMerkleRootTellsLeavesFromNodesAndOneSizeFromAnother) {
  EXPECT_NE(merkle_root({}), merkle_root({Digest{}}));
  EXPECT_NE(merkle_root({kA}), kA);
  EXPECT_NE(merkle_root({kA, kB}), merkle_root({kB, kA}));
  EXPECT_NE(merkle_root({kA, kB, kC}), merkle_root({kA, kB, kC, kC})) << "an odd leaf is not doubled";
  EXPECT_NE(merkle_root({merkle_root({kA, kB}), kC}), merkle_root({kA, kB, kC}));
}

TEST(Types, AClaimsDigestNamesTheExecutorAndItsVersion) {
  const Claim claim{kA, kB};
  const Digest digest = claim.digest("metamath", 1);
  EXPECT_EQ(digest, claim.digest("metamath", 1));
  EXPECT_NE(digest, claim.digest("metamath", 2));
  EXPECT_NE(digest, claim.digest("command", 1));
  EXPECT_NE(digest, (Claim{kB, kA}).digest("metamath", 1));
}

TEST(Types, AClaimOverUnitsIsOfTheirSet) {
  Unit a{{}, "a", {kA}, {kB, kC}}, b{{}, "b", {kB}, {}};
  for (Unit* unit : {&a, &b}) unit->key = unit_key(unit->items, unit->references);
  const auto both = claim_over(std::vector{a, b});
  ASSERT_TRUE(both) << both.error().text();
  EXPECT_EQ(*both, *claim_over(std::vector{b, a}));
  EXPECT_EQ(both->frontier, merkle_root({kC})) << "what one of them owns is not in it";
  EXPECT_EQ(both->owned, merkle_root({std::min(a.key, b.key), std::max(a.key, b.key)}));
  EXPECT_EQ(claim_over({}).error().code(), Code::mismatch);
  EXPECT_EQ(claim_over(std::vector{a, a}).error().code(), Code::mismatch);
  b.items = {kC};
  EXPECT_EQ(claim_over(std::vector{a, b}).error().code(), Code::mismatch) << "its key is of other lists";
}

TEST(Types, AReceiptsMessageCoversAllButTheSignature) {
  Receipt receipt{"metamath", 1, kA, {1, 2, 3}, {}, {}};
  const Bytes message = receipt_message(receipt);
  const auto differs = [&](auto change) {
    Receipt other = receipt;
    change(other);
    return receipt_message(other) != message;
  };
  EXPECT_TRUE(differs([](Receipt& r) { r.executor = "metamat"; }));
  EXPECT_TRUE(differs([](Receipt& r) { r.version = 2; }));
  EXPECT_TRUE(differs([](Receipt& r) { r.claim = kB; }));
  EXPECT_TRUE(differs([](Receipt& r) { r.body.push_back(0); }));
  EXPECT_TRUE(differs([](Receipt& r) { r.signer.bytes[0] = 1; }));
  EXPECT_FALSE(differs([](Receipt& r) { r.signature[0] = 1; }));
}

}  // namespace
}  // namespace furlong::shard
