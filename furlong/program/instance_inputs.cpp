// Arguments become bytes: sizes, contents and expected outputs of one run.
#include <algorithm>

#include "furlong/program/fill.h"
#include "furlong/program/instance.h"
#include "furlong/program/internal/elements.h"
#include "furlong/program/internal/scope.h"

namespace furlong::program {
namespace {

using internal::Scope;

// Everything that turns one problem into inputs.
struct InputMaker {
  const Program& program;
  const Edition& edition;
  const lattice::Environment& facts;
  std::span<const lattice::Point> points;
  std::uint64_t seed = 0;
  RunInputs inputs;
  bool contents = true;  // false: sizes alone, and scalars that are not drawn

  Result<std::uint64_t> elements(const ArgumentSpec& argument, const lattice::Point& point) const {
    Scope scope(program, &edition.lattice, &point, inputs.problem, facts);
    return scope.elements(argument);
  }

  // Scratch is shared by all variants: the largest that any of them needs.
  Result<std::uint64_t> largest(const ArgumentSpec& argument) const {
    const lattice::Point base = edition.lattice.base();
    FURLONG_TRY(std::uint64_t count, elements(argument, base));
    if (argument.direction != Direction::scratch) return count;
    for (const lattice::Point& point : points) {
      FURLONG_TRY(const std::uint64_t other, elements(argument, point));
      count = std::max(count, other);
    }
    return count;
  }

  Status add_scalar(std::size_t index) {
    const ArgumentSpec& argument = program.arguments[index];
    if (argument.fill == Fill::random) {  // drawn once, the same for every variant
      if (!contents) return {};
      FURLONG_TRY(inputs.bytes[index], fill_buffer(argument, 1, {}, seed));
      inputs.scalar_fixed[index] = true;
      return {};
    }
    const lattice::Point base = edition.lattice.base();
    Scope scope(program, &edition.lattice, &base, inputs.problem, facts);
    const std::string what = fmt::format("value of argument '{}'", argument.name);
    FURLONG_TRY(const lattice::Value value, scope.value(argument.value, what));
    inputs.bytes[index].resize(element_bytes(argument.type));
    return internal::store_element(argument.type, value, what, inputs.bytes[index].data());
  }

  Status add_dataset(std::size_t index) {
    if (program.recipe == nullptr)
      return fail(Code::invalid, "argument '{}' is a dataset, but the program has no recipe for one",
                  program.arguments[index].name);
    inputs.buffer_bytes[index] = program.recipe->dataset_bytes();
    return {};
  }

  Status fill_by_recipe(std::size_t index) {
    const ArgumentSpec& argument = program.arguments[index];
    if (program.recipe == nullptr)
      return fail(Code::internal, "argument '{}' is filled by a recipe, and there is none", argument.name);
    FURLONG_TRY(inputs.bytes[index], zeroed(argument, inputs.buffer_bytes[index]));
    return program.recipe->fill(argument.name, inputs.problem, seed + argument.seed, inputs.bytes[index]);
  }

  Status add_buffer(std::size_t index) {
    const ArgumentSpec& argument = program.arguments[index];
    FURLONG_TRY(const std::uint64_t count, largest(argument));
    FURLONG_TRY(inputs.buffer_bytes[index], buffer_bytes(argument, count));
    if (!contents || argument.direction == Direction::out || argument.direction == Direction::scratch)
      return {};
    if (argument.fill == Fill::recipe) return fill_by_recipe(index);
    lattice::Value value;
    if (argument.fill == Fill::value) {
      const lattice::Point base = edition.lattice.base();
      Scope scope(program, &edition.lattice, &base, inputs.problem, facts);
      FURLONG_TRY(value, scope.value(argument.value, fmt::format("value of argument '{}'", argument.name)));
    }
    FURLONG_TRY(inputs.bytes[index], fill_buffer(argument, count, value, seed));
    if (inputs.bytes[index].size() != inputs.buffer_bytes[index])
      return fail(Code::invalid, "argument '{}' is an input without a fill", argument.name);
    return {};
  }

