// The knob `precision`: which values there are, what they need and what they hold exactly.
#include <array>
#include <limits>
#include <vector>

#include "furlong/base/text.h"
#include "furlong/program/linear/linear.h"

namespace furlong::program::linear {
namespace {

struct Row {
  Precision precision;
  std::string_view name;
  Operands operands;
  bool Instructions::* needs;  ///< null: every chip has it
};
constexpr std::array kRows{
    Row{Precision::int64, "int64", Operands::int64, nullptr},
    Row{Precision::int8_dp4a, "int8_dp4a", Operands::int8, &Instructions::dp4a},
    Row{Precision::int8_imma, "int8_imma", Operands::int8, &Instructions::int8_mma},
    Row{Precision::bf16_hmma, "bf16_hmma", Operands::bf16, &Instructions::bf16_mma},
    Row{Precision::fp16_hmma, "fp16_hmma", Operands::fp16, &Instructions::fp16_mma},
    Row{Precision::f32, "f32", Operands::f32, nullptr},
};

const Row& row_of(Precision precision) { return kRows[static_cast<std::size_t>(precision)]; }

Precision plain_precision(bool real) { return real ? Precision::f32 : Precision::int64; }

bool exists_for(const Row& row, bool real) {
  if (row.operands == Operands::f32) return real;
  if (row.operands == Operands::int64 || row.operands == Operands::int8) return !real;
  return true;
}

std::int64_t largest_sum(Operands operands) {
  switch (operands) {
    case Operands::int8:
      return (std::int64_t{1} << 31) - 1;
    case Operands::bf16:
    case Operands::fp16:
    case Operands::f32:
      return std::int64_t{1} << 24;
    case Operands::int64:
      break;
  }
  return std::numeric_limits<std::int64_t>::max();
}

std::string_view operands_name(Operands operands) {
  constexpr std::array<std::string_view, 5> kNames{"int64", "int8", "bf16", "fp16", "f32"};
  return kNames[static_cast<std::size_t>(operands)];
}

}  // namespace

std::string_view precision_name(Precision precision) { return row_of(precision).name; }
Operands operands_of(Precision precision) { return row_of(precision).operands; }

Result<Precision> parse_precision(std::string_view name, bool real) {
  if (name == "auto") return plain_precision(real);
  std::vector<std::string> known{"auto"};
  for (const Row& row : kRows) {
    if (!exists_for(row, real)) continue;
    if (row.name == name) return row.precision;
    known.emplace_back(row.name);
  }
  const std::string guess = did_you_mean(name, known);
  return fail(Code::invalid, "there is no precision '{}'{}", name,
              guess.empty() ? fmt::format(" ({})", join(known, ", ")) : guess);
}

Result<Resolved> resolve_precision(std::string_view asked, bool real, const Chip& chip, std::int64_t m,
                                   std::int64_t n, std::int64_t k) {
  FURLONG_TRY(const Precision parsed, parse_precision(asked, real));
  const Precision plain = plain_precision(real);
  if (asked == "auto")
    return Resolved{.precision = plain, .note = fmt::format("precision auto is {}", precision_name(plain))};
  if (parsed == plain) return Resolved{.precision = plain, .note = {}};
  const auto needs = row_of(parsed).needs;
  if (needs != nullptr && !(chip.has.*needs))
    return Resolved{.precision = plain,
                    .note = fmt::format("{} ({}) has no instruction for {}: {} is used", chip.name, chip.arch,
                                        asked, precision_name(plain)),
                    .fallback = true,
                    .chip_lacks = true};
  if (m % 16 != 0 || n % 16 != 0 || k % 16 != 0)
    return Resolved{
        .precision = plain,
        .note = fmt::format("{} x {} x {} is no multiple of 16 on every side, as {} needs: {} is used", m, n,
                            k, asked, precision_name(plain)),
        .fallback = true};
  return Resolved{.precision = parsed, .note = {}};
}

std::int64_t largest_operand(Operands operands) {
  switch (operands) {
    case Operands::int8:
      return 127;
    case Operands::bf16:
      return 256;
    case Operands::fp16:
      return 2048;
    case Operands::f32:
      return std::int64_t{1} << 24;
    case Operands::int64:
      break;
  }
  return std::numeric_limits<std::int64_t>::max();
}

Status check_sums(Operands operands, std::int64_t operand_max, std::int64_t k) {
  if (operands == Operands::int64) return {};  // wraps, as it is meant to
  if (operand_max < 0 || k < 1)
    return fail(Code::invalid, "operand_max {} and k {} must not be less than 0 and 1", operand_max, k);
  const bool edge = operands == Operands::int8 && operand_max == 128;
  if (operand_max > largest_operand(operands) && !edge)
    return fail(Code::invalid, "operands up to {} are not exact in {}, which holds up to {}", operand_max,
                operands_name(operands), largest_operand(operands));
  if (operand_max == 0) return {};
  const std::int64_t most = largest_sum(operands) / (operand_max * operand_max);
  if (k <= most) return {};
  return fail(
      Code::invalid,
      "sums of {} products of operands up to {} can pass {}, the largest that {} sums exactly: k may be at "
      "most {} (name int64, or split k and add the parts in 64 bits)",
      k, operand_max, largest_sum(operands), operands_name(operands), most);
}

Status check_operands(Operands operands, std::span<const std::int64_t> values) {
  if (operands == Operands::int64) return {};
  const std::int64_t largest = largest_operand(operands);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const bool edge = operands == Operands::int8 && values[i] == -128;
    if (!edge && (values[i] > largest || values[i] < -largest))
      return fail(Code::invalid,
                  "operand {} is {}, which is not exact in {} (up to {}): name another precision, or auto", i,
                  values[i], operands_name(operands), largest);
  }
  return {};
}

}  // namespace furlong::program::linear
