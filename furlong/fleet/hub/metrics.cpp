#include "furlong/fleet/hub/metrics.h"

#include <fmt/format.h>

#include <cmath>

namespace furlong::fleet {
namespace {

constexpr std::string_view prefix = "furlong_hub_";

void add_escaped(std::string_view value, std::string& text) {
  for (const char c : value) {
    if (c == '\n') {
      text += "\\n";
      continue;
    }
    if (c == '\\' || c == '"') text += '\\';
    text += c;
  }
}

}  // namespace

void PrometheusText::family(std::string_view name, std::string_view type, std::string_view help) {
  name_ = fmt::format("{}{}", prefix, name);
  text_ += fmt::format("# HELP {} {}\n# TYPE {} {}\n", name_, help, name_, type);
}

void PrometheusText::sample(double value, const Labels& labels, std::string_view suffix) {
  text_ += name_;
  text_ += suffix;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    text_ += i == 0 ? '{' : ',';
    text_ += labels[i].first;
    text_ += "=\"";
    add_escaped(labels[i].second, text_);
    text_ += '"';
  }
  if (!labels.empty()) text_ += '}';
  text_ += std::isnan(value) ? " NaN\n" : fmt::format(" {:.17g}\n", value);
}

void PrometheusText::one(std::string_view name, std::string_view type, std::string_view help, double value) {
  family(name, type, help);
  sample(value);
}

void Histogram::add(double seconds) {
  std::size_t at = 0;
  while (at < bounds_s.size() && seconds > bounds_s[at]) ++at;
  ++counts_[at];
  sum_s_ += seconds;
}

void Histogram::print(PrometheusText& text, const PrometheusText::Labels& labels) const {
  std::uint64_t below = 0;
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    below += counts_[i];
    auto with = labels;
    with.emplace_back("le", i < bounds_s.size() ? fmt::format("{:g}", bounds_s[i]) : "+Inf");
    text.sample(static_cast<double>(below), with, "_bucket");
  }
  text.sample(sum_s_, labels, "_sum");
  text.sample(static_cast<double>(below), labels, "_count");
}

void Metrics::request(std::string_view route, int status, double seconds) {
  const std::scoped_lock lock(mutex_);
  ++requests_[{std::string(route), fmt::format("{}xx", status / 100)}];
  seconds_[std::string(route)].add(seconds);
}

void Metrics::records(std::string_view fate, std::uint64_t count) {
  const std::scoped_lock lock(mutex_);
  records_[std::string(fate)] += count;
}

void Metrics::refusal(std::string_view reason) {
  const std::scoped_lock lock(mutex_);
  ++refusals_[std::string(reason)];
}

void Metrics::store_error(Code code) {
  const std::scoped_lock lock(mutex_);
  ++store_errors_[std::string(code_name(code))];
}

std::uint64_t Metrics::refusals(std::string_view reason) const {
  const std::scoped_lock lock(mutex_);
  const auto at = refusals_.find(reason);
  return at == refusals_.end() ? 0 : at->second;
}

void Metrics::print(PrometheusText& text) const {
  const std::scoped_lock lock(mutex_);
  text.family("requests_total", "counter", "Requests by route and status class.");
  for (const auto& [key, count] : requests_)
    text.sample(static_cast<double>(count), {{"route", key.first}, {"status", key.second}});
  text.family("request_seconds", "histogram", "From the last byte of a request to its reply, by route.");
  for (const auto& [route, histogram] : seconds_) histogram.print(text, {{"route", route}});
  const auto counters = [&](std::string_view name, std::string_view help, const char* label,
                            const auto& counts) {
    text.family(name, "counter", help);
    for (const auto& [value, count] : counts) text.sample(static_cast<double>(count), {{label, value}});
  };
  counters("records_total", "Records by what became of them.", "fate", records_);
  counters("refusals_total", "Batches and enrolments that were not taken, by reason.", "reason", refusals_);
  counters("store_errors_total", "Errors of the store, by code.", "code", store_errors_);
}

}  // namespace furlong::fleet
