#pragma once

#include <map>
#include <memory>

#include "furlong/device/device.h"
#include "furlong/device/opencl/internal/cl.h"

namespace furlong::device::cl {

/// A device's context and queue with what its buffers take. Shared by all that is made from the device, so
/// that the order in which they go does not matter.
struct Session {
  const Api* api = nullptr;
  DeviceId device = nullptr;
  Context context = nullptr;
  Queue queue = nullptr;
  std::uint64_t capacity = 0;  ///< of the device
  std::uint64_t largest = 0;   ///< buffer
  bool host_memory = false;    ///< buffers are taken from the machine's memory
  std::uint64_t used = 0;
  std::uint64_t limit = 0;

  Session() = default;
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
};

class ClBuffer : public Buffer {
 public:
  /// Filled with zeros, so that the memory is there when a kernel is timed. `invalid` for 0 bytes,
  /// `exhausted` with the asked and available bytes, `internal` when a kernel queued before it failed.
  static Result<std::unique_ptr<Buffer>> make(std::size_t bytes, std::shared_ptr<Session> session);
  ~ClBuffer() override;
  ClBuffer(const ClBuffer&) = delete;
  ClBuffer& operator=(const ClBuffer&) = delete;

  std::size_t size() const override { return size_; }
  Status write(std::size_t offset, ByteView bytes) override;
  Status read(std::size_t offset, std::span<std::uint8_t> into) override;
  Status fill(std::uint8_t byte, std::size_t offset, std::size_t count) override;

  const Session* session() const { return session_.get(); }
  /// The memory from `offset` on: a sub-buffer, made once per offset and kept.
  Result<Memory> at(std::size_t offset);

 private:
  ClBuffer(Memory memory, std::size_t size, std::shared_ptr<Session> session)
      : memory_(memory), size_(size), session_(std::move(session)) {}
  Int fill_code(std::uint8_t byte, std::size_t offset, std::size_t count);

  Memory memory_;
  std::size_t size_;
  std::shared_ptr<Session> session_;
  std::map<std::size_t, Memory> views_;
};

}  // namespace furlong::device::cl
