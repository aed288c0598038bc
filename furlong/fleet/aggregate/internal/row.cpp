#include "furlong/fleet/aggregate/internal/row.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "furlong/base/os/clock.h"
#include "furlong/fleet/aggregate/internal/interval.h"
#include "furlong/fleet/manifest/documents.h"

namespace furlong::fleet::internal {
namespace {

constexpr double least_weight = 1e-9;
/// Medians of one card's rates under one power cap differ by less.
constexpr float same_card_rate = 0.10F;
constexpr std::int64_t day_us = 86'400'000'000;

/// What one voice says of a variant under one power cap.
struct VoiceCell {
  std::uint32_t voice = 0;
  Stratum stratum = 0;
  double share = 0;  ///< of the voice's races under this cap
  double gain = NAN, rate = NAN, rate_per_w = NAN;
  int samples = 0, races = 0, new_races = 0;  ///< new: that are in no cell of a lower cap
};

/// Of one variant.
struct Heard {
  std::vector<VoiceCell> cells;
  std::map<Stratum, double> lost;  ///< shares of voices that were not heard: in dispute, above the ceiling
  std::vector<std::uint32_t> unheard;  ///< voices that have a cell above the ceiling; ascending
};

using Shares = std::map<Stratum, double>;

double share_of(const Voice& voice, Stratum stratum) {
  for (const auto& [key, share] : voice.shares)
    if (key == stratum) return share;
  return 0;
}

template <class T>
double middle_of(std::span<const T* const> cells, float T::* member) {
  std::vector<Said> values;
  for (const T* cell : cells)
    if (!std::isnan(cell->*member)) values.push_back({cell->*member, 1, 0});
  sort_by_value(values);
  return weighted_median(values);
}

template <class T>
double spread_of(std::span<const T* const> cells) {
  float low = INFINITY, high = -INFINITY;
  for (const T* cell : cells) {
    low = std::min(low, cell->gain);
    high = std::max(high, cell->gain);
  }
  return static_cast<double>(high) - low;
}

/// Whether machines with one card may be one voice about it.
bool agree(std::span<const Cell* const> cells, double tolerance_pct) {
  if (spread_of(cells) > tolerance_pct) return false;
  float low = INFINITY, high = 0;
  for (const Cell* cell : cells) {
    low = std::min(low, cell->rate);
    high = std::max(high, cell->rate);
  }
  return !(high > low * (1 + same_card_rate));
}

/// Adds up one subject.
class RowMaker {
 public:
  RowMaker(const Subject& subject, SubjectData& data, const StoreNames& names,
           const AggregateOptions& options)
      : subject_(subject), data_(data), names_(names), options_(options), voices_(find_voices(data, names)) {}

  RowEvidence make();

 private:
  void hear(std::span<const Cell> cells, Heard& heard) const;
  void hear_voice(const Voice& voice, std::uint32_t number, std::span<const Cell* const> cells,
                  Heard& heard) const;
  VariantEvidence variant_of(std::uint32_t variant, std::span<const Cell> cells) const;
  Estimate weighed(const Heard& heard, double VoiceCell::* member) const;
  double missing(const Heard& heard, double VoiceCell::* member) const;
  double standing(const Heard& heard, double VoiceCell::* member) const;
  void add_strata(const Heard& heard, VariantEvidence& evidence) const;
  Estimate slice_estimate(std::span<const Slice> slices, const Heard& heard) const;
  void add_slices(std::uint32_t variant, const Heard& heard, VariantEvidence& evidence) const;
  void check_names(RowEvidence& row);
  void add_totals(RowEvidence& row) const;

