#pragma once
// Rows put together to cards: labels, keys, whom a name means. Internal to furlong/fleet/aggregate.

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "furlong/fleet/aggregate/aggregate.h"

namespace furlong::fleet::internal {

/// One row and what its records said besides.
struct ScannedRow {
  RowEvidence row;
  record::Silicon silicon;
  std::map<std::string, std::set<MachineNumber>> labels;  ///< who called the card so
  std::vector<std::string> machines;                      ///< that sent any record of it
  std::map<std::string, int> sources;                     ///< that machines reported → how many did
  int machines_with_source = 0;                           ///< that reported any
  std::set<std::string> named;                            ///< variants that pinned runs name
};

/// A card before the choice; `rows` as they lie in `card.rows`.
struct ScannedCard {
  CardEvidence card;
  std::vector<ScannedRow> rows;
};

/// By key. Rows by subject.
std::vector<ScannedCard> make_cards(std::vector<ScannedRow> rows);

/// Whether `name` is the card's key, label, alias or silicon hash.
bool is_called(const CardEvidence& card, std::string_view name);

}  // namespace furlong::fleet::internal
