// Which records count, and what of them is evidence.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "furlong/audit/audit.h"
#include "furlong/audit/internal/testing.h"

namespace furlong::audit {
namespace {

using testing::add_twice;
using testing::Audit;
using testing::failed;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using testing::race;
using ::testing::SizeIs;
using testing::value_of;
using testing::variant;

TEST_F(Audit, WhatFellBackIsNoEvidence) {
  never_wins();
  for (record::RaceRecord& record : records) {
    variant(record, "u2").detail.fallback = true;
    record.variants.push_back(record.variants.back());
    record.variants.back().name = "u2-w4";  // what fell back has no part in pairs of other knobs either
  }
  const ValueReport& value = u2();
  EXPECT_EQ(value.verdict, Verdict::unproven);
  EXPECT_THAT(value.why, HasSubstr("named 12 times, but"));
  EXPECT_EQ(value.fell_back, 12);
  EXPECT_THAT(value.regimes, IsEmpty());
  EXPECT_EQ(report.fallbacks, 12);
  EXPECT_EQ(report.used, 0);
  EXPECT_EQ(value_of(lattice, report, "warps", 4).fell_back, 6);
  EXPECT_THAT(show_text(lattice, report), HasSubstr("note: 12 variants were left out: their shape or chip"));
  never_wins();
  EXPECT_EQ(u2().verdict, Verdict::drop) << "the others count";
  EXPECT_EQ(report.fallbacks, 12);
}

TEST_F(Audit, ADefaultThatFellBackIsNoEvidence) {
  records = {race("A", 1, {{"w4", 1.0}, {"u2-w4", 3.0}})};
  variant(records[0], "w4").detail.fallback = true;
  EXPECT_THAT(u2().regimes, IsEmpty());
  EXPECT_EQ(u2().fell_back, 1);
}

TEST_F(Audit, NoTurnIsNoFault) {
  records.push_back(race("A", 1, {}));
  records.back().variants.push_back(failed("u2", "budget", "not timed: budget"));
  records.push_back(race("A", 1, {}));
  records.back().variants.push_back(failed("u2", "", "not compiled within the race's budget"));
  const ValueReport& value = u2();
  EXPECT_THAT(value.why, HasSubstr("raced, but never timed with an interval beside the default"));
  EXPECT_EQ(value.untimed, 2);
  EXPECT_EQ(report.used, 0);
}

TEST_F(Audit, OldRecordsSayInWordsThatAVariantFailed) {
  records.push_back(race("A", 1, {}));
  records.back().variants.push_back(failed("u2", "", "does not compile: ptxas fatal"));
  EXPECT_THAT(u2().why, HasSubstr("u2 fails (out)"));
}

TEST_F(Audit, WhatIsRacedInCombinationOnlyHasNoPartner) {
  records = {race("A", 1, {{"u2-w4", 3.0}}), race("A", 2, {{"u2-w4", 3.0}})};
  const ValueReport& value = u2();
  EXPECT_EQ(value.verdict, Verdict::unproven);
  EXPECT_EQ(value.without_partner, 2);
  EXPECT_THAT(value.why, HasSubstr("raced 2 times, never beside w4, which differs in this knob alone"));
  EXPECT_THAT(about("warps", 4).why, HasSubstr("never beside u2, which"));
}

TEST_F(Audit, PairsTakeTheRatioOfTheirGains) {
  records = {race("A", 1, {{"w4", 1.0, 0.1}, {"u2-w4", 3.0, 0.2}})};
  const Spread& spread = u2().regimes.at(0).spread;
  EXPECT_NEAR(spread.estimate, std::log(1.03 / 1.01), 1e-12);
  EXPECT_NEAR(spread.low, std::log(1.028 / 1.011), 1e-12);
  EXPECT_NEAR(spread.high, std::log(1.032 / 1.009), 1e-12);
  EXPECT_EQ(report.used, 1);
}

TEST_F(Audit, FarBehindIsALossWithoutAnInterval) {
  records = {race("A", 1, {{"u2", -40.0}})};
  record::VariantDetail& detail = variant(records[0], "u2").detail;
  detail.ci.reset();
  detail.heats = 2;
  detail.exit = "eliminated";
  detail.out = "far slower than base (-40%) in each of its first 2 heats";
  EXPECT_EQ(u2().regimes.at(0).state, State::loses);
  detail.gain_pct = -3;  // an interval that a reader dropped
  EXPECT_THAT(u2().regimes, IsEmpty());
  EXPECT_EQ(report.no_interval, 1);
}

TEST_F(Audit, ThePlainRuleProvesNothing) {
  records = {race("A", 1, {{"u2", -40.0}})};
  records[0].verdict = record::Verdict::classic;
  variant(records[0], "u2").detail.ci.reset();
  EXPECT_THAT(u2().regimes, IsEmpty());
  EXPECT_EQ(report.no_interval, 1);
}

TEST_F(Audit, OneMachineCodeIsExactlyEqual) {
  records = {race("A", 1, {{"w4", 1.0, 0.4}, {"u2-w4", 1.0, 0.4}})};
  variant(records[0], "u2-w4").detail.same_code_as = "w4";
  variant(records[0], "u2-w4").detail.exit = "duplicate";
  const RegimeEvidence& evidence = u2().regimes.at(0);
  EXPECT_EQ(evidence.state, State::ties);
  EXPECT_EQ(evidence.spread.low, 0);
  EXPECT_EQ(evidence.spread.high, 0);
}

TEST_F(Audit, ANewestMeanOutsideItsIntervalIsPulledIn) {
  records = {race("A", 1, {{"u2", 2.0}})};
  variant(records[0], "u2").detail.gain_pct = 2.5;
  const Spread& spread = u2().regimes.at(0).spread;
  EXPECT_DOUBLE_EQ(spread.estimate, spread.high);
}

TEST_F(Audit, WhatIsNotOfTheProgramIsCounted) {
  records = {race("A", 1, {{"u2", 1.0}}), race("A", 1, {{"u2", 1.0}}), race("A", 1, {{"u2", 1.0}}),
             race("A", 1, {{"u2", 1.0}, {"u4", 2.0}})};
  records[0].program = "other";
  records[1].language = "opencl";
  records[2].metric = "noise";
  records.push_back(records[3]);
  options.program = "mix";
  options.language = "cuda";
  u2();
  EXPECT_EQ(report.records, 5);
  EXPECT_EQ(report.other_program, 1);
  EXPECT_EQ(report.other_language, 1);
  EXPECT_EQ(report.other_metric, 1);
  EXPECT_EQ(report.repeated, 1) << "one race, read twice";
  EXPECT_EQ(report.used, 1);
  EXPECT_EQ(report.sources, 1);
  ASSERT_THAT(report.lost, SizeIs(1));
  EXPECT_EQ(report.lost[0].name, "u4");
  EXPECT_EQ(report.lost[0].records, 1);
  EXPECT_THAT(report.lost[0].why, HasSubstr("'u4' is no tag of this lattice"));
}

TEST_F(Audit, TextsOfTheProgramAreNotPooled) {
  add_twice(records, "A", 1, {{"u2", -10.0}});
  add_twice(records, "A", 1, {{"u2", 10.0}});
  for (int i = 0; i < 4; ++i) records[i].source = i < 2 ? "old" : "new";
  std::ranges::reverse(records);  // age is told by the stamps, not by the order
  EXPECT_EQ(u2().regimes.at(0).state, State::wins);
  EXPECT_EQ(u2().regimes[0].races, 2);
  EXPECT_EQ(report.other_source, 2);
  EXPECT_EQ(report.used, 2);
  EXPECT_EQ(report.sources, 1);
  EXPECT_THAT(show_text(lattice, report), HasSubstr("2 of 4 records hold evidence, 2 of other texts of the "
                                                    "program; texts of the program: 1\nnote: of each class"));
  options.source = "old";
  EXPECT_EQ(u2().regimes.at(0).state, State::loses);
  EXPECT_EQ(report.other_source, 2);
  EXPECT_THAT(show_text(lattice, report), HasSubstr("note: only the program's text as it is now counts"));
  options.source = "newer";
  EXPECT_THAT(u2().regimes, IsEmpty());
  EXPECT_EQ(report.other_source, 4);
  options.any_source = true;
  EXPECT_EQ(u2().regimes.at(0).state, State::open);
  EXPECT_TRUE(u2().regimes[0].spread.disagree);
  EXPECT_EQ(report.other_source, 0);
  EXPECT_EQ(report.sources, 2);
  EXPECT_THAT(show_text(lattice, report), Not(HasSubstr("note:")));
}

TEST_F(Audit, EachClassHasANewestTextOfItsOwn) {
  records = {race("A", 1, {{"u2", 1.0}}), race("B", 1, {{"u2", 1.0}}), race("A", 2, {{"u2", 1.0}})};
  records[0].source = "old";
  records[2].source = "of class 2";
  u2();
  EXPECT_EQ(report.used, 2) << "on whichever card";
  EXPECT_EQ(report.other_source, 1);
  EXPECT_EQ(report.sources, 2);
  records[1].ts = "2025-12-31T23:59:59.5Z";
  u2();
  EXPECT_THAT(report.knobs[0].values[0].regimes, SizeIs(2));
  EXPECT_EQ(report.knobs[0].values[0].regimes[0].regime.card, "A");
  records[0].program = "other";  // what is not of the program makes nothing old
  options.program = "mix";
  u2();
  EXPECT_EQ(report.used, 2);
  EXPECT_EQ(report.other_source, 0);
}

TEST_F(Audit, RecordsThatDoNotTellTheirLanguage) {
  records = {race("A", 1, {{"u2", 1.0}}), race("A", 2, {{"u2", 1.0}})};
  records[0].language = records[1].language = "";
  records[1].backend = "sim";
  options.language = "cuda";
  u2();
  EXPECT_EQ(report.other_language, 0);
  options.unstated_language = false;
  u2();
  EXPECT_EQ(report.other_language, 1) << "a back end's name tells, a simulated device's does not";
}

TEST_F(Audit, ARegimeIsCardDriverAndClass) {
  records = {race("A", 1, {{"u2", 1.0}}), race("A", 1, {{"u2", 1.0}}), race("A", 1, {{"u2", 1.0}}),
             race("B", 1, {{"u2", 1.0}})};
  for (int i = 0; i < 4; ++i)
    records[i].program_class =
        i == 1 ? record::ProgramClass{{"wide", 0}, {"n", 1}} : record::ProgramClass{{"n", 1}, {"wide", 0}};
  records[2].driver = "590";
  EXPECT_THAT(u2().regimes, SizeIs(3)) << "the order of features makes no other class";
  EXPECT_EQ(u2().regimes[0].races, 2);
  EXPECT_EQ(u2().regimes[1].regime.text(), "n=1,wide=0 on A, driver 590");
}

TEST_F(Audit, FactsOfClaimsAreTold) {
  records = {race("A", 7, {{"u2", 1.0}})};
  const lattice::Environment facts = u2().regimes.at(0).regime.facts;
  for (const std::string& name : lattice::claim_facts()) EXPECT_TRUE(facts.contains(name)) << name;
  EXPECT_EQ(facts.at("n"), lattice::Value(7));
  EXPECT_EQ(facts.at("device.sm"), lattice::Value(90));
  EXPECT_EQ(facts.at("device.memory_mib"), lattice::Value(150 << 10));
}

TEST_F(Audit, ForeignWordsDoNotMoveTheCursor) {
  records = {race("A\x1b[31m", 1, {{"u2", 2.0}, {"x\x1b[0m", 1.0}}), race("B", 1, {{"u2", -2.0}})};
  records[0].variants.push_back(failed("u8", "gate", "bad\nnews\x1b"));
  u2();
  const std::string text = show_text(lattice, report);
  EXPECT_EQ(text.find('\x1b'), std::string::npos) << text;
  EXPECT_THAT(text, HasSubstr("bad news"));
  EXPECT_THAT(text, HasSubstr("Variants that are none of this lattice"));
}

}  // namespace
}  // namespace furlong::audit
