#include "furlong/device/cuda/internal/device.h"

#include <algorithm>

#include "furlong/base/os/paths.h"
#include "furlong/device/request.h"

namespace furlong::device::cuda {
namespace {

constexpr std::size_t kPointerBytes = 8;
// Registers are given to a warp in steps of this many (compute capability 3.0 to 12.x).
constexpr int kRegisterStep = 256;

std::string shape_text(const std::array<std::uint64_t, 3>& sides) {
  return fmt::format("{}x{}x{}", sides[0], sides[1], sides[2]);
}

std::uint64_t round_up(std::uint64_t value, std::uint64_t step) { return (value + step - 1) / step * step; }

/// Owns a graph that was captured and made ready to launch.
class GraphOwner {
 public:
  explicit GraphOwner(const Api& api) : api_(api) {}
  ~GraphOwner() {
    if (exec != nullptr) (void)api_.destroy_graph_exec(exec);
    if (graph != nullptr) (void)api_.destroy_graph(graph);
  }
  GraphOwner(const GraphOwner&) = delete;
  GraphOwner& operator=(const GraphOwner&) = delete;
  Graph graph = nullptr;
  GraphExec exec = nullptr;

 private:
  const Api& api_;
};

}  // namespace

CudaDevice::CudaDevice(Facts facts, Nvrtc nvrtc, std::optional<NvmlCard> sensors,
                       std::shared_ptr<Session> session)
    : facts_(std::move(facts)),
      nvrtc_(std::move(nvrtc)),
      sensors_(std::move(sensors)),
      cache_(cache_folder() / "cuda"),
      session_(std::move(session)) {}

Result<std::unique_ptr<Device>> CudaDevice::open(const Api& api, Card card, Facts facts, Nvrtc nvrtc,
                                                 std::optional<NvmlCard> sensors) {
  FURLONG_TRY(auto session, Session::open(api, card, facts.address()));
  return std::unique_ptr<Device>(
      new CudaDevice(std::move(facts), std::move(nvrtc), std::move(sensors), std::move(session)));
}

CudaDevice::~CudaDevice() {
  if (session_->enter()) (void)session_->api().wait_stream(session_->stream());
}

Result<std::shared_ptr<Module>> CudaDevice::compile(const CompileRequest& request, std::stop_token stop) {
  if (request.language != Language::cuda) {
    return fail(Code::invalid, "'{}' is {} text; {} compiles cuda text", request.name,
                language_name(request.language), facts_.address());
  }
  // Not only the compiler: what the cache has is not wanted either.
  if (stop.stop_requested()) return fail(Code::timeout, "compiling '{}': stopped on request", request.name);
  FURLONG_TRY(const CachedCubin made,
              compile_through(cache_, nvrtc_, request, facts_.silicon.arch, std::move(stop)));
  return CudaModule::load(request, made.cubin, made.from_cache, session_);
}

Result<std::unique_ptr<Buffer>> CudaDevice::allocate(std::size_t bytes) {
  return CudaBuffer::make(bytes, session_);
}

Status CudaDevice::check_shape(const Launch& launch, const Entry& entry) const {
  const Limits& limits = session_->limits();
  std::uint64_t threads = 1;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    if (launch.grid[axis] == 0 || launch.block[axis] == 0) {
      return fail(Code::invalid, "'{}': a grid of {} blocks of {} threads has an empty side", launch.entry,
                  shape_text(launch.grid), shape_text(launch.block));
    }
    if (launch.block[axis] > limits.block[axis]) {
      return fail(Code::invalid, "'{}': a block of {} threads, at most {}x{}x{}", launch.entry,
                  shape_text(launch.block), limits.block[0], limits.block[1], limits.block[2]);
    }
    if (launch.grid[axis] > limits.grid[axis]) {
      return fail(Code::invalid, "'{}': a grid of {} blocks, at most {}x{}x{}", launch.entry,
                  shape_text(launch.grid), limits.grid[0], limits.grid[1], limits.grid[2]);
    }
    threads *= launch.block[axis];  // cannot wrap: the sides are checked one by one
  }
  if (threads > static_cast<std::uint64_t>(limits.threads_per_block)) {
    return fail(Code::invalid, "'{}': a block of {} = {} threads, at most {}", launch.entry,
                shape_text(launch.block), threads, limits.threads_per_block);
  }
  // Registers are given by whole warps. The kernel's own limit follows from them and from its launch bounds.
  const std::uint64_t warps =
      round_up(threads, static_cast<std::uint64_t>(limits.warp)) / static_cast<std::uint64_t>(limits.warp);
  const std::uint64_t registers =
      warps * round_up(static_cast<std::uint64_t>(entry.registers) * static_cast<std::uint64_t>(limits.warp),
                       kRegisterStep);
  if (limits.registers_per_block > 0 && registers > static_cast<std::uint64_t>(limits.registers_per_block)) {
    return fail(
        Code::invalid,
        "'{}': a block of {} threads with {} registers each takes {} registers, a block has at most {}",
        launch.entry, threads, entry.registers, registers, limits.registers_per_block);
  }
  if (entry.max_threads > 0 && threads > static_cast<std::uint64_t>(entry.max_threads)) {
    return fail(
        Code::invalid,
        "'{}': a block of {} = {} threads, this kernel takes at most {} (its launch bounds, or its {} "
        "registers)",
        launch.entry, shape_text(launch.block), threads, entry.max_threads, entry.registers);
  }
  return allow_dynamic_shared(*session_, entry, launch.shared_bytes);
}

