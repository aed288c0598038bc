#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "bench/card/sections.h"
#include "furlong/base/json.h"
#include "furlong/base/os/clock.h"
#include "furlong/base/text.h"
#include "furlong/device/ceilings.h"
#include "furlong/race/ceiling.h"

namespace furlong::bench {
namespace {

constexpr std::int64_t kEpoch = 1;  // one dataset a size for all classes
constexpr double kGoal = 0.95;
constexpr std::int64_t kGoalMib = 1024;

struct Cell {
  std::int64_t mib = 0, loads = 0, wide = 0;
};

std::uint64_t bytes_of(const Cell& cell) {
  return cell.mib == 0 ? 16u << 20 : static_cast<std::uint64_t>(cell.mib) << 20;
}

std::string size_text(std::uint64_t bytes) { return fmt::format("{} MiB", bytes >> 20); }

/// Of the device, at the sizes of the datasets; printed.
Result<device::Ceilings> ceilings_at(Bench& bench, Stage& stage, std::span<const Cell> cells) {
  device::CeilingOptions options;
  for (const Cell& cell : cells) options.sizes.push_back(bytes_of(cell));
  std::ranges::sort(options.sizes);
  options.sizes.erase(std::ranges::unique(options.sizes).begin(), options.sizes.end());
  if (bench.smoke()) {
    options.launch_ms = 0.02;
    options.windows = 1;
    options.repeats = 2;
    options.elements = 1024;
    options.max_rounds = 8;
  }
  FURLONG_TRY(const device::Ceilings ceilings, device::measure_ceilings(stage.device(), options));
  for (const device::CeilingRate& rate : ceilings.rates) {
    const std::string name = fmt::format("{}{}", device::ceiling_name(rate.kind),
                                         rate.bytes != 0 ? fmt::format("_{}mib", rate.bytes >> 20) : "");
    bench.row({name, {{"G/s", rate.rate / 1e9}, {"launch_ms", rate.launch_ms}}, "ceilings"});
    if (rate.kind == device::CeilingKind::random4)
      bench.metric(fmt::format("ceiling_{}_gloads", name), rate.rate / 1e9, Better::higher);
    details()["ceilings"].push_back({{"name", name}, {"rate", rate.rate}, {"how", rate.how}});
  }
  say(fmt::format("{} ceilings measured in {:.1f} s", ceilings.rates.size(), ceilings.took_s));
  return ceilings;
}

Result<std::vector<Cell>> cells_of(const Bench& bench) {
  std::vector<Cell> cells;
  FURLONG_TRY(const auto sizes, list_option(bench, "sizes"));
  FURLONG_TRY(const auto classes, list_option(bench, "classes"));
  for (const std::string& size : sizes) {
    for (const std::string& text : classes) {
      const auto parts = split(text, '/');
      Cell cell;
      if (parts.size() != 2) return fail(Code::invalid, "--classes takes LOADS/WIDE,…, not '{}'", text);
      FURLONG_TRY(cell.mib, parse_integer(size));
      FURLONG_TRY(cell.loads, parse_integer(parts[0]));
      FURLONG_TRY(cell.wide, parse_integer(parts[1]));
      cells.push_back(cell);
    }
  }
  return cells;
}

Json variant_json(const race::VariantOutcome& variant) {
  const auto number = [](double value) { return std::isfinite(value) ? Json(value) : Json(); };
  Json json{{"name", variant.name},
            {"mhs", variant.rate ? Json(*variant.rate / 1e6) : Json()},
            {"gain_pct", number(100 * variant.gain)},
            {"low_pct", number(100 * variant.low)},
            {"high_pct", number(100 * variant.high)},
            {"heats", variant.heats},
            {"why", variant.why}};
  if (variant.kernel.registers) json["registers"] = *variant.kernel.registers;
  if (variant.kernel.spill_bytes) json["spill_bytes"] = *variant.kernel.spill_bytes;
  return json;
}

/// One class on one dataset.
class CellRace {
 public:
  CellRace(Bench& bench, Stage& stage, race::Kept& kept) : bench_(bench), stage_(stage), kept_(kept) {}

  /// Returns the rate that the race's decision serves with, as a share of the ceiling.
  Result<double> run(const Cell& cell, const device::Ceilings& ceilings) {
    FURLONG_TRY(const auto instance, stage_.lottery(kEpoch, cell.loads, cell.wide, cell.mib));
    FURLONG_TRY(const auto points, instance.select(bench_.option("variants")));
    FURLONG_TRY(const race::Options options, race_options(bench_));
    const double before = system_clock().now_ms();
    FURLONG_TRY(const race::Outcome outcome, stage_.race(instance, points, options, &kept_));
    const double took_s = 1e-3 * (system_clock().now_ms() - before);
    if (!outcome.variants[0].rate && bench_.smoke()) return std::numeric_limits<double>::quiet_NaN();
    if (!outcome.variants[0].rate) return fail(Code::internal, "base was not timed: {}", outcome.sentence);
    FURLONG_TRY(const auto work, instance.work(points[0]));
    const std::optional<race::Ceiling> ceiling = race::ceiling_of(work, ceilings);
    report(cell, ceiling, outcome, took_s);
    return share_of(outcome.variants[outcome.winner], ceiling);
  }

