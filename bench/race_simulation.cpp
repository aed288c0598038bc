#include "bench/race_simulation.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "furlong/stats/classic.h"
#include "furlong/stats/elimination.h"
#include "furlong/stats/heat_order.h"

namespace furlong::bench {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kThreshold = 0.005;
constexpr double kWindowMs = 5, kClassicMs = 2000;
constexpr int kWindowLaunches = 3;
constexpr double kPauseCapMs = 60000;
constexpr std::size_t kBlock = 20;  // windows per block of the bootstrap

using Gains = std::array<double, kVariants>;

Gains draw_gains(Field field, Random& random) {
  Gains gains{};
  const auto one = [&] { return 1 + random.below(kVariants - 1); };
  switch (field) {
    case Field::none_better:
      break;
    case Field::at_threshold:
      gains[one()] = kThreshold;
      break;
    case Field::one_better:
      gains[one()] = 0.01;
      break;
    case Field::three_tied:
      for (int left = 3; left > 0;) {
        double& gain = gains[one()];
        if (gain == 0) gain = 0.01, --left;
      }
      break;
    case Field::mixed:
      // Most variants lose, some change nothing, a few win: what catalogues look like.
      for (std::size_t v = 1; v < kVariants; ++v) {
        const double kind = random.uniform();
        gains[v] = kind < 0.6    ? -0.05 * std::abs(random.normal())
                   : kind < 0.85 ? 0.004 * (random.uniform() - 0.5)
                                 : 0.03 * random.uniform();
      }
      break;
  }
  return gains;
}

// The windows of one race. Log cost noise; the gain is applied by the caller.
class Source {
 public:
  virtual ~Source() = default;
  virtual void start_heat(std::size_t /*windows*/) {}
  /// Log of the relative cost of the next window in time.
  virtual double window(std::size_t variant, bool second_base) = 0;
  /// Log of the relative cost of a 2 s turn of the plain rule.
  virtual double turn(std::size_t variant) = 0;
  virtual double window_ms() const = 0;
};

class TraceSource : public Source {
 public:
  TraceSource(const Trace& trace, bool with_first, Random& random)
      : trace_(trace), with_first_(with_first), random_(random) {
    for (std::size_t v = 0; v < kVariants; ++v) kernel_[v] = v % trace.kernels;
    random_.shuffle(std::span<std::size_t>(kernel_));
    heat_ = random_.below(trace_.heats.size());
    again_ = random_.below(trace_.heats.size());
  }

  void start_heat(std::size_t) override {
    heat_ = next(heat_);
    again_ = next(again_);
  }

  double window(std::size_t variant, bool second_base) override {
    const Trace::Window& w = trace_.heats[second_base ? again_ : heat_][kernel_[variant]];
    return std::log(with_first_ ? w.mean_with_first : w.median);
  }

  double turn(std::size_t variant) override {
    // 2 s of the same kernel: blocks of its recorded windows.
    double ms = 0, launches = 0;
    std::size_t at = 0;
    for (std::size_t i = 0; ms < kClassicMs; ++i) {
      if (i % kBlock == 0) at = random_.below(trace_.heats.size());
      const Trace::Window& w = trace_.heats[at][kernel_[variant]];
      constexpr double kSteadyLaunches = 15;
      ms += kSteadyLaunches * w.mean;
      launches += kSteadyLaunches;
      at = (at + 1) % trace_.heats.size();
    }
    return std::log(ms / launches);
  }

  double window_ms() const override {
    const double launches = std::max<double>(kWindowLaunches, std::ceil(kWindowMs / trace_.launch_ms));
    return trace_.first_launch_ms + launches * trace_.launch_ms;
  }

 private:
  // The recorded order of heats; a new block at a random place when the run is over.
  std::size_t next(std::size_t heat) {
    return heat + 1 < trace_.heats.size() ? heat + 1 : random_.below(trace_.heats.size());
  }

  const Trace& trace_;
  bool with_first_;
  Random& random_;
  std::array<std::size_t, kVariants> kernel_{};
  std::size_t heat_ = 0, again_ = 0;
};

class SyntheticSource : public Source {
 public:
  SyntheticSource(const Scene& scene, bool with_first, Random& random)
      : shape_(scene.shape), noise_(scene.noise), with_first_(with_first), random_(random) {
    for (std::size_t v = 0; v < kVariants; ++v) {
      own_[v] = random_.normal();
      factor_[v] = shape_ == Shape::uneven && random_.uniform() < 0.2 ? 3 : 1;
      first_[v] = 0.02 + 0.11 * random_.uniform();
    }
    card_ = random_.normal();
    bad_window_ = static_cast<int>(random_.below(10));
  }

  void start_heat(std::size_t) override {
    position_ = 0;
    if (shape_ == Shape::correlated)
      for (double& own : own_) own = walk(own, kOwnMemory);
  }

  double window(std::size_t variant, bool) override {
    double value = draw(variant, position_ / (kVariants + 1.0));
    ++position_;
    if (shape_ == Shape::bad_base && variant == 0 && base_windows_++ == bad_window_) value += kBadWindow;
    if (with_first_) value += std::log1p(first_[variant] / (kWindowLaunches + 1));
    return value;
  }

  double turn(std::size_t variant) override {
    const double value = draw(variant, static_cast<double>(variant) / kVariants);
    return shape_ == Shape::bad_base && variant == 0 ? value + kBadWindow : value;
  }

  double window_ms() const override { return (kWindowLaunches + 1.04) * kLaunchMs; }

 private:
  static constexpr double kCardMemory = 0.9, kOwnMemory = 0.5, kRamp = 0.009, kStep = 0.01, kBadWindow = 0.03,
                          kLaunchMs = 1.7;

  double walk(double value, double memory) {
    return memory * value + std::sqrt(1 - memory * memory) * random_.normal();
  }