Status CudaDevice::check_arguments(const Launch& launch, const Entry& entry) const {
  if (entry.parameter_bytes && launch.arguments.size() != entry.parameter_bytes->size()) {
    return fail(Code::invalid, "'{}' takes {} arguments, {} given", launch.entry,
                entry.parameter_bytes->size(), launch.arguments.size());
  }
  for (std::size_t i = 0; i < launch.arguments.size(); ++i) {
    const std::size_t wanted = entry.parameter_bytes ? (*entry.parameter_bytes)[i] : 0;
    if (const auto* scalar = std::get_if<Bytes>(&launch.arguments[i])) {
      if (scalar->empty() || (wanted != 0 && wanted != scalar->size())) {
        return fail(Code::invalid, "'{}': argument {} has {} bytes, the parameter has {}", launch.entry, i,
                    scalar->size(), wanted);
      }
      continue;
    }
    const auto& argument = std::get<BufferArgument>(launch.arguments[i]);
    if (wanted != 0 && wanted != kPointerBytes) {
      return fail(Code::invalid, "'{}': argument {} is a buffer, but the parameter is a value of {} bytes",
                  launch.entry, i, wanted);
    }
    if (argument.buffer == nullptr && argument.offset == 0) continue;
    const auto* buffer = dynamic_cast<const CudaBuffer*>(argument.buffer);
    if (buffer == nullptr || buffer->session() != session_.get()) {
      return fail(Code::invalid, "'{}': argument {} is no buffer of {}", launch.entry, i, facts_.address());
    }
    FURLONG_CHECK(check_buffer_offset(launch, i, argument.offset, buffer->size()));
  }
  return {};
}

Result<CudaDevice::Ready> CudaDevice::prepare(const Launch& launch) const {
  const auto* module = dynamic_cast<const CudaModule*>(launch.module);
  if (module == nullptr || module->session() != session_.get()) {
    return fail(Code::invalid, "'{}': the module is not of {}", launch.entry, facts_.address());
  }
  FURLONG_CHECK(session_->enter());
  Ready ready;
  ready.launch = &launch;
  FURLONG_TRY(ready.entry, module->find(launch.entry));
  FURLONG_CHECK(check_shape(launch, *ready.entry));
  FURLONG_CHECK(check_arguments(launch, *ready.entry));
  const std::size_t count = launch.arguments.size();
  ready.addresses.resize(count);
  ready.arguments.resize(count);
  for (std::size_t i = 0; i < count; ++i) {
    if (const auto* scalar = std::get_if<Bytes>(&launch.arguments[i])) {
      ready.arguments[i] = const_cast<std::uint8_t*>(scalar->data());  // the driver only reads them
      continue;
    }
    const auto& argument = std::get<BufferArgument>(launch.arguments[i]);
    if (argument.buffer != nullptr)
      ready.addresses[i] = static_cast<const CudaBuffer*>(argument.buffer)->address() + argument.offset;
    ready.arguments[i] = &ready.addresses[i];
  }
  return ready;
}

Status CudaDevice::enqueue(const Ready& ready) {
  const Launch& launch = *ready.launch;
  const auto side = [](std::uint64_t value) { return static_cast<unsigned>(value); };
  const Status32 code = session_->api().launch(
      ready.entry->function, side(launch.grid[0]), side(launch.grid[1]), side(launch.grid[2]),
      side(launch.block[0]), side(launch.block[1]), side(launch.block[2]), side(launch.shared_bytes),
      session_->stream(), const_cast<void**>(ready.arguments.data()), nullptr);
  if (code == kSuccess) return {};
  if (loses_context(code)) return session_->failed(code, fmt::format("launching '{}'", launch.entry));
  return launch_error(session_->api(), code,
                      fmt::format("launching '{}' on {} blocks of {}", launch.entry, shape_text(launch.grid),
                                  shape_text(launch.block)));
}

