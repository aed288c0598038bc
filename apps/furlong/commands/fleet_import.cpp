#include <algorithm>
#include <set>

#include "apps/furlong/commands.h"
#include "apps/furlong/fleet_records.h"
#include "apps/furlong/session.h"
#include "furlong/base/json.h"
#include "furlong/base/os/clock.h"
#include "furlong/base/os/interrupt.h"
#include "furlong/base/os/stream.h"
#include "furlong/base/text.h"

namespace furlong::app {
namespace {

constexpr int most_shown_problems = 20;
constexpr std::int64_t clock_slack_us = 600'000'000;  // as the hub allows

/// What was read, over all files.
struct Seen {
  std::uint64_t problems = 0, records = 0;
  std::vector<std::string> first;  // of the problems
};

class Reading {
 public:
  Reading(const Arguments& arguments, RecordsProgress& progress, std::stop_token stop)
      : arguments_(arguments), progress_(progress), stop_(std::move(stop)) {}

  Status configure() {
    const auto text = [&](const char* option, std::string& into) { into = arguments_.value(option); };
    text("--machine", defaults_.machine);
    text("--slot", defaults_.slot);
    text("--card", defaults_.card);
    text("--program", defaults_.program);
    text("--unit", defaults_.unit);
    text("--backend", defaults_.backend);
    text("--source", defaults_.source);
    text("--driver", defaults_.driver);
    // What is filed under one name needs no other.
    if (defaults_.machine.empty()) text("--as", defaults_.machine);
    defaults_.latest_us = system_clock().wall_us() + clock_slack_us;
    if (arguments_.given("--date")) {
      const auto date = fleet::parse_time_argument(arguments_.value("--date"));
      if (!date) return fail(Code::invalid, "--date: {}", date.error().text());
      defaults_.date_us = *date;
    }
    const std::string format = arguments_.value("--format", "auto");
    if (format == "auto") return {};
    FURLONG_TRY(format_, fleet::parse_exchange_format(format));
    return {};
  }

  /// Every record of the file to `take`. False: it was stopped.
  Result<bool> file(const std::string& name, const std::function<Status(fleet::ImportedRecord)>& take) {
    FURLONG_TRY(LineReader lines, as_input(LineReader::open(name)));
    const std::string shown = name == "-" ? "standard input" : name;
    const std::uint64_t records_before = seen_.records;
    std::uint64_t problems = 0;
    const fleet::RecordReader::Sink sink{.record =
                                             [&](fleet::ImportedRecord record) {
                                               ++seen_.records;
                                               return take(std::move(record));
                                             },
                                         .problem =
                                             [&](const Error& error) {
                                               ++problems;
                                               tell(error.text());
                                             }};
    std::unique_ptr<fleet::RecordReader> reader;
    for (;;) {
      FURLONG_TRY(auto line, lines.next(stop_));
      if (!line) break;
      if (line->too_long) {
        sink.problem(fail(Code::invalid, "{}:{}: the line is longer than 1 MiB", shown, line->number));
        continue;
      }
      if (line->number == 1) line->text = fleet::without_byte_order_mark(line->text);
      if (!reader && trim(line->text).empty()) continue;
      if (!reader)
        reader = fleet::make_record_reader(format_.value_or(fleet::guess_format(line->text)), shown,
                                           defaults_, sink);
      FURLONG_CHECK(reader->line(line->text, line->number));
      const double share = lines.size() ? static_cast<double>(lines.bytes_read()) /
                                              static_cast<double>(std::max<std::uint64_t>(1, *lines.size()))
                                        : -1;
      progress_.show(fmt::format("{}: {}", shown, count_text(seen_.records, "record")), share);
    }
    if (stop_.stop_requested()) return false;
    if (reader) FURLONG_CHECK(reader->end());
    if (seen_.records == records_before) {
      if (problems > 0)
        return fail(Code::invalid, "{}: nothing of it can be read as race records; see above", shown);
      tell(
          fmt::format("{}: there is no race in it: neither JSON lines, nor a table with the column "
                      "'variant', nor a log's race lines",
                      shown));
      // A log of an hour without races is no fault, and comes by a pipe; a file was chosen.
      if (reader && name != "-") chosen_for_nothing_ = true;
    }
    return true;
  }

  const Seen& seen() const { return seen_; }
  /// Files were named, and there is no race in any of them.
  bool found_nothing() const { return chosen_for_nothing_ && seen_.records == 0; }

 private:
  void tell(const std::string& text) {
    ++seen_.problems;
    if (seen_.problems > most_shown_problems) return;
    seen_.first.push_back(one_line(text));
    progress_.clear();
    print_err("furlong fleet import: left out: " + one_line(text) + "\n");
    if (seen_.problems == most_shown_problems) print_err("furlong fleet import: more are only counted\n");
  }

