#include "furlong/fleet/exchange/record_reader.h"

#include <gtest/gtest.h>

#include "furlong/base/os/clock.h"
#include "furlong/base/os/file.h"
#include "furlong/base/text.h"
#include "furlong/fleet/exchange/csv.h"
#include "furlong/fleet/exchange/internal/stamps.h"
#include "furlong/fleet/simulate/simulate.h"
#include "furlong/fleet/store/race.h"

namespace furlong::fleet {
namespace {

struct Read {
  std::vector<ImportedRecord> records;
  std::vector<std::string> problems;
};

Read read(ExchangeFormat format, std::string_view text, const ImportDefaults& defaults = {}) {
  Read all;
  const auto reader =
      make_record_reader(format, "in", defaults,
                         {.record = [&](ImportedRecord record) -> Status {
                            all.records.push_back(std::move(record));
                            return {};
                          },
                          .problem = [&](const Error& error) { all.problems.push_back(error.text()); }});
  int number = 0;
  for (const std::string& line : split(text, '\n'))
    if (auto status = reader->line(line, ++number); !status) ADD_FAILURE() << status.error().text();
  EXPECT_TRUE(reader->end());
  return all;
}

std::string golden(const std::string& name) {
  auto text = system_files().read("furlong/fleet/exchange/testdata/" + name);
  EXPECT_TRUE(text) << name;
  return text ? *std::move(text) : std::string();
}

std::vector<record::RaceRecord> simulated(std::size_t count) {
  SimulateOptions options;
  options.machines = 10;
  options.liars = options.shared_cards = 1;
  options.pinned_share = 0.4;
  const auto simulation = *Simulation::make(options);
  std::vector<record::RaceRecord> records(count);
  for (record::RaceRecord& each : records) EXPECT_TRUE(simulation->next(each));
  return records;
}

constexpr const char* least =
    R"({"schema":1,"ts":"2026-03-01T12:00:00Z","card":"X","backend":"cuda","program":"p","variants":{"base":10,"u2":11},"verdict":"none"})";

TEST(JsonLines, ACompleteLineIsKeptAsItIs) {
  for (const record::RaceRecord& record : simulated(50)) {
    const std::string line = record::to_line(record);
    const Read all = read(ExchangeFormat::jsonl, line);
    ASSERT_EQ(all.records.size(), 1u);
    EXPECT_EQ(all.records[0].line, line);
    EXPECT_TRUE(all.records[0].record == record);
  }
}

TEST(JsonLines, WhatIsMissingComesFromTheOptionsAndTheIdFromTheContent) {
  const ImportDefaults defaults{.machine = "box", .slot = "s1", .unit = "MH/s", .source = "abc"};
  const Read all = read(ExchangeFormat::jsonl, least, defaults);
  ASSERT_EQ(all.records.size(), 1u) << all.problems.at(0);
  const record::RaceRecord& record = all.records[0].record;
  EXPECT_EQ(record.machine, "box");
  EXPECT_EQ(record.slot, "s1");
  EXPECT_EQ(record.unit, "MH/s");
  EXPECT_EQ(record.source, "abc");
  EXPECT_TRUE(record::is_record_id(record.id));
  EXPECT_TRUE(*record::parse_record(all.records[0].line, "line") == record);
  EXPECT_EQ(read(ExchangeFormat::jsonl, least, defaults).records[0].record.id, record.id);
  EXPECT_NE(read(ExchangeFormat::jsonl, replace_all(least, "11", "12"), defaults).records[0].record.id,
            record.id);
  const auto decoded = decode(record);
  ASSERT_TRUE(decoded);
  EXPECT_NEAR(decoded->variants[1].gain_pct, 10, 1e-5);
}

TEST(JsonLines, BadLinesAreNamedAndTheOthersRead) {
  const std::string text = std::string("\n{broken\n") + least + "\n" + R"({"schema":2})" + "\n";
  const Read all = read(ExchangeFormat::jsonl, text, {.machine = "box"});
  EXPECT_EQ(all.records.size(), 1u);
  EXPECT_EQ(all.records[0].number, 3);
  ASSERT_EQ(all.problems.size(), 2u);
  EXPECT_TRUE(all.problems[0].starts_with("in:2")) << all.problems[0];
  EXPECT_TRUE(all.problems[1].starts_with("in:4")) << all.problems[1];
}

TEST(JsonLines, NoMachineIsToldWithTheOptionThatNamesOne) {
  const Read all = read(ExchangeFormat::jsonl, least);
  ASSERT_EQ(all.problems.size(), 1u);
  EXPECT_NE(all.problems[0].find("--machine"), std::string::npos) << all.problems[0];
}

TEST(JsonLines, ARecordOfTheFutureIsRefused) {
  const Read all =
      read(ExchangeFormat::jsonl, least, {.machine = "box", .latest_us = *parse_time_argument("2026-02-01")});
  ASSERT_EQ(all.problems.size(), 1u);
  EXPECT_NE(all.problems[0].find("nothing later than 2026-02-01"), std::string::npos) << all.problems[0];
}

TEST(Csv, AHandfulOfColumnsIsEnough) {
  const Read all = read(ExchangeFormat::csv, golden("hand.csv"));
  EXPECT_TRUE(all.problems.empty()) << all.problems.at(0);
  ASSERT_EQ(all.records.size(), 3u);
  const record::RaceRecord& first = all.records[0].record;
  EXPECT_EQ(first.machine, "box1");
  EXPECT_EQ(first.card, "NVIDIA_H200");
  EXPECT_EQ(record::class_text(first.program_class), "loads=128,wide=0");
  ASSERT_EQ(first.variants.size(), 3u);
  EXPECT_EQ(first.variants[1].name, "u8");
  EXPECT_EQ(first.variants[1].rate, 205.1);
  EXPECT_EQ(first.variants[2].rate, std::nullopt);
  EXPECT_EQ(first.variants[2].detail.out, "does not compile, \"ptxas\" says\nso");
  EXPECT_EQ(all.records[1].number, 6) << "base again: the next race";
  EXPECT_EQ(all.records[2].record.machine, "box2");
}

TEST(Csv, ItsOwnFormComesBackAsItWas) {
  std::string text = csv_head();
  const auto records = simulated(60);
  for (const record::RaceRecord& record : records) text += csv_rows(record);
  const Read all = read(ExchangeFormat::csv, text);
  EXPECT_TRUE(all.problems.empty()) << all.problems.at(0);
  ASSERT_EQ(all.records.size(), records.size());
  std::string again = csv_head();
  for (std::size_t i = 0; i < records.size(); ++i) {
    EXPECT_TRUE(all.records[i].record == records[i]) << record::to_line(records[i]) << "\n"
                                                     << all.records[i].line;
    again += csv_rows(all.records[i].record);
  }
  EXPECT_EQ(again, text);
}

TEST(Csv, TheFormatsPageNamesEveryColumn) {
  const std::string page = *system_files().read("docs/formats/fleet-exchange.md");
  for (const std::string& column : split(trim(csv_head()), ','))
    EXPECT_NE(page.find("`" + column + "`"), std::string::npos) << column;
}

TEST(Csv, AWrongCellLeavesItsRaceOut) {
  const std::string head = "ts,machine,card,backend,program,variant,rate,heats\n";
  const std::string race = "2026-03-01T12:00:00Z,m,c,cuda,p,";
  const Read all =
      read(ExchangeFormat::csv, head + race + "base,10,4\n" + race + "u2,fast,4\n" + race + "u8,11,4\n" +
                                    replace_all(race, "m,c", "m2,c") + "base,10,4.0\n");
  ASSERT_EQ(all.problems.size(), 1u);
  EXPECT_TRUE(all.problems[0].starts_with("in:3: rate: 'fast'")) << all.problems[0];
  ASSERT_EQ(all.records.size(), 1u);
  EXPECT_EQ(all.records[0].record.machine, "m2");
  EXPECT_EQ(all.records[0].record.variants[0].detail.heats, 4);
}

TEST(Csv, WhatIsNoTableIsNamed) {
  const auto problem = [](std::string_view text) {
    const Read all = read(ExchangeFormat::csv, text);
    EXPECT_TRUE(all.records.empty());
    return all.problems.empty() ? std::string() : all.problems.back();
  };
  EXPECT_NE(problem("").find("no row of column names"), std::string::npos);
  EXPECT_NE(problem("a,b\n1,2\n").find("no column is called variant"), std::string::npos);
  EXPECT_NE(problem("variant,rate\nbase,\"1\n").find("quote is left open"), std::string::npos);
  EXPECT_NE(problem("variant,rate\nba\"s\"e,1\n").find("a quote stands"), std::string::npos);
  EXPECT_NE(problem("variant,rate\nbase,1,2\n").find("3 cells"), std::string::npos);
  EXPECT_NE(problem("variant,rate\n,1\n").find("variant: it has no name"), std::string::npos);
  EXPECT_NE(problem("variant,class\nbase,loads\n").find("class: 'loads'"), std::string::npos);
}

TEST(Csv, RowsAreSplitAsTheStandardSays) {
  using Cells = std::vector<std::string>;
  EXPECT_EQ(parse_csv_row(""), Cells{""});
  EXPECT_EQ(parse_csv_row("a, b ,"), (Cells{"a", "b", ""}));
  EXPECT_EQ(parse_csv_row(R"("a,b","say ""no""",c)"), (Cells{"a,b", R"(say "no")", "c"}));
  EXPECT_EQ(parse_csv_row(R"("a"b,c)"), std::nullopt);
  EXPECT_EQ(parse_csv_row(R"(a,"b)"), std::nullopt);
}

TEST(Log, RacesOfAnAgentsLogAreTakenOnce) {
  const ImportDefaults defaults{
      .machine = "box", .backend = "cuda", .date_us = *parse_time_argument("2026-03-01")};
  const Read all = read(ExchangeFormat::log, golden("agent.log"), defaults);
  EXPECT_TRUE(all.problems.empty()) << all.problems.at(0);
  ASSERT_EQ(all.records.size(), 3u);
  EXPECT_EQ(all.records[0].record.ts, "2026-03-01T12:00:00Z") << "of the record itself";
  EXPECT_EQ(all.records[0].record.winner, "u2");
  EXPECT_EQ(all.records[0].record.variants[0].detail.compile_ms, 61.5) << "the record, not the line";
  EXPECT_EQ(all.records[1].record.epoch, "11f1e2d3c4b5a697");
  EXPECT_EQ(all.records[1].record.ts, "2026-03-01T23:59:30Z") << "of the line's own stamp";
  EXPECT_EQ(all.records[1].record.program, "lottery");
  EXPECT_EQ(all.records[1].record.unit, "MH/s");
  EXPECT_EQ(all.records[1].record.find("u8")->detail.out, "does not compile: ptxas fatal | out of memory");
  EXPECT_EQ(all.records[2].record.ts, "2026-03-02T00:00:10Z") << "past midnight, by the stamp before";
}

TEST(Log, LinesThatDoNotSayTheirTimeOrProgramNeedTheOptions) {
  const std::string line =
      "race 0000000000000000 device pthread-AMD driver 3.1 arch x86 n 4096 variants 1 base=10 winner base 10 "
      "base 10 gain "
      "+0.00% compile 210 bench 0 total 260 ms verdict dead-heat heats 3 paused 0";
  const auto problem = [&](const ImportDefaults& defaults) {
    const Read all = read(ExchangeFormat::log, line, defaults);
    EXPECT_EQ(all.records.size() + all.problems.size(), 1u);
    return all.problems.empty() ? std::string() : all.problems[0];
  };
  ImportDefaults defaults;
  for (const auto& [option, set] : std::vector<std::pair<std::string, std::function<void()>>>{
           {"--machine", [&] { defaults.machine = "m"; }},
           {"--program", [&] { defaults.program = "gemv"; }},
           {"--backend", [&] { defaults.backend = "opencl"; }},
           {"--date", [&] { defaults.date_us = 0; }}}) {
    EXPECT_NE(problem(defaults).find(option), std::string::npos) << problem(defaults);
    set();
  }
  EXPECT_EQ(problem(defaults), "");
  const record::RaceRecord record = read(ExchangeFormat::log, line, defaults).records.at(0).record;
  EXPECT_EQ(record.epoch, "") << "zeros are none";
  EXPECT_EQ(record.ts, "1970-01-01T00:00:00Z");
}

TEST(Log, SpoiltLinesAreNamedAndOtherTextIsSkipped) {
  const Read all =
      read(ExchangeFormat::log,
           "the race is on\nrace conditions are bad\nTUNING {broken\nworker: race 12 device x variants 1 "
           "winner y\nrecord keeping\n");
  EXPECT_TRUE(all.records.empty());
  ASSERT_EQ(all.problems.size(), 2u);
  EXPECT_TRUE(all.problems[0].starts_with("in:3")) << all.problems[0];
  EXPECT_TRUE(all.problems[1].starts_with("in:4")) << all.problems[1];
}

TEST(Stamps, EveryKindIsRead) {
  const auto at = [](std::string_view line, std::string_view date = "2026-03-01") {
    internal::Stamps stamps(date.empty() ? std::optional<std::int64_t>() : *parse_time_argument(date));
    stamps.see(line);
    return stamps.now_us() ? iso_time(*stamps.now_us()) : std::string("none");
  };
  EXPECT_EQ(at("2026-04-05T06:07:08Z x", ""), "2026-04-05T06:07:08Z");
  EXPECT_EQ(at("[2026-04-05 06:07:08.123] [info] x", ""), "2026-04-05T06:07:08Z");
  EXPECT_EQ(at("2026-04-05T06:07:08,5+02:00 x", ""), "2026-04-05T04:07:08Z");
  EXPECT_EQ(at("2026-04-05T06:07:08-0030 x", ""), "2026-04-05T06:37:08Z");
  EXPECT_EQ(at("06:07:08 info: x"), "2026-03-01T06:07:08Z");
  EXPECT_EQ(at("06:07:08 info: x", ""), "none");
  EXPECT_EQ(at("Apr  5 06:07:08 host furlong[1]: x"), "2026-04-05T06:07:08Z");
  EXPECT_EQ(at("Jan  1 00:00:08 host x", "2026-12-31"), "2027-01-01T00:00:08Z");
  EXPECT_EQ(at("25:07:08 x"), "2026-03-01T00:00:00Z");
  EXPECT_EQ(at("2026-13-05T06:07:08Z x", ""), "none");
  EXPECT_EQ(at("", ""), "none");
}

TEST(Times, AreADayOrATime) {
  EXPECT_EQ(iso_time(*parse_time_argument("2026-03-01")), "2026-03-01T00:00:00Z");
  EXPECT_EQ(iso_time(*parse_time_argument("2026-03-01T12:00:00+01:00")), "2026-03-01T11:00:00Z");
  for (const char* wrong : {"", "yesterday", "2026-3-1", "2026-02-30", "2026-03-01T12:00:00Zx"})
    EXPECT_FALSE(parse_time_argument(wrong)) << wrong;
}

TEST(Formats, AreGuessedByTheFirstLine) {
  EXPECT_EQ(guess_format(least), ExchangeFormat::jsonl);
  EXPECT_EQ(guess_format(csv_head()), ExchangeFormat::csv);
  EXPECT_EQ(guess_format("ts,variant,rate"), ExchangeFormat::csv);
  EXPECT_EQ(guess_format("12:00:01 info: starting, with a variant"), ExchangeFormat::log);
  EXPECT_EQ(*parse_exchange_format("csv"), ExchangeFormat::csv);
  EXPECT_FALSE(parse_exchange_format("xml"));
}

}  // namespace
}  // namespace furlong::fleet
