#include "apps/furlong/report/text.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <optional>
#include <ranges>
#include <vector>

#include "furlong/base/table.h"
#include "furlong/base/text.h"
#include "furlong/race/pareto.h"

namespace furlong::app {
namespace {

std::string percent(double ratio) { return fmt::format("{:+.2f}%", 100 * ratio); }

std::string exit_words(const race::VariantOutcome& variant) {
  using race::Exit;
  if (had_no_time(variant)) return "no time";
  switch (variant.exit) {
    case Exit::none:
      return variant.rate ? "in" : "not timed";
    case Exit::compile:
      return "no compile";
    case Exit::trial:
      return "trial failed";
    case Exit::gate:
      return "gate failed";
    case Exit::launch:
      return "launch failed";
    case Exit::eliminated:
      return "eliminated";
    case Exit::quarantined:
      return "quarantined";
    case Exit::duplicate:
      return "same code";
  }
  return "";
}

/// The line of a reason that tells most: of a compiler's messages the first that says "error", else the
/// first.
std::string telling_line(std::string_view text) {
  const std::vector<std::string> lines = split(text, '\n');
  for (const std::string& line : lines)
    if (line.find("error:") != std::string::npos) return std::string(trim(line));
  return lines.front();
}

/// At most `most` columns; characters are not cut in two.
std::string shortened(const std::string& line, std::size_t most = 90) {
  if (display_width(line) <= most) return line;
  std::string out;
  for (std::size_t i = 0; i < line.size();) {
    std::size_t next = i + 1;
    while (next < line.size() && (static_cast<unsigned char>(line[next]) & 0xC0) == 0x80) ++next;
    if (display_width(out) + display_width(line.substr(i, next - i)) > most - 1) break;
    out += line.substr(i, next - i);
    i = next;
  }
  return out + "…";
}

std::string why_text(const race::VariantOutcome& variant) {
  return variant.same_code_as.empty() ? telling_line(variant.why)
                                      : "same machine code as " + variant.same_code_as;
}

/// The reasons that do not fit into the table, in full.
std::string long_reasons(const race::Outcome& outcome) {
  std::string out;
  for (const std::size_t i : by_gain(outcome)) {
    const std::string why = why_text(outcome.variants[i]);
    if (shortened(why) != why) out += fmt::format("{}: {}\n", outcome.variants[i].name, why);
  }
  return out.empty() ? out : out + "\n";
}

std::string_view phase_word(race::Phase phase) {
  switch (phase) {
    case race::Phase::build:
      return "compiling";
    case race::Phase::trial:
      return "trial";
    case race::Phase::gate:
      return "gate";
    case race::Phase::heats:
      return "heats";
    case race::Phase::confirm:
      return "confirming";
    case race::Phase::second_gate:
      return "second gate";
    case race::Phase::done:
      return "done";
  }
  return "";
}

std::string bar(double share, int width) {
  const int full = static_cast<int>(std::clamp(share, 0.0, 1.0) * width + 0.5);
  std::string out;
  for (int i = 0; i < width; ++i) out += i < full ? "█" : "░";
  return out;
}

}  // namespace

std::string rate_text(const program::WorkSpec& work, double units_per_second) {
  const double value = units_per_second / work.rate_scale;
  if (!std::isfinite(value) || value <= 0) return "-";
  if (value >= 1e6) {  // a rate without a scale of its own: ten digits say no more than four
    const int exponent = static_cast<int>(std::floor(std::log10(value * (1 + 5e-5))));
    return fmt::format("{:.3f}e{}", value / std::pow(10, exponent), exponent);
  }
  const int before = static_cast<int>(std::floor(std::log10(value))) + 1;
  return fmt::format("{:.{}f}", value, std::clamp(4 - before, 0, 6));
}

std::string standing(const race::Outcome& outcome, std::size_t i) {
  if (i != outcome.winner || i == 0) return exit_words(outcome.variants[i]);
  return outcome.verdict_word == "out-of-budget" ? "best so far" : "winner";
}

std::vector<std::size_t> by_gain(const race::Outcome& outcome) {
  std::vector<std::size_t> order(outcome.variants.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  const auto key = [&](std::size_t i) {
    const auto& variant = outcome.variants[i];
    if (!variant.rate) return -std::numeric_limits<double>::infinity();
    if (i == 0) return 0.0;
    return std::isfinite(variant.gain) ? variant.gain : -2.0;  // timed, and under every gain
  };
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return key(a) > key(b); });
  return order;
}

