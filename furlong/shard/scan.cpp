#include "furlong/shard/scan.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>

#include "furlong/base/json.h"
#include "furlong/base/text.h"
#include "furlong/shard/cost_json.h"
#include "furlong/shard/internal/independent_record.h"
#include "furlong/shard/internal/tasks.h"
#include "furlong/shard/pace.h"

namespace furlong::shard {

std::uint32_t chunk_units(std::size_t units) {
  constexpr std::size_t kChunks = 16, kLeast = 8;
  return static_cast<std::uint32_t>(std::max(kLeast, (units + kChunks - 1) / kChunks));
}

namespace {

constexpr double kBoxShare = 0.70, kBoxReserve = 10.0 * (1u << 30);

unsigned records_in(double bytes, std::uint64_t cap_bytes) {
  return static_cast<unsigned>(std::clamp(std::floor(bytes / static_cast<double>(cap_bytes)), 1.0, 1024.0));
}

}  // namespace

unsigned scan_workers(std::uint64_t box_bytes, std::uint64_t cap_bytes) {
  if (cap_bytes == 0) return 1;
  return records_in(kBoxShare * static_cast<double>(box_bytes) - kBoxReserve, cap_bytes);
}

ChosenWorkers choose_workers(std::uint64_t box_bytes, std::uint64_t cap_bytes, unsigned cores) {
  if (cap_bytes == 0) return {1, "1, since nothing bounds a record"};
  const double share = kBoxShare * static_cast<double>(box_bytes);
  const bool small = share < 2 * kBoxReserve;
  const unsigned held = small ? records_in(share / 2, cap_bytes) : scan_workers(box_bytes, cap_bytes);
  const unsigned workers = std::clamp(held, 1u, std::max(1u, cores));
  return {workers, fmt::format("{}: {} of a box of {} hold {} records of {}, and there are {} cores", workers,
                               small ? "35%" : "70% less 10 GiB", human_bytes(box_bytes), held,
                               human_bytes(cap_bytes), cores)};
}

namespace {

/// Positions of the order: from `start`, at most to `end`.
struct Task {
  std::size_t start, end;
};

/// What one task found: units [start, next) are done with.
struct Found {
  std::size_t next = 0;
  Segment segment;
  std::vector<FailedUnit> failed;
};

std::string print(const Found& found) {
  Json json;
  json["next"] = found.next;
  json["alone"] = found.segment.alone;
  json["units"] = found.segment.units;
  json["cost"] = cost_json(found.segment.cost);
  json["failed"] = Json::array();
  for (const FailedUnit& failed : found.failed)
    json["failed"].push_back({{"unit", failed.unit}, {"code", code_name(failed.code)}, {"why", failed.why}});
  return json_line(json);
}

Result<Found> parse(const std::string& text) {
  const std::string name = "a journal's segment";
  FURLONG_TRY(const Json json, json_parse(text, name));
  Found found;
  try {
    found.next = json.at("next").get<std::size_t>();
    found.segment.alone = json.at("alone").get<bool>();
    found.segment.units = json.at("units").get<std::vector<UnitIndex>>();
    FURLONG_TRY(found.segment.cost, parse_cost(json.at("cost"), name));
    for (const Json& failed : json.at("failed"))
      found.failed.push_back({failed.at("unit").get<UnitIndex>(),
                              failed.at("code").get<std::string>() == code_name(Code::exhausted)
                                  ? Code::exhausted
                                  : Code::mismatch,
                              failed.at("why").get<std::string>()});
  } catch (const Json::exception& error) {
    return fail(Code::corrupt, "{}: {}", name, error.what());
  }
  return found;
}

class Scan {
 public:
  Scan(const std::shared_ptr<const Store>& store, const Executor& executor, std::span<const UnitIndex> order,
       const ScanOptions& options, Journal& journal)
      : store_(store),
        executor_(executor),
        order_(order),
        options_(options),
        journal_(journal),
        segment_(scoped_kind(options.findings, journal_scope(executor, options.sizing))),
        workers_(std::max(1u, options.workers)),
        pool_(workers_, chunks(order.size(), options.chunk_units)),
        pace_(options.findings == "segment" ? "scan" : "scan loose ends", order.size(), options.progress) {}

  Result<ScanResult> run();

