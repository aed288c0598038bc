// Kernels of a simulated card: raced, kept, found again, and what may be wrong with what is kept.
#include "furlong/kernel/raced_kernel.h"

#include <gmock/gmock.h>

#include <thread>

#include "furlong/base/log.h"
#include "furlong/kernel/internal/choice.h"
#include "furlong/race/internal/testing.h"
#include "furlong/race/internal/watched.h"

namespace furlong::kernel {
namespace {

using race::testing::Stage;
using ::testing::HasSubstr;

/// Starts of one host program over one cache: each opens the card anew.
class RacedKernelTest : public ::testing::Test {
 protected:
  RacedKernelTest() {
    before_ = set_log_sink([this](LogLevel, std::string_view text) { warned_ += std::string(text) + "\n"; },
                           LogLevel::warning);
    options_.folder = "/cache/kernels";
    options_.files = &files_;
    options_.race_options.seed = 7;
  }
  ~RacedKernelTest() override { set_log_sink(before_); }

  Result<RacedKernel> ask() {
    warned_.clear();
    stage_ = std::make_unique<Stage>();
    stage_->sim.timing.gain = gain_;
    stage_->sim.facts.driver = driver_;
    stage_->sim.facts.compiler = compiler_;
    stage_->sim.facts.silicon.multiprocessors = multiprocessors_;
    stage_->sim.memory_bytes = memory_bytes_;
    stage_->problem = problem_;
    stage_->tamper = tamper_;
    stage_->open();
    options_.context.clock = stage_->context.clock;
    return raced_kernel(*stage_->device, *stage_->instance, options_);
  }
  /// For starts that must succeed.
  RacedKernel kernel() {
    auto made = ask();
    if (!made) throw std::runtime_error(made.error().text());
    return *std::move(made);
  }
  /// Whether a variant that is neither base nor the choice ran: they do in a race alone.
  bool raced() const { return stage_->launches.contains("c64"); }
  std::string kept() { return files_.read(kernel_file_).value_or(""); }

  FakeFiles files_;
  Options options_;
  std::map<std::string, double> gain_ = {{"u2", 0.03}};
  std::map<std::string, race::testing::Tamper> tamper_;
  std::vector<std::pair<std::string, lattice::Value>> problem_;
  std::string driver_ = "580.10", compiler_ = "sim 1.0", warned_;
  int multiprocessors_ = 64;
  std::uint64_t memory_bytes_ = 8ull << 30;
  std::filesystem::path kernel_file_;
  std::unique_ptr<Stage> stage_;

