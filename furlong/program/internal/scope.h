#pragma once
// The names of one evaluation: knobs of a point, problem, device facts and what [let] derives from them.

#include <map>
#include <optional>
#include <string>

#include "furlong/program/program.h"

namespace furlong::program::internal {

/// Whether two problems have the same parameters and values.
bool same_problem(const lattice::Environment& a, const lattice::Environment& b);

/// Refers to what it is made of, which must outlive it. Derived values are worked out once and kept. Not
/// thread safe.
class Scope {
 public:
  /// `lattice` and `point` may be null: then no knob has a value.
  Scope(const Program& program, const lattice::Lattice* lattice, const lattice::Point* point,
        const lattice::Environment& problem, const lattice::Environment& facts)
      : program_(program), lattice_(lattice), point_(point), problem_(problem), facts_(facts) {}
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

  /// `what` names the expression in errors: "grid of kernel 'add'".
  Result<lattice::Value> value(const lattice::Expression& expression, std::string_view what);
  Result<std::int64_t> integer(const lattice::Expression& expression, std::string_view what);
  Result<double> number(const lattice::Expression& expression, std::string_view what);
  /// How many a buffer argument has; `invalid` under 1.
  Result<std::uint64_t> elements(const ArgumentSpec& argument);
  /// Valid while the scope lives.
  lattice::Lookup lookup();
  /// Why a name of [let] that the lookup was asked for has no value; null when none failed.
  const Error* let_error() const { return derived_error_ ? &*derived_error_ : nullptr; }

 private:
  std::optional<lattice::Value> find(std::string_view name);

  const Program& program_;
  const lattice::Lattice* lattice_;
  const lattice::Point* point_;
  const lattice::Environment& problem_;
  const lattice::Environment& facts_;
  std::map<std::string, lattice::Value, std::less<>> derived_;
  std::optional<Error> derived_error_;  ///< why a derived name has no value
};

}  // namespace furlong::program::internal
