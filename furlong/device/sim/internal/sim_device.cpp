#include "furlong/device/sim/internal/sim_device.h"

#include <algorithm>
#include <cmath>

#include "furlong/base/hash.h"
#include "furlong/base/text.h"
#include "furlong/device/request.h"

namespace furlong::device::internal {
namespace {

constexpr std::uint64_t thermal_slowdown = 0x20;  // the bit NVML gives it
constexpr double throttled_speed = 0.9;
constexpr double flush_gb_per_s = 1000;  // on the device, beside the timed span
constexpr std::size_t largest_snapshot = 64u << 20;

// Of everything that decides the machine code, and not of the name: two variants with one text share their
// code.
std::string code_hash(const CompileRequest& request) {
  Hasher hasher;
  hasher.add_field(language_name(request.language)).add_field(request.source);
  hasher.add_field(fmt::format("{} defines", request.defines.size()));
  for (const auto& [name, value] : request.defines) hasher.add_field(name).add_field(value);
  for (const std::string& option : request.options) hasher.add_field(option);
  return hasher.finish().hex();
}

const SimModule* module_of(const Launch& launch) { return dynamic_cast<const SimModule*>(launch.module); }

template <class T>
T by_variant(const std::map<std::string, T>& values, const std::string& variant, T otherwise) {
  auto found = values.find(variant);
  if (found == values.end()) found = values.find("*");
  return found == values.end() ? otherwise : found->second;
}

}  // namespace

SimDevice::SimDevice(SimOptions options, std::shared_ptr<FakeClock> clock)
    : options_(std::move(options)),
      state_(std::make_shared<SimState>()),
      opened_ns_(clock->now_ns()),
      timing_(options_.timing, options_.seed),
      damage_random_(options_.seed, "sim damage") {
  state_->address = options_.facts.address();
  state_->transfer_gb_per_s = options_.transfer_gb_per_s;
  state_->clock = std::move(clock);
  for (const SimFaultPlan& plan : options_.faults) plans_.emplace(plan.variant, &plan);
}

double SimDevice::at_s() const { return static_cast<double>(state_->clock->now_ns() - opened_ns_) * 1e-9; }

// --- compile

const SimFaultPlan* SimDevice::compile_fault(const std::string& variant) const {
  for (const std::string& name : {variant, std::string("*")}) {
    const auto [first, last] = plans_.equal_range(name);
    for (auto at = first; at != last; ++at)
      if (at->second->fault == SimFault::compile_error || at->second->fault == SimFault::compile_crash)
        return at->second;
  }
  return nullptr;
}

Result<std::shared_ptr<Module>> SimDevice::compile(const CompileRequest& request, std::stop_token stop) {
  FURLONG_CHECK(state_->alive());
  if (std::ranges::find(options_.facts.languages, request.language) == options_.facts.languages.end())
    return fail(Code::invalid, "{}: {} is not a language of this device", state_->address,
                language_name(request.language));
  if (stop.stop_requested())
    return fail(Code::timeout, "{}: compiling '{}' was stopped", state_->address, request.name);
  FURLONG_CHECK(check_request(request));
  state_->pass_ms(options_.compile_ms);
  if (const SimFaultPlan* const fault = compile_fault(request.name)) {
    if (fault->fault == SimFault::compile_crash)
      return fail(Code::internal, "{}: the compiler crashed on '{}' (planted)", state_->address,
                  request.name);
    return fail(Code::invalid, "{}:1:1: error: '{}' does not compile (planted)",
                request.source_name.empty() ? "source" : request.source_name, request.name);
  }
  if (options_.compiler) FURLONG_CHECK(options_.compiler(request));
  KernelFacts facts;
  facts.registers = by_variant(options_.registers, request.name, 32);
  facts.spill_bytes = 0;
  facts.shared_bytes = 0;
  facts.max_threads_per_block = options_.facts.max_threads_per_block;
  facts.compile_ms = options_.compile_ms;
  facts.code_hash = code_hash(request);
  return std::make_shared<SimModule>(request, std::move(facts));
}

// --- memory

std::uint64_t SimDevice::memory_limit() const {
  return limit_bytes_ == 0 ? options_.memory_bytes : std::min(limit_bytes_, options_.memory_bytes);
}

Result<std::unique_ptr<Buffer>> SimDevice::allocate(std::size_t bytes) {
  FURLONG_CHECK(state_->alive());
  if (bytes == 0) return fail(Code::invalid, "{}: a buffer of 0 bytes was asked for", state_->address);
  if (bytes > options_.facts.max_buffer_bytes)
    return fail(Code::exhausted, "{}: asked for a buffer of {} bytes, the largest allowed is {}",
                state_->address, bytes, options_.facts.max_buffer_bytes);
  const std::uint64_t used = state_->used_bytes, limit = memory_limit();
  const std::uint64_t available = limit > used ? limit - used : 0;
  if (bytes > available)
    return fail(Code::exhausted, "{}: asked for {} bytes, {} of {} are available", state_->address, bytes,
                available, limit);
  FURLONG_TRY(auto buffer, SimBuffer::make(state_, bytes));
  return std::unique_ptr<Buffer>(std::move(buffer));
}

MemoryInUse SimDevice::memory() const { return {state_->used_bytes, memory_limit()}; }

// --- launches

Status SimDevice::check_shape(const Launch& launch) const {
  const Facts& card = options_.facts;
  const SimModule* const module = module_of(launch);
  if (module == nullptr)
    return fail(Code::invalid, "{}: launch of '{}' has no module of this back end", state_->address,
                launch.entry);
  const std::string& variant = module->request().name;
  if (std::ranges::find(module->entries(), launch.entry) == module->entries().end())
    return fail(Code::invalid, "{}: '{}' has no kernel '{}'{}; it has {}", state_->address, variant,
                launch.entry, did_you_mean(launch.entry, module->entries()), join(module->entries(), ", "));
  double threads = 1;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    if (launch.grid[axis] == 0 || launch.block[axis] == 0)
      return fail(Code::invalid, "{}: launch of '{}' is empty: grid {}, block {} on axis {}", state_->address,
                  variant, launch.grid[axis], launch.block[axis], axis);
    if (launch.block[axis] > card.max_block[axis])
      return fail(Code::invalid, "{}: launch of '{}' asks for {} threads on axis {}, the device allows {}",
                  state_->address, variant, launch.block[axis], axis, card.max_block[axis]);
    threads *= static_cast<double>(launch.block[axis]);
  }
  if (threads > card.max_threads_per_block)
    return fail(Code::invalid, "{}: launch of '{}' asks for {:.0f} threads a block, the device allows {}",
                state_->address, variant, threads, card.max_threads_per_block);
  if (launch.shared_bytes > card.max_shared_bytes)
    return fail(Code::invalid, "{}: launch of '{}' asks for {} bytes of shared memory, the device allows {}",
                state_->address, variant, launch.shared_bytes, card.max_shared_bytes);
  return check_arguments(launch);
}

