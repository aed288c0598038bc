#include "furlong/record/records.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <thread>

#include "furlong/base/random.h"
#include "furlong/record/internal/append_file.h"
#include "furlong/record/internal/random_record.h"
#include "furlong/record/internal/test_records.h"

namespace furlong::record {
namespace {

using ::testing::HasSubstr;

// A disk that takes `room` more bytes, and whose syncs or cuts may fail.
class FakeAppendFile : public internal::AppendFile {
 public:
  std::string bytes;
  std::size_t room = ~std::size_t{0};
  std::size_t most_at_once = ~std::size_t{0};
  bool sync_fails = false, cut_fails = false;
  int syncs = 0;

  Result<std::uint64_t> size() override { return bytes.size(); }
  Result<bool> torn() override { return !bytes.empty() && bytes.back() != '\n'; }
  Result<std::size_t> write(std::string_view more) override {
    if (room == 0) return fail(Code::exhausted, "writing: No space left on device");
    const std::size_t taken = std::min({more.size(), room, most_at_once});
    bytes += more.substr(0, taken);
    room -= taken;
    return taken;
  }
  Status truncate(std::uint64_t size) override {
    if (cut_fails) return fail(Code::internal, "cutting it back: Input/output error");
    bytes.resize(size);
    return {};
  }
  Status sync() override {
    ++syncs;
    if (sync_fails) return fail(Code::internal, "syncing: Input/output error");
    return {};
  }
};

TEST(AppendLine, ADiskThatFillsAtAnyByteLeavesWhatWasThere) {
  const std::string line = to_line(internal::failed_gemv_record());
  for (const std::string before : {"", "old\n", "torn"}) {
    for (std::size_t room = 0; room <= line.size() + 2; ++room) {
      FakeAppendFile file;
      file.bytes = before;
      file.room = room;
      file.most_at_once = 100;
      const std::string wanted = before + (before == "torn" ? "\n" : "") + line + "\n";
      const Status status = internal::append_line(file, line);
      if (room >= wanted.size() - before.size()) {
        EXPECT_TRUE(status);
        EXPECT_EQ(file.bytes, wanted);
        EXPECT_EQ(file.syncs, 1);
      } else {
        ASSERT_FALSE(status);
        EXPECT_EQ(status.error().code(), Code::exhausted);
        EXPECT_EQ(file.bytes, before) << room;
      }
    }
  }
}

TEST(AppendLine, AFailedSyncTakesTheLineBack) {
  FakeAppendFile file;
  file.bytes = "old\n";
  file.sync_fails = true;
  EXPECT_EQ(internal::append_line(file, "new").error().code(), Code::internal);
  EXPECT_EQ(file.bytes, "old\n");
  file.sync_fails = false;
  EXPECT_TRUE(internal::append_line(file, "new"));
  EXPECT_EQ(file.bytes, "old\nnew\n");
}

TEST(AppendLine, ALineThatCannotBeTakenBackIsEndedByTheNext) {
  FakeAppendFile file;
  file.bytes = "old\n";
  file.room = 2;
  file.cut_fails = true;
  const Status status = internal::append_line(file, "new");
  EXPECT_EQ(status.error().code(), Code::exhausted);
  EXPECT_THAT(status.error().text(), HasSubstr("its last line may be torn"));
  file.room = 100;
  EXPECT_TRUE(internal::append_line(file, "next"));
  EXPECT_EQ(file.bytes, "old\nne\nnext\n");
}

class RecordsOnDisk : public ::testing::Test {
 protected:
  std::filesystem::path path() const { return folder_.path() / "deep" / "records.jsonl"; }
  std::string bytes() const { return system_files().read(path()).value(); }

