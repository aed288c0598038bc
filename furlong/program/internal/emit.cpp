#include "furlong/program/internal/emit.h"

#include <algorithm>

#include "furlong/program/internal/elements.h"
#include "furlong/program/internal/launch_limits.h"
#include "furlong/program/internal/scope.h"

namespace furlong::program::internal {
namespace {

Status check_launch(const Program& program, const EmittedLaunch& launch) {
  if (launch.entry.empty()) return fail(Code::internal, "a launch has no entry");
  for (const std::string& name : launch.arguments) {
    const auto index = program.argument_index(name);
    if (!index)
      return fail(Code::internal, "kernel '{}' is passed '{}', which is no argument of program '{}'",
                  launch.entry, name, program.name);
    // It must not change what is checked or what the other variants read.
    if (launch.once && program.arguments[*index].is_output())
      return fail(Code::internal,
                  "kernel '{}' runs once and is passed '{}', an output: it may write scratch only",
                  launch.entry, name);
  }
  for (const auto& [name, value] : launch.scalars) {
    const auto index = program.argument_index(name);
    if (!index || program.arguments[*index].kind != ArgumentKind::scalar ||
        std::find(launch.arguments.begin(), launch.arguments.end(), name) == launch.arguments.end())
      return fail(Code::internal, "kernel '{}' has a value for '{}', which is no scalar that it is passed",
                  launch.entry, name);
  }
  return {};
}

Status check(const Program& program, const Emitted& emitted) {
  if (emitted.source.empty()) return fail(Code::internal, "it made no text");
  for (const EmittedLaunch& launch : emitted.launches) FURLONG_CHECK(check_launch(program, launch));
  if (std::all_of(emitted.launches.begin(), emitted.launches.end(),
                  [](const EmittedLaunch& launch) { return launch.once; }))
    return fail(Code::internal, "it made no launch that could be timed");
  return {};
}

Status check_sizes(const EmittedLaunch& launch, std::string_view variant) {
  const auto named = [&](std::string_view what) {
    return fmt::format("{}: {} of kernel '{}'", variant, what, launch.entry);
  };
  for (const auto& [what, sizes] : {std::pair{"grid", &launch.grid}, std::pair{"block", &launch.block}}) {
    for (const std::uint64_t size : *sizes)
      if (size < 1 || size > static_cast<std::uint64_t>(largest_dimension))
        return fail(Code::invalid, "{} is {}; it must be 1 to {}", named(what), size, largest_dimension);
    FURLONG_CHECK(check_product(*sizes, named(what)));
  }
  if (launch.shared_bytes > static_cast<std::uint64_t>(largest_shared_bytes))
    return fail(Code::invalid, "{} is {}; it must be 0 to {}", named("shared_bytes"), launch.shared_bytes,
                largest_shared_bytes);
  return {};
}

}  // namespace

Result<Emitted> emit(const Program& program, const Edition& edition, const lattice::Point& point,
                     const lattice::Environment& problem, const lattice::Environment& facts) {
  Scope scope(program, &edition.lattice, &point, problem, facts);
  auto emitted = edition.emitter->emit(scope.lookup());
  // A name without a value looks to the emitter like one that is not there.
  if (const Error* error = scope.let_error())
    return Error(*error).with(lattice::variant_name(edition.lattice, point));
  if (!emitted) return std::move(emitted).error().with(lattice::variant_name(edition.lattice, point));
  FURLONG_CHECK_DOING(check(program, *emitted), "{} by emitter '{}'",
                      lattice::variant_name(edition.lattice, point), edition.emitter->name());
  std::stable_partition(emitted->launches.begin(), emitted->launches.end(),
                        [](const EmittedLaunch& launch) { return launch.once; });
  return *std::move(emitted);
}

Result<std::vector<LaunchPlan>> launch_plans(const Program& program, const Emitted& emitted,
                                             std::string_view variant) {
  std::vector<LaunchPlan> plans;
  for (const EmittedLaunch& launch : emitted.launches) {
    FURLONG_CHECK(check_sizes(launch, variant));
    LaunchPlan plan;
    plan.entry = launch.entry;
    plan.grid = launch.grid;
    plan.block = launch.block;
    plan.shared_bytes = launch.shared_bytes;
    plan.once = launch.once;
    for (const std::string& name : launch.arguments) plan.arguments.push_back(*program.argument_index(name));
    for (const auto& [name, value] : launch.scalars) {
      const std::size_t index = *program.argument_index(name);
      const ElementType type = program.arguments[index].type;
      Bytes bytes(element_bytes(type));
      FURLONG_CHECK(store_element(
          type, value, fmt::format("{}: '{}' of kernel '{}'", variant, name, launch.entry), bytes.data()));
      plan.scalars.emplace(index, std::move(bytes));
    }
    plans.push_back(std::move(plan));
  }
  return plans;
}

std::vector<std::string> entries_of(const Emitted& emitted) {
  std::vector<std::string> entries;
  for (const EmittedLaunch& launch : emitted.launches)
    if (std::find(entries.begin(), entries.end(), launch.entry) == entries.end())
      entries.push_back(launch.entry);
  return entries;
}

}  // namespace furlong::program::internal
