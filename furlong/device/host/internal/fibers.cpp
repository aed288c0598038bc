#include "furlong/device/host/internal/fibers.h"

#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#if defined(__SANITIZE_ADDRESS__)
#define FURLONG_FIBER_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define FURLONG_FIBER_ASAN 1
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define FURLONG_FIBER_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define FURLONG_FIBER_TSAN 1
#endif
#endif
#ifdef FURLONG_FIBER_ASAN
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef FURLONG_FIBER_TSAN
#include <sanitizer/tsan_interface.h>
#endif

namespace furlong::device::host {
namespace {

constexpr std::size_t kStackBytes = 128 << 10;
constexpr unsigned kWarp = 32;

/// A stack with a guard page below it; pages come at first touch.
class Stack {
 public:
  Stack() = default;
  ~Stack() {
    if (mapping_ != nullptr) munmap(mapping_, whole());
  }
  Stack(Stack&& other) noexcept : mapping_(std::exchange(other.mapping_, nullptr)) {}
  Stack& operator=(Stack&&) = delete;

  bool make() {
    if (mapping_ != nullptr) return true;
    void* mapping = mmap(nullptr, whole(), PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (mapping == MAP_FAILED) return false;
    mapping_ = static_cast<std::uint8_t*>(mapping);
    // Each guard splits a mapping, and systems limit their number: without a guard it works all the same.
    (void)mprotect(mapping_, page(), PROT_NONE);
    return true;
  }
  std::uint8_t* bottom() const { return mapping_ + page(); }

 private:
  static std::size_t page() {
    static const auto bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    return bytes;
  }
  static std::size_t whole() { return kStackBytes + page(); }
  std::uint8_t* mapping_ = nullptr;
};

/// One side of a switch between the scheduler and a fiber, with what the sanitizers want to know.
struct Side {
  ucontext_t context{};
#ifdef FURLONG_FIBER_ASAN
  void* fake_stack = nullptr;
  const void* bottom = nullptr;
  std::size_t size = 0;
#endif
#ifdef FURLONG_FIBER_TSAN
  void* tsan = nullptr;
#endif
};

// Leaves `from` and goes on in `to`; returns when something goes back to `from`. `last`: it never will.
void switch_sides(Side& from, Side& to, bool last) {
#ifdef FURLONG_FIBER_ASAN
  __sanitizer_start_switch_fiber(last ? nullptr : &from.fake_stack, to.bottom, to.size);
#endif
#ifdef FURLONG_FIBER_TSAN
  __tsan_switch_to_fiber(to.tsan, 0);
#endif
  (void)last;
  swapcontext(&from.context, &to.context);
#ifdef FURLONG_FIBER_ASAN
  __sanitizer_finish_switch_fiber(from.fake_stack, nullptr, nullptr);
#endif
}

enum class FiberState { runnable, at_barrier, at_exchange, finished };

struct Fiber {
  Side side;
  Stack stack;
  FiberState state = FiberState::runnable;
  furlong_uint3 place{};
  unsigned mask = 0;             // of the exchange it waits at
  unsigned long long value = 0;  // what it brings there
  int predicate = 0;             // what it brings to a barrier
  unsigned counted = 0;          // what the barrier answered
  unsigned participants = 0;
  furlong_exchange answer{};
};

/// The fibers of one system thread, kept from block to block.
class BlockRunner {
 public:
  static BlockRunner& of_this_thread() {
    static thread_local BlockRunner runner;
    return runner;
  }
  ~BlockRunner() {
    for (const std::unique_ptr<Fiber>& fiber : fibers_) forget(*fiber);
  }

  int run(furlong_cuda_state* state, void (*body)(void*), void* argument);
  unsigned sync_block(int predicate, unsigned* participants);
  const furlong_exchange* exchange(unsigned mask, unsigned long long value);
  unsigned active_lanes() const;

 private:
  static void enter();
  static void forget(Fiber& fiber);
  bool prepare(unsigned count);
  void start(Fiber& fiber);
  void resume(unsigned index);
  void wait();  // the running fiber gives way
  void release_barrier_if_complete();
  void release_exchange_if_complete(unsigned warp);

