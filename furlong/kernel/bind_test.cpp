// A caller's buffers and values at a kernel of a simulated card.
#include <gmock/gmock.h>

#include <cstring>

#include "furlong/kernel/raced_kernel.h"
#include "furlong/program/internal/test_emitter.h"
#include "furlong/race/internal/testing.h"

namespace furlong::kernel {
namespace {

using race::testing::Stage;
using ::testing::HasSubstr;

constexpr std::uint32_t kN = 4096;

class BindTest : public ::testing::Test {
 protected:
  void make(std::shared_ptr<const program::Program> program = race::testing::parse(race::testing::mix_text)) {
    stage_ = std::make_unique<Stage>(std::move(program));
    stage_->open();
    Options options;
    options.variants = "base";
    options.folder = "/cache";
    options.files = &files_;
    options.context.clock = stage_->context.clock;
    auto made = raced_kernel(*stage_->device, *stage_->instance, options);
    ASSERT_TRUE(made) << made.error().text();
    kernel_.emplace(*std::move(made));
    x_ = stage_->device->allocate(4 * kN).value();
    y_ = stage_->device->allocate(4 * kN + 512).value();
  }
  Arguments given() { return Arguments().buffer("x", *x_).buffer("y", *y_); }
  std::string refused(const Arguments& arguments, Code code = Code::invalid) {
    const auto bound = kernel_->bind(arguments);
    EXPECT_FALSE(bound);
    if (bound) return "";
    EXPECT_EQ(bound.error().code(), code) << bound.error().text();
    return bound.error().text();
  }

