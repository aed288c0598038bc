#pragma once
// What the hub counts, in Prometheus' text format (docs/hub.md has the list).

#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "furlong/base/error.h"

namespace furlong::fleet {

/// Builds the text: a family's head once, then its samples. Label values may be any text.
class PrometheusText {
 public:
  using Labels = std::vector<std::pair<std::string, std::string>>;
  /// `type`: "counter", "gauge", "histogram".
  void family(std::string_view name, std::string_view type, std::string_view help);
  /// Of the last family; `suffix`: "_bucket".
  void sample(double value, const Labels& labels = {}, std::string_view suffix = {});
  /// A family with one sample.
  void one(std::string_view name, std::string_view type, std::string_view help, double value);
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
  std::string name_;
};

/// Seconds in buckets. Not thread safe.
class Histogram {
 public:
  void add(double seconds);
  void print(PrometheusText& text, const PrometheusText::Labels& labels) const;

 private:
  static constexpr std::array bounds_s{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1,
                                       0.25,  0.5,    1.0,   2.5,  10.0,  60.0};
  std::array<std::uint64_t, bounds_s.size() + 1> counts_{};
  double sum_s_ = 0;
};

/// Thread safe.
class Metrics {
 public:
  /// `route`: the route's own path, so that there are not more of them than routes.
  void request(std::string_view route, int status, double seconds);
  void records(std::string_view fate, std::uint64_t count);
  /// A batch or an enrolment that was not taken: "unknown-machine", "bad-signature", …
  void refusal(std::string_view reason);
  void store_error(Code code);
  void print(PrometheusText& text) const;
  std::uint64_t refusals(std::string_view reason) const;

 private:
  mutable std::mutex mutex_;
  std::map<std::pair<std::string, std::string>, std::uint64_t> requests_;
  std::map<std::string, Histogram, std::less<>> seconds_;
  std::map<std::string, std::uint64_t, std::less<>> records_{
      {"accepted", 0}, {"duplicate", 0}, {"refused", 0}};
  std::map<std::string, std::uint64_t, std::less<>> refusals_;
  std::map<std::string, std::uint64_t, std::less<>> store_errors_;
};

}  // namespace furlong::fleet
