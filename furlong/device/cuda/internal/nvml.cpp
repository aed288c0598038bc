#include "furlong/device/cuda/internal/nvml.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>

#include "furlong/base/bytes.h"
#include "furlong/base/os/library.h"
#include "furlong/base/text.h"

namespace furlong::device {
namespace {

using Handle = void*;  // nvmlDevice_t
using Code32 = int;    // nvmlReturn_t

enum : Code32 {
  kSuccess = 0,
  kNoPermission = 4,
  kInsufficientSize = 7,
  kDriverNotLoaded = 9,
  kVersionMismatch = 18,
};

enum : unsigned { kClockSm = 1, kClockMemory = 2 };
constexpr unsigned kTemperatureOfGpu = 0;
constexpr std::size_t kTextBytes = 128;  // NVML asks for 80 (versions) and 96 (uuids)

struct MemoryInfo {
  unsigned long long total, free, used;
};

/// member, symbol, older or newer name of the same call or "", parameters; each returns nvmlReturn_t.
#define FURLONG_NVML_REQUIRED(X)                                                        \
  X(init, "nvmlInit_v2", "nvmlInit", ())                                                \
  X(shutdown, "nvmlShutdown", "", ())                                                   \
  X(handle_by_uuid, "nvmlDeviceGetHandleByUUID", "", (const char*, Handle*))            \
  X(handle_by_bus, "nvmlDeviceGetHandleByPciBusId_v2", "nvmlDeviceGetHandleByPciBusId", \
    (const char*, Handle*))

/// Without one of these its value is unknown, nothing more.
#define FURLONG_NVML_OPTIONAL(X)                                                                         \
  X(driver_version, "nvmlSystemGetDriverVersion", "", (char*, unsigned))                                 \
  X(count, "nvmlDeviceGetCount_v2", "nvmlDeviceGetCount", (unsigned*))                                   \
  X(handle_by_index, "nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex", (unsigned, Handle*)) \
  X(uuid, "nvmlDeviceGetUUID", "", (Handle, char*, unsigned))                                            \
  X(clock, "nvmlDeviceGetClockInfo", "", (Handle, unsigned, unsigned*))                                  \
  X(max_clock, "nvmlDeviceGetMaxClockInfo", "", (Handle, unsigned, unsigned*))                           \
  X(power, "nvmlDeviceGetPowerUsage", "", (Handle, unsigned*))                                           \
  X(power_limit, "nvmlDeviceGetEnforcedPowerLimit", "nvmlDeviceGetPowerManagementLimit",                 \
    (Handle, unsigned*))                                                                                 \
  X(default_power_limit, "nvmlDeviceGetPowerManagementDefaultLimit", "", (Handle, unsigned*))            \
  X(energy, "nvmlDeviceGetTotalEnergyConsumption", "", (Handle, unsigned long long*))                    \
  X(temperature, "nvmlDeviceGetTemperature", "", (Handle, unsigned, unsigned*))                          \
  X(reasons, "nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons",      \
    (Handle, unsigned long long*))                                                                       \
  X(compute_mode, "nvmlDeviceGetComputeMode", "", (Handle, unsigned*))                                   \
  X(mig_mode, "nvmlDeviceGetMigMode", "", (Handle, unsigned*, unsigned*))                                \
  X(ecc_mode, "nvmlDeviceGetEccMode", "", (Handle, unsigned*, unsigned*))                                \
  X(persistence, "nvmlDeviceGetPersistenceMode", "", (Handle, unsigned*))                                \
  X(memory, "nvmlDeviceGetMemoryInfo", "", (Handle, MemoryInfo*))                                        \
  X(processes, "nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetComputeRunningProcesses_v2",     \
    (Handle, unsigned*, void*))                                                                          \
  X(processes_v1, "nvmlDeviceGetComputeRunningProcesses", "", (Handle, unsigned*, void*))

struct Symbols {
#define FURLONG_NVML_MEMBER(member, symbol, other, parameters) Code32(*member) parameters = nullptr;
  FURLONG_NVML_REQUIRED(FURLONG_NVML_MEMBER)
  FURLONG_NVML_OPTIONAL(FURLONG_NVML_MEMBER)
#undef FURLONG_NVML_MEMBER
  const char* (*error_string)(Code32) = nullptr;

