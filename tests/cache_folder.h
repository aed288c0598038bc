#pragma once
// For test programs that compile kernels.

#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <utility>

#include "furlong/base/os/file.h"

namespace furlong {

/// Compiled kernels go into a folder of this run's own. For ::testing::AddGlobalTestEnvironment.
class CacheFolder : public ::testing::Environment {
 public:
  explicit CacheFolder(std::string name) : name_(std::move(name)) {}
  void SetUp() override {
    auto folder = TemporaryFolder::make(name_);
    ASSERT_TRUE(folder) << folder.error().text();
    folder_ = std::make_unique<TemporaryFolder>(*std::move(folder));
    setenv("FURLONG_CACHE_DIR", folder_->path().c_str(), 1);
  }
  void TearDown() override { folder_.reset(); }

 private:
  std::string name_;
  std::unique_ptr<TemporaryFolder> folder_;
};

}  // namespace furlong
