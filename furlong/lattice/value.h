#pragma once
// The values of knobs, problem parameters and expressions, with Python's meaning.

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "furlong/base/error.h"

namespace furlong::lattice {

/// A word, a boolean, a 64-bit integer or a float. Comparison across bool, int and float is by number
/// (True == 1 == 1.0), as in Python; a word equals only a word.
class Value {
 public:
  Value() : v_(std::int64_t{0}) {}
  Value(bool b) : v_(b) {}
  Value(std::int64_t i) : v_(i) {}
  Value(int i) : v_(std::int64_t{i}) {}
  Value(double d) : v_(d) {}
  Value(std::string s) : v_(std::move(s)) {}
  Value(const char* s) : v_(std::string(s)) {}
  // Out of line: inlined, g++ 12 warns of a word read before it is set (a false alarm) wherever a value is
  // moved.
  Value(const Value&);
  Value(Value&&) noexcept;
  Value& operator=(const Value&);
  Value& operator=(Value&&) noexcept;
  ~Value();

  bool is_bool() const { return std::holds_alternative<bool>(v_); }
  bool is_integer() const { return std::holds_alternative<std::int64_t>(v_); }
  bool is_float() const { return std::holds_alternative<double>(v_); }
  bool is_word() const { return std::holds_alternative<std::string>(v_); }
  const bool* boolean() const { return std::get_if<bool>(&v_); }
  const std::int64_t* integer() const { return std::get_if<std::int64_t>(&v_); }
  const double* floating() const { return std::get_if<double>(&v_); }
  const std::string* word() const { return std::get_if<std::string>(&v_); }
  /// Python's bool(x): 0, 0.0, False and "" are false.
  bool truthy() const;
  /// As it stands in a define, a table or a name: 8, 2.5, true, int4.
  std::string text() const;
  /// As it stands in an expression: 8, 2.5, True, 'int4'.
  std::string literal() const;
  /// Python's ==.
  friend bool operator==(const Value& a, const Value& b);

 private:
  std::variant<bool, std::int64_t, double, std::string> v_;
};

/// As an integer: integers and booleans; a float only when it is whole; else `invalid` naming `what`.
Result<std::int64_t> to_integer(const Value& value, std::string_view what);

}  // namespace furlong::lattice
