#include "furlong/kernel/raced_kernel.h"

#include <algorithm>
#include <cmath>

#include "furlong/base/log.h"
#include "furlong/base/os/paths.h"
#include "furlong/base/text.h"
#include "furlong/kernel/internal/choice.h"
#include "furlong/race/compile_request.h"

namespace furlong::kernel {
namespace {

constexpr std::size_t kMostChoiceBytes = 16u << 20;

std::string problem_text(const program::Instance& instance) {
  std::vector<std::string> texts;
  for (const auto& [name, unused] : instance.program().problem)
    texts.push_back(fmt::format("{}={}", name, instance.problem().at(name).text()));
  return join(texts, ",");
}

ChoiceKey key_of(const device::Facts& facts, const program::Instance& instance,
                 const program::Instance& serving, const Options& options) {
  std::vector<std::string> allow = options.allow;
  std::ranges::sort(allow);
  return {{"furlong", FURLONG_LIBRARY_VERSION},
          {"program", instance.program().name},
          {"source", instance.program().source_hash().hex()},
          {"language", instance.edition().language},
          {"problem", problem_text(instance)},
          {"serve", problem_text(serving)},
          {"backend", facts.backend},
          {"silicon", facts.silicon.hash()},
          {"driver", facts.driver},
          {"compiler", facts.compiler},
          {"variants", options.variants},
          {"allow", join(allow, ",")},
          {"base_may_win", options.base_may_win ? "yes" : "no"},
          {"metric", options.race_options.metric == race::Metric::energy ? "energy" : "rate"},
          {"cache", options.race_options.cache == race::CacheState::cold ? "cold" : "hot"}};
}

/// The same program and device with other values of some parameters.
Result<program::Instance> with_problem(const program::Instance& instance,
                                       const std::vector<std::pair<std::string, lattice::Value>>& replaced) {
  std::vector<std::pair<std::string, lattice::Value>> problem;
  for (const auto& [name, unused] : instance.program().problem)
    problem.emplace_back(name, instance.problem().at(name));
  problem.insert(problem.end(), replaced.begin(), replaced.end());
  lattice::Environment facts;
  const lattice::Lookup known = instance.facts();
  for (const std::string& name : program::device_fact_names())
    if (const auto value = known(name)) facts[name] = *value;
  return program::Instance::make(instance.shared_program(), instance.edition().language, problem, facts);
}

bool timed(const race::VariantOutcome& variant) {
  return variant.gated && std::isfinite(variant.gain) &&
         (variant.exit == race::Exit::none || variant.exit == race::Exit::eliminated ||
          variant.exit == race::Exit::duplicate);
}

}  // namespace

/// One call of raced_kernel().
class Maker {
 public:
  Maker(device::Device& device, const program::Instance& instance, const Options& options)
      : device_(device),
        raced_(instance),
        options_(options),
        context_(options.context),
        files_(options.files != nullptr ? *options.files : system_files()) {
    context_.device = &device;
    context_.kept = nullptr;
    context_.reopen = {};
    if (context_.clock == nullptr) context_.clock = &system_clock();
  }

  ~Maker() { give_up_module(); }
  Maker(const Maker&) = delete;
  Maker& operator=(const Maker&) = delete;

  Result<RacedKernel> make() {
    FURLONG_TRY(points_, raced_.select(options_.variants, options_.allow));
    FURLONG_TRY(program::Instance serving, with_problem(raced_, options_.serve));
    serving_ = std::make_shared<const program::Instance>(std::move(serving));
    key_ = key_of(device_.facts(), raced_, *serving_, options_);
    const std::filesystem::path folder =
        options_.folder.empty() ? cache_folder() / "kernels" : options_.folder;
    kernel_.file_ = folder / (digest_of(key_).hex() + ".json");
    if (options_.use_kept) {
      FURLONG_TRY(const bool made, from_kept());
      if (made) return std::move(kernel_);
    }
    FURLONG_CHECK(from_race());
    return std::move(kernel_);
  }

 private:
  void warn(std::string text) {
    log_warning("{}", text);
    kernel_.notes_.push_back(std::move(text));
  }
  void pass_over(std::string_view why) {
    warn(fmt::format("the kept choice {} is not used, and the variants are raced: {}", kernel_.file_.string(),
                     why));
  }

  std::optional<Choice> load() {
    if (!files_.exists(kernel_.file_)) return std::nullopt;
    const auto text = files_.read(kernel_.file_, kMostChoiceBytes);
    auto choice = text ? parse_choice(*text, "the file") : Result<Choice>(text.error());
    if (!choice) {
      pass_over(choice.error().text());
      return std::nullopt;
    }
    if (const std::string differs = difference(key_, choice->key); !differs.empty()) {
      pass_over(differs);
      return std::nullopt;
    }
    if (!choice->decided && choice->budget_s < options_.race_options.budget_s) {
      kernel_.notes_.push_back(fmt::format("a race of {:g} s did not decide: another one of {:g} s may",
                                           choice->budget_s, options_.race_options.budget_s));
      return std::nullopt;
    }
    return *std::move(choice);
  }

