#include <algorithm>
#include <map>
#include <unordered_map>

#include "furlong/base/json.h"
#include "furlong/base/text.h"
#include "furlong/fleet/exchange/importer.h"
#include "furlong/fleet/record_batch.h"

namespace furlong::fleet {
namespace {

constexpr std::int64_t day_us = 86'400'000'000;
constexpr std::uint64_t most_in_hand = 2'000'000;
constexpr std::size_t most_cached_bytes = 64u << 20;

struct Key {
  std::int64_t ts_us;
  RecordId id;
  auto operator<=>(const Key&) const = default;
};

struct IdHash {
  std::size_t operator()(const RecordId& id) const {
    return static_cast<std::size_t>(load_le<std::uint64_t>(id.data() + 8));
  }
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

/// Lines of batches that were looked at lately: races that lie near in time lie in few of them.
class Lines {
 public:
  explicit Lines(Store& store) : store_(store) {}

  /// nullopt: the race is gone since the scan.
  Result<std::optional<std::string>> find(const RecordId& id) {
    if (const auto known = line_of_.find(id); known != line_of_.end()) {
      std::string line = known->second;
      forget(known);
      return line;
    }
    FURLONG_TRY(auto race, store_.race(record_id_text(id)));
    if (!race) return std::nullopt;
    FURLONG_CHECK(cache(race->batch));
    if (const auto own = line_of_.find(id); own != line_of_.end()) forget(own);
    return std::move(race->line);
  }

 private:
  using Place = std::unordered_map<RecordId, std::string, IdHash>::iterator;

  void forget(Place place) {
    bytes_ -= place->second.size();
    line_of_.erase(place);
  }

  /// The id at the beginning of a line, where to_line() puts it.
  static Result<RecordId> id_of(std::string_view line) {
    constexpr std::string_view begin = R"({"schema":1,"id":")";
    if (line.starts_with(begin)) return parse_record_id(line.substr(begin.size(), 36));
    FURLONG_TRY(const Json object, json_parse(line, "a stored record"));
    FURLONG_TRY(const std::string text, json_string(object, "id", "a stored record"));
    return parse_record_id(text);
  }

  Status cache(const StoredBatch& batch) {
    if (bytes_ > most_cached_bytes) {
      line_of_.clear();
      bytes_ = 0;
    }
    std::size_t at = batch.body.find('\n');  // the batch's own head
    while (at != std::string::npos && ++at < batch.body.size()) {
      const std::size_t end = batch.body.find('\n', at);
      const std::string_view line =
          std::string_view(batch.body).substr(at, end == std::string::npos ? end : end - at);
      at = end;
      const auto id = id_of(line);
      if (!id) continue;  // it was refused
      if (line_of_.try_emplace(*id, line).second) bytes_ += line.size();
    }
    return {};
  }

  Store& store_;
  std::unordered_map<RecordId, std::string, IdHash> line_of_;
  std::size_t bytes_ = 0;
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
  Lines lines(store);
  std::uint64_t visited = 0;
  for (const Window& slice : slices(days, filter.window)) {
    std::vector<Key> keys;
    FURLONG_CHECK(selection.scan(slice, [&](const RaceRow& row) { keys.push_back({row.ts_us, row.id}); }));
    std::ranges::sort(keys);
    for (const Key& key : keys) {
      FURLONG_TRY(const auto line, lines.find(key.id));
      if (!line) continue;
      FURLONG_TRY(const bool more, visit(*line));
      ++visited;
      if (!more) return visited;
    }
  }
  return visited;
}

}  // namespace furlong::fleet
