// Claims and sentences beside the evidence.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "furlong/audit/audit.h"
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

}  // namespace
}  // namespace furlong::audit
