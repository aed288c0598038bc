#include "furlong/audit/internal/collect.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "furlong/base/architecture.h"
#include "furlong/base/hash.h"
#include "furlong/base/text.h"

namespace furlong::audit::internal {
namespace {

using record::RacedVariant;
using record::RaceRecord;

/// log(1 + gain); a gain of -100% is held at a rate of one millionth, so that sums stay finite.
double log_gain(double percent) { return std::log(std::max(1 + percent / 100, 1e-6)); }

/// A variant may leave after its first heats, far behind base (22% in each), before it has an interval.
constexpr double kFarBehindPercent = -10;

/// The gain over base with its interval, nullopt when there is none to stand for.
std::optional<Sample> gain_of(const RaceRecord& record, const RacedVariant& variant) {
  const record::VariantDetail& detail = variant.detail;
  if (variant.name == "base") return variant.rate ? std::optional<Sample>(Sample{}) : std::nullopt;
  if (!detail.gain_pct || !variant.rate) return std::nullopt;
  const double gain = log_gain(*detail.gain_pct);
  if (detail.ci) {
    const double low = log_gain(detail.ci->lo), high = log_gain(detail.ci->hi);
    return Sample{std::clamp(gain, low, high), low, high};  // the newest mean may lie outside (record.h)
  }
  const bool dropped_early = record.verdict != record::Verdict::classic && detail.heats.value_or(0) >= 2 &&
                             (detail.exit == "eliminated" || (detail.exit.empty() && !detail.out.empty()));
  if (dropped_early && *detail.gain_pct < kFarBehindPercent) return Sample{gain, 1.5 * gain, 0.5 * gain};
  return std::nullopt;
}

/// The word of a fault, or empty: it ran, had no turn, or it is not known what became of it.
std::string fault_of(const RacedVariant& variant) {
  static const std::array<std::string_view, 5> faults = {"compile", "trial", "gate", "launch", "quarantined"};
  const record::VariantDetail& detail = variant.detail;
  if (std::ranges::find(faults, detail.exit) != faults.end()) return detail.exit;
  const bool unstated = detail.exit.empty() && !detail.out.empty() && !variant.rate && !detail.gain_pct;
  return unstated && !detail.out.ends_with("budget") ? "out" : "";
}

const std::string& code_of(const RacedVariant& variant) {
  return variant.detail.same_code_as.empty() ? variant.name : variant.detail.same_code_as;
}

std::string language_of(const RaceRecord& record) {
  if (!record.language.empty()) return record.language;
  static const std::set<std::string> languages = {"cuda", "opencl", "metal", "host"};
  return languages.contains(record.backend) ? record.backend : "";
}

Regime regime_of(const RaceRecord& record) {
  Regime regime;
  regime.card = record.card;
  regime.driver = record.driver;
  regime.program_class = record.program_class;
  for (const auto& [name, value] : record.program_class) regime.facts[name] = value;
  const std::string& arch = record.silicon.arch.empty() ? record.arch : record.silicon.arch;
  const std::string& vendor = record.silicon.vendor.empty() ? record.vendor : record.silicon.vendor;
  regime.facts["device.backend"] = record.backend;
  if (!vendor.empty()) regime.facts["device.vendor"] = vendor;
  if (!arch.empty()) {
    regime.facts["device.arch"] = arch;
    regime.facts["device.sm"] = compute_capability(arch);
  }
  if (record.silicon.multiprocessors > 0)
    regime.facts["device.multiprocessors"] = record.silicon.multiprocessors;
  if (record.silicon.memory_bytes > 0)
    regime.facts["device.memory_mib"] = static_cast<std::int64_t>(record.silicon.memory_bytes >> 20);
  return regime;
}

/// Features in any order make one class.
std::string class_key(const RaceRecord& record) {
  record::ProgramClass features = record.program_class;
  std::ranges::sort(features, {}, [](const auto& feature) { return feature.first; });
  std::string key;
  for (const auto& [name, value] : features) {
    // Numbers in the order of their size.
    const std::int64_t* integer = value.integer();
    key += name + '=' + (integer != nullptr ? fmt::format("{:021}", *integer) : value.literal()) + '\0';
  }
  return key;
}

std::string regime_key(const RaceRecord& record) {
  return record.card + '\0' + record.driver + '\0' + class_key(record);
}

/// By class the text of the newest record; of records of one moment, that of the last.
std::map<std::string, std::string> newest_sources(std::span<const RaceRecord* const> records) {
  struct Newest {
    std::int64_t at_us = 0;
    std::string source;
  };
  std::map<std::string, Newest> newest;
  for (const RaceRecord* record : records) {
    // A stamp that cannot be read is older than any.
    const std::int64_t at_us =
        record::parse_stamp(record->ts).value_or(std::numeric_limits<std::int64_t>::min());
    const auto [found, first] = newest.try_emplace(class_key(*record), at_us, record->source);
    if (!first && at_us >= found->second.at_us) found->second = {at_us, record->source};
  }
  std::map<std::string, std::string> sources;
  for (auto& [key, one] : newest) sources[key] = std::move(one.source);
  return sources;
}

std::optional<std::pair<double, double>> both(const std::optional<double>& value,
                                              const std::optional<double>& beside) {
  if (!value || !beside) return std::nullopt;
  return std::pair(*value, *beside);
}
template <class T>
std::optional<double> number(const std::optional<T>& value) {
  return value ? std::optional<double>(static_cast<double>(*value)) : std::nullopt;
}

std::optional<double> energy_of(const RacedVariant& variant) {
  if (!variant.rate || !(*variant.rate > 0) || !variant.detail.power_w) return std::nullopt;
  return *variant.detail.power_w / *variant.rate;
}

class Collector {
 public:
  Collector(const lattice::Lattice& lattice, const Options& options) : lattice_(lattice), options_(options) {
    out_.report.options = options;
    for (const auto& knob : lattice.knobs) out_.values.emplace_back(knob.values.size());
  }

