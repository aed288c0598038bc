#include <algorithm>
#include <map>

#include "furlong/fleet/exchange/importer.h"

namespace furlong::fleet {
namespace {

constexpr std::int64_t day_us = 86'400'000'000;
constexpr std::uint64_t most_in_hand = 2'000'000;

struct Key {
  std::int64_t ts_us;
  RecordId id;
  auto operator<=>(const Key&) const = default;
};

std::int64_t floor_day(std::int64_t us) { return us - ((us % day_us) + day_us) % day_us; }

/// What a scan shows of the store, reduced to what the filter lets through.
class Selection {
 public:
  Selection(Store& store, const ExportFilter& filter) : store_(store), filter_(filter) {}

  Status open() {
    FURLONG_TRY(words_, store_.words());
    FURLONG_TRY(machines_, store_.machine_names());
    FURLONG_TRY(subjects_, store_.subjects());
    return {};
  }

  Status scan(Window window, const std::function<void(const RaceRow&)>& visit) {
    for (const SubjectRow& subject : subjects_) {
      if (!filter_.program.empty() && subject.subject.program != filter_.program) continue;
      const bool silicon = subject.subject.silicon == filter_.card;
      FURLONG_CHECK(store_.scan(subject.number, window, [&](const RaceRow& row) {
        if (!filter_.card.empty() && !silicon && words_[row.label] != filter_.card) return true;
        if (!filter_.machine.empty() && !is_machine(machines_[row.machine])) return true;
        visit(row);
        return true;
      }));
    }
    return {};
  }

 private:
  bool is_machine(const std::string& name) const {
    return name == filter_.machine || name == "import:" + filter_.machine;
  }
  Store& store_;
  const ExportFilter& filter_;
  std::vector<std::string> words_, machines_;
  std::vector<SubjectRow> subjects_;
};

/// Days that follow each other, together no more than what may be in hand; a day alone may have more.
std::vector<Window> slices(const std::map<std::int64_t, std::uint64_t>& days, const Window& window) {
  std::vector<Window> all;
  std::uint64_t in_hand = 0;
  for (const auto& [day, count] : days) {
    if (all.empty() || in_hand + count > most_in_hand) {
      all.push_back({.from_us = std::max(day, window.from_us), .to_us = 0});
      in_hand = 0;
    }
    all.back().to_us = std::min(day + day_us, window.to_us);
    in_hand += count;
  }
  return all;
}

}  // namespace

Result<std::uint64_t> export_records(Store& store, const ExportFilter& filter,
                                     const std::function<Result<bool>(std::string_view)>& visit) {
  Selection selection(store, filter);
  FURLONG_CHECK(selection.open());
  std::map<std::int64_t, std::uint64_t> days;
  FURLONG_CHECK(selection.scan(filter.window, [&](const RaceRow& row) { ++days[floor_day(row.ts_us)]; }));
  std::uint64_t visited = 0;
  bool more = true;
  for (const Window& slice : slices(days, filter.window)) {
    std::vector<Key> keys;
    FURLONG_CHECK(selection.scan(slice, [&](const RaceRow& row) { keys.push_back({row.ts_us, row.id}); }));
    std::ranges::sort(keys);
    std::vector<RecordId> ids;
    ids.reserve(keys.size());
    for (const Key& key : keys) ids.push_back(key.id);
    FURLONG_CHECK(store.lines_of(ids, [&](std::string_view line) -> Result<bool> {
      FURLONG_TRY(more, visit(line));
      ++visited;
      return more;
    }));
    if (!more) break;
  }
  return visited;
}

}  // namespace furlong::fleet
