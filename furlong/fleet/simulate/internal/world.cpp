#include "furlong/fleet/simulate/internal/world.h"

#include <algorithm>
#include <cmath>

#include "furlong/base/json.h"
#include "furlong/base/random.h"
#include "furlong/base/text.h"
#include "furlong/fleet/simulate/internal/noise.h"

namespace furlong::fleet::internal {
namespace {

constexpr std::size_t none = SIZE_MAX;
constexpr double threshold_pct = 0.5;  // by less nothing beats base

std::vector<std::string> names(std::span<const std::string_view> views) {
  return {views.begin(), views.end()};
}

Result<std::vector<std::size_t>> chosen_models(const SimulateOptions& options) {
  std::vector<std::size_t> chosen;
  const std::vector<std::string> known = simulated_models();
  for (const std::string& card : options.cards) {
    const auto at = std::ranges::find(known, card);
    if (at == known.end())
      return fail(Code::invalid, "cards: there is no model '{}'{}; the models are {}", one_line(card),
                  did_you_mean(card, known), join(known, ", "));
    const auto number = static_cast<std::size_t>(at - known.begin());
    if (std::ranges::find(chosen, number) == chosen.end()) chosen.push_back(number);
  }
  for (std::size_t i = 0; options.cards.empty() && i < known.size(); ++i) chosen.push_back(i);
  return chosen;
}

Result<std::vector<std::size_t>> chosen_programs(const SimulateOptions& options) {
  std::vector<std::size_t> chosen;
  for (std::size_t i = 0; i < programs().size(); ++i)
    if (options.programs.empty() ||
        std::ranges::find(options.programs, programs()[i].name) != options.programs.end())
      chosen.push_back(i);
  for (const std::string& name : options.programs)
    if (std::ranges::find(programs(), name, &Program::name) == programs().end())
      return fail(Code::invalid, "programs: there is no '{}'; simulated are lottery and gemv",
                  one_line(name));
  return chosen;
}

/// What happens to a variant on a card before it is timed. The catalogue's first ones always race.
Exit fate_of(std::uint64_t bits, std::size_t index) {
  if (index < 4) return Exit::stayed;
  const double u = unit(bits);
  if (u < 0.06) return Exit::compile;
  if (u < 0.09) return Exit::gate;
  if (u < 0.10) return Exit::launch;
  if (u < 0.14) return Exit::duplicate;
  return Exit::stayed;
}

/// The best leads by the margin at every cap, or nothing beats base.
void set_apart(TrueSubject& subject, const SimulateOptions& options, bool dead_heat) {
  for (std::size_t cap = 0; cap < cap_count; ++cap) {
    TrueVariant* best = nullptr;
    for (std::size_t i = 1; i < subject.variants.size(); ++i) {
      TrueVariant& each = subject.variants[i];
      if (each.fate == Exit::stayed && (best == nullptr || each.gain_pct[cap] > best->gain_pct[cap]))
        best = &each;
    }
    if (best == nullptr) continue;
    const double top = dead_heat ? 0.1 : std::max(best->gain_pct[cap], threshold_pct + options.margin_pct);
    best->gain_pct[cap] = top;
    for (std::size_t i = 1; i < subject.variants.size(); ++i) {
      TrueVariant& each = subject.variants[i];
      if (&each == best || each.fate != Exit::stayed) continue;
      each.gain_pct[cap] = std::min(each.gain_pct[cap], dead_heat ? top : top - options.margin_pct);
    }
  }
}

/// What a cap leaves of the power that base would draw: only a limit below that slows a card down, and by
/// less than it takes of its power.
double squeeze(const TrueSubject& subject, std::size_t cap) {
  const double limit_w = models()[subject.model].power_w * caps_pct[cap] / 100;
  return subject.base_draw_w > limit_w ? limit_w / subject.base_draw_w : 1;
}

void set_base(TrueSubject& subject, std::uint64_t seed) {
  const Model& model = models()[subject.model];
  const Program& program = programs()[subject.program];
  Random random(mix(seed, 1));
  const double full = (program.has_epoch ? model.lottery_mhs : model.gemv_rate) *
                      program.class_factor(program.classes[subject.program_class]);
  // Not near the middle of two tens, by which aggregation tells power caps apart.
  constexpr double draws[] = {0.8, 0.9, 0.985, 0.985};
  subject.base_draw_w = model.power_w * draws[random.below(std::size(draws))];
  subject.ceiling = full * (1.6 + 1.1 * random.uniform());
  for (std::size_t cap = 0; cap < cap_count; ++cap) {
    subject.base_rate[cap] = full * std::pow(squeeze(subject, cap), 0.4);
  }
}

TrueSubject make_subject(const SimulateOptions& options, std::size_t model, std::size_t program,
                         std::size_t program_class) {
  const Model& card = models()[model];
  const Program& what = programs()[program];
  TrueSubject subject{.model = model, .program = program, .program_class = program_class};
  record::ProgramClass features = what.classes[program_class];
  std::ranges::sort(features, {}, [](const auto& feature) { return feature.first; });
  subject.subject = {.silicon = card.silicon.hash,
                     .backend = std::string(card.backend),
                     .program = std::string(what.name),
                     .program_class = json_line(record::class_to_json(features)),
                     .metric = {},
                     .unit = std::string(what.unit)};
  // The silicon's part of a gain is the same in all classes.
  const std::uint64_t card_seed = mix(mix(options.seed, 0x6361'7264), mix(model, program));
  const std::uint64_t class_seed = mix(card_seed, 100 + program_class);
  set_base(subject, class_seed);
  const auto variants = what.variants(card.backend);
  for (std::size_t i = 0; i < variants.size(); ++i) {
    TrueVariant variant{.name = std::string(variants[i])};
    Random by_card(mix(card_seed, 1000 + i)), by_class(mix(class_seed, 1000 + i));
    variant.fate = fate_of(by_card.next(), i);
    variant.registers = static_cast<int>(by_card.between(28, 96));
    variant.compile_ms = 40 + 80 * by_card.uniform();
    const double gain = std::clamp(1.6 * by_card.normal() + 0.9 * by_class.normal() - 0.6, -25.0, 9.0);
    const double slope = 4 * by_class.normal();  // percent, were there no power at all
    if (i > 0) variant.draw = std::clamp(1 + 0.01 * by_class.normal(), 0.98, 1.02);
    for (std::size_t cap = 0; cap < cap_count; ++cap)
      variant.gain_pct[cap] =
          i == 0 || variant.fate != Exit::stayed ? 0 : gain + slope * (1 - squeeze(subject, cap));
    subject.variants.push_back(std::move(variant));
  }
  Random chance(mix(class_seed, 2));
  set_apart(subject, options, chance.uniform() < options.dead_heat_share);
  return subject;
}

Result<Regressed> look_up(const World& world, const PlantedRegression& planted,
                          const SimulateOptions& options) {
  const auto model = std::ranges::find(models(), planted.card, &Model::name);
  const auto program = std::ranges::find(programs(), planted.program, &Program::name);
  const auto wrong = [&](std::string_view key, std::string_view value,
                         const std::vector<std::string>& known) {
    return fail(Code::invalid, "planted regression: {} '{}' is not simulated; there are {}", key,
                one_line(value), join(known, ", "));
  };
  if (model == models().end()) return wrong("card", planted.card, simulated_models());
  if (program == programs().end()) return wrong("program", planted.program, {"lottery", "gemv"});
  const auto model_number = static_cast<std::size_t>(model - models().begin());
  const auto program_number = static_cast<std::size_t>(program - programs().begin());
  if (!world.has(model_number, program_number))
    return fail(Code::invalid, "planted regression: {} on {} is not in this fleet", planted.program,
                planted.card);
  const auto variants = names(program->variants(model->backend));
  if (std::ranges::find(variants, planted.variant) == variants.end())
    return wrong("variant", planted.variant, variants);
  const auto drivers = names(model->drivers);
  if (!planted.driver.empty() && std::ranges::find(drivers, planted.driver) == drivers.end())
    return wrong("driver", planted.driver, drivers);
  if (!(planted.loss_pct > -100 && planted.loss_pct < 100))
    return fail(Code::invalid, "planted regression: loss_pct {} is not between -100 and 100",
                planted.loss_pct);
  return Regressed{.model = model_number,
                   .program = program_number,
                   .variant = planted.variant,
                   .driver = planted.driver,
                   .from_us = options.from_us + static_cast<std::int64_t>(planted.from_day * 86'400e6),
                   .factor = 1 - planted.loss_pct / 100};
}

/// Of the best variant of a card in its first class: what a fleet would use, and so would miss.
PlantedRegression by_chance(const World& world, const SimulateOptions& options, std::size_t number) {
  Random random(mix(options.seed, 0x7265'6772 + number));
  const TrueSubject& subject = world.subjects[random.below(world.subjects.size())];
  const auto best = std::ranges::max_element(subject.variants, {}, [](const TrueVariant& each) {
    return each.fate == Exit::stayed ? each.gain_pct[0] : -1e9;
  });
  const Model& model = models()[subject.model];
  return {.card = std::string(model.name),
          .program = subject.subject.program,
          .variant = best->name,
          .driver = number % 2 == 0 ? std::string(model.drivers.back()) : "",
          .from_day = options.days / 2,
          .loss_pct = 4 + 6 * random.uniform()};
}

}  // namespace

double TrueSubject::power_w(const TrueVariant& variant, std::size_t cap) const {
  return std::min(base_draw_w * variant.draw, models()[model].power_w * caps_pct[cap] / 100);
}

bool Regressed::holds(const TrueSubject& subject, std::string_view driver_now, std::int64_t at_us) const {
  return subject.model == model && subject.program == program && at_us >= from_us &&
         (driver.empty() || record::compare_drivers(driver_now, driver) >= 0);
}

bool World::has(std::size_t model, std::size_t program) const {
  return first_[model * fleet::internal::programs().size() + program] != none;
}

std::size_t World::subject(std::size_t model, std::size_t program, std::size_t program_class) const {
  return first_[model * fleet::internal::programs().size() + program] + program_class;
}

double World::gain_pct(const TrueSubject& subject, const TrueVariant& variant, std::size_t cap,
                       std::string_view driver, std::int64_t at_us) const {
  double gain = variant.gain_pct[cap];
  for (const Regressed& each : regressions)
    if (each.variant == variant.name && variant.name != "base" && each.holds(subject, driver, at_us))
      gain = 100 * ((1 + gain / 100) * each.factor - 1);
  return gain;
}

double World::base_factor(const TrueSubject& subject, std::string_view driver, std::int64_t at_us) const {
  double factor = 1;
  for (const Regressed& each : regressions)
    if (each.variant == "base" && each.holds(subject, driver, at_us)) factor *= each.factor;
  return factor;
}

Result<World> make_world(const SimulateOptions& options) {
  World world;
  FURLONG_TRY(world.models, chosen_models(options));
  FURLONG_TRY(world.programs, chosen_programs(options));
  world.first_.assign(models().size() * programs().size(), none);
  for (const std::size_t model : world.models) {
    for (const std::size_t program : world.programs) {
      if (programs()[program].variants(models()[model].backend).empty()) continue;
      world.first_[model * programs().size() + program] = world.subjects.size();
      for (std::size_t each = 0; each < programs()[program].classes.size(); ++each)
        world.subjects.push_back(make_subject(options, model, program, each));
    }
  }
  if (world.subjects.empty())
    return fail(Code::invalid, "none of these cards has a text of {}", join(options.programs, " or "));
  world.planted = options.planted;
  for (std::size_t i = 0; i < options.regressions; ++i) world.planted.push_back(by_chance(world, options, i));
  for (const PlantedRegression& each : world.planted) {
    FURLONG_TRY(auto found, look_up(world, each, options));
    world.regressions.push_back(std::move(found));
  }
  return world;
}

TruthRow truth_row(const World& world, const TrueSubject& subject, const double (&weights)[cap_count],
                   std::string_view driver, std::int64_t at_us) {
  TruthRow row;
  double best_work = 1 + threshold_pct / 100;
  row.best_energy = "base";
  for (const TrueVariant& variant : subject.variants) {
    if (!variant.raced()) continue;
    double gain = 0, work = 0, weight = 0;
    for (std::size_t cap = 0; cap < cap_count; ++cap) {
      const double at = world.gain_pct(subject, variant, cap, driver, at_us);
      gain += weights[cap] * at;
      if (subject.base_draw_w > 0)
        work += weights[cap] * (1 + at / 100) * subject.power_w(subject.variants[0], cap) /
                subject.power_w(variant, cap);
      weight += weights[cap];
    }
    row.gains.emplace_back(variant.name, weight > 0 ? gain / weight : 0);
    if (weight > 0 && work / weight > best_work) {
      best_work = work / weight;
      row.best_energy = variant.name;
    }
  }
  if (subject.base_draw_w <= 0) row.best_energy.clear();
  std::ranges::stable_sort(row.gains, std::greater(), [](const auto& each) { return each.second; });
  const auto& [name, gain] = row.gains.front();
  row.best = gain > threshold_pct ? name : "base";
  row.gain_pct = row.best == "base" ? 0 : gain;
  row.lead_pct =
      row.best == "base" ? 0 : gain - (row.gains.size() > 1 ? std::max(0.0, row.gains[1].second) : 0);
  return row;
}

}  // namespace furlong::fleet::internal

namespace furlong::fleet {

std::vector<std::string> simulated_models() {
  std::vector<std::string> names;
  for (const internal::Model& model : internal::models()) names.emplace_back(model.name);
  return names;
}

}  // namespace furlong::fleet
