#include "bench/linear/subject.h"

#include <algorithm>
#include <cmath>

#include "furlong/race/internal/entrant.h"

namespace furlong::bench {
namespace {

constexpr double kWindowMs = 8;
constexpr int kWindows = 5;

}  // namespace

Result<double> median_ms(device::Device& device, std::span<const device::Launch> pipeline, bool smoke) {
  device::TimeRequest request{.pipeline = pipeline, .repeats = 2, .batch = 1, .flush = nullptr};
  FURLONG_TRY(const std::vector<double> first, device.time(request));
  const double estimate = std::max(first.back(), 1e-4);
  if (smoke) return estimate;
  // Batches of 2 ms at least, as a stream of launches that a program makes; windows of several.
  request.batch = static_cast<int>(std::clamp(std::ceil(2 / estimate), 1.0, 2000.0));
  request.repeats = 1 + static_cast<int>(std::max(3.0, std::ceil(kWindowMs / (estimate * request.batch))));
  std::vector<double> windows;
  for (int window = 0; window < kWindows; ++window) {
    FURLONG_TRY(std::vector<double> times, device.time(request));
    times.erase(times.begin());
    windows.push_back(median(std::move(times)));
  }
  return median(std::move(windows));
}

Result<program::Instance> linear_instance(
    Stage& stage, const std::string& name,
    const std::vector<std::pair<std::string, lattice::Value>>& problem) {
  FURLONG_TRY(const auto where, repository_file("programs/linear/" + name + ".toml"));
  FURLONG_TRY(auto program, program::load_program_file(where));
  if (stage.on_card()) return stage.bind(std::move(program), problem);
  return program::Instance::make(std::move(program), "cuda", problem, {});
}

Result<std::unique_ptr<Subject>> Subject::make(Stage& stage, const program::Instance& instance,
                                               const std::vector<std::string>& names) {
  std::unique_ptr<Subject> subject(new Subject(stage, instance));
  for (const std::string& name : names) {
    FURLONG_TRY(lattice::Point point, lattice::parse_variant(instance.lattice(), name));
    subject->points_.push_back(std::move(point));
  }
  FURLONG_TRY(subject->inputs_, instance.timed_inputs(1, subject->points_));
  const auto& arguments = instance.program().arguments;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    subject->buffers_.emplace_back();
    if (arguments[i].kind == program::ArgumentKind::scalar) continue;
    FURLONG_TRY(subject->buffers_[i],
                stage.device().allocate(std::max<std::size_t>(subject->inputs_.buffer_bytes[i], 65536)));
  }
  FURLONG_CHECK(subject->load(subject->inputs_));
  return subject;
}

Status Subject::load(const program::RunInputs& inputs) {
  for (std::size_t i = 0; i < buffers_.size(); ++i) {
    if (buffers_[i] == nullptr) continue;
    if (!inputs.bytes[i].empty()) FURLONG_CHECK(buffers_[i]->write(0, inputs.bytes[i]));
  }
  return {};
}

Result<std::vector<device::Launch>> Subject::launches(const lattice::Point& point,
                                                      const program::RunInputs& inputs, bool once) {
  FURLONG_TRY(const auto plans, instance_.launches(point, inputs));
  std::vector<device::Launch> made;
  for (const program::LaunchPlan& plan : plans) {
    if (plan.once != once) continue;
    device::Launch launch{.module = module_.get(),
                          .entry = plan.entry,
                          .grid = plan.grid,
                          .block = plan.block,
                          .shared_bytes = plan.shared_bytes,
                          .arguments = {}};
    for (const std::size_t i : plan.arguments) {
      if (buffers_[i] != nullptr) {
        launch.arguments.emplace_back(device::BufferArgument{buffers_[i].get(), 0});
      } else {
        FURLONG_TRY(Bytes bytes, instance_.scalar_bytes(plan, i, point, inputs));
        launch.arguments.emplace_back(std::move(bytes));
      }
    }
    made.push_back(std::move(launch));
  }
  return made;
}

Status Subject::prepare(const std::string& name) {
  FURLONG_TRY(const lattice::Point point, lattice::parse_variant(instance_.lattice(), name));
  FURLONG_TRY(const std::string why, instance_.lattice().why_invalid(point, instance_.facts()));
  if (!why.empty()) return fail(Code::invalid, "{} is not valid here: {}", name, why);
  FURLONG_TRY(const program::VariantPlan plan, instance_.plan(point));
  notes_ = plan.notes;
  std::uint64_t shared = 0;
  FURLONG_TRY(const auto plans, instance_.launches(point, inputs_));
  for (const program::LaunchPlan& launch : plans) shared = std::max(shared, launch.shared_bytes);
  FURLONG_TRY(module_, stage_.device().compile(race::compile_request(instance_, plan, shared)));
  registers_ = module_->facts().registers.value_or(0);
  FURLONG_TRY(const auto once, launches(point, inputs_, true));
  for (const device::Launch& launch : once) FURLONG_CHECK(stage_.device().launch(launch));
  FURLONG_TRY(pipeline_, launches(point, inputs_, false));
  for (const device::Launch& launch : pipeline_) FURLONG_CHECK(stage_.device().launch(launch));
  return stage_.device().finish();
}

Result<double> Subject::time_ms(std::string_view without) {
  std::vector<device::Launch> timed;
  for (const device::Launch& launch : pipeline_)
    if (launch.entry != without) timed.push_back(launch);
  return median_ms(stage_.device(), timed, !stage_.on_card());
}

Status Subject::check(const std::string& name) {
  FURLONG_CHECK(prepare(name));
  FURLONG_TRY(const lattice::Point point, lattice::parse_variant(instance_.lattice(), name));
  FURLONG_TRY(const auto inputs, instance_.check_inputs(2, std::vector{point}));
  const auto& arguments = instance_.program().arguments;
  for (std::size_t i = 0; i < buffers_.size(); ++i) {
    if (buffers_[i] == nullptr || buffers_[i]->size() >= inputs.buffer_bytes[i]) continue;
    FURLONG_TRY(buffers_[i], stage_.device().allocate(inputs.buffer_bytes[i]));
  }
  FURLONG_CHECK(load(inputs));
  for (const bool once : {true, false}) {
    FURLONG_TRY(const auto list, launches(point, inputs, once));
    for (const device::Launch& launch : list) FURLONG_CHECK(stage_.device().launch(launch));
  }
  FURLONG_CHECK(stage_.device().finish());
  program::CheckSpec check = instance_.program().check;
  FURLONG_TRY(check.bound, instance_.bound(point));
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (inputs.expected[i].empty() || buffers_[i] == nullptr) continue;
    Bytes got(inputs.expected[i].size());
    FURLONG_CHECK(buffers_[i]->read(0, got));
    FURLONG_CHECK_DOING(program::compare_output(check, arguments[i], got, inputs.expected[i]), "{}", name);
  }
  return load(inputs_);
}

Result<Bytes> Subject::read(std::string_view argument) {
  const auto index = instance_.program().argument_index(argument);
  if (!index || buffers_[*index] == nullptr) return fail(Code::invalid, "there is no buffer '{}'", argument);
  Bytes bytes(inputs_.buffer_bytes[*index]);
  FURLONG_CHECK(buffers_[*index]->read(0, bytes));
  return bytes;
}

device::Buffer* Subject::buffer(std::string_view argument) {
  const auto index = instance_.program().argument_index(argument);
  return index ? buffers_[*index].get() : nullptr;
}

}  // namespace furlong::bench
