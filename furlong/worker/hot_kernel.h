#pragma once
// A program whose kernel changes while it works: the next one is compiled, gated and raced in the background,
// on the device that the current one uses, and becomes the current one at a point that the caller chooses.
// The caller's calls and the race's windows take turns on the device; the swap itself only exchanges two
// pointers.

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "furlong/base/error.h"
#include "furlong/base/os/clock.h"
#include "furlong/device/device.h"
#include "furlong/kernel/raced_kernel.h"
#include "furlong/program/instance.h"
#include "furlong/race/race.h"
#include "furlong/worker/device_lock.h"

namespace furlong::worker {

struct HotOptions {
  /// Of every kernel. Of its context `stop`, and beside it `base_ready`, are the hot kernel's own and not
  /// read. `acquire` and `release` are called just inside every hold of the device, the caller's too, for
  /// whoever else must agree; `progress` and `ready` on the background thread while the device is not held.
  /// None may call back but for state(). For texts that never come again set `keep` and `use_kept` to false.
  kernel::Options kernel;
  /// Of one submission: the race ends undecided, and base stays, before it would hold the device longer.
  /// 0: no limit. Takes the place of race_options.max_pause_ms.
  double max_pause_ms = 3600;
  /// For how long a winner would serve: the race ends when what is left to win does not pay for its pause.
  /// 0: it need not pay. Takes the place of race_options.horizon_s.
  double horizon_s = 0;
  /// For a device that others use too, all through the same lock; it outlives the hot kernel. Null: its own.
  DeviceLock* lock = nullptr;
};

/// What preparing a submission took from whoever works meanwhile, by the context's clock.
struct Pause {
  int holds = 0;          ///< of the device, one a gate or window
  double held_ms = 0;     ///< their sum: no more of the caller's work can have been lost to them
  double longest_ms = 0;  ///< of them
  double waited_ms = 0;   ///< of the caller's holds meanwhile, until each had the device
};

struct State {
  enum class Stage {
    idle,       ///< nothing was submitted since the last swap
    preparing,  ///< progress
    ready,      ///< swap() takes it
    failed,     ///< error; whatever is current works on
  };
  Stage stage = Stage::idle;
  std::uint64_t submission = 0;          ///< that this tells of: the number that submit() gave; 0: none yet
  std::string program;                   ///< its name
  race::Progress progress;               ///< of the race; as it was last
  bool base_ready = false;               ///< preparing: swap(Take::best_so_far) takes base
  std::string variant;                   ///< ready
  std::optional<Error> error;            ///< failed
  Pause pause;                           ///< until now
  std::uint64_t current_submission = 0;  ///< 0: there is no current kernel yet
  std::string current_variant;
  std::size_t retired = 0;  ///< earlier kernels that the background thread has not given up yet
};

std::string_view stage_name(State::Stage stage);

enum class Take {
  winner,       ///< of a race that is over
  best_so_far,  ///< base, once it passed its gate, when the race is not over; the race goes on
};

/// One change of the current kernel.
struct SwapReport {
  std::uint64_t submission = 0;
  std::string program, variant;
  std::string why;       ///< one sentence, of the race
  std::string previous;  ///< variant; empty: there was none
  bool early = false;    ///< base, and the race goes on: another swap takes the winner
  /// The winner is base, which an early swap made current already: what is bound to it may stay in use.
  bool same_kernel = false;
  /// From the end of the caller's last hold of the device to the end of swap(), when the next can begin; 0
  /// when swap() was called under a hold; nothing before the first hold.
  std::optional<double> gap_ms;
  double swap_ms = 0;  ///< of it, what swap() itself took
  Pause pause;         ///< of preparing it, until now
};

/// One device, one current kernel, one that is being prepared. All calls are thread safe; none but hold(),
/// call() and wait() waits for the device or for the race. The device outlives it.
class HotKernel {
 public:
  /// The caller's use of the device: nobody else uses it while this lives. All that the caller does with the
  /// device, but compiling, belongs under one: binding, launching, reading and writing buffers, and giving up
  /// buffers, kernel::Bound objects and the kernels of current() and next(). Ends on the thread that it began
  /// on, and before the HotKernel.
  class Held {
   public:
    Held(Held&& other) noexcept
        : owner_(std::exchange(other.owner_, nullptr)),
          kernel_(std::move(other.kernel_)),
          waited_ms_(other.waited_ms_) {}
    Held& operator=(Held&&) = delete;
    /// As end(), whose Error is then a warning in the log.
    ~Held();
    /// Waits for what was launched, since a race must not time it, and lets others have the device. The
    /// device's Error is the one of Device::finish(): of a launch before. Only the first call does anything.
    Status end();
    /// Before end() alone.
    device::Device& device() const { return owner_->device_; }
    /// That was current when this hold began; null before the first swap.
    const std::shared_ptr<const kernel::RacedKernel>& kernel() const { return kernel_; }
    double waited_ms() const { return waited_ms_; }

