#pragma once
// What an edition's emitter makes of a variant, checked before anybody uses it.

#include <vector>

#include "furlong/program/emitter.h"
#include "furlong/program/instance.h"

namespace furlong::program::internal {

/// Text and launches of `point` on this problem and device; launches that run once come first. Errors of the
/// emitter and of [let] name the variant. `internal`: what the emitter made cannot be used (no text, an
/// argument that the program does not have, a launch that runs once and is passed an output).
Result<Emitted> emit(const Program& program, const Edition& edition, const lattice::Point& point,
                     const lattice::Environment& problem, const lattice::Environment& facts);

/// The launches of what emit() gave, with arguments by index. `invalid` when one passes what a launch may
/// have; `variant` names it.
Result<std::vector<LaunchPlan>> launch_plans(const Program& program, const Emitted& emitted,
                                             std::string_view variant);

/// Kernel functions that are launched, each once, in order.
std::vector<std::string> entries_of(const Emitted& emitted);

}  // namespace furlong::program::internal
