#include "furlong/device/cuda/internal/nvrtc_choice.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <optional>

#include "furlong/base/text.h"

namespace furlong::device {
namespace {

struct Version {
  int major = 0;
  int minor = 0;
  auto operator<=>(const Version&) const = default;
  std::string text() const { return fmt::format("{}.{}", major, minor); }
};

Version driver_runs(int driver_version) { return {driver_version / 1000, driver_version % 1000 / 10}; }

struct Support {
  std::string_view arch;
  Version first;
  Version last;  ///< 0.0: still there
};
// From the release notes of CUDA: the first toolkit that compiles for an architecture, and the last.
constexpr std::array<Support, 18> kSupport{{
    {"sm_50", {6, 0}, {12, 9}},
    {"sm_52", {7, 0}, {12, 9}},
    {"sm_53", {7, 0}, {12, 9}},
    {"sm_60", {8, 0}, {12, 9}},
    {"sm_61", {8, 0}, {12, 9}},
    {"sm_62", {8, 0}, {12, 9}},
    {"sm_70", {9, 0}, {12, 9}},
    {"sm_72", {9, 2}, {12, 9}},
    {"sm_75", {10, 0}, {0, 0}},
    {"sm_80", {11, 0}, {0, 0}},
    {"sm_86", {11, 1}, {0, 0}},
    {"sm_87", {11, 4}, {0, 0}},
    {"sm_89", {11, 8}, {0, 0}},
    {"sm_90", {11, 8}, {0, 0}},
    {"sm_100", {12, 8}, {0, 0}},
    {"sm_103", {12, 9}, {0, 0}},
    {"sm_120", {12, 8}, {0, 0}},
    {"sm_121", {12, 9}, {0, 0}},
}};

const Support* support_of(std::string_view arch) {
  const auto* found =
      std::find_if(kSupport.begin(), kSupport.end(), [&](const Support& each) { return each.arch == arch; });
  return found == kSupport.end() ? nullptr : found;
}

std::string shown(const NvrtcCandidate& candidate) {
  return fmt::format("NVRTC {}.{} ({})", candidate.major, candidate.minor, candidate.file);
}

bool knows(const NvrtcCandidate& candidate, const std::string& arch) {
  const auto& known = candidate.architectures;
  return known.empty() || std::find(known.begin(), known.end(), arch) != known.end();
}

}  // namespace

bool nvrtc_is_named() {
  const char* named = std::getenv("FURLONG_NVRTC");
  return named != nullptr && *named != '\0';
}

std::string nvrtc_mend(int driver_version, const std::string& arch, bool named) {
  Version version = driver_runs(driver_version);
  if (const Support* support = support_of(arch)) {
    version = std::max(version, support->first);
    if (support->last != Version{}) version = std::min(version, support->last);
  }
  const std::string install = fmt::format("install NVRTC {} (NVIDIA's package cuda-nvrtc-{}-{})",
                                          version.text(), version.major, version.minor);
  return named ? fmt::format("unset FURLONG_NVRTC, or {} and let it name that", install) : install;
}

Result<std::size_t> choose_among(std::span<const NvrtcCandidate> found, int driver_version,
                                 const std::string& arch, bool named) {
  const Version driver = driver_runs(driver_version);
  const std::string mend = nvrtc_mend(driver_version, arch, named);
  if (found.empty()) {
    return fail(Code::unavailable,
                "NVRTC, CUDA's run-time compiler, is not here: {}, or set FURLONG_NVRTC to a libnvrtc.so",
                mend);
  }
  std::optional<std::size_t> best;
  std::vector<std::string> why_not;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const NvrtcCandidate& candidate = found[i];
    if (candidate.major > driver.major) {
      why_not.push_back(fmt::format("{} makes code that this driver, for CUDA {}, cannot run",
                                    shown(candidate), driver.text()));
    } else if (!knows(candidate, arch)) {
      why_not.push_back(fmt::format("{} does not know this card's {}, only {} to {}", shown(candidate), arch,
                                    candidate.architectures.front(), candidate.architectures.back()));
    } else if (!best || std::pair(candidate.major, candidate.minor) >
                            std::pair(found[*best].major, found[*best].minor)) {
      best = i;
    }
  }
  if (best) return *best;
  return fail(Code::unavailable, "{}: {}", join(why_not, "; "), mend);
}

Result<Nvrtc> choose_nvrtc(int driver_version, const std::string& arch) {
  FURLONG_TRY(std::vector<Nvrtc> all, Nvrtc::all());
  std::vector<NvrtcCandidate> found;
  for (const Nvrtc& each : all)
    found.push_back({each.major(), each.minor(), each.name(), each.architectures()});
  FURLONG_TRY(const std::size_t best, choose_among(found, driver_version, arch, nvrtc_is_named()));
  return std::move(all[best]);
}

}  // namespace furlong::device
