#include "apps/furlong/backends.h"
#include "apps/furlong/commands.h"
#include "apps/furlong/knobs_page.h"
#include "apps/furlong/session.h"
#include "furlong/base/json.h"
#include "furlong/base/table.h"
#include "furlong/interop/t1.h"
#include "furlong/lattice/lint.h"
#include "furlong/lattice/space.h"

namespace furlong::app {
namespace {

/// A lattice with what its constraints may name: one language of a program, or a T1 file.
struct Edition {
  std::string language;
  const lattice::Lattice* lattice = nullptr;
  lattice::Lookup facts;
  std::vector<std::string> known_names;
  std::shared_ptr<const program::Instance> instance;  ///< null for a T1 file
};

struct Opened {
  std::string name, place;  ///< of the program; of the file, for findings
  bool shipped = false;
  std::vector<Edition> editions;  ///< those asked for
  std::vector<std::string> notes;
  std::shared_ptr<const program::Program> program;  ///< owns the lattices, as t1 does
  std::shared_ptr<const interop::T1Problem> t1;
};

/// Device facts for constraints: of the device that --device names, or a stand-in without one.
Result<lattice::Environment> facts_for(const Arguments& arguments) {
  if (arguments.given("--device")) {
    device::Registry registry;
    add_backends(registry);
    FURLONG_TRY(const auto device, open_device(registry, arguments.value("--device")));
    return device_facts(device->facts());
  }
  device::Facts generic;
  generic.silicon.arch = "sm_90";
  generic.backend = "cuda";
  generic.warp = 32;
  generic.max_threads_per_block = 1024;
  generic.max_shared_bytes = 227 << 10;  // of a block that asks for it
  generic.silicon.multiprocessors = 1;
  generic.silicon.memory_bytes = 16ull << 30;
  return device_facts(generic);
}

Result<Opened> open_t1(const std::string& file) {
  Opened out;
  FURLONG_TRY(const std::string text, as_input(system_files().read(file, 64u << 20)));
  FURLONG_TRY(auto problem, interop::read_t1(text, file));
  out.t1 = std::make_shared<const interop::T1Problem>(std::move(problem));
  out.name = out.t1->name;
  out.place = file;
  out.notes = out.t1->notes;
  Edition edition{.language = out.t1->language, .lattice = &out.t1->lattice, .facts = out.t1->facts()};
  for (const auto& [name, value] : out.t1->fixed) edition.known_names.push_back(name);
  out.editions.push_back(std::move(edition));
  return out;
}

Result<Opened> open(const Arguments& arguments) {
  FURLONG_TRY(auto request, program_request(arguments));
  if (request.what.ends_with(".json")) return open_t1(request.what);
  Opened out;
  if (request.geometry.empty()) request.geometry = "small";
  FURLONG_TRY(out.program, as_input(program::open_program(request)));
  out.name = out.program->name;
  out.place = out.program->file.empty() ? out.program->name : out.program->file.string();
  out.shipped = program::is_shipped(request);
  FURLONG_TRY(const auto facts, facts_for(arguments));
  FURLONG_TRY(const auto problem, problem_values(arguments.values("--problem")));
  const std::string language = arguments.value("--language");
  for (const auto& edition : out.program->editions) {
    if (!language.empty() && edition.language != language) continue;
    FURLONG_TRY(auto made, program::Instance::make(out.program, edition.language, problem, facts));
    const auto instance = std::make_shared<const program::Instance>(std::move(made));
    Edition one{.language = edition.language,
                .lattice = &edition.lattice,
                .facts = instance->facts(),
                .instance = instance};
    for (const auto& [name, value] : instance->problem()) one.known_names.push_back(name);
    for (const auto& [name, value] : facts) one.known_names.push_back(name);
    out.editions.push_back(std::move(one));
  }
  if (out.editions.empty())
    return fail(Code::invalid, "program '{}' has no text in '{}'", out.name, language);
  return out;
}

/// What `furlong race` takes without --variants, also where the file names no catalogue; of a T1 file, which
/// cannot be raced, its points when they are few.
Result<std::vector<std::string>> raced_names(const Edition& edition, const lattice::Space& space) {
  if (!edition.lattice->catalogue.empty()) return edition.lattice->catalogue;
  std::vector<std::string> names;
  if (edition.instance) {
    FURLONG_TRY(const auto points, edition.instance->select("catalogue"));
    for (const auto& point : points) names.push_back(lattice::variant_name(*edition.lattice, point));
  } else if (space.count() <= 64) {
    for (std::uint64_t i = 0; i < space.count(); ++i)
      names.push_back(lattice::variant_name(*edition.lattice, space.at(i)));
  }
  return names;
}

std::vector<OptionSpec> options(std::vector<OptionSpec> own) {
  own.push_back(
      {.name = "--device",
       .value_name = "D",
       .help = "Take device facts in constraints from this device. Default: a generic card (sm_90).",
       .complete = "device"});
  for (auto& option : program_options()) own.push_back(option);
  own.push_back({.name = "--json", .value_name = "", .help = "As JSON."});
  return own;
}

PositionalSpec program_positional() {
  return {.name = "PROGRAM",
          .help =
              "A program file (.toml), a pack's folder, a shipped program's name (lottery, the default, "
              "or gemv), or a T1 file (.json).",
          .required = false,
          .choices = shipped_names()};
}

Result<int> run_list(const Arguments& arguments) {
  FURLONG_TRY(const auto opened, open(arguments));
  Json out = Json::array();
  Table table;
  for (const char* heading : {"language", "knobs", "valid points", "catalogue", "constraints"})
    table.column(heading);
  std::string names;
  for (const auto& edition : opened.editions) {
    FURLONG_TRY(const auto space, lattice::Space::build(*edition.lattice, edition.facts));
    FURLONG_TRY(const auto raced, raced_names(edition, space));
    const auto& catalogue = edition.lattice->catalogue;
    std::string listed = std::to_string(catalogue.size());
    if (catalogue.empty()) listed = edition.instance ? fmt::format("none; {} raced", raced.size()) : "none";
    table.row({edition.language, std::to_string(edition.lattice->knobs.size()), std::to_string(space.count()),
               listed, std::to_string(edition.lattice->constraints.size())});
    if (!raced.empty()) names += wrap(fmt::format("{}: {}", edition.language, fmt::join(raced, " ")), 0);
    std::vector<std::string> knob_names;
    for (const auto& knob : edition.lattice->knobs) knob_names.push_back(knob.name);
    out.push_back(Json{{"language", edition.language},
                       {"knobs", knob_names},
                       {"valid_points", space.count()},
                       {"product", space.product()},
                       {"catalogue", catalogue},
                       {"raced", raced}});
  }
  if (arguments.flag("--json")) {
    print_out(json_pretty(Json{{"schema", 1}, {"program", opened.name}, {"editions", out}}));
  } else {
    print_out(table.text() + (names.empty() ? "" : "\n" + names));
    for (const std::string& note : opened.notes) print_out("note: " + note + "\n");
  }
  return exit_ok;
}

/// A T1 file has no sentences to print.
Result<int> show_markdown(const Arguments& arguments, const Opened& opened) {
  if (arguments.flag("--json")) return fail(Code::invalid, "knobs show: --markdown or --json, not both");
  if (!opened.program)
    return fail(Code::invalid, "{}: a T1 file has no trade-off table; --markdown is for programs",
                opened.place);
  print_out(program_markdown(*opened.program, arguments.value("--language")));
  return exit_ok;
}

Result<int> run_show(const Arguments& arguments) {
  FURLONG_TRY(const auto opened, open(arguments));
  if (arguments.flag("--markdown")) return show_markdown(arguments, opened);
  Json out = Json::array();
  for (const auto& edition : opened.editions) {
    if (arguments.flag("--json")) {
      out.push_back(Json{{"language", edition.language}, {"lattice", lattice::show_json(*edition.lattice)}});
    } else {
      print_out(fmt::format("{} ({})\n\n{}\n", opened.name, edition.language,
                            lattice::show_text(*edition.lattice)));
    }
  }
  if (arguments.flag("--json"))
    print_out(json_pretty(Json{{"schema", 1}, {"program", opened.name}, {"editions", out}}));
  return exit_ok;
}

Result<int> run_lint(const Arguments& arguments) {
  FURLONG_TRY(const auto opened, open(arguments));
  Json out = Json::array();
  int count = 0;
  for (const auto& edition : opened.editions) {
    const lattice::LintOptions lint_options{.known_names = edition.known_names,
                                            .facts = edition.facts,
                                            .user_file = !arguments.flag("--strict") && !opened.shipped};
    for (const auto& finding : lattice::lint(*edition.lattice, lint_options)) {
      ++count;
      out.push_back(Json{{"language", edition.language},
                         {"where", finding.where},
                         {"what", finding.what},
                         {"line", finding.line}});
      if (!arguments.flag("--json"))
        print_out(fmt::format("{}{}: {} ({}): {}\n", opened.place,
                              finding.line > 0 ? fmt::format(":{}", finding.line) : "", finding.where,
                              edition.language, finding.what));
    }
  }
  if (arguments.flag("--json")) {
    print_out(json_pretty(Json{{"schema", 1}, {"findings", out}}));
  } else {
    if (count == 0) print_out("clean\n");
    for (const std::string& note : opened.notes) print_out("note: " + note + "\n");
  }
  return count == 0 ? exit_ok : exit_failed;
}

}  // namespace

CommandSpec knobs_list_command() {
  return {
      .name = "knobs list",
      .summary = "Count the knobs, valid points and catalogue of a program, and name its variants.",
      .description =
          "The variants named are those that a race takes without --variants: the catalogue, or where the "
          "program has none all valid points, up to 64. A T1 file can be counted and linted, not raced.",
      .positionals = {program_positional()},
      .options = options({}),
      .examples = {{"furlong knobs list lottery", ""},
                   {"furlong knobs list examples/reduction/reduction.toml", ""}},
      .run = run_list};
}

CommandSpec knobs_show_command() {
  return {.name = "knobs show",
          .summary =
              "Print the trade-off map: each knob with its default, its values, where it wins and where it "
              "loses.",
          .description = "",
          .positionals = {program_positional()},
          .options =
              options({{.name = "--markdown",
                        .value_name = "",
                        .help = "The trade-off table in Markdown, for a page: the knobs of all languages."}}),
          .examples = {{"furlong knobs show lottery --language cuda", ""},
                       {"furlong knobs show gemv", ""},
                       {"furlong knobs show my_kernel.toml --markdown", ""}},
          .run = run_show};
}

CommandSpec knobs_lint_command() {
  return {.name = "knobs lint",
          .summary =
              "Check a lattice: trade-off sentences, defaults, names, constraints, catalogue, reachability.",
          .description = "Exit 0 when clean, 3 with one line a finding.",
          .positionals = {program_positional()},
          .options = options({{.name = "--strict",
                               .value_name = "",
                               .help = "Ask of a user's file what shipped programs are asked: both trade-off "
                                       "sentences for each knob."}}),
          .examples = {{"furlong knobs lint my_kernel.toml", ""}},
          .run = run_lint};
}

}  // namespace furlong::app
