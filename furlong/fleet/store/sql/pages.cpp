// Pages of races.
#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <utility>

#include "furlong/fleet/store/sql/row.h"
#include "furlong/fleet/store/sql/sql_store.h"

namespace furlong::fleet::sql {
namespace {

constexpr std::size_t most_on_page = 1000, most_shown = 4 * most_on_page;
constexpr std::size_t most_at_once = 20'000;  // ids that are looked at with one statement
constexpr std::size_t sparse = 64;            // a machine with fewer than one race of so many
constexpr std::int64_t most_subjects = 200;   // of a machine whose races are sought by time

// All that a filter asks for is in the index: rows are read only for the page itself.
constexpr std::string_view walk_ids =
    "SELECT id, subject, machine, ts_us, label, driver, winner FROM race WHERE id<?1 ORDER BY id DESC LIMIT "
    "?2";
// A machine's races of one subject lie in order of time.
constexpr std::string_view walk_times =
    "SELECT id, subject, machine, ts_us, label, driver, winner FROM race WHERE subject=?1 AND machine=?2 AND "
    "ts_us>=?3 AND ts_us<?4 LIMIT ?5";
// From one subject of a machine to the next, past the races of each.
constexpr std::string_view machine_subjects =
    "WITH RECURSIVE each(subject) AS (SELECT min(subject) FROM race WHERE machine=?1 UNION ALL "
    "SELECT (SELECT min(subject) FROM race WHERE machine=?1 AND subject>each.subject) FROM each "
    "WHERE each.subject IS NOT NULL) SELECT subject FROM each WHERE subject IS NOT NULL LIMIT ?2";
constexpr std::string_view read_row =
    "SELECT slot, source, epoch, batch, data FROM race WHERE subject=?1 AND machine=?2 AND ts_us=?3 AND "
    "id=?4";
constexpr std::string_view read_newest = "SELECT newest_ts_us FROM totals WHERE races>0";
constexpr std::string_view find_subjects =
    "SELECT number FROM subject WHERE (?1='' OR silicon=?1) AND (?2='' OR backend=?2) AND (?3='' OR "
    "program=?3)";
constexpr std::string_view read_subject =
    "SELECT silicon, backend, program, class, metric, unit FROM subject WHERE number=?1";
constexpr std::string_view find_machine = "SELECT number FROM machine WHERE id=?1";
constexpr std::string_view name_machine = "SELECT id FROM machine WHERE number=?1";
constexpr std::string_view name_word = "SELECT text FROM word WHERE number=?1";
constexpr std::string_view find_received = "SELECT received_us FROM batch WHERE number=?1";

/// A race that may be on the page.
struct Found {
  RaceRow row;
  SubjectNumber subject = 0;
  std::int64_t batch = 0;
};

/// RaceFilter in the store's numbers; 0: any.
struct Wanted {
  std::set<SubjectNumber> subjects;  ///< empty: any
  MachineNumber machine = 0;
  WordNumber label = 0, driver = 0, variant = 0;
  Window window;
};

}  // namespace

/// Reads one page, within a transaction.
class PageReader {
 public:
  PageReader(Connection& connection, Names& names, std::map<SubjectNumber, Subject>& subjects)
      : connection_(connection), names_(names), subjects_(subjects) {}

  Result<RacePage> read(const RaceFilter& filter, const std::optional<RecordId>& before);

 private:
  /// false: nothing can fit.
  Result<bool> translate(const RaceFilter& filter);
  Result<bool> is_after_all(std::int64_t ts_us);
  /// Appends what fits of the next `count` ids below `below`, which it moves; false: there are no more.
  Result<bool> walk(std::string& below, std::size_t count, std::vector<Found>& found);
  /// All that fits below `below`, by the times of the one machine that is wanted, the newest first; nullopt:
  /// more than `most` would have to be looked at.
  Result<std::optional<std::vector<Found>>> seek(std::string_view below, std::size_t most);
  /// Appends the race of a row of walk_ids if it fits.
  Status take(const Row& row, std::vector<Found>& found) const;
  Status read_rows(std::span<Found> found);
  Status read_subjects(std::span<const Found> found);
  Result<std::vector<RaceSummary>> name_all(std::span<const Found> found);
  Status name_numbers(std::string_view statement, std::map<std::uint32_t, std::string>& names);

