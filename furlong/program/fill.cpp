#include "furlong/program/fill.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <new>
#include <stdexcept>

#include "furlong/base/os/memory.h"
#include "furlong/base/random.h"
#include "furlong/base/text.h"
#include "furlong/program/internal/elements.h"
#include "furlong/program/internal/half.h"

namespace furlong::program {
namespace {

// A bound as the low 64 bits of an integer of the type; past the type's ends it is the end.
std::uint64_t integer_bound(double bound, const internal::IntegerRange& range) {
  if (bound <= static_cast<double>(range.low)) return static_cast<std::uint64_t>(range.low);
  if (bound >= static_cast<double>(range.high)) return range.high;
  if (bound < 0) return static_cast<std::uint64_t>(static_cast<std::int64_t>(bound));
  return static_cast<std::uint64_t>(bound);
}

// One loop a width, so that gigabytes are filled at the speed of the generator.
template <class T>
void fill_with(Bytes& bytes, auto next) {
  for (std::size_t at = 0; at < bytes.size(); at += sizeof(T))
    store_le(bytes.data() + at, static_cast<T>(next()));
}

void fill_random_integers(const ArgumentSpec& argument, Random& random, Bytes& bytes) {
  const auto range = internal::integer_range(argument.type);
  const std::uint64_t low = integer_bound(std::ceil(argument.low), range);
  const std::uint64_t high =
      integer_bound(std::max(std::ceil(argument.low), std::floor(argument.high)), range);
  const std::uint64_t span = high - low;  // modulo 2^64: right for signed types too
  const bool whole = span == std::numeric_limits<std::uint64_t>::max();
  const auto next = [&] { return low + (whole ? random.next() : random.below(span + 1)); };
  switch (element_bytes(argument.type)) {
    case 1:
      return fill_with<std::uint8_t>(bytes, next);
    case 2:
      return fill_with<std::uint16_t>(bytes, next);
    case 4:
      return fill_with<std::uint32_t>(bytes, next);
    default:
      return fill_with<std::uint64_t>(bytes, next);
  }
}

void fill_random_floats(const ArgumentSpec& argument, Random& random, Bytes& bytes) {
  const double low = argument.low;
  const double high = argument.high;
  const auto next = [&] {
    const double u = random.uniform();
    return low * (1 - u) + high * u;  // not low + u * (high - low), whose difference can overflow
  };
  if (argument.type == ElementType::f64) return fill_with<double>(bytes, next);
  if (argument.type == ElementType::f32) return fill_with<float>(bytes, next);
  fill_with<std::uint16_t>(bytes, [&] { return internal::half_from_double(next()); });
}

void fill_sequence(const ArgumentSpec& argument, Bytes& bytes) {
  const std::size_t size = element_bytes(argument.type);
  for (std::size_t i = 0; i * size < bytes.size(); ++i) {
    std::uint8_t* at = bytes.data() + i * size;
    if (is_floating(argument.type))
      internal::store_float(argument.type, static_cast<double>(i), at);
    else
      internal::store_integer(argument.type, i, at);
  }
}

Status fill_value(const ArgumentSpec& argument, const lattice::Value& value, Bytes& bytes) {
  const std::size_t size = element_bytes(argument.type);
  if (bytes.empty()) return {};
  FURLONG_CHECK(internal::store_element(argument.type, value,
                                        fmt::format("value of argument '{}'", argument.name), bytes.data()));
  for (std::size_t at = size; at < bytes.size(); at += size)
    std::memcpy(bytes.data() + at, bytes.data(), size);
  return {};
}

Status fill_file(const ArgumentSpec& argument, Bytes& bytes) {
  if (argument.data == nullptr) return fail(Code::internal, "argument '{}' has no data file", argument.name);
  const std::size_t size = element_bytes(argument.type);
  if (argument.data->bytes.size() != bytes.size())
    return fail(Code::invalid, "argument '{}': the file '{}' has {} elements of {}, the problem needs {}",
                argument.name, argument.file.filename().string(),
                static_cast<double>(argument.data->bytes.size()) / static_cast<double>(size),
                element_name(argument.type), bytes.size() / size);
  bytes = argument.data->bytes;
  return {};
}

}  // namespace

Result<std::uint64_t> buffer_bytes(const ArgumentSpec& argument, std::uint64_t count) {
  std::uint64_t bytes = 0;
  if (__builtin_mul_overflow(count, element_bytes(argument.type), &bytes) ||
      bytes > std::uint64_t{std::numeric_limits<std::int64_t>::max()})
    return fail(Code::exhausted, "argument '{}': {} elements of {} are more bytes than 64 bits can say",
                argument.name, count, element_name(argument.type));
  // Asked for more than there is, Linux would promise it and kill the process later.
  const std::uint64_t total = total_memory_bytes();
  if (total > 0 && bytes > total)
    return fail(Code::exhausted, "argument '{}' needs {}, this machine has {} of memory", argument.name,
                human_bytes(bytes), human_bytes(total));
  return bytes;
}

Result<Bytes> one_element(const ArgumentSpec& argument, const lattice::Value& value) {
  Bytes bytes(element_bytes(argument.type));
  FURLONG_CHECK(internal::store_element(argument.type, value,
                                        fmt::format("value of argument '{}'", argument.name), bytes.data()));
  return bytes;
}

Result<Bytes> zeroed(const ArgumentSpec& argument, std::uint64_t bytes) {
  try {
    return Bytes(bytes);
  } catch (const std::exception&) {  // bad_alloc, or length_error past the vector's own limit
    return fail(Code::exhausted, "argument '{}' needs {} of memory, more than there is", argument.name,
                human_bytes(bytes));
  }
}

Result<Bytes> fill_buffer(const ArgumentSpec& argument, std::uint64_t count, const lattice::Value& value,
                          std::uint64_t seed) {
  if (argument.fill == Fill::none || argument.fill == Fill::poison) return Bytes();
  FURLONG_TRY(const std::uint64_t size, buffer_bytes(argument, count));
  FURLONG_TRY(Bytes bytes, zeroed(argument, size));
  if (argument.fill == Fill::random) {
    Random random(seed + argument.seed, argument.name);
    if (is_floating(argument.type))
      fill_random_floats(argument, random, bytes);
    else
      fill_random_integers(argument, random, bytes);
  }
  if (argument.fill == Fill::sequence) fill_sequence(argument, bytes);
  if (argument.fill == Fill::value) FURLONG_CHECK(fill_value(argument, value, bytes));
  if (argument.fill == Fill::file) FURLONG_CHECK(fill_file(argument, bytes));
  return bytes;
}

}  // namespace furlong::program
