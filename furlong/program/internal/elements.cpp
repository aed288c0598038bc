#include "furlong/program/internal/elements.h"

#include <cmath>
#include <limits>

#include "furlong/program/internal/half.h"

namespace furlong::program::internal {
namespace {

template <class T>
IntegerRange range_of() {
  return {static_cast<std::int64_t>(std::numeric_limits<T>::min()),
          static_cast<std::uint64_t>(std::numeric_limits<T>::max())};
}

}  // namespace

IntegerRange integer_range(ElementType type) {
  switch (type) {
    case ElementType::i8:
      return range_of<std::int8_t>();
    case ElementType::u8:
      return range_of<std::uint8_t>();
    case ElementType::i16:
      return range_of<std::int16_t>();
    case ElementType::u16:
      return range_of<std::uint16_t>();
    case ElementType::i32:
      return range_of<std::int32_t>();
    case ElementType::u32:
      return range_of<std::uint32_t>();
    case ElementType::i64:
      return range_of<std::int64_t>();
    case ElementType::u64:
      return range_of<std::uint64_t>();
    case ElementType::f16:
    case ElementType::f32:
    case ElementType::f64:
      break;
  }
  return {};
}

double element_number(ElementType type, const std::uint8_t* at) {
  switch (type) {
    case ElementType::i8:
      return load_le<std::int8_t>(at);
    case ElementType::u8:
      return load_le<std::uint8_t>(at);
    case ElementType::i16:
      return load_le<std::int16_t>(at);
    case ElementType::u16:
      return load_le<std::uint16_t>(at);
    case ElementType::i32:
      return load_le<std::int32_t>(at);
    case ElementType::u32:
      return load_le<std::uint32_t>(at);
    case ElementType::i64:
      return static_cast<double>(load_le<std::int64_t>(at));
    case ElementType::u64:
      return static_cast<double>(load_le<std::uint64_t>(at));
    case ElementType::f16:
      return half_to_double(load_le<std::uint16_t>(at));
    case ElementType::f32:
      return static_cast<double>(load_le<float>(at));
    case ElementType::f64:
      return load_le<double>(at);
  }
  return 0;
}

std::string element_text(ElementType type, const std::uint8_t* at) {
  switch (type) {
    case ElementType::i64:
      return fmt::format("{}", load_le<std::int64_t>(at));
    case ElementType::u64:
      return fmt::format("{}", load_le<std::uint64_t>(at));
    case ElementType::f32:
      return fmt::format("{}", load_le<float>(at));
    default:
      return fmt::format("{}", element_number(type, at));
  }
}

void store_integer(ElementType type, std::uint64_t value, std::uint8_t* at) {
  std::memcpy(at, &value, element_bytes(type));
}

void store_float(ElementType type, double value, std::uint8_t* at) {
  if (type == ElementType::f64) return store_le(at, value);
  if (type == ElementType::f16) return store_le(at, half_from_double(value));
  store_le(at, static_cast<float>(value));
}

Status store_element(ElementType type, const lattice::Value& value, std::string_view what, std::uint8_t* at) {
  if (value.is_word()) return fail(Code::invalid, "{}: '{}' is a word, not a number", what, value.text());
  if (is_floating(type)) {
    const double number = value.is_float()     ? *value.floating()
                          : value.is_integer() ? static_cast<double>(*value.integer())
                                               : (value.truthy() ? 1.0 : 0.0);
    const double largest = type == ElementType::f16   ? 65504.0
                           : type == ElementType::f32 ? static_cast<double>(std::numeric_limits<float>::max())
                                                      : std::numeric_limits<double>::max();
    if (std::isfinite(number) && std::fabs(number) > largest)
      return fail(Code::invalid, "{}: {} does not fit {}", what, number, element_name(type));
    store_float(type, number, at);
    return {};
  }
  FURLONG_TRY(const std::int64_t number, lattice::to_integer(value, what));
  const IntegerRange range = integer_range(type);
  if (number < range.low || (number > 0 && static_cast<std::uint64_t>(number) > range.high))
    return fail(Code::invalid, "{}: {} does not fit {}", what, number, element_name(type));
  store_integer(type, static_cast<std::uint64_t>(number), at);
  return {};
}

}  // namespace furlong::program::internal
