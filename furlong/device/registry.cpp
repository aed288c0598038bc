#include "furlong/device/registry.h"

#include <algorithm>
#include <array>
#include <limits>

#include "furlong/base/text.h"

namespace furlong::device {
namespace {

// sim and null are no hardware: only by name.
constexpr std::array<std::string_view, 4> kPreference{"cuda", "metal", "opencl", "host"};

struct Address {
  std::string backend;
  int index = 0;
};

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

Result<std::unique_ptr<Device>> Registry::open(std::string_view address) const {
  if (address.empty() || address == "auto") {
    for (std::string_view backend : kPreference) {
      Driver* driver = find(backend);
      if (driver == nullptr) continue;
      const Result<std::vector<Facts>> devices = driver->list();
      if (devices && !devices->empty()) return driver->open(devices->front().index);
    }
    return fail(Code::unavailable, "no device was found ({})", what_is_there(list()));
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
