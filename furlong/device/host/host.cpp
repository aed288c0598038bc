#include "furlong/device/host/host.h"

#include <algorithm>
#include <mutex>

#include "furlong/base/os/memory.h"
#include "furlong/base/os/paths.h"
#include "furlong/base/text.h"
#include "furlong/device/host/internal/cpu.h"
#include "furlong/device/host/internal/device.h"
#include "furlong/device/silicon.h"

namespace furlong::device {
namespace {

// Host kernels loop over a block's threads themselves, so these are only what is usual elsewhere: a
// launch rule that is right here is then right on a card.
constexpr int kMaxThreadsPerBlock = 1024;
constexpr std::uint64_t kMaxSharedBytes = 256 << 10;
constexpr std::size_t kMostCachedObjects = 4000;  // of some 20 KiB each

Facts host_facts(const host::Cpu& cpu, const std::string& compiler) {
  Facts facts;
  facts.backend = "host";
  facts.label = label_of(cpu.model);
  facts.silicon.vendor = cpu.vendor;
  facts.silicon.arch = cpu.arch;
  facts.silicon.multiprocessors = host::usable_cores();
  facts.silicon.memory_bytes = rounded_memory(total_memory_bytes());
  facts.driver = host::kernel_release();
  facts.compiler = compiler;
  facts.languages = {Language::host};
  facts.max_threads_per_block = kMaxThreadsPerBlock;
  facts.max_block = {kMaxThreadsPerBlock, kMaxThreadsPerBlock, kMaxThreadsPerBlock};
  facts.max_shared_bytes = kMaxSharedBytes;
  facts.max_buffer_bytes = total_memory_bytes();
  facts.runs_on_host_cpu = true;
  facts.memory_is_host_memory = true;
  return facts;
}

class HostDriver : public Driver {
 public:
  std::string_view name() const override { return "host"; }

  Result<std::vector<Facts>> list() override {
    FURLONG_TRY(const host::Compiler compiler, this->compiler());
    return std::vector<Facts>{host_facts(host::this_cpu(), compiler.version)};
  }

  Result<std::unique_ptr<Device>> open(int index) override {
    if (index != 0)
      return fail(Code::unavailable, "there is no host:{}: the host is one device, host:0", index);
    FURLONG_TRY(host::Compiler compiler, this->compiler());
    const host::Cpu cpu = host::this_cpu();
    Facts facts = host_facts(cpu, compiler.version);
    const int threads = facts.silicon.multiprocessors;
    host::prune_cache(cache_folder() / "host", kMostCachedObjects);
    return std::unique_ptr<Device>(
        new host::HostDevice(std::move(facts), std::move(compiler), cpu.model + " " + cpu.features, threads));
  }

 private:
  // Asked once: it starts a process. A failure is asked again, so that an installed compiler is found.
  Result<host::Compiler> compiler() {
    std::lock_guard lock(mutex_);
    if (!compiler_) {
      FURLONG_TRY(compiler_, host::find_compiler());
    }
    return *compiler_;
  }

  std::mutex mutex_;
  std::optional<host::Compiler> compiler_;
};

}  // namespace

std::unique_ptr<Driver> make_host_driver() { return std::make_unique<HostDriver>(); }

}  // namespace furlong::device
