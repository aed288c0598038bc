#include "furlong/shard/scan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <mutex>
#include <numeric>
#include <set>
#include <thread>

#include "furlong/base/random.h"
#include "furlong/shard/internal/store_fixture.h"
#include "furlong/shard/internal/synthetic.h"
#include "furlong/shard/internal/tasks.h"

namespace furlong::shard {
namespace {

using synthetic::Script;
using synthetic::SyntheticExecutor;
using ::testing::HasSubstr;

class ScanTest : public StoreFixture {
 protected:
  void SetUp() override {
    StoreFixture::SetUp();
    if (HasFatalFailure()) return;
    // The cut is at 1000 bytes, the budget at 2000.
    options_.sizing = {.budget_bytes = 2000, .usable = 0.5, .fitted = true};
    options_.chunk_units = 1000;
  }
  void make(const std::vector<Script>& scripts) {
    make_store(scripts);
    order_.resize(store_->unit_count());
    std::iota(order_.begin(), order_.end(), 0u);
  }
  void make_texts(const std::vector<std::string>& texts) {
    std::vector<Script> scripts;
    for (const std::string& text : texts)
      scripts.push_back({fmt::format("u{}", scripts.size()), text, {}, {}});
    make(scripts);
  }
  Result<ScanResult> run() {
    Journal journal;
    return scan(store_, executor_, order_, options_, journal);
  }
  ScanResult good() {
    auto result = run();
    if (!result) throw std::runtime_error(result.error().text());
    return std::move(*result);
  }
  using Parts = std::vector<std::vector<UnitIndex>>;
  static Parts parts(const ScanResult& result) {
    Parts parts;
    for (const Segment& segment : result.segments) parts.push_back(segment.units);
    return parts;
  }
  static std::vector<UnitIndex> failed(const ScanResult& result) {
    std::vector<UnitIndex> units;
    for (const FailedUnit& unit : result.failed) units.push_back(unit.unit);
    return units;
  }

