#include "furlong/fleet/simulate/internal/race.h"

#include <algorithm>

#include "furlong/fleet/simulate/internal/noise.h"

namespace furlong::fleet::internal {
namespace {

constexpr double threshold_pct = 0.5;
constexpr double card_spread = 4;  // of a variant's gain from card to card, in spreads of copies on one card
constexpr int few_heats = 4;       // after which what cannot win leaves

/// How one card differs from its model in one variant: the same in every race.
double card_offset_pct(const Slot& slot, std::size_t variant, double noise) {
  return noise * card_spread * quantile(copy_noise_pct, unit(mix(slot.seed, 9000 + variant)));
}

class Run {
 public:
  Run(const SimulateOptions& options, const World& world, Draft& draft)
      : options_(options),
        world_(world),
        draft_(draft),
        subject_(*draft.subject),
        slot_(draft.box->slots[draft.slot]),
        noise_(options.noise * models()[subject_.model].noise),
        random_(draft.seed) {}

  void run() {
    stamp();
    draft_.variants.clear();
    draft_.heats = draft_.over_budget = 0;
    draft_.winner = 0;
    draft_.compile_ms = draft_.bench_ms = draft_.paused_ms = draft_.power_limit_w = 0;
    if (draft_.pinned) return pinned();
    enter();
    time();
    decide();
  }

 private:
  void stamp() {
    draft_.ts_us = draft_.true_ts_us + draft_.machine->clock_off_us;
    draft_.ts_us -= draft_.ts_us % 1'000'000;
    const auto ms =
        static_cast<std::uint64_t>(std::max<std::int64_t>(draft_.ts_us / 1000, 0) + random_.below(1000));
    const std::uint64_t a = random_.next(), b = random_.next();
    RecordId& id = draft_.id;
    for (std::size_t i = 0; i < 6; ++i) id[i] = static_cast<std::uint8_t>(ms >> (8 * (5 - i)));
    id[6] = static_cast<std::uint8_t>(0x70 | (a >> 60));
    id[7] = static_cast<std::uint8_t>(a);
    for (std::size_t i = 8; i < 16; ++i) id[i] = static_cast<std::uint8_t>(b >> (8 * (i - 8)));
    id[8] = static_cast<std::uint8_t>(0x80 | (id[8] & 0x3F));
  }

  const TrueVariant& variant(std::size_t i) const { return subject_.variants[draft_.order[i]]; }

  /// Built and gated, not timed.
  void pinned() {
    for (std::size_t i = 0; i < draft_.order.size(); ++i) {
      draft_.variants.push_back({.variant = &variant(i)});
      draft_.compile_ms += variant(i).compile_ms;
    }
    draft_.winner = draft_.variants.size() - 1;
    draft_.verdict = record::Verdict::pinned;
    draft_.total_ms = draft_.compile_ms + 40 + 30 * random_.uniform();
  }

  /// Who takes part, and how far it comes before it is timed.
  void enter() {
    std::size_t room = draft_.order.size();
    if (random_.uniform() < options_.short_budget_share)
      room = std::min<std::size_t>(room, static_cast<std::size_t>(random_.between(4, 10)));
    for (std::size_t i = 0; i < draft_.order.size(); ++i) {
      DraftVariant entry{.variant = &variant(i), .exit = variant(i).fate};
      draft_.compile_ms += entry.variant->compile_ms;
      if (i >= room && (entry.exit == Exit::stayed || entry.exit == Exit::duplicate)) {
        entry.exit = Exit::budget;
        ++draft_.over_budget;
      }
      draft_.variants.push_back(entry);
    }
  }

