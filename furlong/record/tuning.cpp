#include "furlong/record/tuning.h"

#include <algorithm>
#include <array>

#include "furlong/base/text.h"

namespace furlong::record {
namespace {

// Digits of the next dotted part without leading zeros; empty when it is no number.
std::string_view next_part(std::string_view& version) {
  const std::size_t end = std::min(version.find_first_not_of("0123456789"), version.size());
  std::string_view digits = version.substr(0, end);
  version.remove_prefix(end);
  if (version.starts_with('.'))
    version.remove_prefix(1);
  else
    version = {};
  while (digits.size() > 1 && digits.starts_with('0')) digits.remove_prefix(1);
  return digits;
}

bool known_to_differ(const Silicon& a, const Silicon& b) {
  if (!a.hash.empty() && !b.hash.empty()) return a.hash != b.hash;
  const auto differ = [](const auto& x, const auto& y, const auto& unknown) {
    return x != unknown && y != unknown && x != y;
  };
  return differ(a.vendor, b.vendor, std::string()) || differ(a.arch, b.arch, std::string()) ||
         differ(a.multiprocessors, b.multiprocessors, 0) ||
         differ(a.memory_bytes, b.memory_bytes, std::uint64_t{0}) ||
         differ(a.memory_clock_mhz, b.memory_clock_mhz, 0);
}

bool known_to_be_equal(const Silicon& a, const Silicon& b) {
  if (!a.hash.empty() && !b.hash.empty()) return a.hash == b.hash;
  return !a.vendor.empty() && !a.arch.empty() && a.multiprocessors != 0 && a.memory_bytes != 0 &&
         a.vendor == b.vendor && a.arch == b.arch && a.multiprocessors == b.multiprocessors &&
         a.memory_bytes == b.memory_bytes && a.memory_clock_mhz == b.memory_clock_mhz;
}

constexpr std::array<std::string_view, 4> ways{"silicon", "key", "alias", "label"};

// The nearest way in which the card is the query's: an index into `ways`, or their number when it is not.
std::size_t way_of(const TuningCard& card, const TuningQuery& query) {
  if (card.silicon && known_to_be_equal(*card.silicon, query.silicon)) return 0;
  const std::string& hash = query.silicon.hash;
  if (card.silicon && known_to_differ(*card.silicon, query.silicon)) return ways.size();
  if (!hash.empty() && card.key == query.label + "@" + hash) return 1;
  if (std::ranges::find(card.aliases, query.label) != card.aliases.end()) return 2;
  return card.key == query.label ? 3 : ways.size();
}

bool holds_for(const TuningRow& row, const TuningQuery& query) {
  return row.program == query.program && std::ranges::all_of(row.program_class, [&](const auto& feature) {
           return std::ranges::find(query.program_class, feature) != query.program_class.end();
         });
}

const TuningRow* best_row(const TuningCard& card, const TuningQuery& query, std::string& note) {
  const TuningRow* best = nullptr;
  for (const TuningRow& row : card.rows) {
    if (!holds_for(row, query)) continue;
    if (!row.min_driver.empty() && compare_drivers(query.driver, row.min_driver) < 0) {
      note = fmt::format("the entry of {} for {} needs driver {}, this is {}", card.key, row.program,
                         row.min_driver, query.driver.empty() ? "unknown" : query.driver);
      continue;
    }
    if (best == nullptr || row.program_class.size() > best->program_class.size()) best = &row;
  }
  return best;
}

}  // namespace

int compare_drivers(std::string_view a, std::string_view b) {
  while (!a.empty() || !b.empty()) {
    const std::string_view x = next_part(a), y = next_part(b);
    // A missing part counts as 0, so that "580" and "580.0" are one driver.
    const std::string_view left = x.empty() ? "0" : x, right = y.empty() ? "0" : y;
    if (left.size() != right.size()) return left.size() < right.size() ? -1 : 1;
    if (const int order = left.compare(right); order != 0) return order < 0 ? -1 : 1;
    if (x.empty() && y.empty()) break;
  }
  return 0;
}

std::string_view card_way(const TuningCard& card, const TuningQuery& query) {
  const std::size_t way = way_of(card, query);
  return way < ways.size() ? ways[way] : std::string_view();
}

bool races_now(const TuningRow& row, std::uint64_t prepare) {
  if (row.race) return true;
  return row.race_every_n > 0 && prepare % static_cast<std::uint64_t>(row.race_every_n) == 0;
}

TuningMatch find_tuning(const Tuning& tuning, const TuningQuery& query) {
  TuningMatch match;
  for (std::size_t way = 0; way < ways.size(); ++way) {
    // Of two cards that match in one way, the one of this label comes first; else the file's order decides.
    std::vector<const TuningCard*> cards;
    for (const TuningCard& card : tuning.cards)
      if (way_of(card, query) == way)
        cards.insert(card.key == query.label || card.key == query.label + "@" + query.silicon.hash
                         ? cards.begin()
                         : cards.end(),
                     &card);
    for (const TuningCard* const card : cards) {
      if (const TuningRow* const row = best_row(*card, query, match.note)) {
        match.card = card;
        match.row = row;
        match.how = ways[way];
        return match;
      }
    }
  }
  return match;
}

void apply_override(Tuning& tuning, const Tuning& with) {
  for (const TuningCard& from : with.cards) {
    auto to = std::ranges::find(tuning.cards, from.key, &TuningCard::key);
    if (to == tuning.cards.end() && from.silicon)
      to = std::ranges::find_if(tuning.cards, [&](const TuningCard& card) {
        return card.silicon && known_to_be_equal(*card.silicon, *from.silicon);
      });
    if (to == tuning.cards.end()) {
      tuning.cards.push_back(from);
      continue;
    }
    if (!to->silicon) to->silicon = from.silicon;
    for (const std::string& alias : from.aliases)
      if (std::ranges::find(to->aliases, alias) == to->aliases.end()) to->aliases.push_back(alias);
    for (const TuningRow& row : from.rows) {
      const auto same = std::ranges::find_if(to->rows, [&](const TuningRow& other) {
        return other.program == row.program && same_class(other.program_class, row.program_class);
      });
      if (same == to->rows.end())
        to->rows.push_back(row);
      else
        *same = row;
    }
  }
}

}  // namespace furlong::record
