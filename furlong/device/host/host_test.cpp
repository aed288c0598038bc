#include "furlong/device/host/host.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <numeric>
#include <thread>

#include "furlong/base/os/file.h"
#include "furlong/base/random.h"
#include "furlong/device/conformance/gtest.h"
#include "furlong/device/host/internal/buffer.h"
#include "furlong/device/host/internal/compiler.h"
#include "furlong/device/host/internal/cpu.h"
#include "furlong/device/host/internal/elf.h"
#include "furlong/device/host/internal/pool.h"

namespace furlong::device {

FURLONG_CONFORMANCE(host, make_host_driver());

namespace {

// No test may touch the user's own cache. This one is shared by all test programs, each of which runs one
// test.
const std::string kTestCache =
    (std::filesystem::temp_directory_path() / fmt::format("furlong-host-tests-{}", getuid())).string();
const int kTestCacheChosen = setenv("FURLONG_CACHE_DIR", kTestCache.c_str(), 1);

using ::testing::HasSubstr;

template <class T>
Bytes scalar(T value) {
  Bytes bytes(sizeof(T));
  store_le(bytes.data(), value);
  return bytes;
}

template <class T>
ByteView view(const std::vector<T>& values) {
  return {reinterpret_cast<const std::uint8_t*>(values.data()), values.size() * sizeof(T)};
}

template <class T>
std::vector<T> contents(Buffer& buffer) {
  std::vector<T> values(buffer.size() / sizeof(T));
  EXPECT_TRUE(buffer.read(0, {reinterpret_cast<std::uint8_t*>(values.data()), values.size() * sizeof(T)}));
  return values;
}

constexpr const char* kSaxpy = R"(
extern "C" void saxpy(const furlong_block& block, float a, const float* x, float* y, unsigned n) {
  for (unsigned t = 0; t < block.threads_x; ++t) {
    const unsigned long long i = block.x * block.threads_x + t;
    if (i < n) y[i] = a * x[i] + y[i];
  }
}
)";

// A cache of its own, so that every test decides what is cached.
class HostTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto folder = TemporaryFolder::make("furlong-host-test");
    ASSERT_TRUE(folder) << folder.error().text();
    folder_.emplace(std::move(*folder));
    setenv("FURLONG_CACHE_DIR", folder_->path().c_str(), 1);
    driver_ = make_host_driver();
    auto device = driver_->open(0);
    if (!device && device.error().code() == Code::unavailable) GTEST_SKIP() << device.error().text();
    ASSERT_TRUE(device) << device.error().text();
    device_ = std::move(*device);
  }
  void TearDown() override { setenv("FURLONG_CACHE_DIR", kTestCache.c_str(), 1); }

  static CompileRequest request(std::string source, std::string entry) {
    CompileRequest made;
    made.name = "test";
    made.source = std::move(source);
    made.source_name = "mine.cpp";
    made.entries = {std::move(entry)};
    return made;
  }
  std::shared_ptr<Module> must_compile(const CompileRequest& made) {
    auto module = device_->compile(made);
    EXPECT_TRUE(module) << module.error().text();
    return module ? *module : nullptr;
  }
  std::unique_ptr<Buffer> must_allocate(std::size_t bytes) {
    auto buffer = device_->allocate(bytes);
    EXPECT_TRUE(buffer) << buffer.error().text();
    return buffer ? std::move(*buffer) : nullptr;
  }
  std::string launch_error(const Launch& launch) {
    const Status status = device_->launch(launch);
    if (status) return "no error";
    EXPECT_EQ(status.error().code(), Code::invalid);
    return status.error().text();
  }
  std::filesystem::path cached_object() const {
    for (const auto& entry : std::filesystem::directory_iterator(folder_->path() / "host")) {
      if (entry.path().extension() == ".so") return entry.path();
    }
    return {};
  }

  std::optional<TemporaryFolder> folder_;
  std::unique_ptr<Driver> driver_;
  std::unique_ptr<Device> device_;
};

TEST_F(HostTest, FactsDescribeTheProcessor) {
  const Facts& facts = device_->facts();
  EXPECT_EQ(facts.address(), "host:0");
  EXPECT_FALSE(facts.label.empty());
  EXPECT_EQ(facts.label.find(' '), std::string::npos);
  EXPECT_GE(facts.silicon.multiprocessors, 1);
  EXPECT_TRUE(facts.runs_on_host_cpu);
  EXPECT_EQ(facts.languages, std::vector<Language>{Language::host});
  EXPECT_FALSE(facts.compiler.empty());
  EXPECT_EQ(facts.silicon.memory_bytes % (1u << 30), 0u);
}

