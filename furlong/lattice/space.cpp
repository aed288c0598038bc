#include "furlong/lattice/space.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "furlong/base/text.h"
#include "furlong/lattice/internal/components.h"
#include "furlong/lattice/internal/diagram.h"

namespace furlong::lattice {

using internal::Diagram;
using internal::DiagramNode;
using internal::Edge;

/// The diagrams of the groups of knobs. The groups' knobs may interleave in knob order; since the groups
/// are independent, the points below a prefix are the product of what remains in each group.
struct Space::Impl {
  static constexpr std::uint32_t none = 0xffffffff;

  Diagram diagram;
  std::vector<std::uint32_t> values;    // by knob: how many
  std::vector<std::uint32_t> group;     // by knob
  std::vector<std::uint32_t> previous;  // by knob: the knob before it in its group, or none
  std::vector<std::uint32_t> roots;     // by group
  std::uint64_t count = 0;
  std::uint64_t product = 1;

  std::size_t knobs() const { return values.size(); }

  const Edge* edge_of(const DiagramNode& node, std::uint32_t value) const {
    const auto first = diagram.edges.begin() + node.first_edge;
    const auto last = first + node.edge_count;
    const auto found =
        std::lower_bound(first, last, value, [](const Edge& e, std::uint32_t v) { return e.value < v; });
    return found != last && found->value == value ? &*found : nullptr;
  }

  /// The first path from knob `k` on; edges of earlier knobs are in `path`.
  void descend(std::size_t k, std::vector<std::uint32_t>& path, Point& point) const {
    for (; k < knobs(); ++k) {
      const std::uint32_t node =
          previous[k] == none ? roots[group[k]] : diagram.edges[path[previous[k]]].child;
      path[k] = diagram.nodes[node].first_edge;
      point.indices[k] = diagram.edges[path[k]].value;
    }
  }
};

Space::Space(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Space::~Space() = default;
Space::Space(Space&&) noexcept = default;
Space& Space::operator=(Space&&) noexcept = default;

Result<Space> Space::build(const Lattice& lattice, const Lookup& facts, std::size_t max_nodes) {
  auto impl = std::make_unique<Impl>();
  const auto knobs = static_cast<std::uint32_t>(lattice.knobs.size());
  impl->group.resize(knobs);
  impl->previous.resize(knobs, Impl::none);
  for (const auto& knob : lattice.knobs) {
    impl->values.push_back(static_cast<std::uint32_t>(knob.values.size()));
    if (__builtin_mul_overflow(impl->product, knob.values.size(), &impl->product))
      impl->product = std::numeric_limits<std::uint64_t>::max();
  }
  FURLONG_TRY(auto components, internal::split_components(lattice, facts));
  std::optional<Error> error;
  bool empty = false;
  for (auto& component : components) {
    for (std::size_t i = 0; i < component.knobs.size(); ++i) {
      impl->group[component.knobs[i]] = static_cast<std::uint32_t>(impl->roots.size());
      if (i > 0) impl->previous[component.knobs[i]] = component.knobs[i - 1];
    }
    FURLONG_TRY(auto result, internal::add_group(impl->diagram, component.group, max_nodes));
    empty = empty || (!result.root && !result.error);
    if (result.error && !error) error = std::move(result.error);
    impl->roots.push_back(result.root.value_or(Diagram::end));
  }
  if (empty) {  // no point at all, so no point whose error would count
    impl->count = 0;
    return Space(std::move(impl));
  }
  if (error) return std::move(*error);
  impl->count = 1;
  for (const auto root : impl->roots)
    if (__builtin_mul_overflow(impl->count, impl->diagram.nodes[root].count, &impl->count))
      return fail(Code::exhausted, "more than 2^64-1 valid points");
  return Space(std::move(impl));
}

std::uint64_t Space::count() const { return impl_->count; }
std::uint64_t Space::product() const { return impl_->product; }

Point Space::at(std::uint64_t i) const {
  const Impl& impl = *impl_;
  Point point{std::vector<std::uint32_t>(impl.knobs(), 0)};
  if (i >= impl.count) return point;
  std::vector<std::uint32_t> node = impl.roots;
  std::uint64_t below = impl.count;  // points below the prefix chosen so far
  for (std::size_t k = 0; k < impl.knobs(); ++k) {
    std::uint32_t& current = node[impl.group[k]];
    const DiagramNode& here = impl.diagram.nodes[current];
    const std::uint64_t others = below / here.count;  // what the other groups multiply each choice by
    const std::uint64_t within = i / others;
    const auto first = impl.diagram.edges.begin() + here.first_edge;
    const auto after = std::upper_bound(first, first + here.edge_count, within,
                                        [](std::uint64_t w, const Edge& e) { return w < e.before; });
    const Edge& edge = *(after - 1);
    i -= edge.before * others;
    point.indices[k] = edge.value;
    current = edge.child;
    below = others * impl.diagram.nodes[current].count;
  }
  return point;
}

std::optional<std::uint64_t> Space::index_of(const Point& point) const {
  const Impl& impl = *impl_;
  if (point.indices.size() != impl.knobs() || impl.count == 0) return std::nullopt;
  std::vector<std::uint32_t> node = impl.roots;
  std::uint64_t below = impl.count;
  std::uint64_t index = 0;
  for (std::size_t k = 0; k < impl.knobs(); ++k) {
    std::uint32_t& current = node[impl.group[k]];
    const DiagramNode& here = impl.diagram.nodes[current];
    const Edge* edge = impl.edge_of(here, point.indices[k]);
    if (edge == nullptr) return std::nullopt;
    const std::uint64_t others = below / here.count;
    index += edge->before * others;
    current = edge->child;
    below = others * impl.diagram.nodes[current].count;
  }
  return index;
}

Point Space::random(Random& random) const {
  return at(random.below(std::max<std::uint64_t>(1, impl_->count)));
}

std::vector<Point> Space::neighbours(const Point& point) const {
  std::vector<Point> found;
  if (point.indices.size() != impl_->knobs()) return found;
  Point other = point;
  for (std::size_t k = 0; k < impl_->knobs(); ++k) {
    for (std::uint32_t value = 0; value < impl_->values[k]; ++value) {
      if (value == point.indices[k]) continue;
      other.indices[k] = value;
      if (index_of(other)) found.push_back(other);
    }
    other.indices[k] = point.indices[k];
  }
  return found;
}

Space::Cursor Space::begin_cursor() const {
  Cursor cursor;
  cursor.impl_ = impl_.get();
  cursor.valid_ = impl_->count > 0;
  cursor.point_.indices.resize(impl_->knobs());
  cursor.path_.resize(impl_->knobs());
  if (cursor.valid_) impl_->descend(0, cursor.path_, cursor.point_);
  return cursor;
}

void Space::Cursor::next() {
  if (!valid_) return;
  const Impl& impl = *impl_;
  for (std::size_t k = impl.knobs(); k > 0; --k) {
    const std::uint32_t before = impl.previous[k - 1];
    const std::uint32_t node =
        before == Impl::none ? impl.roots[impl.group[k - 1]] : impl.diagram.edges[path_[before]].child;
    const DiagramNode& here = impl.diagram.nodes[node];
    if (path_[k - 1] + 1 == here.first_edge + here.edge_count) continue;
    ++path_[k - 1];
    point_.indices[k - 1] = impl.diagram.edges[path_[k - 1]].value;
    impl.descend(k, path_, point_);
    return;
  }
  valid_ = false;
}

}  // namespace furlong::lattice
