#include "furlong/fleet/agent/config.h"

#include <algorithm>

#include "furlong/base/text.h"
#include "furlong/fleet/agent/internal/toml_table.h"

namespace furlong::fleet {
namespace {

using internal::TomlTable;

constexpr std::int64_t most_seconds = 366LL * 24 * 3600;

/// A command's words: at least the program.
void command_words(TomlTable& table, std::string_view key, std::vector<std::string>& into) {
  table.texts(key, into);
  if (!into.empty() && into.front().empty()) table.wrong(key, "the program's name is empty");
}

void path(TomlTable& table, std::string_view key, std::filesystem::path& into) {
  std::string text;
  table.text(key, text);
  into = text;
}

Status read_schedule(const TomlNode& node, const std::string& file, ScheduleConfig& schedule) {
  TomlTable table(node, file, "[schedule]");
  std::string kind = "clock";
  table.text("kind", kind);
  if (kind != "clock" && kind != "command")
    table.wrong("kind", fmt::format("'{}' is neither \"clock\" nor \"command\"", one_line(kind)));
  schedule.kind = kind == "command" ? ScheduleConfig::Kind::command : ScheduleConfig::Kind::clock;
  if (schedule.kind == ScheduleConfig::Kind::command) {
    command_words(table, "command", schedule.command);
    if (schedule.command.empty())
      table.wrong("command", "kind = \"command\" needs the command as an array of words");
    table.integer("lead", schedule.lead, 0, INT64_MAX / 2);
    table.boolean("allow_unsigned", schedule.allow_unsigned);
    return table.strict();
  }
  table.integer("epoch_s", schedule.epoch_s, 2, most_seconds);
  table.integer("first_day", schedule.first_day, 0, 1'000'000);
  schedule.lead = std::min(schedule.lead, schedule.epoch_s / 2);
  table.integer("lead_s", schedule.lead, 0, most_seconds);
  if (schedule.lead >= schedule.epoch_s)
    table.wrong("lead_s", fmt::format("the lead of {} s must be shorter than the epoch of {} s",
                                      schedule.lead, schedule.epoch_s));
  table.text("seed", schedule.seed);
  if (schedule.seed.empty()) table.wrong("seed", "a schedule by the clock needs a seed: any text");
  return table.strict();
}

Status read_work(const TomlNode& node, const std::string& file, WorkConfig& work) {
  TomlTable table(node, file, "[work]");
  table.text("geometry", work.geometry);
  if (!work.geometry.empty() && work.geometry != "small" && work.geometry != "default")
    table.wrong("geometry",
                fmt::format("'{}' is neither \"small\" nor \"default\"", one_line(work.geometry)));
  table.integer("dataset_mib", work.dataset_mib, 64, 8192);
  table.integer("loads", work.loads, 32, 128);
  if (work.loads != 0 && work.loads != 32 && work.loads != 64 && work.loads != 128)
    table.wrong("loads", fmt::format("{} is none of 32, 64, 128", work.loads));
  table.integer("wide", work.wide, 0, 32);
  if (work.wide != -1 && work.wide != 0 && work.wide != 8 && work.wide != 32)
    table.wrong("wide", fmt::format("{} is none of 0, 8, 32", work.wide));
  table.hex64("target", work.target);
  if (work.target == 0) table.wrong("target", "no hash is under a target of 0");
  table.hex64("nonce_first", work.nonce_first);
  table.hex64("nonce_count", work.nonce_count);
  if (work.nonce_count != 0 && work.nonce_first > UINT64_MAX - (work.nonce_count - 1))
    table.wrong("nonce_count", "nonce_first + nonce_count runs past 2^64");
  table.text("race", work.race);
  if (work.race.find_first_of(" \t") != std::string::npos)
    table.wrong("race", "no blanks between the variants");
  table.number("race_budget_s", work.race_budget_s, 0.1, most_race_budget_s);
  table.number("max_pause_ms", work.max_pause_ms, 1, 3.6e6);
  table.boolean("classic", work.classic);
  table.texts("arguments", work.arguments);
  return table.strict();
}

Status read_hub(const TomlNode& node, const std::string& file, HubConfig& hub) {
  TomlTable table(node, file, "[hub]");
  table.text("url", hub.url);
  while (hub.url.ends_with('/')) hub.url.pop_back();
  if (const Status good = check_hub_url(hub.url); !good) table.wrong("url", good.error().message());
  table.text("enrol_token", hub.enrol_token);
  path(table, "enrol_token_file", hub.enrol_token_file);
  if (!hub.enrol_token.empty() && !hub.enrol_token_file.empty())
    table.wrong("enrol_token_file", "there is enrol_token already: one of the two");
  path(table, "ca_file", hub.ca_file);
  table.number("retry_most_s", hub.retry_most_s, 1, 86'400);
  table.integer("manifest_every_s", hub.manifest_every_s, 10, 86'400);
  return table.strict();
}

Status read_devices(TomlTable& top, const std::string& file, AgentConfig& config) {
  if (const TomlNode* all = top.find("devices")) {
    config.all_devices = all->string() != nullptr && *all->string() == "all";
    if (!config.all_devices)
      top.wrong("devices", "only \"all\" can stand here; name single ones by [[device]] tables");
  }
  const TomlNode* list = top.find("device");
  if (list == nullptr) return {};
  if (list->array() == nullptr) {
    top.wrong("device", "write [[device]], with two brackets");
    return {};
  }
  if (config.all_devices) top.wrong("device", "devices = \"all\" says it already: one of the two");
  for (const TomlNode& node : *list->array()) {
    TomlTable table(node, file, "[[device]]");
    DeviceConfig device;
    table.text("address", device.address);
    const bool address = device.address.find(':') != std::string::npos &&
                         device.address.find_first_of(" /") == std::string::npos;
    if (!address)
      table.wrong("address", "a device's address is wanted, such as \"cuda:0\" (furlong devices)");
    const auto same = [&](const DeviceConfig& other) { return other.address == device.address; };
    if (std::any_of(config.devices.begin(), config.devices.end(), same))
      table.wrong("address", fmt::format("'{}' stands here twice", device.address));
    table.texts("arguments", device.arguments);
    FURLONG_CHECK(table.strict());
    config.devices.push_back(std::move(device));
  }
  return {};
}

Status read_manifest(const TomlNode& node, const std::string& file, bool hub, ManifestConfig& manifest) {
  TomlTable table(node, file, "[manifest]");
  if (table.find("root") != nullptr) path(table, "root", manifest.root);
  if (manifest.root.empty()) table.wrong("root", "the name of the pinned root's file is empty");
  table.text("channel", manifest.channel);
  if (manifest.channel.empty() || manifest.channel.size() > 64) table.wrong("channel", "a name is wanted");
  table.boolean("canary", manifest.canary);
  if (!hub) table.wrong("root", "[manifest] needs a [hub] to fetch it from");
  return table.strict();
}

Status read_finds(const TomlNode& node, const std::string& file, AgentConfig& config) {
  TomlTable table(node, file, "[finds]");
  command_words(table, "command", config.finds_command);
  if (config.finds_command.empty()) table.wrong("command", "[finds] needs a command as an array of words");
  return table.strict();
}

}  // namespace

Status check_hub_url(std::string_view url) {
  const auto rest_after = [&](std::string_view scheme) {
    return url.starts_with(scheme) ? url.substr(scheme.size()) : std::string_view();
  };
  const bool secure = url.starts_with("https://");
  const std::string_view rest = secure ? rest_after("https://") : rest_after("http://");
  if (rest.empty()) return fail(Code::invalid, "an address such as \"https://hub.example\" is wanted");
  const std::string_view authority = rest.substr(0, rest.find('/'));
  if (authority.empty() || url.find_first_of(" \t\"'\\<>?#@") != std::string_view::npos)
    return fail(Code::invalid, "'{}' is no address of a hub (no user, question mark or blank in it)",
                one_line(url));
  if (secure) return {};
  std::string_view host = authority.substr(0, authority.rfind(':'));
  if (authority.starts_with('[')) host = authority.substr(0, authority.find(']') + 1);
  if (host == "127.0.0.1" || host == "localhost" || host == "[::1]") return {};
  return fail(Code::invalid,
              "plain http is for a hub on this machine only, since tokens cross it: use https");
}

Result<AgentConfig> parse_agent_config(std::string_view text, std::string_view name) {
  FURLONG_TRY(const TomlNode root, toml_parse(text, name));
  const std::string file(name);
  AgentConfig config;
  TomlTable top(root, file, "the configuration");
  std::int64_t format = 0;
  if (top.find("format") == nullptr) top.wrong("format", "missing; this Furlong reads format = 1");
  top.integer("format", format, INT64_MIN, INT64_MAX);
  if (root.find("format") != nullptr && root.find("format")->integer() != nullptr &&
      format != agent_config_format)
    return fail(Code::incompatible, "{}: found format {}, expected {}", name, format, agent_config_format);
  path(top, "data", config.data);
  if (config.data.empty()) top.wrong("data", "the data folder is missing");
  path(top, "furlong", config.furlong);
  top.number("hang_s", config.hang_s, 1, 86'400);
  top.integer("spool_mib", config.spool_mib, 1, 1 << 20);
  FURLONG_CHECK(read_devices(top, file, config));
  const TomlNode* schedule = top.find("schedule");
  if (schedule == nullptr) top.wrong("schedule", "the table [schedule] is missing");
  const TomlNode* work = top.find("work");
  const TomlNode* hub = top.find("hub");
  const TomlNode* manifest = top.find("manifest");
  const TomlNode* finds = top.find("finds");
  if (!config.all_devices && config.devices.empty())
    top.wrong("devices", "no device: devices = \"all\", or a [[device]] table for each");
  FURLONG_CHECK(top.strict());
  FURLONG_CHECK(read_schedule(*schedule, file, config.schedule));
  if (work != nullptr) FURLONG_CHECK(read_work(*work, file, config.work));
  if (hub != nullptr) FURLONG_CHECK(read_hub(*hub, file, config.hub.emplace()));
  if (manifest != nullptr)
    FURLONG_CHECK(read_manifest(*manifest, file, config.hub.has_value(), config.manifest.emplace()));
  if (finds != nullptr) FURLONG_CHECK(read_finds(*finds, file, config));
  return config;
}

}  // namespace furlong::fleet
