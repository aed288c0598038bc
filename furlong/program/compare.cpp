// The gate's comparison of one output with its reference.
#include <cmath>
#include <limits>

#include "furlong/program/instance.h"
#include "furlong/program/internal/elements.h"

namespace furlong::program {
namespace {

std::string wrong_elements(const ArgumentSpec& argument, ByteView got, ByteView want) {
  const std::size_t size = element_bytes(argument.type);
  const std::size_t count = got.size() / size;
  std::size_t wrong = 0;
  std::size_t first = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (std::memcmp(got.data() + i * size, want.data() + i * size, size) == 0) continue;
    if (wrong++ == 0) first = i;
  }
  const std::string a = internal::element_text(argument.type, got.data() + first * size);
  const std::string b = internal::element_text(argument.type, want.data() + first * size);
  // Two floats may differ in bits that their text does not show: NaNs, for one.
  const bool alike = a == b;
  return fmt::format("element {}: got {}{}, expected {}{}; {} of {} wrong", first, a,
                     alike ? " (0x" + to_hex(got.subspan(first * size, size)) + ")" : "", b,
                     alike ? " (0x" + to_hex(want.subspan(first * size, size)) + ")" : "", wrong, count);
}

// Sum of squares that cannot overflow: scaled by the largest magnitude seen (as in LAPACK's dlassq).
class Norm {
 public:
  void add(double value) {
    const double magnitude = std::fabs(value);
    if (magnitude == 0 || std::isinf(scale_)) return;
    if (magnitude > scale_) {
      const double shrink = scale_ / magnitude;
      sum_ = 1 + sum_ * shrink * shrink;
      scale_ = magnitude;
    } else {
      const double part = magnitude / scale_;
      sum_ += part * part;
    }
  }
  /// This norm over another's, without forming either where that would overflow.
  double over(const Norm& other) const {
    if (scale_ == 0) return 0;
    if (std::isinf(scale_)) return scale_;
    if (other.scale_ == 0) return std::numeric_limits<double>::infinity();
    return (scale_ / other.scale_) * std::sqrt(sum_ / other.sum_);
  }

 private:
  double scale_ = 0;
  double sum_ = 0;
};

Status compare_tolerance(const CheckSpec& check, const ArgumentSpec& argument, ByteView got, ByteView want,
                         double* error_ratio) {
  const std::size_t size = element_bytes(argument.type);
  const std::size_t count = got.size() / size;
  Norm error;
  Norm reference;
  double worst = -1;
  std::size_t worst_at = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const double a = internal::element_number(argument.type, got.data() + i * size);
    const double b = internal::element_number(argument.type, want.data() + i * size);
    if (!std::isfinite(a) || !std::isfinite(b))
      return fail(Code::mismatch, "element {}: got {}, expected {}: only finite numbers pass a tolerance", i,
                  internal::element_text(argument.type, got.data() + i * size),
                  internal::element_text(argument.type, want.data() + i * size));
    const double difference = std::fabs(a - b);  // infinite when it overflows: then the ratio is too
    error.add(difference);
    reference.add(b);
    if (difference > worst) {
      worst = difference;
      worst_at = i;
    }
  }
  const double ratio = error.over(reference);
  if (error_ratio != nullptr) *error_ratio = ratio;
  if (ratio <= check.bound) return {};
  return fail(Code::mismatch,
              "the error is {:.3g} of the reference's norm, over the bound {:.3g}; worst "
              "element {}: got {}, "
              "expected {}",
              ratio, check.bound, worst_at,
              internal::element_text(argument.type, got.data() + worst_at * size),
              internal::element_text(argument.type, want.data() + worst_at * size));
}

}  // namespace

Status compare_output(const CheckSpec& check, const ArgumentSpec& argument, ByteView got, ByteView want,
                      double* error_ratio) {
  if (error_ratio != nullptr) *error_ratio = 0;
  if (got.size() != want.size())
    return fail(Code::mismatch, "got {} bytes, expected {}", got.size(), want.size());
  if (got.size() % element_bytes(argument.type) != 0)
    return fail(Code::mismatch, "{} bytes are no whole number of elements of {}", got.size(),
                element_name(argument.type));
  if (check.kind == CheckKind::tolerance && is_floating(argument.type))
    return compare_tolerance(check, argument, got, want, error_ratio);
  if (got.empty() || std::memcmp(got.data(), want.data(), got.size()) == 0) return {};
  return fail(Code::mismatch, "{}", wrong_elements(argument, got, want));
}

}  // namespace furlong::program