std::string gain_text(const race::Outcome& outcome, std::size_t i) {
  const race::VariantOutcome& variant = outcome.variants[i];
  return i == 0 || !variant.rate || !std::isfinite(variant.gain) ? "" : percent(variant.gain);
}

bool any_known(const race::Outcome& outcome, std::optional<double> race::VariantOutcome::* figure) {
  return std::ranges::any_of(
      outcome.variants, [&](const race::VariantOutcome& variant) { return (variant.*figure).has_value(); });
}

std::string share_text(const std::optional<double>& share, int decimals) {
  return share ? fmt::format("{:.{}f}%", 100 * *share, decimals) : "";
}

std::string ceiling_line(const program::Instance& instance, const race::Outcome& outcome) {
  const auto& work = instance.program().work;
  std::vector<std::string> parts;
  for (const race::VariantOutcome& variant : outcome.variants) {
    if (!variant.share_of_ceiling || !variant.ceiling_rate) continue;
    std::string part =
        fmt::format("{} {} by {}", rate_text(work, *variant.ceiling_rate), work.rate_unit, variant.ceiling);
    if (std::ranges::find(parts, part) == parts.end()) parts.push_back(std::move(part));
  }
  if (parts.empty()) return "";
  // Variants that do other amounts of work have other ceilings; base's comes first and tells enough.
  if (parts.size() > 2) parts = {parts[0], "other variants' own"};
  return "ceiling: " + join(parts, "; ");
}

std::string budget_hint(const race::Outcome& outcome) {
  const bool unfinished = outcome.verdict_word == "out-of-budget" ||
                          (!outcome.variants[0].rate && outcome.dropped_heats == 0) ||
                          std::ranges::any_of(outcome.variants, race::had_no_time);
  return unfinished ? "give it more seconds (--race-budget-s), or fewer variants to race (--variants)" : "";
}

std::string race_table(const program::Instance& instance, const race::Outcome& outcome) {
  using Align = Table::Align;
  const auto& work = instance.program().work;
  const bool registers = std::any_of(outcome.variants.begin(), outcome.variants.end(),
                                     [](const auto& v) { return v.kernel.registers.has_value(); });
  Table table;
  table.column("variant");
  table.column(work.rate_unit, Align::right);
  table.column("gain over base", Align::right);
  table.column("interval", Align::left);
  if (registers) {
    table.column("registers", Align::right);
    table.column("spills", Align::right);
  }
  const bool occupancy = any_known(outcome, &race::VariantOutcome::occupancy);
  const bool shares = any_known(outcome, &race::VariantOutcome::share_of_ceiling);
  if (occupancy) table.column("occupancy", Align::right);
  if (shares) table.column("of ceiling", Align::right);
  table.column("heats", Align::right);
  table.column("", Align::left);
  table.column("why", Align::left);
  for (const std::size_t i : by_gain(outcome)) {
    const auto& variant = outcome.variants[i];
    const bool timed = variant.rate.has_value();
    std::vector<std::string> row{
        variant.name, timed ? rate_text(work, *variant.rate) : "-", gain_text(outcome, i),
        i == 0 || !timed || !std::isfinite(variant.low) || !std::isfinite(variant.high)
            ? ""
            : fmt::format("{} .. {}", percent(variant.low), percent(variant.high))};
    if (registers) {
      row.push_back(variant.kernel.registers ? std::to_string(*variant.kernel.registers) : "");
      row.push_back(variant.kernel.spill_bytes ? std::to_string(*variant.kernel.spill_bytes) : "");
    }
    if (occupancy) row.push_back(share_text(variant.occupancy, 0));
    if (shares) row.push_back(share_text(variant.share_of_ceiling));
    row.push_back(variant.heats > 0 ? std::to_string(variant.heats) : "");
    row.push_back(standing(outcome, i));
    row.push_back(shortened(why_text(variant)));
    table.row(std::move(row));
  }
  std::string out =
      fmt::format("{} on {} ({}, {})\n\n{}\n", instance.program().name, outcome.device.address(),
                  one_line(outcome.device.label), instance.edition().language, table.text());
  out += long_reasons(outcome) + outcome.sentence + "\n";
  if (const std::string line = ceiling_line(instance, outcome); !line.empty()) out += line + "\n";
  out += fmt::format("gate: {}; {} heats", outcome.reference, outcome.heats.size());
  if (outcome.dropped_heats > 0) out += fmt::format(", {} dropped", outcome.dropped_heats);
  if (outcome.descheduled_heats > 0) out += fmt::format(", {} descheduled", outcome.descheduled_heats);
  out += fmt::format("; compile {:.1f} s, gates {:.1f} s, paused {:.2f} s, in all {:.1f} s\n",
                     outcome.compile_ms / 1e3, (outcome.trial_ms + outcome.gate_ms) / 1e3,
                     outcome.paused_ms / 1e3, outcome.total_ms / 1e3);
  for (const std::string& note : outcome.notes) out += "note: " + note + "\n";
  if (const std::string hint = budget_hint(outcome); !hint.empty()) out += "to do: " + hint + "\n";
  return without_controls(out);
}

