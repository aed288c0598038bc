#include "furlong/record/tuning.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "furlong/base/json.h"
#include "furlong/base/os/file.h"
#include "furlong/base/random.h"
#include "furlong/record/internal/random_record.h"

namespace furlong::record {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string golden() { return system_files().read("furlong/record/testdata/tuning.json").value(); }

TuningQuery query(std::string label, std::string hash = "") {
  TuningQuery query;
  query.label = std::move(label);
  query.silicon.hash = std::move(hash);
  query.program_class = {{"loads", 128}, {"wide", 0}};
  query.driver = "580.95.05";
  return query;
}

std::string found(const Tuning& tuning, const TuningQuery& asked) {
  const TuningMatch match = find_tuning(tuning, asked);
  return match.row == nullptr ? "none" : match.how + " " + match.card->key + " " + match.row->variant;
}

Tuning parsed(std::string_view cards) {
  return parse_tuning(fmt::format(R"({{"schema":1,"cards":{}}})", cards), "t.json").value();
}

TEST(TuningFile, TheGoldenFileIsReadAndWrittenByteForByte) {
  const Tuning tuning = parse_tuning(golden(), "tuning.json").value();
  EXPECT_EQ(tuning.updated, "2026-03-01T12:00:00Z");
  EXPECT_EQ(tuning.window_days, 7);
  ASSERT_EQ(tuning.cards.size(), 2u);
  const TuningCard& card = tuning.cards[1];
  EXPECT_EQ(card.key, "NVIDIA_GeForce_RTX_5090");
  EXPECT_EQ(card.silicon->hash, "9c1f0a5b7d3e2f46");
  EXPECT_THAT(card.aliases, ElementsAre("GeForce_RTX_5090"));
  ASSERT_EQ(card.rows.size(), 4u);
  EXPECT_EQ(card.rows[0].variant, "u2-ldg");
  EXPECT_TRUE(card.rows[0].race);
  EXPECT_THAT(card.rows[0].candidates, ElementsAre("u2-ldg", "ldg", "base"));
  EXPECT_EQ(card.rows[0].rate, 118.3);
  EXPECT_EQ(card.rows[0].base_rate, 115.9);
  EXPECT_EQ(card.rows[0].rate_per_w, 0.254);
  EXPECT_EQ(card.rows[0].backend, "cuda");
  EXPECT_EQ(card.rows[1].program_class, (ProgramClass{{"loads", 32}, {"wide", 8}}));
  EXPECT_FALSE(card.rows[1].race);
  EXPECT_EQ(card.rows[1].race_every_n, 10);
  EXPECT_EQ(card.rows[1].min_driver, "580.65");
  EXPECT_EQ(card.rows[2].program, "gemv");
  EXPECT_EQ(card.rows[2].rate, 1480);
  const TuningRow& reduction = card.rows[3];
  EXPECT_EQ(reduction.program, "reduction");
  EXPECT_EQ(reduction.source, "3b0f8a5c6d1e2f47");
  ASSERT_EQ(reduction.sizes.size(), 2u);
  EXPECT_EQ(reduction.sizes[1].problem, (ProgramClass{{"n", 268435456}}));
  EXPECT_EQ(reduction.sizes[1].variant, "w4-u4");
  EXPECT_EQ(reduction.sizes[1].rate, 1.55e12);
  EXPECT_THAT(reduction.sizes[1].gains_pct, ElementsAre(std::pair("w4", 5.1), std::pair("w4-u4", 6.9)));
  EXPECT_EQ(print(tuning), golden());
  EXPECT_THAT(system_files().read("docs/formats/tuning.md").value(), HasSubstr(golden()));
}

TEST(TuningFile, RandomTuningsSurviveTheRoundTrip) {
  Random random(17);
  for (int i = 0; i < 500; ++i) {
    const Tuning tuning = internal::random_tuning(random);
    const std::string text = print(tuning);
    const auto read = parse_tuning(text, "random");
    ASSERT_TRUE(read) << read.error().text() << "\n" << text;
    EXPECT_EQ(print(*read), text);
    EXPECT_EQ(read->cards.size(), tuning.cards.size());
    for (std::size_t c = 0; c < read->cards.size(); ++c) {
      EXPECT_EQ(read->cards[c].silicon, tuning.cards[c].silicon);
      EXPECT_EQ(read->cards[c].aliases, tuning.cards[c].aliases);
      for (const TuningRow& row : tuning.cards[c].rows)
        EXPECT_NE(std::ranges::find(read->cards[c].rows, row), read->cards[c].rows.end()) << text;
      EXPECT_EQ(read->cards[c].rows.size(), tuning.cards[c].rows.size());
    }
  }
}

TEST(TuningFile, TheOrderItWasPutInDoesNotMatter) {
  Random random(19);
  for (int i = 0; i < 50; ++i) {
    Tuning tuning = internal::random_tuning(random);
    const std::string text = print(tuning);
    random.shuffle(std::span(tuning.cards));
    for (TuningCard& card : tuning.cards) random.shuffle(std::span(card.rows));
    EXPECT_EQ(print(tuning), text);
  }
}

TEST(TuningFile, UnknownKeysAreKept) {
  const std::string text =
      R"({"schema":1,"cards":{"A":{"variant":"u2","later":1,"classes":[{"loads":1,"wide":2,"variant":"x","x":[]}]},)"
      R"("B":{"only":true}},"top":{}})";
  const Tuning tuning = parse_tuning(text, "t").value();
  const Json json = tuning_to_json(tuning);
  EXPECT_EQ(json["top"], Json::object());
  EXPECT_EQ(json["cards"]["A"]["later"], 1);
  EXPECT_EQ(json["cards"]["A"]["classes"][0]["x"], Json::array());
  EXPECT_EQ(json["cards"]["B"]["only"], true);
  EXPECT_TRUE(tuning.cards[1].rows.empty());
}

TEST(TuningFile, WhatIsWrongIsNamed) {
  const auto refused = [](std::string_view text) {
    const auto read = parse_tuning(text, "t.json");
    return read ? std::string("accepted")
                : std::string(code_name(read.error().code())) + ": " + read.error().text();
  };
  const auto card = [&](std::string_view members) {
    return refused(fmt::format(R"({{"schema":1,"cards":{{"A":{{{}}}}}}})", members));
  };
  EXPECT_EQ(refused(R"({"schema":3})"),
            "incompatible: t.json: tuning of schema 3, expected 1: a newer program wrote it");
  EXPECT_EQ(refused(R"({"cards":{}})"), "invalid: t.json.schema is missing");
  EXPECT_EQ(refused(R"({"schema":1})"), "invalid: t.json.cards is missing");
  EXPECT_EQ(refused(R"({"schema":1,"cards":[]})"), "invalid: t.json.cards must be an object, not array");
  EXPECT_EQ(refused(R"({"schema":1,"cards":{"":{}}})"), "invalid: t.json.cards holds a card without a name");
  EXPECT_EQ(refused(R"({"schema":1,"cards":{},"updated":"now"})"),
            "invalid: t.json.updated: 'now' is no time as 2026-03-01T12:00:00Z");
  EXPECT_THAT(refused("{\"schema\":1,\n\"cards\":{}"), HasSubstr("invalid: t.json: byte 23 (line 2"));
  EXPECT_EQ(card(R"("race":false)"),
            "invalid: t.json.cards.A.variant is missing: a row that does not race must name one");
  EXPECT_EQ(card(R"("variant":7)"), "invalid: t.json.cards.A.variant must be a string, not number");
  EXPECT_EQ(card(R"("candidates":["a",""])"), "invalid: t.json.cards.A.candidates holds an empty name");
  EXPECT_EQ(card(R"("classes":[{"loads":1}])"), "invalid: t.json.cards.A.classes[0].wide is missing");
  EXPECT_EQ(card(R"("programs":[{"program":"p"},{"class":{}}])"),
            "invalid: t.json.cards.A.programs[1].program is missing");
  EXPECT_EQ(card(R"("variant":"a","programs":[{"program":"lottery","variant":"b"}])"),
            "invalid: t.json.cards.A.programs[0].program: a second row for program lottery and class any");
  EXPECT_EQ(card(R"("variant":"a","race_every_n":-1)"),
            "invalid: t.json.cards.A.race_every_n is -1: must be from 0 to 2147483647");
  const auto sizes = [&](std::string_view elements) {
    return card(fmt::format(R"("programs":[{{"program":"p","sizes":[{}]}}])", elements));
  };
  const std::string size = "invalid: t.json.cards.A.programs[0].sizes[";
  EXPECT_EQ(sizes(R"({"problem":{"n":1},"variant":"u"},{"variant":"u"})"), size + "1].problem is missing");
  EXPECT_EQ(sizes(R"({"problem":{},"variant":"u"})"), size + "0].problem is empty");
  EXPECT_EQ(sizes(R"({"problem":{"n":1},"variant":""})"), size + "0].variant is empty");
  EXPECT_EQ(sizes(R"({"problem":{"n":[]},"variant":"u"})"),
            size + "0].problem.n must be a number, a word or a boolean");
  EXPECT_EQ(sizes(R"({"problem":{"n":1},"variant":"u","gains_pct":{"u":-100}})"),
            size + "0].gains_pct.u is no number over -100");
  EXPECT_EQ(sizes(R"({"problem":{"n":1},"variant":"u"},{"problem":{"n":1},"variant":"v"})"),
            size + "1]: a second entry for n=1");
  EXPECT_EQ(card(R"("program":"")"), "invalid: t.json.cards.A.program is empty");
  EXPECT_EQ(card(R"("silicon":[])"), "invalid: t.json.cards.A.silicon must be an object, not array");
}

TEST(FindTuning, BySiliconThenAliasThenLabel) {
  const Tuning tuning = parsed(R"({
    "Card":{"variant":"by-label"},
    "Other":{"aliases":["Card"],"variant":"by-alias"},
    "Third":{"silicon":{"hash":"h1"},"variant":"by-silicon"}})");
  EXPECT_EQ(found(tuning, query("Card", "h1")), "silicon Third by-silicon");
  EXPECT_EQ(found(tuning, query("Card", "h2")), "alias Other by-alias");
  EXPECT_EQ(found(tuning, query("Other", "h2")), "label Other by-alias");
  EXPECT_EQ(found(tuning, query("Renamed", "h1")), "silicon Third by-silicon");
  EXPECT_EQ(found(tuning, query("Third", "")), "label Third by-silicon");
  EXPECT_EQ(found(tuning, query("Nobody", "h2")), "none");
}

