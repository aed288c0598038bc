#include "furlong/record/worker_protocol.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "furlong/base/os/file.h"
#include "furlong/base/random.h"
#include "furlong/base/text.h"

namespace furlong::record {
namespace {

using ::testing::HasSubstr;

const Pair pair{"066ec2c7cdf6f321", 3};

std::string any_text(Random& random) {
  std::string text(random.below(12), ' ');
  for (char& c : text) c = static_cast<char>(random.below(256));
  return text;
}
std::string any_name(Random& random) { return "n" + any_text(random); }

TEST(WorkerProtocol, CommandsOfAnyContentComeBack) {
  Random random(1);
  for (int i = 0; i < 500; ++i) {
    const WorkerCommand commands[] = {
        PrepareCommand{pair, any_name(random)},
        JobCommand{pair, any_name(random), random.next(), random.next(), random.next()}, StatusCommand{},
        StopCommand{}, QuitCommand{}};
    for (const WorkerCommand& command : commands) {
      const std::string line = print(command);
      EXPECT_EQ(line.find('\n'), std::string::npos);
      EXPECT_EQ(parse_worker_command(line).value(), command) << line;
    }
  }
}

TEST(WorkerProtocol, EventsOfAnyContentComeBack) {
  Random random(2);
  for (int i = 0; i < 500; ++i) {
    const double ms = static_cast<double>(random.below(1'000'000)) / 1000;
    const WorkerEvent events[] = {
        ReadyEvent{1, any_name(random), any_text(random), any_text(random), any_text(random)},
        PreparedEvent{pair, any_name(random), ms},
        RecordEvent{R"({"a":1})"},
        RateEvent{pair, any_name(random), 12.5, random.next(), any_name(random), random.next(), 300.5},
        FoundEvent{any_name(random), random.next(), random.next()},
        SwapEvent{pair.epoch, ms, 3, any_name(random), 0.25, i % 2 == 0, ms},
        DoneEvent{any_name(random), random.next(), random.next(), i % 2 == 0},
        LostEvent{pair, ms, ms, ms},
        RevertedEvent{pair, any_name(random), any_name(random)},
        RecoveredEvent{ms, any_name(random)},
        StateEvent{"{}"},
        NoteEvent{any_name(random)},
        ErrorEvent{Code::mismatch, any_name(random)},
        ByeEvent{}};
    for (const WorkerEvent& event : events) {
      const std::string line = print(event);
      EXPECT_EQ(line.find('\n'), std::string::npos);
      EXPECT_EQ(parse_worker_event(line).value(), event) << line;
    }
  }
}

TEST(WorkerProtocol, ControlsInALineAreBlanksAndChangeNothingTwice) {
  for (const char* text :
       {"record \x01{}", "\xE2\x80\xAErace x", "status \xC2\x9B{}", "\x01", "note a\x01", "warp \x7F"}) {
    const auto event = parse_worker_event(text);
    ASSERT_TRUE(event) << text;
    const auto again = parse_worker_event(print(*event));
    ASSERT_TRUE(again) << text;
    EXPECT_EQ(*again, *event) << text;
  }
}

TEST(WorkerProtocol, ANewerWorkersWordsAreSkipped) {
  const auto rate = parse_worker_event(
      "rate 066ec2c7cdf6f321 3 u8 204.9 hashes 12 job j next 00000000000000ff mood good power 300 x");
  EXPECT_EQ(std::get<RateEvent>(rate.value()).power_w, 300);
  const auto done = parse_worker_event("done j 00000000000000ff 5 cut short");
  EXPECT_FALSE(std::get<DoneEvent>(done.value()).complete);
  EXPECT_EQ(std::get<UnknownEvent>(parse_worker_event("warp 9").value()).line, "warp 9");
}

TEST(WorkerProtocol, AnotherProtocolIsRefusedAndBothAreNamed) {
  const auto ready = parse_worker_event("ready 2 cuda:0 X driver 1 arch sm_90");
  ASSERT_FALSE(ready);
  EXPECT_EQ(ready.error().code(), Code::incompatible);
  EXPECT_THAT(ready.error().text(), HasSubstr("protocol 2, and this is protocol 1"));
}

TEST(WorkerProtocol, WhatIsWrongIsNamedWithItsColumn) {
  const std::string long_name =
      "job 066ec2c7cdf6f321 0 " + std::string(257, 'j') + " 00000000ffffffff 0000000000000000 1";
  const std::pair<const char*, const char*> wrong[] = {
      {"", "unknown command ''"},
      {"prepair 066ec2c7cdf6f321 0 p", "'prepare'"},
      {"prepare 066EC2C7CDF6F321 0 p", "column 9: expected the epoch"},
      {"prepare 066ec2c7cdf6f321 -1 p", "column 26: expected the day"},
      {"prepare 066ec2c7cdf6f321 0", "the pack's folder, the line ends"},
      {"prepare 066ec2c7cdf6f321 0 p q", "the end of the line, found 'q'"},
      {"job 066ec2c7cdf6f321 0 j ffff 0000000000000000 1", "the target as 16 lower-case"},
      {"job 066ec2c7cdf6f321 0 j 00000000ffffffff 0000000000000000 -1", "the number of nonces"},
      {"job 066ec2c7cdf6f321 0 j 00000000ffffffff 0000000000000000 18446744073709551616", "under 2^64"},
      {"job 066ec2c7cdf6f321 0 - 00000000ffffffff 0000000000000000 1", "the job's name"},
      {long_name.c_str(), "a job's name has 256 bytes at most, this one 257"},
      {"quit now", "the end of the line"}};
  for (const auto& [line, words] : wrong) {
    const auto command = parse_worker_command(line);
    ASSERT_FALSE(command) << line;
    EXPECT_EQ(command.error().code(), Code::invalid);
    EXPECT_THAT(command.error().text(), HasSubstr(words)) << line;
  }
}

TEST(WorkerProtocol, TheExampleOfThePageIsReadAndPrintedTheSame) {
  const std::string page = system_files().read("docs/formats/worker-protocol.md").value();
  int commands = 0, events = 0;
  for (const std::string& line : split(page, '\n')) {
    if (line.starts_with("> ")) {
      EXPECT_EQ(print(parse_worker_command(line.substr(2)).value()), line.substr(2));
      ++commands;
    }
    if (line.starts_with("< ")) {
      const auto event = parse_worker_event(line.substr(2));
      ASSERT_TRUE(event) << line;
      EXPECT_FALSE(std::holds_alternative<UnknownEvent>(*event)) << line;
      EXPECT_EQ(print(*event), line.substr(2));
      ++events;
    }
  }
  EXPECT_EQ(commands, 2);
  EXPECT_EQ(events, 6);
}

}  // namespace
}  // namespace furlong::record
