#pragma once
// Bytes that many requests share.

#include <atomic>
#include <cstddef>
#include <utility>

namespace furlong::fleet {

/// Thread safe.
class MemoryBudget {
 public:
  explicit MemoryBudget(std::size_t most) : most_(most) {}
  std::size_t used() const { return used_.load(std::memory_order_relaxed); }
  std::size_t most() const { return most_; }
  bool has_room_for(std::size_t bytes) const {
    const std::size_t used = used_.load(std::memory_order_relaxed);
    return used <= most_ && bytes <= most_ - used;
  }

 private:
  friend class MemoryShare;
  bool take(std::size_t bytes) {
    std::size_t used = used_.load(std::memory_order_relaxed);
    while (used <= most_ && bytes <= most_ - used)
      if (used_.compare_exchange_weak(used, used + bytes, std::memory_order_relaxed)) return true;
    return false;
  }
  const std::size_t most_;
  std::atomic<std::size_t> used_{0};
};

/// What one request holds of a budget, given back when it goes. Not thread safe; the budget outlives it.
class MemoryShare {
 public:
  MemoryShare() = default;
  explicit MemoryShare(MemoryBudget& budget) : budget_(&budget) {}
  ~MemoryShare() { release(); }
  MemoryShare(MemoryShare&& other) noexcept
      : budget_(std::exchange(other.budget_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  MemoryShare& operator=(MemoryShare&& other) noexcept {
    if (this != &other) {
      release();
      budget_ = std::exchange(other.budget_, nullptr);
      bytes_ = std::exchange(other.bytes_, 0);
    }
    return *this;
  }

  std::size_t bytes() const { return bytes_; }
  /// False and nothing taken where there is no room.
  bool grow(std::size_t bytes) {
    if (budget_ == nullptr || !budget_->take(bytes)) return false;
    bytes_ += bytes;
    return true;
  }
  /// Takes them where there is no room either: what cannot be refused is counted at least.
  void grow_anyway(std::size_t bytes) {
    if (budget_ == nullptr) return;
    budget_->used_.fetch_add(bytes, std::memory_order_relaxed);
    bytes_ += bytes;
  }
  void release() {
    if (budget_ != nullptr) budget_->used_.fetch_sub(bytes_, std::memory_order_relaxed);
    bytes_ = 0;
  }

 private:
  MemoryBudget* budget_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace furlong::fleet
