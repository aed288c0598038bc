#include "furlong/select/internal/nearest.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <tuple>

namespace furlong::selecting {
namespace {

using record::Silicon;
using record::TuningCard;
using record::TuningRow;
using record::TuningSize;

std::optional<double> number(const lattice::Value& value) {
  if (value.integer() != nullptr) return static_cast<double>(*value.integer());
  if (value.floating() != nullptr) return *value.floating();
  return std::nullopt;
}

double squared_log_ratio(double a, double b) { return std::pow(std::log(a / b), 2); }

// An unknown figure is as far as one sixteen times as large: behind every card that is known to be near.
double part(double a, double b) {
  return a > 0 && b > 0 ? squared_log_ratio(a, b) : squared_log_ratio(16, 1);
}

double silicon_distance(const Silicon& a, const Silicon& b) {
  return part(a.multiprocessors, b.multiprocessors) +
         part(static_cast<double>(a.memory_bytes), static_cast<double>(b.memory_bytes));
}

CardFit fit_of(const TuningCard& card, const Question& question) {
  if (!record::card_way(card, question.query).empty()) return CardFit::own;
  const Silicon& own = question.query.silicon;
  if (!card.silicon || card.silicon->vendor.empty() || card.silicon->vendor != own.vendor)
    return CardFit::none;
  return !own.arch.empty() && card.silicon->arch == own.arch ? CardFit::same_architecture
                                                             : CardFit::same_vendor;
}

/// Whether the row names variants that this back end knows; rows that state none are taken at their word.
bool names_ours(const TuningRow& row, const Question& question) {
  return row.program == question.query.program &&
         (row.backend.empty() || question.backend.empty() || row.backend == question.backend);
}

bool driver_too_old(const TuningRow& row, const Question& question) {
  return !row.min_driver.empty() && record::compare_drivers(question.query.driver, row.min_driver) < 0;
}

// Rows of the very class before those of another, of those the more particular first; then the nearest class.
auto row_key(const TuningRow& row, const Question& question) {
  const Distance far = distance(row.program_class, question.query.program_class);
  return std::tuple(!far.zero(), far.zero() ? -static_cast<std::ptrdiff_t>(row.program_class.size()) : 0, far,
                    record::class_text(row.program_class));
}

void add_row(const TuningCard& card, const TuningRow& row, CardFit fit, const Question& question,
             std::vector<Entry>& entries) {
  const bool of_class = distance(row.program_class, question.query.program_class).zero();
  if (row.sizes.empty()) {
    const SizeFit of_its_class = row.program_class.empty() ? SizeFit::every : SizeFit::exact;
    const SizeFit size_fit = of_class ? of_its_class : SizeFit::nearest;
    entries.push_back({&card, &row, nullptr, fit, size_fit});
    return;
  }
  std::vector<std::pair<Distance, const TuningSize*>> sizes;
  for (const TuningSize& size : row.sizes)
    sizes.emplace_back(distance(size.problem, question.problem), &size);
  std::ranges::stable_sort(sizes, {}, [](const auto& each) {
    return std::pair(each.first, record::class_text(each.second->problem));
  });
  for (const auto& [far, size] : sizes)
    entries.push_back({&card, &row, size, fit, of_class && far.zero() ? SizeFit::exact : SizeFit::nearest});
}

void add_card(const TuningCard& card, CardFit fit, const Question& question, bool any_driver,
              std::vector<Entry>& entries, std::vector<std::string>& notes) {
  std::vector<const TuningRow*> rows;
  for (const TuningRow& row : card.rows) {
    if (row.program != question.query.program) continue;
    if (!names_ours(row, question)) {
      notes.push_back(fmt::format("the row of {} is of back end {}, this is {}", card.key, row.backend,
                                  question.backend));
    } else if (!any_driver && driver_too_old(row, question)) {
      notes.push_back(
          fmt::format("the row of {} needs driver {}, this is {}", card.key, row.min_driver,
                      question.query.driver.empty() ? "unknown" : std::string_view(question.query.driver)));
    } else if (!row.variant.empty() || !row.sizes.empty() || !row.candidates.empty()) {
      rows.push_back(&row);
    }
  }
  std::ranges::stable_sort(rows, {}, [&](const TuningRow* row) { return row_key(*row, question); });
  for (const TuningRow* const row : rows) add_row(card, *row, fit, question, entries);
}

// The order among cards: own by the way in which they match, others by silicon; equal ones by name.
auto card_key(const TuningCard& card, CardFit fit, const Question& question) {
  static constexpr std::array<std::string_view, 4> ways{"silicon", "key", "alias", "label"};
  const auto way = std::ranges::find(ways, record::card_way(card, question.query)) - ways.begin();
  const double far = fit == CardFit::own ? 0 : silicon_distance(*card.silicon, question.query.silicon);
  return std::tuple(fit, way, far, std::string_view(card.key));
}

}  // namespace

Distance distance(const record::ProgramClass& from, const record::ProgramClass& to) {
  Distance far;
  for (const auto& [name, value] : from) {
    const auto found = std::ranges::find(to, name, &std::pair<std::string, lattice::Value>::first);
    if (found == to.end()) {
      ++far.words;
      continue;
    }
    const auto a = number(value), b = number(found->second);
    if (a && b && *a > 0 && *b > 0)
      far.squares += squared_log_ratio(*a, *b);
    else
      far.words += !(value == found->second);
  }
  return far;
}

std::vector<Entry> ranked(const record::Tuning& tuning, const Question& question,
                          std::vector<std::string>& notes) {
  std::vector<std::pair<CardFit, const TuningCard*>> cards;
  for (const TuningCard& card : tuning.cards)
    if (const CardFit fit = fit_of(card, question); fit != CardFit::none) cards.emplace_back(fit, &card);
  std::ranges::stable_sort(cards, {},
                           [&](const auto& each) { return card_key(*each.second, each.first, question); });
  std::vector<Entry> entries;
  for (const auto& [fit, card] : cards) add_card(*card, fit, question, false, entries, notes);
  return entries;
}

std::vector<Entry> ranked_on(const TuningCard& card, const Question& question) {
  std::vector<Entry> entries;
  std::vector<std::string> unread;
  add_card(card, fit_of(card, question), question, true, entries, unread);
  return entries;
}

}  // namespace furlong::selecting