  FakeFiles files_;
  std::unique_ptr<Stage> stage_;
  std::unique_ptr<device::Buffer> x_, y_;
  std::optional<RacedKernel> kernel_;
};

TEST_F(BindTest, RunsOnTheCallersBuffers) {
  make();
  Bytes x(4 * kN);
  for (std::uint32_t i = 0; i < kN; ++i) store_le<std::uint32_t>(x.data() + 4 * i, 7 * i);
  ASSERT_TRUE(x_->write(0, x));
  auto bound = kernel_->bind(Arguments().buffer("x", *x_).buffer("y", *y_, 512).scalar("n", 4096));
  ASSERT_TRUE(bound) << bound.error().text();
  EXPECT_TRUE(bound->prepare_reads().empty());
  EXPECT_EQ(bound->launches().size(), 1u);
  ASSERT_TRUE(bound->prepare());
  ASSERT_TRUE(bound->launch());
  ASSERT_TRUE(stage_->device->finish());
  Bytes y(4 * kN);
  ASSERT_TRUE(y_->read(512, y));
  for (std::uint32_t i = 0; i < kN; ++i) ASSERT_EQ(load_le<std::uint32_t>(y.data() + 4 * i), 22 * i) << i;
}

TEST_F(BindTest, TellsWhatItNeeds) {
  make();
  const std::vector<Argument> arguments = kernel_->arguments();
  ASSERT_EQ(arguments.size(), 3u);
  EXPECT_EQ(arguments[0].name, "x");
  EXPECT_EQ(arguments[0].bytes, 4u * kN);
  EXPECT_EQ(arguments[1].direction, program::Direction::out);
  EXPECT_EQ(arguments[2].kind, program::ArgumentKind::scalar);
  EXPECT_EQ(arguments[2].bytes, 4u);
}

TEST_F(BindTest, NamesTheBufferThatIsWrong) {
  make();
  EXPECT_THAT(refused(Arguments().buffer("x", *x_)), HasSubstr("buffer 'y' of mix (16384 bytes of u32)"));
  EXPECT_THAT(refused(given().buffer("z", *y_)), HasSubstr("mix has no buffer 'z'"));
  EXPECT_THAT(refused(given().buffer("n", *y_)), HasSubstr("argument 'n' of mix is a scalar"));
  EXPECT_THAT(refused(given().scalar("x", 1)), HasSubstr("argument 'x' of mix is a buffer"));
  EXPECT_THAT(refused(given().scalar("m", 1)), HasSubstr("no scalar 'm'"));
  // Offsets: one that is no multiple of 256, one that leaves too little, one beyond the end.
  EXPECT_THAT(refused(given().buffer("y", *y_, 8)),
              HasSubstr("buffer 'y' starts at byte 8: offsets are multiples of 256"));
  EXPECT_THAT(refused(given().buffer("x", *x_, 256)), HasSubstr("needs 16384 bytes, and has 16128 of 16384"));
  EXPECT_THAT(refused(given().buffer("x", *x_, 1 << 20)), HasSubstr("has 0 of 16384 from byte 1048576 on"));
  const auto small = stage_->device->allocate(4 * kN - 1).value();
  EXPECT_THAT(refused(given().buffer("x", *small)), HasSubstr("buffer 'x' needs 16384 bytes"));
  const auto both = stage_->device->allocate(8 * kN).value();
  EXPECT_THAT(refused(Arguments().buffer("x", *both).buffer("y", *both, 4 * kN - 256)),
              HasSubstr("buffer 'y' is written and overlaps 'x'"));
  EXPECT_TRUE(kernel_->bind(Arguments().buffer("x", *both).buffer("y", *both, 4 * kN)));
}

TEST_F(BindTest, NamesTheScalarThatIsWrong) {
  make();
  EXPECT_THAT(refused(given().scalar("n", 5000)),
              HasSubstr("scalar 'n' is 4096 by the kernel's problem, and 5000 is given"));
  EXPECT_THAT(refused(given().scalar("n", -1)), HasSubstr("-1 does not fit u32"));
  EXPECT_THAT(refused(given().scalar("n", "many")), HasSubstr("'n'"));
}

TEST_F(BindTest, ALayoutIsMadeInScratchThatNeedNotBeGiven) {
  // Base reads a copy that is made once.
  const auto program = program::testing::read_emitted(program::testing::emitted_with(
      "values = [\"plain\", \"turned\", \"copied\"]",
      "values = [\"copied\", \"plain\", \"turned\"]\ntags = [\"\", \"plain\", \"turned\"]"));
  ASSERT_TRUE(program) << program.error().text();
  int kept = 0, scaled = 0;
  stage_ = std::make_unique<Stage>(*program);
  stage_->sim.behaviour = [&](const device::CompileRequest&, const device::Launch& launch) -> Status {
    const auto n = load_le<std::uint32_t>(std::get<Bytes>(launch.arguments[2]).data());
    const std::uint8_t* from = race::testing::data_of(launch.arguments[0]);
    std::uint8_t* to = race::testing::data_of(launch.arguments[1]);
    ++(launch.entry == "keep" ? kept : scaled);
    for (std::uint32_t i = 0; i < n; ++i)
      store_le<std::uint32_t>(to + 4 * i, launch.entry == "keep"
                                              ? load_le<std::uint32_t>(from + 4 * i)
                                              : 3 * load_le<std::uint32_t>(from + 4 * i) + i);
    return {};
  };
  stage_->driver = device::make_sim_driver({stage_->sim}, stage_->clock);
  stage_->device = stage_->driver->open(0).value();
  stage_->instance.emplace(program::Instance::make(*program, "host", {}, {}).value());
  Options options;
  options.variants = "base";
  options.folder = "/cache";
  options.files = &files_;
  options.context.clock = stage_->clock.get();
  auto made = raced_kernel(*stage_->device, *stage_->instance, options);
  ASSERT_TRUE(made) << made.error().text();
  kernel_.emplace(*std::move(made));
  x_ = stage_->device->allocate(4 * kN).value();
  y_ = stage_->device->allocate(4 * kN).value();
  ASSERT_TRUE(x_->fill(1, 0, 4 * kN));
  const std::uint64_t before = stage_->device->memory().used_bytes;
  {
    auto bound = kernel_->bind(given());
    ASSERT_TRUE(bound) << bound.error().text();
    EXPECT_EQ(stage_->device->memory().used_bytes, before + 4 * kN);
    EXPECT_EQ(bound->prepare_reads(), std::vector<std::string>{"x"});
    kept = scaled = 0;
    ASSERT_TRUE(bound->prepare());
    EXPECT_EQ(kept, 1);
    ASSERT_TRUE(bound->launch());
    ASSERT_TRUE(bound->launch());
    ASSERT_TRUE(stage_->device->finish());
    EXPECT_EQ(kept, 1);
    EXPECT_EQ(scaled, 2);
    Bytes y(4 * kN);
    ASSERT_TRUE(y_->read(0, y));
    EXPECT_EQ(load_le<std::uint32_t>(y.data() + 4 * 10), 3 * 0x01010101u + 10);
  }
  EXPECT_EQ(stage_->device->memory().used_bytes, before);
  // What the launches set themselves is not the caller's to give.
  EXPECT_THAT(refused(given().scalar("from", 3)), HasSubstr("scalar 'from' is each launch's own"));
  // Scratch of the caller's own, and no memory for one that is not given.
  const auto own = stage_->device->allocate(4 * kN).value();
  EXPECT_TRUE(kernel_->bind(given().buffer("kept", *own)));
  EXPECT_THAT(refused(given().buffer("kept", *x_)), HasSubstr("buffer 'kept' is written and overlaps 'x'"));
  stage_->device->set_memory_limit(stage_->device->memory().used_bytes + 1);
  EXPECT_THAT(refused(given(), Code::exhausted), HasSubstr("scratch 'kept'"));
}

}  // namespace
}  // namespace furlong::kernel
