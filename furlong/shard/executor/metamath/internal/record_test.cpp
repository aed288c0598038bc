#include "furlong/shard/executor/metamath/internal/record.h"

#include <gmock/gmock.h>

#include <cmath>

#include "furlong/shard/executor/metamath/internal/testing.h"

namespace furlong::shard::metamath {
namespace {

using ::testing::HasSubstr;
using testing::MemoryStore;
using testing::record;
using testing::stored;
using ::testing::UnorderedElementsAreArray;

void expect_same(const Cost& a, const Cost& b, std::string_view what = "") {
  EXPECT_EQ(a.work, b.work) << what;
  EXPECT_EQ(a.record_bytes, b.record_bytes) << what;
  EXPECT_EQ(a.features, b.features) << what;
}

/// All units of a store in order; the first error by name.
std::map<std::string, Error> add_all(Record& into, MemoryStore& store) {
  std::map<std::string, Error> failed;
  for (const Unit& unit : store.units())
    if (Status added = into.add(unit, store); !added) failed.emplace(unit.name, added.error());
  return failed;
}

TEST(MetamathRecord, AcceptsEveryTheorem) {
  MemoryStore store = stored(testing::small_text());
  const auto made = record();
  for (const auto& [name, error] : add_all(*made, store)) ADD_FAILURE() << error.text();
  const Cost cost = made->cost();
  EXPECT_EQ(cost.features.at("theorems"), 6);
  EXPECT_EQ(cost.features.at("axioms"), 7);
  EXPECT_EQ(cost.features.at("statements"), 7 + 5);
  EXPECT_GT(cost.record_bytes, 0u);
}

TEST(MetamathRecord, WorkIsTheSumOverTables) {
  MemoryStore store = stored(testing::small_text());
  MetamathRecord made(0, {});
  for (const Unit& unit : store.units()) ASSERT_TRUE(made.add(unit, store));
  double work = 0, distinct = 0;
  for (const auto& [name, width, rows] : made.tables().sizes()) {
    distinct += static_cast<double>(rows);
    EXPECT_EQ(made.cost().features.at(name), static_cast<double>(rows));
    work += width * static_cast<double>(rows) * std::log2(std::max<double>(static_cast<double>(rows), 2));
  }
  EXPECT_DOUBLE_EQ(made.cost().work, work);
  EXPECT_EQ(made.cost().features.at("distinct_work"), distinct);
  EXPECT_GT(work, 0);
}

TEST(MetamathRecord, TheOrderOfUnitsDoesNotChangeTheCost) {
  MemoryStore store = stored(testing::small_text());
  const auto forwards = record(), backwards = record();
  for (const Unit& unit : store.units()) ASSERT_TRUE(forwards->add(unit, store));
  for (std::size_t i = store.units().size(); i-- > 0;) ASSERT_TRUE(backwards->add(store.units()[i], store));
  expect_same(forwards->cost(), backwards->cost());
}

TEST(MetamathRecord, WhatIsKnownCostsNothing) {
  MemoryStore store = stored(testing::small_text());
  const auto both = record(), first = record(), second = record();
  ASSERT_TRUE(first->add(store.unit("id"), store));
  ASSERT_TRUE(second->add(store.unit("gen"), store));
  ASSERT_TRUE(both->add(store.unit("id"), store));
  ASSERT_TRUE(both->add(store.unit("gen"), store));
  EXPECT_LT(both->cost().record_bytes, first->cost().record_bytes + second->cost().record_bytes);
  EXPECT_GT(both->cost().record_bytes, first->cost().record_bytes);
}

struct Corruption {
  const char* what;
  const char* from;
  const char* to;
  const char* theorem;
  const char* message;
};
const Corruption corruptions[] = {
    {"a step removed", "wph wps ax-1 ax-mp $. $}", "wph wps ax-mp $. $}", "a1i",
     "'|- ph' is given for 'wff ps'"},
    {"another rule", "wph wps ax-1 ax-mp $. $}", "wph wps wi ax-mp $. $}", "a1i",
     "is no instance of the hypothesis"},
    {"a wrong substitution", "$= wph wps wph wi a1i.1", "$= wph wps wps wi a1i.1", "a1i",
     "is no instance of"},
    {"a wrong type", "wph id ax-gen $.", "vx id ax-gen $.", "gen", "'set x' is given for 'wff ph'"},
    {"a distinct-variable condition dropped", "${ $d x ph $.  five", "${ five", "five",
     "ph and x must be distinct, which the theorem does not say"},
    {"an optional one dropped", "${ $d y ph $.", "${", "optional", "ph and y must be distinct"},
    {"a common variable", "wal wi wps wph vx ax-5", "wal wi wps wph vx wal vx ax-5", "five",
     "but both are given 'x'"},
    {"an unfinished proof", "wph wps ax-1 ax-mp $. $}", "? ax-mp $. $}", "a1i", "step 6 is '?'"},
    {"a changed symbol in a statement", "gen $p |- A. x ( ph -> ph )", "gen $p |- A. x ( ph -> ps )", "gen",
     "the proof proves '|- A. x ( ph -> ph )', not '|- A. x ( ph -> ps )'"},
    {"stack underflow", "$= wph wps wph wi a1i.1 wph wps ax-1 ax-mp $.", "$= wph wi $.", "a1i",
     "it takes 2 hypotheses, the stack has 1 entries"},
    {"extra stack entries", "gen $p |- A. x ( ph -> ph ) $= wph", "gen $p |- A. x ( ph -> ph ) $= wph wph",
     "gen", "the proof ends with 2 entries on the stack, not 1"},
    {"a wrong hypothesis order", "a1i.1 wph wps ax-1 ax-mp $. $}", "wph wps ax-1 a1i.1 ax-mp $. $}", "a1i",
     "is no instance of"},
};

TEST(MetamathRecord, RejectsEveryPlantedCorruptionAndForgetsIt) {
  for (const Corruption& planted : corruptions) {
    const std::string text = testing::small_text();
    ASSERT_NE(text.find(planted.from), std::string::npos) << planted.what;
    MemoryStore store = stored(replace_all(text, planted.from, planted.to));
    const auto with = record(), without = record();
    const auto failed = add_all(*with, store);
    ASSERT_EQ(failed.size(), 1u) << planted.what;
    EXPECT_EQ(failed.begin()->first, planted.theorem) << planted.what;
    EXPECT_EQ(failed.begin()->second.code(), Code::mismatch);
    EXPECT_THAT(failed.begin()->second.text(), HasSubstr(planted.message)) << planted.what;
    EXPECT_THAT(failed.begin()->second.text(), HasSubstr(planted.theorem));
    for (const Unit& unit : store.units())
      if (unit.name != planted.theorem) {
        ASSERT_TRUE(without->add(unit, store));
      }
    expect_same(with->cost(), without->cost(), planted.what);
  }
}

/// A proof item in place of a theorem's own.
Unit replaced(MemoryStore& store, const Unit& unit, const ProofItem& proof, std::vector<Key> references) {
  Unit made = unit;
  made.items.back() = *store.add_item(encode(proof));
  std::sort(references.begin(), references.end());
  made.references = references;
  made.key = unit_key(made.items, made.references);
  return made;
}

TEST(MetamathRecord, RejectsUnitsThatNoMakerMakes) {
  MemoryStore store = stored(testing::small_text());
  const Unit& id = store.unit("id");
  const ProofItem proof = *decode_proof_item(*store.item(id.items[1]));
  const auto error = [&](const Unit& unit) {
    const auto made = record();
    const Status added = made->add(unit, store);
    if (!added) expect_same(made->cost(), record()->cost());
    return added ? std::string() : added.error().text();
  };
  EXPECT_EQ(error(replaced(store, id, proof, id.references)), "");

  ProofItem changed = proof;
  changed.rules.push_back(store.unit("a1i").items[0]);
  for (std::uint64_t& step : changed.steps)
    if (step >= kFirstStep + 1 + proof.rules.size()) ++step;  // saved results are numbered behind the rules
  EXPECT_THAT(error(replaced(store, id, changed, changed.rules)), HasSubstr("a rule that it does not use"));
  EXPECT_THAT(error(replaced(store, id, proof, changed.rules)),
              HasSubstr("references are not what the proof uses"));
  changed = proof;
  changed.rules.push_back(id.items[0]);
  changed.steps = {2, 7};
  EXPECT_THAT(error(replaced(store, id, changed, changed.rules)), HasSubstr("the proof uses what it proves"));
  changed = proof;
  changed.rules.push_back(changed.rules[0]);
  EXPECT_THAT(error(replaced(store, id, changed, proof.rules)), HasSubstr("a rule twice"));
  changed = proof;
  changed.optional.push_back({"set", "x"});
  EXPECT_NE(error(replaced(store, id, changed, id.references)), "");
  changed = proof;
  changed.optional.push_back({"wff", "ph"});
  EXPECT_THAT(error(replaced(store, id, changed, id.references)), HasSubstr("the variable 'ph' twice"));
  changed = proof;
  changed.distinct = {{0, 1}};
  EXPECT_THAT(error(replaced(store, id, changed, id.references)), HasSubstr("distinct variables"));
  changed = proof;
  changed.steps.push_back(1000);
  EXPECT_THAT(error(replaced(store, id, changed, id.references)), HasSubstr("recalls what was not saved"));
  changed = proof;
  changed.steps = {kStepSave};
  EXPECT_THAT(error(replaced(store, id, changed, id.references)),
              HasSubstr("saves a result where there is none"));
  changed = proof;
  changed.statement = store.unit("a1i").items[0];
  EXPECT_THAT(error(replaced(store, id, changed, id.references)),
              HasSubstr("the proof is of another statement"));

  Unit axioms = store.unit("(axioms)");
  axioms.references = {id.items[0]};
  EXPECT_THAT(error(axioms), HasSubstr("a unit of axioms refers to something"));
  axioms = store.unit("(axioms)");
  axioms.items.push_back(*store.add_item(as_bytes("rubbish")));
  EXPECT_THAT(error(axioms), HasSubstr("this is no statement item"));
  Unit none = id;
  none.items.clear();
  EXPECT_THAT(error(none), HasSubstr("the unit owns nothing"));
  Unit three = id;
  three.items.insert(three.items.begin(), store.unit("a1i").items[0]);
  EXPECT_THAT(error(three), HasSubstr("a statement and a proof, and nothing more"));
}

TEST(MetamathRecord, TouchesWhatItOwnsAndWhatItUses) {
  MemoryStore store = stored(testing::small_text());
  const auto made = record();
  ASSERT_TRUE(made->add(store.unit("id"), store));
  ASSERT_TRUE(made->add(store.unit("idd"), store));
  const Unit& idd = store.unit("idd");
  std::vector<Key> expected = idd.items;
  expected.insert(expected.end(), idd.references.begin(), idd.references.end());
  EXPECT_THAT(made->last_touched(), UnorderedElementsAreArray(expected));
  EXPECT_TRUE(std::ranges::is_sorted(made->last_touched()));
}

TEST(MetamathRecord, TheCapEndsAUnitAtTheChargeThatCrossesIt) {
  MemoryStore store = stored(testing::small_text());
  const auto whole = record();
  ASSERT_TRUE(add_all(*whole, store).empty());
  const std::uint64_t need = whole->cost().record_bytes;
  // At every cap there is a first unit that does not fit; the record is then what the ones before it make,
  // and goes on to take what fits.
  bool tripped_late = false;
  for (std::uint64_t cap = 1; cap < need; cap += 97) {
    const auto capped = record(cap), plain = record();
    for (const Unit& unit : store.units()) {
      const Status added = capped->add(unit, store);
      if (added) {
        ASSERT_TRUE(plain->add(unit, store));
      } else {
        EXPECT_EQ(added.error().code(), Code::exhausted);
        tripped_late |= plain->cost().work > 0;
      }
      expect_same(capped->cost(), plain->cost());
      EXPECT_LE(capped->cost().record_bytes, cap);
    }
  }
  EXPECT_TRUE(tripped_late);
  const auto roomy = record(need + 4096);
  EXPECT_TRUE(add_all(*roomy, store).empty());
}

TEST(MetamathRecord, AFormulaThatGrowsWithoutEndMeetsTheCap) {
  std::string text(testing::kSystem);
  text += "$v z $. wz $f wff z $. dup $a wff ( z -> z ) $. big $p wff ph $= wph";
  for (int i = 0; i < 40; ++i) text += " dup";
  MemoryStore store = stored(text + " $.");
  const auto made = record(1u << 20);
  const Status added = made->add(store.unit("big"), store);
  ASSERT_FALSE(added);
  EXPECT_EQ(added.error().code(), Code::exhausted);
  expect_same(made->cost(), record()->cost());
}

TEST(MetamathRecord, Stops) {
  MemoryStore store = stored(testing::small_text());
  std::stop_source stop;
  MetamathRecord made(0, stop.get_token());
  ASSERT_TRUE(made.add(store.unit("id"), store));
  stop.request_stop();
  const Status added = made.add(store.unit("gen"), store);
  ASSERT_FALSE(added);
  EXPECT_EQ(added.error().code(), Code::timeout);
}

TEST(MetamathRecord, PassesOnWhatTheItemsSay) {
  MemoryStore store = stored(testing::small_text());
  Unit unit = store.unit("id");
  unit.items[1] = blake2b_256("gone");
  const Status added = record()->add(unit, store);
  ASSERT_FALSE(added);
  EXPECT_EQ(added.error().code(), Code::invalid);
}

TEST(MetamathRecord, SettingsOfAnotherFormatAreRefused) {
  const auto executor = make_executor();
  const auto other = executor->begin(R"({"format":2,"axioms":0,"proofs":0})", 0, {});
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code(), Code::incompatible);
  EXPECT_FALSE(executor->begin("{}", 0, {}));
  EXPECT_FALSE(executor->begin("", 0, {}));
}

// Two checkers that have nothing but the reader in common, on published databases.
TEST(MetamathRecord, AgreesWithThePlainVerifierOnPublishedDatabases) {
  const std::filesystem::path folder = "/usr/share/metamath/databases";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "the package metamath-databases is not installed";
  for (const char* name : {"peano.mm", "hol.mm", "ql.mm"}) {
    const auto database = Database::read(folder / name);
    ASSERT_TRUE(database) << database.error().text();
    MemoryStore store;
    const auto summary = make_units(*database, store);
    ASSERT_TRUE(summary) << summary.error().text();
    EXPECT_EQ(summary->proofs, database->theorem_count());
    EXPECT_EQ(store.units().size(), summary->proofs + 1);
    const auto made = record();
    for (const auto& [unit, error] : add_all(*made, store)) ADD_FAILURE() << name << ": " << error.text();
  }
}

}  // namespace
}  // namespace furlong::shard::metamath
