#include "furlong/device/host/internal/buffer.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "furlong/base/os/memory.h"
#include "furlong/base/text.h"
#include "furlong/device/request.h"

namespace furlong::device::host {
namespace {

constexpr std::size_t kGuardBytes = std::size_t{1} << 20;

Error no_memory(std::size_t asked, std::uint64_t available, std::string_view why) {
  return fail(Code::exhausted, "asked for {} ({} bytes) of host memory, {} ({} bytes) available{}",
              human_bytes(asked), asked, human_bytes(available), available, why);
}

// Reserves before mapping, so that two threads cannot pass the limit together.
Status reserve(Accounting& accounting, std::size_t bytes) {
  const std::uint64_t limit = accounting.limit.load();
  std::uint64_t used = accounting.used.load();
  do {
    if (limit != 0 && (used > limit || bytes > limit - used)) {
      return no_memory(bytes, used < limit ? limit - used : 0, " under the device's memory limit");
    }
  } while (!accounting.used.compare_exchange_weak(used, used + bytes));
  return {};
}

}  // namespace

Result<std::unique_ptr<Buffer>> HostBuffer::make(std::size_t bytes, std::shared_ptr<Accounting> accounting) {
  if (bytes == 0) return fail(Code::invalid, "a buffer of 0 bytes was asked for");
  FURLONG_CHECK(reserve(*accounting, bytes));
  const std::uint64_t available = available_memory_bytes();
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t most = SIZE_MAX / 2;
  // Overcommitting systems would grant anything and kill the process at first touch.
  if (bytes > most || (available != 0 && bytes > available)) {
    accounting->used -= bytes;
    return no_memory(bytes, available, "");
  }
  const std::size_t inner = (bytes + page - 1) / page * page;
  const std::size_t whole = inner + 2 * kGuardBytes;
  void* mapping = mmap(nullptr, whole, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED) {
    accounting->used -= bytes;
    return no_memory(bytes, available, fmt::format(": {}", std::strerror(errno)));
  }
  auto* base = static_cast<std::uint8_t*>(mapping);
  void* data = mmap(base + kGuardBytes, inner, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_POPULATE, -1, 0);
  if (data == MAP_FAILED) {
    const int error = errno;
    munmap(mapping, whole);
    accounting->used -= bytes;
    return no_memory(bytes, available, fmt::format(": {}", std::strerror(error)));
  }
  return std::unique_ptr<Buffer>(
      new HostBuffer(base, whole, static_cast<std::uint8_t*>(data), bytes, std::move(accounting)));
}

HostBuffer::HostBuffer(std::uint8_t* mapping, std::size_t mapping_bytes, std::uint8_t* data, std::size_t size,
                       std::shared_ptr<Accounting> accounting)
    : mapping_(mapping),
      mapping_bytes_(mapping_bytes),
      data_(data),
      size_(size),
      accounting_(std::move(accounting)) {}

HostBuffer::~HostBuffer() {
  munmap(mapping_, mapping_bytes_);
  accounting_->used -= size_;
}

Status HostBuffer::write(std::size_t offset, ByteView bytes) {
  FURLONG_CHECK(check_range(offset, bytes.size(), size_, "writing"));
  if (!bytes.empty()) std::memcpy(data_ + offset, bytes.data(), bytes.size());
  return {};
}

Status HostBuffer::read(std::size_t offset, std::span<std::uint8_t> into) {
  FURLONG_CHECK(check_range(offset, into.size(), size_, "reading"));
  if (!into.empty()) std::memcpy(into.data(), data_ + offset, into.size());
  return {};
}

Status HostBuffer::fill(std::uint8_t byte, std::size_t offset, std::size_t count) {
  FURLONG_CHECK(check_range(offset, count, size_, "filling"));
  if (count != 0) std::memset(data_ + offset, byte, count);
  return {};
}

}  // namespace furlong::device::host
