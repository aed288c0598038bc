#pragma once
// What the cases share: an open device with the suite's module, buffers of values, and expectations.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "furlong/device/conformance/conformance.h"

namespace furlong::device::conformance {

/// The driver's first device. Members go in the right order: the module before its device.
struct Rig {
  std::unique_ptr<Device> device;
  std::shared_ptr<Module> module;

  static Result<Rig> open(Driver& driver);
  /// Also compiles the suite's kernels.
  static Result<Rig> open_with_module(Driver& driver);

  Launch launch(std::string entry, std::vector<Argument> arguments, std::uint64_t grid = 1,
                std::uint64_t block = 1) const;
  /// Launches and finishes.
  Status run(const Launch& one);
};

template <class T>
Bytes scalar(T value) {
  Bytes bytes(sizeof(T));
  store_le(bytes.data(), value);
  return bytes;
}

/// A buffer that holds the values.
template <class T>
Result<std::unique_ptr<Buffer>> buffer_of(Device& device, const std::vector<T>& values) {
  FURLONG_TRY(std::unique_ptr<Buffer> buffer, device.allocate(values.size() * sizeof(T)));
  FURLONG_CHECK(
      buffer->write(0, {reinterpret_cast<const std::uint8_t*>(values.data()), values.size() * sizeof(T)}));
  return buffer;
}

template <class T>
Result<std::vector<T>> values_of(Buffer& buffer) {
  std::vector<T> values(buffer.size() / sizeof(T));
  FURLONG_CHECK(buffer.read(0, {reinterpret_cast<std::uint8_t*>(values.data()), values.size() * sizeof(T)}));
  return values;
}

/// `mismatch` with the message when the condition does not hold.
template <class... A>
Status expect(bool holds, fmt::format_string<A...> message, A&&... arguments) {
  if (holds) return {};
  return fail(Code::mismatch, "{}", fmt::format(message, std::forward<A>(arguments)...));
}

/// The result must be an error of this code whose text contains `needle`.
template <class T>
Status expect_error(const Result<T>& result, Code code, std::string_view what, std::string_view needle = "") {
  if (result) return fail(Code::mismatch, "{}: no error, expected {}", what, code_name(code));
  const Error& error = result.error();
  if (error.code() != code) {
    return fail(Code::mismatch, "{}: expected {}, got {}: {}", what, code_name(code), code_name(error.code()),
                error.text());
  }
  if (error.text().find(needle) == std::string::npos) {
    return fail(Code::mismatch, "{}: the message lacks '{}': {}", what, needle, error.text());
  }
  return {};
}

template <class T>
Status expect_equal(const std::vector<T>& found, const std::vector<T>& wanted, std::string_view what) {
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (i >= found.size() || found[i] != wanted[i]) {
      return fail(Code::mismatch, "{}: element {} of {} is {}, expected {}", what, i, wanted.size(),
                  i < found.size() ? fmt::format("{}", found[i]) : "absent", wanted[i]);
    }
  }
  return {};
}

std::vector<ConformanceCase> compile_cases();
std::vector<ConformanceCase> launch_cases();
std::vector<ConformanceCase> memory_cases();
std::vector<ConformanceCase> time_cases();

}  // namespace furlong::device::conformance
