#include "furlong/lattice/internal/reachability.h"

#include <algorithm>

#include "furlong/base/text.h"
#include "furlong/lattice/internal/components.h"
#include "furlong/lattice/space.h"

namespace furlong::lattice::internal {
namespace {

constexpr std::uint64_t kMostTries = 500'000'000;

/// The knobs of one group with the constraints that name any of them.
Lattice part_of(const Lattice& lattice, const std::vector<std::uint32_t>& knobs) {
  Lattice part;
  for (const auto k : knobs) part.knobs.push_back(lattice.knobs[k]);
  for (const auto& constraint : lattice.constraints) {
    const auto& names = constraint.expression.variables();
    if (std::any_of(names.begin(), names.end(), [&](const auto& name) { return part.knob(name) != nullptr; }))
      part.constraints.push_back(constraint);
  }
  return part;
}

/// Sets of knobs that change together: each alone, and each declared coupling.
std::vector<std::vector<std::size_t>> moves_of(const Lattice& part) {
  std::vector<std::vector<std::size_t>> moves;
  for (std::size_t k = 0; k < part.knobs.size(); ++k) {
    moves.push_back({k});
    std::vector<std::size_t> together{k};
    for (const auto& name : part.knobs[k].coupled)
      if (const auto other = part.knob_index(name); other && *other != k) together.push_back(*other);
    if (together.size() > 1) moves.push_back(std::move(together));
  }
  return moves;
}

/// A coupled move tries all assignments of its knobs at every point: too many would never end.
Status check_moves(const Lattice& part, std::uint64_t points) {
  for (const auto& move : moves_of(part)) {
    if (move.size() == 1) continue;
    std::uint64_t tries = points;
    bool many = false;
    std::vector<std::string> names;
    for (const auto k : move) {
      many = __builtin_mul_overflow(tries, part.knobs[k].values.size(), &tries) || many;
      names.push_back(part.knobs[k].name);
    }
    if (many || tries > kMostTries)
      return fail(Code::exhausted,
                  "the coupled knobs {} have too many assignments to be tried at each of {} points; couple "
                  "fewer",
                  join(names, ", "), points);
  }
  return {};
}

class Walk {
 public:
  Walk(const Lattice& part, const Space& space) : part_(part), space_(space), seen_(space.count(), false) {}

  /// The index of a point that was not reached, and how many there are.
  std::pair<std::uint64_t, std::uint64_t> run(std::uint64_t start) {
    const auto moves = moves_of(part_);
    reach(start);
    while (!todo_.empty()) {
      Point point = space_.at(todo_.back());
      todo_.pop_back();
      for (const auto& move : moves) change(point, move, 0);
    }
    const auto missed = std::find(seen_.begin(), seen_.end(), false);
    return {static_cast<std::uint64_t>(missed - seen_.begin()), seen_.size() - reached_};
  }

 private:
  void reach(std::uint64_t index) {
    if (seen_[index]) return;
    seen_[index] = true;
    ++reached_;
    todo_.push_back(index);
  }

  /// Every assignment of the move's knobs from `first` on.
  void change(Point& point, const std::vector<std::size_t>& move, std::size_t first) {
    if (first == move.size()) {
      if (const auto index = space_.index_of(point)) reach(*index);
      return;
    }
    const std::uint32_t before = point.indices[move[first]];
    for (std::uint32_t v = 0; v < part_.knobs[move[first]].values.size(); ++v) {
      point.indices[move[first]] = v;
      change(point, move, first + 1);
    }
    point.indices[move[first]] = before;
  }

  const Lattice& part_;
  const Space& space_;
  std::vector<bool> seen_;
  std::uint64_t reached_ = 0;
  std::vector<std::uint64_t> todo_;
};

}  // namespace

Result<Reachability> reachability(const Lattice& lattice, const Lookup& facts, std::uint64_t max_points) {
  FURLONG_TRY(const auto components, split_components(lattice, facts));
  for (const auto& component : components) {
    if (component.knobs.size() < 2) continue;  // one knob alone goes anywhere in one change
    const Lattice part = part_of(lattice, component.knobs);
    FURLONG_TRY(const Space space, Space::build(part, facts));
    const auto start = space.index_of(part.base());
    if (!start) return fail(Code::invalid, "base is not a valid point");
    std::vector<std::string> names;
    for (const auto& knob : part.knobs) names.push_back(knob.name);
    if (space.count() > max_points)
      return fail(Code::exhausted, "{} valid points of the knobs {}; up to {} are walked", space.count(),
                  join(names, ", "), max_points);
    FURLONG_CHECK(check_moves(part, space.count()));
    const auto [missed, count] = Walk(part, space).run(*start);
    if (count == 0) continue;
    Point example = lattice.base();
    const Point there = space.at(missed);
    for (std::size_t i = 0; i < component.knobs.size(); ++i)
      example.indices[component.knobs[i]] = there.indices[i];
    return Reachability{count, variant_name(lattice, example), names};
  }
  return Reachability{};
}

}  // namespace furlong::lattice::internal