 private:
  static std::vector<Task> chunks(std::size_t units, std::uint32_t asked) {
    const std::size_t size = asked != 0 ? asked : chunk_units(units);
    std::vector<Task> tasks;
    for (std::size_t at = 0; at < units; at += size) tasks.push_back({at, std::min(units, at + size)});
    return tasks;
  }
  Status work(unsigned worker, Task task);
  // Nothing when the scan is to stop.
  Result<std::optional<Found>> execute(Task task, std::uint64_t running);
  Result<bool> failure(Found& found, const Unit& unit, UnitIndex index, const Error& error);
  void keep(std::size_t start, Found found);

  const std::shared_ptr<const Store>& store_;
  const Executor& executor_;
  const std::span<const UnitIndex> order_;
  const ScanOptions& options_;
  Journal& journal_;
  const std::string segment_;  // the kind of its findings
  const unsigned workers_;
  TaskPool<Task> pool_;
  Pace pace_;
  std::mutex mutex_;  // of the two below
  std::map<std::size_t, Found> found_;
  std::vector<FailedUnit> stopped_at_;
};

// Whether the scan goes on. The units that failed are known in both modes.
Result<bool> Scan::failure(Found& found, const Unit& unit, UnitIndex index, const Error& error) {
  if (error.code() != Code::mismatch && error.code() != Code::exhausted)
    return Error(error).with(fmt::format("unit '{}'", one_line(unit.name)));
  found.failed.push_back({index, error.code(), error.text()});
  if (!options_.fail_fast) return true;
  {
    const std::scoped_lock lock(mutex_);
    stopped_at_.push_back(found.failed.back());
  }
  pool_.halt();
  return false;
}

Result<std::optional<Found>> Scan::execute(Task task, std::uint64_t running) {
  const Sizing& sizing = options_.sizing;
  FURLONG_TRY(const auto record,
              begin_record(executor_, store_->settings(), sizing.record_cap_bytes, options_.stop, journal_));
  FURLONG_TRY(const auto items, ClaimItems::open(store_, {}));
  Found found;
  std::vector<UnitIndex>& banked = found.segment.units;
  for (found.next = task.start; found.next < task.end; ++found.next) {
    if (options_.stop.stop_requested()) return fail(Code::timeout, "the scan was stopped");
    if (pool_.halted()) return std::optional<Found>();
    const UnitIndex index = order_[found.next];
    FURLONG_TRY(const Unit unit, store_->unit(index));
    pace_.rename(running, unit.name);
    FURLONG_CHECK(items->add(index));
    if (const Status status = record->add(unit, *items); !status) {
      // With others before it the cap may be theirs: the unit begins the next segment, and fails there if it
      // is its own.
      if (status.error().code() == Code::exhausted && !banked.empty()) break;
      FURLONG_TRY(const bool go_on, failure(found, unit, index, status.error()));
      if (!go_on) return std::optional<Found>();
      pace_.advance(1);
      continue;
    }
    const Cost cost = job_cost(executor_, *record, *items);
    const bool crosses = sizing.reaches_cut(cost);
    if (crosses && !banked.empty()) break;  // the crossing unit begins the next segment
    if (crosses && sizing.over_budget(cost)) {
      FURLONG_TRY(
          const bool go_on,
          failure(found, unit, index,
                  fail(Code::exhausted, "alone it is over the budget: its job would take {} and {:.3g} s",
                       human_bytes(sizing.predicted_peak_bytes(cost)), sizing.predicted_seconds(cost))));
      if (!go_on) return std::optional<Found>();
      pace_.advance(1);
      ++found.next;  // its record is spent: what comes after begins anew
      break;
    }
    banked.push_back(index);
    found.segment.cost = cost;
    pace_.advance(1);
    if (!crosses) continue;
    found.segment.alone = true;
    ++found.next;
    break;
  }
  return std::optional<Found>(std::move(found));
}

void Scan::keep(std::size_t start, Found found) {
  const std::scoped_lock lock(mutex_);
  found_[start] = std::move(found);
}

Status Scan::work(unsigned worker, Task task) {
  const std::string key = fmt::format("{:010}-{:010}", task.start, task.end);
  std::optional<Found> found;
  if (const auto known = journal_.find(segment_, key)) {
    FURLONG_TRY(found, parse(*known));
    if (found->next <= task.start || found->next > task.end ||
        found->segment.units.size() + found->failed.size() != found->next - task.start)
      return fail(Code::corrupt, "a journal's segment from {} to {} ends at {}", task.start, task.end,
                  found->next);
    pace_.advance(found->next - task.start);
    if (options_.fail_fast && !found->failed.empty()) {
      const std::scoped_lock lock(mutex_);
      stopped_at_.insert(stopped_at_.end(), found->failed.begin(), found->failed.end());
      pool_.halt();
      return {};
    }
  } else {
    const std::uint64_t running = pace_.begin("");
    auto executed = execute(task, running);
    pace_.finish(running);
    if (!executed) return executed.error();
    if (!*executed) return {};
    found = *std::move(executed);
    FURLONG_CHECK(journal_.add(segment_, key, print(*found)));
  }
  if (found->next < task.end) pool_.push(worker, {found->next, task.end});
  keep(task.start, *std::move(found));
  return {};
}

Result<ScanResult> Scan::run() {
  const Status status =
      run_tasks<Task>(pool_, workers_, [&](unsigned worker, Task& task) { return work(worker, task); });
  pace_.end();
  FURLONG_CHECK(journal_.sync());
  if (!status) return status.error();
  ScanResult result;
  result.complete = stopped_at_.empty();
  result.failed = std::move(stopped_at_);
  for (auto& [start, found] : found_) {  // by place, so whoever found it
    if (!found.segment.units.empty()) result.segments.push_back(std::move(found.segment));
    result.failed.insert(result.failed.end(), found.failed.begin(), found.failed.end());
  }
  const auto by_unit = [](const FailedUnit& a, const FailedUnit& b) { return a.unit < b.unit; };
  std::sort(result.failed.begin(), result.failed.end(), by_unit);
  const auto same = [](const FailedUnit& a, const FailedUnit& b) { return a.unit == b.unit; };
  result.failed.erase(std::unique(result.failed.begin(), result.failed.end(), same), result.failed.end());
  return result;
}

}  // namespace

Result<ScanResult> scan(const std::shared_ptr<const Store>& store, const Executor& executor,
                        std::span<const UnitIndex> order, const ScanOptions& options, Journal& journal) {
  FURLONG_CHECK(options.sizing.check());
  return Scan(store, executor, order, options, journal).run();
}

Result<std::optional<Cost>> price(const std::shared_ptr<const Store>& store, const Executor& executor,
                                  std::span<const UnitIndex> units, const Sizing& sizing, bool give_up,
                                  Journal& journal, std::stop_token stop) {
  FURLONG_TRY(const Claim claim, make_claim(*store, units));
  const std::string key = claim.digest(std::string(executor.name()), executor.version()).hex();
  const std::string scope = journal_scope(executor, sizing);
  const std::string priced = scoped_kind("price", scope), refused = scoped_kind("refused", scope);
  if (const auto known = journal.find(priced, key)) {
    FURLONG_TRY(const Json json, json_parse(*known, "a journal's price"));
    FURLONG_TRY(const Cost cost, parse_cost(json, "a journal's price"));
    if (give_up && sizing.reaches_cut(cost)) return std::optional<Cost>();
    return std::optional<Cost>(cost);
  }
  if (give_up && journal.find(refused, key)) return std::optional<Cost>();
  FURLONG_TRY(const auto items, ClaimItems::open(store, units));
  FURLONG_TRY(const auto record,
              begin_record(executor, store->settings(), sizing.record_cap_bytes, stop, journal));
  for (const UnitIndex index : units) {
    if (stop.stop_requested()) return fail(Code::timeout, "stopped while a shard was priced");
    FURLONG_TRY(const Unit unit, store->unit(index));
    const Status status = record->add(unit, *items);
    // Over the cap together, though not apart: as over the cut.
    const bool over = !status && status.error().code() == Code::exhausted;
    if (!status && !(give_up && over))
      return Error(status.error()).with(fmt::format("unit '{}', executed cold", one_line(unit.name)));
    if (give_up && (over || sizing.reaches_cut(job_cost(executor, *record, *items)))) {
      FURLONG_CHECK(journal.add(refused, key, "true"));
      return std::optional<Cost>();
    }
  }
  const Cost cost = job_cost(executor, *record, *items);
  FURLONG_CHECK(journal.add(priced, key, json_line(cost_json(cost))));
  return std::optional<Cost>(cost);
}

}  // namespace furlong::shard
