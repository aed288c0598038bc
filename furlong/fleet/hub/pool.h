#pragma once
// Open stores for readers: one store is one thread's at a time.

#include <memory>
#include <mutex>
#include <vector>

#include "furlong/fleet/aggregate/aggregate.h"
#include "furlong/fleet/store/store.h"

namespace furlong::fleet {

/// Thread safe. A store is opened when none lies ready, and at most `most_idle` lie ready.
class StorePool {
 public:
  explicit StorePool(OpenStore open, std::size_t most_idle = 8)
      : open_(std::move(open)), most_idle_(most_idle) {}

  /// A store for this thread, until it goes; the pool must live longer.
  class Lease {
   public:
    Lease(StorePool& pool, std::unique_ptr<Store> store) : pool_(&pool), store_(std::move(store)) {}
    Lease(Lease&&) noexcept = default;
    Lease& operator=(Lease&&) = delete;
    ~Lease() {
      if (store_ != nullptr) pool_->put(std::move(store_));
    }
    Store* operator->() const { return store_.get(); }
    Store& operator*() const { return *store_; }

   private:
    StorePool* pool_;
    std::unique_ptr<Store> store_;
  };

  Result<Lease> take() {
    {
      const std::scoped_lock lock(mutex_);
      if (!idle_.empty()) {
        Lease lease(*this, std::move(idle_.back()));
        idle_.pop_back();
        return lease;
      }
    }
    FURLONG_TRY(auto store, open_());
    return Lease(*this, std::move(store));
  }

 private:
  void put(std::unique_ptr<Store> store) {
    const std::scoped_lock lock(mutex_);
    if (idle_.size() < most_idle_) idle_.push_back(std::move(store));
  }

  const OpenStore open_;
  const std::size_t most_idle_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Store>> idle_;
};

}  // namespace furlong::fleet
