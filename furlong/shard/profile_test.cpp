#include "furlong/shard/profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "furlong/shard/internal/synthetic_profile.h"

namespace furlong::shard {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

// Four units: 0 owns the items 0 and 1, 1 owns 2, 2 owns 3, 3 owns nothing.
Profile sample() {
  Profile p;
  p.store = blake2b_256("store");
  p.executor = "synthetic";
  p.executor_version = 3;
  for (const char* name : {"a", "b, \"quoted\"", "c", "d"}) {
    p.keys.push_back(blake2b_256(name));
    p.names.emplace_back(name);
  }
  p.states = {UnitState::measured, UnitState::measured, UnitState::failed, UnitState::unknown};
  p.work = {12.5, 3, 0, 0};
  p.record_bytes = {4096, 100, 0, 0};
  p.features = {"distinct_work", "rows"};
  p.counters = {{2, 1, 0, 0}, {96, 0, 0, 0}};
  p.first_item = {0, 2, 3, 4, 4};
  p.item_bytes = {10, 20, 30, 40};
  p.references.emplace();
  p.references->add(std::vector<std::uint32_t>{});
  p.references->add(std::vector<std::uint32_t>{0, 1});
  p.references->add(std::vector<std::uint32_t>{2});
  p.references->add(std::vector<std::uint32_t>{3});
  p.touched.emplace();
  p.touched->add(std::vector<std::uint32_t>{0, 1});
  p.touched->add(std::vector<std::uint32_t>{1, 2});
  p.touched->add({});
  p.touched->add({});
  p.failed = {{2, Code::mismatch, "rejected: \"no\""}};
  return p;
}

Profile full() {
  Profile p = sample();
  p.seconds = std::vector<double>{0.5, 0.25, 0, 0};
  return p;
}

Error parse_error(std::string_view bytes) {
  const auto profile = parse_profile(bytes, "p.fprof");
  EXPECT_FALSE(profile);
  return profile ? Error(Code::internal, "read") : profile.error();
}

// The check sum set right, so that a change comes further than to it.
std::string resealed(std::string bytes) {
  constexpr std::size_t kSum = sizeof(Digest::bytes), kSection = 4 + 8 + kSum;
  const Digest sum = blake2b_256(std::string_view(bytes).substr(0, bytes.size() - kSection));
  bytes.replace(bytes.size() - kSum, kSum, as_text(sum.bytes));
  return bytes;
}

TEST(ProfileFile, RoundTripsByteForByte) {
  for (const Profile& profile : {sample(), full()}) {
    const std::string bytes = print_profile(profile);
    const auto read = parse_profile(bytes, "p.fprof");
    ASSERT_TRUE(read) << read.error().text();
    EXPECT_EQ(*read, profile);
    EXPECT_EQ(print_profile(*read), bytes);
  }
}

TEST(ProfileFile, AbsentIsNotEmpty) {
  Profile empty = sample(), absent = sample();
  empty.touched.emplace();
  for (UnitIndex unit = 0; unit < empty.units(); ++unit) empty.touched->add({});
  absent.touched.reset();
  const auto read_empty = parse_profile(print_profile(empty), "p"),
             read_absent = parse_profile(print_profile(absent), "p");
  ASSERT_TRUE(read_empty && read_absent);
  ASSERT_TRUE(read_empty->touched);
  EXPECT_TRUE(read_empty->touched->items.empty());
  EXPECT_FALSE(read_absent->touched);
  EXPECT_NE(*read_empty, *read_absent);
  absent.references.reset();
  const auto neither = parse_profile(print_profile(absent), "p");
  ASSERT_TRUE(neither);
  EXPECT_FALSE(neither->references);
  EXPECT_EQ(profile_sharing(*neither).error().code(), Code::invalid);
}

TEST(ProfileFile, TheGoldenFilesAreRead) {
  const auto golden = system_files().read("furlong/shard/testdata/profile_v2.fprof");
  ASSERT_TRUE(golden) << golden.error().text();
  EXPECT_EQ(print_profile(full()), *golden);
  EXPECT_EQ(parse_profile(*golden, "profile_v2.fprof").value(), full());
  // The version before had no touch graph.
  const auto old = read_profile(system_files(), "furlong/shard/testdata/profile_v1.fprof");
  ASSERT_TRUE(old) << old.error().text();
  Profile expected = full();
  expected.touched.reset();
  EXPECT_EQ(*old, expected);
}

TEST(ProfileFile, VersionsAndTagsAreToldApart) {
  const std::string good = print_profile(full());
  std::string bad = good;
  bad[0] = 'F';
  EXPECT_EQ(parse_error(bad).code(), Code::invalid);
  EXPECT_THAT(parse_error(bad).text(), HasSubstr("not a profile"));
  bad = good;
  bad[16] = 3;
  EXPECT_EQ(parse_error(bad).code(), Code::incompatible);
  EXPECT_THAT(parse_error(bad).text(),
              HasSubstr("found a profile of version 3, expected 1 to 2: take a newer"));
  bad[16] = 0;
  EXPECT_EQ(parse_error(bad).code(), Code::incompatible);
  bad[16] = 1;  // a touch graph is what version 1 does not know
  EXPECT_EQ(parse_error(bad).code(), Code::incompatible);
  EXPECT_THAT(parse_error(bad).text(), HasSubstr("unknown tag 0x7 of optional sections"));
  for (const char* tag : {"HEAD", "UNIT", "ITEM", "COST", "FAIL", "SECS", "REFS", "TUCH", "SUM."}) {
    bad = good;
    bad[good.find(tag)] = '?';
    EXPECT_EQ(parse_error(bad).code(), Code::incompatible) << tag;
    EXPECT_THAT(parse_error(bad).text(), HasSubstr(fmt::format("expected {}", tag)));
  }
  bad = good;
  bad[good.find("ITEM") - 1] = 7;  // the last unit's state
  EXPECT_EQ(parse_error(bad).code(), Code::incompatible);
  EXPECT_THAT(parse_error(bad).text(), HasSubstr("unknown tag 7 of a unit's state"));
}

TEST(ProfileFile, EveryTruncationIsADistinctError) {
  const std::string good = print_profile(full());
  std::set<std::string> texts;
  for (std::size_t keep = 0; keep < good.size(); ++keep) {
    const Error error = parse_error(std::string_view(good).substr(0, keep));
    EXPECT_EQ(error.code(), keep == 0 ? Code::invalid : Code::corrupt) << keep;
    texts.insert(error.text());
  }
  EXPECT_EQ(texts.size(), good.size());
}

TEST(ProfileFile, AFlippedByteNeverPasses) {
  const std::string good = print_profile(full());
  for (std::size_t at = 0; at < good.size(); ++at) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 0x10);
    EXPECT_FALSE(parse_profile(bad, "p.fprof")) << at;
  }
  EXPECT_EQ(parse_error(good + "x").code(), Code::corrupt);
}

