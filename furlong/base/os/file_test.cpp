#include "furlong/base/os/file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <optional>
#include <set>
#include <thread>

#include "furlong/base/os/internal/abandoned.h"
#include "furlong/base/os/settle.h"
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
  EXPECT_EQ(large.error().code(), Code::invalid);
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
  // Who reads is slow, and the pipe holds less than what is written.
  const std::string much(1u << 20, 'm');
  const int reading = open(at("pipe").c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  ASSERT_GE(reading, 0);
  ASSERT_EQ(fcntl(reading, F_SETFL, 0), 0);
  std::string got;
  Status written;
  std::jthread writer([&] { written = system_files().write_atomic(at("pipe"), much); });
  std::array<char, 4096> some;
  for (ssize_t count = 1; got.size() < much.size() && count > 0;)
    if ((count = read(reading, some.data(), some.size())) > 0)
      got.append(some.data(), static_cast<std::size_t>(count));
    else if (got.empty())
      count = 1;  // the writer is not there yet
  writer.join();
  close(reading);
  ASSERT_TRUE(written) << written.error().text();
  EXPECT_EQ(got, much);
  EXPECT_TRUE(fs::is_fifo(at("pipe")));
}

// Each of these would be waited for, or read, for ever.
TEST_F(RealFiles, WhatIsNoFileIsRefusedAtOnce) {
  ASSERT_EQ(mkfifo(at("pipe").c_str(), 0600), 0);
  fs::create_symlink("pipe", at("link"));
  const int socket_number = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string name = at("s").string();
  ASSERT_LT(name.size(), sizeof address.sun_path);
  std::memcpy(address.sun_path, name.c_str(), name.size());
  ASSERT_EQ(bind(socket_number, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  for (const auto& [path, word] : {std::pair{at("pipe"), "is a pipe"},
                                   {at("link"), "is a pipe"},
                                   {at("s"), "is a socket"},
                                   {fs::path("/dev/zero"), "is a device"},
                                   {folder_.path(), "is a folder"}}) {
    const auto read = system_files().read(path);
    const auto hash = system_files().hash(path);
    ASSERT_FALSE(read || hash) << path;
    EXPECT_EQ(read.error().code(), Code::invalid) << path;
    EXPECT_THAT(read.error().text(), HasSubstr(path.string() + ": " + word));
    EXPECT_EQ(hash.error().text(), read.error().text());
  }
  for (const char* unread : {"pipe", "link", "s"}) {
    const Status written = system_files().write_atomic(at(unread), "x");
    ASSERT_FALSE(written) << unread;
    EXPECT_EQ(written.error().code(), Code::invalid) << written.error().text();
    EXPECT_THAT(written.error().text(), HasSubstr("nobody reads"));
  }
  close(socket_number);
}

TEST_F(RealFiles, AHugeFileIsRefusedUnreadAndHashedInPieces) {
  std::ofstream(at("sparse")) << "x";
  fs::resize_file(at("sparse"), std::uintmax_t{1} << 40);
  EXPECT_EQ(system_files().read(at("sparse")).error().code(), Code::invalid);
  EXPECT_EQ(system_files().hash(at("sparse")).error().code(), Code::invalid);
  const std::string bytes = std::string(5'000'000, 'a') + "end";
  ASSERT_TRUE(system_files().write_atomic(at("f"), bytes));
  EXPECT_EQ(*system_files().hash(at("f")), blake2b_256(bytes));
  EXPECT_EQ(*system_files().hash(at("f"), bytes.size()), blake2b_256(bytes));
  EXPECT_EQ(system_files().hash(at("f"), bytes.size() - 1).error().code(), Code::invalid);
  EXPECT_EQ(*system_files().read(at("f"), bytes.size()), bytes);
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

TEST(TemporaryFolder, IsRemovedWhileSomebodyStillFillsIt) {
  fs::path path;
  std::thread filler;
  std::atomic<int> made{0};
  {
    const auto folder = TemporaryFolder::make("furlong-test").value();
    path = folder.path();
    filler = std::thread([&] {
      // As a compiler that goes on until the signal reaches it; it ends by itself when the folder is gone.
      for (int i = 0; i < 1000 && std::ofstream(path / std::to_string(i)).is_open(); ++i) ++made;
    });
    while (made == 0) std::this_thread::yield();
  }
  filler.join();
  EXPECT_FALSE(fs::exists(path));
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

TEST_F(RealFiles, AFinishedFileIsGivenItsName) {
  std::ofstream(at("f.partial")) << "new";
  ASSERT_TRUE(settle_file(at("f.partial"), at("f")));
  EXPECT_EQ(*system_files().read(at("f")), "new");
  EXPECT_FALSE(fs::exists(at("f.partial")));
  const Status none = settle_file(at("f.partial"), at("f"));
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code(), Code::unavailable);
  EXPECT_THAT(none.error().text(), HasSubstr("f.partial"));
  EXPECT_EQ(*system_files().read(at("f")), "new");
}

TEST_F(RealFiles, AFinishedFileReplacesNone) {
  std::ofstream(at("f.partial")) << "new";
  std::ofstream(at("f")) << "old";
  const Status there = settle_file(at("f.partial"), at("f"));
  ASSERT_FALSE(there);
  EXPECT_EQ(there.error().code(), Code::invalid);
  EXPECT_THAT(there.error().text(), HasSubstr("is there already"));
  EXPECT_EQ(*system_files().read(at("f")), "old");
  EXPECT_EQ(*system_files().read(at("f.partial")), "new");
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