TEST_F(HostTest, RunsAGridOverEveryElement) {
  const unsigned n = 1000;
  std::vector<float> x(n), y(n);
  std::iota(x.begin(), x.end(), 0.0f);
  std::iota(y.begin(), y.end(), 5.0f);
  auto module = must_compile(request(kSaxpy, "saxpy"));
  auto bx = must_allocate(n * 4);
  auto by = must_allocate(n * 4);
  ASSERT_TRUE(bx->write(0, view(x)));
  ASSERT_TRUE(by->write(0, view(y)));
  const Launch launch{
      module.get(), "saxpy", {16, 1, 1},
      {64, 1, 1},   0,       {scalar(2.0f), BufferArgument{bx.get()}, BufferArgument{by.get()}, scalar(n)}};
  const Status ran = device_->launch(launch);
  ASSERT_TRUE(ran) << ran.error().text();
  const std::vector<float> out = contents<float>(*by);
  for (unsigned i = 0; i < n; ++i) ASSERT_EQ(out[i], 2.0f * x[i] + y[i]) << i;
}

TEST_F(HostTest, GivesEveryBlockItsPlaceInThreeDimensions) {
  auto module = must_compile(request(R"(
void place(const furlong_block& b, uint32_t* out) {
  const auto i = b.x + b.grid_x * (b.y + b.grid_y * b.z);
  out[i] = (uint32_t)(b.x + 100 * b.y + 10000 * b.z) + (b.threads_x * b.threads_y * b.threads_z << 24);
})",
                                     "place"));
  auto out = must_allocate(5 * 7 * 3 * 4);
  const Launch launch{module.get(), "place", {5, 7, 3}, {2, 3, 4}, 0, {BufferArgument{out.get()}}};
  ASSERT_TRUE(device_->launch(launch));
  const auto values = contents<std::uint32_t>(*out);
  for (unsigned z = 0; z < 3; ++z) {
    for (unsigned y = 0; y < 7; ++y) {
      for (unsigned x = 0; x < 5; ++x) {
        ASSERT_EQ(values[x + 5 * (y + 7 * z)], x + 100 * y + 10000 * z + (24u << 24));
      }
    }
  }
}

TEST_F(HostTest, GivesScratchMemoryToEveryBlock) {
  auto module = must_compile(request(R"(
void sum(const furlong_block& b, const int* in, int* out, int n) {
  int* mine = static_cast<int*>(b.shared);
  for (int i = 0; i < n; ++i) mine[i] = in[b.x * n + i];
  int total = reinterpret_cast<uintptr_t>(mine) % 64 == 0 ? 0 : 1000000;
  for (int i = 0; i < n; ++i) total += mine[i];
  out[b.x] = total + (b.shared_bytes == 400 ? 0 : 1000000);
})",
                                     "sum"));
  std::vector<int> in(100 * 50);
  std::iota(in.begin(), in.end(), 0);
  auto bin = must_allocate(in.size() * 4);
  auto out = must_allocate(50 * 4);
  ASSERT_TRUE(bin->write(0, view(in)));
  const Launch launch{module.get(), "sum",
                      {50, 1, 1},   {1, 1, 1},
                      400,          {BufferArgument{bin.get()}, BufferArgument{out.get()}, scalar(100)}};
  ASSERT_TRUE(device_->launch(launch));
  const auto sums = contents<int>(*out);
  for (int i = 0; i < 50; ++i) ASSERT_EQ(sums[static_cast<std::size_t>(i)], 100 * 100 * i + 4950);
}

TEST_F(HostTest, TakesTemplatesNoexceptAndStaticKernelsAsEntries) {
  CompileRequest made = request(R"(
template <int N> void add(const furlong_block&, int* out) { out[0] += N; }
static void twice(const furlong_block&, int* out) noexcept { out[0] *= 2; }
namespace deep { void nothing(const furlong_block&) {} }
)",
                                "add<3>");
  made.entries = {"add<3>", "twice", "add<40>", "deep::nothing"};
  auto module = must_compile(made);
  ASSERT_TRUE(module);
  auto out = must_allocate(4);
  ASSERT_TRUE(out->fill(0, 0, 4));
  for (const char* entry : {"add<3>", "twice", "add<40>"}) {
    ASSERT_TRUE(device_->launch({module.get(), entry, {1, 1, 1}, {1, 1, 1}, 0, {BufferArgument{out.get()}}}));
  }
  EXPECT_EQ(contents<int>(*out)[0], 46);
  EXPECT_TRUE(device_->launch({module.get(), "deep::nothing", {1, 1, 1}, {1, 1, 1}, 0, {}}));
}

