#include "furlong/worker/hot_kernel.h"

#include <algorithm>
#include <cmath>

#include "furlong/base/log.h"

namespace furlong::worker {
namespace {

using Stage = State::Stage;

Clock& clock_of(const HotOptions& options) {
  Clock* const given = options.kernel.context.clock;
  return given != nullptr ? *given : system_clock();
}

std::string_view phase_words(race::Phase phase) {
  switch (phase) {
    case race::Phase::build:
      return "compiling";
    case race::Phase::trial:
      return "in the trial process";
    case race::Phase::gate:
      return "at the gate";
    case race::Phase::heats:
    case race::Phase::confirm:
      return "in its heats";
    case race::Phase::second_gate:
      return "at the winner's second gate";
    case race::Phase::done:
      return "about to end";
  }
  return "";
}

}  // namespace

std::string_view stage_name(Stage stage) {
  switch (stage) {
    case Stage::idle:
      return "idle";
    case Stage::preparing:
      return "preparing";
    case Stage::ready:
      return "ready";
    case Stage::failed:
      return "failed";
  }
  return "";
}

HotKernel::Held::~Held() {
  const Status ended = end();
  if (!ended) log_warning("a launch failed before its hold of the device ended: {}", ended.error().text());
}

Status HotKernel::Held::end() {
  if (owner_ == nullptr) return {};
  // While the device is still held: it may be the last who shares it.
  kernel_.reset();
  return std::exchange(owner_, nullptr)->finish_hold();
}

Result<std::unique_ptr<HotKernel>> HotKernel::make(device::Device& device, HotOptions options) {
  if (!(options.max_pause_ms >= 0) || !(options.horizon_s >= 0) || !std::isfinite(options.horizon_s) ||
      !std::isfinite(options.max_pause_ms))
    return fail(Code::invalid,
                "the longest pause ({} ms) and the horizon ({} s) of a hot kernel are numbers of 0 or more",
                options.max_pause_ms, options.horizon_s);
  return std::unique_ptr<HotKernel>(new HotKernel(device, std::move(options)));
}

double HotKernel::take_device() {
  const double waited_ms = device_lock_.acquire();
  if (options_.kernel.context.acquire) options_.kernel.context.acquire();
  return waited_ms;
}

void HotKernel::leave_device() {
  if (options_.kernel.context.release) options_.kernel.context.release();
  device_lock_.release();
}

HotKernel::HotKernel(device::Device& device, HotOptions options)
    : device_(device),
      options_(std::move(options)),
      clock_(clock_of(options_)),
      own_lock_(clock_),
      device_lock_(options_.lock != nullptr ? *options_.lock : own_lock_),
      thread_([this](const std::stop_token& stop) { serve(stop); }) {}

HotKernel::~HotKernel() {
  {
    const std::lock_guard lock(mutex_);
    if (next_) next_->stop.request_stop();
  }
  thread_.request_stop();
  thread_.join();
  take_device();
  next_.reset();
  current_.reset();
  retired_.clear();
  leave_device();
}

Result<std::uint64_t> HotKernel::submit(std::shared_ptr<const program::Instance> next) {
  if (!next) return fail(Code::invalid, "a hot kernel was given no program");
  auto submission = std::make_shared<Submission>();
  submission->instance = std::move(next);
  const std::lock_guard lock(mutex_);
  if (next_) {
    next_->stop.request_stop();
    retire(next_->base);
    retire(next_->winner);
  }
  submission->number = ++submitted_;
  next_ = std::move(submission);
  changed_.notify_all();
  return submitted_;
}

State HotKernel::state() const {
  const std::lock_guard lock(mutex_);
  State state;
  state.submission = submitted_;
  if (next_) {
    state.stage = next_->stage;
    state.program = next_->instance->program().name;
    state.progress = next_->progress;
    state.base_ready = next_->stage == Stage::preparing && next_->base && !next_->early;
    if (next_->winner) state.variant = next_->winner->variant();
    state.error = next_->error;
    state.pause = next_->pause;
  }
  state.current_submission = current_submission_;
  if (current_) state.current_variant = current_->variant();
  state.retired = retired_.size() + giving_up_;
  return state;
}

Status HotKernel::wait(std::stop_token stop) {
  if (holder_.load() == std::this_thread::get_id())
    return fail(Code::invalid, "wait() under a hold of the device, for which the race would wait");
  std::unique_lock lock(mutex_);
  if (!next_) return fail(Code::invalid, "there is nothing to wait for: no program was submitted");
  // Swapped in by another thread meanwhile is ready too.
  const bool over =
      changed_.wait(lock, std::move(stop), [&] { return !next_ || next_->stage != Stage::preparing; });
  if (!over) return fail(Code::timeout, "stopped while submission {} was prepared", submitted_);
  if (next_ && next_->stage == Stage::failed) return *next_->error;
  return {};
}

/// With mutex_ held.
HotKernel::Kernel HotKernel::takes(Take take) const {
  if (!next_) return nullptr;
  if (next_->stage == Stage::ready) return next_->winner;
  if (next_->stage == Stage::preparing && take == Take::best_so_far && !next_->early) return next_->base;
  return nullptr;
}

/// Why takes() gives nothing. With mutex_ held.
Error HotKernel::why_not(Take take) const {
  if (!next_)
    return fail(Code::invalid, "there is nothing to swap in: no program was submitted{}",
                current_ ? " since the last swap" : "");
  const std::string& name = next_->instance->program().name;
  if (next_->stage == Stage::failed)
    return fail(Code::unavailable, "'{}' (submission {}) failed, and what was current stays: {}", name,
                next_->number, next_->error->text());
  const race::Progress& progress = next_->progress;
  const char* base = "";
  if (next_->early) {
    base = "; its base is current already";
  } else if (next_->base) {
    base = "; its base is ready, for an early swap";
  } else if (take == Take::best_so_far) {
    base = ", and its base is not ready either";
  }
  if (!next_->begun)
    return fail(Code::unavailable, "'{}' (submission {}) is not ready: it waits for its turn{}", name,
                next_->number, base);
  return fail(Code::unavailable, "'{}' (submission {}) is not ready: {} ({}{} heats){}", name, next_->number,
              phase_words(progress.phase),
              progress.total > 0 ? fmt::format("{} of {}, ", progress.done, progress.total) : "",
              progress.heats, base);
}

Result<SwapReport> HotKernel::swap(Take take) {
  const double start_ms = clock_.now_ms();
  const std::lock_guard lock(mutex_);
  const Kernel taken = takes(take);
  if (!taken) return why_not(take);
  return make_current(taken, start_ms);
}

Result<SwapReport> HotKernel::swap(const Kernel& bound) {
  const double start_ms = clock_.now_ms();
  if (!bound) return fail(Code::invalid, "there is no kernel to swap in: null was given");
  const std::lock_guard lock(mutex_);
  if (!next_ || next_->stage == Stage::failed) return why_not(Take::best_so_far);
  if (bound != next_->winner && (bound != next_->base || next_->early))
    return fail(Code::unavailable, "{} that was bound is not of submission {}, which is to be swapped in",
                bound->variant(), next_->number);
  return make_current(bound, start_ms);
}

/// With mutex_ held.
SwapReport HotKernel::make_current(const Kernel& taken, double start_ms) {
  const bool early = taken == next_->base;
  SwapReport report{.submission = next_->number,
                    .program = next_->instance->program().name,
                    .variant = taken->variant(),
                    .why = taken->why(),
                    .previous = current_ ? current_->variant() : "",
                    .early = early,
                    .same_kernel = next_->early && current_->variant() == taken->variant(),
                    .gap_ms = std::nullopt,
                    .swap_ms = 0,
                    .pause = next_->pause};
  retire(current_);
  current_ = taken;
  current_submission_ = next_->number;
  if (early) {
    next_->early = true;
  } else {
    retire(next_->base);
    retire(next_->winner);
    next_.reset();
  }
  changed_.notify_all();
  const double end_ms = clock_.now_ms();
  report.swap_ms = end_ms - start_ms;
  if (holder_.load() == std::this_thread::get_id()) {
    report.gap_ms = 0;
  } else if (last_call_end_ms_) {
    report.gap_ms = end_ms - *last_call_end_ms_;
  }
  return report;
}

HotKernel::Kernel HotKernel::current() const {
  const std::lock_guard lock(mutex_);
  return current_;
}

HotKernel::Kernel HotKernel::next(Take take) const {
  const std::lock_guard lock(mutex_);
  return takes(take);
}

Result<HotKernel::Held> HotKernel::hold() {
  if (holder_.load() == std::this_thread::get_id())
    return fail(Code::invalid, "this thread holds the device already, and would wait for itself");
  const double waited_ms = take_device();
  holder_ = std::this_thread::get_id();
  const std::lock_guard lock(mutex_);
  if (next_ && next_->stage == Stage::preparing) next_->pause.waited_ms += waited_ms;
  return Held(*this, current_, waited_ms);
}

Status HotKernel::finish_hold() {
  Status finished = device_.finish();
  {
    const std::lock_guard lock(mutex_);
    last_call_end_ms_ = clock_.now_ms();
  }
  holder_ = std::thread::id();
  leave_device();
  return finished;
}

Status HotKernel::call(kernel::Bound& bound) {
  FURLONG_TRY(Held held, hold());
  const Status launched = bound.launch();
  const Status ended = held.end();
  FURLONG_CHECK(launched);
  return ended;
}

/// With mutex_ held. The device need not be: the background thread gives it up.
void HotKernel::retire(Kernel& kernel) {
  if (!kernel) return;
  retired_.push_back(std::move(kernel));
  kernel.reset();
}

void HotKernel::serve(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  const auto unprepared = [&] { return next_ && !next_->begun; };
  for (;;) {
    changed_.wait(lock, stop, [&] { return !retired_.empty() || unprepared(); });
    if (stop.stop_requested()) return;
    // First of all room for the next: the old goes before the new comes.
    give_up_retired(lock);
    if (unprepared()) prepare(lock);
  }
}

void HotKernel::give_up_retired(std::unique_lock<std::mutex>& lock) {
  if (retired_.empty()) return;
  std::vector<Kernel> gone = std::exchange(retired_, {});
  giving_up_ = gone.size();
  lock.unlock();
  take_device();
  gone.clear();
  leave_device();
  lock.lock();
  giving_up_ = 0;
  changed_.notify_all();
}

/// The hooks run on the background thread.
kernel::Options HotKernel::options_for(Submission& mine) {
  kernel::Options options = options_.kernel;
  options.race_options.max_pause_ms = options_.max_pause_ms;
  options.race_options.horizon_s = options_.horizon_s;
  options.context.clock = &clock_;
  options.context.stop = mine.stop.get_token();
  const auto since_ms = std::make_shared<double>(0);
  options.context.acquire = [this, since_ms] {
    take_device();
    *since_ms = clock_.now_ms();
  };
  options.context.release = [this, &mine, since_ms] {
    const double held_ms = clock_.now_ms() - *since_ms;
    leave_device();
    const std::lock_guard lock(mutex_);
    ++mine.pause.holds;
    mine.pause.held_ms += held_ms;
    mine.pause.longest_ms = std::max(mine.pause.longest_ms, held_ms);
  };
  options.context.progress = [this, &mine](const race::Progress& progress) {
    {
      const std::lock_guard lock(mutex_);
      mine.progress = progress;
    }
    if (options_.kernel.context.progress) options_.kernel.context.progress(progress);
  };
  options.base_ready = [this, &mine](const kernel::RacedKernel& base) {
    Kernel copy = std::make_shared<const kernel::RacedKernel>(base);
    const std::lock_guard lock(mutex_);
    mine.base = std::move(copy);
    changed_.notify_all();
  };
  return options;
}

void HotKernel::prepare(std::unique_lock<std::mutex>& lock) {
  const std::shared_ptr<Submission> mine = next_;
  mine->begun = true;
  lock.unlock();
  auto made = kernel::raced_kernel(device_, *mine->instance, options_for(*mine));
  Kernel winner;
  if (made) winner = std::make_shared<const kernel::RacedKernel>(*std::move(made));
  lock.lock();
  if (next_ != mine) {  // another one was submitted meanwhile
    retire(mine->base);
    retire(winner);
    return;
  }
  if (winner) {
    mine->winner = std::move(winner);
    mine->stage = Stage::ready;
  } else {
    mine->error = std::move(made).error();
    mine->stage = Stage::failed;
    retire(mine->base);
  }
  changed_.notify_all();
}

}  // namespace furlong::worker