Status CudaDevice::launch(const Launch& launch) {
  FURLONG_TRY(const Ready ready, prepare(launch));
  return enqueue(ready);
}

Status CudaDevice::finish() {
  FURLONG_CHECK(session_->enter());
  return session_->finish(fmt::format("a kernel failed on {}", facts_.address()));
}

Status CudaDevice::enqueue_batch(const std::vector<Ready>& pipeline, int batch) {
  for (int turn = 0; turn < batch; ++turn) {
    for (const Ready& ready : pipeline) FURLONG_CHECK(enqueue(ready));
  }
  return {};
}

Result<std::vector<double>> CudaDevice::time_windows(const std::vector<Ready>& pipeline,
                                                     const TimeRequest& request, GraphExec graph) {
  const Api& api = session_->api();
  const auto checked = [&](Status32 code) {
    return code == kSuccess ? Status() : Status(session_->failed(code, "timing a launch"));
  };
  // Everything is enqueued before anything is waited for, so that no gap of the host lies between two
  // launches.
  const auto repeats = static_cast<std::size_t>(request.repeats);
  FURLONG_TRY(const std::vector<Event>* events, session_->events(2 * repeats));
  const Stream stream = session_->stream();
  for (std::size_t repeat = 0; repeat < repeats; ++repeat) {
    if (request.flush != nullptr) {
      const auto* flush = dynamic_cast<const CudaBuffer*>(request.flush);
      if (flush == nullptr || flush->session() != session_.get())
        return fail(Code::invalid, "the buffer that flushes the caches is not of {}", facts_.address());
      FURLONG_CHECK(session_->fill(flush->address(), static_cast<std::uint8_t>(repeat), flush->size()));
    }
    FURLONG_CHECK(checked(api.record_event((*events)[2 * repeat], stream)));
    if (graph != nullptr) {
      FURLONG_CHECK(checked(api.launch_graph(graph, stream)));
    } else {
      FURLONG_CHECK(enqueue_batch(pipeline, request.batch));
    }
    FURLONG_CHECK(checked(api.record_event((*events)[2 * repeat + 1], stream)));
  }
  FURLONG_CHECK(session_->finish(fmt::format("a kernel failed on {}", facts_.address())));
  std::vector<double> times_ms;
  for (std::size_t repeat = 0; repeat < repeats; ++repeat) {
    float ms = 0;
    FURLONG_CHECK(checked(api.elapsed_ms(&ms, (*events)[2 * repeat], (*events)[2 * repeat + 1])));
    times_ms.push_back(static_cast<double>(ms) / request.batch);
  }
  return times_ms;
}

Result<std::vector<double>> CudaDevice::time(const TimeRequest& request) {
  FURLONG_CHECK(check_time(request));
  std::vector<Ready> pipeline;
  for (const Launch& launch : request.pipeline) {
    FURLONG_TRY(Ready ready, prepare(launch));
    pipeline.push_back(std::move(ready));
  }
  const Api& api = session_->api();
  GraphOwner owner(api);
  if (api.has_graphs() && pipeline.size() * static_cast<std::size_t>(request.batch) > 1) {
    // One launch of a graph costs the host as much as one of a kernel, so that short kernels are not timed by
    // how fast the host can launch them.
    const auto checked = [&](Status32 code) {
      return code == kSuccess ? Status() : Status(session_->failed(code, "capturing a batch of launches"));
    };
    FURLONG_CHECK(checked(api.begin_capture(session_->stream(), kCaptureThreadLocal)));
    const Status enqueued = enqueue_batch(pipeline, request.batch);
    const Status ended = checked(api.end_capture(session_->stream(), &owner.graph));
    FURLONG_CHECK(enqueued);
    FURLONG_CHECK(ended);
    FURLONG_CHECK(checked(api.instantiate(&owner.exec, owner.graph, 0)));
  }
  return time_windows(pipeline, request, owner.exec);
}

std::optional<double> CudaDevice::occupancy(const Launch& launch) {
  const Api& api = session_->api();
  const auto ready = prepare(launch);
  if (!ready || api.blocks_per_multiprocessor == nullptr ||
      session_->limits().threads_per_multiprocessor <= 0) {
    return std::nullopt;
  }
  const auto threads = static_cast<int>(launch.block[0] * launch.block[1] * launch.block[2]);
  int blocks = 0;
  if (api.blocks_per_multiprocessor(&blocks, ready->entry->function, threads, launch.shared_bytes) !=
      kSuccess) {
    return std::nullopt;
  }
  return static_cast<double>(blocks) * threads / session_->limits().threads_per_multiprocessor;
}

}  // namespace furlong::device::cuda