Status SimDevice::check_arguments(const Launch& launch) const {
  for (std::size_t i = 0; i < launch.arguments.size(); ++i) {
    const auto* const argument = std::get_if<BufferArgument>(&launch.arguments[i]);
    if (argument == nullptr) continue;
    const auto* const buffer = dynamic_cast<const SimBuffer*>(argument->buffer);
    if (buffer == nullptr || buffer->state() != state_.get())
      return fail(Code::invalid, "{}: argument {} of '{}' is no buffer of this device", state_->address, i,
                  launch.entry);
    if (argument->offset % 256 != 0 || argument->offset >= buffer->size())
      return fail(Code::invalid, "{}: argument {} of '{}' has offset {}: must be a multiple of 256 under {}",
                  state_->address, i, launch.entry, argument->offset, buffer->size());
  }
  return {};
}

SimDevice::Plans SimDevice::strike(const std::string& variant, std::uint64_t launches) {
  const std::uint64_t first = launches_[variant];
  launches_[variant] += launches;
  Plans striking;
  for (const std::string& name : {variant, std::string("*")}) {
    const auto [from, to] = plans_.equal_range(name);
    for (auto at = from; at != to; ++at) {
      const auto begin = static_cast<std::uint64_t>(at->second->after_launches);
      const auto length = static_cast<std::uint64_t>(at->second->for_launches);
      if (first + launches > begin && (length == 0 || first < begin + length)) striking.push_back(at->second);
    }
  }
  return striking;
}

