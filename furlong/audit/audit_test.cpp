// Verdicts from hand-made records.
#include "furlong/audit/audit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "furlong/audit/internal/testing.h"

namespace furlong::audit {
namespace {

using testing::add_twice;
using testing::Audit;
using testing::failed;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::race;
using ::testing::SizeIs;
using testing::variant;

TEST_F(Audit, WithoutRecordsAllIsUnproven) {
  const ValueReport& value = u2();
  EXPECT_EQ(value.verdict, Verdict::unproven);
  EXPECT_EQ(value.why, "never raced; at least 6 more races missing, among them 3 more regimes");
  EXPECT_FALSE(value.best || value.worst);
  ASSERT_THAT(report.knobs, SizeIs(3));
  EXPECT_THAT(report.knobs[0].values, SizeIs(2)) << "all but the default";
  EXPECT_EQ(report.knobs[0].verdict, Verdict::unproven);
  EXPECT_EQ(report.knobs[0].summary, "unproven: 2, 8");
  EXPECT_THAT(report.contradictions, IsEmpty()) << "missing evidence contradicts nothing";
}

TEST_F(Audit, ATradeOffNamesBothRegimes) {
  records = {race("A", 1, {{"u2", 2.0}}), race("B", 2, {{"u2", -1.5, 0.2}})};
  const ValueReport& value = u2();
  EXPECT_EQ(value.verdict, Verdict::trade_off);
  EXPECT_EQ(value.why,
            "wins: +2.00% (+1.90% to +2.10%) with n=1 on A, driver 580; "
            "loses: -1.50% (-1.70% to -1.30%) with n=2 on B, driver 580");
  EXPECT_EQ(value.races, 2);
  EXPECT_THAT(value.regimes, SizeIs(2));
  EXPECT_EQ(value.regimes[value.best->regime].regime.card, "A");
  EXPECT_EQ(value.regimes[value.worst->regime].regime.card, "B");
  EXPECT_EQ(report.knobs[0].summary, "trade-off: 2; unproven: 8");
  EXPECT_THAT(report.contradictions, IsEmpty());
}

TEST_F(Audit, BeyondTheThresholdOnly) {
  records = {race("A", 1, {{"u2", 2.0}}), race("B", 2, {{"u2", -0.45, 0.04}})};
  EXPECT_EQ(u2().verdict, Verdict::unproven) << "a loss of less than 0.5% is a tie";
  options.threshold = 0.003;
  EXPECT_EQ(u2().verdict, Verdict::trade_off);
  options.threshold = 0.03;
  EXPECT_EQ(u2().verdict, Verdict::unproven);
}

TEST_F(Audit, WithoutConfidenceThereIsNoLoss) {
  records = {race("A", 1, {{"u2", 2.0}}), race("B", 2, {{"u2", -1.5, 1.2}})};
  EXPECT_EQ(u2().verdict, Verdict::unproven);
}

TEST_F(Audit, BakesInWhatNeverLoses) {
  never_loses();
  const ValueReport& value = u2();
  EXPECT_EQ(value.verdict, Verdict::bake_in) << value.why;
  EXPECT_THAT(value.why, HasSubstr("never loses beyond 0.5% in 3 regimes (6 races); wins: +2.00%"));
  EXPECT_EQ(value.races_missing, 0);
  EXPECT_EQ(report.knobs[0].verdict, Verdict::bake_in);
  EXPECT_EQ(report.knobs[0].summary, "bake in: 2; unproven: 8");
}

TEST_F(Audit, BakesInOnlyWithEnoughRegimes) {
  never_loses();
  options.min_regimes = 4;
  const ValueReport& value = u2();
  EXPECT_EQ(value.verdict, Verdict::unproven);
  EXPECT_EQ(value.regimes_missing, 1);
  EXPECT_EQ(value.races_missing, 2);
  EXPECT_THAT(value.why,
              HasSubstr("for \"bake in\" at least 2 more races missing, among them 1 more regime"));
}

TEST_F(Audit, BakesInOnlyWithEnoughRacesARegime) {
  never_loses();
  records.pop_back();
  EXPECT_EQ(u2().verdict, Verdict::unproven);
  EXPECT_EQ(u2().races_missing, 1);
  EXPECT_EQ(u2().regimes_missing, 0);
  options.min_races = 1;
  EXPECT_EQ(u2().verdict, Verdict::bake_in);
}

TEST_F(Audit, OneRegimeThatStillAllowsALossHoldsBakeInBack) {
  never_loses();
  records.push_back(race("B", 1, {{"u2", -0.3, 0.8}}));
  const ValueReport& value = u2();
  EXPECT_EQ(value.verdict, Verdict::unproven);
  // -0.3% is 0.2% above the threshold's other end: the half-width of 0.8% must shrink to a quarter.
  EXPECT_GE(value.races_missing, 14);
  EXPECT_LE(value.races_missing, 17);
}

TEST_F(Audit, RacesThatDisagreeMissWhatTheSignTestNeeds) {
  never_loses();
  for (int i = 0; i < 10; ++i) records.push_back(race("B", 1, {{"u2", i == 0 ? -4.0 : 2.0 + 0.5 * (i % 3)}}));
  EXPECT_TRUE(u2().regimes.back().spread.disagree);
  EXPECT_EQ(u2().verdict, Verdict::unproven) << "of 10 the one wild race still counts";
  EXPECT_EQ(u2().races_missing, 3);
  for (int i = 0; i < 3; ++i) records.push_back(race("B", 1, {{"u2", 2.0}}));
  EXPECT_EQ(u2().verdict, Verdict::bake_in) << u2().why;
}

TEST_F(Audit, AnExtraRegimeWithOneRaceIsNoObstacle) {
  never_loses();
  records.push_back(race("B", 1, {{"u2", 0.2}}));
  EXPECT_EQ(u2().verdict, Verdict::bake_in);
}

TEST_F(Audit, WhatHasADeclaredPriceIsNotBakedIn) {
  never_loses();
  lattice.knobs[0].requires_text = "device.sm >= 80";
  EXPECT_EQ(u2().verdict, Verdict::trade_off);
  EXPECT_THAT(u2().why, HasSubstr("its price is declared: it needs device.sm >= 80"));
  lattice.knobs[0].requires_text = "";
  lattice.knobs[0].lossy = {1};
  EXPECT_THAT(u2().why, HasSubstr("its price is declared: it lowers the precision"));
  lattice.knobs[0].lossy = {2};
  EXPECT_EQ(u2().verdict, Verdict::bake_in) << "that is another value";
  lattice.knobs[0].restricted = {1};
  EXPECT_THAT(u2().why, HasSubstr("its price is declared: it is right for some inputs only"));
}

TEST_F(Audit, WhatCostsRegistersIsNotBakedIn) {
  never_loses();
  for (record::RaceRecord& record : records) {
    variant(record, "base").detail.regs = 40;
    variant(record, "u2").detail.regs = 48;
  }
  const ValueReport& value = u2();
  EXPECT_EQ(value.verdict, Verdict::trade_off);
  EXPECT_THAT(value.why, HasSubstr("loses: more registers (48 beside 40) with n=1 on A, driver 580"));
  for (record::RaceRecord& record : records) variant(record, "u2").detail.regs = 40;
  EXPECT_EQ(u2().verdict, Verdict::bake_in);
}

TEST_F(Audit, EveryCostCounts) {
  const auto with = [&](auto set) {
    records.clear();
    never_loses();
    for (record::RaceRecord& record : records)
      set(variant(record, "base").detail, variant(record, "u2").detail);
    return u2().verdict;
  };
  using Detail = record::VariantDetail;
  EXPECT_EQ(with([](Detail& a, Detail& b) { a.error = 1e-7, b.error = 3e-7; }), Verdict::trade_off);
  EXPECT_EQ(with([](Detail& a, Detail& b) { a.error = 1e-7, b.error = 1.51e-7; }), Verdict::trade_off);
  EXPECT_EQ(with([](Detail& a, Detail& b) { a.error = 1e-7, b.error = 1.49e-7; }), Verdict::bake_in);
  EXPECT_EQ(with([](Detail& a, Detail& b) { a.error = 0, b.error = 1e-7; }), Verdict::trade_off);
  EXPECT_EQ(with([](Detail& a, Detail& b) { a.error = 0, b.error = 0; }), Verdict::bake_in);
  EXPECT_EQ(with([](Detail& a, Detail& b) { a.memory_mib = 100, b.memory_mib = 120; }), Verdict::trade_off);
  EXPECT_EQ(with([](Detail& a, Detail& b) { a.memory_mib = 100, b.memory_mib = 100.1; }), Verdict::bake_in);
  EXPECT_EQ(with([](Detail& a, Detail& b) { a.spills = 0, b.spills = 8; }), Verdict::trade_off);
  EXPECT_EQ(with([](Detail& a, Detail& b) { a.spills = 8, b.spills = 0; }), Verdict::bake_in);
  EXPECT_EQ(with([](Detail&, Detail& b) { b.regs = 200; }), Verdict::bake_in)
      << "one figure is no comparison";
}

TEST_F(Audit, CompileTimeAndPowerNeedSeveralRaces) {
  const auto with = [&](int races, double compile_ms, double power_w) {
    records.clear();
    never_loses();
    for (int i = 2; i < races; ++i) records.push_back(race("A", 1, {{"u2", 2.0}}));
    int wobble = 0;
    for (record::RaceRecord& record : records) {
      const double noise = 1 + 0.002 * (wobble++ % 2);
      variant(record, "base").detail.compile_ms = 100;
      variant(record, "u2").detail.compile_ms = compile_ms * noise;
      variant(record, "base").detail.power_w = 300;
      variant(record, "u2").detail.power_w = power_w * noise;
    }
    return u2().verdict;
  };
  EXPECT_EQ(with(4, 100, 300), Verdict::bake_in);
  EXPECT_EQ(with(2, 150, 300), Verdict::bake_in) << "two races do not tell noise from cost";
  EXPECT_EQ(with(4, 150, 300), Verdict::trade_off);
  EXPECT_THAT(u2().why, HasSubstr("more compile time"));
  EXPECT_EQ(with(4, 105, 300), Verdict::bake_in) << "less than a busy machine's noise";
  EXPECT_EQ(with(4, 100, 330), Verdict::trade_off) << "2% faster for 10% more power";
  EXPECT_THAT(u2().why, HasSubstr("more energy"));
}

TEST_F(Audit, AFaultIsALossOfItsOwnKind) {
  never_loses();
  records.push_back(race("B", 1, {}));
  records.back().variants.push_back(failed("u2", "compile", "too many registers"));
  const ValueReport& value = u2();
  EXPECT_EQ(value.verdict, Verdict::trade_off);
  EXPECT_THAT(value.why, HasSubstr("loses: u2 fails (compile) with n=1 on B, driver 580"));
  EXPECT_EQ(value.races, 7);
  ASSERT_THAT(value.regimes.back().faults, SizeIs(1));
  EXPECT_EQ(value.regimes.back().faults[0].why, "too many registers");
  EXPECT_EQ(value.regimes.back().state, State::none) << "no rate there";
  EXPECT_THAT(report.defects, IsEmpty());
}

TEST_F(Audit, AWrongVariantIsNoLossAndAFindingOfItsOwn) {
  for (const char* exit : {"gate", "trial", "quarantined"}) {
    records.clear();
    never_loses();
    records.push_back(race("B", 1, {}));
    records.back().variants.push_back(failed("u2", exit, "element 3: got 1, expected 2"));
    const ValueReport& value = u2();
    EXPECT_EQ(value.verdict, Verdict::unproven)
        << "neither a price nor a value to be built in: " << value.why;
    EXPECT_EQ(value.races_missing, 2);
    EXPECT_THAT(value.why, HasSubstr(exit));
    EXPECT_EQ(value.races, 6) << "a race that saw nothing else is none";
    ASSERT_THAT(value.regimes.back().defects, SizeIs(1));
    EXPECT_THAT(value.regimes.back().faults, IsEmpty());
    ASSERT_THAT(report.defects, SizeIs(1));
    EXPECT_THAT(report.defects[0], HasSubstr("in 1 race with n=1 on B, driver 580: "));
    EXPECT_THAT(report.contradictions, IsEmpty());
    EXPECT_EQ(report.used, 7);
  }
  EXPECT_THAT(report.defects[0], HasSubstr("u2 is quarantined in"));
}

TEST_F(Audit, AWrongVariantIsFoundWhateverItWasRacedBeside) {
  for (int i = 0; i < 2; ++i) {
    records.push_back(race("A", 1, {}));
    records.back().variants.push_back(failed("u2-w4", "gate", "gate: element 3: got 1, expected 2"));
  }
  EXPECT_EQ(u2().verdict, Verdict::unproven);
  ASSERT_THAT(report.defects, SizeIs(1)) << "once, though it is a value of two knobs";
  EXPECT_EQ(report.defects[0],
            "u2-w4 failed its gate in 2 races with n=1 on A, driver 580: gate: element 3: got 1, expected 2");
}

TEST_F(Audit, WhatIsWrongEverywhereIsNotDropped) {
  for (const int n : {1, 2, 3, 1, 2, 3}) {
    records.push_back(race("A", n, {}));
    records.back().variants.push_back(failed("u2", "gate", "wrong"));
  }
  EXPECT_EQ(u2().verdict, Verdict::unproven);
  EXPECT_THAT(u2().why, HasSubstr("u2 failed its gate with n=1 on A, driver 580, and is to be mended"));
  EXPECT_THAT(report.defects, SizeIs(3));
}

TEST_F(Audit, AWrongDefaultIsNoWin) {
  records.push_back(race("A", 1, {{"u2-w4", 1.0}}));
  records.back().variants.push_back(failed("w4", "gate", "wrong"));
  records.push_back(race("A", 2, {{"u2", -2.0}}));
  EXPECT_EQ(u2().verdict, Verdict::unproven);
  EXPECT_THAT(report.defects, SizeIs(1));
}

TEST_F(Audit, WhatFailsEverywhereIsDropped) {
  for (const int n : {1, 2, 3, 1, 2, 3}) {
    records.push_back(race("A", n, {}));
    records.back().variants.push_back(failed("u2", "compile", "does not compile"));
  }
  const ValueReport& value = u2();
  EXPECT_EQ(value.verdict, Verdict::drop);
  EXPECT_THAT(value.why,
              HasSubstr("never wins beyond 0.5% in 3 regimes (6 races); loses: u2 fails (compile)"));
}

TEST_F(Audit, ADefaultThatFailsWhereTheValueRunsIsAWin) {
  records.push_back(race("A", 1, {{"u2-w4", 1.0}}));
  records.back().variants.push_back(failed("w4", "launch", "trap"));
  records.push_back(race("A", 2, {{"u2", -2.0}}));
  const ValueReport& value = u2();
  EXPECT_EQ(value.verdict, Verdict::trade_off);
  EXPECT_THAT(value.why, HasSubstr("wins: w4 fails (launch) with n=1 on A"));
}

TEST_F(Audit, DropsWhatNeverWins) {
  never_wins();
  const ValueReport& value = u2();
  EXPECT_EQ(value.verdict, Verdict::drop) << value.why;
  EXPECT_THAT(value.why, HasSubstr("never wins beyond 0.5% in 3 regimes (6 races); loses: -2.00%"));
  records.pop_back();
  EXPECT_EQ(u2().verdict, Verdict::unproven);
  EXPECT_EQ(u2().races_missing, 1);
}

TEST_F(Audit, WhatTiesEverywhereIsDropped) {
  for (const int n : {1, 2, 3}) add_twice(records, "A", n, {{"u2", 0.1}, {"u8", -0.1}});
  EXPECT_EQ(u2().verdict, Verdict::drop);
  EXPECT_EQ(report.knobs[0].verdict, Verdict::drop);
  EXPECT_EQ(report.knobs[0].summary, "drop the knob: no value beats the default anywhere");
}

TEST_F(Audit, APossibleWinHoldsDropBack) {
  never_wins();
  records.push_back(race("B", 1, {{"u2", 0.6, 0.3}}));
  const ValueReport& value = u2();
  EXPECT_EQ(value.verdict, Verdict::unproven);
  EXPECT_THAT(value.why, HasSubstr("for \"drop\" at least"));
}

TEST_F(Audit, LessMemoryOrErrorIsAWinAndFewerRegistersAreNot) {
  never_wins();
  for (record::RaceRecord& record : records) {
    variant(record, "base").detail.regs = 48;
    variant(record, "u2").detail.regs = 40;
  }
  EXPECT_EQ(u2().verdict, Verdict::drop) << "registers are a means";
  for (record::RaceRecord& record : records) {
    variant(record, "base").detail.memory_mib = 200;
    variant(record, "u2").detail.memory_mib = 100;
  }
  EXPECT_EQ(u2().verdict, Verdict::trade_off);
  EXPECT_THAT(u2().why, HasSubstr("wins: less memory (100 beside 200)"));
}

TEST_F(Audit, RoundingIsNoLessError) {
  never_wins();
  for (record::RaceRecord& record : records) {
    variant(record, "base").detail.error = 6.70e-5;
    variant(record, "u2").detail.error = 6.65e-5;
  }
  EXPECT_EQ(u2().verdict, Verdict::drop) << u2().why;
  for (record::RaceRecord& record : records) variant(record, "u2").detail.error = 4.4e-5;
  EXPECT_EQ(u2().verdict, Verdict::trade_off);
  EXPECT_THAT(u2().why, HasSubstr("wins: less error (4.4e-05 beside 6.7e-05)"));
}

TEST_F(Audit, ALossInOneContextKeepsFromBakingIn) {
  for (const int n : {1, 2, 3})
    add_twice(records, "A", n, {{"u2", 2.0}, {"ldg", 1.0}, {"u2-ldg", 3.0}, {"w4", 1.0}, {"u2-w4", -2.0}});
  const ValueReport& value = u2();
  EXPECT_EQ(value.regimes[0].state, State::wins) << "the median of the three pairs";
  EXPECT_EQ(value.verdict, Verdict::trade_off);
  EXPECT_THAT(value.why, HasSubstr("loses: -2.97% (-3.11% to -2.83%) with n=1 on A, driver 580, beside w4"));
  ASSERT_THAT(value.regimes[0].contexts, SizeIs(3));
  EXPECT_EQ(value.pairs, 18);
}

TEST_F(Audit, OneRaceOfAContextDecidesNothing) {
  never_loses();
  records.push_back(race("A", 1, {{"u2", 2.0}, {"ldg", 1.0}, {"u2-ldg", 3.0}, {"w4", 1.0}, {"u2-w4", -2.0}}));
  const ValueReport& once = u2();
  EXPECT_EQ(once.verdict, Verdict::unproven) << once.why;
  EXPECT_EQ(once.races_missing, 1);
  EXPECT_THAT(once.why, HasSubstr("; in 1 race only it loses: -2.97% ("));
  EXPECT_THAT(once.why, HasSubstr(", beside w4; for \"bake in\" at least 1 more race missing"));
  options.min_races = 1;
  EXPECT_EQ(u2().verdict, Verdict::trade_off);
  options.min_races = 2;
  records.push_back(race("A", 1, {{"u2", 2.0}, {"w4", 1.0}, {"u2-w4", -2.0}}));
  EXPECT_EQ(u2().verdict, Verdict::trade_off);

  records.clear();
  never_wins();
  records.push_back(race("A", 1, {{"u2", 0.1}, {"ldg", 0.1}, {"u2-ldg", 0.1}, {"w4", 1.0}, {"u2-w4", 3.0}}));
  EXPECT_EQ(u2().verdict, Verdict::unproven);
  EXPECT_THAT(u2().why, HasSubstr("; in 1 race only it wins: +1.98% ("));
}

TEST_F(Audit, AWinInOneContextKeepsFromDropping) {
  for (const int n : {1, 2, 3})
    add_twice(records, "A", n, {{"u2", -1.0}, {"ldg", 1.0}, {"u2-ldg", 0.0}, {"w4", -2.0}, {"u2-w4", 1.0}});
  EXPECT_EQ(u2().verdict, Verdict::trade_off);
  EXPECT_THAT(u2().why, HasSubstr(", beside w4; loses: "));
}

TEST_F(Audit, ARaceForEnergyTellsEnergyAlone) {
  for (const int n : {1, 2, 3}) {
    add_twice(records, "A", n, {{"u2", 4.0}});
    for (auto one = records.end() - 2; one != records.end(); ++one) one->metric = "energy";
  }
  const ValueReport& value = u2();
  EXPECT_EQ(value.regimes.at(0).state, State::none);
  ASSERT_THAT(value.regimes[0].costs, SizeIs(1));
  EXPECT_EQ(value.regimes[0].costs[0].measure, Measure::energy);
  EXPECT_EQ(value.regimes[0].costs[0].state, State::wins);
  EXPECT_LT(value.regimes[0].costs[0].log_ratio, 0);
  EXPECT_EQ(value.verdict, Verdict::unproven) << "nothing is known of its rate";
  never_wins();
  EXPECT_EQ(u2().verdict, Verdict::trade_off);
  EXPECT_THAT(u2().why, HasSubstr("wins: less energy"));
}

}  // namespace
}  // namespace furlong::audit