 private:
  /// As a race's own report divides.
  static double share_of(const race::VariantOutcome& variant, const std::optional<race::Ceiling>& ceiling) {
    return ceiling ? *variant.rate / ceiling->rate : std::numeric_limits<double>::quiet_NaN();
  }

  void report(const Cell& cell, const std::optional<race::Ceiling>& ceiling, const race::Outcome& outcome,
              double took_s) {
    const race::VariantOutcome& base = outcome.variants[0];
    const race::VariantOutcome* fastest = &base;
    for (const race::VariantOutcome& variant : outcome.variants)
      if (variant.rate && *variant.rate > *fastest->rate) fastest = &variant;
    const race::VariantOutcome& winner = outcome.variants[outcome.winner];
    const std::string name =
        fmt::format("{} loads, {} wide: {} ({})", cell.loads, cell.wide,
                    outcome.winner == 0 ? "base stays" : winner.name + " wins", outcome.verdict_word);
    bench_.row({name,
                {{"base_mhs", *base.rate / 1e6},
                 {"winner_mhs", *winner.rate / 1e6},
                 {"base_share", share_of(base, ceiling)},
                 {"winner_share", share_of(winner, ceiling)},
                 {"gain_pct", outcome.winner == 0 ? 0 : 100 * winner.gain},
                 {"low_pct", outcome.winner == 0 ? 0 : 100 * winner.low},
                 {"high_pct", outcome.winner == 0 ? 0 : 100 * winner.high},
                 {"highest_gain_pct", fastest == &base ? 0 : 100 * fastest->gain},
                 {"heats", static_cast<double>(outcome.heats.size())},
                 {"dropped", static_cast<double>(outcome.dropped_heats)},
                 {"paused_ms", outcome.paused_ms},
                 {"compile_ms", outcome.compile_ms},
                 {"total_s", took_s}},
                fmt::format("lottery, {}", size_text(bytes_of(cell)))});
    Json variants = Json::array();
    for (const race::VariantOutcome& variant : outcome.variants) variants.push_back(variant_json(variant));
    details()["lottery"].push_back({{"dataset_mib", cell.mib},
                                    {"loads", cell.loads},
                                    {"wide", cell.wide},
                                    {"verdict", outcome.verdict_word},
                                    {"sentence", outcome.sentence},
                                    {"variants", std::move(variants)}});
    say(fmt::format("lottery {} {}/{}: base {:.2f} MH/s ({:.1f}% of the ceiling); {} [{:.1f} s]",
                    size_text(bytes_of(cell)), cell.loads, cell.wide, *base.rate / 1e6,
                    100 * share_of(base, ceiling), outcome.sentence, took_s));
  }

  Bench& bench_;
  Stage& stage_;
  race::Kept& kept_;
};

}  // namespace

Status lottery_section(Bench& bench, Stage& stage) {
  FURLONG_TRY(const auto cells, cells_of(bench));
  FURLONG_TRY(const double limit_s, number_option(bench, "limit-s"));
  Allowance allowance(limit_s);
  race::Kept kept;
  FURLONG_TRY(const device::Ceilings ceilings, ceilings_at(bench, stage, cells));
  double smallest_share = std::numeric_limits<double>::infinity();
  std::size_t done = 0;
  for (const Cell& cell : cells) {
    if (!allowance.room()) break;
    if (done == 0 || cell.mib != cells[done - 1].mib) {
      kept = {};  // the dataset before goes first: two of the largest need not fit
    }
    FURLONG_TRY(const double share, CellRace(bench, stage, kept).run(cell, ceilings));
    bench.metric(fmt::format("share_{}_{}_{}mib", cell.loads, cell.wide, cell.mib), share, Better::higher);
    if (cell.mib >= kGoalMib) smallest_share = std::min(smallest_share, share);
    ++done;
  }
  bench.must(done == cells.size(),
             fmt::format("{} of {} classes and sizes raced within {:g} s", done, cells.size(), limit_s));
  if (std::isfinite(smallest_share)) {
    bench.metric("smallest_share_from_1gib", smallest_share, Better::higher);
    bench.at_least("smallest share of the random-load ceiling from 1 GiB up", smallest_share, kGoal);
  }
  return {};
}

}  // namespace furlong::bench
