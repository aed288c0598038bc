#include "bench/compare.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "bench/harness.h"
#include "furlong/base/json.h"
#include "furlong/base/table.h"

namespace furlong::bench {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

Result<Json> parse_result(std::string_view text, std::string_view name) {
  FURLONG_TRY(Json file, json_parse(text, name));
  if (!file.is_object() || !file.contains("metrics") || !file["metrics"].is_object() ||
      !file.contains("name") || !file["name"].is_string() || !file.contains("status") ||
      !file["status"].is_string())
    return fail(Code::invalid, "{}: not the result of a bench (it needs name, status and metrics)", name);
  if (const auto version = file.find("version"); version != file.end() && *version != kResultVersion)
    return fail(Code::incompatible, "{}: result file of version {}, expected {}", name, version->dump(),
                kResultVersion);
  return file;
}

// A metric that is not a finite number stands as null.
double value_of(const Json& file, const std::string& metric) {
  const auto& metrics = file["metrics"];
  const auto found = metrics.find(metric);
  return found != metrics.end() && found->is_number() ? found->get<double>() : kNaN;
}

bool lower_is_better(const Json& file, const std::string& metric) {
  const auto better = file.find("better");
  if (better == file.end() || !better->is_object()) return true;
  const auto found = better->find(metric);
  return found == better->end() || *found != "higher";
}

double allowance(const Json& file, const std::string& metric, double before) {
  double relative = 0.02, absolute = 0;
  if (const auto noise = file.find("noise"); noise != file.end() && noise->is_object())
    if (const auto found = noise->find(metric); found != noise->end() && found->is_object()) {
      if (const auto r = found->find("relative"); r != found->end() && r->is_number())
        relative = r->get<double>();
      if (const auto a = found->find("absolute"); a != found->end() && a->is_number())
        absolute = a->get<double>();
    }
  return std::max(relative * std::abs(before), absolute);
}

Change judge(const Json& first, const std::string& metric, double before, double after) {
  if (std::isnan(before)) return std::isnan(after) ? Change::same : Change::better;
  if (std::isnan(after)) return Change::regressed;
  if (std::abs(after - before) <= allowance(first, metric, before)) return Change::same;
  return (after < before) == lower_is_better(first, metric) ? Change::better : Change::regressed;
}

void note_differences(const Json& first, const Json& second, Comparison& result) {
  const auto differ = [&](const char* key, const Json& a, const Json& b) {
    const auto left = a.find(key), right = b.find(key);
    if (left != a.end() && right != b.end() && *left != *right)
      result.notes.push_back(fmt::format("{}: {} → {}", key, left->dump(), right->dump()));
  };
  differ("status", first, second);
  result.status_worse = first["status"] == "ok" && second["status"] != "ok";
  const auto a = first.find("environment"), b = second.find("environment");
  if (a == first.end() || b == second.end() || !a->is_object() || !b->is_object()) return;
  for (const char* key : {"device", "driver", "compiler", "commit"}) differ(key, *a, *b);
}

std::string cell(double value) { return std::isnan(value) ? "-" : fmt::format("{:.6g}", value); }

}  // namespace

std::string_view change_name(Change change) {
  switch (change) {
    case Change::same:
      return "same";
    case Change::better:
      return "better";
    case Change::regressed:
      return "regressed";
    case Change::added:
      return "new";
    case Change::gone:
      return "gone";
  }
  return "";
}

Result<Comparison> compare(std::string_view before, std::string_view before_name, std::string_view after,
                           std::string_view after_name) {
  FURLONG_TRY(const Json first, parse_result(before, before_name));
  FURLONG_TRY(const Json second, parse_result(after, after_name));
  if (first["name"] != second["name"])
    return fail(Code::invalid, "{} is of the bench {}, {} of {}: nothing to compare", before_name,
                first["name"].dump(), after_name, second["name"].dump());
  Comparison result;
  for (const auto& [metric, value] : first["metrics"].items()) {
    MetricChange change{metric, value_of(first, metric), value_of(second, metric), Change::gone};
    if (second["metrics"].contains(metric)) change.change = judge(first, metric, change.before, change.after);
    result.metrics.push_back(std::move(change));
  }
  for (const auto& [metric, value] : second["metrics"].items())
    if (!first["metrics"].contains(metric))
      result.metrics.push_back({metric, kNaN, value_of(second, metric), Change::added});
  note_differences(first, second, result);
  return result;
}

bool Comparison::regressed() const {
  return status_worse || std::any_of(metrics.begin(), metrics.end(), [](const MetricChange& m) {
           return m.change == Change::regressed || m.change == Change::gone;
         });
}

std::string Comparison::text() const {
  Table table;
  table.column("metric");
  table.column("before", Table::Align::right);
  table.column("after", Table::Align::right);
  table.column("change", Table::Align::right);
  table.column("verdict");
  for (const MetricChange& m : metrics) {
    const double change = 100 * (m.after / m.before - 1);
    table.row({m.metric, cell(m.before), cell(m.after),
               std::isfinite(change) ? fmt::format("{:+.1f}%", change) : "-",
               std::string(change_name(m.change))});
  }
  std::string out = table.text();
  for (const std::string& note : notes) out += note + "\n";
  return out;
}

}  // namespace furlong::bench
