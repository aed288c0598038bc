// Streams of one context are one queue with one thread: an order that a card may choose too.

#include <pthread.h>
#include <signal.h>

#include <chrono>
#include <thread>

#include "tests/fake_cuda/state.h"

namespace furlong::fake {
namespace {

using namespace std::chrono_literals;

std::int64_t steady_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

void serve(ContextTag& context) {
  std::unique_lock lock(context.mutex);
  for (;;) {
    context.changed.wait(lock, [&] { return context.closing || !context.queue.empty(); });
    if (context.queue.empty() || context.sticky != kSuccess) {
      // What a lost context still holds is never run.
      context.queue.clear();
      context.finished = context.issued;
      context.changed.notify_all();
      if (!context.closing) continue;
      context.closed = true;
      context.changed.notify_all();
      return;
    }
    const Work work = std::move(context.queue.front());
    context.queue.pop_front();
    lock.unlock();
    work.run(context);  // does not come back from an illegal access
    lock.lock();
    ++context.finished;
    context.changed.notify_all();
  }
}

}  // namespace

std::int64_t card_time_ns(const ContextTag& context) { return steady_ns() + context.clock_ahead_ns; }

void start_worker(ContextTag& context) {
  std::thread([&context] { serve(context); }).detach();
}

StreamTag* stream_of(ContextTag& context, Stream stream) {
  if (stream == nullptr) return &context.null_stream;
  const std::lock_guard lock(lists());
  return context.streams.contains(stream) ? stream : nullptr;
}

Status32 enqueue(ContextTag& context, StreamTag& stream, Work work) {
  if (stream.capture != nullptr) {
    if (stream.capture_broken) return kCaptureInvalidated;
    stream.capture->works.push_back(std::move(work));
    return kSuccess;
  }
  const std::lock_guard lock(context.mutex);
  context.queue.push_back(std::move(work));
  stream.last = ++context.issued;
  context.changed.notify_all();
  return kSuccess;
}

Status32 wait_for(ContextTag& context, std::uint64_t number) {
  std::unique_lock lock(context.mutex);
  // A thread that died in a kernel cannot notify from its signal handler: look again.
  while (context.finished < number && context.sticky == kSuccess) context.changed.wait_for(lock, 2ms);
  return context.sticky;
}

}  // namespace furlong::fake
