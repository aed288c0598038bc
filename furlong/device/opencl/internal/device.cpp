#include "furlong/device/opencl/internal/device.h"

#include <algorithm>

#include "furlong/device/request.h"

namespace furlong::device::cl {
namespace {

constexpr std::uint64_t kWidestSmallGrid = 65535;

std::string shape_text(const std::array<std::uint64_t, 3>& sides) {
  return fmt::format("{}x{}x{}", sides[0], sides[1], sides[2]);
}

/// Owns an event.
class EventOwner {
 public:
  explicit EventOwner(const Api& api) : api_(api) {}
  ~EventOwner() {
    if (event_ != nullptr) api_.release_event(event_);
  }
  EventOwner(const EventOwner&) = delete;
  EventOwner& operator=(const EventOwner&) = delete;
  Event* out() { return &event_; }
  Result<Bits> when(Uint query) const {
    Bits ns = 0;
    const Int code = api_.profiling(event_, query, sizeof ns, &ns, nullptr);
    if (code != kSuccess) return error_of(code, "reading the device's clock");
    return ns;
  }

 private:
  const Api& api_;
  Event event_ = nullptr;
};

}  // namespace

Result<std::unique_ptr<Device>> ClDevice::open(const Api& api, Found found) {
  auto session = std::make_shared<Session>();
  session->api = &api;
  session->device = found.device;
  session->capacity = device_value<Bits>(api, found.device, kDeviceGlobalMemory, 0);
  session->largest = found.facts.max_buffer_bytes;
  session->host_memory = found.facts.memory_is_host_memory;
  Int code = kSuccess;
  session->context = api.create_context(nullptr, 1, &found.device, nullptr, nullptr, &code);
  if (session->context == nullptr) return error_of(code, fmt::format("opening {}", found.facts.address()));
  session->queue = api.create_queue(session->context, found.device, kQueueProfiling, &code);
  if (session->queue == nullptr) return error_of(code, fmt::format("opening {}", found.facts.address()));
  return std::unique_ptr<Device>(new ClDevice(std::move(found), std::move(session)));
}

ClDevice::~ClDevice() { session_->api->finish(session_->queue); }

Result<std::shared_ptr<Module>> ClDevice::compile(const CompileRequest& request, std::stop_token stop) {
  if (request.language != Language::opencl) {
    return fail(Code::invalid, "'{}' is {} text; {} compiles opencl text", request.name,
                language_name(request.language), found_.facts.address());
  }
  return ClModule::build(request, session_, found_, std::move(stop));
}

Result<std::unique_ptr<Buffer>> ClDevice::allocate(std::size_t bytes) {
  return ClBuffer::make(bytes, session_);
}

Status ClDevice::check_shape(const Launch& launch, const Entry& entry) const {
  const Facts& facts = found_.facts;
  std::uint64_t threads = 1;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    if (launch.grid[axis] == 0 || launch.block[axis] == 0) {
      return fail(Code::invalid, "'{}': a grid of {} work-groups of {} work-items has an empty side",
                  launch.entry, shape_text(launch.grid), shape_text(launch.block));
    }
    if (launch.block[axis] > facts.max_block[axis]) {
      return fail(Code::invalid, "'{}': a work-group of {} work-items, at most {}", launch.entry,
                  shape_text(launch.block), shape_text(facts.max_block));
    }
    threads *= launch.block[axis];  // cannot wrap: the sides are checked one by one
    std::uint64_t global = 0;
    if (__builtin_mul_overflow(launch.grid[axis], launch.block[axis], &global)) {
      return fail(Code::invalid, "'{}': a grid of {} work-groups of {} work-items is too large", launch.entry,
                  shape_text(launch.grid), shape_text(launch.block));
    }
  }
  std::uint64_t most = static_cast<std::uint64_t>(facts.max_threads_per_block);
  if (entry.max_threads != 0) most = std::min<std::uint64_t>(most, entry.max_threads);
  if (threads > most) {
    return fail(Code::invalid, "'{}': a work-group of {} = {} work-items, at most {}", launch.entry,
                shape_text(launch.block), threads, most);
  }
  const auto& required = entry.required_block;
  if (required[0] != 0 &&
      (required[0] != launch.block[0] || required[1] != launch.block[1] || required[2] != launch.block[2])) {
    return fail(Code::invalid, "'{}': a work-group of {} work-items, the kernel requires {}x{}x{}",
                launch.entry, shape_text(launch.block), required[0], required[1], required[2]);
  }
  if (launch.shared_bytes != 0) {
    return fail(
        Code::invalid,
        "'{}': {} bytes of dynamic shared memory; OpenCL kernels declare their __local arrays themselves",
        launch.entry, launch.shared_bytes);
  }
  return {};
}

