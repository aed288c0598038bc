// The outcome as a record, a race line and a JSON document (docs/formats/race-outcome.md).

#include <cmath>

#include "furlong/base/hash.h"
#include "furlong/base/json.h"
#include "furlong/lattice/value_json.h"
#include "furlong/race/race.h"
#include "furlong/record/race_line.h"

namespace furlong::race {
namespace {

std::string_view exit_name(Exit exit) {
  switch (exit) {
    case Exit::none:
      return "in";
    case Exit::compile:
      return "compile";
    case Exit::trial:
      return "trial";
    case Exit::gate:
      return "gate";
    case Exit::launch:
      return "launch";
    case Exit::eliminated:
      return "eliminated";
    case Exit::quarantined:
      return "quarantined";
    case Exit::duplicate:
      return "duplicate";
  }
  return "in";
}

record::Verdict record_verdict(const Outcome& outcome) {
  return record::parse_verdict(outcome.verdict_word).value_or(record::Verdict::none);
}

std::optional<record::Interval> interval(const VariantOutcome& variant) {
  if (!std::isfinite(variant.low) || !std::isfinite(variant.high)) return std::nullopt;
  return record::Interval{100 * variant.low, 100 * variant.high};
}

std::optional<double> percent(double ratio) {
  return std::isfinite(ratio) ? std::optional<double>(100 * ratio) : std::nullopt;
}

record::VariantDetail detail_of(const VariantOutcome& variant, const Outcome& outcome, bool base) {
  record::VariantDetail detail;
  if (!base) {
    detail.gain_pct = percent(variant.gain);
    detail.ci = interval(variant);
  }
  if (variant.heats > 0) detail.heats = variant.heats;
  detail.regs = variant.kernel.registers;
  detail.spills = variant.kernel.spill_bytes;
  detail.shared_bytes = variant.kernel.shared_bytes;
  if (variant.block_threads > 0)
    detail.warps = static_cast<int>(std::ceil(variant.block_threads / outcome.device.warp));
  if (variant.memory_bytes > 0) detail.memory_mib = static_cast<double>(variant.memory_bytes) / (1 << 20);
  detail.error = variant.error_ratio ? variant.error_ratio
                 : variant.gated     ? std::optional<double>(0)
                                     : std::nullopt;
  if (variant.kernel.compile_ms > 0) detail.compile_ms = variant.kernel.compile_ms;
  detail.power_w = variant.power_w;
  detail.out = variant.why;
  if (had_no_time(variant)) {
    detail.exit = "budget";
  } else if (variant.exit != Exit::none) {
    detail.exit = exit_name(variant.exit);
  }
  detail.same_code_as = variant.same_code_as;
  detail.fallback = variant.fallback;
  return detail;
}

/// Mean of a reading over the accepted heats.
std::optional<double> mean_of(const Outcome& outcome, std::optional<double> device::Telemetry::* reading) {
  double sum = 0;
  int count = 0;
  for (const HeatRecord& heat : outcome.heats) {
    if (heat.dropped || !(heat.telemetry.*reading)) continue;
    sum += *(heat.telemetry.*reading);
    ++count;
  }
  return count > 0 ? std::optional<double>(sum / count) : std::nullopt;
}

void add_power(record::RaceRecord& record, const Outcome& outcome) {
  const VariantOutcome& winner = outcome.variants[outcome.winner];
  record.power_w = winner.power_w ? winner.power_w : mean_of(outcome, &device::Telemetry::power_w);
  record.power_limit_w = mean_of(outcome, &device::Telemetry::power_limit_w);
  if (record.rate && record.power_w && *record.power_w > 0)
    record.rate_per_w = *record.rate / *record.power_w;
}

Json optional_json(const std::optional<double>& value) { return value ? Json(*value) : Json(); }

/// JSON has no NaN: null where a variant was not timed.
Json numbers(const std::vector<double>& values) {
  Json list = Json::array();
  for (const double value : values) list.push_back(std::isfinite(value) ? Json(value) : Json());
  return list;
}

Json telemetry_json(const device::Telemetry& telemetry) {
  Json object = Json::object();
  const auto put = [&](const char* key, const std::optional<double>& value) {
    if (value) object[key] = *value;
  };
  put("clock_mhz", telemetry.clock_mhz);
  put("memory_clock_mhz", telemetry.memory_clock_mhz);
  put("power_w", telemetry.power_w);
  put("power_limit_w", telemetry.power_limit_w);
  put("temperature_c", telemetry.temperature_c);
  put("energy_j", telemetry.energy_j);
  if (telemetry.throttle) object["throttle"] = *telemetry.throttle;
  if (!telemetry.throttle_text.empty()) object["throttle_text"] = telemetry.throttle_text;
  return object;
}

Json heat_json(const HeatRecord& heat) {
  Json object{{"at_s", heat.at_s}, {"cost_ms", numbers(heat.cost_ms)}};
  object["base_again_ms"] = std::isfinite(heat.base_again_ms) ? Json(heat.base_again_ms) : Json();
  object["order"] = heat.order;
  if (!heat.samples_ms.empty()) object["samples_ms"] = heat.samples_ms;
  if (!heat.energy_j_per_unit.empty()) object["energy_j_per_unit"] = numbers(heat.energy_j_per_unit);
  if (heat.dropped) object["dropped"] = heat.why_dropped;
  if (heat.descheduled) object["descheduled"] = true;
  if (heat.confirmation) object["confirmation"] = true;
  object["telemetry"] = telemetry_json(heat.telemetry);
  return object;
}

Json knobs_json(const program::Instance& instance, const lattice::Point& point) {
  Json object = Json::object();
  const auto& knobs = instance.lattice().knobs;
  for (std::size_t k = 0; k < knobs.size() && k < point.indices.size(); ++k)
    object[knobs[k].name] = lattice::value_json(knobs[k].values[point.indices[k]]);
  return object;
}

/// What a compiler is told for the variant, for those who build it outside Furlong.
void put_build(Json& object, const program::Instance& instance, const lattice::Point& point) {
  const auto plan = instance.plan(point);
  if (!plan) return;
  Json defines = Json::object();
  for (const auto& [name, value] : plan->defines) defines[name] = value;
  object["defines"] = defines;
  object["options"] = plan->options;
}

Json variant_json(const program::Instance& instance, const VariantOutcome& variant) {
  Json object{{"name", variant.name},
              {"knobs", knobs_json(instance, variant.point)},
              {"exit", std::string(exit_name(variant.exit))}};
  put_build(object, instance, variant.point);
  if (!variant.why.empty()) object["why"] = variant.why;
  if (!variant.same_code_as.empty()) object["same_code_as"] = variant.same_code_as;
  if (variant.fallback) object["fallback"] = true;
  object["gated"] = variant.gated;
  object["rate"] = optional_json(variant.rate);
  object["gain"] = std::isfinite(variant.gain) ? Json(variant.gain) : Json();
  object["low"] = std::isfinite(variant.low) ? Json(variant.low) : Json();
  object["high"] = std::isfinite(variant.high) ? Json(variant.high) : Json();
  object["heats"] = variant.heats;
  object["work_amount"] = variant.work_amount;
  if (variant.kernel.registers) object["registers"] = *variant.kernel.registers;
  if (variant.kernel.spill_bytes) object["spill_bytes"] = *variant.kernel.spill_bytes;
  if (variant.kernel.shared_bytes) object["shared_bytes"] = *variant.kernel.shared_bytes;
  object["compile_ms"] = variant.kernel.compile_ms;
  if (!variant.kernel.code_hash.empty()) object["code_hash"] = variant.kernel.code_hash;
  object["memory_bytes"] = variant.memory_bytes;
  if (variant.block_threads > 0) object["block_threads"] = variant.block_threads;
  if (variant.error_ratio) object["error_ratio"] = *variant.error_ratio;
  if (variant.energy_j_per_unit) object["energy_j_per_unit"] = *variant.energy_j_per_unit;
  if (variant.power_w) object["power_w"] = *variant.power_w;
  if (variant.occupancy) object["occupancy"] = *variant.occupancy;
  if (variant.share_of_ceiling) {
    object["share_of_ceiling"] = *variant.share_of_ceiling;
    object["ceiling"] = {{"of", variant.ceiling}, {"rate", optional_json(variant.ceiling_rate)}};
  }
  return object;
}

Json problem_json(const program::Instance& instance) {
  Json object = Json::object();
  for (const auto& [name, unused] : instance.program().problem) {
    const auto found = instance.problem().find(name);
    if (found == instance.problem().end()) continue;
    object[name] = lattice::value_json(found->second);
  }
  return object;
}

Json options_json(const Options& options) {
  return Json{{"window_ms", options.window_ms},
              {"threshold", options.rules.threshold},
              {"budget_s", options.budget_s},
              {"max_pause_ms", options.max_pause_ms},
              {"horizon_s", options.horizon_s},
              {"seed", options.seed},
              {"classic", options.classic},
              {"rounds", options.rounds},
              {"metric", options.metric == Metric::rate ? "rate" : "energy"},
              {"cache", options.cache == CacheState::hot ? "hot" : "cold"}};
}

Json device_json(const device::Facts& facts) {
  return Json{{"address", facts.address()},
              {"label", facts.label},
              {"driver", facts.driver},
              {"compiler", facts.compiler},
              {"vendor", facts.silicon.vendor},
              {"arch", facts.silicon.arch},
              {"multiprocessors", facts.silicon.multiprocessors},
              {"memory_bytes", facts.silicon.memory_bytes},
              {"silicon", facts.silicon.hash()},
              {"virtual_time", facts.virtual_time}};
}

}  // namespace

bool had_no_time(const VariantOutcome& variant) { return variant.why.ends_with("budget"); }

record::RaceRecord make_record(const program::Instance& instance, const Outcome& outcome) {
  const program::Program& program = instance.program();
  const device::Facts& device = outcome.device;
  const double scale = program.work.rate_scale;
  record::RaceRecord record;
  record.ts = outcome.ts;
  record.slot =
      blake2b_256(device.uuid.empty() ? device.address() + " " + device.silicon.hash() : device.uuid).brief();
  record.card = device.label;
  record.silicon = {device.silicon.vendor,
                    device.silicon.arch,
                    device.silicon.multiprocessors,
                    device.silicon.memory_bytes,
                    device.silicon.memory_clock_mhz,
                    device.silicon.hash(),
                    {}};
  record.vendor = device.silicon.vendor;
  record.backend = device.backend;
  record.driver = device.driver;
  record.compiler = device.compiler;
  record.arch = device.silicon.arch;
  record.program = program.name;
  record.language = instance.edition().language;
  record.source = program.source_hash().hex();
  record.epoch = program.epoch;
  for (const auto& [name, value] : instance.class_values())
    record.program_class.emplace_back(name, lattice::Value(value));
  record.unit = program.work.rate_unit;
  if (outcome.metric == Metric::energy) record.metric = "energy";
  for (std::size_t i = 0; i < outcome.variants.size(); ++i) {
    const VariantOutcome& variant = outcome.variants[i];
    record::RacedVariant raced;
    raced.name = variant.name;
    if (variant.rate) raced.rate = *variant.rate / scale;
    raced.detail = detail_of(variant, outcome, i == 0);
    record.variants.push_back(std::move(raced));
  }
  const VariantOutcome& winner = outcome.variants[outcome.winner];
  if (outcome.variants[0].rate) {
    record.winner = winner.name;
    record.base_rate = *outcome.variants[0].rate / scale;
    if (winner.rate) record.rate = *winner.rate / scale;
    if (winner.ceiling_rate) record.ceiling = *winner.ceiling_rate / scale;
    record.gain_pct = outcome.winner == 0 ? 0 : percent(winner.gain);
    if (outcome.winner != 0) record.ci = interval(winner);
  }
  record.verdict = record_verdict(outcome);
  for (const HeatRecord& heat : outcome.heats) record.heats += !heat.dropped;
  record.paused_ms = outcome.paused_ms;
  record.compile_ms = outcome.compile_ms;
  record.bench_ms = outcome.heats_ms;
  record.total_ms = outcome.total_ms;
  record.notes = outcome.notes;
  add_power(record, outcome);
  return record;
}

std::string race_line(const program::Instance& instance, const Outcome& outcome) {
  return record::race_record_line(make_record(instance, outcome));
}

Json to_json(const program::Instance& instance, const Outcome& outcome, const Options& options) {
  Json document{{"schema", 1},
                {"kind", "race"},
                {"ts", outcome.ts},
                {"program", instance.program().name},
                {"language", instance.edition().language},
                {"source", instance.program().source_hash().hex()},
                {"problem", problem_json(instance)},
                {"device", device_json(outcome.device)},
                {"options", options_json(options)},
                {"verdict", outcome.verdict_word},
                {"winner", outcome.variants[outcome.winner].name},
                {"sentence", outcome.sentence},
                {"reference", outcome.reference},
                {"unit", instance.program().work.unit},
                {"rate_unit", instance.program().work.rate_unit},
                {"rate_scale", instance.program().work.rate_scale}};
  document["work"] = {{"amount", outcome.work_amount},
                      {"bytes", optional_json(outcome.work_bytes)},
                      {"flops", optional_json(outcome.work_flops)}};
  document["times_ms"] = {{"compile", outcome.compile_ms}, {"trial", outcome.trial_ms},
                          {"gate", outcome.gate_ms},       {"heats", outcome.heats_ms},
                          {"paused", outcome.paused_ms},   {"total", outcome.total_ms}};
  document["dropped_heats"] = outcome.dropped_heats;
  document["descheduled_heats"] = outcome.descheduled_heats;
  document["notes"] = outcome.notes;
  Json variants = Json::array();
  for (const VariantOutcome& variant : outcome.variants) variants.push_back(variant_json(instance, variant));
  document["variants"] = std::move(variants);
  Json heats = Json::array();
  for (const HeatRecord& heat : outcome.heats) heats.push_back(heat_json(heat));
  document["heats"] = std::move(heats);
  return document;
}

}  // namespace furlong::race