std::optional<Error> SimDevice::fatal(const Plans& faults, const std::string& variant) {
  for (const SimFaultPlan* const plan : faults) {
    switch (plan->fault) {
      case SimFault::device_lost:
        state_->lost = true;
        return state_->alive().error();
      case SimFault::trap:
        return fail(Code::internal, "{}: '{}' made an illegal access (planted); the device is lost",
                    state_->address, variant);
      case SimFault::hang:
        return fail(Code::timeout, "{}: '{}' did not end within {} ms (planted)", state_->address, variant,
                    options_.hang_ms);
      case SimFault::out_of_memory:
        return fail(Code::exhausted,
                    "{}: launch of '{}' found no memory (planted): 0 of {} bytes are available",
                    state_->address, variant, memory_limit());
      default:
        break;
    }
  }
  return std::nullopt;
}

namespace {
const SimFaultPlan* find_fault(const std::vector<const SimFaultPlan*>& plans, SimFault fault) {
  const auto found = std::ranges::find(plans, fault, &SimFaultPlan::fault);
  return found == plans.end() ? nullptr : *found;
}
}  // namespace

Status SimDevice::launch(const Launch& launch) {
  FURLONG_CHECK(state_->alive());
  FURLONG_CHECK(check_shape(launch));
  const std::string& variant = module_of(launch)->request().name;
  const Plans faults = strike(variant, 1);
  if (pending_) return {};  // queued behind one that never ends
  if (auto error = fatal(faults, variant)) {
    if (error->code() == Code::unavailable || error->code() == Code::exhausted) return *std::move(error);
    pending_ = std::move(error);
    return {};
  }
  if (Status ran = run(launch, find_fault(faults, SimFault::wrong_output)); !ran) {
    if (ran.error().code() == Code::invalid) return ran;
    pending_ = ran.error();
  }
  queued_.emplace_back(variant, timing_.nominal_ms(variant, at_s()));
  return {};
}

Status SimDevice::finish() {
  FURLONG_CHECK(state_->alive());
  for (const auto& [variant, ms] : std::exchange(queued_, {})) run_for(variant, ms);
  if (!pending_) return {};
  const Error error = *std::exchange(pending_, std::nullopt);
  if (error.code() == Code::timeout) state_->pass_ms(options_.hang_ms);
  if (error.code() == Code::internal) state_->lost = true;
  return error;
}

Status SimDevice::run(const Launch& launch, const SimFaultPlan* damage) {
  std::map<std::size_t, Bytes> before;  // by argument
  if (damage != nullptr)
    for (std::size_t i = 0; i < launch.arguments.size(); ++i)
      if (const auto* const argument = std::get_if<BufferArgument>(&launch.arguments[i]))
        if (argument->buffer->size() <= largest_snapshot) {
          const std::uint8_t* const bytes = sim_buffer_bytes(*argument->buffer);
          before[i].assign(bytes, bytes + argument->buffer->size());
        }
  if (options_.behaviour) FURLONG_CHECK(options_.behaviour(module_of(launch)->request(), launch));
  if (damage != nullptr) flip_bit(launch, *damage, before);
  return {};
}

void SimDevice::flip_bit(const Launch& launch, const SimFaultPlan& damage,
                         const std::map<std::size_t, Bytes>& before) {
  const auto changed = [&](std::size_t index) {
    std::vector<std::size_t> places;
    const auto snapshot = before.find(index);
    if (snapshot == before.end()) return places;
    const std::uint8_t* const bytes =
        sim_buffer_bytes(*std::get<BufferArgument>(launch.arguments[index]).buffer);
    for (std::size_t i = 0; i < snapshot->second.size(); ++i)
      if (bytes[i] != snapshot->second[i]) places.push_back(i);
    return places;
  };
  std::optional<std::size_t> target;
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < launch.arguments.size(); ++i) {
    if (!std::holds_alternative<BufferArgument>(launch.arguments[i])) continue;
    if (damage.argument >= 0 && i != static_cast<std::size_t>(damage.argument)) continue;
    if (!target) target = i;
    if (auto found = changed(i); !found.empty()) {
      target = i;
      places = std::move(found);
      break;
    }
  }
  if (!target) return;
  const BufferArgument& argument = std::get<BufferArgument>(launch.arguments[*target]);
  const std::size_t place =
      places.empty() ? argument.offset + damage_random_.below(argument.buffer->size() - argument.offset)
                     : places[damage_random_.below(places.size())];
  sim_buffer_bytes(*argument.buffer)[place] ^= static_cast<std::uint8_t>(1u << damage_random_.below(8));
}

