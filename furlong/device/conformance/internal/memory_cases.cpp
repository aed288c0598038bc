#include "furlong/device/conformance/internal/rig.h"

namespace furlong::device::conformance {
namespace {

Status buffers_keep_what_is_written(Driver& driver) {
  FURLONG_TRY(const Rig rig, Rig::open(driver));
  Bytes bytes(100003);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(i * 7 + i / 256);
  FURLONG_TRY(const auto buffer, buffer_of(*rig.device, bytes));
  FURLONG_CHECK(expect(buffer->size() == bytes.size(), "the buffer has {} bytes", buffer->size()));
  FURLONG_CHECK(buffer->fill(0xa5, 1001, 50));
  std::fill(bytes.begin() + 1001, bytes.begin() + 1051, std::uint8_t{0xa5});
  const Bytes piece{1, 2, 3};
  FURLONG_CHECK(buffer->write(99999, piece));
  std::copy(piece.begin(), piece.end(), bytes.begin() + 99999);
  FURLONG_TRY(const auto out, values_of<std::uint8_t>(*buffer));
  FURLONG_CHECK(expect_equal(out, bytes, "bytes"));
  Bytes part(7);
  FURLONG_CHECK(buffer->read(1048, part));
  return expect_equal(part, Bytes(bytes.begin() + 1048, bytes.begin() + 1055), "a part");
}

Status ranges_past_the_end_are_invalid(Driver& driver) {
  FURLONG_TRY(const Rig rig, Rig::open(driver));
  FURLONG_TRY(const auto buffer, rig.device->allocate(100));
  Bytes bytes(10);
  FURLONG_CHECK(buffer->write(90, bytes));
  FURLONG_CHECK(expect_error(buffer->write(91, bytes), Code::invalid, "writing past the end", "100"));
  FURLONG_CHECK(expect_error(buffer->read(91, bytes), Code::invalid, "reading past the end", "100"));
  FURLONG_CHECK(expect_error(buffer->fill(0, 91, 10), Code::invalid, "filling past the end", "100"));
  FURLONG_CHECK(
      expect_error(buffer->read(~std::size_t{0} - 4, bytes), Code::invalid, "an offset that wraps"));
  return expect_error(rig.device->allocate(0), Code::invalid, "a buffer of 0 bytes");
}

Status the_limit_is_kept(Driver& driver) {
  FURLONG_TRY(const Rig rig, Rig::open(driver));
  const std::size_t mib = 1 << 20;
  rig.device->set_memory_limit(4 * mib);
  FURLONG_CHECK(expect(rig.device->memory().limit_bytes == 4 * mib, "the limit reads {}",
                       rig.device->memory().limit_bytes));
  FURLONG_TRY(auto first, rig.device->allocate(3 * mib));
  FURLONG_CHECK(
      expect(rig.device->memory().used_bytes == 3 * mib, "{} bytes in use", rig.device->memory().used_bytes));
  FURLONG_CHECK(expect_error(rig.device->allocate(2 * mib), Code::exhausted, "2 MiB with 1 MiB left",
                             std::to_string(2 * mib)));
  FURLONG_CHECK(
      expect_error(rig.device->allocate(2 * mib), Code::exhausted, "what is available", std::to_string(mib)));
  FURLONG_TRY(const auto fits, rig.device->allocate(mib));
  first.reset();
  FURLONG_TRY(const auto again, rig.device->allocate(3 * mib));
  rig.device->set_memory_limit(0);
  FURLONG_TRY(const auto free_of_limit, rig.device->allocate(8 * mib));
  return {};
}

Status more_than_there_is_is_exhausted(Driver& driver) {
  FURLONG_TRY(Rig rig, Rig::open_with_module(driver));
  for (const std::uint64_t bytes : {rig.device->facts().max_buffer_bytes * 4, std::uint64_t{1} << 62,
                                    std::uint64_t{1} << 63, ~std::uint64_t{0}}) {
    FURLONG_CHECK(expect_error(rig.device->allocate(bytes), Code::exhausted, fmt::format("{} bytes", bytes),
                               std::to_string(bytes)));
  }
  FURLONG_CHECK(expect(rig.device->memory().used_bytes == 0, "a refused buffer is counted: {} bytes",
                       rig.device->memory().used_bytes));
  FURLONG_TRY(const auto out, buffer_of(*rig.device, std::vector<std::uint32_t>(1, 0)));
  FURLONG_CHECK(rig.run(rig.launch("count", {BufferArgument{out.get()}}, 5)));
  FURLONG_TRY(const auto count, values_of<std::uint32_t>(*out));
  return expect_equal(count, {5u}, "a launch after it");
}

// Under a limit, what leaks is refused soon.
Status nothing_leaks(Driver& driver) {
  FURLONG_TRY(Rig rig, Rig::open_with_module(driver));
  const std::size_t mib = 1 << 20;
  rig.device->set_memory_limit(4 * mib);
  for (int turn = 0; turn < 50; ++turn) {
    FURLONG_TRY(const auto buffer, rig.device->allocate(2 * mib));
    FURLONG_TRY(const auto out, rig.device->allocate(mib));
    FURLONG_CHECK(out->fill(0, 0, mib));
    FURLONG_CHECK(rig.run(rig.launch("count", {BufferArgument{out.get(), 256}}, 2)));
  }
  return expect(rig.device->memory().used_bytes == 0, "{} bytes are left in use",
                rig.device->memory().used_bytes);
}

}  // namespace

std::vector<ConformanceCase> memory_cases() {
  return {{"buffers_keep_what_is_written", buffers_keep_what_is_written},
          {"ranges_past_the_end_are_invalid", ranges_past_the_end_are_invalid},
          {"the_limit_is_kept", the_limit_is_kept},
          {"more_than_there_is_is_exhausted", more_than_there_is_is_exhausted},
          {"nothing_leaks", nothing_leaks}};
}

}  // namespace furlong::device::conformance
