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
/// Gains over a right base differ by less from machine to machine, in the middle of all variants.
constexpr double shift_tolerance = 0.10;
/// A ceiling is a measurement too.
constexpr double ceiling_tolerance = 0.05;
constexpr double infinite = std::numeric_limits<double>::infinity();

/// Cards take limits between 30% and 110% of their default one.
constexpr double limits_apart = 110.0 / 30;

struct Power {
  double lo = 0, hi = 0;  ///< watts
  auto operator<=>(const Power&) const = default;
};

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

/// What power limits may be of one subject's machines.
class Powers {
 public:
  explicit Powers(const SubjectData& data) {
    std::vector<double> known;
    for (const MachineEvidence& machine : data.machines)
      if (const Stratum stratum = main_stratum(machine); stratum != 0) known.push_back(stratum);
    if (known.empty()) return;
    const Power middle = step(stats::median_in_place(known));
    unknown_ = {middle.lo / limits_apart, middle.hi * limits_apart};
  }
  /// One that is not known lies as far from the middle of the known ones as two limits of a card may.
  Power of(Stratum stratum) const { return stratum == 0 ? unknown_ : step(stratum); }

 private:
  static Power step(double stratum) {
    return {std::pow(10.0, (stratum - 0.5) / stratum_steps), std::pow(10.0, (stratum + 0.5) / stratum_steps)};
  }
  Power unknown_{1, limits_apart};
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
  const Powers powers(data);
  std::vector<Base> bases;
  for (const Voice& voice : voices.all) {
    Base base{.stratum = machines[voice.members.front()].stratum};
    for (const std::uint32_t member : voice.members) {
      const MachineBase& machine = machines[member];
      if (!(machine.rate > 0)) continue;
      const Power power = powers.of(machine.stratum);
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
  return stratum == 0 ? "at unknown power" : fmt::format("at {} of power", stratum_name(stratum));
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

/// Of each voice: by how much its gains, in the middle of all variants, are higher than the fleet's (their
/// logarithms). A base that is wrong shifts all gains alike, under whatever cap. NaN: it raced nothing but
/// base.
std::vector<double> shifts_of(const SubjectData& data, const Voices& voices) {
  std::vector<std::vector<double>> by_voice(voices.all.size());
  for (std::size_t begin = 0, end = 0; begin < data.cells.size(); begin = end) {
    std::vector<std::pair<std::uint32_t, double>> gains;
    for (; end < data.cells.size() && data.cells[end].variant == data.cells[begin].variant; ++end) {
      const Cell& cell = data.cells[end];
      if (cell.variant != 0 && cell.gain > -100 && cell.stratum == main_stratum(data.machines[cell.machine]))
        gains.emplace_back(voices.of_machine[cell.machine], std::log1p(cell.gain / 100.0));
    }
    std::vector<double> values;
    for (const auto& [voice, gain] : gains) values.push_back(gain);
    const double middle = stats::median_in_place(values);
    for (const auto& [voice, gain] : gains) by_voice[voice].push_back(gain - middle);
  }
  std::vector<double> shifts;
  for (std::vector<double>& values : by_voice) shifts.push_back(stats::median_in_place(values));
  return shifts;
}

/// How many voices' shifts differ from this one's by more than the tolerance.
std::size_t shifted_from(double shift, const std::vector<double>& ascending) {
  if (std::isnan(shift)) return 0;
  const double tolerance = std::log1p(shift_tolerance);
  const auto first = std::ranges::lower_bound(ascending, shift - tolerance);
  const auto last = std::ranges::upper_bound(ascending, shift + tolerance);
  return ascending.size() - static_cast<std::size_t>(last - first);
}

/// Bases of one subject, and who contradicts whom.
class BaseCheck {
 public:
  BaseCheck(const SubjectData& data, const std::string& unit, const Voices& voices)
      : unit_(unit),
        bases_(voice_bases(data, voices)),
        peers_(peers_of(bases_)),
        shifts_(shifts_of(data, voices)),
        ascending_(shifts_) {
    std::erase_if(ascending_, [](double shift) { return std::isnan(shift); });
    std::ranges::sort(ascending_);
  }

  /// Why it is set aside; empty: it is not.
  std::string against(std::size_t voice) const {
    const Base& base = bases_[voice];
    const std::size_t all = contradictions(base, peers_);
    if (2 * all > bases_.size())
      return fmt::format("{}: {} of {} voices contradict it, by more than {:.0f}% beyond what power explains",
                         text(voice), all, bases_.size(), 100 * base.tolerance);
    const Peers& peers = peers_.at(base.power);
    const std::size_t under_cap = contradictions(base, {{base.power, peers}});
    if (2 * under_cap <= peers.lows.size()) return {};
    if (2 * shifted_from(shifts_[voice], ascending_) <= bases_.size()) return {};
    return fmt::format(
        "{}: {} of {} voices under this cap contradict it, and its gains are {:+.0f}% off all "
        "others' alike",
        text(voice), under_cap, peers.lows.size(), 100 * std::expm1(shifts_[voice]));
  }

 private:
  std::string text(std::size_t voice) const {
    const double there = peers_median(bases_, voice, true);
    const double median = std::isnan(there) ? peers_median(bases_, voice, false) : there;
    return fmt::format("base {} {}, its peers{} {}",
                       rate_text((bases_[voice].lo + bases_[voice].hi) / 2, unit_),
                       at_power(bases_[voice].stratum), std::isnan(there) ? " at any power" : " there",
                       rate_text(median, unit_));
  }

  const std::string& unit_;
  const std::vector<Base> bases_;
  const std::map<Power, Peers> peers_;
  const std::vector<double> shifts_;
  std::vector<double> ascending_;
};

/// By stratum: what a card may reach there, by the median over voices.
std::map<Stratum, double> ceilings_of(const SubjectData& data, const Voices& voices) {
  struct Reported {
    double rate = infinite;
    Power power;
  };
  const Powers powers(data);
  std::vector<Reported> reported;
  for (const Voice& voice : voices.all) {
    if (voice.aside) continue;
    Reported one{.rate = 0, .power = powers.of(main_stratum(data.machines[voice.members.front()]))};
    for (const std::uint32_t member : voice.members) {
      const float ceiling = data.machines[member].ceiling;
      one.rate = std::max(one.rate, ceiling > 0 ? static_cast<double>(ceiling) : infinite);
      one.power.lo = std::min(one.power.lo, powers.of(main_stratum(data.machines[member])).lo);
    }
    reported.push_back(one);
  }
  std::map<Stratum, double> ceilings;
  for (const Cell& cell : data.cells) {
    if (ceilings.contains(cell.stratum)) continue;
    std::vector<double> rates;
    for (const Reported& one : reported)
      rates.push_back(one.rate * explained(powers.of(cell.stratum), one.power));
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
  const BaseCheck check(data, unit, voices);
  for (std::size_t i = 0; i < voices.all.size(); ++i) {
    const std::string why = check.against(i);
    if (why.empty()) continue;
    voices.all[i].aside = true;
    for (const std::uint32_t member : voices.all[i].members)
      voices.set_aside.push_back({.machine = names.machines[data.machines[member].number],
                                  .reason = "base-disagrees",
                                  .why = why,
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
