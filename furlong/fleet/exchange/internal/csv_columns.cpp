#include "furlong/fleet/exchange/internal/csv_columns.h"

#include <charconv>
#include <cmath>
#include <type_traits>
#include <utility>

#include "furlong/base/json.h"
#include "furlong/base/text.h"

namespace furlong::fleet::internal {
namespace {

using record::RacedVariant;
using record::RaceRecord;
using record::Silicon;
using record::VariantDetail;

// ---- values and cells

std::string cell(const std::string& value) { return value; }
std::string cell(bool value) { return value ? "true" : "false"; }
std::string cell(double value) { return std::isfinite(value) ? fmt::format("{}", value) : std::string(); }
std::string cell(int value) { return fmt::format("{}", value); }
std::string cell(std::uint64_t value) { return fmt::format("{}", value); }
template <class T>
std::string cell(const std::optional<T>& value) {
  return value ? cell(*value) : std::string();
}

Status read(std::string_view text, std::string& value) {
  value = text;
  return {};
}
Status read(std::string_view text, bool& value) {
  if (text != "true" && text != "false" && text != "1" && text != "0")
    return fail(Code::invalid, "'{}' is neither true nor false", one_line(text.substr(0, 40)));
  value = text == "true" || text == "1";
  return {};
}
Status read(std::string_view text, double& value) {
  FURLONG_TRY(value, parse_number(text));
  if (!std::isfinite(value))
    return fail(Code::invalid, "'{}' is no finite number", one_line(text.substr(0, 40)));
  return {};
}
template <class T>
  requires std::is_integral_v<T>
Status read(std::string_view text, T& value) {
  if (std::from_chars(text.data(), text.data() + text.size(), value).ptr == text.data() + text.size())
    return {};
  // Spreadsheets write whole numbers as they like: 40.0, 4E1.
  FURLONG_TRY(const double number, parse_number(text));
  if (std::floor(number) != number || number < 0 || number > 9e15 ||
      !std::in_range<T>(static_cast<std::int64_t>(number)))
    return fail(Code::invalid, "'{}' is no such whole number", one_line(text.substr(0, 40)));
  value = static_cast<T>(number);
  return {};
}
template <class T>
Status read(std::string_view text, std::optional<T>& value) {
  T plain{};
  FURLONG_CHECK(read(text, plain));
  value = plain;
  return {};
}

/// A cell that is JSON: an object of unknown keys, kept on one line.
Status read_extra(std::string_view text, std::string& value) {
  FURLONG_TRY(const Json json, json_parse(text, "the cell"));
  if (!json.is_object()) return fail(Code::invalid, "it is no JSON object");
  value = json_line(json);
  return {};
}

// ---- columns of plain members

template <class T>
RaceColumn plain(std::string_view name, T RaceRecord::* member) {
  return {name, [member](const RaceRecord& race) { return cell(race.*member); },
          [member](RaceRecord& race, std::string_view text) { return read(text, race.*member); }};
}
template <class T>
RaceColumn of_silicon(std::string_view name, T Silicon::* member) {
  return {name,
          [member](const RaceRecord& race) {
            if constexpr (std::is_integral_v<T>)
              return race.silicon.*member == 0 ? std::string() : cell(race.silicon.*member);
            else
              return cell(race.silicon.*member);
          },
          [member](RaceRecord& race, std::string_view text) { return read(text, race.silicon.*member); }};
}
template <class T>
VariantColumn of_detail(std::string_view name, T VariantDetail::* member) {
  return {
      name, [member](const RacedVariant& variant) { return cell(variant.detail.*member); },
      [member](RacedVariant& variant, std::string_view text) { return read(text, variant.detail.*member); }};
}

// ---- the others

double& end_of(std::optional<record::Interval>& ci, bool high) {
  if (!ci) ci.emplace();
  return high ? ci->hi : ci->lo;
}
RaceColumn race_ci(std::string_view name, bool high) {
  return {name,
          [high](const RaceRecord& race) {
            return race.ci ? cell(high ? race.ci->hi : race.ci->lo) : std::string();
          },
          [high](RaceRecord& race, std::string_view text) { return read(text, end_of(race.ci, high)); }};
}
VariantColumn variant_ci(std::string_view name, bool high) {
  return {name,
          [high](const RacedVariant& variant) {
            const auto& ci = variant.detail.ci;
            return ci ? cell(high ? ci->hi : ci->lo) : std::string();
          },
          [high](RacedVariant& variant, std::string_view text) {
            return read(text, end_of(variant.detail.ci, high));
          }};
}

/// {"loads":128,"wide":0}, and what people write: loads=128,wide=0.
Status read_class(RaceRecord& race, std::string_view text) {
  std::string json(text);
  if (!text.starts_with('{')) {
    Json object = Json::object();
    for (const std::string& part : split(text, ',')) {
      const std::size_t equals = part.find('=');
      if (equals == 0 || equals == std::string::npos)
        return fail(Code::invalid, "'{}' is no feature as loads=128", one_line(part.substr(0, 40)));
      const std::string name(trim(std::string_view(part).substr(0, equals))),
          value(trim(std::string_view(part).substr(equals + 1)));
      if (const auto whole = parse_integer(value))
        object[name] = *whole;
      else if (const auto number = parse_number(value))
        object[name] = *number;
      else if (value == "true" || value == "false")
        object[name] = value == "true";
      else
        object[name] = value;
    }
    json = json_line(object);
  }
  FURLONG_TRY(const Json object, json_parse(json, "the cell"));
  FURLONG_TRY(race.program_class, record::class_from_json(object, "class"));
  return {};
}

RaceColumn notes_column() {
  return {
      "notes",
      [](const RaceRecord& race) { return race.notes.empty() ? std::string() : json_line(Json(race.notes)); },
      [](RaceRecord& race, std::string_view text) -> Status {
        if (!text.starts_with('[')) {
          race.notes = {std::string(text)};
          return {};
        }
        FURLONG_TRY(const Json list, json_parse(text, "the cell"));
        for (const Json& each : list) {
          if (!each.is_string()) return fail(Code::invalid, "a note is no text");
          race.notes.push_back(each.get<std::string>());
        }
        return {};
      }};
}

std::vector<RaceColumn> make_race_columns() {
  const RaceColumn class_column{"class",
                                [](const RaceRecord& race) {
                                  return race.program_class.empty()
                                             ? std::string()
                                             : json_line(record::class_to_json(race.program_class));
                                },
                                read_class};
  const RaceColumn verdict{
      "verdict", [](const RaceRecord& race) { return std::string(record::verdict_name(race.verdict)); },
      [](RaceRecord& race, std::string_view text) -> Status {
        FURLONG_TRY(race.verdict, record::parse_verdict(text));
        return {};
      }};
  const auto extra = [](std::string_view name, auto member_of) {
    return RaceColumn{
        name, [member_of](const RaceRecord& race) { return member_of(race); },
        [member_of](RaceRecord& race, std::string_view text) { return read_extra(text, member_of(race)); }};
  };
  return {plain("id", &RaceRecord::id),
          plain("ts", &RaceRecord::ts),
          plain("machine", &RaceRecord::machine),
          plain("slot", &RaceRecord::slot),
          plain("agent", &RaceRecord::agent),
          plain("card", &RaceRecord::card),
          of_silicon("silicon_vendor", &Silicon::vendor),
          of_silicon("silicon_arch", &Silicon::arch),
          of_silicon("multiprocessors", &Silicon::multiprocessors),
          of_silicon("memory_bytes", &Silicon::memory_bytes),
          of_silicon("memory_clock_mhz", &Silicon::memory_clock_mhz),
          of_silicon("silicon", &Silicon::hash),
          extra("silicon_extra", [](auto& race) -> auto& { return race.silicon.extra; }),
          plain("vendor", &RaceRecord::vendor),
          plain("backend", &RaceRecord::backend),
          plain("driver", &RaceRecord::driver),
          plain("compiler", &RaceRecord::compiler),
          plain("arch", &RaceRecord::arch),
          plain("program", &RaceRecord::program),
          plain("language", &RaceRecord::language),
          plain("source", &RaceRecord::source),
          plain("epoch", &RaceRecord::epoch),
          class_column,
          plain("unit", &RaceRecord::unit),
          plain("metric", &RaceRecord::metric),
          plain("ceiling", &RaceRecord::ceiling),
          plain("winner", &RaceRecord::winner),
          plain("race_rate", &RaceRecord::rate),
          plain("base_rate", &RaceRecord::base_rate),
          plain("race_gain_pct", &RaceRecord::gain_pct),
          race_ci("race_ci_lo", false),
          race_ci("race_ci_hi", true),
          verdict,
          plain("race_heats", &RaceRecord::heats),
          plain("paused_ms", &RaceRecord::paused_ms),
          plain("race_compile_ms", &RaceRecord::compile_ms),
          plain("bench_ms", &RaceRecord::bench_ms),
          plain("total_ms", &RaceRecord::total_ms),
          plain("pinned", &RaceRecord::pinned),
          plain("tuned", &RaceRecord::tuned),
          notes_column(),
          plain("power_limit_w", &RaceRecord::power_limit_w),
          plain("race_power_w", &RaceRecord::power_w),
          plain("power_pct", &RaceRecord::power_pct),
          plain("rate_per_w", &RaceRecord::rate_per_w),
          extra("race_extra", [](auto& race) -> auto& { return race.extra; })};
}

std::vector<VariantColumn> make_variant_columns() {
  return {
      {"variant", [](const RacedVariant& variant) { return variant.name; },
       [](RacedVariant& variant, std::string_view text) { return read(text, variant.name); }},
      {"rate", [](const RacedVariant& variant) { return cell(variant.rate); },
       [](RacedVariant& variant, std::string_view text) { return read(text, variant.rate); }},
      of_detail("gain_pct", &VariantDetail::gain_pct),
      variant_ci("ci_lo", false),
      variant_ci("ci_hi", true),
      of_detail("heats", &VariantDetail::heats),
      of_detail("regs", &VariantDetail::regs),
      of_detail("spills", &VariantDetail::spills),
      of_detail("shared_bytes", &VariantDetail::shared_bytes),
      of_detail("warps", &VariantDetail::warps),
      of_detail("memory_mib", &VariantDetail::memory_mib),
      of_detail("error", &VariantDetail::error),
      of_detail("compile_ms", &VariantDetail::compile_ms),
      of_detail("power_w", &VariantDetail::power_w),
      of_detail("out", &VariantDetail::out),
      of_detail("exit", &VariantDetail::exit),
      of_detail("same_code_as", &VariantDetail::same_code_as),
      of_detail("fallback", &VariantDetail::fallback),
      {"extra", [](const RacedVariant& variant) { return variant.detail.extra; },
       [](RacedVariant& variant, std::string_view text) { return read_extra(text, variant.detail.extra); }}};
}

}  // namespace

const std::vector<RaceColumn>& race_columns() {
  static const std::vector<RaceColumn> columns = make_race_columns();
  return columns;
}

const std::vector<VariantColumn>& variant_columns() {
  static const std::vector<VariantColumn> columns = make_variant_columns();
  return columns;
}

}  // namespace furlong::fleet::internal
