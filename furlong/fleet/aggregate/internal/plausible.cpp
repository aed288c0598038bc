// Voices against what their peers and the card's ceiling allow. Every rule here needs more than half of the
// voices to speak against one, so that a minority cannot have honest machines set aside.

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>

#include "furlong/fleet/aggregate/internal/voices.h"
#include "furlong/stats/centre.h"

namespace furlong::fleet::internal {
namespace {

/// Cards of one silicon differ by a few percent; where the power cap is not known, by what it may explain.
constexpr double least_tolerance = 0.10, least_tolerance_unknown = 0.25;
constexpr double tolerated_scales = 5;
/// A ceiling is a measurement too.
constexpr double ceiling_tolerance = 0.05;
constexpr double infinite = std::numeric_limits<double>::infinity();

struct Power {
  double lo = 0, hi = 0;  ///< percent of the default limit
  auto operator<=>(const Power&) const = default;
};
/// Where it is not known: between the least cap that cards take and a little over their limit.
Power power_of(Stratum stratum) {
  return stratum == 0 ? Power{30, 110} : Power{10.0 * stratum - 5, 10.0 * stratum + 5};
}

/// How much faster a card may be than another by its power cap alone: never more than it has more power.
double explained(const Power& fast, const Power& slow) {
  return fast == slow ? 1 : std::max(1.0, fast.hi / slow.lo);
}

Stratum main_stratum(const MachineEvidence& machine) {
  Stratum best = 0;
  std::uint32_t races = 0;
  for (const auto& [stratum, count] : machine.strata)
    if (count >= races) std::tie(best, races) = std::pair(stratum, count);
  return best;
}

/// A voice's base: the range over its machines.
struct Base {
  double lo = infinite, hi = 0;
  Power power{infinite, 0};
  double tolerance = 0;
  Stratum stratum = 0;  ///< of its first machine
};

struct MachineBase {
  Stratum stratum = 0;
  double rate = 0;  ///< 0: none
};

std::vector<MachineBase> machine_bases(const SubjectData& data) {
  std::vector<MachineBase> bases;
  for (const MachineEvidence& machine : data.machines) bases.push_back({main_stratum(machine), 0});
  for (const Cell& cell : data.cells) {
    if (cell.variant != 0) break;  // base comes first
    if (cell.stratum == bases[cell.machine].stratum) bases[cell.machine].rate = cell.rate;
  }
  return bases;
}

std::map<Stratum, double> tolerances(const std::vector<MachineBase>& bases) {
  std::map<Stratum, std::vector<double>> rates;
  for (const MachineBase& base : bases)
    if (base.rate > 0) rates[base.stratum].push_back(base.rate);
  std::map<Stratum, double> tolerance;
  for (const auto& [stratum, values] : rates)
    tolerance[stratum] = std::max(stratum == 0 ? least_tolerance_unknown : least_tolerance,
                                  tolerated_scales * stats::mad_scale(values) / stats::median(values));
  return tolerance;
}

std::vector<Base> voice_bases(const SubjectData& data, const Voices& voices) {
  const auto machines = machine_bases(data);
  const auto tolerance = tolerances(machines);
  std::vector<Base> bases;
  for (const Voice& voice : voices.all) {
    Base base{.stratum = machines[voice.members.front()].stratum};
    for (const std::uint32_t member : voice.members) {
      const MachineBase& machine = machines[member];
      if (!(machine.rate > 0)) continue;
      const Power power = power_of(machine.stratum);
      base.lo = std::min(base.lo, machine.rate);
      base.hi = std::max(base.hi, machine.rate);
      base.power = {std::min(base.power.lo, power.lo), std::max(base.power.hi, power.hi)};
      base.tolerance = std::max(base.tolerance, tolerance.at(machine.stratum));
    }
    bases.push_back(base);
  }
  return bases;
}

/// Voices of one power, so that each is compared with all by two searches.
struct Peers {
  double tolerance = 0;
  std::vector<double> lows, highs;  ///< ascending
};

std::map<Power, Peers> peers_of(const std::vector<Base>& bases) {
  std::map<Power, Peers> all;
  for (const Base& base : bases) {
    Peers& peers = all[base.power];
    peers.tolerance = std::max(peers.tolerance, base.tolerance);
    peers.lows.push_back(base.lo);
    peers.highs.push_back(base.hi);
  }
  for (auto& [power, peers] : all) {
    std::ranges::sort(peers.lows);
    std::ranges::sort(peers.highs);
  }
  return all;
}

/// How many voices cannot be right if this one is.
std::size_t contradictions(const Base& base, const std::map<Power, Peers>& all) {
  std::size_t count = 0;
  for (const auto& [power, peers] : all) {
    const double tolerance = 1 + std::max(base.tolerance, peers.tolerance);
    const double slower = base.lo / (tolerance * explained(base.power, power));
    count += static_cast<std::size_t>(std::ranges::lower_bound(peers.highs, slower) - peers.highs.begin());
    const double faster = base.hi * tolerance * explained(power, base.power);
    count += static_cast<std::size_t>(peers.lows.end() - std::ranges::upper_bound(peers.lows, faster));
  }
  return count;
}

std::string at_power(Stratum stratum) {
  return stratum == 0 ? "at unknown power" : fmt::format("at {} power", stratum_name(stratum));
}

/// "118.3 MH/s"
std::string rate_text(double rate, const std::string& unit) {
  return fmt::format("{:.4g}{}{}", rate, unit.empty() ? "" : " ", unit);
}

double peers_median(const std::vector<Base>& bases, std::size_t but, bool same_power) {
  std::vector<double> rates;
  for (std::size_t i = 0; i < bases.size(); ++i)
    if (i != but && (!same_power || bases[i].power == bases[but].power))
      rates.push_back((bases[i].lo + bases[i].hi) / 2);
  return stats::median_in_place(rates);
}

/// By stratum: what a card may reach there, by the median over voices.
std::map<Stratum, double> ceilings_of(const SubjectData& data, const Voices& voices) {
  struct Reported {
    double rate = infinite;
    Power power;
  };
  std::vector<Reported> reported;
  for (const Voice& voice : voices.all) {
    if (voice.aside) continue;
    Reported one{.rate = 0, .power = power_of(main_stratum(data.machines[voice.members.front()]))};
    for (const std::uint32_t member : voice.members) {
      const float ceiling = data.machines[member].ceiling;
      one.rate = std::max(one.rate, ceiling > 0 ? static_cast<double>(ceiling) : infinite);
      one.power.lo = std::min(one.power.lo, power_of(main_stratum(data.machines[member])).lo);
    }
    reported.push_back(one);
  }
  std::map<Stratum, double> ceilings;
  for (const Cell& cell : data.cells) {
    if (ceilings.contains(cell.stratum)) continue;
    std::vector<double> rates;
    for (const Reported& one : reported)
      rates.push_back(one.rate * explained(power_of(cell.stratum), one.power));
    std::ranges::sort(rates);
    const std::size_t middle = rates.size() / 2;
    ceilings[cell.stratum] = rates.empty()           ? infinite
                             : rates.size() % 2 == 1 ? rates[middle]
                                                     : (rates[middle - 1] + rates[middle]) / 2;
  }
  return ceilings;
}

/// One machine's cells above the ceiling, for its line in the list.
struct Above {
  std::vector<std::string> texts;
  std::uint32_t races = 0;
  bool base = false;
};

std::string above_text(const Above& above) {
  constexpr std::size_t shown = 3;
  std::string text;
  for (std::size_t i = 0; i < std::min(shown, above.texts.size()); ++i)
    text += (i == 0 ? "" : "; ") + above.texts[i];
  if (above.texts.size() > shown) text += fmt::format("; and {} more", above.texts.size() - shown);
  return above.base ? text + ": with base above it, none of its races count" : text;
}

}  // namespace

void set_aside_bases(const SubjectData& data, const StoreNames& names, const std::string& unit,
                     Voices& voices) {
  const std::vector<Base> bases = voice_bases(data, voices);
  const auto peers = peers_of(bases);
  for (std::size_t i = 0; i < bases.size(); ++i) {
    const std::size_t against = contradictions(bases[i], peers);
    if (2 * against <= bases.size()) continue;
    Voice& voice = voices.all[i];
    voice.aside = true;
    const double there = peers_median(bases, i, true);
    const double median = std::isnan(there) ? peers_median(bases, i, false) : there;
    for (const std::uint32_t member : voice.members)
      voices.set_aside.push_back(
          {.machine = names.machines[data.machines[member].number],
           .reason = "base-disagrees",
           .why =
               fmt::format("base {} {}, its peers{} {}: {} of {} voices contradict it, by more than {:.0f}% "
                           "beyond what power explains",
                           rate_text((bases[i].lo + bases[i].hi) / 2, unit), at_power(bases[i].stratum),
                           std::isnan(there) ? " at any power" : " there", rate_text(median, unit), against,
                           bases.size(), 100 * bases[i].tolerance),
           .races = static_cast<int>(data.machines[member].counted)});
  }
}

void set_aside_above_ceiling(SubjectData& data, const StoreNames& names, const std::string& unit,
                             Voices& voices) {
  const auto ceilings = ceilings_of(data, voices);
  std::map<std::uint32_t, Above> above;
  for (Cell& cell : data.cells) {
    const double ceiling = ceilings.at(cell.stratum);
    cell.above_ceiling = cell.rate > ceiling * (1 + ceiling_tolerance);
    const std::uint32_t voice = voices.of_machine[cell.machine];
    if (!cell.above_ceiling || voices.all[voice].aside) continue;
    Above& one = above[cell.machine];
    one.texts.push_back(fmt::format("{} {} {}, over the card's ceiling of {}",
                                    cell.variant == 0 ? "base" : names.words[data.variants[cell.variant]],
                                    rate_text(cell.rate, unit), at_power(cell.stratum),
                                    rate_text(ceiling, unit)));
    one.races += cell.samples;
    one.base |= cell.variant == 0;
  }
  for (const auto& [machine, one] : above) {
    if (one.base) voices.all[voices.of_machine[machine]].aside = true;
    voices.set_aside.push_back(
        {.machine = names.machines[data.machines[machine].number],
         .reason = "above-ceiling",
         .why = above_text(one),
         .races = static_cast<int>(one.base ? data.machines[machine].counted : one.races)});
  }
}

}  // namespace furlong::fleet::internal
