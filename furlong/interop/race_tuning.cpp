#include "furlong/interop/race_tuning.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "furlong/base/json.h"
#include "furlong/base/json_object.h"
#include "furlong/base/text.h"

namespace furlong::interop {
namespace {

/// What one race says, with what its row and card are known by.
struct Race {
  std::string where, time, program, backend, source, by, label;
  record::Silicon silicon;
  record::TuningSize size;
  std::size_t timed = 0;
};

Status read_device(const Json& json, const std::string& where, Race& race) {
  JsonObject device(json, where);
  std::string address;
  device.text("address", address);
  device.text("label", race.label);
  device.text("vendor", race.silicon.vendor);
  device.text("arch", race.silicon.arch);
  device.integer("multiprocessors", race.silicon.multiprocessors);
  device.integer("memory_bytes", race.silicon.memory_bytes);
  device.text("silicon", race.silicon.hash);
  device.require({"address", "label", "vendor", "arch", "silicon"});
  FURLONG_CHECK(device.status());
  race.backend = address.substr(0, address.find(':'));
  if (race.label.empty()) return fail(Code::invalid, "{}.label is empty", where);
  return {};
}

Status read_variants(const Json& json, const std::string& where, Race& race) {
  for (std::size_t i = 0; i < json.size(); ++i) {
    JsonObject variant(json[i], fmt::format("{}[{}]", where, i));
    std::string name;
    std::optional<double> rate, gain;
    variant.text("name", name);
    variant.number("rate", rate, 0);
    variant.number("gain", gain, -1);
    variant.require({"name"});
    FURLONG_CHECK(variant.status());
    if (!rate) continue;
    ++race.timed;
    if (name == "base") race.size.base_rate = rate;
    if (name == race.size.variant) race.size.rate = rate;
    if (name != "base" && gain && *gain > -1) race.size.gains_pct.emplace_back(name, 100 * *gain);
  }
  return {};
}

Result<Race> read_race(const Json& json, const std::string& where) {
  Race race;
  race.where = where;
  JsonObject object(json, where);
  int schema = 0;
  object.integer("schema", schema);
  object.require({"schema"});
  FURLONG_CHECK(object.status());
  if (schema != 1)
    return fail(Code::incompatible, "{}: found schema {}, expected 1: race again with this version", where,
                schema);
  object.text("ts", race.time);
  object.text("program", race.program);
  object.text("source", race.source);
  object.text("winner", race.size.variant);
  object.require({"ts", "program", "winner", "problem", "device", "variants"});
  const Json* const problem = object.object("problem");
  const Json* const device = object.object("device");
  const Json* const variants = object.array("variants");
  if (const Json* const options = object.object("options")) {
    JsonObject reader(*options, object.path("options"));
    reader.text("metric", race.by);
    FURLONG_CHECK(reader.status());
  }
  FURLONG_CHECK(object.status());
  FURLONG_TRY(race.size.problem, record::class_from_json(*problem, object.path("problem")));
  FURLONG_CHECK(read_device(*device, object.path("device"), race));
  FURLONG_CHECK(read_variants(*variants, object.path("variants"), race));
  if (race.timed == 0)
    return fail(Code::invalid, "{}: nothing was timed, so there is nothing to take from it", where);
  std::ranges::sort(race.size.gains_pct);
  return race;
}

Result<std::vector<Race>> read_all(const std::vector<std::pair<std::string, Json>>& documents) {
  std::vector<Race> races;
  for (const auto& [name, document] : documents) {
    if (!document.is_object() || !document.contains("races")) {
      FURLONG_TRY(Race race, read_race(document, name));
      races.push_back(std::move(race));
      continue;
    }
    if (!document["races"].is_array()) return fail(Code::invalid, "{}.races is no list", name);
    std::size_t i = 0;
    for (const Json& each : document["races"]) {
      FURLONG_TRY(Race race, read_race(each, fmt::format("{}.races[{}]", name, i++)));
      races.push_back(std::move(race));
    }
  }
  if (races.empty()) return fail(Code::invalid, "no race to make a tuning of");
  return races;
}

/// The variants by how many sizes they win, base last.
std::vector<std::string> by_wins(const std::vector<record::TuningSize>& sizes) {
  std::map<std::string, int> wins;
  for (const record::TuningSize& size : sizes) ++wins[size.variant];
  std::vector<std::string> names;
  for (const auto& [name, count] : wins)
    if (name != "base") names.push_back(name);
  std::ranges::stable_sort(names, [&](const auto& a, const auto& b) { return wins[a] > wins[b]; });
  names.emplace_back("base");
  return names;
}

record::TuningRow row_of(std::vector<const Race*> races) {
  record::TuningRow row;
  const Race& newest = **std::ranges::max_element(races, {}, [](const Race* race) { return race->time; });
  row.program = newest.program;
  row.backend = newest.backend;
  row.source = newest.source;
  row.by = newest.by;
  for (const Race* const race : races)
    if (!race->size.problem.empty()) row.sizes.push_back(race->size);
  std::vector<record::TuningSize> all;
  for (const Race* const race : races) all.push_back(race->size);
  row.candidates = by_wins(all);
  const auto wins = [&](const std::string& name) {
    return std::ranges::count(all, name, &record::TuningSize::variant);
  };
  row.variant = wins(row.candidates.front()) >= wins("base") ? row.candidates.front() : "base";
  row.samples = row.races = static_cast<int>(races.size());
  if (races.size() == 1) {
    row.rate = newest.size.rate;
    row.base_rate = newest.size.base_rate;
    for (const auto& [name, gain] : newest.size.gains_pct)
      if (name == row.variant) row.gain_pct = gain;
  }
  return row;
}

/// Other names that drivers gave the same silicon become aliases; a name of several kinds of silicon gets the
/// hash.
void name_cards(record::Tuning& tuning, const std::vector<Race>& races) {
  std::map<std::string, int> owners;
  for (record::TuningCard& card : tuning.cards) {
    ++owners[card.key];
    for (const Race& race : races)
      if (card.silicon->hash == race.silicon.hash && card.key != race.label &&
          std::ranges::find(card.aliases, race.label) == card.aliases.end())
        card.aliases.push_back(race.label);
    std::ranges::sort(card.aliases);
  }
  for (record::TuningCard& card : tuning.cards)
    if (owners[card.key] > 1) card.key += "@" + card.silicon->hash;
}

}  // namespace

Result<record::Tuning> tuning_from_races(const std::vector<std::pair<std::string, Json>>& documents) {
  FURLONG_TRY(std::vector<Race> races, read_all(documents));
  // By card, program and problem, the newest first; of each problem the first stands.
  const auto key = [](const Race& race) {
    return std::tuple(race.silicon.hash, race.program, record::class_text(race.size.problem));
  };
  std::ranges::stable_sort(races, [&](const Race& a, const Race& b) {
    return key(a) != key(b) ? key(a) < key(b)
                            : std::tie(a.time, a.size.variant) > std::tie(b.time, b.size.variant);
  });
  std::map<std::tuple<std::string, std::string>, std::vector<const Race*>> rows;
  record::Tuning tuning;
  for (const Race& race : races) {
    auto& row = rows[{race.silicon.hash, race.program}];
    if (!row.empty() && row.front()->backend != race.backend)
      return fail(Code::invalid, "{} is of back end {} and {} of {}, on one card: write one tuning for each",
                  row.front()->where, row.front()->backend, race.where, race.backend);
    if (row.empty() || key(*row.back()) != key(race)) row.push_back(&race);
    tuning.updated = std::max(tuning.updated, race.time);
  }
  for (const auto& [card, members] : rows) {
    auto known = std::ranges::find_if(tuning.cards, [&](const record::TuningCard& other) {
      return other.silicon->hash == std::get<0>(card);
    });
    if (known == tuning.cards.end()) {
      tuning.cards.push_back({.key = members.front()->label,
                              .silicon = members.front()->silicon,
                              .aliases = {},
                              .rows = {},
                              .extra = {}});
      known = tuning.cards.end() - 1;
    }
    known->rows.push_back(row_of(members));
  }
  name_cards(tuning, races);
  return tuning;
}

}  // namespace furlong::interop
