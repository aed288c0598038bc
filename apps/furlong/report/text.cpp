#include "apps/furlong/report/text.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "furlong/base/table.h"
#include "furlong/base/text.h"

namespace furlong::app {
namespace {

std::string percent(double ratio) { return fmt::format("{:+.2f}%", 100 * ratio); }

std::string status_text(const race::VariantOutcome& variant, bool winner) {
  using race::Exit;
  if (winner) return "winner";
  switch (variant.exit) {
    case Exit::none:
      return variant.gated ? "in" : "";
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

std::string first_line(std::string_view text, std::size_t most = 90) {
  std::string line(text.substr(0, text.find('\n')));
  if (line.size() > most) line = line.substr(0, most - 1) + "…";
  return line;
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
  const int before = static_cast<int>(std::floor(std::log10(value))) + 1;
  return fmt::format("{:.{}f}", value, std::clamp(4 - before, 0, 6));
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
  table.column("heats", Align::right);
  table.column("", Align::left);
  table.column("why", Align::left);
  std::vector<std::size_t> order(outcome.variants.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    const auto& va = outcome.variants[a];
    const auto& vb = outcome.variants[b];
    if (va.rate.has_value() != vb.rate.has_value()) return va.rate.has_value();
    return va.rate && *va.rate > *vb.rate;
  });
  for (const std::size_t i : order) {
    const auto& variant = outcome.variants[i];
    const bool timed = variant.rate.has_value();
    std::vector<std::string> row{
        variant.name, timed ? rate_text(work, *variant.rate) : "-",
        i == 0 || !timed ? "" : percent(variant.gain),
        i == 0 || !timed || !std::isfinite(variant.low) || !std::isfinite(variant.high)
            ? ""
            : fmt::format("{} .. {}", percent(variant.low), percent(variant.high))};
    if (registers) {
      row.push_back(variant.kernel.registers ? std::to_string(*variant.kernel.registers) : "");
      row.push_back(variant.kernel.spill_bytes ? std::to_string(*variant.kernel.spill_bytes) : "");
    }
    row.push_back(variant.heats > 0 ? std::to_string(variant.heats) : "");
    row.push_back(status_text(variant, i == outcome.winner && outcome.verdict == stats::Verdict::winner));
    row.push_back(variant.same_code_as.empty() ? first_line(variant.why)
                                               : "same machine code as " + variant.same_code_as);
    table.row(std::move(row));
  }
  std::string out =
      fmt::format("{} on {} ({}, {})\n\n{}\n", instance.program().name, outcome.device.address(),
                  outcome.device.label, instance.edition().language, table.text());
  out += outcome.sentence + "\n";
  out += fmt::format("gate: {}; {} heats", outcome.reference, outcome.heats.size());
  if (outcome.dropped_heats > 0) out += fmt::format(", {} dropped", outcome.dropped_heats);
  if (outcome.descheduled_heats > 0) out += fmt::format(", {} descheduled", outcome.descheduled_heats);
  out += fmt::format("; compile {:.1f} s, gates {:.1f} s, paused {:.2f} s, in all {:.1f} s\n",
                     outcome.compile_ms / 1e3, (outcome.trial_ms + outcome.gate_ms) / 1e3,
                     outcome.paused_ms / 1e3, outcome.total_ms / 1e3);
  for (const std::string& note : outcome.notes) out += "note: " + note + "\n";
  return out;
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
      fmt::print(out_, "{:.1f} s: {}{}\n", progress.elapsed_s, phase_word(progress.phase),
                 progress.total > 0 ? fmt::format(" ({} variants)", progress.total) : "");
      std::fflush(out_);
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
  fmt::print(out_, "\r\033[K{}", line);
  std::fflush(out_);
  drawn_ = true;
}

void ProgressLine::clear() {
  if (!drawn_) return;
  fmt::print(out_, "\r\033[K");
  std::fflush(out_);
  drawn_ = false;
}

}  // namespace furlong::app
