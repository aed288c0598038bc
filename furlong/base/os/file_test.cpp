#include "furlong/base/os/file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <set>
#include <thread>

#include "furlong/base/os/internal/abandoned.h"
#include "furlong/base/random.h"

namespace furlong {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

// What both implementations of Files promise.
class EveryFiles : public testing::TestWithParam<bool> {
 protected:
  EveryFiles() : folder_(std::move(*TemporaryFolder::make("files"))) {}
  Files& files() { return GetParam() ? static_cast<Files&>(fake_) : system_files(); }
  fs::path at(std::string_view name) const { return folder_.path() / name; }

 private:
  FakeFiles fake_;
  TemporaryFolder folder_;
};
INSTANTIATE_TEST_SUITE_P(Real, EveryFiles, testing::Values(false));
INSTANTIATE_TEST_SUITE_P(Fake, EveryFiles, testing::Values(true));

TEST_P(EveryFiles, WriteThenRead) {
  const std::string bytes("a\0\xFF\n", 4);
  ASSERT_TRUE(files().write_atomic(at("x/y/f"), bytes)) << "parent folders are made";
  EXPECT_EQ(*files().read(at("x/y/f")), bytes);
  EXPECT_EQ(*files().read(at("x/./y/../y/f")), bytes);
  ASSERT_TRUE(files().write_atomic(at("x/y/f"), ""));
  EXPECT_EQ(*files().read(at("x/y/f")), "");
  EXPECT_TRUE(files().exists(at("x/y/f")));
  EXPECT_TRUE(files().exists(at("x")));
  EXPECT_FALSE(files().exists(at("x/y/g")));
  ASSERT_TRUE(files().write_atomic_secret(at("key"), "s"));
  EXPECT_EQ(*files().read(at("key")), "s");
}

TEST_P(EveryFiles, AbsentIsUnavailableAndNamesThePath) {
  const auto read = files().read(at("none"));
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code(), Code::unavailable);
  EXPECT_THAT(read.error().text(), HasSubstr(at("none").string()));
  const auto listed = files().list(at("none"));
  ASSERT_FALSE(listed);
  EXPECT_EQ(listed.error().code(), Code::unavailable);
  EXPECT_TRUE(files().remove(at("none")));
}

TEST_P(EveryFiles, ReadIsBounded) {
  ASSERT_TRUE(files().write_atomic(at("f"), "12345"));
  EXPECT_EQ(*files().read(at("f"), 5), "12345");
  const auto large = files().read(at("f"), 4);
  ASSERT_FALSE(large);
  EXPECT_EQ(large.error().code(), Code::exhausted);
}

TEST_P(EveryFiles, ListsSortedAndRemovesTrees) {
  for (const char* name : {"d/b", "d/a", "d/c/1", "d/c/2", "dd"})
    ASSERT_TRUE(files().write_atomic(at(name), "x"));
  EXPECT_THAT(*files().list(at("d")), ElementsAre("a", "b", "c/"));
  ASSERT_TRUE(files().remove(at("d/c")));
  EXPECT_THAT(*files().list(at("d")), ElementsAre("a", "b"));
  ASSERT_TRUE(files().remove(at("d")));
  EXPECT_FALSE(files().exists(at("d")));
  EXPECT_TRUE(files().exists(at("dd"))) << "a name that only begins the same stays";
}

