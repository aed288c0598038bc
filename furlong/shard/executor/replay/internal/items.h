#pragma once
// The items of a replay's store (docs/formats/replay-items.md), for the maker of stores and the executor.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "furlong/base/error.h"
#include "furlong/shard/types.h"

namespace furlong::shard::replay {

inline constexpr int kItemFormat = 1;

/// A unit's first item: what it cost. The unit's number makes it the only one of its kind.
struct CostItem {
  std::uint64_t unit = 0;
  Cost cost;
  /// Of the unit's other items in order, and then of its references in order: whether it consulted them.
  /// Absent: nobody recorded it, so all of them.
  std::optional<std::vector<bool>> touched;
  /// Why it fails, when it does.
  std::optional<Error> failed;
};
std::string print_cost_item(const CostItem& item);
/// `corrupt` for what print_cost_item() did not write, `incompatible` for another format.
Result<CostItem> parse_cost_item(std::string_view bytes);

/// An item that stands for one of `size` bytes: at least as long as its own name.
std::string print_data_item(std::uint64_t unit, std::uint64_t place, std::uint64_t size);

/// The settings of a store: the format, and what sizes were divided by.
std::string print_settings(std::uint64_t scale);
Status check_settings(const std::string& settings);

}  // namespace furlong::shard::replay
