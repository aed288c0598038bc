#pragma once

#include <memory>

#include "furlong/device/cuda/internal/session.h"
#include "furlong/device/device.h"

namespace furlong::device::cuda {

/// Memory of the card, from the session's pool. One thread at a time.
class CudaBuffer : public Buffer {
 public:
  /// `invalid` for no bytes, `exhausted` with asked and available.
  static Result<std::unique_ptr<Buffer>> make(std::size_t bytes, std::shared_ptr<Session> session);
  ~CudaBuffer() override { session_->give(address_, size_); }

  std::size_t size() const override { return size_; }
  Status write(std::size_t offset, ByteView bytes) override;
  Status read(std::size_t offset, std::span<std::uint8_t> into) override;
  Status fill(std::uint8_t byte, std::size_t offset, std::size_t count) override;

  const Session* session() const { return session_.get(); }
  Address address() const { return address_; }

 private:
  CudaBuffer(std::size_t size, Address address, std::shared_ptr<Session> session)
      : size_(size), address_(address), session_(std::move(session)) {}

  std::size_t size_;
  Address address_;
  std::shared_ptr<Session> session_;
};

}  // namespace furlong::device::cuda
