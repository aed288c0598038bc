#include "furlong/shard/make_profile.h"

#include <algorithm>
#include <set>
#include <unordered_map>

#include "furlong/base/json.h"
#include "furlong/base/text.h"
#include "furlong/shard/cost_json.h"
#include "furlong/shard/internal/key_hash.h"
#include "furlong/shard/internal/tasks.h"
#include "furlong/shard/journal.h"
#include "furlong/shard/pace.h"
#include "furlong/shard/scan.h"

namespace furlong::shard {
namespace {

using ItemNumbers = std::unordered_map<Key, std::uint32_t, KeyHash>;

Result<ItemNumbers> add_units(const Store& store, Profile& profile, std::stop_token stop, Pace& pace) {
  ItemNumbers numbers;
  for (UnitIndex index = 0; index < store.unit_count(); ++index) {
    if (stop.stop_requested()) return fail(Code::timeout, "stopped while the units were read");
    FURLONG_TRY(Unit unit, store.unit(index));
    for (const Key& item : unit.items) {
      FURLONG_TRY(const std::size_t bytes, store.item_bytes(item));
      numbers.try_emplace(item, profile.items());
      profile.item_bytes.push_back(bytes);
    }
    profile.first_item.push_back(profile.items());
    profile.keys.push_back(unit.key);
    profile.names.push_back(std::move(unit.name));
    pace.advance(1);
  }
  return numbers;
}

Result<ItemLists> references(const Store& store, const ItemNumbers& numbers, std::stop_token stop,
                             Pace& pace) {
  ItemLists lists;
  std::vector<std::uint32_t> list;
  for (UnitIndex index = 0; index < store.unit_count(); ++index) {
    if (stop.stop_requested()) return fail(Code::timeout, "stopped while the links of the units were read");
    FURLONG_TRY(const Unit unit, store.unit(index));
    list.clear();
    for (const Key& reference : unit.references) {
      const auto found = numbers.find(reference);
      if (found == numbers.end())
        return fail(Code::invalid, "unit '{}' refers to the item {}, which no unit owns", one_line(unit.name),
                    reference.hex());
      list.push_back(found->second);
    }
    std::sort(list.begin(), list.end());
    lists.add(list);
    pace.advance(1);
  }
  return lists;
}

struct Skeleton {
  Profile profile;
  ItemNumbers numbers;
};

Result<Skeleton> skeleton(const Store& store, std::stop_token stop, const Progress& progress) {
  Skeleton made;
  Profile& p = made.profile;
  p.store = store.digest();
  p.executor = store.executor();
  p.executor_version = store.executor_version();
  const std::size_t n = store.unit_count();
  Pace pace("read links", 2 * n, progress);
  FURLONG_TRY(made.numbers, add_units(store, p, stop, pace));
  FURLONG_TRY(p.references, references(store, made.numbers, stop, pace));
  pace.end();
  p.states.assign(n, UnitState::unknown);
  p.work.assign(n, 0);
  p.record_bytes.assign(n, 0);
  return made;
}

// What executing one unit came to.
struct Finding {
  UnitState state = UnitState::unknown;
  Cost cost;
  std::vector<std::uint32_t> touched;  // ascending
  Code code = Code::mismatch;          // of a failed one
  std::string why;
};

Json finding_json(const Finding& finding) {
  Json json;
  if (finding.state == UnitState::failed) {
    json["code"] = code_name(finding.code);
    json["why"] = finding.why;
    return json;
  }
  json["cost"] = cost_json(finding.cost);
  json["touched"] = finding.touched;
  return json;
}

Result<Finding> parse_finding(const Json& json, std::uint32_t items) {
  const std::string name = "a journal's unit";
  Finding finding;
  try {
    if (json.contains("why")) {
      finding.state = UnitState::failed;
      finding.code =
          json.at("code").get<std::string>() == code_name(Code::exhausted) ? Code::exhausted : Code::mismatch;
      finding.why = json.at("why").get<std::string>();
      return finding;
    }
    finding.state = UnitState::measured;
    FURLONG_TRY(finding.cost, parse_cost(json.at("cost"), name));
    finding.touched = json.at("touched").get<std::vector<std::uint32_t>>();
  } catch (const Json::exception& error) {
    return fail(Code::corrupt, "{}: {}", name, error.what());
  }
  for (const std::uint32_t item : finding.touched)
    if (item >= items) return fail(Code::corrupt, "{}: it touched the item {}, of {}", name, item, items);
  return finding;
}

struct Task {
  UnitIndex start, end;
};

class Profiling {
 public:
  Profiling(const std::shared_ptr<const Store>& store, const Executor& executor,
            const ProfileRequest& request, const Skeleton& skeleton, Journal* journal)
      : store_(store),
        executor_(executor),
        request_(request),
        numbers_(skeleton.numbers),
        items_(skeleton.profile.items()),
        journal_(journal),
        units_(request.limit_units == 0 ? store->unit_count()
                                        : std::min(request.limit_units, store->unit_count())),
        workers_(std::max(1u, request.workers)),
        pool_(workers_, tasks()),
        pace_("profile", units_, request.progress),
        findings_(units_) {}

