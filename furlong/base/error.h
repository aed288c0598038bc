#pragma once
// Error and Result<T>: the only way a failure crosses a boundary in Furlong. Exceptions of third-party
// libraries are converted where they are called; nothing in the library prints or exits.

#include <fmt/format.h>

#include <expected>
#include <source_location>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace furlong {

/// What the caller can do next.
enum class Code {
  unavailable,   ///< not here (no driver, no device): skip it
  invalid,       ///< the input is wrong: fix it (the message names file, line and field)
  mismatch,      ///< the output of a kernel is wrong
  timeout,       ///< it did not end in the time it was given
  exhausted,     ///< memory, disk or another resource ran out
  corrupt,       ///< stored data is damaged: the message names the file and the byte
  incompatible,  ///< data or a driver of another version: the message says found and expected
  denied,        ///< not permitted or not trusted
  internal,      ///< a defect in Furlong or an unexpected failure of the system
};

/// The code's word, as it stands in messages and JSON ("invalid").
std::string_view code_name(Code code);

/// A failure: a code, a message that names the culprit, and the contexts it passed through
/// (innermost first). A value type; copies are independent.
class [[nodiscard]] Error {
 public:
  Error(Code code, std::string message) : code_(code), message_(std::move(message)) {}

  Code code() const { return code_; }
  const std::string& message() const { return message_; }
  const std::vector<std::string>& context() const { return context_; }

  /// Adds what was being done ("reading pack.toml"); returns itself so that it chains.
  Error&& with(std::string doing) && {
    context_.push_back(std::move(doing));
    return std::move(*this);
  }

  /// One line: "doing outer: doing inner: message".
  std::string text() const;

 private:
  Code code_;
  std::string message_;
  std::vector<std::string> context_;
};

/// Either a T or an Error.
template <class T>
class [[nodiscard]] Result : public std::expected<T, Error> {
 public:
  using std::expected<T, Error>::expected;
  Result(Error error) : std::expected<T, Error>(std::unexpected(std::move(error))) {}
};

using Status = Result<void>;

/// Error with a fmt-formatted message: fail(Code::invalid, "{}:{}: unknown key '{}'", file, line, key).
template <class... A>
Error fail(Code code, fmt::format_string<A...> format, A&&... args) {
  return Error(code, fmt::format(format, std::forward<A>(args)...));
}

}  // namespace furlong

#define FURLONG_CONCAT_(a, b) a##b
#define FURLONG_CONCAT(a, b) FURLONG_CONCAT_(a, b)

/// FURLONG_TRY(auto x, f()); — declares x from a Result, or returns its Error.
#define FURLONG_TRY(declaration, expression) \
  FURLONG_TRY_(FURLONG_CONCAT(furlong_try_, __LINE__), declaration, expression)
#define FURLONG_TRY_(name, declaration, expression)            \
  auto name = (expression);                                    \
  if (!name) return ::furlong::Error(std::move(name).error()); \
  declaration = *std::move(name)

/// FURLONG_CHECK(f()); — returns the Error of a Status or Result, if it is one.
#define FURLONG_CHECK(expression)                                                    \
  do {                                                                               \
    auto furlong_check_ = (expression);                                              \
    if (!furlong_check_) return ::furlong::Error(std::move(furlong_check_).error()); \
  } while (false)

/// FURLONG_CHECK_DOING(f(), "reading {}", path) — as FURLONG_CHECK, with a context added.
#define FURLONG_CHECK_DOING(expression, ...)                                                     \
  do {                                                                                           \
    auto furlong_check_ = (expression);                                                          \
    if (!furlong_check_)                                                                         \
      return ::furlong::Error(std::move(furlong_check_).error()).with(fmt::format(__VA_ARGS__)); \
  } while (false)
