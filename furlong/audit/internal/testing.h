#pragma once
// Hand-made lattices and records for the audit's tests.

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "furlong/audit/audit.h"

namespace furlong::audit::testing {

/// The first value is the default.
inline lattice::Knob knob(std::string name, std::vector<lattice::Value> values,
                          std::vector<std::string> tags) {
  lattice::Knob made;
  made.name = std::move(name);
  made.values = std::move(values);
  made.tags = std::move(tags);
  made.applies = {lattice::Applies::define};
  made.wins = "on one kind of card";
  made.loses = "on another kind of card";
  return made;
}

/// unroll 1, 2, 8; load plain, ldg; warps 3, 4.
inline lattice::Lattice small_lattice() {
  lattice::Lattice lattice;
  lattice.knobs = {knob("unroll", {1, 2, 8}, {"", "u2", "u8"}), knob("load", {"plain", "ldg"}, {"", "ldg"}),
                   knob("warps", {3, 4}, {"", "w4"})};
  return lattice;
}

/// A variant over base in percent, with its interval's half-width.
struct Gain {
  std::string variant;
  double percent = 0;
  double half = 0.1;
};

/// One race on `card` of the class n. Every record differs in its time, so that none counts as repeated.
inline record::RaceRecord race(const std::string& card, std::int64_t n, const std::vector<Gain>& gains) {
  static int made = 0;
  record::RaceRecord record;
  record.ts = fmt::format("2026-03-01T{:02}:{:02}:{:02}Z", made / 3600 % 24, made / 60 % 60, made % 60);
  ++made;
  record.card = card;
  record.silicon = {"NVIDIA", "sm_90", 132, 150ull << 30, 2619, "0123456789abcdef", {}};
  record.vendor = "NVIDIA";
  record.backend = "cuda";
  record.driver = "580";
  record.arch = "sm_90";
  record.program = "mix";
  record.language = "cuda";
  record.source = "5eed";
  record.program_class = {{"n", n}};
  record.verdict = record::Verdict::winner;
  record.variants.push_back({"base", 100.0, {}});
  for (const Gain& gain : gains) {
    record::RacedVariant variant;
    variant.name = gain.variant;
    variant.rate = 100 + gain.percent;
    variant.detail.gain_pct = gain.percent;
    variant.detail.ci = record::Interval{gain.percent - gain.half, gain.percent + gain.half};
    variant.detail.heats = 20;
    record.variants.push_back(std::move(variant));
  }
  return record;
}

/// The same race twice over, as two races.
inline void add_twice(std::vector<record::RaceRecord>& records, const std::string& card, std::int64_t n,
                      const std::vector<Gain>& gains) {
  records.push_back(race(card, n, gains));
  records.push_back(race(card, n, gains));
}

inline record::RacedVariant& variant(record::RaceRecord& record, const std::string& name) {
  return *std::ranges::find(record.variants, name, &record::RacedVariant::name);
}

/// A variant that left before it was timed.
inline record::RacedVariant failed(std::string name, std::string exit, std::string why) {
  record::RacedVariant variant;
  variant.name = std::move(name);
  variant.detail.exit = std::move(exit);
  variant.detail.out = std::move(why);
  return variant;
}

inline const ValueReport& value_of(const lattice::Lattice& lattice, const Report& report,
                                   const std::string& knob, const lattice::Value& value) {
  const KnobReport& of = report.knobs[*lattice.knob_index(knob)];
  return *std::ranges::find_if(
      of.values, [&](const ValueReport& one) { return lattice.knobs[of.knob].values[one.value] == value; });
}

/// Records, what is asked, and the report over both.
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
  std::vector<record::RaceRecord> records;
  Options options;
  Report report;
};

}  // namespace furlong::audit::testing
