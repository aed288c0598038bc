// Transactions, intake, and what is forgotten.
#include "furlong/fleet/store/sql/sql_store.h"

#include <algorithm>
#include <map>

namespace furlong::fleet::sql {
namespace {

// A step of prune(): others that write wait for one at most.
constexpr std::int64_t step_races = 20'000, step_batches = 500;

constexpr std::string_view any_old =
    "SELECT 1 FROM race WHERE subject=?1 AND machine=?2 AND ts_us<?3 LIMIT 1";
constexpr std::string_view nth_old =
    "SELECT ts_us FROM race WHERE subject=?1 AND machine=?2 AND ts_us<?3 ORDER BY ts_us LIMIT 1 OFFSET ?4";
constexpr std::string_view drop_old =
    "DELETE FROM race WHERE subject=?1 AND machine=?2 AND ts_us<?3 RETURNING batch";
constexpr std::string_view uncount_races = "UPDATE batch SET races=races-?2 WHERE number=?1";
constexpr std::string_view old_batches = "SELECT number FROM batch WHERE received_us<?1 AND races=0 LIMIT ?2";
constexpr std::string_view drop_batch = "DELETE FROM batch WHERE number=?1";
constexpr std::string_view drop_body = "DELETE FROM batch_body WHERE number=?1";
constexpr std::string_view count_gone =
    "UPDATE totals SET races=races-?1, batches=batches-?2, change=change+1";
constexpr std::string_view find_batch = "SELECT 1 FROM batch WHERE digest=?1";

}  // namespace

Status SqlStore::check_writable() const {
  if (connection_->read_only())
    return fail(Code::denied, "{}: it was opened to be read only", connection_->name());
  return {};
}

Status SqlStore::begin(bool writes) {
  FURLONG_CHECK(connection_->begin(writes));
  if (generation_ != connection_->generation()) {
    names_.forget();
    shown_.clear();
  }
  generation_ = connection_->generation();
  return {};
}

Result<std::vector<BatchOutcome>> SqlStore::add(std::span<const IncomingBatch> batches) {
  if (batches.empty()) return std::vector<BatchOutcome>();
  Intake intake(*connection_, names_, batches, Intake::Mode::add);
  FURLONG_CHECK(intake.prepare());
  return writing([&] { return intake.run(); });
}

Result<std::uint64_t> SqlStore::put_batches(std::span<const IncomingBatch> batches) {
  if (batches.empty()) return std::uint64_t{0};
  Intake intake(*connection_, names_, batches, Intake::Mode::copy);
  FURLONG_CHECK(intake.prepare());
  FURLONG_TRY(const std::vector<BatchOutcome> outcomes, writing([&] { return intake.run(); }));
  std::uint64_t fresh = 0;
  for (const BatchOutcome& outcome : outcomes)
    fresh += static_cast<std::uint64_t>(std::ranges::count(outcome.fates, Fate::accepted));
  return fresh;
}

Result<bool> SqlStore::has_batch(const StoredBatch& batch) {
  const Digest digest = batch_digest(batch.machine, batch.id, batch.body);
  return reading([&]() -> Result<bool> {
    bool found = false;
    FURLONG_CHECK(connection_->once(find_batch, {ByteView(digest.bytes)},
                                    [&](std::size_t, const Row&) -> Result<bool> { return found = true; }));
    return found;
  });
}

Result<std::uint64_t> SqlStore::prune(std::int64_t before_us, const std::stop_token& stop) {
  FURLONG_CHECK(check_writable());
  FURLONG_TRY(std::vector<Holding> old, reading([&] { return old_holdings(before_us); }));
  std::uint64_t gone = 0;
  while (!old.empty() && !stop.stop_requested()) {
    FURLONG_TRY(const std::uint64_t now, writing([&] { return prune_races(old, before_us); }));
    gone += now;
  }
  for (bool more = true; more && !stop.stop_requested();) {
    FURLONG_TRY(const std::vector<Value> numbers, reading([&] { return unneeded_batches(before_us); }));
    more = !numbers.empty();
    if (more) FURLONG_CHECK(writing([&] { return prune_batches(before_us); }));
  }
  return gone;
}

Result<std::vector<SqlStore::Holding>> SqlStore::old_holdings(std::int64_t before_us) {
  FURLONG_TRY(const std::vector<SubjectRow> subjects, read_subjects());
  std::vector<Holding> old;
  for (const SubjectRow& subject : subjects) {
    FURLONG_TRY(const std::vector<MachineNumber> machines, machines_of(subject.number));
    std::vector<Value> values;
    for (const MachineNumber machine : machines)
      values.insert(values.end(),
                    {Value(std::int64_t{subject.number}), Value(std::int64_t{machine}), Value(before_us)});
    FURLONG_CHECK(connection_->run(any_old, values, 3, [&](std::size_t i, const Row&) -> Result<bool> {
      old.push_back({subject.number, machines[i]});
      return true;
    }));
  }
  return old;
}

Result<std::uint64_t> SqlStore::prune_races(std::vector<Holding>& old, std::int64_t before_us) {
  std::map<std::int64_t, std::int64_t> of_batch;
  std::int64_t gone = 0;
  std::size_t done = 0;
  for (; done < old.size() && gone < step_races; ++done) {
    const auto subject = std::int64_t{old[done].subject}, machine = std::int64_t{old[done].machine};
    std::int64_t until_us = before_us;
    bool whole = true;
    FURLONG_CHECK(connection_->once(nth_old, {subject, machine, before_us, step_races},
                                    [&](std::size_t, const Row& row) -> Result<bool> {
                                      until_us = row.integer(0) + 1;
                                      whole = until_us >= before_us;
                                      return true;
                                    }));
    FURLONG_CHECK(connection_->once(drop_old, {subject, machine, until_us},
                                    [&](std::size_t, const Row& row) -> Result<bool> {
                                      ++of_batch[row.integer(0)];
                                      ++gone;
                                      return true;
                                    }));
    if (!whole) break;
  }
  old.erase(old.begin(), old.begin() + static_cast<std::ptrdiff_t>(done));
  std::vector<Value> values;
  for (const auto& [number, races] : of_batch) values.insert(values.end(), {Value(number), Value(races)});
  FURLONG_CHECK(connection_->run(uncount_races, values, 2));
  FURLONG_CHECK(connection_->once(count_gone, {gone, std::int64_t{0}}));
  return static_cast<std::uint64_t>(gone);
}

Result<std::vector<Value>> SqlStore::unneeded_batches(std::int64_t before_us) {
  std::vector<Value> numbers;
  FURLONG_CHECK(connection_->once(old_batches, {before_us, step_batches},
                                  [&](std::size_t, const Row& row) -> Result<bool> {
                                    numbers.emplace_back(row.integer(0));
                                    return true;
                                  }));
  return numbers;
}

Status SqlStore::prune_batches(std::int64_t before_us) {
  FURLONG_TRY(const std::vector<Value> numbers, unneeded_batches(before_us));
  FURLONG_CHECK(connection_->run(drop_body, numbers, 1));
  FURLONG_CHECK(connection_->run(drop_batch, numbers, 1));
  return connection_->once(count_gone, {std::int64_t{0}, static_cast<std::int64_t>(numbers.size())});
}

}  // namespace furlong::fleet::sql
