// What aggregation and copies read.
#include <algorithm>
#include <list>
#include <unordered_map>

#include "furlong/base/json.h"
#include "furlong/base/zip.h"
#include "furlong/fleet/store/sql/row.h"
#include "furlong/fleet/store/sql/sql_store.h"

namespace furlong::fleet::sql {
namespace {

constexpr std::string_view all_subjects =
    "SELECT number, silicon, backend, program, class, metric, unit, made_of FROM subject ORDER BY number";
constexpr std::string_view all_words = "SELECT number, text FROM word ORDER BY number";
constexpr std::string_view all_machine_names = "SELECT number, id FROM machine ORDER BY number";
// From one machine to the next, past the races of each.
constexpr std::string_view subject_machines =
    "WITH RECURSIVE each(machine) AS (SELECT min(machine) FROM race WHERE subject=?1 UNION ALL "
    "SELECT (SELECT min(machine) FROM race WHERE subject=?1 AND machine>each.machine) FROM each "
    "WHERE each.machine IS NOT NULL) SELECT machine FROM each WHERE machine IS NOT NULL";
constexpr std::string_view scan_window =
    "SELECT ts_us, id, slot, source, epoch, label, driver, winner, data FROM race "
    "WHERE subject=?1 AND machine=?2 AND ts_us>=?3 AND ts_us<?4 ORDER BY ts_us, id";
constexpr std::string_view read_totals_row = "SELECT races, batches, newest_ts_us, change FROM totals";
constexpr std::string_view count_machines = "SELECT count(*) FROM machine";
constexpr std::string_view count_subjects = "SELECT count(*) FROM subject";
constexpr std::string_view find_id = "SELECT 1 FROM race WHERE id=?1";
constexpr std::string_view next_batches =
    "SELECT number, body_bytes FROM batch WHERE number>?1 ORDER BY number LIMIT 64";
constexpr std::string_view one_batch =
    "SELECT b.number, b.id, m.id, b.signature, b.received_us, b.refused, b.body_bytes, y.body FROM batch b "
    "JOIN machine m ON m.number=b.machine JOIN batch_body y ON y.number=b.number WHERE b.number=?1";
constexpr std::string_view find_race = "SELECT batch, line FROM race WHERE id=?1";

constexpr std::int64_t held_bytes = 16 << 20;  // of batches at a time
constexpr std::size_t page_of_lines = 1000, lines_at_once = 500;

Result<StoredBatch> batch_of(const Row& row) {
  StoredBatch batch{.number = static_cast<std::uint64_t>(row.integer(0)),
                    .id = std::string(row.text(1)),
                    .machine = std::string(row.text(2)),
                    .signature = std::string(row.text(3)),
                    .received_us = row.integer(4)};
  const ByteView refused = row.blob(5);
  for (std::size_t at = 0; at + 4 <= refused.size(); at += 4)
    batch.refused.push_back(load_le<std::uint32_t>(refused.data() + at));
  const auto bytes = static_cast<std::size_t>(row.integer(6));
  auto body = inflate(as_text(row.blob(7)), bytes);
  if (!body || body->size() != bytes)
    return fail(Code::corrupt, "batch {}: its body is damaged: {}", batch.number,
                body ? fmt::format("{} bytes instead of {}", body->size(), bytes) : body.error().text());
  batch.body = *std::move(body);
  return batch;
}

/// Line `number` of the body, from 0; none where there are fewer.
std::string line_of(std::string_view body, std::size_t number) {
  for (; number > 0; --number) {
    const std::size_t end = body.find('\n');
    if (end == std::string_view::npos) return {};
    body.remove_prefix(end + 1);
  }
  return std::string(body.substr(0, body.find('\n')));
}

}  // namespace

Result<std::vector<SubjectRow>> SqlStore::subjects() {
  return reading([&] { return read_subjects(); });
}

Result<std::vector<SubjectRow>> SqlStore::read_subjects() {
  std::vector<SubjectRow> all;
  FURLONG_CHECK(connection_->once(all_subjects, {}, [&](std::size_t, const Row& row) -> Result<bool> {
    SubjectRow subject{.number = static_cast<SubjectNumber>(row.integer(0)),
                       .subject = {.silicon = std::string(row.text(1)),
                                   .backend = std::string(row.text(2)),
                                   .program = std::string(row.text(3)),
                                   .program_class = std::string(row.text(4)),
                                   .metric = std::string(row.text(5)),
                                   .unit = std::string(row.text(6))}};
    const std::string where = fmt::format("{}: subject {}", connection_->name(), subject.number);
    FURLONG_TRY(const Json made_of, json_parse(row.text(7), where));
    FURLONG_TRY(subject.silicon, record::silicon_from_json(made_of, where));
    all.push_back(std::move(subject));
    return true;
  }));
  return all;
}

Result<std::vector<std::string>> SqlStore::read_names(std::string_view statement) {
  std::vector<std::string> names(1);
  FURLONG_CHECK(connection_->once(
      statement, {},
      [&](std::size_t, const Row& row) -> Result<bool> {
        const auto number = static_cast<std::size_t>(row.integer(0));
        if (number < names.size() || number > UINT32_MAX)
          return fail(Code::corrupt, "{}: a name has the number {}", connection_->name(), row.integer(0));
        names.resize(number);
        names.emplace_back(row.text(1));
        return true;
      },
      Connection::Rows::many));
  return names;
}

Result<std::vector<std::string>> SqlStore::words() {
  return reading([&] { return read_names(all_words); });
}

Result<std::vector<std::string>> SqlStore::machine_names() {
  return reading([&] { return read_names(all_machine_names); });
}

Result<std::vector<MachineNumber>> SqlStore::machines_of(SubjectNumber subject) {
  std::vector<MachineNumber> machines;
  FURLONG_CHECK(connection_->once(subject_machines, {std::int64_t{subject}},
                                  [&](std::size_t, const Row& row) -> Result<bool> {
                                    machines.push_back(static_cast<MachineNumber>(row.integer(0)));
                                    return true;
                                  }));
  return machines;
}

Status SqlStore::scan(SubjectNumber subject, Window window,
                      const std::function<bool(const RaceRow&)>& visit) {
  return reading([&] { return scan_machines(subject, window, visit); });
}

Status SqlStore::scan_machines(SubjectNumber subject, Window window,
                               const std::function<bool(const RaceRow&)>& visit) {
  FURLONG_TRY(const std::vector<MachineNumber> machines, machines_of(subject));
  std::vector<Value> values;
  for (const MachineNumber machine : machines)
    values.insert(values.end(), {Value(std::int64_t{subject}), Value(std::int64_t{machine}),
                                 Value(window.from_us), Value(window.to_us)});
  RaceRow race;
  std::vector<PackedGain> gains;
  const auto take = [&](std::size_t index, const Row& row) -> Result<bool> {
    race.machine = machines[index];
    race.ts_us = row.integer(0);
    const ByteView id = row.blob(1);
    if (id.size() != race.id.size()) return fail(Code::corrupt, "an id of {} bytes", id.size());
    std::ranges::copy(id, race.id.begin());
    race.slot = static_cast<WordNumber>(row.integer(2));
    race.source = static_cast<WordNumber>(row.integer(3));
    FURLONG_CHECK(unpack_epoch(row.blob(4), race));
    race.label = static_cast<WordNumber>(row.integer(5));
    race.driver = static_cast<WordNumber>(row.integer(6));
    race.winner = static_cast<WordNumber>(row.integer(7));
    if (Status unpacked = unpack_row(as_text(row.blob(8)), race, gains); !unpacked)
      return fail(Code::corrupt, "race {}: {}", record_id_text(race.id), unpacked.error().text());
    return visit(race);
  };
  FURLONG_CHECK_DOING(connection_->run(scan_window, values, 4, take, Connection::Rows::many), "{}",
                      connection_->name());
  return {};
}

Result<StoreTotals> SqlStore::totals() {
  return reading([&] { return read_totals(); });
}

Result<StoreTotals> SqlStore::read_totals() {
  StoreTotals totals;
  FURLONG_CHECK(connection_->once(read_totals_row, {}, [&](std::size_t, const Row& row) -> Result<bool> {
    totals.races = static_cast<std::uint64_t>(row.integer(0));
    totals.batches = static_cast<std::uint64_t>(row.integer(1));
    totals.newest_ts_us = totals.races > 0 ? row.integer(2) : 0;
    totals.change = static_cast<std::uint64_t>(row.integer(3));
    return true;
  }));
  for (const auto& [statement, number] :
       {std::pair(count_machines, &totals.machines), std::pair(count_subjects, &totals.subjects)})
    FURLONG_CHECK(connection_->once(statement, {}, [&](std::size_t, const Row& row) -> Result<bool> {
      *number = static_cast<std::uint64_t>(row.integer(0));
      return true;
    }));
  FURLONG_TRY(totals.bytes, connection_->bytes());
  totals.version = connection_->version();
  return totals;
}

Result<std::optional<std::int64_t>> SqlStore::newest_ts() {
  return reading([&]() -> Result<std::optional<std::int64_t>> {
    std::optional<std::int64_t> newest;
    FURLONG_CHECK(connection_->once(read_totals_row, {}, [&](std::size_t, const Row& row) -> Result<bool> {
      if (row.integer(0) > 0) newest = row.integer(2);
      return true;
    }));
    return newest;
  });
}

Result<std::vector<bool>> SqlStore::have(std::span<const RecordId> ids) {
  return reading([&]() -> Result<std::vector<bool>> {
    std::vector<bool> there(ids.size());
    std::vector<Value> values;
    for (const RecordId& id : ids) values.emplace_back(ByteView(id));
    FURLONG_CHECK(connection_->run(find_id, values, 1, [&](std::size_t i, const Row&) -> Result<bool> {
      there[i] = true;
      return true;
    }));
    return there;
  });
}

Status SqlStore::batches(std::uint64_t after, const std::function<Result<bool>(const StoredBatch&)>& visit) {
  // In pieces: the visitor may take its time, and nobody waits for it meanwhile.
  for (;;) {
    FURLONG_TRY(const std::vector<StoredBatch> some, reading([&] { return read_batches(after); }));
    if (some.empty()) return {};
    for (const StoredBatch& batch : some) {
      FURLONG_TRY(const bool more, visit(batch));
      if (!more) return {};
      after = batch.number;
    }
  }
}

Result<std::vector<StoredBatch>> SqlStore::read_batches(std::uint64_t after) {
  std::vector<Value> numbers;
  std::int64_t bytes = 0;
  FURLONG_CHECK(connection_->once(next_batches, {static_cast<std::int64_t>(after)},
                                  [&](std::size_t, const Row& row) -> Result<bool> {
                                    bytes += row.integer(1);
                                    if (!numbers.empty() && bytes > held_bytes) return false;
                                    numbers.emplace_back(row.integer(0));
                                    return true;
                                  }));
  std::vector<StoredBatch> some;
  FURLONG_CHECK_DOING(connection_->run(one_batch, numbers, 1,
                                       [&](std::size_t, const Row& row) -> Result<bool> {
                                         FURLONG_TRY(StoredBatch batch, batch_of(row));
                                         some.push_back(std::move(batch));
                                         return true;
                                       }),
                      "{}", connection_->name());
  if (some.size() != numbers.size())
    return fail(Code::corrupt, "{}: after batch {}: {} of {} batches have their bytes", connection_->name(),
                after, some.size(), numbers.size());
  return some;
}

Result<std::optional<Store::RaceText>> SqlStore::race(std::string_view id) {
  FURLONG_TRY(const RecordId wanted, parse_record_id(id));
  return reading([&] { return read_race(wanted); });
}

Result<std::optional<Store::RaceText>> SqlStore::read_race(const RecordId& id) {
  std::optional<std::int64_t> number;
  std::size_t line = 0;
  FURLONG_CHECK(
      connection_->once(find_race, {ByteView(id)}, [&](std::size_t, const Row& row) -> Result<bool> {
        number = row.integer(0);
        line = static_cast<std::size_t>(row.integer(1));
        return true;
      }));
  if (!number) return std::nullopt;
  std::optional<RaceText> text;
  FURLONG_CHECK_DOING(connection_->once(one_batch, {*number},
                                        [&](std::size_t, const Row& row) -> Result<bool> {
                                          FURLONG_TRY(StoredBatch batch, batch_of(row));
                                          text.emplace();
                                          text->line = line_of(batch.body, line + 1);  // 0: its header
                                          text->batch = std::move(batch);
                                          return true;
                                        }),
                      "{}", connection_->name());
  if (!text)
    return fail(Code::corrupt, "{}: race {}: batch {} is not there", connection_->name(), record_id_text(id),
                *number);
  return text;
}

/// The bodies that were read last: races that follow each other are often of few batches, and each is
/// inflated once.
class BatchBodies {
 public:
  struct Body {
    std::string text;
    std::vector<std::size_t> begins;  ///< of its lines
    std::string_view line(std::size_t number) const {
      if (number >= begins.size()) return {};
      const std::string_view rest = std::string_view(text).substr(begins[number]);
      return rest.substr(0, rest.find('\n'));
    }
  };

