#include "furlong/device/cuda/cuda.h"

#include "furlong/device/conformance/gtest.h"

namespace furlong::device {

FURLONG_CONFORMANCE(cuda, make_cuda_driver());

namespace {

TEST(CudaDriver, WithoutADriverItSaysWhatToDo) {
  const auto driver = make_cuda_driver();
  EXPECT_EQ(driver->name(), "cuda");
  const auto listed = driver->list();
  if (listed) GTEST_SKIP() << "a driver is here";
  EXPECT_EQ(listed.error().code(), Code::unavailable);
  const std::string text = listed.error().text();
  EXPECT_TRUE(text.find("install it") != std::string::npos ||
              text.find("does not start") != std::string::npos)
      << text;
  const auto opened = driver->open(0);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code(), Code::unavailable);
}

}  // namespace
}  // namespace furlong::device
