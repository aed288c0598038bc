#include "furlong/device/cuda/internal/driver_api.h"

#include <array>
#include <cstdlib>
#include <initializer_list>
#include <mutex>
#include <optional>
#include <vector>

#include "furlong/base/os/library.h"

namespace furlong::device::cuda {
namespace {

template <class F>
void bind_first(const Library& library, F*& function, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    function = library.function<F>(name);
    if (function != nullptr) return;
  }
}

Result<Api> bind(const Library& library) {
  Api api;
  api.file = library.name();
#define FURLONG_CUDA_BIND(member, parameters, ...) bind_first(library, api.member, {__VA_ARGS__});
  FURLONG_CUDA_REQUIRED(FURLONG_CUDA_BIND)
  FURLONG_CUDA_OPTIONAL(FURLONG_CUDA_BIND)
#undef FURLONG_CUDA_BIND
#define FURLONG_CUDA_NEED(member, parameters, ...)                                                        \
  if (api.member == nullptr) {                                                                            \
    return fail(Code::incompatible, "{} has no {}: a driver for CUDA 11.2 or newer is needed, update it", \
                library.name(), std::array{__VA_ARGS__}[0]);                                              \
  }
  FURLONG_CUDA_REQUIRED(FURLONG_CUDA_NEED)
#undef FURLONG_CUDA_NEED
  return api;
}

constexpr const char* kUsualFile = "libcuda.so.1";

std::string driver_file() {
  const char* chosen = std::getenv("FURLONG_CUDA_DRIVER");
  return chosen != nullptr && *chosen != '\0' ? chosen : kUsualFile;
}

Code code_of(Status32 code) {
  switch (code) {
    case kOutOfMemory:
      return Code::exhausted;
    case kDeviceUnavailable:
    case kNoDevice:
    case kInvalidDevice:
    case kSystemNotReady:
      return Code::unavailable;
    case kInvalidImage:
    case kNoBinaryForCard:
    case kUnsupportedPtxVersion:
    case kDriverMismatch:
    case kCompatNotSupported:
      return Code::incompatible;
    case kLaunchTimeout:
      return Code::timeout;
    case kNotPermitted:
      return Code::denied;
    default:
      return Code::internal;
  }
}

// What the code means for the user, where it says more than its name.
std::string_view advice(Status32 code) {
  switch (code) {
    case kIllegalAddress:
      return "a kernel ran out of bounds";
    case kMisalignedAddress:
      return "a kernel used an address that is no multiple of what it loads";
    case kAssert:
      return "an assert in a kernel failed";
    case kIllegalInstruction:
    case kInvalidPc:
    case kHardwareStackError:
    case kInvalidAddressSpace:
    case kLaunchFailed:
      return "a kernel trapped";
    case kLaunchTimeout:
      return "a kernel ran past the driver's own time limit (a card that shows a screen has one)";
    case kOutOfResources:
      return "the block needs more registers or shared memory than a multiprocessor has";
    case kEccUncorrectable:
      return "the card's memory is failing: nvidia-smi -q -d ECC";
    case kNoBinaryForCard:
    case kInvalidImage:
      return "the machine code is for another architecture, or newer than the driver";
    default:
      return start_advice(code);
  }
}

Error told(const Api& api, Code result, Status32 code, std::string_view doing) {
  const std::string_view more = advice(code);
  return fail(result, "{}: {}{}{}", doing, api.name_of(code), more.empty() ? "" : ": ", more);
}

}  // namespace

std::string Api::name_of(Status32 code) const {
  const char* name = nullptr;
  if (error_name == nullptr || error_name(code, &name) != kSuccess || name == nullptr)
    return fmt::format("CUDA error {}", code);
  return fmt::format("{} ({})", name, code);
}

int Api::attribute(Card card_, int which, int fallback) const {
  int value = 0;
  return card_attribute(&value, which, card_) == kSuccess ? value : fallback;
}

std::string_view start_advice(Status32 code) {
  switch (code) {
    case kNoDevice:
      return "the driver finds no card: is one plugged in, passed to this container, and not hidden by "
             "CUDA_VISIBLE_DEVICES?";
    case kDeviceUnavailable:
      return "the card is in exclusive or prohibited compute mode and in use: end the other process, or "
             "nvidia-smi -c DEFAULT";
    case kDriverMismatch:
      return "the driver's library and its kernel module are of different versions: reboot, or reload the "
             "module";
    case kSystemNotReady:
      return "the system is not ready yet: start nvidia-fabricmanager, or wait for it";
    case kCompatNotSupported:
      return "this card takes no forward-compatible driver library: use that of the installed driver";
    case kUnknown:
      return "the driver does not start: nvidia-smi says more; a reboot reloads it";
    case kOutOfMemory:
      return "the card's memory is used up: end who uses it (nvidia-smi lists them)";
    default:
      return "";
  }
}

bool blames_kernel(Status32 code) {
  switch (code) {
    case kIllegalAddress:
    case kLaunchTimeout:
    case kAssert:
    case kHardwareStackError:
    case kIllegalInstruction:
    case kMisalignedAddress:
    case kInvalidAddressSpace:
    case kInvalidPc:
    case kLaunchFailed:
      return true;
    default:
      return false;
  }
}

bool loses_context(Status32 code) {
  switch (code) {
    case kInvalidContext:
    case kEccUncorrectable:
    case kNvlinkUncorrectable:
    case kContextDestroyed:
    case kContained:
    case kMpsClientEnded:
    case kUnknown:
      return true;
    default:
      return blames_kernel(code);
  }
}

Error error_of(const Api& api, Status32 code, std::string_view doing) {
  return told(api, code_of(code), code, doing);
}

Error launch_error(const Api& api, Status32 code, std::string_view doing) {
  const bool refused = code == kInvalidValue || code == kOutOfResources || code == kInvalidHandle;
  return told(api, refused ? Code::invalid : code_of(code), code, doing);
}

Result<Api> bind_driver(const std::string& file) {
  FURLONG_TRY(Library library, Library::open(file));
  FURLONG_TRY(Api api, bind(library));
  static std::mutex mutex;
  // Never closed, not at the end of the process either: drivers keep threads.
  static auto& opened = *new std::vector<Library>;
  {
    const std::lock_guard lock(mutex);
    opened.push_back(std::move(library));
  }
  api.started = api.init(0);
  if (api.driver_version(&api.version) != kSuccess) api.version = 0;
  return api;
}

Result<const Api*> load_driver() {
  static std::mutex mutex;
  static std::optional<Api> loaded;
  const std::lock_guard lock(mutex);
  if (!loaded) {
    const std::string file = driver_file();
    Result<Api> bound = bind_driver(file);
    if (!bound && file != kUsualFile)
      return std::move(bound).error().with(
          "opening $FURLONG_CUDA_DRIVER (unset it for the installed driver)");
    if (!bound && bound.error().code() == Code::unavailable) {
      return fail(Code::unavailable,
                  "NVIDIA's driver is not here ({}): install it to use a card through CUDA",
                  bound.error().message());
    }
    if (!bound) return Error(std::move(bound).error());
    loaded = *std::move(bound);
  } else if (loaded->started != kSuccess) {
    loaded->started = loaded->init(0);  // a card may have been plugged in or freed meanwhile
  }
  return &*loaded;
}

}  // namespace furlong::device::cuda
