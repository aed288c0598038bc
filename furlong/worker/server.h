#pragma once
// The process that owns one device: it serves the pair in hand chunk by chunk and prepares the next meanwhile
// (docs/formats/worker-protocol.md). Front (front.h) keeps it alive and speaks to the outside.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "furlong/base/os/clock.h"
#include "furlong/base/os/file.h"
#include "furlong/base/os/guard.h"
#include "furlong/device/device.h"
#include "furlong/program/program.h"
#include "furlong/race/quarantine.h"
#include "furlong/race/race.h"
#include "furlong/record/worker_protocol.h"

namespace furlong::worker {

struct Options {
  std::string race = "catalogue";  ///< off, catalogue, or names as Instance::select reads them
  std::string variant;             ///< pinned: built and gated, not timed; empty: not
  double race_budget_s = 120;
  double max_pause_ms = 3600;  ///< per prepare; 0.1% of an hour
  double horizon_s = 0;        ///< race::Options::horizon_s
  bool classic = false;        ///< the plain rule, one round
  double threshold = 0.005;    ///< of a winner over base, ratio - 1
  double chunk_ms = 50;
  double rate_every_s = 10;
  double shadow_every_s = 1;
  int shadow_nonces = 4;
  double hang_s = 20;             ///< a chunk that takes longer, beside ten times the one before it, hangs
  std::filesystem::path records;  ///< every race record is appended here before it is told; empty: not
  std::filesystem::path packs;    ///< where a pair's pack may lie as <epoch>-<day>; empty: nowhere
  std::filesystem::path tuning_file;  ///< read at every prepare; empty: none
  bool allow_unsigned = false;        ///< serve packs without a trusted signature
  bool emulated = false;              ///< FURLONG_EMU: no race; base's text must be the pack's
  std::uint64_t seed = 1;
  /// By earlier processes of this worker.
  std::uint64_t prepares_before = 0, hashes_before = 0;
};

/// What a server needs from outside. Pointers must outlive it; none is owned.
struct Environment {
  device::Device* device = nullptr;
  Clock* clock = nullptr;                  ///< the device's own where its time is virtual
  race::Quarantine* quarantine = nullptr;  ///< may be null
  Files* files = nullptr;
  Processes* processes = nullptr;
  std::vector<std::string> trial_command;  ///< race::Context; empty: no trial process
  /// race::Context::trial_program_json of a pack's folder in a language.
  std::function<std::string(const std::string& pack, const std::string& language)> trial_program;
  std::function<Result<std::string>(const program::Program&)> choose_language;
  /// How a pack's folder becomes a program; empty: program::load_pack.
  std::function<Result<std::shared_ptr<const program::Program>>(const std::filesystem::path&)> load_pack;
  /// One line of the protocol to the outside. Thread safe.
  std::function<void(const record::WorkerEvent&)> emit;
  /// A job is in hand from now on; one will never be. May be empty.
  std::function<void(const record::JobCommand&)> begun, refused;
  /// A chunk is done: nonces of the job, how many of them are surely right, and all since `ready`. May be
  /// empty.
  std::function<void(std::uint64_t done, std::uint64_t checked, std::uint64_t hashes)> progress;
  /// A prepare has begun, counted from 1 over all processes of this worker. May be empty.
  std::function<void(std::uint64_t prepares)> prepares;
  /// The prepare of a pair has ended, well or not. May be empty.
  std::function<void(const record::Pair&)> prepare_ended;
  /// What runs on the device on behalf of a pair, for whoever looks after this process; may return null.
  std::function<Hand*(const record::Pair&)> hand;
};

/// Variants of a pair that ended an earlier process.
struct FallenVariant {
  record::Pair pair;
  race::Fallen fallen;
};

class Server {
 public:
  Server(const Environment& environment, const Options& options);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  /// From any thread; done in order between two chunks.
  void submit(record::WorkerCommand command);
  /// A line; one that cannot be read is answered by an `error` event.
  void submit_line(std::string_view line);
  /// Before the prepare of that pair.
  void add_fallen(FallenVariant fallen);

  /// Serves until `quit`. On the device's thread. An Error: the device is lost, or base itself computes wrong
  /// results: the process should end and another one go on.
  Status serve();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace furlong::worker
