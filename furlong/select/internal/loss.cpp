#include "furlong/select/internal/loss.h"

#include <algorithm>
#include <cmath>

namespace furlong::selecting {
namespace {

constexpr double kCandidate = 0.01;  // a row's candidates are within 1% of its best

// The largest loss on the way from the measured size to the asked one: as far along the way to each other
// size as the question is.
std::optional<double> loss_on_the_way(const Question& question, const Entry& entry,
                                      std::string_view variant) {
  const Distance way = distance(entry.size->problem, question.problem);
  if (way.words > 0) return std::nullopt;  // another kind of problem; no size tells of it
  std::optional<double> worst;
  for (const record::TuningSize& other : entry.row->sizes) {
    if (&other == entry.size) continue;
    const Distance whole = distance(entry.size->problem, other.problem);
    if (whole.words > 0 || whole.squares == 0) continue;
    Entry there = entry;
    there.size = &other;
    const auto loss = loss_at(there, variant);
    if (!loss) continue;
    const double share = std::min(1.0, std::sqrt(way.squares / whole.squares));
    worst = std::max(worst.value_or(0), *loss * share);
  }
  return worst;
}

std::optional<double> loss_by_size(const Question& question, const Entry& entry, std::string_view variant) {
  const auto there = loss_at(entry, variant);
  if (!there || entry.size_fit == SizeFit::exact || entry.size_fit == SizeFit::every) return there;
  if (entry.size == nullptr) return std::nullopt;  // a row of another class
  if (distance(entry.row->program_class, question.query.program_class).words > 0) return std::nullopt;
  const auto way = loss_on_the_way(question, entry, variant);
  if (!way) return std::nullopt;
  return std::max(*there, *way);
}

std::optional<double> loss_on_other_cards(const record::Tuning& tuning, const Question& question,
                                          const Entry& entry, std::string_view variant) {
  std::optional<double> worst;
  for (const record::TuningCard& card : tuning.cards) {
    if (&card == entry.card || !card.silicon || card.silicon->vendor != question.query.silicon.vendor)
      continue;
    const auto entries = ranked_on(card, question);
    if (entries.empty()) continue;
    if (const auto loss = loss_at(entries.front(), variant)) worst = std::max(worst.value_or(0), *loss);
  }
  return worst;
}

}  // namespace

std::optional<double> gain_at(const Entry& entry, std::string_view variant) {
  if (variant == "base") return 0;
  if (entry.size == nullptr) {
    if (variant == entry.row->variant && entry.row->gain_pct) return *entry.row->gain_pct / 100;
    return std::nullopt;
  }
  for (const auto& [name, gain] : entry.size->gains_pct)
    if (name == variant) return gain / 100;
  return std::nullopt;
}

std::optional<double> loss_at(const Entry& entry, std::string_view variant) {
  const std::string& winner = entry.size != nullptr ? entry.size->variant : entry.row->variant;
  if (variant == winner) return 0;
  const auto own = gain_at(entry, variant);
  const auto best = gain_at(entry, winner);
  if (own && best) return std::clamp(1 - (1 + *own) / (1 + *best), 0.0, 1.0);
  const bool candidate = entry.size == nullptr &&
                         std::ranges::find(entry.row->candidates, variant) != entry.row->candidates.end();
  if (candidate && variant != "base") return kCandidate;
  return std::nullopt;
}

std::optional<double> expected_loss(const record::Tuning& tuning, const Question& question,
                                    const Entry& entry, std::string_view variant) {
  const auto by_size = loss_by_size(question, entry, variant);
  if (!by_size || entry.card_fit == CardFit::own) return by_size;
  const auto by_card = loss_on_other_cards(tuning, question, entry, variant);
  if (!by_card) return std::nullopt;
  return 1 - (1 - *by_size) * (1 - *by_card);
}

}  // namespace furlong::selecting
