// The driver: copies, streams, events, launches, graphs.

#include <algorithm>
#include <cstring>

#include "tests/fake_cuda/export.h"
#include "tests/fake_cuda/script.h"

using namespace furlong::fake;
using furlong::fake::enter;

namespace {

bool is_event(ContextTag& context, Event event) {
  const std::lock_guard lock(lists());
  return context.events.contains(event);
}

bool on_card(ContextTag& context, Address address, std::size_t bytes) {
  const std::lock_guard lock(lists());
  return in_memory(context, address, bytes);
}

bool is_pinned(ContextTag& context, const void* at, std::size_t bytes) {
  const std::lock_guard lock(lists());
  return in_pinned(context, at, bytes);
}

// What a thread may not do while a stream of its own captures (and what spoils the capture).
Status32 not_while_capturing(StreamTag& stream) {
  if (stream.capture == nullptr) return kSuccess;
  stream.capture_broken = true;
  return kCaptureUnsupported;
}

Status32 check_launch(const FunctionTag& function, const std::array<unsigned, 3>& grid,
                      const std::array<unsigned, 3>& block, unsigned shared_bytes) {
  const int card = function.context->card;
  std::uint64_t threads = 1;
  for (int axis = 0; axis < 3; ++axis) {
    const auto i = static_cast<std::size_t>(axis);
    if (grid[i] == 0 || block[i] == 0) return kInvalidValue;
    if (grid[i] > static_cast<unsigned>(attribute(card, kAttributeMaxGridX + axis))) return kInvalidValue;
    if (block[i] > static_cast<unsigned>(attribute(card, kAttributeMaxBlockX + axis))) return kInvalidValue;
    threads *= block[i];
  }
  if (threads > static_cast<unsigned>(attribute(card, kAttributeMaxThreadsPerBlock))) return kInvalidValue;
  if (shared_bytes > function.dynamic_shared_allowed) return kInvalidValue;
  if (shared_bytes + function.facts.shared_bytes >
      static_cast<std::uint64_t>(attribute(card, kAttributeSharedPerBlockOptin)))
    return kInvalidValue;
  // Launch bounds are refused as a value, registers as resources.
  if (threads > static_cast<unsigned>(function.facts.max_threads)) return kInvalidValue;
  const std::uint64_t of_warp = (static_cast<std::uint64_t>(function.facts.registers) * 32 + 255) / 256 * 256;
  if ((threads + 31) / 32 * of_warp >
      static_cast<std::uint64_t>(attribute(card, kAttributeRegistersPerBlock)))
    return kOutOfResources;
  return kSuccess;
}

}  // namespace

// A pinned source is read when the copy runs, another one before the call returns.
FURLONG_FAKE(copy_to_card, cuMemcpyHtoDAsync_v2,
             (Address to, const void* from, std::size_t bytes, Stream stream)) {
  FURLONG_FAKE_CONTEXT("cuMemcpyHtoDAsync");
  StreamTag* into = stream_of(*context, stream);
  if (into == nullptr) return kInvalidHandle;
  if (bytes == 0) return kSuccess;
  if (from == nullptr || !on_card(*context, to, bytes)) return kInvalidValue;
  auto* target = reinterpret_cast<void*>(to);
  if (is_pinned(*context, from, bytes)) {
    return enqueue(*context, *into, {[=](ContextTag&) { std::memcpy(target, from, bytes); }});
  }
  const auto* start = static_cast<const std::uint8_t*>(from);
  auto staged = std::make_shared<std::vector<std::uint8_t>>(start, start + bytes);
  return enqueue(*context, *into, {[=](ContextTag&) { std::memcpy(target, staged->data(), bytes); }});
}

// A pinned target is written when the copy runs, another one before the call returns.
FURLONG_FAKE(copy_to_host, cuMemcpyDtoHAsync_v2, (void* to, Address from, std::size_t bytes, Stream stream)) {
  FURLONG_FAKE_CONTEXT("cuMemcpyDtoHAsync");
  StreamTag* into = stream_of(*context, stream);
  if (into == nullptr) return kInvalidHandle;
  if (bytes == 0) return kSuccess;
  if (to == nullptr || !on_card(*context, from, bytes)) return kInvalidValue;
  const auto* source = reinterpret_cast<const void*>(from);
  const bool pinned = is_pinned(*context, to, bytes);
  if (!pinned) {
    if (const Status32 code = not_while_capturing(*into); code != kSuccess) return code;
  }
  if (pinned) return enqueue(*context, *into, {[=](ContextTag&) { std::memcpy(to, source, bytes); }});
  // The caller leaves when the context is lost, and its memory may be gone before the copy runs.
  auto staged = std::make_shared<std::vector<std::uint8_t>>(bytes);
  Status32 code =
      enqueue(*context, *into, {[=](ContextTag&) { std::memcpy(staged->data(), source, bytes); }});
  if (code == kSuccess) code = wait_for(*context, into->last);
  if (code == kSuccess) std::memcpy(to, staged->data(), bytes);
  return code;
}

