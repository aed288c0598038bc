// shard: a Metamath library planned for several budgets of memory, run, fitted, planned again by the fit and
// run again, through the built program, each job in a process of its own. How many shards against how many
// would do, what the jobs were predicted to take against what they took, and what planning costs beside them.

#include <algorithm>
#include <cmath>
#include <numeric>

#include "bench/harness.h"
#include "bench/program.h"
#include "furlong/base/json.h"
#include "furlong/base/os/clock.h"
#include "furlong/base/os/file.h"
#include "furlong/base/os/process.h"
#include "furlong/base/text.h"

namespace furlong::bench {
namespace {

namespace fs = std::filesystem;

constexpr double kMiB = 1 << 20;

struct Shard {
  double work = 0, predicted_bytes = 0, check_s = 0, union_bytes = 0;
  double peak_bytes = 0, job_s = 0;  ///< once it was run
};

/// One plan and the run of it.
struct Outcome {
  std::vector<Shard> shards;
  double base_bytes = 0, cut_bytes = 0, budget_bytes = 0;
  double scan_s = 0, fill_s = 0, price_s = 0, merge_s = 0;
  double plan_s = 0, plan_peak_bytes = 0;
  bool complete = false;

  double jobs_s() const {
    return std::accumulate(shards.begin(), shards.end(), 0.0,
                           [](double sum, const Shard& shard) { return sum + shard.job_s; });
  }
  // No packing of what the shards take besides the base has fewer.
  double lower_bound() const {
    double sum = 0;
    for (const Shard& shard : shards) sum += shard.predicted_bytes - base_bytes;
    return std::ceil(sum / (cut_bytes - base_bytes));
  }
  // Furthest that a prediction is from what was measured, as a share of that.
  double worst_miss() const {
    double worst = 0;
    for (const Shard& shard : shards)
      worst = std::max(worst, std::abs(shard.predicted_bytes - shard.peak_bytes) / shard.peak_bytes);
    return worst;
  }
  double over_budget() const {
    return static_cast<double>(
        std::ranges::count_if(shards, [&](const Shard& shard) { return shard.peak_bytes > budget_bytes; }));
  }
};

class Driver {
 public:
  Driver(fs::path furlong, fs::path folder) : furlong_(std::move(furlong)), folder_(std::move(folder)) {}

  fs::path file(const std::string& name) const { return folder_ / name; }

  Result<ProcessEnd> command(std::vector<std::string> words, int expected = 0) const {
    ProcessRequest request;
    request.argv = {furlong_.string()};
    request.argv.insert(request.argv.end(), words.begin(), words.end());
    request.folder = folder_;
    request.environment = {{"FURLONG_CACHE_DIR", (folder_ / "cache").string()},
                           {"FURLONG_STATE_DIR", (folder_ / "state").string()},
                           {"FURLONG_CONFIG_DIR", (folder_ / "config").string()}};
    constexpr double kLimit_s = 3600;
    FURLONG_TRY(ProcessEnd end, system_processes().run(request, kLimit_s));
    if (end.exit_code == expected) return end;
    return fail(Code::internal, "furlong {}: {}: {}", join(words, " "), end.text(), end.standard_error);
  }

  Result<Outcome> plan_and_run(const std::string& name, const std::string& budget, const std::string& model,
                               int jobs) const {
    std::vector<std::string> plan{"shard", "plan",        "s.store", "--max-ram", budget,
                                  "--out", name + ".fsp", "--quiet", "--json",    "-"};
    if (!model.empty()) plan.insert(plan.end(), {"--model", model});
    Outcome outcome;
    const double begin_ms = system_clock().now_ms();
    FURLONG_TRY(const ProcessEnd planned, command(plan));
    outcome.plan_s = 1e-3 * (system_clock().now_ms() - begin_ms);
    outcome.plan_peak_bytes = static_cast<double>(planned.peak_bytes);
    FURLONG_TRY(const Json json, json_parse(planned.standard_output, "the plan's report"));
    FURLONG_TRY(const ProcessEnd ran, command({"run", "s.store", name + ".fsp", "--jobs",
                                               std::to_string(jobs), "--quiet", "--json", "-"}));
    FURLONG_TRY(const Json run, json_parse(ran.standard_output, "the run's report"));
    try {
      const Json& sizing = json.at("sizing");
      outcome.base_bytes = sizing.at("base_bytes").get<double>();
      outcome.budget_bytes = sizing.at("budget_bytes").get<double>();
      outcome.cut_bytes = sizing.at("usable").get<double>() * outcome.budget_bytes;
      outcome.scan_s = json.at("scan_seconds").get<double>();
      outcome.fill_s = json.at("fill_seconds").get<double>();
      outcome.price_s = json.at("price_seconds").get<double>();
      outcome.merge_s = json.at("merge_seconds").get<double>();
      for (const Json& entry : json.at("shards")) {
        Shard shard;
        shard.work = entry.at("cost").get<double>();
        shard.predicted_bytes = entry.at("predicted_bytes").get<double>();
        shard.check_s = entry.at("check_seconds").get<double>();
        shard.union_bytes = entry.at("own_bytes").get<double>() + entry.at("cross_bytes").get<double>();
        outcome.shards.push_back(shard);
      }
      outcome.complete = run.at("complete").get<bool>();
      for (std::size_t i = 0; i < outcome.shards.size(); ++i) {
        outcome.shards[i].peak_bytes = run.at("shards").at(i).at("peak_bytes").get<double>();
        outcome.shards[i].job_s = run.at("shards").at(i).at("job").at("seconds").get<double>();
      }
    } catch (const Json::exception& error) {
      return fail(Code::internal, "a report of furlong: {}", error.what());
    }
    return outcome;
  }

