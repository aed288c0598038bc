// The front over backs that are scripts: what they are told, and what reaches the outside.
#include "furlong/worker/front.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <mutex>
#include <thread>

#include "furlong/base/os/file.h"
#include "furlong/base/text.h"

namespace furlong::worker {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string ready = "ready 1 host:0 X driver 1 arch a";
const std::string pair = "066ec2c7cdf6f321 0";
const std::string job = "job " + pair + " j 0000000000001000 0000000000000100 1000";

struct Played {
  std::vector<std::string> events;
  std::vector<std::vector<std::string>> told;  ///< by back, what it was told
  std::vector<std::string> argv;               ///< by back, its further arguments
  FrontEnd end;
};

/// Each back writes what it is told to its own file and plays its part: `begin` at once, `at[n]` after the
/// n-th line that it is told.
struct Part {
  std::string begin;
  std::map<int, std::string> at;
};

using Parts = std::vector<Part>;

class Stage {
 public:
  explicit Stage(std::vector<Part> parts) : folder_(TemporaryFolder::make("furlong-front-test-").value()) {
    std::string script =
        "n=$(cat N 2>/dev/null || echo 0); echo $((n + 1)) >N; echo \"$@\" >argv$n\n: >told$n\n";
    script += "case $n in\n";
    for (std::size_t i = 0; i < parts.size(); ++i) {
      script += fmt::format("{}) {}\nk=0\nwhile read -r line; do k=$((k + 1)); echo \"$line\" >>told{}\n", i,
                            parts[i].begin, i);
      script += "case $k in\n";
      for (const auto& [line, what] : parts[i].at) script += fmt::format("{}) {} ;;\n", line, what);
      script += "esac\n[ \"$line\" = quit ] && break\ndone ;;\n";
    }
    script += "*) exit 7 ;;\nesac\necho bye\n";
    EXPECT_TRUE(system_files().write_atomic(folder_.path() / "back.sh", script));
  }

