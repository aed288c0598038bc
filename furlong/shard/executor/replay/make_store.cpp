#include <algorithm>
#include <numeric>

#include "furlong/shard/executor/replay/internal/items.h"
#include "furlong/shard/executor/replay/replay.h"
#include "furlong/shard/profile.h"

namespace furlong::shard::replay {
namespace {

CostItem cost_item(const Profile& profile, UnitIndex unit) {
  CostItem item;
  item.unit = unit;
  if (profile.states[unit] == UnitState::unknown) {
    item.failed.emplace(Code::mismatch, "nobody measured it: the profile does not know what it costs");
    return item;
  }
  if (profile.states[unit] == UnitState::failed) {
    const auto failed =
        std::lower_bound(profile.failed.begin(), profile.failed.end(), unit,
                         [](const FailedUnit& one, UnitIndex wanted) { return one.unit < wanted; });
    item.failed.emplace(failed->code, failed->why);
    return item;
  }
  item.cost.work = profile.work[unit];
  item.cost.record_bytes = profile.record_bytes[unit];
  if (profile.seconds) item.cost.seconds = (*profile.seconds)[unit];
  for (std::size_t f = 0; f < profile.features.size(); ++f)
    item.cost.features[profile.features[f]] = profile.counters[f][unit];
  return item;
}

// What a unit refers to; where only touched items were recorded, those that it touched of others.
std::vector<std::uint32_t> references(const Profile& profile, UnitIndex unit) {
  std::vector<std::uint32_t> list;
  if (profile.references) {
    const auto recorded = profile.references->of(unit);
    list.assign(recorded.begin(), recorded.end());
  } else if (profile.touched) {
    for (const std::uint32_t item : profile.touched->of(unit))
      if (item < profile.first_item[unit] || item >= profile.first_item[unit + 1]) list.push_back(item);
  }
  return list;
}

class Maker {
 public:
  Maker(const Profile& profile, StoreWriter& writer, const StoreRequest& request, std::uint64_t scale)
      : profile_(profile), writer_(writer), request_(request), scale_(scale) {}

  Status run() {
    ProgressState state{.step = "store", .total = 2 * std::uint64_t{profile_.units()}};
    // All keys first: references may be to items of later units.
    for (UnitIndex unit = 0; unit < profile_.units(); ++unit) {
      FURLONG_CHECK(tell(state, unit));
      FURLONG_CHECK(add_items(unit));
    }
    for (UnitIndex unit = 0; unit < profile_.units(); ++unit) {
      FURLONG_CHECK(tell(state, profile_.units() + std::uint64_t{unit}));
      FURLONG_CHECK(add_unit(unit));
    }
    state.done = state.total;
    if (request_.progress) request_.progress(state);
    return {};
  }
  std::uint64_t item_bytes() const { return item_bytes_; }

 private:
  Status tell(ProgressState& state, std::uint64_t done) const {
    constexpr std::uint64_t kEvery = 4096;
    if (request_.stop.stop_requested()) return fail(Code::timeout, "stopped while the store was made");
    if (done % kEvery != 0 || !request_.progress) return {};
    state.done = done;
    request_.progress(state);
    return {};
  }

  Status add_items(UnitIndex unit) {
    const std::uint32_t first = profile_.first_item[unit];
    for (std::uint32_t item = first; item < profile_.first_item[unit + 1]; ++item) {
      const std::string bytes = print_data_item(unit, item - first, profile_.item_bytes[item] / scale_);
      FURLONG_TRY(const Key key, writer_.add_item(as_bytes(bytes)));
      keys_.push_back(key);
      item_bytes_ += bytes.size();
    }
    return {};
  }

  Status add_unit(UnitIndex unit) {
    const std::uint32_t first = profile_.first_item[unit], end = profile_.first_item[unit + 1];
    std::vector<std::uint32_t> referred = references(profile_, unit);
    std::sort(referred.begin(), referred.end(),
              [&](std::uint32_t a, std::uint32_t b) { return keys_[a] < keys_[b]; });  // as a unit has them
    CostItem item = cost_item(profile_, unit);
    if (profile_.touched && !item.failed) {
      const auto touched = profile_.touched->of(unit);
      const auto consulted = [&](std::uint32_t which) {
        return std::binary_search(touched.begin(), touched.end(), which);
      };
      item.touched.emplace();
      for (std::uint32_t own = first; own < end; ++own) item.touched->push_back(consulted(own));
      for (const std::uint32_t other : referred) item.touched->push_back(consulted(other));
    }
    const std::string bytes = print_cost_item(item);
    item_bytes_ += bytes.size();
    FURLONG_TRY(const Key cost_key, writer_.add_item(as_bytes(bytes)));
    std::vector<Key> items{cost_key}, refers;
    items.insert(items.end(), keys_.begin() + first, keys_.begin() + end);
    for (const std::uint32_t other : referred) refers.push_back(keys_[other]);
    FURLONG_CHECK(writer_.add_unit(profile_.names[unit], std::move(items), std::move(refers)));
    return {};
  }

  const Profile& profile_;
  StoreWriter& writer_;
  const StoreRequest& request_;
  const std::uint64_t scale_;
  std::vector<Key> keys_;  // of the profile's items
  std::uint64_t item_bytes_ = 0;
};

}  // namespace

Result<StoreReport> make_replay_store(const StoreRequest& request, std::uint64_t most_item_bytes) {
  FURLONG_TRY(const Profile profile, read_profile(system_files(), request.input));
  double total = 0;
  for (const std::uint64_t bytes : profile.item_bytes) total += static_cast<double>(bytes);
  const auto scale = static_cast<std::uint64_t>(total / static_cast<double>(most_item_bytes)) + 1;
  FURLONG_TRY(StoreWriter writer, StoreWriter::create(request.out, std::string(kExecutorName),
                                                      kExecutorVersion, print_settings(scale)));
  Maker maker(profile, writer, request, scale);
  FURLONG_CHECK(maker.run());
  FURLONG_CHECK(writer.finish());
  StoreReport report;
  report.units = profile.units();
  report.items = std::uint64_t{profile.items()} + profile.units();
  report.item_bytes = maker.item_bytes();
  const auto unmeasured = std::count(profile.states.begin(), profile.states.end(), UnitState::unknown);
  report.notes = {{"recorded from", fmt::format("{} {}", profile.executor, profile.executor_version)},
                  {"recorded", profile.isolated ? "each unit by itself" : "one after another"},
                  {"item sizes divided by", std::to_string(scale)},
                  {"units not measured", std::to_string(unmeasured)}};
  return report;
}

}  // namespace furlong::shard::replay
