// The server on a simulated card that computes by the lottery's reference.
#include "furlong/worker/server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <mutex>
#include <thread>

#include "furlong/base/os/file.h"
#include "furlong/device/sim/sim.h"
#include "furlong/program/lottery/lottery.h"
#include "furlong/program/lottery/recipe.h"
#include "furlong/program/pack.h"
#include "furlong/worker/internal/miner.h"

namespace furlong::worker {
namespace {

using program::lottery::Argument;
using ::testing::HasSubstr;

constexpr std::uint64_t kService = 0xABCDEFull << 40;  // nonces that no gate draws

record::Pair pair_of(char digit) { return {std::string(16, digit), 0}; }

/// Stands for the lottery's reference, which costs thousands of times as much: a hash is a mix of its nonce.
class QuickRecipe : public program::Recipe {
 public:
  explicit QuickRecipe(std::string key) : key_(std::move(key)) {}
  std::string name() const override { return "quick"; }
  std::uint64_t dataset_bytes() const override { return 16u << 20; }
  std::string dataset_key() const override { return key_; }
  Status build_dataset(std::span<std::uint8_t>, int, std::stop_token) const override { return {}; }
  Status reference(const program::Program&, const lattice::Environment&, const std::vector<Bytes>& inputs,
                   std::vector<Bytes>& expected) const override {
    const auto start = load_le<std::uint64_t>(inputs[Argument::kStart].data());
    const auto count = load_le<std::uint32_t>(inputs[Argument::kCount].data());
    const auto target = load_le<std::uint64_t>(inputs[Argument::kTarget].data());
    expected.resize(program::lottery::kArguments);
    expected[Argument::kHashes].resize(8 * count);
    Bytes hits = inputs[Argument::kHits];
    hits.resize((count + 31) / 32 * 4);
    for (std::uint32_t i = 0; i < count; ++i) {
      std::uint64_t state = start + i + key_.size();
      const std::uint64_t hash = splitmix64(state);
      store_le(&expected[Argument::kHashes][8 * i], hash);
      if (hash < target) hits[i / 8] |= static_cast<std::uint8_t>(1u << (i % 8));
    }
    expected[Argument::kHits] = std::move(hits);
    return {};
  }

 private:
  std::string key_;
};

Result<std::shared_ptr<const program::Program>> load_quick(const std::filesystem::path& folder) {
  FURLONG_TRY(const auto program, program::load_pack(folder));
  auto quick = std::make_shared<program::Program>(*program);
  quick->recipe = std::make_shared<QuickRecipe>(quick->epoch);
  quick->vectors.clear();  // of the real one
  return quick;
}

/// What a front would see last.
struct LastHand : Hand {
  void take(std::uint32_t kind, std::string_view name, double) noexcept override {
    const std::lock_guard lock(mutex);
    held = {kind, std::string(name)};
  }
  void drop() noexcept override {
    const std::lock_guard lock(mutex);
    held = {0, ""};
  }
  void reach(std::uint32_t) noexcept override {}
  std::mutex mutex;
  std::pair<std::uint32_t, std::string> held{0, ""};
};

/// A card, packs, and a server on a thread of its own whose events are kept.
class Stage {
 public:
  /// `wrong`: a variant all of whose hashes are wrong in service, from its launch of that number there on.
  explicit Stage(device::SimOptions sim = {}, const std::function<void(Options&)>& change = {},
                 std::pair<std::string, int> wrong = {"", 0})
      : folder_(TemporaryFolder::make("furlong-server-test-").value()), wrong_(std::move(wrong)) {
    sim.behaviour = [this](const device::CompileRequest& module, const device::Launch& launch) {
      return compute(module, launch);
    };
    driver_ = device::make_sim_driver({sim}, clock_);
    device_ = driver_->open(0).value();
    quarantine_ = race::Quarantine::open(folder_.path() / "quarantine.sqlite").value();
    environment_.device = device_.get();
    environment_.clock = clock_.get();
    environment_.quarantine = &*quarantine_;
    environment_.files = &system_files();
    environment_.choose_language = [](const program::Program&) { return std::string("cuda"); };
    environment_.emit = [this](const record::WorkerEvent& event) {
      const std::lock_guard lock(mutex_);
      events_.push_back(record::print(event));
      changed_.notify_all();
    };
    environment_.load_pack = [this](const std::filesystem::path& folder) {
      auto program = load_quick(folder);
      const std::lock_guard lock(mutex_);
      if (program) attached_.push_back(*program);
      return program;
    };
    environment_.hand = [this](const record::Pair&) { return &hand_; };
    options_.allow_unsigned = true;
    options_.chunk_ms = 0.05;  // of a time in which a launch takes 0.25 ms: chunks of the fewest nonces
    options_.race = "off";
    if (change) change(options_);
    server_.emplace(environment_, options_);
  }
  ~Stage() { static_cast<void>(end()); }

