#pragma once
// One suite that every back end passes. A back end joins by one line in its own test file:
//   FURLONG_CONFORMANCE(host, furlong::device::make_host_driver());
// A device that answers `unavailable` skips; anything else fails. Permanent exclusions carry a reason.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "furlong/device/device.h"

namespace furlong::device {

struct ConformanceCase {
  std::string name;
  /// Empty Status: passed; `unavailable`: skipped with the reason; else failed.
  std::function<Status(Driver&)> run;
};

/// compile, compile error with the log, launch, several arguments and scalars, launch of a wrong shape, timing sanity,
/// out of memory, leak, concurrent compiles, buffer offsets, several entries, guard of wrong argument counts …
std::vector<ConformanceCase> conformance_cases();

}  // namespace furlong::device