  const Body* find(std::int64_t number) {
    const auto at = place_.find(number);
    if (at == place_.end()) return nullptr;
    bodies_.splice(bodies_.begin(), bodies_, at->second);
    return &bodies_.front().second;
  }
  const Body& put(std::int64_t number, std::string text) {
    Body body{.text = std::move(text), .begins = {0}};
    for (std::size_t end = body.text.find('\n'); end != std::string::npos;
         end = body.text.find('\n', end + 1))
      body.begins.push_back(end + 1);
    bytes_ += size_of(body);
    bodies_.emplace_front(number, std::move(body));
    place_[number] = bodies_.begin();
    while (bytes_ > most_bytes && bodies_.size() > 1) {
      bytes_ -= size_of(bodies_.back().second);
      place_.erase(bodies_.back().first);
      bodies_.pop_back();
    }
    return bodies_.front().second;
  }

 private:
  static constexpr std::size_t most_bytes = 64u << 20;
  static std::size_t size_of(const Body& body) { return body.text.size() + body.begins.size() * 8; }
  std::list<std::pair<std::int64_t, Body>> bodies_;  // the last used first
  std::unordered_map<std::int64_t, std::list<std::pair<std::int64_t, Body>>::iterator> place_;
  std::size_t bytes_ = 0;
};

Result<std::vector<std::string>> SqlStore::read_lines(std::span<const RecordId> ids, BatchBodies& bodies) {
  struct Place {
    std::int64_t batch = 0;  ///< 0: the race is not there
    std::size_t line = 0;
  };
  std::vector<Place> places(ids.size());
  std::vector<Value> values;
  for (const RecordId& id : ids) values.emplace_back(ByteView(id));
  FURLONG_CHECK(
      connection_->run(find_race, values, 1, [&](std::size_t index, const Row& row) -> Result<bool> {
        places[index] = {.batch = row.integer(0), .line = static_cast<std::size_t>(row.integer(1))};
        return true;
      }));
  std::vector<std::string> lines(ids.size());
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (places[i].batch == 0) continue;
    const BatchBodies::Body* body = bodies.find(places[i].batch);
    if (body == nullptr)
      FURLONG_CHECK_DOING(connection_->once(one_batch, {places[i].batch},
                                            [&](std::size_t, const Row& row) -> Result<bool> {
                                              FURLONG_TRY(StoredBatch batch, batch_of(row));
                                              body = &bodies.put(places[i].batch, std::move(batch.body));
                                              return true;
                                            }),
                          "{}", connection_->name());
    if (body != nullptr) lines[i] = body->line(places[i].line + 1);  // 0: its header
  }
  return lines;
}

