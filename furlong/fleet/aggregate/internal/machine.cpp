#include "furlong/fleet/aggregate/internal/machine.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <tuple>

namespace furlong::fleet::internal {
namespace {

constexpr std::int64_t day_us = 86'400'000'000;

/// Days before 1970 come from clocks that are wrong; they are one day.
std::uint32_t day_of(std::int64_t ts_us) {
  return ts_us < 0 ? 0 : static_cast<std::uint32_t>(ts_us / day_us);
}

}  // namespace

void make_unique(std::vector<std::uint32_t>& numbers) {
  std::ranges::sort(numbers);
  numbers.erase(std::ranges::unique(numbers).begin(), numbers.end());
}

void note(std::vector<std::uint32_t>& numbers, std::uint32_t number) {
  for (std::size_t i = numbers.size(); i > 0 && numbers.size() - i < 8; --i)
    if (numbers[i - 1] == number) return;
  numbers.push_back(number);
  if (numbers.size() >= 32 && std::has_single_bit(numbers.size())) make_unique(numbers);
}

Stratum stratum_of(float power_limit_w) {
  constexpr float least_w = 2, most_w = 100'000;  // what is outside is no card's limit
  if (!(power_limit_w >= least_w) || !(power_limit_w <= most_w)) return 0;
  return static_cast<Stratum>(std::lround(stratum_steps * std::log10(static_cast<double>(power_limit_w))));
}

bool positive(float value) { return std::isfinite(value) && value > 0; }

bool KnownNames::know(const RaceRow& row) const {
  return row.machine < machines &&
         std::max({row.slot, row.label, row.driver, row.source, row.winner}) < words;
}

bool was_timed(Exit exit) {
  return exit == Exit::stayed || exit == Exit::eliminated || exit == Exit::duplicate || exit == Exit::budget;
}

std::string stratum_name(Stratum stratum) {
  static constexpr std::array<int, stratum_steps> hundredths{
      100, 106, 112, 118, 125, 132, 140, 150, 160, 170, 180, 190, 200, 212, 224, 236, 250, 265, 280, 300,
      315, 335, 355, 375, 400, 425, 450, 475, 500, 530, 560, 600, 630, 670, 710, 750, 800, 850, 900, 950};
  if (stratum == 0) return "unknown";
  double watts = hundredths[stratum % stratum_steps];
  for (int decade = 2; decade < stratum / stratum_steps; ++decade) watts *= 10;
  for (int decade = 2; decade > stratum / stratum_steps; --decade) watts /= 10;
  return fmt::format("{:g} W", watts);
}

void MachineReader::begin(Quantity quantity, SubjectData& into) {
  quantity_ = quantity;
  into_ = &into;
  std::ranges::fill(local_, none);
  if (names_.base != 0) local_[names_.base] = 0;
  into.variants = {names_.base};
  into.exits.assign(1, {});
  into.won.assign(1, 0);
  counts_.assign(1, 0);
  machine_ = {};
  sources_.clear();
  rows_.clear();
  values_.clear();
}

std::uint32_t MachineReader::local(WordNumber word) {
  std::uint32_t& number = local_[word];
  if (number == none) {
    number = static_cast<std::uint32_t>(into_->variants.size());
    into_->variants.push_back(word);
    into_->exits.push_back({});
    into_->won.push_back(0);
    counts_.push_back(0);
  }
  return number;
}

void MachineReader::add(const RaceRow& row) {
  if (!names_.know(row)) return;
  if (row.machine != machine_.number) {
    end_machine();
    machine_.number = row.machine;
  }
  ++into_->seen;
  note(machine_.slots, row.slot);
  note(machine_.labels, row.label);
  note(sources_, row.source);
  if (row.pinned) {
    ++machine_.seen_pinned;
    into_->named.insert(row.winner);
    return;
  }
  take_values(row);
  if (values_.size() > 2 * most_values) drop_flood(most_values);
}

void MachineReader::take_values(const RaceRow& row) {
  Row kept{.first = values_.size(), .epoch = epoch_or_day(row), .ts_us = row.ts_us};
  kept.slot = row.slot;
  kept.driver = row.driver;
  kept.source = row.source;
  kept.winner = row.winner;
  kept.day = day_of(row.ts_us);
  kept.base_rate = row.base_rate;
  kept.ceiling = row.ceiling;
  kept.stratum = stratum_of(row.power_limit_w);
  kept.has_epoch = row.has_epoch;
  for (const PackedGain& gain : row.gains) {
    if (gain.variant >= names_.words) continue;
    const std::uint32_t variant = local(gain.variant);
    if (variant == 0) {
      if (positive(gain.rate)) kept.base_rate = gain.rate;
      kept.base_power = gain.power_w;
      kept.base_fallback = gain.fallback;
    }
    values_.push_back({variant, gain.gain_pct, gain.rate, gain.power_w, gain.exit, gain.fallback});
  }
  kept.count = static_cast<std::uint32_t>(values_.size() - kept.first);
  rows_.push_back(kept);
}

/// Drops the oldest rows until no more than `most` values are left.
void MachineReader::drop_flood(std::size_t most) {
  std::size_t rows = 0;
  while (rows < rows_.size() && values_.size() - rows_[rows].first > most) ++rows;
  if (rows == 0) return;
  const std::size_t values = rows < rows_.size() ? rows_[rows].first : values_.size();
  values_.erase(values_.begin(), values_.begin() + static_cast<std::ptrdiff_t>(values));
  rows_.erase(rows_.begin(), rows_.begin() + static_cast<std::ptrdiff_t>(rows));
  for (Row& row : rows_) row.first -= values;
  machine_.flooded += static_cast<std::uint32_t>(rows);
}

void MachineReader::end() { end_machine(); }

void MachineReader::end_machine() {
  if (machine_.number == 0) return;
  drop_flood(most_values);
  keep_latest();
  number_races();
  make_unique(machine_.slots);
  make_unique(machine_.labels);
  number_keys(strata_, [](const Row& row) { return row.stratum; });
  number_keys(drivers_, [](const Row& row) { return row.driver; });
  number_keys(days_, [](const Row& row) { return row.day; });
  read_rows();
  make_unique(machine_.sources);
  count_sources();
  sort_entries();
  read_ceiling();
  into_->machines.push_back(std::move(machine_));
  machine_ = {};
  sources_.clear();
  rows_.clear();
  values_.clear();
}

void MachineReader::count_sources() {
  make_unique(sources_);
  bool any = false;
  for (const WordNumber source : sources_) {
    if (source == 0) continue;  // it named none
    ++into_->sources_seen[source];
    any = true;
  }
  into_->machines_with_source += any;
}

/// Of one slot and epoch the latest counts; rows came in order of time.
void MachineReader::keep_latest() {
  order_.resize(rows_.size());
  for (std::uint32_t i = 0; i < order_.size(); ++i) order_[i] = i;
  const auto epoch_of = [&](std::uint32_t row) {
    return std::tuple(rows_[row].epoch, rows_[row].has_epoch, rows_[row].slot);
  };
  std::ranges::sort(order_, [&](std::uint32_t a, std::uint32_t b) {
    return std::tuple(epoch_of(a), a) < std::tuple(epoch_of(b), b);
  });
  std::size_t kept = 0;
  for (std::size_t i = 0; i < order_.size(); ++i)
    if (i + 1 == order_.size() || epoch_of(order_[i]) != epoch_of(order_[i + 1])) order_[kept++] = order_[i];
  into_->superseded += order_.size() - kept;
  order_.resize(kept);
}

/// order_ is by epoch, so that the same race lies together.
void MachineReader::number_races() {
  for (std::size_t i = 0; i < order_.size(); ++i) {
    Row& row = rows_[order_[i]];
    if (i == 0) continue;
    const Row& before = rows_[order_[i - 1]];
    row.race = before.race + (before.epoch != row.epoch || before.has_epoch != row.has_epoch);
  }
  counted_for_.assign(order_.empty() ? 0 : rows_[order_.back()].race + 1, none);
}

template <class KeyOf>
void MachineReader::number_keys(Keys& keys, const KeyOf& key_of) {
  keys.names.clear();
  keys.of_row.resize(order_.size());
  for (const std::uint32_t row : order_) note(keys.names, key_of(rows_[row]));
  make_unique(keys.names);
  for (std::size_t place = 0; place < order_.size(); ++place)
    keys.of_row[place] =
        keys.names.size() == 1
            ? 0
            : static_cast<std::uint32_t>(std::ranges::lower_bound(keys.names, key_of(rows_[order_[place]])) -
                                         keys.names.begin());
}

void MachineReader::read_rows() {
  unsorted_.clear();
  std::vector<std::uint32_t> by_stratum(strata_.names.size());
  std::uint32_t last_race = none;
  for (std::uint32_t place = 0; place < order_.size(); ++place) {
    const Row& row = rows_[order_[place]];
    for (std::size_t i = row.first; i < row.first + row.count; ++i)
      if (const Value& value = values_[i]; value.exit != Exit::stayed)
        ++into_->exits[value.variant][static_cast<std::size_t>(value.exit)];
    if (row.base_fallback) ++machine_.fallback;
    if (row.base_fallback || !positive(row.base_rate)) {
      machine_.no_base += !row.base_fallback;
      if (row.base_fallback) machine_.fallback_variant = names_.base;
      continue;
    }
    if (quantity_ == Quantity::rate_per_w && !positive(row.base_power)) {
      ++machine_.no_power;
      continue;
    }
    read_row(place);
    ++machine_.counted;
    machine_.races += row.race != last_race;
    last_race = row.race;
    ++by_stratum[strata_.of_row[place]];
    note(machine_.sources, row.source);
    machine_.newest_us = std::max(machine_.newest_us, row.ts_us);
    if (row.winner != 0) ++into_->won[local(row.winner)];
  }
  for (std::size_t i = 0; i < by_stratum.size(); ++i)
    if (by_stratum[i] > 0)
      machine_.strata.emplace_back(static_cast<Stratum>(strata_.names[i]), by_stratum[i]);
}

void MachineReader::read_row(std::uint32_t place) {
  const Row& row = rows_[order_[place]];
  add_entry(0, {place, 0, row.base_rate, positive(row.base_power) ? row.base_rate / row.base_power : absent});
  bool fallback = false;
  for (std::size_t i = row.first; i < row.first + row.count; ++i) {
    const Value& value = values_[i];
    if (value.variant == 0) continue;
    if (value.fallback) {
      fallback = true;
      machine_.fallback_variant = into_->variants[value.variant];
      continue;
    }
    const float gain = gain_of(value, row);
    if (!std::isfinite(gain) || !was_timed(value.exit)) continue;
    add_entry(value.variant,
              {place, gain, positive(value.rate) ? value.rate : absent,
               positive(value.rate) && positive(value.power) ? value.rate / value.power : absent});
  }
  machine_.fallback += fallback;
}

float MachineReader::gain_of(const Value& value, const Row& row) const {
  if (quantity_ == Quantity::recorded) return value.gain;
  if (!positive(value.rate)) return absent;
  double ratio = static_cast<double>(value.rate) / row.base_rate;
  if (quantity_ == Quantity::rate_per_w) {
    if (!positive(value.power)) return absent;
    ratio *= static_cast<double>(row.base_power) / value.power;
  }
  return static_cast<float>(100 * (ratio - 1));
}

void MachineReader::add_entry(std::uint32_t variant, Entry entry) {
  if (counts_[variant]++ == 0) touched_.push_back(variant);
  unsorted_.emplace_back(variant, entry);
}

/// By variant, keeping the order of races within each.
void MachineReader::sort_entries() {
  entries_.resize(unsorted_.size());
  std::uint32_t next = 0;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> parts;
  for (const std::uint32_t variant : touched_) {
    parts.emplace_back(next, counts_[variant]);
    next += std::exchange(counts_[variant], next);
  }
  for (const auto& [variant, entry] : unsorted_) entries_[counts_[variant]++] = entry;
  for (std::size_t i = 0; i < touched_.size(); ++i)
    reduce(touched_[i], std::span(entries_).subspan(parts[i].first, parts[i].second));
  for (const std::uint32_t variant : touched_) counts_[variant] = 0;
  touched_.clear();
}

template <class Take>
void MachineReader::split(const Keys& keys, std::span<const Entry> entries, const Take& take) {
  if (keys.names.size() == 1) {
    take(keys.names[0], entries);
    return;
  }
  part_.assign(entries.begin(), entries.end());
  const auto key_of = [&](const Entry& entry) { return keys.of_row[entry.row]; };
  if (keys.names.size() <= 64) {
    places_.assign(keys.names.size() + 1, 0);
    for (const Entry& entry : entries) ++places_[key_of(entry) + 1];
    for (std::size_t i = 1; i < places_.size(); ++i) places_[i] += places_[i - 1];
    for (const Entry& entry : entries) part_[places_[key_of(entry)]++] = entry;
  } else {
    std::ranges::stable_sort(part_, {}, key_of);
  }
  for (std::size_t begin = 0, end = 0; begin < part_.size(); begin = end) {
    const std::uint32_t key = key_of(part_[begin]);
    while (end < part_.size() && key_of(part_[end]) == key) ++end;
    take(keys.names[key], std::span(part_).subspan(begin, end - begin));
  }
}

void MachineReader::reduce(std::uint32_t variant, std::span<const Entry> entries) {
  split(strata_, entries, [&](std::uint32_t key, auto part) { add_cell(variant, key, part); });
  if (variant == 0) return;                                       // base gains nothing on any day
  if (strata_.names.size() == 1 && drivers_.names.size() == 1) {  // the same races, the same median
    const Cell& cell = into_->cells.back();
    into_->drivers.push_back({cell.machine, variant, drivers_.names[0], cell.gain, cell.samples, cell.races});
  } else {
    split(drivers_, entries,
          [&](std::uint32_t key, auto part) { into_->drivers.push_back(slice_of(variant, key, part)); });
  }
  split(days_, entries,
        [&](std::uint32_t key, auto part) { into_->days.push_back(slice_of(variant, key, part)); });
}

std::uint32_t MachineReader::races_of(std::span<const Entry> entries) const {
  std::uint32_t races = 0, last = none;
  for (const Entry& entry : entries) {
    const std::uint32_t race = rows_[order_[entry.row]].race;
    races += race != last;
    last = race;
  }
  return races;
}

/// Of a variant's parts, which come one after the other: a race of an earlier part is not counted again.
std::uint32_t MachineReader::new_races_of(std::uint32_t variant, std::span<const Entry> entries) {
  std::uint32_t races = 0;
  for (const Entry& entry : entries)
    races += std::exchange(counted_for_[rows_[order_[entry.row]].race], variant) != variant;
  return races;
}

float MachineReader::median(std::vector<float>& values) const {
  if (values.empty()) return absent;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  if (values.size() % 2 == 1) return *middle;
  return static_cast<float>((static_cast<double>(*std::max_element(values.begin(), middle)) + *middle) / 2);
}

void MachineReader::add_cell(std::uint32_t variant, std::uint32_t key, std::span<const Entry> entries) {
  gains_.clear();
  rates_.clear();
  rates_per_w_.clear();
  for (const Entry& entry : entries) {
    gains_.push_back(entry.gain);
    if (!std::isnan(entry.rate)) rates_.push_back(entry.rate);
    if (!std::isnan(entry.rate_per_w)) rates_per_w_.push_back(entry.rate_per_w);
  }
  Cell cell{.machine = static_cast<std::uint32_t>(into_->machines.size()), .variant = variant};
  cell.stratum = static_cast<Stratum>(key);
  cell.gain = median(gains_);
  cell.rate = median(rates_);
  cell.rate_per_w = median(rates_per_w_);
  cell.samples = static_cast<std::uint32_t>(entries.size());
  cell.races = races_of(entries);
  cell.new_races = new_races_of(variant, entries);
  into_->cells.push_back(cell);
}

Slice MachineReader::slice_of(std::uint32_t variant, std::uint32_t key, std::span<const Entry> entries) {
  gains_.clear();
  for (const Entry& entry : entries) gains_.push_back(entry.gain);
  Slice slice{.machine = static_cast<std::uint32_t>(into_->machines.size()), .variant = variant};
  slice.key = key;
  slice.gain = median(gains_);
  slice.samples = static_cast<std::uint32_t>(entries.size());
  slice.races = races_of(entries);
  return slice;
}

/// A ceiling is of its winner's work, so that of another variant may be lower: the largest is the card's.
void MachineReader::read_ceiling() {
  std::vector<std::pair<WordNumber, float>> ceilings;
  for (const std::uint32_t row : order_)
    if (positive(rows_[row].ceiling)) ceilings.emplace_back(rows_[row].winner, rows_[row].ceiling);
  std::ranges::sort(ceilings);
  for (std::size_t begin = 0, end = 0; begin < ceilings.size(); begin = end) {
    gains_.clear();
    for (; end < ceilings.size() && ceilings[end].first == ceilings[begin].first; ++end)
      gains_.push_back(ceilings[end].second);
    const float middle = median(gains_);
    if (!(machine_.ceiling >= middle)) machine_.ceiling = middle;
  }
}

}  // namespace furlong::fleet::internal
