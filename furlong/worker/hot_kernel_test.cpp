// Kernels that change while a simulated card works: what is prepared beside it, taken, replaced and given up.
#include "furlong/worker/hot_kernel.h"

#include <gmock/gmock.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <future>
#include <limits>

#include "furlong/base/log.h"
#include "furlong/race/internal/testing.h"
#include "furlong/race/internal/watched.h"

namespace furlong::worker {
namespace {

using race::testing::Call;
using race::testing::Stage;
using ::testing::HasSubstr;
using Word = std::uint32_t;

constexpr std::size_t kMostWords = 1 << 14;

/// Holds up whoever comes until it is opened.
class Gate {
 public:
  /// By one thread, any number of times.
  void come() {
    if (std::exchange(came_, true)) return;
    arrived_.set_value();
    open_.get_future().wait();
  }
  void await() { arrived_.get_future().wait(); }
  void open() { open_.set_value(); }

 private:
  bool came_ = false;
  std::promise<void> arrived_, open_;
};

/// Every use of the device is watched: at the end all of them were under a hold, and nothing is left.
class HotKernelTest : public ::testing::Test {
 protected:
  HotKernelTest() {
    before_ = set_log_sink([this](LogLevel, std::string_view text) { warned_ += std::string(text) + "\n"; },
                           LogLevel::warning);
    stage_.sim.timing.gain = {{"u2", 0.03}};
    options_.kernel.folder = "/cache";
    options_.kernel.files = &files_;
    options_.kernel.race_options.seed = 7;
    options_.kernel.context.acquire = [this] { watch_.taken(); };
    options_.kernel.context.release = [this] { watch_.left(); };
  }
  ~HotKernelTest() override {
    end();
    EXPECT_EQ(watch_.strays(), 0) << watch_.last_stray();
    if (device_) {
      EXPECT_EQ(device_->modules(), 0);
    }
    if (stage_.device) {
      EXPECT_EQ(stage_.device->memory().used_bytes, 0u);
    }
    set_log_sink(before_);
  }

  /// What the caller has on the device goes; and the hot kernel.
  void end() {
    if (hot_ && x_) {
      auto held = hot_->hold();
      EXPECT_TRUE(held);
      x_.reset();
      y_.reset();
      bound_.reset();
      EXPECT_EQ(lost_, !held->end());
    }
    hot_.reset();
  }
  HotKernel& start() {
    stage_.open();
    device_ = std::make_unique<race::testing::Watched>(*stage_.device, watch_);
    options_.kernel.context.clock = stage_.clock.get();
    auto made = HotKernel::make(*device_, options_);
    EXPECT_TRUE(made) << made.error().text();
    hot_ = *std::move(made);
    auto held = hot_->hold();
    x_ = device_->allocate(4 * kMostWords).value();
    y_ = device_->allocate(4 * kMostWords).value();
    EXPECT_TRUE(x_->fill(1, 0, 4 * kMostWords));
    EXPECT_TRUE(held->end());
    return *hot_;
  }
  std::shared_ptr<const program::Instance> program_of(std::int64_t n = 4096) {
    return std::make_shared<const program::Instance>(
        program::Instance::make(stage_.program, "host", {{"n", n}}, {}).value());
  }
  void submit(std::int64_t n = 4096) { ASSERT_TRUE(hot_->submit(program_of(n))); }
  void prepare(std::int64_t n = 4096) {
    submit(n);
    const Status ready = hot_->wait();
    ASSERT_TRUE(ready) << ready.error().text();
  }
  SwapReport swap(Take take = Take::winner) {
    auto report = hot_->swap(take);
    EXPECT_TRUE(report) << report.error().text();
    return report ? *report : SwapReport{};
  }
  std::string no_swap(Code code, Take take = Take::winner) {
    const auto report = hot_->swap(take);
    EXPECT_FALSE(report);
    if (report) return "";
    EXPECT_EQ(report.error().code(), code) << report.error().text();
    return report.error().text();
  }
  /// Binds a kernel in place of what was bound.
  void bind(const std::shared_ptr<const kernel::RacedKernel>& kernel) {
    auto held = hot_->hold();
    ASSERT_TRUE(held);
    auto bound = kernel->bind(kernel::Arguments().buffer("x", *x_).buffer("y", *y_));
    ASSERT_TRUE(bound) << bound.error().text();
    bound_.emplace(*std::move(bound));
    ASSERT_TRUE(held->end());
  }
  /// One launch of what is bound, whose output must be right.
  void work(std::int64_t n = 4096) {
    const Status called = hot_->call(*bound_);
    ASSERT_TRUE(called) << called.error().text();
    auto held = hot_->hold();
    ASSERT_TRUE(held);
    Bytes y(static_cast<std::size_t>(4 * n));
    ASSERT_TRUE(y_->read(0, y));
    ASSERT_TRUE(y_->fill(0, 0, 4 * kMostWords));
    ASSERT_TRUE(held->end());
    for (Word i = 0; i < n; ++i) ASSERT_EQ(load_le<Word>(y.data() + 4 * i), 0x03030303u + i) << i;
  }
  /// Has the next race wait in its heats, where the device is not held.
  void stop_in_heats(Gate& gate) {
    options_.kernel.context.progress = [&gate](const race::Progress& progress) {
      if (progress.phase == race::Phase::heats) gate.come();
    };
  }

