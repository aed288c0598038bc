#include "furlong/shard/make_profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "furlong/base/random.h"
#include "furlong/shard/internal/store_fixture.h"
#include "furlong/shard/internal/synthetic.h"

namespace furlong::shard {
namespace {

using synthetic::Script;
using synthetic::SyntheticExecutor;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class MakeProfileTest : public StoreFixture {
 protected:
  // Groups that share heads and rows; each fiftieth unit fails where asked for.
  void make(int units, bool failures = false) {
    Random random(5);
    std::vector<Script> scripts;
    for (int i = 0; i < units; ++i) {
      const auto first = random.between(0, 60);
      Script script{fmt::format("u{}", i),
                    fmt::format("bytes={} load={} rows={}-{} f.steps={} seconds=0.25", random.between(1, 200),
                                random.between(0, 90), first, first + random.between(0, 12), random.below(5)),
                    {},
                    {}};
      if (i >= 6) script.references = {fmt::format("u{}", i % 6), fmt::format("u{}", random.below(6))};
      if (failures && i % 50 == 49) script.text += " reject=no";
      scripts.push_back(script);
    }
    make_store(scripts);
  }
  ProfileOutcome good() {
    auto outcome = make_profile(store_, executor_, request_);
    if (!outcome) throw std::runtime_error(outcome.error().text());
    return std::move(*outcome);
  }
  SyntheticExecutor executor_;
  ProfileRequest request_;
};

TEST_F(MakeProfileTest, HoldsWhatEachUnitCostsByItself) {
  make_store({{"head", "load=100 loadwork=5 bytes=7", {}, {}},
              {"a", "work=3 bytes=20 f.steps=4 rows=0-3", {"head"}, {}},
              {"b", "work=2 skip=1", {"head"}, {}}});
  const Profile p = good().profile;
  EXPECT_EQ(p.store, store_->digest());
  EXPECT_EQ(p.executor, "synthetic");
  EXPECT_TRUE(p.isolated);
  EXPECT_THAT(p.names, ElementsAre("head", "a", "b"));
  EXPECT_THAT(p.features, ElementsAre("distinct_work", "rows", "steps"));
  EXPECT_THAT(p.work, ElementsAre(5, 3 + 5 + 8, 2))
      << "the head is loaded by each that consults it; 4 rows are 8";
  EXPECT_THAT(p.record_bytes, ElementsAre(107, 20 + 100 + 4 * synthetic::kRowBytes, 0));
  EXPECT_THAT(p.counters[*p.feature("steps")], ElementsAre(0, 4, 0));
  EXPECT_THAT(p.counters[*p.feature("distinct_work")], ElementsAre(1, 2, 1))
      << "items consulted, by their keys";
  EXPECT_THAT(p.references->of(2), ElementsAre(0)) << "b refers to the head";
  EXPECT_THAT(p.touched->of(2), ElementsAre(2)) << "and does not consult it";
  EXPECT_THAT(p.touched->of(1), ElementsAre(0, 1));
  EXPECT_FALSE(p.seconds);
}

TEST_F(MakeProfileTest, ARunningOneHoldsWhatEachUnitAdds) {
  make_store({{"head", "load=100 loadwork=5 bytes=7", {}, {}},
              {"a", "work=3 bytes=20 rows=0-3", {"head"}, {}},
              {"b", "work=2 rows=2-3", {"head"}, {}}});
  request_.isolated = false;
  const Profile p = good().profile;
  EXPECT_FALSE(p.isolated);
  EXPECT_THAT(p.work, ElementsAre(5, 3 + 8, 2)) << "head and rows are there already";
  EXPECT_THAT(p.record_bytes, ElementsAre(107, 20 + 4 * synthetic::kRowBytes, 0));
  EXPECT_THAT(p.counters[*p.feature("rows")], ElementsAre(0, 4, 0));
}

TEST_F(MakeProfileTest, NeitherWorkersNorTheirOrderChangeAByte) {
  make(130, true);
  request_.fail_fast = false;
  for (const bool isolated : {true, false}) {
    request_.isolated = isolated;
    request_.workers = 1;
    const std::string one = print_profile(good().profile);
    for (const unsigned workers : {2u, 8u}) {
      request_.workers = workers;
      std::atomic<int> turn{0};
      executor_.hooks.before_add = [&](const Unit&) {
        if (turn++ % 7 == 0) std::this_thread::yield();  // who comes first differs from run to run
      };
      EXPECT_EQ(print_profile(good().profile), one) << workers;
    }
    executor_.hooks.before_add = nullptr;
  }
}

TEST_F(MakeProfileTest, InterruptedOverAndOverItExecutesNoUnitTwice) {
  make(70);
  const std::string whole = print_profile(good().profile);
  request_.journal = folder_->path() / "j";
  int executed = 0, rounds = 0;
  for (bool done = false; !done; ++rounds) {
    ASSERT_LT(rounds, 100);
    std::stop_source source;
    int left = 9;
    executor_.hooks.before_add = [&](const Unit&) {
      ++executed;
      if (--left == 0)
        source.request_stop();  // the unit at work is stopped as well: it is not counted as done
    };
    request_.stop = source.get_token();
    const auto outcome = make_profile(store_, executor_, request_);
    if (outcome) {
      EXPECT_EQ(print_profile(outcome->profile), whole);
      done = true;
    } else {
      EXPECT_EQ(outcome.error().code(), Code::timeout);
      --executed;
    }
  }
  EXPECT_GT(rounds, 5);
  EXPECT_EQ(executed, 70) << "nothing that was done is lost";
  executor_.hooks.before_add = nullptr;
  request_.stop = {};
  const int begun = executor_.begun;
  EXPECT_EQ(print_profile(good().profile), whole);
  EXPECT_EQ(executor_.begun, begun) << "all of it is in the journal";
}

TEST_F(MakeProfileTest, ARunningOneGoesOnAtTheChunkThatWasInFlight) {
  make(70);
  request_.isolated = false;
  const std::string whole = print_profile(good().profile);
  request_.journal = folder_->path() / "j";
  std::stop_source source;
  int executed = 0;
  executor_.hooks.before_add = [&](const Unit&) {
    if (++executed == 20) source.request_stop();
  };
  request_.stop = source.get_token();
  EXPECT_EQ(make_profile(store_, executor_, request_).error().code(), Code::timeout);
  request_.stop = {};
  executed = 0;
  executor_.hooks.before_add = [&](const Unit&) { ++executed; };
  EXPECT_EQ(print_profile(good().profile), whole);
  EXPECT_EQ(executed, 70 - 16) << "chunks of 8 units: two were whole";
}

TEST_F(MakeProfileTest, ALimitLeavesTheRestUnknownAndALongerOneGoesOn) {
  make(40);
  request_.journal = folder_->path() / "j";
  request_.limit_units = 10;
  const ProfileOutcome outcome = good();
  EXPECT_TRUE(outcome.complete);
  EXPECT_EQ(outcome.measured, 10u);
  EXPECT_EQ(outcome.profile.units(), 40u);
  EXPECT_EQ(outcome.profile.states[9], UnitState::measured);
  EXPECT_EQ(outcome.profile.states[10], UnitState::unknown);
  EXPECT_EQ(outcome.profile.references->of(39).size() > 0, true) << "what needs no execution is there";
  request_.limit_units = 0;
  const int begun = executor_.begun;
  EXPECT_EQ(good().measured, 40u);
  EXPECT_EQ(executor_.begun, begun + 30);
}

TEST_F(MakeProfileTest, FailuresAreNamedOrStopIt) {
  make(120, true);
  request_.fail_fast = false;
  const ProfileOutcome all = good();
  EXPECT_TRUE(all.complete);
  ASSERT_EQ(all.profile.failed.size(), 2u);
  EXPECT_EQ(all.profile.failed[0].unit, 49u);
  EXPECT_EQ(all.profile.failed[0].code, Code::mismatch);
  EXPECT_EQ(all.profile.failed[0].why, "no");
  EXPECT_EQ(all.profile.states[49], UnitState::failed);
  request_.fail_fast = true;
  const ProfileOutcome first = good();
  EXPECT_FALSE(first.complete);
  ASSERT_EQ(first.profile.failed.size(), 1u);
  EXPECT_EQ(first.profile.failed[0].unit, 49u);
  EXPECT_EQ(first.measured, 49u);
  request_.isolated = false;
  EXPECT_FALSE(good().complete);
}

TEST_F(MakeProfileTest, ACapFailsAUnitAloneAndBeginsARecordAnewForOthers) {
  make_store({{"a", "bytes=60", {}, {}},
              {"b", "bytes=60", {}, {}},
              {"c", "bytes=160", {}, {}},
              {"d", "bytes=60", {}, {}}});
  request_.record_cap_bytes = 100;
  request_.fail_fast = false;
  for (const bool isolated : {true, false}) {
    request_.isolated = isolated;
    const Profile p = good().profile;
    EXPECT_THAT(p.record_bytes, ElementsAre(60, 60, 0, 60)) << isolated;
    ASSERT_EQ(p.failed.size(), 1u);
    EXPECT_EQ(p.failed[0].unit, 2u);
    EXPECT_EQ(p.failed[0].code, Code::exhausted);
  }
}

TEST_F(MakeProfileTest, SecondsAreThereWhenAskedFor) {
  make(8);
  request_.seconds = true;
  const Profile p = good().profile;
  ASSERT_TRUE(p.seconds);
  EXPECT_EQ((*p.seconds)[3], 0.25);
}

TEST_F(MakeProfileTest, ProgressCountsUnits) {
  make(30);
  ProgressState last;
  request_.progress = [&](const ProgressState& state) { last = state; };
  good();
  EXPECT_EQ(last.step, "profile");
  EXPECT_EQ(last.done, 30u);
  EXPECT_EQ(last.total, 30u);
}

TEST_F(MakeProfileTest, OtherStoresAndJournalsAreRefused) {
  make(8);
  executor_.the_version = 2;
  EXPECT_EQ(make_profile(store_, executor_, request_).error().code(), Code::incompatible);
  executor_.the_version = 1;
  request_.journal = folder_->path() / "j";
  good();
  request_.record_cap_bytes = 1u << 20;
  EXPECT_THAT(make_profile(store_, executor_, request_).error().text(), HasSubstr("the journal is about"));
}

TEST_F(MakeProfileTest, ASkeletonIsAProfileThatNobodyMeasured) {
  make(12);
  const auto skeleton = profile_skeleton(*store_);
  ASSERT_TRUE(skeleton) << skeleton.error().text();
  EXPECT_TRUE(check_profile(*skeleton, "skeleton"));
  EXPECT_TRUE(skeleton->references);
  EXPECT_FALSE(skeleton->touched);
  EXPECT_EQ(skeleton->states, std::vector<UnitState>(12, UnitState::unknown));
  const auto sharing = profile_sharing(*skeleton);
  const auto read = Sharing::read(*store_);
  ASSERT_TRUE(sharing && read);
  const std::vector<UnitIndex> some{6, 7, 9};
  EXPECT_EQ(sharing->cross(some).bytes, read->cross(some).bytes);
  EXPECT_EQ(sharing->own_bytes(some), read->own_bytes(some));
}

}  // namespace
}  // namespace furlong::shard
