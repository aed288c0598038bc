#include <cmath>

#include "bench/card/sections.h"
#include "furlong/base/json.h"

namespace furlong::bench {
namespace {

constexpr std::int64_t kFirstEpoch = 101;

/// What both said of one pack.
struct Pair {
  race::Outcome raced, plain;

  bool same() const { return raced.winner == plain.winner; }
  /// The two choices are within the race's threshold of each other by the race's own figures: either will do.
  bool as_good(double threshold) const {
    const auto gain = [&](std::size_t i) { return i == 0 ? 0.0 : raced.variants[i].gain; };
    return same() || std::abs(gain(raced.winner) - gain(plain.winner)) <= threshold;
  }
};

}  // namespace

Status classic_section(Bench& bench, Stage& stage) {
  FURLONG_TRY(const double packs, number_option(bench, "packs"));
  FURLONG_TRY(const double window_s, number_option(bench, "classic-window-s"));
  FURLONG_TRY(const double mib, number_option(bench, "classic-mib"));
  FURLONG_TRY(const double limit_s, number_option(bench, "limit-s"));
  Allowance allowance(limit_s);
  std::vector<double> paused, paused_plain;
  int done = 0, same = 0, as_good = 0;
  for (; done < static_cast<int>(packs); ++done) {
    if (!allowance.room()) break;
    FURLONG_TRY(const auto instance,
                stage.lottery(kFirstEpoch + done, 128, 0, static_cast<std::int64_t>(mib)));
    FURLONG_TRY(const auto points, instance.select(bench.option("variants")));
    race::Kept kept;  // both on the same buffers
    FURLONG_TRY(race::Options options, race_options(bench));
    options.seed = static_cast<std::uint64_t>(done) + 1;
    Pair pair;
    FURLONG_TRY(pair.raced, stage.race(instance, points, options, &kept, &stage.remembering()));
    options.classic = true;
    options.rounds = 1;
    options.classic_window_s = window_s;
    options.budget_s = 540;
    FURLONG_TRY(pair.plain, stage.race(instance, points, options, &kept, &stage.remembering()));
    const double threshold = options.rules.threshold;
    paused.push_back(pair.raced.paused_ms);
    paused_plain.push_back(pair.plain.paused_ms);
    same += pair.same();
    as_good += pair.as_good(threshold);
    const auto name = [](const race::Outcome& outcome) { return outcome.variants[outcome.winner].name; };
    bench.row(
        {fmt::format("seed {}: race {} ({}), plain {}", kFirstEpoch + done, name(pair.raced),
                     pair.raced.verdict_word, name(pair.plain)),
         {{"race_paused_ms", pair.raced.paused_ms},
          {"plain_paused_ms", pair.plain.paused_ms},
          {"race_gain_pct", pair.raced.winner == 0 ? 0 : 100 * pair.raced.variants[pair.raced.winner].gain},
          {"plain_gain_pct", pair.plain.winner == 0 ? 0 : 100 * pair.plain.variants[pair.plain.winner].gain},
          {"plain_choice_by_race_pct",
           pair.plain.winner == 0 ? 0 : 100 * pair.raced.variants[pair.plain.winner].gain},
          {"same", pair.same() ? 1.0 : 0.0},
          {"as_good", pair.as_good(threshold) ? 1.0 : 0.0}},
         "race and plain rule on the same packs"});
    details()["classic"].push_back(
        {{"seed", kFirstEpoch + done}, {"race", pair.raced.sentence}, {"plain", pair.plain.sentence}});
    say(fmt::format("pack {}: race {:.0f} ms: {}; plain rule {:.0f} ms: {}", kFirstEpoch + done,
                    pair.raced.paused_ms, pair.raced.sentence, pair.plain.paused_ms, pair.plain.sentence));
  }
  if (done == 0) return fail(Code::timeout, "no pack was raced within {:g} s", limit_s);
  bench.must(done == static_cast<int>(packs),
             fmt::format("{} of {:g} packs within {:g} s", done, packs, limit_s));
  bench.metric("packs", done, Better::higher);
  bench.metric("race_paused_ms_p50", median(paused), Better::lower, {.relative = 0.2});
  bench.metric("plain_paused_ms_p50", median(paused_plain), Better::lower, {.relative = 0.05});
  bench.metric("same_decision", static_cast<double>(same) / done, Better::higher);
  bench.metric("decision_as_good", static_cast<double>(as_good) / done, Better::higher);
  if (!bench.smoke() && stage.on_card()) bench.at_most("median pause of the race, ms", median(paused), 1000);
  return {};
}

}  // namespace furlong::bench
