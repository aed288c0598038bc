#include "furlong/shard/order.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>
#include <unordered_set>

#include "furlong/base/text.h"
#include "furlong/shard/internal/key_hash.h"
#include "furlong/shard/internal/scotch.h"
#include "furlong/shard/internal/sharing_graph.h"
#include "furlong/shard/pace.h"

namespace furlong::shard {

Result<Sharing> Sharing::read(const Store& store, std::stop_token stop, const Progress& progress) {
  Sharing sharing;
  std::unordered_map<Key, std::uint32_t, KeyHash> known;
  Pace pace("read links", store.unit_count(), progress);
  for (UnitIndex index = 0; index < store.unit_count(); ++index) {
    if (stop.stop_requested()) return fail(Code::timeout, "stopped while reading the links of the units");
    FURLONG_TRY(const Unit unit, store.unit(index));
    std::uint64_t own = 0;
    for (const Key& item : unit.items) {
      FURLONG_TRY(const std::size_t bytes, store.item_bytes(item));
      own += bytes;
    }
    sharing.own_bytes_.push_back(own);
    for (const Key& reference : unit.references) {
      const auto [place, fresh] =
          known.try_emplace(reference, static_cast<std::uint32_t>(sharing.items_.size()));
      if (fresh) {
        FURLONG_TRY(const auto owner, store.owner(reference));
        if (!owner)
          return fail(Code::invalid, "unit '{}' refers to the item {}, which no unit owns", unit.name,
                      reference.hex());
        FURLONG_TRY(const std::size_t bytes, store.item_bytes(reference));
        sharing.items_.push_back({*owner, bytes});
      }
      sharing.references_.push_back(place->second);
    }
    sharing.first_.push_back(sharing.references_.size());
    pace.advance(1);
  }
  pace.end();
  return sharing;
}

std::uint64_t Sharing::own_bytes(std::span<const UnitIndex> units) const {
  std::uint64_t sum = 0;
  for (const UnitIndex unit : units) sum += own_bytes_[unit];
  return sum;
}

Sharing::Cross Sharing::cross(std::span<const UnitIndex> units) const {
  const std::unordered_set<UnitIndex> members(units.begin(), units.end());
  std::unordered_set<std::uint32_t> seen;
  Cross cross;
  for (const UnitIndex unit : units)
    for (const std::uint32_t item : references(unit)) {
      if (members.contains(items_[item].owner) || !seen.insert(item).second) continue;
      cross.bytes += items_[item].bytes;
      ++cross.items;
    }
  return cross;
}

scotch::Graph sharing_graph(const Sharing& sharing) {
  scotch::Graph graph;
  for (UnitIndex unit = 0; unit < sharing.units(); ++unit)
    graph.vertex_weights.push_back(sharing.own_bytes(unit));
  std::vector<scotch::Graph::Link> all;
  for (UnitIndex unit = 0; unit < sharing.units(); ++unit)
    for (const std::uint32_t index : sharing.references(unit)) {
      const Sharing::Item& item = sharing.items()[index];
      all.push_back(
          {std::min(unit, item.owner), std::max(unit, item.owner), std::max<std::uint64_t>(item.bytes, 1)});
    }
  std::sort(all.begin(), all.end(), [](const auto& x, const auto& y) {
    return std::tie(x.a, x.b, x.weight) < std::tie(y.a, y.b, y.weight);
  });
  for (const auto& link : all) {
    if (!graph.links.empty() && graph.links.back().a == link.a && graph.links.back().b == link.b)
      graph.links.back().weight += link.weight;
    else
      graph.links.push_back(link);
  }
  return graph;
}

std::string_view order_name(OrderKind kind) { return kind == OrderKind::plain ? "plain" : "sharing"; }

namespace {

// Small enough that the order inside a part does not matter much, and few enough for a quick bisection.
constexpr std::uint32_t kUnitsPerPart = 16, kMostParts = 1024;
constexpr double kImbalance = 0.1;

}  // namespace

Result<std::vector<UnitIndex>> order_units(const Sharing& sharing, OrderKind kind, std::uint64_t seed) {
  std::vector<UnitIndex> order(sharing.units());
  std::iota(order.begin(), order.end(), 0u);
  const std::uint32_t parts = std::min(sharing.units() / kUnitsPerPart, kMostParts);
  if (kind == OrderKind::plain || parts < 2) return order;
  FURLONG_TRY(const auto part, scotch::bisect(sharing_graph(sharing), parts, kImbalance, seed));
  std::stable_sort(order.begin(), order.end(), [&](UnitIndex a, UnitIndex b) { return part[a] < part[b]; });
  return order;
}

std::uint64_t order_cross_bytes(const Sharing& sharing, std::span<const UnitIndex> order,
                                std::uint32_t segments) {
  const double total = static_cast<double>(sharing.own_bytes(order));
  std::uint64_t sum = 0;
  double filled = 0;
  std::size_t start = 0;
  std::uint32_t segment = 1;
  for (std::size_t i = 0; i < order.size(); ++i) {
    filled += static_cast<double>(sharing.own_bytes(order[i]));
    const bool last = i + 1 == order.size();
    if (!last && filled < total * segment / std::max(segments, 1u)) continue;
    sum += sharing.cross(order.subspan(start, i + 1 - start)).bytes;
    start = i + 1;
    ++segment;
  }
  return sum;
}

std::string OrderChoice::text() const {
  const double saved =
      plain_cross_bytes == 0
          ? 0
          : 100 * (1 - static_cast<double>(sharing_cross_bytes) / static_cast<double>(plain_cross_bytes));
  const std::string figures =
      fmt::format("cross bytes of {} equal segments: {} by sharing, {} plain", segments,
                  human_bytes(sharing_cross_bytes), human_bytes(plain_cross_bytes));
  if (kind == OrderKind::sharing)
    return fmt::format("the order by sharing saves {:.1f}% ({})", saved, figures);
  return fmt::format("the order by sharing does not earn its keep, the plain one is taken ({})", figures);
}

Result<OrderChoice> choose_order(const Sharing& sharing, std::uint32_t segments, std::uint64_t seed) {
  OrderChoice choice;
  choice.segments = segments;
  FURLONG_TRY(choice.order, order_units(sharing, OrderKind::plain, seed));
  FURLONG_TRY(auto other, order_units(sharing, OrderKind::sharing, seed));
  choice.plain_cross_bytes = order_cross_bytes(sharing, choice.order, segments);
  choice.sharing_cross_bytes = order_cross_bytes(sharing, other, segments);
  if (static_cast<double>(choice.sharing_cross_bytes) <=
          0.99 * static_cast<double>(choice.plain_cross_bytes) &&
      choice.plain_cross_bytes > 0) {
    choice.kind = OrderKind::sharing;
    choice.order = std::move(other);
  }
  return choice;
}

}  // namespace furlong::shard
