#include "furlong/fleet/agent/status.h"

#include "furlong/base/json.h"
#include "furlong/base/json_object.h"
#include "furlong/base/table.h"
#include "furlong/base/text.h"
#include "furlong/fleet/internal/schema.h"

namespace furlong::fleet {
namespace {

template <class T>
void put(Json& object, const char* key, const std::optional<T>& value) {
  object[key] = value ? Json(*value) : Json();
}

Json to_json(const std::optional<record::Pair>& pair) {
  if (!pair) return {};
  return Json{{"epoch", pair->epoch}, {"day", pair->day}};
}

std::optional<record::Pair> read_pair(JsonObject& object, std::string_view key) {
  const Json* value = object.object(key);
  if (value == nullptr) return std::nullopt;
  JsonObject one(*value, object.path(key));
  record::Pair pair;
  std::uint64_t day = 0;
  one.text("epoch", pair.epoch);
  one.integer("day", day, 0, INT64_MAX);
  pair.day = static_cast<std::int64_t>(day);
  if (const Status good = one.status(); !good) object.keep(good.error());
  return pair;
}

Json to_json(const WorkerView& view) {
  Json device{{"address", view.device.address},
              {"card", view.device.label},
              {"slot", view.device.slot},
              {"state", view.state},
              {"pid", view.pid},
              {"driver", view.driver},
              {"arch", view.arch},
              {"pair", to_json(view.pair)},
              {"variant", view.variant}};
  put(device, "mhs", view.mhs);
  put(device, "power_w", view.power_w);
  device["hashes"] = view.hashes;
  put(device, "race_mhs", view.race_mhs);
  put(device, "race_gain_pct", view.race_gain_pct);
  put(device, "race_variants", view.race_variants);
  device["race_winner"] = view.race_winner;
  device["last_race"] = view.last_race;
  device["last_swap"] = view.last_swap;
  put(device, "gap_ms", view.gap_ms);
  put(device, "gap_chunks", view.gap_chunks);
  put(device, "lost_ms", view.lost_ms);
  device["prepares"] = view.prepares;
  device["races"] = view.races;
  device["swaps"] = view.swaps;
  device["unprepared_swaps"] = view.unprepared_swaps;
  device["finds"] = view.finds;
  device["crashes"] = view.crashes;
  device["culprit"] = view.culprit;
  device["last_error"] = view.last_error;
  return device;
}

Result<WorkerView> read_device(const Json& json, const std::string& where) {
  JsonObject object(json, where);
  WorkerView view;
  object.text("address", view.device.address);
  object.text("card", view.device.label);
  object.text("slot", view.device.slot);
  object.text("state", view.state);
  object.integer("pid", view.pid);
  object.text("driver", view.driver);
  object.text("arch", view.arch);
  view.pair = read_pair(object, "pair");
  object.text("variant", view.variant);
  object.number("mhs", view.mhs);
  object.number("power_w", view.power_w);
  object.integer("hashes", view.hashes);
  object.number("race_mhs", view.race_mhs);
  object.number("race_gain_pct", view.race_gain_pct);
  object.integer("race_variants", view.race_variants);
  object.text("race_winner", view.race_winner);
  object.text("last_race", view.last_race);
  object.text("last_swap", view.last_swap);
  object.number("gap_ms", view.gap_ms);
  object.number("gap_chunks", view.gap_chunks);
  object.number("lost_ms", view.lost_ms);
  object.integer("prepares", view.prepares);
  object.integer("races", view.races);
  object.integer("swaps", view.swaps);
  object.integer("unprepared_swaps", view.unprepared_swaps);
  object.integer("finds", view.finds);
  object.integer("crashes", view.crashes);
  object.text("culprit", view.culprit);
  object.text("last_error", view.last_error);
  object.require({"address"});
  FURLONG_CHECK(object.status());
  return view;
}

void read_count(JsonObject& object, std::string_view key, std::int64_t& into) {
  std::uint64_t value = 0;
  object.integer(key, value, 0, INT64_MAX);
  into = static_cast<std::int64_t>(value);
}

void read_spool(JsonObject& top, AgentStatus& status) {
  const Json* json = top.object("spool");
  if (json == nullptr) return;
  JsonObject object(*json, top.path("spool"));
  read_count(object, "records", status.spool.pending);
  read_count(object, "bytes", status.spool.pending_bytes);
  object.boolean("full", status.spool_full);
  read_count(object, "delivered", status.spool.delivered);
  read_count(object, "duplicate", status.spool.duplicate);
  read_count(object, "refused", status.spool.refused);
  read_count(object, "skipped_lines", status.spool.skipped_lines);
  read_count(object, "finds", status.spool.finds);
  read_count(object, "finds_waiting", status.spool.finds_waiting);
  if (const Status good = object.status(); !good) top.keep(good.error());
}

void read_hub(JsonObject& top, AgentStatus& status) {
  const Json* json = top.object("hub");
  if (json == nullptr) return;
  JsonObject object(*json, top.path("hub"));
  object.text("url", status.hub_url);
  object.text("state", status.hub.state);
  object.text("error", status.hub.error);
  object.text("last_ok", status.hub.last_ok);
  object.number("retry_in_s", status.hub.retry_in_s, 0);
  object.integer("failures", status.hub.failures);
  object.boolean("enrolled", status.hub.enrolled);
  if (const Status good = object.status(); !good) top.keep(good.error());
}

std::string optional_text(const std::optional<double>& value, const char* unit, int decimals) {
  return value ? fmt::format("{:.{}f}{}", *value, decimals, unit) : "-";
}

std::string hub_text(const AgentStatus& status) {
  if (status.hub_url.empty()) return "none is configured: race records stay in this machine's files";
  std::string text = status.hub_url + ": " + status.hub.state;
  if (!status.hub.last_ok.empty()) text += ", last at " + status.hub.last_ok;
  if (!status.hub.error.empty())
    text += fmt::format("\n           {} (failed {} times, again in {:.0f} s)", status.hub.error,
                        status.hub.failures, status.hub.retry_in_s);
  return text;
}

}  // namespace

std::string print(const AgentStatus& status) {
  Json devices = Json::array();
  for (const WorkerView& view : status.devices) devices.push_back(to_json(view));
  Json document{{"schema", agent_status_schema},      {"version", status.version},
                {"machine", status.machine},          {"pid", status.pid},
                {"started", status.started},          {"written", status.written},
                {"current", to_json(status.current)}, {"next", to_json(status.next)}};
  put(document, "next_in_s", status.next_in_s);
  document["clock_jumps"] = status.clock_jumps;
  document["devices"] = std::move(devices);
  document["spool"] = Json{{"records", status.spool.pending},
                           {"bytes", status.spool.pending_bytes},
                           {"full", status.spool_full},
                           {"delivered", status.spool.delivered},
                           {"duplicate", status.spool.duplicate},
                           {"refused", status.spool.refused},
                           {"skipped_lines", status.spool.skipped_lines},
                           {"finds", status.spool.finds},
                           {"finds_waiting", status.spool.finds_waiting}};
  document["hub"] = Json{{"url", status.hub_url},
                         {"state", status.hub.state},
                         {"error", status.hub.error},
                         {"last_ok", status.hub.last_ok},
                         {"retry_in_s", status.hub.retry_in_s},
                         {"failures", status.hub.failures},
                         {"enrolled", status.hub.enrolled}};
  document["manifest"] = status.manifest;
  document["problems"] = status.problems;
  return json_pretty(document);
}

Result<AgentStatus> parse_agent_status(std::string_view text, std::string_view name) {
  FURLONG_TRY(const Json json, json_parse(text, name));
  JsonObject object(json, std::string(name));
  FURLONG_CHECK(expect_schema(object, agent_status_schema, name));
  AgentStatus status;
  object.text("version", status.version);
  object.text("machine", status.machine);
  object.integer("pid", status.pid);
  object.text("started", status.started);
  object.text("written", status.written);
  status.current = read_pair(object, "current");
  status.next = read_pair(object, "next");
  object.number("next_in_s", status.next_in_s);
  read_count(object, "clock_jumps", status.clock_jumps);
  const Json* devices = object.array("devices");
  object.require({"devices"});
  read_spool(object, status);
  read_hub(object, status);
  object.text("manifest", status.manifest);
  object.texts("problems", status.problems);
  FURLONG_CHECK(object.status());
  for (const Json& each : *devices) {
    FURLONG_TRY(WorkerView view, read_device(each, object.path("devices")));
    status.devices.push_back(std::move(view));
  }
  return status;
}

std::string status_text(const AgentStatus& status) {
  Table table;
  for (const char* heading : {"device", "card", "state", "variant"}) table.column(heading);
  for (const char* heading : {"MH/s", "power", "race MH/s", "gain", "variants", "gap", "crashes"})
    table.column(heading, Table::Align::right);
  table.column("last race");
  table.column("last swap");
  std::string notes;
  for (const WorkerView& view : status.devices) {
    table.row({view.device.address, view.device.label, view.state, view.variant,
               optional_text(view.mhs, "", 1), optional_text(view.power_w, " W", 0),
               optional_text(view.race_mhs, "", 1),
               view.race_gain_pct ? fmt::format("{:+.2f}%", *view.race_gain_pct) : "-",
               view.race_variants ? std::to_string(*view.race_variants) : "-",
               optional_text(view.gap_ms, " ms", 1), std::to_string(view.crashes),
               view.last_race.empty() ? "-" : view.last_race, view.last_swap.empty() ? "-" : view.last_swap});
    if (!view.culprit.empty()) notes += fmt::format("{} last crash: {}\n", view.device.address, view.culprit);
    if (!view.last_error.empty())
      notes += fmt::format("{} last error: {}\n", view.device.address, view.last_error);
  }
  std::string text = table.text() + "\n";
  if (status.current) text += fmt::format("program    {}", status.current->text());
  if (status.next) text += fmt::format(", next {}", status.next->text());
  if (status.next_in_s) text += fmt::format(", boundary in {:.0f} s", *status.next_in_s);
  if (status.current) text += "\n";
  text += fmt::format(
      "records    {} wait ({}{}), {} delivered, {} refused, {} lines skipped\n", status.spool.pending,
      human_bytes(static_cast<std::uint64_t>(status.spool.pending_bytes)), status.spool_full ? ", FULL" : "",
      status.spool.delivered, status.spool.refused, status.spool.skipped_lines);
  text += fmt::format("finds      {}{}\n", status.spool.finds,
                      status.spool.finds_waiting == 0
                          ? ""
                          : fmt::format(", {} wait for the finds command", status.spool.finds_waiting));
  text += "hub        " + hub_text(status) + "\n";
  if (!status.manifest.empty()) text += "manifest   " + status.manifest + "\n";
  text += notes;
  for (const std::string& problem : status.problems) text += "problem    " + problem + "\n";
  return without_controls(text);
}

}  // namespace furlong::fleet
