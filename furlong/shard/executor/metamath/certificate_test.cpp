// Jobs, their certificates, and whether false ones are found out.
#include "furlong/shard/executor/metamath/internal/certificate.h"

#include <gmock/gmock.h>

#include "furlong/shard/executor/metamath/internal/certificate_check.h"
#include "furlong/shard/executor/metamath/internal/testing.h"

namespace furlong::shard::metamath {
namespace {

using ::testing::HasSubstr;
using testing::MemoryStore;
using testing::stored;

KeyPair signer() { return *KeyPair::from_seed(Bytes(32, 7)); }

JobResult job(MemoryStore& store, std::span<const Unit> units) {
  const KeyPair key = signer();
  JobOptions options;
  options.signer = &key;
  auto result = make_executor()->run(MemoryStore::kSettings, testing::claim(units), units, store, options);
  if (!result) throw std::runtime_error(result.error().text());
  return std::move(*result);
}

Status verify(MemoryStore& store, std::span<const Unit> units, const Receipt& receipt,
              VerifyOptions options = {}) {
  return make_executor()->verify(MemoryStore::kSettings, testing::claim(units), units, store, receipt,
                                 options);
}

std::string error_of(const Status& status) { return status ? std::string() : status.error().text(); }

TEST(MetamathJob, ReceiptsVerifyForAnySetOfUnits) {
  MemoryStore store = stored(testing::small_text());
  const std::vector<Unit>& all = store.units();
  for (std::uint32_t set = 1; set < (1u << all.size()); ++set) {
    std::vector<Unit> units;
    for (std::size_t i = 0; i < all.size(); ++i)
      if ((set >> i & 1) != 0) units.push_back(all[i]);
    const JobResult result = job(store, units);
    ASSERT_EQ(error_of(verify(store, units, result.receipt)), "") << set;
    // The plan's order is no part of the claim.
    std::reverse(units.begin(), units.end());
    ASSERT_EQ(error_of(verify(store, units, result.receipt)), "") << set;
  }
}

TEST(MetamathJob, TellsTheCostOfTheCheckAndOfTheWhole) {
  MemoryStore store = stored(testing::small_text());
  const JobResult result = job(store, store.units());
  const auto record = testing::record();
  for (const Unit& unit : store.units()) ASSERT_TRUE(record->add(unit, store));
  EXPECT_EQ(result.check.work, record->cost().work);
  EXPECT_EQ(result.check.record_bytes, record->cost().record_bytes);
  EXPECT_EQ(result.check.features, record->cost().features);
  EXPECT_EQ(result.job.record_bytes, result.check.record_bytes + result.receipt.body.size());
  EXPECT_GT(result.job.seconds, result.check.seconds);
  EXPECT_EQ(result.job.peak_bytes, 0u) << "who runs the process measures it";
}

TEST(MetamathJob, TheSameClaimInTheSameOrderGivesTheSameBytes) {
  MemoryStore store = stored(testing::small_text());
  EXPECT_EQ(job(store, store.units()).receipt.body, job(store, store.units()).receipt.body);
}

TEST(MetamathJob, RefusesWhatIsNotItsClaim) {
  MemoryStore store = stored(testing::small_text());
  const KeyPair key = signer();
  JobOptions options;
  options.signer = &key;
  const auto executor = make_executor();
  const std::vector<Unit> one{store.unit("id")}, other{store.unit("gen")};
  const auto foreign = executor->run(MemoryStore::kSettings, testing::claim(other), one, store, options);
  ASSERT_FALSE(foreign);
  EXPECT_EQ(foreign.error().code(), Code::mismatch);
  options.record_cap_bytes = 100;
  const auto capped = executor->run(MemoryStore::kSettings, testing::claim(one), one, store, options);
  ASSERT_FALSE(capped);
  EXPECT_EQ(capped.error().code(), Code::exhausted);
  options = {};
  EXPECT_EQ(executor->run(MemoryStore::kSettings, testing::claim(one), one, store, options).error().code(),
            Code::invalid);

  const Receipt receipt = job(store, one).receipt;
  EXPECT_THAT(error_of(verify(store, other, receipt)), HasSubstr("the receipt is of the claim"));
  EXPECT_THAT(
      error_of(executor->verify(MemoryStore::kSettings, testing::claim(other), one, store, receipt, {})),
      HasSubstr("the units are not those of the claim"));
  Receipt stale = receipt;
  stale.version = 0;
  EXPECT_EQ(verify(store, one, stale).error().code(), Code::incompatible);
  stale = receipt;
  stale.executor = "command";
  EXPECT_EQ(verify(store, one, stale).error().code(), Code::mismatch);
  stale = receipt;
  stale.body.back() ^= 1;
  EXPECT_EQ(verify(store, one, stale).error().code(), Code::denied);
  std::vector<Unit> renamed = one;
  renamed[0].items[0] = blake2b_256("another");
  EXPECT_THAT(error_of(executor->verify(MemoryStore::kSettings, testing::claim(renamed), renamed, store,
                                        receipt, {})),
              HasSubstr("the key of id is not that of its items"));
}

TEST(MetamathJob, UnitsThatProveEachOtherAreFoundOut) {
  // "one" is proved by "two" and the other way round: each proof alone is right.
  MemoryStore store = stored(std::string(testing::kSystem) +
                             "one $p |- ( ph -> ( ps -> ph ) ) $= wph wps ax-1 $. "
                             "two $p |- ( ps -> ( ph -> ps ) ) $= wps wph one $. ");
  Unit one = store.unit("one");
  // In place of the axiom, the statement of "two", which is the same formula with other names.
  const Unit& two = store.unit("two");
  ProofItem proof = *decode_proof_item(*store.item(one.items.back()));
  proof.rules = {two.items[0]};
  proof.steps = {3, 2, 4};
  one.items.resize(1);
  one.items[0] = two.references[0];
  one.items.push_back(*store.add_item(encode(proof)));
  one.references = proof.rules;
  one.key = unit_key(one.items, one.references);
  const auto circle = claim_of(std::vector<Unit>{one, two});
  ASSERT_FALSE(circle);
  EXPECT_THAT(circle.error().text(), HasSubstr("is proved by way of itself"));
}

// A certificate taken apart and put together anew, as one would do who wants to pass off a false one: with a
// root and a signature that fit.
struct Forged {
  Forged compact() const {
    Forged out = *this;
    out.expressions.clear();
    std::map<std::uint64_t, std::uint64_t> numbers;
    for (Row& row : out.rows) {
      const auto [at, fresh] = numbers.insert({row.result, numbers.size()});
      if (fresh) out.expressions.push_back(expressions.at(row.result));
      row.result = at->second;
    }
    return out;
  }