  Status run();
  std::vector<Finding>& findings() { return findings_; }
  bool complete() const { return !pool_.halted(); }

 private:
  std::vector<Task> tasks() const {
    // Isolated units are dealt out in small runs, for their number; running ones as the scan does, so that
    // the profile does not depend on who executes them.
    constexpr std::uint32_t kRun = 16;
    const std::uint32_t size = request_.isolated ? kRun : chunk_units(store_->unit_count());
    std::vector<Task> list;
    for (UnitIndex at = 0; at < units_; at += size) list.push_back({at, std::min(units_, at + size)});
    return list;
  }
  Status work_isolated(const Task& task);
  Status work_running(const Task& task);
  Result<std::optional<std::vector<Finding>>> execute_chunk(const Task& task);
  Result<Finding> measured(const Record& record, const Cost& before);
  Result<bool> failure(const Unit& unit, const Error& error, Finding& finding);
  bool halts(const Finding& finding);

  const std::shared_ptr<const Store>& store_;
  const Executor& executor_;
  const ProfileRequest& request_;
  const ItemNumbers& numbers_;
  const std::uint32_t items_;
  Journal* const journal_;
  const UnitIndex units_;
  const unsigned workers_;
  TaskPool<Task> pool_;
  Pace pace_;
  std::vector<Finding> findings_;  // each written by the one worker whose task has it
};

double grown(double now, double before) { return std::max(0.0, now - before); }

// What the last unit added to the record, and what it consulted.
Result<Finding> Profiling::measured(const Record& record, const Cost& before) {
  Finding finding;
  finding.state = UnitState::measured;
  Cost& cost = finding.cost = record.cost();
  cost.work = grown(cost.work, before.work);
  cost.record_bytes -= std::min(cost.record_bytes, before.record_bytes);
  cost.seconds = grown(cost.seconds, before.seconds);
  for (auto& [name, value] : cost.features)
    if (const auto old = before.features.find(name); old != before.features.end())
      value = grown(value, old->second);
  for (const Key& key : record.last_touched()) {
    const auto found = numbers_.find(key);
    if (found == numbers_.end())
      return fail(Code::internal, "the executor {} consulted the item {}, which no unit owns",
                  executor_.name(), key.hex());
    finding.touched.push_back(found->second);
  }
  std::sort(finding.touched.begin(), finding.touched.end());
  return finding;
}

// Whether the profile goes on.
Result<bool> Profiling::failure(const Unit& unit, const Error& error, Finding& finding) {
  if (error.code() != Code::mismatch && error.code() != Code::exhausted)
    return Error(error).with(fmt::format("unit '{}'", one_line(unit.name)));
  finding.state = UnitState::failed;
  finding.code = error.code();
  finding.why = error.text();
  return !request_.fail_fast;
}

bool Profiling::halts(const Finding& finding) {
  if (!request_.fail_fast || finding.state != UnitState::failed) return false;
  pool_.halt();
  return true;
}

Status Profiling::work_isolated(const Task& task) {
  for (UnitIndex index = task.start; index < task.end; ++index) {
    if (request_.stop.stop_requested()) return fail(Code::timeout, "the profile was stopped");
    if (pool_.halted()) return {};
    Finding& finding = findings_[index];
    const std::string key = fmt::format("{:010}", index);
    if (const auto known = journal_ != nullptr ? journal_->find("profile", key) : std::nullopt) {
      FURLONG_TRY(const Json json, json_parse(*known, "a journal's unit"));
      FURLONG_TRY(finding, parse_finding(json, items_));
    } else {
      FURLONG_TRY(const Unit unit, store_->unit(index));
      const std::uint64_t running = pace_.begin(unit.name);
      FURLONG_TRY(const auto record,
                  executor_.begin(store_->settings(), request_.record_cap_bytes, request_.stop));
      FURLONG_TRY(const auto items, ClaimItems::open(store_, std::span(&index, 1)));
      const Status status = record->add(unit, *items);
      pace_.finish(running);
      if (status) {
        FURLONG_TRY(finding, measured(*record, {}));
      } else {
        FURLONG_CHECK(failure(unit, status.error(), finding));
      }
      if (journal_ != nullptr) FURLONG_CHECK(journal_->add("profile", key, json_line(finding_json(finding))));
    }
    pace_.advance(1);
    if (halts(finding)) return {};
  }
  return {};
}

// Nothing when the profile is to stop.
Result<std::optional<std::vector<Finding>>> Profiling::execute_chunk(const Task& task) {
  std::vector<Finding> found(task.end - task.start);
  const std::uint64_t running = pace_.begin("");
  std::unique_ptr<Record> record;
  std::unique_ptr<ClaimItems> items;
  Cost before;
  const auto renew = [&]() -> Status {
    FURLONG_TRY(record, executor_.begin(store_->settings(), request_.record_cap_bytes, request_.stop));
    FURLONG_TRY(items, ClaimItems::open(store_, {}));
    before = {};
    return {};
  };
  FURLONG_CHECK(renew());
  bool empty = true;
  for (UnitIndex index = task.start; index < task.end; ++index) {
    if (request_.stop.stop_requested()) return fail(Code::timeout, "the profile was stopped");
    if (pool_.halted()) return std::optional<std::vector<Finding>>();
    FURLONG_TRY(const Unit unit, store_->unit(index));
    pace_.rename(running, unit.name);
    FURLONG_CHECK(items->add(index));
    Finding& finding = found[index - task.start];
    Status status = record->add(unit, *items);
    if (!status && status.error().code() == Code::exhausted && !empty) {
      FURLONG_CHECK(renew());  // with others before it the cap may be theirs
      FURLONG_CHECK(items->add(index));
      empty = true;
      status = record->add(unit, *items);
    }
    if (status) {
      empty = false;
      FURLONG_TRY(finding, measured(*record, before));
      before = record->cost();
    } else {
      FURLONG_TRY(const bool go_on, failure(unit, status.error(), finding));
      if (!go_on) break;
    }
    pace_.advance(1);
  }
  pace_.finish(running);
  return std::optional(std::move(found));
}

Status Profiling::work_running(const Task& task) {
  const std::string key = fmt::format("{:010}-{:010}", task.start, task.end);
  std::vector<Finding> found;
  if (const auto known = journal_ != nullptr ? journal_->find("profile", key) : std::nullopt) {
    FURLONG_TRY(const Json json, json_parse(*known, "a journal's chunk"));
    if (!json.is_array() || json.size() != task.end - task.start)
      return fail(Code::corrupt, "a journal's chunk from {} to {} has not as many units", task.start,
                  task.end);
    for (const Json& entry : json) {
      FURLONG_TRY(Finding finding, parse_finding(entry, items_));
      found.push_back(std::move(finding));
    }
    pace_.advance(found.size());
  } else {
    FURLONG_TRY(auto executed, execute_chunk(task));
    if (!executed) return {};
    found = *std::move(executed);
    // A chunk that stopped at a failure is not written down: it is not whole.
    const bool whole = std::none_of(found.begin(), found.end(),
                                    [](const Finding& one) { return one.state == UnitState::unknown; });
    if (journal_ != nullptr && whole) {
      Json json = Json::array();
      for (const Finding& finding : found) json.push_back(finding_json(finding));
      FURLONG_CHECK(journal_->add("profile", key, json_line(json)));
    }
  }
  for (const Finding& finding : found)
    if (halts(finding)) break;
  std::move(found.begin(), found.end(), findings_.begin() + task.start);
  return {};
}

Status Profiling::run() {
  const Status status = run_tasks<Task>(pool_, workers_, [&](unsigned, Task& task) {
    return request_.isolated ? work_isolated(task) : work_running(task);
  });
  pace_.end();
  if (journal_ != nullptr) FURLONG_CHECK(journal_->sync());
  return status;
}

std::string identity(const Store& store, const Executor& executor, const ProfileRequest& request) {
  Json json;
  json["profile_of"] = store.digest().hex();
  json["executor"] = executor.name();
  json["executor_version"] = executor.version();
  json["isolated"] = request.isolated;
  json["record_cap_bytes"] = request.record_cap_bytes;
  return json_line(json);
}

std::vector<std::string> feature_names(const std::vector<Finding>& findings) {
  std::set<std::string> names{std::string(kDistinct)};
  for (const Finding& finding : findings)
    for (const auto& [name, value] : finding.cost.features) names.insert(name);
  return {names.begin(), names.end()};
}

void fill(Profile& p, const std::vector<Finding>& findings, const ProfileRequest& request) {
  p.isolated = request.isolated;
  p.features = feature_names(findings);
  p.counters.assign(p.features.size(), std::vector<double>(p.units()));
  p.touched.emplace();
  if (request.seconds) p.seconds.emplace(p.units());
  for (UnitIndex unit = 0; unit < p.units(); ++unit) {
    if (unit >= findings.size() || findings[unit].state != UnitState::measured) {
      p.touched->add({});
      if (unit >= findings.size() || findings[unit].state == UnitState::unknown) continue;
      p.states[unit] = UnitState::failed;
      p.failed.push_back({unit, findings[unit].code, findings[unit].why});
      continue;
    }
    const Finding& finding = findings[unit];
    p.states[unit] = UnitState::measured;
    p.work[unit] = finding.cost.work;
    p.record_bytes[unit] = finding.cost.record_bytes;
    if (p.seconds) (*p.seconds)[unit] = finding.cost.seconds;
    for (std::size_t f = 0; f < p.features.size(); ++f) {
      const auto counted = finding.cost.features.find(p.features[f]);
      if (counted != finding.cost.features.end())
        p.counters[f][unit] = counted->second;
      else if (p.features[f] == kDistinct)
        p.counters[f][unit] = static_cast<double>(finding.touched.size());
    }
    p.touched->add(finding.touched);
  }
}

}  // namespace

Result<Profile> profile_skeleton(const Store& store, std::stop_token stop, const Progress& progress) {
  FURLONG_TRY(Skeleton made, skeleton(store, stop, progress));
  return std::move(made.profile);
}

Result<ProfileOutcome> make_profile(const std::shared_ptr<const Store>& store, const Executor& executor,
                                    const ProfileRequest& request) {
  FURLONG_CHECK(check_executor(*store, executor));
  if (store->unit_count() == 0)
    return fail(Code::invalid, "the store has no units: there is nothing to profile");
  FURLONG_TRY(Skeleton made, skeleton(*store, request.stop, request.progress));
  std::unique_ptr<Journal> journal;
  if (!request.journal.empty()) {
    FURLONG_TRY(journal, Journal::open(request.journal, identity(*store, executor, request)));
  }
  Profiling profiling(store, executor, request, made, journal.get());
  FURLONG_CHECK(profiling.run());
  ProfileOutcome outcome;
  outcome.profile = std::move(made.profile);
  outcome.complete = profiling.complete();
  fill(outcome.profile, profiling.findings(), request);
  outcome.measured = static_cast<std::uint32_t>(
      std::count(outcome.profile.states.begin(), outcome.profile.states.end(), UnitState::measured));
  FURLONG_CHECK(check_profile(outcome.profile, "the profile"));
  return outcome;
}

}  // namespace furlong::shard
