#pragma once
// The server in hand: what its parts share. server.cpp has commands and the order of a turn,
// server_prepare.cpp the preparation of the next pair, server_work.cpp chunks and swaps.

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "furlong/worker/device_lock.h"
#include "furlong/worker/internal/lost_work.h"
#include "furlong/worker/internal/miner.h"
#include "furlong/worker/internal/preparation.h"
#include "furlong/worker/server.h"

namespace furlong::worker {

struct Command {
  record::WorkerCommand what;
  double at_ms = 0;
};

/// The job in hand.
struct Work {
  record::JobCommand job;
  std::uint64_t done = 0;        ///< nonces from job.start on
  std::uint64_t checked = 0;     ///< of them before the last good shadow check
  std::set<std::uint64_t> told;  ///< finds since then: what is done again is not told again
  bool endless() const { return job.count == 0; }
  bool complete() const { return !endless() && done >= job.count; }
  std::uint64_t next() const { return job.start + done; }
  /// What is left of it.
  record::JobCommand rest() const;
};

/// A swap whose first chunk is under way.
struct Swapping {
  record::SwapEvent event;
  double old_end_ms =
      0;  ///< of the last chunk of the old pair; the job's arrival where nothing was in service
  double job_ms = 0;
};

/// A prepare that waits until the one before it has ended.
struct QueuedPrepare {
  record::PrepareCommand command;
  double at_ms = 0;
  std::shared_ptr<const Bytes> dataset;
  bool alone = false;  ///< what is in service is given up first: there is no room for both
};

/// Whether the device answers nothing any more, or did not end.
bool is_lost(const Error& error);

struct Server::State {
  State(const Environment& given, const Options& given_options);
  ~State();
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  // Between threads.
  std::mutex mutex;
  std::condition_variable wake;
  std::deque<Command> commands;
  std::vector<FallenVariant> fallen;
  bool changed = false;  // a preparation has something new

  // Of the serving thread.
  Environment environment;
  Options options;
  DeviceLock lock;
  Random random;
  bool quitting = false;
  std::set<std::string> told_notes;
  std::optional<Command> waiting_job;  // for a pair that is being prepared

  // The preparation.
  std::unique_ptr<Preparation> preparation;
  std::optional<QueuedPrepare> queued;  // as soon as the one before it has ended
  std::optional<QueuedPrepare> behind;  // once the job that waits for the one before it is served
  bool preparation_told = false;
  std::optional<double> ready_ms;  // when the pair could be swapped to with all that it needs
  std::string no_room;             // why the next pair's own buffers do not fit beside the one in service
  std::unique_ptr<Miner> next_miner;
  std::optional<record::PrepareCommand> serving_command;                          // of the pair in service
  std::optional<std::pair<record::PrepareCommand, record::JobCommand>> fallback;  // of what was given up
  std::uint64_t prepares = 0;
  std::deque<record::RaceRecord> unwritten;
  double unwritten_try_ms = 0, unwritten_delay_ms = 0;

  // Work.
  std::unique_ptr<Miner> miner, retired;
  std::vector<Serving> given_up;  // variants that serve no more: freed while the device is held
  std::optional<Work> work;
  std::optional<Swapping> swapping;
  std::map<std::string, std::string> keys;  // of the pair in service, for the quarantine
  LostWork lost;
  std::uint64_t hashes = 0, chunk_nonces = 0, rate_hashes = 0;
  double last_end_ms = 0, last_took_ms = 0, rate_from_ms = 0, last_shadow_ms = 0;
  std::unique_ptr<Holding> holding_for_good;  // of a lost device
  bool check_next_chunk = true;
  int wrong_of_base = 0;

  double now_ms() const { return environment.clock->now_ms(); }
  void emit(const record::WorkerEvent& event) const { environment.emit(event); }
  void error(const Error& error) const { emit(record::ErrorEvent{error.code(), error.text()}); }
  void note(const std::string& text);
  void wake_up();
  /// Waits until it holds, at most so long; whether it does. Work stands still meanwhile.
  bool wait_for(double limit_ms, const std::function<bool()>& holds);
  Hand* hand_of(const record::Pair& pair) const {
    return environment.hand ? environment.hand(pair) : nullptr;
  }

  // Commands (server.cpp).
  void push(record::WorkerCommand command);
  std::optional<Command> pop();
  Status handle(const Command& command);
  bool is_prepared(const record::PrepareCommand& command);
  Status job(const Command& command);
  void begin_job(const record::JobCommand& job);
  void end_job(bool complete);
  void refuse(const record::JobCommand& job, const Error& why);
  void refuse_waiting(const Error& why);
  void tell_state() const;
  Status step();
  void close();
  void abandon();
  Status serve();

  // The next pair (server_prepare.cpp).
  bool find_pack(const record::Pair& pair, record::PrepareCommand& command) const;
  void prepare(QueuedPrepare asked);
  bool must_wait(const QueuedPrepare& asked) const;
  void start_queued();
  /// The pair that is being prepared, or will be; nullptr: none.
  const record::Pair* preparing() const;
  std::string late() const;
  Status look_at_preparation();
  Status take_waiting_job();
  Status ready_next(const Serving& serving);
  Status launch_once(const Serving& serving);
  Status finish_preparation();
  bool drop_preparation();
  void keep_record(record::RaceRecord record, const std::string& line);
  void write_records(bool now);

  // Work (server_work.cpp).
  Status swap(const Command& job_command);
  void tell_swap(double begin_ms);
  void swap_late(const Command& job_command);
  std::uint64_t most_nonces() const;
  Status chunk();
  Status run_held(const Serving& serving, double limit_s, const std::function<Status()>& launches);
  Status run_chunk(std::uint64_t nonces, bool sampled);
  Status lost_to_race();
  Error lost_here(const record::Pair& pair, const std::string& variant, const Error& error);
  void serve_by(Serving serving);
  void count_chunk(std::uint64_t nonces, double end_ms);
  Status revert(const Error& why);
  void tell_rate();
  void retire();
};

}  // namespace furlong::worker
