#include "furlong/shard/make_plan.h"

#include <algorithm>
#include <cmath>
#include <thread>

#include "furlong/base/json.h"
#include "furlong/base/os/clock.h"
#include "furlong/base/os/memory.h"
#include "furlong/base/text.h"
#include "furlong/shard/internal/bound_claim.h"
#include "furlong/shard/internal/independent_record.h"
#include "furlong/shard/receipt_cache.h"
#include "furlong/stats/least_squares.h"

namespace furlong::shard {

PrefixJob prefix_job_here(std::shared_ptr<const Store> store, const Executor& executor,
                          std::stop_token stop) {
  return [store = std::move(store), &executor, stop](std::span<const UnitIndex> units) -> Result<Cost> {
    const KeyPair key = KeyPair::generate();  // for a receipt that nobody keeps
    const JobOptions options{.record_cap_bytes = 0, .memory_bytes = 0, .signer = &key, .stop = stop};
    const auto forget = [](const Receipt& receipt) -> Status {
      static_cast<void>(print_receipt(receipt));  // keeping one takes its bytes once more
      return {};
    };
    FURLONG_TRY(const JobResult result, carry_out(store, executor, units, options, {1, 1, stop}, forget));
    Cost cost = result.check;
    cost.peak_bytes = result.job.peak_bytes;
    return cost;
  };
}

std::string PrefixFit::text() const {
  std::string runs;
  for (const PrefixCost& prefix : prefixes)
    runs += fmt::format("{}{} units: W {:.4g}, peak {}", runs.empty() ? "" : "; ", prefix.units, prefix.work,
                        human_bytes(prefix.peak_bytes));
  return fmt::format("nothing was fitted yet: from {} prefixes ({}) a job takes {} and {:.4g} bytes per W",
                     prefixes.size(), runs, human_bytes(base_bytes), ram_per_work);
}

PrefixFit fit_prefixes(std::vector<PrefixCost> prefixes) {
  PrefixFit fit;
  std::vector<double> design, y;
  double highest = 0, steepest = 0;
  for (const PrefixCost& prefix : prefixes) {
    const double rest = static_cast<double>(prefix.peak_bytes) -
                        static_cast<double>(std::min(prefix.record_bytes, prefix.peak_bytes));
    design.insert(design.end(), {1.0, prefix.work});
    y.push_back(rest);
    highest = std::max(highest, rest);
    if (prefix.work > 0) steepest = std::max(steepest, rest / prefix.work);
  }
  const auto line = stats::least_squares(design, 2, y);
  fit.prefixes = std::move(prefixes);
  fit.base_bytes = static_cast<std::uint64_t>(std::ceil(highest));
  if (!line || line->coefficients[1] < 0) return fit;  // no line, or one that falls: the highest point
  if (line->coefficients[0] < 0) {
    fit.base_bytes = 0;
    fit.ram_per_work = steepest;
    return fit;
  }
  fit.base_bytes = static_cast<std::uint64_t>(std::ceil(line->coefficients[0]));
  fit.ram_per_work = line->coefficients[1];
  return fit;
}

namespace {

// The units whose record fills a third of the budget, as far as they can be executed: with what a job takes
// besides, the longest is a job of about the size that is planned.
Result<std::vector<UnitIndex>> longest_prefix(const std::shared_ptr<const Store>& store,
                                              const Executor& executor, std::span<const UnitIndex> order,
                                              const Sizing& sizing, std::stop_token stop) {
  constexpr std::uint64_t kShare = 3, kFree = 1u << 30;
  const std::uint64_t most = sizing.budget_bytes != 0 ? sizing.budget_bytes / kShare : kFree;
  FURLONG_TRY(const auto record, executor.begin(store->settings(), most, stop));
  FURLONG_TRY(const auto items, ClaimItems::open(store, {}));
  std::vector<UnitIndex> units;
  for (const UnitIndex index : order) {
    if (stop.stop_requested()) return fail(Code::timeout, "stopped while the prefixes were chosen");
    FURLONG_TRY(const Unit unit, store->unit(index));
    FURLONG_CHECK(items->add(index));
    const Status status = record->add(unit, *items);
    if (status) {
      if (sizing.budget_bytes != 0 && job_cost(executor, *record, *items).record_bytes > most) break;
      units.push_back(index);
      if (sizing.budget_seconds > 0 && record->cost().seconds > sizing.budget_seconds / kShare) break;
      continue;
    }
    if (status.error().code() == Code::mismatch) continue;
    if (status.error().code() != Code::exhausted)
      return Error(status.error()).with(fmt::format("unit '{}'", one_line(unit.name)));
    if (!units.empty()) break;  // else the unit is too large for this, and the next one may not be
  }
  return units;
}

Result<std::vector<PrefixCost>> parse_prefixes(const std::string& text) {
  const std::string name = "a journal's prefixes";
  FURLONG_TRY(const Json json, json_parse(text, name));
  std::vector<PrefixCost> prefixes;
  try {
    for (const Json& entry : json)
      prefixes.push_back({entry.at("units").get<std::uint32_t>(), entry.at("work").get<double>(),
                          entry.at("record_bytes").get<std::uint64_t>(),
                          entry.at("peak_bytes").get<std::uint64_t>()});
  } catch (const Json::exception& error) {
    return fail(Code::corrupt, "{}: {}", name, error.what());
  }
  return prefixes;
}

}  // namespace

Result<PrefixFit> measure_prefixes(const std::shared_ptr<const Store>& store, const Executor& executor,
                                   std::span<const UnitIndex> order, const Sizing& sizing,
                                   const PrefixJob& job, Journal& journal, std::stop_token stop) {
  if (const auto known = journal.find("fit", "prefixes")) {
    FURLONG_TRY(auto prefixes, parse_prefixes(*known));
    return fit_prefixes(std::move(prefixes));
  }
  FURLONG_TRY(const auto units, longest_prefix(store, executor, order, sizing, stop));
  if (units.empty())
    return fail(Code::invalid,
                "no unit can be executed within a third of the budget: nothing to fit a job's "
                "memory by; give a larger budget, or fitted figures");
  std::vector<PrefixCost> prefixes;
  Json json = Json::array();
  for (const std::size_t divisor : {4, 2, 1}) {
    const std::size_t count = std::max<std::size_t>(1, units.size() / divisor);
    if (!prefixes.empty() && prefixes.back().units == count) continue;
    FURLONG_TRY(const Cost cost, job(std::span(units).first(count)));
    prefixes.push_back({static_cast<std::uint32_t>(count), cost.work, cost.record_bytes, cost.peak_bytes});
    const PrefixCost& last = prefixes.back();
    json.push_back({{"units", last.units},
                    {"work", last.work},
                    {"record_bytes", last.record_bytes},
                    {"peak_bytes", last.peak_bytes}});
  }
  FURLONG_CHECK(journal.add("fit", "prefixes", json_line(json)));
  return fit_prefixes(std::move(prefixes));
}

void complete_plan(Plan& plan, const Sharing& sharing) {
  // Flat marks in place of sets: a plan may have a million units.
  std::vector<std::uint32_t> unit_mark(sharing.units()), item_mark(sharing.items().size());
  std::uint32_t mark = 0;
  std::vector<ShardId> ids;
  for (PlanShard& shard : plan.shards) {
    ids.push_back(shard.id);
    shard.own_bytes = sharing.own_bytes(shard.units);
    shard.cross_bytes = 0;
    shard.foreign = 0;
    ++mark;
    for (const UnitIndex unit : shard.units) unit_mark[unit] = mark;
    for (const UnitIndex unit : shard.units)
      for (const std::uint32_t item : sharing.references(unit)) {
        if (unit_mark[sharing.items()[item].owner] == mark || item_mark[item] == mark) continue;
        item_mark[item] = mark;
        shard.cross_bytes += sharing.items()[item].bytes;
        ++shard.foreign;
      }
  }
  plan.tree = balanced_tree(ids);
}

namespace {

// What the findings of a journal depend on: everything but who works and what happens at a failure.
std::string identity(const Store& store, const Executor& executor, const PlanRequest& request,
                     const OrderChoice& order) {
  Json json;
  json["store"] = store.digest().hex();
  json["executor"] = executor.name();
  json["executor_version"] = executor.version();
  json["order"] = order_name(order.kind);
  json["seed"] = request.seed;
  json["chunk_units"] = request.chunk_units;
  json["units"] = order.order.size();
  if (executor.independent()) return json_line(json);  // what units cost serves every budget
  const Sizing& s = request.sizing;
  json["budget_bytes"] = s.budget_bytes;
  json["budget_seconds"] = s.budget_seconds;
  json["record_cap_bytes"] = s.record_cap_bytes;
  json["usable"] = s.usable;
  json["fitted"] = s.fitted;
  json["base_bytes"] = s.base_bytes;
  json["ram_per_work"] = s.ram_per_work;
  json["base_seconds"] = s.base_seconds;
  json["seconds_per_work"] = s.seconds_per_work;
  return json_line(json);
}

Result<OrderChoice> decide_order(const Sharing& sharing, const PlanRequest& request) {
  constexpr std::uint32_t kSegments = 16;
  OrderChoice choice;
  if (request.order) {
    choice.kind = *request.order;
    FURLONG_TRY(choice.order, order_units(sharing, choice.kind, request.seed));
  } else {
    FURLONG_TRY(choice, choose_order(sharing, kSegments, request.seed));
  }
  if (request.limit_units != 0)
    std::erase_if(choice.order, [&](UnitIndex unit) { return unit >= request.limit_units; });
  return choice;
}

class Stopwatch {
 public:
  double seconds() {
    const std::int64_t now_ns = system_clock().now_ns();
    return static_cast<double>(now_ns - std::exchange(since_ns_, now_ns)) * 1e-9;
  }