 private:
  LogSink before_;
};

TEST_F(RacedKernelTest, TheFirstStartRacesAndTheSecondDoesNot) {
  const RacedKernel first = kernel();
  EXPECT_EQ(first.variant(), "u2");
  EXPECT_FALSE(first.from_cache());
  EXPECT_TRUE(raced());
  EXPECT_THAT(first.why(), HasSubstr("u2 beats base by"));
  EXPECT_EQ(first.evidence().winner, "u2");
  EXPECT_TRUE(files_.exists(first.file()));

  const RacedKernel second = kernel();
  EXPECT_EQ(second.variant(), "u2");
  EXPECT_TRUE(second.from_cache());
  EXPECT_FALSE(raced());
  EXPECT_GT(stage_->launches["u2"], 0) << "it was not gated again";
  EXPECT_EQ(second.why(), first.why());
  EXPECT_EQ(second.evidence(), first.evidence());
  EXPECT_EQ(second.file(), first.file());
  EXPECT_EQ(warned_, "");
}

TEST_F(RacedKernelTest, WithoutASecondGateNothingRuns) {
  kernel();
  options_.gate_again = false;
  const RacedKernel second = kernel();
  EXPECT_TRUE(second.from_cache());
  EXPECT_TRUE(stage_->launches.empty());
}

TEST_F(RacedKernelTest, WhateverTheChoiceDependsOnIsAChoiceOfItsOwn) {
  const std::filesystem::path file = kernel().file();
  const auto another = [&](const char* what) {
    const RacedKernel made = kernel();
    EXPECT_FALSE(made.from_cache()) << what;
    EXPECT_TRUE(raced()) << what;
    EXPECT_NE(made.file(), file) << what;
    EXPECT_EQ(warned_, "") << what;
  };
  driver_ = "580.9";
  another("driver");
  driver_ = "580.10";
  compiler_ = "sim 1.1";
  another("compiler");
  compiler_ = "sim 1.0";
  multiprocessors_ = 60;
  another("card");
  multiprocessors_ = 64;
  problem_ = {{"n", 5000}};
  another("problem");
  problem_.clear();
  options_.variants = "u2,c64";
  another("variants");
  options_.variants = "catalogue";
  options_.gate_again = false;
  options_.serve = {{"n", 1000}};
  another("the problem of the launches");
  EXPECT_TRUE(kernel().from_cache());
  options_.serve = {{"n", 4096}};  // what is raced
  EXPECT_TRUE(kernel().from_cache());
  EXPECT_EQ(kernel().file(), file);
}

TEST_F(RacedKernelTest, AKeptChoiceThatCannotBeUsedIsAsGoodAsNone) {
  kernel_file_ = kernel().file();
  const std::string good = kept();
  const auto with = [&](std::string_view from, std::string_view to) {
    std::string text = good;
    const std::size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return text.replace(at, from.size(), to);
  };
  const std::pair<std::string, std::string> cases[] = {
      {good.substr(0, good.size() / 2), "byte"},
      {"", "byte"},
      {"[]", "object"},
      {with("\"schema\": 1", "\"schema\": 2"), "of schema 2, expected 'raced kernel' of 1"},
      {with("raced kernel", "tuning"), "'tuning' of schema 1"},
      {with("580.10", "570.86"), "driver is 580.10 and was 570.86"},
      {with("\"furlong\": \"", "\"furlong\": \"0."), "furlong is "},
      {with("\"variant\": \"u2\"", "\"variant\": \"u3\""), "u3"},
      {with("\"variant\": \"u2\"", "\"variant\": \"u8-c512-lazy\""), "not among the variants"},
      {with("\"variant\": \"u2\"", "\"variant\": \"u4\""), "the text of u4 is another one now"},
      {with("\"why\"", "\"wherefore\""), "why"},
      {with("\"budget_s\": 120.0", "\"budget_s\": \"much\""), "budget_s"},
  };
  for (const auto& [text, why] : cases) {
    ASSERT_TRUE(files_.write_atomic(kernel_file_, text));
    const RacedKernel made = kernel();
    EXPECT_FALSE(made.from_cache()) << why;
    EXPECT_EQ(made.variant(), "u2") << why;
    EXPECT_THAT(warned_, HasSubstr(why));
    EXPECT_THAT(warned_, HasSubstr(kernel_file_.string()));
    EXPECT_THAT(made.notes(), ::testing::Contains(HasSubstr(why)));
    EXPECT_TRUE(kernel().from_cache()) << "it was not mended: " << why;
  }
}

TEST_F(RacedKernelTest, AChoiceThatFailsItsGateNowIsRacedAgain) {
  kernel_file_ = kernel().file();
  tamper_["u2"] = [](const race::testing::Call& call) { call.y[call.n / 2] ^= 1; };
  const RacedKernel made = kernel();
  EXPECT_FALSE(made.from_cache());
  EXPECT_NE(made.variant(), "u2");
  EXPECT_THAT(warned_, HasSubstr("u2 failed when it was gated again"));
  EXPECT_THAT(kept(), ::testing::Not(HasSubstr("\"variant\": \"u2\"")));
}

TEST_F(RacedKernelTest, AFolderThatCannotBeWrittenCostsTheNextStartARace) {
  for (const Code code : {Code::denied, Code::exhausted}) {
    files_.fault = [&](std::string_view operation, const std::filesystem::path& path) -> Status {
      if (operation == "write") return fail(code, "{}: no room", path.string());
      return {};
    };
    const RacedKernel made = kernel();
    EXPECT_EQ(made.variant(), "u2");
    EXPECT_THAT(warned_, HasSubstr("the choice cannot be kept, and the next start races again: /cache"));
    EXPECT_FALSE(kernel().from_cache());
  }
  // A disk that fails half way leaves what was there.
  files_.fault = {};
  kernel_file_ = kernel().file();
  const std::string before = kept();
  files_.fault = [&](std::string_view operation, const std::filesystem::path&) -> Status {
    return operation == "rename" ? Status(fail(Code::internal, "no")) : Status();
  };
  options_.use_kept = false;
  EXPECT_FALSE(kernel().from_cache());
  EXPECT_EQ(kept(), before);
  options_.use_kept = true;
  EXPECT_TRUE(kernel().from_cache());
  // One that cannot be read is as good as none too.
  files_.fault = [&](std::string_view operation, const std::filesystem::path& path) -> Status {
    return operation == "read" ? Status(fail(Code::denied, "{} is not yours", path.string())) : Status();
  };
  EXPECT_FALSE(kernel().from_cache());
  EXPECT_THAT(warned_, HasSubstr("is not yours"));
}

TEST_F(RacedKernelTest, SeveralAtOnceLeaveOneWholeChoice) {
  const auto folder = TemporaryFolder::make("furlong-kernels");
  ASSERT_TRUE(folder) << folder.error().text();
  std::vector<std::filesystem::path> files(4);
  std::vector<std::thread> starts;
  for (std::size_t i = 0; i < files.size(); ++i)
    starts.emplace_back([&, i] {
      for (int again = 0; again < 3; ++again) {
        Stage stage;
        stage.sim.timing.gain = gain_;
        stage.open();
        Options options;
        options.folder = folder->path() / "new" / "folder";
        options.use_kept = again == 2;
        options.race_options.seed = 7 + i;
        options.context.clock = stage.context.clock;
        auto made = raced_kernel(*stage.device, *stage.instance, options);
        EXPECT_TRUE(made) << made.error().text();
        if (!made) return;
        EXPECT_EQ(made->variant(), "u2");
        EXPECT_EQ(made->from_cache(), again == 2);
        files[i] = made->file();
      }
    });
  for (std::thread& start : starts) start.join();
  EXPECT_EQ(warned_, "");
  for (const auto& file : files) EXPECT_EQ(file, files[0]);
  const auto names = system_files().list(folder->path() / "new" / "folder");
  ASSERT_TRUE(names);
  EXPECT_EQ(names->size(), 1u) << "a temporary file was left";
  EXPECT_TRUE(parse_choice(system_files().read(files[0]).value(), "it"));
}

TEST_F(RacedKernelTest, AnUndecidedRaceHoldsForNoLargerBudget) {
  options_.race_options.budget_s = 0.4;
  const RacedKernel first = kernel();
  ASSERT_TRUE(first.evidence().verdict == record::Verdict::out_of_budget ||
              first.evidence().verdict == record::Verdict::none)
      << first.why();
  EXPECT_TRUE(kernel().from_cache());
  options_.race_options.budget_s = 60;
  const RacedKernel more = kernel();
  EXPECT_FALSE(more.from_cache());
  EXPECT_EQ(more.variant(), "u2");
  EXPECT_THAT(more.notes(), ::testing::Contains(HasSubstr("a race of 0.4 s did not decide")));
  options_.race_options.budget_s = 600;
  EXPECT_TRUE(kernel().from_cache()) << "a decided one holds for all";
}

TEST_F(RacedKernelTest, TheSecondGateHasNoBudget) {
  const RacedKernel first = kernel();
  ASSERT_TRUE(first.evidence().verdict == record::Verdict::winner) << first.why();
  // Half of it is less than compiling base and the choice takes.
  options_.race_options.budget_s = 0.02;
  const RacedKernel kept = kernel();
  EXPECT_TRUE(kept.from_cache());
  EXPECT_EQ(kept.variant(), "u2");
  EXPECT_GT(stage_->launches["u2"], 0) << "it was not gated again";
  EXPECT_EQ(warned_, "");
}

TEST_F(RacedKernelTest, BaseMayBeOnlyTheMeasure) {
  gain_ = {{"u2", -0.3}, {"u4", -0.2}, {"u8", -0.4}};
  options_.variants = "u2,u4,u8";
  options_.base_may_win = false;
  const RacedKernel made = kernel();
  EXPECT_EQ(made.variant(), "u4");
  EXPECT_THAT(made.why(), HasSubstr("u4 is the best of those that may be chosen, -20."));
  EXPECT_EQ(kernel().variant(), "u4");
  EXPECT_TRUE(kernel().from_cache());
  for (const char* name : {"u2", "u4", "u8"})
    tamper_[name] = [](const race::testing::Call& call) { call.y[0] ^= 1; };
  const auto none = ask();
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code(), Code::mismatch);
  EXPECT_THAT(none.error().text(), HasSubstr("u8: "));
  tamper_.clear();
  options_.use_kept = false;
  options_.race_options.budget_s = 0.02;
  const auto late = ask();
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code(), Code::timeout);
  EXPECT_THAT(late.error().text(), HasSubstr("the race's budget of 0.02 s ended before"));
}

