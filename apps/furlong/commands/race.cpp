#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include "apps/furlong/backends.h"
#include "apps/furlong/ceilings.h"
#include "apps/furlong/commands.h"
#include "apps/furlong/outputs.h"
#include "apps/furlong/report/html.h"
#include "apps/furlong/report/text.h"
#include "apps/furlong/session.h"
#include "apps/furlong/simulation.h"
#include "furlong/base/json.h"
#include "furlong/base/os/guard.h"
#include "furlong/base/os/interrupt.h"
#include "furlong/base/os/paths.h"
#include "furlong/base/os/process.h"
#include "furlong/base/text.h"
#include "furlong/race/ceiling.h"
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
  FURLONG_TRY(options.budget_s, arguments.number("--race-budget-s", 120, 0.1, 540));
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

/// While it lives, what goes to standard output goes to standard error: kernels that print are heard, and do
/// not spoil the table or the document.
class KernelsSpeakAside {
 public:
  KernelsSpeakAside() {
    std::fflush(stdout);
    failed_ = std::ferror(stdout) != 0;
    kept_ = ::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
    if (kept_ >= 0 && ::dup2(STDERR_FILENO, STDOUT_FILENO) < 0) give_back();
  }
  ~KernelsSpeakAside() { give_back(); }
  KernelsSpeakAside(const KernelsSpeakAside&) = delete;
  KernelsSpeakAside& operator=(const KernelsSpeakAside&) = delete;

 private:
  void give_back() {
    if (kept_ < 0) return;
    std::fflush(stdout);
    if (!failed_) std::clearerr(stdout);  // a kernel's words may be lost without harm, ours may not
    ::dup2(kept_, STDOUT_FILENO);
    ::close(std::exchange(kept_, -1));
  }
  int kept_ = -1;
  bool failed_ = false;
};

/// What one attempt of the command knows of its guard and of the attempts before it.
struct Attempt {
  Hand* hand = nullptr;  ///< null: no guard
  std::vector<race::Fallen> fallen;
  std::size_t recorded = 0;  ///< races whose record an earlier attempt has written
  double budget_left = 1;    ///< of each race's budget
};

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
  std::optional<device::Ceilings> ceilings;  ///< where they are known
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

/// Kept ceilings cost nothing; measuring them takes up to a minute and is done only when asked for.
Status find_ceilings(Stage& stage, const Arguments& arguments, std::stop_token stop) {
  stage.ceilings = kept_ceilings(stage.device->facts());
  if (stage.ceilings || !arguments.flag("--ceilings")) return {};
  FURLONG_TRY(stage.ceilings, measure_and_keep(*stage.device, stop, arguments.flag("--quiet")));
  return {};
}

Result<race::Outcome> race_once(Stage& stage, const program::Instance& instance, const Problem& problem,
                                const race::Options& options, const Arguments& arguments,
                                const Attempt& attempt, ProgressLine& progress, std::stop_token stop) {
  const std::vector<std::string> lossy = arguments.values("--allow-lossy");
  FURLONG_TRY(const auto points, instance.select(arguments.value("--variants", "catalogue"), lossy));
  race::Context context;
  context.device = stage.device.get();
  context.host = stage.host.get();
  context.clock = stage.device->facts().virtual_time ? &stage.simulation.clock() : &system_clock();
  if (!stage.device->facts().virtual_time) context.quarantine = &*stage.quarantine;
  if (!stage.device->facts().virtual_time) context.trial_command = stage.trial_command;
  Json trial_program = program_to_json(stage.request, problem, stage.language);
  trial_program["device"] = stage.device->facts().address();
  context.trial_program_json = json_line(trial_program);
  context.progress = [&](const race::Progress& state) { progress.show(state); };
  context.stop = stop;
  context.hand = attempt.hand;
  context.hand_limit_s = options.trial_timeout_s;
  context.fallen = attempt.fallen;
  context.reopen = [&stage, &attempt,
                    address = stage.device->facts().address()]() -> Result<device::Device*> {
    stage.device.reset();  // before it is opened again: some cards are held by one process, or one context
    const Status opened = open(stage, address);
    if (opened) return stage.device.get();
    if (attempt.hand == nullptr) return opened.error();
    // The platform answers nothing more in this process. Its hand holds who took the device, so that the
    // guard begins anew in another process without that variant.
    std::_Exit(exit_failed);
  };
  stage.simulation.attach(instance);
  const KernelsSpeakAside aside;
  return race::run(instance, points, options, context);
}

Status write_records(const Arguments& arguments, const program::Instance& instance,
                     const race::Outcome& outcome) {
  if (!arguments.given("--record")) return {};
  return record::append_record(arguments.value("--record"), race::make_record(instance, outcome));
}