  const Subject& subject_;
  SubjectData& data_;
  const StoreNames& names_;
  const AggregateOptions& options_;
  Voices voices_;
  Shares shares_;                      ///< of all voices that count
  std::vector<std::uint32_t> groups_;  ///< those of them that are several machines
};

/// A voice of several machines has a say only where all of them say nearly the same: none of them can be told
/// to be the card's, and a clone that lies must not speak for it.
void RowMaker::hear_voice(const Voice& voice, std::uint32_t number, std::span<const Cell* const> cells,
                          Heard& heard) const {
  const Stratum stratum = cells.front()->stratum;
  const double share = share_of(voice, stratum);
  const bool above = std::ranges::any_of(cells, [](const Cell* cell) { return cell->above_ceiling; });
  if (above && (heard.unheard.empty() || heard.unheard.back() != number)) heard.unheard.push_back(number);
  if (above || cells.size() < voice.members.size() || !agree(cells, 2 * options_.near_pct)) {
    heard.lost[stratum] += share;
    return;
  }
  VoiceCell cell{.voice = number, .stratum = stratum, .share = share};
  cell.gain = middle_of(cells, &Cell::gain);
  cell.rate = middle_of(cells, &Cell::rate);
  cell.rate_per_w = middle_of(cells, &Cell::rate_per_w);
  for (const Cell* each : cells) {
    cell.samples += static_cast<int>(each->samples);
    cell.races += static_cast<int>(each->races);
    cell.new_races += static_cast<int>(each->new_races);
  }
  heard.cells.push_back(cell);
}

void RowMaker::hear(std::span<const Cell> cells, Heard& heard) const {
  std::vector<const Cell*> ordered;
  for (const Cell& cell : cells)
    if (!voices_.all[voices_.of_machine[cell.machine]].aside) ordered.push_back(&cell);
  const auto key = [&](const Cell* cell) {
    return std::pair(voices_.of_machine[cell->machine], cell->stratum);
  };
  std::ranges::stable_sort(ordered, {}, key);
  std::set<std::pair<std::uint32_t, Stratum>> of_groups;
  for (std::size_t begin = 0, end = 0; begin < ordered.size(); begin = end) {
    while (end < ordered.size() && key(ordered[end]) == key(ordered[begin])) ++end;
    const std::uint32_t voice = voices_.of_machine[ordered[begin]->machine];
    hear_voice(voices_.all[voice], voice, std::span(ordered).subspan(begin, end - begin), heard);
    if (voices_.all[voice].members.size() > 1) of_groups.insert(key(ordered[begin]));
  }
  // Where no machine of a group has raced the variant, the group is not counted as having seen no gain: one
  // that joined it with races of its own would speak against the variant in its name.
  for (const std::uint32_t group : groups_)
    for (const auto& [stratum, share] : voices_.all[group].shares)
      if (!of_groups.contains({group, stratum})) heard.lost[stratum] += share;
}

/// The median over voices. A voice weighs its share under the cap, times what that cap has of the card's
/// voices over what it has of the variant's.
Estimate RowMaker::weighed(const Heard& heard, double VoiceCell::* member) const {
  Shares present;
  for (const VoiceCell& cell : heard.cells)
    if (!std::isnan(cell.*member)) present[cell.stratum] += cell.share;
  std::vector<Said> said;
  for (const VoiceCell& cell : heard.cells) {
    if (std::isnan(cell.*member)) continue;
    const auto lost = heard.lost.find(cell.stratum);
    const double of_card = shares_.at(cell.stratum) - (lost == heard.lost.end() ? 0 : lost->second);
    said.push_back({cell.*member, cell.share * of_card / present.at(cell.stratum), cell.voice});
  }
  Estimate estimate = estimate_of(said);
  for (const VoiceCell& cell : heard.cells) {
    if (std::isnan(cell.*member)) continue;
    estimate.samples += cell.samples;
    estimate.races += cell.new_races;
  }
  return estimate;
}

/// How many voices of the card, in shares, neither say anything of the variant nor are in dispute.
double RowMaker::missing(const Heard& heard, double VoiceCell::* member) const {
  double missing = 0;
  for (const auto& [stratum, share] : shares_) missing += share;
  for (const auto& [stratum, share] : heard.lost) missing -= share;
  for (const VoiceCell& cell : heard.cells)
    if (!std::isnan(cell.*member)) missing -= cell.share;
  return missing > least_weight ? missing : 0;
}

/// The median over all the card's voices, those that have not raced the variant included: they saw no gain.
double RowMaker::standing(const Heard& heard, double VoiceCell::* member) const {
  std::vector<Said> said;
  for (const VoiceCell& cell : heard.cells)
    if (!std::isnan(cell.*member)) said.push_back({cell.*member, cell.share, cell.voice});
  if (const double absent = missing(heard, member); absent > 0) said.push_back({0, absent, UINT32_MAX});
  sort_by_value(said);
  const double median = weighted_median(said);
  return std::isnan(median) ? 0 : median;
}

void RowMaker::add_strata(const Heard& heard, VariantEvidence& evidence) const {
  std::map<Stratum, std::pair<std::vector<Said>, Estimate>> strata;
  for (const VoiceCell& cell : heard.cells) {
    auto& [said, counts] = strata[cell.stratum];
    said.push_back({cell.gain, 1, cell.voice});
    counts.samples += cell.samples;
    counts.races += cell.races;
  }
  // The least capped first, what is not known last.
  for (auto at = strata.rbegin(); at != strata.rend(); ++at) {
    auto& [said, counts] = at->second;
    Stratum stratum = at->first;
    Estimate estimate = estimate_of(said);
    estimate.samples = counts.samples;
    estimate.races = counts.races;
    evidence.strata.push_back({.name = stratum_name(stratum), .gain = estimate});
  }
}

Estimate RowMaker::slice_estimate(std::span<const Slice> slices, const Heard& heard) const {
  std::map<std::uint32_t, std::vector<const Slice*>> by_voice;
  for (const Slice& slice : slices) by_voice[voices_.of_machine[slice.machine]].push_back(&slice);
  std::vector<Said> said;
  int samples = 0, races = 0;
  for (const auto& [voice, members] : by_voice) {
    if (voices_.all[voice].aside || std::ranges::binary_search(heard.unheard, voice)) continue;
    const std::span<const Slice* const> all(members);
    if (spread_of(all) > 2 * options_.near_pct && all.size() > 1) continue;
    said.push_back({middle_of(all, &Slice::gain), 1, voice});
    for (const Slice* slice : members) {
      samples += static_cast<int>(slice->samples);
      races += static_cast<int>(slice->races);
    }
  }
  Estimate estimate = estimate_of(said);
  estimate.samples = samples;
  estimate.races = races;
  return estimate;
}

void RowMaker::add_slices(std::uint32_t variant, const Heard& heard, VariantEvidence& evidence) const {
  const auto add = [&](const std::vector<Slice>& slices, const auto& name_of,
                       std::map<std::string, Estimate>& into) {
    const auto [first, last] = std::ranges::equal_range(slices, variant, {}, &Slice::variant);
    for (auto begin = first, end = first; begin != last; begin = end) {
      while (end != last && end->key == begin->key) ++end;
      if (const Estimate estimate = slice_estimate({begin, end}, heard); estimate.machines > 0)
        into.emplace(name_of(begin->key), estimate);
    }
  };
  add(data_.drivers, [&](std::uint32_t word) { return names_.words[word]; }, evidence.drivers);
  add(data_.days, [](std::uint32_t day) { return iso_time(day * day_us).substr(0, 10); }, evidence.days);
}

VariantEvidence RowMaker::variant_of(std::uint32_t variant, std::span<const Cell> cells) const {
  VariantEvidence evidence{.name = variant == 0 ? "base" : names_.words[data_.variants[variant]]};
  Heard heard;
  hear(cells, heard);
  evidence.gain_pct = weighed(heard, &VoiceCell::gain);
  evidence.rate = weighed(heard, &VoiceCell::rate);
  evidence.rate_per_w = weighed(heard, &VoiceCell::rate_per_w);
  evidence.not_raced = missing(heard, &VoiceCell::gain);
  evidence.standing_pct = standing(heard, &VoiceCell::gain);
  evidence.standing_rate =
      standing(heard, options_.by == By::energy ? &VoiceCell::rate_per_w : &VoiceCell::rate);
  if (variant == 0) evidence.gain_pct.ci.reset();  // it is 0 by its meaning
  add_strata(heard, evidence);
  add_slices(variant, heard, evidence);
  for (std::size_t exit = 0; exit < data_.exits[variant].size(); ++exit)
    if (const std::uint32_t races = data_.exits[variant][exit]; races > 0)
      evidence.exits[std::string(exit_name(static_cast<Exit>(exit)))] = static_cast<int>(races);
  evidence.won = static_cast<int>(data_.won[variant]);
  return evidence;
}

/// A manifest carries names only: one that it would refuse must not keep all the others out of it.
void RowMaker::check_names(RowEvidence& row) {
  const auto carried = [&](const std::string& program, const std::string& variant) {
    record::Tuning tuning;
    tuning.cards.push_back({.key = "card", .rows = {{.program = program, .variant = variant}}});
    return check_tuning_names(tuning, "tuning").has_value();
  };
  row.publishable = carried(subject_.program, "base");
  if (!row.publishable)
    row.set_aside.push_back(
        {.machine = "",
         .reason = "name",
         .why = fmt::format("'{}' is no name of a program that a manifest carries", subject_.program)});
  for (VariantEvidence& variant : row.variants) {
    variant.publishable = carried("lottery", variant.name);
    if (!variant.publishable)
      row.set_aside.push_back(
          {.machine = "",
           .reason = "name",
           .why = fmt::format("'{}' is no name of a variant that a manifest carries", variant.name),
           .races = variant.gain_pct.races});
  }
}

void RowMaker::add_totals(RowEvidence& row) const {
  std::set<WordNumber> sources;
  for (const Voice& voice : voices_.all) {
    if (voice.aside) continue;
    ++row.machines;
    for (const std::uint32_t member : voice.members) {
      row.samples += static_cast<int>(data_.machines[member].counted);
      row.races += static_cast<int>(data_.machines[member].races);
      row.newest_us = std::max(row.newest_us, data_.machines[member].newest_us);
      sources.insert(data_.machines[member].sources.begin(), data_.machines[member].sources.end());
    }
  }
  for (const MachineEvidence& machine : data_.machines)
    row.seen_pinned += static_cast<int>(machine.seen_pinned);
  if (sources.size() == 1) row.source = names_.words[*sources.begin()];
}

RowEvidence RowMaker::make() {
  RowEvidence row{.subject = subject_};
  set_aside_bases(data_, names_, subject_.unit, voices_);
  set_aside_above_ceiling(data_, names_, subject_.unit, voices_);
  list_left_out(data_, names_, voices_);
  for (std::uint32_t i = 0; i < voices_.all.size(); ++i) {
    const Voice& voice = voices_.all[i];
    if (voice.aside) continue;
    if (voice.members.size() > 1) groups_.push_back(i);
    for (const auto& [stratum, share] : voice.shares) shares_[stratum] += share;
  }
  for (std::uint32_t variant = 0; variant < data_.variants.size(); ++variant) {
    const auto cells = std::ranges::equal_range(data_.cells, variant, {}, &Cell::variant);
    VariantEvidence evidence = variant_of(variant, {cells.begin(), cells.end()});
    if (!evidence.exits.empty() || evidence.won > 0 || evidence.gain_pct.samples > 0)
      row.variants.push_back(std::move(evidence));
  }
  row.set_aside = voices_.set_aside;
  check_names(row);
  std::ranges::sort(row.set_aside, {},
                    [](const SetAside& one) { return std::tie(one.machine, one.reason, one.why); });
  std::ranges::sort(row.variants, [&](const VariantEvidence& a, const VariantEvidence& b) {
    const auto key = [&](const VariantEvidence& variant) {
      return std::tuple(variant.gain_pct.samples == 0, -standing_of(variant, options_.rank),
                        variant.name != "base");
    };
    return std::tuple(key(a), std::string_view(a.name)) < std::tuple(key(b), std::string_view(b.name));
  });
  add_totals(row);
  return row;
}

}  // namespace

Quantity quantity_of(const Subject& subject, By by) {
  if (by == By::energy) return subject.metric == "energy" ? Quantity::recorded : Quantity::rate_per_w;
  return subject.metric.empty() ? Quantity::recorded : Quantity::rates;
}

double standing_of(const VariantEvidence& variant, Rank rank) {
  return rank == Rank::rate ? variant.standing_rate : variant.standing_pct;
}

RowEvidence row_of(const Subject& subject, SubjectData& data, const StoreNames& names,
                   const AggregateOptions& options) {
  put_in_order(data, names);
  return RowMaker(subject, data, names, options).make();
}

}  // namespace furlong::fleet::internal
