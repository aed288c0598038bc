#include "furlong/audit/audit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "furlong/audit/internal/testing.h"

namespace furlong::audit {
namespace {

using testing::add_twice;
using testing::failed;
using testing::Gain;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using testing::race;
using ::testing::SizeIs;
using testing::small_lattice;
using testing::value_of;
using testing::variant;
using Records = std::vector<record::RaceRecord>;

struct Audit : ::testing::Test {
  const ValueReport& about(const std::string& knob, const lattice::Value& value) {
    report = audit(lattice, records, options);
    return value_of(lattice, report, knob, value);
  }
  const ValueReport& u2() { return about("unroll", 2); }

  /// u2 wins by 2% at n = 1 and ties at n = 2 and 3, each raced twice: enough for "bake in".
  void never_loses() {
    add_twice(records, "A", 1, {{"u2", 2.0}});
    add_twice(records, "A", 2, {{"u2", 0.1}});
    add_twice(records, "A", 3, {{"u2", -0.1}});
  }
  /// u2 ties at n = 1 and 2 and loses at n = 3: enough for "drop".
  void never_wins() {
    add_twice(records, "A", 1, {{"u2", 0.1}});
    add_twice(records, "A", 2, {{"u2", 0.0}});
    add_twice(records, "A", 3, {{"u2", -2.0}});
  }

  lattice::Lattice lattice = small_lattice();
  Records records;
  Options options;
  Report report;
};

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

struct Claims : Audit {
  const ClaimReport& claim(lattice::ClaimOutcome outcome, std::string where) {
    lattice.knobs[0].claims = {{1, outcome, std::move(where), 12}};
    return u2().claims.at(0);
  }
  using Outcome = lattice::ClaimOutcome;
};

TEST_F(Claims, AreConfirmedContradictedOrOpen) {
  add_twice(records, "A", 1, {{"u2", 2.0}});
  add_twice(records, "A", 2, {{"u2", -2.0}});
  add_twice(records, "A", 3, {{"u2", 0.1, 0.2}});
  add_twice(records, "A", 4, {{"u2", 0.5, 0.4}});
  const auto state = [&](Outcome outcome, const std::string& where) { return claim(outcome, where).state; };
  EXPECT_EQ(state(Outcome::wins, "n == 1"), ClaimState::confirmed);
  EXPECT_EQ(state(Outcome::loses, "n == 1"), ClaimState::contradicted);
  EXPECT_EQ(state(Outcome::ties, "n == 1"), ClaimState::contradicted);
  EXPECT_EQ(state(Outcome::loses, "n == 2"), ClaimState::confirmed);
  EXPECT_EQ(state(Outcome::wins, "n == 2"), ClaimState::contradicted);
  EXPECT_EQ(state(Outcome::ties, "n == 3"), ClaimState::confirmed);
  EXPECT_EQ(state(Outcome::wins, "n == 3"), ClaimState::contradicted) << "a tie is no win";
  EXPECT_EQ(state(Outcome::loses, "n == 3"), ClaimState::contradicted);
  EXPECT_EQ(state(Outcome::wins, "n == 4"), ClaimState::open);
  EXPECT_EQ(state(Outcome::ties, "n == 4"), ClaimState::open);
  EXPECT_EQ(state(Outcome::wins, "n == 99"), ClaimState::open) << "no regime meets it";
  EXPECT_EQ(state(Outcome::wins, ""), ClaimState::contradicted) << "everywhere";
  EXPECT_THAT(report.knobs[0].values[0].claims[0].contradicting, SizeIs(2));
}

TEST_F(Claims, AContradictionNamesClaimAndRegime) {
  add_twice(records, "A", 16384, {{"u2", 1.2}});
  claim(Outcome::loses, "n >= 16384 and device.sm >= 90");
  ASSERT_THAT(report.contradictions, SizeIs(1));
  EXPECT_THAT(
      report.contradictions[0],
      HasSubstr("knob 'unroll', value 2: the claim that it loses where n >= 16384 and device.sm >= 90 (line "
                "12): +1.20% ("));
  EXPECT_THAT(report.contradictions[0], HasSubstr("with n=16384 on A, driver 580 (2 races)"));
}

TEST_F(Claims, OneRaceContradictsNothing) {
  records = {race("A", 1, {{"u2", -2.0}})};
  EXPECT_EQ(claim(Outcome::wins, "n == 1").state, ClaimState::open);
  EXPECT_THAT(report.contradictions, IsEmpty());
  options.min_races = 1;
  EXPECT_EQ(claim(Outcome::wins, "n == 1").state, ClaimState::contradicted);
}

TEST_F(Claims, ASmallWinContradictsNoWin) {
  add_twice(records, "A", 1, {{"u2", 0.3, 0.05}});
  EXPECT_EQ(claim(Outcome::wins, "").state, ClaimState::open);
  EXPECT_EQ(claim(Outcome::loses, "").state, ClaimState::contradicted);
}

TEST_F(Claims, AFaultIsALoss) {
  for (int i = 0; i < 2; ++i) {
    records.push_back(race("A", 1, {}));
    records.back().variants.push_back(failed("u2", "launch", "trap"));
  }
  EXPECT_EQ(claim(Outcome::loses, "").state, ClaimState::confirmed);
  EXPECT_EQ(claim(Outcome::wins, "").state, ClaimState::contradicted);
  EXPECT_THAT(report.contradictions[0], HasSubstr("u2 fails (launch) with n=1"));
}

TEST_F(Claims, AWrongVariantConfirmsNothing) {
  for (const char* exit : {"gate", "trial", "quarantined"}) {
    records.clear();
    for (int i = 0; i < 2; ++i) {
      records.push_back(race("A", 1, {}));
      records.back().variants.push_back(failed("u2", exit, "wrong"));
    }
    for (const Outcome outcome : {Outcome::loses, Outcome::wins, Outcome::ties})
      EXPECT_EQ(claim(outcome, "").state, ClaimState::open) << exit;
    EXPECT_THAT(report.contradictions, IsEmpty());
    EXPECT_THAT(report.defects, SizeIs(1));
    add_twice(records, "A", 1, {{"u2", -2.0}});  // in other races it is right
    EXPECT_EQ(claim(Outcome::loses, "").state, ClaimState::open) << exit;
    EXPECT_EQ(claim(Outcome::wins, "").state, ClaimState::contradicted) << exit;
  }
}

TEST_F(Claims, WhatRecordsDoNotTellIsNotJudged) {
  add_twice(records, "A", 1, {{"u2", -2.0}});
  const ClaimReport& one = claim(Outcome::wins, "m > 3");
  EXPECT_EQ(one.state, ClaimState::open);
  EXPECT_THAT(one.unjudged, SizeIs(1));
  EXPECT_THAT(claim(Outcome::wins, "n >").unjudged, SizeIs(1)) << "lint says that it does not parse";
  EXPECT_THAT(report.contradictions, IsEmpty());
}

TEST_F(Audit, VerdictsContradictSentences) {
  never_loses();
  u2();
  ASSERT_THAT(report.contradictions, SizeIs(1));
  EXPECT_THAT(
      report.contradictions[0],
      HasSubstr("knob 'unroll', value 2: the table says where it loses, but it never loses beyond 0.5%"));
  lattice.knobs[0].loses = " ";
  u2();
  EXPECT_THAT(report.contradictions, IsEmpty()) << "no sentence, nothing to contradict";
  records.clear();
  never_wins();
  u2();
  ASSERT_THAT(report.contradictions, SizeIs(1));
  EXPECT_THAT(report.contradictions[0], HasSubstr("the table says where it wins, but it never wins"));
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
