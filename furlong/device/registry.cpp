#include "furlong/device/registry.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>

#include "furlong/base/log.h"
#include "furlong/base/text.h"

namespace furlong::device {
namespace {

// sim and null are no hardware: only by name.
constexpr std::array<std::string_view, 4> kPreference{"cuda", "metal", "opencl", "host"};

struct Address {
  std::string backend;
  int index = 0;
};

// Words that people type for cards, as folded() makes them, and who serves those cards here.
struct Served {
  std::string_view word, cards, backend;
};
constexpr std::array<Served, 24> kServed{{{"hip", "AMD cards", "opencl"},
                                          {"rocm", "AMD cards", "opencl"},
                                          {"amd", "AMD cards", "opencl"},
                                          {"amdgpu", "AMD cards", "opencl"},
                                          {"radeon", "AMD cards", "opencl"},
                                          {"metal", "Apple cards", "opencl"},
                                          {"mps", "Apple cards", "opencl"},
                                          {"apple", "Apple cards", "opencl"},
                                          {"vulkan", "cards with Vulkan", "opencl"},
                                          {"vk", "cards with Vulkan", "opencl"},
                                          {"levelzero", "Intel cards", "opencl"},
                                          {"l0", "Intel cards", "opencl"},
                                          {"ze", "Intel cards", "opencl"},
                                          {"oneapi", "Intel cards", "opencl"},
                                          {"sycl", "Intel cards", "opencl"},
                                          {"dpcpp", "Intel cards", "opencl"},
                                          {"xpu", "Intel cards", "opencl"},
                                          {"intel", "Intel cards", "opencl"},
                                          {"cl", "OpenCL devices", "opencl"},
                                          {"ocl", "OpenCL devices", "opencl"},
                                          {"pocl", "CPUs with PoCL", "opencl"},
                                          {"gpu", "cards of every maker", "opencl"},
                                          {"nvidia", "NVIDIA cards", "cuda"},
                                          {"cpu", "CPUs", "host"}}};

// "Level-Zero" → "levelzero"
std::string folded(std::string_view word) {
  std::string out;
  for (const char c : word) {
    if (c >= 'A' && c <= 'Z') out += static_cast<char>(c - 'A' + 'a');
    if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) out += c;
  }
  return out;
}

const Served* served(std::string_view word) {
  const std::string plain = folded(word);
  const auto* found =
      std::find_if(kServed.begin(), kServed.end(), [&](const Served& row) { return row.word == plain; });
  return found == kServed.end() ? nullptr : found;
}

Result<Address> parse_address(std::string_view text) {
  const std::size_t colon = text.find(':');
  Address address{std::string(text.substr(0, colon)), 0};
  const auto malformed = [&] {
    return fail(Code::invalid, "'{}' is no device address: write it like opencl:0, host or auto", text);
  };
  const bool lower = std::all_of(address.backend.begin(), address.backend.end(),
                                 [](char c) { return (c >= 'a' && c <= 'z') || c == '_'; });
  if (address.backend.empty() || !lower) return malformed();
  if (colon == std::string_view::npos) return address;
  const std::string_view digits = text.substr(colon + 1);
  // parse_integer would also take a sign.
  if (digits.empty() || digits.front() < '0' || digits.front() > '9') return malformed();
  const Result<std::int64_t> index = parse_integer(digits);
  if (!index || *index > std::numeric_limits<int>::max()) return malformed();
  address.index = static_cast<int>(*index);
  return address;
}

/// One line about a back end for an error: its devices, or why there are none.
std::string summary(const std::string& backend, const Result<std::vector<Facts>>& devices) {
  if (!devices) return fmt::format("{}: {}", backend, devices.error().message());
  if (devices->empty()) return fmt::format("{}: no device", backend);
  std::vector<std::string> names;
  for (const Facts& facts : *devices) names.push_back(fmt::format("{} ({})", facts.address(), facts.label));
  return join(names, ", ");
}

std::string what_is_there(const std::vector<Registry::Listed>& listed) {
  if (listed.empty()) return "this program has no back ends";
  std::vector<std::string> lines;
  for (const Registry::Listed& row : listed) lines.push_back(summary(row.backend, row.devices));
  return join(lines, "; ");
}

}  // namespace

