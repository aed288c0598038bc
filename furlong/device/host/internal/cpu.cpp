#include "furlong/device/host/internal/cpu.h"

#include <sched.h>
#include <sys/utsname.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <set>
#include <sstream>

#include "furlong/base/text.h"

namespace furlong::device::host {
namespace {

// The x86-64 psABI's microarchitecture levels, by the names of /proc/cpuinfo (abm: lzcnt, pni: SSE3).
constexpr std::array<std::string_view, 7> kLevel2{"cx16",   "lahf_lm", "popcnt", "pni",
                                                  "sse4_1", "sse4_2",  "ssse3"};
constexpr std::array<std::string_view, 9> kLevel3{"avx", "avx2", "bmi1",  "bmi2", "f16c",
                                                  "fma", "abm",  "movbe", "xsave"};
constexpr std::array<std::string_view, 5> kLevel4{"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"};

std::string x86_level(std::string_view features) {
  std::set<std::string, std::less<>> have;
  for (std::string& word : split(features, ' ')) have.insert(std::move(word));
  const auto all = [&](const auto& names) {
    return std::all_of(names.begin(), names.end(),
                       [&](std::string_view name) { return have.contains(name); });
  };
  if (!all(kLevel2)) return "x86-64";
  if (!all(kLevel3)) return "x86-64-v2";
  return all(kLevel4) ? "x86-64-v4" : "x86-64-v3";
}

std::string vendor_word(std::string_view id) {
  if (id == "GenuineIntel") return "Intel";
  if (id == "AuthenticAMD") return "AMD";
  if (id == "0x41") return "ARM";
  return std::string(id);
}

std::string first_line(const std::string& path) {
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  return line;
}

std::optional<double> number_in(const std::string& path) {
  const std::string line = first_line(path);
  const Result<double> value = parse_number(trim(line));
  if (!value) return std::nullopt;
  return *value;
}

std::string whole_file(const std::string& path) {
  std::ifstream in(path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

// The value of the first line "key   : value".
std::string field(std::string_view cpuinfo, std::string_view key) {
  for (std::size_t at = 0; at < cpuinfo.size();) {
    const std::size_t end = std::min(cpuinfo.find('\n', at), cpuinfo.size());
    const std::string_view line = cpuinfo.substr(at, end - at);
    const std::size_t colon = line.find(':');
    if (colon != std::string_view::npos && trim(line.substr(0, colon)) == key) {
      return std::string(trim(line.substr(colon + 1)));
    }
    at = end + 1;
  }
  return "";
}

}  // namespace

Cpu parse_cpuinfo(std::string_view cpuinfo, std::string_view machine) {
  Cpu cpu;
  cpu.features = field(cpuinfo, "flags");
  if (cpu.features.empty()) cpu.features = field(cpuinfo, "Features");
  cpu.model = field(cpuinfo, "model name");
  if (cpu.model.empty()) {
    const std::string part = field(cpuinfo, "CPU part");
    cpu.model = part.empty() ? std::string(machine) : fmt::format("{} {}", machine, part);
  }
  std::string vendor = field(cpuinfo, "vendor_id");
  if (vendor.empty()) vendor = field(cpuinfo, "CPU implementer");
  cpu.vendor = vendor.empty() ? "unknown" : vendor_word(vendor);
  cpu.arch = machine == "x86_64" ? x86_level(cpu.features) : std::string(machine);
  return cpu;
}

Cpu this_cpu() {
  utsname names{};
  uname(&names);
  return parse_cpuinfo(whole_file("/proc/cpuinfo"), names.machine);
}

int usable_cores() {
  // Machines with more processors than cpu_set_t holds refuse the small mask: ask with larger ones.
  for (int processors = 1024; processors <= 1 << 20; processors *= 4) {
    cpu_set_t* set = CPU_ALLOC(static_cast<std::size_t>(processors));
    if (set == nullptr) break;
    const std::size_t bytes = CPU_ALLOC_SIZE(static_cast<std::size_t>(processors));
    const bool known = sched_getaffinity(0, bytes, set) == 0;
    const int count = known ? CPU_COUNT_S(bytes, set) : 0;
    CPU_FREE(set);
    if (known) return std::max(1, count);
  }
  return 1;
}

std::string kernel_release() {
  utsname names{};
  return uname(&names) == 0 ? names.release : "unknown";
}

Telemetry cpu_telemetry() {
  Telemetry now;
  if (const auto khz = number_in("/sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq")) {
    now.clock_mhz = *khz / 1000;
  } else if (const auto mhz = parse_number(field(whole_file("/proc/cpuinfo"), "cpu MHz"))) {
    now.clock_mhz = *mhz;
  }
  for (int zone = 0; zone < 16; ++zone) {
    const std::string folder = fmt::format("/sys/class/thermal/thermal_zone{}/", zone);
    if (first_line(folder + "type") != "x86_pkg_temp") continue;
    if (const auto milli = number_in(folder + "temp")) now.temperature_c = *milli / 1000;
  }
  return now;
}

std::optional<double> EnergyCounter::joules() {
  double sum_uj = 0;
  bool any = false;
  for (int number = 0; number < 64; ++number) {
    const std::string package = (folder_ / fmt::format("intel-rapl:{}", number)).string();
    // "psys" is the whole platform, and its packages would be counted twice.
    if (!first_line(package + "/name").starts_with("package")) continue;
    const std::optional<double> uj = number_in(package + "/energy_uj");
    if (!uj) return std::nullopt;  // a sum over some of them would mislead
    const auto [place, first] = packages_.try_emplace(number, Package{*uj, *uj});
    Package& counted = place->second;
    double step_uj = *uj - counted.last_uj;
    if (step_uj < 0) step_uj += number_in(package + "/max_energy_range_uj").value_or(counted.last_uj);
    counted.sum_uj += step_uj;
    counted.last_uj = *uj;
    sum_uj += counted.sum_uj;
    any = true;
  }
  if (!any) return std::nullopt;
  return sum_uj * 1e-6;
}

}  // namespace furlong::device::host