TEST_F(HostTest, CompilerMessagesShowTheUsersFileAndLine) {
  const auto failed =
      device_->compile(request("\nvoid k(const furlong_block&, int* y) {\n  y[0] = nonsense;\n}\n", "k"));
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code(), Code::invalid);
  EXPECT_THAT(failed.error().text(), HasSubstr("mine.cpp:3"));
  EXPECT_THAT(failed.error().text(), HasSubstr("nonsense"));
}

TEST_F(HostTest, AMissingEntryIsNamed) {
  const auto failed = device_->compile(request(kSaxpy, "saxpi"));
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code(), Code::invalid);
  EXPECT_THAT(failed.error().text(), HasSubstr("entry saxpi:1"));
}

TEST_F(HostTest, AKernelWithoutTheBlockOrWithReferencesIsRefused) {
  for (const char* source :
       {"void k(int* y) { y[0] = 1; }", "void k(const furlong_block&, const int& y) { (void)y; }"}) {
    const auto failed = device_->compile(request(source, "k"));
    ASSERT_FALSE(failed) << source;
    EXPECT_EQ(failed.error().code(), Code::invalid);
  }
  const auto odd = device_->compile(request(kSaxpy, "saxpy\"; int x"));
  ASSERT_FALSE(odd);
  EXPECT_THAT(odd.error().text(), HasSubstr("is not the name of a C++ function"));
}

TEST_F(HostTest, DefinesAndOptionsReachTheCompilerAndTheLaterWins) {
  CompileRequest made = request(
      "void k(const furlong_block&, int* y) { y[0] = VALUE + OTHER; y[1] = __cplusplus > 202002; }", "k");
  made.defines = {{"VALUE", "40"}};
  made.options = {"-DOTHER=2", "-std=c++23"};
  auto module = must_compile(made);
  auto out = must_allocate(8);
  ASSERT_TRUE(device_->launch({module.get(), "k", {1, 1, 1}, {1, 1, 1}, 0, {BufferArgument{out.get()}}}));
  EXPECT_EQ(contents<int>(*out), (std::vector<int>{42, 1}));
}

TEST_F(HostTest, WrongArgumentsAreRefusedWithTheNumbers) {
  auto module = must_compile(request(kSaxpy, "saxpy"));
  auto buffer = must_allocate(4096);
  const BufferArgument good{buffer.get()};
  Launch launch{module.get(), "saxpy", {1, 1, 1}, {1, 1, 1}, 0, {scalar(1.0f), good, good}};
  EXPECT_THAT(launch_error(launch), HasSubstr("takes 4 arguments, 3 given"));
  launch.arguments = {scalar(1.0), good, good, scalar(1u)};
  EXPECT_THAT(launch_error(launch), HasSubstr("argument 0 has 8 bytes, the parameter has 4"));
  launch.arguments = {scalar(1.0f), scalar(std::uint64_t{0}), good, scalar(1u)};
  EXPECT_THAT(launch_error(launch), HasSubstr("the parameter is a pointer"));
  launch.arguments = {good, good, good, scalar(1u)};
  EXPECT_THAT(launch_error(launch), HasSubstr("the parameter is a value of 4 bytes"));
  launch.arguments = {scalar(1.0f), BufferArgument{buffer.get(), 100}, good, scalar(1u)};
  EXPECT_THAT(launch_error(launch), HasSubstr("multiples of 256"));
  launch.arguments = {scalar(1.0f), good, good, scalar(0u)};
  launch.entry = "saxpi";
  EXPECT_THAT(launch_error(launch), HasSubstr("did you mean 'saxpy'"));
  launch.entry = "saxpy";
  launch.block = {64, 32, 1};
  EXPECT_THAT(launch_error(launch), HasSubstr("2048 threads, at most 1024"));
  launch.block = {0, 1, 1};
  EXPECT_THAT(launch_error(launch), HasSubstr("empty side"));
  launch.block = {1, 1, 1};
  launch.grid = {1ull << 40, 1ull << 40, 1};
  EXPECT_THAT(launch_error(launch), HasSubstr("too large"));
}

TEST_F(HostTest, BuffersOfAnotherDeviceAreRefused) {
  auto other = driver_->open(0);
  ASSERT_TRUE(other);
  auto foreign = (*other)->allocate(4096);
  ASSERT_TRUE(foreign);
  auto module = must_compile(request("void k(const furlong_block&, int* y) { y[0] = 1; }", "k"));
  const Launch launch{module.get(), "k", {1, 1, 1}, {1, 1, 1}, 0, {BufferArgument{foreign->get()}}};
  EXPECT_THAT(launch_error(launch), HasSubstr("another device"));
}

