#include "furlong/device/cuda/cuda.h"

#include "furlong/device/conformance/gtest.h"

namespace furlong::device {

// Skips by name until the back end is built.
FURLONG_CONFORMANCE(cuda, make_cuda_driver());

namespace {

TEST(CudaDriver, SaysTruthfullyWhyItIsUnavailable) {
  const auto driver = make_cuda_driver();
  EXPECT_EQ(driver->name(), "cuda");
  const auto listed = driver->list();
  ASSERT_FALSE(listed);
  EXPECT_EQ(listed.error().code(), Code::unavailable);
  const std::string text = listed.error().text();
  EXPECT_TRUE(text.find("libcuda.so.1") != std::string::npos ||
              text.find("not built yet") != std::string::npos)
      << text;
  const auto opened = driver->open(0);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code(), Code::unavailable);
}

}  // namespace
}  // namespace furlong::device