  Status run() {
    const std::size_t count = program.arguments.size();
    inputs.bytes.resize(count);
    inputs.expected.resize(count);
    inputs.buffer_bytes.resize(count);
    inputs.scalar_fixed.resize(count);
    for (std::size_t i = 0; i < count; ++i) {
      if (program.arguments[i].kind == ArgumentKind::scalar) {
        FURLONG_CHECK(add_scalar(i));
      } else if (program.arguments[i].kind == ArgumentKind::dataset) {
        FURLONG_CHECK(add_dataset(i));
      } else {
        FURLONG_CHECK(add_buffer(i));
      }
    }
    return {};
  }

  // The outputs that files hold; `invalid` when they are of another size than this problem's.
  Status expect_files() {
    for (const auto& [name, data] : program.check.expected_data) {
      const std::size_t index = *program.argument_index(name);
      const std::size_t size = element_bytes(program.arguments[index].type);
      if (data->bytes.size() != inputs.buffer_bytes[index])
        return fail(Code::invalid,
                    "the expected file of '{}' has {} elements, the problem gives {}: choose the file's "
                    "problem in [check] problem",
                    name, data->bytes.size() / size, inputs.buffer_bytes[index] / size);
      inputs.expected[index] = data->bytes;
    }
    return {};
  }

