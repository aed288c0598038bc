#include "furlong/device/cuda/internal/code_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <thread>

#include "furlong/base/log.h"
#include "furlong/base/text.h"

namespace furlong::device {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

const std::string kKey(64, 'a');

Cubin example(std::size_t image = 100) {
  Cubin cubin;
  for (std::size_t i = 0; i < image; ++i) cubin.image.push_back(static_cast<std::uint8_t>(i * 7));
  cubin.lowered = {"saxpy", "_Z3addILi3EEvPi"};
  cubin.log = "ptxas info: 12 registers\n";
  cubin.registers = 12;
  cubin.spill_bytes = 0;
  cubin.code_hash = std::string(32, 'c');
  cubin.compile_ms = 41.5;
  return cubin;
}

void expect_equal(const Cubin& found, const Cubin& expected) {
  EXPECT_EQ(found.image, expected.image);
  EXPECT_EQ(found.lowered, expected.lowered);
  EXPECT_EQ(found.log, expected.log);
  EXPECT_EQ(found.registers, expected.registers);
  EXPECT_EQ(found.spill_bytes, expected.spill_bytes);
  EXPECT_EQ(found.shared_bytes, expected.shared_bytes);
  EXPECT_EQ(found.code_hash, expected.code_hash);
  EXPECT_EQ(found.compile_ms, expected.compile_ms);
}

/// The warnings while it lives.
class Warnings {
 public:
  Warnings() {
    previous_ = set_log_sink(
        [this](LogLevel level, std::string_view text) {
          if (level >= LogLevel::warning) text_ += std::string(text) + "\n";
        },
        LogLevel::warning);
  }
  ~Warnings() { set_log_sink(previous_); }
  const std::string& text() const { return text_; }
  std::size_t lines() const { return static_cast<std::size_t>(std::count(text_.begin(), text_.end(), '\n')); }

 private:
  LogSink previous_;
  std::string text_;
};

TemporaryFolder folder() {
  auto made = TemporaryFolder::make("furlong-code-cache");
  EXPECT_TRUE(made);
  return std::move(*made);
}

TEST(CodeCache, GivesBackWhatWasStored) {
  const TemporaryFolder place = folder();
  CodeCache cache(place.path() / "cuda");  // made by the first store
  EXPECT_FALSE(cache.load(kKey));
  Cubin cubin = example();
  cache.store(kKey, cubin);
  auto found = cache.load(kKey);
  ASSERT_TRUE(found);
  expect_equal(*found, cubin);
  cubin.shared_bytes = 4000;
  cubin.registers.reset();
  cubin.lowered.clear();
  cubin.log.clear();
  cache.store(kKey, cubin);
  found = CodeCache(place.path() / "cuda").load(kKey);
  ASSERT_TRUE(found);
  expect_equal(*found, cubin);
  EXPECT_FALSE(cache.load(std::string(64, 'b')));
}

TEST(CodeEntry, IsRefusedWhereverItIsTorn) {
  const std::string whole = print_code_entry(kKey, example());
  ASSERT_TRUE(parse_code_entry(kKey, whole));
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const auto torn = parse_code_entry(kKey, std::string_view(whole).substr(0, size));
    ASSERT_FALSE(torn) << size;
    EXPECT_EQ(torn.error().code(), Code::corrupt) << size;
    EXPECT_THAT(torn.error().text(), HasSubstr("byte "));
  }
  EXPECT_FALSE(parse_code_entry(kKey, whole + "x"));
}

TEST(CodeEntry, IsRefusedWhicheverByteChanges) {
  const std::string whole = print_code_entry(kKey, example(20));
  for (std::size_t at = 0; at < whole.size(); ++at) {
    std::string changed = whole;
    changed[at] = static_cast<char>(changed[at] ^ 0x10);
    EXPECT_FALSE(parse_code_entry(kKey, changed)) << at;
  }
}

