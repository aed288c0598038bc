#pragma once
// Host memory with a guard on either side.

#include <atomic>
#include <memory>

#include "furlong/device/device.h"

namespace furlong::device::host {

/// What a device's buffers take together; shared with the buffers so that a buffer that goes late is
/// still counted out safely.
struct Accounting {
  std::atomic<std::uint64_t> used{0};
  std::atomic<std::uint64_t> limit{0};
};

/// Pages of its own between two unreadable guard regions of 1 MiB: a kernel that runs far enough out of
/// bounds traps instead of damaging another buffer. The pages are made at once, so that a kernel's time
/// holds no page faults and reading an unwritten buffer costs what it should.
class HostBuffer : public Buffer {
 public:
  /// `invalid` for 0 bytes, `exhausted` with the asked and available bytes.
  static Result<std::unique_ptr<Buffer>> make(std::size_t bytes, std::shared_ptr<Accounting> accounting);
  ~HostBuffer() override;
  HostBuffer(const HostBuffer&) = delete;
  HostBuffer& operator=(const HostBuffer&) = delete;

  std::size_t size() const override { return size_; }
  Status write(std::size_t offset, ByteView bytes) override;
  Status read(std::size_t offset, std::span<std::uint8_t> into) override;
  Status fill(std::uint8_t byte, std::size_t offset, std::size_t count) override;

  std::uint8_t* data() const { return data_; }
  const Accounting* owner() const { return accounting_.get(); }

 private:
  HostBuffer(std::uint8_t* mapping, std::size_t mapping_bytes, std::uint8_t* data, std::size_t size,
             std::shared_ptr<Accounting> accounting);

  std::uint8_t* mapping_;
  std::size_t mapping_bytes_;
  std::uint8_t* data_;
  std::size_t size_;
  std::shared_ptr<Accounting> accounting_;
};

}  // namespace furlong::device::host
