#include "furlong/base/os/open_files.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

namespace furlong {
namespace {

/// In a process of its own: a hard limit that was lowered does not come back.
void with_limits(rlim_t soft, rlim_t hard, const std::function<bool()>& holds) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const rlimit limit{.rlim_cur = soft, .rlim_max = hard};
    _exit(setrlimit(RLIMIT_NOFILE, &limit) == 0 && holds() ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << soft << " of " << hard;
}

std::uint64_t soft_limit() {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  return limit.rlim_cur;
}

TEST(OpenFiles, AreAllowedAsFarAsTheSystemAllows) {
  with_limits(64, 256, [] { return allow_open_files(128) == 128 && soft_limit() == 128; });
  with_limits(64, 256, [] { return allow_open_files(4096) == 256 && soft_limit() == 256; });
  with_limits(200, 256, [] { return allow_open_files(100) == 200 && soft_limit() == 200; });
}

}  // namespace
}  // namespace furlong
