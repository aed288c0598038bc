#include "furlong/program/instance.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "furlong/base/text.h"
#include "furlong/program/fill.h"
#include "furlong/program/internal/elements.h"
#include "furlong/program/internal/emit.h"
#include "furlong/program/internal/launch_limits.h"
#include "furlong/program/internal/scope.h"
#include "furlong/program/internal/substitute.h"
#include "furlong/program/rewrite.h"

namespace furlong::program {
namespace {

using internal::Scope;

// A boolean define is 1 or 0, so that both #if and C++ read it.
std::string define_text(const lattice::Value& value) {
  return value.is_bool() ? (value.truthy() ? "1" : "0") : value.text();
}

Result<std::uint64_t> dimension(Scope& scope, const lattice::Expression& expression, std::string_view what) {
  FURLONG_TRY(const std::int64_t value, scope.integer(expression, what));
  if (value >= 1 && value <= internal::largest_dimension) return static_cast<std::uint64_t>(value);
  return fail(Code::invalid, "{} ('{}') is {}; it must be 1 to {}", what, expression.text(), value,
              internal::largest_dimension);
}

Result<std::array<std::uint64_t, 3>> dimensions(Scope& scope,
                                                const std::array<lattice::Expression, 3>& expressions,
                                                const std::string& what) {
  std::array<std::uint64_t, 3> result{1, 1, 1};
  for (std::size_t i = 0; i < 3; ++i) {
    FURLONG_TRY(result[i], dimension(scope, expressions[i], what));
  }
  FURLONG_CHECK(internal::check_product(result, what));
  return result;
}

// The override must be of the default's sort; integers do for floats.
Status set_parameter(lattice::Environment& problem, const Program& program, const std::string& name,
                     const lattice::Value& value) {
  std::vector<std::string> names;
  for (const auto& [known, usual] : program.problem) {
    names.push_back(known);
    if (known != name) continue;
    const bool fits = usual.is_float()  ? !value.is_word() && !value.is_bool()
                      : usual.is_word() ? value.is_word()
                      : usual.is_bool() ? value.is_bool()
                                        : value.is_integer();
    if (!fits)
      return fail(Code::invalid, "problem parameter '{}' is {}, which '{}' is not", name,
                  usual.is_float()  ? "a number"
                  : usual.is_word() ? "a word"
                  : usual.is_bool() ? "true or false"
                                    : "an integer",
                  value.text());
    const auto& fixed = program.fixed_problem;
    if (std::find(fixed.begin(), fixed.end(), name) != fixed.end() && value != usual)
      return fail(
          Code::invalid,
          "problem parameter '{}' is {} in the texts of program '{}', and {} would change only what is "
          "reported: open or make the pack with the other value",
          name, usual.text(), program.name, value.text());
    problem[name] = value;
    return {};
  }
  return fail(
      Code::invalid, "program '{}' has no problem parameter '{}'{}", program.name, name,
      names.empty() ? "" : [&] {
        const std::string guess = did_you_mean(name, names);
        return guess.empty() ? fmt::format(" (it has {})", join(names, ", ")) : guess;
      }());
}

void add_plan_field(Hasher& hasher, const std::vector<std::string>& list) {
  hasher.add_field(fmt::format("{}", list.size()));
  for (const std::string& text : list) hasher.add_field(text);
}

Digest plan_hash(const VariantPlan& plan, const Edition& edition) {
  Hasher hasher;
  hasher.add_field("furlong variant 1");
  hasher.add_field(edition.language);
  hasher.add_field(plan.source);
  std::vector<std::string> headers;
  for (const Header& header : edition.headers) headers.push_back(header.text);
  add_plan_field(hasher, headers);
  add_plan_field(hasher, plan.entries);
  std::vector<std::string> defines;
  for (const auto& [name, value] : plan.defines) defines.push_back(name + "=" + value);
  add_plan_field(hasher, defines);
  add_plan_field(hasher, plan.options);
  return hasher.finish();
}

// A value's option may be none ("") or several words ("-cl-mad-enable -cl-no-signed-zeros").
void add_options(std::string_view text, std::vector<std::string>& options) {
  for (const std::string& word : split(text, ' '))
    if (!word.empty()) options.push_back(word);
}

bool acts(const lattice::Knob& knob, lattice::Applies how) {
  return std::find(knob.applies.begin(), knob.applies.end(), how) != knob.applies.end();
}

}  // namespace

std::span<const std::string> device_fact_names() {
  static const std::vector<std::string> names = {
      "device.sm",           "device.max_threads", "device.warp",
      "device.shared_bytes", "device.arch",        "device.multiprocessors",
      "device.memory_mib",   "device.vendor",      "device.backend"};
  return names;
}

lattice::Environment assumed_facts(std::string_view language) {
  const bool host = language == "host";
  const bool cuda = language == "cuda";
  return {{"device.sm", cuda ? 86 : 0},
          {"device.max_threads", 1024},
          {"device.warp", host ? 1 : 32},
          {"device.shared_bytes", 48 * 1024},
          {"device.multiprocessors", 1},
          {"device.memory_mib", 1024},
          {"device.arch", cuda ? "sm_86" : ""},
          {"device.vendor", cuda ? "NVIDIA" : ""},
          {"device.backend", std::string(language)}};
}

Result<Instance> Instance::make(std::shared_ptr<const Program> program, std::string_view language,
                                const std::vector<std::pair<std::string, lattice::Value>>& overrides,
                                const lattice::Environment& facts) {
  Instance instance;
  instance.edition_ = program->edition(language);
  if (instance.edition_ == nullptr) {
    std::vector<std::string> languages;
    for (const Edition& edition : program->editions) languages.push_back(edition.language);
    return fail(Code::invalid, "program '{}' has no source in language '{}' (it has {})", program->name,
                language, join(languages, ", "));
  }
  for (const auto& [name, value] : program->problem) instance.problem_[name] = value;
  for (const auto& [name, value] : overrides)
    FURLONG_CHECK(set_parameter(instance.problem_, *program, name, value));
  instance.facts_ = facts;
  for (const auto& [name, value] : assumed_facts(language)) instance.facts_.try_emplace(name, value);
  instance.program_ = std::move(program);
  // Evaluated here once, so that class_values() cannot fail.
  Scope scope(*instance.program_, nullptr, nullptr, instance.problem_, instance.facts_);
  for (const auto& [name, expression] : instance.program_->class_features) {
    FURLONG_TRY(const std::int64_t value, scope.integer(expression, fmt::format("class feature '{}'", name)));
    instance.class_values_.emplace_back(name, value);
  }
  return instance;
}

lattice::Lookup Instance::facts() const {
  auto all = std::make_shared<lattice::Environment>(problem_);
  all->insert(facts_.begin(), facts_.end());
  return [all = std::move(all)](std::string_view name) -> std::optional<lattice::Value> {
    const auto found = all->find(std::string(name));
    if (found == all->end()) return std::nullopt;
    return found->second;
  };
}

Result<VariantPlan> Instance::plan(const lattice::Point& point) const {
  const lattice::Lattice& lattice = edition_->lattice;
  VariantPlan plan;
  plan.name = lattice::variant_name(lattice, point);
  plan.point = point;
  plan.source_name = edition_->source_name;
  plan.options = edition_->options;
  plan.include_folders = edition_->include_folders;
  Scope scope(*program_, &lattice, &point, problem_, facts_);
  for (const auto& [name, value] : edition_->defines) {
    FURLONG_TRY(std::string filled, internal::fill_placeholders(value, scope.lookup()));
    plan.defines.emplace_back(name, std::move(filled));
  }
  std::optional<Emitted> emitted;
  if (edition_->emitter != nullptr) {
    FURLONG_TRY(emitted, internal::emit(*program_, *edition_, point, problem_, facts_));
    plan.options.insert(plan.options.end(), emitted->options.begin(), emitted->options.end());
  }
  std::vector<Rewrite> rewrites;
  for (std::size_t k = 0; k < lattice.knobs.size(); ++k) {
    const lattice::Knob& knob = lattice.knobs[k];
    const std::size_t index = point.indices[k];
    if (acts(knob, lattice::Applies::define)) {
      const auto renamed = edition_->define_names.find(k);
      plan.defines.emplace_back(renamed == edition_->define_names.end() ? knob.name : renamed->second,
                                define_text(knob.values[index]));
    }
    if (const auto option = knob.options.find(index);
        option != knob.options.end() && acts(knob, lattice::Applies::option))
      add_options(option->second, plan.options);
    if (const auto list = edition_->rewrites.find({k, index}); list != edition_->rewrites.end())
      rewrites.insert(rewrites.end(), list->second.begin(), list->second.end());
  }
  if (emitted) {
    plan.entries = internal::entries_of(*emitted);
    plan.source = std::move(emitted->source);
    plan.notes = std::move(emitted->notes);
    plan.fallback = emitted->fallback;
  } else {
    auto source = apply_rewrites(edition_->source, rewrites);
    if (!source) return Error(std::move(source).error()).with(plan.name);
    plan.source = *std::move(source);
  }
  for (const KernelSpec& kernel : edition_->kernels) {
    FURLONG_TRY(std::string entry, internal::fill_placeholders(kernel.entry, scope.lookup()));
    if (std::find(plan.entries.begin(), plan.entries.end(), entry) == plan.entries.end())
      plan.entries.push_back(std::move(entry));
  }
  plan.source_hash = plan_hash(plan, *edition_);
  return plan;
}

// The module is compiled from the text for the timed problem: on other inputs the emitter must make the same
// text and launch the same kernels, or the gate would check what is not timed.
Result<std::vector<LaunchPlan>> Instance::emitted_launches(const lattice::Point& point,
                                                           const RunInputs& inputs) const {
  const std::string variant = lattice::variant_name(edition_->lattice, point);
  FURLONG_TRY(const Emitted emitted, internal::emit(*program_, *edition_, point, inputs.problem, facts_));
  if (!internal::same_problem(inputs.problem, problem_)) {
    FURLONG_TRY(const Emitted timed, internal::emit(*program_, *edition_, point, problem_, facts_));
    const bool same_text = emitted.source == timed.source && emitted.options == timed.options;
    if (!same_text || internal::entries_of(emitted) != internal::entries_of(timed))
      return fail(Code::invalid,
                  "{}: emitter '{}' makes another {} for the problem of {} than for the timed one, so that "
                  "what is timed would not be checked: give them the same remainders (in [check] problem, "
                  "m = \"min(m, 256 + m % 256)\")",
                  variant, edition_->emitter->name(), same_text ? "choice of kernels" : "text", inputs.name);
  }
  return internal::launch_plans(*program_, emitted, variant);
}

Result<std::vector<LaunchPlan>> Instance::launches(const lattice::Point& point,
                                                   const RunInputs& inputs) const {
  if (edition_->emitter != nullptr) return emitted_launches(point, inputs);
  const std::string variant = lattice::variant_name(edition_->lattice, point);
  Scope scope(*program_, &edition_->lattice, &point, inputs.problem, facts_);
  std::vector<LaunchPlan> launches;
  for (const KernelSpec& kernel : edition_->kernels) {
    const auto named = [&](std::string_view what) {
      return fmt::format("{}: {} of kernel '{}'", variant, what, kernel.entry);
    };
    LaunchPlan launch;
    FURLONG_TRY(launch.entry, internal::fill_placeholders(kernel.entry, scope.lookup()));
    FURLONG_TRY(launch.grid, dimensions(scope, kernel.grid, named("grid")));
    FURLONG_TRY(launch.block, dimensions(scope, kernel.block, named("block")));
    FURLONG_TRY(const std::int64_t shared, scope.integer(kernel.shared_bytes, named("shared_bytes")));
    if (shared < 0 || shared > internal::largest_shared_bytes)
      return fail(Code::invalid, "{} ('{}') is {}; it must be 0 to {}", named("shared_bytes"),
                  kernel.shared_bytes.text(), shared, internal::largest_shared_bytes);
    launch.shared_bytes = static_cast<std::uint64_t>(shared);
    launch.arguments = kernel.arguments;
    launches.push_back(std::move(launch));
  }
  return launches;
}

Result<Bytes> Instance::scalar_bytes(const LaunchPlan& launch, std::size_t argument,
                                     const lattice::Point& point, const RunInputs& inputs) const {
  if (const auto own = launch.scalars.find(argument); own != launch.scalars.end()) return own->second;
  return scalar_bytes(argument, point, inputs);
}

Result<Bytes> Instance::scalar_bytes(std::size_t argument, const lattice::Point& point,
                                     const RunInputs& inputs) const {
  const ArgumentSpec& spec = program_->arguments[argument];
  if (argument < inputs.scalar_fixed.size() && inputs.scalar_fixed[argument]) return inputs.bytes[argument];
  Scope scope(*program_, &edition_->lattice, &point, inputs.problem, facts_);
  const std::string what = fmt::format("value of argument '{}'", spec.name);
  FURLONG_TRY(const lattice::Value value, scope.value(spec.value, what));
  Bytes bytes(element_bytes(spec.type));
  FURLONG_CHECK(internal::store_element(spec.type, value, what, bytes.data()));
  return bytes;
}

Result<std::uint64_t> Instance::elements(std::size_t argument, const lattice::Point& point,
                                         const RunInputs& inputs) const {
  Scope scope(*program_, &edition_->lattice, &point, inputs.problem, facts_);
  return scope.elements(program_->arguments[argument]);
}

Result<CheckSpec> Instance::check(const lattice::Point& point) const {
  CheckSpec check = program_->check;
  FURLONG_TRY(check.bound, bound(point));
  return check;
}

Result<double> Instance::bound(const lattice::Point& point) const {
  const CheckSpec& check = program_->check;
  if (!check.bound_by_knob) return check.bound;
  Scope scope(*program_, &edition_->lattice, &point, problem_, facts_);
  FURLONG_TRY(const double bound, scope.number(*check.bound_by_knob, "bound of [check]"));
  // A bound of 1 would pass an output of zeros: the gate could not fail.
  if (bound > 0 && bound < 1) return bound;
  return fail(Code::invalid, "bound of [check] ('{}') is {} for {}; it must be over 0 and under 1",
              check.bound_by_knob->text(), bound, lattice::variant_name(edition_->lattice, point));
}

Result<Instance::Work> Instance::work(const lattice::Point& point) const {
  Scope scope(*program_, &edition_->lattice, &point, problem_, facts_);
  const auto positive = [&](const lattice::Expression& expression, std::string_view what) -> Result<double> {
    FURLONG_TRY(const double value, scope.number(expression, what));
    if (value > 0 && std::isfinite(value)) return value;
    return fail(Code::invalid, "{} ('{}') is {}; it must be over 0", what, expression.text(), value);
  };
  Work work;
  FURLONG_TRY(work.amount, positive(program_->work.amount, "amount of [work]"));
  if (program_->work.bytes) {
    FURLONG_TRY(work.bytes, positive(*program_->work.bytes, "bytes of [work]"));
  }
  if (program_->work.flops) {
    FURLONG_TRY(work.flops, positive(*program_->work.flops, "flops of [work]"));
  }
  const WorkSpec& spec = program_->work;
  if (spec.int_ops) {
    FURLONG_TRY(work.int_ops, positive(*spec.int_ops, "int_ops of [work]"));
  }
  if (spec.dataset) {
    FURLONG_TRY(work.dataset, positive(*spec.dataset, "dataset of [work]"));
  }
  constexpr std::array<double, random_widths> kWidths{4, 16, 128};
  for (std::size_t i = 0; i < random_widths; ++i) {
    if (spec.access == static_cast<Access>(i + 1)) work.loads[i] = work.bytes.value_or(0) / kWidths[i];
    if (!spec.loads[i]) continue;
    FURLONG_TRY(work.loads[i], scope.number(*spec.loads[i], "loads of [work]"));
    if (!(work.loads[i] >= 0) || !std::isfinite(work.loads[i]))
      return fail(Code::invalid, "loads of [work] ('{}') is {}; it must be at least 0", spec.loads[i]->text(),
                  work.loads[i]);
  }
  return work;
}

}  // namespace furlong::program
