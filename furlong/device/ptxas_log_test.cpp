#include "furlong/device/ptxas_log.h"

#include <gtest/gtest.h>

namespace furlong::device {
namespace {

TEST(PtxasLog, TakesTheLargestOverTheKernels) {
  const PtxasFacts facts = parse_ptxas_log(
      "ptxas info    : 0 bytes gmem\n"
      "ptxas info    : Compiling entry function 'a' for 'sm_90'\n"
      "ptxas info    : Function properties for a\n"
      "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
      "ptxas info    : Used 40 registers, used 1 barriers, 4352 bytes smem, 376 bytes cmem[0]\n"
      "ptxas info    : Compiling entry function 'b' for 'sm_90'\n"
      "    64 bytes stack frame, 16 bytes spill stores, 24 bytes spill loads\n"
      "ptxas info    : Used 32 registers, 352 bytes cmem[0]\n");
  EXPECT_EQ(facts.registers, 40);
  EXPECT_EQ(facts.spill_bytes, 40u);
  EXPECT_EQ(facts.shared_bytes, 4352u);
}

TEST(PtxasLog, SaysNothingWhereTheLogDoesNot) {
  for (const char* log : {"", "\n\n", "warning: registers", "Used many registers",
                          "99999999999999999999 registers", "12 bytes spill stores", " registers"}) {
    const PtxasFacts facts = parse_ptxas_log(log);
    EXPECT_FALSE(facts.registers) << log;
    EXPECT_FALSE(facts.spill_bytes) << log;
    EXPECT_FALSE(facts.shared_bytes) << log;
  }
}

}  // namespace
}  // namespace furlong::device
