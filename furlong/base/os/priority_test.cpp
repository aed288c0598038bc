#include "furlong/base/os/priority.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <thread>

#include "furlong/base/os/process.h"

namespace furlong {
namespace {

TEST(Priority, OfOneThreadAndWhatItStarts) {
  const int before = getpriority(PRIO_PROCESS, 0);
  int inside = 0;
  std::string child;
  std::thread([&] {
    lower_thread_priority(5);
    inside = getpriority(PRIO_PROCESS, 0);
    child = system_processes().run({.argv = {"nice"}}, 20).value().standard_output;
  }).join();
  EXPECT_EQ(inside, std::min(before + 5, 19));
  EXPECT_EQ(child, std::to_string(inside) + "\n");
  EXPECT_EQ(getpriority(PRIO_PROCESS, 0), before);
}

}  // namespace
}  // namespace furlong