  FakeFiles files_;
  Stage stage_;
  race::testing::Watch watch_;
  HotOptions options_;
  std::string warned_;
  std::unique_ptr<race::testing::Watched> device_;
  std::unique_ptr<HotKernel> hot_;
  std::unique_ptr<device::Buffer> x_, y_;
  std::optional<kernel::Bound> bound_;
  bool lost_ = false;

 private:
  LogSink before_;
};

TEST_F(HotKernelTest, PreparesTheNextWhileTheCurrentOneWorks) {
  HotKernel& hot = start();
  EXPECT_EQ(hot.state().stage, State::Stage::idle);
  EXPECT_EQ(hot.current(), nullptr);
  prepare();
  State state = hot.state();
  EXPECT_EQ(stage_name(state.stage), "ready");
  EXPECT_EQ(state.submission, 1u);
  EXPECT_EQ(state.program, "mix");
  EXPECT_EQ(state.variant, "u2");
  EXPECT_EQ(state.current_submission, 0u);
  EXPECT_EQ(hot.current(), nullptr) << "ready is not current";
  bind(hot.next());
  SwapReport report = swap();
  EXPECT_EQ(report.submission, 1u);
  EXPECT_EQ(report.variant, "u2");
  EXPECT_EQ(report.previous, "");
  EXPECT_THAT(report.why, HasSubstr("u2 beats base by"));
  EXPECT_FALSE(report.early);
  EXPECT_GT(report.pause.holds, 10);
  EXPECT_EQ(hot.state().stage, State::Stage::idle);
  EXPECT_EQ(hot.state().current_variant, "u2");
  EXPECT_EQ(hot.next(), nullptr);
  work();

  submit(5000);
  while (hot.state().stage == State::Stage::preparing) work();
  ASSERT_EQ(hot.state().stage, State::Stage::ready);
  work();
  report = swap();
  EXPECT_EQ(report.submission, 2u);
  EXPECT_EQ(report.previous, "u2");
  bind(hot.current());
  work(5000);
  EXPECT_EQ(warned_, "");
}

TEST_F(HotKernelTest, NothingToSwap) {
  HotKernel& hot = start();
  EXPECT_THAT(no_swap(Code::invalid), HasSubstr("nothing to swap in: no program was submitted"));
  EXPECT_THAT(no_swap(Code::invalid, Take::best_so_far), HasSubstr("nothing to swap in"));
  EXPECT_EQ(hot.wait().error().code(), Code::invalid);
  const auto null = hot.submit(nullptr);
  ASSERT_FALSE(null);
  EXPECT_EQ(null.error().code(), Code::invalid);
  EXPECT_EQ(hot.state().submission, 0u);
  prepare();
  swap();
  EXPECT_THAT(no_swap(Code::invalid), HasSubstr("no program was submitted since the last swap"));
}

TEST_F(HotKernelTest, RefusesWhatWouldWaitForItself) {
  HotKernel& hot = start();
  submit();
  auto held = hot.hold();
  ASSERT_TRUE(held);
  EXPECT_EQ(hot.hold().error().code(), Code::invalid);
  EXPECT_EQ(hot.wait().error().code(), Code::invalid);
  EXPECT_TRUE(held->end());
  EXPECT_TRUE(held->end()) << "the second end does nothing";
  EXPECT_TRUE(hot.wait());
  for (const double wrong : {-1.0, std::numeric_limits<double>::quiet_NaN(), HUGE_VAL}) {
    EXPECT_EQ(HotKernel::make(*device_, {.kernel = {}, .max_pause_ms = wrong}).error().code(), Code::invalid);
    EXPECT_EQ(HotKernel::make(*device_, {.kernel = {}, .horizon_s = wrong}).error().code(), Code::invalid);
  }
}

TEST_F(HotKernelTest, AProgramThatDoesNotCompileLeavesTheCurrentOne) {
  std::atomic<bool> broken{false};
  stage_.sim.compiler = [&](const device::CompileRequest&) -> Status {
    return broken ? Status(fail(Code::invalid, "mix.cpp:1: no such thing")) : Status();
  };
  HotKernel& hot = start();
  prepare();
  bind(hot.next());
  swap();
  broken = true;
  submit(5000);
  const Status failed = hot.wait();
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code(), Code::invalid);
  const State state = hot.state();
  EXPECT_EQ(state.stage, State::Stage::failed);
  EXPECT_THAT(state.error->text(), HasSubstr("mix.cpp:1"));
  EXPECT_EQ(state.current_submission, 1u);
  EXPECT_THAT(no_swap(Code::unavailable),
              HasSubstr("'mix' (submission 2) failed, and what was current stays"));
  no_swap(Code::unavailable, Take::best_so_far);
  work();
  broken = false;
  prepare(5000);
  EXPECT_EQ(swap().submission, 3u);
  bind(hot.current());
  work(5000);
}

TEST_F(HotKernelTest, WhatFailsItsGate) {
  const auto wrong = [](const Call& call) { call.y[call.n / 2] ^= 1 + static_cast<Word>(call.launch); };
  std::atomic<bool> base_too{false};
  for (const char* name : {"u2", "u4"}) stage_.tamper[name] = wrong;
  stage_.tamper["base"] = [&](const Call& call) {
    if (base_too) wrong(call);
  };
  options_.kernel.variants = "base,u2,u4";
  HotKernel& hot = start();
  prepare();
  bind(hot.next());
  EXPECT_EQ(swap().variant, "base");
  base_too = true;
  submit(5000);
  const Status failed = hot.wait();
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code(), Code::mismatch);
  base_too = false;
  work();
}