  /// The point of a kept choice, when it may be chosen now and its text is still the same.
  Result<lattice::Point> point_of(const Choice& choice) {
    FURLONG_TRY(const lattice::Point point, lattice::parse_variant(raced_.lattice(), choice.variant));
    const bool raced = std::ranges::find(points_, point) != points_.end();
    if (!raced || (!options_.base_may_win && point == raced_.lattice().base()))
      return fail(Code::denied, "{} is not among the variants", choice.variant);
    FURLONG_TRY(const program::VariantPlan plan, raced_.plan(point));
    if (plan.source_hash.hex() != choice.text)
      return fail(Code::incompatible, "the text of {} is another one now", choice.variant);
    return point;
  }

  /// False: there is no choice that can be used.
  Result<bool> from_kept() {
    const std::optional<Choice> choice = load();
    if (!choice) return false;
    auto point = point_of(*choice);
    if (!point) {
      pass_over(point.error().text());
      return false;
    }
    Status ready;
    if (options_.gate_again) ready = gate(*point);
    if (ready) ready = finish(kernel_, *point);
    if (!ready) {
      const Code code = ready.error().code();
      // Stopped, or the device is gone: another race would fare no better.
      if (code == Code::timeout || code == Code::unavailable) return Error(ready.error());
      pass_over(ready.error().text());
      give_up_module();
      return false;
    }
    kernel_.why_ = choice->why;
    kernel_.evidence_ = choice->race;
    kernel_.from_cache_ = true;
    return true;
  }

  /// What the buffers of a race hold; 64 bits are enough for the sum of some that each fit the machine.
  Status check_memory() const {
    FURLONG_TRY(const program::RunInputs sizes, raced_.timed_sizes(points_));
    std::uint64_t sum = 0;
    for (const std::size_t bytes : sizes.buffer_bytes) sum += bytes;
    const std::uint64_t there = device_.facts().silicon.memory_bytes;
    if (there == 0 || sum <= there) return {};
    return fail(Code::exhausted, "the buffers of {} at {} take {}, and {} has {} of memory",
                raced_.program().name, problem_text(raced_), human_bytes(sum), device_.facts().address(),
                human_bytes(there));
  }

  Result<std::size_t> choose(const race::Outcome& outcome) const {
    if (options_.base_may_win || outcome.winner != 0) return outcome.winner;
    std::size_t best = 0;
    std::vector<std::string> reasons;
    bool late = false;
    for (std::size_t i = 1; i < outcome.variants.size(); ++i) {
      const race::VariantOutcome& one = outcome.variants[i];
      if (!timed(one)) {
        late = late || race::had_no_time(one);
        reasons.push_back(fmt::format("{}: {}", one.name, one.why));
      } else if (best == 0 || one.gain > outcome.variants[best].gain) {
        best = i;
      }
    }
    if (best != 0) return best;
    if (late)
      return fail(
          Code::timeout,
          "the race's budget of {:g} s ended before a variant but base, which is only the measure here, "
          "was timed: allow more ({})",
          options_.race_options.budget_s, join(reasons, "; "));
    return fail(Code::mismatch, "no variant but base, which is only the measure here, can be chosen: {}",
                reasons.empty() ? "there is no other" : join(reasons, "; "));
  }

  /// Takes hold of the device while it lives, where others use it too.
  class Hold {
   public:
    explicit Hold(const race::Context& context) : context_(context) {
      if (context_.acquire) context_.acquire();
    }
    ~Hold() {
      if (context_.release) context_.release();
    }
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;

   private:
    const race::Context& context_;
  };

  /// What a race leaves; it goes while nobody else uses the device, as unloading a module is a use of it.
  class Left {
   public:
    explicit Left(const race::Context& context) : context_(context) {}
    ~Left() {
      const Hold hold(context_);
      kept = {};
    }
    Left(const Left&) = delete;
    Left& operator=(const Left&) = delete;
    /// The modules stay.
    void drop_buffers() {
      const Hold hold(context_);
      kept.buffers.reset();
    }
    /// The module of a variant becomes the kernel's, and the one that this had goes with the others.
    void give(std::size_t variant, RacedKernel& kernel) {
      if (variant < kept.modules.size() && kept.modules[variant])
        std::swap(kernel.module_, kept.modules[variant]);
    }

    race::Kept kept;

   private:
    const race::Context& context_;
  };

  void give_up_module() {
    if (!kernel_.module_) return;
    const Hold hold(context_);
    kernel_.module_.reset();
  }

