#pragma once
// What each machine's races show by themselves, and the interval of a median over voices where these are too
// few for ranks (docs/fleet-aggregation.md, "Regressions"). Pure functions, thread safe. Internal to
// furlong/fleet/aggregate.

#include <limits>
#include <optional>
#include <span>

#include "furlong/fleet/aggregate/internal/interval.h"

namespace furlong::fleet::internal {

/// Of a rate: a machine's races never scatter by less, however equal a few of them look.
inline constexpr double scatter_floor = 1e-3;

/// One machine's own word on a ratio, by its own races; logarithms.
struct Own {
  double log_mean = 0;
  double log_variance = std::numeric_limits<double>::quiet_NaN();  ///< of the mean; NaN: one race tells none
  double degrees = 0;                                              ///< of freedom, of Student's t
};
/// The variance of the mean of logarithms of rates, not under the floor's; NaN for fewer than two.
double variance_of_mean(std::span<const double> logs);
/// Percent. nullopt where there is no variance.
std::optional<record::Interval> own_interval(const Own& own, double error);

/// Percent, for the median over voices: `ordered` has one value a voice, `own` all their machines. By ranks
/// where the voices are enough for that. Else Student's t over them; where every machine has an interval of
/// its own, together with the hull of these, half of the error each, the narrower ends counting as long as
/// they hold the median. One voice: its machines' own. nullopt: nothing is known of the scatter.
std::optional<record::Interval> voices_interval(std::span<const Said> ordered, std::span<const Own> own,
                                                double error);

}  // namespace furlong::fleet::internal