  const Arguments& arguments_;
  RecordsProgress& progress_;
  const std::stop_token stop_;
  fleet::ImportDefaults defaults_;
  std::optional<fleet::ExchangeFormat> format_;
  Seen seen_;
  bool chosen_for_nothing_ = false;
};

/// --strict: everything is read once before anything is filed.
Status check_all(const Arguments& arguments, RecordsProgress& progress, const std::stop_token& stop) {
  Reading reading(arguments, progress, stop);
  FURLONG_CHECK(reading.configure());
  for (const std::string& name : arguments.positionals) {
    if (name == "-")
      return fail(Code::invalid,
                  "--strict reads its input twice, and standard input can be read once: give a file");
    FURLONG_TRY(const bool whole,
                reading.file(name, [](const fleet::ImportedRecord&) -> Status { return {}; }));
    if (!whole) return {};
  }
  if (reading.seen().problems > 0)
    return fail(Code::invalid, "{} cannot be read, and --strict refuses; nothing was filed",
                count_text(reading.seen().problems, "line"));
  return {};
}

void say(const Arguments& arguments, const Seen& seen, const fleet::ImportCounts& counts, bool interrupted) {
  if (arguments.flag("--json")) {
    Json problems = Json::array();
    for (const std::string& each : seen.first) problems.push_back(each);
    print_out(json_pretty(Json{{"schema", 1},
                               {"kind", "fleet-import"},
                               {"records", counts.records},
                               {"accepted", counts.accepted},
                               {"duplicate", counts.duplicate},
                               {"machines", counts.machines},
                               {"left_out", seen.problems},
                               {"interrupted", interrupted},
                               {"problems", std::move(problems)}}));
    return;
  }
  print_out(fmt::format("{}: {} new, {} there already, of {}; {} left out{}\n",
                        count_text(counts.records, "record"), counts.accepted, counts.duplicate,
                        count_text(counts.machines, "machine"), seen.problems,
                        interrupted ? "; interrupted: run it again to go on" : ""));
}

Result<int> run(const Arguments& arguments) {
  const std::stop_token stop = stop_on_interrupt();
  if (std::ranges::count(arguments.positionals, "-") > 1)
    return fail(Code::invalid, "-: standard input can be read once");
  RecordsProgress progress(arguments.flag("--json"));
  if (arguments.flag("--strict")) FURLONG_CHECK(check_all(arguments, progress, stop));
  Reading reading(arguments, progress, stop);
  FURLONG_CHECK(reading.configure());
  FURLONG_TRY(const auto store, open_store(arguments, {.create = true}));
  fleet::Importer importer(*store, arguments.value("--as"), system_clock().wall_us());
  bool whole = true;
  Status read;
  for (const std::string& name : arguments.positionals) {
    auto ended =
        reading.file(name, [&](const fleet::ImportedRecord& record) { return importer.add(record); });
    if (!ended) read = ended.error();
    whole = ended && *ended;
    if (!whole) break;
  }
  // What was read before a file that is no good is filed all the same, and told.
  FURLONG_CHECK(importer.flush());
  progress.clear();
  say(arguments, reading.seen(), importer.counts(), stop.stop_requested());
  FURLONG_CHECK(read);
  if (reading.found_nothing()) return exit_usage;
  return stop.stop_requested() ? 128 + interrupt_signal() : exit_ok;
}

std::vector<OptionSpec> options() {
  return {store_option("Where they go; made when it is not there."),
          {.name = "--as",
           .value_name = "NAME",
           .help = "File all of them under this one machine. Default: each under the machine that it names."},
          {.name = "--format",
           .value_name = "F",
           .help = "Default: auto, by the first line.",
           .choices = {"auto", "jsonl", "csv", "log"}},
          {.name = "--machine", .value_name = "M", .help = "Machine of records that name none."},
          {.name = "--slot", .value_name = "S", .help = "Card of that machine, where it has several."},
          {.name = "--card", .value_name = "C", .help = "Label of the card, of records that name none."},
          {.name = "--program",
           .value_name = "P",
           .help = "Program, of records that name none. Race lines with loads and wide are the lottery's."},
          {.name = "--backend",
           .value_name = "B",
           .help = "cuda, opencl, …, of records that name none: race lines do not."},
          {.name = "--unit", .value_name = "U", .help = "Unit of rates, of records that name none."},
          {.name = "--source",
           .value_name = "H",
           .help = "Hash of the program's text, of records that name none."},
          {.name = "--driver", .value_name = "D", .help = "Driver, of records that name none."},
          {.name = "--date",
           .value_name = "T",
           .help = "Day or time of records without one; in logs, the day of the first line."},
          {.name = "--strict",
           .value_name = "",
           .help = "Read everything first, and file nothing when a line is bad."},
          {.name = "--json", .value_name = "", .help = "The counts as JSON."}};
}

}  // namespace

CommandSpec fleet_import_command() {
  return {
      .name = "fleet import",
      .summary = "Take race records of machines without an agent into a fleet's store: files, tables, logs.",
      .description =
          "JSON lines (furlong race --record, fleet export), tables in CSV (one row a variant), and logs of "
          "agents and "
          "workers with their TUNING and race lines; docs/formats/fleet-exchange.md has the columns. Large "
          "files are "
          "streamed.\n"
          "A record without an id gets one from what it says, so that importing twice changes nothing. Lines "
          "that "
          "cannot be read are named with file and line, and the others are filed. Imported records are not "
          "signed: "
          "they are filed under import:MACHINE, and count like any other.\n"
          "Exit 0: filed; 2: a file could not be read, no file has a race, or --strict found a bad line.",
      .positionals = {{.name = "FILES", .help = "What to read; - is standard input.", .many = true}},
      .options = options(),
      .examples = {{"furlong fleet import --store sqlite:hub.sqlite --machine lab1 records.jsonl", ""},
                   {"furlong fleet import --store sqlite:hub.sqlite measured.csv", ""},
                   {"journalctl -u furlong-agent -o short-iso | furlong fleet import --store "
                    "sqlite:hub.sqlite --machine "
                    "lab1 --backend cuda -",
                    ""}},
      .run = run};
}

}  // namespace furlong::app
