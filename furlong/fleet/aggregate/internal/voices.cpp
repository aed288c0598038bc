#include "furlong/fleet/aggregate/internal/voices.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <tuple>

#include "furlong/base/text.h"

namespace furlong::fleet::internal {
namespace {

constexpr std::uint32_t nobody = UINT32_MAX;

/// New places by ascending name: result[old] = new. The first `fixed` stay.
template <class NameOf>
std::vector<std::uint32_t> ranks(std::size_t count, std::size_t fixed, const NameOf& name_of) {
  std::vector<std::uint32_t> order(count), rank(count);
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin() + static_cast<std::ptrdiff_t>(std::min(fixed, count)), order.end(),
            [&](std::uint32_t a, std::uint32_t b) { return name_of(a) < name_of(b); });
  for (std::uint32_t i = 0; i < count; ++i) rank[order[i]] = i;
  return rank;
}

template <class T>
void permute(std::vector<T>& items, const std::vector<std::uint32_t>& rank) {
  std::vector<T> moved(items.size());
  for (std::size_t i = 0; i < items.size(); ++i) moved[rank[i]] = std::move(items[i]);
  items = std::move(moved);
}

/// How many machines report a slot decides which group is made first; the name decides among equals.
struct Claim {
  std::vector<std::uint32_t> machines;
  WordNumber slot = 0;
};

std::vector<Claim> shared_slots(const SubjectData& data, const StoreNames& names) {
  std::vector<std::pair<WordNumber, std::uint32_t>> reports;
  for (std::uint32_t i = 0; i < data.machines.size(); ++i)
    if (data.machines[i].counted > 0)
      for (const WordNumber slot : data.machines[i].slots)
        if (slot != 0) reports.emplace_back(slot, i);
  std::ranges::sort(reports);
  std::vector<Claim> claims;
  for (std::size_t begin = 0, end = 0; begin < reports.size(); begin = end) {
    Claim claim{.machines = {}, .slot = reports[begin].first};
    for (; end < reports.size() && reports[end].first == claim.slot; ++end)
      claim.machines.push_back(reports[end].second);
    if (claim.machines.size() > 1) claims.push_back(std::move(claim));
  }
  std::ranges::sort(claims, [&](const Claim& a, const Claim& b) {
    if (a.machines.size() != b.machines.size()) return a.machines.size() > b.machines.size();
    return names.words[a.slot] < names.words[b.slot];
  });
  return claims;
}

void add_voice(const SubjectData& data, std::vector<std::uint32_t> members, Voices& voices) {
  Voice voice{.members = std::move(members)};
  std::map<Stratum, std::uint64_t> races;
  std::uint64_t all = 0;
  for (const std::uint32_t member : voice.members) {
    voices.of_machine[member] = static_cast<std::uint32_t>(voices.all.size());
    for (const auto& [stratum, count] : data.machines[member].strata) {
      races[stratum] += count;
      all += count;
    }
  }
  for (const auto& [stratum, count] : races)
    voice.shares.emplace_back(stratum, static_cast<double>(count) / static_cast<double>(all));
  voices.all.push_back(std::move(voice));
}

}  // namespace

std::size_t Voices::counting() const {
  return static_cast<std::size_t>(std::ranges::count(all, false, &Voice::aside));
}

void put_in_order(SubjectData& data, const StoreNames& names) {
  const auto machines = ranks(data.machines.size(), 0, [&](std::uint32_t machine) -> const std::string& {
    return names.machines[data.machines[machine].number];
  });
  const auto variants = ranks(data.variants.size(), 1, [&](std::uint32_t variant) -> const std::string& {
    return names.words[data.variants[variant]];
  });
  permute(data.machines, machines);
  permute(data.variants, variants);
  permute(data.exits, variants);
  permute(data.won, variants);
  for (Cell& cell : data.cells) {
    cell.machine = machines[cell.machine];
    cell.variant = variants[cell.variant];
  }
  for (std::vector<Slice>* slices : {&data.drivers, &data.days}) {
    for (Slice& slice : *slices) {
      slice.machine = machines[slice.machine];
      slice.variant = variants[slice.variant];
    }
  }
  std::ranges::sort(data.cells, {},
                    [](const Cell& cell) { return std::tuple(cell.variant, cell.machine, cell.stratum); });
  std::ranges::sort(data.days, {},
                    [](const Slice& day) { return std::tuple(day.variant, day.key, day.machine); });
  std::ranges::sort(data.drivers, [&](const Slice& a, const Slice& b) {
    return std::tie(a.variant, names.words[a.key], a.machine) <
           std::tie(b.variant, names.words[b.key], b.machine);
  });
}

Voices find_voices(const SubjectData& data, const StoreNames& names) {
  Voices voices;
  voices.of_machine.assign(data.machines.size(), nobody);
  std::vector<std::vector<std::uint32_t>> groups;
  std::vector<WordNumber> slot_of(data.machines.size(), 0);
  for (const Claim& claim : shared_slots(data, names)) {
    std::vector<std::uint32_t> free;
    for (const std::uint32_t machine : claim.machines)
      if (slot_of[machine] == 0) free.push_back(machine);
    if (free.size() < 2) continue;
    for (const std::uint32_t machine : free) slot_of[machine] = claim.slot;
    groups.push_back(std::move(free));
  }
  for (std::uint32_t i = 0; i < data.machines.size(); ++i)
    if (data.machines[i].counted > 0 && slot_of[i] == 0) groups.push_back({i});
  std::ranges::sort(groups);
  for (auto& group : groups) {
    for (std::size_t i = 1; i < group.size(); ++i) {
      const MachineEvidence& machine = data.machines[group[i]];
      voices.set_aside.push_back({.machine = names.machines[machine.number],
                                  .reason = "same-card",
                                  .why = fmt::format("reports slot {} as {} does: one card, one voice",
                                                     names.words[slot_of[group[i]]],
                                                     names.machines[data.machines[group.front()].number]),
                                  .races = static_cast<int>(machine.counted)});
    }
    add_voice(data, std::move(group), voices);
  }
  return voices;
}

void list_left_out(const SubjectData& data, const StoreNames& names, Voices& voices) {
  for (const MachineEvidence& machine : data.machines) {
    const auto add = [&](std::uint32_t races, const char* reason, std::string why) {
      if (races > 0)
        voices.set_aside.push_back({.machine = names.machines[machine.number],
                                    .reason = reason,
                                    .why = std::move(why),
                                    .races = static_cast<int>(races)});
    };
    const std::string& variant = names.words[machine.fallback_variant];
    add(machine.fallback, "fallback",
        fmt::format(
            "in {} races another kernel ran than a name says (such as {}): those figures do not count",
            machine.fallback, variant));
    add(machine.no_base, "no-base",
        fmt::format("{} races have no rate of base: nothing is a gain over it", machine.no_base));
    add(machine.no_power, "no-power",
        fmt::format("{} races have no draw of base: nothing is a gain in work per joule", machine.no_power));
    add(machine.flooded, "flood",
        fmt::format("{} races and more: the newest, {} values, count", machine.flooded + machine.counted,
                    most_values));
  }
}

}  // namespace furlong::fleet::internal
