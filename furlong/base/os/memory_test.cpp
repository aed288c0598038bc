#include "furlong/base/os/memory.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <vector>

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

TEST(Memory, SwitchesNeverFall) {
  const std::uint64_t before = involuntary_switches();
  EXPECT_GE(involuntary_switches(), before);
}

}  // namespace
}  // namespace furlong