  double draw(std::size_t variant, double place) {
    switch (shape_) {
      case Shape::white:
      case Shape::bad_base:
        return noise_ * random_.normal();
      case Shape::uneven:
        return noise_ * factor_[variant] * random_.normal();
      case Shape::correlated:
        // Half the variance wanders with the card from window to window, half with the variant from
        // heat to heat.
        card_ = walk(card_, kCardMemory);
        return noise_ * (card_ + own_[variant]) / std::sqrt(2.0);
      case Shape::ramp:
        return noise_ * random_.normal() - kRamp * place;
      case Shape::steps:
        if (random_.uniform() < 1.0 / 40) slow_ = !slow_;
        return noise_ * random_.normal() + (slow_ ? kStep : 0);
      case Shape::tails: {
        const double slow = random_.uniform() < 0.1 ? -5 * std::log(1 - random_.uniform()) : 0;
        return noise_ * (random_.normal() + slow);
      }
    }
    return 0;
  }

  Shape shape_;
  double noise_;
  bool with_first_;
  Random& random_;
  std::array<double, kVariants> own_{}, factor_{}, first_{};
  double card_ = 0, position_ = 0;
  bool slow_ = false;
  int base_windows_ = 0, bad_window_ = 0;
};

std::unique_ptr<Source> make_source(const Scene& scene, bool with_first, Random& random) {
  if (scene.trace) return std::make_unique<TraceSource>(*scene.trace, with_first, random);
  return std::make_unique<SyntheticSource>(scene, with_first, random);
}

void judge(RaceOutcome& outcome, const Gains& gains) {
  const double best = *std::max_element(gains.begin(), gains.end());
  const double chosen = gains[outcome.winner];
  outcome.switched = outcome.winner != 0;
  outcome.found = outcome.switched && chosen >= best - 0.001;
  outcome.regret = std::max(0.0, (1 + best) / (1 + chosen) - 1 - kThreshold);
}

RaceOutcome plain_rule(Source& source, const Gains& gains) {
  std::vector<double> cost;
  for (std::size_t v = 0; v < kVariants; ++v) cost.push_back(std::exp(source.turn(v)) / (1 + gains[v]));
  const std::vector<std::vector<double>> rounds{cost};
  RaceOutcome outcome;
  outcome.winner = stats::classic(rounds).winner;
  outcome.paused_ms = kClassicMs * kVariants;
  judge(outcome, gains);
  return outcome;
}

}  // namespace

std::string_view rule_name(Rule rule) {
  switch (rule) {
    case Rule::race:
      return "race";
    case Rule::classic:
      return "classic";
    case Rule::uncorrected:
      return "uncorrected";
    case Rule::first_launch:
      return "first_launch";
    case Rule::unshuffled:
      return "unshuffled";
  }
  return "";
}

std::string_view shape_name(Shape shape) {
  switch (shape) {
    case Shape::white:
      return "white";
    case Shape::correlated:
      return "autocorrelated";
    case Shape::ramp:
      return "ramp";
    case Shape::steps:
      return "steps";
    case Shape::tails:
      return "tails";
    case Shape::bad_base:
      return "bad-base";
    case Shape::uneven:
      return "uneven";
  }
  return "";
}

std::string_view field_name(Field field) {
  switch (field) {
    case Field::none_better:
      return "none";
    case Field::at_threshold:
      return "threshold";
    case Field::one_better:
      return "one";
    case Field::three_tied:
      return "tied";
    case Field::mixed:
      return "mixed";
  }
  return "";
}

RaceOutcome simulate(const Scene& scene, Field field, Rule rule, std::uint64_t seed) {
  Random random(seed);
  const Gains gains = draw_gains(field, random);
  const auto source = make_source(scene, rule == Rule::first_launch, random);
  if (rule == Rule::classic) return plain_rule(*source, gains);

  stats::RaceRules rules;
  rules.threshold = kThreshold;
  if (rule == Rule::uncorrected) rules.interval = stats::Interval::uncorrected;
  stats::Elimination race(kVariants, rules);
  RaceOutcome outcome;
  std::array<bool, kVariants> seen{}, missed{};
  stats::Heat heat;
  for (std::uint64_t number = 0; race.verdict() == stats::Verdict::undecided; ++number) {
    if (outcome.paused_ms >= kPauseCapMs) {
      outcome.decided = false;
      break;
    }
    const std::vector<std::size_t> in = race.survivors();
    std::vector<std::size_t> order;
    if (rule == Rule::unshuffled) {
      order = in;
      order.insert(order.begin(), 0);
    } else {
      order = stats::heat_order(in, number, seed);
    }
    heat.cost.assign(kVariants, kNaN);
    source->start_heat(order.size());
    bool base_seen = false;
    for (const std::size_t v : order) {
      const bool second = v == 0 && base_seen;
      base_seen = base_seen || v == 0;
      const double cost = std::exp(source->window(v, second)) / (1 + gains[v]);
      (second ? heat.base_again : heat.cost[v]) = cost;
      outcome.paused_ms += source->window_ms() * (gains[v] < 0 ? 1 / (1 + gains[v]) : 1);
    }
    race.add(heat);
    for (const std::size_t v : in) {
      const stats::VariantState& state = race.states()[v];
      if (v == 0 || !std::isfinite(state.high)) continue;
      seen[v] = true;
      if (gains[v] < state.low || gains[v] > state.high) missed[v] = true;
    }
  }
  outcome.winner = race.decide_now();
  outcome.intervals = static_cast<int>(std::count(seen.begin(), seen.end(), true));
  outcome.misses = static_cast<int>(std::count(missed.begin(), missed.end(), true));
  judge(outcome, gains);
  return outcome;
}

}  // namespace furlong::bench
