#include "furlong/device/ceilings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "furlong/base/json.h"
#include "furlong/base/log.h"
#include "furlong/base/random.h"
#include "furlong/base/text.h"
#include "furlong/device/internal/ceiling_kernels.h"
#include "furlong/device/sim/sim.h"

namespace furlong::device {
namespace {

using ::testing::HasSubstr;

constexpr std::uint64_t kKiB = 1024;

std::uint32_t scalar_of(const Argument& argument) {
  std::uint32_t value = 0;
  std::memcpy(&value, std::get<Bytes>(argument).data(), sizeof value);
  return value;
}

internal::Run run_of(const CompileRequest& module, const Launch& launch) {
  internal::Run run;
  for (std::size_t k = 0; k < ceiling_kinds; ++k)
    if (internal::entry_of(static_cast<CeilingKind>(k)) == launch.entry)
      run.kind = static_cast<CeilingKind>(k);
  for (const auto& [name, value] : module.defines)
    if (name == "UNROLL") run.way.unroll = std::stoi(value);
  run.way.block = static_cast<int>(launch.block[0]);
  run.elements = launch.grid[0] * launch.block[0];
  const bool memory = internal::is_memory(run.kind);
  run.rounds = scalar_of(launch.arguments[memory ? 2 : 1]);
  if (internal::is_random(run.kind)) {
    const unsigned width = run.kind == CeilingKind::random4    ? 4
                           : run.kind == CeilingKind::random16 ? 16
                                                               : 128;
    run.bytes = std::uint64_t{scalar_of(launch.arguments[3])} * width;
  } else if (memory) {
    run.bytes = run.elements * run.rounds * static_cast<unsigned>(run.way.unroll) * 16;
  }
  return run;
}

/// What right kernels do; `wrong` names one whose last output is off by one.
SimBehaviour kernels(std::string wrong = {}) {
  return [wrong](const CompileRequest& module, const Launch& launch) -> Status {
    if (launch.entry == "fill") return {};  // nothing here reads the memory
    const internal::Run run = run_of(module, launch);
    const bool copy = run.kind == CeilingKind::stream_copy;
    const bool memory = internal::is_memory(run.kind);
    Buffer& out = *std::get<BufferArgument>(launch.arguments[memory ? 1 : 0]).buffer;
    auto* const words = reinterpret_cast<std::uint32_t*>(sim_buffer_bytes(out));
    const std::uint64_t count = copy ? run.bytes / 4 : run.elements;
    if (count * 4 > out.size()) return fail(Code::internal, "{} writes past its output", launch.entry);
    for (std::uint64_t i = 0; i < count; ++i) words[i] = internal::expected(run, i);
    if (launch.entry == wrong || wrong == "*") ++words[count - 1];
    return {};
  };
}

SimOptions card(SimBehaviour behaviour = kernels()) {
  SimOptions options;
  options.facts.languages = {Language::cuda};
  options.facts.silicon = {"Sim", "sm_90", 4, 1u << 30, 1000};
  options.timing.noise = 0;
  options.timing.first_launch_slow = 0;
  options.behaviour = std::move(behaviour);
  return options;
}

CeilingOptions small() {
  CeilingOptions options;
  options.sizes = {64 * kKiB, 256 * kKiB};
  options.launch_ms = 0.2;  // a launch of the simulated card takes 0.25
  options.windows = 1;
  options.repeats = 2;
  options.elements = 2048;
  return options;
}

Result<Ceilings> measure(SimOptions card_options, const CeilingOptions& options = small()) {
  const auto clock = std::make_shared<FakeClock>();
  const auto driver = make_sim_driver({std::move(card_options)}, clock);
  auto device = driver->open(0);
  EXPECT_TRUE(device) << device.error().text();
  CeilingOptions with_clock = options;
  with_clock.clock = clock.get();
  return measure_ceilings(**device, with_clock);
}

std::size_t count(const Ceilings& ceilings, CeilingKind kind) {
  return static_cast<std::size_t>(std::ranges::count(ceilings.rates, kind, &CeilingRate::kind));
}

TEST(MeasureCeilings, GivesEveryKindAtEverySize) {
  std::vector<std::size_t> done;
  CeilingOptions options = small();
  options.progress = [&](const CeilingProgress& progress) {
    EXPECT_EQ(progress.total, 15u);
    EXPECT_FALSE(progress.doing.empty());
    done.push_back(progress.done);
  };
  const auto ceilings = measure(card(), options);
  ASSERT_TRUE(ceilings) << ceilings.error().text();
  EXPECT_TRUE(ceilings->left_out.empty());
  for (std::size_t k = 0; k < ceiling_kinds; ++k) {
    const auto kind = static_cast<CeilingKind>(k);
    EXPECT_EQ(count(*ceilings, kind), internal::is_memory(kind) ? 2u : 1u) << ceiling_name(kind);
  }
  // By the simulated card's clock every launch takes 0.25 ms, whatever it does.
  EXPECT_NEAR(*ceilings->rate(CeilingKind::stream_read, 256 * kKiB), 256 * 1024 / 0.25e-3, 1);
  EXPECT_NEAR(*ceilings->rate(CeilingKind::stream_copy, 64 * kKiB), 2 * 64 * 1024 / 0.25e-3, 1);
  EXPECT_NEAR(*ceilings->rate(CeilingKind::random4, 64 * kKiB), 2048 * 16 / 0.25e-3, 1) << "unroll 16 wins";
  EXPECT_NEAR(*ceilings->rate(CeilingKind::random128, 64 * kKiB), 2048 / 8 * 16 / 0.25e-3, 1);
  EXPECT_NEAR(*ceilings->rate(CeilingKind::integer), 2048 * 8 * 16 * 2 / 0.25e-3, 1);
  EXPECT_NEAR(*ceilings->rate(CeilingKind::matrix_f16), 2048 / 32 * 8 * 4096 / 0.25e-3, 1);
  EXPECT_EQ(ceilings->language, "cuda");
  EXPECT_GT(ceilings->took_s, 0);
  ASSERT_EQ(done.size(), 15u);
  EXPECT_TRUE(std::ranges::is_sorted(done));
}

TEST(MeasureCeilings, MakesShortLaunchesLonger) {
  CeilingOptions options = small();
  options.launch_ms = 5;
  options.max_rounds = 7;
  const auto ceilings = measure(card(), options);
  ASSERT_TRUE(ceilings) << ceilings.error().text();
  EXPECT_NEAR(*ceilings->rate(CeilingKind::random16, 64 * kKiB), 7 * 2048 * 16 / 0.25e-3, 1);
}

TEST(MeasureCeilings, LeavesOutAKernelThatIsWrong) {
  for (const CeilingKind wrong :
       {CeilingKind::stream_read, CeilingKind::stream_copy, CeilingKind::random4, CeilingKind::random16,
        CeilingKind::random128, CeilingKind::integer, CeilingKind::floating, CeilingKind::matrix_i8}) {
    const auto ceilings = measure(card(kernels(internal::entry_of(wrong))));
    ASSERT_TRUE(ceilings) << ceilings.error().text();
    EXPECT_EQ(count(*ceilings, wrong), 0u);
    ASSERT_EQ(ceilings->left_out.size(), 1u) << ceiling_name(wrong);
    EXPECT_EQ(ceilings->left_out[0].kind, wrong);
    EXPECT_THAT(ceilings->left_out[0].why, HasSubstr(internal::entry_of(wrong)));
    EXPECT_FALSE(ceilings->rate(wrong, 64 * kKiB));
  }
}

TEST(MeasureCeilings, FailsWhereEveryKernelIsWrong) {
  const auto ceilings = measure(card(kernels("*")));
  ASSERT_FALSE(ceilings);
  EXPECT_EQ(ceilings.error().code(), Code::mismatch);
}

TEST(MeasureCeilings, HasNoMatrixRatesWhereThereAreNone) {
  SimOptions old = card();
  old.facts.silicon.arch = "sm_75";
  const auto ceilings = measure(std::move(old));
  ASSERT_TRUE(ceilings) << ceilings.error().text();
  EXPECT_EQ(count(*ceilings, CeilingKind::matrix_f16), 0u);
  EXPECT_EQ(count(*ceilings, CeilingKind::floating), 1u);
}

TEST(MeasureCeilings, TakesTheSizesThatFit) {
  SimOptions little = card();
  little.memory_bytes = 150 * kKiB;
  const auto ceilings = measure(std::move(little));
  ASSERT_TRUE(ceilings) << ceilings.error().text();
  EXPECT_EQ(count(*ceilings, CeilingKind::random4), 1u);
  EXPECT_EQ(count(*ceilings, CeilingKind::stream_copy), 1u);
  SimOptions less = card();
  less.memory_bytes = 100 * kKiB;
  const auto uncopied = measure(std::move(less));
  ASSERT_TRUE(uncopied) << uncopied.error().text();
  EXPECT_EQ(count(*uncopied, CeilingKind::stream_copy), 0u);
  SimOptions least = card();
  least.memory_bytes = 10 * kKiB;
  const auto none = measure(std::move(least));
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code(), Code::exhausted);
}

TEST(MeasureCeilings, RefusesWhatCannotBeMeasured) {
  CeilingOptions odd = small();
  odd.sizes = {100 * kKiB};
  EXPECT_EQ(measure(card(), odd).error().code(), Code::invalid);
  SimOptions apple = card();
  apple.facts.languages = {Language::metal};
  EXPECT_EQ(measure(std::move(apple)).error().code(), Code::unavailable);
  std::stop_source source;
  source.request_stop();
  CeilingOptions stopped = small();
  stopped.stop = source.get_token();
  EXPECT_EQ(measure(card(), stopped).error().code(), Code::timeout);
  SimOptions lost = card();
  lost.faults = {{.variant = "*", .fault = SimFault::device_lost, .after_launches = 9}};
  EXPECT_EQ(measure(std::move(lost)).error().code(), Code::unavailable);
}

// --- between the sizes

Ceilings some(std::vector<std::pair<std::uint64_t, double>> rates) {
  Ceilings ceilings{.backend = "sim", .label = "Card", .silicon = "s", .driver = "1"};
  for (const auto& [bytes, rate] : rates)
    ceilings.rates.push_back({CeilingKind::random4, bytes, rate, 2, "unroll 8, block 256"});
  ceilings.rates.push_back({CeilingKind::integer, 0, 7e12, 2, "block 256"});
  return ceilings;
}

TEST(CeilingRate, LiesBetweenTheSizesAroundIt) {
  Random random(4, "ceilings");
  const Ceilings ceilings = some({{1u << 20, 80}, {1u << 24, 40}, {1u << 30, 38}});
  for (int i = 0; i < 1000; ++i) {
    const std::uint64_t bytes = (1u << 20) + random.below((1u << 30) - (1u << 20));
    const double rate = *ceilings.rate(CeilingKind::random4, bytes);
    const bool near = bytes <= 1u << 24;
    EXPECT_LE(rate, near ? 80 : 40) << bytes;
    EXPECT_GE(rate, near ? 40 : 38) << bytes;
    EXPECT_LE(*ceilings.rate(CeilingKind::random4, bytes + 4096), rate) << "it falls as the rates do";
  }
  EXPECT_DOUBLE_EQ(*ceilings.rate(CeilingKind::random4, 1u << 22), 60) << "half way of the logarithm";
}

TEST(CeilingRate, IsTheMeasuredOneAtASize) {
  const Ceilings ceilings = some({{1u << 20, 80}, {1u << 24, 40}});
  EXPECT_EQ(ceilings.rate(CeilingKind::random4, 1u << 20), 80);
  EXPECT_EQ(ceilings.rate(CeilingKind::random4, 1u << 24), 40);
  EXPECT_EQ(ceilings.rate(CeilingKind::random4, 1u << 30), 40) << "a larger memory is not faster";
  EXPECT_FALSE(ceilings.rate(CeilingKind::random4, 1u << 19)) << "a smaller one may be";
  EXPECT_FALSE(ceilings.rate(CeilingKind::random16, 1u << 20));
  EXPECT_EQ(ceilings.rate(CeilingKind::integer), 7e12);
}

// --- on disk

Facts facts_of(bool cpu) {
  Facts facts;
  facts.backend = "sim";
  facts.label = "Card";
  facts.driver = "1";
  facts.compiler = "c 1";
  facts.silicon.arch = "sm_90";
  facts.runs_on_host_cpu = cpu;
  return facts;
}

Ceilings ceilings_of(const Facts& facts) {
  Ceilings ceilings = some({{1u << 20, 81.5e9}, {1u << 24, 40.25e9}});
  ceilings.silicon = facts.silicon.hash();
  ceilings.compiler = facts.compiler;
  ceilings.language = "cuda";
  ceilings.measured = "2026-03-01T12:00:00Z";
  ceilings.took_s = 4.5;
  ceilings.left_out = {{CeilingKind::matrix_i8, "does not compile"}};
  return ceilings;
}

/// A cache in memory, and what the log said.
struct Cached : ::testing::Test {
  Cached() {
    before = set_log_sink([this](LogLevel, std::string_view line) { log += line; }, LogLevel::warning);
    EXPECT_TRUE(cache_ceilings("cache", facts, ceilings_of(facts), files));
    text = *files.read(file());
  }
  ~Cached() override { set_log_sink(before); }
  std::filesystem::path file() const { return ceilings_file("cache", facts); }
  std::optional<Ceilings> with(std::string_view bytes) {
    log.clear();
    EXPECT_TRUE(files.write_atomic(file(), bytes));
    return cached_ceilings("cache", facts, files);
  }
  Facts facts = facts_of(false);
  FakeFiles files;
  std::string text, log;
  LogSink before;
};

TEST_F(Cached, ReadsBackWhatWasMeasured) {
  EXPECT_EQ(cached_ceilings("cache", facts, files), ceilings_of(facts));
  EXPECT_EQ(log, "");
  Facts other = facts;
  other.driver = "2";
  EXPECT_EQ(cached_ceilings("cache", other, files), std::nullopt) << "another driver";
  EXPECT_EQ(log, "") << "nothing is wrong with it";
}

TEST_F(Cached, ATornFileIsNone) {
  for (std::size_t length = 0; length + 1 < text.size(); length += 29) {
    EXPECT_EQ(with(text.substr(0, length)), std::nullopt) << length;
    EXPECT_THAT(log, HasSubstr(file().string()));
  }
  EXPECT_NE(with(text), std::nullopt);
}

TEST_F(Cached, AFileOfAnotherVersionOrDeviceIsNone) {
  EXPECT_EQ(with(replace_all(text, "\"schema\": 1", "\"schema\": 2")), std::nullopt);
  EXPECT_THAT(log, HasSubstr("found schema 2, expected 1"));
  EXPECT_EQ(with(replace_all(text, facts.silicon.hash(), "0123456789abcdef")), std::nullopt);
  EXPECT_THAT(log, HasSubstr("another device"));
  EXPECT_EQ(with(replace_all(text, "\"ceilings\"", "\"race\"")), std::nullopt);
  EXPECT_EQ(with(replace_all(text, "\"random4\"", "\"random5\"")), std::nullopt);
  EXPECT_THAT(log, HasSubstr("random5"));
  EXPECT_EQ(with(replace_all(text, "81500000000.0", "-1")), std::nullopt);
  EXPECT_EQ(with("[]"), std::nullopt);
}

TEST_F(Cached, AFolderThatCannotBeWrittenIsAnError) {
  files.fault = [](std::string_view operation, const std::filesystem::path& path) -> Status {
    if (operation == "write") return fail(Code::denied, "{}: read-only", path.string());
    return {};
  };
  const Status kept = cache_ceilings("cache", facts, ceilings_of(facts), files);
  ASSERT_FALSE(kept);
  EXPECT_EQ(kept.error().code(), Code::denied);
  files.fault = [](std::string_view, const std::filesystem::path& path) -> Status {
    return fail(Code::denied, "{}: no permission", path.string());
  };
  EXPECT_EQ(cached_ceilings("cache", facts, files), std::nullopt);
  EXPECT_THAT(log, HasSubstr("no permission"));
}

TEST(CeilingsFile, IsOfACardAndItsDriver) {
  const auto name = [](const Facts& facts) { return ceilings_file("c", facts); };
  Facts one = facts_of(false), other = one;
  other.compiler = "c 2";
  other.label = "Renamed_Card";
  other.index = 3;
  EXPECT_EQ(name(one), name(other));
  other.driver = "2";
  EXPECT_NE(name(one), name(other));
  other = one;
  other.silicon.multiprocessors = 7;
  EXPECT_NE(name(one), name(other));
  one = other = facts_of(true);
  other.compiler = "c 2";
  EXPECT_NE(name(one), name(other)) << "a CPU's rates are its compiler's too";
}

}  // namespace
}  // namespace furlong::device