 private:
  TemporaryFolder folder_ = TemporaryFolder::make("furlong-records-test").value();
};

TEST_F(RecordsOnDisk, AreReadBackInOrder) {
  Random random(23);
  std::vector<RaceRecord> records;
  for (int i = 0; i < 20; ++i) {
    records.push_back(internal::random_record(random));
    ASSERT_TRUE(append_record(path(), records.back()));
  }
  const RecordFile read = read_records(system_files(), path()).value();
  EXPECT_EQ(read.records, records);
  EXPECT_TRUE(read.problems.empty());
  EXPECT_EQ(read_records(system_files(), path(), 10).error().code(), Code::invalid);
  EXPECT_EQ(read_records(system_files(), path() / "absent").error().code(), Code::unavailable);
}

TEST_F(RecordsOnDisk, ATornFileLosesNothingBeforeTheTear) {
  ASSERT_TRUE(append_record(path(), internal::lottery_record()));
  ASSERT_TRUE(append_record(path(), internal::failed_gemv_record()));
  ASSERT_TRUE(append_record(path(), internal::failed_gemv_record()));
  const std::string whole = bytes();
  const std::size_t first = whole.find('\n') + 1, second = whole.find('\n', first) + 1;
  for (std::size_t size = 0; size <= whole.size(); ++size) {
    const RecordFile read = parse_records(std::string_view(whole).substr(0, size), "f.jsonl");
    // A line that lacks nothing but its newline is whole.
    const std::size_t lines = size + 1 >= whole.size() ? 3
                              : size + 1 >= second     ? 2
                              : size + 1 >= first      ? 1
                                                       : 0;
    ASSERT_EQ(read.records.size(), lines) << size;
    const std::size_t begin = lines == 3 ? whole.size() : lines == 2 ? second : lines == 1 ? first : 0;
    if (size <= begin) {
      EXPECT_TRUE(read.problems.empty()) << size;
      continue;
    }
    ASSERT_EQ(read.problems.size(), 1u) << size;
    EXPECT_EQ(read.problems[0].code(), Code::corrupt);
    EXPECT_THAT(read.problems[0].text(),
                HasSubstr(fmt::format("f.jsonl:{}: byte {}: the last line is torn after {} bytes", lines + 1,
                                      begin, size - begin)));
  }
}

TEST_F(RecordsOnDisk, AppendingToATornFileSpoilsNoOtherLine) {
  ASSERT_TRUE(append_record(path(), internal::lottery_record()));
  const std::string whole = bytes();
  ASSERT_TRUE(system_files().write_atomic(path(), whole + whole.substr(0, 40)));
  ASSERT_TRUE(append_record(path(), internal::failed_gemv_record()));
  const RecordFile read = read_records(system_files(), path()).value();
  EXPECT_EQ(read.records, (std::vector{internal::lottery_record(), internal::failed_gemv_record()}));
  ASSERT_EQ(read.problems.size(), 1u);
  EXPECT_THAT(read.problems[0].text(), HasSubstr(fmt::format("(line 2 begins at byte {})", whole.size())));
}

TEST_F(RecordsOnDisk, ALineOfANewerProgramIsNamedAndTheOthersAreRead) {
  const std::string line = to_line(internal::lottery_record());
  const RecordFile read = parse_records("\n" + line + "\r\n{\"schema\":2}\n  \n" + line, "f");
  EXPECT_EQ(read.records.size(), 2u);
  ASSERT_EQ(read.problems.size(), 1u);
  EXPECT_EQ(read.problems[0].code(), Code::incompatible);
  EXPECT_THAT(read.problems[0].text(), HasSubstr("f:3: race record of schema 2, expected 1"));
}

TEST_F(RecordsOnDisk, SeveralWritersLoseNothing) {
  constexpr int writers = 4, each = 10;
  std::vector<std::thread> threads;
  std::atomic<int> written = 0;
  for (int w = 0; w < writers; ++w)
    threads.emplace_back([&, w] {
      for (int i = 0; i < each; ++i) {
        RaceRecord record = internal::lottery_record();
        record.slot = fmt::format("{}-{}", w, i);
        if (append_record(path(), record)) ++written;
      }
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(written, writers * each);
  const RecordFile read = read_records(system_files(), path()).value();
  EXPECT_TRUE(read.problems.empty());
  std::set<std::string> slots;
  for (const RaceRecord& record : read.records) slots.insert(record.slot);
  EXPECT_EQ(slots.size(), static_cast<std::size_t>(writers * each));
}

TEST_F(RecordsOnDisk, ARealFileThatMayNotGrowIsCutBack) {
  ASSERT_TRUE(append_record(path(), internal::lottery_record()));
  const std::string before = bytes();
  rlimit old{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &old), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit small = old;
  small.rlim_cur = before.size() + 100;  // the second line is written in part
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const Status status = append_record(path(), internal::lottery_record());
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &old), 0);
  std::signal(SIGXFSZ, handler);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code(), Code::exhausted);
  EXPECT_THAT(status.error().text(), HasSubstr(path().string()));
  EXPECT_EQ(bytes(), before);
  EXPECT_TRUE(append_record(path(), internal::failed_gemv_record()));
}

TEST_F(RecordsOnDisk, AFullDeviceAnswersExhausted) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "there is no /dev/full here";
  const Status status = append_record("/dev/full", internal::lottery_record());
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code(), Code::exhausted);
  EXPECT_THAT(status.error().text(), HasSubstr("/dev/full"));
}

TEST_F(RecordsOnDisk, APlaceThatCannotBeOpenedIsNamed) {
  ASSERT_TRUE(append_record(path(), internal::lottery_record()));
  const Status status = append_record(path() / "inside" / "a-file", internal::lottery_record());
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().text(), HasSubstr("a-file"));
}

TEST_F(RecordsOnDisk, AHeldLockTimesOut) {
  ASSERT_TRUE(append_record(path(), internal::lottery_record()));
  const auto held = internal::open_append_file(path(), 1).value();
  const auto second = internal::open_append_file(path(), 0.02);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code(), Code::timeout);
}

}  // namespace
}  // namespace furlong::record
