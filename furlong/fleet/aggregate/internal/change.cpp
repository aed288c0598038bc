#include "furlong/fleet/aggregate/internal/change.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <tuple>

#include "furlong/stats/centre.h"

namespace furlong::fleet::internal {
namespace {

bool positive(float value) { return std::isfinite(value) && value > 0; }

/// Under one power cap, in one window.
struct Rates {
  std::vector<double> rates, logs;
  void add(float rate) {
    rates.push_back(rate);
    logs.push_back(std::log(static_cast<double>(rate)));
  }
};

struct Pair {
  Rates before, after;
};

/// Adds the caps up, each with the weight of the fewer races of its two windows.
void add_up(const std::map<Stratum, Pair>& strata, Change& change) {
  double whole = 0, most = 0, log_ratio = 0;
  for (const auto& [stratum, pair] : strata)
    whole += static_cast<double>(std::min(pair.before.rates.size(), pair.after.rates.size()));
  change.degrees = std::numeric_limits<double>::infinity();
  for (const auto& [stratum, pair] : strata) {
    const auto few = static_cast<double>(std::min(pair.before.rates.size(), pair.after.rates.size()));
    const double weight = few / whole;
    const double before = stats::median(pair.before.rates), after = stats::median(pair.after.rates);
    if (few > most) std::tie(most, change.before, change.after) = std::tuple(few, before, after);
    log_ratio += weight * std::log(after / before);
    change.log_change += weight * (stats::mean(pair.after.logs) - stats::mean(pair.before.logs));
    const auto part = [](const Rates& rates) {
      const double deviation = stats::deviation(rates.logs);
      return deviation * deviation / static_cast<double>(rates.logs.size());
    };
    change.log_variance += weight * weight * (part(pair.before) + part(pair.after));
    change.degrees = std::min(change.degrees, few - 1);
    change.samples += static_cast<std::uint32_t>(pair.after.rates.size());
  }
  change.pct = 100 * std::expm1(log_ratio);
}

/// One race says nothing of the scatter under its cap: it must not take the interval from those of another.
void leave_out_strays(std::map<Stratum, Pair>& strata) {
  const auto stray = [](const auto& each) {
    return std::min(each.second.before.rates.size(), each.second.after.rates.size()) < 2;
  };
  if (!std::ranges::all_of(strata, stray)) std::erase_if(strata, stray);
}

}  // namespace

void ChangeReader::add(const RaceRow& row) {
  if (row.machine >= names_.machines ||
      std::max({row.slot, row.label, row.driver, row.source, row.winner}) >= names_.words)
    return;
  if (row.machine != machine_.number) {
    end_machine();
    machine_.number = row.machine;
  }
  note(machine_.labels, row.label);
  note(machine_.slots, row.slot);
  if (row.pinned) return;
  Row kept{.first = values_.size(), .epoch = epoch_or_day(row)};
  kept.slot = row.slot;
  kept.driver = row.driver;
  kept.stratum = stratum_of(row.power_limit_w);
  kept.has_epoch = row.has_epoch;
  kept.after = row.ts_us >= split_us_;
  for (const PackedGain& gain : row.gains)
    if (!gain.fallback && was_timed(gain.exit) && positive(gain.rate) && gain.variant < names_.words)
      values_.emplace_back(gain.variant, gain.rate);
  kept.count = values_.size() - kept.first;
  rows_.push_back(kept);
  if (values_.size() > 2 * most_values) {  // a flood: the older half goes
    std::size_t rows = 0;
    while (rows < rows_.size() && values_.size() - rows_[rows].first > most_values) ++rows;
    const std::size_t values = rows < rows_.size() ? rows_[rows].first : values_.size();
    values_.erase(values_.begin(), values_.begin() + static_cast<std::ptrdiff_t>(values));
    rows_.erase(rows_.begin(), rows_.begin() + static_cast<std::ptrdiff_t>(rows));
    for (Row& each : rows_) each.first -= values;
  }
}

void ChangeReader::end() { end_machine(); }

/// Of one slot and epoch the latest counts, as in an aggregate.
void ChangeReader::read_rows() {
  std::vector<std::uint32_t> order(rows_.size());
  for (std::uint32_t i = 0; i < order.size(); ++i) order[i] = i;
  const auto epoch_of = [&](std::uint32_t row) {
    return std::tuple(rows_[row].slot, rows_[row].has_epoch, rows_[row].epoch);
  };
  std::ranges::sort(order, [&](std::uint32_t a, std::uint32_t b) {
    return std::tuple(epoch_of(a), a) < std::tuple(epoch_of(b), b);
  });
  timed_.clear();
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (i + 1 < order.size() && epoch_of(order[i]) == epoch_of(order[i + 1])) continue;
    const Row& row = rows_[order[i]];
    ++machine_.counted;
    for (std::size_t j = row.first; j < row.first + row.count; ++j)
      timed_.push_back({values_[j].first, row.stratum, row.after, row.driver, values_[j].second});
  }
}

void ChangeReader::end_machine() {
  if (machine_.number == 0) return;
  make_unique(machine_.labels);
  make_unique(machine_.slots);
  read_rows();
  std::ranges::sort(timed_, {}, [](const Timed& each) {
    return std::tuple(each.variant, each.after, each.driver, each.stratum, each.rate);
  });
  for (auto begin = timed_.begin(), end = begin; begin != timed_.end(); begin = end) {
    while (end != timed_.end() && end->variant == begin->variant) ++end;
    compare(begin, end);
  }
  machine_.strata = {{Stratum{0}, machine_.counted}};
  into_.machines.machines.push_back(std::move(machine_));
  machine_ = {};
  rows_.clear();
  values_.clear();
}

/// One variant's rates, those before first.
void ChangeReader::compare(std::vector<Timed>::iterator begin, std::vector<Timed>::iterator end) {
  const auto split = std::find_if(begin, end, [](const Timed& each) { return each.after; });
  std::map<Stratum, Rates> before;
  std::map<WordNumber, std::uint64_t> drivers;
  for (auto at = begin; at != split; ++at) {
    before[at->stratum].add(at->rate);
    ++drivers[at->driver];
  }
  for (auto first = split, last = split; first != end; first = last) {
    std::map<Stratum, Pair> strata;
    for (; last != end && last->driver == first->driver; ++last)
      if (before.contains(last->stratum)) strata[last->stratum].after.add(last->rate);
    if (strata.empty()) continue;
    for (auto& [stratum, pair] : strata) pair.before = before.at(stratum);
    leave_out_strays(strata);
    Change change{.machine = static_cast<std::uint32_t>(into_.machines.machines.size())};
    change.variant = first->variant;
    change.driver = first->driver;
    add_up(strata, change);
    into_.changes.push_back(change);
    auto& counts = into_.drivers_before[{change.variant, change.driver}];
    for (const auto& [driver, count] : drivers) counts[driver] += count;
  }
}

}  // namespace furlong::fleet::internal