// Written from the page of the format by another program.
TEST(CodeEntry, IsReadAsThePageOfTheFormatSays) {
  const fs::path seeds = "furlong/device/cuda/code_cache_fuzz";
  const auto bytes = system_files().read(seeds / "whole.bin");
  ASSERT_TRUE(bytes) << bytes.error().text();
  const auto cubin = parse_code_entry(kKey, *bytes);
  ASSERT_TRUE(cubin) << cubin.error().text();
  EXPECT_EQ(cubin->lowered, (std::vector<std::string>{"saxpy", "_Z3addILi3EEvPi"}));
  EXPECT_EQ(cubin->registers, 12);
  EXPECT_EQ(cubin->spill_bytes, 0u);
  EXPECT_EQ(cubin->shared_bytes, std::nullopt);
  EXPECT_EQ(cubin->compile_ms, 41.5);
  EXPECT_EQ(cubin->log, "ptxas info: 12 registers\n");
  EXPECT_EQ(cubin->image.size(), 44u);
  EXPECT_EQ(cubin->code_hash, blake2b_256(cubin->image).hex().substr(0, 32));
  const auto least = parse_code_entry(kKey, *system_files().read(seeds / "least.bin"));
  ASSERT_TRUE(least) << least.error().text();
  EXPECT_TRUE(least->lowered.empty() && least->image.empty() && !least->registers);
  const auto other = parse_code_entry(kKey, *system_files().read(seeds / "another_version.bin"));
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code(), Code::incompatible);
}

TEST(CodeEntry, OfAnotherVersionOrKeyIsRefused) {
  std::string whole = print_code_entry(kKey, example());
  const auto other = parse_code_entry(std::string(64, 'b'), whole);
  ASSERT_FALSE(other);
  EXPECT_THAT(other.error().text(), HasSubstr("another key"));
  whole[std::string_view("furlong cuda code\n").size()] = 9;
  const auto newer = parse_code_entry(kKey, whole);
  ASSERT_FALSE(newer);
  EXPECT_EQ(newer.error().code(), Code::incompatible);
  EXPECT_THAT(newer.error().text(), HasSubstr("found code entry version 9, expected 1"));
}

TEST(CodeCache, DamageIsAMissWithAWarningAndIsMended) {
  const TemporaryFolder place = folder();
  CodeCache cache(place.path());
  cache.store(kKey, example());
  const fs::path file = place.path() / (kKey + ".cubin");
  const std::string whole = *system_files().read(file);
  ASSERT_TRUE(system_files().write_atomic(file, whole.substr(0, whole.size() / 2)));
  {
    const Warnings warnings;
    EXPECT_FALSE(cache.load(kKey));
    EXPECT_THAT(warnings.text(), HasSubstr(file.string()));
    EXPECT_THAT(warnings.text(), HasSubstr("compiled anew"));
  }
  cache.store(kKey, example());
  EXPECT_TRUE(cache.load(kKey));
  // A newer Furlong's entry is nobody's damage.
  std::string newer = whole;
  newer[std::string_view("furlong cuda code\n").size()] = 2;
  ASSERT_TRUE(system_files().write_atomic(file, newer));
  const Warnings warnings;
  EXPECT_FALSE(cache.load(kKey));
  EXPECT_EQ(warnings.text(), "");
  fs::remove(file);
  fs::create_directory(file);
  EXPECT_FALSE(cache.load(kKey));
}

TEST(CodeCache, ADiskThatCannotBeWrittenCostsOneWarningAndTheCache) {
  FakeFiles files;
  files.fault = [](std::string_view operation, const fs::path& path) -> Status {
    if (operation == "write") return fail(Code::exhausted, "{}: no space left", path.string());
    return {};
  };
  CodeCache cache("/cache", {}, files);
  const Warnings warnings;
  for (char c = '0'; c <= '9'; ++c) {
    cache.store(std::string(64, c), example());
    EXPECT_FALSE(cache.load(std::string(64, c)));
  }
  EXPECT_EQ(warnings.lines(), 1u) << warnings.text();
  EXPECT_THAT(warnings.text(), HasSubstr("no space left"));
}