  std::vector<std::unique_ptr<Fiber>> fibers_;
  unsigned count_ = 0;  // of this block
  unsigned alive_ = 0;
  unsigned at_barrier_ = 0;
  unsigned running_ = 0;
  bool threw_ = false;
  furlong_cuda_state* state_ = nullptr;
  void (*body_)(void*) = nullptr;
  void* argument_ = nullptr;
  Side scheduler_;
};

// The first frame of every fiber.
void BlockRunner::enter() {
  BlockRunner& runner = of_this_thread();
  Fiber& fiber = *runner.fibers_[runner.running_];
#ifdef FURLONG_FIBER_ASAN
  __sanitizer_finish_switch_fiber(nullptr, &runner.scheduler_.bottom, &runner.scheduler_.size);
#endif
  try {
    runner.body_(runner.argument_);
  } catch (...) {  // there is no frame above that could catch it
    runner.threw_ = true;
  }
  fiber.state = FiberState::finished;
  switch_sides(fiber.side, runner.scheduler_, true);
}

void BlockRunner::forget(Fiber& fiber) {
#ifdef FURLONG_FIBER_TSAN
  if (fiber.side.tsan != nullptr) __tsan_destroy_fiber(fiber.side.tsan);
  fiber.side.tsan = nullptr;
#endif
  (void)fiber;
}

bool BlockRunner::prepare(unsigned count) {
  while (fibers_.size() < count) fibers_.push_back(std::make_unique<Fiber>());
  for (unsigned i = 0; i < count; ++i) {
    if (!fibers_[i]->stack.make()) return false;
  }
  return true;
}

void BlockRunner::start(Fiber& fiber) {
  getcontext(&fiber.side.context);
  fiber.side.context.uc_stack.ss_sp = fiber.stack.bottom();
  fiber.side.context.uc_stack.ss_size = kStackBytes;
  fiber.side.context.uc_link = nullptr;
  makecontext(&fiber.side.context, &BlockRunner::enter, 0);
#ifdef FURLONG_FIBER_ASAN
  fiber.side.fake_stack = nullptr;
  fiber.side.bottom = fiber.stack.bottom();
  fiber.side.size = kStackBytes;
#endif
#ifdef FURLONG_FIBER_TSAN
  if (fiber.side.tsan == nullptr) fiber.side.tsan = __tsan_create_fiber(0);
#endif
  fiber.state = FiberState::runnable;
}

void BlockRunner::resume(unsigned index) {
  running_ = index;
  Fiber& fiber = *fibers_[index];
  state_->thread = fiber.place;
  switch_sides(scheduler_, fiber.side, false);
}

void BlockRunner::wait() { switch_sides(fibers_[running_]->side, scheduler_, false); }

int BlockRunner::run(furlong_cuda_state* state, void (*body)(void*), void* argument) {
  const furlong_uint3 sides = state->block_dim;
  count_ = sides.x * sides.y * sides.z;
  if (!prepare(count_)) return kShimNoMemory;
  state_ = state;
  body_ = body;
  argument_ = argument;
  alive_ = count_;
  at_barrier_ = 0;
  threw_ = false;
#ifdef FURLONG_FIBER_TSAN
  scheduler_.tsan = __tsan_get_current_fiber();
#endif
  for (unsigned i = 0; i < count_; ++i) {
    fibers_[i]->place = {i % sides.x, i / sides.x % sides.y, i / sides.x / sides.y};
    start(*fibers_[i]);
  }
  while (alive_ > 0) {
    bool progressed = false;
    for (unsigned i = 0; i < count_; ++i) {
      Fiber& fiber = *fibers_[i];
      if (fiber.state != FiberState::runnable) continue;
      progressed = true;
      resume(i);
      if (fiber.state == FiberState::finished) --alive_;
      if (fiber.state == FiberState::at_barrier) ++at_barrier_;
      release_barrier_if_complete();
      release_exchange_if_complete(i / kWarp);
    }
    if (progressed) continue;
    // The waiting fibers are abandoned; their stacks are used anew by the next block.
    for (unsigned i = 0; i < count_; ++i) forget(*fibers_[i]);
    return kShimDeadlock;
  }
  return threw_ ? kShimThrew : 0;
}

// Threads that have returned no longer count, as on a card.
void BlockRunner::release_barrier_if_complete() {
  if (at_barrier_ == 0 || at_barrier_ != alive_) return;
  unsigned counted = 0;
  for (unsigned i = 0; i < count_; ++i) {
    if (fibers_[i]->state == FiberState::at_barrier && fibers_[i]->predicate != 0) ++counted;
  }
  for (unsigned i = 0; i < count_; ++i) {
    Fiber& fiber = *fibers_[i];
    if (fiber.state != FiberState::at_barrier) continue;
    fiber.counted = counted;
    fiber.participants = at_barrier_;
    fiber.state = FiberState::runnable;
  }
  at_barrier_ = 0;
}

// Every group of lanes that wait with one mask goes on once no lane of the mask is still to come.
void BlockRunner::release_exchange_if_complete(unsigned warp) {
  const unsigned first = warp * kWarp;
  const unsigned lanes = std::min(kWarp, count_ - first);
  unsigned alive = 0;
  for (unsigned lane = 0; lane < lanes; ++lane) {
    if (fibers_[first + lane]->state != FiberState::finished) alive |= 1u << lane;
  }
  unsigned settled = 0;
  for (unsigned lane = 0; lane < lanes; ++lane) {
    if (fibers_[first + lane]->state != FiberState::at_exchange || (settled >> lane & 1) != 0) continue;
    const unsigned mask = fibers_[first + lane]->mask;
    furlong_exchange answer{};
    for (unsigned other = 0; other < lanes; ++other) {
      const Fiber& fiber = *fibers_[first + other];
      if (fiber.state != FiberState::at_exchange || fiber.mask != mask || (mask >> other & 1) == 0) continue;
      answer.lanes |= 1u << other;
      answer.values[other] = fiber.value;
    }
    settled |= answer.lanes;
    if (answer.lanes != (mask & alive)) continue;
    for (unsigned other = 0; other < lanes; ++other) {
      if ((answer.lanes >> other & 1) == 0) continue;
      fibers_[first + other]->answer = answer;
      fibers_[first + other]->state = FiberState::runnable;
    }
  }
}

unsigned BlockRunner::sync_block(int predicate, unsigned* participants) {
  Fiber& fiber = *fibers_[running_];
  fiber.predicate = predicate;
  fiber.state = FiberState::at_barrier;
  wait();
  if (participants != nullptr) *participants = fiber.participants;
  return fiber.counted;
}

const furlong_exchange* BlockRunner::exchange(unsigned mask, unsigned long long value) {
  Fiber& fiber = *fibers_[running_];
  fiber.mask = mask;
  fiber.value = value;
  fiber.state = FiberState::at_exchange;
  wait();
  return &fiber.answer;
}

unsigned BlockRunner::active_lanes() const {
  const unsigned first = running_ / kWarp * kWarp;
  unsigned lanes = 0;
  for (unsigned i = first; i < std::min(first + kWarp, count_); ++i) {
    if (fibers_[i]->state != FiberState::finished) lanes |= 1u << (i - first);
  }
  return lanes;
}

}  // namespace

const furlong_services& cuda_services() {
  static const furlong_services services{[](furlong_cuda_state* state, void (*body)(void*), void* argument) {
                                           return BlockRunner::of_this_thread().run(state, body, argument);
                                         },
                                         [](int predicate, unsigned* participants) {
                                           return BlockRunner::of_this_thread().sync_block(predicate,
                                                                                           participants);
                                         },
                                         [](unsigned mask, unsigned long long value) {
                                           return BlockRunner::of_this_thread().exchange(mask, value);
                                         },
                                         [] { return BlockRunner::of_this_thread().active_lanes(); }};
  return services;
}

}  // namespace furlong::device::host
