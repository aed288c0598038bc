#pragma once
// Compiles the variants of a race, base first, on as many threads as the device likes.

#include <functional>
#include <span>
#include <vector>

#include "furlong/race/internal/entrant.h"

namespace furlong::race {

struct BuildAsked {
  std::span<Entrant* const> entrants;  ///< base first
  double budget_s = 0;  ///< for the others, from the moment base is ready; what is not ready is out
  /// After each variant that ended, on the caller's thread.
  std::function<void(std::size_t done, const Entrant&)> doing;
};

/// Compiles each. A variant that does not compile is out, with the compiler's words; base that does not is
/// the Error. `timeout` when Context::stop asks; never leaves a thread behind. On virtual time one thread
/// compiles, so that the same race takes the same time. Sets VariantOutcome::kernel. Returns when base was
/// ready, by Context::clock.
Result<double> build(const program::Instance& instance, const Context& context, const BuildAsked& asked);

/// Takes out what has the same machine code and the same launches as a variant before it.
void find_duplicates(std::span<Entrant* const> entrants);

}  // namespace furlong::race
