#pragma once
// What is known of one device and its worker, for the status file and whoever watches. Value types.

#include <cstdint>
#include <optional>
#include <string>

#include "furlong/record/worker_protocol.h"

namespace furlong::fleet {

/// A device as `furlong devices --json` tells it.
struct DeviceInfo {
  std::string address;  ///< "cuda:0"
  std::string label;
  std::string slot;  ///< hash of its UUID, as in race records
  bool is_host_cpu = false;
  std::string uuid;     ///< as its back end writes it; empty: none
  std::string silicon;  ///< hash of its silicon's facts
  bool operator==(const DeviceInfo&) const = default;
};

struct WorkerView {
  DeviceInfo device;
  std::string state = "starting";  ///< "starting", "serving", "idle", "restarting", "stopped"
  int pid = 0;
  std::string driver, arch;
  std::optional<record::Pair> pair;  ///< in service
  std::string variant;
  std::optional<double> mhs;
  std::optional<double> power_w;
  std::uint64_t hashes = 0;  ///< of this worker process

  std::optional<double> race_mhs, race_gain_pct;
  std::optional<int> race_variants;
  std::string race_winner;
  std::string last_race;  ///< UTC; empty: none yet
  std::string last_swap;  ///< UTC; empty: none yet
  std::optional<double> gap_ms, gap_chunks;
  std::optional<double> lost_ms;  ///< what the last preparation cost the work
  int prepares = 0, races = 0, swaps = 0;
  int unprepared_swaps = 0;  ///< those that had to wait for a compile
  std::uint64_t finds = 0;

  int crashes = 0;
  std::string culprit;  ///< how the last one ended, and its last words
  std::string last_error;
  bool operator==(const WorkerView&) const = default;
};

}  // namespace furlong::fleet
