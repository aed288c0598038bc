#pragma once
// The report page of a race: one self-contained HTML file (no script from elsewhere, no network): the gain of each
// variant with its interval, the heats over time, the elimination order, clocks and power, the knob effects.

#include <string>

#include "furlong/race/race.h"

namespace furlong::app {

/// Deterministic for the same outcome. `command` is shown as the way to make it again; `date` is an ISO time.
std::string html_report(const program::Instance& instance, const race::Outcome& outcome, const std::string& command,
                        const std::string& date);

}  // namespace furlong::app
