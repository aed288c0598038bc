#pragma once
// Small lattices for tests: knobs, constraints and facts in one line each, and the whole product.

#include <algorithm>
#include <string>
#include <vector>

#include "furlong/lattice/lattice.h"

namespace furlong::lattice {

/// The first value is the default. Without tags they are the knob's name and the value's number.
inline Knob make_knob(std::string name, std::vector<Value> values, std::vector<std::string> tags = {}) {
  Knob knob;
  knob.name = std::move(name);
  for (std::size_t v = tags.size(); v < values.size(); ++v)
    tags.push_back(v == 0 ? "" : knob.name + std::to_string(v));
  knob.values = std::move(values);
  knob.tags = std::move(tags);
  knob.applies = {Applies::define};
  knob.wins = "on " + knob.name + " of the one kind";
  knob.loses = "on " + knob.name + " of the other kind";
  return knob;
}

/// A text that does not parse gives the constraint 0, which no point satisfies.
inline Constraint make_constraint(std::string_view text, std::string reason = "") {
  auto parsed = Expression::parse(text);
  return {parsed ? *parsed : Expression(), std::move(reason), 0};
}

inline Lookup make_facts(Environment environment) {
  return [environment = std::move(environment)](std::string_view name) -> std::optional<Value> {
    const auto found = environment.find(std::string(name));
    return found == environment.end() ? std::nullopt : std::optional(found->second);
  };
}

/// Every point, valid or not, in lexicographic order.
inline std::vector<Point> whole_product(const Lattice& lattice) {
  std::vector<Point> points;
  Point point{std::vector<std::uint32_t>(lattice.knobs.size(), 0)};
  while (true) {
    points.push_back(point);
    std::size_t k = lattice.knobs.size();
    while (k > 0 && point.indices[k - 1] + 1 == lattice.knobs[k - 1].values.size()) point.indices[--k] = 0;
    if (k == 0) return points;
    ++point.indices[k - 1];
  }
}

}  // namespace furlong::lattice
