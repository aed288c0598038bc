#include <algorithm>

#include "furlong/device/conformance/internal/rig.h"

namespace furlong::device::conformance {
namespace {

std::uint64_t block_of(const Device& device, std::uint64_t wanted) {
  return std::min<std::uint64_t>({wanted, static_cast<std::uint64_t>(device.facts().max_threads_per_block),
                                  device.facts().max_block[0]});
}

Status launches_over_every_element(Driver& driver) {
  FURLONG_TRY(Rig rig, Rig::open_with_module(driver));
  const std::uint32_t n = 10007;  // no multiple of any block
  std::vector<float> x(n), y(n), wanted(n);
  for (std::uint32_t i = 0; i < n; ++i) {
    x[i] = static_cast<float>(i % 1000);
    y[i] = static_cast<float>(i % 17);
    wanted[i] = 3.0f * x[i] + y[i];  // small whole numbers: exact with and without a fused multiply-add
  }
  FURLONG_TRY(const auto bx, buffer_of(*rig.device, x));
  FURLONG_TRY(const auto by, buffer_of(*rig.device, y));
  const std::uint64_t block = block_of(*rig.device, 64);
  FURLONG_CHECK(rig.run(
      rig.launch("saxpy", {scalar(3.0f), BufferArgument{bx.get()}, BufferArgument{by.get()}, scalar(n)},
                 (n + block - 1) / block, block)));
  FURLONG_TRY(const auto out, values_of<float>(*by));
  FURLONG_CHECK(expect_equal(out, wanted, "saxpy"));
  FURLONG_TRY(const auto kept, values_of<float>(*bx));
  return expect_equal(kept, x, "the input");
}

Status takes_scalars_of_several_sizes(Driver& driver) {
  FURLONG_TRY(Rig rig, Rig::open_with_module(driver));
  const std::vector<std::uint32_t> in{0, 1, 0xffffffffu, 0x80000000u, 12345};
  const std::uint32_t a = 0x01000193;
  const std::uint64_t wide = 0x0123456789abcdefull;
  std::vector<std::uint32_t> wanted;
  for (std::uint32_t value : in) wanted.push_back(value * a + 0x89abcdefu + 0x01234567u + 41u);
  FURLONG_TRY(const auto from, buffer_of(*rig.device, in));
  FURLONG_TRY(const auto to, buffer_of(*rig.device, std::vector<std::uint32_t>(in.size())));
  FURLONG_CHECK(
      rig.run(rig.launch("scalars",
                         {BufferArgument{from.get()}, BufferArgument{to.get()}, scalar(a), scalar(wide),
                          scalar(41.75f), scalar(static_cast<std::uint32_t>(in.size()))},
                         in.size())));
  FURLONG_TRY(const auto out, values_of<std::uint32_t>(*to));
  return expect_equal(out, wanted, "scalars");
}

Status gives_places_in_three_dimensions(Driver& driver) {
  FURLONG_TRY(Rig rig, Rig::open_with_module(driver));
  const Facts& facts = rig.device->facts();
  Launch launch = rig.launch("place", {});
  launch.grid = {3, 5, 2};
  launch.block = {4, 2, 2};
  for (std::size_t axis = 0; axis < 3; ++axis)
    launch.block[axis] = std::min(launch.block[axis], facts.max_block[axis]);
  if (launch.block[0] * launch.block[1] * launch.block[2] >
      static_cast<std::uint64_t>(facts.max_threads_per_block)) {
    launch.block = {1, 1, 1};
  }
  std::vector<std::uint32_t> wanted;
  for (std::uint64_t z = 0; z < launch.grid[2] * launch.block[2]; ++z) {
    for (std::uint64_t y = 0; y < launch.grid[1] * launch.block[1]; ++y) {
      for (std::uint64_t x = 0; x < launch.grid[0] * launch.block[0]; ++x) {
        wanted.push_back(static_cast<std::uint32_t>(x + 1000 * y + 1000000 * z));
      }
    }
  }
  FURLONG_TRY(const auto out, buffer_of(*rig.device, std::vector<std::uint32_t>(wanted.size(), 0)));
  launch.arguments = {BufferArgument{out.get()}};
  FURLONG_CHECK(rig.run(launch));
  FURLONG_TRY(const auto found, values_of<std::uint32_t>(*out));
  return expect_equal(found, wanted, "places");
}

Status launches_run_in_order(Driver& driver) {
  FURLONG_TRY(Rig rig, Rig::open_with_module(driver));
  const std::uint32_t n = 1000;
  FURLONG_TRY(const auto a, buffer_of(*rig.device, std::vector<std::uint32_t>(n, 10)));
  FURLONG_TRY(const auto b, buffer_of(*rig.device, std::vector<std::uint32_t>(n, 0)));
  for (int turn = 0; turn < 5; ++turn) {  // each reads what the one before wrote; none is awaited
    FURLONG_CHECK(rig.device->launch(
        rig.launch("shift", {BufferArgument{a.get()}, BufferArgument{b.get()}, scalar(n)}, n)));
    FURLONG_CHECK(rig.device->launch(
        rig.launch("shift", {BufferArgument{b.get()}, BufferArgument{a.get()}, scalar(n)}, n)));
  }
  FURLONG_CHECK(rig.device->finish());
  FURLONG_TRY(const auto out, values_of<std::uint32_t>(*a));
  return expect_equal(out, std::vector<std::uint32_t>(n, 20), "ten shifts");
}

Status buffers_start_at_an_offset(Driver& driver) {
  FURLONG_TRY(Rig rig, Rig::open_with_module(driver));
  std::vector<std::uint32_t> in(256), wanted(256, 9);
  for (std::uint32_t i = 0; i < 256; ++i) in[i] = i;
  FURLONG_TRY(const auto from, buffer_of(*rig.device, in));
  FURLONG_TRY(const auto to, buffer_of(*rig.device, wanted));
  // 256 bytes are 64 values: out[192 + i] = in[64 + i] + 1.
  const Launch launch = rig.launch(
      "shift", {BufferArgument{from.get(), 256}, BufferArgument{to.get(), 768}, scalar(std::uint32_t{10})},
      10);
  for (std::uint32_t i = 0; i < 10; ++i) wanted[192 + i] = in[64 + i] + 1;
  FURLONG_CHECK(rig.run(launch));
  FURLONG_CHECK(rig.run(launch));  // once more: an offset view may be kept
  FURLONG_TRY(const auto out, values_of<std::uint32_t>(*to));
  return expect_equal(out, wanted, "values behind an offset");
}

// A refused launch must leave the device as it was.
Status still_works(Rig& rig) {
  FURLONG_TRY(const auto out, buffer_of(*rig.device, std::vector<std::uint32_t>(1, 0)));
  FURLONG_CHECK(rig.run(rig.launch("count", {BufferArgument{out.get()}}, 3)));
  FURLONG_TRY(const auto count, values_of<std::uint32_t>(*out));
  return expect_equal(count, {3u}, "a launch after refused ones");
}

Status a_wrong_shape_is_invalid(Driver& driver) {
  FURLONG_TRY(Rig rig, Rig::open_with_module(driver));
  const Facts& facts = rig.device->facts();
  FURLONG_TRY(const auto out, buffer_of(*rig.device, std::vector<std::uint32_t>(1, 0)));
  const Launch good = rig.launch("count", {BufferArgument{out.get()}});
  Launch bad = good;
  const auto too_many = static_cast<std::uint64_t>(facts.max_threads_per_block) + 1;
  bad.block = {too_many, 1, 1};
  FURLONG_CHECK(expect_error(rig.device->launch(bad), Code::invalid, "a block of too many threads",
                             std::to_string(too_many)));
  for (std::size_t axis = 0; axis < 3; ++axis) {
    bad = good;
    bad.grid[axis] = 0;
    FURLONG_CHECK(expect_error(rig.device->launch(bad), Code::invalid, "an empty grid"));
    bad = good;
    bad.block[axis] = 0;
    FURLONG_CHECK(expect_error(rig.device->launch(bad), Code::invalid, "an empty block"));
  }
  bad = good;
  bad.shared_bytes = facts.max_shared_bytes + (std::uint64_t{1} << 30);
  FURLONG_CHECK(expect_error(rig.device->launch(bad), Code::invalid, "too much shared memory"));
  FURLONG_CHECK(rig.device->finish());
  return still_works(rig);
}

Status wrong_arguments_are_invalid(Driver& driver) {
  FURLONG_TRY(Rig rig, Rig::open_with_module(driver));
  FURLONG_TRY(const auto buffer, buffer_of(*rig.device, std::vector<std::uint32_t>(1024, 0)));
  const BufferArgument there{buffer.get()};
  const std::uint32_t one = 1;
  const auto refuse = [&](std::vector<Argument> arguments, std::string_view what) {
    return expect_error(rig.device->launch(rig.launch("shift", std::move(arguments))), Code::invalid, what);
  };
  FURLONG_CHECK(refuse({there, there}, "two arguments of three"));
  FURLONG_CHECK(refuse({there, there, scalar(one), scalar(one)}, "four arguments of three"));
  FURLONG_CHECK(refuse({there, there, scalar(std::uint64_t{1})}, "a scalar of 8 bytes for one of 4"));
  FURLONG_CHECK(refuse({there, there, there}, "a buffer for a scalar"));
  FURLONG_CHECK(refuse({there, BufferArgument{buffer.get(), 100}, scalar(one)}, "an offset of 100"));
  FURLONG_CHECK(
      refuse({there, BufferArgument{buffer.get(), 1 << 20}, scalar(one)}, "an offset past the end"));
  FURLONG_CHECK(expect_error(rig.device->launch(rig.launch("no_such_kernel", {})), Code::invalid,
                             "an entry that is not there", "no_such_kernel"));
  Launch without = rig.launch("count", {there});
  without.module = nullptr;
  FURLONG_CHECK(expect_error(rig.device->launch(without), Code::invalid, "no module"));
  FURLONG_CHECK(rig.device->finish());
  return still_works(rig);
}

Status two_devices_are_independent(Driver& driver) {
  FURLONG_TRY(Rig first, Rig::open_with_module(driver));
  FURLONG_TRY(Rig second, Rig::open_with_module(driver));
  FURLONG_TRY(const auto foreign, buffer_of(*second.device, std::vector<std::uint32_t>(1, 0)));
  FURLONG_CHECK(expect_error(first.device->launch(first.launch("count", {BufferArgument{foreign.get()}})),
                             Code::invalid, "a buffer of another open device"));
  FURLONG_CHECK(expect(first.device->memory().used_bytes == 0, "another device's memory is counted"));
  FURLONG_CHECK(still_works(second));
  return still_works(first);
}

Status opens_again_after_it_closed(Driver& driver) {
  for (int turn = 0; turn < 3; ++turn) {
    FURLONG_TRY(Rig rig, Rig::open_with_module(driver));
    FURLONG_CHECK(still_works(rig));
  }
  return {};
}

}  // namespace

std::vector<ConformanceCase> launch_cases() {
  return {{"launches_over_every_element", launches_over_every_element},
          {"takes_scalars_of_several_sizes", takes_scalars_of_several_sizes},
          {"gives_places_in_three_dimensions", gives_places_in_three_dimensions},
          {"launches_run_in_order", launches_run_in_order},
          {"buffers_start_at_an_offset", buffers_start_at_an_offset},
          {"a_wrong_shape_is_invalid", a_wrong_shape_is_invalid},
          {"wrong_arguments_are_invalid", wrong_arguments_are_invalid},
          {"two_devices_are_independent", two_devices_are_independent},
          {"opens_again_after_it_closed", opens_again_after_it_closed}};
}

}  // namespace furlong::device::conformance
