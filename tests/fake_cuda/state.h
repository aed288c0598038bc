#pragma once
// The made-up driver's contexts and what lives in them. The rules are those of NVIDIA's documentation of the
// driver API; probe.cpp compares them with a real driver where there is a card.

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "furlong/base/os/library.h"
#include "furlong/device/cuda/internal/driver_api.h"
#include "furlong/device/host/internal/abi.h"
#include "tests/fake_cuda/image.h"

namespace furlong::fake {

using namespace device::cuda;

// Codes that the back end has no name for.
inline constexpr Status32 kNotReady = 600;
inline constexpr Status32 kCaptureUnsupported = 900;
inline constexpr Status32 kCaptureInvalidated = 901;
inline constexpr Status32 kIllegalState = 401;

/// A loaded shared object; kernels that still run keep it.
struct Code {
  Library library;
  const device::host::furlong_entry* table = nullptr;
  int file = -1;  ///< kept open: the loader knows objects by their name, which is that of this descriptor
  Code(Library taken, int descriptor) : library(std::move(taken)), file(descriptor) {}
  ~Code();
};

}  // namespace furlong::fake

namespace furlong::device::cuda {

struct FunctionTag {
  ContextTag* context = nullptr;
  std::shared_ptr<fake::Code> code;
  const host::furlong_entry* entry = nullptr;
  fake::ImageEntry facts;
  std::uint64_t dynamic_shared_allowed = 48 << 10;
};

struct ModuleTag {
  ContextTag* context = nullptr;
  std::shared_ptr<fake::Code> code;
  std::vector<std::unique_ptr<FunctionTag>> functions;
};

/// Something for the card to do, in order.
struct Work {
  std::function<void(ContextTag&)> run;
};

struct GraphTag {
  ContextTag* context = nullptr;
  std::vector<Work> works;
};
struct GraphExecTag {
  ContextTag* context = nullptr;
  std::vector<Work> works;
};

struct StreamTag {
  ContextTag* context = nullptr;
  std::uint64_t last = 0;  ///< number of the newest work in it
  GraphTag* capture = nullptr;
  bool capture_broken = false;
};

struct EventTag {
  ContextTag* context = nullptr;
  std::uint64_t work = 0;  ///< 0: never recorded
  std::atomic<std::int64_t> time_ns{0};
  bool captured = false;
};

struct ContextTag {
  int card = 0;
  int exclusive_lock = -1;
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Work> queue;
  std::uint64_t issued = 0, finished = 0;
  bool closing = false, closed = false;
  std::atomic<Status32> sticky{0};  ///< what every call in it answers from now on
  std::int64_t clock_ahead_ns = 0;  ///< of the card's clock, by scripted times; the worker's alone
  StreamTag null_stream;
  std::set<ModuleTag*> modules;
  std::set<StreamTag*> streams;
  std::set<EventTag*> events;
  std::set<GraphTag*> graphs;
  std::set<GraphExecTag*> graph_execs;
  std::map<Address, std::size_t> memory;
  std::map<std::uintptr_t, std::size_t> pinned;
  std::uint64_t used = 0;
};

}  // namespace furlong::device::cuda

namespace furlong::fake {

/// One lock over every context's lists, never held while a kernel runs or a thread waits.
std::mutex& lists();
std::set<ContextTag*>& contexts();
ContextTag*& current();  // of this thread
bool& started();
StreamTag*& capturing();  // the stream that this thread captures, unless in relaxed mode
/// 900 for what waits for the card or may: it also spoils the capture.
Status32 refuse_while_capturing();

/// Counts the call; what the script has for it. 3 before cuInit.
Status32 enter(const char* symbol);
/// The same, and the thread's context: 201 without one, 709 when it is gone. Once a context of this process
/// is lost its code comes first.
Status32 enter(const char* symbol, ContextTag*& context);
/// The code of the first context of this process that was lost. As with a real driver nothing ends it, not
/// even destroying that context: only the script of a test that plays several processes.
std::atomic<Status32>& lost_for_good();
/// What a signal handler may do of lose().
void mark_lost(ContextTag& context, Status32 code);
void lose(ContextTag& context, Status32 code);
/// For what a thread that never ends may still use.
void keep_for_ever(const void* what);

// Memory (memory.cpp). A guard of unreadable pages lies on either side of each allocation.
Status32 map_memory(ContextTag& context, std::size_t bytes, Address* out);
bool unmap_memory(ContextTag& context, Address address);
bool in_memory(ContextTag& context, Address address, std::size_t bytes);
bool in_pinned(ContextTag& context, const void* at, std::size_t bytes);
std::uint64_t card_bytes(int card);
std::uint64_t free_bytes(int card);

// Work (work.cpp).
void start_worker(ContextTag& context);
/// Into the stream, or its graph while it captures.
Status32 enqueue(ContextTag& context, StreamTag& stream, Work work);
/// Until work number `number` is done or the context is lost; the context's code.
Status32 wait_for(ContextTag& context, std::uint64_t number);
std::int64_t card_time_ns(const ContextTag& context);
/// Nothing: it is unknown, or of another context.
StreamTag* stream_of(ContextTag& context, Stream stream);

// Kernels (kernel.cpp).
Status32 load_code(const void* image, ContextTag& context, ModuleTag& into);
/// What a launch will do, with its arguments copied.
Work kernel_work(const FunctionTag& function, std::array<unsigned, 3> grid, std::array<unsigned, 3> block,
                 unsigned shared_bytes, void** parameters);
std::size_t parameter_offset(const device::host::furlong_entry& entry, std::size_t index);

// The made-up card (card.cpp).
int card_count();
int attribute(int card, int which);
bool known_attribute(int which);

}  // namespace furlong::fake
