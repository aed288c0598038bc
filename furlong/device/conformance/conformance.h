#pragma once
// One suite that every back end passes. A back end joins by one line in its own test file (gtest.h):
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

/// compile, compile error with the log, launch, several arguments and scalars, launch of a wrong shape,
/// timing sanity, out of memory, leak, concurrent compiles, buffer offsets, several entries, guard of wrong
/// argument counts … Each case opens the driver's first device for itself.
std::vector<ConformanceCase> conformance_cases();

/// The suite's kernels in the first language of `languages` that it has texts in; `unavailable` when there is
/// none. Entries: saxpy, scalars, place, count, shift (see kernels.cpp).
Result<CompileRequest> conformance_request(const std::vector<Language>& languages);
/// A text that must not compile: line 3 uses `furlong_undeclared`.
Result<CompileRequest> conformance_bad_request(const std::vector<Language>& languages);

/// For a back end that compiles nothing: what a compiler would say of a request of the suite.
Status conformance_compile(const CompileRequest& request);
/// For a back end that runs no code: does to the buffers what the suite's kernels would. `bytes` gives a
/// buffer's memory. `invalid` for a wrong number, kind or size of arguments.
Status conformance_run(const CompileRequest& module, const Launch& launch,
                       const std::function<std::uint8_t*(Buffer&)>& bytes);

}  // namespace furlong::device
