// Inputs and reference outputs: plain loops over the stored formats.
#include "furlong/program/linear/internal/recipes.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "furlong/base/random.h"
#include "furlong/program/internal/half.h"

namespace furlong::program::linear {
namespace {

constexpr std::size_t kBlockWeights = 32, kBlockBytes = 34;

struct Shape {
  std::size_t m = 1, n = 1, k = 1;
};

Result<std::size_t> size_of(const lattice::Environment& problem, const std::string& name) {
  const auto found = problem.find(name);
  if (found == problem.end()) return fail(Code::invalid, "the recipe needs the problem parameter '{}'", name);
  FURLONG_TRY(const std::int64_t value, lattice::to_integer(found->second, name));
  if (value < 1) return fail(Code::invalid, "{} is {}; it must be at least 1", name, value);
  return static_cast<std::size_t>(value);
}

Status check_size(std::string_view what, std::size_t got, std::size_t wanted) {
  if (got == wanted) return {};
  return fail(Code::invalid, "'{}' has {} bytes, the problem gives {}", what, got, wanted);
}

// An argument's bytes by its name.
template <class List>
Result<std::size_t> place_of(const Program& program, const List& list, std::string_view name) {
  const auto index = program.argument_index(name);
  if (index && *index < list.size()) return *index;
  return fail(Code::invalid, "the recipe needs an argument '{}', which program '{}' does not have", name,
              program.name);
}

float f32_at(const Bytes& bytes, std::size_t i) { return load_le<float>(bytes.data() + i * sizeof(float)); }

// ---- Q8_0 weights and f32 activations ----

// The sign that a block's weights and activations lean to, both the same: products are positive on the whole,
// so that a result is not small by chance beside its rounding errors, and both signs stand on both sides.
double lean(std::size_t block) { return block % 3 == 1 ? -1 : 1; }

// Every 16th row has the extremes of int8 (and cancels), another one scales that are denormal in f16.
void fill_row(std::size_t row, std::size_t blocks, Random& random, std::uint8_t* into) {
  for (std::size_t block = 0; block < blocks; ++block, into += kBlockBytes) {
    double scale = 0.001 + 0.01 * random.uniform();
    if (row % 16 == 7) scale = std::ldexp(1.0 + static_cast<double>(random.below(1000)), -24);
    store_le(into, internal::half_from_double(scale));
    for (std::size_t i = 0; i < kBlockWeights; i += 8) {
      const std::uint64_t eight = random.next();
      for (std::size_t j = 0; j < 8; ++j) {
        const int weight = std::min(static_cast<int>(eight >> (8 * j) & 255) - 88, 127);
        into[2 + i + j] = static_cast<std::uint8_t>(lean(block) < 0 ? -weight : weight);
      }
    }
    if (row % 16 != 3) continue;
    for (std::size_t i = 0; i < kBlockWeights; ++i) into[2 + i] = random.below(2) == 0 ? 0x80 : 0x7f;
  }
}

void fill_activations(std::size_t k, Random& random, std::span<std::uint8_t> into) {
  const std::size_t count = into.size() / sizeof(float);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t block = i % k / kBlockWeights;
    double value = lean(block) * (1.2 * random.uniform() - 0.2);
    if (i % 97 == 11) value *= 8;                          // outliers, as activations have them
    if (block % 13 == 5) value = 0;                        // a block of zeros
    if (block % 13 == 6) value = std::ldexp(value, -140);  // and one of denormal numbers
    store_le(into.data() + i * sizeof(float), static_cast<float>(value));
  }
}

class GemvRecipe final : public Recipe {
 public:
  std::string name() const override { return "linear.gemv"; }