  Connection& connection_;
  Names& names_;
  std::map<SubjectNumber, Subject>& subjects_;
  Wanted wanted_;
};

Result<bool> PageReader::translate(const RaceFilter& filter) {
  wanted_.window = filter.window;
  if (!filter.machine.empty()) {
    FURLONG_CHECK(connection_.once(find_machine, {std::string_view(filter.machine)},
                                   [&](std::size_t, const Row& row) -> Result<bool> {
                                     wanted_.machine = static_cast<MachineNumber>(row.integer(0));
                                     return true;
                                   }));
    if (wanted_.machine == 0) return false;
  }
  for (const auto& [text, number] :
       {std::pair(&filter.label, &wanted_.label), std::pair(&filter.driver, &wanted_.driver),
        std::pair(&filter.variant, &wanted_.variant)}) {
    if (text->empty()) continue;
    FURLONG_TRY(const std::optional<WordNumber> known, names_.find(*text));
    if (!known) return false;
    *number = *known;
  }
  if (filter.silicon.empty() && filter.program.empty() && filter.backend.empty()) return true;
  FURLONG_CHECK(connection_.once(
      find_subjects,
      {std::string_view(filter.silicon), std::string_view(filter.backend), std::string_view(filter.program)},
      [&](std::size_t, const Row& row) -> Result<bool> {
        wanted_.subjects.insert(static_cast<SubjectNumber>(row.integer(0)));
        return true;
      }));
  return !wanted_.subjects.empty();
}

Result<bool> PageReader::is_after_all(std::int64_t ts_us) {
  bool after = true;
  FURLONG_CHECK(connection_.once(read_newest, {}, [&](std::size_t, const Row& row) -> Result<bool> {
    after = ts_us > row.integer(0);
    return true;
  }));
  return after;
}

Status PageReader::take(const Row& row, std::vector<Found>& found) const {
  const auto is = [](std::uint32_t wanted, std::uint32_t number) { return wanted == 0 || wanted == number; };
  const ByteView id = row.blob(0);
  const auto subject = static_cast<SubjectNumber>(row.integer(1));
  const auto machine = static_cast<MachineNumber>(row.integer(2));
  const std::int64_t ts_us = row.integer(3);
  if (!is(wanted_.machine, machine) || ts_us < wanted_.window.from_us || ts_us >= wanted_.window.to_us ||
      (!wanted_.subjects.empty() && !wanted_.subjects.contains(subject)))
    return {};
  Found one{.subject = subject};
  one.row.machine = machine;
  one.row.ts_us = ts_us;
  one.row.label = static_cast<WordNumber>(row.integer(4));
  one.row.driver = static_cast<WordNumber>(row.integer(5));
  one.row.winner = static_cast<WordNumber>(row.integer(6));
  if (!is(wanted_.label, one.row.label) || !is(wanted_.driver, one.row.driver) ||
      !is(wanted_.variant, one.row.winner))
    return {};
  if (id.size() != one.row.id.size()) return fail(Code::corrupt, "an id of {} bytes", id.size());
  std::ranges::copy(id, one.row.id.begin());
  found.push_back(one);
  return {};
}

Result<bool> PageReader::walk(std::string& below, std::size_t count, std::vector<Found>& found) {
  std::size_t walked = 0;
  std::string last;
  const auto visit = [&](std::size_t, const Row& row) -> Result<bool> {
    ++walked;
    last = as_text(row.blob(0));
    FURLONG_CHECK(take(row, found));
    return true;
  };
  FURLONG_CHECK(connection_.once(walk_ids, {as_bytes(below), static_cast<std::int64_t>(count)}, visit));
  if (walked > 0) below = last;
  return walked == count;
}

Result<std::optional<std::vector<Found>>> PageReader::seek(std::string_view below, std::size_t most) {
  const std::int64_t machine = wanted_.machine;
  std::vector<std::int64_t> subjects;
  FURLONG_CHECK(connection_.once(machine_subjects, {machine, most_subjects + 1},
                                 [&](std::size_t, const Row& row) -> Result<bool> {
                                   subjects.push_back(row.integer(0));
                                   return true;
                                 }));
  if (std::cmp_greater(subjects.size(), most_subjects)) return std::nullopt;
  std::vector<Found> found;
  std::size_t looked = 0;
  const auto visit = [&](std::size_t, const Row& row) -> Result<bool> {
    ++looked;
    if (as_text(row.blob(0)) < below) FURLONG_CHECK(take(row, found));
    return true;
  };
  for (const std::int64_t subject : subjects) {
    const auto left = static_cast<std::int64_t>(most - looked);
    FURLONG_CHECK(connection_.once(
        walk_times, {subject, machine, wanted_.window.from_us, wanted_.window.to_us, left + 1}, visit));
    if (looked > most) return std::nullopt;
  }
  std::ranges::sort(found, std::greater(), [](const Found& one) { return one.row.id; });
  return found;
}

Status PageReader::read_rows(std::span<Found> found) {
  std::vector<Value> keys;
  for (const Found& one : found)
    keys.insert(keys.end(), {Value(std::int64_t{one.subject}), Value(std::int64_t{one.row.machine}),
                             Value(one.row.ts_us), Value(ByteView(one.row.id))});
  return connection_.run(read_row, keys, 4, [&](std::size_t index, const Row& row) -> Result<bool> {
    Found& one = found[index];
    one.row.slot = static_cast<WordNumber>(row.integer(0));
    one.row.source = static_cast<WordNumber>(row.integer(1));
    FURLONG_CHECK(unpack_epoch(row.blob(2), one.row));
    one.batch = row.integer(3);
    if (Status unpacked = unpack_head(as_text(row.blob(4)), one.row); !unpacked)
      return fail(Code::corrupt, "race {}: {}", record_id_text(one.row.id), unpacked.error().text());
    return true;
  });
}

Status PageReader::read_subjects(std::span<const Found> found) {
  // Few are ever shown, and those again and again; a store may have very many.
  if (subjects_.size() > most_shown) subjects_.clear();
  std::set<SubjectNumber> unknown;
  for (const Found& one : found)
    if (!subjects_.contains(one.subject)) unknown.insert(one.subject);
  std::vector<Value> numbers;
  for (const SubjectNumber number : unknown) numbers.emplace_back(std::int64_t{number});
  return connection_.run(read_subject, numbers, 1, [&](std::size_t index, const Row& row) -> Result<bool> {
    subjects_.emplace(static_cast<SubjectNumber>(std::get<std::int64_t>(numbers[index])),
                      Subject{.silicon = std::string(row.text(0)),
                              .backend = std::string(row.text(1)),
                              .program = std::string(row.text(2)),
                              .program_class = std::string(row.text(3)),
                              .metric = std::string(row.text(4)),
                              .unit = std::string(row.text(5))});
    return true;
  });
}

Status PageReader::name_numbers(std::string_view statement, std::map<std::uint32_t, std::string>& names) {
  std::vector<Value> numbers;
  for (const auto& [number, name] : names) numbers.emplace_back(std::int64_t{number});
  return connection_.run(statement, numbers, 1, [&](std::size_t index, const Row& row) -> Result<bool> {
    names[static_cast<std::uint32_t>(std::get<std::int64_t>(numbers[index]))] = row.text(0);
    return true;
  });
}

Result<std::vector<RaceSummary>> PageReader::name_all(std::span<const Found> found) {
  std::map<std::uint32_t, std::string> words, machines;
  std::vector<Value> batches;
  for (const Found& one : found) {
    for (const WordNumber word :
         {one.row.slot, one.row.label, one.row.driver, one.row.source, one.row.winner})
      if (word != 0) words[word];
    machines[one.row.machine];
    batches.emplace_back(one.batch);
  }
  FURLONG_CHECK(read_subjects(found));
  FURLONG_CHECK(name_numbers(name_word, words));
  FURLONG_CHECK(name_numbers(name_machine, machines));
  words[0];
  std::vector<RaceSummary> page;
  for (const Found& one : found) {
    const auto subject = subjects_.find(one.subject);
    if (subject == subjects_.end())
      return fail(Code::corrupt, "race {}: there is no subject {}", record_id_text(one.row.id), one.subject);
    RaceSummary summary{.id = record_id_text(one.row.id),
                        .machine = machines[one.row.machine],
                        .slot = words[one.row.slot],
                        .label = words[one.row.label],
                        .driver = words[one.row.driver],
                        .epoch = epoch_text(one.row),
                        .source = words[one.row.source],
                        .winner = words[one.row.winner],
                        .subject = subject->second};
    summary.ts_us = one.row.ts_us;
    summary.verdict = one.row.verdict;
    summary.pinned = one.row.pinned;
    summary.rate = one.row.rate;
    summary.base_rate = one.row.base_rate;
    summary.gain_pct = one.row.gain_pct;
    page.push_back(std::move(summary));
  }
  FURLONG_CHECK(
      connection_.run(find_received, batches, 1, [&](std::size_t index, const Row& row) -> Result<bool> {
        page[index].received_us = row.integer(0);
        return true;
      }));
  return page;
}

Result<RacePage> PageReader::read(const RaceFilter& filter, const std::optional<RecordId>& before) {
  RacePage page;
  const std::size_t limit = std::min(filter.limit, most_on_page);
  if (limit == 0) return page;
  // Ids are the machines' own and bound to no time, so that a window cannot be sought by them. What lies
  // after every race is the one that would be walked in vain for ever.
  FURLONG_TRY(const bool after_all, is_after_all(filter.window.from_us));
  FURLONG_TRY(const bool any, translate(filter));
  if (after_all || !any) return page;
  // 17 bytes are above every id.
  std::string below = before ? std::string(as_text(*before)) : std::string(17, '\xff');
  std::vector<Found> found;
  const std::string begin = below;
  bool more = true, sought = wanted_.machine == 0;
  std::size_t left = filter.walk;
  const std::size_t enough = std::min(sparse * limit, filter.walk / 2);
  // One that is too many tells that there is a page after this.
  for (std::size_t count = limit + 1; more && left > 0 && found.size() <= limit;
       count = std::min(4 * count, most_at_once)) {
    const std::size_t now = std::min(count, left);
    FURLONG_TRY(more, walk(below, now, found));
    left -= now;
    // One machine of very many: its races are found sooner by themselves.
    if (sought || found.size() > limit || filter.walk - left < enough) continue;
    sought = true;
    FURLONG_TRY(auto all, seek(begin, filter.walk));
    if (!all) continue;
    found = *std::move(all);
    more = false;
  }
  if (found.size() > limit) {
    found.resize(limit);
    page.next = record_id_text(found.back().row.id);
  } else if (more) {
    RecordId last{};
    if (below.size() != last.size()) return fail(Code::corrupt, "an id of {} bytes", below.size());
    std::ranges::copy(as_bytes(below), last.begin());
    page.next = record_id_text(last);
  }
  FURLONG_CHECK(read_rows(found));
  FURLONG_TRY(page.races, name_all(found));
  return page;
}

Result<RacePage> SqlStore::page(const RaceFilter& filter) {
  std::optional<RecordId> before;
  if (!filter.before.empty()) {
    FURLONG_TRY(before, parse_record_id(filter.before));
  }
  return reading([&] { return read_page(filter, before); });
}

Result<RacePage> SqlStore::read_page(const RaceFilter& filter, const std::optional<RecordId>& before) {
  auto page = PageReader(*connection_, names_, shown_).read(filter, before);
  if (!page) return std::move(page).error().with(connection_->name());
  return page;
}

}  // namespace furlong::fleet::sql
