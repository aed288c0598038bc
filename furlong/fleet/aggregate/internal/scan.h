#pragma once
// Subjects spread over threads, one store each. Internal to furlong/fleet/aggregate.

#include <cstddef>
#include <functional>
#include <memory>

#include "furlong/fleet/aggregate/internal/machine.h"
#include "furlong/fleet/aggregate/internal/voices.h"

namespace furlong::fleet::internal {

/// What is read before the scan; races that come later with names of their own do not count.
struct StoreContents {
  StoreNames names;
  std::vector<SubjectRow> subjects;
  KnownNames known;
  std::int64_t newest_us = 0;  ///< 0: there is no race
};
Result<StoreContents> read_contents(Store& store);

/// By number, whether a machine is one of those named.
std::vector<bool> named_machines(const StoreNames& names, const std::vector<std::string>& ids);

/// What comparisons over windows are asked with; `invalid` names what is out of range.
Status check_judgement(double window_days, double threshold_pct, double error);

/// Calls `work` for 0 … count - 1, from `threads` threads (0: as many as there are cores), each with a store
/// of its own; `first` is one of them. After an error no more is begun; of several the first by number is
/// returned.
Status for_each_subject(const OpenStore& open, std::unique_ptr<Store> first, std::size_t count,
                        unsigned threads, const std::function<Status(Store&, std::size_t)>& work);

}  // namespace furlong::fleet::internal
