#pragma once
// Which variants a prepare builds and races: the tuning file's row, the worker's options, or all.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "furlong/base/os/file.h"
#include "furlong/device/device.h"
#include "furlong/program/instance.h"
#include "furlong/record/tuning.h"

namespace furlong::worker {

/// How one prepare goes.
struct EntryPlan {
  std::vector<lattice::Point> points;  ///< base first, then in the order in which they are raced
  /// False: they are built and gated, nothing is timed, and the last one serves.
  bool race = true;
  bool pinned = false;  ///< by the tuning file or by the option
  bool tuned = false;   ///< the tuning file gave the order
  std::string row;      ///< the tuning's row in words: "NVIDIA_H200, loads=128,wide=0"; empty: none
  std::vector<std::string> notes;  ///< what was passed over, and why
};

struct EntryRequest {
  std::string race = "catalogue";  ///< off, catalogue, or names
  std::string variant;             ///< pinned by the option; empty: not
  std::uint64_t prepare = 1;       ///< counted from 1
};

/// The tuning file as it is now, with override.json beside it. nullopt: there is none. `invalid` and
/// `incompatible` name the file.
Result<std::optional<record::Tuning>> read_tuning(Files& files, const std::filesystem::path& file);

/// `tuning` may be null. `invalid` when the options themselves name a variant that is not there; a tuning
/// that does is passed over with a note. Pure.
Result<EntryPlan> plan_entry(const program::Instance& instance, const device::Facts& facts,
                             const record::Tuning* tuning, const EntryRequest& request);

}  // namespace furlong::worker