FURLONG_FAKE(fill_bytes, cuMemsetD8Async,
             (Address to, unsigned char byte, std::size_t bytes, Stream stream)) {
  FURLONG_FAKE_CONTEXT("cuMemsetD8Async");
  StreamTag* into = stream_of(*context, stream);
  if (into == nullptr) return kInvalidHandle;
  if (bytes == 0) return kSuccess;
  if (!on_card(*context, to, bytes)) return kInvalidValue;
  auto* target = reinterpret_cast<void*>(to);
  return enqueue(*context, *into, {[=](ContextTag&) { std::memset(target, byte, bytes); }});
}

FURLONG_FAKE(launch, cuLaunchKernel,
             (Function function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
              unsigned block_y, unsigned block_z, unsigned shared_bytes, Stream stream, void** parameters,
              void** extra)) {
  FURLONG_FAKE_CONTEXT("cuLaunchKernel");
  StreamTag* into = stream_of(*context, stream);
  if (into == nullptr || function == nullptr) return kInvalidHandle;
  {
    const std::lock_guard lock(lists());
    const bool known =
        std::any_of(context->modules.begin(), context->modules.end(), [&](const ModuleTag* module) {
          return std::any_of(module->functions.begin(), module->functions.end(),
                             [&](const auto& one) { return one.get() == function; });
        });
    if (!known) return kInvalidHandle;
  }
  const std::array<unsigned, 3> grid{grid_x, grid_y, grid_z}, block{block_x, block_y, block_z};
  if (const Status32 code = check_launch(*function, grid, block, shared_bytes); code != kSuccess) return code;
  if (extra != nullptr) return kInvalidValue;  // real, and not made up here
  if (parameters == nullptr && function->entry->parameter_count != 0) return kInvalidValue;
  return enqueue(*context, *into, kernel_work(*function, grid, block, shared_bytes, parameters));
}

FURLONG_FAKE(create_stream, cuStreamCreate, (Stream * out, unsigned flags)) {
  FURLONG_FAKE_CONTEXT("cuStreamCreate");
  if (out == nullptr || flags > 1) return kInvalidValue;
  *out = new StreamTag;
  (*out)->context = context;
  const std::lock_guard lock(lists());
  context->streams.insert(*out);
  return kSuccess;
}

// What is still in it goes on.
FURLONG_FAKE(destroy_stream, cuStreamDestroy_v2, (Stream stream)) {
  FURLONG_FAKE_CONTEXT("cuStreamDestroy");
  const std::lock_guard lock(lists());
  if (context->streams.erase(stream) == 0) return kInvalidHandle;
  delete stream->capture;
  delete stream;
  return kSuccess;
}

FURLONG_FAKE(wait_stream, cuStreamSynchronize, (Stream stream)) {
  FURLONG_FAKE_CONTEXT("cuStreamSynchronize");
  StreamTag* one = stream_of(*context, stream);
  if (one == nullptr) return kInvalidHandle;
  if (const Status32 code = not_while_capturing(*one); code != kSuccess) return code;
  // The null stream waits for those that were not made non-blocking; to wait for all is not less.
  return wait_for(*context, stream == nullptr ? context->issued : one->last);
}

FURLONG_FAKE(create_event, cuEventCreate, (Event * out, unsigned flags)) {
  FURLONG_FAKE_CONTEXT("cuEventCreate");
  if (out == nullptr || flags > 7) return kInvalidValue;
  *out = new EventTag;
  (*out)->context = context;
  const std::lock_guard lock(lists());
  context->events.insert(*out);
  return kSuccess;
}

// A recording that is under way writes to it, so it stays until the card is done.
FURLONG_FAKE(destroy_event, cuEventDestroy_v2, (Event event)) {
  FURLONG_FAKE_CONTEXT("cuEventDestroy");
  {
    const std::lock_guard lock(lists());
    if (context->events.erase(event) == 0) return kInvalidHandle;
  }
  (void)wait_for(*context, event->work);
  if (context->sticky == kSuccess) {
    delete event;
  } else {
    keep_for_ever(event);
  }
  return kSuccess;
}

FURLONG_FAKE(record_event, cuEventRecord, (Event event, Stream stream)) {
  FURLONG_FAKE_CONTEXT("cuEventRecord");
  StreamTag* into = stream_of(*context, stream);
  if (into == nullptr || !is_event(*context, event)) return kInvalidHandle;
  event->captured = into->capture != nullptr;
  if (event->captured) return into->capture_broken ? kCaptureInvalidated : kSuccess;  // only an order
  const Status32 code =
      enqueue(*context, *into, {[event](ContextTag& done) { event->time_ns = card_time_ns(done); }});
  event->work = into->last;
  return code;
}

