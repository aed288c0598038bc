#include "furlong/fleet/agent/children.h"

#include <algorithm>
#include <cctype>

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
constexpr std::uint64_t largest_pack = 1u << 30;
constexpr std::uint64_t entry_costs = 4096;  // of that, so that empty files and folders have an end
constexpr int deepest_pack = 8;

std::string last_words(const ProcessEnd& end) {
  const std::string_view text = trim(end.standard_error);
  const std::size_t begin = text.rfind('\n');
  const std::string words =
      one_line(begin == std::string_view::npos ? text : text.substr(begin + 1)).substr(0, 400);
  return words.empty() ? end.text() : end.text() + ": " + words;
}

std::string pair_name(const record::Pair& pair) { return fmt::format("{}-{}", pair.epoch, pair.day); }

/// "<16 hexadecimal digits>-<day>".
bool is_pair_name(std::string_view name) {
  return name.size() > 17 && name[16] == '-' &&
         name.substr(0, 16).find_first_not_of("0123456789abcdef") == std::string_view::npos &&
         name.substr(17).find_first_not_of("0123456789") == std::string_view::npos;
}

std::string_view backend_of(const DeviceInfo& device) {
  return std::string_view(device.address).substr(0, device.address.find(':'));
}

/// CUDA writes "GPU-" and dashes, OpenCL bare digits.
std::string bare_uuid(std::string_view uuid) {
  if (uuid.starts_with("GPU-")) uuid.remove_prefix(4);
  std::string bare;
  for (const char letter : uuid)
    if (letter != '-') bare += static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  return bare;
}

/// Which card each device is: two back ends show one card as two devices, and two workers on it would take
/// from each other. By its UUID; where one of the two has none, the n-th of a label and silicon at one back
/// end is the n-th of it at another.
std::vector<std::size_t> cards_of(const std::vector<DeviceInfo>& there) {
  const auto twin = [](const DeviceInfo& a, const DeviceInfo& b) {
    return a.label == b.label && a.silicon == b.silicon && !a.silicon.empty() &&
           (a.uuid.empty() || b.uuid.empty());
  };
  const auto place = [&](std::size_t at) {  // among its like at its back end
    return std::count_if(there.begin(), there.begin() + static_cast<std::ptrdiff_t>(at),
                         [&](const auto& each) {
                           return backend_of(each) == backend_of(there[at]) &&
                                  each.label == there[at].label && each.silicon == there[at].silicon;
                         });
  };
  std::vector<std::size_t> cards;
  for (std::size_t i = 0; i < there.size(); ++i) {
    std::size_t card = i;
    for (std::size_t j = 0; j < i && card == i; ++j) {
      if (there[i].is_host_cpu || there[j].is_host_cpu) continue;
      const bool same_id = !there[i].uuid.empty() && bare_uuid(there[i].uuid) == bare_uuid(there[j].uuid);
      const bool twins =
          backend_of(there[i]) != backend_of(there[j]) && twin(there[i], there[j]) && place(i) == place(j);
      if (same_id || twins) card = cards[j];
    }
    cards.push_back(card);
  }
  return cards;
}

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
    one.text("address", device.address);
    one.text("label", device.label);
    one.text("uuid", device.uuid);
    one.boolean("runs_on_host_cpu", device.is_host_cpu);
    if (const Json* silicon = one.object("silicon")) {
      JsonObject facts(*silicon, one.path("silicon"));
      facts.text("hash", device.silicon);
      FURLONG_CHECK(facts.status());
    }
    one.require({"address", "label"});
    FURLONG_CHECK(one.status());
    // As race records have it, so that they and the agent speak of one slot.
    device.slot =
        blake2b_256(device.uuid.empty() ? device.address + " " + device.silicon : device.uuid).brief();
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
  const std::vector<std::size_t> cards = cards_of(there);
  if (config.all_devices) {
    for (std::size_t i = 0; i < there.size(); ++i) {
      const auto better = [&](std::size_t j) {
        if (cards[j] != cards[i] || j == i) return false;
        const bool mine = backend_of(there[i]) == "cuda", its = backend_of(there[j]) == "cuda";
        return mine == its ? j < i : its;
      };
      bool best = !there[i].is_host_cpu;
      for (std::size_t j = 0; j < there.size(); ++j) best = best && !better(j);
      if (best) chosen.push_back(there[i]);
    }
    if (chosen.empty())
      return fail(Code::invalid,
                  "devices = \"all\" means cards, and there is none here; name a device by [[device]] ({})",
                  join(addresses, ", "));
  }
  std::map<std::size_t, std::string> named;
  for (const DeviceConfig& each : config.devices) {
    const auto found = std::find_if(there.begin(), there.end(),
                                    [&](const DeviceInfo& d) { return d.address == each.address; });
    if (found == there.end())
      return fail(Code::invalid, "device '{}' is not here; these are: {}", each.address,
                  join(addresses, ", "));
    const std::size_t card = cards[static_cast<std::size_t>(found - there.begin())];
    if (const auto [other, fresh] = named.emplace(card, each.address); !fresh)
      return fail(Code::invalid, "devices '{}' and '{}' are one card: name it once", other->second,
                  each.address);
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
  if (!turn.pack.empty()) return foreign_pack(turn, stop);
  const std::string name = pair_name(turn.pair());
  std::filesystem::path pack = folder() / name;
  const auto made = made_.find(name);
  if (made != made_.end() && made->second.empty() && files_.exists(pack)) return pack;
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
  made_[name] = "";
  return pack;
}

