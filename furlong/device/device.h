#pragma once
// One interface to every card and to the host CPU: list, compile, buffers, launch, timed launches with
// the device's own clock, memory, telemetry. A back end implements Driver, Device, Kernel, Buffer in
// its own folder (furlong/device/<name>) and exports `std::unique_ptr<Driver> make_<name>_driver()`.

#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "furlong/base/bytes.h"
#include "furlong/base/error.h"

namespace furlong::device {

enum class Language { host, opencl, cuda, metal };
std::string_view language_name(Language language);
Result<Language> parse_language(std::string_view text);

/// What a card is made of: its identity in records and tunings. The label is only its name.
struct Silicon {
  std::string vendor;       ///< "NVIDIA", "AMD", "Intel", …
  std::string arch;         ///< "sm_90", "gfx1100", "x86-64-v4"
  int multiprocessors = 0;  ///< compute units; cores on a CPU
  std::uint64_t memory_bytes = 0;
  int memory_clock_mhz = 0;  ///< 0: unknown
  /// 16 hexadecimal digits over the fields above.
  std::string hash() const;
};

struct Facts {
  std::string backend;  ///< "host", "opencl", …
  int index = 0;        ///< among the back end's devices: "opencl:0"
  std::string label;    ///< marketing name, spaces as underscores
  Silicon silicon;
  std::string driver;    ///< driver version (for host: the kernel's release)
  std::string compiler;  ///< compiler and version
  std::string uuid;      ///< the device's own id where it has one; may be empty
  std::vector<Language> languages;
  int max_threads_per_block = 1;
  std::array<std::uint64_t, 3> max_block{1, 1, 1};
  std::uint64_t max_shared_bytes = 0;
  std::uint64_t max_buffer_bytes = 0;
  std::uint64_t cache_bytes = 0;  ///< last-level cache; 0: unknown
  int warp = 1;                   ///< threads that run in lockstep; 1 on a CPU
  bool runs_on_host_cpu = false;  ///< the race then does not drop descheduled heats
  bool memory_is_host_memory = false;
  bool virtual_time = false;  ///< sim: its clock is not the machine's
  /// "opencl:0"
  std::string address() const;
};

enum class SourceDialect { native, cuda_shim };  ///< cuda_shim: CUDA text run on the host, for tests

struct CompileRequest {
  Language language = Language::host;
  std::string name;  ///< for messages and compiler logs: the variant's name
  std::string source;
  std::string source_name;           ///< file name shown in compiler messages
  std::vector<std::string> entries;  ///< kernel functions to make (C++ templates by instantiated name)
  std::vector<std::pair<std::string, std::string>> defines;
  std::vector<std::string> options;  ///< compiler options as they are
  std::vector<std::filesystem::path> include_folders;
  std::uint64_t dynamic_shared_bytes = 0;  ///< the largest a launch will ask for
};

/// What the compiler said about one kernel function; nullopt where unknown.
struct KernelFacts {
  std::optional<int> registers;
  std::optional<std::uint64_t> spill_bytes;
  std::optional<std::uint64_t> shared_bytes;
  std::optional<int> max_threads_per_block;
  double compile_ms = 0;
  bool from_cache = false;
  std::string code_hash;  ///< of the machine code (or the nearest thing the platform gives); empty: unknown
  std::string log;        ///< compiler's warnings
};

/// A compiled module: one or more kernel functions. Owned by shared_ptr; must not outlive its Device.
class Module {
 public:
  virtual ~Module() = default;
  virtual const KernelFacts& facts() const = 0;
  virtual const std::vector<std::string>& entries() const = 0;
};

/// Device memory. Freed when it goes; must not outlive its Device.
class Buffer {
 public:
  virtual ~Buffer() = default;
  virtual std::size_t size() const = 0;
  virtual Status write(std::size_t offset, ByteView bytes) = 0;
  virtual Status read(std::size_t offset, std::span<std::uint8_t> into) = 0;
  virtual Status fill(std::uint8_t byte, std::size_t offset, std::size_t count) = 0;
};

/// An argument of a launch: a buffer at an offset (a multiple of 256), or the bytes of a scalar.
struct BufferArgument {
  Buffer* buffer = nullptr;
  std::size_t offset = 0;
};
using Argument = std::variant<BufferArgument, Bytes>;

struct Launch {
  Module* module = nullptr;
  std::string entry;
  std::array<std::uint64_t, 3> grid{1, 1, 1};   ///< in blocks (OpenCL: work-groups)
  std::array<std::uint64_t, 3> block{1, 1, 1};  ///< in threads (OpenCL: work-items)
  std::uint64_t shared_bytes = 0;               ///< dynamic
  std::vector<Argument> arguments;
};

/// A pipeline is a list of launches timed as one. `repeats` pipelines are timed one by one; each is
/// `batch` pipelines back to back, its value divided by batch.
struct TimeRequest {
  std::span<const Launch> pipeline;
  int repeats = 1;
  int batch = 1;
  /// Cold caches: this buffer (several times the last-level cache) is written before each repeat,
  /// outside the timed span.
  Buffer* flush = nullptr;
};

struct Telemetry {
  std::optional<double> clock_mhz, memory_clock_mhz, power_w, power_limit_w, temperature_c;
  std::optional<double> energy_j;         ///< counter since some start
  std::optional<std::uint64_t> throttle;  ///< bit set of reasons; 0: none
  std::string throttle_text;
};

struct MemoryInUse {
  std::uint64_t used_bytes = 0;   ///< by this Device object's buffers
  std::uint64_t limit_bytes = 0;  ///< allocation fails beyond; 0: the platform's own
};

/// An open device. One thread at a time, except compile(), which may run on several threads at once
/// beside one thread that launches. Everything made from it must go before it.
class Device {
 public:
  virtual ~Device() = default;
  virtual const Facts& facts() const = 0;
  /// `invalid` with the compiler's log when the source does not compile; `timeout` when stopped.
  virtual Result<std::shared_ptr<Module>> compile(const CompileRequest& request,
                                                  std::stop_token stop = {}) = 0;
  /// `exhausted` with asked and available bytes. Contents are undefined.
  virtual Result<std::unique_ptr<Buffer>> allocate(std::size_t bytes) = 0;
  /// Enqueues; errors of the launch's own shape (too many threads, too much shared memory, wrong argument
  /// count) are `invalid` with the numbers. A later failure shows at finish().
  virtual Status launch(const Launch& launch) = 0;
  virtual Status finish() = 0;
  /// Milliseconds of each repeat by the device's clock, in order. The first of a window runs slow: the caller
  /// drops it.
  virtual Result<std::vector<double>> time(const TimeRequest& request) = 0;
  virtual MemoryInUse memory() const = 0;
  virtual void set_memory_limit(std::uint64_t bytes) = 0;
  virtual Telemetry telemetry() = 0;
  /// Share of a multiprocessor's threads that blocks of this launch keep resident, 0 to 1; nullopt where the
  /// platform does not tell.
  virtual std::optional<double> occupancy(const Launch&) { return std::nullopt; }
  /// Threads with which compile() is best called at once.
  virtual int compile_threads() const = 0;
};

/// What a back end says of its platform besides the list: for `furlong doctor`.
struct Finding {
  enum class Level { ok, note, problem };
  Level level = Level::ok;
  std::string what;     ///< "cuda:0 compute mode"
  std::string finding;  ///< one sentence
  std::string mend;     ///< the one thing to do; empty when nothing is to be done
};

class Driver {
 public:
  virtual ~Driver() = default;
  virtual std::string_view name() const = 0;
  /// Devices present; empty is fine. `unavailable` (with what to install) when the platform is not there.
  virtual Result<std::vector<Facts>> list() = 0;
  virtual Result<std::unique_ptr<Device>> open(int index) = 0;
  /// Whether compiler, driver and devices fit each other and are free to use. Runs nothing on a device. Empty
  /// where list() says it all.
  virtual std::vector<Finding> findings() { return {}; }
};

}  // namespace furlong::device
