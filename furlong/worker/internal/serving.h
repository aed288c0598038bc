#pragma once
// A pair that can serve: what the race left of it, and the variant that runs.

#include <memory>
#include <string>

#include "furlong/program/instance.h"
#include "furlong/race/buffers.h"
#include "furlong/record/worker_protocol.h"

namespace furlong::worker {

/// A value type of shared parts. Parts that live on the device go only while the device is held.
struct Serving {
  record::Pair pair;
  std::shared_ptr<const program::Instance> instance;
  std::shared_ptr<race::Buffers> buffers;  ///< holds the dataset
  lattice::Point point, base_point;
  std::shared_ptr<device::Module> module, base_module;
  std::string variant;

  bool empty() const { return module == nullptr; }
  bool is_base() const { return point == base_point; }
  /// The same pair served by base.
  Serving by_base() const {
    Serving serving = *this;
    serving.point = base_point;
    serving.module = base_module;
    serving.variant = "base";
    return serving;
  }
};

}  // namespace furlong::worker
