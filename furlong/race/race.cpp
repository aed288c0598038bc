#include "furlong/race/race.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "furlong/race/internal/build.h"
#include "furlong/race/internal/child_limits.h"
#include "furlong/race/internal/hold.h"
#include "furlong/race/internal/run.h"
#include "furlong/race/quarantine.h"
#include "furlong/race/trial.h"

namespace furlong::race {
namespace {

constexpr double kMostBudget_s = 540;
constexpr double kShare = 0.5;  // of what is left of the budget, for each step before the heats
constexpr double kProgressEvery_ms = 100;
constexpr double kEstimateLaunches = 3;
constexpr double kFewestHeats = 4;  // before the first decision (docs/race-statistics.md)
constexpr double kShort_ms = 0.05;

/// Threads of the largest block of what is timed.
double block_threads(const std::vector<program::LaunchPlan>& pipeline) {
  std::uint64_t most = 0;
  for (const program::LaunchPlan& launch : pipeline)
    if (!launch.once) most = std::max(most, launch.block[0] * launch.block[1] * launch.block[2]);
  return static_cast<double>(most);
}

}  // namespace

Race::Race(const program::Instance& instance, std::span<const lattice::Point> points, const Options& options,
           const Context& context, const Earlier& earlier)
    : instance_(instance),
      points_(points),
      options_(options),
      context_(context),
      earlier_(earlier),
      held_ms_(earlier.held_ms),
      base_ready_ms_(earlier.base_ready_ms) {}

Status Race::check_request() const {
  if (points_.empty() || points_[0] != instance_.lattice().base())
    return fail(Code::invalid, "the first point of a race is base");
  std::set<lattice::Point> seen;
  for (const lattice::Point& point : points_)
    if (!seen.insert(point).second)
      return fail(Code::invalid, "'{}' is raced twice", lattice::variant_name(instance_.lattice(), point));
  if (!(options_.window_ms > 0) || !(options_.budget_s > 0) || options_.rounds < 1 ||
      !(options_.classic_window_s > 0) || !(options_.energy_window_s > 0))
    return fail(Code::invalid, "window, budget and rounds of a race are above 0");
  if (!(options_.rules.threshold >= 0)) return fail(Code::invalid, "the threshold of a race is 0 or more");
  if (options_.metric == Metric::energy && !read_telemetry(context_).energy_j)
    return fail(Code::unavailable, "{} has no energy counter: race by rate",
                context_.device->facts().address());
  return {};
}

Status Race::stopped() const {
  if (context_.stop.stop_requested()) return fail(Code::timeout, "stopped");
  return {};
}

std::vector<Entrant*> Race::everyone() {
  std::vector<Entrant*> list;
  for (Entrant& entrant : entrants_) list.push_back(&entrant);
  return list;
}

std::size_t Race::challengers() const {
  return static_cast<std::size_t>(
      std::count_if(entrants_.begin() + 1, entrants_.end(), [](const Entrant& e) { return e.in(); }));
}

void Race::progress(Phase phase, std::size_t done, std::size_t total, const std::string& doing, bool always) {
  if (!context_.progress) return;
  const double now = now_ms();
  if (!always && phase == progress_.phase && now - progress_ms_ < kProgressEvery_ms) return;
  progress_ms_ = now;
  progress_.phase = phase;
  progress_.done = done;
  progress_.total = total;
  progress_.doing = doing;
  progress_.heats = outcome_.heats.size() - static_cast<std::size_t>(outcome_.dropped_heats);
  progress_.survivors = 1 + challengers();
  progress_.elapsed_s = since_base_s();
  progress_.budget_s = options_.budget_s;
  context_.progress(progress_);
}

Status Race::enter() {
  outcome_.device = context_.device->facts();
  outcome_.seed = options_.seed;
  outcome_.metric = options_.metric;
  outcome_.notes = earlier_.notes;
  if (options_.budget_s > kMostBudget_s) {
    outcome_.notes.push_back(
        fmt::format("the budget of {:g} s was cut to {:g} s", options_.budget_s, kMostBudget_s));
    options_.budget_s = kMostBudget_s;
  }
  outcome_.variants.resize(points_.size());
  entrants_.resize(points_.size());
  for (std::size_t i = 0; i < points_.size(); ++i) {
    VariantOutcome& outcome = outcome_.variants[i];
    Entrant& entrant = entrants_[i];
    entrant.index = i;
    entrant.point = outcome.point = points_[i];
    entrant.outcome = &outcome;
    entrant.plan.name = outcome.name = lattice::variant_name(instance_.lattice(), points_[i]);
    outcome.gain = outcome.low = outcome.high = std::numeric_limits<double>::quiet_NaN();
    if (const auto lost = earlier_.lost.find(i); lost != earlier_.lost.end()) {
      outcome.exit = Exit::launch;
      outcome.why = lost->second;
      continue;
    }
    auto plan = instance_.plan(points_[i]);
    auto work = instance_.work(points_[i]);
    if (plan && work) {
      entrant.plan = *std::move(plan);
      outcome.fallback = entrant.plan.fallback;
      for (const std::string& note : entrant.plan.notes) {
        std::string said = fmt::format("{}: {}", entrant.name(), note);
        if (std::ranges::find(outcome_.notes, said) == outcome_.notes.end())
          outcome_.notes.push_back(std::move(said));
      }
      outcome.work_amount = work->amount;
      if (i == 0) {
        outcome_.work_amount = work->amount;
        outcome_.work_bytes = work->bytes;
        outcome_.work_flops = work->flops;
      }
      continue;
    }
    const Error& error = plan ? work.error() : plan.error();
    if (i == 0) return Error(error).with("base");
    outcome.exit = Exit::compile;
    outcome.why = error.text();
  }
  return {};
}

/// Takes out who does not fit the check's problem.
Status Race::fit_check() {
  std::vector<lattice::Point> in;
  const auto fits = [&] {
    in.clear();
    for (const Entrant& entrant : entrants_)
      if (entrant.in()) in.push_back(entrant.point);
    gate_.emplace(instance_, context_, in);
    return gate_->check_inputs(options_.seed);
  };
  auto checked = fits();
  if (!checked && checked.error().code() == Code::invalid) {
    for (Entrant& entrant : entrants_) {
      if (!entrant.in() || entrant.index == 0) continue;
      const lattice::Point alone[] = {entrant.point};
      const auto inputs = instance_.check_inputs(options_.seed, alone);
      if (inputs) continue;
      entrant.outcome->exit = Exit::gate;
      entrant.outcome->why = "it cannot be checked: " + inputs.error().text();
    }
    checked = fits();
  }
  if (!checked) return std::move(checked).error().with("inputs of the gate");
  return {};
}

/// Launches and keys.
Status Race::describe_all() {
  FURLONG_TRY(const program::RunInputs* checked, gate_->check_inputs(options_.seed));
  FURLONG_TRY(const program::RunInputs* timed, gate_->timed_inputs(options_.seed));
  const program::RunInputs* cases[] = {timed, checked};
  for (Entrant& entrant : entrants_) {
    if (!entrant.in()) continue;
    const Status described = describe(instance_, entrant, cases);
    if (described) {
      entrant.outcome->key = entrant.key;
      entrant.outcome->memory_bytes = buffer_bytes(instance_, entrant.point, *timed);
      entrant.outcome->block_threads = block_threads(entrant.pipelines[0]);
      continue;
    }
    if (entrant.index == 0) return described;
    entrant.outcome->exit = Exit::launch;
    entrant.outcome->why = described.error().text();
  }
  return {};
}

/// Those that ended an earlier attempt with its process.
Status Race::take_out_fallen() {
  for (Entrant& entrant : entrants_) {
    const auto fallen = std::ranges::find(context_.fallen, entrant.name(), &Fallen::variant);
    if (!entrant.in() || fallen == context_.fallen.end()) continue;
    remember(entrant, false, fallen->why, {});
    if (entrant.index == 0) return fail(Code::mismatch, "base ended the race's process: {}", fallen->why);
    entrant.outcome->exit = Exit::launch;
    entrant.outcome->why = fallen->why;
  }
  return {};
}

void Race::tell_fallen() {
  for (const Fallen& fallen : context_.fallen) {
    const bool ours = std::ranges::any_of(
        entrants_, [&](const Entrant& entrant) { return entrant.outcome->name == fallen.variant; });
    if (!ours) continue;
    const std::string took =
        fallen.at_ms ? fmt::format("; it was ready again after {:.1f} s", 1e-3 * (now_ms() - *fallen.at_ms))
                     : "";
    outcome_.notes.push_back(fmt::format("the race began anew without {}, which had ended its process: {}{}",
                                         fallen.variant, fallen.why, took));
  }
}

Status Race::look_up_quarantine() {
  if (context_.quarantine == nullptr) return {};
  for (Entrant& entrant : entrants_) {
    if (!entrant.in()) continue;
    auto found =
        context_.quarantine->find({outcome_.device.silicon.hash(), outcome_.device.driver, entrant.key});
    if (!found) {
      outcome_.notes.push_back("the quarantine cannot be read: " + found.error().text());
      return {};
    }
    if (!*found) continue;
    const QuarantineEntry& entry = **found;
    entrant.known_good = entry.good;
    if (entry.good || (!entry.evidence.empty() && entry.evidence != evidence())) continue;
    if (entrant.index == 0)
      return fail(Code::mismatch, "base is quarantined on {} since {}: {} (furlong quarantine clear {})",
                  outcome_.device.label, entry.when, entry.why, entry.key.source.substr(0, 16));
    entrant.outcome->exit = Exit::quarantined;
    entrant.outcome->why = fmt::format("quarantined since {}: {}", entry.when, entry.why);
  }
  return {};
}

Status Race::compile() {
  std::vector<Entrant*> asked;
  for (Entrant& entrant : entrants_)
    if (entrant.in()) asked.push_back(&entrant);
  const double before = now_ms();
  progress(Phase::build, 0, asked.size(), "base", true);
  BuildAsked build_asked;
  build_asked.entrants = asked;
  build_asked.budget_s = kShare * left_s();
  build_asked.doing = [&](std::size_t done, const Entrant& entrant) {
    progress(Phase::build, done, asked.size(), entrant.name());
  };
  FURLONG_TRY(const double ready_ms, build(instance_, context_, build_asked));
  if (!base_ready_ms_) base_ready_ms_ = ready_ms;
  outcome_.base_compile_ms = ready_ms - before;
  over_budget_ += static_cast<int>(std::ranges::count_if(asked, &Entrant::late));
  find_duplicates(asked);
  outcome_.compile_ms = now_ms() - before;
  return {};
}

Status Race::try_unknown() {
  if (!options_.trial || context_.trial_command.empty() || outcome_.device.virtual_time) return {};
  TrialAsked asked;
  std::vector<Entrant*> unknown;
  for (Entrant& entrant : entrants_) {
    if (!entrant.in() || entrant.known_good) continue;
    unknown.push_back(&entrant);
    asked.variants.push_back(entrant.name());
  }
  if (unknown.empty()) return {};
  const double before = now_ms();
  asked.command = context_.trial_command;
  asked.program_json = context_.trial_program_json;
  asked.device = outcome_.device.address();
  asked.seed = options_.seed;
  asked.timeout_s = options_.trial_timeout_s;
  asked.budget_s = kShare * left_s();
  asked.clock = context_.clock;
  asked.memory_bytes = options_.trial_memory_bytes;
  if (outcome_.device.backend == "host" && address_space_limit_is_usable())
    asked.address_space_bytes = (std::uint64_t{8} << 30) + 4 * entrants_[0].outcome->memory_bytes;
  asked.doing = [&](std::size_t done, const std::string& variant) {
    progress(Phase::trial, done, unknown.size(), variant);
  };
  progress(Phase::trial, 0, unknown.size(), unknown[0]->name(), true);
  Processes& processes = context_.processes != nullptr ? *context_.processes : system_processes();
  FURLONG_TRY(const TrialReport report, run_trial(processes, asked, context_.stop));
  for (const std::string& note : report.notes) outcome_.notes.push_back(note);
  outcome_.trial_ms = now_ms() - before;
  for (std::size_t i = 0; i < unknown.size(); ++i) {
    const TrialFinding& finding = report.findings[i];
    if (finding.kind == TrialFinding::Kind::good && finding.certain)
      remember(*unknown[i], true, "passed its trial", {});
    if (finding.kind == TrialFinding::Kind::bad) remember(*unknown[i], false, finding.why, {});
    if (finding.kind == TrialFinding::Kind::untried && report.out_of_budget && unknown[i]->index != 0) {
      // Unlike one that cannot be had, a trial that had no time is no reason to run the unknown in here.
      over_budget(*unknown[i], Exit::trial, "not tried: budget");
    }
    if (finding.kind != TrialFinding::Kind::bad && finding.kind != TrialFinding::Kind::refused) continue;
    if (i == 0 && unknown[i]->index == 0)
      return fail(Code::mismatch, "base failed its trial: {}", finding.why);
    unknown[i]->outcome->exit = Exit::trial;
    unknown[i]->outcome->why = finding.why;
  }
  return {};
}

Status Race::set_up_buffers() {
  FURLONG_TRY(const std::vector<std::size_t> room, gate_->room(options_.seed));
  const Buffers* kept = context_.kept != nullptr ? context_.kept->buffers.get() : nullptr;
  if (kept != nullptr && kept->fits(*context_.device, instance_.program(), room)) {
    buffers_ = context_.kept->buffers;
    buffers_->forget();
  } else if (kept != nullptr) {
    const Hold hold(context_);
    FURLONG_TRY(buffers_, Buffers::allocate_beside(*kept, *context_.device, instance_.shared_program(), room,
                                                   options_.seed));
  } else {
    const Hold hold(context_);
    FURLONG_TRY(buffers_,
                Buffers::allocate(*context_.device, instance_.shared_program(), room, options_.seed));
  }
  outcome_.buffer_bytes = buffers_->total_bytes();
  FURLONG_CHECK(buffers_->load_dataset(context_));
  if (context_.kept != nullptr) {
    const Hold hold(context_);  // what it kept before may go here
    context_.kept->buffers = buffers_;
    context_.kept->modules.assign(entrants_.size(), nullptr);
    for (const Entrant& entrant : entrants_)
      if (entrant.in()) context_.kept->modules[entrant.index] = entrant.module;
  }
  return gate_->prepare(*buffers_);
}

Status Race::gates() {
  std::size_t begun = 0;
  const std::size_t total = 1 + challengers();
  Gate::Asked asked;
  asked.base = &entrants_[0];
  asked.seed = options_.seed;
  asked.held_ms = &held_ms_;
  asked.failed = [&](Entrant& entrant, const Error& error) { return on_failure(entrant, error, "gate"); };
  asked.doing = [&](const Entrant& entrant) {
    progress(Phase::gate, std::min(begun++, total), total, entrant.name());
    return stopped();
  };
  const double before = now_ms();
  Entrant* base[] = {&entrants_[0]};
  asked.entrants = base;
  FURLONG_CHECK(gate_->run(asked));
  outcome_.base_gate_ms = now_ms() - before;
  outcome_.reference = gate_->words();
  if (context_.ready) context_.ready(0);
  std::vector<Entrant*> others = everyone();
  others.erase(others.begin());
  asked.entrants = others;
  asked.until_ms = now_ms() + 1e3 * kShare * left_s();
  asked.unfit = [&](Entrant& entrant) { over_budget(entrant, Exit::gate, "not gated: budget"); };
  if (challengers() > 0) FURLONG_CHECK(gate_->run(asked));
  outcome_.gate_ms = now_ms() - before;
  for (const Entrant* entrant : others)
    if (entrant->in() && context_.ready) context_.ready(entrant->index);
  return {};
}

/// Everything that heats need: launches, inputs on the device, how long one takes.
Status Race::aim() {
  FURLONG_CHECK(gate_->load_timed(options_.seed));
  FURLONG_TRY(const program::RunInputs* timed, gate_->timed_inputs(options_.seed));
  for (Entrant& entrant : entrants_) {
    if (!entrant.in()) continue;
    FURLONG_TRY(entrant.timed, make_launches(instance_, entrant.point, *entrant.module, *buffers_, *timed));
    const Hold hold(context_);
    for (const device::Launch& launch : entrant.timed.launches)
      if (const auto occupancy = context_.device->occupancy(launch))
        entrant.outcome->occupancy = std::min(*occupancy, entrant.outcome->occupancy.value_or(1));
  }
  sampler_.emplace(context_, options_, *buffers_, *timed, entrants_.size());
  FURLONG_CHECK(sampler_->prepare());
  FURLONG_CHECK(estimate());
  if (options_.cache == CacheState::cold && entrants_[0].estimate_ms < kShort_ms)
    outcome_.notes.push_back(
        "with cold caches each launch is timed alone: kernels under 50 µs scatter widely");
  return {};
}

void Race::over_budget(Entrant& entrant, Exit exit, const char* why) {
  entrant.outcome->exit = exit;
  entrant.outcome->gated = false;
  entrant.outcome->why = why;
  ++over_budget_;
}

/// How long a launch takes, base first. With slow launches the heats that a decision needs may not fit for
/// all: fewer variants, the first in line, are then raced to a decision.
Status Race::estimate() {
  const auto failed = [&](Entrant& entrant, const Error& error) {
    return on_failure(entrant, error, "timing");
  };
  const std::vector<Entrant*> all = everyone();
  FURLONG_CHECK(sampler_->estimate(std::span(all).first(1), failed));
  outcome_.base_launch_ms = entrants_[0].estimate_ms;
  // Of each variant; base has two windows a heat, and one a round.
  const double windows_ms =
      options_.classic ? 1e3 * options_.classic_window_s : kFewestHeats * sampler_->window_ms(entrants_[0]);
  const double one_ms = kEstimateLaunches * entrants_[0].estimate_ms + windows_ms;
  double left_ms = 1e3 * left_s() - second_gate_ms() - (options_.classic ? 1 : 2) * windows_ms;
  for (Entrant& entrant : entrants_) {
    if (entrant.index == 0 || !entrant.in()) continue;
    left_ms -= one_ms;
    if (left_ms < 0) over_budget(entrant, Exit::launch, "not timed: budget");
  }
  return sampler_->estimate(std::span(all).subspan(1), failed);
}

Result<Outcome> Race::run() {
  FURLONG_CHECK(check_request());
  start_ms_ = earlier_.start_ms.value_or(now_ms());
  FURLONG_CHECK(enter());
  FURLONG_CHECK(fit_check());
  FURLONG_CHECK(describe_all());
  FURLONG_CHECK(take_out_fallen());
  FURLONG_CHECK(look_up_quarantine());
  FURLONG_CHECK(compile());
  FURLONG_CHECK(stopped());
  FURLONG_CHECK(try_unknown());
  FURLONG_CHECK(set_up_buffers());
  tell_fallen();
  FURLONG_CHECK(stopped());
  FURLONG_CHECK(gates());
  FURLONG_CHECK(aim());
  first_ms_ = now_ms();
  if (options_.classic) {
    FURLONG_CHECK(classic());
  } else {
    FURLONG_CHECK(heats());
    if (options_.metric == Metric::energy) FURLONG_CHECK(energy());
  }
  outcome_.heats_ms = now_ms() - first_ms_;
  conclude();
  return std::move(outcome_);
}

bool Race::lost_device(Earlier& earlier, Fallen& took) const {
  if (!took_device_) return false;
  took = {outcome_.variants[*took_device_].name, took_why_, now_ms()};
  earlier.lost[*took_device_] = outcome_.variants[*took_device_].why;
  earlier.paused_ms = paused_ms();
  earlier.held_ms = held_ms_;
  earlier.start_ms = start_ms_;
  earlier.base_ready_ms = base_ready_ms_;
  return true;
}

Result<Outcome> run(const program::Instance& instance, std::span<const lattice::Point> points,
                    const Options& options, const Context& context) {
  if (context.device == nullptr || context.clock == nullptr)
    return fail(Code::invalid, "a race needs a device and a clock");
  Context current = context;
  Earlier earlier;
  for (;;) {
    auto race = std::make_unique<Race>(instance, points, options, current, earlier);
    Result<Outcome> outcome = race->run();
    // What the race made goes while nobody else uses the device.
    const Hold hold(current);
    Earlier next = earlier;
    Fallen took;
    const bool lost = !outcome && race->lost_device(next, took);
    // A driver whose device is gone may block in giving up what was on it.
    if (lost && context.hand != nullptr)
      context.hand->take(static_cast<std::uint32_t>(Holding::lost), took.variant + "\n" + took.why,
                         3 * context.hand_limit_s);
    race.reset();
    if (!lost || !context.reopen) return outcome;
    if (context.kept != nullptr) *context.kept = {};
    const double before = context.clock->now_ms();
    auto device = context.reopen();
    if (context.hand != nullptr) context.hand->drop();
    if (!device)
      return fail(outcome.error().code(), "{}, and it cannot be opened again in this process: {}; race again",
                  outcome.error().text(), device.error().text());
    next.notes.push_back(fmt::format("{}; it was open again after {:.1f} s, and the race began anew",
                                     outcome.error().message(), 1e-3 * (context.clock->now_ms() - before)));
    if (current.host == current.device) current.host = *device;
    current.device = *device;
    earlier = std::move(next);
  }
}

}  // namespace furlong::race
