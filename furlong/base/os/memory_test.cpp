#include "furlong/base/os/memory.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "furlong/base/os/file.h"
#include "furlong/base/os/internal/control_group.h"

namespace furlong {
namespace {

TEST(Memory, ThePeakGrowsWithUse) {
  const std::uint64_t before = peak_resident_bytes();
  ASSERT_GT(before, 0u);
  {
    // Written to, so that the pages are really there; volatile, so that the writes are.
    std::vector<char> block(before + (64u << 20));
    volatile char* bytes = block.data();
    for (std::size_t i = 0; i < block.size(); i += 4096) bytes[i] = 1;
    EXPECT_GE(peak_resident_bytes(), before + (64u << 20));
  }
  EXPECT_GE(peak_resident_bytes(), before + (64u << 20)) << "a peak does not fall";
  EXPECT_GE(peak_resident_bytes(getpid()), before + (64u << 20)) << "by its number it is the same process";
  EXPECT_EQ(peak_resident_bytes(-1), 0u);
}

TEST(Memory, TheMachineHasSome) {
  EXPECT_GT(total_memory_bytes(), 64u << 20);
  EXPECT_GT(available_memory_bytes(), 0u);
  EXPECT_LE(available_memory_bytes(), total_memory_bytes());
}

// Out of what a container was given, a process is killed at first touch, whatever the machine has.
TEST(Memory, TheTightestControlGroupLimitsIt) {
  using internal::control_group_available_bytes;
  const TemporaryFolder folder = std::move(*TemporaryFolder::make("control-group"));
  const auto put = [&](const std::string& file, std::string_view text) {
    ASSERT_TRUE(system_files().write_atomic(folder.path() / file, text));
  };
  const auto& root = folder.path();
  const std::string v2 = "0::/job/step\n";
  EXPECT_EQ(control_group_available_bytes(v2, root), UINT64_MAX);
  put("job/step/memory.max", "max\n");
  put("job/step/memory.current", "900\n");
  EXPECT_EQ(control_group_available_bytes(v2, root), UINT64_MAX);
  put("job/memory.max", "2000\n");
  put("job/memory.current", "1500\n");
  EXPECT_EQ(control_group_available_bytes(v2, root), 500u);
  put("job/memory.stat", "anon 1100\ninactive_file 400\nactive_file 1\n");
  EXPECT_EQ(control_group_available_bytes(v2, root), 900u);
  put("job/step/memory.max", "1000\n");
  EXPECT_EQ(control_group_available_bytes(v2, root), 100u);
  put("job/step/memory.current", "1200\n");
  EXPECT_EQ(control_group_available_bytes(v2, root), 0u);
  // In a container the root is its own group, whatever path the host's view gives.
  put("memory.max", "50\n");
  put("memory.current", "10\n");
  EXPECT_EQ(control_group_available_bytes("0::/\n", root), 40u);
  EXPECT_EQ(control_group_available_bytes("0::/not/mounted/here\n", root), 40u);

  put("memory/slurm/memory.limit_in_bytes", "9223372036854771712\n");
  put("memory/slurm/memory.usage_in_bytes", "12\n");
  EXPECT_EQ(control_group_available_bytes("3:cpu:/\n4:memory:/slurm\n", root), 9223372036854771700u);
  put("memory/slurm/memory.limit_in_bytes", "112\n");
  EXPECT_EQ(control_group_available_bytes("3:cpu:/\n4:memory:/slurm\n", root), 100u);
  for (const char* odd : {"", "\n", ":", "4:memory", "x:y:z:", "1:cpu:/job"})
    EXPECT_EQ(control_group_available_bytes(odd, root), UINT64_MAX) << odd;
}

TEST(Memory, SwitchesNeverFall) {
  const std::uint64_t before = involuntary_switches();
  EXPECT_GE(involuntary_switches(), before);
}

}  // namespace
TEST(Memory, OfOnesOwnIsNotWhatIsMapped) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the sanitizer's shadow of what is looked at is memory of the process's own";
#endif
  const auto folder = TemporaryFolder::make("own");
  ASSERT_TRUE(folder);
  const auto file = folder->path() / "bytes";
  constexpr std::size_t kBytes = 64u << 20;
  ASSERT_TRUE(system_files().write_atomic(file, std::string(kBytes, 'x')));
  const int descriptor = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_GE(descriptor, 0);
  void* const map = ::mmap(nullptr, kBytes, PROT_READ, MAP_SHARED, descriptor, 0);
  ::close(descriptor);
  ASSERT_NE(map, MAP_FAILED);
  const std::uint64_t before = own_memory_bytes();
  ASSERT_GT(before, 0u);
  const OwnMemoryWatch watch;
  std::size_t sum = 0;
  for (std::size_t at = 0; at < kBytes; at += 4096) sum += static_cast<const unsigned char*>(map)[at];
  EXPECT_EQ(sum, kBytes / 4096 * 'x');
  EXPECT_LT(watch.peak_bytes(), before + kBytes / 2) << "mapped and looked at, yet not its own";
  {
    std::vector<char> own(kBytes, 'y');
    EXPECT_GT(own_memory_bytes(), before + kBytes / 2);
    EXPECT_GT(watch.peak_bytes(), before + kBytes / 2);
    EXPECT_EQ(own.back(), 'y');
  }
  EXPECT_GT(watch.peak_bytes(), before + kBytes / 2) << "it was there";
  ::munmap(map, kBytes);
}

}  // namespace furlong
