#pragma once
// The report page of a race: one self-contained HTML file (no script from elsewhere, no network): the gain of
// each variant with its interval, the heats over time, the elimination order, clocks and power, the knob
// effects.

#include <string>

#include "furlong/race/race.h"

namespace furlong::app {

/// What the page says besides the outcome.
struct RacePage {
  std::string command;       ///< the way to make it again
  std::string date;          ///< ISO time
  double threshold = 0.005;  ///< gain that a winner must have
};

/// Deterministic for the same outcome and page.
std::string html_report(const program::Instance& instance, const race::Outcome& outcome,
                        const RacePage& page);

}  // namespace furlong::app