/// What goes below the table when asked for.
Result<std::string> extras(const Arguments& arguments, const program::Instance& instance,
                           const race::Outcome& outcome, bool ceilings_known) {
  std::string out;
  if (arguments.flag("--explain")) {
    out += "\n" + race::explain(instance, outcome) + "\n";
    if (!ceilings_known && !outcome.device.virtual_time)
      out += fmt::format(
          "How near it comes to what the device can do at best is not known: furlong devices "
          "--ceilings --device {} measures that once.\n",
          outcome.device.address());
  }
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

/// One race's outcome to wherever it was asked to go. What cannot be written does not keep the rest from
/// being written; the first Error is the answer.
class Outputs {
 public:
  explicit Outputs(const Arguments& arguments, std::size_t races) : arguments_(arguments), races_(races) {}

  /// `record`: an earlier attempt has not written its record.
  void add(const program::Instance& instance, const race::Outcome& outcome, const Problem& problem,
           const race::Options& options, bool record, bool ceilings_known) {
    ++number_;
    if (races_ > 1) print(problem_text(problem) + "\n");
    print(race_table(instance, outcome));
    if (auto more = extras(arguments_, instance, outcome, ceilings_known)) {
      print(*more);
    } else {
      keep(more.error());
    }
    if (record) keep(write_records(arguments_, instance, outcome));
    if (arguments_.given("--report")) write_report(instance, outcome, options);
    documents_.push_back(race::to_json(instance, outcome, options));
    dispatch_.add(instance, outcome);
    if (races_ > 1) print("\n");
  }

  Status finish() {
    if (races_ > 1) print(dispatch_.text());
    if (arguments_.given("--json")) {
      const Json document = races_ == 1
                                ? documents_[0]
                                : Json{{"schema", 1}, {"races", documents_}, {"dispatch", dispatch_.json()}};
      const std::string file = arguments_.value("--json");
      if (file == "-") {
        print_out(json_pretty(document));
      } else {
        keep(system_files().write_atomic(file, json_pretty(document)));
      }
    }
    return first_;
  }

 private:
  // Standard output is one thing only: with --json - it is the document, and what people read goes beside it.
  void print(std::string_view text) const {
    arguments_.value("--json") == "-" ? print_err(text) : print_out(text);
  }
  void keep(const Status& status) {
    if (!status && first_) first_ = status;
  }
  void write_report(const program::Instance& instance, const race::Outcome& outcome,
                    const race::Options& options) {
    std::filesystem::path file = arguments_.value("--report");
    if (races_ > 1)
      file.replace_filename(fmt::format("{}-{}{}", file.stem().string(), number_, file.extension().string()));
    const Status written = system_files().write_atomic(
        file,
        html_report(
            instance, outcome,
            {.command = command_text(arguments_), .date = outcome.ts, .threshold = options.rules.threshold}));
    if (written) print("report: " + file.string() + "\n");
    keep(written);
  }

  const Arguments& arguments_;
  std::size_t races_;
  std::size_t number_ = 0;
  Json documents_ = Json::array();
  race::DispatchTable dispatch_;
  Status first_;
};

/// All races of the command, in this process.
Result<int> run_here(const Arguments& arguments, race::Options options, const std::vector<Problem>& problems,
                     Attempt attempt) {
  int code = exit_ok;
  Stage stage;
  const std::stop_token stop = stop_on_interrupt();
  FURLONG_CHECK(set_up(stage, arguments));
  options.budget_s *= attempt.budget_left;
  const Status ceilings = find_ceilings(stage, arguments, stop);
  if (stop.stop_requested()) {
    print_err("furlong race: stopped\n");
    return 128 + interrupt_signal();
  }
  FURLONG_CHECK(ceilings);
  ProgressLine progress(stderr, !arguments.flag("--quiet"));
  Outputs outputs(arguments, problems.size());
  for (std::size_t i = 0; i < problems.size(); ++i) {
    FURLONG_TRY(const auto instance, program::Instance::make(stage.program, stage.language, problems[i],
                                                             device_facts(stage.device->facts())));
    auto outcome = race_once(stage, instance, problems[i], options, arguments, attempt, progress, stop);
    for (race::Fallen& fallen : attempt.fallen) fallen.at_ms.reset();  // told by the first race that follows
    progress.clear();
    if (stop.stop_requested()) {
      print_err("furlong race: stopped\n");
      return 128 + interrupt_signal();
    }
    if (!outcome) return Error(std::move(outcome).error());
    if (!outcome->variants[0].rate) code = exit_failed;
    if (stage.ceilings) race::add_shares(instance, *stage.ceilings, *outcome);
    outputs.add(instance, *outcome, problems[i], options, i >= attempt.recorded, stage.ceilings.has_value());
    if (attempt.hand != nullptr) attempt.hand->reach(static_cast<std::uint32_t>(i + 1));
  }
  FURLONG_CHECK(outputs.finish());
  // Unloading the kernels runs their code once more; all that was measured is out by then.
  std::fflush(stdout);
  if (attempt.hand != nullptr)
    attempt.hand->reach(static_cast<std::uint32_t>(problems.size()) + 1 + static_cast<std::uint32_t>(code));
  return code;
}

/// The race in a process under guard: a kernel or reference that ends it is named, and the race begins anew
/// without that variant.
Result<int> run_guarded_races(const Arguments& arguments, const race::Options& options,
                              const std::vector<Problem>& problems) {
  constexpr std::size_t kMostFallen = 8;
  constexpr double kLeastBudget = 0.25;  // that an attempt is given, whatever the one before used up
  Attempt attempt;
  const double start_ms = system_clock().now_ms();
  for (;;) {
    FURLONG_TRY(const GuardEnd end, run_guarded([&](Hand& hand) {
                  attempt.hand = &hand;
                  return end_of_command(run_here(arguments, options, problems, attempt));
                }));
    if (end.finished) return end.code;
    if (end.end.signal == SIGPIPE &&
        end.kind == 0) {  // the reader of our output is gone, as of any program's
      ::signal(SIGPIPE, SIG_DFL);
      ::raise(SIGPIPE);
      return 128 + SIGPIPE;
    }
    if (!arguments.flag("--quiet") && isatty(STDERR_FILENO) == 1) print_err("\r\033[K");
    if (end.interrupted != 0) {
      print_err("furlong race: stopped\n");
      return 128 + end.interrupted;
    }
    if (end.milestone > problems.size()) {
      print_err(fmt::format(
          "furlong race: all is written, but unloading the kernels ended the process ({})\n", end.text()));
      return static_cast<int>(end.milestone - problems.size() - 1);
    }
    if (end.kind == 0)
      return fail(
          Code::internal,
          "the race's process ended outside any launch: {} (does a kernel run code when it is loaded?); "
          "nothing is quarantined",
          end.text());
    race::Fallen fallen{end.name, (end.hung ? "hang: " : "trap: ") + end.text(), system_clock().now_ms()};
    const bool lost = end.kind == static_cast<std::uint32_t>(race::Holding::lost);
    if (const std::size_t cut = end.name.find('\n'); lost && cut != std::string::npos) {
      fallen.variant = end.name.substr(0, cut);
      fallen.why = end.name.substr(cut + 1);
    }
    const bool variant = lost || end.kind == static_cast<std::uint32_t>(race::Holding::variant);
    if (!end.by_itself())
      return fail(Code::internal,
                  "the race's process ended while '{}' ran: {}; nothing is quarantined, race again", end.name,
                  end.text());
    if (!variant)
      return fail(Code::mismatch,
                  "the reference ended the race: {}: {}{}; its outputs are needed to check the variants",
                  end.name, end.text(),
                  end.hung ? " (--trial-timeout-s S gives it 15 times S)" : std::string());
    const bool again = std::ranges::any_of(
        attempt.fallen, [&](const race::Fallen& earlier) { return earlier.variant == fallen.variant; });
    if (again || attempt.fallen.size() == kMostFallen)
      return fail(Code::mismatch, "{} variants ended the race's process, '{}' the last: {}",
                  attempt.fallen.size() + 1, fallen.variant, fallen.why);
    print_err(
        fmt::format("furlong race: '{}' ended the race's process ({}); the race begins anew without it\n",
                    fallen.variant, fallen.why));
    for (race::Fallen& earlier : attempt.fallen)
      earlier.at_ms.reset();  // its time was told, or lost with this one
    attempt.fallen.push_back(std::move(fallen));
    attempt.recorded = std::max<std::size_t>(attempt.recorded, end.milestone);
    const double used_s = 1e-3 * (system_clock().now_ms() - start_ms);
    attempt.budget_left = std::max(kLeastBudget, 1 - used_s / options.budget_s);
  }
}

Result<int> run(const Arguments& arguments) {
  FURLONG_TRY(const race::Options options, race_options(arguments));
  FURLONG_TRY(const auto problems, problems_of(arguments));
  FURLONG_CHECK(can_write_outputs(arguments, {"--report", "--json", "--record"}));
  if (!options.trial) return run_here(arguments, options, problems, {});
  return run_guarded_races(arguments, options, problems);
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
      {.name = "--ceilings",
       .value_name = "",
       .help = "Measure first what the device can do at best, unless that is known (furlong devices "
               "--ceilings): then each variant's share of it is shown."},
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
       .help = "No trial process, and no guard around the race: a variant that hangs or traps then takes the "
               "race with it. For debuggers."},
      {.name = "--trial-timeout-s",
       .value_name = "S",
       .help = "Time for one variant in the trial process, and for one window or gate of it in the race. "
               "Default 20."},
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
                           .help = "A program file (.toml), a pack's folder, or a shipped program's name "
                                   "(lottery, the default, or gemv).",
                           .required = false,
                           .choices = shipped_names()}},
          .options = options,
          .examples = {{"furlong race lottery --device opencl:0", ""},
                       {"furlong race gemv --device cuda:0 --problem n=28672,k=8192", ""},
                       {"furlong race my_kernel.toml --report race.html --explain", ""},
                       {"furlong race my_kernel.toml --sizes n=1024,65536,1048576 --json race.json", ""},
                       {"furlong race pack --variants u2,u8 --race-budget-s 30", ""}},
          .run = run};
}

}  // namespace furlong::app
