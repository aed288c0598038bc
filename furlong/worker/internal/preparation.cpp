#include "furlong/worker/internal/preparation.h"

#include <algorithm>

#include "furlong/base/json.h"
#include "furlong/base/os/memory.h"
#include "furlong/base/os/priority.h"
#include "furlong/program/pack.h"
#include "furlong/record/race_line.h"
#include "furlong/select/select.h"

namespace furlong::worker {
namespace {

constexpr int kNice = 10;             // of compilers and dataset building where work runs on the same cores
constexpr double kSlowTrial = 6;      // times the usual limit, since it runs at that priority
constexpr double kMemoryShare = 0.5;  // of what host memory is free, for a dataset that waits there

/// A recipe whose dataset is built already.
class BuiltRecipe : public program::Recipe {
 public:
  BuiltRecipe(std::shared_ptr<const program::Recipe> recipe, std::shared_ptr<const Bytes> dataset)
      : recipe_(std::move(recipe)), dataset_(std::move(dataset)) {}
  std::string name() const override { return recipe_->name(); }
  std::uint64_t dataset_bytes() const override { return recipe_->dataset_bytes(); }
  std::string dataset_key() const override { return recipe_->dataset_key(); }
  Status build_dataset(std::span<std::uint8_t> into, int threads, std::stop_token stop) const override {
    if (into.size() != dataset_->size()) return recipe_->build_dataset(into, threads, std::move(stop));
    std::ranges::copy(*dataset_, into.begin());
    return {};
  }
  Status reference(const program::Program& program, const lattice::Environment& problem,
                   const std::vector<Bytes>& inputs, std::vector<Bytes>& expected) const override {
    return recipe_->reference(program, problem, inputs, expected);
  }

