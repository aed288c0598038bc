#pragma once
// What units share, and an order of them that keeps sharing together.

#include <cstdint>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "furlong/shard/progress.h"
#include "furlong/shard/store.h"

namespace furlong::shard {

/// Who refers to what, with bytes: the part of a store that order, merging and cross bytes need, read once.
class Sharing {
 public:
  /// `timeout` when stopped.
  static Result<Sharing> read(const Store& store, std::stop_token stop = {}, const Progress& progress = {});
  struct Item {
    UnitIndex owner = 0;
    std::uint64_t bytes = 0;
  };
  /// Of known parts: a unit's references are `references` from `first[unit]` to `first[unit + 1]`, indices of
  /// `items`.
  Sharing(std::vector<std::uint64_t> own_bytes, std::vector<std::size_t> first,
          std::vector<std::uint32_t> references, std::vector<Item> items)
      : own_bytes_(std::move(own_bytes)),
        first_(std::move(first)),
        references_(std::move(references)),
        items_(std::move(items)) {}

  UnitIndex units() const { return static_cast<UnitIndex>(own_bytes_.size()); }
  std::uint64_t own_bytes(UnitIndex unit) const { return own_bytes_[unit]; }
  /// The items that a unit refers to, as indices of items().
  std::span<const std::uint32_t> references(UnitIndex unit) const {
    return std::span(references_).subspan(first_[unit], first_[unit + 1] - first_[unit]);
  }
  /// Those that somebody refers to.
  const std::vector<Item>& items() const { return items_; }

  struct Cross {
    std::uint64_t bytes = 0;
    std::uint32_t items = 0;
  };
  /// Of the items that the units refer to and do not own, each once.
  Cross cross(std::span<const UnitIndex> units) const;
  std::uint64_t own_bytes(std::span<const UnitIndex> units) const;

 private:
  Sharing() = default;
  std::vector<std::uint64_t> own_bytes_;
  std::vector<std::size_t> first_{0};
  std::vector<std::uint32_t> references_;
  std::vector<Item> items_;
};

enum class OrderKind { plain, sharing };
std::string_view order_name(OrderKind kind);

/// All units. `sharing`: by recursive bisection over the links between a unit and the owners of what it
/// refers to, weighted by bytes (Scotch); units of one part stay in plain order. Deterministic.
Result<std::vector<UnitIndex>> order_units(const Sharing& sharing, OrderKind kind, std::uint64_t seed);

/// The sum of cross bytes over `segments` runs of about equal own bytes of an order: what an order is judged
/// by.
std::uint64_t order_cross_bytes(const Sharing& sharing, std::span<const UnitIndex> order,
                                std::uint32_t segments);

/// Both orders measured, and the better one. `sharing` must save at least 1% of the plain order's cross
/// bytes.
struct OrderChoice {
  OrderKind kind = OrderKind::plain;
  std::vector<UnitIndex> order;
  std::uint64_t plain_cross_bytes = 0, sharing_cross_bytes = 0;
  std::uint32_t segments = 0;
  /// "the order by sharing saves 31% of the cross bytes (…)", or that it does not earn its keep.
  std::string text() const;
};
Result<OrderChoice> choose_order(const Sharing& sharing, std::uint32_t segments, std::uint64_t seed);

}  // namespace furlong::shard
