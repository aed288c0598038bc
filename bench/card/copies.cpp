#include <algorithm>
#include <set>

#include "bench/card/sections.h"
#include "furlong/base/json.h"
#include "furlong/base/os/clock.h"
#include "furlong/race/internal/entrant.h"

namespace furlong::bench {
namespace {

constexpr int kMostCopies = 17;

struct Counts {
  int races = 0, switches = 0, found = 0, dead_heats = 0, out_of_budget = 0, dropped_heats = 0;
  std::vector<double> paused_ms, planted_gain, winner_gain;
  double wall_s = 0;
};

/// Races of one field of copies.
class Field {
 public:
  Field(Bench& bench, Stage& stage, program::Instance instance, std::vector<lattice::Point> points)
      : bench_(bench), stage_(stage), instance_(std::move(instance)), points_(std::move(points)) {}

  /// `planted`: the index that should win; 0: none.
  Result<Counts> run(int races, std::size_t planted, double limit_s) {
    Counts counts;
    const double start_ms = system_clock().now_ms();
    Allowance allowance(limit_s);
    for (int i = 0; i < races; ++i) {
      if (!allowance.room()) break;
      FURLONG_TRY(race::Options options, race_options(bench_));
      options.seed = static_cast<std::uint64_t>(i) + 1;
      FURLONG_TRY(const race::Outcome outcome, stage_.race(instance_, points_, options, &kept_, device_));
      if (i == 0) FURLONG_CHECK(check(outcome));
      // Modules loaded anew for every race are what a race has, unless that would mean compiling every time.
      if (i == 1 && !outcome.variants[0].kernel.from_cache) device_ = &stage_.remembering();
      add(outcome, planted, counts);
      if (i % 20 == 19) progress(counts, planted);
    }
    counts.wall_s = 1e-3 * (system_clock().now_ms() - start_ms);
    progress(counts, planted);
    return counts;
  }

  /// Gain of `other` over base in long windows in turn: the truth that a race is held against.
  Result<double> long_gain(std::size_t other, int windows, double window_ms) {
    if (!kept_.buffers || kept_.modules.size() <= other || !kept_.modules[0] || !kept_.modules[other])
      return fail(Code::internal, "no race has built the variants");
    FURLONG_TRY(const auto inputs, instance_.timed_inputs(1, points_));
    kept_.buffers->forget();
    FURLONG_CHECK(kept_.buffers->load(inputs, 1));
    std::array<race::Pipeline, 2> pipelines;
    const std::size_t which[] = {0, other};
    for (std::size_t k = 0; k < 2; ++k) {
      FURLONG_TRY(pipelines[k], race::make_launches(instance_, points_[which[k]], *kept_.modules[which[k]],
                                                    *kept_.buffers, inputs));
    }
    device::Device& device = stage_.device();
    const auto time = [&](std::size_t k, int repeats) -> Result<std::vector<double>> {
      FURLONG_CHECK(race::launch_all(device, pipelines[k].once));  // the other one has used scratch
      return device.time({.pipeline = pipelines[k].launches, .repeats = repeats});
    };
    FURLONG_TRY(const auto first, time(0, 3));
    const int repeats = std::max(3, static_cast<int>(window_ms / std::max(median(first), 1e-3)));
    std::vector<double> ratios;
    for (int i = 0; i < windows; ++i) {
      std::array<double, 2> cost{};
      for (const std::size_t turn : {0u, 1u}) {
        const std::size_t k = (turn + static_cast<std::size_t>(i)) % 2;  // who goes first changes
        FURLONG_TRY(auto times, time(k, repeats));
        times.erase(times.begin());
        cost[k] = median(std::move(times));
      }
      ratios.push_back(cost[0] / cost[1] - 1);
    }
    return median(std::move(ratios));
  }

 private:
  /// That the copies are copies: separately compiled, and each with code of its own.
  Status check(const race::Outcome& outcome) {
    std::set<std::string> codes;
    for (const race::VariantOutcome& variant : outcome.variants) {
      const bool timed = variant.rate || bench_.smoke();  // a busy CPU may have no time for all
      if (variant.exit == race::Exit::duplicate || !timed)
        return fail(Code::internal, "copy '{}' was not timed by itself: {}", variant.name, variant.why);
      if (!variant.kernel.code_hash.empty()) codes.insert(variant.kernel.code_hash);
    }
    if (!codes.empty() && codes.size() != outcome.variants.size())
      return fail(Code::internal, "{} copies have {} machine codes", outcome.variants.size(), codes.size());
    return {};
  }

  void add(const race::Outcome& outcome, std::size_t planted, Counts& counts) const {
    ++counts.races;
    counts.switches += outcome.winner != 0;
    counts.found += planted != 0 && outcome.winner == planted;
    counts.dead_heats += outcome.verdict_word == "dead-heat";
    counts.out_of_budget += outcome.verdict_word == "out-of-budget";
    counts.dropped_heats += outcome.dropped_heats;
    counts.paused_ms.push_back(outcome.paused_ms);
    if (planted != 0) counts.planted_gain.push_back(outcome.variants[planted].gain);
    if (outcome.winner == planted) return;
    const race::VariantOutcome& winner = outcome.variants[outcome.winner];
    details()["copies"].push_back({{"seed", outcome.seed},
                                   {"planted", planted != 0},
                                   {"sentence", outcome.sentence},
                                   {"winner", winner.name}});
    say(fmt::format("seed {}: {}", outcome.seed, outcome.sentence));
  }