TEST_F(HostTest, AnExceptionInAKernelIsAnError) {
  auto module = must_compile(request("void k(const furlong_block& b) { if (b.x == 7) throw 1; }", "k"));
  const Status status = device_->launch({module.get(), "k", {100, 1, 1}, {1, 1, 1}, 0, {}});
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code(), Code::internal);
  EXPECT_THAT(status.error().text(), HasSubstr("threw"));
}

TEST_F(HostTest, TheSecondCompileComesFromTheCache) {
  auto first = must_compile(request(kSaxpy, "saxpy"));
  auto second = must_compile(request(kSaxpy, "saxpy"));
  ASSERT_TRUE(first && second);
  EXPECT_FALSE(first->facts().from_cache);
  EXPECT_TRUE(second->facts().from_cache);
  EXPECT_EQ(first->facts().code_hash, second->facts().code_hash);
  CompileRequest other = request(kSaxpy, "saxpy");
  other.options = {"-O1"};
  EXPECT_FALSE(must_compile(other)->facts().from_cache);
}

TEST_F(HostTest, WarningsAreKeptWithTheCachedObject) {
  CompileRequest made = request("void k(const furlong_block&) { int unused; }", "k");
  made.options = {"-Wall"};
  EXPECT_THAT(must_compile(made)->facts().log, HasSubstr("unused"));
  const auto cached = must_compile(made);
  EXPECT_TRUE(cached->facts().from_cache);
  EXPECT_THAT(cached->facts().log, HasSubstr("unused"));
}

TEST_F(HostTest, ADamagedCacheEntryIsCompiledAnew) {
  must_compile(request(kSaxpy, "saxpy"));
  const auto object = cached_object();
  ASSERT_FALSE(object.empty());
  for (const std::string& damage :
       {std::string(), std::string("\177ELF and nothing more"), std::string(5000, '\0')}) {
    ASSERT_TRUE(system_files().write_atomic(object, damage));
    auto again = must_compile(request(kSaxpy, "saxpy"));
    ASSERT_TRUE(again);
    EXPECT_FALSE(again->facts().from_cache);
    EXPECT_FALSE(again->facts().code_hash.empty());
  }
}

// Most of these load, and would then crash or compute something else.
TEST_F(HostTest, OneDamagedByteAnywhereInTheCacheIsSeen) {
  must_compile(request(kSaxpy, "saxpy"));
  const auto object = cached_object();
  ASSERT_FALSE(object.empty());
  const auto log = std::filesystem::path(object).replace_extension(".log");
  const std::string whole = *system_files().read(object);
  const auto expect_anew = [&](const std::string& what) {
    auto again = must_compile(request(kSaxpy, "saxpy"));
    ASSERT_TRUE(again);
    EXPECT_FALSE(again->facts().from_cache) << what;
    EXPECT_EQ(again->facts().log, "") << what;
    EXPECT_TRUE(must_compile(request(kSaxpy, "saxpy"))->facts().from_cache) << "mended after " << what;
  };
  for (const std::size_t at : {std::size_t{5}, whole.size() / 5, whole.size() / 3, whole.size() / 2,
                               whole.size() - 70, whole.size() - 1}) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    ASSERT_TRUE(system_files().write_atomic(object, damaged));
    expect_anew(fmt::format("byte {} of {}", at, whole.size()));
  }
  ASSERT_TRUE(system_files().write_atomic(object, whole.substr(0, whole.size() - 1)));
  expect_anew("the last byte missing");
  ASSERT_TRUE(system_files().write_atomic(object, whole + "x"));
  expect_anew("a byte too many");
  ASSERT_TRUE(system_files().write_atomic(log, "a warning of something else"));
  expect_anew("another log");
  ASSERT_TRUE(system_files().remove(log));
  expect_anew("no log");
}

TEST_F(HostTest, OptionsThatMakeNoLibraryAreNamed) {
  for (const char* option : {"-fsyntax-only", "-S", "-E", "-c", "-M", "--version", "-dumpversion"}) {
    CompileRequest made = request(kSaxpy, "saxpy");
    made.options = {"-O1", option};
    const auto module = device_->compile(made);
    ASSERT_FALSE(module) << option;
    EXPECT_EQ(module.error().code(), Code::invalid) << module.error().text();
    EXPECT_THAT(module.error().text(), HasSubstr(fmt::format("options '{}'", option)));
    EXPECT_THAT(module.error().text(), HasSubstr("mine.cpp"));
    EXPECT_THAT(module.error().text(), ::testing::Not(HasSubstr(folder_->path().string())));
  }
  EXPECT_TRUE(!std::filesystem::exists(folder_->path() / "host") || cached_object().empty());
}

