#pragma once
// From a store to a profile: every unit executed once.

#include <filesystem>
#include <memory>
#include <stop_token>

#include "furlong/shard/executor.h"
#include "furlong/shard/profile.h"
#include "furlong/shard/progress.h"

namespace furlong::shard {

struct ProfileRequest {
  unsigned workers = 1;
  /// Each unit in a record of its own: its amounts are its own, whoever came before. Else units run one after
  /// another in records of chunk_units() units, and a unit's amounts are what it added to its record, which
  /// is 0 where it added nothing.
  bool isolated = true;
  /// The first of the plain order; the others stay unknown. 0: all.
  std::uint32_t limit_units = 0;
  std::uint64_t record_cap_bytes = 0;  ///< a unit that trips it alone is a failed one; 0: none
  /// Stops at the first unit that fails (each worker within one unit); else failed units are named.
  bool fail_fast = true;
  /// Wall seconds of each unit as well. No two runs agree on them, so the profile is then not the same bytes
  /// again.
  bool seconds = false;
  /// Of an interrupted profile, which goes on where it was: isolated, at the next unit; else at the chunk
  /// that was in flight, since a record cannot be written down. Empty: none is kept.
  std::filesystem::path journal;
  std::stop_token stop;
  Progress progress;  ///< step "profile", in units
};

struct ProfileOutcome {
  Profile profile;
  bool complete = true;  ///< false: stopped at a unit that failed; units that nobody came to are unknown
  std::uint32_t measured = 0;
};

/// The counters of a unit's cost are columns, and kDistinct: the executor's own where it counts
/// one, else the items consulted, each once by its key. Where `seconds` is not asked for, store, executor and
/// request fix every byte of the profile, and neither `workers` nor an interruption changes any. `timeout`
/// when stopped, with the journal whole; `incompatible` for a store of another executor.
Result<ProfileOutcome> make_profile(const std::shared_ptr<const Store>& store, const Executor& executor,
                                    const ProfileRequest& request);

/// Everything of a profile that no unit must be executed for: names, keys, items, references; all units
/// unknown.
Result<Profile> profile_skeleton(const Store& store, std::stop_token stop = {},
                                 const Progress& progress = {});

}  // namespace furlong::shard
