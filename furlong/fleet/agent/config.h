#pragma once
// The agent's configuration (docs/formats/agent-config.md). Value types; pure functions, safe from any
// thread.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "furlong/base/error.h"

namespace furlong::fleet {

inline constexpr int agent_config_format = 1;
inline constexpr double most_race_budget_s = 540;  ///< as a worker takes it

/// One device that the agent is to run a worker on.
struct DeviceConfig {
  std::string address;                 ///< "cuda:0"
  std::vector<std::string> arguments;  ///< added to its worker's command line
  bool operator==(const DeviceConfig&) const = default;
};

struct ScheduleConfig {
  enum class Kind { clock, command };
  Kind kind = Kind::clock;
  std::int64_t epoch_s = 3600;
  /// In whole days from 1970: day 0, which programs with datasets that grow count from. 2026-01-01.
  std::int64_t first_day = 20454;
  /// How long before a boundary the next pair is prepared: seconds, or the chain units of a command.
  std::int64_t lead = 600;
  std::string seed;                  ///< any text; machines with the same one work on the same programs
  std::vector<std::string> command;  ///< prints one JSON line per change
  bool allow_unsigned = false;       ///< the command may name packs without a trusted signature
  bool operator==(const ScheduleConfig&) const = default;
};

struct WorkConfig {
  std::string geometry;  ///< "small", "default"; empty: the program's own choice
  std::int64_t dataset_mib = 0;
  std::int64_t loads = 0;
  std::int64_t wide = -1;  ///< -1: not stated
  std::uint64_t target = 0x00000000ffffffffull;
  std::uint64_t nonce_first = 0;
  std::uint64_t nonce_count = 0;  ///< of the whole machine, an epoch; 0: all 2^64
  std::string race;               ///< "off", "catalogue", "a,b,c"; empty: the worker's default
  double race_budget_s = 0;       ///< 0: the worker's default
  double max_pause_ms = 0;        ///< 0: the worker's default
  bool classic = false;
  std::vector<std::string> arguments;  ///< added to every worker's command line
  bool operator==(const WorkConfig&) const = default;
};

struct HubConfig {
  std::string url;          ///< "https://hub.example:8443", no slash at its end
  std::string enrol_token;  ///< one-time; empty: this machine's key is known there already
  std::filesystem::path enrol_token_file;
  std::filesystem::path ca_file;  ///< empty: the system's
  std::int64_t manifest_every_s = 300;
  double retry_most_s = 300;  ///< the longest wait between two attempts to deliver
  bool operator==(const HubConfig&) const = default;
};

/// The fleet's signed manifest, fetched from the hub.
struct ManifestConfig {
  std::filesystem::path root = "root.json";  ///< the root that a person put on this machine
  std::string channel = "stable";
  bool canary = false;  ///< takes a new manifest before the others
  bool operator==(const ManifestConfig&) const = default;
};

struct AgentConfig {
  std::filesystem::path data;     ///< folder
  std::filesystem::path furlong;  ///< the program that is started as `devices`, `pack make` and `worker`
  bool all_devices = false;
  std::vector<DeviceConfig> devices;
  double hang_s = 120;          ///< a worker that says nothing for so long is killed
  std::int64_t spool_mib = 64;  ///< the most that waits for the hub
  ScheduleConfig schedule;
  WorkConfig work;
  std::optional<HubConfig> hub;
  std::optional<ManifestConfig> manifest;  ///< absent: no manifest is fetched
  /// Of the configuration's file: where relative packs of a schedule command are. Empty: where the agent
  /// runs.
  std::filesystem::path folder;
  std::vector<std::string> finds_command;  ///< gets each find as JSON on its standard input
  bool operator==(const AgentConfig&) const = default;
};

/// `invalid` says "name:line:column: what"; an unknown key names the nearest. Relative paths of files are
/// kept as they are: they are relative to where the agent runs.
Result<AgentConfig> parse_agent_config(std::string_view text, std::string_view name);

/// `invalid` says what is wrong with a hub's address: plain http is for this machine only
/// ("http://127.0.0.1:8080"), since an enrolment token crosses it.
Status check_hub_url(std::string_view url);

}  // namespace furlong::fleet
