#pragma once

#include "furlong/device/cuda/internal/driver_api.h"
#include "furlong/device/device.h"

namespace furlong::device::cuda {

/// What the driver tells of one card, without opening it. `compiler` is left empty. The memory is rounded to
/// whole GiB: what a driver keeps for itself differs from version to version, the silicon does not. With MIG
/// on the uuid is the slice's: it tells devices apart, and NVML and nvidia-smi know the card by its bus id.
Facts card_facts(const Api& api, Card card, int index);
/// "0000:3b:00.0".
std::string bus_id(const Api& api, Card card);

}  // namespace furlong::device::cuda