TEST(CodeCache, AReadOnlyFolderIsReadAndNotWritten) {
  const TemporaryFolder place = folder();
  CodeCache cache(place.path());
  cache.store(kKey, example());
  fs::permissions(place.path(), fs::perms::owner_read | fs::perms::owner_exec);
  if (::access(place.path().c_str(), W_OK) == 0) {
    fs::permissions(place.path(), fs::perms::owner_all);
    // The superuser writes anywhere: a file where the folder should be stands in.
    CodeCache blocked(place.path() / (kKey + ".cubin") / "cuda");
    const Warnings warnings;
    blocked.store(kKey, example());
    EXPECT_FALSE(blocked.load(kKey));
    EXPECT_EQ(warnings.lines(), 1u) << warnings.text();
    return;
  }
  const Warnings warnings;
  EXPECT_TRUE(cache.load(kKey));
  cache.store(std::string(64, 'b'), example());
  EXPECT_EQ(warnings.lines(), 1u) << warnings.text();
  fs::permissions(place.path(), fs::perms::owner_all);
}

// As another process sees it: each has an object of its own.
TEST(CodeCache, ReadersSeeWholeEntriesWhileWritersReplaceThem) {
  const TemporaryFolder place = folder();
  const Warnings warnings;
  std::atomic<int> found{0};
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 2; ++t) {
      threads.emplace_back([&place, t] {
        CodeCache cache(place.path());
        for (int i = 0; i < 40; ++i) cache.store(kKey, example(1000u + static_cast<unsigned>(t) * 5000u));
      });
      threads.emplace_back([&place, &found] {
        CodeCache cache(place.path());
        for (int i = 0; i < 400 || (found == 0 && i < 100000); ++i) {
          if (const auto cubin = cache.load(kKey)) {
            EXPECT_TRUE(cubin->image.size() == 1000 || cubin->image.size() == 6000);
            ++found;
          }
        }
      });
    }
  }
  EXPECT_GT(found, 0);
  EXPECT_EQ(warnings.text(), "");
}

std::set<std::string> names_in(const fs::path& place) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(place)) names.insert(entry.path().filename().string());
  return names;
}

std::string key_of(int i) { return fmt::format("{:064}", i); }

TEST(CodeCache, TheOldestGoWhenThereAreTooMany) {
  const TemporaryFolder place = folder();
  CodeCache cache(place.path(), {.entries = 8, .bytes = 1u << 20});
  const auto now = fs::file_time_type::clock::now();
  for (int i = 0; i < 9; ++i) {
    cache.store(key_of(i), example());
    fs::last_write_time(place.path() / (key_of(i) + ".cubin"), now - std::chrono::minutes(100 - i));
  }
  ASSERT_TRUE(cache.load(key_of(0)));  // reading makes it new
  cache.prune();
  std::set<std::string> expected{key_of(0) + ".cubin"};
  for (int i = 4; i < 9; ++i) expected.insert(key_of(i) + ".cubin");
  EXPECT_EQ(names_in(place.path()), expected);
  cache.prune();
  EXPECT_EQ(names_in(place.path()), expected) << "six of eight stay";
}

TEST(CodeCache, TheOldestGoWhenTheyAreTooLarge) {
  const TemporaryFolder place = folder();
  CodeCache cache(place.path(), {.entries = 100, .bytes = 10000});
  const auto now = fs::file_time_type::clock::now();
  for (int i = 0; i < 5; ++i) {
    cache.store(key_of(i), example(2000));
    fs::last_write_time(place.path() / (key_of(i) + ".cubin"), now - std::chrono::minutes(100 - i));
  }
  cache.prune();
  EXPECT_EQ(names_in(place.path()),
            (std::set<std::string>{key_of(2) + ".cubin", key_of(3) + ".cubin", key_of(4) + ".cubin"}));
}

