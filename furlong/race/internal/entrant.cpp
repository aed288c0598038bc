#include "furlong/race/internal/entrant.h"

#include "furlong/base/hash.h"

namespace furlong::race {

Status describe(const program::Instance& instance, Entrant& entrant,
                std::span<const program::RunInputs* const> cases) {
  Hasher launches;
  launches.add_field("furlong launches 1");
  entrant.pipelines.clear();
  for (const program::RunInputs* inputs : cases) {
    FURLONG_TRY(std::vector<program::LaunchPlan> pipeline, instance.launches(entrant.point, *inputs));
    launches.add_field(fmt::format("pipeline of {}", pipeline.size()));
    for (const program::LaunchPlan& launch : pipeline) {
      launches.add_field(launch.entry)
          .add_field(fmt::format("{} {} {} | {} {} {} | {}", launch.grid[0], launch.grid[1], launch.grid[2],
                                 launch.block[0], launch.block[1], launch.block[2], launch.shared_bytes));
      if (launch.once) launches.add_field("once");
      for (const std::size_t argument : launch.arguments) {
        launches.add_field(fmt::format("{}", argument));
        if (instance.program().arguments[argument].kind != program::ArgumentKind::scalar) continue;
        if (const auto own = launch.scalars.find(argument); own != launch.scalars.end()) {
          launches.add_field("own").add_field(as_text(own->second));
          continue;
        }
        // The same for every variant, and a random one differs from race to race.
        if (inputs->scalar_fixed[argument]) continue;
        FURLONG_TRY(const Bytes scalar, instance.scalar_bytes(argument, entrant.point, *inputs));
        launches.add_field(as_text(scalar));
      }
    }
    entrant.pipelines.push_back(std::move(pipeline));
  }
  // Equal code under another bound is not the same variant: it has to keep its own.
  if (instance.program().check.bound_by_knob) {
    FURLONG_TRY(const double bound, instance.bound(entrant.point));
    launches.add_field(fmt::format("{}", bound));
  }
  entrant.launch_key = launches.finish().hex();
  Hasher all;
  all.add_field("furlong variant 1").add(entrant.plan.source_hash.bytes).add_field(entrant.launch_key);
  entrant.key = all.finish().hex();
  return {};
}

Status launch_all(device::Device& device, std::span<const device::Launch> launches) {
  for (const device::Launch& launch : launches) FURLONG_CHECK(device.launch(launch));
  return {};
}

Result<Pipeline> make_launches(const program::Instance& instance, const lattice::Point& point,
                               device::Module& module, const Buffers& buffers,
                               const program::RunInputs& inputs) {
  return make_launches(
      instance, point, module, [&](std::size_t argument) { return buffers.argument(argument); }, inputs);
}

Result<Pipeline> make_launches(const program::Instance& instance, const lattice::Point& point,
                               device::Module& module,
                               const std::function<device::BufferArgument(std::size_t)>& buffer,
                               const program::RunInputs& inputs) {
  FURLONG_TRY(const std::vector<program::LaunchPlan> plans, instance.launches(point, inputs));
  Pipeline pipeline;
  for (const program::LaunchPlan& plan : plans) {
    device::Launch launch;
    launch.module = &module;
    launch.entry = plan.entry;
    launch.grid = plan.grid;
    launch.block = plan.block;
    launch.shared_bytes = plan.shared_bytes;
    for (const std::size_t argument : plan.arguments) {
      if (instance.program().arguments[argument].kind == program::ArgumentKind::scalar) {
        FURLONG_TRY(Bytes bytes, instance.scalar_bytes(plan, argument, point, inputs));
        launch.arguments.emplace_back(std::move(bytes));
      } else {
        launch.arguments.emplace_back(buffer(argument));
      }
    }
    (plan.once ? pipeline.once : pipeline.launches).push_back(std::move(launch));
  }
  return pipeline;
}

std::uint64_t buffer_bytes(const program::Instance& instance, const lattice::Point& point,
                           const program::RunInputs& inputs) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < inputs.buffer_bytes.size(); ++i) {
    const program::ArgumentSpec& spec = instance.program().arguments[i];
    std::uint64_t bytes = inputs.buffer_bytes[i];
    if (spec.direction == program::Direction::scratch) {
      // The case has the largest of all variants.
      if (const auto count = instance.elements(i, point, inputs)) bytes = *count * element_bytes(spec.type);
    }
    sum += bytes;
  }
  return sum;
}

Fault fault_of(const Error& error) {
  switch (error.code()) {
    case Code::mismatch:
    case Code::corrupt:
      return Fault::wrong;
    case Code::invalid:
    case Code::exhausted:
    case Code::incompatible:
    case Code::denied:
      return Fault::refused;
    case Code::timeout:
      return Fault::hang;
    case Code::unavailable:
    case Code::internal:
      break;
  }
  return Fault::trap;
}

std::string fault_words(const Error& error) {
  switch (fault_of(error)) {
    case Fault::wrong:
      return "gate: " + error.text();
    case Fault::refused:
      return "launch: " + error.text();
    case Fault::hang:
      return "hang: " + error.text();
    case Fault::trap:
      break;
  }
  return "trap: " + error.text();
}

}  // namespace furlong::race
