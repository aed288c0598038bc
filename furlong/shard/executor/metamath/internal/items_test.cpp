#include "furlong/shard/executor/metamath/internal/items.h"

#include <gmock/gmock.h>

#include "furlong/shard/executor/metamath/internal/testing.h"

namespace furlong::shard::metamath {
namespace {

using ::testing::HasSubstr;
using Hypothesis = StatementItem::Hypothesis;

// ( ph -> ps ) from ph, with a pair.
StatementItem statement() {
  return {.symbols = {{false, "wff"}, {true, "ph"}, {true, "ps"}, {false, "|-"}, {false, "->"}},
          .hypotheses = {{false, {0, 1}}, {false, {0, 2}}, {true, {3, 1}}},
          .conclusion = {3, 1, 4, 2},
          .distinct = {{1, 2}}};
}

ProofItem proof() {
  return {.statement = blake2b_256("statement"),
          .copy = 300,
          .rules = {blake2b_256("a"), blake2b_256("b")},
          .optional = {{"set", "x"}},
          .distinct = {{0, 2}, {1, 2}},
          .steps = {2, 3, 5, 0, 7, std::uint64_t{1} << 40}};
}

TEST(MetamathItems, RoundTrip) {
  const Bytes bytes = encode(statement());
  const auto read = decode_statement(bytes);
  ASSERT_TRUE(read) << read.error().text();
  EXPECT_EQ(*read, statement());
  const Bytes proof_bytes = encode(proof());
  const auto proof_read = decode_proof_item(proof_bytes);
  ASSERT_TRUE(proof_read) << proof_read.error().text();
  EXPECT_EQ(*proof_read, proof());
}

TEST(MetamathItems, EveryCutIsAnError) {
  const Bytes bytes = encode(statement()), proof_bytes = encode(proof());
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(decode_statement(ByteView(bytes).first(size))) << size;
  for (std::size_t size = 0; size < proof_bytes.size(); ++size)
    EXPECT_FALSE(decode_proof_item(ByteView(proof_bytes).first(size))) << size;
}

// One content, one way to write it: what is read is written the same.
TEST(MetamathItems, WhatIsReadIsCanonical) {
  Random random(3);
  int accepted = 0;
  for (int i = 0; i < 30000; ++i) {
    Bytes bytes = i % 2 == 0 ? encode(statement()) : encode(proof());
    bytes[random.below(bytes.size())] = static_cast<std::uint8_t>(random.below(random.below(2) ? 8 : 256));
    if (const auto read = decode_statement(bytes)) {
      EXPECT_EQ(encode(*read), bytes);
      ++accepted;
    }
    if (const auto read = decode_proof_item(bytes)) {
      EXPECT_EQ(encode(*read), bytes);
      ++accepted;
    }
  }
  EXPECT_GT(accepted, 100);
}

TEST(MetamathItems, RefusesStatementsThatMeanNothing) {
  const auto error = [](StatementItem item) {
    const auto read = decode_statement(encode(item));
    return read ? std::string() : read.error().text();
  };
  StatementItem item = statement();
  item.symbols[2].name = "ph";
  EXPECT_THAT(error(item), HasSubstr("a symbol twice"));
  item = statement();
  item.hypotheses.erase(item.hypotheses.begin() + 1);
  item.hypotheses[1].expression = {2, 1};
  item.symbols = {{false, "wff"}, {true, "ph"}, {false, "|-"}, {false, "->"}, {true, "ps"}};
  item.conclusion = {2, 1, 3, 4};
  item.distinct.clear();
  EXPECT_THAT(error(item), HasSubstr("a variable without a type"));
  item = statement();
  item.hypotheses.insert(item.hypotheses.begin(), Hypothesis{false, {0, 1}});
  EXPECT_THAT(error(item), HasSubstr("a variable with two types"));
  item = statement();
  item.conclusion = {1, 4, 2};
  EXPECT_THAT(error(item), HasSubstr("an expression begins with a variable"));
  item = statement();
  item.distinct = {{2, 1}};
  EXPECT_THAT(error(item), HasSubstr("pairs out of order"));
  item = statement();
  item.distinct = {{0, 1}};
  EXPECT_THAT(error(item), HasSubstr("a pair of what are not variables"));
  item = statement();
  item.symbols.push_back({false, "unused"});
  EXPECT_THAT(error(item), HasSubstr("a symbol that is not used"));
  item = statement();
  item.hypotheses[0].expression = {1, 0};
  EXPECT_THAT(error(item), HasSubstr("symbols are not numbered by appearance"));
}

}  // namespace
}  // namespace furlong::shard::metamath
