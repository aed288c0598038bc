#pragma once
// For tests: a folder of the test's own, and a store of scripted units in it. Only for tests: it includes
// gtest.

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <stdexcept>
#include <vector>

#include "furlong/base/os/file.h"
#include "furlong/shard/internal/synthetic.h"
#include "furlong/shard/store.h"

namespace furlong::shard {

class StoreFixture : public ::testing::Test {
 protected:
  void SetUp() override {
    auto made = TemporaryFolder::make("furlong-shard-test");
    ASSERT_TRUE(made) << made.error().text();
    folder_.emplace(std::move(*made));
  }
  /// Replaces the one before.
  std::shared_ptr<const Store> make_store(const std::vector<synthetic::Script>& scripts) {
    auto store = synthetic::make_store(folder_->path() / "s.store", scripts);
    if (!store) throw std::runtime_error(store.error().text());
    return store_ = *store;
  }

  std::optional<TemporaryFolder> folder_;
  std::shared_ptr<const Store> store_;
};

}  // namespace furlong::shard
