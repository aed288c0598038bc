#include <thread>

#include "apps/furlong/commands.h"
#include "apps/furlong/session.h"
#include "apps/furlong/shard_report.h"
#include "apps/furlong/shard_session.h"
#include "furlong/base/json.h"
#include "furlong/base/os/interrupt.h"
#include "furlong/base/os/memory.h"
#include "furlong/base/text.h"
#include "furlong/shard/make_plan.h"
#include "furlong/shard/make_profile.h"
#include "furlong/shard/profile_plan.h"

namespace furlong::app {
namespace {

namespace fs = std::filesystem;

Result<std::uint32_t> limit_units() {
  const char* text = std::getenv("FURLONG_SCAN_LIMIT_UNITS");
  if (text == nullptr || *text == '\0') return 0;
  const auto number = parse_integer(text);
  if (!number || *number < 1 || *number > std::numeric_limits<std::uint32_t>::max())
    return fail(Code::invalid, "FURLONG_SCAN_LIMIT_UNITS={}: it takes a number of units, from 1 on", text);
  return static_cast<std::uint32_t>(*number);
}

Result<shard::Sizing> sizing_of(const Arguments& arguments) {
  shard::Sizing sizing;
  FURLONG_TRY(sizing.budget_bytes, bytes_option(arguments, "--max-ram", kGiB));
  FURLONG_TRY(sizing.budget_seconds, arguments.number("--max-seconds", 0, 1e-9, 1e12));
  if (!arguments.given("--max-seconds")) sizing.budget_seconds = 0;
  if (sizing.budget_bytes == 0 && sizing.budget_seconds == 0)
    return fail(Code::invalid, "shard plan: say what a job may take: --max-ram G, --max-seconds S, or both");
  FURLONG_TRY(sizing.record_cap_bytes, bytes_option(arguments, "--record-cap", 1));
  return sizing;
}

// After a model, which has a share of its own.
Status apply_usable(const Arguments& arguments, shard::Sizing& sizing) {
  if (arguments.given("--usable")) {
    FURLONG_TRY(sizing.usable, arguments.number("--usable", sizing.usable, 0.01, 1));
  }
  return {};
}

Result<shard::PlanRequest> request_of(const Arguments& arguments, const OpenStore& open,
                                      const fs::path& out) {
  shard::PlanRequest request;
  FURLONG_TRY(request.sizing, sizing_of(arguments));
  FURLONG_CHECK(model_option(arguments, request.sizing, shard::WorkSource::measured));
  FURLONG_CHECK(apply_usable(arguments, request.sizing));
  FURLONG_TRY(request.fail_fast, fail_fast(arguments));
  FURLONG_TRY(request.limit_units, limit_units());
  FURLONG_TRY(const std::int64_t seed, arguments.integer("--seed", 1, 0));
  request.seed = static_cast<std::uint64_t>(seed);
  FURLONG_TRY(const std::int64_t workers, arguments.integer("--workers", 0, 1, 1024));
  request.workers = static_cast<unsigned>(arguments.given("--workers") ? workers : 0);
  request.cost_kind = open.executor->cost_kind();
  request.merge = !arguments.flag("--no-merge");
  const std::string order = arguments.value("--order", "auto");
  if (order == "plain") request.order = shard::OrderKind::plain;
  if (order == "sharing") request.order = shard::OrderKind::sharing;
  if (!arguments.flag("--dry-run")) request.journal = arguments.value("--journal", out.string() + ".journal");
  return request;
}

// With a failed unit named in both modes; a file of an earlier plan is not left to speak for this one.
Status write_failed(const shard::Plan& plan, const shard::Store& store, const fs::path& out) {
  const fs::path file = shard::beside_plan(out, "failed");
  if (plan.failed.empty()) return system_files().remove(file);
  FURLONG_TRY(const std::string csv, shard::failed_csv(plan.failed, store));
  FURLONG_CHECK(system_files().write_atomic(file, csv));
  print_err(fmt::format("furlong shard plan: {} units failed: {}\n", plan.failed.size(), file.string()));
  return {};
}

// The profile that --profile names, or one made here and now (--by-profile), or one that knows no costs
// (--shards alone).
Result<shard::Profile> profile_of(const Arguments& arguments, const OpenStore& open, const fs::path& out,
                                  std::stop_token stop, const shard::Progress& progress) {
  if (arguments.given("--profile")) {
    const fs::path file = arguments.value("--profile");
    FURLONG_TRY(shard::Profile profile, as_input(shard::read_profile(system_files(), file)));
    if (profile.store != open.store->digest())
      return fail(Code::mismatch, "{}: the profile is of the store {}, not {}", file.string(),
                  profile.store.brief(), open.store->digest().brief());
    return profile;
  }
  if (!arguments.flag("--by-profile")) return shard::profile_skeleton(*open.store, stop, progress);
  shard::ProfileRequest request;
  FURLONG_TRY(request.fail_fast, fail_fast(arguments));
  FURLONG_TRY(const std::int64_t workers, arguments.integer("--workers", 1, 1, 1024));
  request.workers = static_cast<unsigned>(workers);
  if (!arguments.flag("--dry-run")) request.journal = out.string() + ".fprof.journal";
  request.stop = stop;
  request.progress = progress;
  FURLONG_TRY(shard::ProfileOutcome made, shard::make_profile(open.store, *open.executor, request));
  if (!made.complete) {
    const auto& first = made.profile.failed.front();
    return fail(Code::mismatch, "unit '{}' failed: {}; mend it, or plan without what fails (--no-fail-fast)",
                one_line(made.profile.names[first.unit]), one_line(first.why));
  }
  return std::move(made.profile);
}

struct ProfilePlan {
  shard::Plan plan;
  std::vector<shard::Counters> counters;
  std::string text;
};

Result<ProfilePlan> plan_profile(const Arguments& arguments, const shard::Profile& profile,
                                 std::stop_token stop, const shard::Progress& progress) {
  if (arguments.given("--shards")) {
    shard::BalanceRequest request;
    FURLONG_TRY(const std::int64_t shards, arguments.integer("--shards", 0, 1, 10'000'000));
    request.shards = static_cast<std::uint32_t>(shards);
    FURLONG_TRY(const std::int64_t seed, arguments.integer("--seed", 1, 0));
    request.seed = static_cast<std::uint64_t>(seed);
    shard::Sizing none;
    FURLONG_TRY(request.model, model_option(arguments, none, shard::WorkSource::counters));
    request.stop = stop;
    FURLONG_TRY(shard::BalanceOutcome outcome, shard::balance_profile(profile, request));
    std::string text =
        fmt::format("balance  lightest {:.3f}, heaviest {:.3f} of the mean; cross bytes of all shards {}{}\n",
                    outcome.lightest, outcome.heaviest, human_bytes(outcome.objective_bytes),
                    outcome.cross_known ? "" : " (the profile has no references)");
    return ProfilePlan{std::move(outcome.plan), std::move(outcome.counters), std::move(text)};
  }
  shard::PackRequest request;
  FURLONG_TRY(request.sizing, sizing_of(arguments));
  FURLONG_TRY(request.model, model_option(arguments, request.sizing, shard::WorkSource::counters));
  FURLONG_CHECK(apply_usable(arguments, request.sizing));
  for (const std::string& text : arguments.values("--cap")) {
    const std::size_t equals = text.find('=');
    const auto most = parse_number(equals == text.npos ? "" : text.substr(equals + 1));
    if (!most || *most <= 0) return fail(Code::invalid, "--cap {}: it takes COUNTER=MOST", text);
    request.caps[text.substr(0, equals)] = *most;
  }
  const std::string order = arguments.value("--order", "auto");
  if (order == "plain") request.order = shard::OrderKind::plain;
  if (order == "sharing") request.order = shard::OrderKind::sharing;
  request.stop = stop;
  request.progress = progress;
  FURLONG_TRY(shard::PackOutcome outcome, shard::pack_profile(profile, request));
  std::string text = outcome.text();
  if (!text.ends_with('\n')) text += '\n';
  return ProfilePlan{std::move(outcome.plan), std::move(outcome.counters), std::move(text)};
}

/// Plans that come from a profile: packed to budgets and caps, or into a fixed number of shards.
Result<int> run_from_profile(const Arguments& arguments, const OpenStore& open, const fs::path& out) {
  const std::stop_token stop = stop_on_interrupt();
  StepLine line(!arguments.flag("--quiet"));
  const auto stopped = [&] {
    line.clear();
    print_err("furlong shard plan: stopped; nothing was written\n");
    return 128 + interrupt_signal();
  };
  auto profile = profile_of(arguments, open, out, stop, line.progress());
  if (stop.stop_requested()) return stopped();
  if (!profile) return Error(std::move(profile).error());
  auto planned = plan_profile(arguments, *profile, stop, line.progress());
  if (stop.stop_requested()) return stopped();
  line.clear();
  if (!planned) return Error(std::move(planned).error());
  const bool dry = arguments.flag("--dry-run");
  if (!dry) {
    FURLONG_CHECK(write_failed(planned->plan, *open.store, out));
    if (arguments.flag("--by-profile"))
      FURLONG_CHECK(shard::write_profile(system_files(), fs::path(out.string() + ".fprof"), *profile));
    FURLONG_CHECK(system_files().write_atomic(
        shard::beside_plan(out, "costs"),
        shard::costs_csv(planned->plan, shard::predicted_costs(planned->plan, planned->counters))));
    FURLONG_CHECK(shard::write_plan(system_files(), out, planned->plan));
    FURLONG_CHECK(system_files().remove(out.string() + ".fprof.journal"));
  }
  if (arguments.given("--json"))
    FURLONG_CHECK(write_json(arguments.value("--json"), plan_json(planned->plan)));
  if (arguments.value("--json") != "-")
    print_out(fmt::format("{}\n{}: {} shards\n{}", shards_table(planned->plan),
                          dry ? "(not written)" : out.string(), planned->plan.shards.size(), planned->text));
  return exit_ok;
}

Result<int> run(const Arguments& arguments) {
  const bool dry = arguments.flag("--dry-run");
  if (!arguments.given("--out") && !dry) return fail(Code::invalid, "shard plan: --out OUT.fsp is missing");
  const fs::path out = arguments.value("--out", "plan.fsp");
  FURLONG_TRY(const OpenStore open, open_store(arguments.positionals[0]));
  if (arguments.given("--profile") && arguments.flag("--by-profile"))
    return fail(Code::invalid, "shard plan: --profile and --by-profile together: choose one");
  if (arguments.given("--profile") || arguments.flag("--by-profile") || arguments.given("--shards"))
    return run_from_profile(arguments, open, out);
  FURLONG_TRY(shard::PlanRequest request, request_of(arguments, open, out));
  StepLine line(!arguments.flag("--quiet"));
  request.progress = line.progress();
  request.stop = stop_on_interrupt();
  request.prefix_job = prefix_job_process(open, request.stop);
  auto outcome = shard::make_plan(open.store, *open.executor, request);
  line.clear();
  if (request.stop.stop_requested()) {
    print_err(
        dry ? "furlong shard plan: stopped\n"
            : fmt::format("furlong shard plan: stopped; {} has what was found: the same command goes on\n",
                          request.journal.string()));
    return 128 + interrupt_signal();
  }
  if (!outcome) return Error(std::move(outcome).error());
  if (!dry) FURLONG_CHECK(write_failed(outcome->plan, *open.store, out));
  if (!outcome->complete) {
    const auto& first = outcome->plan.failed.front();
    FURLONG_TRY(const shard::Unit unit, open.store->unit(first.unit));
    return fail(Code::mismatch, "unit '{}' failed: {}; mend it, or plan without what fails (--no-fail-fast)",
                one_line(unit.name), one_line(first.why));
  }
  if (!dry) {
    FURLONG_CHECK(system_files().write_atomic(shard::beside_plan(out, "costs"),
                                              shard::costs_csv(outcome->plan, outcome->costs)));
    FURLONG_CHECK(shard::write_plan(system_files(), out, outcome->plan));
  }
  if (arguments.given("--json")) FURLONG_CHECK(write_json(arguments.value("--json"), plan_json(*outcome)));
  if (arguments.value("--json") != "-") print_out(plan_text(*outcome, dry ? "(not written)" : out.string()));
  return exit_ok;
}

}  // namespace

CommandSpec shard_plan_command() {
  std::vector<OptionSpec> options{
      {.name = "--out", .value_name = "OUT.fsp", .help = "The plan to write.", .complete = "file"},
      {.name = "--max-ram",
       .value_name = "G",
       .help = "Memory that one job may take at its peak: GiB, or with a unit, such as 512M."},
      {.name = "--max-seconds", .value_name = "S", .help = "Time that one job may take."},
      {.name = "--usable",
       .value_name = "X",
       .help = "Share of the budgets that the cut may use. Default 0.75."},
      {.name = "--model",
       .value_name = "FILE",
       .help = "A model of furlong shard fit: what a job takes, and the usable share. Without it three "
               "prefixes are measured.",
       .complete = "file"},
      {.name = "--shards",
       .value_name = "N",
       .help = "Exactly N shards of equal weight, within 5%, with few cross bytes; no budget is needed."},
      {.name = "--profile",
       .value_name = "FILE",
       .help = "Plan from a recorded profile (furlong shard profile), without executing anything.",
       .complete = "file"},
      {.name = "--by-profile",
       .value_name = "",
       .help = "Profile first (kept as OUT.fsp.fprof), then plan from it."},
      {.name = "--cap",
       .value_name = "C=MOST",
       .help = "With a profile: most of a counter in one shard.",
       .repeatable = true},
      {.name = "--record-cap",
       .value_name = "BYTES",
       .help =
           "Most bytes of a record, enforced at every charge. Default: what the base leaves of --max-ram."},
      {.name = "--order",
       .value_name = "O",
       .help =
           "Order of the units. Default auto: by sharing where that saves at least 1% of the cross bytes.",
       .choices = {"auto", "plain", "sharing"}},
      {.name = "--workers",
       .value_name = "N",
       .help = "Threads of the scan. Default: as many as memory holds records at their cap. They change no "
               "byte of the plan."},
      {.name = "--no-merge", .value_name = "", .help = "Leave the segments of the scan as they are."},
      {.name = "--seed", .value_name = "N", .help = "Seed of the order by sharing. Default 1."},
      {.name = "--journal",
       .value_name = "FILE",
       .help = "What was found out so far; an interrupted plan goes on from it. Default: OUT.fsp.journal.",
       .complete = "file"},
      {.name = "--dry-run", .value_name = "", .help = "Plan, but write nothing (no journal either)."},
      {.name = "--json",
       .value_name = "FILE",
       .help = "Write the report as JSON; - for standard output, in place of the table.",
       .complete = "file"},
      {.name = "--quiet", .value_name = "", .help = "No progress line."}};
  for (auto& option : fail_fast_options()) options.push_back(option);
  return {
      .name = "shard plan",
      .summary = "Cut a store into shards by measured cost.",
      .description =
          "Executes the mandatory prefix of the work, unit after unit, and cuts where the measured cost "
          "reaches the budget; then executes every shard once more, cold, and merges what fits together. "
          "Where nothing was fitted yet, three growing prefixes are run first, each in a process of its "
          "own. The same store, options and journal give the same plan.\n"
          "FURLONG_SCAN_LIMIT_UNITS=N looks at the first N units alone; such a plan is a slice, and "
          "furlong run refuses it.\n"
          "Exit 0: planned; 2: bad usage or input; 3: a unit failed (--fail-fast).",
      .positionals = {{.name = "STORE", .help = "A file of furlong shard store."}},
      .options = options,
      .examples = {{"furlong shard plan set.store --max-ram 64M --out set.fsp", ""},
                   {"furlong shard plan set.store --max-ram 64M --model set.model.json --out set.fsp", ""},
                   {"furlong shard plan set.store --shards 16 --profile set.fprof --out set16.fsp", ""},
                   {"furlong shard plan build.store --max-ram 4 --max-seconds 120 --out build.fsp", ""}},
      .run = run};
}

}  // namespace furlong::app