  std::vector<UnitIndex> order_;
  SyntheticExecutor executor_;
  ScanOptions options_;
};

TEST_F(ScanTest, TheCrossingUnitBeginsTheNextSegment) {
  make_texts({"bytes=400", "bytes=400", "bytes=400", "bytes=400", "bytes=100"});
  const ScanResult result = good();
  EXPECT_EQ(parts(result), (Parts{{0, 1}, {2, 3, 4}}));
  EXPECT_EQ(result.segments[0].cost.record_bytes, 800u) << "without the unit that crossed";
  EXPECT_EQ(result.segments[1].cost.record_bytes, 900u);
  EXPECT_TRUE(result.complete && result.failed.empty());
}

TEST_F(ScanTest, WorkCountsByItsFittedMemory) {
  options_.sizing.ram_per_work = 10;
  options_.sizing.base_bytes = 200;  // 800 are left below the cut
  make_texts({"work=30 bytes=100", "work=30 bytes=100", "work=30 bytes=100"});
  EXPECT_EQ(parts(good()), (Parts{{0}, {1}, {2}})) << "two would be 800: the cut is reached, not passed";
  options_.sizing.base_bytes = 199;
  EXPECT_EQ(parts(good()), (Parts{{0, 1}, {2}}));
}

TEST_F(ScanTest, TimeCutsAsWell) {
  options_.sizing = {.budget_seconds = 10, .usable = 0.5};
  make_texts({"seconds=2", "seconds=2", "seconds=2", "seconds=7", "seconds=12"});
  options_.fail_fast = false;
  const ScanResult result = good();
  EXPECT_EQ(parts(result), (Parts{{0, 1}, {2}, {3}}));
  EXPECT_TRUE(result.segments[2].alone);
  EXPECT_EQ(failed(result), std::vector<UnitIndex>{4});
}

TEST_F(ScanTest, ASharedDependencyIsChargedOncePerShard) {
  make({{"shared", "load=500"},
        {"a", "bytes=100", {"shared"}},
        {"b", "bytes=100", {"shared"}},
        {"c", "bytes=100", {"shared"}},
        {"d", "bytes=300", {"shared"}}});
  const ScanResult result = good();
  EXPECT_EQ(parts(result), (Parts{{0, 1, 2, 3}, {4}}));
  EXPECT_EQ(result.segments[0].cost.record_bytes, 800u) << "500 once, not four times";
  EXPECT_EQ(result.segments[1].cost.record_bytes, 800u) << "and again in the next";
}

TEST_F(ScanTest, AGiantUnitIsEmittedAloneAndReported) {
  make_texts({"bytes=100", "bytes=1500", "bytes=100"});
  const ScanResult result = good();
  EXPECT_EQ(parts(result), (Parts{{0}, {1}, {2}}));
  EXPECT_FALSE(result.segments[0].alone);
  EXPECT_TRUE(result.segments[1].alone);
  EXPECT_FALSE(result.segments[2].alone);
}

TEST_F(ScanTest, AUnitOverTheBudgetIsAsOverTheCap) {
  make_texts({"bytes=100", "bytes=2500", "bytes=100"});
  options_.fail_fast = false;
  const ScanResult result = good();
  EXPECT_EQ(parts(result), (Parts{{0}, {2}}));
  ASSERT_EQ(failed(result), std::vector<UnitIndex>{1});
  EXPECT_EQ(result.failed[0].code, Code::exhausted);
  EXPECT_THAT(result.failed[0].why, HasSubstr("over the budget"));
}

TEST_F(ScanTest, ATripWithBankedUnitsCutsAndATripAloneSkips) {
  options_.sizing.record_cap_bytes = 500;
  options_.fail_fast = false;
  make_texts({"bytes=300", "bytes=300", "bytes=600 charges=6", "bytes=200", "bytes=200"});
  const ScanResult result = good();
  EXPECT_EQ(parts(result), (Parts{{0}, {1}, {3, 4}})) << "an early cut at 1, and 2 is over the cap by itself";
  ASSERT_EQ(failed(result), std::vector<UnitIndex>{2});
  EXPECT_THAT(result.failed[0].why, HasSubstr("the record's cap of 500 B"));
  EXPECT_EQ(result.segments[2].cost.record_bytes, 400u) << "nothing of the trip is left in the record";
}

TEST_F(ScanTest, ATripAloneStopsWithFailFast) {
  options_.sizing.record_cap_bytes = 500;
  make_texts({"bytes=300", "bytes=600", "bytes=200"});
  const ScanResult result = good();
  EXPECT_FALSE(result.complete);
  EXPECT_EQ(failed(result), std::vector<UnitIndex>{1});
}

TEST_F(ScanTest, ARejectedUnitsPartialRowsDoNotChangeItsNeighbours) {
  options_.fail_fast = false;
  make_texts({"rows=1-10", "rows=5-30 bytes=300 f.steps=4 reject=no", "rows=8-20 f.steps=1"});
  const ScanResult with = good();
  EXPECT_EQ(parts(with), (Parts{{0, 2}}));
  EXPECT_EQ(failed(with), std::vector<UnitIndex>{1});
  EXPECT_EQ(with.failed[0].code, Code::mismatch);
  make_texts({"rows=1-10", "rows=8-20 f.steps=1"});
  const ScanResult without = good();
  EXPECT_EQ(with.segments[0].cost.work, without.segments[0].cost.work);
  EXPECT_EQ(with.segments[0].cost.record_bytes, without.segments[0].cost.record_bytes);
  EXPECT_EQ(with.segments[0].cost.features, without.segments[0].cost.features);
}

// Each unit of a chunk of four in the place of failure, among two chunks that are whole.
TEST_F(ScanTest, FailingFirstLastOnlyAndAllUnitsOfAChunk) {
  options_.fail_fast = false;
  const auto with = [&](const std::set<UnitIndex>& bad, std::uint32_t chunk) {
    std::vector<std::string> texts;
    for (UnitIndex u = 0; u < 12; ++u) texts.push_back(bad.contains(u) ? "bytes=10 reject=no" : "bytes=10");
    make_texts(texts);
    options_.chunk_units = chunk;
    const ScanResult result = good();
    EXPECT_EQ(failed(result), std::vector<UnitIndex>(bad.begin(), bad.end()));
    return parts(result);
  };
  EXPECT_EQ(with({4}, 4), (Parts{{0, 1, 2, 3}, {5, 6, 7}, {8, 9, 10, 11}}));
  EXPECT_EQ(with({7}, 4), (Parts{{0, 1, 2, 3}, {4, 5, 6}, {8, 9, 10, 11}}));
  EXPECT_EQ(with({4, 5, 6, 7}, 4), (Parts{{0, 1, 2, 3}, {8, 9, 10, 11}})) << "no segment without units";
  EXPECT_EQ(with({2}, 1).size(), 11u) << "the only one";
  EXPECT_EQ(with({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, 4), Parts{});
}

std::vector<std::string> mixed(int count) {
  Random random(11);
  std::vector<std::string> texts;
  for (int i = 0; i < count; ++i) {
    const auto first = random.between(0, 40);
    std::string text = fmt::format("bytes={} rows={}-{} work={}", random.between(0, 250), first,
                                   first + random.between(0, 20), random.between(0, 9));
    if (random.below(17) == 0) text += " reject=no";
    if (random.below(23) == 0) text += " load=1200";
    texts.push_back(text);
  }
  return texts;
}

TEST_F(ScanTest, ThePartitionIsTheSameFor1And2And8And32Workers) {
  make_texts(mixed(400));
  options_.fail_fast = false;
  options_.chunk_units = 0;
  options_.sizing.record_cap_bytes = 1900;
  executor_.hooks.before_add = [](const Unit& unit) {  // so that workers really overtake each other
    if (unit.key.bytes[0] % 8 == 0) std::this_thread::sleep_for(std::chrono::microseconds(unit.key.bytes[1]));
  };
  const ScanResult one = good();
  EXPECT_GT(one.segments.size(), 20u);
  EXPECT_FALSE(one.failed.empty());
  for (const unsigned workers : {2u, 8u, 32u}) {
    options_.workers = workers;
    const ScanResult many = good();
    EXPECT_EQ(parts(many), parts(one)) << workers;
    EXPECT_EQ(many.failed, one.failed) << workers;
    for (std::size_t i = 0; i < one.segments.size(); ++i) {
      EXPECT_EQ(many.segments[i].cost.work, one.segments[i].cost.work);
      EXPECT_EQ(many.segments[i].alone, one.segments[i].alone);
    }
  }
}

TEST_F(ScanTest, TheRunningCostIsThatOfTheExecutedClaimCold) {
  make_texts(mixed(120));
  options_.fail_fast = false;
  const ScanResult result = good();
  for (const Segment& segment : result.segments) {
    Journal journal;
    const auto cold = price(store_, executor_, segment.units, options_.sizing, false, journal);
    ASSERT_TRUE(cold && *cold);
    EXPECT_EQ((*cold)->work, segment.cost.work);
    EXPECT_EQ((*cold)->record_bytes, segment.cost.record_bytes);
    EXPECT_EQ((*cold)->features, segment.cost.features);
  }
}

TEST_F(ScanTest, ThePricedClaimIsTheExecutedClaim) {
  make({{"a", "load=10 bytes=5"}, {"b", "bytes=7 rows=1-4", {"a"}}, {"c", "rows=3-9", {"a", "b"}}});
  const std::vector<UnitIndex> units{1, 2};
  std::vector<Key> priced;
  executor_.hooks.before_add = [&](const Unit& unit) { priced.push_back(unit.key); };
  Journal journal;
  const auto cost = price(store_, executor_, units, options_.sizing, false, journal);
  ASSERT_TRUE(cost && *cost);
  const std::vector<Key> by_price = std::exchange(priced, {});
  const auto claim = make_claim(*store_, units);
  ASSERT_TRUE(claim);
  EXPECT_TRUE(journal.find("price", claim->digest("synthetic", 1).hex())) << "under the claim's digest";
  const KeyPair key = KeyPair::generate();
  const auto items = ClaimItems::open(store_, units);
  const std::vector<Unit> list{*store_->unit(1), *store_->unit(2)};
  const auto job = executor_.run("{}", *claim, list, **items, {.signer = &key});
  ASSERT_TRUE(job);
  EXPECT_EQ(priced, by_price) << "the same units in the same order";
  EXPECT_EQ(job->check.work, (*cost)->work);
  EXPECT_EQ(job->check.record_bytes, (*cost)->record_bytes);
  EXPECT_EQ(job->receipt.claim, claim->digest("synthetic", 1));
}

TEST_F(ScanTest, APriceInTheJournalIsNotMeasuredAgain) {
  make_texts({"bytes=600", "bytes=700"});
  const std::vector<UnitIndex> both{0, 1}, one{0};
  Journal journal;
  EXPECT_FALSE(*price(store_, executor_, both, options_.sizing, true, journal)) << "reaches the cut";
  EXPECT_TRUE(*price(store_, executor_, one, options_.sizing, true, journal));
  const int begun = executor_.begun;
  EXPECT_FALSE(*price(store_, executor_, both, options_.sizing, true, journal));
  EXPECT_EQ((*price(store_, executor_, one, options_.sizing, false, journal))->record_bytes, 600u);
  EXPECT_EQ(executor_.begun, begun);
}

TEST_F(ScanTest, FailFastStopsWithinOneUnitAWorker) {
  constexpr unsigned kWorkers = 8;
  std::vector<std::string> texts(400, "bytes=1");
  texts[0] = "reject=no";
  make_texts(texts);
  options_.chunk_units = 50;
  options_.workers = kWorkers;
  std::atomic<bool> has_failed{false};
  std::atomic<int> after{0};
  executor_.hooks.before_add = [&](const Unit& unit) {
    if (unit.name == "u0") {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));  // the others are under way
      has_failed = true;
      return;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (has_failed) ++after;
  };
  const ScanResult result = good();
  EXPECT_FALSE(result.complete);
  EXPECT_EQ(failed(result), std::vector<UnitIndex>{0});
  // One that had begun and, at most, one that was begun while the failure was on its way.
  EXPECT_LE(after, 2 * static_cast<int>(kWorkers));
}

TEST_F(ScanTest, OtherErrorsAreNotSkipped) {
  make_texts({"bytes=1", "bytes=1"});
  order_ = {0, 9};  // which the store does not have
  options_.fail_fast = false;
  const auto result = run();
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code(), Code::invalid);
}

TEST_F(ScanTest, AnInterruptedScanGoesOnWhereItWas) {
  make_texts(mixed(300));
  options_.fail_fast = false;
  options_.chunk_units = 0;
  Journal whole;
  const auto uninterrupted = scan(store_, executor_, order_, options_, whole);
  ASSERT_TRUE(uninterrupted);
  const std::filesystem::path file = folder_->path() / "j";
  std::size_t known = 0;
  for (int round = 0;; ++round) {  // stopped over and over, each time a little later
    ASSERT_LT(round, 100);
    auto journal = Journal::open(file, "{}");
    ASSERT_TRUE(journal) << journal.error().text();
    EXPECT_GE((*journal)->size(), known);
    known = (*journal)->size();
    std::stop_source source;
    int left = 40;
    executor_.hooks.before_add = [&](const Unit&) {
      if (--left == 0) source.request_stop();
    };
    options_.stop = source.get_token();
    const auto result = scan(store_, executor_, order_, options_, **journal);
    if (!result) {
      EXPECT_EQ(result.error().code(), Code::timeout);
      continue;
    }
    EXPECT_GT(round, 3);
    EXPECT_EQ(parts(*result), parts(*uninterrupted));
    EXPECT_EQ(result->failed, uninterrupted->failed);
    EXPECT_EQ((*journal)->size(), whole.size());
    break;
  }
}

TEST_F(ScanTest, AResumedScanThatMustNotFailStopsAtAKnownFailure) {
  make_texts({"bytes=1", "reject=no", "bytes=1"});
  options_.fail_fast = false;
  Journal journal;
  ASSERT_TRUE(scan(store_, executor_, order_, options_, journal));
  options_.fail_fast = true;
  const auto result = scan(store_, executor_, order_, options_, journal);
  ASSERT_TRUE(result);
  EXPECT_FALSE(result->complete);
  EXPECT_EQ(failed(*result), std::vector<UnitIndex>{1});
}

TEST_F(ScanTest, ProgressReachesTheEndAndNamesWhatRuns) {
  make_texts(std::vector<std::string>(30, "bytes=1"));
  std::vector<ProgressState> states;
  options_.progress = [&](const ProgressState& state) { states.push_back(state); };
  executor_.hooks.before_add = [&](const Unit& unit) {
    if (unit.name == "u7") std::this_thread::sleep_for(std::chrono::milliseconds(250));
  };
  good();
  ASSERT_GE(states.size(), 2u);
  EXPECT_EQ(states.front().heaviest, "u7");
  EXPECT_EQ(states.back().done, 30u);
  EXPECT_EQ(states.back().total, 30u);
  EXPECT_EQ(states.back().step, "scan");
}

TEST(ScanWorkers, FollowFromTheBoxAndTheCap) {
  constexpr std::uint64_t kGiB = 1u << 30;
  EXPECT_EQ(scan_workers(64 * kGiB, 8 * kGiB), 4u) << "(44.8 - 10) / 8";
  EXPECT_EQ(scan_workers(8 * kGiB, kGiB), 1u) << "at least one, also on a small box";
  EXPECT_EQ(scan_workers(64 * kGiB, 0), 1u) << "nothing bounds a record";
}

TEST(ChunkUnits, DependOnTheNumberOfUnitsAlone) {
  EXPECT_EQ(chunk_units(0), 8u);
  EXPECT_EQ(chunk_units(100), 8u);
  EXPECT_EQ(chunk_units(160), 10u);
  EXPECT_EQ(chunk_units(161), 11u);
}

TEST(TaskPoolTest, NoWorkerExitsWhileWorkCanStillAppear) {
  // One task that, late, makes many: all eight workers must still be there to take them. A worker that had
  // gone when it found nothing would never be counted.
  constexpr unsigned kWorkers = 8;
  TaskPool<int> pool(kWorkers, {0});
  std::mutex mutex;
  std::condition_variable together;
  std::set<unsigned> seen;
  const Status status = run_tasks<int>(pool, kWorkers, [&](unsigned worker, int& task) -> Status {
    if (task == 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      for (unsigned i = 0; i < kWorkers; ++i) pool.push(worker, 1);
      return {};
    }
    std::unique_lock lock(mutex);  // each holds its task until every worker has one
    seen.insert(worker);
    together.notify_all();
    together.wait_for(lock, std::chrono::seconds(20), [&] { return seen.size() == kWorkers; });
    return {};
  });
  EXPECT_TRUE(status);
  EXPECT_EQ(seen.size(), kWorkers);
}

TEST(TaskPoolTest, StealsFromTheLongestQueueAndStopsAtAnError) {
  std::vector<int> tasks(100);
  std::iota(tasks.begin(), tasks.end(), 0);
  TaskPool<int> pool(4, tasks);
  EXPECT_EQ(pool.next(0), 0);
  EXPECT_EQ(pool.next(3), 75);
  for (int i = 0; i < 24; ++i) EXPECT_TRUE(pool.next(0));
  EXPECT_EQ(pool.next(0), 49) << "from the end of another's";
  int done = 0;
  TaskPool<int> failing(1, tasks);  // with more, how far the others come is a matter of luck
  const Status status = run_tasks<int>(failing, 1, [&](unsigned, int& task) -> Status {
    ++done;
    if (task == 3) return fail(Code::mismatch, "three");
    return {};
  });
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().message(), "three");
  EXPECT_EQ(done, 4);
}

}  // namespace
}  // namespace furlong::shard