  void time() {
    draft_.heats = static_cast<int>(random_.between(6, 32));
    const std::int64_t at_us = draft_.true_ts_us;
    best_pct_ = 0;
    for (const DraftVariant& each : draft_.variants)
      if (each.exit == Exit::stayed)
        best_pct_ = std::max(
            best_pct_, world_.gain_pct(subject_, *each.variant, draft_.box->cap, *draft_.driver, at_us));
    base_noise_ = draw(race_noise_pct, random_);
    const double level = 1 + noise_ * draw(level_noise_pct, random_) / 100;
    base_rate_ = subject_.base_rate[draft_.box->cap] * slot_.level * level *
                 world_.base_factor(subject_, *draft_.driver, at_us);
    if (draft_.machine->role == SimulatedRole::wrong_base) base_rate_ /= 1.4;
    for (DraftVariant& each : draft_.variants) time_one(each);
    draft_.power_limit_w = models()[subject_.model].power_w * caps_pct[draft_.box->cap] / 100;
    draft_.bench_ms = 20.0 * draft_.heats + 8.0 * static_cast<double>(draft_.variants.size());
    draft_.paused_ms = 0.7 * draft_.bench_ms;
    draft_.total_ms = draft_.compile_ms + draft_.bench_ms + 100 + 50 * random_.uniform();
  }

  void time_one(DraftVariant& each) {
    if (each.exit != Exit::stayed && each.exit != Exit::duplicate) return;
    const bool base = each.variant == draft_.variants[0].variant;
    if (base || each.exit == Exit::duplicate) {
      each.heats = draft_.heats;
    } else {
      const auto number = static_cast<std::size_t>(each.variant - subject_.variants.data());
      const double truth =
          world_.gain_pct(subject_, *each.variant, draft_.box->cap, *draft_.driver, draft_.true_ts_us);
      const bool cannot_win = truth < best_pct_ - 1;
      each.heats = cannot_win ? few_heats : draft_.heats;
      // Half of a pair's noise is base's, which all pairs of a race share.
      const double noise = (draw(race_noise_pct, random_) - base_noise_) * 0.7071;
      each.gain_pct =
          truth + card_offset_pct(slot_, number, noise_) + noise * noise_ * heats_factor(each.heats);
      each.half_pct = half_width_pct(noise_, each.heats);
      if (cannot_win) each.exit = Exit::eliminated;
      lie(each);
    }
    each.rate = base_rate_ * (1 + each.gain_pct / 100);
    if (draft_.machine->role == SimulatedRole::above_ceiling) each.rate *= 25;
    if (subject_.base_draw_w > 0)
      each.power_w = subject_.power_w(*each.variant, draft_.box->cap) * (1 - 0.01 * random_.uniform());
  }

  void lie(DraftVariant& each) {
    const SimulatedMachine& machine = *draft_.machine;
    const bool praised = each.variant->name == machine.favourite;
    if (machine.role == SimulatedRole::wrong_base)
      each.gain_pct = 100 * ((1 + each.gain_pct / 100) * 1.4 - 1);
    if (!praised || machine.role == SimulatedRole::wrong_base) return;
    each.gain_pct += machine.role == SimulatedRole::inflates ? 10 + 2 * random_.uniform() : 40;
    each.heats = draft_.heats;
    each.half_pct = half_width_pct(noise_, each.heats);
    each.exit = Exit::stayed;
  }

  void decide() {
    std::size_t best = 0;
    for (std::size_t i = 1; i < draft_.variants.size(); ++i) {
      const DraftVariant& each = draft_.variants[i];
      if (each.exit == Exit::stayed && each.gain_pct - each.half_pct > threshold_pct &&
          (best == 0 || each.gain_pct > draft_.variants[best].gain_pct))
        best = i;
    }
    draft_.winner = best;
    draft_.verdict = best != 0                ? record::Verdict::winner
                     : draft_.over_budget > 0 ? record::Verdict::out_of_budget
                                              : record::Verdict::dead_heat;
  }

  const SimulateOptions& options_;
  const World& world_;
  Draft& draft_;
  const TrueSubject& subject_;
  const Slot& slot_;
  const double noise_;
  Random random_;
  double best_pct_ = 0, base_noise_ = 0, base_rate_ = 0;
};

}  // namespace

void run_race(const SimulateOptions& options, const World& world, Draft& draft) {
  Run(options, world, draft).run();
}

}  // namespace furlong::fleet::internal