TEST_F(HostTest, WhatCannotBeLoadedIsABuildErrorAndNotKept) {
  for (int round = 0; round < 2; ++round) {
    const auto module = device_->compile(
        request("int absent(int);\nvoid k(const furlong_block&, int* y) { y[0] = absent(1); }", "k"));
    ASSERT_FALSE(module);
    EXPECT_EQ(module.error().code(), Code::invalid) << module.error().text();
    EXPECT_THAT(module.error().text(), HasSubstr("undefined symbol"));
    EXPECT_THAT(module.error().text(), HasSubstr("absent"));
    EXPECT_THAT(module.error().text(), HasSubstr("mine.cpp"));
    EXPECT_THAT(module.error().text(), ::testing::Not(HasSubstr(".so")));
    EXPECT_TRUE(cached_object().empty());
  }
}

TEST_F(HostTest, AFullTemporaryFolderIsNotTheKernelsFault) {
  const auto script = folder_->path() / "compiler";
  const host::Compiler compiler{{script.string()}, "of the test"};
  // The words of the compiler, the assembler, the linker and the driver (which then aborts).
  for (const char* words :
       {"/t/kernel.cpp:9:1: fatal error: error writing to /t/ccX.s: No space left on device",
        "/t/ccX.s: Fatal error: can't write 12 bytes to section .text of /t/ccX.o: 'No space left on device'",
        "/usr/bin/ld: final link failed: No space left on device",
        "Cannot create temporary file in /t/: Disk quota exceeded"}) {
    ASSERT_TRUE(system_files().write_atomic(
        script, fmt::format("#!/bin/sh\ncat >&2 <<'end'\n{}\nend\nexit 1\n", words)));
    std::filesystem::permissions(script, std::filesystem::perms::owner_all);
    const auto full =
        host::compile_unit(compiler, request(kSaxpy, "saxpy"), "", "cpu", folder_->path() / "host", {});
    ASSERT_FALSE(full);
    EXPECT_EQ(full.error().code(), Code::exhausted) << full.error().text();
    EXPECT_THAT(full.error().text(), HasSubstr(std::filesystem::temp_directory_path().string()));
    EXPECT_THAT(full.error().text(), HasSubstr("TMPDIR"));
  }
  for (const char* source :
       {"#error No space left on device\n", "static_assert(false, \"No space left on device\");\n"}) {
    const auto wrong = device_->compile(request(source, "k"));
    ASSERT_FALSE(wrong);
    EXPECT_EQ(wrong.error().code(), Code::invalid) << wrong.error().text();
  }
}

TEST_F(HostTest, TheOldestObjectsLeaveAFullCache) {
  const auto cache = folder_->path() / "full";
  for (int i = 0; i < 10; ++i) {
    for (const char* suffix : {".so", ".log"}) {
      const auto file = cache / (std::to_string(i) + suffix);
      ASSERT_TRUE(system_files().write_atomic(file, "x"));
      std::filesystem::last_write_time(file,
                                       std::filesystem::file_time_type::clock::now() - std::chrono::hours(i));
    }
  }
  host::prune_cache(cache, 10);
  EXPECT_EQ(system_files().list(cache)->size(), 20u);
  host::prune_cache(cache, 9);  // down to three quarters of it
  EXPECT_EQ(*system_files().list(cache),
            (std::vector<std::string>{"0.log", "0.so", "1.log", "1.so", "2.log", "2.so", "3.log", "3.so",
                                      "4.log", "4.so", "5.log", "5.so"}));
  host::prune_cache(folder_->path() / "absent", 1);
}

TEST_F(HostTest, WhatAKilledProcessLeftInTheCacheGoes) {
  const auto cache = folder_->path() / "left";
  const auto long_ago = std::filesystem::file_time_type::clock::now() - std::chrono::hours(2);
  for (const char* name :
       {".0123456789ab.tmp", "kept.so", "kept.log", "alone.log", ".young.tmp", "young.log"}) {
    ASSERT_TRUE(system_files().write_atomic(cache / name, "x"));
    if (std::string_view(name).find("young") == std::string_view::npos)
      std::filesystem::last_write_time(cache / name, long_ago);
  }
  host::prune_cache(cache, 10);
  EXPECT_EQ(*system_files().list(cache),
            (std::vector<std::string>{".young.tmp", "kept.log", "kept.so", "young.log"}));
}

// The driver dies with this process, the compiler proper that it started may go on.
TEST_F(HostTest, ACompilerThatIsLeftBehindEndsByItself) {
  const auto script = folder_->path() / "compiler";
  ASSERT_TRUE(system_files().write_atomic(script, "#!/bin/sh\nulimit -t\n"));
  std::filesystem::permissions(script, std::filesystem::perms::owner_all);
  setenv("FURLONG_CXX", script.c_str(), 1);
  const auto compiler = host::find_compiler();
  unsetenv("FURLONG_CXX");
  ASSERT_TRUE(compiler) << compiler.error().text();
  EXPECT_EQ(compiler->version, "1200");  // the seconds of processor time that it was given
}

