#include "furlong/fleet/aggregate/internal/cards.h"

#include <algorithm>
#include <tuple>

namespace furlong::fleet::internal {
namespace {

/// The commonest label by machines, so that one machine's many records make no name.
void name_card(ScannedCard& scanned) {
  std::map<std::string, std::set<MachineNumber>> labels;
  for (const ScannedRow& row : scanned.rows)
    for (const auto& [label, machines] : row.labels) labels[label].insert(machines.begin(), machines.end());
  std::size_t most = 0;
  for (const auto& [label, machines] : labels)
    if (machines.size() > most) {
      scanned.card.label = label;
      most = machines.size();
    }
  for (const auto& [label, machines] : labels)
    if (label != scanned.card.label) scanned.card.aliases.push_back(label);
}

}  // namespace

std::vector<ScannedCard> make_cards(std::vector<ScannedRow> rows) {
  std::map<std::string, ScannedCard> by_silicon;
  std::ranges::sort(rows, {}, [](const ScannedRow& row) -> const Subject& { return row.row.subject; });
  for (ScannedRow& row : rows) {
    ScannedCard& card = by_silicon[row.row.subject.silicon];
    if (card.rows.empty()) card.card.silicon = row.silicon;
    card.rows.push_back(std::move(row));
  }
  std::map<std::string, int> owners;
  for (auto& [silicon, card] : by_silicon) {
    name_card(card);
    ++owners[card.card.label];
  }
  std::vector<ScannedCard> cards;
  for (auto& [silicon, card] : by_silicon) {
    card.card.key = card.card.label;
    if (owners[card.card.label] > 1 && !card.card.silicon.hash.empty())
      card.card.key += "@" + card.card.silicon.hash;
    // What is another card's own name would lead to two.
    std::erase_if(card.card.aliases, [&](const std::string& alias) { return owners.contains(alias); });
    cards.push_back(std::move(card));
  }
  std::ranges::sort(cards, {}, [](const ScannedCard& card) {
    return std::tie(card.card.key, card.rows.front().row.subject.silicon);
  });
  return cards;
}

bool is_called(const CardEvidence& card, std::string_view name) {
  return card.key == name || card.label == name || (!name.empty() && card.silicon.hash == name) ||
         std::ranges::find(card.aliases, name) != card.aliases.end();
}

}  // namespace furlong::fleet::internal
