// The race record as JSON, and back.

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>
#include <utility>

#include "furlong/base/json.h"
#include "furlong/base/json_object.h"
#include "furlong/base/text.h"
#include "furlong/record/record.h"

namespace furlong::record {
namespace {

using lattice::Value;

// --- writing

void put(Json& object, const char* key, const std::string& text) {
  if (!text.empty()) object[key] = text;
}
template <class T>
void put(Json& object, const char* key, const std::optional<T>& value) {
  if (!value) return;
  if constexpr (std::is_same_v<T, Interval>) {
    // JSON has no infinity, and nobody reads [null, null]: an interval without an end is not known.
    if (std::isfinite(value->lo) && std::isfinite(value->hi)) object[key] = {value->lo, value->hi};
  } else {
    object[key] = *value;
  }
}

Json detail_to_json(const VariantDetail& detail) {
  Json object = Json::object();
  put(object, "gain_pct", detail.gain_pct);
  put(object, "ci", detail.ci);
  put(object, "heats", detail.heats);
  put(object, "regs", detail.regs);
  put(object, "spills", detail.spills);
  put(object, "shared_bytes", detail.shared_bytes);
  put(object, "warps", detail.warps);
  put(object, "memory_mib", detail.memory_mib);
  put(object, "error", detail.error);
  put(object, "compile_ms", detail.compile_ms);
  put(object, "power_w", detail.power_w);
  put(object, "out", detail.out);
  put(object, "exit", detail.exit);
  put(object, "same_code_as", detail.same_code_as);
  if (detail.fallback) object["fallback"] = true;
  add_unknown(object, detail.extra);
  return object;
}

void put_identity(Json& object, const RaceRecord& record) {
  object["schema"] = record_schema;
  put(object, "id", record.id);
  object["ts"] = record.ts;
  put(object, "machine", record.machine);
  put(object, "slot", record.slot);
  put(object, "agent", record.agent);
  object["card"] = record.card;
  object["silicon"] = silicon_to_json(record.silicon);
  put(object, "vendor", record.vendor);
  object["backend"] = record.backend;
  put(object, "driver", record.driver);
  put(object, "compiler", record.compiler);
  put(object, "arch", record.arch);
  object["program"] = record.program;
  put(object, "language", record.language);
  put(object, "source", record.source);
  put(object, "epoch", record.epoch);
  object["class"] = class_to_json(record.program_class);
  put(object, "unit", record.unit);
  put(object, "metric", record.metric);
}

void put_variants(Json& object, const RaceRecord& record) {
  Json rates = Json::object(), details = Json::object();
  for (const RacedVariant& variant : record.variants) {
    rates[variant.name] = variant.rate ? Json(*variant.rate) : Json(nullptr);
    if (Json detail = detail_to_json(variant.detail); !detail.empty())
      details[variant.name] = std::move(detail);
  }
  object["variants"] = std::move(rates);
  if (!details.empty()) object["detail"] = std::move(details);
}

void put_outcome(Json& object, const RaceRecord& record) {
  put(object, "ceiling", record.ceiling);
  object["winner"] = record.winner.empty() ? Json(nullptr) : Json(record.winner);
  put(object, "rate", record.rate);
  put(object, "base_rate", record.base_rate);
  put(object, "gain_pct", record.gain_pct);
  put(object, "ci", record.ci);
  object["verdict"] = verdict_name(record.verdict);
  object["heats"] = record.heats;
  object["paused_ms"] = record.paused_ms;
  object["compile_ms"] = record.compile_ms;
  object["bench_ms"] = record.bench_ms;
  object["total_ms"] = record.total_ms;
  object["pinned"] = record.pinned;
  object["tuned"] = record.tuned;
  object["notes"] = record.notes;
  put(object, "power_limit_w", record.power_limit_w);
  put(object, "power_w", record.power_w);
  put(object, "power_pct", record.power_pct);
  object["rate_per_w"] = record.rate_per_w;
  if (record.program != "lottery") return;
  put(object, "mhs", record.rate);
  put(object, "base_mhs", record.base_rate);
  object["mh_per_w"] = record.rate_per_w;
}

// --- reading

void read_interval(JsonObject& object, std::string_view key, std::optional<Interval>& into) {
  const Json* const pair = object.array(key);
  if (pair == nullptr) return;
  if (pair->size() != 2 || !(*pair)[0].is_number() || !(*pair)[1].is_number())
    return object.keep(fail(Code::invalid, "{} must be two numbers", object.path(key)));
  const Interval read{(*pair)[0].get<double>(), (*pair)[1].get<double>()};
  if (!(std::isfinite(read.lo) && std::isfinite(read.hi) && read.lo <= read.hi))
    return object.keep(fail(Code::invalid, "{} must go from low to high, not from {} to {}", object.path(key),
                            read.lo, read.hi));
  into = read;
}

Result<VariantDetail> read_detail(const Json& json, std::string where) {
  VariantDetail detail;
  JsonObject object(json, std::move(where));
  object.number("gain_pct", detail.gain_pct, -100);
  read_interval(object, "ci", detail.ci);
  object.integer("heats", detail.heats);
  object.integer("regs", detail.regs);
  object.integer("spills", detail.spills);
  object.integer("shared_bytes", detail.shared_bytes);
  object.integer("warps", detail.warps);
  object.number("memory_mib", detail.memory_mib, 0);
  object.number("error", detail.error, 0);
  object.number("compile_ms", detail.compile_ms, 0);
  object.number("power_w", detail.power_w, 0);
  object.text("out", detail.out);
  object.text("exit", detail.exit);
  object.text("same_code_as", detail.same_code_as);
  object.boolean("fallback", detail.fallback);
  FURLONG_CHECK(object.status());
  detail.extra = object.unknown();
  return detail;
}

Status read_variants(JsonObject& object, RaceRecord& record) {
  const Json* const rates = object.object("variants");
  const Json* const details = object.object("detail");
  FURLONG_CHECK(object.status());
  std::unordered_map<std::string_view, std::size_t> places;
  for (const auto& [name, rate] : rates->items()) {
    if (name.empty())
      return fail(Code::invalid, "{} holds a variant without a name", object.path("variants"));
    const bool good =
        rate.is_null() || (rate.is_number() && std::isfinite(rate.get<double>()) && rate.get<double>() >= 0);
    if (!good)
      return fail(Code::invalid, "{}.{} is {}: must be a rate of at least 0 or null", object.path("variants"),
                  name, json_line(rate).substr(0, 40));
    record.variants.push_back({name, rate.is_null() ? std::nullopt : std::optional(rate.get<double>()), {}});
  }
  if (record.variants.empty()) return fail(Code::invalid, "{} is empty", object.path("variants"));
  if (details == nullptr) return {};
  for (std::size_t i = 0; i < record.variants.size(); ++i) places[record.variants[i].name] = i;
  for (const auto& [name, detail] : details->items()) {
    const auto place = places.find(name);
    if (place == places.end())
      return fail(Code::invalid, "{}.{} is not among the variants", object.path("detail"), name);
    FURLONG_TRY(record.variants[place->second].detail,
                read_detail(detail, fmt::format("{}.{}", object.path("detail"), name)));
  }
  return {};
}

void read_identity(JsonObject& object, RaceRecord& record) {
  object.text("id", record.id);
  if (!record.id.empty() && !is_record_id(record.id))
    object.keep(fail(Code::invalid, "{} is '{}', no UUIDv7", object.path("id"), record.id.substr(0, 64)));
  object.text("ts", record.ts);
  if (const auto stamp = parse_stamp(record.ts); !stamp)
    object.keep(Error(stamp.error()).with(object.path("ts")));
  object.text("machine", record.machine);
  object.text("slot", record.slot);
  object.text("agent", record.agent);
  object.text("card", record.card);
  object.text("vendor", record.vendor);
  object.text("worker", record.backend);  // the name that older writers give it
  object.text("backend", record.backend);
  std::ranges::transform(record.backend, record.backend.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  object.text("driver", record.driver);
  object.text("compiler", record.compiler);
  object.text("arch", record.arch);
  object.text("program", record.program);
  object.text("language", record.language);
  object.text("source", record.source);
  object.text("epoch", record.epoch);
  if (!record.epoch.empty() &&
      (record.epoch.size() != 16 || record.epoch.find_first_not_of("0123456789abcdef") != std::string::npos))
    object.keep(fail(Code::invalid, "{} is '{}': must be 16 lower-case hexadecimal digits",
                     object.path("epoch"), record.epoch.substr(0, 64)));
  object.text("unit", record.unit);
  object.text("metric", record.metric);
}

void read_outcome(JsonObject& object, RaceRecord& record) {
  object.number("ceiling", record.ceiling, 0);
  object.text("winner", record.winner);
  object.number("mhs", record.rate, 0);
  object.number("rate", record.rate, 0);
  object.number("base_mhs", record.base_rate, 0);
  object.number("base_rate", record.base_rate, 0);
  object.number("gain_pct", record.gain_pct, -100);
  read_interval(object, "ci", record.ci);
  std::string verdict;
  object.text("verdict", verdict);
  if (const auto parsed = parse_verdict(verdict))
    record.verdict = *parsed;
  else
    object.keep(Error(parsed.error()).with(object.path("verdict")));
  object.integer("heats", record.heats);
  object.number("paused_ms", record.paused_ms, 0);
  object.number("compile_ms", record.compile_ms, 0);
  object.number("bench_ms", record.bench_ms, 0);
  object.number("total_ms", record.total_ms, 0);
  object.boolean("pinned", record.pinned);
  object.boolean("tuned", record.tuned);
  object.texts("notes", record.notes);
  object.number("power_limit_w", record.power_limit_w, 0);
  object.number("power_w", record.power_w, 0);
  object.number("power_pct", record.power_pct, 0);
  object.number("mh_per_w", record.rate_per_w, 0);
  object.number("rate_per_w", record.rate_per_w, 0);
}

}  // namespace

Json silicon_to_json(const Silicon& silicon) {
  Json object = Json::object();
  put(object, "vendor", silicon.vendor);
  put(object, "arch", silicon.arch);
  if (silicon.multiprocessors != 0) object["multiprocessors"] = silicon.multiprocessors;
  if (silicon.memory_bytes != 0) object["memory_bytes"] = silicon.memory_bytes;
  if (silicon.memory_clock_mhz != 0) object["memory_clock_mhz"] = silicon.memory_clock_mhz;
  put(object, "hash", silicon.hash);
  add_unknown(object, silicon.extra);
  return object;
}

Result<Silicon> silicon_from_json(const Json& json, std::string_view where) {
  Silicon silicon;
  JsonObject object(json, std::string(where));
  object.text("vendor", silicon.vendor);
  object.text("arch", silicon.arch);
  object.integer("multiprocessors", silicon.multiprocessors);
  object.integer("memory_bytes", silicon.memory_bytes);
  object.integer("memory_clock_mhz", silicon.memory_clock_mhz);
  object.text("hash", silicon.hash);
  FURLONG_CHECK(object.status());
  silicon.extra = object.unknown();
  return silicon;
}

Json class_to_json(const ProgramClass& program_class) {
  Json object = Json::object();
  for (const auto& [name, value] : program_class) {
    if (const bool* flag = value.boolean())
      object[name] = *flag;
    else if (const std::int64_t* integer = value.integer())
      object[name] = *integer;
    else if (const std::string* word = value.word())
      object[name] = *word;
    else if (std::isfinite(*value.floating()))  // JSON has no other, and the reader refuses the null
      object[name] = *value.floating();
  }
  return object;
}

Result<ProgramClass> class_from_json(const Json& object, std::string_view where) {
  if (!object.is_object())
    return fail(Code::invalid, "{} must be an object, not {}", where, object.type_name());
  ProgramClass read;
  for (const auto& [name, value] : object.items()) {
    if (value.is_boolean())
      read.emplace_back(name, Value(value.get<bool>()));
    else if (value.is_string())
      read.emplace_back(name, Value(value.get<std::string>()));
    else if (value.is_number_float() && std::isfinite(value.get<double>()))
      read.emplace_back(name, Value(value.get<double>()));
    else if (value.is_number_integer() &&
             !(value.is_number_unsigned() && !std::in_range<std::int64_t>(value.get<std::uint64_t>())))
      read.emplace_back(name, Value(value.get<std::int64_t>()));
    else
      return fail(Code::invalid, "{}.{} must be a number, a word or a boolean", where, name);
  }
  return read;
}

Json to_json(const RaceRecord& record) {
  Json object = Json::object();
  put_identity(object, record);
  put_variants(object, record);
  put_outcome(object, record);
  add_unknown(object, record.extra);
  return object;
}

Result<RaceRecord> from_json(const Json& json, std::string_view name) {
  JsonObject object(json, std::string(name));
  int schema = 0;
  object.require({"schema"});
  object.integer("schema", schema, std::numeric_limits<int>::min());
  FURLONG_CHECK(object.status());
  if (schema != record_schema)
    return fail(Code::incompatible, "{}: race record of schema {}, expected {}{}", name, schema,
                record_schema, schema > record_schema ? ": a newer program wrote it" : "");
  object.require({"ts", "card", "program", "variants", "verdict"});
  if (object.value("worker") == nullptr) object.require({"backend"});
  FURLONG_CHECK(object.status());
  RaceRecord record;
  read_identity(object, record);
  if (const Json* const silicon = object.object("silicon")) {
    FURLONG_TRY(record.silicon, silicon_from_json(*silicon, object.path("silicon")));
  }
  if (const Json* const features = object.object("class")) {
    FURLONG_TRY(record.program_class, class_from_json(*features, object.path("class")));
  }
  FURLONG_CHECK(read_variants(object, record));
  read_outcome(object, record);
  if (!record.winner.empty() && record.find(record.winner) == nullptr)
    object.keep(
        fail(Code::invalid, "{} '{}' is not among the variants", object.path("winner"), record.winner));
  FURLONG_CHECK(object.status());
  record.extra = object.unknown();
  return record;
}

std::string to_line(const RaceRecord& record) { return json_line(to_json(record)); }

Result<RaceRecord> parse_record(std::string_view line, std::string_view name) {
  FURLONG_TRY(const Json json, json_parse(line, name));
  return from_json(json, name);
}

}  // namespace furlong::record
