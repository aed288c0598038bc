#pragma once
// Knobs, constraints, points, catalogues: the lattice of a program.

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "furlong/base/error.h"
#include "furlong/lattice/expression.h"
#include "furlong/lattice/value.h"

namespace furlong::lattice {

/// How a knob's value reaches the kernel.
enum class Applies {
  define,   ///< NAME=value for the compiler
  option,   ///< a compiler option, `option_format` with {} for the value
  launch,   ///< only the launch expressions use it
  rewrite,  ///< a textual rewrite of the source (furlong/program)
  emit,     ///< a parameter of the emitter
};
std::string_view applies_name(Applies applies);

/// What a value does beside the default, other knobs equal, by more than the threshold (ties: by less).
enum class ClaimOutcome { wins, loses, ties };
std::string_view claim_outcome_name(ClaimOutcome outcome);

/// A part of a trade-off sentence that race records can contradict (furlong/audit).
struct Claim {
  std::size_t value = 0;  ///< index into the knob's values; not the default's
  ClaimOutcome outcome = ClaimOutcome::wins;
  std::string where;  ///< expression over class features and claim_facts(); empty: everywhere
  int line = 0;       ///< in the program file, for messages
};
/// The device facts that `where` may name: those that race records tell.
std::span<const std::string> claim_facts();
/// `where` parsed; the constant True when it is empty.
Result<Expression> claim_condition(const Claim& claim);

struct Knob {
  std::string name;
  std::vector<Value> values;      ///< ordered; at least two
  std::size_t default_index = 0;  ///< into values
  std::vector<std::string> tags;  ///< one a value; the default's is empty
  std::vector<Applies> applies;   ///< a knob may act in several ways (define and launch)
  std::string wins;               ///< regime where the aggressive value wins
  std::string loses;              ///< regime where it loses
  std::vector<Claim> claims;      ///< those sentences, as far as a machine can check them
  std::string evidence;  ///< what produced the numbers in those sentences: a bench's name or a figure's place
  std::string requires_text;                   ///< precondition on device or problem; empty: none
  std::vector<std::string> languages;          ///< where it exists; empty: everywhere
  std::set<std::size_t> lossy;                 ///< indices of values that lower precision
  std::set<std::size_t> restricted;            ///< indices valid only for some inputs: only by name
  std::map<std::size_t, std::string> options;  ///< compiler options by value index (Applies::option)
  std::vector<std::string> coupled;            ///< knobs that change together with this one, for reachability
  int line = 0;                                ///< in the program file, for messages
};

struct Constraint {
  Expression expression;
  std::string reason;  ///< why, for messages; may be empty
  int line = 0;
};

/// One valid (or not yet checked) assignment: an index into each knob's values, in knob order.
struct Point {
  std::vector<std::uint32_t> indices;
  auto operator<=>(const Point&) const = default;
};

/// A transform that is never worse: always applied, never a knob.
struct StrictlyBetter {
  std::string name;
  std::string reason;
};

/// A value type; const use is thread safe.
struct Lattice {
  std::vector<Knob> knobs;
  std::vector<Constraint> constraints;
  std::vector<StrictlyBetter> strictly_better;
  std::vector<std::string> catalogue;  ///< variant names, base first

  const Knob* knob(std::string_view name) const;
  std::optional<std::size_t> knob_index(std::string_view name) const;
  Point base() const;
  /// Knob values by name, for expressions.
  std::optional<Value> value(const Point& point, std::string_view knob_name) const;
  /// Whether all constraints and `requires` hold with these further facts (problem, device.*). A knob's
  /// `requires` binds only values other than its default, so that base stays valid everywhere. An
  /// expression that cannot be evaluated is an error, unless another one excludes the point: `b != 0`
  /// protects `a % b` wherever it stands. A point of another shape is `invalid`.
  Result<bool> satisfies(const Point& point, const Lookup& facts) const;
  /// The first constraint that does not hold, as a sentence; empty when all hold.
  Result<std::string> why_invalid(const Point& point, const Lookup& facts) const;
};

/// The variant's name: the tags of its non-default values joined by '-' in knob order; "base" for the
/// default point.
std::string variant_name(const Lattice& lattice, const Point& point);
/// The point of a name; `invalid` names the part that is no tag and the nearest ones.
Result<Point> parse_variant(const Lattice& lattice, std::string_view name);

/// The knobs that a point sets to a lossy value (one that lowers precision), in knob order.
std::vector<std::string> lossy_knobs(const Lattice& lattice, const Point& point);
/// The knobs that a point sets to a restricted value (valid only for some inputs), in knob order.
std::vector<std::string> restricted_knobs(const Lattice& lattice, const Point& point);
/// The lattice to race or search: its lossy and restricted values are excluded by constraints, but for
/// those of the knobs that the caller admits by name. Indices and names stay as they were. `invalid`
/// names an admitted knob that the lattice does not have or that has no such value.
Result<Lattice> admitting(const Lattice& lattice, std::span<const std::string> lossy,
                          std::span<const std::string> restricted);

/// Points of the catalogue, in order; `invalid` names the variant that does not parse.
Result<std::vector<Point>> catalogue_points(const Lattice& lattice);

}  // namespace furlong::lattice
