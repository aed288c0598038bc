#include "furlong/device/cuda/internal/buffer.h"

namespace furlong::device::cuda {

Result<std::unique_ptr<Buffer>> CudaBuffer::make(std::size_t bytes, std::shared_ptr<Session> session) {
  if (bytes == 0) return fail(Code::invalid, "a buffer of 0 bytes was asked for");
  FURLONG_TRY(const Address address, session->take(bytes));
  return std::unique_ptr<Buffer>(new CudaBuffer(bytes, address, std::move(session)));
}

Status CudaBuffer::check_range(std::size_t offset, std::size_t count, std::string_view doing) const {
  if (offset <= size_ && count <= size_ - offset) return {};
  return fail(Code::invalid, "{} {} bytes at {} is outside the buffer's {} bytes", doing, count, offset,
              size_);
}

Status CudaBuffer::write(std::size_t offset, ByteView bytes) {
  FURLONG_CHECK(check_range(offset, bytes.size(), "writing"));
  if (bytes.empty()) return {};
  return session_->write(address_ + offset, bytes);
}

Status CudaBuffer::read(std::size_t offset, std::span<std::uint8_t> into) {
  FURLONG_CHECK(check_range(offset, into.size(), "reading"));
  if (into.empty()) return {};
  return session_->read(address_ + offset, into);
}

Status CudaBuffer::fill(std::uint8_t byte, std::size_t offset, std::size_t count) {
  FURLONG_CHECK(check_range(offset, count, "filling"));
  FURLONG_CHECK(session_->enter());
  FURLONG_CHECK(session_->fill(address_ + offset, byte, count));
  return session_->finish("filling a buffer");
}

}  // namespace furlong::device::cuda
