#include "furlong/shard/executor/metamath/make_store.h"

#include <gmock/gmock.h>

#include "furlong/shard/executor/metamath/internal/testing.h"

namespace furlong::shard::metamath {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::MemoryStore;
using testing::stored;

std::vector<std::string> names(const MemoryStore& store) {
  std::vector<std::string> out;
  for (const Unit& unit : store.units()) out.push_back(unit.name);
  return out;
}

std::vector<Key> sorted(std::vector<Key> keys) {
  std::sort(keys.begin(), keys.end());
  return keys;
}

/// What a statement is named by, wherever it stands.
Key statement_of(const MemoryStore& store, std::string_view unit) { return store.unit(unit).items.at(0); }

TEST(MetamathStore, OneUnitATheoremAndOneForTheAxioms) {
  MemoryStore store;
  const auto summary = make_units(testing::parsed(testing::small_text()), store);
  ASSERT_TRUE(summary) << summary.error().text();
  EXPECT_EQ(summary->axioms, 7u);
  EXPECT_EQ(summary->proofs, 6u);
  EXPECT_EQ(summary->units, 7u);
  EXPECT_EQ(summary->restated, 1u);  // "optional" states what "id" states
  EXPECT_EQ(summary->items, 7u + 6 + 5);
  EXPECT_THAT(names(store), ElementsAre("(axioms)", "a1i", "id", "idd", "five", "optional", "gen"));
  EXPECT_EQ(store.unit("(axioms)").items.size(), 7u);
  EXPECT_EQ(store.unit("id").items.size(), 2u);
  EXPECT_EQ(store.unit("optional").items.size(), 1u);
}

TEST(MetamathStore, ReferencesAreWhatTheProofUses) {
  // "ax-5" is in the list of labels, but in no step.
  const MemoryStore store = stored(replace_all(testing::small_text(), "wph wph wi vx wph id ax-gen $.",
                                               "( wi id ax-gen ax-5 ) AACBADE $."));
  const MemoryStore plain = stored(testing::small_text());
  EXPECT_EQ(store.unit("gen").key, plain.unit("gen").key);
  EXPECT_EQ(plain.unit("gen").references.size(), 3u);
  EXPECT_EQ(plain.unit("id").references.size(), 4u);
  EXPECT_EQ(plain.unit("idd").references,
            sorted({statement_of(plain, "id"), statement_of(plain, "a1i"), plain.unit("(axioms)").items[0]}));
  // The statement that it proves, but does not own, is one of them.
  const auto& references = plain.unit("optional").references;
  EXPECT_TRUE(std::ranges::binary_search(references, statement_of(plain, "id")));
}

TEST(MetamathStore, AUnitDependsOnItsContentAlone) {
  const MemoryStore plain = stored(testing::small_text());
  std::string other = replace_all(testing::small_text(), "id $p", "renamed $p");
  other = replace_all(other, "wph id", "wph renamed");
  other = replace_all(other, "$c (", "$c unheard-of (");
  other = replace_all(other, "wi $a", "wz $f wff z $. more $a |- ( z -> ( ph -> z ) ) $. wi $a");
  other = replace_all(other, "$v ph", "$v z ph");
  const MemoryStore changed = stored(other);
  EXPECT_EQ(changed.unit("renamed").key, plain.unit("id").key);
  for (const char* name : {"a1i", "idd", "five", "optional", "gen"})
    EXPECT_EQ(changed.unit(name).key, plain.unit(name).key) << name;
  EXPECT_NE(changed.unit("(axioms)").key, plain.unit("(axioms)").key);
}

TEST(MetamathStore, TypesAndDistinctVariablesAreContent) {
  const MemoryStore plain = stored(testing::small_text());
  const MemoryStore looser =
      stored(replace_all(testing::small_text(), "${ $d x ph $.  five", "${ $d x ph ps $.  five"));
  EXPECT_NE(statement_of(looser, "five"), statement_of(plain, "five"));
  EXPECT_EQ(statement_of(looser, "gen"), statement_of(plain, "gen"));
  const MemoryStore retyped = stored(replace_all(testing::small_text(), "wff", "formula"));
  EXPECT_NE(statement_of(retyped, "id"), statement_of(plain, "id"));
}

TEST(MetamathStore, FormOfTheProofAndUnusedSavesDoNotMatter) {
  const std::string text = testing::small_text();
  const MemoryStore plain = stored(text);
  const MemoryStore saved =
      stored(replace_all(text, "wph wph wi vx wph id ax-gen $.", "( wi id ax-gen ) AACZBADZEZ $."));
  EXPECT_EQ(saved.unit("gen").key, plain.unit("gen").key);
}

TEST(MetamathStore, WhatIsStatedAgainIsOwnedOnce) {
  const MemoryStore store =
      stored(testing::small_text() +
             "again $p |- ( ph -> ph ) $= wph id $. twice $p |- ( ph -> ph ) $= wph id $. "
             "thrice $p |- ( ph -> ph ) $= wph id $. late $a |- A. x ( ph -> ph ) $.");
  const Key stated = statement_of(store, "id");
  for (const char* name : {"again", "twice", "thrice"}) {
    EXPECT_THAT(store.unit(name).references, ElementsAre(stated)) << name;
    EXPECT_EQ(store.unit(name).items.size(), 1u);
  }
  EXPECT_NE(store.unit("again").key, store.unit("twice").key);
  EXPECT_NE(store.unit("twice").key, store.unit("thrice").key);
  // Proved first and stated as an axiom later: the axioms own it.
  EXPECT_EQ(store.unit("(axioms)").items.size(), 8u);
  EXPECT_EQ(store.unit("gen").items.size(), 1u);
}

TEST(MetamathStore, WrongProofsMakeUnitsButUnknownLabelsDoNot) {
  const std::string text = testing::small_text();
  MemoryStore store;
  ASSERT_TRUE(make_units(testing::parsed(replace_all(text, "wph wps ax-1 ax-mp $. $}", "? $. $}")), store));
  EXPECT_EQ(store.units().size(), 7u);
  MemoryStore other;
  const auto failed =
      make_units(testing::parsed(replace_all(text, "wph id a1i $.", "wph gen a1i $.")), other);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code(), Code::invalid);
  EXPECT_THAT(failed.error().text(), HasSubstr("making the unit of idd: test.mm:"));
  EXPECT_THAT(failed.error().text(), HasSubstr("the proof uses 'gen', which comes later"));
}

TEST(MetamathStore, ADatabaseWithoutAxiomsOrTheoremsIsFine) {
  EXPECT_TRUE(stored("$c a $.").units().empty());
  EXPECT_EQ(stored("$c a $. x $a a $.").units().size(), 1u);
}

TEST(MetamathStore, StopsAndTellsHowFarItIs) {
  std::stop_source stop;
  MemoryStore store;
  std::uint64_t done = 0, all = 0;
  const Database database = testing::parsed(testing::small_text());
  const auto progress = [&](const ProgressState& state) { done = state.done, all = state.total; };
  ASSERT_TRUE(make_units(database, store, progress, stop.get_token()));
  EXPECT_EQ(done, 6u);
  EXPECT_EQ(all, 6u);
  stop.request_stop();
  MemoryStore none;
  const auto stopped = make_units(database, none, {}, stop.get_token());
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().code(), Code::timeout);
}

}  // namespace
}  // namespace furlong::shard::metamath