TEST_F(HotKernelTest, ADeviceThatIsLostInTheRace) {
  stage_.sim.faults = {{"u4", device::SimFault::device_lost, 1}};
  options_.kernel.variants = "base,u2";
  HotKernel& hot = start();
  prepare();
  bind(hot.next());
  swap();
  work();
  // Another hot kernel on the same device, through the same hooks.
  HotOptions others = options_;
  others.kernel.variants = "base,u4";
  DeviceLock lock(*stage_.clock);
  hot_.reset();
  others.lock = &lock;
  hot_ = HotKernel::make(*device_, others).value();
  submit();
  const Status failed = hot_->wait();
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code(), Code::unavailable);
  EXPECT_EQ(hot_->state().stage, State::Stage::failed);
  EXPECT_EQ(hot_->call(*bound_).error().code(), Code::unavailable);
  submit();
  EXPECT_EQ(hot_->wait().error().code(), Code::unavailable);
  lost_ = true;
  end();
}

TEST_F(HotKernelTest, AFurtherSubmissionTakesThePlaceOfTheOneThatRuns) {
  Gate gate;
  stop_in_heats(gate);
  HotKernel& hot = start();
  submit(4096);
  gate.await();
  submit(5000);
  submit(6000);
  EXPECT_EQ(hot.state().submission, 3u);
  EXPECT_THAT(
      no_swap(Code::unavailable, Take::best_so_far),
      HasSubstr("(submission 3) is not ready: it waits for its turn, and its base is not ready either"));
  gate.open();
  ASSERT_TRUE(hot.wait());
  EXPECT_EQ(stage_.device->memory().used_bytes, 8 * kMostWords) << "buffers of a race were left";
  EXPECT_EQ(swap().submission, 3u);
  bind(hot.current());
  work(6000);
  // One that is ready, and was not taken, goes too.
  prepare(4096);
  submit(5000);
  ASSERT_TRUE(hot.wait());
  EXPECT_EQ(swap().submission, 5u);
  bind(hot.current());
  while (hot.state().retired > 0) std::this_thread::yield();
  EXPECT_EQ(device_->modules(), 1);
}

TEST_F(HotKernelTest, AKernelThatWasMadeTooLateIsGivenUp) {
  Gate gate;
  // The choice is written when the race is over: nothing is stopped any more.
  files_.fault = [&](std::string_view operation, const std::filesystem::path&) -> Status {
    if (operation == "write") gate.come();
    return {};
  };
  HotKernel& hot = start();
  submit(4096);
  gate.await();
  submit(5000);
  gate.open();
  ASSERT_TRUE(hot.wait());
  EXPECT_EQ(swap().submission, 2u);
  while (hot.state().retired > 0) std::this_thread::yield();
  EXPECT_EQ(device_->modules(), 1);
  bind(hot.current());
  work(5000);
}