  struct Row {
    std::uint64_t rule = 0, result = 0;
    std::vector<std::uint64_t> parents;
  };
  std::vector<std::pair<std::uint64_t, std::string>> symbols;
  std::vector<Key> rules;
  std::vector<std::pair<Key, std::uint64_t>> units;
  std::vector<std::vector<std::uint64_t>> expressions;
  std::vector<Row> rows;

  static Forged read(const Bytes& body, MemoryStore& store) {
    Forged out;
    ItemReader in(ByteView(body).subspan(36));
    in.number();
    out.symbols.resize(in.number());
    for (auto& [type, name] : out.symbols) {
      type = in.number();
      name = in.text();
    }
    out.rules.resize(in.number());
    for (Key& rule : out.rules) rule = in.key();
    out.units.resize(in.number());
    for (auto& [key, row] : out.units) {
      key = in.key();
      row = in.number();
    }
    out.expressions.resize(in.number());
    for (auto& expression : out.expressions) {
      expression.resize(in.number());
      for (auto& symbol : expression) symbol = in.number();
    }
    out.rows.resize(in.number());
    for (std::size_t i = 0; i < out.rows.size(); ++i) {
      Row& row = out.rows[i];
      row.rule = in.number();
      row.result = in.number();
      if (row.rule >= 2)
        row.parents.resize(decode_statement(*store.item(out.rules[row.rule - 2]))->hypotheses.size());
      for (auto& parent : row.parents) parent = i - in.number();
    }
    EXPECT_TRUE(in.ended() && in.ok());
    return out;
  }

