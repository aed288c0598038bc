#include "furlong/base/architecture.h"

#include <gtest/gtest.h>

namespace furlong {
namespace {

TEST(Architecture, ComputeCapabilityOfItsName) {
  EXPECT_EQ(compute_capability("sm_90"), 90);
  EXPECT_EQ(compute_capability("sm_90a"), 90);
  EXPECT_EQ(compute_capability("sm_120"), 120);
  for (const char* name :
       {"", "sm_", "sm_x", "sm_-5", "90", "gfx1100", "compute_80", "sm_99999999999999999999"})
    EXPECT_EQ(compute_capability(name), 0) << name;
}

}  // namespace
}  // namespace furlong