TEST_F(HotKernelTest, GoesWhileItPrepares) {
  Gate gate;
  stop_in_heats(gate);
  start();
  submit();
  gate.await();
  std::jthread opens([&] { gate.open(); });
  end();
  EXPECT_EQ(warned_, "");
}

TEST_F(HotKernelTest, GoesBeforeItBegan) {
  start();
  submit(4096);
  submit(5000);
  end();
}

TEST_F(HotKernelTest, BaseMayServeUntilTheRaceIsOver) {
  Gate gate;
  stop_in_heats(gate);
  HotKernel& hot = start();
  submit();
  gate.await();
  State state = hot.state();
  EXPECT_TRUE(state.base_ready);
  EXPECT_EQ(state.progress.phase, race::Phase::heats);
  EXPECT_EQ(hot.next(), nullptr);
  EXPECT_THAT(no_swap(Code::unavailable),
              HasSubstr("in its heats (0 heats); its base is ready, for an early"));
  bind(hot.next(Take::best_so_far));
  SwapReport report = swap(Take::best_so_far);
  EXPECT_TRUE(report.early);
  EXPECT_EQ(report.variant, "base");
  EXPECT_EQ(hot.state().stage, State::Stage::preparing);
  EXPECT_FALSE(hot.state().base_ready);
  EXPECT_EQ(hot.state().current_submission, 1u);
  EXPECT_THAT(no_swap(Code::unavailable, Take::best_so_far), HasSubstr("its base is current already"));
  work();
  gate.open();
  ASSERT_TRUE(hot.wait());
  work();
  report = swap(Take::best_so_far);
  EXPECT_FALSE(report.early);
  EXPECT_FALSE(report.same_kernel);
  EXPECT_EQ(report.variant, "u2");
  EXPECT_EQ(report.previous, "base");
  bind(hot.current());
  work();
}

TEST_F(HotKernelTest, WhatWasBoundAheadIsWhatIsSwappedIn) {
  Gate gate;
  stop_in_heats(gate);
  HotKernel& hot = start();
  EXPECT_EQ(hot.swap(nullptr).error().code(), Code::invalid);
  submit();
  gate.await();
  auto base = hot.next(Take::best_so_far);
  bind(base);
  gate.open();
  ASSERT_TRUE(hot.wait());
  auto report = hot.swap(base);
  ASSERT_TRUE(report) << report.error().text();
  EXPECT_TRUE(report->early) << "the race is over, and base was taken all the same";
  EXPECT_EQ(report->variant, "base");
  work();
  EXPECT_EQ(hot.swap(base).error().code(), Code::unavailable);
  const auto winner = hot.next();
  report = hot.swap(winner);
  ASSERT_TRUE(report) << report.error().text();
  EXPECT_EQ(report->variant, "u2");
  EXPECT_EQ(hot.swap(winner).error().code(), Code::invalid) << "nothing is submitted";
  prepare(5000);
  const auto stale = hot.swap(base);
  ASSERT_FALSE(stale);
  EXPECT_THAT(stale.error().text(), HasSubstr("base that was bound is not of submission 2"));
  auto held = hot.hold();
  base.reset();
  ASSERT_TRUE(held->end());
}

TEST_F(HotKernelTest, BaseThatServesAndWinsIsTheSameKernel) {
  stage_.sim.timing.gain = {};
  options_.kernel.variants = "base,u2";
  Gate gate;
  stop_in_heats(gate);
  HotKernel& hot = start();
  submit();
  gate.await();
  bind(hot.next(Take::best_so_far));
  swap(Take::best_so_far);
  gate.open();
  ASSERT_TRUE(hot.wait());
  const SwapReport report = swap();
  EXPECT_TRUE(report.same_kernel);
  EXPECT_EQ(report.variant, "base");
  work();
}

TEST_F(HotKernelTest, WhatIsBoundToAnEarlierKernelStaysValid) {
  HotKernel& hot = start();
  prepare();
  swap();
  bind(hot.current());
  prepare(5000);
  swap();
  while (hot.state().retired > 0) std::this_thread::yield();
  EXPECT_EQ(device_->modules(), 2);
  work();
  bind(hot.current());
  EXPECT_EQ(device_->modules(), 1);
  work(5000);
}