TEST_F(HostTest, ACacheThatCannotBeWrittenIsNoError) {
  const auto blocked = folder_->path() / "file";
  ASSERT_TRUE(system_files().write_atomic(blocked, "not a folder"));
  setenv("FURLONG_CACHE_DIR", blocked.c_str(), 1);
  auto module = must_compile(request(kSaxpy, "saxpy"));
  ASSERT_TRUE(module);
  EXPECT_FALSE(module->facts().from_cache);
}

TEST_F(HostTest, AChangedHeaderIsSeenThroughTheCache) {
  const auto header = folder_->path() / "value.h";
  CompileRequest made =
      request("#include \"value.h\"\nvoid k(const furlong_block&, int* y) { y[0] = VALUE; }", "k");
  made.include_folders = {folder_->path()};
  auto out = must_allocate(4);
  for (int value : {1, 2, 1}) {
    ASSERT_TRUE(system_files().write_atomic(header, fmt::format("#define VALUE {}\n", value)));
    auto module = must_compile(made);
    ASSERT_TRUE(module);
    ASSERT_TRUE(device_->launch({module.get(), "k", {1, 1, 1}, {1, 1, 1}, 0, {BufferArgument{out.get()}}}));
    EXPECT_EQ(contents<int>(*out)[0], value);
  }
}

TEST_F(HostTest, AChangedHeaderIsSeenHoweverItIsIncluded) {
  const auto header = folder_->path() / "value.h";
  const std::string body = "\nvoid k(const furlong_block&, int* y) { y[0] = VALUE; }";
  std::vector<CompileRequest> ways;
  ways.push_back(request(fmt::format("#include \"{}\"{}", header.string(), body), "k"));
  ways.push_back(request(fmt::format(" # include <{}>{}", header.string(), body), "k"));
  ways.push_back(
      request(fmt::format("#define HEADER \"{}\"\n#include HEADER{}", header.string(), body), "k"));
  ways.push_back(request(fmt::format("#include <value.h>{}", body), "k"));  // by the environment below
  auto out = must_allocate(4);
  for (const CompileRequest& made : ways) {
    if (&made == &ways.back()) setenv("CPATH", folder_->path().c_str(), 1);
    for (int value : {1, 2}) {
      ASSERT_TRUE(system_files().write_atomic(header, fmt::format("#define VALUE {}\n", value)));
      auto module = must_compile(made);
      if (module == nullptr) continue;
      ASSERT_TRUE(device_->launch({module.get(), "k", {1, 1, 1}, {1, 1, 1}, 0, {BufferArgument{out.get()}}}));
      EXPECT_EQ(contents<int>(*out)[0], value) << made.source;
    }
    unsetenv("CPATH");
  }
}

TEST_F(HostTest, TheCodeHashTellsCodeFromText) {
  const auto hash = [&](const char* body) {
    auto module = must_compile(request(
        fmt::format("#include <math.h>\nvoid k(const furlong_block&, double* y) {{ {} }}", body), "k"));
    return module ? module->facts().code_hash : std::string();
  };
  const std::string sine = hash("y[0] = sin(y[1]);");
  EXPECT_FALSE(sine.empty());
  EXPECT_EQ(sine, hash("/* the same */ y[0] =   sin(y[1]);"));
  EXPECT_NE(sine, hash("y[0] = cos(y[1]);"));            // equal instructions, another symbol
  EXPECT_NE(hash("y[0] = 1.25;"), hash("y[0] = 2.5;"));  // equal instructions, another constant
}

TEST_F(HostTest, ManyThreadsCompileTheSameAndDifferentTexts) {
  std::vector<std::jthread> threads;
  std::atomic<int> good{0};
  for (int i = 0; i < 6; ++i) {
    threads.emplace_back([&, i] {
      auto module = device_->compile(
          request(fmt::format("void k(const furlong_block&, int* y) {{ y[0] = {}; }}", i % 2), "k"));
      if (module) ++good;
    });
  }
  threads.clear();
  EXPECT_EQ(good, 6);
}

TEST_F(HostTest, AStoppedCompileIsATimeout) {
  std::stop_source source;
  source.request_stop();
  const auto stopped = device_->compile(request(kSaxpy, "saxpy"), source.get_token());
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().code(), Code::timeout);
}

