#pragma once
// A device's ceilings for the commands: kept ones, or measured with a progress line and then kept.

#include <optional>
#include <stop_token>

#include "furlong/device/ceilings.h"

namespace furlong::app {

/// What the cache folder has of the device; nothing is measured.
std::optional<device::Ceilings> kept_ceilings(const device::Facts& facts);

/// Measures, telling what it does on standard error, and keeps the result; a cache folder that cannot be
/// written costs a warning only. `invalid` for a simulated device.
Result<device::Ceilings> measure_and_keep(device::Device& device, std::stop_token stop, bool quiet = false);

/// "4.52 TB/s", "39.1 G loads/s", "33.5 T operations/s".
std::string ceiling_rate_text(device::CeilingKind kind, double rate);

}  // namespace furlong::app
