#pragma once
// One suite that every kind of store passes: each sentence of store.h is a case. A kind joins by one line in
// its own test file (gtest.h):
//   FURLONG_STORE_CONFORMANCE(sqlite, make_place());
// Permanent exclusions carry a reason.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "furlong/fleet/store/store.h"

namespace furlong::fleet {

/// Opens one and the same store, as often as it is called. It need not be there before the first call.
using OpenPlace = std::function<Result<std::unique_ptr<Store>>(const StoreKind::Options&)>;
/// A new place, where nothing is. `unavailable`: this machine has none (no server), with the reason.
using MakePlace = std::function<Result<OpenPlace>()>;

struct StoreCase {
  std::string name;
  std::function<Status(const MakePlace&)> run;  ///< any error: failed
};

std::vector<StoreCase> store_conformance_cases();

/// All that a store says of its races, machines, tokens and batches, a line each, by names instead of
/// numbers: equal for stores that hold the same, whatever their kinds. `corrupt` when two of its answers
/// contradict each other.
Result<std::vector<std::string>> store_content(Store& store);
/// Empty when they are equal; else the first lines that only one of them has.
std::string content_difference(const std::vector<std::string>& a, const std::vector<std::string>& b);

}  // namespace furlong::fleet
