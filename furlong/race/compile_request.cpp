#include "furlong/race/compile_request.h"

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

}  // namespace furlong::race