TEST_F(RacedKernelTest, LaunchesHaveAProblemOfTheirOwn) {
  options_.serve = {{"n", 1000}};
  const RacedKernel made = kernel();
  EXPECT_EQ(made.arguments()[0].bytes, 4000u);
  EXPECT_EQ(made.launches()[0].grid[0], 8u);  // of 128 elements
  EXPECT_TRUE(kernel().from_cache());
  options_.serve = {{"m", 1000}};
  const auto unknown = ask();
  ASSERT_FALSE(unknown);
  EXPECT_THAT(unknown.error().text(), HasSubstr("'m'"));
}

TEST_F(RacedKernelTest, SaysWhatItCannotDo) {
  options_.variants = "u3";
  auto made = ask();
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code(), Code::invalid);
  options_.variants = "catalogue";
  memory_bytes_ = 1 << 14;
  made = ask();
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code(), Code::exhausted);
  EXPECT_THAT(made.error().text(), HasSubstr("n=4096 take 32 KiB"));
  memory_bytes_ = 8ull << 30;
  std::stop_source stop;
  stop.request_stop();
  options_.context.stop = stop.get_token();
  made = ask();
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code(), Code::timeout);
  EXPECT_EQ(files_.list("/cache/kernels").value_or(std::vector<std::string>{}).size(), 0u);
}

