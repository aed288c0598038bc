#pragma once
// So many at one time, and no queue.

#include <atomic>
#include <optional>
#include <utility>

namespace furlong::fleet {

/// Thread safe.
class Gate {
 public:
  explicit Gate(int most) : most_(most) {}
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;

  /// Inside, until it goes; the gate must live longer.
  class Entry {
   public:
    Entry(Entry&& other) noexcept : gate_(std::exchange(other.gate_, nullptr)) {}
    Entry& operator=(Entry&&) = delete;
    ~Entry() {
      if (gate_ != nullptr) --gate_->inside_;
    }

   private:
    friend class Gate;
    explicit Entry(Gate& gate) : gate_(&gate) {}
    Gate* gate_;
  };

  /// nullopt: as many are inside as there may be.
  std::optional<Entry> enter() {
    if (++inside_ > most_) {
      --inside_;
      return std::nullopt;
    }
    return Entry(*this);
  }

 private:
  const int most_;
  std::atomic<int> inside_ = 0;
};

}  // namespace furlong::fleet
