// What machines are told of an Aggregate: the tuning.

#include <algorithm>
#include <cmath>

#include "furlong/base/json.h"
#include "furlong/base/os/clock.h"
#include "furlong/fleet/aggregate/aggregate.h"
#include "furlong/fleet/aggregate/internal/numbers.h"

namespace furlong::fleet {
namespace {

std::optional<double> number(double value) {
  if (!std::isfinite(value)) return std::nullopt;
  return internal::rounded(value);
}

const VariantEvidence* find(const RowEvidence& row, std::string_view name) {
  const auto at = std::ranges::find(row.variants, name, &VariantEvidence::name);
  return at == row.variants.end() ? nullptr : &*at;
}

std::string by_word(const std::string& program, By by) {
  if (program == "lottery") return by == By::energy ? "mhw" : "mhs";
  return by == By::energy ? "energy" : "rate";
}

record::TuningRow row_of(const RowEvidence& evidence, const AggregateOptions& options) {
  record::TuningRow row;
  row.program = evidence.subject.program;
  if (const auto json = json_parse(evidence.subject.program_class, "class"))
    row.program_class = record::class_from_json(*json, "class").value_or(record::ProgramClass());
  row.variant = evidence.variant;
  row.race = evidence.choice == Choice::race;
  row.candidates = evidence.candidates;
  row.backend = evidence.subject.backend;
  row.by = by_word(row.program, options.by);
  row.source = evidence.source;
  row.race_every_n = evidence.race_every_n;
  row.min_driver = evidence.min_driver;
  if (evidence.carried) {  // its figures are those of the races that pinned it
    const record::TuningRow& before = *evidence.carried;
    row.samples = before.samples;
    row.races = before.races;
    row.machines = before.machines;
    row.rate = before.rate;
    row.base_rate = before.base_rate;
    row.gain_pct = before.gain_pct;
    row.rate_per_w = before.rate_per_w;
    row.source = before.source;
    for (const std::string& candidate : before.candidates)
      if (std::ranges::find(row.candidates, candidate) == row.candidates.end())
        row.candidates.insert(row.candidates.end() - 1, candidate);  // before base, which is the last
    return row;
  }
  if (const VariantEvidence* variant = find(evidence, evidence.variant)) {
    row.samples = variant->gain_pct.samples;
    row.races = variant->gain_pct.races;
    row.machines = variant->gain_pct.machines;
    row.rate = number(variant->rate.median);
    row.gain_pct = number(variant->gain_pct.median);
    row.rate_per_w = number(variant->rate_per_w.median);
  }
  if (const VariantEvidence* base = find(evidence, "base")) row.base_rate = number(base->rate.median);
  return row;
}

}  // namespace

record::Tuning to_tuning(const Aggregate& aggregate) {
  record::Tuning tuning;
  if (aggregate.updated_us > 0) tuning.updated = iso_time(aggregate.updated_us);
  if (tuning.updated.empty() && aggregate.options.previous)
    tuning.updated = aggregate.options.previous->updated;
  tuning.window_days = static_cast<int>(std::ceil(aggregate.options.window_days));
  for (const CardEvidence& evidence : aggregate.cards) {
    record::TuningCard card{.key = evidence.key, .aliases = evidence.aliases};
    if (!evidence.silicon.hash.empty()) card.silicon = evidence.silicon;
    for (const RowEvidence& row : evidence.rows)
      if (row.leads) card.rows.push_back(row_of(row, aggregate.options));
    if (!card.rows.empty()) tuning.cards.push_back(std::move(card));
  }
  return tuning;
}

}  // namespace furlong::fleet
