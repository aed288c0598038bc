#pragma once
// The memory of a running process and all its descendants, looked at from outside.

#include <cstdint>
#include <map>

namespace furlong {

/// Follows the tree by parents, and those that it has seen once also after their parents ended. One that is
/// adopted away between two samples is missed. One thread at a time.
class ProcessTree {
 public:
  /// The leader must not have been waited for yet: its number is its own only as long.
  explicit ProcessTree(int leader);

  /// Bytes resident in all of them now; 0 when none is left. Shared pages count for each that has them, so
  /// the sum errs upward. Only where more than one process is large (a large one forked) and the sum would be
  /// the highest so far, each page counts once (Pss), which takes the system longer to tell.
  std::uint64_t sample();
  /// The highest sample.
  std::uint64_t peak_bytes() const { return peak_bytes_; }
  /// Kills all that are left, in rounds, until none starts another; true when none is left.
  bool kill();

 private:
  struct Seen {
    std::uint64_t started = 0;  ///< in ticks after boot: a number that was given anew differs in it
    std::uint64_t resident_bytes = 0;
  };
  void look();

  std::map<int, Seen> seen_;  // alive at the last look
  std::uint64_t peak_bytes_ = 0;
};

}  // namespace furlong