// Whatever number stands in a place, what is allocated is backed by the file: 4 GiB of units or items would
// not be.
TEST(ProfileFile, CorruptOffsetsAreErrorsWithoutLargeAllocations) {
  const std::string good = print_profile(full());
  const std::size_t head = good.find("HEAD") + 12 + 32 + 4 + 9 + 4 + 2, references = good.find("REFS") + 12,
                    touched = good.find("TUCH") + 12, items = good.find("ITEM") + 12;
  for (const std::size_t at : {head, head + 4, items, items + 4}) {
    for (const std::uint32_t value : {0xFFFFFFFFu, 0x7FFFFFFFu, 1000u}) {
      std::string bad = good;
      store_le(bad.data() + at, value);
      EXPECT_FALSE(parse_profile(resealed(bad), "p")) << at << " " << value;
    }
  }
  for (const std::size_t at :
       {references, references + 8, references + 32, touched, touched + 16, touched + 32}) {
    for (const std::uint64_t value :
         {~std::uint64_t{0}, std::uint64_t{1} << 62, std::uint64_t{1} << 40, std::uint64_t{99}}) {
      std::string bad = good;
      store_le(bad.data() + at, value);
      const Error error = parse_error(resealed(bad));
      EXPECT_THAT(error.code(), ::testing::AnyOf(Code::invalid, Code::corrupt)) << at << " " << value;
    }
  }
}