  static void progress(const Counts& counts, std::size_t planted) {
    const std::string found = planted != 0 ? fmt::format("planted one found in {}", counts.found)
                                           : fmt::format("{} switches", counts.switches);
    say(fmt::format("{} races of copies: {}; pause {:.0f} ms (median)", counts.races, found,
                    median(counts.paused_ms)));
  }

  Bench& bench_;
  Stage& stage_;
  program::Instance instance_;
  std::vector<lattice::Point> points_;
  device::Device* device_ = &stage_.device();
  race::Kept kept_;
};

void report(Bench& bench, const std::string& name, const Counts& counts) {
  bench.row({name,
             {{"races", counts.races},
              {"switches", counts.switches},
              {"found", counts.found},
              {"dead_heats", counts.dead_heats},
              {"out_of_budget", counts.out_of_budget},
              {"dropped_heats", counts.dropped_heats},
              {"paused_ms_p50", median(counts.paused_ms)},
              {"paused_ms_p95", quantile(counts.paused_ms, 0.95)},
              {"paused_ms_p99", quantile(counts.paused_ms, 0.99)},
              {"wall_s", counts.wall_s}},
             "races of copies"});
}

std::string names(int copies, bool planted) {
  std::string list = "base";
  for (int i = 1; i < copies; ++i)
    list += fmt::format(",c{}{}", i, planted && i == copies - 1 ? "-short" : "");
  return list;
}

}  // namespace

Status copies_section(Bench& bench, Stage& stage) {
  FURLONG_TRY(const double copies, number_option(bench, "copies"));
  FURLONG_TRY(const double equal_races, number_option(bench, "aa-races"));
  FURLONG_TRY(const double planted_races, number_option(bench, "planted-races"));
  FURLONG_TRY(const double threads, number_option(bench, "copies-threads"));
  FURLONG_TRY(const double limit_s, number_option(bench, "limit-s"));
  if (copies < 2 || copies > kMostCopies)
    return fail(Code::invalid, "--copies takes 2 to {}, not {:g}", kMostCopies, copies);
  FURLONG_TRY(const auto instance,
              stage.file("bench/data/card/copies.toml", {{"n", static_cast<std::int64_t>(threads)}}));
  Allowance allowance(limit_s);
  // The equal ones get two thirds of the time, as they are two thirds of the races.
  FURLONG_TRY(auto equal_points, instance.select(names(static_cast<int>(copies), false)));
  Field equal(bench, stage, instance, std::move(equal_points));
  FURLONG_TRY(const Counts none, equal.run(static_cast<int>(equal_races), 0, limit_s * 2 / 3));
  report(bench, fmt::format("{:g} equal", copies), none);
  FURLONG_TRY(auto planted_points, instance.select(names(static_cast<int>(copies), true)));
  const std::size_t planted = planted_points.size() - 1;
  Field one(bench, stage, instance, std::move(planted_points));
  FURLONG_TRY(const Counts better, one.run(static_cast<int>(planted_races), planted, allowance.left_s()));
  report(bench, fmt::format("{:g} with one 1% shorter", copies), better);
  FURLONG_TRY(const double truth, one.long_gain(planted, bench.smoke() ? 2 : 20, bench.smoke() ? 1 : 200));

  const double found = static_cast<double>(better.found) / better.races;
  bench.metric("aa_races", none.races, Better::higher);
  bench.metric("aa_switches", none.switches, Better::lower, {.absolute = 1});
  bench.metric("aa_paused_ms_p50", median(none.paused_ms), Better::lower, {.relative = 0.2});
  bench.metric("aa_paused_ms_p95", quantile(none.paused_ms, 0.95), Better::lower, {.relative = 0.2});
  bench.metric("aa_paused_ms_p99", quantile(none.paused_ms, 0.99), Better::lower, {.relative = 0.3});
  bench.metric("planted_races", better.races, Better::higher);
  bench.metric("planted_found", found, Better::higher);
  bench.metric("planted_true_gain_pct", 100 * truth, Better::higher, {.absolute = 0.05});
  bench.metric("planted_raced_gain_pct", 100 * median(better.planted_gain), Better::higher,
               {.absolute = 0.05});
  bench.metric("planted_paused_ms_p50", median(better.paused_ms), Better::lower, {.relative = 0.2});
  bench.metric("planted_paused_ms_p99", quantile(better.paused_ms, 0.99), Better::lower, {.relative = 0.3});
  if (bench.smoke()) return {};  // a busy CPU decides nothing in a few races
  bench.at_most("switches between equal copies", none.switches, 2);
  bench.at_least("share of races that found the planted variant", found, 0.99);
  bench.must(none.races >= equal_races && better.races >= planted_races,
             fmt::format("{} and {} of {:g} and {:g} races of copies within {:g} s", none.races, better.races,
                         equal_races, planted_races, limit_s));
  return {};
}

}  // namespace furlong::bench