// --- timing

Status SimDevice::check_time(const TimeRequest& request) const {
  if (Status whole = device::check_time(request); !whole)
    return std::move(whole).error().with(state_->address);
  if (request.flush != nullptr && dynamic_cast<SimBuffer*>(request.flush) == nullptr)
    return fail(Code::invalid, "{}: the flush buffer is no buffer of this device", state_->address);
  for (const Launch& launch : request.pipeline) FURLONG_CHECK(check_shape(launch));
  return {};
}

Result<std::vector<double>> SimDevice::time(const TimeRequest& request) {
  FURLONG_CHECK(finish());
  FURLONG_CHECK(check_time(request));
  const std::string variant = module_of(request.pipeline[0])->request().name;
  const auto pipelines =
      static_cast<std::uint64_t>(request.repeats) * static_cast<std::uint64_t>(request.batch);
  const Plans faults = strike(variant, pipelines);
  if ((pending_ = fatal(faults, variant))) {
    if (pending_->code() == Code::unavailable || pending_->code() == Code::exhausted)
      return *std::exchange(pending_, std::nullopt);
    return finish().error();
  }
  for (const Launch& launch : request.pipeline)
    FURLONG_CHECK(run(
        launch, &launch == &request.pipeline.back() ? find_fault(faults, SimFault::wrong_output) : nullptr));
  std::vector<double> ms = timed(request, variant);
  if (find_fault(faults, SimFault::throttle) != nullptr) throttled_ = !throttled_;
  return ms;
}

std::vector<double> SimDevice::timed(const TimeRequest& request, const std::string& variant) {
  timing_.begin_window(variant);
  const double slowness = throttled_ ? 1 / throttled_speed : 1;
  std::vector<double> repeats;
  repeats.reserve(static_cast<std::size_t>(request.repeats));
  for (int repeat = 0; repeat < request.repeats; ++repeat) {
    if (request.flush != nullptr)
      state_->pass_ms(static_cast<double>(request.flush->size()) / (flush_gb_per_s * 1e6));
    const double started_s = at_s();
    double ms = 0;
    for (int i = 0; i < request.batch; ++i)
      ms += slowness * timing_.launch_ms(started_s + ms * 1e-3, request.flush != nullptr && i == 0);
    ms += timing_.jitter_ms();
    run_for(variant, ms);
    repeats.push_back(ms / request.batch);
  }
  return repeats;
}

// --- telemetry

double SimDevice::power_of(const std::string& variant) const {
  return by_variant(options_.power_w, variant, 300.0);
}

void SimDevice::run_for(const std::string& variant, double ms) {
  state_->pass_ms(ms);
  busy_ms_ += ms;
  busy_j_ += ms * 1e-3 * power_of(variant);
  last_variant_ = variant;
}

Telemetry SimDevice::telemetry() {
  Telemetry now;
  if (state_->lost) return now;
  const double speed = (throttled_ ? throttled_speed : 1) / timing_.drift(at_s());
  now.clock_mhz = options_.clock_mhz * speed;
  if (options_.facts.silicon.memory_clock_mhz > 0)
    now.memory_clock_mhz = options_.facts.silicon.memory_clock_mhz;
  now.power_w = last_variant_.empty() ? options_.idle_w : power_of(last_variant_);
  now.power_limit_w = options_.power_limit_w;
  now.temperature_c = throttled_ ? 90 : 55;
  now.energy_j = busy_j_ + std::max(0.0, at_s() - busy_ms_ * 1e-3) * options_.idle_w;
  now.throttle = throttled_ ? thermal_slowdown : 0;
  if (throttled_) now.throttle_text = "thermal slowdown";
  return now;
}

}  // namespace furlong::device::internal
