#pragma once
// The one wrapper of Scotch.

#include <cstdint>
#include <vector>

#include "furlong/base/error.h"

namespace furlong::shard::scotch {

/// Undirected, without loops, each link given once. Weights may be anything: they are scaled to what Scotch's
/// 32-bit sums hold, and nothing becomes 0.
struct Graph {
  struct Link {
    std::uint32_t a = 0, b = 0;
    std::uint64_t weight = 1;
  };
  std::vector<std::uint64_t> vertex_weights;
  std::vector<Link> links;
};

/// The part of each vertex, 0 to parts - 1, by recursive bisection: parts whose numbers are near were
/// separated late. Minimises the weight of the links between parts; parts differ from equal weight by about
/// `imbalance` (0.05: 5%). The same graph and seed give the same parts. Thread safe.
Result<std::vector<std::uint32_t>> bisect(const Graph& graph, std::uint32_t parts, double imbalance,
                                          std::uint64_t seed);

}  // namespace furlong::shard::scotch
