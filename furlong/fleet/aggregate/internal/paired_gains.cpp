#include "furlong/fleet/aggregate/internal/paired_gains.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "furlong/base/json.h"

namespace furlong::fleet::internal {
namespace {

bool by_energy(const record::TuningRow& row) { return row.by == "energy" || row.by == "mhw"; }

}  // namespace

PairedGainReader::PairedGainReader(KnownNames names, const std::vector<std::string>& words,
                                   const record::Tuning& tuning, const SubjectRow& subject,
                                   std::int64_t split_us, PairedGains& into)
    : names_(names), words_(words), tuning_(tuning), subject_(subject), split_us_(split_us), into_(into) {
  if (const auto json = json_parse(subject.subject.program_class, "class"))
    class_ = record::class_from_json(*json, "class").value_or(record::ProgramClass());
}

/// A row by rate says nothing of races whose metric is energy. Of those by rate it can be by either.
bool PairedGainReader::takes_subject(const record::TuningRow& row) const {
  return subject_.subject.metric != "energy" || by_energy(row);
}

/// What a worker with this label and driver finds in the tuning; nullptr: nothing, or a row that races.
PairedGainReader::Pin PairedGainReader::pin_of(const RaceRow& row) {
  const auto [at, fresh] = pins_.try_emplace({row.label, row.driver});
  if (!fresh) return at->second;
  const auto match = record::find_tuning(tuning_, {.silicon = subject_.silicon,
                                                   .label = words_[row.label],
                                                   .program = subject_.subject.program,
                                                   .program_class = class_,
                                                   .driver = words_[row.driver]});
  if (match.row != nullptr && !match.row->race && takes_subject(*match.row))
    at->second = {match.card, match.row};
  return at->second;
}

/// As in an aggregate; base has gained nothing.
std::vector<std::pair<WordNumber, double>> PairedGainReader::log_gains_of(const RaceRow& row,
                                                                          bool per_watt) const {
  float base_rate = row.base_rate, base_power = absent;
  for (const PackedGain& gain : row.gains)
    if (gain.variant == names_.base) {
      if (gain.fallback) return {};
      if (positive(gain.rate)) base_rate = gain.rate;
      base_power = gain.power_w;
    }
  if (!positive(base_rate) || (per_watt && !positive(base_power))) return {};
  std::vector<std::pair<WordNumber, double>> logs{{names_.base, 0.0}};
  for (const PackedGain& gain : row.gains) {
    if (gain.variant == names_.base || gain.variant >= names_.words) continue;
    if (gain.fallback || !was_timed(gain.exit)) continue;
    double log = std::log1p(static_cast<double>(gain.gain_pct) / 100);
    if (per_watt) log = std::log(static_cast<double>(gain.rate) / base_rate * base_power / gain.power_w);
    if (std::isfinite(log)) logs.emplace_back(gain.variant, log);
  }
  return logs;
}

void PairedGainReader::add(const RaceRow& row) {
  if (!names_.know(row)) return;
  if (row.machine != machine_.number) {
    end_machine();
    machine_.number = row.machine;
  }
  note(machine_.labels, row.label);
  note(machine_.slots, row.slot);
  if (row.pinned) return;
  const Pin pin = pin_of(row);
  if (pin.second == nullptr) return;
  Race race{.pin = pin, .slot = row.slot, .winner = row.winner, .epoch = epoch_or_day(row)};
  race.has_epoch = row.has_epoch;
  race.after = row.ts_us >= split_us_;
  race.log_gains = log_gains_of(row, subject_.subject.metric != "energy" && by_energy(*pin.second));
  values_ += race.log_gains.size() + 1;
  races_.push_back(std::move(race));
  if (values_ > 2 * most_values) drop_flood();
}

/// The older ones go.
void PairedGainReader::drop_flood() {
  auto keep = races_.begin();
  for (; keep != races_.end() && values_ > most_values; ++keep) values_ -= keep->log_gains.size() + 1;
  races_.erase(races_.begin(), keep);
}

void PairedGainReader::end() { end_machine(); }

/// Of one slot and epoch the latest counts.
void PairedGainReader::end_machine() {
  if (machine_.number == 0) return;
  drop_flood();
  make_unique(machine_.labels);
  make_unique(machine_.slots);
  const auto place = static_cast<std::uint32_t>(into_.machines.machines.size());
  std::map<std::tuple<WordNumber, bool, std::uint64_t>, const Race*> latest;
  for (const Race& race : races_) latest[{race.slot, race.has_epoch, race.epoch}] = &race;
  for (const auto& [epoch, race] : latest) {
    PinEvidence& pin = into_.pins[race->pin];
    for (const auto& [variant, log] : race->log_gains)
      (race->after ? pin.after : pin.before)[variant][place].push_back(log);
    if (!race->after && race->winner != 0) ++pin.won_before[race->winner];
    ++machine_.counted;
  }
  machine_.strata = {{Stratum{0}, machine_.counted}};
  into_.machines.machines.push_back(std::move(machine_));
  machine_ = {};
  races_.clear();
  values_ = 0;
}

}  // namespace furlong::fleet::internal