Status SqlStore::visit_lines(std::span<const RecordId> ids, BatchBodies& bodies,
                             const std::function<Result<bool>(std::string_view line)>& visit) {
  while (!ids.empty()) {
    const auto some = ids.first(std::min(ids.size(), lines_at_once));
    ids = ids.subspan(some.size());
    FURLONG_TRY(const auto lines, reading([&] { return read_lines(some, bodies); }));
    for (const std::string& line : lines) {
      if (line.empty()) continue;
      FURLONG_TRY(const bool more, visit(line));
      if (!more) return {};
    }
  }
  return {};
}

Status SqlStore::lines_of(std::span<const RecordId> ids,
                          const std::function<Result<bool>(std::string_view line)>& visit) {
  BatchBodies bodies;
  return visit_lines(ids, bodies, visit);
}

Status SqlStore::lines(const RaceFilter& filter, const std::function<bool(std::string_view line)>& visit) {
  BatchBodies bodies;
  RaceFilter page = filter;
  bool more = true;
  for (std::size_t left = filter.limit; left > 0 && more;) {
    page.limit = std::min(left, page_of_lines);
    FURLONG_TRY(const auto summaries, races(page));
    std::vector<RecordId> ids;
    for (const RaceSummary& summary : summaries) {
      FURLONG_TRY(const RecordId id, parse_record_id(summary.id));
      ids.push_back(id);
    }
    FURLONG_CHECK(
        visit_lines(ids, bodies, [&](std::string_view line) -> Result<bool> { return more = visit(line); }));
    if (summaries.size() < page.limit) return {};
    left -= summaries.size();
    page.before = summaries.back().id;
  }
  return {};
}

}  // namespace furlong::fleet::sql