TEST_F(RacedKernelTest, AStopWhileTheKeptChoiceIsGatedEndsThere) {
  kernel();
  std::stop_source stop;
  stop.request_stop();
  options_.context.stop = stop.get_token();
  const auto made = ask();
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code(), Code::timeout);
  EXPECT_EQ(warned_, "");
}

TEST_F(RacedKernelTest, TheDeviceIsHeldForWhatUsesIt) {
  int held = 0, calls = 0;
  options_.context.acquire = [&] {
    ++calls;
    EXPECT_EQ(++held, 1);
  };
  options_.context.release = [&] { EXPECT_EQ(--held, 0); };
  kernel();
  EXPECT_EQ(held, 0);
  EXPECT_GT(calls, 10);
}

/// Starts over one cache on a device whose uses are watched: all but compiling is done while it is held.
class HeldKernelTest : public RacedKernelTest {
 protected:
  HeldKernelTest() {
    options_.context.acquire = [this] { watch_.taken(); };
    options_.context.release = [this] { watch_.left(); };
  }
  ~HeldKernelTest() override {
    EXPECT_EQ(watch_.strays(), 0) << watch_.last_stray();
    EXPECT_GT(watch_.uses(), 0);
  }
  /// The code of the Error, or nothing. No module and no buffer is left when the kernel went.
  std::optional<Code> start(std::function<void(const RacedKernel&)> use = {}) {
    stage_ = std::make_unique<Stage>();
    stage_->sim.timing.gain = gain_;
    stage_->sim.faults = faults_;
    stage_->tamper = tamper_;
    stage_->open();
    options_.context.clock = stage_->context.clock;
    race::testing::Watched device(*stage_->device, watch_);
    std::optional<Code> failed;
    {
      auto made = raced_kernel(device, *stage_->instance, options_);
      if (!made) failed = made.error().code();
      if (made && use) use(*made);
      EXPECT_EQ(device.modules(), made ? 1 : 0);
      watch_.taken();
      if (made) {
        const RacedKernel last = *std::move(made);
      }
      watch_.left();
    }
    EXPECT_EQ(device.modules(), 0);
    EXPECT_EQ(stage_->device->memory().used_bytes, 0u);
    return failed;
  }
  race::testing::Watch watch_;
  std::vector<device::SimFaultPlan> faults_;
};