  std::string pack(char digit) {
    program::lottery::Parameters parameters;
    parameters.epoch_seed.fill(static_cast<std::uint8_t>((digit - 'a' + 10) * 0x11));
    const std::filesystem::path folder = folder_.path() / std::string(1, digit);
    EXPECT_TRUE(program::write_pack(program::lottery::make_pack(parameters).value(), folder));
    return folder.string();
  }
  void prepare(char digit) { server_->submit(record::PrepareCommand{pair_of(digit), pack(digit)}); }
  void job(char digit, const std::string& name, std::uint64_t start, std::uint64_t count,
           std::uint64_t target = 1ull << 58) {
    server_->submit(record::JobCommand{pair_of(digit), name, target, start, count});
  }
  Server& server() { return *server_; }
  void start() {
    thread_ = std::jthread([this] { status_ = server_->serve(); });
  }
  /// The first event that holds `words`, waited for.
  std::string wait(const std::string& words) {
    std::unique_lock lock(mutex_);
    std::string found;
    const bool there = changed_.wait_for(lock, std::chrono::seconds(120), [&] {
      for (const std::string& event : events_)
        if (event.find(words) != std::string::npos) found = event;
      return !found.empty();
    });
    EXPECT_TRUE(there) << words << "\n" << all();
    return found;
  }
  /// It ends by itself.
  Status ended() {
    thread_.join();
    return status_;
  }
  Status end() {
    if (thread_.joinable()) {
      server_->submit(record::QuitCommand{});
      thread_.join();
    }
    return status_;
  }
  std::vector<std::string> of(const std::string& kind) {
    const std::lock_guard lock(mutex_);
    std::vector<std::string> found;
    for (const std::string& event : events_)
      if (event.starts_with(kind)) found.push_back(event);
    return found;
  }
  std::string all() const {
    std::string text;
    for (const std::string& event : events_) text += event.substr(0, 300) + "\n";
    return text;
  }
  race::Quarantine& quarantine() { return *quarantine_; }
  std::pair<std::uint32_t, std::string> held() {
    const std::lock_guard lock(hand_.mutex);
    return hand_.held;
  }

 private:
  /// What the kernel of a text computes: by the reference of the program whose text it is.
  Status compute(const device::CompileRequest& module, const device::Launch& launch) {
    std::shared_ptr<const program::Program> program;
    {
      const std::lock_guard lock(mutex_);
      for (const auto& one : attached_)
        // Rewrites leave most of the text alone; its constants are the program's own.
        if (module.source.substr(module.source.size() / 2, 400) ==
                one->edition("cuda")->source.substr(module.source.size() / 2, 400) ||
            attached_.size() == 1)
          program = one;
    }
    if (!program) return fail(Code::internal, "whose text is this?");
    std::vector<Bytes> inputs(program->arguments.size()), expected;
    for (const std::size_t i : {Argument::kStart, Argument::kCount, Argument::kTarget})
      inputs[i] = std::get<Bytes>(launch.arguments[i]);
    const auto memory = [&](std::size_t i) {
      const auto& at = std::get<device::BufferArgument>(launch.arguments[i]);
      return device::sim_buffer_bytes(*at.buffer) + at.offset;
    };
    const std::uint64_t count = load_le<std::uint32_t>(inputs[Argument::kCount].data());
    std::uint8_t* hits = memory(Argument::kHits);
    inputs[Argument::kHits].assign(hits, hits + (count + 31) / 32 * 4);
    FURLONG_CHECK(program->recipe->reference(*program, {}, inputs, expected));
    const std::uint64_t start = load_le<std::uint64_t>(inputs[Argument::kStart].data());
    if (module.name == wrong_.first && start >> 40 == kService >> 40 && ++wrong_launches_ > wrong_.second)
      for (std::size_t i = 0; i < expected[Argument::kHashes].size(); i += 8)
        expected[Argument::kHashes][i] ^= 1;
    std::ranges::copy(expected[Argument::kHashes], memory(Argument::kHashes));
    std::ranges::copy(expected[Argument::kHits], hits);
    return {};
  }

