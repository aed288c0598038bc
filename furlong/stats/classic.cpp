#include "furlong/stats/classic.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "furlong/stats/centre.h"

namespace furlong::stats {

ClassicResult classic(std::span<const std::vector<double>> rounds, const ClassicRules& rules) {
  std::size_t variants = 0;
  for (const auto& round : rounds) variants = std::max(variants, round.size());
  std::vector<double> cost(variants);
  std::vector<double> turns;
  for (std::size_t v = 0; v < variants; ++v) {
    turns.clear();
    for (const auto& round : rounds)
      if (v < round.size() && std::isfinite(round[v]) && round[v] > 0) turns.push_back(round[v]);
    cost[v] = median_in_place(turns);
  }
  ClassicResult result;
  result.gain.assign(variants, std::numeric_limits<double>::quiet_NaN());
  if (variants == 0 || std::isnan(cost[0])) return result;
  for (std::size_t v = 0; v < variants; ++v) result.gain[v] = cost[0] / cost[v] - 1;
  std::size_t fastest = 0;
  for (std::size_t v = 1; v < variants; ++v)
    if (result.gain[v] > result.gain[fastest]) fastest = v;
  if (result.gain[fastest] > rules.margin) result.winner = fastest;
  return result;
}

}  // namespace furlong::stats
