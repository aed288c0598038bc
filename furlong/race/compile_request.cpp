#include "furlong/race/compile_request.h"

#include <algorithm>

namespace furlong::race {

device::CompileRequest compile_request(const program::Instance& instance, const program::VariantPlan& plan,
                                       std::uint64_t shared_bytes) {
  device::CompileRequest request;
  request.language = device::parse_language(instance.edition().language).value_or(device::Language::host);
  request.name = plan.name;
  request.source = plan.source;
  request.source_name = plan.source_name;
  request.entries = plan.entries;
  request.defines = plan.defines;
  request.options = plan.options;
  request.include_folders = plan.include_folders;
  request.dynamic_shared_bytes = shared_bytes;
  return request;
}

std::uint64_t most_shared_bytes(std::span<const program::LaunchPlan> launches) {
  std::uint64_t most = 0;
  for (const program::LaunchPlan& launch : launches) most = std::max(most, launch.shared_bytes);
  return most;
}

}  // namespace furlong::race
