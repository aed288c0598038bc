#pragma once
// The other furlong commands that the agent starts: it shares only formats with them.

#include <filesystem>
#include <map>
#include <stop_token>
#include <string>
#include <vector>

#include "furlong/base/error.h"
#include "furlong/fleet/agent/config.h"
#include "furlong/fleet/agent/schedule.h"
#include "furlong/fleet/agent/spool.h"
#include "furlong/fleet/agent/worker_view.h"

namespace furlong {
class Files;
class Processes;
}  // namespace furlong

namespace furlong::fleet {

/// What `furlong devices --json` lists. `unavailable` when it lists none; else the command's own words.
Result<std::vector<DeviceInfo>> list_devices(Processes& processes, const std::filesystem::path& furlong,
                                             const std::stop_token& stop = {});
/// That command's document.
Result<std::vector<DeviceInfo>> parse_devices(std::string_view text);

/// The devices that the configuration means, in its order: all cards (not the host's processor), each by one
/// address (CUDA's where it has one), or those named. `invalid` names one that is not there, and what is, or
/// two that are one card.
Result<std::vector<DeviceInfo>> choose_devices(const AgentConfig& config,
                                               const std::vector<DeviceInfo>& there);

/// The command line of the worker of a device.
std::vector<std::string> worker_command(const AgentConfig& config, const DeviceInfo& device);
/// data/records-<slot>.jsonl
std::filesystem::path records_file(const AgentConfig& config, std::string_view slot);

/// The packs of the schedule's turns, in data/packs. One thread.
class Packs {
 public:
  Packs(const AgentConfig& config, Processes& processes, Files& files)
      : config_(config), processes_(processes), files_(files) {}
  /// The folder of the turn's pack, which is made where it is not there yet; one that the schedule names
  /// must carry a trusted signature (`denied`), unless the configuration allows another. Such a pack is
  /// copied, and the copy is what is verified and given back: whatever becomes of the other is no matter.
  Result<std::filesystem::path> ensure(const Turn& turn, const std::stop_token& stop);
  /// Removes all but these; what is not named as a pack of a pair is left alone.
  Status keep_only(const std::vector<record::Pair>& pairs);
  std::filesystem::path folder() const { return config_.data / "packs"; }

 private:
  Result<std::filesystem::path> foreign_pack(const Turn& turn, const std::stop_token& stop);
  Status copy(const std::filesystem::path& from, const std::filesystem::path& to, int depth,
              std::uint64_t& left);

  const AgentConfig& config_;
  Processes& processes_;
  Files& files_;
  /// By this object, since what an earlier process left may be half a pack: the folder's name, and the pack
  /// it is a verified copy of (empty: it was made here).
  std::map<std::string, std::string> made_;
};

/// A find as the finds command gets it, one JSON object.
std::string to_json_line(const Find& find);
/// Runs the command on it; an error unless it exits 0.
Status give_find(Processes& processes, const std::vector<std::string>& command, const Find& find,
                 const std::stop_token& stop);

}  // namespace furlong::fleet