Status Packs::copy(const std::filesystem::path& from, const std::filesystem::path& to, int depth,
                   std::uint64_t& left) {
  FURLONG_TRY(const auto names, files_.list(from));
  for (const std::string& name : names) {
    if (left < entry_costs) return fail(Code::exhausted, "{}: too large for a pack", from.string());
    left -= entry_costs;
    if (name.ends_with('/')) {
      if (depth == 0) return fail(Code::invalid, "{}: folders too deep for a pack", from.string());
      const std::string folder_name = name.substr(0, name.size() - 1);
      FURLONG_CHECK(copy(from / folder_name, to / folder_name, depth - 1, left));
      continue;
    }
    FURLONG_TRY(const std::string bytes, files_.read(from / name, left));
    left -= bytes.size();
    FURLONG_CHECK(files_.write_atomic(to / name, bytes));
  }
  return {};
}

Result<std::filesystem::path> Packs::foreign_pack(const Turn& turn, const std::stop_token& stop) {
  const std::filesystem::path source = config_.folder / turn.pack;
  const std::string name = pair_name(turn.pair());
  const std::filesystem::path pack = folder() / name;
  const auto made = made_.find(name);
  if (made != made_.end() && made->second == source.string() && files_.exists(pack)) return pack;
  if (!files_.exists(source))
    return fail(Code::unavailable, "the schedule's pack {} is not there", source.string());
  made_.erase(name);
  FURLONG_CHECK(files_.remove(pack));
  std::uint64_t left = largest_pack;
  FURLONG_CHECK(copy(source, pack, deepest_pack, left));
  // Workers are told to take unsigned packs, since those that are made here have no signature. This one was
  // not made here, and a pack is code.
  ProcessRequest request{.argv = {config_.furlong.string(), "pack", "verify", pack.string()}};
  request.guarded = true;
  if (!config_.schedule.allow_unsigned) request.argv.emplace_back("--signature");
  FURLONG_TRY(const ProcessEnd end, processes_.run(request, pack_timeout_s, stop));
  if (end.signal != 0 || end.exit_code != 0) {
    FURLONG_CHECK(files_.remove(pack));
    return fail(Code::denied, "the schedule's pack {}: {}", source.string(), last_words(end));
  }
  made_[name] = source.string();
  return pack;
}

Status Packs::keep_only(const std::vector<record::Pair>& pairs) {
  const auto listed = files_.list(folder());
  if (!listed) return listed.error().code() == Code::unavailable ? Status() : Status(listed.error());
  for (std::string name : *listed) {
    if (name.ends_with('/')) name.pop_back();
    const auto same = [&](const record::Pair& pair) { return pair_name(pair) == name; };
    if (!is_pair_name(name) || std::any_of(pairs.begin(), pairs.end(), same)) continue;
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