  TemporaryFolder folder_;
  std::pair<std::string, int> wrong_;
  LastHand hand_;
  int wrong_launches_ = 0;
  std::shared_ptr<FakeClock> clock_ = std::make_shared<FakeClock>();
  std::unique_ptr<device::Driver> driver_;
  std::unique_ptr<device::Device> device_;
  std::optional<race::Quarantine> quarantine_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> events_;
  std::vector<std::shared_ptr<const program::Program>> attached_;
  Environment environment_;
  Options options_;
  std::optional<Server> server_;
  Status status_;
  std::jthread thread_;
};

TEST(Server, ServesSwapsAndAccountsForEveryNonce) {
  Stage stage;
  stage.start();
  stage.prepare('a');
  stage.job('a', "j1", 0, 0);
  stage.wait("swap aaaa");
  stage.prepare('b');
  stage.wait("prepared bbbb");
  stage.job('b', "j2", (1ull << 63), 5000);
  stage.wait("done j2 8000000000000000 5000 complete");
  EXPECT_THAT(stage.wait("swap bbbb"), HasSubstr("variant base"));
  EXPECT_THAT(stage.wait("swap bbbb"), HasSubstr(" prepared"));
  stage.wait("done j1 0000000000000000 ");
  EXPECT_GT(stage.of("found j2").size(), 20u);  // 5000 / 64 expected
  EXPECT_TRUE(stage.end());
  EXPECT_EQ(stage.of("bye").size(), 1u);
}

TEST(Server, WrongWorkRevertsToBaseAndTheChunkIsDoneAgain) {
  Stage stage({},
              [](Options& options) {
                options.variant = "u2";
                options.shadow_every_s = 0;
              },
              {"u2", 3});
  Stage clean;
  for (Stage* one : {&stage, &clean}) {
    one->start();
    one->prepare('a');
    one->wait("prepared aaaa");
    one->job('a', "j", kService, 6000);
    one->wait("done j abcdef0000000000 6000 complete");
  }
  EXPECT_THAT(stage.wait("reverted"), HasSubstr("reverted aaaaaaaaaaaaaaaa 0 u2 u2 "));
  EXPECT_EQ(stage.of("found"), clean.of("found"));
  const auto bad = stage.quarantine().list().value();
  ASSERT_EQ(bad.size(), 1u);
  EXPECT_EQ(bad[0].variant, "u2");
  EXPECT_THAT(bad[0].why, HasSubstr("in service"));
  EXPECT_TRUE(stage.end());
}

TEST(Server, BaseThatComputesWrongIsTheEnd) {
  Stage stage({}, [](Options& options) { options.shadow_every_s = 0; }, {"base", 3});
  stage.start();
  stage.prepare('a');
  stage.job('a', "j", kService, 0);
  const Status status = stage.ended();
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().text(), HasSubstr("base computed wrong results 3 times in a row"));
  EXPECT_TRUE(stage.of("bye").empty());
}

TEST(Server, ALostDeviceIsTheEnd) {
  device::SimOptions sim;
  sim.faults = {{"base", device::SimFault::device_lost, 30, 0, -1}};
  Stage stage(sim);
  stage.start();
  stage.prepare('a');
  stage.job('a', "j", 0, 0);
  EXPECT_FALSE(stage.ended());
  EXPECT_TRUE(stage.of("done").empty());  // another process goes on with it
  EXPECT_EQ(stage.held().first, static_cast<std::uint32_t>(race::Holding::lost));
  EXPECT_THAT(stage.held().second, testing::StartsWith("base\n"));
}

TEST(Server, WhoTookTheDeviceInARaceIsBlamedAndNotTheOneInService) {
  device::SimOptions sim;
  sim.faults = {{"w4", device::SimFault::device_lost, 14, 0, -1}};
  Stage stage(sim, [](Options& options) {
    options.race = "w4";
    options.race_budget_s = 60;
  });
  stage.start();
  stage.prepare('a');
  stage.job('a', "j", 0, 0);
  EXPECT_FALSE(stage.ended());
  EXPECT_EQ(stage.held().first, static_cast<std::uint32_t>(race::Holding::lost));
  EXPECT_THAT(stage.held().second, testing::StartsWith("w4\n"));
  const auto bad = stage.quarantine().list().value();
  ASSERT_EQ(bad.size(), 1u);
  EXPECT_EQ(bad[0].variant, "w4");
}

TEST(Server, AJobThatIsReadyIsTakenBeforeThePrepareBehindIt) {
  Stage stage;
  stage.start();
  stage.prepare('a');
  stage.job('a', "j1", 0, 0);
  stage.wait("swap aaaa");
  stage.wait("prepared aaaa");
  const std::string third = stage.pack('c');
  stage.prepare('b');
  stage.wait("prepared bbbb");
  stage.job('b', "j2", 0, 0);
  stage.server().submit(record::PrepareCommand{pair_of('c'), third});
  stage.wait("prepared cccc");
  EXPECT_EQ(stage.of("swap bbbb").size(), 1u);
  EXPECT_TRUE(stage.of("error").empty()) << stage.all();
  EXPECT_TRUE(stage.end());
}

TEST(Server, AJobThatWaitsIsServedBeforeThePrepareBehindIt) {
  Stage stage;
  const std::string second = stage.pack('b');
  stage.prepare('a');
  stage.job('a', "j1", 0, 0);
  stage.server().submit(record::PrepareCommand{pair_of('b'), second});
  stage.start();
  stage.wait("swap aaaa");
  stage.wait("prepared bbbb");
  EXPECT_TRUE(stage.of("error").empty()) << stage.all();
  EXPECT_TRUE(stage.end());
}

TEST(Server, APackIsNotPreparedTwice) {
  Stage stage;
  stage.start();
  stage.prepare('a');
  stage.wait("prepared aaaa");
  stage.prepare('a');
  stage.job('a', "j", 0, 1000);
  stage.wait("done j");
  stage.prepare('a');
  stage.server().submit(record::StatusCommand{});
  EXPECT_THAT(stage.wait("status"), HasSubstr("\"prepares\":1"));
  EXPECT_EQ(stage.of("prepared aaaa").size(), 3u);
  EXPECT_TRUE(stage.end());
}

TEST(Server, ATargetThatEveryHashMeetsHoldsNobodyUp) {
  Stage stage({}, [](Options& options) { options.chunk_ms = 1000; });
  stage.start();
  stage.prepare('a');
  stage.job('a', "j", 0, 3000, UINT64_MAX);
  stage.wait("done j 0000000000000000 3000 complete");
  EXPECT_EQ(stage.of("found j").size(), 3000u);
  stage.job('a', "k", 0, 0, UINT64_MAX);
  stage.job('a', "l", 0, 500, 0);
  stage.wait("done l 0000000000000000 500 complete");
  EXPECT_TRUE(stage.of("found l").empty());
  EXPECT_TRUE(stage.end());
}

TEST(Server, APinnedVariantThatEndedAnEarlierProcessIsRacedWithout) {
  Stage stage({}, [](Options& options) {
    options.variant = "u2";
    options.race = "w4";
    options.race_budget_s = 30;
  });
  stage.server().add_fallen({pair_of('a'), {"u2", "trap: killed by signal 11", {}}});
  stage.start();
  stage.prepare('a');
  stage.wait("prepared aaaa");
  EXPECT_THAT(stage.wait("note u2"), HasSubstr("u2 is pinned, and out: trap"));
  EXPECT_THAT(stage.wait("race "), testing::Not(HasSubstr("pinned")));
  EXPECT_TRUE(stage.end());
}

TEST(Server, AFailedPrepareLeavesTheWorkInHand) {
  device::SimOptions sim;
  sim.faults = {{"u2", device::SimFault::compile_error, 0, 0, -1}};
  Stage stage(sim);
  stage.start();
  stage.prepare('a');
  stage.job('a', "j", 0, 0);
  stage.wait("swap aaaa");
  stage.server().submit(record::PrepareCommand{pair_of('b'), "absent"});
  stage.wait("error");
  stage.job('c', "x", 0, 0);
  stage.wait("nobody prepared cccc");
  stage.server().submit(record::StatusCommand{});
  EXPECT_THAT(stage.wait("status"), HasSubstr("\"job\":\"j\""));
  EXPECT_TRUE(stage.end());
}

TEST(Server, LinesThatAreNoCommandsAreAnswered) {
  Stage stage;
  stage.server().submit_line("prepair");
  stage.server().submit_line("\n");
  stage.start();
  EXPECT_THAT(stage.wait("error invalid"), HasSubstr("'prepair'"));
  EXPECT_TRUE(stage.end());
}

}  // namespace
}  // namespace furlong::worker
