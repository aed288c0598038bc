#include "furlong/device/silicon.h"

#include <algorithm>

#include "furlong/base/text.h"

namespace furlong::device {

std::string label_of(std::string_view name) {
  std::string label;
  for (const std::string& word : split(name, ' ')) {
    if (word.empty()) continue;
    if (!label.empty()) label += '_';
    label += word;
  }
  return label.empty() ? "unknown" : label;
}

std::uint64_t rounded_memory(std::uint64_t bytes) {
  constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;
  return std::max(kGiB, (bytes + kGiB / 2) / kGiB * kGiB);
}

}  // namespace furlong::device
