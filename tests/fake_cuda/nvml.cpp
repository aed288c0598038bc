// A made-up NVML. Values of a key are a list of steps, one a call: "1980*10, 1200*3, 1980".

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "tests/fake_cuda/script.h"

namespace furlong::fake {
namespace {

enum : int {
  kSuccess = 0,
  kUninitialized = 1,
  kInvalidArgument = 2,
  kNotSupported = 3,
  kNoPermission = 4,
  kNotFound = 6,
  kInsufficientSize = 7,
  kDriverNotLoaded = 9,
  kVersionMismatch = 18,
  kUnknown = 999,
};

constexpr int kMostCards = 16;
int handles[kMostCards];  // a handle is the address of its place here
int started = 0;          // counted, as NVML does

int cards() {
  return static_cast<int>(std::clamp<std::int64_t>(Script::the().number("cards", 1), 0, kMostCards));
}

int index_of(const void* handle) {
  for (int i = 0; i < cards(); ++i) {
    if (handle == &handles[i]) return i;
  }
  return -1;
}

int enter(const char* symbol) {
  if (const auto fault = Script::the().happens("fail." + std::string(symbol), std::string("call ") + symbol))
    return std::atoi(fault->c_str());
  return started > 0 ? kSuccess : kUninitialized;
}

int enter(const char* symbol, const void* handle) {
  if (const int code = enter(symbol); code != kSuccess) return code;
  return index_of(handle) >= 0 ? kSuccess : kInvalidArgument;
}

// The next step of nvml.KEY; "none": the card does not tell.
template <class T>
int step(const char* symbol, const void* handle, const std::string& key, const char* fallback, T* out) {
  if (const int code = enter(symbol, handle); code != kSuccess) return code;
  if (out == nullptr) return kInvalidArgument;
  const std::string value = Script::the().next("nvml." + key, fallback);
  if (value == "none") return kNotSupported;
  *out = static_cast<T>(std::strtod(value.c_str(), nullptr));
  return kSuccess;
}

std::string uuid_of(int index) {
  char text[64];
  std::snprintf(text, sizeof text, "GPU-f0f1f2f3-f4f5-f6f7-f8f9-fafbfcfdfe%02x",
                static_cast<unsigned>(index));
  return text;
}

std::string bus_of(int index) {
  char text[32];
  std::snprintf(text, sizeof text, "%08x:%02x:00.0", 0u, 0x1bu + static_cast<unsigned>(index));
  return text;
}

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

int text_out(const std::string& text, char* into, unsigned length) {
  if (into == nullptr) return kInvalidArgument;
  if (text.size() + 1 > length) return kInsufficientSize;
  std::memcpy(into, text.c_str(), text.size() + 1);
  return kSuccess;
}

struct Memory {
  unsigned long long total, free, used;
};
struct Process {  // of the third version of the call
  unsigned pid;
  unsigned long long bytes;
  unsigned instance, compute_instance;
};

}  // namespace
}  // namespace furlong::fake

using namespace furlong::fake;