TEST_P(EveryFiles, ReadersSeeOldOrNewBytesOnly) {
  const std::string old_bytes(100'000, 'o');
  const std::string new_bytes(150'000, 'n');
  ASSERT_TRUE(files().write_atomic(at("f"), old_bytes));
  std::atomic<bool> done{false};
  std::atomic<int> torn{0};
  std::jthread reader([&] {
    while (!done) {
      const auto bytes = files().read(at("f"));
      if (!bytes || (*bytes != old_bytes && *bytes != new_bytes)) ++torn;
    }
  });
  for (int i = 0; i < 30; ++i) EXPECT_TRUE(files().write_atomic(at("f"), i % 2 == 0 ? new_bytes : old_bytes));
  done = true;
  reader.join();
  EXPECT_EQ(torn, 0);
}

TEST(FakeFiles, AFaultAtAnyStepNeverLosesTheOldBytes) {
  FakeFiles files;
  ASSERT_TRUE(files.write_atomic("f", "old"));
  for (int failing = 0; failing < 5; ++failing) {
    ASSERT_TRUE(files.write_atomic("f", "old"));
    int step = 0;
    std::vector<std::string> steps;
    files.fault = [&](std::string_view operation, const fs::path&) -> Status {
      steps.emplace_back(operation);
      if (step++ == failing) return fail(Code::exhausted, "no space left");
      return {};
    };
    const Status status = files.write_atomic("f", "new");
    files.fault = nullptr;
    const std::string now = *files.read("f");
    if (failing < 4) {
      ASSERT_FALSE(status);
      EXPECT_EQ(status.error().code(), Code::exhausted);
    } else {
      EXPECT_TRUE(status);
      EXPECT_THAT(steps, ElementsAre("write", "sync", "rename", "sync"));
    }
    // A failed sync of the folder comes after the rename: the new bytes are there, whole.
    EXPECT_EQ(now, failing < 3 ? "old" : "new");
  }
}

TEST(FakeFiles, EveryOperationAsks) {
  FakeFiles files;
  ASSERT_TRUE(files.write_atomic("d/f", "x"));
  std::set<std::string> asked;
  files.fault = [&](std::string_view operation, const fs::path& path) -> Status {
    asked.emplace(operation);
    EXPECT_TRUE(files.exists("d/f")) << "a fault may use the files";
    return fail(Code::denied, "{}", path.string());
  };
  EXPECT_FALSE(files.read("d/f"));
  EXPECT_FALSE(files.list("d"));
  EXPECT_FALSE(files.remove("d"));
  EXPECT_FALSE(files.write_atomic("d/f", "y"));
  EXPECT_THAT(asked, ElementsAre("list", "read", "remove", "write"));
  files.fault = nullptr;
  EXPECT_EQ(*files.read("d/f"), "x");
}

class RealFiles : public testing::Test {
 protected:
  RealFiles() : folder_(std::move(*TemporaryFolder::make("real-files"))) {}
  fs::path at(std::string_view name) const { return folder_.path() / name; }
  static mode_t mode_of(const fs::path& path) {
    struct stat info{};
    EXPECT_EQ(stat(path.c_str(), &info), 0);
    return info.st_mode & 07777;
  }
  TemporaryFolder folder_;
};

// A child under RLIMIT_FSIZE is a disk that fills up in the middle of the write.
TEST_F(RealFiles, AFullDiskKeepsTheOldBytesAndLeavesNothingBehind) {
  ASSERT_TRUE(system_files().write_atomic(at("f"), "old"));
  const pid_t pid = fork();
  if (pid == 0) {
    signal(SIGXFSZ, SIG_IGN);
    const rlimit small{4096, 4096};
    setrlimit(RLIMIT_FSIZE, &small);
    const Status status = system_files().write_atomic(at("f"), std::string(100'000, 'n'));
    const bool right = !status && status.error().code() == Code::exhausted &&
                       status.error().message().find(at("f").string()) != std::string::npos;
    _exit(right ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(pid, &status, 0), pid);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(*system_files().read(at("f")), "old");
  EXPECT_THAT(*system_files().list(folder_.path()), ElementsAre("f"));
}

TEST_F(RealFiles, AFailedRenameLeavesNothingBehind) {
  fs::create_directories(at("d/inside"));
  const Status status = system_files().write_atomic(at("d"), "x");
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code(), Code::invalid);
  EXPECT_THAT(*system_files().list(folder_.path()), ElementsAre("d/"));
  const Status through_file = [&] {
    EXPECT_TRUE(system_files().write_atomic(at("file"), "x"));
    return system_files().write_atomic(at("file/below"), "x");
  }();
  ASSERT_FALSE(through_file);
  EXPECT_EQ(through_file.error().code(), Code::unavailable);
  EXPECT_EQ(*system_files().read(at("file")), "x");
}

TEST_F(RealFiles, KeepsModesAndSecrets) {
  ASSERT_TRUE(system_files().write_atomic(at("script"), "x"));
  fs::permissions(at("script"), fs::perms::owner_all);
  ASSERT_TRUE(system_files().write_atomic(at("script"), "y"));
  EXPECT_EQ(mode_of(at("script")), 0700u);
  ASSERT_TRUE(system_files().write_atomic_secret(at("key"), "s"));
  EXPECT_EQ(mode_of(at("key")), 0600u);
  const mode_t mask = umask(0);
  umask(mask);
  ASSERT_TRUE(system_files().write_atomic(at("plain"), "x"));
  EXPECT_EQ(mode_of(at("plain")), 0666u & ~mask);
}

TEST_F(RealFiles, FollowsLinksAndWritesToPipes) {
  ASSERT_TRUE(system_files().write_atomic(at("real/f"), "old"));
  fs::create_symlink("real/f", at("link"));
  ASSERT_TRUE(system_files().write_atomic(at("link"), "new"));
  EXPECT_TRUE(fs::is_symlink(at("link")));
  EXPECT_EQ(*system_files().read(at("real/f")), "new");
  fs::create_symlink("real/g", at("dangling"));
  ASSERT_TRUE(system_files().write_atomic(at("dangling"), "g"));
  EXPECT_EQ(*system_files().read(at("real/g")), "g");
  ASSERT_EQ(mkfifo(at("pipe").c_str(), 0600), 0);
  std::string got;
  std::jthread reader([&] { got = *system_files().read(at("pipe")); });
  ASSERT_TRUE(system_files().write_atomic(at("pipe"), "through"));
  reader.join();
  EXPECT_EQ(got, "through");
  EXPECT_TRUE(fs::is_fifo(at("pipe")));
}

TEST_F(RealFiles, ReadsWhatHasNoSize) {
  EXPECT_THAT(*system_files().read("/proc/self/status"), HasSubstr("VmHWM"));
  const auto folder = system_files().read(folder_.path());
  ASSERT_FALSE(folder);
  EXPECT_EQ(folder.error().code(), Code::invalid);
}

TEST_F(RealFiles, NoPermissionIsDenied) {
  if (geteuid() == 0) GTEST_SKIP() << "root may read everything";
  ASSERT_TRUE(system_files().write_atomic(at("f"), "x"));
  fs::permissions(at("f"), fs::perms::none);
  const auto read = system_files().read(at("f"));
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code(), Code::denied);
}

TEST(TemporaryFolder, IsRemovedWithAllInIt) {
  fs::path kept;
  {
    auto folder = TemporaryFolder::make("furlong-test");
    ASSERT_TRUE(folder);
    kept = folder->path();
    EXPECT_THAT(kept.filename().string(), testing::StartsWith("furlong-test-"));
    fs::create_directories(kept / "a" / "b");
    std::ofstream(kept / "a" / "f") << "x";
    const TemporaryFolder moved = std::move(*folder);
    EXPECT_EQ(moved.path(), kept);
    EXPECT_TRUE(fs::is_directory(kept));
  }
  EXPECT_FALSE(fs::exists(kept));
}

// A program that is killed removes nothing. Its folder is known by its lock, which went with the program.
TEST(TemporaryFolder, OfAKilledProgramIsRemovedLater) {
  const TemporaryFolder here = std::move(*TemporaryFolder::make("sweep"));
  const fs::path abandoned = here.path() / "furlong-host-0123456789ab";
  const fs::path other = here.path() / "somebody-0123456789ab";
  const fs::path odd = here.path() / "furlong-host-notes";
  const fs::path target = here.path() / "target";
  for (const fs::path& folder : {abandoned, other, odd, target}) {
    fs::create_directories(folder);
    std::ofstream(folder / "kernel.cpp") << "x";
  }
  fs::create_directory_symlink(target, here.path() / "furlong-link-0123456789ab");
  const char* const before = std::getenv("TMPDIR");
  const std::string kept = before == nullptr ? "" : before;
  setenv("TMPDIR", here.path().c_str(), 1);
  std::optional<TemporaryFolder> living = std::move(*TemporaryFolder::make("furlong-living"));
  before == nullptr ? unsetenv("TMPDIR") : setenv("TMPDIR", kept.c_str(), 1);
  const fs::path living_path = living->path();

  EXPECT_EQ(internal::remove_abandoned_folders(here.path(), 3600), 0u) << "too young";
  EXPECT_TRUE(fs::exists(abandoned));
  EXPECT_EQ(internal::remove_abandoned_folders(here.path(), -3600), 1u);
  EXPECT_FALSE(fs::exists(abandoned));
  for (const fs::path& folder : {other, odd, target, living_path}) EXPECT_TRUE(fs::exists(folder)) << folder;
  EXPECT_TRUE(fs::exists(target / "kernel.cpp"));
  living.reset();
  EXPECT_FALSE(fs::exists(living_path));
  EXPECT_EQ(internal::remove_abandoned_folders(here.path() / "absent", 0), 0u);
}

TEST(TemporaryFolder, StandsUnderTmpdir) {
  const TemporaryFolder outer = std::move(*TemporaryFolder::make("outer"));
  const char* before = std::getenv("TMPDIR");
  const std::string kept = before == nullptr ? "" : before;
  setenv("TMPDIR", outer.path().c_str(), 1);
  {
    const auto inner = TemporaryFolder::make("inner");
    ASSERT_TRUE(inner);
    EXPECT_EQ(inner->path().parent_path(), outer.path());
  }
  setenv("TMPDIR", (outer.path() / "none").c_str(), 1);
  EXPECT_FALSE(TemporaryFolder::make("inner"));
  if (before == nullptr)
    unsetenv("TMPDIR");
  else
    setenv("TMPDIR", kept.c_str(), 1);
}

TEST_F(RealFiles, ALockKeepsOthersOut) {
  {
    const auto held = FileLock::acquire(at("x/lock"), 0);
    ASSERT_TRUE(held);
    const auto second = FileLock::acquire(at("x/lock"), 0.02);
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code(), Code::timeout);
    EXPECT_THAT(second.error().text(), HasSubstr("x/lock"));
  }
  EXPECT_TRUE(FileLock::acquire(at("x/lock"), 0)) << "given back when the object went";
}

TEST_F(RealFiles, ALockIsWaitedFor) {
  std::atomic<int> inside{0};
  std::atomic<bool> shared{false};
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 5; ++i) {
        const auto lock = FileLock::acquire(at("lock"), 60);
        ASSERT_TRUE(lock);
        if (++inside > 1) shared = true;
        --inside;
      }
    });
  threads.clear();
  EXPECT_FALSE(shared);
}

}  // namespace
}  // namespace furlong
