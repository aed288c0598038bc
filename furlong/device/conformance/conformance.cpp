#include "furlong/device/conformance/conformance.h"

#include <iterator>

#include "furlong/device/conformance/internal/rig.h"

namespace furlong::device {

std::vector<ConformanceCase> conformance_cases() {
  std::vector<ConformanceCase> all;
  for (auto& part : {conformance::compile_cases(), conformance::launch_cases(), conformance::memory_cases(),
                     conformance::time_cases()}) {
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

}  // namespace furlong::device
