#include "furlong/worker/internal/entry_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "furlong/program/lottery/lottery.h"

namespace furlong::worker {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const program::Instance& instance() {
  static const program::Instance made = [] {
    const auto pack = program::lottery::make_pack({.epoch_seed = program::lottery::demonstration_seed()});
    const auto program = program::lottery::program_of_pack(*pack, "demonstration");
    return *program::Instance::make(*program, "host", {}, {});
  }();
  return made;
}

device::Facts facts() {
  device::Facts facts;
  facts.backend = "host";
  facts.label = "Some_CPU";
  facts.driver = "6.1";
  facts.silicon = {"AMD", "x86-64-v4", 8, 1u << 30, 0};
  return facts;
}

record::Tuning tuning(record::TuningRow row) {
  record::Tuning tuning;
  tuning.cards.push_back({"Some_CPU", std::nullopt, {}, {std::move(row)}, {}});
  return tuning;
}

std::vector<std::string> names(const EntryPlan& plan) {
  std::vector<std::string> names;
  for (const lattice::Point& point : plan.points)
    names.push_back(lattice::variant_name(instance().lattice(), point));
  return names;
}

EntryPlan plan(const record::Tuning* with, const EntryRequest& request = {}) {
  auto made = plan_entry(instance(), facts(), with, request);
  EXPECT_TRUE(made) << made.error().text();
  return made ? *made : EntryPlan{};
}

TEST(EntryPlan, WithoutATuningAllAreRaced) {
  const EntryPlan all = plan(nullptr);
  EXPECT_TRUE(all.race);
  EXPECT_EQ(names(all)[0], "base");
  EXPECT_GT(all.points.size(), 5u);
  EXPECT_THAT(names(plan(nullptr, {.race = "n64,v8"})), ElementsAre("base", "n64", "v8"));
  const EntryPlan off = plan(nullptr, {.race = "off"});
  EXPECT_FALSE(off.race);
  EXPECT_THAT(names(off), ElementsAre("base"));
}

TEST(EntryPlan, CandidatesComeFirstThenTheRest) {
  record::TuningRow row;
  row.candidates = {"v8", "u8", "base"};
  const record::Tuning with = tuning(row);
  const EntryPlan ordered = plan(&with);
  EXPECT_TRUE(ordered.race);
  EXPECT_TRUE(ordered.tuned);
  EXPECT_EQ(ordered.points.size(), plan(nullptr).points.size());
  const std::vector<std::string> order = names(ordered);
  EXPECT_THAT(std::vector(order.begin(), order.begin() + 3), ElementsAre("base", "v8", "u8"));
  // The options say who may race at all.
  EXPECT_THAT(names(plan(&with, {.race = "n64,u8"})), ElementsAre("base", "u8", "n64"));
}

TEST(EntryPlan, APinnedVariantIsNotRacedButOneTimeInSoMany) {
  record::TuningRow row;
  row.race = false;
  row.variant = "v8";
  row.race_every_n = 5;
  const record::Tuning with = tuning(row);
  int races = 0;
  for (std::uint64_t prepare = 1; prepare <= 20; ++prepare) {
    const EntryPlan entry = plan(&with, {.prepare = prepare});
    races += entry.race;
    EXPECT_NE(entry.race, entry.pinned);
    EXPECT_EQ(names(entry)[1], "v8");
    EXPECT_EQ(entry.points.size() == 2, entry.pinned);
  }
  EXPECT_EQ(races, 4);
}

TEST(EntryPlan, WhatTheProgramDoesNotHaveIsPassedOverWithANote) {
  record::TuningRow row;
  row.race = false;
  row.variant = "nosuch";
  record::Tuning with = tuning(row);
  const EntryPlan entry = plan(&with);
  EXPECT_TRUE(entry.race);
  EXPECT_FALSE(entry.pinned);
  ASSERT_EQ(entry.notes.size(), 1u);
  EXPECT_THAT(entry.notes[0], HasSubstr("'nosuch'"));
  row.race = true;
  row.variant = "";
  row.candidates = {"nosuch", "v8"};
  with = tuning(row);
  EXPECT_EQ(names(plan(&with))[1], "v8");
}

TEST(EntryPlan, AnotherCardsOrADriversRowIsNotTaken) {
  record::TuningRow row;
  row.race = false;
  row.variant = "v8";
  row.min_driver = "6.2";
  record::Tuning with = tuning(row);
  const EntryPlan entry = plan(&with);
  EXPECT_TRUE(entry.race);
  EXPECT_THAT(entry.notes, ElementsAre(HasSubstr("6.2")));
  with.cards[0].key = "Another";
  EXPECT_TRUE(plan(&with).notes.empty());
}

TEST(EntryPlan, TheOptionPinsWhateverTheTuningSays) {
  record::TuningRow row;
  row.race = true;
  row.candidates = {"u8"};
  const record::Tuning with = tuning(row);
  const EntryPlan entry = plan(&with, {.variant = "n64"});
  EXPECT_THAT(names(entry), ElementsAre("base", "n64"));
  EXPECT_TRUE(entry.pinned);
  const auto absent = plan_entry(instance(), facts(), nullptr, {.variant = "nosuch"});
  ASSERT_FALSE(absent);
  EXPECT_EQ(absent.error().code(), Code::invalid);
}

TEST(ReadTuning, TheOverrideReplacesRowsAndABrokenFileIsNamed) {
  FakeFiles files;
  EXPECT_FALSE(read_tuning(files, "").value());
  EXPECT_FALSE(read_tuning(files, "d/tuning.json").value());
  record::TuningRow row;
  row.variant = "v8";
  row.race = false;
  ASSERT_TRUE(files.write_atomic("d/override.json", record::print(tuning(row))));
  EXPECT_EQ(read_tuning(files, "d/tuning.json").value()->cards[0].rows[0].variant, "v8");
  row.variant = "u8";
  ASSERT_TRUE(files.write_atomic("d/tuning.json", record::print(tuning(row))));
  EXPECT_EQ(read_tuning(files, "d/tuning.json").value()->cards[0].rows[0].variant, "v8");
  ASSERT_TRUE(files.write_atomic("d/override.json", "{"));
  const auto broken = read_tuning(files, "d/tuning.json");
  ASSERT_FALSE(broken);
  EXPECT_THAT(broken.error().text(), HasSubstr("d/override.json"));
}

}  // namespace
}  // namespace furlong::worker
