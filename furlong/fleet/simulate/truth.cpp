#include <algorithm>

#include "furlong/base/json.h"
#include "furlong/base/os/clock.h"
#include "furlong/fleet/simulate/simulate.h"

namespace furlong::fleet {
namespace {

Json row_json(const TruthRow& row) {
  Json gains = Json::object();
  for (const auto& [name, gain] : row.gains) gains[name] = gain;
  Json json = Json::object();
  if (row.cap_pct > 0) json["cap_pct"] = row.cap_pct;
  json["best"] = row.best;
  json["gain_pct"] = row.gain_pct;
  json["lead_pct"] = row.lead_pct;
  if (!row.best_energy.empty()) json["best_energy"] = row.best_energy;
  json["gains_pct"] = std::move(gains);
  return json;
}

}  // namespace

const TruthRow* TruthSubject::at(int cap_pct) const {
  const auto found = std::ranges::find(caps, cap_pct, &TruthRow::cap_pct);
  return found == caps.end() ? nullptr : &*found;
}

const TruthSubject* Truth::find(const Subject& subject) const {
  const auto found = std::ranges::find(subjects, subject, &TruthSubject::subject);
  return found == subjects.end() ? nullptr : &*found;
}

Json to_json(const Truth& truth) {
  Json subjects = Json::array(), regressions = Json::array();
  for (const TruthSubject& each : truth.subjects) {
    Json caps = Json::array();
    for (const TruthRow& row : each.caps) caps.push_back(row_json(row));
    subjects.push_back(Json{{"model", each.model},
                            {"labels", each.labels},
                            {"silicon", each.subject.silicon},
                            {"backend", each.subject.backend},
                            {"program", each.subject.program},
                            {"class", Json::parse(each.subject.program_class)},
                            {"unit", each.subject.unit},
                            {"machines", each.machines},
                            {"overall", row_json(each.overall)},
                            {"caps", std::move(caps)}});
  }
  for (const PlantedRegression& each : truth.regressions)
    regressions.push_back(Json{{"card", each.card},
                               {"program", each.program},
                               {"variant", each.variant},
                               {"driver", each.driver},
                               {"from_day", each.from_day},
                               {"loss_pct", each.loss_pct}});
  return Json{{"at", iso_time(truth.at_us)},
              {"subjects", std::move(subjects)},
              {"regressions", std::move(regressions)}};
}

Json to_json(const SimulatedMachine& machine) {
  Json drivers = Json::array();
  for (const auto& [from_us, driver] : machine.drivers)
    drivers.push_back(Json{{"from", iso_time(from_us)}, {"driver", driver}});
  Json json{{"id", machine.id},
            {"model", machine.model},
            {"label", machine.label},
            {"silicon", machine.silicon},
            {"backend", machine.backend},
            {"slots", machine.slots},
            {"role", std::string(simulated_role_name(machine.role))}};
  if (machine.of) json["of"] = *machine.of;
  if (!machine.favourite.empty()) json["favourite"] = machine.favourite;
  json["cap_pct"] = machine.cap_pct;
  json["clock_off_s"] = machine.clock_off_us / 1'000'000;
  json["tuned"] = machine.tuned;
  json["pinned"] = machine.pinned;
  json["canary"] = machine.canary;
  json["from"] = iso_time(machine.from_us);
  json["to"] = iso_time(machine.to_us);
  json["drivers"] = std::move(drivers);
  return json;
}

std::string truth_text(const Simulation& simulation) {
  Json machines = Json::array();
  for (const SimulatedMachine& machine : simulation.machines()) machines.push_back(to_json(machine));
  Json document{{"schema", 1}, {"kind", "fleet-truth"}, {"seed", simulation.options().seed}};
  document.update(to_json(simulation.truth()));
  document["machines"] = std::move(machines);
  return json_pretty(document);
}

}  // namespace furlong::fleet