TEST_F(HostTest, TimesEachRepeatOfThePipeline) {
  auto module = must_compile(request(
      "void count(const furlong_block&, int* y) { __atomic_fetch_add(y, 1, __ATOMIC_RELAXED); }", "count"));
  auto out = must_allocate(4);
  auto flush = must_allocate(1 << 20);
  ASSERT_TRUE(out->fill(0, 0, 4));
  const Launch launch{module.get(), "count", {10, 1, 1}, {1, 1, 1}, 0, {BufferArgument{out.get()}}};
  const std::vector<Launch> pipeline{launch, launch};
  const auto times = device_->time({pipeline, 5, 3, flush.get()});
  ASSERT_TRUE(times) << times.error().text();
  ASSERT_EQ(times->size(), 5u);
  for (double ms : *times) EXPECT_GT(ms, 0.0);
  EXPECT_EQ(contents<int>(*out)[0], 10 * 2 * 5 * 3);
  EXPECT_FALSE(device_->time({pipeline, 1, 0, nullptr}));
}

TEST_F(HostTest, MemoryIsCountedAndLimited) {
  {
    auto buffer = must_allocate(1000);
    EXPECT_EQ(device_->memory().used_bytes, 1000u);
    device_->set_memory_limit(4096);
    EXPECT_TRUE(device_->allocate(3096));
    const auto refused = device_->allocate(3097);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code(), Code::exhausted);
    EXPECT_THAT(refused.error().text(), HasSubstr("3097"));
    EXPECT_THAT(refused.error().text(), HasSubstr("3096"));
  }
  EXPECT_EQ(device_->memory().used_bytes, 0u);
  device_->set_memory_limit(0);
  const auto huge = device_->allocate(std::size_t{1} << 46);
  ASSERT_FALSE(huge);
  EXPECT_EQ(huge.error().code(), Code::exhausted);
  EXPECT_EQ(device_->memory().used_bytes, 0u);
  EXPECT_FALSE(device_->allocate(0));
}

TEST_F(HostTest, BufferRangesAreChecked) {
  auto buffer = must_allocate(10);
  Bytes bytes(6, 7);
  EXPECT_TRUE(buffer->write(4, bytes));
  EXPECT_FALSE(buffer->write(5, bytes));
  EXPECT_FALSE(buffer->read(SIZE_MAX, bytes));
  EXPECT_FALSE(buffer->fill(0, 11, 0));
  EXPECT_TRUE(buffer->fill(0, 10, 0));
}

// "Far enough" is the distance to the guard: a page on one side at most, nothing on the other.
TEST_F(HostTest, RunningFarOutOfABufferTraps) {
  ::testing::GTEST_FLAG(death_test_style) = "threadsafe";
  auto made = host::HostBuffer::make(100, std::make_shared<host::Accounting>());
  ASSERT_TRUE(made);
  auto* data = static_cast<host::HostBuffer&>(**made).data();
  EXPECT_DEATH(*const_cast<volatile std::uint8_t*>(data + 8192) = 1, "");
  EXPECT_DEATH(*const_cast<volatile std::uint8_t*>(data - 1) = 1, "");
  EXPECT_DEATH(*const_cast<volatile std::uint8_t*>(data + (1 << 19)) = 1, "");
}

TEST(HostCompiler, AChosenCompilerThatIsNotThereIsUnavailable) {
  setenv("FURLONG_CXX", "/nowhere/c++", 1);
  const auto listed = make_host_driver()->list();
  unsetenv("FURLONG_CXX");
  ASSERT_FALSE(listed);
  EXPECT_EQ(listed.error().code(), Code::unavailable);
  EXPECT_THAT(listed.error().text(), HasSubstr("FURLONG_CXX"));
}

TEST(HostDriver, ThereIsOneDevice) {
  const auto second = make_host_driver()->open(1);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code(), Code::unavailable);
}

TEST(HostPool, CoversEveryIndexOnceWhateverTheNumberOfThreads) {
  Random random(7);
  for (int threads : {1, 2, 3, 8}) {
    host::Pool pool(threads);
    for (int round = 0; round < 50; ++round) {
      const std::uint64_t count = random.below(500);
      std::vector<std::atomic<int>> seen(count);
      std::atomic<int> strangers{0};
      pool.run(count, [&](std::uint64_t begin, std::uint64_t end, int worker) {
        if (worker < 0 || worker >= threads) ++strangers;
        for (std::uint64_t i = begin; i < end; ++i) ++seen[i];
      });
      EXPECT_EQ(strangers, 0);
      for (std::uint64_t i = 0; i < count; ++i) ASSERT_EQ(seen[i], 1) << i << " of " << count;
    }
  }
}

