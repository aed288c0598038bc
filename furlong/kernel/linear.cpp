#include "furlong/kernel/linear.h"

#include <algorithm>
#include <array>
#include <limits>
#include <set>

#include "furlong/base/text.h"
#include "furlong/program/linear/linear.h"
#include "furlong/program/linear/shipped.h"
#include "furlong/select/select.h"

namespace furlong::kernel {
namespace {

namespace linear = program::linear;
using lattice::Value;
using Problem = std::vector<std::pair<std::string, Value>>;

Status check_side(std::string_view name, std::int64_t side, std::int64_t largest) {
  if (side >= 1 && side <= largest) return {};
  return fail(Code::invalid, "{} is {}; it must be 1 to {}", name, side, largest);
}

/// The program, for the device; refuses a chip that there is not before anything is emitted.
Result<program::Instance> bind_program(const device::Device& device, std::string_view name,
                                       const Problem& problem, const std::string& chip) {
  FURLONG_TRY(auto shipped, linear::shipped_program(name));
  FURLONG_TRY(const std::string language, common_language(*shipped, device.facts()));
  const lattice::Environment facts = expression_facts(device.facts());
  const lattice::Lookup lookup = [&](std::string_view fact) -> std::optional<Value> {
    const auto found = facts.find(std::string(fact));
    return found == facts.end() ? std::nullopt : std::optional(found->second);
  };
  FURLONG_CHECK(linear::resolve_chip(chip, lookup));
  return program::Instance::make(std::move(shipped), language, problem, facts);
}

/// The catalogue with each of the values of the knob, as far as it is valid here, by name.
Result<std::string> admitted(const program::Instance& instance, std::string_view knob,
                             std::span<const std::string> values) {
  const lattice::Lattice& lattice = instance.lattice();
  const std::optional<std::size_t> place = lattice.knob_index(knob);
  if (!place) return fail(Code::internal, "{} has no knob '{}'", instance.program().name, knob);
  FURLONG_TRY(const std::vector<lattice::Point> catalogue, lattice::catalogue_points(lattice));
  std::set<lattice::Point> seen;
  std::vector<std::string> names;
  for (lattice::Point point : catalogue) {
    for (std::size_t i = 0; i < lattice.knobs[*place].values.size(); ++i) {
      if (std::ranges::find(values, lattice.knobs[*place].values[i].text()) == values.end()) continue;
      point.indices[*place] = static_cast<std::uint32_t>(i);
      if (!seen.insert(point).second) continue;
      FURLONG_TRY(const std::string why, lattice.why_invalid(point, instance.facts()));
      if (why.empty()) names.push_back(lattice::variant_name(lattice, point));
    }
  }
  return join(names, ",");
}

std::int64_t magnitude(std::int64_t value) {
  if (value == std::numeric_limits<std::int64_t>::min()) return std::numeric_limits<std::int64_t>::max();
  return value < 0 ? -value : value;
}

std::int64_t largest_of(std::span<const std::int64_t> values) {
  std::int64_t most = 0;
  for (const std::int64_t value : values) most = std::max(most, magnitude(value));
  return most;
}

Status check_count(std::string_view name, std::span<const std::int64_t> values, std::int64_t rows,
                   std::int64_t columns) {
  if (values.empty() || values.size() == static_cast<std::uint64_t>(rows * columns)) return {};
  return fail(Code::invalid, "{} has {} operands, and is {} x {}", name, values.size(), rows, columns);
}

/// What a precision multiplies wherever it exists, whatever this chip and shape.
Result<linear::Operands> operands_of(const std::string& precision, bool real) {
  FURLONG_TRY(const linear::Precision parsed, linear::parse_precision(precision, real));
  return linear::operands_of(parsed);
}

/// The largest |operand| of the problem, after all operands and sums were held against the precisions; 0:
/// not known, and not needed.
Result<std::int64_t> check_integers(const GemmShape& shape, const GemmOptions& options) {
  if (options.operand_max < 0)
    return fail(Code::invalid, "operand_max is {}; it must be 0 (not known) or more", options.operand_max);
  FURLONG_CHECK(check_count("a", options.a, shape.m, shape.k));
  FURLONG_CHECK(check_count("b", options.b, shape.k, shape.n));
  const bool have_data = !options.a.empty() && !options.b.empty();
  const std::int64_t seen = std::max(largest_of(options.a), largest_of(options.b));
  const std::int64_t most = options.operand_max > 0 ? options.operand_max : seen;
  if (options.operand_max > 0 && seen > options.operand_max)
    return fail(Code::invalid, "an operand of magnitude {} is given, over the operand_max of {}", seen,
                options.operand_max);
  for (const std::string& precision : options.precisions) {
    FURLONG_TRY(const linear::Operands operands, operands_of(precision, false));
    if (operands == linear::Operands::int64) continue;
    if (options.operand_max == 0 && !have_data)
      return fail(Code::invalid, "{} holds operands up to {}: say operand_max, or give a and b to be checked",
                  precision, linear::largest_operand(operands));
    FURLONG_CHECK_DOING(linear::check_operands(operands, options.a), "a in {}", precision);
    FURLONG_CHECK_DOING(linear::check_operands(operands, options.b), "b in {}", precision);
    FURLONG_CHECK_DOING(linear::check_sums(operands, most, shape.k), "{}", precision);
  }
  return options.operand_max > 0 || have_data ? most : 0;
}

}  // namespace

Result<RacedKernel> raced_gemv(device::Device& device, const GemvShape& shape, const GemvOptions& options) {
  FURLONG_CHECK(check_side("n", shape.n, linear::largest_side));
  FURLONG_CHECK(check_side("k", shape.k, linear::largest_side));
  FURLONG_CHECK(check_side("batch", shape.batch, linear::largest_batch));
  constexpr std::int64_t kMostRotated = 1 << 20;
  if (options.rotate_mib < 0 || options.rotate_mib > kMostRotated)
    return fail(Code::invalid, "rotate_mib is {}; it must be 0 to {}", options.rotate_mib, kMostRotated);
  const std::vector<std::string> known{"two_pass_int8", "int8", "dequant"};
  if (std::ranges::find(known, options.activations) == known.end())
    return fail(Code::invalid, "there are no activations '{}'{}", options.activations,
                nearest_choices(options.activations, known));
  std::vector<std::string> values{options.activations};
  if (options.activations == "int8") values.emplace_back("two_pass_int8");
  FURLONG_TRY(const program::Instance instance, bind_program(device, "gemv",
                                                             {{"n", shape.n},
                                                              {"k", shape.k},
                                                              {"batch", shape.batch},
                                                              {"rotate_mib", options.rotate_mib},
                                                              {"chip", options.chip}},
                                                             options.chip));
  Options raced = options.kernel;
  FURLONG_TRY(raced.variants, admitted(instance, "activations", values));
  raced.allow =
      options.activations == "int8" ? std::vector<std::string>{"activations"} : std::vector<std::string>{};
  raced.base_may_win = options.activations != "dequant";
  raced.serve = {{"rotate_mib", 0}};
  return raced_kernel(device, instance, raced);
}

Result<RacedKernel> raced_gemm(device::Device& device, const GemmShape& shape, program::ElementType type,
                               const GemmOptions& options) {
  FURLONG_CHECK(check_side("m", shape.m, linear::largest_side));
  FURLONG_CHECK(check_side("n", shape.n, linear::largest_side));
  FURLONG_CHECK(check_side("k", shape.k, linear::largest_side));
  const bool real = type == program::ElementType::f32;
  if (!real && type != program::ElementType::i64)
    return fail(Code::invalid,
                "there is no product of {}: operands are i64, whose small ones precisions hold in 8 or 16 "
                "bits, or f32",
                program::element_name(type));
  Problem problem{{"m", shape.m}, {"n", shape.n}, {"k", shape.k}, {"chip", options.chip}};
  if (real) {
    for (const std::string& precision : options.precisions) FURLONG_CHECK(operands_of(precision, true));
    if (options.operand_max != 0 || !options.a.empty() || !options.b.empty())
      return fail(Code::invalid, "operand_max, a and b are of products of i64, and this is of f32");
  } else {
    FURLONG_TRY(const std::int64_t operand_max, check_integers(shape, options));
    if (operand_max > 0) problem.emplace_back("operand_max", operand_max);
  }
  FURLONG_TRY(const program::Instance instance,
              bind_program(device, real ? "gemm_real" : "gemm", problem, options.chip));
  // The plain product under its own name is the same text as auto's.
  std::vector<std::string> values{"auto"};
  for (const std::string& precision : options.precisions)
    if (precision != "int64" && precision != "f32") values.push_back(precision);
  Options raced = options.kernel;
  FURLONG_TRY(raced.variants, admitted(instance, "precision", values));
  raced.allow = {"precision"};
  raced.base_may_win = true;
  raced.serve.clear();
  return raced_kernel(device, instance, raced);
}

}  // namespace furlong::kernel
