#include "furlong/worker/internal/line_queue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <vector>

namespace furlong::worker {
namespace {

/// A reader that reads when it is let.
struct Reader {
  std::mutex mutex;
  std::condition_variable let;
  bool reading = true, gone = false;
  std::vector<std::string> lines;

  Status take(std::string_view line) {
    std::unique_lock lock(mutex);
    let.wait(lock, [&] { return reading; });
    if (gone) return fail(Code::unavailable, "gone");
    lines.emplace_back(line);
    return {};
  }
  void set(bool value) {
    {
      const std::lock_guard lock(mutex);
      reading = value;
    }
    let.notify_all();
  }
};

TEST(LineQueue, KeepsTheOrder) {
  auto reader = std::make_shared<Reader>();
  LineQueue queue([reader](std::string_view line) { return reader->take(line); }, 1 << 20);
  std::vector<std::string> wanted;
  for (int i = 0; i < 1000; ++i) {
    wanted.push_back(std::to_string(i));
    queue.push(wanted.back(), i % 2 == 0);
  }
  EXPECT_TRUE(queue.drain(30));
  EXPECT_EQ(reader->lines, wanted);
}

TEST(LineQueue, LeavesOutOnlyWhatTheNextOneSays) {
  auto reader = std::make_shared<Reader>();
  reader->set(false);
  LineQueue queue([reader](std::string_view line) { return reader->take(line); }, 1000);
  for (int i = 0; i < 200; ++i) {
    queue.push("rate 56789", true);
    queue.push("found " + std::to_string(1000 + i), false);
  }
  EXPECT_TRUE(queue.full());
  EXPECT_GT(queue.left_out(), 100u);
  reader->set(true);
  EXPECT_TRUE(queue.drain(30));
  EXPECT_FALSE(queue.full());
  std::size_t finds = 0;
  for (const std::string& line : reader->lines) finds += line == "found " + std::to_string(1000 + finds);
  EXPECT_EQ(finds, 200u);
}

TEST(LineQueue, AReaderThatIsGoneBreaksIt) {
  auto reader = std::make_shared<Reader>();
  reader->gone = true;
  LineQueue queue([reader](std::string_view line) { return reader->take(line); }, 1000);
  queue.push("a", false);
  EXPECT_FALSE(queue.drain(30));
  EXPECT_TRUE(queue.broken());
  queue.push("b", false);
  EXPECT_FALSE(queue.full());
}

TEST(LineQueue, GoesWithoutWaitingForAReaderThatHangs) {
  auto reader = std::make_shared<Reader>();
  reader->set(false);
  {
    LineQueue queue([reader](std::string_view line) { return reader->take(line); }, 1000);
    queue.push("a", false);
    EXPECT_FALSE(queue.drain(0.05));
  }
  reader->set(true);
  SUCCEED();
}

}  // namespace
}  // namespace furlong::worker
