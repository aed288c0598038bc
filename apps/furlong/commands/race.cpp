#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "apps/furlong/backends.h"
#include "apps/furlong/commands.h"
#include "apps/furlong/report/html.h"
#include "apps/furlong/report/text.h"
#include "apps/furlong/session.h"
#include "apps/furlong/simulation.h"
#include "furlong/base/json.h"
#include "furlong/base/os/interrupt.h"
#include "furlong/base/os/paths.h"
#include "furlong/base/os/process.h"
#include "furlong/base/text.h"
#include "furlong/race/dispatch.h"
#include "furlong/race/explain.h"
#include "furlong/record/records.h"

namespace furlong::app {
namespace {

Result<race::Options> race_options(const Arguments& arguments) {
  race::Options options;
  FURLONG_TRY(options.window_ms, arguments.number("--window", 5, 0.1, 10'000));
  FURLONG_TRY(const double threshold, arguments.number("--threshold", 0.5, 0, 50));
  options.rules.threshold = threshold / 100;
  FURLONG_TRY(options.budget_s, arguments.number("--race-budget-s", 120, 0.1, 1e6));
  FURLONG_TRY(options.max_pause_ms, arguments.number("--max-pause-ms", 0, 0, 1e9));
  FURLONG_TRY(options.horizon_s, arguments.number("--horizon", 0, 0, 1e9));
  FURLONG_TRY(const std::int64_t seed, arguments.integer("--seed", 1, 0));
  options.seed = static_cast<std::uint64_t>(seed);
  options.classic = arguments.flag("--classic");
  FURLONG_TRY(const std::int64_t rounds, arguments.integer("--rounds", 3, 1, 100));
  options.rounds = static_cast<int>(rounds);
  options.metric = arguments.value("--metric") == "energy" ? race::Metric::energy : race::Metric::rate;
  options.cache = arguments.value("--cache") == "cold" ? race::CacheState::cold : race::CacheState::hot;
  options.trial = !arguments.flag("--no-trial");
  FURLONG_TRY(options.trial_timeout_s, arguments.number("--trial-timeout-s", 20, 0.1, 3600));
  options.keep_samples = arguments.given("--json");
  return options;
}

/// One size of --sizes n=1024,4096: the parameter's values one by one, joined to the fixed --problem values.
using Problem = std::vector<std::pair<std::string, lattice::Value>>;

Result<std::vector<Problem>> problems_of(const Arguments& arguments) {
  FURLONG_TRY(const Problem fixed, problem_values(arguments.values("--problem")));
  std::vector<Problem> problems{fixed};
  for (const std::string& text : arguments.values("--sizes")) {
    const auto equals = text.find('=');
    std::vector<std::string> sizes;
    if (equals != std::string::npos) sizes = split(std::string_view(text).substr(equals + 1), ',');
    if (sizes.empty() || equals == 0 || std::ranges::find(sizes, "") != sizes.end())
      return fail(Code::invalid, "--sizes takes NAME=V1,V2,…, not '{}'", text);
    std::vector<Problem> grown;
    for (const std::string& value : sizes) {
      FURLONG_TRY(const Problem one, problem_values({text.substr(0, equals) + "=" + value}));
      for (Problem problem : problems) {
        problem.insert(problem.end(), one.begin(), one.end());
        grown.push_back(std::move(problem));
      }
    }
    problems = std::move(grown);
  }
  return problems;
}

std::string problem_text(const Problem& problem) {
  std::vector<std::string> parts;
  for (const auto& [name, value] : problem) parts.push_back(name + "=" + value.text());
  return join(parts, ",");
}

/// Whether `file` can be written, asked before the race: a race of minutes is not to end in "no such folder".
/// Nothing is made or changed.
Status can_write(const std::string& option, const std::filesystem::path& file) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (fs::is_directory(file, error))
    return fail(Code::invalid, "{}: {} is a folder, not a file", option, file.string());
  fs::path there = fs::exists(file, error) ? file : fs::absolute(file, error).parent_path();
  while (!fs::exists(there, error) && there.has_relative_path()) there = there.parent_path();
  if (there != file && !fs::is_directory(there, error))
    return fail(Code::invalid, "{}: {}: {} is no folder", option, file.string(), there.string());
  if (::access(there.c_str(), W_OK) != 0)
    return fail(Code::invalid, "{}: {} cannot be written: {}: {}", option, file.string(), there.string(),
                std::generic_category().message(errno));
  return {};
}

Status can_write_outputs(const Arguments& arguments) {
  for (const char* option : {"--report", "--json", "--record"}) {
    if (!arguments.given(option) || arguments.value(option) == "-") continue;
    FURLONG_CHECK(can_write(option, arguments.value(option)));
  }
  return {};
}

/// Everything that lives as long as the command: devices, quarantine, the simulated device's clock.
struct Stage {
  device::Registry registry;
  Simulation simulation;
  std::unique_ptr<device::Device> device;
  std::unique_ptr<device::Device> host;
  std::optional<race::Quarantine> quarantine;
  program::ProgramRequest request;
  std::shared_ptr<const program::Program> program;
  std::string language;
  std::vector<std::string> trial_command;
};

Status open(Stage& stage, const std::string& address) {
  if (address.starts_with("sim")) {
    FURLONG_TRY(stage.device, stage.simulation.open(address));
  } else {
    FURLONG_TRY(stage.device, open_device(stage.registry, address));
  }
  return {};
}

Status set_up(Stage& stage, const Arguments& arguments) {
  add_backends(stage.registry);
  FURLONG_CHECK(open(stage, arguments.value("--device", "auto")));
  FURLONG_TRY(stage.request, program_request(arguments));
  FURLONG_TRY(stage.program,
              open_trusted(stage.request, stage.device->facts(), arguments.flag("--allow-unsigned")));
  stage.language = arguments.value("--language");
  if (stage.language.empty()) {
    FURLONG_TRY(stage.language, choose_language(*stage.program, stage.device->facts()));
  }
  if (stage.program->check.reference == program::ReferenceKind::host) {
    FURLONG_TRY(stage.host, stage.registry.open("host:0"));
  }
  FURLONG_TRY(stage.quarantine, open_quarantine());
  FURLONG_TRY(const auto executable, own_executable());
  stage.trial_command = {executable.string(), "trial"};
  return {};
}

Result<race::Outcome> race_once(Stage& stage, const program::Instance& instance, const Problem& problem,
                                const race::Options& options, const Arguments& arguments,
                                ProgressLine& progress, std::stop_token stop) {
  const std::vector<std::string> lossy = arguments.values("--allow-lossy");
  FURLONG_TRY(const auto points, instance.select(arguments.value("--variants", "catalogue"), lossy));
  race::Context context;
  context.device = stage.device.get();
  context.host = stage.host.get();
  context.clock = stage.device->facts().virtual_time ? &stage.simulation.clock() : &system_clock();
  context.quarantine = stage.device->facts().virtual_time ? nullptr : &*stage.quarantine;
  if (!stage.device->facts().virtual_time) context.trial_command = stage.trial_command;
  Json trial_program = program_to_json(stage.request, problem, stage.language);
  trial_program["device"] = stage.device->facts().address();
  context.trial_program_json = json_line(trial_program);
  context.progress = [&](const race::Progress& state) { progress.show(state); };
  context.stop = stop;
  context.reopen = [&stage, address = stage.device->facts().address()]() -> Result<device::Device*> {
    stage.device.reset();  // before it is opened again: some cards are held by one process, or one context
    FURLONG_CHECK(open(stage, address));
    return stage.device.get();
  };
  stage.simulation.attach(instance);
  return race::run(instance, points, options, context);
}

Status write_records(const Arguments& arguments, const program::Instance& instance,
                     const race::Outcome& outcome) {
  if (!arguments.given("--record")) return {};
  return record::append_record(arguments.value("--record"), race::make_record(instance, outcome));
}

/// What goes below the table when asked for.
Result<std::string> extras(const Arguments& arguments, const program::Instance& instance,
                           const race::Outcome& outcome) {
  std::string out;
  if (arguments.flag("--explain")) out += "\n" + race::explain(instance, outcome) + "\n";
  if (arguments.flag("--pareto")) out += "\n" + pareto_table(instance, outcome);
  if (arguments.flag("--line")) out += "\n" + race::race_line(instance, outcome) + "\n";
  return out;
}

std::string command_text(const Arguments& arguments) {
  std::string text = "furlong race";
  for (const auto& word : arguments.positionals) text += " " + word;
  for (const auto& [name, values] : arguments.options)
    for (const auto& value : values) text += value.empty() ? " " + name : " " + name + " " + value;
  return text;
}

Result<int> run(const Arguments& arguments) {
  FURLONG_TRY(const race::Options options, race_options(arguments));
  FURLONG_TRY(const auto problems, problems_of(arguments));
  FURLONG_CHECK(can_write_outputs(arguments));
  // Standard output is one thing only: with --json - it is the document, and what people read goes beside it.
  const auto say = arguments.value("--json") == "-" ? print_err : print_out;
  int code = exit_ok;
  Stage stage;
  const std::stop_token stop = stop_on_interrupt();
  FURLONG_CHECK(set_up(stage, arguments));
  ProgressLine progress(stderr, !arguments.flag("--quiet"));
  Json documents = Json::array();
  race::DispatchTable dispatch;
  for (const Problem& problem : problems) {
    FURLONG_TRY(const auto instance, program::Instance::make(stage.program, stage.language, problem,
                                                             device_facts(stage.device->facts())));
    auto outcome = race_once(stage, instance, problem, options, arguments, progress, stop);
    progress.clear();
    if (stop.stop_requested()) {
      print_err("furlong race: stopped\n");
      return 128 + interrupt_signal();
    }
    if (!outcome) return Error(std::move(outcome).error());
    if (!outcome->variants[0].rate) code = exit_failed;
    if (problems.size() > 1) say(problem_text(problem) + "\n");
    say(race_table(instance, *outcome));
    FURLONG_TRY(const std::string more, extras(arguments, instance, *outcome));
    say(more);
    FURLONG_CHECK(write_records(arguments, instance, *outcome));
    if (arguments.given("--report")) {
      std::filesystem::path file = arguments.value("--report");
      if (problems.size() > 1)
        file.replace_filename(
            fmt::format("{}-{}{}", file.stem().string(), documents.size() + 1, file.extension().string()));
      FURLONG_CHECK(system_files().write_atomic(file, html_report(instance, *outcome,
                                                                  {.command = command_text(arguments),
                                                                   .date = outcome->ts,
                                                                   .threshold = options.rules.threshold})));
      say("report: " + file.string() + "\n");
    }
    documents.push_back(race::to_json(instance, *outcome, options));
    dispatch.add(instance, *outcome);
    if (problems.size() > 1) say("\n");
  }
  if (problems.size() > 1) say(dispatch.text());
  if (arguments.given("--json")) {
    const Json document = problems.size() == 1
                              ? documents[0]
                              : Json{{"schema", 1}, {"races", documents}, {"dispatch", dispatch.json()}};
    const std::string file = arguments.value("--json");
    if (file == "-") {
      print_out(json_pretty(document));
    } else {
      FURLONG_CHECK(system_files().write_atomic(file, json_pretty(document)));
    }
  }
  return code;
}

}  // namespace

CommandSpec race_command() {
  std::vector<OptionSpec> options{
      {.name = "--device",
       .value_name = "D",
       .help = "Where to race: opencl:0, host:0, sim:0. Default: the best device here.",
       .complete = "device"},
      {.name = "--variants",
       .value_name = "LIST",
       .help = "Variants a,b,c, or catalogue (default), or all. Base is always in."},
      {.name = "--sizes",
       .value_name = "N=V1,V2,…",
       .help = "Race each of several problem sizes and print a dispatch table.",
       .repeatable = true},
      {.name = "--race-budget-s",
       .value_name = "S",
       .help =
           "Seconds for compiles, gates and heats from the moment base is ready. Default 120, at most 540."},
      {.name = "--window",
       .value_name = "MS",
       .help = "Shortest timed window of a variant in a heat. Default 5."},
      {.name = "--threshold",
       .value_name = "PCT",
       .help = "Gain over base that a winner must have. Default 0.5."},
      {.name = "--seed",
       .value_name = "N",
       .help = "Seed of the heats' order and of the random inputs. Default 1."},
      {.name = "--classic",
       .value_name = "",
       .help = "The plain rule instead: each variant alone for 2 s, the fastest wins."},
      {.name = "--rounds", .value_name = "N", .help = "Rounds of --classic. Default 3."},
      {.name = "--metric",
       .value_name = "M",
       .help = "What decides. energy needs a device with an energy counter.",
       .choices = {"rate", "energy"}},
      {.name = "--cache",
       .value_name = "C",
       .help = "State of the caches before each launch. Default hot.",
       .choices = {"hot", "cold"}},
      {.name = "--horizon",
       .value_name = "S",
       .help = "Seconds that the winner would serve: the race stops when it no longer pays for itself."},
      {.name = "--max-pause-ms", .value_name = "MS", .help = "Most timed time in all."},
      {.name = "--allow-lossy",
       .value_name = "KNOB",
       .help = "Admit the values of this knob that lower precision.",
       .repeatable = true},
      {.name = "--pareto",
       .value_name = "",
       .help =
           "Also list the variants that are not dominated over rate, energy, registers, spills, memory and "
           "error, with their figures."},
      {.name = "--explain", .value_name = "", .help = "Also say in two sentences why the winner won."},
      {.name = "--line", .value_name = "", .help = "Also print the race line (docs/formats/race-line.md)."},
      {.name = "--report",
       .value_name = "FILE",
       .help = "Write one self-contained HTML page.",
       .complete = "file"},
      {.name = "--json",
       .value_name = "FILE",
       .help = "Write everything measured, raw samples included; - for standard output (the table then goes "
               "to standard error).",
       .complete = "file"},
      {.name = "--record",
       .value_name = "FILE",
       .help = "Append the race record to this JSON-lines file.",
       .complete = "file"},
      {.name = "--no-trial",
       .value_name = "",
       .help = "Skip the trial process: a variant that hangs or traps then takes the race with it."},
      {.name = "--trial-timeout-s",
       .value_name = "S",
       .help = "Time for one variant in the trial process. Default 20."},
      {.name = "--quiet", .value_name = "", .help = "No progress line."},
  };
  for (auto& option : program_options()) options.push_back(option);
  return {.name = "race",
          .summary =
              "Race the variants of a program on a device and say which one is really faster, or that it is "
              "a dead heat.",
          .description =
              "Every variant is compiled, checked against the reference, then timed in heats against base in "
              "shuffled order. A "
              "winner beats base by the threshold with confidence and passes a second check on fresh inputs; "
              "else base stays.\n"
              "A program file, a pack and a host kernel are code and run as you.\n"
              "Exit 0: decided (a dead heat is a decision); 2: bad usage or input; 3: base failed its gate, "
              "or nothing could be "
              "timed; 4: no device.",
          .positionals = {{.name = "PROGRAM",
                           .help = "A program file (.toml), a pack's folder, or lottery (the default).",
                           .required = false,
                           .choices = {"lottery"}}},
          .options = options,
          .examples = {{"furlong race lottery --device opencl:0", ""},
                       {"furlong race my_kernel.toml --report race.html --explain", ""},
                       {"furlong race my_kernel.toml --sizes n=1024,65536,1048576 --json race.json", ""},
                       {"furlong race pack --variants u2,u8 --race-budget-s 30", ""}},
          .run = run};
}

}  // namespace furlong::app
