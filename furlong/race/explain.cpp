#include "furlong/race/explain.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "furlong/base/text.h"
#include "furlong/race/ceiling.h"

namespace furlong::race {
namespace {

/// A knob whose value differs from the default.
struct Turned {
  const lattice::Knob* knob;
  std::string from, to;
};

std::vector<Turned> turned_knobs(const program::Instance& instance, const lattice::Point& point) {
  std::vector<Turned> list;
  const auto& knobs = instance.lattice().knobs;
  for (std::size_t k = 0; k < knobs.size(); ++k)
    if (point.indices[k] != knobs[k].default_index)
      list.push_back({&knobs[k], knobs[k].values[knobs[k].default_index].text(),
                      knobs[k].values[point.indices[k]].text()});
  return list;
}

/// "it wins where …" without its full stop and without a "where" of its own, so that it fits in a sentence.
std::string clause(std::string_view text) {
  std::string out(trim(text));
  if (out.starts_with("where ")) out.erase(0, 6);
  while (!out.empty() && out.back() == '.') out.pop_back();
  return out;
}

std::string percent(double ratio) { return fmt::format("{:.1f}%", 100 * ratio); }

std::string trade_offs(const std::vector<Turned>& turned) {
  std::vector<std::string> parts;
  for (const Turned& one : turned) {
    std::string part = one.knob->name;
    if (!one.knob->wins.empty()) part += " wins where " + clause(one.knob->wins);
    if (!one.knob->loses.empty())
      part += (one.knob->wins.empty() ? " loses where " : " and loses where ") + clause(one.knob->loses);
    if (!one.knob->evidence.empty()) part += " (" + clause(one.knob->evidence) + ")";
    if (part != one.knob->name) parts.push_back(std::move(part));
  }
  if (parts.empty()) return "Its knobs name no trade-off.";
  return "The trade-off: " + join(parts, "; ") + ".";
}

/// What the compiler made of it compared with base, where it says so.
std::string compiler_words(const VariantOutcome& winner, const VariantOutcome& base) {
  std::vector<std::string> parts;
  if (winner.kernel.registers && base.kernel.registers && winner.kernel.registers != base.kernel.registers)
    parts.push_back(
        fmt::format("{} registers instead of {}", *winner.kernel.registers, *base.kernel.registers));
  if (winner.kernel.spill_bytes && base.kernel.spill_bytes &&
      winner.kernel.spill_bytes != base.kernel.spill_bytes)
    parts.push_back(
        fmt::format("{} spilled bytes instead of {}", *winner.kernel.spill_bytes, *base.kernel.spill_bytes));
  if (winner.block_threads != base.block_threads)
    parts.push_back(
        fmt::format("blocks of {:g} threads instead of {:g}", winner.block_threads, base.block_threads));
  return parts.empty() ? "" : ", with " + join(parts, ", ");
}

/// Empty where the share is not known or too low. The ceiling is of the rate: at it, others may still need
/// less energy.
std::string at_ceiling_words(const Outcome& outcome, const VariantOutcome& variant) {
  if (outcome.metric != Metric::rate || variant.share_of_ceiling.value_or(0) < at_ceiling) return "";
  return fmt::format("the device's ceiling is reached ({} of what its {} allow) and nothing is left to win",
                     percent(*variant.share_of_ceiling), variant.ceiling);
}

std::string explain_winner(const program::Instance& instance, const Outcome& outcome) {
  const VariantOutcome& winner = outcome.variants[outcome.winner];
  const std::vector<Turned> turned = turned_knobs(instance, winner.point);
  std::vector<std::string> changes;
  for (const Turned& one : turned)
    changes.push_back(fmt::format("{} {} instead of {}", one.knob->name, one.to, one.from));
  const std::string sure = std::isfinite(winner.low) ? fmt::format(" (surely between {} and {})",
                                                                   percent(winner.low), percent(winner.high))
                                                     : "";
  const std::string reached = at_ceiling_words(outcome, winner);
  return fmt::format("{} won by {} {}over base{} by {}{}{}{}. {}", winner.name, percent(winner.gain),
                     outcome.metric == Metric::energy ? "in work per joule " : "", sure,
                     join(changes, " and "), compiler_words(winner, outcome.variants[0]),
                     reached.empty() ? "" : "; ", reached, trade_offs(turned));
}

/// The challenger that came nearest, or nullptr.
const VariantOutcome* nearest_challenger(const Outcome& outcome) {
  const VariantOutcome* best = nullptr;
  for (std::size_t i = 1; i < outcome.variants.size(); ++i) {
    const VariantOutcome& variant = outcome.variants[i];
    if (variant.heats == 0 || !std::isfinite(variant.gain) || !variant.same_code_as.empty()) continue;
    if (best == nullptr || variant.gain > best->gain) best = &variant;
  }
  return best;
}

std::string explain_no_winner(const program::Instance& instance, const Outcome& outcome) {
  const VariantOutcome& base = outcome.variants[0];
  if (!base.rate) return "Nothing was timed, so nothing can be said. " + outcome.sentence + ".";
  if (const std::string reached = at_ceiling_words(outcome, base); !reached.empty())
    return "Base stays: " + reached + " here. A faster variant would have to do less of that work.";
  const VariantOutcome* near = nearest_challenger(outcome);
  if (near == nullptr) return "No variant but base was timed. " + outcome.sentence + ".";
  const char* state = outcome.verdict_word == "out-of-budget"
                          ? "Base stays because the race ended before anything was shown"
                          : "It is a dead heat";
  const std::string sure = std::isfinite(near->low) ? fmt::format(" (surely between {} and {})",
                                                                  percent(near->low), percent(near->high))
                                                    : "";
  const bool more = near->gain >= 0;
  const std::string than =
      outcome.metric == Metric::energy
          ? fmt::format("does {} {} work per joule", percent(std::abs(near->gain)), more ? "more" : "less")
          : fmt::format("runs {} {}", percent(std::abs(near->gain)), more ? "faster" : "slower");
  return fmt::format("{}: the nearest challenger, {}, {} than base{}. {}", state, near->name, than, sure,
                     trade_offs(turned_knobs(instance, near->point)));
}

}  // namespace

std::string explain(const program::Instance& instance, const Outcome& outcome) {
  return outcome.winner != 0 ? explain_winner(instance, outcome) : explain_no_winner(instance, outcome);
}

}  // namespace furlong::race
