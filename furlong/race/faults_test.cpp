// Variants that fail to compile, hang, trap or lose the device, and the quarantine that remembers them.
#include <gmock/gmock.h>

#include <set>

#include "furlong/race/internal/testing.h"

namespace furlong::race {
namespace {

using device::SimFault;
using testing::Stage;
using testing::variant;
using testing::winner_of;

/// A stage with a quarantine on disk that outlives it.
struct Quarantined {
  Quarantined() : folder(TemporaryFolder::make("quarantine").value()) { reopen(); }
  void reopen() { quarantine.emplace(Quarantine::open(folder.path() / "q.sqlite").value()); }
  void join(Stage& stage) { stage.context.quarantine = &*quarantine; }
  TemporaryFolder folder;
  std::optional<Quarantine> quarantine;
};

void plant(Stage& stage, const std::string& name, SimFault fault, int after = 0) {
  stage.sim.faults.push_back({.variant = name, .fault = fault, .after_launches = after});
}

TEST(Faults, ACompileErrorRemovesTheVariantOnly) {
  for (const SimFault fault : {SimFault::compile_error, SimFault::compile_crash}) {
    Stage stage;
    stage.sim.timing.gain = {{"u4", 0.03}};
    plant(stage, "u2", fault);
    const Outcome outcome = stage.outcome("u2,u4");
    EXPECT_EQ(variant(outcome, "u2").exit, Exit::compile);
    EXPECT_NE(variant(outcome, "u2").why.find("planted"), std::string::npos) << variant(outcome, "u2").why;
    EXPECT_EQ(winner_of(outcome), "u4");
  }
}

TEST(Faults, ABaseThatDoesNotCompileIsTheError) {
  Stage stage;
  plant(stage, "base", SimFault::compile_error);
  const auto raced = stage.race("u2");
  ASSERT_FALSE(raced);
  EXPECT_EQ(raced.error().code(), Code::invalid);
  EXPECT_NE(raced.error().text().find("compiling base"), std::string::npos) << raced.error().text();
}

TEST(Faults, AVariantThatHangsIsOutAndTheRaceGoesOn) {
  for (const int after : {0, 150}) {  // in the gate, in a heat
    Stage stage;
    stage.sim.timing.gain = {{"u2", 0.05}, {"u4", 0.03}};
    stage.sim.timing.noise = 0.01;
    plant(stage, "u2", SimFault::hang, after);
    const Outcome outcome = stage.outcome("u2,u4");
    EXPECT_EQ(variant(outcome, "u2").exit, Exit::launch);
    EXPECT_NE(variant(outcome, "u2").why.find("hang"), std::string::npos) << variant(outcome, "u2").why;
    EXPECT_EQ(winner_of(outcome), "u4") << outcome.sentence;
  }
}

TEST(Faults, AWrongOutputIsFoundByTheGate) {
  Stage stage;
  plant(stage, "u2", SimFault::wrong_output);
  EXPECT_EQ(variant(stage.outcome("u2,u4"), "u2").exit, Exit::gate);
}

TEST(Faults, AVariantWithoutMemoryIsOutButNotQuarantined) {
  Quarantined kept;
  Stage stage;
  kept.join(stage);
  plant(stage, "u2", SimFault::out_of_memory);
  const Outcome outcome = stage.outcome("u2,u4");
  EXPECT_EQ(variant(outcome, "u2").exit, Exit::launch);
  EXPECT_TRUE(kept.quarantine->list().value().empty());
}

TEST(Faults, ALostDeviceNamesAndQuarantinesTheCulprit) {
  for (const SimFault fault : {SimFault::trap, SimFault::device_lost}) {
    for (const int after : {0, 150}) {
      Quarantined kept;
      Stage stage;
      stage.sim.timing.gain = {{"u2", 0.05}, {"u4", 0.03}};
      stage.sim.timing.noise = 0.01;
      kept.join(stage);
      plant(stage, "u2", fault, after);
      const auto raced = stage.race("u2,u4");
      ASSERT_FALSE(raced);
      EXPECT_EQ(raced.error().code(), Code::unavailable);
      EXPECT_NE(raced.error().text().find("'u2'"), std::string::npos) << raced.error().text();
      // The next race, on the device opened again, does without it.
      stage.instance.reset();
      stage.device.reset();
      const Outcome outcome = stage.outcome("u2,u4");
      EXPECT_EQ(variant(outcome, "u2").exit, Exit::quarantined);
      EXPECT_NE(variant(outcome, "u2").why.find("trap"), std::string::npos) << variant(outcome, "u2").why;
      EXPECT_EQ(winner_of(outcome), "u4");
    }
  }
}

TEST(Faults, ALostDeviceIsOpenedAgainAndTheRaceBeginsAnew) {
  Stage stage;
  stage.sim.timing.gain = {{"u2", 0.05}, {"u4", 0.03}};
  plant(stage, "u2", SimFault::trap, 60);
  plant(stage, "u8", SimFault::device_lost);
  stage.open();
  std::vector<std::unique_ptr<device::Device>> opened;
  Kept kept;
  stage.context.kept = &kept;
  stage.context.reopen = [&]() -> Result<device::Device*> {
    EXPECT_FALSE(kept.buffers) << "buffers of the lost device are still there";
    stage.clock->advance_ns(1'500'000'000);
    FURLONG_TRY(opened.emplace_back(), stage.driver->open(0));
    return opened.back().get();
  };
  const Outcome outcome = stage.outcome("u2,u4,u8");
  EXPECT_EQ(opened.size(), 2u);
  EXPECT_EQ(variant(outcome, "u2").exit, Exit::launch);
  EXPECT_EQ(variant(outcome, "u8").exit, Exit::launch);
  EXPECT_EQ(winner_of(outcome), "u4") << outcome.sentence;
  ASSERT_EQ(outcome.notes.size(), 2u);
  EXPECT_NE(outcome.notes[0].find("open again after 1.5 s"), std::string::npos) << outcome.notes[0];
  EXPECT_GT(outcome.total_ms, 3000) << "the time that it took is not counted";
  kept = {};  // before the devices
}

TEST(Faults, ABaseThatFailsWhileItRunsIsTheError) {
  Stage stage;
  plant(stage, "base", SimFault::hang);
  const auto raced = stage.race("u2");
  ASSERT_FALSE(raced);
  EXPECT_EQ(raced.error().code(), Code::timeout);
  EXPECT_NE(raced.error().text().find("base"), std::string::npos);
}

TEST(QuarantineInARace, RemembersAHangByName) {
  Quarantined kept;
  {
    Stage stage;
    kept.join(stage);
    plant(stage, "u2", SimFault::hang);
    (void)stage.outcome("u2,u4");
  }
  const auto entries = kept.quarantine->list().value();
  ASSERT_EQ(entries.size(), 1u);
  EXPECT_EQ(entries[0].variant, "u2");
  EXPECT_EQ(entries[0].program, "mix");
  EXPECT_TRUE(entries[0].why.starts_with("hang: ")) << entries[0].why;
  // Without the fault it would race again; the quarantine keeps it out until it is cleared.
  Stage stage;
  kept.reopen();
  kept.join(stage);
  EXPECT_EQ(variant(stage.outcome("u2,u4"), "u2").exit, Exit::quarantined);
  EXPECT_EQ(stage.launches["u2"], 0);
  EXPECT_EQ(kept.quarantine->clear("u2").value(), 1);
  EXPECT_TRUE(variant(stage.outcome("u2,u4"), "u2").gated);
}

TEST(QuarantineInARace, AsksAgainWhenTheCheckChanges) {
  Quarantined kept;
  Stage first;
  kept.join(first);
  first.tamper["u2"] = [](const testing::Call& call) { call.y[0] ^= 1; };
  EXPECT_EQ(variant(first.outcome("u2"), "u2").exit, Exit::gate);
  {
    Stage same;
    kept.join(same);
    EXPECT_EQ(variant(same.outcome("u2"), "u2").exit, Exit::quarantined);
  }
  auto changed = std::make_shared<program::Program>(*testing::parse(testing::mix_text));
  changed->check.problem = {
      {"n", lattice::Expression::constant(1000)},
  };
  changed->check.function = "another";
  Stage other(changed);
  kept.join(other);
  EXPECT_TRUE(variant(other.outcome("u2"), "u2").gated);
}

TEST(QuarantineInARace, AsksAgainWhenTheExpectedFilesChange) {
  // Kernels that write from + i, and a file that expects it.
  Quarantined kept;
  const auto race = [&](std::uint32_t from, std::uint32_t wrong) {
    auto data = std::make_shared<program::DataFile>();
    data->bytes.resize(4000);
    for (std::uint32_t i = 0; i < 1000; ++i) store_le<std::uint32_t>(&data->bytes[4 * i], from + i);
    auto program = std::make_shared<program::Program>(*testing::parse(testing::mix_text));
    program->check.expected_data["y"] = data;
    Stage stage(program);
    kept.join(stage);
    stage.skip_kernel = true;
    for (const char* name : {"base", "u2"})
      stage.tamper[name] = [=](const testing::Call& call) {
        for (std::uint32_t i = 0; i < call.n; ++i) call.y[i] = from + i;
        if (call.variant == "u2") call.y[0] += wrong;
      };
    return variant(stage.outcome("u2"), "u2").exit;
  };
  EXPECT_EQ(race(0, 1), Exit::gate);
  EXPECT_EQ(race(0, 0), Exit::quarantined);
  const Exit mended = race(1, 0);
  EXPECT_NE(mended, Exit::quarantined);
  EXPECT_NE(mended, Exit::gate);
}

TEST(QuarantineInARace, DoesNotMixVariantsOfOneText) {
  // lazy and base have one text and one launch: base stays in whatever lazy did. c64 by launch only has
  // another key.
  Quarantined kept;
  auto program = std::make_shared<program::Program>(*testing::parse(testing::mix_text));
  for (lattice::Knob& knob : program->editions[0].lattice.knobs)
    if (knob.name == "CHUNK") knob.applies = {lattice::Applies::launch};
  {
    Stage stage(program);
    kept.join(stage);
    plant(stage, "c64", SimFault::hang);
    (void)stage.outcome("c64");
  }
  Stage stage(program);
  kept.join(stage);
  const Outcome outcome = stage.outcome("c64,c256");
  EXPECT_EQ(variant(outcome, "c64").exit, Exit::quarantined);
  EXPECT_TRUE(variant(outcome, "base").gated);
  EXPECT_TRUE(variant(outcome, "c256").gated);
}

TEST(QuarantineInARace, IsPerCardAndDriver) {
  Quarantined kept;
  {
    Stage stage;
    kept.join(stage);
    plant(stage, "u2", SimFault::hang);
    (void)stage.outcome("u2");
  }
  Stage newer;
  kept.join(newer);
  newer.sim.facts.driver = "999.1";
  EXPECT_TRUE(variant(newer.outcome("u2"), "u2").gated);
}

TEST(QuarantineInARace, AFullDiskIsANoteAndNoMore) {
  Quarantined kept;
  Stage stage;
  kept.join(stage);
  plant(stage, "u2", SimFault::hang);
  auto disk = std::make_optional<testing::FullDisk>();
  const auto raced = stage.race("u2,u4");
  disk.reset();
  ASSERT_TRUE(raced) << raced.error().text();
  EXPECT_EQ(variant(*raced, "u2").exit, Exit::launch);
  bool told = false;
  for (const std::string& note : raced->notes)
    told |= note.find("not written to the quarantine") != std::string::npos;
  EXPECT_TRUE(told);
  EXPECT_TRUE(kept.quarantine->list().value().empty());
}

QuarantineEntry entry(const std::string& source, const std::string& variant_name, bool good = false) {
  return {{"card", "driver", source},
          "program",
          variant_name,
          "Label",
          good ? "passed" : "hang",
          "2026-01-01T00:00:00Z",
          good,
          ""};
}

TEST(Quarantine, FindsWhatWasPut) {
  Quarantined kept;
  ASSERT_TRUE(kept.quarantine->put(entry("s1", "u2")));
  ASSERT_TRUE(kept.quarantine->put(entry("s2", "u4", true)));
  EXPECT_FALSE(kept.quarantine->find({"card", "driver", "s3"}).value());
  EXPECT_FALSE(kept.quarantine->find({"card", "other", "s1"}).value());
  const auto found = kept.quarantine->find({"card", "driver", "s1"}).value();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->variant, "u2");
  EXPECT_FALSE(found->good);
  EXPECT_TRUE(kept.quarantine->find({"card", "driver", "s2"}).value()->good);
  EXPECT_EQ(kept.quarantine->list().value().size(), 1u) << "good entries are not listed";
}

TEST(Quarantine, ReplacesAnEntryAndClearsByPrefix) {
  Quarantined kept;
  QuarantineEntry wrong = entry("abc1", "u2");
  wrong.evidence = "the check that it failed";
  ASSERT_TRUE(kept.quarantine->put(wrong));
  ASSERT_TRUE(kept.quarantine->put(entry("abc1", "u2", true)));
  EXPECT_TRUE(kept.quarantine->list().value().empty());
  for (const char* name : {"u2", "u2-ldg", "w%_4"})
    ASSERT_TRUE(kept.quarantine->put(entry(std::string("k") + name, name)));
  EXPECT_EQ(kept.quarantine->clear("w%").value(), 1);
  EXPECT_EQ(kept.quarantine->clear("%").value(), 0) << "wildcards are plain characters";
  EXPECT_EQ(kept.quarantine->clear("ku2-").value(), 1) << "by source";
  EXPECT_EQ(kept.quarantine->clear("").value(), 1);
  EXPECT_TRUE(kept.quarantine->find({"card", "driver", "abc1"}).value()) << "good entries stay";
}

TEST(Quarantine, AHangIsNotForgottenForAnotherRacesWord) {
  // Two races at once: in one the variant passed its trial or failed its gate, in the other it hung
  // meanwhile.
  Quarantined kept;
  QuarantineEntry wrong = entry("s1", "u2");
  wrong.evidence = "a check";
  ASSERT_TRUE(kept.quarantine->put(entry("s1", "u2")));
  for (const QuarantineEntry& later : {entry("s1", "u2", true), wrong}) {
    ASSERT_TRUE(kept.quarantine->put(later));
    const auto found = kept.quarantine->find({"card", "driver", "s1"}).value();
    ASSERT_TRUE(found);
    EXPECT_FALSE(found->good);
    EXPECT_EQ(found->evidence, "");
  }
  QuarantineEntry again = entry("s1", "u2");
  again.why = "trap";
  ASSERT_TRUE(kept.quarantine->put(again));
  EXPECT_EQ(kept.quarantine->find({"card", "driver", "s1"}).value()->why, "trap");
  EXPECT_EQ(kept.quarantine->clear("s1").value(), 1);
  ASSERT_TRUE(kept.quarantine->put(entry("s1", "u2", true)));
  EXPECT_TRUE(kept.quarantine->find({"card", "driver", "s1"}).value()->good);
}

TEST(Quarantine, IsSharedByTwoProcessesAtOnce) {
  Quarantined kept;
  auto second = Quarantine::open(kept.folder.path() / "q.sqlite").value();
  ASSERT_TRUE(second.put(entry("s1", "u2")));
  EXPECT_TRUE(kept.quarantine->find({"card", "driver", "s1"}).value());
}

/// Writes down what it is told.
class NotedHand : public Hand {
 public:
  void take(std::uint32_t kind, std::string_view name, double limit_s) noexcept override {
    EXPECT_FALSE(held) << name;
    held = true;
    names.insert(fmt::format("{} {}", kind, name));
    shortest_s = std::min(shortest_s, limit_s);
  }
  void drop() noexcept override {
    EXPECT_TRUE(held);
    held = false;
  }
  void reach(std::uint32_t) noexcept override {}
  std::set<std::string> names;
  bool held = false;
  double shortest_s = 1e9;
};

TEST(Guarded, EveryRunOfAVariantIsInHand) {
  Stage stage;
  NotedHand hand;
  stage.context.hand = &hand;
  stage.context.hand_limit_s = 3;
  // Whatever runs a kernel in this process has told so: also the probe after a failure.
  int runs = 0;
  const auto look = [&](const testing::Call& call) {
    ++runs;
    EXPECT_TRUE(hand.held) << call.variant;
  };
  for (const char* name : {"base", "u2", "u4"}) stage.tamper[name] = look;
  plant(stage, "u2", SimFault::hang, 30);
  stage.outcome("u2,u4");
  EXPECT_GT(runs, 10);
  EXPECT_FALSE(hand.held);
  EXPECT_EQ(hand.names, (std::set<std::string>{"1 base", "1 u2", "1 u4"}));
  EXPECT_GE(hand.shortest_s, 3);
}

TEST(Guarded, WhoEndedTheProcessIsOutAndQuarantined) {
  Quarantined quarantined;
  for (const bool told : {true, false}) {  // the second race knows it from the quarantine
    Stage stage;
    quarantined.join(stage);
    if (told) stage.context.fallen = {{"u4", "trap: killed by signal 11"}};
    const Outcome outcome = stage.outcome("u2,u4");
    EXPECT_EQ(variant(outcome, "u4").exit, told ? Exit::launch : Exit::quarantined);
    EXPECT_THAT(variant(outcome, "u4").why, ::testing::HasSubstr("trap: killed by signal 11"));
    EXPECT_EQ(stage.launches["u4"], 0);
    EXPECT_TRUE(variant(outcome, "u2").rate);
    EXPECT_EQ(outcome.notes.empty(), !told);
  }
}

TEST(Guarded, BaseThatEndedTheProcessEndsTheRace) {
  Stage stage;
  stage.context.fallen = {{"base", "hang: ran past 20 s"}};
  const auto outcome = stage.race("u2");
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code(), Code::mismatch);
  EXPECT_EQ(outcome.error().text(), "base ended the race's process: hang: ran past 20 s");
}

}  // namespace
}  // namespace furlong::race
