#include "furlong/shard/meter.h"

#include <algorithm>

#include "furlong/base/text.h"

namespace furlong::shard {

void Meter::begin_unit() {
  mark_bytes_ = bytes_;
  mark_features_ = features_;
  last_touched_.clear();
  touched_since_mark_.clear();
}

void Meter::commit() {
  mark_bytes_ = bytes_;
  mark_features_ = features_;
  touched_since_mark_.clear();
}

void Meter::rollback() {
  bytes_ = mark_bytes_;
  features_ = mark_features_;
  for (const Key& key : touched_since_mark_) touched_.erase(key);
  touched_since_mark_.clear();
  last_touched_.clear();
  tripped_ = false;
}

Status Meter::charge(std::uint64_t bytes) {
  // An executor that goes on after a trip gets the same answer and adds nothing: the overshoot stays one
  // charge.
  if (!tripped_) {
    bytes_ += bytes;
    tripped_ = cap_bytes_ != 0 && bytes_ > cap_bytes_;
  }
  if (!tripped_) return {};
  return fail(Code::exhausted, "the record's cap of {} is reached: {} are filled", human_bytes(cap_bytes_),
              human_bytes(bytes_));
}

void Meter::release(std::uint64_t bytes) { bytes_ -= std::min(bytes, bytes_); }

void Meter::count(const std::string& feature, double amount) { features_[feature] += amount; }

void Meter::touch(const Key& item) {
  if (touched_.insert(item).second) touched_since_mark_.push_back(item);
  last_touched_.insert(item);
}

}  // namespace furlong::shard