TEST(FindTuning, ACardOfOneNameAndOtherSiliconIsAnother) {
  const Tuning tuning = parsed(R"({
    "Card":{"silicon":{"hash":"h1","vendor":"V","arch":"a"},"aliases":["Alias"],"variant":"u2"},
    "Card@h2":{"variant":"u8"}})");
  EXPECT_EQ(found(tuning, query("Card", "h1")), "silicon Card u2");
  EXPECT_EQ(found(tuning, query("Card", "h2")), "key Card@h2 u8");
  EXPECT_EQ(found(tuning, query("Card", "h3")), "none");
  EXPECT_EQ(found(tuning, query("Alias", "h3")), "none");
  EXPECT_EQ(found(tuning, query("Alias", "")), "alias Card u2");
  TuningQuery without_hash = query("Card");
  without_hash.silicon.arch = "b";
  EXPECT_EQ(found(tuning, without_hash), "none") << "another architecture is other silicon, hash or not";
  const Tuning forged = parsed(R"({"Card@h2":{"silicon":{"hash":"h9"},"variant":"u9"}})");
  EXPECT_EQ(found(forged, query("Card", "h2")), "none") << "a key does not say more than the silicon";
}

TEST(FindTuning, SiliconWithoutAHashIsComparedByItsFields) {
  const Tuning tuning =
      parsed(R"({"X":{"silicon":{"vendor":"V","arch":"a","multiprocessors":4,"memory_bytes":100},
    "variant":"u2"}})");
  TuningQuery asked = query("Renamed", "h9");
  asked.silicon.vendor = "V";
  asked.silicon.arch = "a";
  asked.silicon.multiprocessors = 4;
  asked.silicon.memory_bytes = 100;
  EXPECT_EQ(found(tuning, asked), "silicon X u2");
  asked.silicon.memory_bytes = 200;
  EXPECT_EQ(found(tuning, asked), "none");
}

