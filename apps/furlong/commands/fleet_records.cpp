#include "apps/furlong/fleet_records.h"

#include <cmath>

#include "apps/furlong/commands.h"
#include "furlong/base/json.h"
#include "furlong/base/os/clock.h"
#include "furlong/base/table.h"

namespace furlong::app {
namespace {

constexpr std::size_t page = 1000;

fleet::RaceFilter race_filter(const fleet::ExportFilter& from) {
  fleet::RaceFilter filter{.machine = from.machine, .program = from.program, .window = from.window};
  const bool hash =
      from.card.size() == 16 && from.card.find_first_not_of("0123456789abcdef") == std::string::npos;
  (hash ? filter.silicon : filter.label) = from.card;
  return filter;
}

Result<std::vector<fleet::RaceSummary>> newest(fleet::Store& store, fleet::RaceFilter filter,
                                               std::size_t most) {
  FURLONG_TRY(filter.machine, filed_machine(store, filter.machine));
  std::vector<fleet::RaceSummary> all;
  while (all.size() < most) {
    filter.limit = std::min(page, most - all.size());
    FURLONG_TRY(auto some, store.races(filter));
    if (some.empty()) break;
    filter.before = some.back().id;
    std::ranges::move(some, std::back_inserter(all));
  }
  return all;
}

std::string number(float value, const char* format) {
  return std::isnan(value) ? "-" : fmt::format(fmt::runtime(format), value);
}

std::string table(const std::vector<fleet::RaceSummary>& races) {
  Table table;
  for (const char* heading : {"time", "machine", "slot", "card", "driver", "program", "class", "winner"})
    table.column(heading);
  for (const char* heading : {"rate", "base", "gain"}) table.column(heading, Table::Align::right);
  table.column("unit");
  table.column("verdict");
  for (const fleet::RaceSummary& race : races) {
    const std::string& features = race.subject.program_class;
    table.row({iso_time(race.ts_us), race.machine, race.slot.substr(0, 8), race.label, race.driver,
               race.subject.program, features == "{}" ? "" : features,
               race.winner.empty() ? "-" : race.winner, number(race.rate, "{:.5g}"),
               number(race.base_rate, "{:.5g}"), number(race.gain_pct, "{:+.2f}%"), race.subject.unit,
               std::string(record::verdict_name(race.verdict))});
  }
  return table.text();
}

Json race_json(const fleet::RaceSummary& race) {
  Json json{{"id", race.id},
            {"ts", iso_time(race.ts_us)},
            {"received", iso_time(race.received_us)},
            {"machine", race.machine},
            {"slot", race.slot},
            {"card", race.label},
            {"silicon", race.subject.silicon},
            {"backend", race.subject.backend},
            {"driver", race.driver},
            {"program", race.subject.program}};
  if (auto features = json_parse(race.subject.program_class, "class")) json["class"] = *std::move(features);
  if (!race.epoch.empty()) json["epoch"] = race.epoch;
  json["source"] = race.source;
  json["unit"] = race.subject.unit;
  if (!race.subject.metric.empty()) json["metric"] = race.subject.metric;
  if (!race.winner.empty()) json["winner"] = race.winner;
  json["verdict"] = record::verdict_name(race.verdict);
  json["pinned"] = race.pinned;
  for (const auto& [key, value] : {std::pair<const char*, float>{"rate", race.rate},
                                   {"base_rate", race.base_rate},
                                   {"gain_pct", race.gain_pct}})
    if (!std::isnan(value)) json[key] = value;
  return json;
}

Result<int> run(const Arguments& arguments) {
  FURLONG_TRY(const fleet::ExportFilter filter, export_filter(arguments));
  FURLONG_TRY(const std::int64_t limit, arguments.integer("--limit", 20, 1, 1'000'000));
  FURLONG_TRY(const auto store, open_store(arguments, {.create = false, .read_only = true}));
  FURLONG_CHECK(check_filter_names(*store, filter));
  const auto most = static_cast<std::size_t>(limit);
  FURLONG_TRY(auto races, newest(*store, race_filter(filter), most + 1));
  const bool more = races.size() > most;
  if (more) races.pop_back();
  if (arguments.flag("--json")) {
    Json list = Json::array();
    for (const fleet::RaceSummary& race : races) list.push_back(race_json(race));
    print_out(json_pretty(Json{{"schema", 1}, {"kind", "fleet-records"}, {"races", std::move(list)}}));
    return exit_ok;
  }
  if (races.empty()) {
    print_out("no records\n");
    return exit_ok;
  }
  print_out(table(races));
  if (more) print_out(fmt::format("the newest {}; there are more (--limit shows them)\n", races.size()));
  return exit_ok;
}

}  // namespace

CommandSpec fleet_records_command() {
  std::vector<OptionSpec> options{store_option("Whose records.")};
  for (OptionSpec& each : filter_options()) options.push_back(std::move(each));
  options.push_back({.name = "--limit", .value_name = "N", .help = "The newest N. Default 20."});
  options.push_back({.name = "--json", .value_name = "", .help = "As JSON."});
  return {
      .name = "fleet records",
      .summary = "Show the newest race records of a fleet's store.",
      .description =
          "One row a race: where, when, what won and by how much. furlong fleet export writes whole records.",
      .positionals = {},
      .options = std::move(options),
      .examples = {{"furlong fleet records --store sqlite:hub.sqlite", ""},
                   {"furlong fleet records --store sqlite:hub.sqlite --card NVIDIA_H200 --limit 100", ""}},
      .run = run};
}

}  // namespace furlong::app