  Status expect_recipe() {
    std::vector<Bytes> expected(program.arguments.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      if (program.arguments[i].is_output()) expected[i].resize(inputs.buffer_bytes[i]);
    }
    FURLONG_CHECK(program.recipe->reference(program, inputs.problem, inputs.bytes, expected));
    inputs.expected = std::move(expected);
    return {};
  }
};

Status set_vector_scalars(const Program& program, const Vector& vector, RunInputs& inputs) {
  for (const auto& [name, value] : vector.scalars) {
    const auto index = program.argument_index(name);
    const bool scalar = index && program.arguments[*index].kind == ArgumentKind::scalar;
    if (!scalar && !inputs.problem.contains(name))
      return fail(Code::invalid, "'{}' is neither a scalar argument nor a problem parameter", name);
    if (inputs.problem.contains(name)) inputs.problem[name] = value;
  }
  return {};
}

Status set_vector_bytes(const Program& program, const Vector& vector, RunInputs& inputs) {
  for (const auto& [name, value] : vector.scalars) {
    const auto index = program.argument_index(name);
    if (!index || program.arguments[*index].kind != ArgumentKind::scalar) continue;
    FURLONG_CHECK(internal::store_element(program.arguments[*index].type, value,
                                          fmt::format("scalar '{}'", name), inputs.bytes[*index].data()));
    inputs.scalar_fixed[*index] = true;
  }
  const auto set = [&](const std::map<std::string, Bytes>& from, std::vector<Bytes>& into) -> Status {
    for (const auto& [name, bytes] : from) {
      const auto index = program.argument_index(name);
      if (!index) return fail(Code::invalid, "'{}' is no argument", name);
      const ArgumentSpec& argument = program.arguments[*index];
      const bool scalar =
          argument.kind == ArgumentKind::scalar;  // by its bytes: a u64 may be over what a Value holds
      const std::size_t size = scalar ? element_bytes(argument.type) : inputs.buffer_bytes[*index];
      if (bytes.size() != size)
        return fail(Code::invalid, "argument '{}' has {} bytes, the problem gives {}", name, bytes.size(),
                    size);
      into[*index] = bytes;
      if (scalar) inputs.scalar_fixed[*index] = true;
    }
    return {};
  };
  FURLONG_CHECK(set(vector.inputs, inputs.bytes));
  return set(vector.expected, inputs.expected);
}

}  // namespace

Result<lattice::Environment> Instance::checked_problem() const {
  lattice::Environment problem = problem_;
  Scope scope(*program_, nullptr, nullptr, problem_, facts_);
  for (const auto& [name, expression] : program_->check.problem) {
    const std::string what = fmt::format("'{}' in problem of [check]", name);
    const auto usual = std::find_if(program_->problem.begin(), program_->problem.end(),
                                    [&](const auto& parameter) { return parameter.first == name; });
    if (usual != program_->problem.end() && usual->second.is_integer()) {
      FURLONG_TRY(problem[name], scope.integer(expression, what));
    } else {
      FURLONG_TRY(problem[name], scope.value(expression, what));
    }
  }
  return problem;
}

Result<RunInputs> Instance::timed_inputs(std::uint64_t seed, std::span<const lattice::Point> points) const {
  InputMaker maker{.program = *program_,
                   .edition = *edition_,
                   .facts = facts_,
                   .points = points,
                   .seed = seed,
                   .inputs = {}};
  maker.inputs.name = fmt::format("random inputs of seed {}", seed);
  maker.inputs.problem = problem_;
  FURLONG_CHECK(maker.run());
  FURLONG_TRY(const lattice::Environment checked, checked_problem());
  if (internal::same_problem(checked, problem_)) FURLONG_CHECK(maker.expect_files());
  return std::move(maker.inputs);
}

Result<RunInputs> Instance::timed_sizes(std::span<const lattice::Point> points) const {
  InputMaker maker{.program = *program_,
                   .edition = *edition_,
                   .facts = facts_,
                   .points = points,
                   .seed = 0,
                   .inputs = {},
                   .contents = false};
  maker.inputs.name = "inputs of the caller";
  maker.inputs.problem = problem_;
  FURLONG_CHECK(maker.run());
  return std::move(maker.inputs);
}

Result<RunInputs> Instance::check_inputs(std::uint64_t seed, std::span<const lattice::Point> points) const {
  InputMaker maker{.program = *program_,
                   .edition = *edition_,
                   .facts = facts_,
                   .points = points,
                   .seed = seed,
                   .inputs = {}};
  maker.inputs.name = fmt::format("random inputs of seed {}", seed);
  FURLONG_TRY(maker.inputs.problem, checked_problem());
  if (!program_->check.problem.empty()) {
    Scope scope(*program_, nullptr, nullptr, maker.inputs.problem, facts_);
    for (const lattice::Point& point : points) {
      FURLONG_TRY(const std::string why, edition_->lattice.why_invalid(point, scope.lookup()));
      if (!why.empty())
        return fail(Code::invalid,
                    "{} is valid on the timed problem but not on the one of [check]: {}: choose another "
                    "[check] problem",
                    lattice::variant_name(edition_->lattice, point), why);
    }
  }
  FURLONG_CHECK(maker.run());
  FURLONG_CHECK(maker.expect_files());
  if (program_->check.reference == ReferenceKind::recipe && program_->recipe != nullptr)
    FURLONG_CHECK(maker.expect_recipe());
  return std::move(maker.inputs);
}

Result<RunInputs> Instance::vector_inputs(std::size_t i, std::span<const lattice::Point> points) const {
  if (i >= program_->vectors.size())
    return fail(Code::invalid, "program '{}' has {} vectors; there is no vector {}", program_->name,
                program_->vectors.size(), i);
  const Vector& vector = program_->vectors[i];
  InputMaker maker{
      .program = *program_, .edition = *edition_, .facts = facts_, .points = points, .seed = 0, .inputs = {}};
  maker.inputs.name = fmt::format("vector {}", vector.name.empty() ? fmt::format("{}", i) : vector.name);
  maker.inputs.problem = problem_;
  FURLONG_CHECK_DOING(set_vector_scalars(*program_, vector, maker.inputs), "{}", maker.inputs.name);
  FURLONG_CHECK_DOING(maker.run(), "{}", maker.inputs.name);
  FURLONG_CHECK_DOING(set_vector_bytes(*program_, vector, maker.inputs), "{}", maker.inputs.name);
  return std::move(maker.inputs);
}

std::vector<std::pair<std::string, std::int64_t>> Instance::class_values() const { return class_values_; }

}  // namespace furlong::program
