#include "furlong/race/pareto.h"

#include <algorithm>
#include <cmath>
#include <optional>

namespace furlong::race {
namespace {

enum class Order { better, equal, worse };

template <class T>
Order smaller_is_better(const std::optional<T>& a, const std::optional<T>& b) {
  if (!a || !b || *a == *b) return Order::equal;
  return *a < *b ? Order::better : Order::worse;
}

double log_gain(const Outcome& outcome, std::size_t i) {
  return i == 0 ? 0 : std::log1p(outcome.variants[i].gain);
}

bool dominates(const Outcome& outcome, std::size_t a, std::size_t b, double tie) {
  const VariantOutcome& x = outcome.variants[a];
  const VariantOutcome& y = outcome.variants[b];
  const double lead = outcome.metric == Metric::rate ? log_gain(outcome, a) - log_gain(outcome, b)
                                                     : std::log(*x.rate / *y.rate);
  const Order orders[] = {
      std::abs(lead) <= tie ? Order::equal
      : lead > 0            ? Order::better
                            : Order::worse,
      smaller_is_better(x.energy_j_per_unit, y.energy_j_per_unit),
      smaller_is_better(x.kernel.registers, y.kernel.registers),
      smaller_is_better(x.kernel.spill_bytes, y.kernel.spill_bytes),
      smaller_is_better(std::optional(x.memory_bytes), std::optional(y.memory_bytes)),
      smaller_is_better(x.error_ratio, y.error_ratio),
  };
  bool better = false;
  for (const Order order : orders) {
    if (order == Order::worse) return false;
    better |= order == Order::better;
  }
  return better || a < b;  // of equals the first stands for all
}

}  // namespace

std::vector<std::size_t> pareto_front(const Outcome& outcome, double tie) {
  std::vector<std::size_t> timed;
  for (std::size_t i = 0; i < outcome.variants.size(); ++i) {
    const VariantOutcome& variant = outcome.variants[i];
    if (variant.rate && variant.same_code_as.empty() && (i == 0 || std::isfinite(variant.gain)))
      timed.push_back(i);
  }
  std::vector<std::size_t> front;
  for (const std::size_t i : timed)
    if (std::ranges::none_of(timed, [&](std::size_t j) { return j != i && dominates(outcome, j, i, tie); }))
      front.push_back(i);
  std::ranges::sort(front, [&](std::size_t a, std::size_t b) {
    const double x = log_gain(outcome, a), y = log_gain(outcome, b);
    return x != y ? x > y : a < b;
  });
  return front;
}

}  // namespace furlong::race