extern "C" {

void furlong_fake_nvml_script(const char* text) { Script::the().set(text); }

int nvmlInit_v2() {
  if (const auto fault = Script::the().happens("fail.nvmlInit", "call nvmlInit"))
    return std::atoi(fault->c_str());
  ++started;
  return kSuccess;
}

int nvmlShutdown() {
  if (started == 0) return kUninitialized;
  --started;
  return kSuccess;
}

const char* nvmlErrorString(int code) {
  switch (code) {
    case kSuccess:
      return "Success";
    case kUninitialized:
      return "Uninitialized";
    case kInvalidArgument:
      return "Invalid Argument";
    case kNotSupported:
      return "Not Supported";
    case kNoPermission:
      return "Insufficient Permissions";
    case kNotFound:
      return "Not Found";
    case kInsufficientSize:
      return "Insufficient Size";
    case kDriverNotLoaded:
      return "Driver Not Loaded";
    case kVersionMismatch:
      return "Driver/library version mismatch";
    default:
      return "Unknown Error";
  }
}

int nvmlSystemGetDriverVersion(char* text, unsigned length) {
  if (const int code = enter("nvmlSystemGetDriverVersion"); code != kSuccess) return code;
  return text_out(Script::the().text("nvml.driver", "580.00.01"), text, length);
}

int nvmlDeviceGetCount_v2(unsigned* count) {
  if (const int code = enter("nvmlDeviceGetCount"); code != kSuccess) return code;
  if (count == nullptr) return kInvalidArgument;
  *count = static_cast<unsigned>(cards());
  return kSuccess;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** handle) {
  if (const int code = enter("nvmlDeviceGetHandleByIndex"); code != kSuccess) return code;
  if (handle == nullptr || index >= static_cast<unsigned>(cards())) return kInvalidArgument;
  *handle = &handles[index];
  return kSuccess;
}

int nvmlDeviceGetHandleByUUID(const char* uuid, void** handle) {
  if (const int code = enter("nvmlDeviceGetHandleByUUID"); code != kSuccess) return code;
  if (uuid == nullptr || handle == nullptr) return kInvalidArgument;
  for (int i = 0; i < cards(); ++i) {
    if (uuid_of(i) != uuid) continue;
    *handle = &handles[i];
    return kSuccess;
  }
  return kNotFound;
}

// With a domain of four or of eight digits.
int nvmlDeviceGetHandleByPciBusId_v2(const char* bus, void** handle) {
  if (const int code = enter("nvmlDeviceGetHandleByPciBusId"); code != kSuccess) return code;
  if (bus == nullptr || handle == nullptr) return kInvalidArgument;
  for (int i = 0; i < cards(); ++i) {
    const std::string own = bus_of(i);
    if (lower(bus) != own && lower(bus) != own.substr(4)) continue;
    *handle = &handles[i];
    return kSuccess;
  }
  return kNotFound;
}

int nvmlDeviceGetUUID(void* handle, char* text, unsigned length) {
  if (const int code = enter("nvmlDeviceGetUUID", handle); code != kSuccess) return code;
  return text_out(uuid_of(index_of(handle)), text, length);
}

int nvmlDeviceGetClockInfo(void* handle, unsigned kind, unsigned* mhz) {
  return kind == 2 ? step("nvmlDeviceGetClockInfo", handle, "memory_clock", "2619", mhz)
                   : step("nvmlDeviceGetClockInfo", handle, "clock", "1980", mhz);
}

int nvmlDeviceGetMaxClockInfo(void* handle, unsigned kind, unsigned* mhz) {
  return kind == 2 ? step("nvmlDeviceGetMaxClockInfo", handle, "max_memory_clock", "2619", mhz)
                   : step("nvmlDeviceGetMaxClockInfo", handle, "max_clock", "1980", mhz);
}

int nvmlDeviceGetPowerUsage(void* handle, unsigned* mw) {
  return step("nvmlDeviceGetPowerUsage", handle, "power_mw", "350000", mw);
}

int nvmlDeviceGetEnforcedPowerLimit(void* handle, unsigned* mw) {
  return step("nvmlDeviceGetEnforcedPowerLimit", handle, "power_limit_mw", "700000", mw);
}

int nvmlDeviceGetPowerManagementDefaultLimit(void* handle, unsigned* mw) {
  return step("nvmlDeviceGetPowerManagementDefaultLimit", handle, "default_power_limit_mw", "700000", mw);
}

// A counter that runs with the wall at nvml.power_mw's first value, unless it is scripted.
int nvmlDeviceGetTotalEnergyConsumption(void* handle, unsigned long long* mj) {
  if (Script::the().has("nvml.energy_mj"))
    return step("nvmlDeviceGetTotalEnergyConsumption", handle, "energy_mj", "0", mj);
  if (const int code = enter("nvmlDeviceGetTotalEnergyConsumption", handle); code != kSuccess) return code;
  if (mj == nullptr) return kInvalidArgument;
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  *mj = static_cast<unsigned long long>(seconds * Script::the().real("nvml.power_mw", 350000));
  return kSuccess;
}

int nvmlDeviceGetTemperature(void* handle, unsigned, unsigned* celsius) {
  return step("nvmlDeviceGetTemperature", handle, "temperature", "45", celsius);
}

int nvmlDeviceGetCurrentClocksEventReasons(void* handle, unsigned long long* reasons) {
  return step("nvmlDeviceGetCurrentClocksEventReasons", handle, "reasons", "0", reasons);
}

int nvmlDeviceGetComputeMode(void* handle, unsigned* mode) {
  if (const int code = enter("nvmlDeviceGetComputeMode", handle); code != kSuccess) return code;
  if (mode == nullptr) return kInvalidArgument;
  const std::string own = std::to_string(index_of(handle)) + ".compute_mode";
  *mode = static_cast<unsigned>(std::atoi(Script::the().first_of({own, "compute_mode"}, "0").c_str()));
  return kSuccess;
}

int nvmlDeviceGetMigMode(void* handle, unsigned* now, unsigned* pending) {
  const int code = step("nvmlDeviceGetMigMode", handle, "mig", "0", now);
  if (code == kSuccess && pending != nullptr) *pending = *now;
  return code;
}

int nvmlDeviceGetEccMode(void* handle, unsigned* now, unsigned* pending) {
  const int code = step("nvmlDeviceGetEccMode", handle, "ecc", "1", now);
  if (code == kSuccess && pending != nullptr) *pending = *now;
  return code;
}

int nvmlDeviceGetPersistenceMode(void* handle, unsigned* on) {
  return step("nvmlDeviceGetPersistenceMode", handle, "persistence", "1", on);
}

int nvmlDeviceGetMemoryInfo(void* handle, Memory* out) {
  if (const int code = enter("nvmlDeviceGetMemoryInfo", handle); code != kSuccess) return code;
  if (out == nullptr) return kInvalidArgument;
  const std::string own = std::to_string(index_of(handle)) + ".memory";
  out->total = parse_bytes(Script::the().first_of({own, "memory"}, "2GiB"));
  out->used = std::min<unsigned long long>(out->total, Script::the().bytes("others_use", 0));
  out->free = out->total - out->used;
  return kSuccess;
}

// nvml.processes = 4242:1GiB, 4243:none
int nvmlDeviceGetComputeRunningProcesses_v3(void* handle, unsigned* count, Process* out) {
  if (const int code = enter("nvmlDeviceGetComputeRunningProcesses", handle); code != kSuccess) return code;
  if (count == nullptr) return kInvalidArgument;
  const std::vector<std::string> list = words(Script::the().text("nvml.processes"), ',');
  const unsigned room = *count;
  *count = static_cast<unsigned>(list.size());
  if (room < list.size()) return kInsufficientSize;
  for (const std::string& one : list) {
    const std::vector<std::string> parts = words(one, ':');
    const bool told = parts.size() > 1 && parts[1] != "none";
    *out++ = {static_cast<unsigned>(std::atoi(parts[0].c_str())), told ? parse_bytes(parts[1]) : ~0ull, ~0u,
              ~0u};
  }
  return kSuccess;
}

}  // extern "C"
