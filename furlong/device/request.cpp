#include "furlong/device/request.h"

namespace furlong::device {

Status check_request(const CompileRequest& request) {
  for (const std::filesystem::path& folder : request.include_folders) {
    if (!folder.empty()) continue;
    return fail(Code::invalid, "'{}': an include folder is empty: write '.' for the current folder",
                request.name);
  }
  return {};
}

Status check_time(const TimeRequest& request) {
  if (request.pipeline.empty()) return fail(Code::invalid, "nothing to time: the pipeline is empty");
  if (request.repeats < 1 || request.batch < 1) {
    return fail(Code::invalid, "cannot time {} repeats of {} pipelines: both must be at least 1",
                request.repeats, request.batch);
  }
  return {};
}

Status check_range(std::size_t offset, std::size_t count, std::size_t size, std::string_view doing) {
  if (offset <= size && count <= size - offset) return {};
  return fail(Code::invalid, "{} {} bytes at {} goes past the buffer's {} bytes", doing, count, offset, size);
}

Status check_buffer_offset(const Launch& launch, std::size_t index, std::size_t offset, std::size_t size) {
  if (offset % buffer_offset_step == 0 && offset < size) return {};
  return fail(Code::invalid,
              "'{}': argument {} starts at byte {} of a buffer of {}: offsets are multiples of {} within it",
              launch.entry, index, offset, size, buffer_offset_step);
}

}  // namespace furlong::device
