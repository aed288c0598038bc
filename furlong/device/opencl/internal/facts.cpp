#include "furlong/device/opencl/internal/facts.h"

#include <algorithm>

#include "furlong/base/os/memory.h"
#include "furlong/base/text.h"
#include "furlong/device/silicon.h"

namespace furlong::device::cl {
namespace {

bool has_word(std::string_view words, std::string_view word) {
  const std::vector<std::string> all = split(words, ' ');
  return std::find(all.begin(), all.end(), word) != all.end();
}

void fill_vendor_facts(const Api& api, DeviceId device, std::string_view extensions, Facts& facts) {
  if (has_word(extensions, "cl_nv_device_attribute_query")) {
    const auto major = device_value<Uint>(api, device, kDeviceMajorNv, 0);
    const auto minor = device_value<Uint>(api, device, kDeviceMinorNv, 0);
    if (major != 0) facts.silicon.arch = fmt::format("sm_{}{}", major, minor);
    facts.warp = static_cast<int>(device_value<Uint>(api, device, kDeviceWarpNv, 32));
  }
  if (has_word(extensions, "cl_amd_device_attribute_query")) {
    const std::string board = device_text(api, device, kDeviceBoardNameAmd);
    if (!board.empty()) facts.label = label_of(board);  // the device's name is its architecture there
    facts.warp = static_cast<int>(device_value<Uint>(api, device, kDeviceWavefrontAmd, 1));
  }
  if (has_word(extensions, "cl_khr_device_uuid")) {
    const auto uuid = device_value<std::array<std::uint8_t, 16>>(api, device, kDeviceUuid, {});
    facts.uuid = to_hex(uuid);
  }
}

void fill_limits(const Api& api, DeviceId device, Facts& facts) {
  facts.max_threads_per_block =
      static_cast<int>(device_value<std::size_t>(api, device, kDeviceMaxWorkGroupSize, 1));
  const auto sizes =
      device_value<std::array<std::size_t, 3>>(api, device, kDeviceMaxWorkItemSizes, {1, 1, 1});
  std::copy(sizes.begin(), sizes.end(), facts.max_block.begin());
  facts.max_shared_bytes = device_value<Bits>(api, device, kDeviceLocalMemory, 0);
  facts.max_buffer_bytes = device_value<Bits>(api, device, kDeviceMaxAllocation, 0);
}

Found describe(const Api& api, PlatformId platform, DeviceId device, int index) {
  Found found;
  found.device = device;
  const std::string name = device_text(api, device, kDeviceName);
  const std::string version = device_text(api, device, kDeviceVersion);
  const std::string extensions = device_text(api, device, kDeviceExtensions);
  Facts& facts = found.facts;
  facts.backend = "opencl";
  facts.index = index;
  facts.label = label_of(name);
  facts.silicon.vendor = vendor_word(device_text(api, device, kDeviceVendor));
  facts.silicon.arch = name;
  facts.silicon.multiprocessors =
      static_cast<int>(device_value<Uint>(api, device, kDeviceMaxComputeUnits, 0));
  facts.silicon.memory_bytes = device_value<Bits>(api, device, kDeviceGlobalMemory, 0);
  facts.driver = device_text(api, device, kDriverVersion);
  facts.compiler = platform_text(api, platform, kPlatformVersion);
  facts.languages = {Language::opencl};
  facts.runs_on_host_cpu = (device_value<Bits>(api, device, kDeviceTypeInfo, 0) & kDeviceTypeCpu) != 0;
  facts.memory_is_host_memory = facts.runs_on_host_cpu;
  if (facts.runs_on_host_cpu) {
    // What a CPU platform reports follows the system's free memory; the silicon does not. Whole GiB: the
    // total moves by a few MiB from kernel to kernel.
    facts.silicon.memory_bytes = rounded_memory(total_memory_bytes());
  }
  fill_limits(api, device, facts);
  fill_vendor_facts(api, device, extensions, facts);
  const std::string arch = pocl_arch(version);
  found.pocl = !arch.empty();
  if (found.pocl) facts.silicon.arch = arch;
  found.nv_verbose = has_word(extensions, "cl_nv_compiler_options");
  return found;
}

Int devices_of(const Api& api, PlatformId platform, std::vector<DeviceId>& devices) {
  Uint count = 0;
  Int code = api.get_devices(platform, kDeviceTypeAll, 0, nullptr, &count);
  if (code != kSuccess || count == 0) return code;
  devices.resize(count);
  code = api.get_devices(platform, kDeviceTypeAll, count, devices.data(), nullptr);
  if (code != kSuccess) devices.clear();
  return code;
}

}  // namespace

std::string vendor_word(std::string_view vendor) {
  for (const auto& [part, word] : {std::pair{"NVIDIA", "NVIDIA"},
                                   {"Advanced Micro Devices", "AMD"},
                                   {"AuthenticAMD", "AMD"},
                                   {"Intel", "Intel"},  // also GenuineIntel
                                   {"Apple", "Apple"},
                                   {"ARM", "ARM"}}) {
    if (vendor.find(part) != std::string_view::npos) return word;
  }
  return vendor.empty() ? "unknown" : std::string(vendor);
}

std::string pocl_arch(std::string_view device_version) {
  constexpr std::string_view kMark = "HSTR: ";
  const std::size_t at = device_version.find(kMark);
  if (at == std::string_view::npos || device_version.find("PoCL") == std::string_view::npos) {
    if (device_version.find("pocl") == std::string_view::npos || at == std::string_view::npos) return "";
  }
  std::string_view rest = trim(device_version.substr(at + kMark.size()));
  for (std::string_view prefix : {"pthread-", "basic-", "cpu-"}) {
    if (rest.starts_with(prefix)) rest.remove_prefix(prefix.size());
  }
  return std::string(rest);
}

Result<std::vector<Found>> find_devices(const Api& api) {
  Uint platform_count = 0;
  const Int counted = api.get_platforms(0, nullptr, &platform_count);
  if (counted == kPlatformNotFound || (counted == kSuccess && platform_count == 0)) {
    return fail(Code::unavailable,
                "the OpenCL loader finds no platform: install one, such as pocl-opencl-icd for the "
                "CPU or the card's driver");
  }
  if (counted != kSuccess) return error_of(counted, "listing OpenCL platforms");
  std::vector<PlatformId> platforms(platform_count);
  if (const Int code = api.get_platforms(platform_count, platforms.data(), nullptr); code != kSuccess) {
    return error_of(code, "listing OpenCL platforms");
  }
  std::vector<Found> all;
  std::vector<std::string> broken;
  for (PlatformId platform : platforms) {
    // A platform without devices, or with a broken driver, must not hide the others.
    std::vector<DeviceId> devices;
    if (const Int code = devices_of(api, platform, devices); code != kSuccess && code != kDeviceNotFound) {
      broken.push_back(fmt::format("{}: {}", platform_text(api, platform, kPlatformName), error_name(code)));
    }
    for (DeviceId device : devices)
      all.push_back(describe(api, platform, device, static_cast<int>(all.size())));
  }
  if (all.empty() && !broken.empty()) {
    return fail(Code::unavailable, "no OpenCL platform lists a device ({}): is its driver loaded?",
                join(broken, "; "));
  }
  return all;
}

}  // namespace furlong::device::cl