TEST(FindTuning, TheMostSpecificRowWins) {
  const Tuning tuning = parsed(R"({"Card":{"variant":"any",
    "classes":[{"loads":128,"wide":0,"variant":"exact"},{"loads":128,"wide":32,"variant":"other"}],
    "programs":[{"program":"gemv","variant":"gemv-any"},{"program":"gemv","class":{"type":"int8"},"variant":"gemv-int8"},
                {"program":"gemv","class":{"n":64,"type":"int8"},"variant":"gemv-64"}]}})");
  EXPECT_EQ(found(tuning, query("Card")), "label Card exact");
  TuningQuery asked = query("Card");
  asked.program_class = {{"wide", 8}, {"loads", 64}};
  EXPECT_EQ(found(tuning, asked), "label Card any");
  asked.program_class = {{"wide", 32}, {"loads", 128}};
  EXPECT_EQ(found(tuning, asked), "label Card other");
  asked.program = "gemv";
  asked.program_class = {{"n", 64}, {"k", 2}, {"type", "int8"}};
  EXPECT_EQ(found(tuning, asked), "label Card gemv-64");
  asked.program_class = {{"n", 65}, {"k", 2}, {"type", "int8"}};
  EXPECT_EQ(found(tuning, asked), "label Card gemv-int8");
  asked.program_class = {{"n", 65}, {"k", 2}, {"type", "bf16"}};
  EXPECT_EQ(found(tuning, asked), "label Card gemv-any");
  asked.program = "gemm";
  EXPECT_EQ(found(tuning, asked), "none");
}

