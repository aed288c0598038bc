#include "furlong/device/opencl/internal/buffer.h"

#include <algorithm>

#include "furlong/base/os/memory.h"
#include "furlong/base/text.h"
#include "furlong/device/request.h"

namespace furlong::device::cl {
namespace {

constexpr Uint kBlocking = 1;
constexpr std::size_t kFillPiece = std::size_t{1} << 20;

std::uint64_t available_bytes(const Session& session) {
  const std::uint64_t total = session.limit != 0 ? session.limit : session.capacity;
  std::uint64_t left = total > session.used ? total - session.used : 0;
  if (session.host_memory) {
    if (const std::uint64_t host = available_memory_bytes()) left = std::min(left, host);
  }
  return left;
}

bool is_memory(Int code) {
  return code == kAllocationFailure || code == kOutOfResources || code == kOutOfHostMemory ||
         code == kInvalidBufferSize;
}

Error no_memory(const Session& session, std::size_t asked, std::string_view why) {
  const std::uint64_t available = available_bytes(session);
  return fail(Code::exhausted, "asked for {} ({} bytes), {} ({} bytes) available{}", human_bytes(asked),
              asked, human_bytes(available), available, why);
}

}  // namespace

Session::~Session() {
  if (queue != nullptr) api->release_queue(queue);
  if (context != nullptr) api->release_context(context);
}

Result<std::unique_ptr<Buffer>> ClBuffer::make(std::size_t bytes, std::shared_ptr<Session> session) {
  if (bytes == 0) return fail(Code::invalid, "a buffer of 0 bytes was asked for");
  if (bytes > available_bytes(*session)) {
    return no_memory(*session, bytes, session->limit != 0 ? " under the device's memory limit" : "");
  }
  if (bytes > session->largest) {
    return no_memory(*session, bytes, fmt::format(", in one buffer at most {} bytes", session->largest));
  }
  // What failed before would look like a lack of memory here.
  if (const Int code = session->api->finish(session->queue); code != kSuccess) {
    return transfer_error(code, "waiting for the kernels before a new buffer");
  }
  Int code = kSuccess;
  Memory memory = session->api->create_buffer(session->context, kMemoryReadWrite, bytes, nullptr, &code);
  if (memory == nullptr) {
    if (is_memory(code)) return no_memory(*session, bytes, ": " + error_name(code));
    return error_of(code, "making a buffer");
  }
  session->used += bytes;
  std::unique_ptr<ClBuffer> buffer(new ClBuffer(memory, bytes, session));
  // Platforms allocate at first use: find out now whether the memory is there.
  if (code = buffer->fill_code(0, 0, bytes); code != kSuccess) {
    buffer.reset();
    if (is_memory(code)) return no_memory(*session, bytes, ": " + error_name(code));
    return error_of(code, "filling a new buffer");
  }
  return buffer;
}

ClBuffer::~ClBuffer() {
  for (const auto& [offset, view] : views_) session_->api->release_memory(view);
  session_->api->release_memory(memory_);
  session_->used -= size_;
}

Status ClBuffer::write(std::size_t offset, ByteView bytes) {
  FURLONG_CHECK(check_range(offset, bytes.size(), size_, "writing"));
  if (bytes.empty()) return {};
  const Int code = session_->api->enqueue_write(session_->queue, memory_, kBlocking, offset, bytes.size(),
                                                bytes.data(), 0, nullptr, nullptr);
  if (code != kSuccess) return transfer_error(code, "writing a buffer");
  return {};
}

Status ClBuffer::read(std::size_t offset, std::span<std::uint8_t> into) {
  FURLONG_CHECK(check_range(offset, into.size(), size_, "reading"));
  if (into.empty()) return {};
  const Int code = session_->api->enqueue_read(session_->queue, memory_, kBlocking, offset, into.size(),
                                               into.data(), 0, nullptr, nullptr);
  if (code != kSuccess) return transfer_error(code, "reading a buffer");
  return {};
}

Status ClBuffer::fill(std::uint8_t byte, std::size_t offset, std::size_t count) {
  FURLONG_CHECK(check_range(offset, count, size_, "filling"));
  const Int code = fill_code(byte, offset, count);
  if (code != kSuccess) return transfer_error(code, "filling a buffer");
  return {};
}

Int ClBuffer::fill_code(std::uint8_t byte, std::size_t offset, std::size_t count) {
  if (count == 0) return kSuccess;
  const Api& api = *session_->api;
  if (api.enqueue_fill != nullptr) {
    const Int code = api.enqueue_fill(session_->queue, memory_, &byte, 1, offset, count, 0, nullptr, nullptr);
    return code != kSuccess ? code : api.finish(session_->queue);
  }
  const Bytes piece(std::min(count, kFillPiece), byte);
  for (std::size_t done = 0; done < count; done += piece.size()) {
    const Int code =
        api.enqueue_write(session_->queue, memory_, kBlocking, offset + done,
                          std::min(piece.size(), count - done), piece.data(), 0, nullptr, nullptr);
    if (code != kSuccess) return code;
  }
  return kSuccess;
}

Result<Memory> ClBuffer::at(std::size_t offset) {
  if (offset == 0) return memory_;
  if (const auto kept = views_.find(offset); kept != views_.end()) return kept->second;
  const Region region{offset, size_ - offset};
  Int code = kSuccess;
  Memory view =
      session_->api->create_sub_buffer(memory_, kMemoryReadWrite, kBufferCreateRegion, &region, &code);
  if (view == nullptr) return launch_error(code, fmt::format("a view of a buffer from byte {}", offset));
  views_.emplace(offset, view);
  return view;
}

}  // namespace furlong::device::cl
