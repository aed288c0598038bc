#include "furlong/device/cuda/internal/buffer.h"

#include "furlong/device/request.h"

namespace furlong::device::cuda {

Result<std::unique_ptr<Buffer>> CudaBuffer::make(std::size_t bytes, std::shared_ptr<Session> session) {
  if (bytes == 0) return fail(Code::invalid, "a buffer of 0 bytes was asked for");
  FURLONG_TRY(const Address address, session->take(bytes));
  return std::unique_ptr<Buffer>(new CudaBuffer(bytes, address, std::move(session)));
}

Status CudaBuffer::write(std::size_t offset, ByteView bytes) {
  FURLONG_CHECK(check_range(offset, bytes.size(), size_, "writing"));
  if (bytes.empty()) return {};
  return session_->write(address_ + offset, bytes);
}

Status CudaBuffer::read(std::size_t offset, std::span<std::uint8_t> into) {
  FURLONG_CHECK(check_range(offset, into.size(), size_, "reading"));
  if (into.empty()) return {};
  return session_->read(address_ + offset, into);
}

Status CudaBuffer::fill(std::uint8_t byte, std::size_t offset, std::size_t count) {
  FURLONG_CHECK(check_range(offset, count, size_, "filling"));
  FURLONG_CHECK(session_->enter());
  FURLONG_CHECK(session_->fill(address_ + offset, byte, count));
  return session_->finish("filling a buffer");
}

}  // namespace furlong::device::cuda