std::string pareto_table(const program::Instance& instance, const race::Outcome& outcome) {
  const std::vector<std::size_t> front = race::pareto_front(outcome);
  if (front.empty()) return "not dominated: none, since nothing was timed\n";
  using Align = Table::Align;
  const auto known = [&](const auto& get) {
    return std::ranges::any_of(front, [&](std::size_t i) { return get(outcome.variants[i]).has_value(); });
  };
  struct Figure {
    std::string heading;
    std::function<std::string(const race::VariantOutcome&)> text;
  };
  std::vector<Figure> figures;
  const auto add = [&](std::string heading, auto get, auto format) {
    if (!known(get)) return;
    figures.push_back({std::move(heading), [=](const race::VariantOutcome& variant) {
                         const auto value = get(variant);
                         return value ? format(*value) : std::string();
                       }});
  };
  const auto whole = [](auto value) { return std::to_string(value); };
  add(
      "energy", [](const auto& v) { return v.energy_j_per_unit; },
      [&](double value) { return fmt::format("{:.4g} J", value); });
  add("registers", [](const auto& v) { return v.kernel.registers; }, whole);
  add("spills", [](const auto& v) { return v.kernel.spill_bytes; }, whole);
  add(
      "memory", [](const auto& v) { return std::optional(v.memory_bytes); },
      [](std::uint64_t bytes) { return human_bytes(bytes); });
  add(
      "error", [](const auto& v) { return v.error_ratio; },
      [](double value) { return fmt::format("{:.3g}", value); });
  const auto& work = instance.program().work;
  Table table;
  table.column("not dominated");
  table.column(work.rate_unit, Align::right);
  table.column("gain over base", Align::right);
  for (const Figure& figure : figures) table.column(figure.heading, Align::right);
  for (const std::size_t i : front) {
    const race::VariantOutcome& variant = outcome.variants[i];
    std::vector<std::string> row{variant.name, rate_text(work, *variant.rate), gain_text(outcome, i)};
    for (const Figure& figure : figures) row.push_back(figure.text(variant));
    table.row(std::move(row));
  }
  return table.text();
}

ProgressLine::ProgressLine(std::FILE* out, bool enabled)
    : out_(out), enabled_(enabled), terminal_(isatty(fileno(out)) == 1) {}

ProgressLine::~ProgressLine() { clear(); }

void ProgressLine::show(const race::Progress& progress) {
  if (!enabled_) return;
  const int phase = static_cast<int>(progress.phase);
  if (!terminal_) {
    if (phase == last_phase_) return;
    last_phase_ = phase;
    if (progress.phase != race::Phase::done) {
      write(fmt::format("{:.1f} s: {}{}\n", progress.elapsed_s, phase_word(progress.phase),
                        progress.total > 0 ? fmt::format(" ({} variants)", progress.total) : ""));
    }
    return;
  }
  std::string line;
  if (progress.phase == race::Phase::heats || progress.phase == race::Phase::confirm) {
    line = fmt::format("{} {} {} heats, {} in, leader {} {}  {:.0f}/{:.0f} s", phase_word(progress.phase),
                       bar(progress.budget_s > 0 ? progress.elapsed_s / progress.budget_s : 0, 20),
                       progress.heats, progress.survivors, progress.leader.empty() ? "base" : progress.leader,
                       percent(progress.leader_gain), progress.elapsed_s, progress.budget_s);
  } else {
    line = fmt::format(
        "{} {} {}/{} {}", phase_word(progress.phase),
        bar(progress.total > 0 ? static_cast<double>(progress.done) / static_cast<double>(progress.total) : 0,
            20),
        progress.done, progress.total, progress.doing);
  }
  write("\r\033[K" + line);
  drawn_ = true;
}

/// A terminal that is gone or a full disk costs the line only.
void ProgressLine::write(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), out_);
  std::fflush(out_);
}

void ProgressLine::clear() {
  if (!drawn_) return;
  write("\r\033[K");
  drawn_ = false;
}

}  // namespace furlong::app