TEST(CodeCache, LeftoversOfKilledProcessesGoAfterAnHour) {
  const TemporaryFolder place = folder();
  for (const char* name : {"old.tmp", "new.tmp", "old.txt"})
    ASSERT_TRUE(system_files().write_atomic(place.path() / name, "x"));
  for (const char* name : {"old.tmp", "old.txt"})
    fs::last_write_time(place.path() / name, fs::file_time_type::clock::now() - std::chrono::hours(2));
  CodeCache(place.path()).prune();
  EXPECT_EQ(names_in(place.path()), (std::set<std::string>{"new.tmp", "old.txt"}));
}

CompileRequest request() {
  CompileRequest made;
  made.language = Language::cuda;
  made.name = "base";
  made.source = "__global__ void k(int* y) { *y = VALUE; }";
  made.source_name = "mine.cu";
  made.entries = {"k"};
  made.defines = {{"VALUE", "1"}};
  made.options = {"--use_fast_math"};
  return made;
}

std::string key(const CompileRequest& made, const CompilerIdentity& compiler = {"NVRTC 13.0", {}},
                std::string_view arch = "sm_90") {
  const auto key = CodeCache::key(made, compiler, arch);
  EXPECT_TRUE(key) << key.error().text();
  return key.value_or("");
}

TEST(CodeCacheKey, ReactsToEachIngredientAlone) {
  const std::string base = key(request());
  EXPECT_EQ(base.size(), 64u);
  EXPECT_EQ(key(request()), base);
  std::set<std::string> keys{base};
  const auto changed = [&](const char* what, auto change) {
    CompileRequest made = request();
    change(made);
    EXPECT_TRUE(keys.insert(key(made)).second) << what;
  };
  changed("source", [](auto& made) { made.source += " "; });
  changed("source name", [](auto& made) { made.source_name = "yours.cu"; });
  changed("entries", [](auto& made) { made.entries.push_back("l"); });
  changed("order of entries", [](auto& made) { made.entries.insert(made.entries.begin(), "l"); });
  changed("define's value", [](auto& made) { made.defines[0].second = "2"; });
  changed("define's name", [](auto& made) { made.defines[0].first = "VALUES"; });
  changed("another define", [](auto& made) { made.defines.emplace_back("K", "1"); });
  changed("options", [](auto& made) { made.options = {"--maxrregcount=32"}; });
  changed("another option", [](auto& made) { made.options.push_back("-G"); });
  changed("include folder", [](auto& made) { made.include_folders = {"/nowhere"}; });
  changed("word between lists", [](auto& made) {
    made.entries.push_back("--use_fast_math");
    made.options.clear();
  });
  EXPECT_TRUE(keys.insert(key(request(), {"NVRTC 12.9", {}})).second);
  EXPECT_TRUE(keys.insert(key(request(), {"NVRTC 13.0", {"/usr/local/cuda/include"}})).second);
  EXPECT_TRUE(keys.insert(key(request(), {"NVRTC 13.0", {}}, "sm_80")).second);
  CompileRequest renamed = request();
  renamed.name = "u2";
  renamed.dynamic_shared_bytes = 4096;
  EXPECT_EQ(key(renamed), base) << "variants with one text share its code";
  renamed.source_name.clear();
  EXPECT_NE(key(renamed), base);
}

