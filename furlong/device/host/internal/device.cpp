#include "furlong/device/host/internal/device.h"

#include <atomic>
#include <limits>

#include "furlong/base/os/clock.h"
#include "furlong/base/os/paths.h"
#include "furlong/device/host/internal/cpu.h"
#include "furlong/device/host/internal/cuda_shim.h"
#include "furlong/device/host/internal/fibers.h"
#include "furlong/device/host/internal/prelude.h"
#include "furlong/device/request.h"

namespace furlong::device::host {
namespace {

constexpr std::uintptr_t kScratchAlignment = 64;

Status check_shape(const Launch& launch, const Facts& facts) {
  std::uint64_t threads = 1;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    if (launch.grid[axis] == 0 || launch.block[axis] == 0) {
      return fail(Code::invalid, "'{}': grid {}x{}x{} of blocks {}x{}x{} has an empty side", launch.entry,
                  launch.grid[0], launch.grid[1], launch.grid[2], launch.block[0], launch.block[1],
                  launch.block[2]);
    }
    // Each side is checked first, so the product cannot wrap.
    if (launch.block[axis] > facts.max_block[axis]) {
      return fail(Code::invalid, "'{}': a block of {}x{}x{} threads, at most {}x{}x{}", launch.entry,
                  launch.block[0], launch.block[1], launch.block[2], facts.max_block[0], facts.max_block[1],
                  facts.max_block[2]);
    }
    threads *= launch.block[axis];
  }
  if (threads > static_cast<std::uint64_t>(facts.max_threads_per_block)) {
    return fail(Code::invalid, "'{}': a block of {}x{}x{} = {} threads, at most {}", launch.entry,
                launch.block[0], launch.block[1], launch.block[2], threads, facts.max_threads_per_block);
  }
  if (launch.shared_bytes > facts.max_shared_bytes) {
    return fail(Code::invalid, "'{}': {} bytes of dynamic shared memory, at most {}", launch.entry,
                launch.shared_bytes, facts.max_shared_bytes);
  }
  return {};
}

Result<std::uint64_t> count_blocks(const Launch& launch) {
  std::uint64_t blocks = 1;
  for (const std::uint64_t side : launch.grid) {
    if (__builtin_mul_overflow(blocks, side, &blocks) || blocks > std::numeric_limits<std::int64_t>::max()) {
      return fail(Code::invalid, "'{}': a grid of {}x{}x{} blocks is too large", launch.entry, launch.grid[0],
                  launch.grid[1], launch.grid[2]);
    }
  }
  return blocks;
}

void* aligned(std::vector<std::uint8_t>& scratch) {
  const auto at = reinterpret_cast<std::uintptr_t>(scratch.data());
  return scratch.data() + (kScratchAlignment - at % kScratchAlignment) % kScratchAlignment;
}

// Blocks [begin, end) in order, x fastest. Nonzero: what the trampoline answered.
int run_blocks(const furlong_entry& entry, furlong_block block, void* const* arguments, std::uint64_t begin,
               std::uint64_t end) {
  block.x = begin % block.grid_x;
  block.y = begin / block.grid_x % block.grid_y;
  block.z = begin / block.grid_x / block.grid_y;
  for (std::uint64_t i = begin; i < end; ++i) {
    if (const int answer = entry.run(block, arguments)) return answer;
    if (++block.x < block.grid_x) continue;
    block.x = 0;
    if (++block.y < block.grid_y) continue;
    block.y = 0;
    ++block.z;
  }
  return 0;
}

constexpr int kThrew = -1;

}  // namespace

HostDevice::HostDevice(Facts facts, Compiler compiler, std::string cpu_identity, int threads)
    : facts_(std::move(facts)),
      compiler_(std::move(compiler)),
      cpu_identity_(std::move(cpu_identity)),
      pool_(threads),
      scratch_(static_cast<std::size_t>(pool_.threads())) {}

Result<std::shared_ptr<Module>> HostDevice::compile(const CompileRequest& request, std::stop_token stop) {
  const bool shim = request.language == Language::cuda;
  if (request.language != Language::host && !shim) {
    return fail(Code::invalid,
                "'{}' is {} text; the host device compiles host text (C++) and, for tests, cuda text",
                request.name, language_name(request.language));
  }
  FURLONG_CHECK(check_request(request));
  const double start_ms = system_clock().now_ms();
  FURLONG_TRY(const std::string unit, shim ? cuda_translation_unit(request) : host_translation_unit(request));
  FURLONG_TRY(Compiled compiled, compile_unit(compiler_, shim ? with_host_options(request) : request, unit,
                                              cpu_identity_, cache_folder() / "host", std::move(stop)));
  KernelFacts facts;
  facts.code_hash = std::move(compiled.code_hash);
  facts.log = std::move(compiled.log);
  facts.from_cache = compiled.from_cache;
  facts.compile_ms = system_clock().now_ms() - start_ms;
  return HostModule::make(std::move(compiled.object), std::move(facts), request.entries);
}

