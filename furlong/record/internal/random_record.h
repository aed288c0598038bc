#pragma once
// Records and tunings with every member drawn at random, names with every kind of byte: for the property
// tests.

#include <string>

#include "furlong/base/random.h"
#include "furlong/record/race_line.h"
#include "furlong/record/record.h"
#include "furlong/record/tuning.h"

namespace furlong::record::internal {

/// UTF-8 of 0 to 12 characters, among them the ones that the race line escapes.
inline std::string random_text(Random& random) {
  static constexpr const char* pieces[] = {"a",  "B",  "7",  "-",  "_", " ",  "%",  "|",    "=", ":", "/",
                                           "\n", "\t", "\"", "\\", "é", "漢", "🏇", "\x7f", ".", "u2"};
  std::string text;
  for (std::uint64_t n = random.below(13); n > 0; --n) text += pieces[random.below(std::size(pieces))];
  return text;
}
inline std::string random_name(Random& random) { return "v" + random_text(random); }

inline double random_number(Random& random) {
  switch (random.below(4)) {
    case 0:
      return 0;
    case 1:
      return static_cast<double>(random.below(1000000));
    case 2:
      return random.uniform();
    default:
      return random.uniform() * 1e12;
  }
}
template <class Make>
auto maybe(Random& random, Make make) -> std::optional<decltype(make())> {
  if (random.below(3) == 0) return std::nullopt;
  return make();
}
inline std::optional<double> maybe_number(Random& random) {
  return maybe(random, [&] { return random_number(random); });
}
inline std::optional<int> maybe_count(Random& random) {
  return maybe(random, [&] { return static_cast<int>(random.below(1u << 20)); });
}
inline std::optional<Interval> maybe_interval(Random& random) {
  return maybe(random, [&] {
    const double lo = random.normal() * 10;
    return Interval{lo, lo + random.uniform()};
  });
}

inline ProgramClass random_class(Random& random) {
  ProgramClass features;
  for (std::uint64_t n = random.below(4); n > 0; --n) {
    lattice::Value value;
    switch (random.below(4)) {
      case 0:
        value = random.between(-5, 1ll << 40);
        break;
      case 1:
        value = random.below(2) == 0;
        break;
      case 2:
        value = random.normal() * 100;
        break;
      default:
        value = random.below(4) == 0 ? std::string("1e5") : random_text(random);
    }
    const std::string name = random.below(6) == 0 ? "variants" : random_name(random) + std::to_string(n);
    bool there = false;
    for (const auto& feature : features) there = there || feature.first == name;
    if (!there) features.emplace_back(name, value);
  }
  return features;
}

inline Silicon random_silicon(Random& random) {
  Silicon silicon;
  silicon.vendor = random_text(random);
  silicon.arch = random_text(random);
  silicon.multiprocessors = static_cast<int>(random.below(200));
  silicon.memory_bytes = random.next() >> random.below(64);
  silicon.memory_clock_mhz = static_cast<int>(random.below(20000));
  silicon.hash = random_text(random);
  if (random.below(4) == 0) silicon.extra = R"({"later":[1,{"x":null}]})";
  return silicon;
}

inline VariantDetail random_detail(Random& random) {
  VariantDetail detail;
  detail.gain_pct = maybe(random, [&] { return random.uniform() * 20 - 10; });
  detail.ci = maybe_interval(random);
  detail.heats = maybe_count(random);
  detail.regs = maybe_count(random);
  detail.spills = maybe(random, [&] { return random.next(); });
  detail.shared_bytes = maybe(random, [&] { return random.next(); });
  detail.warps = maybe_count(random);
  detail.memory_mib = maybe_number(random);
  detail.error = maybe_number(random);
  detail.compile_ms = maybe_number(random);
  detail.power_w = maybe_number(random);
  detail.out = random_text(random);
  detail.exit = random_text(random);
  detail.same_code_as = random_text(random);
  detail.fallback = random.below(4) == 0;
  if (random.below(4) == 0) detail.extra = R"({"later":"x"})";
  return detail;
}

inline RaceRecord random_record(Random& random) {
  RaceRecord record;
  record.ts = "2026-03-01T12:00:00Z";
  for (std::string* text :
       {&record.machine, &record.slot, &record.agent, &record.card, &record.vendor, &record.driver,
        &record.compiler, &record.arch, &record.source, &record.unit, &record.language, &record.metric})
    *text = random_text(random);
  record.silicon = random_silicon(random);
  record.backend = "cuda";
  record.program = random.below(2) == 0 ? "lottery" : random_name(random);
  if (random.below(2) == 0) record.epoch = "00f1e2d3c4b5a697";
  record.program_class = random_class(random);
  for (std::uint64_t n = random.below(18) + 1; n > 0; --n)
    record.variants.push_back(
        {random_name(random) + std::to_string(n), maybe_number(random), random_detail(random)});
  record.ceiling = maybe_number(random);
  if (random.below(4) != 0) record.winner = record.variants[random.below(record.variants.size())].name;
  record.rate = maybe_number(random);
  record.base_rate = maybe_number(random);
  record.gain_pct = maybe(random, [&] { return random.uniform() * 20 - 10; });
  record.ci = maybe_interval(random);
  record.verdict = static_cast<Verdict>(random.below(6));
  record.heats = static_cast<int>(random.below(1000));
  record.paused_ms = random_number(random);
  record.compile_ms = random_number(random);
  record.bench_ms = random_number(random);
  record.total_ms = random_number(random);
  record.pinned = random.below(2) == 0;
  record.tuned = random.below(2) == 0;
  for (std::uint64_t n = random.below(3); n > 0; --n) record.notes.push_back(random_text(random));
  record.power_limit_w = maybe_number(random);
  record.power_w = maybe_number(random);
  record.power_pct = maybe_number(random);
  record.rate_per_w = random_number(random);
  if (random.below(4) == 0) record.extra = R"({"later":{"a":[1,2.5,"x"]},"then":false})";
  return record;
}

/// In the order in which it is printed, as all that it holds.
inline std::vector<TuningSize> random_sizes(Random& random) {
  std::vector<TuningSize> sizes;
  for (std::uint64_t n = random.below(4), i = 1; i <= n; ++i) {
    TuningSize size;
    size.problem = {{"n", static_cast<std::int64_t>(i * 1000 + random.below(1000))},
                    {"type", random_text(random)}};
    size.variant = random_name(random);
    size.rate = maybe_number(random);
    size.base_rate = maybe_number(random);
    for (std::uint64_t k = random.below(3), at = 0; at < k; ++at)
      size.gains_pct.emplace_back(std::to_string(at) + random_text(random), random.uniform() * 20 - 10);
    if (random.below(4) == 0) size.extra = R"({"later":1})";
    sizes.push_back(std::move(size));
  }
  return sizes;
}

inline TuningRow random_row(Random& random) {
  TuningRow row;
  row.variant = random_name(random);
  row.race = random.below(2) == 0;
  for (std::uint64_t n = random.below(4); n > 0; --n) row.candidates.push_back(random_name(random));
  row.samples = static_cast<int>(random.below(100));
  row.races = static_cast<int>(random.below(100));
  row.machines = static_cast<int>(random.below(100));
  row.rate = maybe_number(random);
  row.base_rate = maybe_number(random);
  row.gain_pct = maybe(random, [&] { return random.uniform() * 20 - 10; });
  row.rate_per_w = maybe_number(random);
  row.backend = random.below(2) == 0 ? "" : "cuda";
  row.by = random.below(2) == 0 ? "mhs" : "";
  row.race_every_n = random.below(2) == 0 ? 20 : static_cast<int>(random.below(50));
  if (random.below(3) == 0) row.min_driver = "580.95.05";
  if (random.below(3) == 0) row.source = random_text(random);
  if (random.below(2) == 0) row.sizes = random_sizes(random);
  if (random.below(4) == 0) row.extra = R"({"later":[true]})";
  return row;
}

/// In the order in which it is printed.
inline Tuning random_tuning(Random& random) {
  Tuning tuning;
  if (random.below(3) != 0) tuning.updated = "2026-03-01T12:00:00Z";
  tuning.window_days = static_cast<int>(random.below(30));
  for (std::uint64_t n = random.below(4), i = 0; i < n; ++i) {
    TuningCard card;
    card.key = std::to_string(i) + random_text(random);
    card.silicon = maybe(random, [&] { return random_silicon(random); });
    for (std::uint64_t k = random.below(3); k > 0; --k) card.aliases.push_back(random_text(random));
    if (random.below(3) != 0) card.rows.push_back(random_row(random));
    for (std::uint64_t k = random.below(3), wide = 0; wide < k; ++wide) {
      card.rows.push_back(random_row(random));
      card.rows.back().program_class = {{"loads", 128}, {"wide", static_cast<std::int64_t>(wide)}};
    }
    for (std::uint64_t k = random.below(3), at = 0; at < k; ++at) {
      card.rows.push_back(random_row(random));
      card.rows.back().program = "program" + std::to_string(at);
      card.rows.back().program_class = random_class(random);
    }
    tuning.cards.push_back(std::move(card));
  }
  return tuning;
}

}  // namespace furlong::record::internal
