#include "apps/furlong/backends.h"
#include "apps/furlong/commands.h"
#include "apps/furlong/session.h"
#include "furlong/base/json.h"
#include "furlong/base/table.h"
#include "furlong/lattice/lint.h"
#include "furlong/lattice/space.h"

namespace furlong::app {
namespace {

struct Opened {
  std::shared_ptr<const program::Program> program;
  std::vector<const program::Edition*> editions;  ///< those asked for
  lattice::Environment facts;                     ///< of the device, or a stand-in without one
};

/// The lattice is read without a device; facts of one are used when --device names it.
Result<Opened> open(const Arguments& arguments) {
  Opened out;
  FURLONG_TRY(auto request, program_request(arguments));
  if (request.geometry.empty()) request.geometry = "small";
  FURLONG_TRY(out.program, as_input(program::open_program(request)));
  const std::string language = arguments.value("--language");
  for (const auto& edition : out.program->editions)
    if (language.empty() || edition.language == language) out.editions.push_back(&edition);
  if (out.editions.empty())
    return fail(Code::invalid, "program '{}' has no text in '{}'", out.program->name, language);
  device::Facts generic;
  generic.silicon.arch = "sm_90";
  generic.backend = "cuda";
  generic.warp = 32;
  generic.max_threads_per_block = 1024;
  generic.max_shared_bytes = 48 << 10;
  generic.silicon.multiprocessors = 1;
  generic.silicon.memory_bytes = 16ull << 30;
  out.facts = device_facts(generic);
  if (arguments.given("--device")) {
    device::Registry registry;
    add_backends(registry);
    FURLONG_TRY(const auto device, open_device(registry, arguments.value("--device")));
    out.facts = device_facts(device->facts());
  }
  return out;
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
          .help = "A program file (.toml), a pack's folder, or lottery.",
          .required = false,
          .choices = {"lottery"}};
}

Result<program::Instance> bind(const Opened& opened, const program::Edition& edition,
                               const Arguments& arguments) {
  FURLONG_TRY(const auto problem, problem_values(arguments.values("--problem")));
  return program::Instance::make(opened.program, edition.language, problem, opened.facts);
}

Result<int> run_list(const Arguments& arguments) {
  FURLONG_TRY(const auto opened, open(arguments));
  Json out = Json::array();
  Table table;
  for (const char* heading : {"language", "knobs", "valid points", "catalogue", "constraints"})
    table.column(heading);
  std::string names;
  for (const auto* edition : opened.editions) {
    FURLONG_TRY(const auto instance, bind(opened, *edition, arguments));
    FURLONG_TRY(const auto space, lattice::Space::build(edition->lattice, instance.facts()));
    const auto& catalogue = edition->lattice.catalogue;
    table.row({edition->language, std::to_string(edition->lattice.knobs.size()),
               std::to_string(space.count()), std::to_string(catalogue.size()),
               std::to_string(edition->lattice.constraints.size())});
    names += fmt::format("{}: {}\n", edition->language, fmt::join(catalogue, " "));
    std::vector<std::string> knob_names;
    for (const auto& knob : edition->lattice.knobs) knob_names.push_back(knob.name);
    out.push_back(Json{{"language", edition->language},
                       {"knobs", knob_names},
                       {"valid_points", space.count()},
                       {"product", space.product()},
                       {"catalogue", catalogue}});
  }
  if (arguments.flag("--json")) {
    print_out(json_pretty(Json{{"schema", 1}, {"program", opened.program->name}, {"editions", out}}));
  } else {
    print_out(table.text() + "\n" + names);
  }
  return exit_ok;
}

Result<int> run_show(const Arguments& arguments) {
  FURLONG_TRY(const auto opened, open(arguments));
  Json out = Json::array();
  for (const auto* edition : opened.editions) {
    if (arguments.flag("--json")) {
      out.push_back(Json{{"language", edition->language}, {"lattice", lattice::show_json(edition->lattice)}});
    } else {
      print_out(fmt::format("{} ({})\n\n{}\n", opened.program->name, edition->language,
                            lattice::show_text(edition->lattice)));
    }
  }
  if (arguments.flag("--json"))
    print_out(json_pretty(Json{{"schema", 1}, {"program", opened.program->name}, {"editions", out}}));
  return exit_ok;
}

Result<int> run_lint(const Arguments& arguments) {
  FURLONG_TRY(const auto opened, open(arguments));
  Json out = Json::array();
  int count = 0;
  for (const auto* edition : opened.editions) {
    FURLONG_TRY(const auto instance, bind(opened, *edition, arguments));
    lattice::LintOptions lint_options;
    for (const auto& [name, value] : instance.problem()) lint_options.known_names.push_back(name);
    for (const auto& [name, value] : opened.facts) lint_options.known_names.push_back(name);
    lint_options.facts = instance.facts();
    lint_options.user_file = !arguments.flag("--strict") && opened.program->name != "lottery";
    for (const auto& finding : lattice::lint(edition->lattice, lint_options)) {
      ++count;
      out.push_back(Json{{"language", edition->language},
                         {"where", finding.where},
                         {"what", finding.what},
                         {"line", finding.line}});
      if (!arguments.flag("--json")) {
        const std::string place =
            opened.program->file.empty() ? opened.program->name : opened.program->file.string();
        print_out(fmt::format("{}{}: {} ({}): {}\n", place,
                              finding.line > 0 ? fmt::format(":{}", finding.line) : "", finding.where,
                              edition->language, finding.what));
      }
    }
  }
  if (arguments.flag("--json")) print_out(json_pretty(Json{{"schema", 1}, {"findings", out}}));
  if (count == 0 && !arguments.flag("--json")) print_out("clean\n");
  return count == 0 ? exit_ok : exit_failed;
}

}  // namespace

CommandSpec knobs_list_command() {
  return {.name = "knobs list",
          .summary = "Count the knobs, valid points and catalogue of a program, and name its variants.",
          .description = "",
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
          .options = options({}),
          .examples = {{"furlong knobs show lottery --language cuda", ""}},
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
