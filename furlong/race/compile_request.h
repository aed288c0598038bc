#pragma once
// From a variant's plan to what a device compiles.

#include <cstdint>
#include <span>

#include "furlong/device/device.h"
#include "furlong/program/instance.h"

namespace furlong::race {

/// The compile request of a plan. `shared_bytes`: the most dynamic shared memory that a launch will ask for.
/// Pure; thread safe.
device::CompileRequest compile_request(const program::Instance& instance, const program::VariantPlan& plan,
                                       std::uint64_t shared_bytes);

/// The most dynamic shared memory that one of the launches asks for, in bytes.
std::uint64_t most_shared_bytes(std::span<const program::LaunchPlan> launches);

}  // namespace furlong::race
