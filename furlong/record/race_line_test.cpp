#include "furlong/record/race_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "furlong/base/os/file.h"
#include "furlong/base/random.h"
#include "furlong/base/text.h"
#include "furlong/record/internal/random_record.h"
#include "furlong/record/internal/test_records.h"

namespace furlong::record {
namespace {

using ::testing::HasSubstr;

const std::string lottery_line =
    "race 00f1e2d3c4b5a697 device NVIDIA_GeForce_RTX_5090 driver 580.95.05 arch sm_120 loads 128 wide 0 "
    "variants 4 "
    "base=115.9/40r/8w u2=118.3/48r/8w ldg=115.1/40r/8w u8=- "
    "winner u2 118.3 base 115.9 gain +2.10% compile 842 bench 655 total 1730 ms "
    "tuned order verdict winner ci 1.80..2.40 heats 21 paused 512 "
    "| u8: does not compile: ptxas fatal %7C out of memory";

std::string lines() { return system_files().read("furlong/record/testdata/race_lines.txt").value(); }

TEST(RaceLine, TheGoldenLines) {
  EXPECT_EQ(race_record_line(internal::lottery_record()), lottery_line);
  EXPECT_EQ(lines(), race_record_line(internal::lottery_record()) + "\n" +
                         race_record_line(internal::failed_gemv_record()) + "\n");
  EXPECT_THAT(system_files().read("docs/formats/race-line.md").value(), HasSubstr(lines()));
}

TEST(RaceLine, TheGoldenLinesAreReadWhole) {
  const std::vector<std::string> golden = split(lines(), '\n');
  const RaceLine lottery = parse_race_line(golden.at(0)).value();
  RaceLine wanted = race_line(internal::lottery_record());
  wanted.total_ms = 1730;  // whole milliseconds
  wanted.paused_ms = 512;
  EXPECT_EQ(lottery, wanted);
  const RaceLine gemv = parse_race_line(golden.at(1) + "\r\n").value();
  EXPECT_EQ(gemv, race_line(internal::failed_gemv_record()));
  EXPECT_EQ(class_text(gemv.program_class), "n=4096,k=11008,type=int8");
  EXPECT_EQ(gemv.winner, "");
  EXPECT_FALSE(gemv.gain_pct.has_value());
  ASSERT_EQ(gemv.outs.size(), 1u);
  EXPECT_EQ(gemv.outs[0].why, "failed its gate: element 17 is 3, not 4");
}

TEST(RaceLine, TheFirstPartAloneIsEnough) {
  const std::string first = lottery_line.substr(0, lottery_line.find(" tuned order"));
  const RaceLine line = parse_race_line(first).value();
  EXPECT_EQ(line.winner, "u2");
  EXPECT_EQ(line.gain_pct, 2.1);
  EXPECT_FALSE(line.verdict || line.ci || line.heats || line.paused_ms || line.tuned);
  EXPECT_TRUE(line.outs.empty());
  EXPECT_EQ(print(line), first);
}

TEST(RaceLine, WhatANewerWriterAddsIsSkipped) {
  const std::string first = lottery_line.substr(0, lottery_line.find(" tuned order"));
  const RaceLine line =
      parse_race_line(first +
                      " pinned by tuning watts 390 verdict photo-finish heats many heats 7 ci 1 "
                      "paused soon | note | u8: broken | several words: no")
          .value();
  EXPECT_TRUE(line.pinned);
  EXPECT_FALSE(line.verdict.has_value());
  EXPECT_EQ(line.heats, 7);
  EXPECT_FALSE(line.ci.has_value());
  EXPECT_FALSE(line.paused_ms.has_value());
  EXPECT_EQ(line.outs, (std::vector<RaceLine::Out>{{"u8", "broken"}}));
  const RaceLine more = parse_race_line(replace_all(first, "u2=118.3/48r/8w", "u2=118.3/48r/8w/3s")).value();
  EXPECT_EQ(more.variants[1], (RaceLine::Variant{"u2", 118.3, 48, 8}));
}

TEST(RaceLine, NamesAreEscaped) {
  RaceLine line;
  line.epoch = "00f1e2d3c4b5a697";
  line.device = "Card | with spaces";
  line.driver = "";
  line.arch = "-";
  line.program_class = {{"variants", "8"}, {"", "true"}, {"f", 2.0}, {"i", 2}, {"b", true}, {"w", "\n"}};
  line.variants = {{"a=b/c", 1.0, {}, 4}, {"100%", {}, {}, {}}};
  line.winner = "-";
  line.outs = {{"100%", "  | two\nlines: -"}, {"a: b", ""}, {"c", "-"}};
  const std::string text = print(line);
  EXPECT_EQ(text,
            "race 00f1e2d3c4b5a697 device Card%20%7C%20with%20spaces driver - arch %2D "
            "%76ariants %38 - %74rue f 2.0 i 2 b true w %0A variants 2 a%3Db/c=1/4w 100%25=- winner %2D - "
            "base - gain - "
            "compile 0 bench 0 total 0 ms "
            "| 100%25: %20 %7C two%0Alines: - | a%3A%20b: - | c: %2D");
  EXPECT_EQ(parse_race_line(text).value(), line);
}

TEST(RaceLine, BytesThatAreNoUtf8AreEscapedToo) {
  RaceLine line;
  line.epoch = "00f1e2d3c4b5a697";
  line.device = "caf\xC3\xA9";
  line.driver = "caf\xE9";
  const std::string text = print(line);
  EXPECT_THAT(text, HasSubstr("device caf\xC3\xA9 driver caf%E9"));
  EXPECT_TRUE(is_valid_utf8(text));
  EXPECT_EQ(parse_race_line(text).value(), line);
}

TEST(RaceLine, RandomRecordsSurviveTheRoundTrip) {
  Random random(7);
  for (int i = 0; i < 2000; ++i) {
    const RaceRecord record = internal::random_record(random);
    const std::string text = race_record_line(record);
    EXPECT_EQ(text.find('\n'), std::string::npos);
    const auto read = parse_race_line(text);
    ASSERT_TRUE(read) << read.error().text() << "\n" << text;
    EXPECT_EQ(print(*read), text);
    // Names, classes, counts and reasons are exact; figures are those of the line.
    const RaceLine line = race_line(record);
    EXPECT_EQ(read->device, line.device);
    EXPECT_EQ(read->driver, line.driver);
    EXPECT_EQ(read->program_class, line.program_class);
    EXPECT_EQ(read->winner, line.winner);
    EXPECT_EQ(read->outs, line.outs);
    EXPECT_EQ(read->verdict, line.verdict);
    EXPECT_EQ(read->pinned, line.pinned);
    EXPECT_EQ(read->tuned, line.tuned);
    EXPECT_EQ(read->heats, line.heats);
    ASSERT_EQ(read->variants.size(), line.variants.size());
    for (std::size_t v = 0; v < line.variants.size(); ++v) {
      EXPECT_EQ(read->variants[v].name, line.variants[v].name);
      ASSERT_EQ(read->variants[v].rate.has_value(), line.variants[v].rate.has_value());
      if (!line.variants[v].rate) continue;
      EXPECT_NEAR(*read->variants[v].rate, *line.variants[v].rate, *line.variants[v].rate * 1e-5);
      EXPECT_EQ(read->variants[v].regs, line.variants[v].regs);
      EXPECT_EQ(read->variants[v].warps, line.variants[v].warps);
    }
    EXPECT_EQ(read->ci.has_value(), line.ci.has_value());
    EXPECT_NEAR(read->ci.value_or(Interval{}).lo, line.ci.value_or(Interval{}).lo, 0.00501);
  }
}

TEST(RaceLine, ErrorsSayWhatWasExpectedAndWhere) {
  const auto refused = [](std::string_view from, std::string_view to) {
    const std::string text = replace_all(lottery_line, from, to);
    EXPECT_NE(text, lottery_line);
    const auto line = parse_race_line(text);
    if (line) return std::string("accepted");
    EXPECT_EQ(line.error().code(), Code::invalid);
    return line.error().text();
  };
  EXPECT_EQ(refused("race ", "rice "), "race line: column 1: expected 'race', found 'rice'");
  EXPECT_EQ(refused("00f1e2d3c4b5a697", "00F1e2d3c4b5a697"),
            "race line: column 6: expected the epoch as 16 lower-case hexadecimal digits, found "
            "'00F1e2d3c4b5a697'");
  EXPECT_EQ(refused("variants 4", "variants x"),
            fmt::format("race line: column {}: expected the number of variants, found 'x'",
                        lottery_line.find("4 base=") + 1));
  EXPECT_EQ(refused("variants 4", "variants 9"),
            fmt::format("race line: column {}: expected variant 5 of 9 as name=rate, found 'winner'",
                        lottery_line.find("winner u2") + 1));
  EXPECT_THAT(refused("u2=118.3", "u2=fast"),
              HasSubstr("expected variant 2 of 4 as name=rate, found 'u2=fast/48r/8w'"));
  EXPECT_THAT(refused("gain +2.10%", "gain 2.10"), HasSubstr("expected the gain as +1.50%, found '2.10'"));
  EXPECT_THAT(refused("compile 842", "compile -1"),
              HasSubstr("expected milliseconds of compiling, found '-1'"));
  EXPECT_THAT(refused("NVIDIA_GeForce_RTX_5090", "NVIDIA%G"),
              HasSubstr("expected the device's name, found 'NVIDIA%G'"));
  const std::string cut = lottery_line.substr(0, lottery_line.find(" total"));
  EXPECT_EQ(parse_race_line(cut).error().text(),
            fmt::format("race line: column {}: expected 'total', the line ends", cut.size() + 1));
  EXPECT_FALSE(parse_race_line(""));
}

TEST(RaceLine, NoPrefixOfALineIsReadAsAnotherRace) {
  const std::size_t whole = lottery_line.find(" tuned order");
  for (std::size_t size = 0; size < whole; ++size)
    EXPECT_FALSE(parse_race_line(lottery_line.substr(0, size))) << size;
  for (std::size_t size = whole; size <= lottery_line.size(); ++size) {
    const auto line = parse_race_line(lottery_line.substr(0, size));
    ASSERT_TRUE(line) << size;
    EXPECT_EQ(line->winner, "u2");
  }
}

}  // namespace
}  // namespace furlong::record