 private:
  std::int64_t since_ns_ = system_clock().now_ns();
};

}  // namespace

namespace {

// Of the cut: a segment that fills less of it was ended by its chunk's end, or by a unit that is large.
constexpr double kLooseFill = 0.9;

double fill(const Sizing& sizing, const Cost& cost) {
  const auto share = [&](double taken, double base, double budget) {
    const double room = sizing.usable * budget - base;
    return budget > 0 && room > 0 ? (taken - base) / room : 0;
  };
  return std::max(share(sizing.predicted_bytes(cost), static_cast<double>(sizing.base_bytes),
                        static_cast<double>(sizing.budget_bytes)),
                  share(sizing.predicted_seconds(cost), sizing.base_seconds, sizing.budget_seconds));
}

// The borders of chunks leave segments that are not full: their units are scanned once more, as one chunk.
Result<std::vector<Segment>> fill_loose(const std::shared_ptr<const Store>& store, const Executor& executor,
                                        std::vector<Segment> segments, ScanOptions options,
                                        Journal& journal) {
  std::vector<Segment> full;
  std::vector<UnitIndex> loose;
  std::size_t count = 0;
  for (Segment& segment : segments) {
    if (segment.alone || fill(options.sizing, segment.cost) >= kLooseFill) {
      full.push_back(std::move(segment));
      continue;
    }
    loose.insert(loose.end(), segment.units.begin(), segment.units.end());
    ++count;
  }
  if (count < 2) {
    for (Segment& segment : segments)
      if (!segment.units.empty()) full.push_back(std::move(segment));  // the one that was left
    return full;
  }
  options.chunk_units = static_cast<std::uint32_t>(loose.size());
  options.findings = "loose";
  options.fail_fast = true;  // each of them was executed before
  FURLONG_TRY(ScanResult scanned, scan(store, executor, loose, options, journal));
  if (!scanned.complete)
    return fail(Code::mismatch, "unit {} failed, and had not before: {}", scanned.failed.front().unit,
                scanned.failed.front().why);
  full.insert(full.end(), std::make_move_iterator(scanned.segments.begin()),
              std::make_move_iterator(scanned.segments.end()));
  return full;
}

}  // namespace

Result<PlanOutcome> make_plan(std::shared_ptr<const Store> store, const Executor& executor,
                              const PlanRequest& request) {
  FURLONG_CHECK(check_executor(*store, executor));
  if (store->unit_count() == 0)
    return fail(Code::invalid, "the store has no units: there is nothing to plan");
  FURLONG_TRY(const Sharing sharing, Sharing::read(*store, request.stop, request.progress));
  PlanOutcome outcome;
  FURLONG_TRY(outcome.order, decide_order(sharing, request));
  const std::vector<UnitIndex>& order = outcome.order.order;

  auto journal = std::make_unique<Journal>();
  if (!request.journal.empty()) {
    FURLONG_TRY(journal, Journal::open(request.journal, identity(*store, executor, request, outcome.order)));
  }

  Sizing sizing = request.sizing;
  if (!sizing.fitted && executor.independent()) {
    sizing.fitted = true;  // a unit's measured peak is what its job takes: there is nothing to fit
  } else if (!sizing.fitted) {
    const PrefixJob job =
        request.prefix_job ? request.prefix_job : prefix_job_here(store, executor, request.stop);
    FURLONG_TRY(outcome.fit, measure_prefixes(store, executor, order, sizing, job, *journal, request.stop));
    sizing.base_bytes = outcome.fit->base_bytes;
    sizing.ram_per_work = outcome.fit->ram_per_work;
    sizing.fitted = true;
  }
  FURLONG_CHECK(sizing.check());
  if (sizing.record_cap_bytes == 0 && sizing.budget_bytes != 0)
    sizing.record_cap_bytes = sizing.budget_bytes - sizing.base_bytes;

  outcome.workers = request.workers;
  outcome.workers_text = fmt::format("{}, as asked for", request.workers);
  if (request.workers == 0) {
    ChosenWorkers chosen = choose_workers(request.box_bytes != 0 ? request.box_bytes : total_memory_bytes(),
                                          sizing.record_cap_bytes, std::thread::hardware_concurrency());
    outcome.workers = chosen.workers;
    outcome.workers_text = std::move(chosen.text);
  }

  Plan& plan = outcome.plan;
  plan.store = store->digest();
  plan.executor = executor.name();
  plan.executor_version = executor.version();
  plan.sizing = sizing;
  plan.order = order_name(outcome.order.kind);
  plan.seed = request.seed;
  if (order.size() < store->unit_count()) plan.slice = static_cast<std::uint32_t>(order.size());

  Stopwatch watch;
  ScanOptions scanning;
  scanning.sizing = sizing;
  scanning.workers = outcome.workers;
  scanning.fail_fast = request.fail_fast;
  scanning.chunk_units = request.chunk_units;
  scanning.stop = request.stop;
  scanning.progress = request.progress;
  FURLONG_TRY(ScanResult scanned, scan(store, executor, order, scanning, *journal));
  outcome.scan_seconds = watch.seconds();
  outcome.segments = scanned.segments.size();
  plan.failed = std::move(scanned.failed);
  outcome.complete = scanned.complete;
  if (!outcome.complete) return outcome;
  if (request.merge) {
    FURLONG_TRY(scanned.segments,
                fill_loose(store, executor, std::move(scanned.segments), scanning, *journal));
    std::vector<std::size_t> place(store->unit_count());
    for (std::size_t i = 0; i < order.size(); ++i) place[order[i]] = i;
    std::ranges::sort(scanned.segments, {},
                      [&](const Segment& segment) { return place[segment.units.front()]; });
    outcome.fill_seconds = watch.seconds();
  }

  std::vector<PricedShard> shards;
  for (Segment& segment : scanned.segments)
    shards.push_back({std::move(segment.units), segment.cost, segment.alone});
  const PriceOptions pricing{sizing, outcome.workers, request.stop, request.progress};
  FURLONG_CHECK(price_shards(store, executor, shards, pricing, *journal));
  outcome.price_seconds = watch.seconds();
  if (request.merge) {
    FURLONG_TRY(outcome.merging, merge(store, executor, sharing, order, shards, pricing, *journal));
  }
  outcome.merge_seconds = watch.seconds();

  for (std::size_t i = 0; i < shards.size(); ++i) {
    PlanShard shard;
    shard.id = static_cast<ShardId>(i);
    shard.cost_kind = request.cost_kind;
    shard.cost =
        request.cost_kind == CostKind::command_seconds ? shards[i].cost.seconds : shards[i].cost.work;
    shard.record_bytes = shards[i].cost.record_bytes;
    shard.seconds = shards[i].cost.seconds;
    shard.units = std::move(shards[i].units);
    if (shards[i].alone) outcome.alone.push_back(shard.id);
    outcome.costs[shard.id] = shards[i].cost;
    plan.shards.push_back(std::move(shard));
  }
  complete_plan(plan, sharing);
  if (!request.journal.empty()) plan.journal = journal->digest(journal_scope(executor, sizing));
  return outcome;
}

}  // namespace furlong::shard
