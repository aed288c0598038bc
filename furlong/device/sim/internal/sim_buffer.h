#pragma once
// The memory of a simulated card: host pages that become resident only when they are written.

#include <atomic>
#include <cstdint>
#include <memory>

#include "furlong/base/os/clock.h"
#include "furlong/device/device.h"

namespace furlong::device::internal {

/// What a device and its buffers share. Thread safe.
struct SimState {
  std::string address;  ///< "sim:0", for messages
  std::atomic<bool> lost{false};
  std::atomic<std::uint64_t> used_bytes{0};
  double transfer_gb_per_s = 25;
  std::shared_ptr<FakeClock> clock;

  /// `unavailable` once the device is lost.
  Status alive() const;
  /// Virtual time passes. Never negative.
  void pass_ms(double ms);
};

class SimBuffer final : public Buffer {
 public:
  /// `exhausted` when the host has no address space for it.
  static Result<std::unique_ptr<SimBuffer>> make(std::shared_ptr<SimState> state, std::size_t bytes);
  ~SimBuffer() override;
  SimBuffer(const SimBuffer&) = delete;
  SimBuffer& operator=(const SimBuffer&) = delete;

  std::size_t size() const override { return size_; }
  Status write(std::size_t offset, ByteView bytes) override;
  Status read(std::size_t offset, std::span<std::uint8_t> into) override;
  Status fill(std::uint8_t byte, std::size_t offset, std::size_t count) override;

  std::uint8_t* bytes() { return bytes_; }
  const SimState* state() const { return state_.get(); }

 private:
  SimBuffer(std::shared_ptr<SimState> state, std::uint8_t* bytes, std::size_t size);
  Status check(std::string_view doing, std::size_t offset, std::size_t count) const;

  std::shared_ptr<SimState> state_;
  std::uint8_t* bytes_;
  std::size_t size_;
};

}  // namespace furlong::device::internal
