#pragma once
// Which of the installed NVRTCs makes code that the driver runs and the card understands.

#include <span>
#include <string>
#include <vector>

#include "furlong/device/cuda/nvrtc.h"

namespace furlong::device {

/// An installed NVRTC, as far as the choice goes.
struct NvrtcCandidate {
  int major = 0;
  int minor = 0;
  std::string file;
  std::vector<std::string> architectures;  ///< empty: it does not tell, and is taken to know them all
};

/// The newest of those whose major version is at most the driver's (NVIDIA's minor-version compatibility:
/// machine code of any 12.x runs on a driver for any 12.y, from CUDA 11 on; an older major's always, a newer
/// one's never) and that know `arch` ("sm_90"); its index. `driver_version` is what the driver tells: 13000
/// is 13.0. `unavailable`, with what was found, why it does not fit, and nvrtc_mend().
Result<std::size_t> choose_among(std::span<const NvrtcCandidate> found, int driver_version,
                                 const std::string& arch, bool named = false);
/// Whether $FURLONG_NVRTC names the only one that is asked: the others may be installed all the same.
bool nvrtc_is_named();
/// The same among Nvrtc::all(), opened.
Result<Nvrtc> choose_nvrtc(int driver_version, const std::string& arch);

/// "install NVRTC 12.9 (NVIDIA's package cuda-nvrtc-12-9)": the version that suits driver and card best.
/// Where one is `named` by the variable, to unset that comes first.
std::string nvrtc_mend(int driver_version, const std::string& arch, bool named = false);

}  // namespace furlong::device