TEST(Profile, ContradictionsAreNamed) {
  const auto why = [](const auto& change) {
    Profile profile = full();
    change(profile);
    const Status status = check_profile(profile, "p");
    return status ? std::string("fine") : status.error().text();
  };
  EXPECT_EQ(why([](Profile&) {}), "fine");
  EXPECT_THAT(why([](Profile& p) { p.work.pop_back(); }),
              HasSubstr("the column work has 3 values for 4 units"));
  EXPECT_THAT(why([](Profile& p) { p.references->items[0] = 9; }),
              HasSubstr("the references of unit 1 have the item 9, of 4"));
  EXPECT_THAT(why([](Profile& p) { p.references->items = {1, 0, 2, 3}; }),
              HasSubstr("do not ascend at item 0"));
  EXPECT_THAT(why([](Profile& p) { p.references->items = {0, 2, 2, 3}; }),
              HasSubstr("unit 1 refers to the item 2, which it owns"));
  EXPECT_THAT(why([](Profile& p) {
                p.touched->items[2] = 0;
                p.touched->items[3] = 3;
              }),
              HasSubstr("unit 1 touched the item 3, which it neither owns nor refers to"));
  EXPECT_THAT(why([](Profile& p) { p.failed.clear(); }), HasSubstr("1 units failed, and 0 say why"));
  EXPECT_THAT(why([](Profile& p) { p.failed[0].unit = 1; }),
              HasSubstr("unit 1 cannot be among those that failed"));
  EXPECT_THAT(why([](Profile& p) { p.features = {"rows", "distinct_work"}; }),
              HasSubstr("do not ascend at 'distinct_work'"));
  EXPECT_THAT(why([](Profile& p) { p.features = {"distinct_work", "work"}; }),
              HasSubstr("may not be named 'work'"));
  EXPECT_THAT(why([](Profile& p) { p.first_item = {0, 2, 3, 4, 5}; }),
              HasSubstr("are not the 4 items there are"));
  EXPECT_THAT(sample().feature("row").error().text(), HasSubstr("rows"));
}

TEST(Profile, AClosureIsWhatCanBeReachedAndEachItemOnce) {
  const Profile p = sample();
  Closure closure(p);
  EXPECT_THAT(closure.items(0), UnorderedElementsAre(0, 1));
  EXPECT_THAT(closure.items(1), UnorderedElementsAre(2, 0, 1));
  EXPECT_THAT(closure.items(3), UnorderedElementsAre(3, 2, 0, 1))
      << "3 refers to 2's item, which refers to 1's";
  const auto seen = [](std::uint32_t item) { return item == 2; };
  EXPECT_THAT(closure.items(3, seen), ElementsAre(3)) << "what lies behind a known item is known";

  Profile cycle = sample();
  cycle.references->items = {0, 1, 2, 3};
  cycle.references->first = {0, 0, 2, 3, 4};
  cycle.references->items.insert(cycle.references->items.begin(), 3);  // unit 0 refers to unit 2's item
  cycle.references->first = {0, 1, 3, 4, 5};
  cycle.touched.reset();
  ASSERT_TRUE(check_profile(cycle, "cycle"));
  Closure round(cycle);
  EXPECT_THAT(round.items(0), UnorderedElementsAre(0, 1, 3, 2))
      << "its own items once, though a cycle leads to them";
}

TEST(Profile, SyntheticOnesAreWholeAndTheSameForASeed) {
  const Profile one = synthetic::make_profile(500, 1);
  const Status status = check_profile(one, "synthetic");
  EXPECT_TRUE(status) << status.error().text();
  EXPECT_EQ(print_profile(one), print_profile(synthetic::make_profile(500, 1)));
  EXPECT_NE(print_profile(one), print_profile(synthetic::make_profile(500, 2)));
}

}  // namespace
}  // namespace furlong::shard
