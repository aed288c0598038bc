#include "furlong/lattice/value.h"

#include <cmath>

#include "furlong/lattice/internal/arithmetic.h"

namespace furlong::lattice {

Value::Value(const Value&) = default;
Value::Value(Value&&) noexcept = default;
Value& Value::operator=(const Value&) = default;
Value& Value::operator=(Value&&) noexcept = default;
Value::~Value() = default;

bool Value::truthy() const {
  if (const auto* b = boolean()) return *b;
  if (const auto* i = integer()) return *i != 0;
  if (const auto* d = floating()) return *d != 0;  // NaN is true, as in Python
  return !word()->empty();
}

std::string Value::text() const {
  if (const auto* b = boolean()) return *b ? "true" : "false";
  if (const auto* i = integer()) return fmt::format("{}", *i);
  if (const auto* w = word()) return *w;
  const double d = *floating();
  std::string digits = fmt::format("{}", d);
  // A whole float keeps its point: as a define, 2.0 and 2 are different kernels.
  if (std::isfinite(d) && digits.find_first_of(".e") == std::string::npos) digits += ".0";
  return digits;
}

std::string Value::literal() const {
  if (const auto* b = boolean()) return *b ? "True" : "False";
  if (!is_word()) return text();
  std::string quoted = "'";
  for (const char c : *word()) {
    if (c == '\n' || c == '\t') {
      quoted += c == '\n' ? "\\n" : "\\t";
      continue;
    }
    if (c == '\\' || c == '\'') quoted += '\\';
    quoted += c;
  }
  return quoted + "'";
}

bool operator==(const Value& a, const Value& b) {
  bool equal = false;
  internal::compare(internal::Order::equal, a, b, equal);
  return equal;
}

Result<std::int64_t> to_integer(const Value& value, std::string_view what) {
  if (const auto* i = value.integer()) return *i;
  if (const auto* b = value.boolean()) return std::int64_t{*b ? 1 : 0};
  if (const auto* d = value.floating()) {
    if (*d == std::trunc(*d) && *d >= -0x1p63 && *d < 0x1p63) return static_cast<std::int64_t>(*d);
    return fail(Code::invalid, "{}: {} is no whole number of 64 bits", what, value.text());
  }
  return fail(Code::invalid, "{}: '{}' is a word; a whole number is needed", what, value.text());
}

}  // namespace furlong::lattice
