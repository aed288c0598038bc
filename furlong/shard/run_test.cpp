#include "furlong/shard/run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "furlong/shard/internal/store_fixture.h"
#include "furlong/shard/make_plan.h"

namespace furlong::shard {
namespace {

using synthetic::Script;
using ::testing::HasSubstr;

/// Carries each task out here, one after another.
class HereEngine : public Engine {
 public:
  std::function<TaskEnd(const EngineTask&)> job;
  std::vector<ShardId> ran;
  std::string_view name() const override { return "here"; }
  Status run(std::span<const EngineTask> tasks, const EngineOptions&,
             const std::function<bool(const TaskEnd&)>& ended) override {
    for (const EngineTask& task : tasks) {
      ran.push_back(task.shard);
      if (!ended(job(task))) break;
    }
    return {};
  }
};

class RunTest : public StoreFixture {
 protected:
  void SetUp() override {
    StoreFixture::SetUp();
    std::vector<Script> scripts;
    for (int i = 0; i < 24; ++i) {
      std::vector<std::string> references;
      if (i > 0) references.push_back(fmt::format("u{}", i / 2));
      scripts.push_back({fmt::format("u{}", i), fmt::format("bytes=100 work={}", 1 + i % 5), references, {}});
    }
    make(scripts);
  }
  void make(const std::vector<Script>& scripts) {
    make_store(scripts);
    plan(2000);
    cache_.emplace(folder_->path() / "receipts");
    engine_.job = [this](const EngineTask& task) {
      TaskEnd end;
      end.shard = task.shard;
      const auto done = run_shard(context(), *plan_.find(task.shard), key_);
      if (!done) end.error = done.error();
      return end;
    };
  }
  void plan(std::uint64_t budget) {
    PlanRequest request;
    request.sizing = {.budget_bytes = budget, .fitted = true};
    request.sizing.usable = 0.25;
    request.fail_fast = false;
    auto outcome = make_plan(store_, executor_, request);
    ASSERT_TRUE(outcome) << outcome.error().text();
    plan_ = outcome->plan;
  }
  RunContext context() { return {store_, executor_, plan_, *cache_, 1, 1, {}}; }
  Result<RunReport> run(RunRequest request = {}) {
    engine_.ran.clear();
    return run_plan(context(), engine_, request);
  }

