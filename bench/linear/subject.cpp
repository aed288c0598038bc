#include "bench/linear/subject.h"

#include <algorithm>
#include <cmath>

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

Result<race::Pipeline> Subject::launches(const lattice::Point& point, const program::RunInputs& inputs) {
  return race::make_launches(
      instance_, point, *module_,
      [this](std::size_t i) { return device::BufferArgument{buffers_[i].get(), 0}; }, inputs);
}

Status Subject::prepare(const std::string& name) {
  FURLONG_TRY(const lattice::Point point, lattice::parse_variant(instance_.lattice(), name));
  FURLONG_TRY(const std::string why, instance_.lattice().why_invalid(point, instance_.facts()));
  if (!why.empty()) return fail(Code::invalid, "{} is not valid here: {}", name, why);
  FURLONG_TRY(const program::VariantPlan plan, instance_.plan(point));
  notes_ = plan.notes;
  FURLONG_TRY(const auto plans, instance_.launches(point, inputs_));
  FURLONG_TRY(module_, stage_.device().compile(
                           race::compile_request(instance_, plan, race::most_shared_bytes(plans))));
  registers_ = module_->facts().registers.value_or(0);
  FURLONG_TRY(race::Pipeline pipeline, launches(point, inputs_));
  FURLONG_CHECK(race::launch_all(stage_.device(), pipeline.once));
  FURLONG_CHECK(race::launch_all(stage_.device(), pipeline.launches));
  pipeline_ = std::move(pipeline.launches);
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
  FURLONG_TRY(const race::Pipeline pipeline, launches(point, inputs));
  FURLONG_CHECK(race::launch_all(stage_.device(), pipeline.once));
  FURLONG_CHECK(race::launch_all(stage_.device(), pipeline.launches));
  FURLONG_CHECK(stage_.device().finish());
  FURLONG_TRY(const program::CheckSpec check, instance_.check(point));
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
