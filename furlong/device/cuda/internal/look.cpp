// What findings are made of, read from the machine.
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "furlong/base/text.h"
#include "furlong/device/cuda/internal/facts.h"
#include "furlong/device/cuda/internal/findings.h"

namespace furlong::device::cuda {
namespace {

namespace fs = std::filesystem;

std::optional<std::string> variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? std::optional<std::string>(value) : std::nullopt;
}

std::string first_word(const fs::path& path) {
  std::ifstream file(path);
  std::string word;
  file >> word;
  return word;
}

// 0x10de is NVIDIA; class 0x03…: display (0x0302 for cards without a screen).
int cards_on_the_bus() {
  int count = 0;
  std::error_code error;
  for (fs::directory_iterator entry("/sys/bus/pci/devices", error), end; !error && entry != end;
       entry.increment(error)) {
    if (first_word(entry->path() / "vendor") == "0x10de" &&
        first_word(entry->path() / "class").starts_with("0x03"))
      ++count;
  }
  return count;
}

// The control daemon's pipe: a variable alone starts no service.
std::optional<std::string> mps_pipe() {
  const std::string folder = variable("CUDA_MPS_PIPE_DIRECTORY").value_or("/tmp/nvidia-mps");
  std::error_code ignored;
  const fs::path control = fs::path(folder) / "control";
  if (folder.empty() || !fs::exists(control, ignored)) return std::nullopt;
  return control.string();
}

void look_at_named_driver(PlatformSeen& seen) {
  seen.named_driver = variable("FURLONG_CUDA_DRIVER");
  if (seen.named_driver == "") seen.named_driver.reset();  // as if it were not set
  // A name without a folder is looked for along the loader's path.
  std::error_code ignored;
  if (seen.named_driver && seen.named_driver->contains('/'))
    seen.named_driver_is_there = fs::exists(*seen.named_driver, ignored);
}

void look_at_processes(const CardState& card, PlatformSeen& seen) {
  std::error_code ignored;
  for (const CardProcess& process : card.processes.value_or(std::vector<CardProcess>{})) {
    if (!fs::exists(fmt::format("/proc/{}", process.pid), ignored))
      seen.processes_elsewhere.insert(process.pid);
  }
}

void look_at_compilers(PlatformSeen& seen) {
  seen.nvrtc_is_named = nvrtc_is_named();
  const Result<std::vector<Nvrtc>> all = Nvrtc::all();
  if (!all) {
    seen.no_nvrtc = all.error().text();
    return;
  }
  for (const Nvrtc& each : *all)
    seen.compilers.push_back({each.major(), each.minor(), each.name(), each.architectures()});
}

}  // namespace

PlatformSeen look_at_platform() {
  PlatformSeen seen;
  seen.this_process = static_cast<unsigned>(::getpid());
  look_at_named_driver(seen);
  seen.visible_devices = variable("CUDA_VISIBLE_DEVICES");
  seen.cards_on_the_bus = cards_on_the_bus();
  seen.mps_pipe = mps_pipe();
  const Result<Nvml> nvml = Nvml::open();
  if (nvml) {
    seen.driver_version = nvml->driver_version();
    seen.cards_of_nvml = nvml->uuids().size();
  } else {
    seen.no_nvml = nvml.error().text();
  }
  const Result<const Api*> loaded = load_driver();
  if (!loaded) {
    seen.no_driver = loaded.error();
    return seen;
  }
  const Api& api = **loaded;
  seen.driver_file = api.file;
  seen.version = api.version;
  seen.started = api.started;
  if (api.started != kSuccess) {
    seen.started_name = api.name_of(api.started);
    return seen;
  }
  look_at_compilers(seen);
  int count = 0;
  if (api.card_count(&count) != kSuccess) return seen;  // list() tells the error
  for (int index = 0; index < count; ++index) {
    Card card = 0;
    if (api.card(&card, index) != kSuccess) continue;
    const Facts facts = card_facts(api, card, index);
    CardSeen one{facts.address(), facts.silicon.arch, bus_id(api, card), std::nullopt};
    if (nvml) {
      if (const auto found = nvml->card(facts.uuid, one.bus_id)) one.state = found->state();
    }
    if (one.state) look_at_processes(*one.state, seen);
    seen.cards.push_back(std::move(one));
  }
  return seen;
}

}  // namespace furlong::device::cuda