TEST(FindTuning, AnOldDriverIsPassedOverWithANote) {
  const Tuning tuning = parsed(R"({"Card":{"variant":"any",
    "classes":[{"loads":128,"wide":0,"variant":"exact","min_driver":"580.95.10"}]}})");
  TuningMatch match = find_tuning(tuning, query("Card"));
  ASSERT_NE(match.row, nullptr);
  EXPECT_EQ(match.row->variant, "any");
  EXPECT_EQ(match.note, "the entry of Card for lottery needs driver 580.95.10, this is 580.95.05");
  TuningQuery newer = query("Card");
  newer.driver = "590";
  match = find_tuning(tuning, newer);
  EXPECT_EQ(match.row->variant, "exact");
  EXPECT_EQ(match.note, "");
}

TEST(Override, ReplacesTheRowsItHasAndNoOthers) {
  Tuning tuning = parsed(R"({
    "Card":{"silicon":{"hash":"h1"},"variant":"any","classes":[{"loads":128,"wide":0,"variant":"exact"}]},
    "Kept":{"variant":"u2"}})");
  apply_override(tuning, parsed(R"({
    "Renamed":{"silicon":{"hash":"h1"},"aliases":["A"],
      "classes":[{"loads":128,"wide":0,"variant":"forced","race":false},{"loads":1,"wide":1,"variant":"new"}]},
    "Added":{"variant":"u8"}})"));
  ASSERT_EQ(tuning.cards.size(), 3u);
  EXPECT_EQ(found(tuning, query("Card", "h1")), "silicon Card forced");
  TuningQuery other = query("Card", "h1");
  other.program_class = {{"loads", 2}, {"wide", 2}};
  EXPECT_EQ(found(tuning, other), "silicon Card any");
  other.program_class = {{"loads", 1}, {"wide", 1}};
  EXPECT_EQ(found(tuning, other), "silicon Card new");
  EXPECT_EQ(found(tuning, query("Kept")), "label Kept u2");
  EXPECT_EQ(found(tuning, query("Added")), "label Added u8");
  EXPECT_THAT(tuning.cards[0].aliases, ElementsAre("A"));
}

TEST(RacesNow, OnePrepareInNRacesAPinnedRow) {
  TuningRow row;
  EXPECT_TRUE(races_now(row, 1));
  row.race = false;
  int raced = 0;
  for (std::uint64_t prepare = 1; prepare <= 100; ++prepare) raced += races_now(row, prepare) ? 1 : 0;
  EXPECT_EQ(raced, 5);
  EXPECT_FALSE(races_now(row, 1));
  row.race_every_n = 0;
  EXPECT_FALSE(races_now(row, 20));
}

TEST(CompareDrivers, IsByNumbers) {
  const char* ascending[] = {"3", "470.82.1", "580.9", "580.10", "580.95.05", "580.95.6", "600"};
  for (std::size_t i = 0; i < std::size(ascending); ++i)
    for (std::size_t j = 0; j < std::size(ascending); ++j) {
      const int order = compare_drivers(ascending[i], ascending[j]);
      EXPECT_EQ(order < 0, i < j) << ascending[i] << " " << ascending[j];
      EXPECT_EQ(order > 0, i > j) << ascending[i] << " " << ascending[j];
    }
  EXPECT_EQ(compare_drivers("580", "580.0.0"), 0);
  EXPECT_EQ(compare_drivers("580.95.05", "580.95.5"), 0);
  EXPECT_EQ(compare_drivers("3.1 (PoCL)", "3.1"), 0);
  EXPECT_LT(compare_drivers("", "1"), 0);
  EXPECT_LT(compare_drivers("99999999999999999999", "100000000000000000000"), 0);
}

}  // namespace
}  // namespace furlong::record