  Status fill(std::string_view argument, const lattice::Environment& problem, std::uint64_t seed,
              std::span<std::uint8_t> into) const override {
    FURLONG_TRY(const std::size_t n, size_of(problem, "n"));
    FURLONG_TRY(const std::size_t k, size_of(problem, "k"));
    FURLONG_TRY(const std::size_t batch, size_of(problem, "batch"));
    Random random(seed, argument);
    if (argument == "x") {
      FURLONG_CHECK(check_size(argument, into.size(), batch * k * sizeof(float)));
      fill_activations(k, random, into);
      return {};
    }
    if (argument != "weights") return Recipe::fill(argument, problem, seed, into);
    const std::size_t blocks = (k + kBlockWeights - 1) / kBlockWeights;
    if (into.size() % (n * blocks * kBlockBytes) != 0 || into.empty())
      return check_size(argument, into.size(), n * blocks * kBlockBytes);
    for (std::size_t row = 0; row * blocks * kBlockBytes < into.size(); ++row)
      fill_row(row, blocks, random, into.data() + row * blocks * kBlockBytes);
    return {};
  }

  Status reference(const Program& program, const lattice::Environment& problem,
                   const std::vector<Bytes>& inputs, std::vector<Bytes>& expected) const override {
    FURLONG_TRY(const std::size_t n, size_of(problem, "n"));
    FURLONG_TRY(const std::size_t k, size_of(problem, "k"));
    FURLONG_TRY(const std::size_t batch, size_of(problem, "batch"));
    FURLONG_TRY(const std::size_t at_weights, place_of(program, inputs, "weights"));
    FURLONG_TRY(const std::size_t at_x, place_of(program, inputs, "x"));
    FURLONG_TRY(const std::size_t at_y, place_of(program, expected, "y"));
    const Bytes &weights = inputs[at_weights], &x = inputs[at_x];
    const std::size_t blocks = (k + kBlockWeights - 1) / kBlockWeights;
    const std::size_t copies = weights.size() / (n * blocks * kBlockBytes);
    FURLONG_CHECK(check_size("weights", weights.size(), copies * n * blocks * kBlockBytes));
    FURLONG_CHECK(check_size("x", x.size(), batch * k * sizeof(float)));
    Bytes& y = expected[at_y];
    y.resize(copies * batch * n * sizeof(float));
    std::vector<double> row(k);
    for (std::size_t r = 0; r < copies * n; ++r) {
      for (std::size_t i = 0; i < k; ++i) {
        const std::uint8_t* block = weights.data() + (r * blocks + i / kBlockWeights) * kBlockBytes;
        row[i] = internal::half_to_double(load_le<std::uint16_t>(block)) *
                 static_cast<std::int8_t>(block[2 + i % kBlockWeights]);
      }
      for (std::size_t column = 0; column < batch; ++column) {
        double sum = 0;
        for (std::size_t i = 0; i < k; ++i) sum += row[i] * static_cast<double>(f32_at(x, column * k + i));
        const std::size_t place = (r / n * batch + column) * n + r % n;
        store_le(y.data() + place * sizeof(float), static_cast<float>(sum));
      }
    }
    return {};
  }
};

// ---- products of two matrices ----

Result<Shape> shape_of(const lattice::Environment& problem) {
  Shape shape;
  FURLONG_TRY(shape.m, size_of(problem, "m"));
  FURLONG_TRY(shape.n, size_of(problem, "n"));
  FURLONG_TRY(shape.k, size_of(problem, "k"));
  return shape;
}

Status check_operand(std::string_view argument, const Shape& shape, std::size_t bytes, std::size_t element) {
  const std::size_t count = argument == "a" ? shape.m * shape.k : shape.k * shape.n;
  return check_size(argument, bytes, count * element);
}

// C = A B with elements of T in sums of Sum: rows of B are added to a row of sums, so that both are read in
// order.
template <class T, class Sum>
Status multiply(const Program& program, const lattice::Environment& problem, const std::vector<Bytes>& inputs,
                std::vector<Bytes>& expected) {
  FURLONG_TRY(const Shape shape, shape_of(problem));
  FURLONG_TRY(const std::size_t at_a, place_of(program, inputs, "a"));
  FURLONG_TRY(const std::size_t at_b, place_of(program, inputs, "b"));
  FURLONG_TRY(const std::size_t at_c, place_of(program, expected, "c"));
  FURLONG_CHECK(check_operand("a", shape, inputs[at_a].size(), sizeof(T)));
  FURLONG_CHECK(check_operand("b", shape, inputs[at_b].size(), sizeof(T)));
  const std::uint8_t *a = inputs[at_a].data(), *b = inputs[at_b].data();
  Bytes& c = expected[at_c];
  c.resize(shape.m * shape.n * sizeof(T));
  std::vector<Sum> sums(shape.n);
  for (std::size_t i = 0; i < shape.m; ++i) {
    std::fill(sums.begin(), sums.end(), Sum(0));
    for (std::size_t p = 0; p < shape.k; ++p) {
      const auto left = static_cast<Sum>(load_le<T>(a + (i * shape.k + p) * sizeof(T)));
      const std::uint8_t* row = b + p * shape.n * sizeof(T);
      for (std::size_t j = 0; j < shape.n; ++j)
        sums[j] += left * static_cast<Sum>(load_le<T>(row + j * sizeof(T)));
    }
    for (std::size_t j = 0; j < shape.n; ++j)
      store_le(c.data() + (i * shape.n + j) * sizeof(T), static_cast<T>(sums[j]));
  }
  return {};
}

class GemmRecipe final : public Recipe {
 public:
  std::string name() const override { return "linear.gemm"; }

