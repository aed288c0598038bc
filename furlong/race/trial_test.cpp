// The trial: the protocol with scripted children, and real ones.
#include "furlong/race/trial.h"

#include <cstdlib>
#include <deque>
#include <filesystem>
#include <iostream>
#include <optional>
#include <set>
#include <string_view>

#include "furlong/base/os/file.h"
#include "furlong/race/internal/testing.h"
#include "furlong/race/internal/trial_protocol.h"

namespace furlong::race {
namespace {

using Kind = TrialFinding::Kind;
using testing::Stage;
using testing::variant;

std::string line(TrialEvent::Kind kind, const std::string& name = {}) {
  return to_line(TrialEvent{kind, name, Code::internal, {}, false});
}
std::string failed(const std::string& name, Code code, bool lost) {
  return to_line(TrialEvent{TrialEvent::Kind::failed, name, code, "planted", lost});
}

/// How a scripted child treats one variant.
enum class Fate { pass, refuse, oom, trap_told, die, hang, chatter, die_if_after };

/// Plays `furlong trial` from a script, one child after another.
class FakeTrials : public Processes {
 public:
  std::map<std::string, Fate> fate;  ///< default: pass
  std::string poisoner;              ///< variants with die_if_after die when this ran before in their process
  bool die_at_the_end = false;       ///< when the poisoner ran
  int die_once_at = -1;              ///< the child with this number dies with its second variant in hand
  std::string noise;                 ///< printed before each event
  FakeClock* clock = nullptr;        ///< goes on by line_ms before each line
  double line_ms = 0;
  std::vector<std::vector<std::string>> asked;

  class FakeChild : public Child {
   public:
    explicit FakeChild(std::deque<std::string> lines, bool hangs, ProcessEnd end, const FakeTrials& trials)
        : lines_(std::move(lines)),
          hangs_(hangs),
          end_(std::move(end)),
          clock_(trials.clock),
          line_ms_(trials.line_ms) {}
    Result<std::optional<std::string>> read_line(double) override {
      if (clock_ != nullptr) clock_->advance_ns(static_cast<std::int64_t>(1e6 * line_ms_));
      if (lines_.empty() && hangs_) return fail(Code::timeout, "nothing to read");
      if (lines_.empty()) return std::optional<std::string>();
      std::string next = lines_.front();
      lines_.pop_front();
      return std::optional<std::string>(std::move(next));
    }
    Status write(std::string_view) override { return {}; }
    void close_input() override {}
    ProcessEnd kill() override { return end_; }
    ProcessEnd wait(double) override { return end_; }
    int pid() const override { return 1; }

   private:
    std::deque<std::string> lines_;
    bool hangs_;
    ProcessEnd end_;
    FakeClock* clock_;
    double line_ms_;
  };

