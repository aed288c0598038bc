#pragma once
// What the agent must not lose, in one SQLite file: race records on their way to the hub, finds, and how far
// each device has come in its nonces.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "furlong/base/error.h"
#include "furlong/base/sqlite.h"
#include "furlong/fleet/record_batch.h"
#include "furlong/record/worker_protocol.h"

namespace furlong::fleet {

struct SpoolLimits {
  std::int64_t pending_bytes = 64 << 20;  ///< of records that wait for the hub
  std::int64_t refused_kept = 1000;
  std::int64_t digests_kept = 20'000;
  std::int64_t finds_kept = 20'000;  ///< besides those that wait
  bool finds_wait = true;            ///< for a command that takes them; else old ones go
  std::int64_t pages = 0;            ///< of the file, hard (a disk that is full, for tests); 0: none
};

/// How far a records file has been taken in.
struct SourceMark {
  std::uint64_t offset = 0;
  std::string tail;  ///< digest of the bytes just before `offset`: another file of that name is noticed
  bool operator==(const SourceMark&) const = default;
};

/// One line that a worker wrote.
struct NewRecord {
  std::string id;
  std::string line;    ///< with id, machine and agent filled in
  std::string digest;  ///< of the line as the worker wrote it: a line that comes again is known by it
};

struct Find {
  record::Pair pair;
  std::string slot;
  std::uint64_t nonce = 0;
  std::uint64_t hash = 0;
  std::string device;  ///< address
  std::string at;      ///< UTC
  bool operator==(const Find&) const = default;
};

struct SpoolCounts {
  std::int64_t pending = 0;
  std::int64_t pending_bytes = 0;
  std::int64_t delivered = 0;  ///< accepted, ever
  std::int64_t duplicate = 0;  ///< the hub had them
  std::int64_t refused = 0;
  std::int64_t skipped_lines = 0;  ///< of records files, that could not be read
  std::int64_t finds = 0;
  std::int64_t finds_waiting = 0;  ///< for the command, also those that it would not take
};

/// Every change is one transaction that survives a power cut; kill -9 at any instruction leaves the state
/// before or after it. `exhausted` when the disk is full: nothing changed, and the call may be repeated.
/// Thread safe.
class Spool {
 public:
  static Result<std::unique_ptr<Spool>> open(const std::filesystem::path& file,
                                             const SpoolLimits& limits = {});

  // --- records in
  Result<SourceMark> source(std::string_view name);
  /// Room for one more line of that size?
  Result<bool> has_room(std::size_t bytes);
  /// Adds the records and moves the mark in one transaction. Returns how many were new.
  Result<int> take_in(std::string_view name, const SourceMark& mark, const std::vector<NewRecord>& records,
                      int skipped_lines);

  /// Waiting records of another machine (its key was replaced) become this one's: `rewrite` gives a line its
  /// new form. Open batches are released, since their bytes change. Nothing happens when `machine` is known.
  Status adopt(const std::string& machine,
               const std::function<std::string(const std::string& line)>& rewrite);

  // --- records out
  /// The batch under way, else a new one of the oldest records (`make_id` names it); nullopt: nothing waits.
  /// The same batch has the same bytes until it is settled or released.
  Result<std::optional<RecordBatch>> next_batch(std::size_t most_records, std::size_t most_bytes,
                                                const std::string& machine,
                                                const std::function<std::string()>& make_id);
  struct Settled {
    int accepted = 0, duplicate = 0, refused = 0;
    int left = 0;     ///< records of the batch that the reply does not name: they wait again
    int foreign = 0;  ///< ids in the reply that are not of this batch
  };
  Result<Settled> settle(const RecordBatch& batch, const BatchReply& reply, std::string_view now);
  /// The batch is no more; its records wait behind those that were tried less often.
  Status release(std::string_view batch);
  struct Refused {
    std::string id, why, at;
  };
  Result<std::vector<Refused>> refused(int most);

  // --- finds
  /// false: it is known.
  Result<bool> add_find(const Find& find);
  struct WaitingFind {
    Find find;
    int tries = 0;
    bool operator==(const WaitingFind&) const = default;
  };
  /// The oldest of the least often tried finds that the command has not taken, tried `least` to `most` times.
  Result<std::optional<WaitingFind>> waiting_find(int least, int most);
  Status find_taken(const Find& find);
  Status find_refused(const Find& find);
  /// All that wait count as never tried.
  Status forget_tries();

  // --- nonces
  struct Progress {
    std::uint64_t first = 0;  ///< of the device's share
    std::uint64_t next = 0;   ///< not done yet
    bool operator==(const Progress&) const = default;
  };
  Result<std::optional<Progress>> progress(const record::Pair& pair, std::string_view slot);
  Status set_progress(const record::Pair& pair, std::string_view slot, const Progress& progress);

  // --- small facts
  Result<std::string> fact(std::string_view key);  ///< empty: none
  Status set_fact(std::string_view key, std::string_view value);
  Result<SpoolCounts> counts();

 private:
  Spool(Database database, const SpoolLimits& limits) : database_(std::move(database)), limits_(limits) {}
  Status transaction(const std::function<Status()>& change);
  template <class... Values>
  Status change(std::string_view sql, const Values&... values);
  template <class... Values>
  Result<std::int64_t> number(std::string_view sql, const Values&... values);
  Status prune_finds();
  Status add_to_count(std::string_view key, std::int64_t more);
  Result<std::string> open_batch(std::size_t most_records, std::size_t most_bytes,
                                 const std::function<std::string()>& make_id);

  std::mutex mutex_;
  Database database_;
  SpoolLimits limits_;
};

}  // namespace furlong::fleet
