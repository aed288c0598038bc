#include "furlong/fleet/agent/children.h"

#include <algorithm>

#include "furlong/base/hash.h"
#include "furlong/base/json.h"
#include "furlong/base/json_object.h"
#include "furlong/base/os/file.h"
#include "furlong/base/os/process.h"
#include "furlong/base/text.h"

namespace furlong::fleet {
namespace {

constexpr double devices_timeout_s = 120;  // drivers of many cards are slow to wake
constexpr double pack_timeout_s = 600;
constexpr double find_timeout_s = 60;

std::string last_words(const ProcessEnd& end) {
  const std::string_view text = trim(end.standard_error);
  const std::size_t begin = text.rfind('\n');
  const std::string words =
      one_line(begin == std::string_view::npos ? text : text.substr(begin + 1)).substr(0, 400);
  return words.empty() ? end.text() : end.text() + ": " + words;
}

std::string pair_name(const record::Pair& pair) { return fmt::format("{}-{}", pair.epoch, pair.day); }

}  // namespace

Result<std::vector<DeviceInfo>> parse_devices(std::string_view text) {
  constexpr std::string_view where = "furlong devices";
  FURLONG_TRY(const Json json, json_parse(text, where));
  JsonObject object(json, std::string(where));
  const Json* list = object.array("devices");
  object.require({"devices"});
  FURLONG_CHECK(object.status());
  std::vector<DeviceInfo> devices;
  for (const Json& each : *list) {
    JsonObject one(each, object.path("devices"));
    DeviceInfo device;
    std::string uuid, silicon_hash;
    one.text("address", device.address);
    one.text("label", device.label);
    one.text("uuid", uuid);
    one.boolean("runs_on_host_cpu", device.is_host_cpu);
    if (const Json* silicon = one.object("silicon")) {
      JsonObject facts(*silicon, one.path("silicon"));
      facts.text("hash", silicon_hash);
      FURLONG_CHECK(facts.status());
    }
    one.require({"address", "label"});
    FURLONG_CHECK(one.status());
    // As race records have it, so that they and the agent speak of one slot.
    device.slot = blake2b_256(uuid.empty() ? device.address + " " + silicon_hash : uuid).brief();
    devices.push_back(std::move(device));
  }
  return devices;
}

Result<std::vector<DeviceInfo>> list_devices(Processes& processes, const std::filesystem::path& furlong,
                                             const std::stop_token& stop) {
  FURLONG_TRY(const ProcessEnd end,
              processes.run({.argv = {furlong.string(), "devices", "--json"}}, devices_timeout_s, stop));
  if (end.signal != 0 || (end.exit_code != 0 && end.exit_code != 4))
    return fail(end.timed_out ? Code::timeout : Code::internal, "{} devices --json: {}", furlong.string(),
                last_words(end));
  FURLONG_TRY(auto devices, parse_devices(end.standard_output));
  if (devices.empty())
    return fail(Code::unavailable, "no device here (furlong devices says what is missing)");
  return devices;
}

Result<std::vector<DeviceInfo>> choose_devices(const AgentConfig& config,
                                               const std::vector<DeviceInfo>& there) {
  std::vector<DeviceInfo> chosen;
  std::vector<std::string> addresses;
  for (const DeviceInfo& each : there) addresses.push_back(each.address);
  if (config.all_devices) {
    for (const DeviceInfo& each : there)
      if (!each.is_host_cpu) chosen.push_back(each);
    if (chosen.empty())
      return fail(Code::invalid,
                  "devices = \"all\" means cards, and there is none here; name a device by [[device]] ({})",
                  join(addresses, ", "));
  }
  for (const DeviceConfig& each : config.devices) {
    const auto found = std::find_if(there.begin(), there.end(),
                                    [&](const DeviceInfo& d) { return d.address == each.address; });
    if (found == there.end())
      return fail(Code::invalid, "device '{}' is not here; these are: {}", each.address,
                  join(addresses, ", "));
    chosen.push_back(*found);
  }
  return chosen;
}

std::filesystem::path records_file(const AgentConfig& config, std::string_view slot) {
  return config.data / fmt::format("records-{}.jsonl", slot);
}

std::vector<std::string> worker_command(const AgentConfig& config, const DeviceInfo& device) {
  std::vector<std::string> argv{config.furlong.string(),
                                "worker",
                                "--device",
                                device.address,
                                "--serve",
                                "--records",
                                records_file(config, device.slot).string(),
                                "--packs",
                                (config.data / "packs").string(),
                                "--allow-unsigned"};
  const auto add = [&](const char* option, const std::string& value) {
    argv.emplace_back(option);
    argv.push_back(value);
  };
  const WorkConfig& work = config.work;
  if (!work.race.empty()) add("--race", work.race);
  if (work.race_budget_s > 0) add("--race-budget-s", fmt::format("{}", work.race_budget_s));
  if (work.max_pause_ms > 0) add("--max-pause-ms", fmt::format("{}", work.max_pause_ms));
  if (work.classic) argv.emplace_back("--classic");
  argv.insert(argv.end(), work.arguments.begin(), work.arguments.end());
  for (const DeviceConfig& each : config.devices)
    if (each.address == device.address) argv.insert(argv.end(), each.arguments.begin(), each.arguments.end());
  return argv;
}

Result<std::filesystem::path> Packs::ensure(const Turn& turn, const std::stop_token& stop) {
  if (!turn.pack.empty()) return foreign_pack(turn.pack, stop);
  const std::string name = pair_name(turn.pair());
  std::filesystem::path pack = folder() / name;
  if (made_.contains(name) && files_.exists(pack)) return pack;
  ProcessRequest request{.argv = {config_.furlong.string(), "pack", "make", "lottery", "--epoch-seed",
                                  turn.seed, "--day", std::to_string(turn.day), "--out", pack.string(),
                                  "--replace"}};
  request.guarded = true;
  const WorkConfig& work = config_.work;
  const auto add = [&](const char* option, const std::string& value) {
    request.argv.emplace_back(option);
    request.argv.push_back(value);
  };
  if (!work.geometry.empty()) add("--geometry", work.geometry);
  if (work.dataset_mib > 0) add("--dataset-mib", std::to_string(work.dataset_mib));
  if (work.loads > 0) add("--loads", std::to_string(work.loads));
  if (work.wide >= 0) add("--wide", std::to_string(work.wide));
  FURLONG_TRY(const ProcessEnd end, processes_.run(request, pack_timeout_s, stop));
  if (end.signal != 0 || end.exit_code != 0)
    return fail(end.timed_out ? Code::timeout : Code::internal, "pack make for {}: {}", name,
                last_words(end));
  made_.insert(name);
  return pack;
}

Result<std::filesystem::path> Packs::foreign_pack(const std::string& pack, const std::stop_token& stop) {
  if (verified_.contains(pack)) return std::filesystem::path(pack);
  if (!files_.exists(pack)) return fail(Code::unavailable, "the schedule's pack {} is not there", pack);
  // Workers are told to take unsigned packs, since those that are made here have no signature. This one was
  // not made here, and a pack is code.
  ProcessRequest request{.argv = {config_.furlong.string(), "pack", "verify", pack}};
  if (!config_.schedule.allow_unsigned) request.argv.emplace_back("--signature");
  FURLONG_TRY(const ProcessEnd end, processes_.run(request, pack_timeout_s, stop));
  if (end.signal != 0 || end.exit_code != 0)
    return fail(Code::denied, "the schedule's pack {}: {}", pack, last_words(end));
  verified_.insert(pack);
  return std::filesystem::path(pack);
}

Status Packs::keep_only(const std::vector<record::Pair>& pairs) {
  const auto listed = files_.list(folder());
  if (!listed) return listed.error().code() == Code::unavailable ? Status() : Status(listed.error());
  for (std::string name : *listed) {
    if (name.ends_with('/')) name.pop_back();
    const auto same = [&](const record::Pair& pair) { return pair_name(pair) == name; };
    if (std::any_of(pairs.begin(), pairs.end(), same)) continue;
    made_.erase(name);
    FURLONG_CHECK(files_.remove(folder() / name));
  }
  return {};
}

std::string to_json_line(const Find& find) {
  return json_line(Json{{"schema", 1},
                        {"epoch", find.pair.epoch},
                        {"day", find.pair.day},
                        {"nonce", fmt::format("{:016x}", find.nonce)},
                        {"hash", fmt::format("{:016x}", find.hash)},
                        {"device", find.device},
                        {"slot", find.slot},
                        {"at", find.at}});
}

Status give_find(Processes& processes, const std::vector<std::string>& command, const Find& find,
                 const std::stop_token& stop) {
  ProcessRequest request{.argv = command, .input = to_json_line(find) + "\n"};
  request.guarded = true;
  FURLONG_TRY(const ProcessEnd end, processes.run(request, find_timeout_s, stop));
  if (end.signal == 0 && end.exit_code == 0) return {};
  return fail(Code::unavailable, "the finds command: {}", last_words(end));
}

}  // namespace furlong::fleet
