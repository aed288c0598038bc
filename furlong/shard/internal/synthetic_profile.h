#pragma once
// For tests and benches: profiles that nobody recorded, of any size, the same for the same seed.

#include <algorithm>
#include <cmath>

#include "furlong/base/random.h"
#include "furlong/shard/model.h"
#include "furlong/shard/profile.h"

namespace furlong::shard::synthetic {

/// Every twentieth unit is a library: it owns a large item and refers to a few libraries before it. The
/// others own a small item and refer to libraries, of which few are used by many (Zipf), mostly those of
/// their own subject; subjects come in runs of 256 units and come again later. Of what a unit refers to it
/// touches about 60%. Rows follow a power law; W is n log n of them.
inline Profile make_profile(UnitIndex units, std::uint64_t seed) {
  constexpr UnitIndex kLibraryEvery = 20, kRun = 256, kSubjects = 64;
  Random random(seed, "synthetic profile");
  Profile p;
  p.store = blake2b_256(fmt::format("synthetic profile {} {}", units, seed));
  p.executor = "synthetic";
  p.executor_version = 1;
  p.features = {"distinct_work", "rows"};
  p.counters.resize(2);
  p.references.emplace();
  p.touched.emplace();
  std::vector<std::vector<UnitIndex>> subjects(kSubjects);
  std::vector<UnitIndex> libraries;
  // The first of the list most often: its logarithm is uniform, so the r-th comes with probability ~ 1 / r.
  const auto zipf = [&](const std::vector<UnitIndex>& list) {
    const double place = std::exp(random.uniform() * std::log(static_cast<double>(list.size()) + 1)) - 1;
    return list[std::min(list.size() - 1, static_cast<std::size_t>(place))];
  };
  std::vector<std::uint32_t> refers, touches;
  for (UnitIndex unit = 0; unit < units; ++unit) {
    std::uint64_t state = seed ^ (std::uint64_t{unit} << 20);
    Key key;
    for (std::size_t word = 0; word < 4; ++word) store_le(key.bytes.data() + 8 * word, splitmix64(state));
    p.keys.push_back(key);
    p.names.push_back(fmt::format("u{}", unit));
    p.states.push_back(UnitState::measured);
    const bool library = unit % kLibraryEvery == 0;
    state = seed + unit / kRun;
    const std::size_t subject = splitmix64(state) % kSubjects;
    // One item a unit: items have their unit's number.
    p.item_bytes.push_back(library ? 2048 + random.below(64 << 10) : 512 + random.below(8192));
    p.first_item.push_back(unit + 1);
    refers.clear();
    if (!libraries.empty()) {
      const std::uint64_t count = library ? random.below(3) : 2 + random.below(9);
      for (std::uint64_t i = 0; i < count; ++i) {
        const auto& local = subjects[subject];
        refers.push_back(!local.empty() && random.uniform() < 0.9 ? zipf(local) : zipf(libraries));
      }
    }
    std::sort(refers.begin(), refers.end());
    refers.erase(std::unique(refers.begin(), refers.end()), refers.end());
    p.references->add(refers);
    touches.clear();
    for (const std::uint32_t item : refers)
      if (random.uniform() < 0.6) touches.push_back(item);
    touches.push_back(unit);  // the highest: references are to earlier units
    p.touched->add(touches);
    const double rows = std::floor(20 / std::pow(1 - random.uniform(), 1 / 1.5));
    p.counters[0].push_back(std::ceil(0.4 * rows));
    p.counters[1].push_back(rows);
    p.work.push_back(8 * nlogn(rows));
    p.record_bytes.push_back(static_cast<std::uint64_t>(32 * rows));
    if (library) {
      subjects[subject].push_back(unit);
      libraries.push_back(unit);
    }
  }
  return p;
}

}  // namespace furlong::shard::synthetic
