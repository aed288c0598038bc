#include <algorithm>

#include "furlong/race/buffers.h"
#include "furlong/race/internal/child_limits.h"
#include "furlong/race/internal/entrant.h"
#include "furlong/race/internal/trial_protocol.h"
#include "furlong/race/trial.h"

namespace furlong::race {
namespace {

using Kind = TrialEvent::Kind;

constexpr int kRepeats = 32;  // launches in a row of the last inputs

/// Everything that one child needs to try a variant.
class Bench {
 public:
  static Result<std::unique_ptr<Bench>> make(TrialSubject subject, const TrialRequest& request);
  Result<std::shared_ptr<device::Module>> compile(std::size_t i);
  Status run(std::size_t i, device::Module& module);

 private:
  Bench(TrialSubject subject, const TrialRequest& request)
      : subject_(std::move(subject)), random_(request.seed, "trial") {}
  Status allocate(const TrialRequest& request);
  Status run_inputs(const lattice::Point& point, device::Module& module, const program::RunInputs& inputs,
                    std::uint64_t id, int repeats);

  TrialSubject subject_;
  Random random_;
  std::vector<lattice::Point> points_;
  std::vector<program::RunInputs> cases_;
  std::unique_ptr<Buffers> buffers_;
};

Result<std::unique_ptr<Bench>> Bench::make(TrialSubject subject, const TrialRequest& request) {
  std::unique_ptr<Bench> bench(new Bench(std::move(subject), request));
  const program::Instance& instance = *bench->subject_.instance;
  for (const std::string& name : request.variants) {
    FURLONG_TRY(lattice::Point point, lattice::parse_variant(instance.lattice(), name));
    bench->points_.push_back(std::move(point));
  }
  for (std::size_t i = 0; i < instance.vector_count(); ++i) {
    FURLONG_TRY(program::RunInputs inputs, instance.vector_inputs(i, bench->points_));
    bench->cases_.push_back(std::move(inputs));
  }
  FURLONG_TRY(program::RunInputs fresh, instance.check_inputs(request.seed, bench->points_));
  bench->cases_.push_back(std::move(fresh));
  FURLONG_CHECK(bench->allocate(request));
  return bench;
}

Status Bench::allocate(const TrialRequest& request) {
  std::vector<std::size_t> room(subject_.instance->program().arguments.size(), 0);
  for (const program::RunInputs& inputs : cases_)
    for (std::size_t i = 0; i < room.size(); ++i) room[i] = std::max(room[i], inputs.buffer_bytes[i]);
  device::Device& device = *subject_.device;
  if (request.memory_bytes > 0) device.set_memory_limit(request.memory_bytes);
  FURLONG_TRY(buffers_, Buffers::allocate(device, subject_.instance->shared_program(), room, request.seed));
  if (request.memory_bytes == 0)
    device.set_memory_limit(std::max<std::uint64_t>(device.memory().used_bytes, 1));
  Context context;
  context.device = &device;
  context.clock = &system_clock();
  return buffers_->load_dataset(context);
}

Result<std::shared_ptr<device::Module>> Bench::compile(std::size_t i) {
  const program::Instance& instance = *subject_.instance;
  FURLONG_TRY(const program::VariantPlan plan, instance.plan(points_[i]));
  std::uint64_t shared = 0;
  for (const program::RunInputs& inputs : cases_) {
    FURLONG_TRY(const auto launches, instance.launches(points_[i], inputs));
    shared = std::max(shared, most_shared_bytes(launches));
  }
  return subject_.device->compile(compile_request(instance, plan, shared));
}

Status Bench::run(std::size_t i, device::Module& module) {
  for (std::size_t c = 0; c < cases_.size(); ++c) {
    const int repeats = c + 1 == cases_.size() ? kRepeats : 1;
    FURLONG_CHECK_DOING(run_inputs(points_[i], module, cases_[c], c + 1, repeats), "{}", cases_[c].name);
  }
  return {};
}

Status Bench::run_inputs(const lattice::Point& point, device::Module& module,
                         const program::RunInputs& inputs, std::uint64_t id, int repeats) {
  FURLONG_CHECK(buffers_->load(inputs, id));
  FURLONG_CHECK(buffers_->poison(inputs, inputs.expected, random_));
  FURLONG_TRY(const auto pipeline, make_launches(*subject_.instance, point, module, *buffers_, inputs));
  FURLONG_CHECK(launch_all(*subject_.device, pipeline.once));
  for (int repeat = 0; repeat < repeats; ++repeat) {
    FURLONG_CHECK(launch_all(*subject_.device, pipeline.launches));
    FURLONG_CHECK(subject_.device->finish());
  }
  FURLONG_CHECK(buffers_->check_guards(inputs));
  return buffers_->check_inputs(inputs, random_);
}

Status refuse(const TrialServer& server, const Error& error) {
  FURLONG_CHECK(server.write_line(to_line(TrialEvent{Kind::error, {}, error.code(), error.text(), false})));
  return error;
}

Status say(const TrialServer& server, Kind kind, const std::string& variant = {}) {
  return server.write_line(to_line(TrialEvent{kind, variant, Code::internal, {}, false}));
}

/// Says that it failed; the Error back when the device cannot be used any more.
Status say_failed(const TrialServer& server, const std::string& variant, const Error& error) {
  const Fault fault = fault_of(error);
  const bool lost = fault == Fault::hang || fault == Fault::trap;
  FURLONG_CHECK(
      server.write_line(to_line(TrialEvent{Kind::failed, variant, error.code(), error.text(), lost})));
  if (lost) return error;
  return {};
}

}  // namespace

Status serve_trial(const TrialServer& server) {
  const std::optional<std::string> line = server.read_line();
  if (!line) return refuse(server, fail(Code::invalid, "the trial got no request on its standard input"));
  auto request = parse_trial_request(*line);
  if (!request) return refuse(server, request.error());
  drop_what_a_trial_does_not_need();
  auto subject = server.open(request->program_json, request->device);
  if (!subject) return refuse(server, subject.error());
  auto bench = Bench::make(*std::move(subject), *request);
  if (!bench) return refuse(server, bench.error());
  FURLONG_CHECK(say(server, Kind::ready));
  for (std::size_t i = 0; i < request->variants.size(); ++i) {
    const std::string& name = request->variants[i];
    FURLONG_CHECK(say(server, Kind::begin, name));
    auto module = (*bench)->compile(i);
    if (!module) {
      // A compiler that fails in any way is no danger to the device.
      FURLONG_CHECK(say_failed(server, name, fail(Code::invalid, "{}", module.error().text())));
      continue;
    }
    FURLONG_CHECK(say(server, Kind::built, name));
    Status ran = (*bench)->run(i, **module);
    if (!ran) {
      FURLONG_CHECK(say_failed(server, name, ran.error()));
      continue;
    }
    FURLONG_CHECK(say(server, Kind::passed, name));
  }
  return say(server, Kind::end);
}

}  // namespace furlong::race
