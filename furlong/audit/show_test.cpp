// The report as people and programs read it: golden files, and the page of the format.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "furlong/audit/audit.h"
#include "furlong/audit/internal/testing.h"
#include "furlong/base/json.h"
#include "furlong/base/os/file.h"

namespace furlong::audit {
namespace {

using ::testing::HasSubstr;

std::string file(const std::string& path) { return system_files().read(path).value_or(std::string()); }

struct Shown : ::testing::Test {
  Shown() {
    lattice.knobs = {testing::knob("unroll", {1, 2}, {"", "u2"})};
    lattice.knobs[0].claims = {{1, lattice::ClaimOutcome::wins, "n <= 4096", 31}};
    records = {testing::race("NVIDIA_H200", 4096, {{"u2", -1.0, 0.25}}),
               testing::race("NVIDIA_H200", 4096, {{"u2", -1.0, 0.25}}),
               testing::race("NVIDIA_H200", 65536, {{"u2", 2.0, 0.25}, {"u4", 3.0, 0.25}}),
               testing::race("NVIDIA_H200", 65536, {})};
    for (record::RaceRecord& record : records) testing::variant(record, "base").detail.regs = 40;
    testing::variant(records[2], "u2").detail.regs = 48;
    records[3].variants.push_back(testing::failed("u2", "gate", "gate: element 3: got 1, expected 2"));
    report = audit(lattice, records, {.program = "mix", .language = "cuda"});
  }
  lattice::Lattice lattice;
  std::vector<record::RaceRecord> records;
  Report report;
};

TEST_F(Shown, TextIsTheGoldenFile) {
  EXPECT_EQ(show_text(lattice, report), file("furlong/audit/testdata/report.txt"));
}

TEST_F(Shown, JsonIsTheGoldenFileAndStandsInThePage) {
  const std::string json = json_pretty(to_json(lattice, report));
  EXPECT_EQ(json, file("furlong/audit/testdata/report.json"));
  EXPECT_THAT(file("docs/formats/audit.md"), HasSubstr(json));
}

TEST_F(Shown, ThePageNamesEveryWord) {
  const std::string page = file("docs/formats/audit.md");
  for (const State state : {State::none, State::open, State::wins, State::loses, State::ties,
                            State::not_worse, State::not_better})
    EXPECT_THAT(page, HasSubstr("`" + std::string(state_name(state)) + "`"));
  for (const Verdict verdict : {Verdict::trade_off, Verdict::bake_in, Verdict::drop, Verdict::unproven})
    EXPECT_THAT(page, HasSubstr("`" + std::string(verdict_name(verdict)) + "`"));
  for (const Measure measure : {Measure::error, Measure::memory, Measure::registers, Measure::spills,
                                Measure::compile_time, Measure::energy})
    EXPECT_THAT(page, HasSubstr("`" + std::string(measure_name(measure)) + "`"));
  for (const ClaimState state : {ClaimState::confirmed, ClaimState::contradicted, ClaimState::open})
    EXPECT_THAT(page, HasSubstr("`" + std::string(claim_state_name(state)) + "`"));
}

TEST_F(Shown, JsonReadsBackWhateverTheNumbers) {
  testing::variant(records[2], "base").detail.spills = 0;
  testing::variant(records[2], "u2").detail.spills = 8;  // infinitely more
  report = audit(lattice, records, {});
  const Json json = to_json(lattice, report);
  const auto back = json_parse(json_line(json), "report");
  ASSERT_TRUE(back) << back.error().text();
  EXPECT_EQ(*back, json);
}

}  // namespace
}  // namespace furlong::audit
