// Races of real kernels on the host device, with real trial processes: this program started again.
#ifndef FURLONG_WITHOUT_DEVICE_HOST
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <iostream>

#include "furlong/device/host/host.h"
#include "furlong/race/internal/testing.h"
#include "furlong/race/trial.h"

namespace furlong::race {
namespace {

using testing::variant;
using testing::winner_of;

constexpr const char* kChild = "FURLONG_TEST_TRIAL_CHILD";

/// Compiled kernels go to a folder of these tests, which the trial children share, and not to the user's
/// cache.
class OwnCache : public ::testing::Environment {
 public:
  void SetUp() override {
    if (std::getenv(kChild) != nullptr) return;  // the parent's
    folder_.emplace(TemporaryFolder::make("race-test-cache").value());
    setenv("FURLONG_CACHE_DIR", folder_->path().c_str(), 1);
  }
  void TearDown() override { folder_.reset(); }

 private:
  std::optional<TemporaryFolder> folder_;
};
const auto* const kOwnCache = ::testing::AddGlobalTestEnvironment(new OwnCache);

// What CRIME says happens in u8: only the variant with UNROLL == 8 is bad.
std::string kernel(std::string_view crime) {
  std::string text(testing::mix_text);
  const std::string_view body = "y[i] = 3 * x[i] + (uint32_t)i + 0 * UNROLL;";
  text.replace(text.find(body), body.size(),
               std::string(body) + "\n  if (UNROLL == 8) { " + std::string(crime) + " }");
  return text;
}

struct Bench {
  explicit Bench(std::string_view text) : driver(device::make_host_driver()) {
    program = testing::parse(text);
    auto opened = driver->open(0);
    if (!opened) {
      why_not = opened.error().text();
      return;
    }
    device = *std::move(opened);
    instance.emplace(program::Instance::make(program, "host", {}, {}).value());
    context.device = context.host = device.get();
    context.clock = &system_clock();
    options.budget_s = 60;
    options.window_ms = 1;
    options.trial_timeout_s = 2;
    options.rules.threshold = 10;  // on a busy machine anything may be fast: no winner is wanted here
  }
  Result<Outcome> race(const std::string& variants) {
    return run(*instance, instance->select(variants).value(), options, context);
  }
  void use_trials(std::string_view text) {
    context.trial_command = {"/usr/bin/env", std::string(kChild) + "=1", own_executable().value().string()};
    context.trial_program_json = text;
  }
  std::unique_ptr<device::Driver> driver;
  std::string why_not;
  std::shared_ptr<const program::Program> program;
  std::unique_ptr<device::Device> device;
  std::optional<program::Instance> instance;
  Options options;
  Context context;
};

/// In the child: the protocol on standard input and output, then the end. Other programs' tests never see it.
class ServeWhenAsked : public ::testing::Environment {
 public:
  void SetUp() override {
    if (std::getenv(kChild) == nullptr) return;
    TrialServer server;
    server.read_line = []() -> std::optional<std::string> {
      std::string line;
      if (!std::getline(std::cin, line)) return std::nullopt;
      return line;
    };
    server.write_line = [](std::string_view line) -> Status {
      std::cout << line << std::endl;
      return {};
    };
    server.open = [](const std::string& text, const std::string&) -> Result<TrialSubject> {
      FakeFiles files;
      FURLONG_TRY(auto program, program::parse_program(text, "mix.toml", "/nowhere", files));
      FURLONG_TRY(auto instance, program::Instance::make(program, "host", {}, {}));
      auto driver = device::make_host_driver();
      FURLONG_TRY(auto device, driver->open(0));
      return TrialSubject{std::make_shared<program::Instance>(std::move(instance)), std::move(device)};
    };
    const Status served = serve_trial(server);
    _exit(served ? 0 : 1);
  }
};
const auto* const kServe = ::testing::AddGlobalTestEnvironment(new ServeWhenAsked);

#define OPEN_OR_SKIP(bench) \
  if (!(bench).device) GTEST_SKIP() << (bench).why_not

TEST(HostRace, RunsRealKernels) {
  Bench bench(testing::mix_text);
  OPEN_OR_SKIP(bench);
  const auto raced = bench.race("u2,c64");
  ASSERT_TRUE(raced) << raced.error().text();
  EXPECT_EQ(winner_of(*raced), "base");
  EXPECT_TRUE(variant(*raced, "u2").gated || !variant(*raced, "u2").same_code_as.empty())
      << variant(*raced, "u2").why;
  EXPECT_TRUE(raced->variants[0].rate);
  EXPECT_FALSE(raced->heats.empty());
}

TEST(HostRace, CatchesAWriteOutOfBounds) {
  Bench bench(kernel("y[n] = 7;"));
  OPEN_OR_SKIP(bench);
  const auto raced = bench.race("u8");
  ASSERT_TRUE(raced) << raced.error().text();
  EXPECT_EQ(variant(*raced, "u8").exit, Exit::gate);
  EXPECT_NE(variant(*raced, "u8").why.find("past the end of 'y'"), std::string::npos)
      << variant(*raced, "u8").why;
}

void use_host_reference(program::Program& program, std::string function, std::filesystem::path file,
                        std::string source) {
  program.check.reference = program::ReferenceKind::host;
  program.check.function = std::move(function);
  program.check.file = std::move(file);
  program.check.host_source = std::move(source);
}

TEST(HostRace, UsesAHostFunctionAsReference) {
  auto program = std::make_shared<program::Program>(*testing::parse(kernel("y[n - 1] ^= 1;")));
  use_host_reference(
      *program, "reference", "reference.cpp",
      "extern \"C\" void reference(const furlong_block&, const uint32_t* x, uint32_t* y, uint32_t n) {\n"
      "  for (uint32_t i = 0; i < n; ++i) y[i] = x[i] + x[i] + x[i] + i;\n}\n");
  Bench bench(testing::mix_text);
  OPEN_OR_SKIP(bench);
  bench.program = program;
  bench.instance.emplace(program::Instance::make(program, "host", {}, {}).value());
  const auto raced = bench.race("u8");
  ASSERT_TRUE(raced) << raced.error().text();
  EXPECT_NE(raced->reference.find("host function 'reference' of reference.cpp"), std::string::npos)
      << raced->reference;
  EXPECT_EQ(variant(*raced, "u8").exit, Exit::gate);
  program->check.host_source = "nonsense";
  const auto broken = bench.race("u8");
  ASSERT_FALSE(broken);
  EXPECT_NE(broken.error().text().find("compiling the reference"), std::string::npos)
      << broken.error().text();
}

TEST(HostRace, AHostReferenceIncludesWhatLiesBesideIt) {
  const auto folder = TemporaryFolder::make("reference").value();
  ASSERT_TRUE(system_files().write_atomic(folder.path() / "factor.h", "#define FACTOR 3\n"));
  auto program = std::make_shared<program::Program>(*testing::parse(kernel("y[n - 1] ^= 1;")));
  use_host_reference(
      *program, "reference", folder.path() / "reference.cpp",
      "#include \"factor.h\"\n"
      "extern \"C\" void reference(const furlong_block&, const uint32_t* x, uint32_t* y, uint32_t n) {\n"
      "  for (uint32_t i = 0; i < n; ++i) y[i] = FACTOR * x[i] + i;\n}\n");
  Bench bench(testing::mix_text);
  OPEN_OR_SKIP(bench);
  bench.program = program;
  bench.instance.emplace(program::Instance::make(program, "host", {}, {}).value());
  const auto raced = bench.race("u8");
  ASSERT_TRUE(raced) << raced.error().text();
  EXPECT_EQ(variant(*raced, "u8").exit, Exit::gate);
}

TEST(HostRace, UsesALibraryAsReference) {
  const auto folder = TemporaryFolder::make("library").value();
  const auto source = folder.path() / "reference.c", library = folder.path() / "reference.so";
  ASSERT_TRUE(system_files().write_atomic(
      source,
      "#include <stddef.h>\n#include <stdint.h>\n#ifdef REBUILT\nint rebuilt = 1;\n#endif\n"
      "void reference(void** arguments, size_t count) {\n"
      "  const uint32_t* x = arguments[0]; uint32_t* y = arguments[1]; const uint32_t n = "
      "*(uint32_t*)arguments[2];\n"
      "  for (uint32_t i = 0; count == 3 && i < n; ++i) y[i] = 3u * x[i] + i;\n}\n"));
  ProcessRequest compiler;
  compiler.argv = {"cc", "-shared", "-fPIC", "-o", library.string(), source.string()};
  const auto built = system_processes().run(compiler, 60);
  if (!built) GTEST_SKIP() << built.error().text();
  ASSERT_EQ(built->exit_code, 0) << built->standard_error;
  auto program = std::make_shared<program::Program>(*testing::parse(kernel("y[n / 2] ^= 1;")));
  program->check.reference = program::ReferenceKind::library;
  program->check.function = "reference";
  program->check.file = library;
  Bench bench(testing::mix_text);
  OPEN_OR_SKIP(bench);
  bench.program = program;
  bench.instance.emplace(program::Instance::make(program, "host", {}, {}).value());
  const auto raced = bench.race("u8");
  ASSERT_TRUE(raced) << raced.error().text();
  EXPECT_NE(raced->reference.find("library function 'reference' of reference.so"), std::string::npos)
      << raced->reference;
  EXPECT_EQ(variant(*raced, "u8").exit, Exit::gate);
  // Rebuilt, the library is another check: what the old one refused is asked again.
  auto quarantine = Quarantine::open(folder.path() / "q.sqlite").value();
  bench.context.quarantine = &quarantine;
  for (const Exit exit : {Exit::gate, Exit::quarantined, Exit::gate}) {
    const auto again = bench.race("u8");
    ASSERT_TRUE(again) << again.error().text();
    EXPECT_EQ(variant(*again, "u8").exit, exit) << variant(*again, "u8").why;
    if (exit != Exit::quarantined) continue;
    ProcessRequest rebuild = compiler;
    rebuild.argv.insert(rebuild.argv.begin() + 1, "-DREBUILT");
    const auto rebuilt = system_processes().run(rebuild, 60);
    ASSERT_TRUE(rebuilt) << rebuilt.error().text();
    ASSERT_EQ(rebuilt->exit_code, 0) << rebuilt->standard_error;
  }
  program->check.function = "nothing";
  const auto broken = bench.race("u8");
  ASSERT_FALSE(broken);
  EXPECT_NE(broken.error().text().find("has no function 'nothing'"), std::string::npos)
      << broken.error().text();
}

TEST(HostTrial, PassesGoodVariants) {
  Bench bench(testing::mix_text);
  OPEN_OR_SKIP(bench);
  bench.use_trials(testing::mix_text);
  const auto raced = bench.race("u2");
  ASSERT_TRUE(raced) << raced.error().text();
  EXPECT_TRUE(raced->notes.empty()) << raced->notes[0];
  EXPECT_GT(raced->trial_ms, 0);
  EXPECT_NE(variant(*raced, "u2").exit, Exit::trial) << variant(*raced, "u2").why;
}

TEST(HostTrial, SurvivesAKernelThatTraps) {
  const std::string text = kernel("*(volatile int*)8 = 1;");
  Bench bench(text);
  OPEN_OR_SKIP(bench);
  bench.use_trials(text);
  const auto raced = bench.race("u8");
  ASSERT_TRUE(raced) << raced.error().text();
  EXPECT_EQ(variant(*raced, "u8").exit, Exit::trial);
  EXPECT_TRUE(variant(*raced, "u8").why.starts_with("trap: ")) << variant(*raced, "u8").why;
  EXPECT_TRUE(raced->variants[0].rate);
}

TEST(HostTrial, SurvivesAKernelThatHangs) {
  const std::string text = kernel("for (volatile int stay = 1; stay;) {}");
  Bench bench(text);
  OPEN_OR_SKIP(bench);
  bench.use_trials(text);
  const auto raced = bench.race("u8");
  ASSERT_TRUE(raced) << raced.error().text();
  EXPECT_EQ(variant(*raced, "u8").exit, Exit::trial);
  EXPECT_TRUE(variant(*raced, "u8").why.starts_with("hang: ")) << variant(*raced, "u8").why;
}

constexpr int kNoHost = 77;

/// The end of a guarded race of `text`, in which `change` may change the program. All of it, the device's
/// threads among it, begins in the guarded process.
GuardEnd guarded_race(std::string_view text, double limit_s = 60,
                      const std::function<void(program::Program&)>& change = {}) {
  const auto end = run_guarded([&](Hand& hand) {
    Bench bench(text);
    if (!bench.device) return kNoHost;
    auto program = std::make_shared<program::Program>(*bench.program);
    if (change) change(*program);
    bench.instance.emplace(program::Instance::make(program, "host", {}, {}).value());
    bench.context.hand = &hand;
    bench.context.hand_limit_s = limit_s;
    static_cast<void>(bench.race("u2,u8"));
    return 0;
  });
  EXPECT_TRUE(end) << end.error().text();
  return end ? *end : GuardEnd{};
}

#define SKIP_WITHOUT_HOST(end) \
  if ((end).finished && (end).code == kNoHost) GTEST_SKIP() << "no host device"

TEST(HostRace, AGuardNamesTheVariantThatEndsTheProcess) {
  // In the gate's runs all is well: 14 blocks and more each.
  const std::string_view late = "static int runs; if (++runs > 500) ";
  for (const std::string_view crime : {"__builtin_trap();", "__builtin_abort();", "_exit(0);", "exit(0);"}) {
    std::string text = kernel(std::string(late) + std::string(crime));
    text.replace(text.find("extern \"C\""), 0, "#include <cstdlib>\n#include <unistd.h>\n");
    const GuardEnd end = guarded_race(text);
    SKIP_WITHOUT_HOST(end);
    EXPECT_FALSE(end.finished) << crime;
    EXPECT_TRUE(end.by_itself()) << crime << ": " << end.text();
    EXPECT_EQ(end.kind, static_cast<std::uint32_t>(Holding::variant)) << crime;
    EXPECT_EQ(end.name, "u8") << crime;
  }
}

TEST(HostRace, AGuardEndsAVariantThatHangsLate) {
  const GuardEnd end =
      guarded_race(kernel("static int runs; if (++runs > 500) for (;;) asm volatile(\"\");"), 1);
  SKIP_WITHOUT_HOST(end);
  EXPECT_TRUE(end.hung);
  EXPECT_EQ(end.name, "u8");
}

TEST(HostRace, AGuardNamesTheReferenceThatEndsTheProcess) {
  for (const std::string_view crime : {"__builtin_trap();", "_exit(0);"}) {
    const GuardEnd end = guarded_race(testing::mix_text, 60, [&](program::Program& program) {
      use_host_reference(
          program, "ref", "ref.cpp",
          fmt::format(
              "#include <unistd.h>\n"
              "extern \"C\" void ref(const furlong_block&, const uint32_t*, uint32_t*, uint32_t) {{ {} }}\n",
              crime));
    });
    SKIP_WITHOUT_HOST(end);
    EXPECT_TRUE(end.by_itself()) << crime << ": " << end.text();
    EXPECT_EQ(end.kind, static_cast<std::uint32_t>(Holding::reference));
    EXPECT_EQ(end.name, "host function 'ref' of ref.cpp");
  }
}

}  // namespace
}  // namespace furlong::race
#endif