  /// `orphans`: with the expressions that no row states any more.
  Bytes write(bool orphans = false) const {
    if (!orphans) return compact().write(true);
    Bytes head;
    put_number(head, symbols.size());
    for (const auto& [type, name] : symbols) {
      put_number(head, type);
      put_text(head, name);
    }
    put_number(head, rules.size());
    for (const Key& rule : rules) head.insert(head.end(), rule.bytes.begin(), rule.bytes.end());
    put_number(head, units.size());
    for (const auto& [key, row] : units) {
      head.insert(head.end(), key.bytes.begin(), key.bytes.end());
      put_number(head, row);
    }
    std::vector<Digest> leaves{blake2b_256(head)};
    Bytes tail;
    put_number(tail, expressions.size());
    for (const auto& expression : expressions) {
      put_number(tail, expression.size());
      for (const auto symbol : expression) put_number(tail, symbol);
    }
    put_number(tail, rows.size());
    for (std::size_t i = 0; i < rows.size(); ++i) {
      put_number(tail, rows[i].rule);
      put_number(tail, rows[i].result);
      for (const auto parent : rows[i].parents) put_number(tail, i - parent);
      Bytes leaf;
      const auto word = [&](std::uint64_t value) {
        for (int byte = 0; byte < 4; ++byte) leaf.push_back(static_cast<std::uint8_t>(value >> (8 * byte)));
      };
      word(rows[i].rule);
      word(rows[i].parents.size());
      for (const auto parent : rows[i].parents) word(parent);
      for (const auto symbol : expressions.at(rows[i].result)) word(symbol);
      leaves.push_back(blake2b_256(leaf));
    }
    Bytes body{'F', 'M', 'C', '1'};
    const Digest root = merkle_root(leaves);
    body.insert(body.end(), root.bytes.begin(), root.bytes.end());
    put_number(body, head.size());
    body.insert(body.end(), head.begin(), head.end());
    body.insert(body.end(), tail.begin(), tail.end());
    return body;
  }
};

Receipt signed_anew(Receipt receipt, Bytes body) {
  receipt.body = std::move(body);
  receipt.signature = sign(receipt_message(receipt), signer());
  return receipt;
}

class MetamathForgery : public ::testing::Test {
 protected:
  MemoryStore store = stored(testing::small_text());
  std::vector<Unit> units = store.units();
  Receipt receipt = job(store, units).receipt;
  Forged forged = Forged::read(receipt.body, store);

