#include "furlong/fleet/store/memory/memory.h"

#include <gtest/gtest.h>

namespace furlong::fleet {
namespace {

DecodedRace race_of(std::uint8_t number, std::int64_t ts_us, std::string epoch = "0000000000000001") {
  DecodedRace race;
  race.id[15] = number;
  race.id[6] = 0x70;
  race.id[8] = 0x80;
  race.ts_us = ts_us;
  race.slot = "s";
  race.subject = {.silicon = "x", .backend = "cuda", .program = "lottery", .program_class = "{}"};
  race.label = "card";
  race.epoch = std::move(epoch);
  race.source = "src";
  race.variants = {{.name = "base", .gain_pct = 0}, {.name = "u2", .gain_pct = 1}};
  return race;
}

IncomingBatch batch_of(const std::string& machine, std::vector<DecodedRace> races) {
  IncomingBatch batch{
      .id = "b" + std::to_string(races.front().id[15]), .machine = machine, .body = "header\n"};
  batch.received_us = 5;
  for (DecodedRace& race : races) {
    batch.body += "line " + std::to_string(race.id[15]) + "\n";
    batch.lines.push_back({.id = record_id_text(race.id), .race = std::move(race)});
  }
  return batch;
}

TEST(MemoryStore, KeepsTheLatestOfOneEpochWhateverTheOrder) {
  for (const bool late_first : {false, true}) {
    const auto store = open_memory_store();
    ASSERT_TRUE(store->add_importer("logs", 1));
    const IncomingBatch early =
        batch_of("import:logs", {race_of(1, 100), race_of(3, 50, "0000000000000002")});
    const IncomingBatch late = batch_of("import:logs", {race_of(2, 200)});
    for (const auto* batch : late_first ? std::array{&late, &early} : std::array{&early, &late})
      ASSERT_TRUE(store->add({batch, 1}));
    const auto page = store->races({});
    ASSERT_TRUE(page);
    ASSERT_EQ(page->size(), 2u);
    EXPECT_EQ(page->front().id, record_id_text(race_of(3, 0).id));
    EXPECT_EQ(page->back().id, record_id_text(race_of(2, 0).id));
    EXPECT_EQ((*store->race(page->back().id))->line, "line 2");
    const auto again = store->add({&early, 1});
    ASSERT_TRUE(again);
    EXPECT_EQ(again->front().fates, (std::vector{Fate::duplicate, Fate::duplicate}));
  }
}

TEST(MemoryStore, ScansTheWindowInOrder) {
  const auto store = open_memory_store();
  ASSERT_TRUE(store->add_importer("b", 1));
  ASSERT_TRUE(store->add_importer("a", 1));
  for (const auto& [machine, base] : {std::pair{"import:a", 10}, {"import:b", 20}}) {
    std::vector<DecodedRace> races;
    for (std::uint8_t i = 0; i < 5; ++i)
      races.push_back(
          race_of(static_cast<std::uint8_t>(base + i), 100 - i, std::string(15, '0') + char('1' + i)));
    const IncomingBatch batch = batch_of(machine, races);
    ASSERT_TRUE(store->add({&batch, 1}));
  }
  std::vector<std::pair<MachineNumber, std::int64_t>> seen;
  ASSERT_TRUE(store->scan(1, {97, 100}, [&](const RaceRow& row) {
    seen.emplace_back(row.machine, row.ts_us);
    EXPECT_EQ(row.gains.size(), 2u);
    return true;
  }));
  EXPECT_EQ(seen, (std::vector<std::pair<MachineNumber, std::int64_t>>{
                      {1, 97}, {1, 98}, {1, 99}, {2, 97}, {2, 98}, {2, 99}}));
  EXPECT_EQ(*store->prune(99), 6u);
  EXPECT_EQ(store->totals()->races, 4u);
}

}  // namespace
}  // namespace furlong::fleet
