#include "furlong/worker/internal/lost_work.h"

#include <algorithm>
#include <vector>

#include "furlong/stats/centre.h"

namespace furlong::worker {
namespace {

constexpr std::size_t kFewest = 10, kMost = 200;

}  // namespace

void LostWork::chunk(double end_ms, double span_ms, std::uint64_t nonces, bool whole) {
  last_end_ms_ = end_ms;
  if (begun_ms_) {
    // A chunk that was under way counts for the part of it that was.
    const double inside = span_ms > 0 ? std::clamp((end_ms - *begun_ms_) / span_ms, 0.0, 1.0) : 1;
    nonces_ += inside * static_cast<double>(nonces);
    return;
  }
  if (span_ms <= 0 || !whole) return;
  rates_.push_back(static_cast<double>(nonces) / span_ms);
  if (rates_.size() > kMost) rates_.pop_front();
}

void LostWork::interrupt() {
  begun_ms_.reset();
  rate_at_begin_.reset();
}

void LostWork::forget() {
  rates_.clear();
  begun_ms_.reset();
  rate_at_begin_.reset();
  last_end_ms_.reset();
}

std::optional<double> LostWork::undisturbed_rate() const {
  if (rates_.size() < kFewest) return std::nullopt;
  return stats::median(std::vector<double>(rates_.begin(), rates_.end()));
}

void LostWork::begin(double now_ms) {
  begun_ms_ = now_ms;
  rate_at_begin_ = undisturbed_rate();
  nonces_ = 0;
}

std::optional<double> LostWork::finish() {
  const std::optional<double> begun = begun_ms_, rate = rate_at_begin_;
  begun_ms_.reset();
  rate_at_begin_.reset();
  // Up to the last chunk's end: what is under way is not yet known.
  if (!begun || !rate || *rate <= 0 || !last_end_ms_ || *last_end_ms_ <= *begun) return std::nullopt;
  return std::max((*last_end_ms_ - *begun) - nonces_ / *rate, 0.0);
}

}  // namespace furlong::worker