void Registry::add(std::unique_ptr<Driver> driver) {
  if (driver) drivers_.push_back(std::move(driver));
}

Driver* Registry::find(std::string_view backend) const {
  for (const std::unique_ptr<Driver>& driver : drivers_) {
    if (driver->name() == backend) return driver.get();
  }
  return nullptr;
}

std::vector<Registry::Listed> Registry::list() const {
  std::vector<Listed> listed;
  for (const std::unique_ptr<Driver>& driver : drivers_) {
    listed.push_back({std::string(driver->name()), driver->list()});
  }
  return listed;
}

Result<std::unique_ptr<Device>> Registry::open_best() const {
  // A card that lists and does not open (no compiler, another's in exclusive mode) must not hide one that
  // does.
  std::vector<std::string> passed_over;
  const auto opens = [&](Driver& driver, int index) -> std::optional<Result<std::unique_ptr<Device>>> {
    auto device = driver.open(index);
    const bool kept_away =
        !device && (device.error().code() == Code::unavailable ||
                    device.error().code() == Code::incompatible || device.error().code() == Code::denied);
    if (!kept_away) return device;
    passed_over.push_back(fmt::format("{}:{}: {}", driver.name(), index, device.error().text()));
    log_warning("{}:{} is passed over: {}", driver.name(), index, device.error().text());
    return std::nullopt;
  };
  Driver* fallback = nullptr;
  int fallback_index = 0;
  for (std::string_view backend : kPreference) {
    Driver* driver = find(backend);
    if (driver == nullptr) continue;
    const Result<std::vector<Facts>> devices = driver->list();
    if (!devices) continue;
    // OpenCL often lists the CPU (PoCL) before the cards.
    for (const Facts& facts : *devices) {
      if (!facts.runs_on_host_cpu) {
        if (auto device = opens(*driver, facts.index)) return *std::move(device);
        continue;
      }
      if (fallback != nullptr) continue;
      fallback = driver;
      fallback_index = facts.index;
    }
  }
  if (fallback != nullptr) {
    if (auto device = opens(*fallback, fallback_index)) return *std::move(device);
  }
  if (!passed_over.empty()) return fail(Code::unavailable, "no device opens ({})", join(passed_over, "; "));
  return fail(Code::unavailable, "no device was found ({})", what_is_there(list()));
}

Result<std::unique_ptr<Device>> Registry::open(std::string_view address) const {
  if (address.empty() || address == "auto") return open_best();
  const std::string_view word = address.substr(0, address.find(':'));
  if (const Served* row = served(word); row != nullptr && find(word) == nullptr) {
    if (Driver* driver = find(row->backend)) {
      return fail(Code::unavailable, "there is no back end '{}': {} are served by {}, as {}:N (here: {})",
                  word, row->cards, row->backend, row->backend,
                  summary(std::string(row->backend), driver->list()));
    }
  }
  FURLONG_TRY(const Address wanted, parse_address(address));
  Driver* driver = find(wanted.backend);
  if (driver == nullptr) {
    std::vector<std::string> names;
    for (const std::unique_ptr<Driver>& one : drivers_) names.emplace_back(one->name());
    return fail(Code::unavailable, "there is no back end '{}'{} (there are: {})", wanted.backend,
                did_you_mean(wanted.backend, names), join(names, ", "));
  }
  Result<std::vector<Facts>> devices = driver->list();
  if (!devices) return Error(devices.error()).with(fmt::format("opening {}", address));
  const bool there = std::any_of(devices->begin(), devices->end(),
                                 [&](const Facts& facts) { return facts.index == wanted.index; });
  if (!there) {
    return fail(Code::unavailable, "there is no device {}:{} (there is: {})", wanted.backend, wanted.index,
                summary(wanted.backend, devices));
  }
  return driver->open(wanted.index);
}

}  // namespace furlong::device
