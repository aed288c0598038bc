#include "furlong/base/os/stream.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <thread>

#include "furlong/base/os/file.h"
#include "furlong/base/random.h"

namespace furlong {
namespace {

namespace fs = std::filesystem;

TemporaryFolder folder() { return *TemporaryFolder::make("furlong-stream"); }

std::vector<std::string> lines_of(const fs::path& path, std::size_t most = 1u << 20) {
  auto reader = LineReader::open(path, most);
  EXPECT_TRUE(reader);
  std::vector<std::string> lines;
  for (;;) {
    const auto line = reader->next();
    EXPECT_TRUE(line);
    if (!line || !*line) break;
    EXPECT_EQ((*line)->number, static_cast<int>(lines.size()) + 1);
    lines.push_back(std::string((*line)->text) + ((*line)->too_long ? "…" : ""));
  }
  EXPECT_EQ(reader->bytes_read(), *reader->size());
  return lines;
}

TEST(LineReader, GivesEveryLineOfAFile) {
  const auto place = folder();
  const fs::path file = place.path() / "lines";
  using Lines = std::vector<std::string>;
  for (const auto& [text, lines] : {std::pair<std::string, Lines>{"", {}},
                                    {"\n", {""}},
                                    {"a", {"a"}},
                                    {"a\n", {"a"}},
                                    {"a\n\nb\r\nc", {"a", "", "b\r", "c"}}}) {
    ASSERT_TRUE(system_files().write_atomic(file, text));
    EXPECT_EQ(lines_of(file), lines);
  }
}

TEST(LineReader, AgreesWithASplitOfTheWholeText) {
  const auto place = folder();
  Random random(7);
  std::string text;
  std::vector<std::string> lines;
  for (int i = 0; i < 3000; ++i) {
    std::string line(random.below(random.below(50) == 0 ? 100'000 : 200), static_cast<char>('a' + i % 26));
    text += line + "\n";
    lines.push_back(line.size() > 50'000 ? line.substr(0, 100) + "…" : line);
  }
  const fs::path file = place.path() / "lines";
  ASSERT_TRUE(system_files().write_atomic(file, text));
  EXPECT_EQ(lines_of(file, 50'000), lines);
}

TEST(LineReader, SkipsWhatIsTooLongAtTheEndToo) {
  const auto place = folder();
  const fs::path file = place.path() / "lines";
  ASSERT_TRUE(system_files().write_atomic(file, "short\n" + std::string(2'000'000, 'x')));
  const auto lines = lines_of(file);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[1], std::string(100, 'x') + "…");
}

TEST(LineReader, ReadsAPipeAndStopsWaitingWhenAsked) {
  const auto place = folder();
  const fs::path pipe = place.path() / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  std::jthread writer([&] {
    auto out = FileWriter::open(pipe);
    ASSERT_TRUE(out);
    ASSERT_TRUE(out->write("one\ntwo\nunfinished"));
    ASSERT_TRUE(out->commit());
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
  });
  auto reader = LineReader::open(pipe);
  ASSERT_TRUE(reader);
  EXPECT_EQ(reader->size(), std::nullopt);
  EXPECT_EQ((*reader->next())->text, "one");
  EXPECT_EQ((*reader->next())->text, "two");
  std::stop_source stop;
  stop.request_stop();
  const auto stopped = reader->next(stop.get_token());
  ASSERT_TRUE(stopped);
  EXPECT_FALSE(stopped->has_value()) << "not an unfinished line";
  EXPECT_EQ((*reader->next())->text, "unfinished") << "once the writer is gone";
}

TEST(LineReader, WhatCannotBeReadIsNamed) {
  const auto place = folder();
  const auto absent = LineReader::open(place.path() / "absent");
  ASSERT_FALSE(absent);
  EXPECT_EQ(absent.error().code(), Code::unavailable);
  EXPECT_NE(absent.error().text().find("absent"), std::string::npos);
  const auto a_folder = LineReader::open(place.path());
  ASSERT_FALSE(a_folder);
  EXPECT_EQ(a_folder.error().code(), Code::invalid);
}

TEST(FileWriter, ShowsTheFileOnlyOnceItIsWhole) {
  const auto place = folder();
  const fs::path file = place.path() / "new" / "out";
  {
    auto writer = FileWriter::open(file);
    ASSERT_TRUE(writer);
    ASSERT_TRUE(writer->write(std::string(1'000'000, 'x')));
    EXPECT_FALSE(fs::exists(file));
  }
  EXPECT_EQ(system_files().list(file.parent_path())->size(), 0u)
      << "nothing is left of what was not finished";
  auto writer = FileWriter::open(file);
  ASSERT_TRUE(writer);
  std::string all;
  for (int i = 0; i < 100; ++i) {
    all += std::string(10'000, static_cast<char>('a' + i % 26));
    ASSERT_TRUE(writer->write(std::string(10'000, static_cast<char>('a' + i % 26))));
  }
  ASSERT_TRUE(writer->commit());
  EXPECT_EQ(*system_files().read(file), all);
  EXPECT_EQ(system_files().list(file.parent_path())->size(), 1u);
}

TEST(FileWriter, KeepsAModeAndALink) {
  const auto place = folder();
  const fs::path file = place.path() / "file", link = place.path() / "link";
  ASSERT_TRUE(system_files().write_atomic(file, "old"));
  fs::permissions(file, fs::perms::owner_read | fs::perms::owner_write);
  fs::create_symlink("file", link);
  auto writer = FileWriter::open(link);
  ASSERT_TRUE(writer);
  ASSERT_TRUE(writer->write("new"));
  ASSERT_TRUE(writer->commit());
  EXPECT_EQ(*system_files().read(file), "new");
  EXPECT_TRUE(fs::is_symlink(link));
  EXPECT_EQ(fs::status(file).permissions(), fs::perms::owner_read | fs::perms::owner_write);
}

TEST(FileWriter, AFullDiskIsExhausted) {
  auto writer = FileWriter::open("/dev/full");
  ASSERT_TRUE(writer);
  Status status = writer->write(std::string(1 << 20, 'x'));
  if (status) status = writer->commit();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code(), Code::exhausted);
  const auto a_folder = FileWriter::open("/tmp");
  ASSERT_FALSE(a_folder);
  EXPECT_EQ(a_folder.error().code(), Code::invalid);
}

}  // namespace
}  // namespace furlong
