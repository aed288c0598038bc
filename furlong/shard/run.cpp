#include "furlong/shard/run.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <unordered_set>

#include "furlong/base/os/clock.h"
#include "furlong/base/os/memory.h"
#include "furlong/base/text.h"
#include "furlong/shard/internal/bound_claim.h"
#include "furlong/shard/internal/independent_record.h"
#include "furlong/shard/internal/key_hash.h"
#include "furlong/shard/internal/store_format.h"
#include "furlong/shard/internal/tasks.h"
#include "furlong/shard/pace.h"

namespace furlong::shard {

using internal::store_digest_head;

namespace {

double seconds_since(std::int64_t begin_ns) {
  return static_cast<double>(system_clock().now_ns() - begin_ns) * 1e-9;
}

// What a unit promises rests on what others own: looked up in the units themselves, whose keys hold what they
// own, and not in the store's index, which nothing seals.
class Gate {
 public:
  explicit Gate(const RunContext& context) : context_(context), store_(*context.store) {}

  // Every unit and the store's own digest.
  Status whole() {
    Hasher hasher = store_digest_head(store_.executor(), store_.executor_version(), store_.settings());
    const bool earlier = context_.executor.rests_on_earlier();
    for (UnitIndex index = 0; index < store_.unit_count(); ++index) {
      FURLONG_CHECK(go_on());
      FURLONG_TRY(const Unit unit, store_.unit(index));
      hasher.add(unit.key.bytes);
      if (earlier) FURLONG_CHECK(check(unit));
      owned_.insert(unit.items.begin(), unit.items.end());
    }
    if (hasher.finish() != store_.digest())
      return fail(Code::corrupt, "the store's units are not those of its digest {}: make it anew",
                  store_.digest().brief());
    for (UnitIndex index = 0; !earlier && index < store_.unit_count(); ++index) {
      FURLONG_CHECK(go_on());
      FURLONG_TRY(const Unit unit, store_.unit(index));
      FURLONG_CHECK(check(unit));
    }
    return {};
  }

  // The units of one shard, against those that own what they refer to.
  Status only(const PlanShard& shard) {
    std::set<UnitIndex> read;
    for (const UnitIndex index : shard.units) {
      FURLONG_CHECK(go_on());
      FURLONG_TRY(const Unit unit, store_.unit(index));
      for (const Key& reference : unit.references) {
        FURLONG_TRY(const auto owner, store_.owner(reference));
        if (!owner) return unowned(unit, reference);
        if (read.insert(*owner).second) {
          FURLONG_TRY(const Unit owning, store_.unit(*owner));
          owned_.insert(owning.items.begin(), owning.items.end());
        }
        if (!owned_.contains(reference)) return unowned(unit, reference);
        if (!context_.executor.rests_on_earlier() || *owner < index) continue;
        FURLONG_TRY(const Unit later, store_.unit(*owner));
        return rests_on_later(unit, later);
      }
    }
    return {};
  }

 private:
  Status go_on() const {
    if (context_.stop.stop_requested()) return fail(Code::timeout, "stopped at the gate");
    return {};
  }
  static Error unowned(const Unit& unit, const Key& reference) {
    return fail(Code::invalid, "unit '{}' refers to the item {}, which no unit owns; make the store anew",
                one_line(unit.name), reference.hex());
  }
  static Error rests_on_later(const Unit& unit, const Unit& later) {
    return fail(Code::invalid,
                "unit '{}' refers to an item of '{}', which does not come before it: what they promise would "
                "rest on itself; make the store anew",
                one_line(unit.name), one_line(later.name));
  }
  // Against what was owned so far.
  Status check(const Unit& unit) const {
    for (const Key& reference : unit.references) {
      if (owned_.contains(reference)) continue;
      FURLONG_TRY(const auto owner, store_.owner(reference));
      if (!owner) return unowned(unit, reference);
      FURLONG_TRY(const Unit other, store_.unit(*owner));
      if (std::ranges::find(other.items, reference) == other.items.end()) return unowned(unit, reference);
      return rests_on_later(unit, other);
    }
    return {};
  }

