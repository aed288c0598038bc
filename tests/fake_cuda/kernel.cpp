// Kernels are the host shim's, run by the context's thread. An access that traps there is the card's illegal
// access: the thread stays in its signal handler for ever, and the context is lost.

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "furlong/device/host/internal/fibers.h"
#include "tests/fake_cuda/script.h"
#include "tests/fake_cuda/state.h"

namespace furlong::fake {
namespace {

using device::host::furlong_block;
using device::host::furlong_entry;

constexpr std::array kTraps{SIGSEGV, SIGBUS, SIGILL, SIGFPE};
constexpr std::size_t kSignalStack = 64 << 10;
constexpr std::uintptr_t kSharedAlignment = 64;

thread_local ContextTag* running = nullptr;  // the context whose kernel this thread runs
struct sigaction earlier[NSIG];

void on_trap(int signal, siginfo_t* info, void* where) {
  if (running != nullptr) {
    mark_lost(*running, signal == SIGSEGV || signal == SIGBUS ? kIllegalAddress : kLaunchFailed);
    for (;;) pause();
  }
  const struct sigaction& action = earlier[signal];
  if ((action.sa_flags & SA_SIGINFO) != 0 && action.sa_sigaction != nullptr) {
    action.sa_sigaction(signal, info, where);
  } else if (action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN) {
    action.sa_handler(signal);
  } else {
    sigaction(signal, &action, nullptr);  // and the instruction traps again
  }
}

void catch_traps() {
  static const bool done = [] {
    struct sigaction action{};
    action.sa_sigaction = &on_trap;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    for (const int signal : kTraps) sigaction(signal, &action, &earlier[signal]);
    return true;
  }();
  (void)done;
  static thread_local bool has_stack = false;
  if (has_stack) return;
  has_stack = true;
  // A sanitizer gives each thread one of its own, and takes down at the thread's end whatever stands there.
  stack_t stack{};
  if (sigaltstack(nullptr, &stack) == 0 && (stack.ss_flags & SS_DISABLE) == 0) return;
  stack = {};
  stack.ss_sp = std::malloc(kSignalStack);
  keep_for_ever(stack.ss_sp);
  stack.ss_size = kSignalStack;
  sigaltstack(&stack, nullptr);
}

struct Launched {
  std::shared_ptr<Code> code;
  const furlong_entry* entry = nullptr;
  std::string name;
  std::array<unsigned, 3> grid{}, block{};
  unsigned shared_bytes = 0;
  std::vector<std::vector<std::uint8_t>> values;
};

// A pointer that is not this context's memory (another context's, a freed one, the host's own) is no address
// on the card.
bool points_into_memory(const Launched& launched, ContextTag& context) {
  for (std::size_t i = 0; i < launched.values.size(); ++i) {
    if (launched.entry->parameters[i].is_pointer == 0) continue;
    Address address = 0;
    std::memcpy(&address, launched.values[i].data(), sizeof address);
    if (address == 0) continue;  // a kernel may be told to leave it alone
    const std::lock_guard lock(lists());
    if (!in_memory(context, address, 0) && !in_pinned(context, reinterpret_cast<void*>(address), 1))
      return false;
  }
  return true;
}

int run_blocks(const Launched& launched) {
  std::vector<std::uint8_t> scratch(launched.shared_bytes + kSharedAlignment);
  std::vector<void*> arguments;
  for (const auto& value : launched.values) arguments.push_back(const_cast<std::uint8_t*>(value.data()));
  furlong_block block{};
  block.grid_x = launched.grid[0];
  block.grid_y = launched.grid[1];
  block.grid_z = launched.grid[2];
  block.threads_x = launched.block[0];
  block.threads_y = launched.block[1];
  block.threads_z = launched.block[2];
  const auto at = reinterpret_cast<std::uintptr_t>(scratch.data());
  block.shared = scratch.data() + (kSharedAlignment - at % kSharedAlignment) % kSharedAlignment;
  block.shared_bytes = launched.shared_bytes;
  block.services = &device::host::cuda_services();
  for (block.z = 0; block.z < block.grid_z; ++block.z) {
    for (block.y = 0; block.y < block.grid_y; ++block.y) {
      for (block.x = 0; block.x < block.grid_x; ++block.x) {
        if (const int answer = launched.entry->run(block, arguments.data())) return answer;
      }
    }
  }
  return 0;
}

[[noreturn]] void hang() {
  for (;;) pause();
}

void run(const Launched& launched, ContextTag& context) {
  Script& script = Script::the();
  const std::string key = script.has("kernel." + launched.name) ? "kernel." + launched.name : "kernel.*";
  if (const auto what = script.happens(key, "kernel " + launched.name)) {
    if (*what == "hang") hang();
    lose(context, static_cast<Status32>(std::strtol(what->c_str(), nullptr, 10)));
    return;
  }
  if (!points_into_memory(launched, context)) return lose(context, kIllegalAddress);
  catch_traps();
  const std::int64_t start_ns = card_time_ns(context);
  running = &context;
  const int answer = run_blocks(launched);
  running = nullptr;
  // Threads at different barriers: a card hangs, or goes on with nonsense. Here it is told.
  if (answer != 0) return lose(context, kLaunchFailed);
  const std::string time_us = script.first_of({"time_us." + launched.name, "time_us.*"});
  if (time_us.empty()) return;
  const auto wanted_ns = static_cast<std::int64_t>(std::strtod(time_us.c_str(), nullptr) * 1000);
  context.clock_ahead_ns += start_ns + wanted_ns - card_time_ns(context);
}

int memory_file(const std::string& bytes) {
  const int file = memfd_create("furlong-fake-module", MFD_CLOEXEC);
  if (file < 0) return -1;
  for (std::size_t at = 0; at < bytes.size();) {
    const ssize_t written = write(file, bytes.data() + at, bytes.size() - at);
    if (written <= 0) {
      close(file);
      return -1;
    }
    at += static_cast<std::size_t>(written);
  }
  return file;
}

std::shared_ptr<Code> open_code(const std::string& object, std::size_t entries) {
  const int file = memory_file(object);
  if (file < 0) return nullptr;
  Result<Library> library = Library::open("/proc/self/fd/" + std::to_string(file));
  if (!library) {
    close(file);
    return nullptr;
  }
  auto code = std::make_shared<Code>(std::move(*library), file);
  code->table = static_cast<const furlong_entry*>(code->library.symbol("furlong_entries"));
  const auto* count = static_cast<const unsigned*>(code->library.symbol("furlong_entry_count"));
  return code->table != nullptr && count != nullptr && *count == entries ? code : nullptr;
}

}  // namespace

// The object goes first, its descriptor after (a member's destructor would come too late).
Code::~Code() {
  {
    const Library gone = std::move(library);
  }
  close(file);
}

Status32 load_code(const void* image, ContextTag& context, ModuleTag& into) {
  const std::optional<Image> read = Image::read(image);
  if (!read) return kInvalidImage;
  const std::string arch = "sm_" + std::to_string(attribute(context.card, kAttributeMajor)) +
                           std::to_string(attribute(context.card, kAttributeMinor));
  if (read->arch != arch && read->arch != arch + "a") return kNoBinaryForCard;
  if (read->toolkit_major > Script::the().number("driver", 13000) / 1000) return kInvalidImage;
  into.context = &context;
  into.code = open_code(read->object, read->entries.size());
  if (into.code == nullptr) return kInvalidImage;
  for (std::size_t i = 0; i < read->entries.size(); ++i) {
    auto function = std::make_unique<FunctionTag>();
    function->context = &context;
    function->code = into.code;
    function->entry = &into.code->table[i];
    function->facts = read->entries[i];
    into.functions.push_back(std::move(function));
  }
  return kSuccess;
}

// The table tells sizes; parameters are aligned to the largest power of two in theirs, as plain values are.
std::size_t parameter_offset(const furlong_entry& entry, std::size_t index) {
  std::size_t offset = 0;
  for (std::size_t i = 0;; ++i) {
    const std::size_t size = entry.parameters[i].size;
    const std::size_t alignment = std::min<std::size_t>(16, size & (~size + 1));
    offset = (offset + alignment - 1) / alignment * alignment;
    if (i == index) return offset;
    offset += size;
  }
}

Work kernel_work(const FunctionTag& function, std::array<unsigned, 3> grid, std::array<unsigned, 3> block,
                 unsigned shared_bytes, void** parameters) {
  Launched launched{function.code, function.entry, function.facts.name, grid, block, shared_bytes, {}};
  for (unsigned i = 0; i < function.entry->parameter_count; ++i) {
    const auto* value = static_cast<const std::uint8_t*>(parameters[i]);
    launched.values.emplace_back(value, value + function.entry->parameters[i].size);
  }
  return {[launched = std::move(launched)](ContextTag& context) { run(launched, context); }};
}

}  // namespace furlong::fake