 private:
  std::shared_ptr<const program::Recipe> recipe_;
  std::shared_ptr<const Bytes> dataset_;
};

}  // namespace

Preparation::Preparation(const Environment& environment, const Options& options, DeviceLock& lock,
                         Asked asked, std::function<void()> changed)
    : environment_(environment),
      options_(options),
      lock_(lock),
      asked_(std::move(asked)),
      changed_(std::move(changed)),
      dataset_(asked_.dataset) {
  thread_ = std::jthread([this](std::stop_token stop) { run(std::move(stop)); });
}

Preparation::~Preparation() {
  stop();
  if (thread_.joinable()) thread_.join();
}

void Preparation::stop() { thread_.request_stop(); }

Serving Preparation::best() const {
  const std::lock_guard lock(mutex_);
  return best_;
}

std::string Preparation::late() const {
  const std::lock_guard lock(mutex_);
  return late_;
}

std::shared_ptr<const Bytes> Preparation::dataset() const {
  const std::lock_guard lock(mutex_);
  return dataset_;
}

bool Preparation::finished() const {
  const std::lock_guard lock(mutex_);
  return result_.has_value();
}

Result<Prepared> Preparation::result() const {
  const std::lock_guard lock(mutex_);
  return *result_;
}

void Preparation::release() {
  const std::lock_guard lock(mutex_);
  best_ = {};
  kept_ = {};
  asked_.beside.reset();
}

void Preparation::run(std::stop_token stop) {
  if (environment_.device->facts().runs_on_host_cpu) lower_thread_priority(kNice);
  Result<Prepared> result = prepare(stop);
  {
    const std::lock_guard lock(mutex_);
    result_ = std::move(result);
  }
  changed_();
}

/// The pack as a program on this device.
Status Preparation::open() {
  const record::Pair& pair = asked_.command.pair;
  const std::filesystem::path folder = asked_.command.pack;
  FURLONG_TRY(std::shared_ptr<const program::Program> program,
              environment_.load_pack ? environment_.load_pack(folder)
                                     : program::load_pack(folder, *environment_.files));
  if (!program->trusted && !options_.allow_unsigned)
    return fail(
        Code::denied,
        "{} has no signature by a trusted key, and a pack is code: sign it (furlong pack sign), or start "
        "the worker with --allow-unsigned",
        folder.string());
  if (program->epoch != pair.epoch || program->day != pair.day)
    return fail(Code::invalid, "{} is the pack of epoch {} day {}, not of {} day {}", folder.string(),
                program->epoch.empty() ? "-" : program->epoch, program->day, pair.epoch, pair.day);
  if (asked_.dataset && program->recipe) {
    auto built = std::make_shared<program::Program>(*program);
    built->recipe = std::make_shared<BuiltRecipe>(program->recipe, asked_.dataset);
    program = std::move(built);
  }
  FURLONG_TRY(const std::string language, environment_.choose_language(*program));
  FURLONG_TRY(auto instance,
              program::Instance::make(program, language, {}, expression_facts(environment_.device->facts())));
  instance_ = std::make_shared<const program::Instance>(std::move(instance));
  return check_emulated_text();
}

/// The stand-in for a card proves that what it was handed is the pack's text, byte for byte.
Status Preparation::check_emulated_text() const {
  if (!options_.emulated) return {};
  FURLONG_TRY(const program::VariantPlan plan, instance_->plan(instance_->lattice().base()));
  FURLONG_TRY(const program::PackContents pack, program::read_pack(asked_.command.pack, *environment_.files));
  const bool same =
      std::ranges::any_of(pack.files, [&](const auto& file) { return file.second == plan.source; });
  if (same) return {};
  return fail(Code::mismatch, "base's text is none of the pack's files, byte for byte");
}

Result<EntryPlan> Preparation::plan() const {
  EntryRequest request = asked_.entry;
  if (options_.emulated) request.race = "off";
  auto tuning = read_tuning(*environment_.files, options_.tuning_file);
  const record::Tuning* known = tuning && *tuning ? &**tuning : nullptr;
  FURLONG_TRY(EntryPlan plan, plan_entry(*instance_, environment_.device->facts(), known, request));
  // A broken file is as good as none, and said once for each new content.
  if (!tuning) plan.notes.insert(plan.notes.begin(), "the tuning is passed over: " + tuning.error().text());
  return plan;
}

race::Options Preparation::race_options() const {
  race::Options options;
  options.budget_s = options_.race_budget_s;
  options.max_pause_ms = options_.max_pause_ms;
  options.horizon_s = options_.horizon_s;
  options.classic = options_.classic;
  options.rounds = 1;
  options.rules.threshold = options_.threshold;
  options.seed = options_.seed + asked_.entry.prepare;
  options.keep_samples = false;
  if (environment_.device->facts().runs_on_host_cpu) options.trial_timeout_s *= kSlowTrial;
  return options;
}

race::Context Preparation::context(std::stop_token stop, const EntryPlan& plan) {
  race::Context context;
  context.device = environment_.device;
  context.clock = environment_.clock;
  context.quarantine = environment_.quarantine;
  context.trial_command = environment_.trial_command;
  if (environment_.trial_program)
    context.trial_program_json =
        environment_.trial_program(asked_.command.pack, instance_->edition().language);
  context.processes = environment_.processes;
  context.stop = std::move(stop);
  if (environment_.hand) context.hand = environment_.hand(pair());
  context.fallen = asked_.fallen;
  context.acquire = [this] { acquire(); };
  context.release = [this] { release_device(); };
  context.kept = &kept_;
  context.ready = [this, &plan](std::size_t variant) {
    if (variant == 0) publish(0, plan.points);
  };
  return context;
}

void Preparation::acquire() {
  lock_.acquire();
  held_since_ms_ = environment_.clock->now_ms();
}

/// A device that a variant took with it is told as lost before the next user fails on it.
void Preparation::release_device() {
  if (!environment_.device->finish()) lost_ = true;
  held_ms_ = held_ms_ + (environment_.clock->now_ms() - held_since_ms_);
  lock_.release();
}

/// Variant `index` of the points may serve.
void Preparation::publish(std::size_t index, const std::vector<lattice::Point>& points) {
  {
    const std::lock_guard lock(mutex_);
    best_.pair = pair();
    best_.instance = instance_;
    best_.buffers = kept_.buffers;
    best_.base_point = points[0];
    best_.base_module = kept_.modules[0];
    best_.point = points[index];
    best_.module = kept_.modules[index];
    best_.variant = lattice::variant_name(instance_->lattice(), points[index]);
  }
  changed_();
}

Result<race::Outcome> Preparation::run_plan(EntryPlan& plan, std::stop_token stop) {
  const race::Options options = race_options();
  {
    acquire();
    kept_ = {asked_.beside, {}};
    release_device();
  }
  for (const race::Fallen& one : asked_.fallen)
    if (one.variant == "base") return fail(Code::mismatch, "base ended the worker's process: {}", one.why);
  if (plan.race) return race::run(*instance_, plan.points, options, context(stop, plan));
  const std::string name = lattice::variant_name(instance_->lattice(), plan.points.back());
  std::string why;
  const auto ended = std::ranges::find(asked_.fallen, name, &race::Fallen::variant);
  if (ended != asked_.fallen.end()) {
    why = ended->why;
  } else {
    FURLONG_TRY(race::Outcome outcome,
                race::check(*instance_, plan.points, plan.points.size(), options, context(stop, plan)));
    const race::VariantOutcome& last = outcome.variants.back();
    if (last.exit == race::Exit::none || last.exit == race::Exit::duplicate) {
      outcome.winner = outcome.variants.size() - 1;
      return outcome;
    }
    why = last.why;
  }
  FURLONG_TRY(plan.points, instance_->select(options_.race == "off" ? "catalogue" : options_.race));
  plan.race = true;
  plan.pinned = false;
  plan.notes.push_back(fmt::format("{} is pinned, and out: {}; all are raced", name, why));
  return race::run(*instance_, plan.points, options, context(stop, plan));
}

/// The dataset waits in host memory when the device has no room for it beside the one in service.
void Preparation::keep_dataset(std::stop_token stop) {
  const auto& recipe = instance_->program().recipe;
  if (!recipe || recipe->dataset_bytes() == 0 || asked_.dataset) return;
  const auto free_bytes = static_cast<double>(available_memory_bytes());
  if (static_cast<double>(recipe->dataset_bytes()) > kMemoryShare * free_bytes) return;
  auto bytes = std::make_shared<Bytes>(recipe->dataset_bytes());
  const int threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  if (!recipe->build_dataset(*bytes, threads, std::move(stop))) return;
  const std::lock_guard lock(mutex_);
  dataset_ = std::move(bytes);
}

void Preparation::tell_result(const race::Outcome& outcome, const EntryPlan& plan, Prepared& prepared) const {
  for (const race::VariantOutcome& variant : outcome.variants) prepared.keys[variant.name] = variant.key;
  if (!plan.race && !plan.pinned) return;
  record::RaceRecord record = race::make_record(*instance_, outcome);
  record.tuned = plan.tuned;
  record.pinned = plan.pinned;
  if (plan.pinned) {
    record.verdict = record::Verdict::pinned;
    record.winner = outcome.variants[outcome.winner].name;
  }
  prepared.race_line = record::race_record_line(record);
  prepared.record = std::move(record);
}

Result<Prepared> Preparation::prepare(std::stop_token stop) {
  FURLONG_CHECK(open());
  FURLONG_TRY(EntryPlan entry, plan());
  auto outcome = run_plan(entry, stop);
  Prepared prepared;
  prepared.notes = entry.notes;
  if (!outcome && outcome.error().code() == Code::exhausted && best().empty() && !stop.stop_requested()) {
    keep_dataset(stop);
    {
      const std::lock_guard lock(mutex_);
      late_ = outcome.error().text();
    }
    return prepared;
  }
  if (!outcome) return Error(std::move(outcome).error());
  std::size_t winner = outcome->winner;
  // A copy of another variant's code has no module of its own.
  if (kept_.modules[winner] == nullptr && !outcome->variants[winner].same_code_as.empty()) {
    const auto same = std::ranges::find(outcome->variants, outcome->variants[winner].same_code_as,
                                        &race::VariantOutcome::name);
    winner = static_cast<std::size_t>(same - outcome->variants.begin());
  }
  publish(winner, entry.points);
  tell_result(*outcome, entry, prepared);
  return prepared;
}

}  // namespace furlong::worker