  synthetic::SyntheticExecutor executor_;
  Plan plan_;
  std::optional<ReceiptCache> cache_;
  HereEngine engine_;
  KeyPair key_ = *KeyPair::from_seed(Bytes(32, 1));
};

TEST_F(RunTest, EveryShardOnceHeaviestFirstAndTheSecondRunHasNothingToDo) {
  ASSERT_GE(plan_.shards.size(), 4u);
  const auto first = run();
  ASSERT_TRUE(first) << first.error().text();
  EXPECT_TRUE(first->complete());
  EXPECT_EQ(first->done, plan_.shards.size());
  for (std::size_t i = 1; i < engine_.ran.size(); ++i)
    EXPECT_GE(plan_.find(engine_.ran[i - 1])->cost, plan_.find(engine_.ran[i])->cost);
  const auto combined = combine(plan_, *first, key_);
  ASSERT_TRUE(combined) << combined.error().text();
  const auto second = run();
  ASSERT_TRUE(second);
  EXPECT_TRUE(second->complete());
  EXPECT_EQ(second->kept, plan_.shards.size());
  EXPECT_TRUE(engine_.ran.empty());
  EXPECT_EQ(combine(plan_, *second, key_)->root, combined->root);
}

TEST_F(RunTest, AFailureKeepsEveryFinishedShardAndTheSameCommandGoesOn) {
  int left = 2;
  const auto job = engine_.job;
  engine_.job = [&](const EngineTask& task) {
    if (left-- > 0) return job(task);
    return TaskEnd{task.shard, fail(Code::internal, "the process was killed"), 0, 0};
  };
  const auto report = run();
  ASSERT_TRUE(report);
  EXPECT_FALSE(report->complete());
  EXPECT_EQ(report->done, 2u);
  EXPECT_EQ(report->failed, 1u) << "nothing was begun after it";
  EXPECT_EQ(combine(plan_, *report, key_).error().code(), Code::invalid);
  RunRequest on;
  on.fail_fast = false;
  const auto rest = run(on);
  EXPECT_EQ(rest->kept, 2u);
  EXPECT_EQ(rest->failed, plan_.shards.size() - 2) << "all were tried";
  engine_.job = job;
  EXPECT_TRUE(run()->complete());
  EXPECT_EQ(engine_.ran.size(), plan_.shards.size() - 2);
}

TEST_F(RunTest, ADryRunAndAJobThatLiesRecordNothing) {
  RunRequest dry;
  dry.dry_run = true;
  EXPECT_EQ(run(dry)->pending, plan_.shards.size());
  EXPECT_TRUE(engine_.ran.empty());
  engine_.job = [](const EngineTask& task) { return TaskEnd{task.shard, std::nullopt, 0, 0}; };
  const auto report = run();
  EXPECT_EQ(report->failed, 1u);
  EXPECT_THAT(report->shards[0].why + report->shards[1].why + report->shards.back().why +
                  report->shards[report->shards.size() / 2].why,
              ::testing::AnyOf(HasSubstr("without a receipt"), ::testing::Eq("")));
}

TEST_F(RunTest, AStaleExecutorVersionRunsAnew) {
  ASSERT_TRUE(run()->complete());
  // The store and the plan of the new version, the receipts of the old one.
  executor_.the_version = 2;
  auto writer = StoreWriter::create(folder_->path() / "v2.store", "synthetic", 2, "{}").value();
  for (UnitIndex i = 0; i < store_->unit_count(); ++i) {
    const Unit unit = *store_->unit(i);
    for (const Key& item : unit.items) ASSERT_TRUE(writer.add_item(*store_->raw_item(item)));
    ASSERT_TRUE(writer.add_unit(unit.name, unit.items, unit.references));
  }
  ASSERT_TRUE(writer.finish());
  store_ = Store::open(folder_->path() / "v2.store").value();
  EXPECT_EQ(run().error().code(), Code::mismatch) << "the plan is of the old store";
  plan(2000);
  const auto report = run();
  ASSERT_TRUE(report) << report.error().text();
  EXPECT_EQ(report->kept, 0u);
  EXPECT_EQ(report->done, plan_.shards.size());
}

TEST_F(RunTest, DamagedAndSwappedReceiptsRunAgain) {
  ASSERT_TRUE(run()->complete());
  const auto entry = [&](std::size_t i) { return **cache_->find(*claim_digest(context(), plan_.shards[i])); };
  Files& files = system_files();
  // Garbage in an entry; an empty receipt; a receipt that is another claim's, under a valid entry.
  ASSERT_TRUE(files.write_atomic(cache_->entry_file(entry(0).claim), "garbage"));
  ASSERT_TRUE(files.write_atomic(cache_->receipt_file(entry(1).receipt), ""));
  ReceiptEntry swapped = entry(2);
  swapped.receipt = entry(3).receipt;
  ASSERT_TRUE(cache_->add(swapped));
  std::string why;
  EXPECT_FALSE(*settled(context(), plan_.shards[2], &why));
  EXPECT_THAT(why, HasSubstr("the receipt is of the claim")) << "valid, but for another claim";
  const auto report = run();
  ASSERT_TRUE(report) << report.error().text();
  EXPECT_TRUE(report->complete());
  EXPECT_EQ(std::set<ShardId>(engine_.ran.begin(), engine_.ran.end()), (std::set<ShardId>{0, 1, 2}));
  EXPECT_TRUE(run()->complete());
  EXPECT_TRUE(engine_.ran.empty());
}

TEST_F(RunTest, PlansThatShareAShardShareItsReceipt) {
  ASSERT_TRUE(run()->complete());
  Plan other = plan_;
  std::swap(other.shards.front().units.front(), other.shards.front().units.back());
  for (PlanShard& shard : other.shards) std::reverse(shard.units.begin(), shard.units.end());
  plan_ = other;
  EXPECT_EQ(run()->kept, plan_.shards.size()) << "a claim does not depend on order or plan";
}

TEST_F(RunTest, TheGateNamesExactlyWhatIsNotCovered) {
  plan_.shards.front().units.pop_back();
  const Error missing = run().error();
  EXPECT_EQ(missing.code(), Code::invalid);
  EXPECT_TRUE(engine_.ran.empty());
  plan(2000);
  plan_.store = blake2b_256("another");
  EXPECT_EQ(run().error().code(), Code::mismatch);
  plan(2000);
  RunRequest only;
  only.only = 99;
  EXPECT_THAT(run(only).error().text(), HasSubstr("no shard 99"));
  only.only = 1;
  const auto one = run(only);
  ASSERT_TRUE(one);
  EXPECT_EQ(engine_.ran, std::vector<ShardId>{1});
}

class EarlierExecutor : public synthetic::SyntheticExecutor {
 public:
  bool rests_on_earlier() const override { return true; }
};

TEST_F(RunTest, AUnitThatRestsOnALaterOneIsRefusedByName) {
  EarlierExecutor earlier;
  EXPECT_TRUE(check_gate({store_, earlier, plan_, *cache_, 1, 1, {}}));
  make({{"a", "bytes=1", {"b"}, {}}, {"b", "bytes=1", {}, {}}});
  const Error error = check_gate({store_, earlier, plan_, *cache_, 1, 1, {}}).error();
  EXPECT_EQ(error.code(), Code::invalid);
  EXPECT_THAT(error.text(), HasSubstr("unit 'a' refers to an item of 'b'"));
  EXPECT_TRUE(check_gate({store_, executor_, plan_, *cache_, 1, 1, {}})) << "others may";
}

TEST_F(RunTest, ARejectedUnitFailsItsCheckByName) {
  const auto cost = check_shard(context(), plan_.shards[0]);
  ASSERT_TRUE(cost) << cost.error().text();
  EXPECT_EQ(cost->work, plan_.shards[0].cost) << "the priced claim is the executed claim";
  EXPECT_GT(cost->peak_bytes, 0u);
  executor_.hooks.before_add = nullptr;
  Plan rejecting = plan_;
  make({{"good", "bytes=1", {}, {}}, {"bad", "reject=no reason", {}, {}}});
  ASSERT_EQ(plan_.failed.size(), 1u);
  EXPECT_THAT(run().error().text(), HasSubstr("'bad'")) << "the gate names exactly those";
  plan_.shards[0].units = {0, 1};
  EXPECT_THAT(check_shard(context(), plan_.shards[0]).error().text(), HasSubstr("unit 'bad'"));
}

TEST_F(RunTest, ACombinedReceiptIsReadAsWrittenAndTiesEveryLeaf) {
  const auto report = run();
  const auto combined = combine(plan_, *report, key_);
  ASSERT_TRUE(combined) << combined.error().text();
  EXPECT_TRUE(check_combined(*combined, plan_));
  const auto read = parse_combined(print_combined(*combined), "c");
  ASSERT_TRUE(read) << read.error().text();
  EXPECT_TRUE(check_combined(*read, plan_));
  EXPECT_EQ(print_combined(*read), print_combined(*combined));

  CombinedReceipt missing = *combined;
  missing.leaves.pop_back();
  EXPECT_EQ(check_combined(missing, plan_).error().code(), Code::mismatch);
  CombinedReceipt twice = *combined;
  twice.leaves.push_back(twice.leaves.front());
  EXPECT_EQ(check_combined(twice, plan_).error().code(), Code::mismatch);
  CombinedReceipt foreign = *combined;
  foreign.leaves.front().shard = 77;
  EXPECT_EQ(check_combined(foreign, plan_).error().code(), Code::mismatch);
  CombinedReceipt other = *combined;
  other.leaves.front().receipt = blake2b_256("another");
  EXPECT_EQ(check_combined(other, plan_).error().code(), Code::mismatch);
  CombinedReceipt unsigned_one = *combined;
  unsigned_one.signature[0] ^= 1;
  EXPECT_EQ(check_combined(unsigned_one, plan_).error().code(), Code::denied);
  Plan another = plan_;
  another.seed += 1;
  EXPECT_EQ(check_combined(*combined, another).error().code(), Code::mismatch);
  std::string text = print_combined(*combined);
  text.replace(text.find("\"version\": 1"), 12, "\"version\": 8");
  EXPECT_EQ(parse_combined(text, "c").error().code(), Code::incompatible);
}

TEST_F(RunTest, AllUnknownCostsFallBackToThePlansOrder) {
  for (PlanShard& shard : plan_.shards) {
    shard.cost_kind = CostKind::unknown;
    shard.cost = 0;
  }
  ASSERT_TRUE(run()->complete());
  EXPECT_TRUE(std::is_sorted(engine_.ran.begin(), engine_.ran.end()));
}

}  // namespace
}  // namespace furlong::shard