TEST(CodeCacheKey, ReactsToTheHeadersAndRefusesWhereTheyAreNotKnown) {
  const TemporaryFolder place = folder();
  ASSERT_TRUE(system_files().write_atomic(place.path() / "part.h", "#define VALUE 1\n"));
  CompileRequest made = request();
  made.source = "#include \"part.h\"\n" + made.source;
  made.include_folders = {place.path()};
  const std::string first = key(made);
  EXPECT_EQ(key(made), first);
  ASSERT_TRUE(system_files().write_atomic(place.path() / "part.h", "#define VALUE 2\n"));
  EXPECT_NE(key(made), first);
  ASSERT_TRUE(system_files().write_atomic(place.path() / "other.h", "#define VALUE 2\n"));
  EXPECT_NE(key(made), first);
  ASSERT_TRUE(system_files().write_atomic(place.path() / "part.h", "#define VALUE 1\n"));
  EXPECT_EQ(key(made), first) << "what is not named does not count";
  made.source = "#include HEADER\n";
  const auto unknown = CodeCache::key(made, CompilerIdentity{}, "sm_90");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code(), Code::unavailable);
  made = request();
  made.options = {"--time=times.csv"};
  EXPECT_FALSE(CodeCache::key(made, CompilerIdentity{}, "sm_90"));
}

TEST(CodeCacheWithNvrtc, TheSecondCompileComesFromTheCache) {
  auto nvrtc = Nvrtc::open();
  if (!nvrtc) GTEST_SKIP() << nvrtc.error().text();
  EXPECT_THAT(nvrtc->identity().text, HasSubstr(nvrtc->version()));
  EXPECT_THAT(nvrtc->identity().text, HasSubstr("libnvrtc"));
  const TemporaryFolder place = folder();
  CodeCache cache(place.path());
  const auto first = compile_through(cache, *nvrtc, request(), "sm_80");
  ASSERT_TRUE(first) << first.error().text();
  EXPECT_FALSE(first->from_cache);
  const auto second = compile_through(cache, *nvrtc, request(), "sm_80");
  ASSERT_TRUE(second) << second.error().text();
  EXPECT_TRUE(second->from_cache);
  Cubin kept = second->cubin;
  EXPECT_NE(kept.compile_ms, first->cubin.compile_ms);
  kept.compile_ms = first->cubin.compile_ms;
  expect_equal(kept, first->cubin);
  const auto other = compile_through(cache, *nvrtc, request(), "sm_90");
  ASSERT_TRUE(other) << other.error().text();
  EXPECT_FALSE(other->from_cache);
  // Where the headers cannot be known it compiles all the same, each time.
  CompileRequest computed = request();
  computed.source = "#define H <cuda_fp16.h>\n#if 0\n#include H\n#endif\n" + computed.source;
  for (int i = 0; i < 2; ++i) {
    const auto made = compile_through(cache, *nvrtc, computed, "sm_80");
    ASSERT_TRUE(made) << made.error().text();
    EXPECT_FALSE(made->from_cache);
  }
  // What no compile of this request wrote is none of its results, however well sealed.
  const auto key = CodeCache::key(request(), *nvrtc, "sm_80");
  ASSERT_TRUE(key) << key.error().text();
  Cubin no_code = first->cubin, no_name = first->cubin, more_names = first->cubin;
  no_code.image.clear();
  no_name.lowered.pop_back();
  more_names.lowered.emplace_back("another");
  for (const Cubin& wrong : {no_code, no_name, more_names}) {
    cache.store(*key, wrong);
    const Warnings warnings;
    const auto made = compile_through(cache, *nvrtc, request(), "sm_80");
    ASSERT_TRUE(made) << made.error().text();
    EXPECT_FALSE(made->from_cache);
    EXPECT_EQ(made->cubin.lowered, first->cubin.lowered);
    EXPECT_EQ(made->cubin.image.size(), first->cubin.image.size());
    EXPECT_THAT(warnings.text(), HasSubstr("compiled anew"));
    const auto after = compile_through(cache, *nvrtc, request(), "sm_80");
    ASSERT_TRUE(after) << after.error().text();
    EXPECT_TRUE(after->from_cache) << "the right one takes its place";
  }
  CompileRequest broken = request();
  broken.source = "__global__ void k(";
  EXPECT_FALSE(compile_through(cache, *nvrtc, broken, "sm_80"));
}

}  // namespace
}  // namespace furlong::device
