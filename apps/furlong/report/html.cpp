#include "apps/furlong/report/html.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <optional>

#include "apps/furlong/report/svg.h"
#include "apps/furlong/report/text.h"
#include "furlong/base/text.h"
#include "furlong/race/explain.h"
#include "furlong/race/knob_effects.h"

namespace furlong::app {
namespace {

constexpr std::string_view kStyle = R"(
:root { color-scheme: light dark; --ink:#1a1d21; --dim:#667; --paper:#fff; --rule:#d5d9de; --base:#69707a; --win:#0a7d33;
  --mark:#1f5fbf; --out:#b04a00; }
@media (prefers-color-scheme: dark) { :root { --ink:#e6e8eb; --dim:#9aa3ad; --paper:#14171a; --rule:#343a40; --base:#9aa3ad;
  --win:#4cc774; --mark:#79aef5; --out:#f0a35e; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); margin: 0 auto; max-width: 60rem;
  padding: 1rem 1.2rem 4rem; }
h1 { font-size: 1.5rem; margin-bottom: 0.2rem; } h2 { font-size: 1.1rem; margin: 2rem 0 0.4rem; }
p.decision { font-size: 1.1rem; font-weight: 600; } .dim { color: var(--dim); }
svg { width: 100%; height: auto; display: block; }
.label { font: 12px system-ui, sans-serif; fill: var(--ink); } .axis { font: 11px system-ui, sans-serif; fill: var(--dim); }
.grid { stroke: var(--rule); stroke-width: 1; } .zero { stroke: var(--base); stroke-width: 1.5; }
.threshold { stroke: var(--win); stroke-width: 1; stroke-dasharray: 4 3; }
.range { stroke: var(--mark); stroke-width: 2; } .range-win { stroke: var(--win); stroke-width: 3; } .range-out { stroke: var(--out); stroke-width: 2; opacity: .7; }
.mark { fill: var(--mark); } .mark-win { fill: var(--win); } .mark-out { fill: var(--out); opacity: .8; } .mark-base { fill: var(--base); }
.curve { fill: none; stroke: var(--mark); stroke-width: 1; opacity: .35; } .curve-base { fill: none; stroke: var(--base); stroke-width: 2; }
.curve-win { fill: none; stroke: var(--win); stroke-width: 2; } .bar { fill: var(--mark); opacity: .75; } .bar-win { fill: var(--win); }
.bar-out { fill: var(--out); opacity: .6; }
.scroll { overflow-x: auto; } table { border-collapse: collapse; font-size: 13px; width: 100%; }
th, td { text-align: right; padding: 3px 8px; border-bottom: 1px solid var(--rule); white-space: nowrap; }
th:first-child, td:first-child, td.why, th.why { text-align: left; } td.why { white-space: pre-line; min-width: 14rem; }
code { font-size: 13px; } footer { margin-top: 3rem; color: var(--dim); font-size: 13px; }
)";

constexpr double kLeft = 150, kWidth = 860, kRight = 840;

std::string percent(double ratio) { return fmt::format("{:+.2f}%", 100 * ratio); }

bool is_winner(const race::Outcome& outcome, std::size_t i) {
  return outcome.winner != 0 && i == outcome.winner;  // of a race that the budget ended: the best so far
}

/// Those with a gain to draw: a race for energy gives one to its finalists only.
std::vector<std::size_t> timed_by_gain(const race::Outcome& outcome) {
  std::vector<std::size_t> order = by_gain(outcome);
  std::erase_if(order, [&](std::size_t i) {
    const auto& variant = outcome.variants[i];
    return !variant.rate || variant.heats == 0 || (i != 0 && !std::isfinite(variant.gain));
  });
  return order;
}

void x_axis(Svg& svg, const Scale& x, double top, double bottom, std::string_view unit, double factor,
            int ticks = 8) {
  for (const double tick : x.ticks(ticks)) {
    svg.line(x(tick), top, x(tick), bottom, "grid");
    svg.text(x(tick), bottom + 14, fmt::format("{:g}{}", std::round(tick * factor * 1e6) / 1e6, unit),
             "middle", "axis");
  }
}

/// Gain of each variant over base with its interval.
std::string gain_chart(const race::Outcome& outcome, double threshold) {
  const auto order = timed_by_gain(outcome);
  double low = 0, high = threshold;
  for (const std::size_t i : order) {
    if (i == 0) continue;
    const auto& variant = outcome.variants[i];
    // An early elimination has a wide interval; the axis follows the estimates and clips such ends.
    low =
        std::min(low, std::isfinite(variant.low) ? std::max(variant.low, variant.gain - 0.1) : variant.gain);
    high = std::max(high,
                    std::isfinite(variant.high) ? std::min(variant.high, variant.gain + 0.1) : variant.gain);
  }
  const double pad = (high - low) * 0.05;
  const Scale x(low - pad, high + pad, kLeft, kRight);
  const double row = 22, top = 8, bottom = top + row * static_cast<double>(order.size()) + 4;
  Svg svg(static_cast<int>(kWidth), static_cast<int>(bottom + 24),
          "Gain of each variant over base, with its interval");
  x_axis(svg, x, top, bottom, "%", 100);
  svg.line(x(0), top, x(0), bottom, "zero");
  svg.line(x(threshold), top, x(threshold), bottom, "threshold");
  double y = top + row / 2;
  for (const std::size_t i : order) {
    const auto& variant = outcome.variants[i];
    const bool won = is_winner(outcome, i);
    const bool out = variant.exit != race::Exit::none && variant.exit != race::Exit::duplicate;
    svg.text(kLeft - 8, y + 4, variant.name, "end");
    if (i == 0) {
      svg.dot(x(0), y, 4, "mark-base", "base: every gain is against it within the same heat");
    } else {
      const auto clip = [&](double value) { return std::clamp(value, x.low(), x.high()); };
      const std::string tip =
          fmt::format("{}: {} ({} to {}), {} heats. {}", variant.name, percent(variant.gain),
                      percent(variant.low), percent(variant.high), variant.heats, variant.why);
      if (std::isfinite(variant.low) && std::isfinite(variant.high))
        svg.line(x(clip(variant.low)), y, x(clip(variant.high)), y,
                 won   ? "range-win"
                 : out ? "range-out"
                       : "range");
      svg.dot(x(clip(variant.gain)), y, won ? 5 : 4, won ? "mark-win" : out ? "mark-out" : "mark", tip);
    }
    y += row;
  }
  return svg.finish();
}

double heat_end(const race::Outcome& outcome) {
  double end = 0;
  for (const auto& heat : outcome.heats) end = std::max(end, heat.at_s);
  return end;
}

double median_base_cost(const race::Outcome& outcome) {
  std::vector<double> costs;
  for (const auto& heat : outcome.heats)
    if (!heat.dropped && !heat.cost_ms.empty() && std::isfinite(heat.cost_ms[0]))
      costs.push_back(heat.cost_ms[0]);
  if (costs.empty()) return 1;
  std::nth_element(costs.begin(), costs.begin() + static_cast<std::ptrdiff_t>(costs.size() / 2), costs.end());
  return costs[costs.size() / 2];
}

using Curve = std::vector<std::pair<double, double>>;

/// Cost of every variant in every heat over base's median: drift moves all curves together.
std::string heats_chart(const race::Outcome& outcome) {
  const double scale = median_base_cost(outcome);
  std::vector<Curve> curves(outcome.variants.size());
  std::vector<double> values;
  for (const auto& heat : outcome.heats) {
    if (heat.dropped) continue;
    for (std::size_t i = 0; i < heat.cost_ms.size() && i < curves.size(); ++i) {
      if (!std::isfinite(heat.cost_ms[i])) continue;
      // Of the same work as base's launch.
      const double cost = heat.cost_ms[i] / scale * outcome.work_amount / outcome.variants[i].work_amount;
      curves[i].emplace_back(heat.at_s, cost);
      values.push_back(cost);
    }
  }
  if (values.empty()) return "<p class=\"dim\">No accepted heats.</p>\n";
  std::sort(values.begin(), values.end());
  const auto quantile = [&](double q) {
    return values[static_cast<std::size_t>(q * static_cast<double>(values.size() - 1))];
  };
  const double low = quantile(0.01), high = quantile(0.97);  // a far outlier must not flatten the rest
  const double pad = (high - low) * 0.08;
  const double top = 8, bottom = 268;
  const Scale x(0, std::max(heat_end(outcome), 1e-3), 60, kRight);
  const Scale y(low - pad, high + pad, bottom, top);
  Svg svg(static_cast<int>(kWidth), 296, "Heats over time: cost of each variant relative to base's median");
  for (const double tick : y.ticks(6)) {
    svg.line(60, y(tick), kRight, y(tick), "grid");
    svg.text(54, y(tick) + 4, fmt::format("{:.3f}", tick), "end", "axis");
  }
  x_axis(svg, x, bottom, bottom, " s", 1);
  const auto draw = [&](std::size_t i, std::string_view css) {
    Curve points;
    for (const auto& [at, value] : curves[i])
      points.emplace_back(x(at), y(std::clamp(value, y.low(), y.high())));
    svg.path(points, css, outcome.variants[i].name);
  };
  for (std::size_t i = 1; i < curves.size(); ++i)
    if (!is_winner(outcome, i)) draw(i, "curve");
  draw(0, "curve-base");
  if (outcome.winner != 0) draw(outcome.winner, "curve-win");
  return svg.finish();
}

/// How long each variant stayed in the race.
std::string elimination_chart(const race::Outcome& outcome) {
  std::vector<double> last(outcome.variants.size(), 0);
  for (const auto& heat : outcome.heats)
    for (std::size_t i = 0; i < heat.cost_ms.size() && i < last.size(); ++i)
      if (std::isfinite(heat.cost_ms[i])) last[i] = heat.at_s;
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < last.size(); ++i)
    if (outcome.variants[i].heats > 0) order.push_back(i);
  if (order.empty()) return "<p class=\"dim\">Nothing was timed.</p>\n";
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return last[a] > last[b]; });
  const double row = 20, top = 8, bottom = top + row * static_cast<double>(order.size()) + 4;
  const Scale x(0, std::max(heat_end(outcome), 1e-3), kLeft, kRight);
  Svg svg(static_cast<int>(kWidth), static_cast<int>(bottom + 24),
          "Elimination order: how long each variant stayed in");
  x_axis(svg, x, top, bottom, " s", 1);
  double y = top;
  for (const std::size_t i : order) {
    const auto& variant = outcome.variants[i];
    const bool out = variant.exit != race::Exit::none && variant.exit != race::Exit::duplicate;
    svg.text(kLeft - 8, y + 14, variant.name, "end");
    svg.box(kLeft, y + 4, x(last[i]) - kLeft, 12,
            is_winner(outcome, i) ? "bar-win"
            : out                 ? "bar-out"
                                  : "bar",
            fmt::format("{}: {} heats. {}", variant.name, variant.heats, variant.why));
    y += row;
  }
  return svg.finish();
}