  Status fill(std::string_view argument, const lattice::Environment& problem, std::uint64_t seed,
              std::span<std::uint8_t> into) const override {
    if (argument != "a" && argument != "b") return Recipe::fill(argument, problem, seed, into);
    FURLONG_TRY(const Shape shape, shape_of(problem));
    FURLONG_TRY(const std::size_t largest, size_of(problem, "operand_max"));
    FURLONG_CHECK(check_operand(argument, shape, into.size(), sizeof(std::int64_t)));
    const auto low = -static_cast<std::int64_t>(largest);
    const std::int64_t high = largest == 128 ? 127 : -low;  // the ends of int8
    Random random(seed, argument);
    const std::size_t count = into.size() / sizeof(std::int64_t);
    for (std::size_t i = 0; i < count; ++i) {
      std::int64_t value = random.between(low, high);
      // The first row of A and the first column of B: the largest sum that operand_max allows.
      const bool edge = argument == "a" ? i < shape.k : i % shape.n == 0;
      const std::size_t at = argument == "a" ? i : i / shape.n;
      if (edge) value = at % 2 == 0 ? low : high;
      store_le(into.data() + i * sizeof(value), value);
    }
    return {};
  }

  Status reference(const Program& program, const lattice::Environment& problem,
                   const std::vector<Bytes>& inputs, std::vector<Bytes>& expected) const override {
    return multiply<std::int64_t, std::uint64_t>(program, problem, inputs, expected);
  }
};

class GemmRealRecipe final : public Recipe {
 public:
  std::string name() const override { return "linear.gemm_real"; }

  Status fill(std::string_view argument, const lattice::Environment& problem, std::uint64_t seed,
              std::span<std::uint8_t> into) const override {
    if (argument != "a" && argument != "b") return Recipe::fill(argument, problem, seed, into);
    FURLONG_TRY(const Shape shape, shape_of(problem));
    FURLONG_CHECK(check_operand(argument, shape, into.size(), sizeof(float)));
    Random random(seed, argument);
    for (std::size_t i = 0; i < into.size() / sizeof(float); ++i)
      store_le(into.data() + i * sizeof(float), static_cast<float>(2 * random.uniform() - 1));
    return {};
  }

  Status reference(const Program& program, const lattice::Environment& problem,
                   const std::vector<Bytes>& inputs, std::vector<Bytes>& expected) const override {
    return multiply<float, double>(program, problem, inputs, expected);
  }
};

}  // namespace

std::shared_ptr<const Recipe> make_gemv_recipe() { return std::make_shared<GemvRecipe>(); }
std::shared_ptr<const Recipe> make_gemm_recipe() { return std::make_shared<GemmRecipe>(); }
std::shared_ptr<const Recipe> make_gemm_real_recipe() { return std::make_shared<GemmRealRecipe>(); }

}  // namespace furlong::program::linear