TEST_F(HeldKernelTest, ARaceAndThenItsChoice) {
  EXPECT_EQ(start(), std::nullopt);
  EXPECT_EQ(start([](const RacedKernel& kernel) { EXPECT_TRUE(kernel.from_cache()); }), std::nullopt);
}

TEST_F(HeldKernelTest, AGateOnAnotherProblem) {
  options_.serve = {{"n", 1000}};
  EXPECT_EQ(start(), std::nullopt);
}

TEST_F(HeldKernelTest, AKeptChoiceThatFailsAndIsRacedAgain) {
  EXPECT_EQ(start(), std::nullopt);
  tamper_["u2"] = [](const race::testing::Call& call) { call.y[0] ^= 1; };
  EXPECT_EQ(start([](const RacedKernel& kernel) { EXPECT_NE(kernel.variant(), "u2"); }), std::nullopt);
}

TEST_F(HeldKernelTest, WhatFailsGivesUpEverythingToo) {
  options_.base_may_win = false;
  options_.variants = "u2";
  tamper_["u2"] = [](const race::testing::Call& call) { call.y[0] ^= 1; };
  EXPECT_EQ(start(), Code::mismatch);
  tamper_.clear();
  faults_ = {{"u2", device::SimFault::device_lost, 1}};
  EXPECT_EQ(start(), Code::unavailable);
}

TEST_F(HeldKernelTest, BaseMayServeBeforeTheRaceIsOver) {
  std::vector<std::string> told;
  std::optional<RacedKernel> early;
  options_.base_ready = [&](const RacedKernel& base) {
    told.push_back(base.variant());
    EXPECT_EQ(base.why(), "base passed its gate, and the race goes on");
    EXPECT_EQ(base.launches().size(), 1u);
    EXPECT_EQ(stage_->launches["u2"], 0) << "it was told too late";
  };
  EXPECT_EQ(start([](const RacedKernel& kernel) { EXPECT_EQ(kernel.variant(), "u2"); }), std::nullopt);
  EXPECT_EQ(told, std::vector<std::string>{"base"});
  // A kept choice needs no race, and where base is only the measure it cannot serve.
  EXPECT_EQ(start(), std::nullopt);
  options_.base_may_win = false;
  EXPECT_EQ(start(), std::nullopt);
  EXPECT_EQ(told.size(), 1u);
}

TEST_F(RacedKernelTest, AChoiceNeedNotBeKept) {
  options_.keep = false;
  EXPECT_FALSE(files_.exists(kernel().file()));
  EXPECT_FALSE(kernel().from_cache());
  EXPECT_EQ(warned_, "");
}

}  // namespace
}  // namespace furlong::kernel