  std::string verdict(VerifyOptions options = {}, bool orphans = false) {
    return error_of(verify(store, units, signed_anew(receipt, forged.write(orphans)), options));
  }
  std::uint64_t& proved_by(std::string_view name) {
    for (auto& [key, row] : forged.units)
      if (key == store.unit(name).key) return row;
    throw std::runtime_error("not in the certificate");
  }
};

TEST_F(MetamathForgery, WhatIsPutTogetherUnchangedIsTheSame) {
  EXPECT_EQ(forged.write(), receipt.body);
  EXPECT_EQ(verdict(), "");
}

TEST_F(MetamathForgery, ARootThatIsNotOfTheRows) {
  Bytes body = receipt.body;
  body[10] ^= 1;
  EXPECT_THAT(error_of(verify(store, units, signed_anew(receipt, body))),
              HasSubstr("root is not that of its rows"));
}

TEST_F(MetamathForgery, AStatementTakenForAHypothesis) {
  // The row that proves "id" becomes an essential hypothesis of nobody.
  Forged::Row& row = forged.rows[proved_by("id") - 1];
  row.rule = 1;
  row.parents.clear();
  EXPECT_THAT(verdict(), HasSubstr("is no hypothesis of it"));
  EXPECT_THAT(verdict({.sample = 0}), HasSubstr("is no hypothesis of it"));
}

TEST_F(MetamathForgery, AHypothesisOfAnotherTheorem) {
  // "id" proved by the row of a1i, whose hypothesis it does not have.
  proved_by("idd") = proved_by("a1i");
  EXPECT_THAT(verdict(), HasSubstr("idd: another statement is proved"));
}

TEST_F(MetamathForgery, EveryWrongResultIsSeen) {
  const Forged plain = forged;
  for (std::size_t i = 0; i < plain.rows.size(); ++i) {
    forged = plain;
    forged.rows[i].result = (forged.rows[i].result + 1) % forged.expressions.size();
    EXPECT_NE(verdict(), "") << i;
  }
}

TEST_F(MetamathForgery, EveryWrongParentIsSeen) {
  const Forged plain = forged;
  for (std::size_t i = 0; i < plain.rows.size(); ++i)
    for (std::size_t j = 0; j < plain.rows[i].parents.size(); ++j) {
      forged = plain;
      auto& parent = forged.rows[i].parents[j];
      parent = parent == 0 ? 1 : parent - 1;
      if (parent >= i) continue;
      EXPECT_NE(verdict(), "") << i << ' ' << j;
    }
}

TEST_F(MetamathForgery, EveryChangedExpressionIsSeen) {
  const Forged plain = forged;
  for (std::size_t i = 0; i < plain.expressions.size(); ++i) {
    forged = plain;
    auto& last = forged.expressions[i].back();
    last = (last + 1) % forged.symbols.size();
    EXPECT_NE(verdict(), "") << i;
  }
}

TEST_F(MetamathForgery, AUnitLeftOutOrTwiceOrForeign) {
  const Forged plain = forged;
  forged.units.pop_back();
  EXPECT_THAT(verdict(), HasSubstr("not of these units"));
  forged = plain;
  forged.units.back() = forged.units[1];
  EXPECT_THAT(verdict(), HasSubstr("list of units is wrong"));
  forged = plain;
  forged.units.back().first = blake2b_256("another");
  EXPECT_THAT(verdict(), HasSubstr("leaves out gen"));
  forged = plain;
  proved_by("id") = 0;
  EXPECT_THAT(verdict(), HasSubstr("nothing proves it"));
  forged = plain;
  proved_by("(axioms)") = 1;
  EXPECT_THAT(verdict(), HasSubstr("axioms are proved by nothing"));
  forged = plain;
  forged.rules.push_back(blake2b_256("a rule of one's own"));
  EXPECT_THAT(verdict(), HasSubstr("which is not the claim's"));
  forged = plain;
  forged.symbols.push_back(forged.symbols.back());
  EXPECT_THAT(verdict(), HasSubstr("head is torn"));
  forged = plain;
  forged.expressions.push_back({0});
  EXPECT_THAT(verdict({}, true), HasSubstr("an expression that no row has"));
}

TEST(MetamathJob, DistinctVariablesAreJudgedPerTheorem) {
  // The same step of ax-5 under a theorem that says $d and under one that does not: the job refuses the
  // second, so the certificate of the first is passed off for both.
  const std::string good = testing::small_text();
  MemoryStore store = stored(good);
  const std::vector<Unit> five{store.unit("five")};
  const JobResult result = job(store, five);
  MemoryStore loose = stored(replace_all(good, "${ $d x ph $.  five", "${ five"));
  const std::vector<Unit> loose_five{loose.unit("five")};
  const KeyPair key = signer();
  JobOptions options;
  options.signer = &key;
  const auto refused =
      make_executor()->run(MemoryStore::kSettings, testing::claim(loose_five), loose_five, loose, options);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().text(), HasSubstr("five: step"));