  std::string error(Code32 code) const {
    const char* words = error_string != nullptr ? error_string(code) : nullptr;
    return words != nullptr ? fmt::format("{} (NVML error {})", words, code)
                            : fmt::format("NVML error {}", code);
  }
};

Result<Symbols> bind(const Library& library) {
  Symbols symbols;
#define FURLONG_NVML_BIND(member, symbol, other, parameters)    \
  symbols.member = library.function<Code32 parameters>(symbol); \
  if (symbols.member == nullptr && *other != '\0')              \
    symbols.member = library.function<Code32 parameters>(other);
  FURLONG_NVML_REQUIRED(FURLONG_NVML_BIND)
  FURLONG_NVML_OPTIONAL(FURLONG_NVML_BIND)
#undef FURLONG_NVML_BIND
  symbols.error_string = library.function<const char*(Code32)>("nvmlErrorString");
#define FURLONG_NVML_NEED(member, symbol, other, parameters)                                           \
  if (symbols.member == nullptr) {                                                                     \
    return fail(Code::incompatible, "{} has no {}: it is no NVML, or too old: install a newer driver", \
                library.name(), symbol);                                                               \
  }
  FURLONG_NVML_REQUIRED(FURLONG_NVML_NEED)
#undef FURLONG_NVML_NEED
  return symbols;
}

Error not_ready(const Symbols& symbols, Code32 code, const std::string& name) {
  switch (code) {
    case kDriverNotLoaded:
      return fail(
          Code::unavailable,
          "{}: NVIDIA's kernel module is not loaded: modprobe nvidia (in a container: start it with its "
          "card)",
          name);
    case kVersionMismatch:
      return fail(
          Code::incompatible,
          "{} and the loaded kernel module are of different versions, as after an update: restart the "
          "machine",
          name);
    case kNoPermission:
      return fail(Code::denied, "{}: no access to the card: let this user open /dev/nvidia*", name);
    default:
      return fail(Code::unavailable, "{} does not start: {}", name, symbols.error(code));
  }
}

std::string uuid_of(const Symbols& symbols, Handle handle) {
  std::array<char, kTextBytes> text{};
  if (symbols.uuid == nullptr || symbols.uuid(handle, text.data(), text.size() - 1) != kSuccess) return "";
  return text.data();
}

// The value of a call that fills one variable; nullopt where it is missing or fails.
template <class T, class... Parameters, class... Arguments>
std::optional<T> value(Code32 (*call)(Parameters...), Arguments... arguments) {
  T out{};
  if (call == nullptr || call(arguments..., &out) != kSuccess) return std::nullopt;
  return out;
}

std::optional<double> scaled(std::optional<unsigned> thousandths) {
  if (!thousandths) return std::nullopt;
  return *thousandths / 1000.0;
}

template <class T>
std::optional<T> as(std::optional<unsigned> number) {
  if (!number) return std::nullopt;
  return static_cast<T>(*number);
}

std::optional<bool> current_mode(Code32 (*call)(Handle, unsigned*, unsigned*), Handle handle) {
  unsigned current = 0;
  unsigned pending = 0;
  if (call == nullptr || call(handle, &current, &pending) != kSuccess) return std::nullopt;
  return current != 0;
}

// What a process occupies in the list. The same symbol wrote entries of 24 bytes, of 32 in the first 535
// drivers, and of 16 under its oldest name, and nothing tells which: so the bytes that it wrote are counted.
constexpr std::size_t kLargestEntry = 32;
constexpr std::uint64_t kUnwritten = 0xA5A5A5A5A5A5A5A5;

std::size_t entry_bytes(const std::vector<std::uint64_t>& words, unsigned count) {
  std::size_t written = words.size();
  while (written > 0 && words[written - 1] == kUnwritten) --written;
  const std::size_t each = (written + count - 1) / count * sizeof(std::uint64_t);
  return std::clamp<std::size_t>(each, 16, kLargestEntry);
}

std::optional<std::vector<CardProcess>> processes_of(Code32 (*call)(Handle, unsigned*, void*),
                                                     Handle handle) {
  if (call == nullptr) return std::nullopt;
  unsigned room = 64;
  for (int tries = 0; tries < 4; ++tries, room *= 4) {  // the list may grow between two calls
    std::vector<std::uint64_t> words(room * kLargestEntry / sizeof(std::uint64_t), kUnwritten);
    unsigned count = room;
    const Code32 code = call(handle, &count, words.data());
    if (code == kInsufficientSize) continue;
    if (code != kSuccess || count > room) return std::nullopt;
    std::vector<CardProcess> processes;
    if (count == 0) return processes;
    const std::size_t step = entry_bytes(words, count);
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(words.data());
    for (unsigned i = 0; i < count; ++i, bytes += step) {
      const auto used = load_le<std::uint64_t>(bytes + 8);
      processes.push_back({load_le<std::uint32_t>(bytes), std::nullopt});
      if (used != ~std::uint64_t{0}) processes.back().bytes = used;  // all ones: not told
    }
    return processes;
  }
  return std::nullopt;
}

struct Reason {
  std::uint64_t bit;
  const char* words;
};
// The bits of nvmlClocksEventReason… that slow a card down.
constexpr std::array<Reason, 6> kSlowing{{
    {0x04, "power cap"},
    {0x08, "hardware slowdown"},
    {0x10, "sync boost"},
    {0x20, "thermal slowdown"},
    {0x40, "hardware thermal slowdown"},
    {0x80, "power brake"},
}};
constexpr std::uint64_t kIdle = 0x01;
constexpr std::uint64_t kApplicationClocks = 0x02;
constexpr std::uint64_t kDisplayClocks = 0x100;

constexpr std::array<const char*, 5> kPlaces{
    "libnvidia-ml.so.1", "libnvidia-ml.so", "/usr/local/nvidia/lib64/libnvidia-ml.so.1",  // containers
    "/usr/lib/wsl/lib/libnvidia-ml.so.1", "/usr/lib/x86_64-linux-gnu/nvidia/current/libnvidia-ml.so.1"};

}  // namespace

struct NvmlLibrary {
  Library library;
  Symbols symbols;
  NvmlLibrary(Library opened, const Symbols& bound) : library(std::move(opened)), symbols(bound) {}
  NvmlLibrary(const NvmlLibrary&) = delete;
  NvmlLibrary& operator=(const NvmlLibrary&) = delete;
  ~NvmlLibrary() { (void)symbols.shutdown(); }  // counted by the library: others who use it are not cut off
};

std::uint64_t slowing_reasons(std::uint64_t reasons) {
  return reasons & ~(kIdle | kApplicationClocks | kDisplayClocks);
}

std::string throttle_words(std::uint64_t reasons) {
  std::uint64_t left = slowing_reasons(reasons);
  std::vector<std::string> words;
  for (const Reason& reason : kSlowing) {
    if ((left & reason.bit) != 0) words.emplace_back(reason.words);
    left &= ~reason.bit;
  }
  if (left != 0) words.push_back(fmt::format("unknown reason 0x{:x}", left));
  return join(words, ", ");
}

Telemetry NvmlCard::telemetry() const {
  const Symbols& symbols = nvml_->symbols;
  Telemetry now;
  now.clock_mhz = as<double>(value<unsigned>(symbols.clock, handle_, +kClockSm));
  now.memory_clock_mhz = as<double>(value<unsigned>(symbols.clock, handle_, +kClockMemory));
  now.power_w = scaled(value<unsigned>(symbols.power, handle_));
  now.power_limit_w = power_limit_w_;
  now.temperature_c = as<double>(value<unsigned>(symbols.temperature, handle_, kTemperatureOfGpu));
  if (const auto mj = value<unsigned long long>(symbols.energy, handle_))
    now.energy_j = static_cast<double>(*mj) / 1000.0;
  if (const auto reasons = value<unsigned long long>(symbols.reasons, handle_)) {
    now.throttle = slowing_reasons(*reasons);
    now.throttle_text = throttle_words(*reasons);
  }
  return now;
}

CardState NvmlCard::state() const {
  const Symbols& symbols = nvml_->symbols;
  CardState state;
  state.uuid = uuid_of(symbols, handle_);
  if (const auto mode = value<unsigned>(symbols.compute_mode, handle_); mode && *mode <= 3)
    state.compute_mode = static_cast<ComputeMode>(*mode);
  state.mig = current_mode(symbols.mig_mode, handle_);
  state.ecc = current_mode(symbols.ecc_mode, handle_);
  state.persistence = as<bool>(value<unsigned>(symbols.persistence, handle_));
  state.processes = processes_of(symbols.processes, handle_);
  if (!state.processes) state.processes = processes_of(symbols.processes_v1, handle_);
  if (const auto memory = value<MemoryInfo>(symbols.memory, handle_)) {
    state.total_bytes = memory->total;
    state.free_bytes = memory->free;
    state.used_bytes = memory->used;
  }
  state.clock_mhz = as<int>(value<unsigned>(symbols.clock, handle_, +kClockSm));
  state.max_clock_mhz = as<int>(value<unsigned>(symbols.max_clock, handle_, +kClockSm));
  state.memory_clock_mhz = as<int>(value<unsigned>(symbols.clock, handle_, +kClockMemory));
  state.max_memory_clock_mhz = as<int>(value<unsigned>(symbols.max_clock, handle_, +kClockMemory));
  state.temperature_c = as<double>(value<unsigned>(symbols.temperature, handle_, kTemperatureOfGpu));
  state.power_w = scaled(value<unsigned>(symbols.power, handle_));
  state.power_limit_w = scaled(value<unsigned>(symbols.power_limit, handle_));
  state.default_power_limit_w = scaled(value<unsigned>(symbols.default_power_limit, handle_));
  if (const auto reasons = value<unsigned long long>(symbols.reasons, handle_)) {
    state.throttle = slowing_reasons(*reasons);
    state.throttle_text = throttle_words(*reasons);
    state.clocks_are_set = (*reasons & kApplicationClocks) != 0;
  }
  return state;
}

Result<Nvml> Nvml::open() {
  if (const char* chosen = std::getenv("FURLONG_NVML"); chosen != nullptr && *chosen != '\0') {
    Result<Nvml> opened = open(std::filesystem::path(chosen));
    if (!opened) return Error(opened.error()).with("opening $FURLONG_NVML");
    return opened;
  }
  for (const char* place : kPlaces) {
    Result<Library> library = Library::open(place);
    if (library) return open(std::filesystem::path(place));
  }
  return fail(
      Code::unavailable,
      "NVIDIA's management library is not here ({}): it comes with the driver; in a container, let it in "
      "with NVIDIA_DRIVER_CAPABILITIES=compute,utility; or set FURLONG_NVML to its file",
      kPlaces.front());
}

Result<Nvml> Nvml::open(const std::filesystem::path& path) {
  FURLONG_TRY(Library library, Library::open(path));
  FURLONG_TRY(const Symbols symbols, bind(library));
  if (const Code32 code = symbols.init(); code != kSuccess) return not_ready(symbols, code, library.name());
  return Nvml(std::make_shared<const NvmlLibrary>(std::move(library), symbols));
}

Result<NvmlCard> Nvml::card(const std::string& uuid, const std::string& pci_bus_id) const {
  const Symbols& symbols = nvml_->symbols;
  NvmlCard card;
  Code32 code = kSuccess;
  if (!uuid.empty()) code = symbols.handle_by_uuid(uuid.c_str(), &card.handle_);
  if ((uuid.empty() || code != kSuccess) && !pci_bus_id.empty())
    code = symbols.handle_by_bus(pci_bus_id.c_str(), &card.handle_);
  if (card.handle_ == nullptr || code != kSuccess) {
    return fail(Code::unavailable, "NVML knows no card {}{}{}: {}", uuid, uuid.empty() ? "" : " at ",
                pci_bus_id.empty() ? "an unknown bus id" : pci_bus_id, symbols.error(code));
  }
  card.nvml_ = nvml_;
  card.power_limit_w_ = scaled(value<unsigned>(symbols.power_limit, card.handle_));
  return card;
}

std::vector<std::string> Nvml::uuids() const {
  const Symbols& symbols = nvml_->symbols;
  std::vector<std::string> uuids;
  if (symbols.handle_by_index == nullptr) return uuids;
  const unsigned count = value<unsigned>(symbols.count).value_or(0);
  for (unsigned i = 0; i < count; ++i) {
    Handle handle = nullptr;
    if (symbols.handle_by_index(i, &handle) != kSuccess) continue;  // not this user's, or fallen off the bus
    if (std::string uuid = uuid_of(symbols, handle); !uuid.empty()) uuids.push_back(std::move(uuid));
  }
  return uuids;
}

std::string Nvml::driver_version() const {
  std::array<char, kTextBytes> text{};
  const Symbols& symbols = nvml_->symbols;
  if (symbols.driver_version == nullptr || symbols.driver_version(text.data(), text.size() - 1) != kSuccess)
    return "";
  return text.data();
}

const std::string& Nvml::name() const { return nvml_->library.name(); }

}  // namespace furlong::device