  const RunContext& context_;
  const Store& store_;
  std::unordered_set<Key, KeyHash> owned_;
};

}  // namespace

std::string_view shard_state_name(ShardState state) {
  switch (state) {
    case ShardState::kept:
      return "kept";
    case ShardState::done:
      return "done";
    case ShardState::failed:
      return "failed";
    case ShardState::pending:
      return "pending";
  }
  return "pending";
}

Status check_gate(const RunContext& context, const PlanShard* only) {
  FURLONG_CHECK(check_executor(*context.store, context.executor));
  FURLONG_CHECK(require_coverage(context.plan, *context.store));
  Gate gate(context);
  return only != nullptr ? gate.only(*only) : gate.whole();
}

namespace {

VerifyOptions verify_options(const RunContext& context) {
  return {context.sample, context.seed, context.stop};
}

Digest digest_of(const RunContext& context, const Claim& claim) {
  return claim.digest(std::string(context.executor.name()), context.executor.version());
}

// settled(), of a claim that was rebuilt from the store.
Result<std::optional<ReceiptEntry>> settled_claim(const RunContext& context, const PlanShard& shard,
                                                  const Claim& claim, std::string* why) {
  // What does not hold is run anew; what says nothing of the receipt (stopped, no memory, no permission) is
  // an Error.
  const auto distrust = [&](const Error& error, bool verifying) -> Result<std::optional<ReceiptEntry>> {
    switch (error.code()) {
      case Code::denied:
        if (!verifying) return error;  // a folder that may not be read; else a signature that does not hold
        [[fallthrough]];
      case Code::corrupt:
      case Code::incompatible:
      case Code::mismatch:
      case Code::invalid:
      case Code::unavailable:
        if (why != nullptr) *why = error.text();
        return std::optional<ReceiptEntry>();
      default:
        return error;
    }
  };
  auto entry = context.cache.find(digest_of(context, claim));
  if (!entry) return distrust(entry.error(), false);
  if (!*entry) return std::optional<ReceiptEntry>();
  if ((*entry)->executor != context.executor.name() ||
      (*entry)->executor_version != context.executor.version())
    return distrust(fail(Code::incompatible, "its entry is of the executor {} {}", (*entry)->executor,
                         (*entry)->executor_version),
                    false);
  const auto receipt = context.cache.receipt(**entry);
  if (!receipt) return distrust(receipt.error(), false);
  FURLONG_TRY(BoundClaim bound, bind_claim(context.store, shard.units, claim));
  if (const Status status =
          verify_bound(*context.store, context.executor, bound, *receipt, verify_options(context));
      !status)
    return distrust(status.error(), true);
  return std::move(*entry);
}

}  // namespace

Result<Digest> claim_digest(const RunContext& context, const PlanShard& shard) {
  FURLONG_TRY(const Claim claim, make_claim(*context.store, shard.units));
  return digest_of(context, claim);
}

Result<std::optional<ReceiptEntry>> settled(const RunContext& context, const PlanShard& shard,
                                            std::string* why) {
  FURLONG_TRY(const Claim claim, make_claim(*context.store, shard.units));
  return settled_claim(context, shard, claim, why);
}

Result<ReceiptEntry> run_shard(const RunContext& context, const PlanShard& shard, const KeyPair& signer) {
  const Sizing& sizing = context.plan.sizing;
  JobOptions options;
  options.record_cap_bytes = sizing.record_cap_bytes;
  options.memory_bytes = sizing.predicted_peak_bytes(known_cost(shard));
  options.signer = &signer;
  options.stop = context.stop;
  ReceiptEntry entry;
  const auto keep = [&](const Receipt& receipt) -> Status {
    entry.claim = receipt.claim;
    entry.executor = receipt.executor;
    entry.executor_version = receipt.version;
    FURLONG_TRY(entry.receipt, context.cache.put(receipt));
    return {};
  };
  FURLONG_TRY(JobResult result, carry_out(context.store, context.executor, shard.units, options,
                                          verify_options(context), keep));
  entry.check = std::move(result.check);
  entry.job = std::move(result.job);
  FURLONG_CHECK(context.cache.add(entry));
  return entry;
}

Result<Cost> check_shard(const RunContext& context, const PlanShard& shard) {
  const OwnMemoryWatch memory;
  FURLONG_TRY(const auto items, ClaimItems::open(context.store, shard.units));
  FURLONG_TRY(const auto record, context.executor.begin(context.store->settings(),
                                                        context.plan.sizing.record_cap_bytes, context.stop));
  for (const UnitIndex index : shard.units) {
    if (context.stop.stop_requested()) return fail(Code::timeout, "stopped while a shard was checked");
    FURLONG_TRY(const Unit unit, context.store->unit(index));
    FURLONG_CHECK_DOING(record->add(unit, *items), "unit '{}'", one_line(unit.name));
  }
  Cost cost = job_cost(context.executor, *record, *items);
  if (cost.peak_bytes == 0) cost.peak_bytes = memory.peak_bytes();
  return cost;
}

namespace {

// Nothing is known of a shard of unknown cost without a record.
std::uint64_t predicted_bytes(const Plan& plan, const PlanShard& shard) {
  if (shard.record_bytes == 0 && shard.cost_kind == CostKind::unknown) return 0;
  return plan.sizing.predicted_peak_bytes(known_cost(shard));
}

double predicted_seconds(const Plan& plan, const PlanShard& shard) {
  return shard.cost_kind == CostKind::unknown ? 0 : plan.sizing.predicted_seconds(known_cost(shard));
}

// Heaviest first by the plan's cost; where none is known, the plan's order.
std::vector<EngineTask> tasks_of(const RunContext& context, const RunReport& report) {
  std::vector<const PlanShard*> pending;
  for (const ShardOutcome& outcome : report.shards)
    if (outcome.state == ShardState::pending) pending.push_back(context.plan.find(outcome.shard));
  const bool comparable = std::ranges::all_of(pending, [&](const PlanShard* shard) {
    return shard->cost_kind == pending.front()->cost_kind && shard->cost_kind != CostKind::unknown;
  });
  if (comparable)
    std::ranges::stable_sort(pending, std::greater<>(), [](const PlanShard* shard) { return shard->cost; });
  std::vector<EngineTask> tasks;
  for (const PlanShard* shard : pending)
    tasks.push_back({shard->id, fmt::format("shard {}", shard->id), predicted_bytes(context.plan, *shard),
                     predicted_seconds(context.plan, *shard)});
  return tasks;
}

void count(RunReport& report) {
  report.kept = report.done = report.failed = report.pending = 0;
  for (const ShardOutcome& outcome : report.shards) {
    if (outcome.state == ShardState::kept) ++report.kept;
    if (outcome.state == ShardState::done) ++report.done;
    if (outcome.state == ShardState::failed) ++report.failed;
    if (outcome.state == ShardState::pending) ++report.pending;
  }
}

// The entry of a claim, when its receipt is there and is of that claim.
Result<std::optional<ReceiptEntry>> bound_entry(const RunContext& context, const Digest& claim) {
  FURLONG_TRY(auto entry, context.cache.find(claim));
  if (!entry) return entry;
  FURLONG_TRY(const Receipt receipt, context.cache.receipt(*entry));
  if (receipt.claim != claim || receipt.executor != context.executor.name() ||
      receipt.version != context.executor.version())
    return fail(Code::mismatch, "its receipt is of the claim {}, not {}", receipt.claim.brief(),
                claim.brief());
  FURLONG_CHECK(furlong::verify(receipt_message(receipt), receipt.signature, receipt.signer));
  return entry;
}

// Looks up what is settled, on as many threads as jobs may be at work.
Status settle(const RunContext& context, const RunRequest& request, RunReport& report) {
  const unsigned workers = std::max(1u, request.engine.jobs);
  std::vector<std::size_t> indices;
  for (std::size_t i = 0; i < report.shards.size(); ++i) indices.push_back(i);
  Pace pace("receipts", indices.size(), request.engine.progress);
  TaskPool<std::size_t> pool(workers, std::move(indices));
  const Status status = run_tasks<std::size_t>(pool, workers, [&](unsigned, std::size_t& i) -> Status {
    ShardOutcome& outcome = report.shards[i];  // each thread writes to its own
    const PlanShard& shard = *context.plan.find(outcome.shard);
    const std::uint64_t running = pace.begin(fmt::format("shard {}", shard.id));
    FURLONG_TRY(const Claim claim, make_claim(*context.store, shard.units));
    outcome.claim = digest_of(context, claim);
    FURLONG_TRY(outcome.entry, settled_claim(context, shard, claim, &outcome.why));
    if (outcome.entry) outcome.state = ShardState::kept;
    // Nobody may take it for the receipt of the job that runs now.
    if (!outcome.why.empty() && !request.dry_run) FURLONG_CHECK(context.cache.forget(outcome.claim));
    pace.finish(running);
    pace.advance(1);
    return {};
  });
  pace.end();
  return status;
}

// A job may have written over what another one's receipt attests.
Status look_again(const RunContext& context, RunReport& report) {
  for (ShardOutcome& outcome : report.shards) {
    if (!outcome.entry) continue;
    std::string why;
    FURLONG_TRY(const auto holds, settled(context, *context.plan.find(outcome.shard), &why));
    if (holds) continue;
    outcome.state = ShardState::failed;
    outcome.entry.reset();
    outcome.why = "its receipt held, and no longer does now that the others have run: " + why;
  }
  return {};
}

}  // namespace

Result<RunReport> run_plan(const RunContext& context, Engine& engine, const RunRequest& request) {
  const std::int64_t begin_ns = system_clock().now_ns();
  RunReport report;
  report.sample = context.sample;
  const auto stopped = [&](const Status& status) {
    report.stopped = !status && status.error().code() == Code::timeout && context.stop.stop_requested();
    return report.stopped;
  };
  if (const Status gate = check_gate(context); stopped(gate))
    return report;
  else if (!gate)
    return gate.error();
  for (const PlanShard& shard : context.plan.shards) {
    if (request.only && shard.id != *request.only) continue;
    ShardOutcome outcome;
    outcome.shard = shard.id;
    report.shards.push_back(std::move(outcome));
  }
  if (report.shards.empty() && request.only)
    return fail(Code::invalid, "the plan has no shard {}: it has {} shards", *request.only,
                context.plan.shards.size());
  const Status looked = report.shards.empty() ? Status() : settle(context, request, report);
  count(report);
  if (stopped(looked)) return report;
  if (!looked) return looked.error();
  const std::vector<EngineTask> tasks = tasks_of(context, report);
  if (tasks.empty() || request.dry_run) {
    report.seconds = seconds_since(begin_ns);
    return report;
  }
  std::map<ShardId, ShardOutcome*> outcomes;
  for (ShardOutcome& outcome : report.shards) outcomes[outcome.shard] = &outcome;
  const auto ended = [&](const TaskEnd& end) {
    ShardOutcome& outcome = *outcomes.at(end.shard);
    outcome.seconds = end.seconds;
    outcome.peak_bytes = end.peak_bytes;
    // A job that says that all is well has verified its receipt before it wrote the entry; that it is there,
    // has its bytes and is of the claim is seen here.
    auto entry =
        end.error ? Result<std::optional<ReceiptEntry>>(std::nullopt) : bound_entry(context, outcome.claim);
    if (!end.error && entry && *entry) {
      outcome.state = ShardState::done;
      outcome.entry = std::move(**entry);
      if (!outcome.why.empty()) outcome.why = "ran anew: " + outcome.why;
      if (outcome.peak_bytes == 0) outcome.peak_bytes = outcome.entry->job.peak_bytes;
      if (outcome.seconds == 0) outcome.seconds = outcome.entry->job.seconds;  // Slurm counts whole ones
      return true;
    }
    if (end.error && end.error->code() == Code::timeout && context.stop.stop_requested())
      return false;  // it was stopped, and stays pending
    outcome.state = ShardState::failed;
    outcome.why = end.error ? end.error->text()
                  : !entry  ? entry.error().text()
                            : "the job ended without a receipt in the cache";
    return !request.fail_fast;
  };
  const Status status = engine.run(tasks, request.engine, ended);
  if (status && context.executor.attests_files()) FURLONG_CHECK(look_again(context, report));
  count(report);
  report.seconds = seconds_since(begin_ns);
  if (!stopped(status) && !status) return status.error();
  return report;
}

}  // namespace furlong::shard
