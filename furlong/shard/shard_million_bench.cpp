// shard-million: a profile of a million units planned under a budget, beside a plain method in the same run:
// next fit in plain order, with all that a unit can reach counted where only a part is touched.

#include "bench/harness.h"
#include "furlong/base/os/clock.h"
#include "furlong/base/os/memory.h"
#include "furlong/base/text.h"
#include "furlong/shard/internal/synthetic_profile.h"
#include "furlong/shard/profile_plan.h"

namespace {

using furlong::Status;
using furlong::bench::Bench;
using furlong::bench::Better;
namespace shard = furlong::shard;

double mib(std::uint64_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

/// W from rows and from the bytes of the items that a shard needs; 2 GiB and 40 bytes per W a job.
shard::Model model() {
  shard::Model model;
  model.work = {
      shard::TermSum{1e6, {{"rows", shard::TermForm::nlogn, 4}, {"item_bytes", shard::TermForm::linear, 2}}},
      {}};
  model.memory = {shard::Line{2.0 * (1u << 30), 40}, {}};
  return model;
}

struct Planned {
  shard::PackOutcome outcome;
  double seconds = 0;
};

furlong::Result<Planned> plan(const shard::Profile& profile, const shard::PackRequest& request) {
  Planned planned;
  const std::int64_t begin = furlong::system_clock().now_ns();
  FURLONG_TRY(planned.outcome, shard::pack_profile(profile, request));
  planned.seconds = static_cast<double>(furlong::system_clock().now_ns() - begin) * 1e-9;
  return planned;
}

furlong::bench::BenchRow row(const std::string& name, const Planned& planned) {
  std::uint64_t cross = 0;
  for (const shard::PlanShard& one : planned.outcome.plan.shards) cross += one.cross_bytes;
  return {name,
          {{"shards", static_cast<double>(planned.outcome.plan.shards.size())},
           {"lower bound", planned.outcome.lower_bound},
           {"giants", static_cast<double>(planned.outcome.giants.size())},
           {"cross MiB", mib(cross)},
           {"seconds", planned.seconds},
           {"peak MiB so far", mib(furlong::peak_resident_bytes())}},
          "Plans of one profile"};
}

Status run(Bench& bench) {
  FURLONG_TRY(const std::int64_t wanted, furlong::parse_integer(bench.option("units")));
  const auto units = static_cast<shard::UnitIndex>(bench.smoke() ? 2000 : wanted);
  const shard::Profile profile = shard::synthetic::make_profile(units, 1);
  const double before = mib(furlong::peak_resident_bytes());
  shard::PackRequest request;
  request.model = model();
  request.sizing.budget_bytes = std::uint64_t{bench.smoke() ? 3u : 16u} << 30;

  FURLONG_TRY(const Planned planned, plan(profile, request));
  const double peak = mib(furlong::peak_resident_bytes());
  shard::PackRequest simple = request;
  simple.accounting = shard::Accounting::closure;
  simple.order = shard::OrderKind::plain;
  simple.open = 1;
  FURLONG_TRY(const Planned plain, plan(profile, simple));

  const auto shards = static_cast<double>(planned.outcome.plan.shards.size());
  const double bound = planned.outcome.lower_bound;
  bench.metric("units", units, Better::higher, {0, 0});
  bench.metric("shards", shards, Better::lower, {0, 0});
  // Counts each item once over all shards, so it says little where most bytes are shared by many.
  bench.metric("lower_bound", bound, Better::higher, {0, 0});
  bench.metric("plain_shards", static_cast<double>(plain.outcome.plan.shards.size()), Better::lower, {0, 0});
  bench.must(shards <= static_cast<double>(plain.outcome.plan.shards.size()),
             "no more shards than by the plain method");
  std::vector<int> seen(units);
  for (const shard::PlanShard& one : planned.outcome.plan.shards)
    for (const shard::UnitIndex unit : one.units) ++seen[unit];
  bench.must(std::count(seen.begin(), seen.end(), 1) == static_cast<std::ptrdiff_t>(units),
             "each unit is in one shard");
  if (!bench.smoke()) {
    bench.metric("seconds", planned.seconds, Better::lower, {0.3, 0.1});
    bench.metric("peak_mib", peak, Better::lower, {0.05, 16});
  }
  bench.row(row("planned", planned));
  bench.row(row("next fit, closure", plain));
  bench.row({"profile", {{"MiB before planning", before}, {"MiB at its peak", peak}}, "Memory"});
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  return furlong::bench::bench_main(argc, argv, "shard-million", run,
                                    {{"units", "how many there are", "1000000"}});
}
