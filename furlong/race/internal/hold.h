#pragma once
// Holding the device: between Context::acquire and release nobody else uses it.

#include <cstdint>
#include <string_view>

#include "furlong/race/race.h"

namespace furlong::race {

/// Holds the device while it lives; adds the time to *held_ms when given. Not to be nested.
class Hold {
 public:
  explicit Hold(const Context& context, double* held_ms = nullptr) : context_(context), held_ms_(held_ms) {
    if (context_.acquire) context_.acquire();
    start_ms_ = context_.clock->now_ms();
  }
  ~Hold() {
    if (held_ms_ != nullptr) *held_ms_ += context_.clock->now_ms() - start_ms_;
    if (context_.release) context_.release();
  }
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;

 private:
  const Context& context_;
  double* held_ms_;
  double start_ms_ = 0;
};

/// Tells the guard what runs, while it lives.
class InHand {
 public:
  InHand(const Context& context, Holding what, std::string_view name, double limit_s) : hand_(context.hand) {
    if (hand_ != nullptr) hand_->take(static_cast<std::uint32_t>(what), name, limit_s);
  }
  /// One launch of each kernel of a variant.
  InHand(const Context& context, std::string_view variant)
      : InHand(context, Holding::variant, variant, context.hand_limit_s) {}
  ~InHand() {
    if (hand_ != nullptr) hand_->drop();
  }
  InHand(const InHand&) = delete;
  InHand& operator=(const InHand&) = delete;

 private:
  Hand* hand_;
};

inline constexpr double kReferenceLimits = 15;  // of hand_limit_s

/// Telemetry of a device that others may be using.
inline device::Telemetry read_telemetry(const Context& context) {
  const Hold hold(context);
  return context.device->telemetry();
}

}  // namespace furlong::race
