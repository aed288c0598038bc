#pragma once
// One prepare: the pack is read, base built and gated, the dataset built, the variants raced, on a thread of
// its own. The device is held for one window at a time.

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "furlong/worker/device_lock.h"
#include "furlong/worker/internal/entry_plan.h"
#include "furlong/worker/internal/serving.h"
#include "furlong/worker/server.h"

namespace furlong::worker {

/// What a finished prepare tells.
struct Prepared {
  std::optional<record::RaceRecord> record;  ///< of a race, or of a pinned variant's gate
  std::string race_line;
  std::map<std::string, std::string> keys;  ///< of the quarantine, by variant
  std::vector<std::string> notes;
};

class Preparation {
 public:
  struct Asked {
    record::PrepareCommand command;
    double since_ms = 0;  ///< when the command came, by the clock
    EntryRequest entry;
    std::vector<race::Fallen> fallen;  ///< variants that ended an earlier process of this worker
    std::shared_ptr<race::Buffers>
        beside;  ///< of the pair in service: its dataset is used again where it is the same
    std::shared_ptr<const Bytes> dataset;  ///< built before, in host memory; null: to be built
  };

  /// `changed` is called on its thread when there is something new to look at. `told` keeps what was reported
  /// once for the whole worker.
  Preparation(const Environment& environment, const Options& options, DeviceLock& lock, Asked asked,
              std::function<void()> changed);
  /// Stops and joins. Not while the device is held by the caller.
  ~Preparation();

  void stop();
  const Asked& asked() const { return asked_; }
  const record::Pair& pair() const { return asked_.command.pair; }

  /// The best that can serve now; empty before base has passed its gate.
  Serving best() const;
  /// Why the dataset cannot be on the device beside the one in service; empty: it can. The dataset is then in
  /// host memory where that has room.
  std::string late() const;
  std::shared_ptr<const Bytes> dataset() const;
  bool finished() const;
  /// The device answered nothing any more when the race let go of it. Told before anybody else has it.
  bool lost_device() const { return lost_; }
  /// For how long the race held the device.
  double held_ms() const { return held_ms_; }
  /// After it finished.
  Result<Prepared> result() const;
  /// Gives up what it holds on the device; the caller holds the device and has seen finished().
  void release();

 private:
  void run(std::stop_token stop);
  Result<Prepared> prepare(std::stop_token stop);
  Status open();
  Status check_emulated_text() const;
  Result<EntryPlan> plan() const;
  race::Context context(std::stop_token stop, const EntryPlan& plan);
  race::Options race_options() const;
  /// What it finds on the way is noted in `plan`.
  Result<race::Outcome> run_plan(EntryPlan& plan, std::stop_token stop);
  void acquire();
  void release_device();
  void publish(std::size_t variant, const std::vector<lattice::Point>& points);
  void keep_dataset(std::stop_token stop);
  void tell_result(const race::Outcome& outcome, const EntryPlan& plan, Prepared& prepared) const;

  const Environment& environment_;
  const Options& options_;
  DeviceLock& lock_;
  Asked asked_;
  std::function<void()> changed_;
  std::shared_ptr<const program::Instance> instance_;
  race::Kept kept_;

  std::atomic<bool> lost_{false};
  std::atomic<double> held_ms_{0};
  double held_since_ms_ = 0;  // of whoever holds

  mutable std::mutex mutex_;
  Serving best_;
  std::string late_;
  std::shared_ptr<const Bytes> dataset_;
  std::optional<Result<Prepared>> result_;
  std::jthread thread_;  // last: it uses all of the above
};

}  // namespace furlong::worker
