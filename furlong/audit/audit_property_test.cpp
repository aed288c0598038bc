// Random records from a known truth: with enough races the verdicts are the truth's, with any number of races
// none is against it.
#include <gtest/gtest.h>

#include <cmath>

#include "furlong/audit/audit.h"
#include "furlong/audit/internal/testing.h"
#include "furlong/base/random.h"

namespace furlong::audit {
namespace {

using testing::Gain;
using Records = std::vector<record::RaceRecord>;

/// What is true of one value in each regime, percent over the default.
struct Truth {
  std::vector<double> percent;
  Verdict verdict = Verdict::unproven;
};

/// Effects that no honest audit could take for another kind: 1% to 4%, or within 0.15% of nothing.
double win(Random& random) { return 1 + 3 * random.uniform(); }
double loss(Random& random) { return -win(random); }
double tie(Random& random) { return 0.15 * (2 * random.uniform() - 1); }

Truth truth_of(Verdict verdict, std::size_t regimes, Random& random) {
  Truth truth{.percent = {}, .verdict = verdict};
  for (std::size_t r = 0; r < regimes; ++r) truth.percent.push_back(tie(random));
  const std::size_t first = random.below(regimes);
  const std::size_t second = (first + 1 + random.below(regimes - 1)) % regimes;
  switch (verdict) {
    case Verdict::trade_off:
      truth.percent[first] = win(random);
      truth.percent[second] = loss(random);
      break;
    case Verdict::bake_in:
      truth.percent[first] = win(random);
      if (random.below(2) == 0) truth.percent[second] = win(random);
      break;
    default:
      if (random.below(2) == 0) truth.percent[first] = loss(random);
      break;
  }
  return truth;
}

/// A race of u2, u8, w4 and their combinations, whose windows scatter and whose intervals are at least 3.3
/// standard errors wide, as a race's are (docs/race-statistics.md, "coverage").
record::RaceRecord noisy_race(std::int64_t regime, double u2, double u8, Random& random) {
  const double error = 0.03 + 0.07 * random.uniform();  // percent
  const double base = error * random.normal();          // base's own noise is in every gain
  std::vector<Gain> gains;
  const auto add = [&](const char* name, double percent) {
    gains.push_back({name, percent + base + error * random.normal(), 3.3 * std::sqrt(2) * error});
  };
  const double w4 = 0.1;
  const auto both = [](double a, double b) { return 100 * ((1 + a / 100) * (1 + b / 100) - 1); };
  add("u2", u2);
  add("u8", u8);
  add("w4", w4);
  add("u2-w4", both(u2, w4));
  add("u8-w4", both(u8, w4));
  return testing::race("card", regime, gains);
}

constexpr Verdict kDecided[] = {Verdict::trade_off, Verdict::bake_in, Verdict::drop};

TEST(AuditProperty, WithEnoughRacesTheVerdictsAreTheTruth) {
  const lattice::Lattice lattice = testing::small_lattice();
  Random random(7, "truth");
  for (int run = 0; run < 300; ++run) {
    const std::size_t regimes = 3 + random.below(5);
    const Truth u2 = truth_of(kDecided[random.below(3)], regimes, random);
    const Truth u8 = truth_of(kDecided[random.below(3)], regimes, random);
    Records records;
    for (std::size_t r = 0; r < regimes; ++r)
      for (int i = 0; i < 8; ++i)
        records.push_back(noisy_race(static_cast<std::int64_t>(r), u2.percent[r], u8.percent[r], random));
    const Report report = audit(lattice, records, {});
    for (const auto& [value, truth] : {std::pair(2, &u2), std::pair(8, &u8)}) {
      const ValueReport& found = testing::value_of(lattice, report, "unroll", value);
      EXPECT_EQ(found.verdict, truth->verdict) << "run " << run << ", value " << value << ": " << found.why
                                               << " instead of " << verdict_name(truth->verdict);
    }
    // w4 is 0.1% faster everywhere: below the threshold, so it never wins.
    EXPECT_EQ(testing::value_of(lattice, report, "warps", 4).verdict, Verdict::drop) << run;
  }
}

TEST(AuditProperty, AValueThatLosesSomewhereIsNeverBakedIn) {
  const lattice::Lattice lattice = testing::small_lattice();
  Random random(8, "planted");
  int seen = 0;
  for (int run = 0; run < 1500; ++run) {
    const std::size_t regimes = 3 + random.below(5), planted = random.below(regimes);
    Records records;
    for (std::size_t r = 0; r < regimes; ++r) {
      const double u2 = r == planted ? -2 : win(random);
      for (std::uint64_t i = 1 + random.below(5); i > 0; --i)
        records.push_back(noisy_race(static_cast<std::int64_t>(r), u2, tie(random), random));
    }
    Options options;
    options.min_races = 1 + static_cast<int>(random.below(3));
    options.min_regimes = 1 + static_cast<int>(random.below(4));
    const ValueReport value = testing::value_of(lattice, audit(lattice, records, options), "unroll", 2);
    EXPECT_NE(value.verdict, Verdict::bake_in) << "run " << run << ": " << value.why;
    EXPECT_NE(value.verdict, Verdict::drop) << "run " << run << ": " << value.why;
    seen += value.verdict == Verdict::trade_off;
  }
  EXPECT_GT(seen, 1400) << "and nearly always it is seen for what it is";
}

TEST(AuditProperty, OfTrueClaimsHardlyAnyIsContradicted) {
  lattice::Lattice lattice = testing::small_lattice();
  lattice.knobs[0].claims = {{1, lattice::ClaimOutcome::wins, "n <= 2", 0},
                             {1, lattice::ClaimOutcome::loses, "n > 2", 0},
                             {2, lattice::ClaimOutcome::ties, "", 0}};
  Random random(9, "claims");
  int contradicted = 0, confirmed = 0;
  for (int run = 0; run < 500; ++run) {
    Records records;
    for (std::int64_t r = 1; r <= 4; ++r)
      for (int i = 0; i < 3; ++i)
        records.push_back(noisy_race(r, r <= 2 ? win(random) : loss(random), 0.1, random));
    const Report report = audit(lattice, records, {});
    for (const int value : {2, 8})
      for (const ClaimReport& claim : testing::value_of(lattice, report, "unroll", value).claims) {
        contradicted += claim.state == ClaimState::contradicted;
        confirmed += claim.state == ClaimState::confirmed;
      }
  }
  EXPECT_EQ(contradicted, 0);
  EXPECT_GT(confirmed, 1450);
}

/// Whatever records hold, the report is made: rates and intervals of every size, variants of every spelling.
TEST(AuditProperty, AnyRecordsGiveAReport) {
  const lattice::Lattice lattice = testing::small_lattice();
  const char* names[] = {"u2",        "u8", "ldg",   "w4", "u2-ldg", "u2-w4",
                         "u8-ldg-w4", "u3", "w4-u2", "x",  "-",      "base"};
  const char* exits[] = {"", "compile", "gate", "eliminated", "duplicate", "budget", "later"};
  Random random(10, "any");
  for (int run = 0; run < 1000; ++run) {
    Records records;
    for (std::uint64_t n = random.below(8); n > 0; --n) {
      record::RaceRecord record = testing::race(random.below(2) == 0 ? "A" : "", random.between(-2, 2), {});
      if (random.below(5) == 0) record.variants.clear();
      for (std::uint64_t v = random.below(8); v > 0; --v) {
        record::RacedVariant variant;
        variant.name = names[random.below(std::size(names))];
        if (record.find(variant.name) != nullptr) continue;
        if (random.below(4) != 0) variant.rate = random.below(5) == 0 ? 0 : random.uniform() * 1e12;
        if (random.below(4) != 0)
          variant.detail.gain_pct = random.below(5) == 0 ? -100 : random.normal() * 1e3;
        if (variant.detail.gain_pct < -100) variant.detail.gain_pct = -99.999;
        if (random.below(4) != 0) {
          const double low = random.normal() * 200;
          variant.detail.ci = record::Interval{low, low + random.uniform() * 1e6};
        }
        variant.detail.exit = exits[random.below(std::size(exits))];
        if (random.below(3) == 0) variant.detail.error = random.below(2) == 0 ? 0 : random.uniform();
        if (random.below(3) == 0) variant.detail.spills = random.below(2) == 0 ? 0 : random.next();
        if (random.below(3) == 0) variant.detail.power_w = random.below(3) == 0 ? 0 : 300;
        if (random.below(3) == 0) variant.detail.heats = static_cast<int>(random.below(30));
        if (random.below(5) == 0) variant.detail.same_code_as = names[random.below(std::size(names))];
        record.variants.push_back(std::move(variant));
      }
      if (random.below(6) == 0) record.metric = "energy";
      records.push_back(std::move(record));
    }
    const Report report = audit(lattice, records, {});
    EXPECT_EQ(report.knobs.size(), 3u);
    EXPECT_FALSE(show_text(lattice, report).empty());
    for (const KnobReport& knob : report.knobs)
      for (const ValueReport& value : knob.values) {
        EXPECT_FALSE(value.why.empty());
        EXPECT_EQ(value.why.find("nan"), std::string::npos) << value.why;
        EXPECT_EQ(value.verdict == Verdict::unproven, value.races_missing > 0) << value.why;
      }
  }
}

}  // namespace
}  // namespace furlong::audit
