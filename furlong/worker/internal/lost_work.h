#pragma once
// What preparing the next pair costs the work in hand: pauses and slowdown, against an undisturbed stretch.

#include <cstdint>
#include <deque>
#include <optional>

namespace furlong::worker {

/// Fed with every chunk of one pair and variant; forget() when either changes. Times by one clock, in
/// milliseconds. One thread.
class LostWork {
 public:
  /// A chunk that ended at `end_ms`, `span_ms` after the one before it ended, with so many nonces. `whole`:
  /// nothing cut it short, so that it tells of the rate.
  void chunk(double end_ms, double span_ms, std::uint64_t nonces, bool whole = true);
  /// There is no work: a prepare that is under way costs none that could be told.
  void interrupt();
  void forget();

  /// A prepare begins. Chunks until finish() are compared with those before.
  void begin(double now_ms);
  /// It ended: time that work of the undisturbed rate would have saved, 0 at least. nullopt: there was no
  /// undisturbed stretch of 10 chunks before, or the work did not go on throughout.
  std::optional<double> finish();
  bool running() const { return begun_ms_.has_value(); }

  /// Nonces per millisecond of the undisturbed stretch: the median of its chunks. nullopt: fewer than 10.
  std::optional<double> undisturbed_rate() const;

 private:
  std::deque<double> rates_;  // of undisturbed chunks, the newest last
  std::optional<double> begun_ms_;
  std::optional<double> rate_at_begin_;
  std::optional<double> last_end_ms_;
  double nonces_ = 0;  // since begin
};

}  // namespace furlong::worker