std::string telemetry_curve(const race::Outcome& outcome, std::string_view what, std::string_view unit,
                            const std::function<std::optional<double>(const device::Telemetry&)>& get) {
  Curve raw;
  for (const auto& heat : outcome.heats)
    if (const auto value = get(heat.telemetry)) raw.emplace_back(heat.at_s, *value);
  if (raw.size() < 2) return {};
  double low = raw[0].second, high = raw[0].second;
  for (const auto& [at, value] : raw) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  const Scale x(0, std::max(heat_end(outcome), 1e-3), 60, kRight);
  const Scale y(low - (high - low) * 0.1, high + (high - low) * 0.1, 110, 8);
  Svg svg(static_cast<int>(kWidth), 138, fmt::format("{} over time", what));
  for (const double tick : y.ticks(3)) {
    svg.line(60, y(tick), kRight, y(tick), "grid");
    svg.text(54, y(tick) + 4, fmt::format("{:g}", tick), "end", "axis");
  }
  x_axis(svg, x, 110, 110, " s", 1);
  Curve points;
  for (const auto& [at, value] : raw) points.emplace_back(x(at), y(value));
  svg.path(points, "curve-base", fmt::format("{} in {}", what, unit));
  return fmt::format("<p class=\"dim\">{} ({})</p>\n{}", what, unit, svg.finish());
}

