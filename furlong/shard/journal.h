#pragma once
// What a long step has found out so far, so that an interrupted one goes on where it was and the same
// findings give the same plan. docs/formats/shard-journal.md.

#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "furlong/base/error.h"
#include "furlong/base/hash.h"

namespace furlong::shard {

inline constexpr int kJournalVersion = 1;

/// Findings by kind and key; each is told once. Thread safe.
class Journal {
 public:
  /// In memory alone.
  Journal() = default;
  ~Journal();
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  /// Goes on with the file, or makes it. `identity`: one line of JSON that says what the findings are about.
  /// `invalid`: the file is about something else, or no journal; `incompatible`: another version; `corrupt`:
  /// damaged before its end (with the line); `denied`: another process writes to it. A torn end is dropped.
  static Result<std::unique_ptr<Journal>> open(const std::filesystem::path& file,
                                               const std::string& identity);

  std::optional<std::string> find(const std::string& kind, const std::string& key) const;
  /// `value`: one line of JSON. With the system once it returns: a process that is killed loses nothing. A
  /// finding that is there already stays as it is.
  Status add(const std::string& kind, const std::string& key, const std::string& value);
  /// On the disk.
  Status sync();
  /// Over identity and findings, in no order: two workers that swapped lines change nothing. A kind of two
  /// words is the finding of one scope, the second word: those of other scopes than `scope` are left out.
  Digest digest(const std::string& scope = "") const;
  std::size_t size() const;
  /// Bytes of a torn end that were dropped when it was opened.
  std::size_t dropped_bytes() const { return dropped_bytes_; }

 private:
  mutable std::mutex mutex_;
  std::string name_, identity_;
  int descriptor_ = -1;
  std::size_t dropped_bytes_ = 0;
  std::map<std::pair<std::string, std::string>, std::string> findings_;
};

}  // namespace furlong::shard
