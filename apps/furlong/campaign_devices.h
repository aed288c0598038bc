#pragma once

#include <memory>

#include "furlong/campaign/campaign.h"

namespace furlong::app {

/// The devices of this build for campaigns: every back end, and the simulated device of the command line
/// ($FURLONG_SIM), whose launches compute by a program's built-in reference.
std::unique_ptr<campaign::Devices> campaign_devices();

}  // namespace furlong::app