  Collected collect(std::span<const RaceRecord> records) {
    out_.report.records = static_cast<int>(records.size());
    std::vector<const RaceRecord*> all;
    for (const RaceRecord& record : records)
      if (wanted(record)) all.push_back(&record);
    const bool by_age = !options_.any_source && options_.source.empty();
    const std::map<std::string, std::string> newest =
        by_age ? newest_sources(all) : std::map<std::string, std::string>();
    for (const RaceRecord* record : all) {
      const std::string& source = by_age ? newest.at(class_key(*record)) : options_.source;
      if (!options_.any_source && record->source != source)
        ++out_.report.other_source;
      else
        take(*record);
    }
    out_.report.sources = static_cast<int>(sources_.size());
    for (auto& [name, lost] : lost_) out_.report.lost.push_back(std::move(lost));
    for (const auto& [key, defect] : defects_) out_.report.defects.push_back(defect.text());
    return std::move(out_);
  }

 private:
  /// A variant of the race in hand.
  struct Entrant {
    const RacedVariant* variant = nullptr;
    std::optional<Sample> gain;
    std::string fault;
  };

  /// A variant that was wrong in a regime, whatever it was raced beside.
  struct Defect {
    std::string variant, exit, why;
    Regime regime;
    int races = 0;
    std::string text() const {
      const bool said = why.empty() || why.starts_with(exit);  // "gate: element 3: ..."
      return fmt::format("{} {} in {} race{} with {}{}{}", one_line(variant), exit_text(exit), races,
                         races == 1 ? "" : "s", regime.text(), why.empty() ? "" : ": ",
                         one_line(said ? why : exit + ": " + why));
    }
  };

  bool wanted(const RaceRecord& record) {
    Report& report = out_.report;
    if (!options_.program.empty() && record.program != options_.program) return ++report.other_program, false;
    const std::string language = language_of(record);
    const bool other = language.empty() ? !options_.unstated_language : language != options_.language;
    if (!options_.language.empty() && other) return ++report.other_language, false;
    if (!record.metric.empty() && record.metric != "rate" && record.metric != "energy")
      return ++report.other_metric, false;
    const std::string name =
        record.id.empty() ? blake2b_256(record::to_line(record)).hex() : "id " + record.id;
    if (!seen_.insert(name).second) return ++report.repeated, false;
    return true;
  }

  void take(const RaceRecord& record) {
    std::map<lattice::Point, Entrant> entrants;
    for (const RacedVariant& variant : record.variants) {
      const auto point = lattice::parse_variant(lattice_, variant.name);
      if (!point) {
        LostVariant& lost = lost_[variant.name];
        lost.name = variant.name;
        lost.why = point.error().message();
        ++lost.records;
        continue;
      }
      if (variant.detail.fallback) ++out_.report.fallbacks;
      Entrant entrant{&variant, gain_of(record, variant), fault_of(variant)};
      if (!entrant.gain && variant.rate && entrant.fault.empty()) ++out_.report.no_interval;
      entrants.emplace(*point, std::move(entrant));
    }
    const int race = ++races_;
    bool used = note_defects(record, entrants);
    for (const auto& [point, entrant] : entrants)
      for (std::size_t k = 0; k < lattice_.knobs.size(); ++k)
        used = pair_up(record, race, entrants, point, entrant, k) || used;
    if (!used) return;
    ++out_.report.used;
    sources_.insert(record.source);
  }