   private:
    friend class HotKernel;
    Held(HotKernel& owner, std::shared_ptr<const kernel::RacedKernel> kernel, double waited_ms)
        : owner_(&owner), kernel_(std::move(kernel)), waited_ms_(waited_ms) {}

    HotKernel* owner_;
    std::shared_ptr<const kernel::RacedKernel> kernel_;
    double waited_ms_;
  };

  /// `invalid` for a pause or horizon that is no number of 0 or more.
  static Result<std::unique_ptr<HotKernel>> make(device::Device& device, HotOptions options = {});
  /// Stops what is being prepared, waits until it stopped (one window, or one compile of a back end that
  /// cannot be stopped) and gives up its kernels. Not under a hold.
  ~HotKernel();
  HotKernel(const HotKernel&) = delete;
  HotKernel& operator=(const HotKernel&) = delete;

  /// Begins to prepare it in the background and returns its number, from 1. It takes the place of what was
  /// submitted before and is not current: that is stopped, what it made is given up, and if it was ready it
  /// can no longer be had. The current kernel works on whatever becomes of this one. `invalid`: null. All
  /// else that is wrong with it is told by state() and wait().
  Result<std::uint64_t> submit(std::shared_ptr<const program::Instance> next);

  State state() const;
  /// Until what was submitted last is ready (then nothing) or failed (its Error: of kernel::raced_kernel).
  /// `timeout` when `stop` asks; `invalid` when nothing was submitted since the last swap, or under a hold of
  /// this thread, for which the race would wait.
  Status wait(std::stop_token stop = {});

  /// Makes the kernel that is ready the current one; an early swap is followed by one that takes the winner.
  /// The earlier kernel is given up in the background afterwards, and what the caller bound to it stays valid
  /// until the caller drops it. `invalid`: nothing was submitted since the last swap. `unavailable`: it is
  /// not ready, or failed, and the message says how far it is or why. Under a hold or not.
  Result<SwapReport> swap(Take take = Take::winner);

  /// The same for a kernel that next() gave, to which the caller has bound meanwhile: just that one, though
  /// the race of a base may be over by now (then another swap takes the winner at once). `unavailable` also
  /// when it is not of the submission in hand any more, `invalid` for null.
  Result<SwapReport> swap(const std::shared_ptr<const kernel::RacedKernel>& bound);

  /// Null before the first swap.
  std::shared_ptr<const kernel::RacedKernel> current() const;
  /// What swap() would make the current one, null when it would fail: to be bound and prepared before the
  /// point of the swap. Given up by a further submit() as far as the caller does not share it.
  std::shared_ptr<const kernel::RacedKernel> next(Take take = Take::winner) const;

  /// Waits for its turn. `invalid` under a hold of this thread, which would wait for itself.
  Result<Held> hold();
  /// One launch under a hold of its own, until it has run. Errors as of hold(), Bound::launch and
  /// Device::finish.
  Status call(kernel::Bound& bound);

 private:
  using Kernel = std::shared_ptr<const kernel::RacedKernel>;

  /// One submission. All but `number`, `instance` and `stop` is guarded by mutex_.
  struct Submission {
    std::uint64_t number = 0;
    std::shared_ptr<const program::Instance> instance;
    std::stop_source stop;
    State::Stage stage = State::Stage::preparing;
    bool begun = false, early = false;  // early: its base was made current
    race::Progress progress;
    Kernel base, winner;
    std::optional<Error> error;
    Pause pause;
  };

  HotKernel(device::Device& device, HotOptions options);
  void serve(const std::stop_token& stop);
  void give_up_retired(std::unique_lock<std::mutex>& lock);
  void prepare(std::unique_lock<std::mutex>& lock);
  kernel::Options options_for(Submission& mine);
  void retire(Kernel& kernel);
  Kernel takes(Take take) const;
  Error why_not(Take take) const;
  SwapReport make_current(const Kernel& taken, double start_ms);
  double take_device();
  void leave_device();
  Status finish_hold();

  device::Device& device_;
  HotOptions options_;
  Clock& clock_;
  DeviceLock own_lock_;
  DeviceLock& device_lock_;
  std::atomic<std::thread::id> holder_{};  // of the caller's threads

  mutable std::mutex mutex_;  // taken for moments, and never while the device is waited for
  std::condition_variable_any changed_;
  std::shared_ptr<Submission> next_;  // null: nothing was submitted since the last swap
  Kernel current_;
  std::uint64_t submitted_ = 0, current_submission_ = 0;
  std::vector<Kernel> retired_;
  std::size_t giving_up_ = 0;  // taken from retired_, and not yet gone
  std::optional<double> last_call_end_ms_;
  std::jthread thread_;
};

}  // namespace furlong::worker
