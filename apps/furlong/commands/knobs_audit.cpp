#include "apps/furlong/commands.h"
#include "apps/furlong/fleet_records.h"
#include "apps/furlong/session.h"
#include "apps/furlong/stores.h"
#include "furlong/audit/audit.h"
#include "furlong/base/json.h"
#include "furlong/base/text.h"
#include "furlong/record/records.h"

namespace furlong::app {
namespace {

constexpr std::size_t kMostShownProblems = 10;
constexpr std::size_t kLargestFile = 1u << 30;

/// Those of the program that a fleet's store has.
Status read_store(const std::string& url, const std::string& program, record::RecordFile& all) {
  FURLONG_TRY(const auto store, fleet::open_store(store_kinds(), url, {.create = false, .read_only = true}));
  const std::string shown = fleet::shown_url(url);
  const fleet::ExportFilter filter{
      .card = {}, .program = program, .machine = {}, .window = {.from_us = INT64_MIN, .to_us = INT64_MAX}};
  const auto add = [&](std::string_view line) -> Result<bool> {
    auto record = record::parse_record(line, shown);
    if (record)
      all.records.push_back(*std::move(record));
    else
      all.problems.push_back(record.error());
    return true;
  };
  FURLONG_CHECK(fleet::export_records(*store, filter, add));
  return {};
}

/// All records of all files and stores, and what could not be read of them.
Result<record::RecordFile> read_all(const std::vector<std::string>& sources, const std::string& program) {
  record::RecordFile all;
  for (const std::string& source : sources) {
    if (is_store_url(source)) {
      FURLONG_CHECK(read_store(source, program, all));
      continue;
    }
    if (source.find("://") != std::string::npos)
      return fail(Code::invalid,
                  "'{}' is neither a file nor a store; stores are sqlite:FILE and postgresql://HOST/DATABASE",
                  fleet::shown_url(source));
    FURLONG_TRY(auto read, as_input(record::read_records(system_files(), source, kLargestFile)));
    if (read.records.empty() && !read.problems.empty())
      return fail(Code::invalid,
                  "{}: no line of it is a race record (furlong race --record FILE writes them); {}", source,
                  read.problems.front().text());
    std::ranges::move(read.records, std::back_inserter(all.records));
    std::ranges::move(read.problems, std::back_inserter(all.problems));
  }
  return all;
}

Result<std::shared_ptr<const program::Program>> open(const Arguments& arguments) {
  if (!arguments.given("--program"))
    return fail(Code::invalid, "knobs audit: --program P is missing: whose knobs are to be audited");
  program::ProgramRequest request;
  request.what = arguments.value("--program");
  request.geometry = "small";
  return as_input(program::open_program(request));
}

Result<audit::Options> audit_options(const Arguments& arguments, const program::Program& program) {
  audit::Options options;
  options.program = program.name;
  // The lottery's text differs by class and epoch, so that the program in hand is one of many.
  if (program.epoch.empty()) options.source = program.source_hash().hex();
  options.any_source = arguments.flag("--any-source");
  FURLONG_TRY(const double threshold, arguments.number("--threshold", 0.5, 0.001, 50));
  options.threshold = threshold / 100;
  FURLONG_TRY(const std::int64_t races, arguments.integer("--min-races", 2, 1, 1000));
  FURLONG_TRY(const std::int64_t regimes, arguments.integer("--min-regimes", 3, 1, 1000));
  options.min_races = static_cast<int>(races);
  options.min_regimes = static_cast<int>(regimes);
  options.unstated_language = arguments.given("--language") || program.editions.size() == 1;
  return options;
}

struct Audited {
  const program::Edition* edition = nullptr;
  audit::Report report;
  bool has_records() const {
    const audit::Report& r = report;
    return r.records > r.other_program + r.other_language + r.other_metric + r.repeated;
  }
};

Result<std::vector<Audited>> audit_editions(const Arguments& arguments, const program::Program& program,
                                            const std::vector<record::RaceRecord>& records) {
  FURLONG_TRY(audit::Options options, audit_options(arguments, program));
  const std::string language = arguments.value("--language");
  std::vector<Audited> all;
  for (const program::Edition& edition : program.editions) {
    if (!language.empty() && edition.language != language) continue;
    options.language = edition.language;
    all.push_back({&edition, audit::audit(edition.lattice, records, options)});
  }
  if (all.empty()) return fail(Code::invalid, "program '{}' has no text in '{}'", program.name, language);
  return all;
}

void tell_problems(const std::vector<Error>& problems) {
  for (std::size_t i = 0; i < problems.size() && i < kMostShownProblems; ++i)
    print_err("furlong knobs audit: left out: " + one_line(problems[i].text()) + "\n");
  if (problems.size() > kMostShownProblems)
    print_err(fmt::format("furlong knobs audit: and {} more lines\n", problems.size() - kMostShownProblems));
}

void print_text(const program::Program& program, const std::vector<Audited>& audited) {
  const bool any = std::ranges::any_of(audited, &Audited::has_records);
  std::vector<std::string> without;
  for (const Audited& one : audited) {
    if (any && !one.has_records()) {
      without.push_back(one.edition->language);
      continue;
    }
    print_out(fmt::format("{} ({}): {}\n", program.name, one.edition->language,
                          audit::show_text(one.edition->lattice, one.report)));
  }
  if (!without.empty()) print_out("no records in: " + join(without, ", ") + "\n");
}

void print_json(const program::Program& program, const std::vector<Audited>& audited,
                const std::vector<Error>& problems) {
  Json editions = Json::array(), lines = Json::array();
  for (const Audited& one : audited) {
    Json edition{{"language", one.edition->language}};
    edition.update(audit::to_json(one.edition->lattice, one.report));
    editions.push_back(std::move(edition));
  }
  for (const Error& problem : problems) lines.push_back(problem.text());
  print_out(json_pretty(Json{{"schema", 1},
                             {"kind", "audit"},
                             {"program", program.name},
                             {"problems", std::move(lines)},
                             {"editions", std::move(editions)}}));
}

Result<int> run(const Arguments& arguments) {
  FURLONG_TRY(const auto program, open(arguments));
  FURLONG_TRY(const record::RecordFile read, read_all(arguments.positionals, program->name));
  FURLONG_TRY(const auto audited, audit_editions(arguments, *program, read.records));
  tell_problems(read.problems);
  arguments.flag("--json") ? print_json(*program, audited, read.problems) : print_text(*program, audited);
  const bool refused = std::ranges::any_of(audited, [](const Audited& one) {
    return !one.report.contradictions.empty() || !one.report.defects.empty();
  });
  return refused && arguments.flag("--strict") ? exit_failed : exit_ok;
}

}  // namespace

CommandSpec knobs_audit_command() {
  return {
      .name = "knobs audit",
      .summary = "Hold race records against the trade-off table: a verdict for every value of every knob.",
      .description =
          "Each value is compared with its knob's default in variants of one race that differ in that knob "
          "alone, "
          "by regime (card, driver, class). A value is a trade-off (it wins somewhere and loses somewhere), "
          "bake in "
          "(it never loses), drop (it never wins) or unproven (what is missing is said). docs/lattice.md "
          "says how, "
          "docs/formats/audit.md what --json holds.\n"
          "A damaged line is named on standard error and the others are read; records of other programs and "
          "variants that left the lattice are counted. So are records of another text of the program than it "
          "has "
          "now (of a program whose text differs by class and epoch, such as the lottery: than the newest of "
          "their class).\n"
          "Exit 0: audited, also without any evidence; 2: bad usage or input; 3: with --strict, when records "
          "contradict the table or a variant of theirs was wrong (it failed its gate or its trial, or is "
          "quarantined). Missing evidence contradicts nothing.",
      .positionals = {{.name = "RECORDS",
                       .help = "Files of race records, one JSON object a line (furlong race --record), and "
                               "stores of a fleet (sqlite:FILE, postgresql://…).",
                       .many = true}},
      .options =
          {{.name = "--program",
            .value_name = "P",
            .help = "Whose knobs: a program file (.toml), a pack's folder, or lottery. Required.",
            .complete = "file"},
           {.name = "--language",
            .value_name = "L",
            .help =
                "Only this language, also with records whose language is not told (simulated devices, old "
                "records). Default: every language of the program.",
            .choices = {"host", "opencl", "cuda", "metal"}},
           {.name = "--any-source",
            .value_name = "",
            .help =
                "Pool the records of every text of the program. What was true of an old kernel then counts "
                "for the one of today."},
           {.name = "--strict",
            .value_name = "",
            .help = "Exit 3 when a verdict or a regime contradicts a sentence or a claim of the table, or a "
                    "variant was wrong."},
           {.name = "--threshold",
            .value_name = "PCT",
            .help = "Difference of rates up to which two values tie. Default 0.5."},
           {.name = "--min-races",
            .value_name = "N",
            .help =
                "Races of a regime before it counts for bake in and drop, or contradicts, and of a context "
                "(the other knobs) before it decides. Default 2."},
           {.name = "--min-regimes",
            .value_name = "N",
            .help = "Regimes with that many races that bake in and drop need. Default 3."},
           {.name = "--json", .value_name = "", .help = "Everything, as JSON."}},
      .examples =
          {{"furlong knobs audit records.jsonl --program lottery", ""},
           {"furlong knobs audit sqlite:hub.sqlite --program lottery", ""},
           {"furlong knobs audit monday.jsonl tuesday.jsonl --program my_kernel.toml --strict", ""},
           {"furlong knobs audit records.jsonl --program lottery --language cuda --min-races 1 --json", ""}},
      .run = run};
}

}  // namespace furlong::app