  Result<std::unique_ptr<Child>> start(const ProcessRequest& request) override {
    auto parsed = parse_trial_request(request.input.substr(0, request.input.find('\n')));
    if (!parsed) return Error(std::move(parsed).error());
    asked.push_back(parsed->variants);
    std::deque<std::string> lines;
    const auto say = [&](const std::string& text) {
      if (!noise.empty()) lines.push_back(noise);
      lines.push_back(text);
    };
    ProcessEnd end;
    end.exit_code = 0;
    const auto dead = [&] {
      end.exit_code = -1;
      end.signal = 11;
      return std::unique_ptr<Child>(std::make_unique<FakeChild>(lines, false, end, *this));
    };
    say(line(TrialEvent::Kind::ready));
    bool poisoned = false;
    for (std::size_t i = 0; i < parsed->variants.size(); ++i) {
      const std::string& name = parsed->variants[i];
      const auto found = fate.find(name);
      const Fate one = found == fate.end() ? Fate::pass : found->second;
      say(line(TrialEvent::Kind::begin, name));
      if (one == Fate::refuse) {
        say(failed(name, Code::invalid, false));
        continue;
      }
      say(line(TrialEvent::Kind::built, name));
      for (int said = 0; one == Fate::chatter && said < 1000; ++said) lines.push_back("still here");
      if (one == Fate::hang || one == Fate::chatter)
        return std::unique_ptr<Child>(std::make_unique<FakeChild>(lines, true, end, *this));
      if (one == Fate::die || (one == Fate::die_if_after && poisoned)) return dead();
      if (static_cast<int>(asked.size()) == die_once_at && i == 1) return dead();
      if (one == Fate::oom) {
        say(failed(name, Code::exhausted, false));
        continue;
      }
      if (one == Fate::trap_told) {
        say(failed(name, Code::internal, true));
        end.exit_code = 1;
        return std::unique_ptr<Child>(std::make_unique<FakeChild>(lines, false, end, *this));
      }
      poisoned |= name == poisoner;
      say(line(TrialEvent::Kind::passed, name));
    }
    if (poisoned && die_at_the_end) return dead();
    say(line(TrialEvent::Kind::end));
    return std::unique_ptr<Child>(std::make_unique<FakeChild>(lines, false, end, *this));
  }
};

TrialAsked asked_of(std::vector<std::string> variants) {
  TrialAsked asked;
  asked.command = {"furlong", "trial"};
  asked.program_json = R"({"what":"mix"})";
  asked.device = "cuda:0";
  asked.variants = std::move(variants);
  asked.timeout_s = 1;
  return asked;
}

std::vector<Kind> kinds(const TrialReport& report) {
  std::vector<Kind> list;
  for (const TrialFinding& finding : report.findings) list.push_back(finding.kind);
  return list;
}

TEST(Trial, PassesAllInOneProcess) {
  FakeTrials trials;
  const auto report = run_trial(trials, asked_of({"base", "u2", "u4"}), {}).value();
  EXPECT_EQ(kinds(report), (std::vector{Kind::good, Kind::good, Kind::good}));
  EXPECT_EQ(report.processes, 1);
  EXPECT_TRUE(report.notes.empty());
}

TEST(Trial, NamesTheVariantThatKillsTheProcessAndTriesTheRest) {
  FakeTrials trials;
  trials.fate = {{"u2", Fate::die}};
  const auto report = run_trial(trials, asked_of({"base", "u2", "u4", "u8"}), {}).value();
  EXPECT_EQ(kinds(report), (std::vector{Kind::good, Kind::bad, Kind::good, Kind::good}));
  EXPECT_NE(report.findings[1].why.find("signal 11"), std::string::npos) << report.findings[1].why;
  // The first child, u2 alone to be sure, and the rest.
  EXPECT_EQ(trials.asked.size(), 3u);
  EXPECT_EQ(trials.asked[1], std::vector<std::string>{"u2"});
}

TEST(Trial, NamesTheVariantThatHangs) {
  FakeTrials trials;
  trials.fate = {{"u4", Fate::hang}};
  const auto report = run_trial(trials, asked_of({"base", "u2", "u4", "u8"}), {}).value();
  EXPECT_EQ(kinds(report), (std::vector{Kind::good, Kind::good, Kind::bad, Kind::good}));
  EXPECT_TRUE(report.findings[2].why.starts_with("hang: ran past 1 s")) << report.findings[2].why;
}

TEST(Trial, TellsDangerFromRefusal) {
  FakeTrials trials;
  trials.fate = {{"u2", Fate::refuse}, {"u4", Fate::oom}, {"u8", Fate::trap_told}};
  const auto report = run_trial(trials, asked_of({"base", "u2", "u4", "u8", "w4"}), {}).value();
  EXPECT_EQ(kinds(report), (std::vector{Kind::good, Kind::refused, Kind::bad, Kind::bad, Kind::good}));
  EXPECT_TRUE(report.findings[2].why.starts_with("memory: ")) << report.findings[2].why;
  EXPECT_TRUE(report.findings[3].why.starts_with("trap: ")) << report.findings[3].why;
}

TEST(Trial, FindsByBisectionWhoHarmedALaterVariant) {
  for (const std::string culprit : {"v0", "v3", "v5", "v6"}) {
    FakeTrials trials;
    trials.poisoner = culprit;
    trials.fate = {{"last", Fate::die_if_after}};
    const auto report =
        run_trial(trials, asked_of({"v0", "v1", "v2", "v3", "v4", "v5", "v6", "last", "after"}), {}).value();
    for (std::size_t i = 0; i < 9; ++i) {
      const std::string name = i < 7 ? "v" + std::to_string(i) : i == 7 ? "last" : "after";
      EXPECT_EQ(report.findings[i].kind, name == culprit ? Kind::bad : Kind::good) << culprit << " " << name;
      if (name == culprit) {
        EXPECT_NE(report.findings[i].why.find("with last in hand"), std::string::npos)
            << report.findings[i].why;
      }
    }
    EXPECT_LE(trials.asked.size(), 8u);
  }
}

TEST(Trial, FindsByBisectionWhoKillsTheProcessAtItsEnd) {
  FakeTrials trials;
  trials.poisoner = "u4";
  trials.die_at_the_end = true;
  const auto report = run_trial(trials, asked_of({"base", "u2", "u4", "u8"}), {}).value();
  EXPECT_EQ(kinds(report), (std::vector{Kind::good, Kind::good, Kind::bad, Kind::good}));
}

TEST(Trial, BlamesNobodyForADeathThatDoesNotComeAgain) {
  FakeTrials trials;
  trials.die_once_at = 1;
  const auto report = run_trial(trials, asked_of({"base", "u2", "u4"}), {}).value();
  for (const TrialFinding& finding : report.findings) EXPECT_EQ(finding.kind, Kind::good);
  EXPECT_FALSE(report.findings[0].certain) << "it is to be tried again the next time";
  EXPECT_TRUE(report.findings[2].certain);
  ASSERT_FALSE(report.notes.empty());
  EXPECT_NE(report.notes[0].find("not again"), std::string::npos);
}

TEST(Trial, PassesOverWhatKernelsPrint) {
  FakeTrials trials;
  trials.noise = "hello from block 3";
  EXPECT_EQ(kinds(run_trial(trials, asked_of({"base", "u2"}), {}).value()),
            (std::vector{Kind::good, Kind::good}));
}

TEST(Trial, EndsWithANoteWhenItsBudgetIsUsedUp) {
  FakeTrials trials;
  trials.fate = {{"a", Fate::hang}, {"b", Fate::hang}, {"c", Fate::hang}, {"d", Fate::hang}};
  TrialAsked asked = asked_of({"a", "b", "c", "d"});
  asked.budget_s = 1.5;
  const auto report = run_trial(trials, asked, {}).value();
  // b had half its time: it is not known to hang.
  EXPECT_EQ(kinds(report), (std::vector{Kind::bad, Kind::untried, Kind::untried, Kind::untried}));
  EXPECT_TRUE(report.out_of_budget);
  EXPECT_FALSE(report.notes.empty());
}

TEST(Trial, KeepsItsBudgetWithinOneProcess) {
  FakeTrials trials;
  FakeClock clock;
  trials.clock = &clock;
  trials.line_ms = 100;  // three lines a variant, none of them late
  TrialAsked asked = asked_of({"a", "b", "c", "d"});
  asked.clock = &clock;
  asked.budget_s = 0.75;  // ready, and two variants
  const auto report = run_trial(trials, asked, {}).value();
  EXPECT_EQ(kinds(report), (std::vector{Kind::good, Kind::good, Kind::untried, Kind::untried}));
  EXPECT_TRUE(report.out_of_budget);
  EXPECT_EQ(report.processes, 1);
}

TEST(Trial, NamesNobodyWhenThereIsNoTimeToFindOut) {
  FakeTrials trials;
  FakeClock clock;
  trials.clock = &clock;
  trials.line_ms = 100;
  trials.poisoner = "v1";
  trials.fate = {{"last", Fate::die_if_after}};
  TrialAsked asked = asked_of({"v0", "v1", "v2", "v3", "last"});
  asked.clock = &clock;
  asked.budget_s = 2;  // the first child needs 1.5 s
  const auto report = run_trial(trials, asked, {}).value();
  for (const TrialFinding& finding : report.findings)
    EXPECT_EQ(finding.kind, Kind::untried) << "one of them kills, and nobody knows which";
  EXPECT_TRUE(report.out_of_budget);
}

TEST(Trial, TakesAKernelThatPrintsForEverForHung) {
  FakeTrials trials;
  FakeClock clock;
  trials.clock = &clock;
  trials.line_ms = 300;
  trials.fate = {{"u2", Fate::chatter}};
  TrialAsked asked = asked_of({"base", "u2", "u4"});
  asked.clock = &clock;
  const auto report = run_trial(trials, asked, {}).value();
  EXPECT_EQ(kinds(report), (std::vector{Kind::good, Kind::bad, Kind::good}));
  EXPECT_TRUE(report.findings[1].why.starts_with("hang: ran past 1 s")) << report.findings[1].why;
}

TEST(Trial, LeavesAllUntriedWhenThereIsNoChild) {
  TrialAsked asked = asked_of({"base", "u2"});
  asked.command = {"/nowhere/furlong", "trial"};
  const auto report = run_trial(system_processes(), asked, {}).value();
  EXPECT_EQ(kinds(report), (std::vector{Kind::untried, Kind::untried}));
  ASSERT_EQ(report.notes.size(), 1u);
  EXPECT_NE(report.notes[0].find("/nowhere/furlong"), std::string::npos) << report.notes[0];
}

TEST(Trial, ReadsARealChildsLines) {
  // A shell that answers by the protocol, with the last words of one that is killed.
  const std::string script = "read request; echo '" + line(TrialEvent::Kind::ready) + "'; echo '" +
                             line(TrialEvent::Kind::begin, "base") + "'; echo '" +
                             line(TrialEvent::Kind::built, "base") + "'; echo 'bus on fire' >&2; kill -9 $$";
  TrialAsked asked = asked_of({"base"});
  asked.command = {"/bin/sh", "-c", script};
  const auto report = run_trial(system_processes(), asked, {}).value();
  ASSERT_EQ(kinds(report), std::vector{Kind::bad});
  EXPECT_NE(report.findings[0].why.find("signal 9"), std::string::npos) << report.findings[0].why;
  EXPECT_NE(report.findings[0].why.find("bus on fire"), std::string::npos) << report.findings[0].why;
}

TEST(Trial, KillsTheChildWhenStopped) {
  std::stop_source source;
  TrialAsked asked = asked_of({"base"});
  asked.command = {"/bin/sh", "-c",
                   "read request; echo '" + line(TrialEvent::Kind::ready) + "'; echo '" +
                       line(TrialEvent::Kind::begin, "base") + "'; sleep 600"};
  asked.timeout_s = 600;
  asked.doing = [&](std::size_t, const std::string&) { source.request_stop(); };
  const auto report = run_trial(system_processes(), asked, source.get_token());
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code(), Code::timeout);
}

TEST(Trial, NothingTemporaryOutlivesAChildHoweverItEnds) {
  const auto around = TemporaryFolder::make("furlong-trial-test").value();
  const char* const before = std::getenv("TMPDIR");
  const std::optional<std::string> kept =
      before != nullptr ? std::optional<std::string>(before) : std::nullopt;
  ASSERT_EQ(setenv("TMPDIR", around.path().c_str(), 1), 0);
  const std::string making = "read request; d=$(mktemp -d); echo half > $d/kernel.cpp; printf '%s\\n' '" +
                             line(TrialEvent::Kind::ready) + "' '" + line(TrialEvent::Kind::begin, "base") +
                             "'; ";
  const std::string passing = "echo '" + line(TrialEvent::Kind::built, "base") + "'; echo '" +
                              line(TrialEvent::Kind::passed, "base") + "'; echo '" +
                              line(TrialEvent::Kind::end) + "'";
  struct Way {
    const char* name;
    std::string script;
    bool stops;
  };
  for (const Way& way : {Way{"stopped", "sleep 600", true}, Way{"dies", "kill -9 $$", false},
                         Way{"hangs", "sleep 600", false}, Way{"passes", passing, false}}) {
    std::stop_source source;
    TrialAsked asked = asked_of({"base"});
    asked.command = {"/bin/sh", "-c", making + way.script};
    asked.timeout_s = std::string_view(way.name) == "hangs" ? 0.1 : 600;
    bool made = false;
    asked.doing = [&](std::size_t, const std::string&) {
      for (const auto& entry : std::filesystem::recursive_directory_iterator(around.path()))
        made |= entry.path().filename() == "kernel.cpp";
      if (way.stops) source.request_stop();
    };
    EXPECT_EQ(run_trial(system_processes(), asked, source.get_token()).has_value(), !way.stops) << way.name;
    EXPECT_TRUE(made) << way.name << ": the test means nothing";
    EXPECT_TRUE(std::filesystem::is_empty(around.path())) << way.name;
  }
  if (kept)
    setenv("TMPDIR", kept->c_str(), 1);
  else
    unsetenv("TMPDIR");
}

// --- the race around it

/// A race on a card whose time is taken for real, so that it has a trial.
Result<Outcome> race_with(Stage& stage, FakeTrials& trials, Quarantine& quarantine,
                          bool virtual_time = false) {
  stage.open();
  testing::Wrapped card(*stage.device);
  card.facts_changed.virtual_time = virtual_time;
  card.facts_changed.runs_on_host_cpu = true;  // this machine's interruptions are of no interest
  stage.context.device = &card;
  stage.context.quarantine = &quarantine;
  stage.context.processes = &trials;
  stage.context.trial_command = {"furlong", "trial"};
  stage.context.trial_program_json = "{}";
  return stage.race("u2,u4,u8");
}

TEST(TrialInARace, KeepsBadVariantsOutAndRemembersBoth) {
  const auto folder = TemporaryFolder::make("trial").value();
  auto quarantine = Quarantine::open(folder.path() / "q.sqlite").value();
  FakeTrials trials;
  trials.fate = {{"u2", Fate::die}, {"u4", Fate::refuse}};
  {
    Stage stage;
    const auto raced = race_with(stage, trials, quarantine);
    ASSERT_TRUE(raced) << raced.error().text();
    EXPECT_EQ(variant(*raced, "u2").exit, Exit::trial);
    EXPECT_EQ(variant(*raced, "u4").exit, Exit::trial);
    EXPECT_TRUE(variant(*raced, "u8").gated);
    EXPECT_EQ(stage.launches["u2"], 0) << "it ran in this process";
  }
  EXPECT_EQ(trials.asked.at(0), (std::vector<std::string>{"base", "u2", "u4", "u8"}));
  // Again: the bad one is not tried, nor are the good ones; only who was refused is.
  trials.asked.clear();
  Stage stage;
  const auto raced = race_with(stage, trials, quarantine);
  ASSERT_TRUE(raced) << raced.error().text();
  EXPECT_EQ(variant(*raced, "u2").exit, Exit::quarantined);
  EXPECT_NE(variant(*raced, "u2").why.find("signal 11"), std::string::npos);
  ASSERT_EQ(trials.asked.size(), 1u);
  EXPECT_EQ(trials.asked[0], std::vector<std::string>{"u4"});
}

TEST(TrialInARace, IsNotHeldOnVirtualTime) {
  const auto folder = TemporaryFolder::make("trial").value();
  auto quarantine = Quarantine::open(folder.path() / "q.sqlite").value();
  FakeTrials trials;
  Stage stage;
  ASSERT_TRUE(race_with(stage, trials, quarantine, true));
  EXPECT_TRUE(trials.asked.empty());
}

TEST(TrialInARace, ABaseThatFailsItIsTheError) {
  const auto folder = TemporaryFolder::make("trial").value();
  auto quarantine = Quarantine::open(folder.path() / "q.sqlite").value();
  FakeTrials trials;
  trials.fate = {{"base", Fate::die}};
  Stage stage;
  const auto raced = race_with(stage, trials, quarantine);
  ASSERT_FALSE(raced);
  EXPECT_EQ(raced.error().code(), Code::mismatch);
  EXPECT_NE(raced.error().text().find("base failed its trial"), std::string::npos) << raced.error().text();
}

TEST(TrialInARace, GoesOnWithANoteWhenNoneCanBeHad) {
  const auto folder = TemporaryFolder::make("trial").value();
  auto quarantine = Quarantine::open(folder.path() / "q.sqlite").value();
  class NoProcesses : public FakeTrials {
   public:
    Result<std::unique_ptr<Child>> start(const ProcessRequest&) override {
      return fail(Code::unavailable, "furlong is not there");
    }
  } none;
  Stage stage;
  const auto raced = race_with(stage, none, quarantine);
  ASSERT_TRUE(raced) << raced.error().text();
  EXPECT_TRUE(variant(*raced, "u2").gated);
  ASSERT_FALSE(raced->notes.empty());
  EXPECT_NE(raced->notes[0].find("no trial: furlong is not there"), std::string::npos) << raced->notes[0];
}

TEST(TrialInARace, LeavesOutWhatItHadNoTimeToTry) {
  const auto folder = TemporaryFolder::make("trial").value();
  auto quarantine = Quarantine::open(folder.path() / "q.sqlite").value();
  FakeTrials trials;
  Stage stage;
  trials.clock = stage.clock.get();
  trials.line_ms = 1000;
  stage.options.budget_s = 16;  // about 8 s for the trial: ready, base and u2
  const auto raced = race_with(stage, trials, quarantine);
  ASSERT_TRUE(raced) << raced.error().text();
  EXPECT_TRUE(variant(*raced, "base").gated);
  EXPECT_TRUE(variant(*raced, "u2").gated) << variant(*raced, "u2").why;
  for (const char* late : {"u4", "u8"}) {
    EXPECT_EQ(variant(*raced, late).exit, Exit::trial) << late;
    EXPECT_EQ(variant(*raced, late).why, "not tried: budget");
    EXPECT_EQ(stage.launches[late], 0) << "it ran in this process untried";
  }
  EXPECT_TRUE(quarantine.list().value().empty());
}

// --- the child's side

/// serve_trial over a simulated card, in this process: what it is asked and what it says.
struct Served {
  Stage stage;
  std::string request;
  std::vector<TrialEvent> said;
  Status run() {
    stage.open();
    TrialServer server;
    server.read_line = [&]() -> std::optional<std::string> { return request; };
    server.write_line = [&](std::string_view text) -> Status {
      auto event = parse_trial_event(text);
      EXPECT_TRUE(event && *event) << text;
      if (event && *event) said.push_back(**event);
      return {};
    };
    server.open = [&](const std::string& program_json, const std::string& device) -> Result<TrialSubject> {
      EXPECT_EQ(program_json, "{}");
      EXPECT_EQ(device, "sim:0");
      return TrialSubject{std::make_shared<program::Instance>(*stage.instance), std::move(stage.device)};
    };
    return serve_trial(server);
  }
  void ask(std::vector<std::string> variants) {
    request = to_line(TrialRequest{"{}", "sim:0", std::move(variants), 1, 0});
  }
  std::string story() const {
    std::string text;
    for (const TrialEvent& event : said) {
      constexpr const char* words[] = {"ready", "begin", "built", "passed", "failed", "error", "end"};
      text += words[static_cast<int>(event.kind)];
      if (!event.variant.empty()) text += ":" + event.variant;
      text += " ";
    }
    return text;
  }
};

TEST(TrialChild, AnnouncesEveryStep) {
  Served served;
  served.ask({"base", "u2"});
  EXPECT_TRUE(served.run());
  EXPECT_EQ(served.story(), "ready begin:base built:base passed:base begin:u2 built:u2 passed:u2 end ");
}

TEST(TrialChild, TellsOfAWriteOutOfBounds) {
  Served served;
  served.stage.tamper["u2"] = [](const testing::Call& call) { call.y[call.n] = 0; };
  served.ask({"base", "u2", "u4"});
  EXPECT_TRUE(served.run());
  EXPECT_EQ(
      served.story(),
      "ready begin:base built:base passed:base begin:u2 built:u2 failed:u2 begin:u4 built:u4 passed:u4 end ");
  EXPECT_EQ(served.said[6].code, Code::mismatch);
}

TEST(TrialChild, EndsWhenTheDeviceIsLost) {
  Served served;
  served.stage.sim.faults = {{.variant = "u2", .fault = device::SimFault::trap}};
  served.ask({"base", "u2", "u4"});
  EXPECT_FALSE(served.run());
  EXPECT_EQ(served.story(), "ready begin:base built:base passed:base begin:u2 built:u2 failed:u2 ");
  EXPECT_TRUE(served.said.back().lost);
}

TEST(TrialChild, GoesOnAfterACompileError) {
  Served served;
  served.stage.sim.faults = {{.variant = "u2", .fault = device::SimFault::compile_error}};
  served.ask({"u2", "u4"});
  EXPECT_TRUE(served.run());
  EXPECT_EQ(served.story(), "ready begin:u2 failed:u2 begin:u4 built:u4 passed:u4 end ");
  EXPECT_EQ(served.said[2].code, Code::invalid);
}

TEST(TrialChild, RefusesABrokenRequest) {
  for (const char* broken : {"", "{", "{}", R"({"furlong-trial":2,"program":"","device":"","variants":[]})",
                             R"({"furlong-trial":1,"program":"","device":""})",
                             R"({"furlong-trial":1,"program":"{}","device":"sim:0","variants":["nope"]})"}) {
    Served served;
    served.request = broken;
    EXPECT_FALSE(served.run()) << broken;
    EXPECT_EQ(served.story(), "error ") << broken;
  }
}

TEST(TrialChild, KeepsToItsMemory) {
  Served served;
  served.request = to_line(TrialRequest{"{}", "sim:0", {"base"}, 1, 1000});
  EXPECT_FALSE(served.run());
  ASSERT_EQ(served.story(), "error ");
  EXPECT_EQ(served.said[0].code, Code::exhausted);
}

// --- the lines

TEST(TrialProtocol, RoundTrips) {
  const TrialRequest request{R"({"what":"x \"y\""})", "opencl:1", {"base", "u2-ldg"}, 77, 1 << 20};
  EXPECT_EQ(parse_trial_request(to_line(request)).value(), request);
  for (int kind = 0; kind <= static_cast<int>(TrialEvent::Kind::end); ++kind) {
    TrialEvent event{static_cast<TrialEvent::Kind>(kind), "u2", Code::exhausted, "no \"memory\"\n",
                     kind == 4};
    const auto back = parse_trial_event(to_line(event)).value();
    ASSERT_TRUE(back);
    const bool has_why = event.kind == TrialEvent::Kind::failed || event.kind == TrialEvent::Kind::error;
    if (!has_why) {
      event.code = Code::internal;
      event.why.clear();
    }
    EXPECT_EQ(*back, event) << kind;
  }
}

TEST(TrialProtocol, TakesForeignLinesForNoise) {
  EXPECT_FALSE(parse_trial_event("hello").value());
  EXPECT_FALSE(parse_trial_event("").value());
  EXPECT_FALSE(parse_trial_event(R"({"event":"ready"})").value());
  EXPECT_EQ(parse_trial_event(R"({"furlong-trial":9,"event":"ready"})").error().code(), Code::incompatible);
  EXPECT_EQ(parse_trial_event(R"({"furlong-trial":1,"event":"dance"})").error().code(), Code::invalid);
  EXPECT_EQ(parse_trial_event(R"({"furlong-trial":1,"event":"begin"})").error().code(), Code::invalid);
  EXPECT_EQ(parse_trial_event(R"({"furlong-trial":1,)").error().code(), Code::invalid);
}

TEST(TrialProtocol, SendsAnyBytesOfACompilersLog) {
  const TrialEvent event{TrialEvent::Kind::failed, "u2", Code::invalid, "caf\xE9 \x01 \xFF", false};
  const auto back = parse_trial_event(to_line(event)).value();
  ASSERT_TRUE(back);
  EXPECT_NE(back->why.find("caf?"), std::string::npos) << back->why;
}

}  // namespace
}  // namespace furlong::race
