#pragma once
// The valid assignments of a group of knobs that constraints tie together, as a decision diagram: one layer
// a knob, equal remainders shared, every path ends in a valid assignment. Several groups lie in one diagram.

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "furlong/lattice/internal/residual.h"

namespace furlong::lattice::internal {

struct Edge {
  std::uint32_t value = 0;   ///< index into the knob's values
  std::uint32_t child = 0;   ///< node of the group's next knob
  std::uint64_t before = 0;  ///< assignments below the node's earlier edges
};

struct DiagramNode {
  std::uint32_t first_edge = 0;
  std::uint32_t edge_count = 0;
  std::uint64_t count = 0;  ///< assignments from here on
};

struct Diagram {
  static constexpr std::uint32_t end = 0;  ///< the node behind a group's last knob
  std::vector<DiagramNode> nodes{DiagramNode{0, 0, 1}};
  std::vector<Edge> edges;
};

/// One group: knobs in knob order, each with its values and their intervals.
struct Group {
  struct Layer {
    std::vector<const Value*> values;
    std::vector<Interval> intervals;
  };
  std::vector<Layer> layers;
  std::vector<Residual> residuals;
  std::vector<std::string> residual_names;  ///< for messages, as in Condition
};

struct GroupResult {
  std::optional<std::uint32_t> root;  ///< none when the group has no valid assignment
  std::optional<Error> error;         ///< an assignment that nothing excludes has a condition without value
};

/// Adds a group to the diagram. `exhausted` when nodes, edges and what is remembered of the prefixes (in
/// edges' sizes) pass `max_nodes`, or when there are more than 2^64-1 assignments.
Result<GroupResult> add_group(Diagram& diagram, Group& group, std::size_t max_nodes);

}  // namespace furlong::lattice::internal
