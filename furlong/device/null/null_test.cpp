#include "furlong/device/null/null.h"

#include "furlong/device/conformance/gtest.h"

namespace furlong::device {

// A back end that answers `unavailable` skips the whole suite; it must not fail it.
FURLONG_CONFORMANCE(null, make_null_driver());

namespace {

TEST(NullDriver, AnswersUnavailableAndSaysWhy) {
  const auto driver = make_null_driver();
  EXPECT_EQ(driver->name(), "null");
  const auto listed = driver->list();
  ASSERT_FALSE(listed);
  EXPECT_EQ(listed.error().code(), Code::unavailable);
  EXPECT_NE(listed.error().text().find("README.md"), std::string::npos);
  const auto opened = driver->open(0);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code(), Code::unavailable);
}

}  // namespace
}  // namespace furlong::device