 private:
  const fs::path furlong_, folder_;
};

void report(Bench& bench, const std::string& budget, const Outcome& out, const std::string& group) {
  const auto percent = [&](double seconds) { return 100 * seconds / out.jobs_s(); };
  double peak = 0;
  for (const Shard& shard : out.shards) peak = std::max(peak, shard.peak_bytes);
  bench.row({budget,
             {{"shards", static_cast<double>(out.shards.size())},
              {"would do", out.lower_bound()},
              {"worst miss %", 100 * out.worst_miss()},
              {"largest peak MiB", peak / kMiB},
              {"over budget", out.over_budget()},
              {"jobs s", out.jobs_s()},
              {"scan % of jobs", percent(out.scan_s + out.fill_s)},
              {"re-price %", percent(out.price_s)},
              {"merge %", percent(out.merge_s)}},
             group});
}

// The three heaviest by the plan's cost; nothing unless all of them were run.
void report_heaviest(Bench& bench, const Outcome& out) {
  if (out.shards.size() < 3 || !out.complete) return;
  std::vector<Shard> shards = out.shards;
  std::ranges::sort(shards, std::greater<>(), &Shard::work);
  for (int i = 0; i < 3; ++i) {
    bench.metric(fmt::format("heaviest_{}_s", i + 1), shards[static_cast<std::size_t>(i)].job_s,
                 Better::lower, {.relative = 0.3});
    bench.metric(fmt::format("heaviest_{}_peak_mib", i + 1),
                 shards[static_cast<std::size_t>(i)].peak_bytes / kMiB, Better::lower, {.relative = 0.05});
  }
}

Status run(Bench& bench) {
  FURLONG_TRY(const auto furlong, program());
  FURLONG_TRY(const auto folder, TemporaryFolder::make("furlong-bench"));
  const Driver driver(furlong, folder.path());
  const fs::path database =
      bench.smoke() ? fs::path("/usr/share/metamath/databases/ql.mm") : fs::path(bench.option("database"));
  if (bench.smoke() && !fs::is_regular_file(database)) {
    bench.environment("skipped", database.string() + " is not there (the package metamath-databases)");
    return {};
  }
  FURLONG_TRY(const std::int64_t jobs, parse_integer(bench.option("jobs")));
  FURLONG_CHECK(driver.command(
      {"shard", "store", "metamath", fs::absolute(database).string(), "--out", "s.store", "--quiet"}));
  const std::vector<std::string> budgets = split(bench.smoke() ? "7M,9M,12M" : bench.option("budgets"), ',');
  std::vector<std::string> fit{"shard", "fit", "s.store"};
  for (const std::string& budget : budgets) {
    FURLONG_TRY(const Outcome out,
                driver.plan_and_run("first-" + budget, budget, "", static_cast<int>(jobs)));
    bench.must(out.complete, fmt::format("at {} the run is complete", budget));
    bench.at_most(fmt::format("jobs over the budget of {}", budget), out.over_budget(), 0);
    report(bench, budget, out, "Fitted from three prefixes");
    fit.push_back("first-" + budget + ".fsp");
  }
  fit.insert(fit.end(), {"--out", "model.json"});
  FURLONG_CHECK(driver.command(fit));
  for (const std::string& budget : budgets) {
    FURLONG_TRY(const Outcome out,
                driver.plan_and_run("fitted-" + budget, budget, "model.json", static_cast<int>(jobs)));
    bench.must(out.complete, fmt::format("at {}, fitted, the run is complete", budget));
    bench.at_most(fmt::format("fitted jobs over the budget of {}", budget), out.over_budget(), 0);
    report(bench, budget, out, "Fitted on those runs");
    if (!bench.smoke()) {
      bench.at_most(fmt::format("worst miss of a predicted peak at {}", budget), out.worst_miss(), 0.10);
      bench.at_most(fmt::format("shards over those that would do at {}", budget),
                    static_cast<double>(out.shards.size()) / out.lower_bound(), 1.10);
    }
    if (budget != budgets[budgets.size() / 2]) continue;
    double most = 0, total = 0, bytes = 0;
    for (const Shard& shard : out.shards) {
      most = std::max(most, shard.work);
      total += shard.work;
      bytes += shard.union_bytes;
    }
    bench.metric("scan_s", out.scan_s + out.fill_s, Better::lower, {.relative = 0.3});
    bench.metric("scan_peak_mib", out.plan_peak_bytes / kMiB, Better::lower, {.relative = 0.1});
    bench.metric("shards", static_cast<double>(out.shards.size()), Better::lower);
    bench.metric("lower_bound", out.lower_bound(), Better::lower);
    bench.metric("max_shard_work", most, Better::lower);
    bench.metric("total_work", total, Better::lower);
    bench.metric("union_bytes", bytes, Better::lower);
    report_heaviest(bench, out);
  }
  return {};
}

}  // namespace
}  // namespace furlong::bench

int main(int argc, char** argv) {
  return furlong::bench::bench_main(
      argc, argv, "shard", furlong::bench::run,
      {{"database", "a Metamath database", "/usr/share/metamath/databases/set.mm"},
       {"budgets", "memory of a job; the metrics are those of the one in the middle", "24M,48M,96M"},
       {"jobs", "jobs at once", "1"}});
}
