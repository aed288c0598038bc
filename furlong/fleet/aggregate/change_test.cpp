// What is kept of one machine's rates, whatever it sends.

#include "furlong/fleet/aggregate/internal/change.h"

#include <gtest/gtest.h>

namespace furlong::fleet::internal {
namespace {

constexpr std::int64_t split_us = 1'000'000'000;

/// Rows of one machine, each of another epoch, a microsecond apart.
struct Sent {
  SubjectChanges changes;
  ChangeReader reader{{.words = 10, .machines = 10, .base = 1}, split_us, changes};
  std::uint64_t epoch = 0;
  void rows(std::size_t count, std::int64_t from_us, float rate) {
    const PackedGain gain{.variant = 2, .rate = rate};
    for (std::size_t i = 0; i < count; ++i) {
      RaceRow row{.machine = 1, .ts_us = from_us + static_cast<std::int64_t>(i), .slot = 3};
      row.has_epoch = true;
      row.epoch = ++epoch;
      row.gains = {&gain, 1};
      reader.add(row);
    }
  }
  const MachineEvidence& machine() {
    reader.end();
    return changes.machines.machines.at(0);
  }
};

TEST(ChangeReader, KeepsTheNewestValuesUpToTheLimit) {
  Sent sent;
  sent.rows(5000, 0, 100);
  sent.rows(most_values - 1000, split_us, 90);
  EXPECT_EQ(sent.machine().counted, most_values);
  ASSERT_EQ(sent.changes.changes.size(), 1u);
  EXPECT_EQ(sent.changes.changes[0].pairs, 1000u) << "of those before, the newest";
  EXPECT_EQ(sent.changes.changes[0].samples, most_values - 1000);
}

TEST(ChangeReader, AlsoAtTheEndOfAMachineThatNeverReachedTwiceAsMany) {
  Sent sent;
  sent.rows(1000, 0, 100);
  sent.rows(most_values, split_us, 90);
  EXPECT_EQ(sent.machine().counted, most_values);
  EXPECT_TRUE(sent.changes.changes.empty()) << "what came before is gone";
}

TEST(ChangeReader, RowsWithoutARateCountAsWell) {
  Sent sent;
  sent.rows(3 * most_values, 0, absent);
  EXPECT_LE(sent.machine().counted, most_values);
}

}  // namespace
}  // namespace furlong::fleet::internal