std::string telemetry_charts(const race::Outcome& outcome) {
  std::string out = telemetry_curve(outcome, "Clock", "MHz", [](const auto& t) { return t.clock_mhz; });
  out += telemetry_curve(outcome, "Power", "W", [](const auto& t) { return t.power_w; });
  out += telemetry_curve(outcome, "Temperature", "°C", [](const auto& t) { return t.temperature_c; });
  return out.empty() ? "<p class=\"dim\">This device reports neither clock nor power.</p>\n" : out;
}

/// Main effect of each knob value on the rate, by least squares over the timed variants.
std::string effects_chart(const program::Instance& instance, const race::Outcome& outcome) {
  const auto effects = race::knob_effects(instance, outcome);
  if (effects.empty()) return "<p class=\"dim\">Too few timed variants to tell the knobs apart.</p>\n";
  double low = 0, high = 0;
  for (const auto& effect : effects) {
    low = std::min(low, effect.gain);
    high = std::max(high, effect.gain);
  }
  const double pad = std::max((high - low) * 0.05, 1e-4);
  const Scale x(low - pad, high + pad, kLeft, kRight);
  const double row = 20, top = 8, bottom = top + row * static_cast<double>(effects.size()) + 4;
  Svg svg(static_cast<int>(kWidth), static_cast<int>(bottom + 24), "Effect of each knob value on the rate");
  x_axis(svg, x, top, bottom, "%", 100);
  svg.line(x(0), top, x(0), bottom, "zero");
  double y = top;
  for (const auto& effect : effects) {
    const std::string label = effect.knob + " " + effect.value;
    svg.text(kLeft - 8, y + 14, label, "end");
    svg.box(std::min(x(0), x(effect.gain)), y + 4, std::abs(x(effect.gain) - x(0)), 12,
            effect.gain >= 0 ? "bar-win" : "bar-out",
            fmt::format("{}: {} against the default, other knobs equal", label, percent(effect.gain)));
    y += row;
  }
  return svg.finish();
}

