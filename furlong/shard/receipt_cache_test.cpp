#include "furlong/shard/receipt_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "furlong/base/random.h"

namespace furlong::shard {
namespace {

using ::testing::HasSubstr;

Receipt sample(const std::string& body = "the evidence\n\0 of it") {
  Receipt receipt;
  receipt.executor = "synthetic";
  receipt.version = 3;
  receipt.claim = blake2b_256("a claim");
  receipt.body.assign(body.begin(), body.end());
  const KeyPair key = *KeyPair::from_seed(Bytes(32, 7));
  receipt.signer = key.public_key;
  receipt.signature = sign(receipt_message(receipt), key);
  return receipt;
}

Cost cost_of(double work) {
  Cost cost;
  cost.work = work;
  cost.record_bytes = 123;
  cost.seconds = 0.5;
  cost.features["rows"] = 7;
  return cost;
}

class ReceiptCacheTest : public ::testing::Test {
 protected:
  ReceiptEntry add(const Receipt& receipt) {
    ReceiptEntry entry{receipt.claim, receipt.executor, receipt.version, {}, cost_of(1), cost_of(2)};
    entry.receipt = cache_.put(receipt).value();
    EXPECT_TRUE(cache_.add(entry));
    return entry;
  }
  FakeFiles files_;
  ReceiptCache cache_{"/cache", files_};
};

TEST(ReceiptFile, IsReadAsItWasWritten) {
  const Receipt receipt = sample();
  const auto read = parse_receipt(print_receipt(receipt), "r");
  ASSERT_TRUE(read) << read.error().text();
  EXPECT_EQ(read->executor, receipt.executor);
  EXPECT_EQ(read->version, receipt.version);
  EXPECT_EQ(read->claim, receipt.claim);
  EXPECT_EQ(read->body, receipt.body);
  EXPECT_EQ(read->signer, receipt.signer);
  EXPECT_EQ(read->signature, receipt.signature);
  EXPECT_TRUE(furlong::verify(receipt_message(*read), read->signature, read->signer));
}

TEST(ReceiptFile, EveryTruncationAndFlippedByteIsAnErrorOrAnotherReceipt) {
  const std::string good = print_receipt(sample());
  for (std::size_t keep = 0; keep < good.size(); ++keep) {
    const auto torn = parse_receipt(good.substr(0, keep), "r");
    ASSERT_FALSE(torn) << keep;
    EXPECT_TRUE(torn.error().code() == Code::corrupt) << keep << torn.error().text();
  }
  for (std::size_t at = 0; at < good.size(); ++at) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 1);
    const auto read = parse_receipt(bad, "r");
    if (!read) continue;
    EXPECT_FALSE(furlong::verify(receipt_message(*read), read->signature, read->signer)) << at;
  }
  EXPECT_EQ(parse_receipt("furlong receipt 9\n{}\n", "r").error().code(), Code::incompatible);
  EXPECT_THAT(parse_receipt("furlong receipt 9\n{}\n", "r").error().text(), HasSubstr("version 9"));
  EXPECT_EQ(parse_receipt(good + "x", "r").error().code(), Code::corrupt) << "more than was written";
}

TEST_F(ReceiptCacheTest, FindsWhatWasAddedAndNothingElse) {
  EXPECT_FALSE(cache_.find(blake2b_256("a claim")).value());
  const ReceiptEntry entry = add(sample());
  const auto found = cache_.find(entry.claim);
  ASSERT_TRUE(found && *found);
  EXPECT_EQ((*found)->receipt, entry.receipt);
  EXPECT_EQ((*found)->executor_version, 3);
  EXPECT_EQ((*found)->check.work, 1);
  EXPECT_EQ((*found)->job.features.at("rows"), 7);
  EXPECT_EQ(cache_.receipt(**found)->body, sample().body);
  EXPECT_FALSE(cache_.find(blake2b_256("another")).value());
}

TEST_F(ReceiptCacheTest, GarbageEmptyAndSwappedEntriesAreNotBelieved) {
  const ReceiptEntry entry = add(sample());
  const auto file = cache_.entry_file(entry.claim);
  const std::string good = files_.read(file).value();
  for (const std::string& text : {std::string(), std::string("\0\1\2", 3), std::string("{}"),
                                  std::string("[1]"), good.substr(0, good.size() / 2)}) {
    ASSERT_TRUE(files_.write_atomic(file, text));
    const auto found = cache_.find(entry.claim);
    ASSERT_FALSE(found) << text;
    EXPECT_TRUE(found.error().code() == Code::corrupt || found.error().code() == Code::incompatible);
    EXPECT_THAT(found.error().text(), HasSubstr(file.string()));
  }
  const Digest other = blake2b_256("another claim");
  ASSERT_TRUE(files_.write_atomic(cache_.entry_file(other), good));  // swapped
  EXPECT_EQ(cache_.find(other).error().code(), Code::mismatch);
}

TEST_F(ReceiptCacheTest, AReceiptThatIsGoneOrFlippedIsAnError) {
  const ReceiptEntry entry = add(sample());
  const auto file = cache_.receipt_file(entry.receipt);
  std::string bytes = files_.read(file).value();
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  ASSERT_TRUE(files_.write_atomic(file, bytes));
  EXPECT_EQ(cache_.receipt(entry).error().code(), Code::corrupt);
  ASSERT_TRUE(files_.remove(file));
  EXPECT_EQ(cache_.receipt(entry).error().code(), Code::unavailable);
}

TEST_F(ReceiptCacheTest, AFailureAtAnyStepNeverLeavesAnEntryWithoutItsReceipt) {
  const Receipt receipt = sample();
  for (int at = 1; at <= 8; ++at) {  // four steps of the receipt's file, four of the entry's
    FakeFiles files;
    const ReceiptCache cache("/cache", files);
    int steps = 0;
    files.fault = [&](std::string_view, const std::filesystem::path&) -> Status {
      if (++steps < at) return {};
      return fail(Code::exhausted, "the disk is full");
    };
    const auto address = cache.put(receipt);
    Status added = address ? Status() : Status(address.error());
    if (address)
      added = cache.add({receipt.claim, receipt.executor, receipt.version, *address, cost_of(1), cost_of(2)});
    EXPECT_FALSE(added) << at;
    files.fault = {};
    const auto found = cache.find(receipt.claim);
    ASSERT_TRUE(found) << at << ": " << found.error().text();
    if (*found) {
      EXPECT_TRUE(cache.receipt(**found)) << at;
    }
  }
}

}  // namespace
}  // namespace furlong::shard
