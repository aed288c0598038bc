// Winner, candidates, pins, and the tuning before.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "furlong/fleet/aggregate/aggregate.h"
#include "furlong/fleet/aggregate/internal/testing.h"

namespace furlong::fleet {
namespace {

using ::testing::ElementsAre;
using testing::Fleet;
using ::testing::HasSubstr;
using testing::only_row;
using testing::the_end_us;

/// Three machines with so many races each; gains scatter by 0.1 between machines.
Fleet three(int races, std::map<std::string, float> gains) {
  Fleet fleet;
  for (const char* machine : {"a", "b", "c"}) {
    fleet.add(races, {.machine = machine, .gains = gains});
    for (auto& [name, gain] : gains) gain += 0.1F;
  }
  return fleet;
}

record::Tuning pinned_to(const std::string& variant) {
  record::Tuning tuning;
  tuning.cards.push_back({.key = "Card",
                          .rows = {{.variant = variant,
                                    .race = false,
                                    .candidates = {variant, "base"},
                                    .samples = 90,
                                    .races = 80,
                                    .machines = 7,
                                    .rate = 103.0,
                                    .gain_pct = 3.0,
                                    .backend = "cuda"}}});
  tuning.cards[0].silicon = record::Silicon{.hash = "00000000000000aa"};
  return tuning;
}

/// The back end that the tuning takes, where `before` was taken the last time; empty: there was none.
std::string leading(const Fleet& fleet, const std::string& before) {
  AggregateOptions options;
  if (!before.empty()) {
    options.previous = pinned_to("u2");
    options.previous->cards[0].rows[0].backend = before;
    options.previous->cards[0].rows[0].race = true;
  }
  const record::Tuning tuning = to_tuning(fleet.aggregated(options));
  if (tuning.cards.size() != 1 || tuning.cards[0].rows.size() != 1) return "several rows";
  return tuning.cards[0].rows[0].backend;
}

TEST(Choice, TheBestMedianWithEnoughSamplesWins) {
  Fleet fleet;
  fleet.add(3, {.gains = {{"u2", 2}, {"u4", 1.5}, {"u8", -4}, {"slow", 0.5}}});
  fleet.add(2, {.gains = {{"rare", 9}}});
  const RowEvidence row = only_row(fleet.aggregated());
  EXPECT_EQ(row.variant, "u2");
  EXPECT_EQ(row.choice, Choice::race);
  EXPECT_THAT(row.candidates, ElementsAre("u2", "u4", "base"));
  EXPECT_THAT(row.why, HasSubstr("u2: +2.00% on 1 machine, 3 races"));
  EXPECT_EQ(only_row(fleet.aggregated({.near_pct = 2})).candidates,
            (std::vector<std::string>{"u2", "u4", "slow", "base"}));
  EXPECT_EQ(only_row(fleet.aggregated({.min_samples = 6})).choice, Choice::none);
}

TEST(Choice, BaseStaysWhereNothingBeatsIt) {
  Fleet fleet;
  fleet.add(3, {.gains = {{"u2", -0.5}, {"same", 0}, {"u8", -4}}});
  const RowEvidence row = only_row(fleet.aggregated());
  EXPECT_EQ(row.variant, "base");
  EXPECT_EQ(row.choice, Choice::race);
  EXPECT_THAT(row.candidates, ElementsAre("same", "u2", "base"));
  EXPECT_THAT(row.why, HasSubstr("base stays"));
}

TEST(Choice, TiesGoByName) {
  Fleet fleet;
  fleet.add(3, {.gains = {{"b", 2}, {"a", 2}, {"c", 2}}});
  const RowEvidence row = only_row(fleet.aggregated());
  EXPECT_EQ(row.variant, "a");
  EXPECT_THAT(row.candidates, ElementsAre("a", "b", "c", "base"));
}

TEST(Choice, RankedByRateTheFasterWinsWhateverItsGain) {
  Fleet fleet;
  // u4 was raced over a faster base: less gain, more rate.
  fleet.add(3, {.machine = "a", .gains = {{"u2", 5}}, .base_rate = 100});
  fleet.add(3, {.machine = "a", .gains = {{"u4", 2}}, .base_rate = 110});
  EXPECT_EQ(only_row(fleet.aggregated()).variant, "u2");
  const RowEvidence row = only_row(fleet.aggregated({.rank = Rank::rate}));
  EXPECT_EQ(row.variant, "u4");
  EXPECT_THAT(row.why, HasSubstr("ranked by rate"));
}

TEST(Choice, AStableWinnerIsPinned) {
  const auto choice = [](int races, float gain) {
    return only_row(three(races, {{"u2", gain}}).aggregated()).choice;
  };
  EXPECT_EQ(choice(7, 3), Choice::pinned_by_stability);
  EXPECT_EQ(choice(6, 3), Choice::race);    // 18 races are no 20
  EXPECT_EQ(choice(7, 0.5), Choice::race);  // its interval begins under the threshold
  Fleet two;
  for (const char* machine : {"a", "b"}) two.add(20, {.machine = machine, .gains = {{"u2", 3}}});
  const RowEvidence row = only_row(two.aggregated());
  EXPECT_EQ(row.choice, Choice::race);
  EXPECT_THAT(row.why, HasSubstr("2 of the 3 machines that a pin needs"));
}

TEST(Choice, OperatorsPinByAnyNameOfTheCard) {
  const Fleet fleet = three(7, {{"u2", 3}, {"u4", 1}});
  for (const char* card : {"Card", "00000000000000aa"}) {
    const RowEvidence row = only_row(fleet.aggregated({.pins = {{.card = card, .variant = "u4"}}}));
    EXPECT_EQ(row.variant, "u4");
    EXPECT_EQ(row.choice, Choice::pinned_by_operator);
    EXPECT_THAT(row.candidates, ElementsAre("u4", "u2", "base"));
    EXPECT_THAT(row.why, HasSubstr("by its races it would be u2"));
  }
  EXPECT_EQ(only_row(fleet.aggregated({.pins = {{.card = "Card", .variant = "base"}}})).variant, "base");
}

TEST(Choice, APinThatFitsNothingIsRefusedWithTheNearestNames) {
  const OpenStore open = three(7, {{"u2-ldg", 3}}).store();
  const auto refused = [&](Pin pin) {
    const auto result = aggregate(open, {.until_us = the_end_us, .pins = {std::move(pin)}});
    EXPECT_FALSE(result);
    EXPECT_EQ(result.error().code(), Code::invalid);
    return result.error().text();
  };
  EXPECT_THAT(refused({.card = "Cart", .variant = "u2-ldg"}), HasSubstr("did you mean 'Card'"));
  EXPECT_THAT(refused({.card = "Card", .variant = "u2-ldq"}), HasSubstr("did you mean 'u2-ldg'"));
  EXPECT_THAT(refused({.card = "Card", .variant = "u2-ldg", .program = "lotery"}), HasSubstr("'lottery'"));
  const auto two =
      aggregate(open, {.until_us = the_end_us,
                       .pins = {{.card = "Card", .variant = "u2-ldg"}, {.card = "Card", .variant = "base"}}});
  ASSERT_FALSE(two);
  EXPECT_THAT(two.error().text(), HasSubstr("two pins"));
}

TEST(Choice, APinnedRowStaysThoughAnotherIsALittleBetter) {
  const Fleet fleet = three(2, {{"u2", 3}, {"u4", 3.2F}});
  EXPECT_EQ(only_row(fleet.aggregated()).variant, "u4");
  const RowEvidence row = only_row(fleet.aggregated({.previous = pinned_to("u2")}));
  EXPECT_EQ(row.variant, "u2");
  EXPECT_EQ(row.choice, Choice::pinned_by_stability);
  EXPECT_THAT(row.why, HasSubstr("stays pinned"));
  EXPECT_FALSE(row.carried);
  EXPECT_EQ(only_row(fleet.aggregated({.previous = pinned_to("u2"), .unpin = {"Card"}})).variant, "u4");
}

TEST(Choice, APinnedRowLapsesWhenAnotherIsClearlyBetter) {
  const RowEvidence row =
      only_row(three(7, {{"u2", 3}, {"u4", 9}}).aggregated({.previous = pinned_to("u2")}));
  EXPECT_EQ(row.variant, "u4");
  EXPECT_EQ(row.choice, Choice::pinned_by_stability);
  EXPECT_THAT(row.why, HasSubstr("u2 was pinned, but u4 is better"));
}

TEST(Choice, APinnedRowLapsesWhenItsGainIsGone) {
  const RowEvidence row = only_row(three(7, {{"u2", -1}}).aggregated({.previous = pinned_to("u2")}));
  EXPECT_EQ(row.variant, "base");
  EXPECT_EQ(row.choice, Choice::race);
  EXPECT_THAT(row.why, HasSubstr("its interval now lies under"));
}

TEST(Choice, APinnedRowLapsesWhenManyRacesNoLongerTimeIt) {
  const RowEvidence row = only_row(three(7, {{"u4", 2}}).aggregated({.previous = pinned_to("gone")}));
  EXPECT_EQ(row.variant, "u4");
  EXPECT_THAT(row.why, HasSubstr("0 of 21 races on 0 of 3 machines timed it"));
}

TEST(Choice, AStragglerHoldsNoPinOfTheOthers) {
  record::Tuning previous = pinned_to("gone");
  Fleet fleet = three(7, {{"u4", 5}});
  fleet.add(3, {.machine = "late", .gains = {{"gone", 3}, {"u4", 5}}});
  const RowEvidence row = only_row(fleet.aggregated({.previous = previous}));
  EXPECT_EQ(row.variant, "u4");
  EXPECT_EQ(row.choice, Choice::pinned_by_stability);
  EXPECT_THAT(row.why, HasSubstr("gone was pinned, but 3 of 24 races on 1 of 4 machines timed it"));
  // Nor by a program text that the others have left.
  fleet = three(7, {{"u2", 3}});
  fleet.source = "older";
  fleet.add(3, {.machine = "late", .gains = {{"u2", 3}}});
  previous = pinned_to("u2");
  previous.cards[0].rows[0].source = "older";
  EXPECT_THAT(only_row(fleet.aggregated({.previous = previous})).why, HasSubstr("text has changed"));
  previous.cards[0].rows[0].source = "src";
  EXPECT_THAT(only_row(fleet.aggregated({.previous = previous})).why, HasSubstr("stays pinned"));
}

TEST(Choice, APinThatStaysKeepsItsTermsWhateverTheEvidence) {
  record::Tuning previous = pinned_to("u2");
  previous.cards[0].rows[0].race_every_n = 50;
  previous.cards[0].rows[0].min_driver = "570.1";
  for (const int races : {1, 2, 7}) {
    Fleet fleet;
    fleet.add(races, {.machine = "a", .gains = {{"u2", 3}}});
    for (const bool by_operator : {false, true}) {
      AggregateOptions options{.previous = previous};
      if (by_operator) options.pins = {{.card = "Card", .variant = "u2"}};
      const record::Tuning tuning = to_tuning(fleet.aggregated(options));
      const record::TuningRow& row = tuning.cards.at(0).rows.at(0);
      ASSERT_FALSE(row.race);
      EXPECT_EQ(row.race_every_n, 50) << races;
      EXPECT_EQ(row.min_driver, "570.1") << races;
    }
  }
  // A pin of its own begins with the usual ones.
  const record::Tuning anew = to_tuning(three(7, {{"u4", 9}}).aggregated({.previous = previous}));
  EXPECT_EQ(anew.cards.at(0).rows.at(0).min_driver, "");
  EXPECT_EQ(anew.cards[0].rows[0].race_every_n, record::TuningRow{}.race_every_n);
}

TEST(Choice, ByEnergyTheBackEndIsTheOneOfMoreWorkPerWatt) {
  Fleet fleet;
  for (const char* machine : {"a", "b", "c"})
    for (const bool cuda : {true, false}) {
      fleet.subject.backend = cuda ? "cuda" : "opencl";
      fleet.power_w = cuda ? 400 : 200;
      fleet.add(3, {.machine = machine, .gains = {{"u2", 2}}, .base_rate = cuda ? 100.F : 95.F});
    }
  EXPECT_EQ(to_tuning(fleet.aggregated()).cards.at(0).rows.at(0).backend, "cuda");
  EXPECT_EQ(to_tuning(fleet.aggregated({.by = By::energy})).cards.at(0).rows.at(0).backend, "opencl");
}

TEST(Choice, ALoserDoesNotBeatABaseInDispute) {
  Fleet fleet;
  for (const auto& [machine, base] : {std::pair("a", 100.F), std::pair("b", 115.F)})
    for (int i = 0; i < 3; ++i) {
      DecodedRace race =
          fleet.race({.machine = machine, .slot = "box", .gains = {{"u2", -4}}, .base_rate = base});
      for (VariantGain& variant : race.variants)
        if (variant.name != "base") variant.rate = absent;
      fleet.add(machine, std::move(race));
    }
  const Aggregate aggregate = fleet.aggregated();
  EXPECT_EQ(only_row(aggregate).variant, "base") << only_row(aggregate).why;
}

TEST(Choice, WhatRoundsToNothingHasNoSign) {
  const Aggregate aggregate = three(7, {{"u2", -0.103F}, {"u4", -0.0F}}).aggregated();
  const std::string text = explain_text(aggregate.cards.at(0), aggregate.options);
  EXPECT_THAT(text, HasSubstr("+0.00"));
  EXPECT_THAT(text, ::testing::Not(HasSubstr("-0.00")));
}

TEST(Choice, APinnedRowIsCarriedOverWhileItsCardIsSeen) {
  Fleet fleet;
  fleet.add(40, {.machine = "a", .winner = "u2", .pinned = true});
  const Aggregate aggregate = fleet.aggregated({.previous = pinned_to("u2")});
  const RowEvidence& row = only_row(aggregate);
  EXPECT_EQ(row.variant, "u2");
  EXPECT_EQ(row.choice, Choice::pinned_by_stability);
  ASSERT_TRUE(row.carried);
  const record::TuningRow tuned = to_tuning(aggregate).cards.at(0).rows.at(0);
  EXPECT_FALSE(tuned.race);
  EXPECT_EQ(tuned.samples, 90);
  EXPECT_EQ(tuned.gain_pct, 3.0);
  EXPECT_THAT(tuned.candidates, ElementsAre("u2", "base"));
  // The operator may still pin what the pinned runs name.
  EXPECT_EQ(only_row(fleet.aggregated({.pins = {{.card = "Card", .variant = "u2"}}})).choice,
            Choice::pinned_by_operator);
  // A card of which nothing is heard has no row: it races in full when it comes back.
  EXPECT_TRUE(Fleet().aggregated({.previous = pinned_to("u2")}).cards.empty());
}

TEST(Choice, APinnedRowLapsesWithItsProgramsText) {
  Fleet fleet = three(2, {{"u2", 3}});
  record::Tuning previous = pinned_to("u2");
  previous.cards[0].rows[0].source = "older";
  EXPECT_EQ(only_row(fleet.aggregated({.previous = previous})).choice, Choice::race);
  previous.cards[0].rows[0].source = "src";
  EXPECT_EQ(only_row(fleet.aggregated({.previous = previous})).choice, Choice::pinned_by_stability);
}

TEST(Choice, APinnedRowLapsesWithItsProgramsTextThoughWindowsOverlap) {
  const auto next = [](Fleet fleet, std::initializer_list<const char*> sources,
                       const std::optional<record::Tuning>& previous) {
    for (const char* source : sources) {
      fleet.source = source;
      for (const char* machine : {"a", "b", "c"}) fleet.add(7, {.machine = machine, .gains = {{"u2", 3}}});
    }
    return to_tuning(fleet.aggregated({.previous = previous}));
  };
  // One who still runs another text, or lies about it and is set aside, does not blur the others'.
  Fleet others;
  others.source = "odd";
  others.add(3, {.machine = "odd", .gains = {{"u2", 90}}, .base_rate = 900});
  record::Tuning tuning = next(others, {"A"}, std::nullopt);
  ASSERT_FALSE(tuning.cards.at(0).rows.at(0).race);
  EXPECT_EQ(tuning.cards[0].rows[0].source, "A");
  tuning = next({}, {"A", "B"}, tuning);
  EXPECT_FALSE(tuning.cards.at(0).rows.at(0).race);
  EXPECT_EQ(tuning.cards[0].rows[0].source, "A") << "that it was pinned with";
  Fleet few;
  few.source = "B";
  few.add(3, {.machine = "a", .gains = {{"u2", 3}}});
  EXPECT_TRUE(next(few, {}, tuning).cards.at(0).rows.at(0).race) << "nobody names A any more";
  tuning = next({}, {"B"}, tuning);
  EXPECT_FALSE(tuning.cards.at(0).rows.at(0).race) << "pinned anew";
  EXPECT_EQ(tuning.cards[0].rows[0].source, "B");
  // A pin that began in such a window has its text from the first window with one alone.
  tuning = next({}, {"A", "B"}, std::nullopt);
  EXPECT_FALSE(tuning.cards.at(0).rows.at(0).race);
  EXPECT_EQ(tuning.cards[0].rows[0].source, "");
  EXPECT_EQ(next({}, {"B"}, tuning).cards.at(0).rows.at(0).source, "B");
}

TEST(Choice, OfSeveralBackEndsTheFastestLeads) {
  Fleet fleet;
  for (const char* machine : {"a", "b", "c"}) {
    fleet.subject.backend = "cuda";
    fleet.add(3, {.machine = machine, .gains = {{"u2", 1}}, .base_rate = 100});
    fleet.subject.backend = "opencl";
    fleet.add(3, {.machine = machine, .gains = {{"g64", 20}}, .base_rate = 60});
  }
  // One machine's wonderful third one speaks for nobody.
  fleet.subject.backend = "metal";
  fleet.add(90, {.machine = "a", .gains = {{"m1", 900}}, .base_rate = 9000});
  const record::Tuning tuning = to_tuning(fleet.aggregated());
  ASSERT_EQ(tuning.cards.at(0).rows.size(), 1u);
  EXPECT_EQ(tuning.cards[0].rows[0].backend, "cuda");
  EXPECT_EQ(tuning.cards[0].rows[0].variant, "u2");
  // The back end before lost its place: the other's rates are clearly higher.
  EXPECT_EQ(leading(fleet, "opencl"), "cuda");
}

TEST(Choice, TheBackEndBeforeStaysUntilAnotherIsClearlyFaster) {
  // Machines differ by far more than the back ends do.
  Fleet fleet;
  const auto add = [&](const std::string& machine, float base_rate, float lead) {
    fleet.subject.backend = "opencl";
    fleet.add(3, {.machine = machine, .gains = {{"u2", 1}}, .base_rate = base_rate});
    fleet.subject.backend = "cuda";
    fleet.add(3, {.machine = machine, .gains = {{"u2", 1}}, .base_rate = base_rate * lead});
  };
  for (int i = 0; i < 8; ++i) add(fmt::format("m{}", i), 96 + static_cast<float>(i), 1.02F);
  EXPECT_EQ(leading(fleet, ""), "cuda");
  EXPECT_EQ(leading(fleet, "cuda"), "cuda");
  EXPECT_EQ(leading(fleet, "opencl"), "opencl") << "the intervals overlap";
  // One machine has no interval: a little faster is noise, much faster is not.
  for (const auto& [lead, leads] : {std::pair(1.005F, "opencl"), {1.05F, "opencl"}, {1.3F, "cuda"}}) {
    fleet = {};
    add("only", 100, lead);
    EXPECT_EQ(leading(fleet, ""), "cuda") << lead;
    EXPECT_EQ(leading(fleet, "opencl"), leads) << lead;
  }
}

TEST(Choice, WhereNoBackEndHasAMajorityTheOneOfMostMachinesLeads) {
  Fleet fleet;
  const auto add = [&](const char* backend, int machines, float base_rate) {
    fleet.subject.backend = backend;
    for (int i = 0; i < machines; ++i)
      fleet.add(3,
                {.machine = fmt::format("{}{}", backend, i), .gains = {{"u2", 1}}, .base_rate = base_rate});
  };
  add("cuda", 6, 100);
  add("opencl", 5, 104);
  add("x", 1, 1e9F);
  EXPECT_EQ(leading(fleet, ""), "cuda");
  EXPECT_EQ(leading(fleet, "cuda"), "cuda");
  EXPECT_EQ(leading(fleet, "opencl"), "opencl") << "a machine more or less makes it no worse";
  EXPECT_EQ(leading(fleet, "x"), "cuda");
}

}  // namespace
}  // namespace furlong::fleet
