#include "furlong/fleet/aggregate/internal/change.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <tuple>

#include "furlong/stats/centre.h"

namespace furlong::fleet::internal {
namespace {

/// Of one card under one power cap, in one window.
struct Rates {
  std::vector<double> rates, logs;
  void add(float rate) {
    rates.push_back(rate);
    logs.push_back(std::log(static_cast<double>(rate)));
  }
};

struct Pair {
  Rates before, after;
  std::size_t fewer() const { return std::min(before.rates.size(), after.rates.size()); }
};

/// What is compared with itself: two cards of a box differ by more than what a regression is, and which of
/// them races more is chance.
using CardAndCap = std::pair<WordNumber, Stratum>;

/// One card and cap, reduced.
struct Part {
  double fewer = 0, before = 0, after = 0, log_change = 0, log_variance = 0;
  std::uint32_t samples = 0;
};

Part part_of(const Pair& pair) {
  return {.fewer = static_cast<double>(pair.fewer()),
          .before = stats::median(pair.before.rates),
          .after = stats::median(pair.after.rates),
          .log_change = stats::mean(pair.after.logs) - stats::mean(pair.before.logs),
          .log_variance = variance_of_mean(pair.before.logs) + variance_of_mean(pair.after.logs),
          .samples = static_cast<std::uint32_t>(pair.after.rates.size())};
}

/// Adds cards and caps up, each with the weight of the fewer races of its two windows.
void add_up(const std::map<CardAndCap, Pair>& pairs, Change& change) {
  std::vector<Part> parts;
  for (const auto& [key, pair] : pairs) parts.push_back(part_of(pair));
  // By value: numbers of slots depend on what the store saw first, and sums on their order.
  std::ranges::sort(parts, {}, [](const Part& part) {
    return std::tuple(part.fewer, part.before, part.after, part.log_change);
  });
  double whole = 0, most = 0, log_ratio = 0;
  for (const Part& part : parts) whole += part.fewer;
  change.own = {.log_variance = 0, .degrees = std::numeric_limits<double>::infinity()};
  for (const Part& part : parts) {
    const double weight = part.fewer / whole;
    if (part.fewer > most)
      std::tie(most, change.before, change.after) = std::tuple(part.fewer, part.before, part.after);
    log_ratio += weight * std::log(part.after / part.before);
    change.own.log_mean += weight * part.log_change;
    change.own.log_variance += weight * weight * part.log_variance;
    change.own.degrees = std::min(change.own.degrees, part.fewer - 1);
    change.samples += part.samples;
  }
  change.pairs = static_cast<std::uint32_t>(whole);
  change.pct = 100 * std::expm1(log_ratio);
}

/// One race says nothing of the scatter of its card and cap: it must not take the interval from those of
/// another.
void leave_out_strays(std::map<CardAndCap, Pair>& pairs) {
  const auto stray = [](const auto& each) { return each.second.fewer() < 2; };
  if (!std::ranges::all_of(pairs, stray)) std::erase_if(pairs, stray);
}

}  // namespace

void ChangeReader::add(const RaceRow& row) {
  if (!names_.know(row)) return;
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
  if (std::max(values_.size(), rows_.size()) > 2 * most_values) drop_flood();
}

/// The older half goes. A row without a rate is kept, since it may supersede one, and counts as one value.
void ChangeReader::drop_flood() {
  std::size_t rows = rows_.size() - std::min(rows_.size(), most_values);
  while (rows < rows_.size() && values_.size() - rows_[rows].first > most_values) ++rows;
  const std::size_t values = rows < rows_.size() ? rows_[rows].first : values_.size();
  values_.erase(values_.begin(), values_.begin() + static_cast<std::ptrdiff_t>(values));
  rows_.erase(rows_.begin(), rows_.begin() + static_cast<std::ptrdiff_t>(rows));
  for (Row& each : rows_) each.first -= values;
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
      timed_.push_back({values_[j].first, row.slot, row.stratum, row.after, row.driver, values_[j].second});
  }
}

void ChangeReader::end_machine() {
  if (machine_.number == 0) return;
  drop_flood();
  make_unique(machine_.labels);
  make_unique(machine_.slots);
  read_rows();
  std::ranges::sort(timed_, {}, [](const Timed& each) {
    return std::tuple(each.variant, each.after, each.driver, each.slot, each.stratum, each.rate);
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
  std::map<CardAndCap, Rates> before;
  std::map<WordNumber, std::uint64_t> drivers;
  for (auto at = begin; at != split; ++at) {
    before[{at->slot, at->stratum}].add(at->rate);
    ++drivers[at->driver];
  }
  for (auto first = split, last = split; first != end; first = last) {
    std::map<CardAndCap, Pair> pairs;
    for (; last != end && last->driver == first->driver; ++last)
      if (const CardAndCap key{last->slot, last->stratum}; before.contains(key))
        pairs[key].after.add(last->rate);
    if (pairs.empty()) continue;
    for (auto& [key, pair] : pairs) pair.before = before.at(key);
    leave_out_strays(pairs);
    Change change{.machine = static_cast<std::uint32_t>(into_.machines.machines.size())};
    change.variant = first->variant;
    change.driver = first->driver;
    add_up(pairs, change);
    into_.changes.push_back(change);
    auto& counts = into_.drivers_before[{change.variant, change.driver}];
    for (const auto& [driver, count] : drivers) counts[driver] += count;
  }
}

}  // namespace furlong::fleet::internal