Status ClDevice::check_arguments(const Launch& launch, const Entry& entry) const {
  if (launch.arguments.size() != entry.parameters.size()) {
    return fail(Code::invalid, "'{}' takes {} arguments, {} given", launch.entry, entry.parameters.size(),
                launch.arguments.size());
  }
  for (std::size_t i = 0; i < launch.arguments.size(); ++i) {
    const Parameter& parameter = entry.parameters[i];
    if (parameter.address == kArgAddressLocal) {
      return fail(Code::invalid, "'{}': parameter {} is a __local pointer: declare the array in the kernel",
                  launch.entry, i);
    }
    if (const auto* scalar = std::get_if<Bytes>(&launch.arguments[i])) {
      if (parameter.address == kArgAddressGlobal || parameter.address == kArgAddressConstant) {
        return fail(Code::invalid, "'{}': argument {} is a value of {} bytes, but the parameter is a pointer",
                    launch.entry, i, scalar->size());
      }
      if (scalar->empty() || (parameter.bytes != 0 && parameter.bytes != scalar->size())) {
        return fail(Code::invalid, "'{}': argument {} has {} bytes, the parameter has {}", launch.entry, i,
                    scalar->size(), parameter.bytes);
      }
      continue;
    }
    const auto& argument = std::get<BufferArgument>(launch.arguments[i]);
    if (parameter.address == kArgAddressPrivate) {
      return fail(Code::invalid, "'{}': argument {} is a buffer, but the parameter is a value", launch.entry,
                  i);
    }
    if (argument.buffer == nullptr && argument.offset == 0) continue;
    const auto* buffer = dynamic_cast<const ClBuffer*>(argument.buffer);
    if (buffer == nullptr || buffer->session() != session_.get()) {
      return fail(Code::invalid, "'{}': argument {} is no buffer of {}", launch.entry, i,
                  found_.facts.address());
    }
    FURLONG_CHECK(check_buffer_offset(launch, i, argument.offset, buffer->size()));
  }
  return {};
}

Result<ClDevice::Ready> ClDevice::prepare(const Launch& launch) const {
  const auto* module = dynamic_cast<const ClModule*>(launch.module);
  if (module == nullptr || module->session() != session_.get()) {
    return fail(Code::invalid, "'{}': the module is not of {}", launch.entry, found_.facts.address());
  }
  Ready ready;
  ready.launch = &launch;
  FURLONG_TRY(ready.entry, module->find(launch.entry));
  FURLONG_CHECK(check_shape(launch, *ready.entry));
  FURLONG_CHECK(check_arguments(launch, *ready.entry));
  for (std::size_t axis = 0; axis < 3; ++axis) {
    ready.global[axis] = launch.grid[axis] * launch.block[axis];
    ready.local[axis] = launch.block[axis];
  }
  return ready;
}