Result<std::unique_ptr<Buffer>> HostDevice::allocate(std::size_t bytes) {
  return HostBuffer::make(bytes, accounting_);
}

MemoryInUse HostDevice::memory() const { return {accounting_->used.load(), accounting_->limit.load()}; }

Telemetry HostDevice::telemetry() {
  Telemetry now = cpu_telemetry();
  now.energy_j = energy_.joules();
  return now;
}

Result<HostDevice::Ready> HostDevice::prepare(const Launch& launch) const {
  const auto* module = dynamic_cast<const HostModule*>(launch.module);
  if (module == nullptr)
    return fail(Code::invalid, "'{}': the module is not of the host device", launch.entry);
  Ready ready;
  FURLONG_TRY(ready.entry, module->find(launch.entry));
  FURLONG_CHECK(check_shape(launch, facts_));
  FURLONG_TRY(ready.blocks, count_blocks(launch));
  FURLONG_TRY(ready.arguments, ArgumentList::make(*ready.entry, launch.arguments, accounting_.get()));
  ready.block.grid_x = launch.grid[0];
  ready.block.grid_y = launch.grid[1];
  ready.block.grid_z = launch.grid[2];
  ready.block.threads_x = static_cast<unsigned>(launch.block[0]);
  ready.block.threads_y = static_cast<unsigned>(launch.block[1]);
  ready.block.threads_z = static_cast<unsigned>(launch.block[2]);
  ready.block.shared_bytes = launch.shared_bytes;
  ready.block.services = &cuda_services();  // a host kernel has no use for them
  return ready;
}

Status HostDevice::run(const Ready& ready) {
  if (ready.block.shared_bytes != 0) {
    for (std::vector<std::uint8_t>& scratch : scratch_) {
      const std::size_t wanted = ready.block.shared_bytes + kScratchAlignment;
      if (scratch.size() < wanted) scratch.resize(wanted);
    }
  }
  std::atomic<int> failed{0};
  pool_.run(ready.blocks, [&](std::uint64_t begin, std::uint64_t end, int worker) {
    if (failed.load(std::memory_order_relaxed) != 0) return;
    furlong_block block = ready.block;
    if (block.shared_bytes != 0) block.shared = aligned(scratch_[static_cast<std::size_t>(worker)]);
    int answer = 0;
    try {
      answer = run_blocks(*ready.entry, block, ready.arguments.pointers(), begin, end);
    } catch (...) {  // a kernel's own exception must not end the process
      answer = kThrew;
    }
    if (answer != 0) failed.store(answer, std::memory_order_relaxed);
  });
  if (failed == kThrew) return fail(Code::internal, "'{}' threw a C++ exception", ready.entry->name);
  if (failed != 0) {  // only the shim's trampolines answer anything but 0
    return fail(failed == kShimGridTooLarge ? Code::invalid : Code::internal, "'{}': {}", ready.entry->name,
                shim_answer_text(failed));
  }
  return {};
}

Status HostDevice::launch(const Launch& launch) {
  FURLONG_TRY(const Ready ready, prepare(launch));
  return run(ready);
}

Result<std::vector<double>> HostDevice::time(const TimeRequest& request) {
  FURLONG_CHECK(check_time(request));
  std::vector<Ready> pipeline;
  for (const Launch& launch : request.pipeline) {
    FURLONG_TRY(Ready ready, prepare(launch));
    pipeline.push_back(std::move(ready));
  }
  std::vector<double> times_ms;
  for (int repeat = 0; repeat < request.repeats; ++repeat) {
    if (request.flush != nullptr) {
      FURLONG_CHECK(request.flush->fill(static_cast<std::uint8_t>(repeat), 0, request.flush->size()));
    }
    const std::int64_t start_ns = system_clock().now_ns();
    for (int turn = 0; turn < request.batch; ++turn) {
      for (const Ready& ready : pipeline) FURLONG_CHECK(run(ready));
    }
    const std::int64_t end_ns = system_clock().now_ns();
    times_ms.push_back(static_cast<double>(end_ns - start_ns) * 1e-6 / request.batch);
  }
  return times_ms;
}

}  // namespace furlong::device::host
