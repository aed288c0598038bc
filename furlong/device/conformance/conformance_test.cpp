// The suite must be able to fail: each planted fault of a device is found by a case.
#include "furlong/device/conformance/conformance.h"

#include <gtest/gtest.h>

#include <set>

namespace furlong::device {
namespace {

TEST(Conformance, CaseNamesAreDistinctAndFitGoogleTest) {
  std::set<std::string> names;
  for (const ConformanceCase& one : conformance_cases()) {
    EXPECT_TRUE(names.insert(one.name).second) << one.name;
    EXPECT_EQ(one.name.find_first_not_of("abcdefghijklmnopqrstuvwxyz_0123456789"), std::string::npos)
        << one.name;
  }
  EXPECT_GE(names.size(), 25u);
}

}  // namespace
}  // namespace furlong::device
