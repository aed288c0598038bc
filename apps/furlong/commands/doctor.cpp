#include <cstdlib>
#include <fstream>
#include <set>

#include "apps/furlong/backends.h"
#include "apps/furlong/commands.h"
#include "apps/furlong/session.h"
#include "furlong/base/json.h"
#include "furlong/base/os/memory.h"
#include "furlong/base/os/paths.h"
#include "furlong/base/text.h"

namespace furlong::app {
namespace {

using Check = device::Finding;
using Level = Check::Level;

std::string_view level_word(Level level) {
  return level == Level::ok ? "ok" : level == Level::note ? "note" : "problem";
}

std::string read_first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

Check folder_check(std::string what, const std::filesystem::path& folder) {
  const auto probe = folder / ".doctor";
  if (auto written = system_files().write_atomic(probe, "x"); !written) {
    return {Level::problem, std::move(what), written.error().text(),
            "make the folder writable, or name another (FURLONG_CACHE_DIR, FURLONG_STATE_DIR)"};
  }
  if (auto removed = system_files().remove(probe); !removed)
    return {Level::problem, std::move(what), removed.error().text(), "make the folder writable"};
  std::error_code error;
  const auto space = std::filesystem::space(folder, error);
  if (!error && space.available < (1ull << 30)) {
    return {Level::problem, std::move(what),
            fmt::format("{}: {} free", folder.string(), human_bytes(space.available)),
            "free at least 1 GiB, or name another folder"};
  }
  return {Level::ok, std::move(what),
          fmt::format("{}: {} free", folder.string(), human_bytes(space.available)), ""};
}

/// A frequency governor that changes the clock under a CPU race.
std::vector<Check> cpu_checks() {
  std::vector<Check> checks;
  const std::string governor = read_first_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
  if (!governor.empty() && governor != "performance") {
    checks.push_back({Level::note, "CPU clock", "frequency governor is " + governor,
                      "for CPU races: cpupower frequency-set -g performance"});
  }
  const std::string load = read_first_line("/proc/loadavg");
  double one_minute = 0;
  if (!load.empty()) one_minute = std::strtod(load.c_str(), nullptr);
  if (one_minute > 1) {
    checks.push_back({Level::note, "other work", fmt::format("load average {:.1f}", one_minute),
                      "stop it before a race on the CPU, whose intervals it widens"});
  }
  return checks;
}

Check compile_check(device::Driver& driver, const device::Facts& facts) {
  auto device = driver.open(facts.index);
  const std::string what = facts.address();
  if (!device) return {Level::problem, what, device.error().text(), "see docs/devices.md"};
  device::CompileRequest request;
  request.language = facts.languages.empty() ? device::Language::host : facts.languages.front();
  request.name = "doctor";
  request.source_name = "doctor";
  request.entries = {"doctor"};
  if (request.language == device::Language::opencl) {
    request.source = "__kernel void doctor(__global int* x) { x[get_global_id(0)] = 42; }\n";
  } else if (request.language == device::Language::host) {
    request.source = "extern \"C\" void doctor(const furlong_block& block, int* x) { x[block.x] = 42; }\n";
  } else {
    request.source =
        "extern \"C\" __global__ void doctor(int* x) { x[blockIdx.x * blockDim.x + threadIdx.x] = 42; }\n";
  }
  auto module = (*device)->compile(request);
  if (!module)
    return {Level::problem, what, module.error().text(),
            "the device lists, but its compiler does not work: reinstall it"};
  auto buffer = (*device)->allocate(4096);
  if (!buffer) return {Level::problem, what, buffer.error().text(), "free memory on the device"};
  device::Launch launch{
      .module = module->get(), .entry = "doctor", .arguments = {device::BufferArgument{buffer->get(), 0}}};
  Status ran = (*device)->launch(launch);
  if (ran) ran = (*device)->finish();
  std::array<std::uint8_t, 4> word{};
  if (ran) ran = (*buffer)->read(0, word);
  if (!ran)
    return {Level::problem, what, ran.error().text(), "a one-line kernel fails on it: check the driver"};
  if (load_le<std::int32_t>(word.data()) != 42)
    return {Level::problem, what, "a one-line kernel gave a wrong result",
            "check the driver and the card's memory"};
  return {Level::ok, what, fmt::format("{}: compiles and runs ({})", facts.label, facts.compiler), ""};
}

std::vector<Check> all_checks() {
  device::Registry registry;
  add_backends(registry);
  std::vector<Check> checks;
  std::set<std::string> told;
  // Before anything is run on a device: a context of this process would show among the users of a card.
  for (const auto& driver : registry.drivers()) {
    for (Check& finding : driver->findings()) {
      checks.push_back(std::move(finding));
      told.emplace(driver->name());
    }
  }
  int usable = 0;
  for (const auto& driver : registry.drivers()) {
    const std::string name(driver->name());
    if (name == "null" || name == "sim") continue;
    auto listed = driver->list();
    if (!listed) {
      if (!told.contains(name))
        checks.push_back({Level::note, name, listed.error().text(), absent_mend(*driver)});
      continue;
    }
    if (listed->empty()) checks.push_back({Level::note, name, "no device", absent_mend(*driver)});
    for (const auto& facts : *listed) {
      checks.push_back(compile_check(*driver, facts));
      usable += checks.back().level == Level::ok ? 1 : 0;
    }
  }
  if (usable == 0)
    checks.push_back(
        {Level::problem, "devices", "none can run a kernel", "apt-get install g++ pocl-opencl-icd"});
  checks.push_back(folder_check("cache", cache_folder()));
  checks.push_back(folder_check("state", state_folder()));
  if (const auto available = available_memory_bytes(); available > 0 && available < (1ull << 30)) {
    checks.push_back({Level::problem, "memory", human_bytes(available) + " available",
                      "free memory; a race of the lottery's default geometry needs 2 GiB"});
  } else if (available > 0) {
    checks.push_back({Level::ok, "memory", human_bytes(available) + " available", ""});
  }
  if (auto quarantine = open_quarantine()) {
    if (const auto listed = quarantine->list(); !listed)
      checks.push_back(
          {Level::problem, "quarantine", listed.error().text(), "furlong quarantine clear --all"});
  } else {
    checks.push_back({Level::problem, "quarantine", quarantine.error().text(), ""});
  }
  for (auto& check : cpu_checks()) checks.push_back(std::move(check));
  return checks;
}

Result<int> run(const Arguments& arguments) {
  const auto checks = all_checks();
  bool problem = false;
  Json list = Json::array();
  std::string text;
  for (const Check& check : checks) {
    problem |= check.level == Level::problem;
    list.push_back(Json{{"level", level_word(check.level)},
                        {"what", check.what},
                        {"finding", check.finding},
                        {"mend", check.mend}});
    // No table: findings are sentences of a compiler or a driver, wider than any terminal.
    const std::string head = fmt::format("{:<8} {:<11}", level_word(check.level), check.what);
    std::string finding = wrap(check.finding, head.size() + 1);
    text += finding.replace(0, head.size(), head);
    if (!check.mend.empty()) text += wrap("to do: " + check.mend, head.size() + 1);
  }
  print_out(arguments.flag("--json") ? json_pretty(Json{{"schema", 1}, {"checks", list}}) : text);
  return problem ? exit_failed : exit_ok;
}

}  // namespace

CommandSpec doctor_command() {
  return {.name = "doctor",
          .summary =
              "Check what a race needs here: devices, compilers, folders, memory; say the one thing to do "
              "about each finding.",
          .description = "Runs a one-line kernel on every device. Exit 0 when nothing is a problem, else 3.",
          .positionals = {},
          .options = {{.name = "--json", .value_name = "", .help = "As JSON."}},
          .examples = {{"furlong doctor", ""}},
          .run = run};
}

}  // namespace furlong::app
