#include <cmath>
#include <limits>

#include "furlong/base/os/clock.h"
#include "furlong/fleet/simulate/internal/race.h"

namespace furlong::fleet::internal {
namespace {

constexpr const char* agent_version = "0.1.0";

struct Figures {
  std::optional<double> rate, base_rate, gain_pct, ceiling, power_w, power_limit_w, power_pct;
  std::optional<record::Interval> ci;
};

record::Interval interval(const DraftVariant& variant) {
  if (variant.exit == Exit::duplicate) return {};
  return {variant.gain_pct - variant.half_pct, variant.gain_pct + variant.half_pct};
}

Figures figures(const Draft& draft) {
  Figures figures;
  if (draft.pinned) return figures;
  const TrueSubject& subject = *draft.subject;
  const DraftVariant& winner = draft.variants[draft.winner];
  figures.rate = winner.rate;
  figures.base_rate = draft.variants[0].rate;
  figures.gain_pct = draft.winner == 0 ? 0 : winner.gain_pct;
  if (draft.winner != 0) figures.ci = interval(winner);
  figures.ceiling = subject.ceiling;
  if (winner.power_w > 0) {
    figures.power_w = winner.power_w;
    figures.power_limit_w = draft.power_limit_w;
    figures.power_pct = 100 * winner.power_w / models()[subject.model].power_w;
  }
  return figures;
}

std::string why_out(const DraftVariant& variant) {
  switch (variant.exit) {
    case Exit::compile:
      return "does not compile: ptxas error: too much shared data";
    case Exit::gate:
      return "output differs: element 17 is 3, not 4";
    case Exit::launch:
      return "launch: out of resources";
    case Exit::eliminated:
      return fmt::format("cannot win: at most {:+.2f}% over base", variant.gain_pct + variant.half_pct);
    case Exit::duplicate:
      return "the same machine code as base, timed once";
    case Exit::budget:
      return "not timed: budget";
    default:
      return {};
  }
}

record::VariantDetail detail(const DraftVariant& variant, bool base) {
  record::VariantDetail detail;
  const bool built = variant.exit != Exit::compile;
  if (variant.heats > 0) {
    if (!base) {
      detail.gain_pct = variant.gain_pct;
      detail.ci = interval(variant);
    }
    detail.heats = variant.heats;
  }
  if (built) {
    detail.regs = variant.variant->registers;
    detail.spills = 0;
    detail.warps = 3;
    detail.compile_ms = variant.variant->compile_ms;
    if (variant.exit != Exit::gate) detail.error = 0;
  }
  if (variant.power_w > 0) detail.power_w = variant.power_w;
  detail.out = why_out(variant);
  detail.exit = exit_name(variant.exit);
  if (variant.exit == Exit::duplicate) detail.same_code_as = "base";
  return detail;
}

float number(const std::optional<double>& value) { return value ? static_cast<float>(*value) : absent; }

}  // namespace

void write_down(const Draft& draft, const DraftTexts& texts, record::RaceRecord& record) {
  const TrueSubject& subject = *draft.subject;
  const Model& model = models()[subject.model];
  record = {};
  record.id = record_id_text(draft.id);
  record.ts = iso_time(draft.ts_us);
  record.machine = draft.machine->id;
  record.slot = draft.machine->slots[draft.slot];
  record.agent = agent_version;
  record.card = draft.machine->label;
  record.silicon = model.silicon;
  record.vendor = model.silicon.vendor;
  record.backend = model.backend;
  record.driver = *draft.driver;
  record.compiler = model.compiler;
  record.arch = model.silicon.arch;
  record.program = subject.subject.program;
  record.language = model.language;
  record.source = texts.source;
  record.epoch = texts.epoch;
  record.program_class = programs()[subject.program].classes[subject.program_class];
  record.unit = subject.subject.unit;
  for (const DraftVariant& each : draft.variants) {
    record::RacedVariant raced{
        .name = each.variant->name, .rate = {}, .detail = detail(each, &each == &draft.variants[0])};
    if (each.rate > 0) raced.rate = each.rate;
    record.variants.push_back(std::move(raced));
  }
  const Figures numbers = figures(draft);
  record.ceiling = numbers.ceiling;
  record.winner = draft.variants[draft.winner].variant->name;
  record.rate = numbers.rate;
  record.base_rate = numbers.base_rate;
  record.gain_pct = numbers.gain_pct;
  record.ci = numbers.ci;
  record.verdict = draft.verdict;
  record.heats = draft.heats;
  record.paused_ms = draft.paused_ms;
  record.compile_ms = draft.compile_ms;
  record.bench_ms = draft.bench_ms;
  record.total_ms = draft.total_ms;
  record.pinned = draft.pinned;
  record.tuned = draft.tuned;
  if (draft.over_budget > 0)
    record.notes.push_back(fmt::format("{} variant{} did not fit the budget of 5 s", draft.over_budget,
                                       draft.over_budget == 1 ? "" : "s"));
  record.power_limit_w = numbers.power_limit_w;
  record.power_w = numbers.power_w;
  record.power_pct = numbers.power_pct;
  if (numbers.rate && numbers.power_w) record.rate_per_w = *numbers.rate / *numbers.power_w;
}

void write_down(const Draft& draft, const DraftTexts& texts, DecodedRace& race) {
  const TrueSubject& subject = *draft.subject;
  race.id = draft.id;
  race.ts_us = draft.ts_us;
  race.slot = draft.machine->slots[draft.slot];
  race.subject = subject.subject;
  race.silicon = models()[subject.model].silicon;
  race.label = draft.machine->label;
  race.driver = *draft.driver;
  race.agent = agent_version;
  race.epoch = texts.epoch;
  race.source = texts.source;
  race.winner = draft.variants[draft.winner].variant->name;
  race.verdict = draft.verdict;
  const Figures numbers = figures(draft);
  race.rate = number(numbers.rate);
  race.base_rate = number(numbers.base_rate);
  race.gain_pct = number(numbers.gain_pct);
  race.ceiling = number(numbers.ceiling);
  race.power_limit_w = number(numbers.power_limit_w);
  race.power_pct = number(numbers.power_pct);
  race.pinned = draft.pinned;
  race.variants.resize(draft.variants.size());
  for (std::size_t i = 0; i < draft.variants.size(); ++i) {
    const DraftVariant& from = draft.variants[i];
    VariantGain& to = race.variants[i];
    to.name = from.variant->name;
    to.gain_pct = to.half_pct = to.rate = to.power_w = absent;
    if (from.rate > 0) to.rate = static_cast<float>(from.rate);
    if (from.heats > 0) {
      to.gain_pct = static_cast<float>(from.gain_pct);
      const record::Interval ci = interval(from);
      if (i > 0) to.half_pct = static_cast<float>((ci.hi - ci.lo) / 2);
    }
    if (from.power_w > 0) to.power_w = static_cast<float>(from.power_w);
    to.exit = from.exit;
    to.fallback = false;
  }
}

}  // namespace furlong::fleet::internal