std::string variants_table(const program::Instance& instance, const race::Outcome& outcome) {
  const auto& work = instance.program().work;
  const bool occupancy = any_known(outcome, &race::VariantOutcome::occupancy);
  const bool shares = any_known(outcome, &race::VariantOutcome::share_of_ceiling);
  std::vector<std::string> headings{"variant", work.rate_unit, "gain", "interval"};
  if (shares) headings.emplace_back("of ceiling");
  for (const char* heading : {"heats", "", "registers", "spills"}) headings.emplace_back(heading);
  if (occupancy) headings.emplace_back("occupancy");
  headings.emplace_back("compile ms");
  std::string out = "<div class=\"scroll\"><table><thead><tr>";
  for (const std::string& heading : headings) out += fmt::format("<th>{}</th>", html_escape(heading));
  out += "<th class=\"why\">why out</th></tr></thead><tbody>\n";
  for (const std::size_t i : by_gain(outcome)) {
    const auto& variant = outcome.variants[i];
    const bool timed = variant.rate.has_value();
    std::vector<std::string> cells{variant.name, timed ? rate_text(work, *variant.rate) : "-",
                                   gain_text(outcome, i),
                                   i == 0 || !timed || !std::isfinite(variant.low)
                                       ? ""
                                       : percent(variant.low) + " to " + percent(variant.high)};
    if (shares) cells.push_back(share_text(variant.share_of_ceiling));
    cells.push_back(std::to_string(variant.heats));
    cells.push_back(standing(outcome, i));
    cells.push_back(variant.kernel.registers ? std::to_string(*variant.kernel.registers) : "");
    cells.push_back(variant.kernel.spill_bytes ? std::to_string(*variant.kernel.spill_bytes) : "");
    if (occupancy) cells.push_back(share_text(variant.occupancy, 0));
    cells.push_back(fmt::format("{:.0f}", variant.kernel.compile_ms));
    out += "<tr>";
    for (const std::string& cell : cells) out += fmt::format("<td>{}</td>", html_escape(cell));
    out += fmt::format(
        "<td class=\"why\">{}</td></tr>\n",
        html_escape(variant.same_code_as.empty() ? variant.why
                                                 : "same machine code as " + variant.same_code_as));
  }
  out += "</tbody></table></div>\n";
  const std::string ceiling = ceiling_line(instance, outcome);
  if (!ceiling.empty()) out += fmt::format("<p class=\"dim\">{}</p>\n", html_escape(ceiling));
  return out;
}

