#pragma once
// What stands between a machine and a race on its NVIDIA cards, and the one thing to do about each: for
// Driver::findings(). Looking and judging are apart, so that every case is tested without a card.

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "furlong/device/cuda/internal/driver_api.h"
#include "furlong/device/cuda/internal/nvml.h"
#include "furlong/device/cuda/internal/nvrtc_choice.h"
#include "furlong/device/device.h"

namespace furlong::device::cuda {

struct CardSeen {
  std::string address;  ///< "cuda:0"
  std::string arch;     ///< "sm_90"
  /// "0000:3b:00.0", as nvidia-smi -i takes it too. CUDA's own uuid is a slice's with MIG on, which
  /// nvidia-smi does not know.
  std::string bus_id;
  std::optional<CardState> state;
};

/// What was seen of the platform.
struct PlatformSeen {
  std::optional<Error> no_driver;           ///< of opening its library
  std::optional<std::string> named_driver;  ///< FURLONG_CUDA_DRIVER, where it is set
  bool named_driver_is_there = true;        ///< false: it is a path without a file
  Status32 started = kSuccess;
  std::string started_name;  ///< "CUDA_ERROR_NO_DEVICE (100)"
  std::string driver_file;   ///< or name, of its library
  int version = 0;           ///< 13000: CUDA 13.0
  std::string driver_version;

  int cards_on_the_bus = 0;                    ///< display and compute devices of NVIDIA's
  std::optional<std::string> no_nvml;          ///< why
  std::size_t cards_of_nvml = 0;               ///< that it knows of
  std::optional<std::string> visible_devices;  ///< CUDA_VISIBLE_DEVICES, where it is set
  std::optional<std::string> mps_pipe;         ///< of the multi-process service's control, where it is there
  std::optional<std::string> no_nvrtc;         ///< why the one of $FURLONG_NVRTC does not open
  bool nvrtc_is_named = false;                 ///< by FURLONG_NVRTC: no other was looked for
  std::vector<NvrtcCandidate> compilers;
  std::vector<CardSeen> cards;
  unsigned this_process = 0;
  /// Of the cards' processes, those that this machine's /proc does not have: NVML numbers processes as the
  /// machine does, a container as it likes.
  std::set<unsigned> processes_elsewhere;
};

/// Reads driver, NVML, NVRTC, the environment, /sys and /tmp; opens no context and changes nothing. Takes up
/// to a few hundred milliseconds (it opens every installed NVRTC).
PlatformSeen look_at_platform();

/// Problems, notes, and one `ok` line for the platform and for each card without a problem.
std::vector<Finding> findings_of(const PlatformSeen& seen);

}  // namespace furlong::device::cuda
