#pragma once
// One unit executed: inputs verified, the command run under its limit and measured, outputs hashed.

#include <cstdint>
#include <map>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "furlong/base/os/measured_process.h"
#include "furlong/shard/executor.h"
#include "furlong/shard/executor/command/internal/items.h"

namespace furlong::shard::command {

/// Files against their items; each is read once, unless the system says that it was written to since. One
/// thread at a time.
class InputCheck {
 public:
  /// `invalid` names a file that is not what it was when the store was made, or gone.
  Status check(const InputItem& input);

 private:
  /// What the system changes when a file is written to or replaced.
  struct Stamp {
    std::uint64_t device = 0, inode = 0, bytes = 0;
    std::int64_t modified_ns = 0, changed_ns = 0;
    bool operator==(const Stamp&) const = default;
  };
  struct Known {
    Stamp stamp;
    Digest hash;
  };
  static Result<Stamp> stamp(const std::string& path);

  std::map<std::string, Known> known_;
};

/// What became of one unit.
struct UnitRun {
  Key unit;
  std::string name;
  bool has_command = false;  ///< false: the unit of shared inputs, which were verified
  double seconds = 0;        ///< wall time of the command
  double user_s = 0, system_s = 0;
  std::uint64_t peak_bytes = 0;
  MemoryMeter meter = MemoryMeter::sampled;
  std::vector<InputItem> outputs;  ///< as they were afterwards, in the item's order
  std::uint64_t inputs = 0, input_bytes = 0;
};

struct ExecuteOptions {
  std::uint64_t cap_bytes = 0;  ///< of the process tree; 0: none
  std::stop_token stop;
};

/// Removes the outputs that are there, makes their folders, and runs the command. `exhausted`: its tree was
/// over the cap (with limit and peak); `mismatch`: it failed (with status and the end of its standard error),
/// ran past its own limit, or left an output out; `invalid`: an input changed, also while it ran; `timeout`:
/// stopped.
Result<UnitRun> execute_unit(const Unit& unit, ItemSource& items, InputCheck& inputs,
                             const ExecuteOptions& options);

/// ": …", the last words of a standard error, on one line; empty when it said nothing.
std::string end_of_errors(std::string_view standard_error);

/// Of a record that has this unit alone.
Cost cost_of(const UnitRun& run);

}  // namespace furlong::shard::command