TEST_F(HotKernelTest, TellsTheGap) {
  const auto pass_ms = [this](std::int64_t ms) { stage_.clock->advance_ns(ms * 1'000'000); };
  HotKernel& hot = start();
  prepare();
  bind(hot.next());
  pass_ms(3);
  SwapReport report = swap();
  ASSERT_TRUE(report.gap_ms);
  EXPECT_NEAR(*report.gap_ms, 3, 1e-6);
  EXPECT_NEAR(report.swap_ms, 0, 1e-6);
  prepare();
  auto held = hot.hold();
  EXPECT_EQ(held->kernel()->variant(), "u2");
  EXPECT_EQ(swap().gap_ms, 0);
  ASSERT_TRUE(held->end());
}

TEST_F(HotKernelTest, TellsThePauseAndKeepsItWithinTheCap) {
  HotKernel& hot = start();
  prepare();
  const Pause whole = hot.state().pause;
  EXPECT_GT(whole.held_ms, 100);
  EXPECT_GT(whole.longest_ms, 0);
  EXPECT_LT(whole.longest_ms, whole.held_ms);
  EXPECT_EQ(whole.waited_ms, 0) << "nobody worked meanwhile";
  swap();
  end();
  options_.max_pause_ms = whole.held_ms / 4;
  options_.kernel.use_kept = false;
  stage_.clock = std::make_shared<FakeClock>();
  start();
  prepare();
  EXPECT_LT(hot_->state().pause.held_ms, whole.held_ms / 2);
  EXPECT_THAT(hot_->next()->why(), HasSubstr("before the race had to end"));
}

TEST_F(HotKernelTest, TellsWhatTheCallerWaited) {
  Gate gate;
  stage_.tamper["u2"] = [&](const Call&) { gate.come(); };  // while the race holds the device
  DeviceLock lock(system_clock());
  options_.lock = &lock;
  HotKernel& hot = start();
  submit();
  gate.await();
  std::jthread opens([&] {
    while (!lock.wanted()) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    gate.open();
  });
  auto held = hot.hold();
  EXPECT_GT(held->waited_ms(), 1);
  EXPECT_EQ(hot.state().pause.waited_ms, held->waited_ms());
  EXPECT_TRUE(held->end());
  end();
}

TEST_F(HotKernelTest, WaitEndsWhenItIsAskedTo) {
  Gate gate;
  stop_in_heats(gate);
  HotKernel& hot = start();
  submit();
  gate.await();
  std::stop_source stop;
  stop.request_stop();
  EXPECT_EQ(hot.wait(stop.get_token()).error().code(), Code::timeout);
  gate.open();
  EXPECT_TRUE(hot.wait());
  EXPECT_TRUE(hot.wait(stop.get_token())) << "it is ready all the same";
}

TEST_F(HotKernelTest, ALaunchThatFailsIsTheCallersToKnow) {
  HotKernel& hot = start();
  prepare();
  bind(hot.next());
  swap();
  device_->finish_fails = true;
  EXPECT_EQ(hot.call(*bound_).error().code(), Code::internal);
  {
    auto held = hot.hold();
    ASSERT_TRUE(held);
    EXPECT_EQ(held->end().error().code(), Code::internal);
  }
  EXPECT_EQ(warned_, "");
  {
    const auto held = hot.hold();
    ASSERT_TRUE(held);
  }
  EXPECT_THAT(warned_, HasSubstr("a launch failed before its hold of the device ended: a launch failed"));
  device_->finish_fails = false;
  work();
}

TEST_F(HotKernelTest, SeveralThreads) {
  options_.kernel.variants = "base,u2";
  HotKernel& hot = start();
  prepare();
  swap();
  bind(hot.current());
  std::atomic<int> calls{0}, swaps{0};
  {
    std::jthread works([&](const std::stop_token& stop) {
      while (!stop.stop_requested()) {
        EXPECT_TRUE(hot.call(*bound_));
        ++calls;
      }
    });
    std::jthread swaps_too([&](const std::stop_token& stop) {
      while (!stop.stop_requested()) swaps += hot.swap(Take::best_so_far).has_value();
    });
    std::jthread submits([&] {
      for (int i = 0; i < 10; ++i) EXPECT_TRUE(hot.submit(program_of(4000 + i)));
    });
    for (int i = 0; i < 5; ++i) {
      ASSERT_TRUE(hot.submit(program_of(5000 + i)));
      const Status ready = hot.wait();
      EXPECT_TRUE(ready || ready.error().code() == Code::invalid) << ready.error().text();
      (void)hot.state();
    }
  }
  EXPECT_GT(calls, 0);
  EXPECT_GT(swaps, 0);
}

}  // namespace
}  // namespace furlong::worker
