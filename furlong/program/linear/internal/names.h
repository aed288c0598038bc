#pragma once
// What an emitter reads by name, with its type.

#include <cstdint>
#include <string>
#include <string_view>

#include "furlong/program/emitter.h"
#include "furlong/program/linear/chips.h"

namespace furlong::program::linear {

class Names {
 public:
  explicit Names(const EmitNames& names) : names_(names) {}

  /// `invalid` where it is missing or of another type.
  Result<std::int64_t> integer(std::string_view name) const;
  Result<std::string> word(std::string_view name) const;
  /// The same with a value for a program that does not have the name.
  Result<std::int64_t> integer(std::string_view name, std::int64_t missing) const;
  Result<std::string> word(std::string_view name, std::string_view missing) const;
  /// Which of the words it is; the first for a program that does not have the name.
  Result<std::size_t> one_of(std::string_view name, std::span<const std::string_view> words) const;
  /// A side of a shape: `invalid` unless 1 to `largest`.
  Result<std::int64_t> side(std::string_view name, std::int64_t largest) const;

 private:
  const EmitNames& names_;
};

/// "#define NAME value" lines.
void define(std::string& text, std::string_view name, std::int64_t value);

/// The instructions that this chip has, behind plain functions.
void add_instructions(std::string& text, const Chip& chip);
/// `invalid` where a launch has more blocks than a card takes (2^31 - 1); `culprit` is what makes it so
/// large.
Status check_grid(const EmittedLaunch& launch, std::string_view culprit);

inline std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

}  // namespace furlong::program::linear
