#include "furlong/worker/device_lock.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace furlong::worker {
namespace {

TEST(DeviceLock, OneAtATimeAndNobodyStarves) {
  DeviceLock lock(system_clock());
  std::atomic<int> inside{0};
  std::atomic<bool> broken{false};
  std::vector<int> turns(4, 0);
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i)
      threads.emplace_back([&, i] {
        for (int k = 0; k < 500; ++k) {
          const Holding holding(lock);
          if (++inside != 1) broken = true;
          ++turns[static_cast<std::size_t>(i)];
          --inside;
        }
      });
  }
  EXPECT_FALSE(broken);
  EXPECT_EQ(turns, (std::vector<int>{500, 500, 500, 500}));
  EXPECT_FALSE(lock.wanted());
}

TEST(DeviceLock, WhoeverWaitsIsServedBeforeTheHolderComesAgain) {
  DeviceLock lock(system_clock());
  lock.acquire();
  std::atomic<bool> served{false};
  std::jthread other([&] {
    const Holding holding(lock);
    served = true;
  });
  while (!lock.wanted()) std::this_thread::yield();
  lock.release();
  const Holding again(lock);  // behind the one that waited
  EXPECT_TRUE(served);
}

}  // namespace
}  // namespace furlong::worker
