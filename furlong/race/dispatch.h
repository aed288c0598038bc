#pragma once
// The dispatch table: several problem sizes raced on one device, and which variant to use at each.

#include <string>
#include <string_view>
#include <vector>

#include "furlong/base/json_fwd.h"
#include "furlong/race/race.h"

namespace furlong::race {

struct DispatchRow {
  std::vector<std::pair<std::string, lattice::Value>> problem;  ///< parameters in the program's order
  std::string variant;                                          ///< base where nothing beats it
  std::string verdict;                                          ///< Outcome::verdict_word
  double rate = 0, base_rate = 0;                               ///< units per second; 0: not timed
  double gain = 0;                                              ///< over base, ratio - 1
  /// Gain of each variant that was timed, so that a reader may prefer another: (name, ratio - 1).
  std::vector<std::pair<std::string, double>> gains;
  bool operator==(const DispatchRow&) const = default;
};

/// Rows in the order raced (docs/formats/dispatch.md). A value type.
class DispatchTable {
 public:
  /// A later race of the same problem replaces the row.
  void add(const program::Instance& instance, const Outcome& outcome);
  const std::vector<DispatchRow>& rows() const { return rows_; }
  /// The row of the nearest problem: words equal where possible, then the least sum of squared log ratios of
  /// the numbers. nullptr for an empty table.
  const DispatchRow* nearest(const lattice::Environment& problem) const;
  /// For people: one line a problem.
  std::string text() const;
  Json json() const;
  /// `invalid` names what is wrong in `name`; `incompatible` another schema.
  static Result<DispatchTable> parse(std::string_view text, std::string_view name);
  bool operator==(const DispatchTable&) const = default;

 private:
  std::string program_, language_, device_, source_, rate_unit_ = "1/s";
  double rate_scale_ = 1;
  std::vector<DispatchRow> rows_;
};

}  // namespace furlong::race
