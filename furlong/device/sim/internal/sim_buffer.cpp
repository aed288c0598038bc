#include "furlong/device/sim/internal/sim_buffer.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>

namespace furlong::device {
namespace internal {

Status SimState::alive() const {
  if (lost) return fail(Code::unavailable, "{}: the device is lost; open it again", address);
  return {};
}

void SimState::pass_ms(double ms) {
  // The bound keeps absurd options from running the 64-bit clock over.
  if (ms > 0) clock->advance_ns(std::llround(std::min(ms, 1e9) * 1e6));
}

Result<std::unique_ptr<SimBuffer>> SimBuffer::make(std::shared_ptr<SimState> state, std::size_t bytes) {
  void* const pages =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (pages == MAP_FAILED)
    return fail(Code::exhausted, "{}: the host has no room for a simulated buffer of {} bytes: {}",
                state->address, bytes, std::strerror(errno));
  state->used_bytes += bytes;
  return std::unique_ptr<SimBuffer>(
      new SimBuffer(std::move(state), static_cast<std::uint8_t*>(pages), bytes));
}

SimBuffer::SimBuffer(std::shared_ptr<SimState> state, std::uint8_t* bytes, std::size_t size)
    : state_(std::move(state)), bytes_(bytes), size_(size) {}

SimBuffer::~SimBuffer() {
  munmap(bytes_, size_);
  state_->used_bytes -= size_;
}

Status SimBuffer::check(std::string_view doing, std::size_t offset, std::size_t count) const {
  FURLONG_CHECK(state_->alive());
  if (offset > size_ || count > size_ - offset)
    return fail(Code::invalid, "{}: {} of {} bytes at {} goes past the buffer's {} bytes", state_->address,
                doing, count, offset, size_);
  return {};
}

Status SimBuffer::write(std::size_t offset, ByteView from) {
  FURLONG_CHECK(check("write", offset, from.size()));
  if (!from.empty()) std::memcpy(bytes_ + offset, from.data(), from.size());
  state_->pass_ms(static_cast<double>(from.size()) / (state_->transfer_gb_per_s * 1e6));
  return {};
}

Status SimBuffer::read(std::size_t offset, std::span<std::uint8_t> into) {
  FURLONG_CHECK(check("read", offset, into.size()));
  if (!into.empty()) std::memcpy(into.data(), bytes_ + offset, into.size());
  state_->pass_ms(static_cast<double>(into.size()) / (state_->transfer_gb_per_s * 1e6));
  return {};
}

Status SimBuffer::fill(std::uint8_t byte, std::size_t offset, std::size_t count) {
  FURLONG_CHECK(check("fill", offset, count));
  if (count == 0) return {};
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t first = (offset + page - 1) / page * page, last = (offset + count) / page * page;
  // Zeroing whole pages gives them back instead: a dataset that is only zeroed stays without cost.
  if (byte == 0 && first < last && madvise(bytes_ + first, last - first, MADV_DONTNEED) == 0) {
    std::memset(bytes_ + offset, 0, first - offset);
    std::memset(bytes_ + last, 0, offset + count - last);
  } else {
    std::memset(bytes_ + offset, byte, count);
  }
  return {};
}

}  // namespace internal

std::uint8_t* sim_buffer_bytes(Buffer& buffer) {
  auto* const own = dynamic_cast<internal::SimBuffer*>(&buffer);
  return own == nullptr ? nullptr : own->bytes();
}

}  // namespace furlong::device