// A stack that no address space holds makes every new thread fail, as a container's limit does.
TEST(HostPool, RunsOnTheCallerAloneWhereTheSystemGivesNoThread) {
  pthread_attr_t before;
  ASSERT_EQ(pthread_getattr_default_np(&before), 0);
  pthread_attr_t greedy;
  ASSERT_EQ(pthread_getattr_default_np(&greedy), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&greedy, std::size_t{1} << 60), 0);
  ASSERT_EQ(pthread_setattr_default_np(&greedy), 0);
  host::Pool pool(4);
  std::vector<int> seen(100);
  const auto count = [&](std::uint64_t begin, std::uint64_t end, int) {
    for (std::uint64_t i = begin; i < end; ++i) ++seen[i];
  };
  EXPECT_NO_THROW(pool.run(seen.size(), count));
  EXPECT_EQ(pool.helpers(), 0u);
  ASSERT_EQ(pthread_setattr_default_np(&before), 0);
  pthread_attr_destroy(&greedy);
  pthread_attr_destroy(&before);
  pool.run(seen.size(), count);
  EXPECT_EQ(seen, std::vector<int>(100, 2));
}

TEST(HostCpu, TheEnergyOfAllPackagesGoesOnWhereACounterStartsAnew) {
  const TemporaryFolder folder = std::move(*TemporaryFolder::make("furlong-powercap"));
  const auto put = [&](const std::string& file, std::string_view text) {
    ASSERT_TRUE(system_files().write_atomic(folder.path() / file, text));
  };
  host::EnergyCounter counter(folder.path());
  EXPECT_EQ(counter.joules(), std::nullopt);
  for (const char* package : {"intel-rapl:0", "intel-rapl:1", "intel-rapl:2"}) {
    put(fmt::format("{}/name", package), fmt::format("package-{}\n", package));
    put(fmt::format("{}/max_energy_range_uj", package), "1000000000\n");
    put(fmt::format("{}/energy_uj", package), "990000000\n");
  }
  put("intel-rapl:2/name", "psys\n");
  const auto start = counter.joules();
  ASSERT_TRUE(start);
  EXPECT_DOUBLE_EQ(*start, 1980);
  put("intel-rapl:0/energy_uj", "995000000\n");
  put("intel-rapl:1/energy_uj", "992000000\n");
  EXPECT_DOUBLE_EQ(counter.joules().value_or(0) - *start, 7);
  put("intel-rapl:0/energy_uj", "3000000\n");  // 5 to the end of its range, and 3
  EXPECT_DOUBLE_EQ(counter.joules().value_or(0) - *start, 15);
}

constexpr const char* kX86 =
    "processor\t: 0\nvendor_id\t: AuthenticAMD\nmodel name\t: AMD EPYC 9654 96-Core Processor\n"
    "flags\t\t: fpu cx16 lahf_lm popcnt pni sse4_1 sse4_2 ssse3 avx avx2 bmi1 bmi2 f16c fma abm movbe "
    "xsave\n";

TEST(HostCpu, ReadsTheNameAndTheLevelOfAnX86Processor) {
  const host::Cpu cpu = host::parse_cpuinfo(kX86, "x86_64");
  EXPECT_EQ(cpu.vendor, "AMD");
  EXPECT_EQ(cpu.model, "AMD EPYC 9654 96-Core Processor");
  EXPECT_EQ(cpu.arch, "x86-64-v3");
  std::string more(kX86);
  more.insert(more.size() - 1, " avx512f avx512bw avx512cd avx512dq avx512vl");
  EXPECT_EQ(host::parse_cpuinfo(more, "x86_64").arch, "x86-64-v4");
}

TEST(HostCpu, FallsBackWhereTheSystemSaysLittle) {
  const host::Cpu arm =
      host::parse_cpuinfo("CPU implementer\t: 0x41\nCPU part\t: 0xd40\nFeatures\t: fp asimd\n", "aarch64");
  EXPECT_EQ(arm.vendor, "ARM");
  EXPECT_EQ(arm.model, "aarch64 0xd40");
  EXPECT_EQ(arm.arch, "aarch64");
  EXPECT_EQ(arm.features, "fp asimd");
  EXPECT_EQ(host::parse_cpuinfo("", "x86_64").model, "x86_64");
  EXPECT_EQ(host::parse_cpuinfo("", "x86_64").arch, "x86-64");
}

TEST(HostElf, RefusesWhatIsNoElfAtEveryLength) {
  std::ifstream self("/proc/self/exe", std::ios::binary);
  Bytes bytes(4096);
  self.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  // The section table lies at the end of the file, so no start of it may be taken for a whole object.
  for (std::size_t length = 0; length <= bytes.size(); length += 64) {
    EXPECT_EQ(host::elf_code_hash(ByteView(bytes).first(length)), "");
  }
}

}  // namespace
}  // namespace furlong::device