  Forged forged = Forged::read(result.receipt.body, store);
  forged.units[0].first = loose_five[0].key;
  for (Key& rule : forged.rules)
    if (rule == five[0].items[0]) rule = loose_five[0].items[0];
  Receipt receipt = result.receipt;
  receipt.claim = testing::claim(loose_five).digest(receipt.executor, receipt.version);
  const Receipt passed_off = signed_anew(receipt, forged.write());
  EXPECT_THAT(error_of(verify(loose, loose_five, passed_off)), HasSubstr("distinct that need not be"));
  // Where no row is looked at, that cannot be seen; any sample that has the row sees it.
  EXPECT_EQ(error_of(verify(loose, loose_five, passed_off, {.sample = 0})), "");
}

TEST(MetamathJob, ASampleLooksAtThatShareOfTheRows) {
  MemoryStore store = stored(std::string(testing::kSystem) + testing::Generator(5).theorems(60));
  const std::vector<Unit>& units = store.units();
  const Receipt receipt = job(store, units).receipt;
  Forged forged = Forged::read(receipt.body, store);
  // One row in the middle applies a rule wrongly; its leaf and the root are right.
  std::size_t wrong = forged.rows.size() / 2;
  while (forged.rows[wrong].rule < 2) ++wrong;
  forged.rows[wrong].result = (forged.rows[wrong].result + 1) % forged.expressions.size();
  const Receipt bad = signed_anew(receipt, forged.write());
  int seen = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    EXPECT_TRUE(verify(store, units, receipt, {.sample = 0.25, .seed = seed}));
    const std::string error = error_of(verify(store, units, bad, {.sample = 0.25, .seed = seed}));
    if (error.starts_with(fmt::format("row {} of", wrong))) ++seen;
  }
  EXPECT_GT(seen, 25);
  EXPECT_LT(seen, 120);
  EXPECT_FALSE(verify(store, units, bad));
}

// Any damage, signed anew, is an error and never a crash: the root binds every byte.
TEST(MetamathJob, RandomDamageIsFoundOut) {
  MemoryStore store = stored(testing::small_text());
  const Receipt receipt = job(store, store.units()).receipt;
  Random random(11);
  for (int i = 0; i < 4000; ++i) {
    Bytes body = receipt.body;
    const int times = static_cast<int>(random.below(3)) + 1;
    for (int j = 0; j < times; ++j)
      body[random.below(body.size())] ^= static_cast<std::uint8_t>(1u << random.below(8));
    if (random.below(4) == 0) body.resize(random.below(body.size()));
    if (body == receipt.body) continue;
    const Status status = verify(store, store.units(), signed_anew(receipt, body));
    ASSERT_FALSE(status) << i;
  }
}

TEST(MetamathJob, MerkleStreamIsTheTreeOfTheClaims) {
  MerkleStream stream;
  std::vector<Digest> leaves;
  for (int i = 0; i < 70; ++i) {
    leaves.push_back(blake2b_256(fmt::format("{}", i)));
    stream.add(leaves.back());
    EXPECT_EQ(stream.root(), merkle_root(leaves)) << i;
  }
}

TEST(MetamathJob, PublishedDatabasesRunAndVerify) {
  const std::filesystem::path folder = "/usr/share/metamath/databases";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "the package metamath-databases is not installed";
  for (const char* name : {"peano.mm", "hol.mm", "ql.mm"}) {
    const auto database = Database::read(folder / name);
    ASSERT_TRUE(database) << database.error().text();
    MemoryStore store;
    ASSERT_TRUE(make_units(*database, store));
    const JobResult result = job(store, store.units());
    EXPECT_EQ(error_of(verify(store, store.units(), result.receipt)), "") << name;
    EXPECT_EQ(error_of(verify(store, store.units(), result.receipt, {.sample = 0.1})), "") << name;
  }
}

}  // namespace
}  // namespace furlong::shard::metamath
