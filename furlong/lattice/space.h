#pragma once
// Exact, lazy enumeration of the valid points of a lattice: count, i-th point, uniform random point,
// neighbours, pull iterator; never the Cartesian product.

#include <cstdint>
#include <memory>
#include <vector>

#include "furlong/base/random.h"
#include "furlong/lattice/lattice.h"

namespace furlong::lattice {

/// The valid points, in lexicographic order of the indices in knob order. Built once; const use is
/// thread safe. Constraints may name problem parameters and device facts through `facts`.
class Space {
 public:
  /// A knob's `requires` restricts it as in Lattice::satisfies. `invalid` when a constraint names something
  /// that is neither a knob nor in `facts`, or has no value (a division by zero) at a point that no other
  /// constraint excludes; `exhausted` when the index would pass `max_nodes` entries (some 24 bytes each) or
  /// there are more than 2^64-1 valid points. How it works: docs/lattice.md.
  static Result<Space> build(const Lattice& lattice, const Lookup& facts, std::size_t max_nodes = 50'000'000);
  ~Space();
  Space(Space&&) noexcept;
  Space& operator=(Space&&) noexcept;

  std::uint64_t count() const;
  /// Size of the whole product, valid or not (saturates at 2^64-1).
  std::uint64_t product() const;
  /// i < count(); past it the first value of every knob. O(knobs · log values), as index_of.
  Point at(std::uint64_t i) const;
  /// Position of a valid point; nullopt when it is not one.
  std::optional<std::uint64_t> index_of(const Point& point) const;
  /// Uniform over the valid points; count() must not be 0.
  Point random(Random& random) const;
  /// Valid points that differ from it in exactly one knob; the point itself need not be valid. By knob, then
  /// by value.
  std::vector<Point> neighbours(const Point& point) const;

  /// Pull iterator, in order; it must not outlive the space (which may be moved meanwhile): for (auto c =
  /// space.begin_cursor(); c.valid(); c.next()) use(c.point());
  class Cursor;
  Cursor begin_cursor() const;

 private:
  struct Impl;
  explicit Space(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

class Space::Cursor {
 public:
  bool valid() const { return valid_; }
  const Point& point() const { return point_; }
  void next();

 private:
  friend class Space;
  const Impl* impl_ = nullptr;
  bool valid_ = false;
  Point point_;
  std::vector<std::uint32_t> path_;  // implementation's own bookkeeping
};

}  // namespace furlong::lattice