Status ClDevice::enqueue(const Ready& ready, Event* event) {
  const Api& api = *session_->api;
  Kernel kernel = ready.entry->kernel;
  for (std::size_t i = 0; i < ready.launch->arguments.size(); ++i) {
    const Argument& argument = ready.launch->arguments[i];
    Int code = kSuccess;
    if (const auto* scalar = std::get_if<Bytes>(&argument)) {
      code = api.set_argument(kernel, static_cast<Uint>(i), scalar->size(), scalar->data());
    } else {
      const auto& given = std::get<BufferArgument>(argument);
      Memory memory = nullptr;
      if (given.buffer != nullptr) {
        FURLONG_TRY(memory, static_cast<ClBuffer*>(given.buffer)->at(given.offset));
      }
      code = api.set_argument(kernel, static_cast<Uint>(i), sizeof memory, &memory);
    }
    if (code != kSuccess) return launch_error(code, fmt::format("'{}': argument {}", ready.launch->entry, i));
  }
  const Int code = api.enqueue_kernel(session_->queue, kernel, 3, nullptr, ready.global.data(),
                                      ready.local.data(), 0, nullptr, event);
  if (code != kSuccess) {
    return launch_error(code, fmt::format("launching '{}' on {} work-groups of {}", ready.launch->entry,
                                          shape_text(ready.launch->grid), shape_text(ready.launch->block)));
  }
  return {};
}

Status ClDevice::launch(const Launch& launch) {
  FURLONG_TRY(const Ready ready, prepare(launch));
  FURLONG_CHECK(enqueue(ready, nullptr));
  if (const Int code = session_->api->flush(session_->queue); code != kSuccess) {
    return transfer_error(code, fmt::format("launching '{}'", launch.entry));
  }
  return {};
}

Status ClDevice::finish() {
  const Int code = session_->api->finish(session_->queue);
  if (code == kSuccess) return {};
  // Here the memory codes too mean that a kernel failed: allocation was settled before.
  return fail(Code::internal, "a kernel failed on {}: {}", found_.facts.address(), error_name(code));
}

Status ClDevice::warm(const std::vector<Ready>& pipeline) {
  if (!found_.pocl) return {};
  bool cold = false;
  for (const Ready& ready : pipeline) {
    const std::size_t widest = *std::max_element(ready.global.begin(), ready.global.end());
    cold |= ready.entry->warmed
                .insert({ready.local[0], ready.local[1], ready.local[2], widest > kWidestSmallGrid ? 1u : 0u})
                .second;
  }
  if (!cold) return {};
  for (const Ready& ready : pipeline) FURLONG_CHECK(enqueue(ready, nullptr));
  return finish();
}

Result<double> ClDevice::time_once(const std::vector<Ready>& pipeline, int batch) {
  EventOwner first(*session_->api);
  EventOwner last(*session_->api);
  const std::size_t launches = pipeline.size() * static_cast<std::size_t>(batch);
  for (std::size_t i = 0; i < launches; ++i) {
    Event* event = i == 0 ? first.out() : i + 1 == launches ? last.out() : nullptr;
    FURLONG_CHECK(enqueue(pipeline[i % pipeline.size()], event));
  }
  FURLONG_CHECK(finish());
  FURLONG_TRY(const Bits start_ns, first.when(kProfilingStart));
  FURLONG_TRY(const Bits end_ns, (launches == 1 ? first : last).when(kProfilingEnd));
  if (end_ns < start_ns) return fail(Code::internal, "{}'s clock ran backwards", found_.facts.address());
  return static_cast<double>(end_ns - start_ns) * 1e-6 / batch;
}

Result<std::vector<double>> ClDevice::time(const TimeRequest& request) {
  FURLONG_CHECK(check_time(request));
  std::vector<Ready> pipeline;
  for (const Launch& launch : request.pipeline) {
    FURLONG_TRY(Ready ready, prepare(launch));
    pipeline.push_back(ready);
  }
  FURLONG_CHECK(warm(pipeline));
  std::vector<double> times_ms;
  for (int repeat = 0; repeat < request.repeats; ++repeat) {
    if (request.flush != nullptr) {
      FURLONG_CHECK(request.flush->fill(static_cast<std::uint8_t>(repeat), 0, request.flush->size()));
    }
    FURLONG_TRY(const double ms, time_once(pipeline, request.batch));
    times_ms.push_back(ms);
  }
  return times_ms;
}

}  // namespace furlong::device::cl
