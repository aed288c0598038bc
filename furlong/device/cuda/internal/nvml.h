#pragma once
// NVIDIA's management library: clocks, power, energy, temperature and what slows a card down, and whether it
// is free to use. Opened at run time through a symbol table of our own (no NVIDIA header is used to build).
// Only ever reads: no call here changes a setting of a card. It needs no CUDA context and disturbs none.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "furlong/base/error.h"
#include "furlong/device/device.h"

namespace furlong::device {

enum class ComputeMode { shared = 0, exclusive_thread = 1, prohibited = 2, exclusive_process = 3 };

/// A process with a compute context on a card.
struct CardProcess {
  unsigned pid = 0;                    ///< in the machine's own numbering: a container sees other numbers
  std::optional<std::uint64_t> bytes;  ///< of the card's memory
};

/// How a card is set up and used; nullopt where the library or the card does not tell.
struct CardState {
  std::string uuid;  ///< "GPU-…", of the whole card also with MIG on; empty: not told
  std::optional<ComputeMode> compute_mode;
  std::optional<bool> mig, ecc, persistence;
  std::optional<std::vector<CardProcess>> processes;  ///< this process too, where it has a context
  std::optional<std::uint64_t> total_bytes, free_bytes, used_bytes;
  std::optional<int> clock_mhz, max_clock_mhz, memory_clock_mhz, max_memory_clock_mhz;
  std::optional<double> power_limit_w;          ///< as enforced now
  std::optional<double> default_power_limit_w;  ///< as the card left its maker
  std::optional<std::uint64_t> throttle;        ///< as in Telemetry
  std::string throttle_text;
  std::optional<bool> clocks_are_set;  ///< held to clocks that someone set (application clocks)
  std::optional<double> temperature_c, power_w;
};

/// The bits of NVML's clock reasons that say that the card runs slower than it could for its work: power cap,
/// thermal and power-brake slowdown, hardware slowdown, sync boost (held to the slowest card of its group),
/// and every bit that a newer library adds. Left out are the three that are no slowdown under load: idle
/// clocks, and the two steady settings (application clocks, display clocks), which do not come and go with
/// heat.
std::uint64_t slowing_reasons(std::uint64_t reasons);
/// "power cap, thermal slowdown" of the slowing ones; empty when there is none.
std::string throttle_words(std::uint64_t reasons);

/// One card. Copies share the library, which stays open while one lives. Thread safe.
class NvmlCard {
 public:
  /// Read twice per heat, so only what one short call into the driver gives: clocks, power, energy counter,
  /// temperature, reasons. The power limit was read once by Nvml::card(). A value that the card does not tell
  /// is nullopt.
  Telemetry telemetry() const;
  /// Everything, also what is slow to ask (the list of processes above all): for `furlong doctor`, never
  /// beside a heat.
  CardState state() const;

 private:
  friend class Nvml;
  NvmlCard() = default;
  std::shared_ptr<const struct NvmlLibrary> nvml_;
  void* handle_ = nullptr;
  std::optional<double> power_limit_w_;
};

/// The opened library; copies share it and it is shut down with the last. Thread safe.
class Nvml {
 public:
  /// The first that opens of: $FURLONG_NVML (a file), the loader's path, the usual places. `unavailable` says
  /// what to do: it is not there, the kernel module is not loaded; `incompatible`: library and module are of
  /// different versions, or the library is too old; `denied`: no access to the card's device files.
  static Result<Nvml> open();
  static Result<Nvml> open(const std::filesystem::path& library);

  /// By "GPU-xxxxxxxx-…", else by "0000:3b:00.0" (either may be empty; with MIG on, CUDA's uuid is the
  /// instance's and only the bus id leads to the card). `unavailable` when neither is known.
  Result<NvmlCard> card(const std::string& uuid, const std::string& pci_bus_id) const;
  /// "GPU-xxxxxxxx-…" of the cards that the driver sees, in the order of their bus ids, also of those that
  /// CUDA_VISIBLE_DEVICES hides from CUDA. Empty when the library does not tell.
  std::vector<std::string> uuids() const;
  /// "580.95.05"; empty when it is not told.
  std::string driver_version() const;
  /// The file that was opened.
  const std::string& name() const;

 private:
  explicit Nvml(std::shared_ptr<const NvmlLibrary> library) : nvml_(std::move(library)) {}
  std::shared_ptr<const NvmlLibrary> nvml_;
};

}  // namespace furlong::device
