// A race without its heats: what whoever plans many races wants to know of each, and how a winner of long ago
// is gated again.

#include <limits>

#include "furlong/race/internal/hold.h"
#include "furlong/race/internal/run.h"

namespace furlong::race {

Result<Outcome> Race::check(std::size_t entrants) {
  if (entrants == 0 || entrants > points_.size())
    return fail(Code::invalid, "a check of {} of {} points", entrants, points_.size());
  FURLONG_CHECK(check_request());
  start_ms_ = now_ms();
  FURLONG_CHECK(enter());
  // There are no heats to keep time for, and who is late is not thereby wrong.
  options_.budget_s = std::numeric_limits<double>::infinity();
  FURLONG_CHECK(fit_check());
  FURLONG_CHECK(describe_all());
  // From here on only the size of the buffers knows of the others.
  for (std::size_t i = entrants; i < entrants_.size(); ++i) {
    if (!entrants_[i].in()) continue;
    entrants_[i].outcome->exit = Exit::trial;
    entrants_[i].outcome->why = "not asked for";
  }
  FURLONG_CHECK(look_up_quarantine());
  FURLONG_CHECK(compile());
  FURLONG_CHECK(stopped());
  FURLONG_CHECK(set_up_buffers());
  FURLONG_CHECK(stopped());
  FURLONG_CHECK(gates());
  FURLONG_CHECK(stopped());
  FURLONG_CHECK(aim());
  outcome_.verdict_word = "none";
  outcome_.sentence = "the heats were left out";
  outcome_.paused_ms = paused_ms();
  outcome_.ts = iso_time(context_.clock->wall_us());
  outcome_.total_ms = now_ms() - start_ms_;
  return std::move(outcome_);
}

Result<Outcome> check(const program::Instance& instance, std::span<const lattice::Point> points,
                      std::size_t entrants, const Options& options, const Context& context) {
  if (context.device == nullptr || context.clock == nullptr)
    return fail(Code::invalid, "a check needs a device and a clock");
  const Earlier earlier;
  auto race = std::make_unique<Race>(instance, points, options, context, earlier);
  Result<Outcome> outcome = race->check(entrants);
  // What the race made goes while nobody else uses the device.
  const Hold hold(context);
  race.reset();
  return outcome;
}

}  // namespace furlong::race
