#include "furlong/shard/journal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "furlong/base/os/file.h"

namespace furlong::shard {
namespace {

using ::testing::HasSubstr;

class JournalTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto made = TemporaryFolder::make("furlong-journal-test");
    ASSERT_TRUE(made) << made.error().text();
    folder_.emplace(std::move(*made));
    file_ = folder_->path() / "j";
  }
  std::unique_ptr<Journal> open(const std::string& identity = R"({"a":1})") {
    auto opened = Journal::open(file_, identity);
    if (!opened) throw std::runtime_error(opened.error().text());
    return std::move(*opened);
  }
  Error open_error(const std::string& identity = R"({"a":1})") {
    const auto opened = Journal::open(file_, identity);
    EXPECT_FALSE(opened);
    return opened ? Error(Code::internal, "opened") : opened.error();
  }
  std::string bytes() { return system_files().read(file_).value(); }
  void write(std::string_view text) { ASSERT_TRUE(system_files().write_atomic(file_, text)); }

  std::optional<TemporaryFolder> folder_;
  std::filesystem::path file_;
};

TEST_F(JournalTest, KeepsFindingsFromOneOpeningToTheNext) {
  {
    const auto journal = open();
    ASSERT_TRUE(journal->add("segment", "0", R"({"x":0.1})"));
    ASSERT_TRUE(journal->add("price", "0", "7"));
    ASSERT_TRUE(journal->add("price", "0", "8")) << "the first finding stays";
    EXPECT_EQ(journal->find("price", "0"), "7");
  }
  const auto journal = open();
  EXPECT_EQ(journal->size(), 2u);
  EXPECT_EQ(journal->find("segment", "0"), R"({"x":0.1})");
  EXPECT_EQ(journal->find("price", "0"), "7");
  EXPECT_EQ(journal->find("price", "1"), std::nullopt);
  EXPECT_EQ(journal->dropped_bytes(), 0u);
}

TEST_F(JournalTest, ATornEndIsDroppedWhereverItIsTorn) {
  open();
  const std::size_t head = bytes().size();
  ASSERT_TRUE(open()->add("k", "first", "1"));
  const std::size_t first = bytes().size();
  ASSERT_TRUE(open()->add("k", "second", "2"));
  const std::string whole = bytes();
  for (std::size_t keep = head; keep < whole.size(); ++keep) {
    write(whole.substr(0, keep));
    const auto journal = open();
    EXPECT_EQ(journal->size(), keep >= first ? 1u : 0u) << keep;
    EXPECT_EQ(journal->dropped_bytes(), keep - (keep >= first ? first : head));
    ASSERT_TRUE(journal->add("k", "second", "2"));
    ASSERT_TRUE(journal->add("k", "first", "1"));
  }
  EXPECT_EQ(bytes(), whole) << "what came after a torn end is whole";
}

TEST_F(JournalTest, DamageBeforeTheEndIsCorruptAndNamesItsLine) {
  ASSERT_TRUE(open()->add("k", "first", "1"));
  ASSERT_TRUE(open()->add("k", "second", "2"));
  std::string bad = bytes();
  bad[bad.find("first")] = 'F';
  write(bad);
  EXPECT_EQ(open_error().code(), Code::corrupt);
  EXPECT_THAT(open_error().text(), HasSubstr("j:2: the check sum does not fit"));
}

TEST_F(JournalTest, AnotherPlansJournalAndAForeignFileAreRefusedAndLeftAlone) {
  open();
  const std::string before = bytes();
  EXPECT_EQ(open_error(R"({"a":2})").code(), Code::invalid);
  EXPECT_THAT(open_error(R"({"a":2})").text(), HasSubstr(R"(is about {"a":1}, not {"a":2})"));
  EXPECT_EQ(bytes(), before);
  write("some notes of mine\n");
  EXPECT_EQ(open_error().code(), Code::invalid);
  EXPECT_EQ(bytes(), "some notes of mine\n");
}

TEST_F(JournalTest, ANewerVersionSaysFoundAndExpected) {
  const std::string body = R"({"furlong_shard_journal":2,"about":{"a":1}})";
  write(blake2b_256(body).hex().substr(0, 16) + " " + body + "\n");
  EXPECT_EQ(open_error().code(), Code::incompatible);
  EXPECT_THAT(open_error().text(), HasSubstr("found a journal of version 2, expected 1"));
}

TEST_F(JournalTest, OneProcessWritesAtATime) {
  const auto journal = open();
  EXPECT_EQ(open_error().code(), Code::denied);
}

TEST_F(JournalTest, TheDigestDoesNotDependOnTheOrderOfFindings) {
  Journal one, two;
  ASSERT_TRUE(one.add("a", "1", "x"));
  EXPECT_NE(one.digest(), two.digest());
  ASSERT_TRUE(one.add("b", "2", "y"));
  ASSERT_TRUE(two.add("b", "2", "y"));
  ASSERT_TRUE(two.add("a", "1", "x"));
  EXPECT_EQ(one.digest(), two.digest());
}

}  // namespace
}  // namespace furlong::shard