  Status from_race() {
    FURLONG_CHECK(check_memory());
    Left left(context_);
    race::Context context = context_;
    context.kept = &left.kept;
    context.ready = [&](std::size_t variant) {
      if (variant == 0) tell_of_base(left.kept);
      if (context_.ready) context_.ready(variant);
    };
    auto outcome = race::run(raced_, points_, options_.race_options, context);
    left.drop_buffers();
    if (!outcome) return std::move(outcome).error();
    FURLONG_TRY(const std::size_t chosen, choose(*outcome));
    const race::VariantOutcome& variant = outcome->variants[chosen];
    left.give(chosen, kernel_);
    // The race's winner passed a second gate; on another problem, or beaten by base, nobody did.
    if (!options_.serve.empty() || chosen != outcome->winner) FURLONG_CHECK(gate(variant.point));
    FURLONG_CHECK(finish(kernel_, variant.point));
    for (const std::string& note : outcome->notes) kernel_.notes_.push_back(note);
    kernel_.why_ = chosen == outcome->winner
                       ? outcome->sentence
                       : fmt::format("{} is the best of those that may be chosen, {:+.1f}% to base",
                                     variant.name, 100 * variant.gain);
    kernel_.evidence_ = race::make_record(raced_, *outcome);
    if (options_.keep) keep(*outcome, variant.point);
    return {};
  }

  /// On the race's thread, between two holds.
  void tell_of_base(const race::Kept& kept) {
    if (!options_.base_ready || !options_.base_may_win || !options_.serve.empty()) return;
    RacedKernel base;
    base.module_ = kept.modules[0];
    base.why_ = "base passed its gate, and the race goes on";
    base.file_ = kernel_.file_;
    // What does not fit the launches ends the race's choice in the same way, with its Error.
    if (finish(base, points_[0])) options_.base_ready(base);
  }

  /// Gates the variant, and base before it, on the problem of the launches.
  Status gate(const lattice::Point& point) {
    std::vector<lattice::Point> pair{raced_.lattice().base()};
    if (point != pair[0]) pair.push_back(point);
    Left left(context_);
    race::Context context = context_;
    context.kept = &left.kept;
    context.ready = {};
    auto outcome = race::check(*serving_, pair, pair.size(), options_.race_options, context);
    if (!outcome) return std::move(outcome).error();
    const race::VariantOutcome& checked = outcome->variants.back();
    if (checked.exit != race::Exit::none && checked.exit != race::Exit::duplicate)
      return fail(Code::mismatch, "{} failed when it was gated again: {}", checked.name, checked.why);
    left.give(pair.size() - 1, kernel_);
    return {};
  }

  /// Plan, launches and module of the point.
  Status finish(RacedKernel& kernel, const lattice::Point& point) {
    const lattice::Point points[] = {point};
    FURLONG_TRY(kernel.sizes_, serving_->timed_sizes(points));
    FURLONG_TRY(kernel.plan_, serving_->plan(point));
    FURLONG_TRY(kernel.launches_, serving_->launches(point, kernel.sizes_));
    FURLONG_TRY(const program::VariantPlan raced, raced_.plan(point));
    if (raced.source_hash != kernel.plan_.source_hash)
      return fail(Code::invalid,
                  "{} has another text for the problem of its launches ({}) than for the raced one ({})",
                  kernel.plan_.name, problem_text(*serving_), problem_text(raced_));
    if (!kernel.module_) {
      const std::uint64_t shared = race::most_shared_bytes(kernel.launches_);
      FURLONG_TRY(kernel.module_,
                  device_.compile(race::compile_request(*serving_, kernel.plan_, shared), context_.stop));
    }
    kernel.device_ = &device_;
    kernel.instance_ = serving_;
    for (const std::string& note : kernel.plan_.notes)
      kernel.notes_.push_back(fmt::format("{}: {}", kernel.plan_.name, note));
    return {};
  }

  void keep(const race::Outcome& outcome, const lattice::Point& point) {
    const bool alone = points_.size() == 1;
    Choice choice{.key = key_,
                  .variant = lattice::variant_name(raced_.lattice(), point),
                  .text = kernel_.plan_.source_hash.hex(),
                  .why = kernel_.why_,
                  .decided = outcome.verdict_word == "winner" || outcome.verdict_word == "dead-heat" ||
                             outcome.verdict_word == "classic" || alone,
                  .budget_s = options_.race_options.budget_s,
                  .race = kernel_.evidence_};
    const Status written = files_.write_atomic(kernel_.file_, print_choice(choice));
    if (!written)
      warn(fmt::format("the choice cannot be kept, and the next start races again: {}",
                       written.error().text()));
  }

  device::Device& device_;
  const program::Instance& raced_;
  const Options& options_;
  race::Context context_;
  Files& files_;
  std::vector<lattice::Point> points_;
  std::shared_ptr<const program::Instance> serving_;
  ChoiceKey key_;
  RacedKernel kernel_;
};

Result<RacedKernel> raced_kernel(device::Device& device, const program::Instance& instance,
                                 const Options& options) {
  return Maker(device, instance, options).make();
}

}  // namespace furlong::kernel
