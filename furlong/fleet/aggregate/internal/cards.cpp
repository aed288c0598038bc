#include "furlong/fleet/aggregate/internal/cards.h"

#include <algorithm>
#include <tuple>

namespace furlong::fleet::internal {
namespace {

constexpr std::string_view unknown_hash = "unknown";

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

/// The machines that call it by its label.
std::set<MachineNumber> machines_of(const ScannedCard& scanned) {
  std::set<MachineNumber> machines;
  for (const ScannedRow& row : scanned.rows)
    if (const auto at = row.labels.find(scanned.card.label); at != row.labels.end())
      machines.insert(at->second.begin(), at->second.end());
  return machines;
}

/// The kinds of silicon of one label.
class Owners {
 public:
  void add(const std::string& silicon, std::set<MachineNumber> machines) {
    all_.insert(machines.begin(), machines.end());
    machines_[silicon] = machines.size();
  }
  /// Whose key the bare label is: the only one, or that of more than half of the machines, so that a record
  /// with a made-up silicon renames no card. Empty: nobody's.
  std::string holder() const {
    for (const auto& [silicon, machines] : machines_)
      if (machines_.size() == 1 || 2 * machines > all_.size()) return silicon;
    return {};
  }

 private:
  std::map<std::string, std::size_t> machines_;
  std::set<MachineNumber> all_;
};

/// Whether a label reads like the key of another card of some other label: then its own key is never bare.
bool looks_like_a_key(const std::string& label, const std::set<std::string>& hashes) {
  const std::size_t at = label.rfind('@');
  return at != std::string::npos && hashes.contains(label.substr(at + 1));
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
  std::map<std::string, Owners> owners;
  std::set<std::string> hashes{std::string(unknown_hash)};
  for (auto& [silicon, card] : by_silicon) {
    hashes.insert(card.card.silicon.hash);
    name_card(card);
    owners[card.card.label].add(silicon, machines_of(card));
  }
  std::vector<ScannedCard> cards;
  for (auto& [silicon, card] : by_silicon) {
    const Owners& of_label = owners[card.card.label];
    const std::string& hash = card.card.silicon.hash;
    card.card.key = card.card.label;
    if (of_label.holder() != silicon || looks_like_a_key(card.card.label, hashes))
      card.card.key += "@" + (hash.empty() ? std::string(unknown_hash) : hash);
    // What is another card's own name would lead to two.
    std::erase_if(card.card.aliases, [&](const std::string& alias) { return owners.contains(alias); });
    // Machines that tell no silicon find this card by the label, where no other has it.
    if (hash.empty() && of_label.holder().empty()) card.card.aliases.push_back(card.card.label);
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