  /// Whether there are any.
  bool note_defects(const RaceRecord& record, const std::map<lattice::Point, Entrant>& entrants) {
    bool any = false;
    for (const auto& [point, entrant] : entrants) {
      if (!is_defect(entrant.fault)) continue;
      any = true;
      Defect& defect = defects_[regime_key(record) + entrant.variant->name + '\0' + entrant.fault];
      if (defect.races++ == 0) defect.regime = regime_of(record);
      defect.variant = entrant.variant->name;
      defect.exit = entrant.fault;
      defect.why = entrant.variant->detail.out;
    }
    return any;
  }

  /// The entrant's value of knob k beside the default; whether that told anything.
  bool pair_up(const RaceRecord& record, int race, const std::map<lattice::Point, Entrant>& entrants,
               const lattice::Point& point, const Entrant& entrant, std::size_t k) {
    const std::size_t chosen = lattice_.knobs[k].default_index;
    if (point.indices[k] == chosen) return false;
    ValueEvidence& evidence = out_.values[k][point.indices[k]];
    lattice::Point other = point;
    other.indices[k] = static_cast<std::uint32_t>(chosen);
    const auto partner = entrants.find(other);
    // What ran is no evidence about the value that could not be had.
    const bool partner_fell = partner != entrants.end() && partner->second.variant->detail.fallback;
    if (entrant.variant->detail.fallback || partner_fell) return ++evidence.fell_back, false;
    if (partner == entrants.end()) {
      ++evidence.without_partner;
      if (evidence.partner.empty()) evidence.partner = lattice::variant_name(lattice_, other);
      return false;
    }
    const Entrant& beside = partner->second;
    const bool timed = entrant.gain && beside.gain;
    const bool value_failed = !entrant.fault.empty() && beside.gain;
    const bool default_failed = !beside.fault.empty() && entrant.gain;
    if (!timed && !value_failed && !default_failed) return ++evidence.untimed, false;
    const auto [found, first] = evidence.regimes.try_emplace(regime_key(record));
    Pairs& pairs = found->second;
    if (first) pairs.regime = regime_of(record);
    const Entrant& failed = value_failed ? entrant : beside;
    const bool defect = !timed && is_defect(failed.fault);
    if (!defect && (pairs.races.empty() || pairs.races.back() != race)) pairs.races.push_back(race);
    if (!timed) {
      add_fault(defect ? pairs.defects : pairs.faults, {.variant = failed.variant->name,
                                                        .exit = failed.fault,
                                                        .why = failed.variant->detail.out,
                                                        .races = 1,
                                                        .of_default = default_failed});
      return true;
    }
    const Sample sample = code_of(*entrant.variant) == code_of(*beside.variant)
                              ? Sample{}  // one machine code: exactly equal
                              : difference(*beside.gain, *entrant.gain);
    if (record.metric == "energy") {
      pairs.work_per_joule.push_back({race, sample});
    } else {
      pairs.rates.push_back({race, sample});
      pairs.by_context[beside.variant->name].push_back({race, sample});
    }
    add_costs(pairs, race, *entrant.variant, *beside.variant);
    return true;
  }

  static void add_fault(std::vector<Fault>& faults, Fault fault) {
    for (Fault& known : faults) {
      if (known.variant != fault.variant || known.exit != fault.exit || known.of_default != fault.of_default)
        continue;
      ++known.races;
      known.why = std::move(fault.why);
      return;
    }
    faults.push_back(std::move(fault));
  }

  static void add_costs(Pairs& pairs, int race, const RacedVariant& value, const RacedVariant& beside) {
    const record::VariantDetail &a = value.detail, &b = beside.detail;
    const std::pair<Measure, std::optional<std::pair<double, double>>> all[] = {
        {Measure::error, both(a.error, b.error)},
        {Measure::memory, both(a.memory_mib, b.memory_mib)},
        {Measure::registers, both(number(a.regs), number(b.regs))},
        {Measure::spills, both(number(a.spills), number(b.spills))},
        {Measure::compile_time, both(a.compile_ms, b.compile_ms)},
        {Measure::energy, both(energy_of(value), energy_of(beside))}};
    for (const auto& [measure, figures] : all)
      if (figures) pairs.costs[measure].push_back({race, figures->first, figures->second});
  }

  const lattice::Lattice& lattice_;
  const Options& options_;
  Collected out_;
  int races_ = 0;
  std::set<std::string> seen_, sources_;
  std::map<std::string, LostVariant> lost_;
  std::map<std::string, Defect> defects_;  ///< by regime, variant and exit
};

}  // namespace

Collected collect(const lattice::Lattice& lattice, std::span<const record::RaceRecord> records,
                  const Options& options) {
  return Collector(lattice, options).collect(records);
}

}  // namespace furlong::audit::internal
