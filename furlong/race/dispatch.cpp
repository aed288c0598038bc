#include "furlong/race/dispatch.h"

#include <algorithm>
#include <cmath>

#include "furlong/base/json.h"
#include "furlong/base/json_object.h"
#include "furlong/base/table.h"
#include "furlong/base/text.h"
#include "furlong/lattice/value_json.h"

namespace furlong::race {
namespace {

constexpr int kSchema = 1;

Result<lattice::Value> value_of(const Json& json, const std::string& where) {
  if (json.is_boolean()) return lattice::Value(json.get<bool>());
  if (json.is_number_integer()) return lattice::Value(json.get<std::int64_t>());
  if (json.is_number()) return lattice::Value(json.get<double>());
  if (json.is_string()) return lattice::Value(json.get<std::string>());
  return fail(Code::invalid, "{} is a {}, expected a number, a word or a boolean", where, json.type_name());
}

std::optional<double> number(const lattice::Value& value) {
  if (value.integer() != nullptr) return static_cast<double>(*value.integer());
  if (value.floating() != nullptr) return *value.floating();
  return std::nullopt;
}

std::string problem_text(const DispatchRow& row) {
  std::vector<std::string> parts;
  for (const auto& [name, value] : row.problem) parts.push_back(name + "=" + value.text());
  return join(parts, " ");
}

Result<DispatchRow> row_of(const Json& object, const std::string& where) {
  DispatchRow row;
  JsonObject reader(object, where);
  reader.text("variant", row.variant);
  reader.text("verdict", row.verdict);
  reader.number("rate", row.rate, 0);
  reader.number("base_rate", row.base_rate, 0);
  reader.number("gain", row.gain, -1);
  reader.require({"problem", "variant"});
  if (const Json* problem = reader.object("problem"))
    for (const auto& [name, value] : problem->items()) {
      auto read = value_of(value, reader.path("problem") + "." + name);
      if (!read) return Error(std::move(read).error());
      row.problem.emplace_back(name, *std::move(read));
    }
  if (const Json* gains = reader.object("gains"))
    for (const auto& [name, value] : gains->items()) {
      if (!value.is_number()) return fail(Code::invalid, "{}.{} is no number", reader.path("gains"), name);
      row.gains.emplace_back(name, value.get<double>());
    }
  FURLONG_CHECK(reader.strict());
  return row;
}

/// How far a problem is from a row's: words that differ, then log ratios of the numbers.
std::pair<int, double> distance(const DispatchRow& row, const lattice::Environment& problem) {
  std::pair<int, double> far{0, 0};
  for (const auto& [name, value] : row.problem) {
    const auto found = problem.find(name);
    if (found == problem.end()) continue;
    const auto a = number(value), b = number(found->second);
    if (!a || !b || *a <= 0 || *b <= 0) {
      far.first += !(value == found->second);
      continue;
    }
    far.second += std::pow(std::log(*a / *b), 2);
  }
  return far;
}

}  // namespace

void DispatchTable::add(const program::Instance& instance, const Outcome& outcome) {
  program_ = instance.program().name;
  language_ = instance.edition().language;
  device_ = outcome.device.label;
  source_ = instance.program().source_hash().hex();
  rate_unit_ = instance.program().work.rate_unit;
  rate_scale_ = instance.program().work.rate_scale;
  DispatchRow row;
  for (const auto& [name, unused] : instance.program().problem)
    if (const auto found = instance.problem().find(name); found != instance.problem().end())
      row.problem.emplace_back(name, found->second);
  const VariantOutcome& winner = outcome.variants[outcome.winner];
  row.variant = winner.name;
  row.verdict = outcome.verdict_word;
  row.rate = winner.rate.value_or(0);
  row.base_rate = outcome.variants[0].rate.value_or(0);
  row.gain = outcome.winner == 0 ? 0 : winner.gain;
  for (std::size_t i = 1; i < outcome.variants.size(); ++i)
    if (outcome.variants[i].rate && std::isfinite(outcome.variants[i].gain))
      row.gains.emplace_back(outcome.variants[i].name, outcome.variants[i].gain);
  const auto same =
      std::ranges::find_if(rows_, [&](const DispatchRow& other) { return other.problem == row.problem; });
  if (same != rows_.end())
    *same = std::move(row);
  else
    rows_.push_back(std::move(row));
}

const DispatchRow* DispatchTable::nearest(const lattice::Environment& problem) const {
  const DispatchRow* best = nullptr;
  std::pair<int, double> least;
  for (const DispatchRow& row : rows_) {
    const auto far = distance(row, problem);
    if (best != nullptr && !(far < least)) continue;
    best = &row;
    least = far;
  }
  return best;
}

std::string DispatchTable::text() const {
  Table table;
  table.column("problem");
  table.column("variant");
  table.column(rate_unit_, Table::Align::right);
  table.column("gain over base", Table::Align::right);
  table.column("verdict");
  for (const DispatchRow& row : rows_)
    table.row({problem_text(row), row.variant, fmt::format("{:.4g}", row.rate / rate_scale_),
               fmt::format("{:+.2f}%", 100 * row.gain), row.verdict});
  return table.text();
}

Json DispatchTable::json() const {
  Json document{{"schema", kSchema},       {"kind", "dispatch"},       {"program", program_},
                {"source", source_},       {"language", language_},    {"device", device_},
                {"rate_unit", rate_unit_}, {"rate_scale", rate_scale_}};
  Json rows = Json::array();
  for (const DispatchRow& row : rows_) {
    Json problem = Json::object(), gains = Json::object();
    for (const auto& [name, value] : row.problem) problem[name] = lattice::value_json(value);
    for (const auto& [name, gain] : row.gains) gains[name] = gain;
    rows.push_back({{"problem", std::move(problem)},
                    {"variant", row.variant},
                    {"verdict", row.verdict},
                    {"rate", row.rate},
                    {"base_rate", row.base_rate},
                    {"gain", row.gain},
                    {"gains", std::move(gains)}});
  }
  document["rows"] = std::move(rows);
  return document;
}

Result<DispatchTable> DispatchTable::parse(std::string_view text, std::string_view name) {
  FURLONG_TRY(const Json document, json_parse(text, name));
  DispatchTable table;
  JsonObject reader(document, std::string(name));
  int schema = 0;
  std::string kind;
  reader.integer("schema", schema);
  reader.text("kind", kind);
  reader.text("program", table.program_);
  reader.text("source", table.source_);
  reader.text("language", table.language_);
  reader.text("device", table.device_);
  reader.text("rate_unit", table.rate_unit_);
  reader.number("rate_scale", table.rate_scale_, 1e-300);
  reader.require({"schema", "rows"});
  const Json* rows = reader.array("rows");
  FURLONG_CHECK(reader.status());
  if (schema != kSchema || kind != "dispatch")
    return fail(Code::incompatible, "{}: found '{}' of schema {}, expected 'dispatch' of schema {}", name,
                kind, schema, kSchema);
  FURLONG_CHECK(reader.strict());
  for (std::size_t i = 0; i < rows->size(); ++i) {
    FURLONG_TRY(DispatchRow row, row_of((*rows)[i], fmt::format("{}: rows[{}]", name, i)));
    table.rows_.push_back(std::move(row));
  }
  return table;
}

}  // namespace furlong::race