std::string section(std::string_view heading, std::string_view note, std::string_view body) {
  return fmt::format("<h2>{}</h2>\n<p class=\"dim\">{}</p>\n{}", heading, note, body);
}

}  // namespace

std::string html_report(const program::Instance& instance, const race::Outcome& outcome,
                        const RacePage& page) {
  const auto& device = outcome.device;
  std::string out = fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
      "content=\"width=device-width, "
      "initial-scale=1\"><title>Race of {0}</title><style>{1}</style></head><body>\n<h1>Race of {0}</h1>\n<p "
      "class=\"dim\">{2} "
      "({3}), driver {4}, compiler {5}; {6}</p>\n<p class=\"decision\">{7}</p>\n<p>{8}</p>\n",
      html_escape(instance.program().name), kStyle, html_escape(device.label), html_escape(device.address()),
      html_escape(device.driver), html_escape(device.compiler), html_escape(page.date),
      html_escape(outcome.sentence), html_escape(race::explain(instance, outcome)));
  for (const std::string& note : outcome.notes)
    out += fmt::format("<p class=\"dim\">Note: {}</p>\n", html_escape(note));
  if (const std::string hint = budget_hint(outcome); !hint.empty())
    out += fmt::format("<p class=\"dim\">To do: {}</p>\n", html_escape(hint));
  out += section("Gain over base",
                 "Dot: estimate; line: interval that holds at every heat at once; dashed: the threshold. "
                 "Orange: eliminated.",
                 gain_chart(outcome, page.threshold));
  out += section("Heats over time",
                 fmt::format("{} heats, {} dropped, {} descheduled. Cost relative to base's median; base in "
                             "grey, the winner in green: "
                             "drift moves all curves together, and cancels.",
                             outcome.heats.size(), outcome.dropped_heats, outcome.descheduled_heats),
                 heats_chart(outcome));
  out += section("Elimination order", "How long each variant was timed.", elimination_chart(outcome));
  out += section("Clock and power", "Read between heats.", telemetry_charts(outcome));
  out += section(
      "Knob effects",
      "Main effect of each value against its knob's default, by least squares over the timed variants.",
      effects_chart(instance, outcome));
  out += section("Variants", "Every variant with what is known of it.", variants_table(instance, outcome));
  out += fmt::format(
      "<footer>Gate: {}. Seed {}. Compile {:.1f} s, gates {:.1f} s, paused {:.2f} s, in all {:.1f} "
      "s.<br>Made by <code>{}</code></footer>\n"
      "</body></html>\n",
      html_escape(outcome.reference), outcome.seed, outcome.compile_ms / 1e3,
      (outcome.trial_ms + outcome.gate_ms) / 1e3, outcome.paused_ms / 1e3, outcome.total_ms / 1e3,
      html_escape(page.command));
  return out;
}

}  // namespace furlong::app
