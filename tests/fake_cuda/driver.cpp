// The driver: cards, contexts, memory, modules. Streams, events, launches and graphs: driver_work.cpp.

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tests/fake_cuda/export.h"
#include "tests/fake_cuda/script.h"

using namespace furlong::fake;
using furlong::fake::enter;

namespace {

bool is_card(Card card) { return card >= 0 && card < card_count(); }

std::string of_card(Card card, const std::string& key, std::string_view fallback) {
  return Script::the().first_of({std::to_string(card) + "." + key, key}, fallback);
}

// A card in exclusive mode is one process's: the lock is between processes, and goes with its owner.
Status32 take_exclusively(ContextTag& context) {
  const int mode = attribute(context.card, kAttributeComputeMode);
  if (mode == kComputeModeProhibited) return kDeviceUnavailable;
  if (mode != kComputeModeExclusive) return kSuccess;
  for (const ContextTag* other : contexts()) {
    if (other->card == context.card) return kSuccess;  // this process has it already
  }
  const char* folder = std::getenv("TMPDIR");
  const std::string path = of_card(context.card, "exclusive_lock",
                                   std::string(folder == nullptr ? "/tmp" : folder) + "/furlong-fake-card-" +
                                       std::to_string(getuid()) + "-" + std::to_string(context.card));
  context.exclusive_lock = open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
  if (context.exclusive_lock < 0) return kDeviceUnavailable;
  if (flock(context.exclusive_lock, LOCK_EX | LOCK_NB) == 0) return kSuccess;
  close(context.exclusive_lock);
  context.exclusive_lock = -1;
  return kDeviceUnavailable;
}

// Another context of this process on the card keeps the lock.
void give_back(ContextTag& context) {
  if (context.exclusive_lock < 0) return;
  for (ContextTag* other : contexts()) {
    if (other == &context || other->card != context.card) continue;
    other->exclusive_lock = context.exclusive_lock;
    context.exclusive_lock = -1;
    return;
  }
  close(context.exclusive_lock);
}

Status32 of_module(Function function) {
  for (const ContextTag* context : contexts()) {
    for (const ModuleTag* module : context->modules) {
      for (const auto& one : module->functions) {
        if (one.get() == function) return kSuccess;
      }
    }
  }
  return kInvalidHandle;
}

int registers_of_block(const FunctionTag& function, int threads) {
  const int warps = (threads + 31) / 32;
  const int of_warp = (function.facts.registers * 32 + 255) / 256 * 256;
  return warps * of_warp;
}

int most_threads(const FunctionTag& function) {
  const int card = function.context->card;
  int threads = std::min(function.facts.max_threads, attribute(card, kAttributeMaxThreadsPerBlock));
  while (threads > 32 && registers_of_block(function, threads) > attribute(card, kAttributeRegistersPerBlock))
    threads = (threads - 1) / 32 * 32;
  return threads;
}

struct Name {
  Status32 code;
  const char *name, *text;
};
constexpr Name kNames[] = {
    {0, "CUDA_SUCCESS", "no error"},
    {1, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {2, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {3, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {4, "CUDA_ERROR_DEINITIALIZED", "driver shutting down"},
    {46, "CUDA_ERROR_DEVICE_UNAVAILABLE", "CUDA-capable device(s) is/are busy or unavailable"},
    {100, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {101, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {200, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
    {201, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {209, "CUDA_ERROR_NO_BINARY_FOR_GPU", "no kernel image is available for execution on the device"},
    {214, "CUDA_ERROR_ECC_UNCORRECTABLE", "uncorrectable ECC error encountered"},
    {218, "CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed"},
    {222, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
     "the provided PTX was compiled with an unsupported toolchain."},
    {400, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {401, "CUDA_ERROR_ILLEGAL_STATE", "the operation cannot be performed in the present state"},
    {500, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {600, "CUDA_ERROR_NOT_READY", "device not ready"},
    {700, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    {701, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "too many resources requested for launch"},
    {702, "CUDA_ERROR_LAUNCH_TIMEOUT", "the launch timed out and was terminated"},
    {709, "CUDA_ERROR_CONTEXT_IS_DESTROYED", "context is destroyed"},
    {710, "CUDA_ERROR_ASSERT", "device-side assert triggered"},
    {714, "CUDA_ERROR_HARDWARE_STACK_ERROR", "hardware stack error"},
    {715, "CUDA_ERROR_ILLEGAL_INSTRUCTION", "an illegal instruction was encountered"},
    {716, "CUDA_ERROR_MISALIGNED_ADDRESS", "misaligned address"},
    {717, "CUDA_ERROR_INVALID_ADDRESS_SPACE", "operation not supported on global/shared address space"},
    {718, "CUDA_ERROR_INVALID_PC", "invalid program counter"},
    {719, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    {800, "CUDA_ERROR_NOT_PERMITTED", "operation not permitted"},
    {801, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
    {802, "CUDA_ERROR_SYSTEM_NOT_READY", "system not yet initialized"},
    {803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH",
     "system has unsupported display driver / cuda driver combination"},
    {804, "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE",
     "forward compatibility was attempted on non supported HW"},
    {900, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", "operation not permitted when stream is capturing"},
    {901, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED", "operation failed due to a previous error during capture"},
    {999, "CUDA_ERROR_UNKNOWN", "unknown error"},
};

Status32 describe(Status32 code, const char** out, const char* Name::* which) {
  if (out == nullptr) return kInvalidValue;
  *out = nullptr;
  for (const Name& one : kNames) {
    if (one.code == code) *out = one.*which;
  }
  return *out == nullptr ? kInvalidValue : kSuccess;
}

}  // namespace

/// Not of the real driver: the script of a test that loads this library into its own process. What was
/// started and made stays; the next context is made as if in a process that has lost none.
extern "C" void furlong_fake_cuda_script(const char* text) {
  lost_for_good() = kSuccess;
  Script::the().set(text);
}

FURLONG_FAKE(init, cuInit, (unsigned flags)) {
  Status32 code = enter("cuInit");
  if (code == kNotInitialized) code = kSuccess;
  if (code == kSuccess && flags != 0) code = kInvalidValue;
  if (code == kSuccess) code = static_cast<Status32>(Script::the().number("init", 0));
  if (code == kSuccess && card_count() == 0) code = kNoDevice;
  if (code == kSuccess) started() = true;
  return code;
}

// Answers without cuInit too, also where that fails.
FURLONG_FAKE(driver_version, cuDriverGetVersion, (int* version)) {
  if (version == nullptr) return kInvalidValue;
  *version = static_cast<int>(Script::the().number("driver", 13000));
  return kSuccess;
}

FURLONG_FAKE(card_count, cuDeviceGetCount, (int* count)) {
  FURLONG_FAKE_ENTER("cuDeviceGetCount");
  if (count == nullptr) return kInvalidValue;
  *count = card_count();
  return kSuccess;
}

FURLONG_FAKE(card, cuDeviceGet, (Card * card, int index)) {
  FURLONG_FAKE_ENTER("cuDeviceGet");
  if (card == nullptr) return kInvalidValue;
  if (!is_card(index)) return kInvalidDevice;
  *card = index;
  return kSuccess;
}

FURLONG_FAKE(card_name, cuDeviceGetName, (char* name, int length, Card card)) {
  FURLONG_FAKE_ENTER("cuDeviceGetName");
  if (!is_card(card)) return kInvalidDevice;
  if (name == nullptr || length <= 0) return kInvalidValue;
  std::snprintf(name, static_cast<std::size_t>(length), "%s",
                of_card(card, "name", "Furlong Test Card").c_str());
  return kSuccess;
}

FURLONG_FAKE(card_attribute, cuDeviceGetAttribute, (int* value, int which, Card card)) {
  FURLONG_FAKE_ENTER("cuDeviceGetAttribute");
  if (!is_card(card)) return kInvalidDevice;
  if (value == nullptr || !known_attribute(which)) return kInvalidValue;
  *value = attribute(card, which);
  return kSuccess;
}

FURLONG_FAKE(card_memory, cuDeviceTotalMem_v2, (std::size_t* bytes, Card card)) {
  FURLONG_FAKE_ENTER("cuDeviceTotalMem");
  if (!is_card(card)) return kInvalidDevice;
  if (bytes == nullptr) return kInvalidValue;
  *bytes = card_bytes(card);
  return kSuccess;
}

FURLONG_FAKE(uuid, cuDeviceGetUuid_v2, (Uuid * uuid, Card card)) {
  FURLONG_FAKE_ENTER("cuDeviceGetUuid");
  if (!is_card(card)) return kInvalidDevice;
  if (uuid == nullptr) return kInvalidValue;
  for (int i = 0; i < 16; ++i) uuid->bytes[i] = static_cast<std::uint8_t>(0xf0 + i);
  uuid->bytes[15] = static_cast<std::uint8_t>(card);
  if (Script::the().text("nvml.mig") == "1") uuid->bytes[0] = 0xe0;  // the slice's, as NVML does not know it
  return kSuccess;
}

FURLONG_FAKE(create_context, cuCtxCreate_v2, (Context * out, unsigned flags, Card card)) {
  FURLONG_FAKE_ENTER("cuCtxCreate");
  if (out == nullptr || (flags & ~0x3fu) != 0) return kInvalidValue;
  if (!is_card(card)) return kInvalidDevice;
  if (const Status32 lost = lost_for_good(); lost != kSuccess) return lost;
  auto* context = new ContextTag;
  context->card = card;
  context->null_stream.context = context;
  {
    const std::lock_guard lock(lists());
    Status32 code = take_exclusively(*context);
    if (code == kSuccess && free_bytes(card) < Script::the().bytes("context_bytes", 64 << 20))
      code = kOutOfMemory;
    if (code != kSuccess) {
      delete context;
      return code;
    }
    contexts().insert(context);
  }
  keep_for_ever(context);
  start_worker(*context);
  *out = current() = context;
  return kSuccess;
}

// Waits for what is under way, for ever if that hangs. Of a lost context nobody waits for the work, so what
// it may still use stays mapped, and only counts as free.
FURLONG_FAKE(destroy_context, cuCtxDestroy_v2, (Context context)) {
  FURLONG_FAKE_ENTER("cuCtxDestroy");
  {
    const std::lock_guard lock(lists());
    if (context == nullptr || !contexts().contains(context)) return kInvalidContext;
  }
  (void)wait_for(*context, context->issued);
  {
    const std::lock_guard lock(context->mutex);
    context->closing = true;
    context->changed.notify_all();
  }
  const std::lock_guard lock(lists());
  give_back(*context);
  contexts().erase(context);
  if (current() == context) current() = nullptr;
  if (context->sticky != kSuccess) return kSuccess;
  while (!context->memory.empty()) (void)unmap_memory(*context, context->memory.begin()->first);
  for (const auto& [address, bytes] : context->pinned) std::free(reinterpret_cast<void*>(address));
  context->pinned.clear();
  for (ModuleTag* module : context->modules) delete module;
  for (StreamTag* stream : context->streams) delete stream;
  for (EventTag* event : context->events) delete event;
  for (GraphTag* graph : context->graphs) delete graph;
  for (GraphExecTag* graph : context->graph_execs) delete graph;
  context->modules.clear();
  context->streams.clear();
  context->events.clear();
  context->graphs.clear();
  context->graph_execs.clear();
  return kSuccess;
}

FURLONG_FAKE(set_context, cuCtxSetCurrent, (Context context)) {
  FURLONG_FAKE_ENTER("cuCtxSetCurrent");
  const std::lock_guard lock(lists());
  if (context != nullptr && !contexts().contains(context)) return kInvalidContext;
  current() = context;
  return kSuccess;
}

FURLONG_FAKE(memory_info, cuMemGetInfo_v2, (std::size_t* available, std::size_t* all)) {
  FURLONG_FAKE_CONTEXT("cuMemGetInfo");
  const std::lock_guard lock(lists());
  if (available != nullptr) *available = free_bytes(context->card);
  if (all != nullptr) *all = card_bytes(context->card);
  return kSuccess;
}

FURLONG_FAKE(allocate, cuMemAlloc_v2, (Address * out, std::size_t bytes)) {
  FURLONG_FAKE_CONTEXT("cuMemAlloc");
  if (const Status32 code = refuse_while_capturing(); code != kSuccess) return code;
  if (out == nullptr || bytes == 0) return kInvalidValue;
  const std::lock_guard lock(lists());
  return map_memory(*context, bytes, out);
}

// Waits for what runs, as the driver does: nothing that was launched loses its memory.
FURLONG_FAKE(free, cuMemFree_v2, (Address address)) {
  FURLONG_FAKE_CONTEXT("cuMemFree");
  if (const Status32 code = refuse_while_capturing(); code != kSuccess) return code;
  if (address == 0) return kSuccess;
  if (const Status32 code = wait_for(*context, context->issued); code != kSuccess) return code;
  const std::lock_guard lock(lists());
  return unmap_memory(*context, address) ? kSuccess : kInvalidValue;
}

FURLONG_FAKE(allocate_pinned, cuMemHostAlloc, (void** out, std::size_t bytes, unsigned flags)) {
  FURLONG_FAKE_CONTEXT("cuMemHostAlloc");
  if (const Status32 code = refuse_while_capturing(); code != kSuccess) return code;
  if (out == nullptr || bytes == 0 || flags > 7) return kInvalidValue;
  const std::lock_guard lock(lists());
  if (bytes > Script::the().bytes("pinned_at_most", std::uint64_t{1} << 32)) return kOutOfMemory;
  *out = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  if (*out == nullptr) return kOutOfMemory;
  context->pinned[reinterpret_cast<std::uintptr_t>(*out)] = bytes;
  return kSuccess;
}

FURLONG_FAKE(free_pinned, cuMemFreeHost, (void* at)) {
  FURLONG_FAKE_CONTEXT("cuMemFreeHost");
  if (const Status32 code = refuse_while_capturing(); code != kSuccess) return code;
  if (const Status32 code = wait_for(*context, context->issued); code != kSuccess) return code;
  const std::lock_guard lock(lists());
  if (context->pinned.erase(reinterpret_cast<std::uintptr_t>(at)) == 0) return kInvalidValue;
  std::free(at);
  return kSuccess;
}

FURLONG_FAKE(load_module, cuModuleLoadData, (ModuleHandle * out, const void* image)) {
  FURLONG_FAKE_CONTEXT("cuModuleLoadData");
  if (const Status32 code = refuse_while_capturing(); code != kSuccess) return code;
  if (out == nullptr || image == nullptr) return kInvalidValue;
  auto module = std::make_unique<ModuleTag>();
  if (const Status32 code = load_code(image, *context, *module); code != kSuccess) return code;
  const std::lock_guard lock(lists());
  *out = module.release();
  context->modules.insert(*out);
  return kSuccess;
}

FURLONG_FAKE(unload_module, cuModuleUnload, (ModuleHandle module)) {
  FURLONG_FAKE_CONTEXT("cuModuleUnload");
  const std::lock_guard lock(lists());
  if (context->modules.erase(module) == 0) return kInvalidHandle;
  delete module;  // launches under way keep the code
  return kSuccess;
}

FURLONG_FAKE(find_function, cuModuleGetFunction, (Function * out, ModuleHandle module, const char* name)) {
  FURLONG_FAKE_CONTEXT("cuModuleGetFunction");
  if (out == nullptr || name == nullptr) return kInvalidValue;
  const std::lock_guard lock(lists());
  if (!context->modules.contains(module)) return kInvalidHandle;
  for (const auto& function : module->functions) {
    if (function->facts.lowered != name) continue;
    *out = function.get();
    return kSuccess;
  }
  return kNotFound;
}

FURLONG_FAKE(function_attribute, cuFuncGetAttribute, (int* value, int which, Function function)) {
  FURLONG_FAKE_CONTEXT("cuFuncGetAttribute");
  if (value == nullptr) return kInvalidValue;
  const std::lock_guard lock(lists());
  if (const Status32 code = of_module(function); code != kSuccess) return code;
  switch (which) {
    case kFunctionMaxThreads:
      *value = most_threads(*function);
      return kSuccess;
    case kFunctionSharedBytes:
      *value = static_cast<int>(function->facts.shared_bytes);
      return kSuccess;
    case kFunctionLocalBytes:
      *value = static_cast<int>(Script::the().number("local." + function->facts.name, 0));
      return kSuccess;
    case kFunctionRegisters:
      *value = function->facts.registers;
      return kSuccess;
    case kFunctionMaxDynamicShared:
      *value = static_cast<int>(function->dynamic_shared_allowed);
      return kSuccess;
    default:
      return kInvalidValue;
  }
}

FURLONG_FAKE(set_function_attribute, cuFuncSetAttribute, (Function function, int which, int value)) {
  FURLONG_FAKE_CONTEXT("cuFuncSetAttribute");
  const std::lock_guard lock(lists());
  if (const Status32 code = of_module(function); code != kSuccess) return code;
  const auto most = static_cast<std::int64_t>(attribute(context->card, kAttributeSharedPerBlockOptin)) -
                    static_cast<std::int64_t>(function->facts.shared_bytes);
  if (which != kFunctionMaxDynamicShared || value < 0 || value > most) return kInvalidValue;
  function->dynamic_shared_allowed = static_cast<std::uint64_t>(value);
  return kSuccess;
}

FURLONG_FAKE(blocks_per_multiprocessor, cuOccupancyMaxActiveBlocksPerMultiprocessor,
             (int* blocks, Function function, int threads, std::size_t shared_bytes)) {
  FURLONG_FAKE_CONTEXT("cuOccupancyMaxActiveBlocksPerMultiprocessor");
  if (blocks == nullptr || threads <= 0) return kInvalidValue;
  const std::lock_guard lock(lists());
  if (const Status32 code = of_module(function); code != kSuccess) return code;
  *blocks = 0;
  const std::uint64_t shared = function->facts.shared_bytes + shared_bytes;
  if (threads > most_threads(*function) || shared_bytes > function->dynamic_shared_allowed) return kSuccess;
  const int warps = (threads + 31) / 32;
  int most = std::min(attribute(context->card, 106),
                      attribute(context->card, kAttributeThreadsPerMultiprocessor) / (warps * 32));
  most = std::min(most, attribute(context->card, 82) / registers_of_block(*function, threads));
  // A block takes 1 KiB of a multiprocessor's shared memory for the system.
  most = std::min(most, attribute(context->card, 81) / static_cast<int>(shared + 1024));
  *blocks = most;
  return kSuccess;
}

FURLONG_FAKE(parameter_info, cuFuncGetParamInfo,
             (Function function, std::size_t index, std::size_t* offset, std::size_t* bytes)) {
  FURLONG_FAKE_CONTEXT("cuFuncGetParamInfo");
  if (offset == nullptr) return kInvalidValue;
  const std::lock_guard lock(lists());
  if (const Status32 code = of_module(function); code != kSuccess) return code;
  if (index >= function->entry->parameter_count) return kInvalidValue;
  *offset = parameter_offset(*function->entry, index);
  if (bytes != nullptr) *bytes = function->entry->parameters[index].size;
  return kSuccess;
}

FURLONG_FAKE(error_name, cuGetErrorName, (Status32 code, const char** out)) {
  return describe(code, out, &Name::name);
}
FURLONG_FAKE(error_text, cuGetErrorString, (Status32 code, const char** out)) {
  return describe(code, out, &Name::text);
}