  /// A line "~words" waits until an event with these words has come.
  Played play(const std::vector<std::string>& input, bool close = false, const FrontOptions& given = {}) {
    FrontOptions options = given;
    options.back = {"sh", "-c", "cd '" + folder_.path().string() + "' && . ./back.sh", "back"};
    Played played;
    auto mutex = std::make_shared<std::mutex>();
    auto events = std::make_shared<std::vector<std::string>>();
    Front front(system_processes(), system_clock(), options,
                [mutex, events](std::string_view line) -> Status {
                  const std::lock_guard lock(*mutex);
                  events->emplace_back(line);
                  return {};
                });
    const auto told_of = [&](std::string_view words) {
      const std::lock_guard lock(*mutex);
      return std::ranges::any_of(*events,
                                 [&](const auto& event) { return event.find(words) != std::string::npos; });
    };
    std::jthread feeder([&](std::stop_token done) {
      const auto pause = [] { std::this_thread::sleep_for(std::chrono::milliseconds(2)); };
      for (const std::string& line : input) {
        if (!line.starts_with('~')) {
          front.submit_line(line);
          continue;
        }
        for (int i = 0; i < 20'000 && !done.stop_requested() && !told_of(line.substr(1)); ++i) pause();
      }
      if (close) front.close_input();
      for (int i = 0; i < 30'000 && !done.stop_requested(); ++i) pause();
      if (!done.stop_requested()) front.close_input();  // a test that hangs ends all the same
    });
    const auto end = front.run({});
    EXPECT_TRUE(end) << end.error().text();
    if (end) played.end = *end;
    played.events = *events;
    for (int i = 0;; ++i) {
      const auto told = system_files().read(folder_.path() / fmt::format("told{}", i));
      if (!told) break;
      std::vector<std::string> lines = split(*told, '\n');
      lines.pop_back();
      played.told.push_back(lines);
      played.argv.push_back(
          std::string(trim(system_files().read(folder_.path() / fmt::format("argv{}", i)).value())));
    }
    return played;
  }

 private:
  TemporaryFolder folder_;
};

std::string say(const std::string& line) { return "printf '%s\\n' '" + line + "'"; }
std::string begin(const std::string& command) { return say("@[\"begin\",\"" + command + "\"]"); }

TEST(Front, PassesOnWhatIsSaid) {
  const Played played =
      Stage(Parts{{say(ready),
                   {{1, say("note hello")}, {2, say("words of a kernel") + "; " + say("rate nonsense")}}}})
          .play({"status", "stop", "quit"});
  EXPECT_THAT(played.events, ElementsAre(ready, "note hello", "note a kernel printed: words of a kernel",
                                         "note a kernel printed: rate nonsense", "bye"));
  EXPECT_THAT(played.told.at(0), ElementsAre("status", "stop", "quit"));
  EXPECT_EQ(played.end.code, 0);
  EXPECT_EQ(played.argv.at(0), "--prepares-before 0 --hashes-before 0");
}

TEST(Front, TheEndOfTheInputIsQuit) {
  const Played played = Stage(Parts{{say(ready), {}}}).play({"status"}, true);
  EXPECT_THAT(played.told.at(0), ElementsAre("status", "quit"));
  EXPECT_EQ(played.events.back(), "bye");
}

TEST(Front, WhatIsNoCommandIsAnsweredHere) {
  const Played played = Stage(Parts{{say(ready), {}}}).play({"nonsense", "", "quit"});
  EXPECT_THAT(played.events.at(1), HasSubstr("error invalid worker command: unknown command 'nonsense'"));
  EXPECT_THAT(played.told.at(0), ElementsAre("quit"));
}

TEST(Front, ABackThatCannotBeginIsTheEnd) {
  const Played played = Stage(Parts{{"echo no such device >&2; exit 4", {}}}).play({"status"});
  EXPECT_EQ(played.end.code, 4);
  EXPECT_THAT(played.end.why, HasSubstr("no such device"));
  EXPECT_TRUE(played.events.empty());
}

/// 300 of the job's 1000 nonces are done and a find further on is told, then it dies.
Part dying(const std::string& how) {
  return {say(ready),
          {{1, say("@[\"prepares\",5]")},
           {2, begin(job) + "; " + say("@[\"at\",300,300,900]") + "; " +
                   say("found j 0000000000000110 0000000000000001") + "; " +
                   say("found j 0000000000000300 0000000000000002") + "; " + how}}};
}

TEST(Front, AnotherBackGoesOnAtTheNonce) {
  const std::string again = "job " + pair + " j 0000000000001000 000000000000022c 700";
  const Played played = Stage(Parts{dying("kill -9 $$"),
                                    {say(ready),
                                     {{2, begin(again) + "; " + say("@[\"at\",100,100,1000]") + "; " +
                                              say("found j 0000000000000300 0000000000000002") + "; " +
                                              say("found j 0000000000000301 0000000000000003") + "; " +
                                              say("@[\"at\",700,700,1600]") + "; " +
                                              say("done j 000000000000022c 700 complete")}}}})
                            .play({"prepare " + pair + " p", job, "~done j", "quit"});
  ASSERT_EQ(played.told.size(), 2u);
  EXPECT_THAT(played.told.at(1), ElementsAre("prepare " + pair + " p", again, "quit"));
  EXPECT_EQ(played.argv.at(1), "--device host:0 --prepares-before 5 --hashes-before 900");
  EXPECT_THAT(played.events, Contains("done j 0000000000000100 1000 complete"));
  EXPECT_EQ(std::ranges::count(played.events, "found j 0000000000000300 0000000000000002"), 1);
  EXPECT_THAT(played.events, Contains("found j 0000000000000301 0000000000000003"));
  EXPECT_THAT(played.events, Contains(HasSubstr("recovered ")));
  EXPECT_EQ(std::ranges::count(played.events, ready), 1);
  EXPECT_EQ(std::ranges::count(played.events, "bye"), 1);
}

std::string take(const std::string& name, double limit_s = 20) {
  return say(fmt::format("@[\"take\",[\"066ec2c7cdf6f321\",0],1,{},\"{}\"]", limit_s, name));
}

TEST(Front, TheCulpritIsNamedToTheNextBack) {
  for (const auto& [how, why] :
       {std::pair{"kill -SEGV $$", "trap: killed by signal 11"}, std::pair{"exit 0", "exit status 0"}}) {
    const Played played =
        Stage(Parts{{say(ready), {{1, take("u2") + "; " + how}}}, {say(ready), {{2, say("note second")}}}})
            .play({"prepare " + pair + " p", "~another one goes on", "status"}, true);
    ASSERT_EQ(played.told.size(), 2u) << how;
    EXPECT_THAT(played.told[1].at(0), HasSubstr("@[\"fallen\",[\"066ec2c7cdf6f321\",0],\"u2\",\""));
    EXPECT_THAT(played.told[1].at(0), HasSubstr(why));
    EXPECT_EQ(played.told[1].at(1), "prepare " + pair + " p");
  }
}

TEST(Front, AKillFromOutsideBlamesNobodyAndBaseIsNeverTakenOut) {
  for (const std::string& part : {take("u2") + "; kill -9 $$", take("base") + "; kill -SEGV $$"}) {
    const Played played = Stage(Parts{{say(ready), {{1, part}}}, {say(ready), {}}})
                              .play({"prepare " + pair + " p", "~another one goes on", "status"}, true);
    ASSERT_EQ(played.told.size(), 2u);
    EXPECT_EQ(played.told[1].at(0), "prepare " + pair + " p") << part;
  }
}

TEST(Front, WhatHoldsTheDeviceForTooLongIsKilled) {
  const Played played = Stage(Parts{{say(ready), {{1, take("u2", 0.2) + "; sleep 1000"}}}, {say(ready), {}}})
                            .play({"prepare " + pair + " p", "~another one goes on", "status"}, true);
  ASSERT_EQ(played.told.size(), 2u);
  EXPECT_THAT(played.told[1].at(0), HasSubstr("hang: ran past 0.2 s"));
}

TEST(Front, ADeviceThatNeverServesIsGivenUp) {
  FrontOptions options;
  options.most_deaths = 3;
  options.first_delay_s = 0.01;
  const Part dies{say(ready) + "; exit 9", {}};
  const Played played = Stage(Parts{dies, dies, dies, dies}).play({"prepare " + pair + " p"}, false, options);
  EXPECT_EQ(played.end.code, 3);
  EXPECT_EQ(played.told.size(), 3u);
  EXPECT_THAT(played.end.why, HasSubstr("3 times in a row"));
}

TEST(Front, APrepareThatEndsTheProcessTwiceIsGivenUp) {
  FrontOptions options;
  options.first_delay_s = 0.01;
  const Part dies{say(ready), {{1, "exit 9"}}};
  const Played played = Stage(Parts{dies, dies, {say(ready), {}}})
                            .play({"prepare " + pair + " p", "~is given up", "status"}, true, options);
  ASSERT_EQ(played.told.size(), 3u);
  EXPECT_THAT(played.told[2], ElementsAre("status", "quit"));
}

TEST(Front, AJobWhoseLastChunkWasToldIsComplete) {
  const Played played =
      Stage(Parts{{say(ready), {{2, begin(job) + "; " + say("@[\"at\",1000,1000,1000]") + "; kill -9 $$"}}},
                  {say(ready), {}}})
          .play({"prepare " + pair + " p", job, "~another one goes on", "status"}, true);
  ASSERT_EQ(played.told.size(), 2u);
  EXPECT_THAT(played.events, Contains("done j 0000000000000100 1000 complete"));
  EXPECT_THAT(played.told[1], Not(Contains(HasSubstr("job "))));
}

TEST(Front, AResumedJobThatIsRefusedIsCut) {
  const std::string again = "job " + pair + " j 0000000000001000 000000000000022c 700";
  const Played played =
      Stage(Parts{dying("kill -9 $$"), {say(ready), {{2, say("@[\"refused\",\"" + again + "\"]")}}}})
          .play({"prepare " + pair + " p", job, "~done j"}, true);
  ASSERT_EQ(played.told.size(), 2u);
  EXPECT_THAT(played.events, Contains("done j 0000000000000100 300 cut"));
}

TEST(Front, TheNextPairIsPreparedAgainOnceTheOneInHandIs) {
  const std::string next = "prepare 166ec2c7cdf6f321 0 q";
  Part first = dying("true");
  first.at[3] = "kill -9 $$";
  const Played played = Stage(Parts{first,
                                    {say(ready),
                                     {{2, say("error invalid something else") + "; " +
                                              say("@[\"ended\",[\"066ec2c7cdf6f321\",0]]")},
                                      {3, say("note asked")}}}})
                            .play({"prepare " + pair + " p", job, next, "~note asked"}, true);
  ASSERT_EQ(played.told.size(), 2u);
  EXPECT_EQ(played.told[1].at(0), "prepare " + pair + " p");
  EXPECT_EQ(played.told[1].at(2), next);
}

TEST(Front, AJobForAPairThatThisBackDoesNotKnowBringsItsPrepare) {
  const std::string next = "prepare 166ec2c7cdf6f321 0 q";
  const std::string newer = "job 166ec2c7cdf6f321 0 k 0000000000001000 0000000000000000 0";
  Part first = dying("true");
  first.at[3] = "kill -9 $$";
  const Played played =
      Stage(Parts{first, {say(ready), {{4, say("note all")}}}})
          .play({"prepare " + pair + " p", job, next, "~another one goes on", newer, "~note all"}, true);
  ASSERT_EQ(played.told.size(), 2u);
  EXPECT_EQ(played.told[1].at(2), next);
  EXPECT_EQ(played.told[1].at(3), newer);
}

TEST(Front, AStopThatTheBackDidNotLiveToHearHolds) {
  Part first = dying("true");
  first.at[3] = "kill -9 $$";
  const Played played =
      Stage(Parts{first, {say(ready), {}}})
          .play({"prepare " + pair + " p", job, "stop", "~another one goes on", "status"}, true);
  ASSERT_EQ(played.told.size(), 2u);
  EXPECT_THAT(played.told[1], Not(Contains(HasSubstr("job "))));
  EXPECT_THAT(played.events, Contains("done j 0000000000000100 300 cut"));
}

TEST(Front, AJobForAPairThatNobodyKnowsEndsNothing) {
  const std::string unknown = "job 166ec2c7cdf6f321 0 k 0000000000001000 0000000000000000 0";
  const std::string again = "job " + pair + " j 0000000000001000 000000000000022c 700";
  Part first = dying("true");
  first.at[3] = "kill -9 $$";
  const Played played =
      Stage(Parts{first,
                  {say(ready), {{3, say("@[\"refused\",\"" + unknown + "\"]") + "; " + say("note asked")}}}})
          .play({"prepare " + pair + " p", job, unknown, "~note asked"}, true);
  ASSERT_EQ(played.told.size(), 2u);
  EXPECT_THAT(played.told[1], ElementsAre("prepare " + pair + " p", again, unknown, "quit"));
}

TEST(Front, CommandsThatTheBackDidNotLiveToAnswerAreAnswered) {
  const auto of = [&](const std::string& name) {
    return "job " + pair + " " + name + " 0000000000001000 0000000000000000 5";
  };
  Part first = dying("true");
  first.at[6] = "kill -9 $$";
  const Played played =
      Stage(Parts{first, {say(ready), {{2, say("status {}")}}}})
          .play({"prepare " + pair + " p", job, of("k"), of("l"), of("m"), "status", "~status"}, true);
  ASSERT_EQ(played.told.size(), 2u);
  EXPECT_THAT(played.events, Contains(HasSubstr("job k: another took its place")));
  EXPECT_THAT(played.events, Contains(HasSubstr("job l: another took its place")));
  EXPECT_THAT(played.told[1], Contains(of("m")));
  EXPECT_THAT(played.told[1], Contains("status"));
}

TEST(Front, AnotherDeviceInItsPlaceIsNone) {
  FrontOptions options;
  options.most_deaths = 2;
  options.first_delay_s = 0.01;
  const std::string other = "ready 1 cuda:1 X driver 1 arch a";
  const Played played = Stage(Parts{{say(ready), {{1, "kill -9 $$"}}}, {say(other), {}}, {say(other), {}}})
                            .play({"prepare " + pair + " p"}, false, options);
  EXPECT_EQ(played.end.code, 3);
  EXPECT_EQ(std::ranges::count(played.events, other), 0);
}

TEST(Front, ARefusedJobIsNotAskedForAgain) {
  const Played played =
      Stage(Parts{{say(ready), {{1, say("@[\"refused\",\"" + job + "\"]") + "; exit 9"}}}, {say(ready), {}}})
          .play({job, "~another one goes on", "status"}, true);
  ASSERT_EQ(played.told.size(), 2u);
  EXPECT_THAT(played.told[1], Not(Contains(job)));
}

TEST(Front, TheNewerJobTakesThePlaceOfTheOneInHand) {
  const std::string newer = "job 166ec2c7cdf6f321 0 k 0000000000001000 0000000000000000 0";
  Part first = dying("true");
  first.at[4] = "kill -9 $$";
  const Played played = Stage(Parts{first, {say(ready), {}}})
                            .play({"prepare " + pair + " p", job, "prepare 166ec2c7cdf6f321 0 q", newer,
                                   "~another one goes on", "status"},
                                  true);
  ASSERT_EQ(played.told.size(), 2u);
  EXPECT_THAT(played.told[1], Contains(newer));
  EXPECT_THAT(played.told[1], Not(Contains(HasSubstr(" j "))));
  EXPECT_THAT(played.events, Contains("done j 0000000000000100 300 cut"));
}

}  // namespace
}  // namespace furlong::worker