FURLONG_FAKE(wait_event, cuEventSynchronize, (Event event)) {
  FURLONG_FAKE_CONTEXT("cuEventSynchronize");
  if (!is_event(*context, event)) return kInvalidHandle;
  if (event->captured) return kCaptureUnsupported;
  return wait_for(*context, event->work);
}

FURLONG_FAKE(elapsed_ms, cuEventElapsedTime_v2, (float* ms, Event start, Event end)) {
  FURLONG_FAKE_CONTEXT("cuEventElapsedTime");
  if (ms == nullptr) return kInvalidValue;
  if (!is_event(*context, start) || !is_event(*context, end)) return kInvalidHandle;
  if (start->work == 0 || end->work == 0 || start->captured || end->captured) return kInvalidHandle;
  {
    const std::lock_guard lock(context->mutex);
    if (context->finished < start->work || context->finished < end->work) return kNotReady;
  }
  // Half a microsecond is what events resolve.
  const double ns = static_cast<double>(end->time_ns - start->time_ns);
  *ms = static_cast<float>(static_cast<double>(static_cast<std::int64_t>(ns / 32)) * 32 * 1e-6);
  return kSuccess;
}

FURLONG_FAKE(begin_capture, cuStreamBeginCapture_v2, (Stream stream, int mode)) {
  FURLONG_FAKE_CONTEXT("cuStreamBeginCapture");
  if (stream == nullptr) return kCaptureUnsupported;  // the null stream cannot
  StreamTag* one = stream_of(*context, stream);
  if (one == nullptr) return kInvalidHandle;
  if (mode < 0 || mode > 2) return kInvalidValue;
  if (one->capture != nullptr) return kIllegalState;
  one->capture = new GraphTag;
  one->capture->context = context;
  one->capture_broken = false;
  if (mode != 2) capturing() = one;  // relaxed mode forbids nothing
  return kSuccess;
}

FURLONG_FAKE(end_capture, cuStreamEndCapture, (Stream stream, Graph* out)) {
  FURLONG_FAKE_CONTEXT("cuStreamEndCapture");
  StreamTag* one = stream_of(*context, stream);
  if (one == nullptr) return kInvalidHandle;
  if (out == nullptr) return kInvalidValue;
  if (one->capture == nullptr) return kIllegalState;
  GraphTag* graph = one->capture;
  one->capture = nullptr;
  if (capturing() == one) capturing() = nullptr;
  *out = nullptr;
  if (one->capture_broken) {
    delete graph;
    return kCaptureInvalidated;
  }
  const std::lock_guard lock(lists());
  context->graphs.insert(graph);
  *out = graph;
  return kSuccess;
}

FURLONG_FAKE(instantiate, cuGraphInstantiateWithFlags, (GraphExec * out, Graph graph, unsigned long long)) {
  FURLONG_FAKE_CONTEXT("cuGraphInstantiate");
  if (out == nullptr) return kInvalidValue;
  const std::lock_guard lock(lists());
  if (!context->graphs.contains(graph)) return kInvalidValue;
  *out = new GraphExecTag{context, graph->works};
  context->graph_execs.insert(*out);
  return kSuccess;
}

FURLONG_FAKE(launch_graph, cuGraphLaunch, (GraphExec graph, Stream stream)) {
  FURLONG_FAKE_CONTEXT("cuGraphLaunch");
  StreamTag* into = stream_of(*context, stream);
  if (into == nullptr) return kInvalidHandle;
  std::vector<Work> works;
  {
    const std::lock_guard lock(lists());
    if (!context->graph_execs.contains(graph)) return kInvalidValue;
    works = graph->works;
  }
  return enqueue(*context, *into, {[works = std::move(works)](ContextTag& running) {
    for (const Work& work : works) {
      if (running.sticky == kSuccess) work.run(running);
    }
  }});
}

FURLONG_FAKE(destroy_graph, cuGraphDestroy, (Graph graph)) {
  FURLONG_FAKE_CONTEXT("cuGraphDestroy");
  const std::lock_guard lock(lists());
  if (context->graphs.erase(graph) == 0) return kInvalidValue;
  delete graph;
  return kSuccess;
}

FURLONG_FAKE(destroy_graph_exec, cuGraphExecDestroy, (GraphExec graph)) {
  FURLONG_FAKE_CONTEXT("cuGraphExecDestroy");
  const std::lock_guard lock(lists());
  if (context->graph_execs.erase(graph) == 0) return kInvalidValue;
  delete graph;
  return kSuccess;
}
