#pragma once
// What a device can do at best, measured: stream reads and copies, random loads, integer, float and matrix
// rates. A report divides what a variant does by these. Measured once per silicon and driver and kept in the
// cache folder (docs/formats/ceilings.md).

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "furlong/base/json_fwd.h"
#include "furlong/base/os/clock.h"
#include "furlong/base/os/file.h"
#include "furlong/device/device.h"

namespace furlong::device {

/// Rates are per second: bytes of streams (a copy counts what it reads and what it writes), loads of random
/// access (128: whole lines read by neighbouring threads), operations of the rest (a multiply-add is two).
enum class CeilingKind {
  stream_read,
  stream_copy,
  random4,
  random16,
  random128,
  integer,     ///< 32-bit multiply-adds
  floating,    ///< single-precision fused multiply-adds
  matrix_f16,  ///< half precision into single, by the warp-wide matrix instruction (CUDA)
  matrix_bf16,
  matrix_i8,  ///< bytes into 32-bit integers
};
inline constexpr std::size_t ceiling_kinds = 10;

/// "random4": the word in files and tables.
std::string_view ceiling_name(CeilingKind kind);
/// "random 4-byte loads": in sentences.
std::string_view ceiling_words(CeilingKind kind);
/// "byte", "load" or "operation".
std::string_view ceiling_unit(CeilingKind kind);

struct CeilingRate {
  CeilingKind kind = CeilingKind::stream_read;
  std::uint64_t bytes = 0;  ///< of the memory that is read; 0: none is
  double rate = 0;
  double launch_ms = 0;  ///< of the fastest window's median launch
  std::string how;       ///< what the fastest was: "unroll 16, block 256"
  bool operator==(const CeilingRate&) const = default;
};

/// A ceiling that could not be measured: its kernel does not compile there, or gives wrong results.
struct LeftOut {
  CeilingKind kind = CeilingKind::stream_read;
  std::string why;
  bool operator==(const LeftOut&) const = default;
};

struct Ceilings {
  std::string backend, label, silicon, driver, compiler;
  std::string language;  ///< of the kernels
  std::string measured;  ///< ISO time
  double took_s = 0;
  std::vector<CeilingRate> rates;  ///< by kind, then ascending bytes
  std::vector<LeftOut> left_out;

  /// The rate at `bytes` of memory (no meaning for arithmetic): between two measured sizes a straight line
  /// over the logarithm of the size; over the largest the largest's, which a larger one does not pass.
  /// nullopt where nothing was measured, and under the smallest size: a smaller one may lie in a nearer
  /// cache.
  std::optional<double> rate(CeilingKind kind, std::uint64_t bytes = 0) const;
  bool operator==(const Ceilings&) const = default;
};

struct CeilingProgress {
  std::size_t done = 0, total = 0;
  std::string doing;  ///< "random 4-byte loads, 1 GiB"
};

struct CeilingOptions {
  /// Powers of two, at least 64 KiB, ascending; those that find no memory are left out. Empty: 64 MiB, 256
  /// MiB, 1 GiB and 8 GiB on cards; 16, 64 and 256 MiB on CPUs.
  std::vector<std::uint64_t> sizes;
  double launch_ms = 2;            ///< a launch (of streams: a batch) lasts at least so long
  int windows = 3;                 ///< the best window counts
  int repeats = 6;                 ///< launches a window; the first is dropped, the median counts
  std::uint64_t elements = 0;      ///< threads of a launch that does not stream; 0: by device
  unsigned max_rounds = 1u << 16;  ///< of a kernel's loop, whatever launch_ms asks for
  /// The kernels' language; nullopt: the device's first for which there are kernels.
  std::optional<Language> language;
  std::function<void(const CeilingProgress&)> progress;
  std::stop_token stop;
  Clock* clock = nullptr;  ///< of the stamp and of took_s; null: the system's
};

/// Measures; seconds on a card, up to a minute on a CPU. Every kernel's output is compared with a
/// computation on the host (a sample of it where there is much); a kind with a kernel that is wrong or does
/// not compile is left out, saying so. `mismatch` or the first one's error when that is every kind,
/// `unavailable` when there are no kernels in the device's languages, `exhausted` when not even the smallest
/// size fits, `timeout` when stopped, the device's own error when it is lost.
Result<Ceilings> measure_ceilings(Device& device, const CeilingOptions& options = {});

/// Where the ceilings of this device are kept in `folder` (cache_folder()/ceilings): one file per back end,
/// silicon and driver; for a CPU per compiler and model too.
std::filesystem::path ceilings_file(const std::filesystem::path& folder, const Facts& facts);
/// What is kept for the device, or nullopt. A file that is torn, of another version or of another device is
/// as good as none: a warning in the log says so.
std::optional<Ceilings> cached_ceilings(const std::filesystem::path& folder, const Facts& facts,
                                        Files& files = system_files());
Status cache_ceilings(const std::filesystem::path& folder, const Facts& facts, const Ceilings& ceilings,
                      Files& files = system_files());

/// docs/formats/ceilings.md, and back: `invalid`, `incompatible` for another schema.
Json to_json(const Ceilings& ceilings);
Result<Ceilings> parse_ceilings(std::string_view text, std::string_view name);

}  // namespace furlong::device
