#include "furlong/fleet/exchange/importer.h"

#include <gtest/gtest.h>

#include <set>

#include "furlong/base/text.h"
#include "furlong/fleet/exchange/csv.h"
#include "furlong/fleet/record_batch.h"
#include "furlong/fleet/simulate/simulate.h"
#include "furlong/fleet/store/memory/memory.h"

namespace furlong::fleet {
namespace {

constexpr std::int64_t now_us = 1'780'000'000'000'000;

SimulateOptions fleet_options() {
  SimulateOptions options;
  options.machines = 8;
  options.days = 0.5;
  options.clones = options.clocks_off = 1;
  options.pinned_share = 0.3;
  return options;
}

std::vector<std::string> simulated_lines() {
  const auto simulation = *Simulation::make(fleet_options());
  std::vector<std::string> lines;
  record::RaceRecord record;
  while (simulation->next(record)) lines.push_back(record::to_line(record));
  return lines;
}

ImportCounts import(Store& store, ExchangeFormat format, const std::string& text,
                    const std::string& as = {}) {
  Importer importer(store, as, now_us);
  const auto reader =
      make_record_reader(format, "in", {.machine = as},
                         {.record = [&](ImportedRecord record) { return importer.add(record); },
                          .problem = [](const Error& error) { ADD_FAILURE() << error.text(); }});
  int number = 0;
  for (const std::string& line : split(text, '\n')) EXPECT_TRUE(reader->line(line, ++number));
  EXPECT_TRUE(reader->end());
  EXPECT_TRUE(importer.flush());
  return importer.counts();
}

std::string exported(Store& store, ExchangeFormat format, const ExportFilter& filter = {}) {
  std::string text = format == ExchangeFormat::csv ? csv_head() : "";
  const auto count = export_records(store, filter, [&](std::string_view line) -> Result<bool> {
    if (format == ExchangeFormat::csv)
      text += csv_rows(*record::parse_record(line, "line"));
    else
      text += std::string(line) + "\n";
    return true;
  });
  EXPECT_TRUE(count) << count.error().text();
  return text;
}

TEST(Import, EachMachineIsFiledUnderItsNameAndTwiceChangesNothing) {
  const auto store = open_memory_store();
  const std::vector<std::string> lines = simulated_lines();
  const std::string text = join(lines, "\n");
  const ImportCounts first = import(*store, ExchangeFormat::jsonl, text);
  EXPECT_EQ(first.records, lines.size());
  EXPECT_EQ(first.accepted + first.duplicate, lines.size());
  EXPECT_EQ(first.machines, 7u) << "eight boxes, two of which share a key";
  const auto totals = *store->totals();
  EXPECT_EQ(totals.races, first.accepted);
  const ImportCounts again = import(*store, ExchangeFormat::jsonl, text);
  EXPECT_EQ(again.accepted, 0u);
  EXPECT_EQ(again.duplicate, lines.size());
  EXPECT_EQ(store->totals()->races, totals.races);
  EXPECT_EQ(store->totals()->batches, totals.batches);
  const std::vector<Machine> machines = *store->machines();
  for (const Machine& machine : machines) {
    EXPECT_TRUE(machine.id.starts_with("import:"));
    EXPECT_EQ(machine.key, std::nullopt);
  }
}

TEST(Import, AllIsFiledUnderOneNameWhereAsked) {
  const auto store = open_memory_store();
  import(*store, ExchangeFormat::jsonl, join(simulated_lines(), "\n"), "lab");
  ASSERT_EQ(store->machines()->size(), 1u);
  EXPECT_EQ(store->machines()->front().id, "import:lab");
}

TEST(Import, ManyRecordsGoInOverSeveralTransactions) {
  SimulateOptions options = fleet_options();
  options.machines = 30;
  options.days = 6;
  const auto simulation = *Simulation::make(options);
  const auto store = open_memory_store();
  Importer importer(*store, "", now_us);
  record::RaceRecord record;
  std::uint64_t added = 0;
  for (; added < 5000 && simulation->next(record); ++added)
    ASSERT_TRUE(importer.add({.record = record, .line = record::to_line(record), .number = 0}));
  EXPECT_GT(store->totals()->races, 3000u) << "before the flush";
  ASSERT_TRUE(importer.flush());
  EXPECT_EQ(importer.counts().accepted + importer.counts().duplicate, added);
}

TEST(Export, IsOrderedAndWholeAndComesBackAsItWas) {
  const auto store = open_memory_store();
  const ImportCounts counts = import(*store, ExchangeFormat::jsonl, join(simulated_lines(), "\n"));
  const std::string first = exported(*store, ExchangeFormat::jsonl);
  std::vector<std::string> lines = split(first, '\n');
  lines.pop_back();
  EXPECT_EQ(lines.size(), counts.accepted);
  std::pair<std::string, std::string> before;
  for (const std::string& line : lines) {
    const auto record = record::parse_record(line, "line");
    ASSERT_TRUE(record);
    const std::pair key(record->ts, record->id);
    EXPECT_LT(before, key);
    before = key;
  }
  for (const ExchangeFormat format : {ExchangeFormat::jsonl, ExchangeFormat::csv}) {
    const std::string text = exported(*store, format);
    const auto other = open_memory_store();
    import(*other, format, text);
    EXPECT_EQ(exported(*other, format), text) << exchange_format_name(format);
    EXPECT_EQ(exported(*other, ExchangeFormat::jsonl), first);
  }
}

TEST(Export, FiltersLetThroughWhatTheySay) {
  const auto store = open_memory_store();
  import(*store, ExchangeFormat::jsonl, join(simulated_lines(), "\n"));
  const auto records = [&](const ExportFilter& filter) {
    std::vector<record::RaceRecord> all;
    const auto count = export_records(*store, filter, [&](std::string_view line) -> Result<bool> {
      all.push_back(*record::parse_record(line, "line"));
      return true;
    });
    EXPECT_EQ(*count, all.size());
    return all;
  };
  const auto all = records({});
  const record::RaceRecord& one = all[all.size() / 2];
  const std::int64_t at_us = *record::parse_stamp(one.ts);
  for (const ExportFilter& filter :
       {ExportFilter{.card = one.card}, ExportFilter{.card = one.silicon.hash},
        ExportFilter{.program = one.program}, ExportFilter{.machine = one.machine},
        ExportFilter{.machine = "import:" + one.machine},
        ExportFilter{.window = {.from_us = at_us, .to_us = at_us + 1}}}) {
    const auto some = records(filter);
    EXPECT_LT(some.size(), all.size());
    std::size_t fit = 0;
    for (const record::RaceRecord& each : all) {
      const bool in = (filter.card.empty() || filter.card == each.card || filter.card == each.silicon.hash) &&
                      (filter.program.empty() || filter.program == each.program) &&
                      (filter.machine.empty() || filter.machine.ends_with(each.machine)) &&
                      *record::parse_stamp(each.ts) >= filter.window.from_us &&
                      *record::parse_stamp(each.ts) < filter.window.to_us;
      fit += in;
    }
    EXPECT_EQ(some.size(), fit);
    EXPECT_GT(fit, 0u);
  }
  EXPECT_TRUE(records({.card = "no such card"}).empty());
}

// What a batch states as an id is its sender's word: only the line that was accepted is the race's.
TEST(Export, NoOtherMachinesLineIsTakenForARace) {
  const auto store = open_memory_store();
  const auto simulation = *Simulation::make(fleet_options());
  record::RaceRecord own, theirs;
  ASSERT_TRUE(simulation->next(own));
  do ASSERT_TRUE(simulation->next(theirs));
  while (theirs.machine == own.machine);
  own.ts = "2026-03-01T12:00:00Z";
  theirs.ts = "2026-03-01T12:00:01Z";
  const auto forged = [&](double rate) {
    record::RaceRecord record = theirs;
    record.machine = own.machine;
    record.slot = "forged";
    record.rate = rate;
    return record;
  };
  const auto add = [&](const std::string& machine, const std::vector<record::RaceRecord>& records,
                       std::size_t refused) {
    RecordBatch sent{.id = content_id(now_us, records.back().slot + records.front().ts),
                     .machine = "import:" + machine,
                     .lines = {}};
    IncomingBatch batch{.id = sent.id, .machine = sent.machine, .signature = {}, .body = {}};
    for (const record::RaceRecord& record : records) {
      sent.lines.push_back(record::to_line(record));
      IncomingBatch::Line line{.id = record.id, .race = decode(record)};
      if (batch.lines.size() == refused) line.race = fail(Code::invalid, "forged");
      batch.lines.push_back(std::move(line));
    }
    batch.body = *print(sent);
    EXPECT_TRUE(store->add_importer(machine, now_us));
    const auto outcome = store->add({&batch, 1});
    ASSERT_TRUE(outcome) << outcome.error().text();
  };
  add("honest", {theirs}, 9);
  add("liar", {own, forged(1000), forged(2000)}, 1);
  ASSERT_EQ(store->totals()->races, 2u);
  EXPECT_EQ(exported(*store, ExchangeFormat::jsonl),
            record::to_line(own) + "\n" + record::to_line(theirs) + "\n");
}

TEST(Export, EndsWhenTheVisitorHasEnoughAndTellsItsErrors) {
  const auto store = open_memory_store();
  import(*store, ExchangeFormat::jsonl, join(simulated_lines(), "\n"));
  int seen = 0;
  EXPECT_EQ(*export_records(*store, {}, [&](std::string_view) -> Result<bool> { return ++seen < 3; }), 3u);
  const auto full = export_records(
      *store, {}, [&](std::string_view) -> Result<bool> { return fail(Code::exhausted, "full"); });
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error().code(), Code::exhausted);
}

}  // namespace
}  // namespace furlong::fleet
