// From the caller's buffers and values to launches.

#include <algorithm>

#include "furlong/base/text.h"
#include "furlong/device/request.h"
#include "furlong/kernel/raced_kernel.h"
#include "furlong/program/fill.h"

namespace furlong::kernel {

using program::ArgumentKind;
using program::ArgumentSpec;
using program::Direction;

Status Bound::enqueue(std::span<const device::Launch> launches) {
  for (const device::Launch& launch : launches) FURLONG_CHECK(device_->launch(launch));
  return {};
}

Status Bound::prepare() { return enqueue(once_); }
Status Bound::launch() { return enqueue(launches_); }

/// By argument: whether a launch of the variant has it.
std::vector<bool> RacedKernel::used() const {
  std::vector<bool> used(instance_->program().arguments.size());
  for (const program::LaunchPlan& launch : launches_)
    for (const std::size_t i : launch.arguments) used[i] = true;
  return used;
}

std::vector<Argument> RacedKernel::arguments() const {
  std::vector<Argument> list;
  const std::vector<bool> here = used();
  for (std::size_t i = 0; i < here.size(); ++i) {
    if (!here[i]) continue;
    const ArgumentSpec& spec = instance_->program().arguments[i];
    list.push_back({.name = spec.name,
                    .kind = spec.kind,
                    .direction = spec.direction,
                    .type = spec.type,
                    .bytes = spec.kind == ArgumentKind::scalar ? program::element_bytes(spec.type)
                                                               : sizes_.buffer_bytes[i]});
  }
  return list;
}

/// Names that the program does not have; those that another variant would use are no mistake.
Status RacedKernel::check_names(const Arguments& given) const {
  const program::Program& program = instance_->program();
  std::vector<std::string> buffers, scalars;
  for (const ArgumentSpec& spec : program.arguments)
    (spec.kind == ArgumentKind::scalar ? scalars : buffers).push_back(spec.name);
  const auto check = [&](const std::string& name, std::string_view what, const std::vector<std::string>& own,
                         const std::vector<std::string>& other, std::string_view what_other) -> Status {
    if (std::ranges::find(own, name) != own.end()) return {};
    if (std::ranges::find(other, name) != other.end())
      return fail(Code::invalid, "argument '{}' of {} is a {}, and a {} is given", name, program.name,
                  what_other, what);
    return fail(Code::invalid, "{} has no {} '{}'{}", program.name, what, name,
                nearest_choices(name, own, 3));
  };
  for (const auto& [name, unused] : given.buffers())
    FURLONG_CHECK(check(name, "buffer", buffers, scalars, "scalar"));
  for (const auto& [name, unused] : given.scalars())
    FURLONG_CHECK(check(name, "scalar", scalars, buffers, "buffer"));
  return {};
}

/// The bytes that all launches share; a launch's own value goes before them.
Result<Bytes> RacedKernel::scalar(std::size_t index, const Arguments& given) const {
  const ArgumentSpec& spec = instance_->program().arguments[index];
  const auto asked = given.scalars().find(spec.name);
  if (spec.fill == program::Fill::random) {
    if (asked != given.scalars().end()) return program::one_element(spec, asked->second);
    return fail(Code::invalid, "scalar '{}' ({}) is not given: a race draws it at random", spec.name,
                program::element_name(spec.type));
  }
  FURLONG_TRY(Bytes own, instance_->scalar_bytes(index, plan_.point, sizes_));
  if (asked == given.scalars().end()) return own;
  FURLONG_TRY(Bytes bytes, program::one_element(spec, asked->second));
  // Grid, sizes and the choice itself follow from the same parameters.
  if (!spec.value.variables().empty() && bytes != own) {
    const auto value = spec.value.evaluate(instance_->problem());
    return fail(
        Code::invalid,
        "scalar '{}' is {} by the kernel's problem, and {} is given: ask for a kernel of that problem",
        spec.name, value ? value->text() : spec.value.text(), asked->second.text());
  }
  for (const program::LaunchPlan& launch : launches_)
    if (launch.scalars.contains(index))
      return fail(Code::invalid, "scalar '{}' is each launch's own, and {} is given: leave it out", spec.name,
                  asked->second.text());
  return bytes;
}

Result<device::BufferArgument> RacedKernel::buffer(std::size_t index, const Arguments& given,
                                                   Bound& bound) const {
  const ArgumentSpec& spec = instance_->program().arguments[index];
  const std::size_t needed = sizes_.buffer_bytes[index];
  const auto asked = given.buffers().find(spec.name);
  if (asked == given.buffers().end()) {
    if (spec.direction != Direction::scratch)
      return fail(Code::invalid, "buffer '{}' of {} ({} bytes of {}) is not given", spec.name,
                  instance_->program().name, needed, program::element_name(spec.type));
    auto scratch = device_->allocate(needed);
    if (!scratch) return std::move(scratch).error().with(fmt::format("scratch '{}'", spec.name));
    bound.scratch_.push_back(*std::move(scratch));
    return device::BufferArgument{bound.scratch_.back().get(), 0};
  }
  const auto& [buffer, offset] = asked->second;
  if (buffer == nullptr) return fail(Code::invalid, "buffer '{}' is null", spec.name);
  if (offset % device::buffer_offset_step != 0)
    return fail(Code::invalid, "buffer '{}' starts at byte {}: offsets are multiples of {}", spec.name,
                offset, device::buffer_offset_step);
  if (offset > buffer->size() || buffer->size() - offset < needed)
    return fail(Code::invalid, "buffer '{}' needs {} bytes, and has {} of {} from byte {} on", spec.name,
                needed, buffer->size() - std::min(offset, buffer->size()), buffer->size(), offset);
  return asked->second;
}

/// What is written must not be what another argument reads or writes.
Status RacedKernel::check_overlaps(std::span<const device::BufferArgument> bound) const {
  const auto& arguments = instance_->program().arguments;
  for (std::size_t i = 0; i < bound.size(); ++i) {
    if (bound[i].buffer == nullptr || arguments[i].direction == Direction::in) continue;
    for (std::size_t j = 0; j < bound.size(); ++j) {
      if (j == i || bound[j].buffer != bound[i].buffer) continue;
      const bool before = bound[j].offset + sizes_.buffer_bytes[j] <= bound[i].offset;
      const bool after = bound[i].offset + sizes_.buffer_bytes[i] <= bound[j].offset;
      if (!before && !after)
        return fail(Code::invalid, "buffer '{}' is written and overlaps '{}'", arguments[i].name,
                    arguments[j].name);
    }
  }
  return {};
}

Result<Bound> RacedKernel::bind(const Arguments& given) const {
  FURLONG_CHECK(check_names(given));
  const auto& arguments = instance_->program().arguments;
  const std::vector<bool> here = used();
  Bound bound;
  bound.device_ = device_;
  bound.module_ = module_;
  std::vector<device::BufferArgument> buffers(arguments.size());
  std::vector<Bytes> scalars(arguments.size());
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (!here[i]) continue;
    if (arguments[i].kind == ArgumentKind::scalar) {
      FURLONG_TRY(scalars[i], scalar(i, given));
    } else {
      FURLONG_TRY(buffers[i], buffer(i, given, bound));
    }
  }
  FURLONG_CHECK(check_overlaps(buffers));
  for (const program::LaunchPlan& plan : launches_) {
    device::Launch launch{.module = module_.get(),
                          .entry = plan.entry,
                          .grid = plan.grid,
                          .block = plan.block,
                          .shared_bytes = plan.shared_bytes,
                          .arguments = {}};
    for (const std::size_t i : plan.arguments) {
      if (arguments[i].kind != ArgumentKind::scalar) {
        launch.arguments.emplace_back(buffers[i]);
        if (plan.once && arguments[i].direction != Direction::scratch &&
            std::ranges::find(bound.prepare_reads_, arguments[i].name) == bound.prepare_reads_.end())
          bound.prepare_reads_.push_back(arguments[i].name);
      } else if (const auto own = plan.scalars.find(i); own != plan.scalars.end()) {
        launch.arguments.emplace_back(own->second);
      } else {
        launch.arguments.emplace_back(scalars[i]);
      }
    }
    (plan.once ? bound.once_ : bound.launches_).push_back(std::move(launch));
  }
  return bound;
}

}  // namespace furlong::kernel
