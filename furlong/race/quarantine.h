#pragma once
// Variants that hung, trapped, took the memory or broke the gate on a card, and those known to be good: on
// disk, per (card silicon, driver, source hash), until one of them changes.

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "furlong/base/error.h"

namespace furlong::race {

struct QuarantineKey {
  std::string silicon;  ///< Silicon::hash()
  std::string driver;
  std::string source;  ///< digest of source text, options and launches: Variant::key in the outcome
};

struct QuarantineEntry {
  QuarantineKey key;
  std::string program, variant, device_label;
  std::string why;    ///< "hang: ran past 20 s", "trap: killed by signal 11", …
  std::string when;   ///< ISO time
  bool good = false;  ///< passed a trial: need not be tried again
  /// For a failed gate: the digest of program and check that it failed by. A race with another check gates
  /// the variant again. Empty: holds whatever the check.
  std::string evidence;
};

/// A SQLite file; several processes may use it at once. One thread at a time.
///
/// A file that cannot be used is no reason not to race: it opens, and every find, list and clear gives the
/// Error, which names the file and the mend (never `unavailable`, which is said of devices). put gives it
/// only as long as nobody has heard it, so that a race of many variants tells it once.
class Quarantine {
 public:
  static Result<Quarantine> open(const std::filesystem::path& file);
  ~Quarantine();
  Quarantine(Quarantine&&) noexcept;
  Quarantine& operator=(Quarantine&&) noexcept;
  Result<std::optional<QuarantineEntry>> find(const QuarantineKey& key);
  /// Replaces what is known of the key, in one step; but what hung or trapped (bad without evidence) stays so
  /// until it is cleared, whatever another race says of it that began before.
  Status put(const QuarantineEntry& entry);
  /// Bad entries, newest first.
  Result<std::vector<QuarantineEntry>> list();
  /// Removes bad entries whose program, variant or source hash starts with `what` (empty: all); returns how
  /// many. With an empty `what` a damaged file is put aside under the name FILE.broken-1, -2, … (a warning in
  /// the log says so) and a new one begun.
  Result<int> clear(const std::string& what);

 private:
  struct Impl;
  explicit Quarantine(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace furlong::race
