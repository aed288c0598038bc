#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <set>

#include "furlong/base/random.h"
#include "furlong/base/text.h"
#include "furlong/shard/model.h"
#include "furlong/stats/nonnegative_least_squares.h"

namespace furlong::shard {

std::vector<FitRun> fit_runs(std::span<const CostRow> rows) {
  std::vector<FitRun> runs;
  for (const CostRow& row : rows) {
    FitRun& run = runs.emplace_back();
    run.name = fmt::format("shard {}", row.shard);
    run.check = row.cost;
    for (const auto& [name, value] : row.cost.features) {
      if (name == kJobSecondsColumn)
        run.job_seconds = value;
      else if (name == kJobPeakColumn)
        run.job_peak_bytes = static_cast<std::uint64_t>(value);
      else
        run.counters[name] = value;
    }
  }
  return runs;
}

namespace {

constexpr std::size_t kLeastRuns = 3, kRunsPerTerm = 4, kLeastToHoldOut = 5;
constexpr double kLeastUsable = 0.05;

using Runs = std::vector<const FitRun*>;

// A figure of a run, or nothing where it was not measured.
using Figure = std::function<std::optional<double>(const FitRun&)>;

std::optional<double> known(double value) { return value > 0 ? std::optional(value) : std::nullopt; }

struct Misses {  // of predictions against measurements
  std::uint32_t runs = 0;
  double mape = 0, worst_under = 0;
};

Misses judge(const Runs& runs, const Figure& measured, const Figure& predicted) {
  Misses error;
  for (const FitRun* run : runs) {
    const auto truth = measured(*run), guess = predicted(*run);
    if (!truth || !guess) continue;
    ++error.runs;
    error.mape += std::abs(*guess - *truth) / *truth;
    error.worst_under = std::max(error.worst_under, (*truth - *guess) / *truth);
  }
  if (error.runs > 0) error.mape /= error.runs;
  return error;
}

Quality quality(const Runs& seen, const Runs& unseen, const Figure& measured, const Figure& predicted) {
  const Misses own = judge(seen, measured, predicted), other = judge(unseen, measured, predicted);
  return {own.runs, own.mape, own.worst_under, other.runs, other.mape, other.worst_under};
}

// Every feature of the runs that all of them have, linear and n log n.
std::vector<Term> candidates(const Runs& runs) {
  std::vector<Term> terms;
  for (const auto& [name, value] : runs.front()->counters) {
    const bool everywhere = std::all_of(runs.begin(), runs.end(),
                                        [&](const FitRun* run) { return run->counters.contains(name); });
    if (!everywhere) continue;
    terms.push_back({name, TermForm::linear, 1});
    terms.push_back({name, TermForm::nlogn, 1});
  }
  return terms;
}

// Each row is divided by what was measured, so that relative errors count.
std::optional<TermSum> fit_terms(const Runs& seen, const Figure& measured) {
  Runs runs;
  for (const FitRun* run : seen)
    if (measured(*run)) runs.push_back(run);
  if (runs.size() < kLeastRuns) return std::nullopt;
  const std::vector<Term> terms = candidates(runs);
  const std::size_t columns = terms.size() + 1;
  std::vector<double> design;
  for (const FitRun* run : runs) {
    const double truth = *measured(*run);
    design.push_back(1 / truth);
    for (const Term& term : terms) design.push_back(term.at(run->counters.at(term.feature)) / truth);
  }
  const std::vector<double> ones(runs.size(), 1.0);
  const auto x = stats::nonnegative_least_squares(design, columns, ones,
                                                  std::max<std::size_t>(1, runs.size() / kRunsPerTerm));
  if (!x) return std::nullopt;
  TermSum sum{(*x)[0], {}};
  for (std::size_t i = 0; i < terms.size(); ++i)
    if ((*x)[i + 1] > 0) sum.terms.push_back({terms[i].feature, terms[i].form, (*x)[i + 1]});
  return sum;
}

std::optional<Line> fit_line(const Runs& seen, const Figure& measured, const Figure& weight) {
  std::vector<double> design, y;
  for (const FitRun* run : seen) {
    const auto truth = measured(*run), whole = weight(*run);
    if (!truth || !whole) continue;
    design.insert(design.end(), {1 / *whole, run->check.work / *whole});
    y.push_back(*truth / *whole);
  }
  if (y.size() < kLeastRuns) return std::nullopt;
  const auto x = stats::nonnegative_least_squares(design, 2, y);
  if (!x) return std::nullopt;
  return Line{(*x)[0], (*x)[1]};
}

std::optional<Fitted<TermSum>> terms_stage(const Runs& seen, const Runs& unseen, const Figure& measured) {
  const auto sum = fit_terms(seen, measured);
  if (!sum) return std::nullopt;
  return Fitted<TermSum>{*sum, quality(seen, unseen, measured, [&](const FitRun& run) {
                           return std::optional(sum->at(run.counters));
                         })};
}

// `record`: whether the record's bytes come on top of the line, as they do in memory.
std::optional<Fitted<Line>> line_stage(const Runs& seen, const Runs& unseen, const Figure& measured,
                                       bool record) {
  const auto on_top = [record](const FitRun& run) {
    return record ? static_cast<double>(run.check.record_bytes) : 0.0;
  };
  const Figure rest = [&](const FitRun& run) -> std::optional<double> {
    const auto whole = measured(run);
    if (!whole) return whole;
    return std::max(0.0, *whole - on_top(run));
  };
  const auto line = fit_line(seen, rest, measured);
  if (!line) return std::nullopt;
  return Fitted<Line>{*line, quality(seen, unseen, measured, [&](const FitRun& run) {
                        return std::optional(line->at(run.check.work) + on_top(run));
                      })};
}

double usable_share(const Quality& quality, double margin) {
  return std::clamp(1 - quality.worst() - margin, kLeastUsable, 1.0);
}

Status check_run(const FitRun& run) {
  const auto amount = [](double value) { return std::isfinite(value) && value >= 0; };
  if (!amount(run.check.work) || !amount(run.check.seconds) || !amount(run.job_seconds))
    return fail(Code::invalid, "{}: W {}, {} s and {} s are not amounts", run.name, run.check.work,
                run.check.seconds, run.job_seconds);
  for (const auto& [name, value] : run.counters)
    if (!amount(value)) return fail(Code::invalid, "{}: {} of '{}' is no amount", run.name, value, name);
  return {};
}

// Which runs the fit sees. The same runs and seed give the same choice.
void part(std::span<const FitRun> runs, const FitOptions& options, Runs& seen, Runs& unseen) {
  std::vector<std::size_t> places(runs.size());
  std::iota(places.begin(), places.end(), std::size_t{0});
  Random(options.seed, "runs held out").shuffle(std::span(places));
  const auto wanted = static_cast<std::size_t>(options.held_out * static_cast<double>(runs.size()));
  const std::size_t held = runs.size() < kLeastToHoldOut || options.held_out <= 0
                               ? 0
                               : std::clamp<std::size_t>(wanted, 1, runs.size() - kLeastRuns);
  std::sort(places.begin(), places.begin() + static_cast<std::ptrdiff_t>(held));
  std::sort(places.begin() + static_cast<std::ptrdiff_t>(held), places.end());
  for (std::size_t i = 0; i < places.size(); ++i) (i < held ? unseen : seen).push_back(&runs[places[i]]);
}

}  // namespace

Result<Model> fit_model(std::span<const FitRun> runs, const FitOptions& options) {
  std::set<std::string> names;
  for (const FitRun& run : runs) {
    FURLONG_CHECK(check_run(run));
    if (!names.insert(run.name).second) return fail(Code::invalid, "the run '{}' is there twice", run.name);
  }
  if (runs.size() < kLeastRuns)
    return fail(Code::invalid, "a fit takes at least {} runs, there are {}: run more shards", kLeastRuns,
                runs.size());
  if (!(options.held_out >= 0 && options.held_out < 1) || !(options.margin >= 0 && options.margin < 1))
    return fail(Code::invalid,
                "the share held out and the margin must be at least 0 and below 1, not {} and {}",
                options.held_out, options.margin);
  Runs seen, unseen;
  part(runs, options, seen, unseen);

  const Figure work = [](const FitRun& run) { return known(run.check.work); };
  const Figure record = [](const FitRun& run) { return known(static_cast<double>(run.check.record_bytes)); };
  const Figure peak = [](const FitRun& run) { return known(static_cast<double>(run.job_peak_bytes)); };
  const Figure seconds = [](const FitRun& run) { return known(run.job_seconds); };
  const Figure check_peak = [](const FitRun& run) {
    return known(static_cast<double>(run.check.peak_bytes));
  };
  const Figure check_seconds = [](const FitRun& run) { return known(run.check.seconds); };

  Model model;
  model.provenance = options.provenance;
  model.provenance.runs = static_cast<std::uint32_t>(runs.size());
  model.provenance.held_out = static_cast<std::uint32_t>(unseen.size());
  model.provenance.seed = options.seed;
  model.margin = options.margin;
  model.work = terms_stage(seen, unseen, work);
  model.record_bytes = terms_stage(seen, unseen, record);
  model.memory = line_stage(seen, unseen, peak, true);
  model.seconds = line_stage(seen, unseen, seconds, false);
  model.check_memory = line_stage(seen, unseen, check_peak, true);
  model.check_seconds = line_stage(seen, unseen, check_seconds, false);
  if (!model.work && !model.memory && !model.seconds && !model.check_memory && !model.check_seconds)
    return fail(
        Code::invalid,
        "nothing can be fitted: no figure (W, peak or seconds) was measured in {} of the {} runs that the "
        "fit sees",
        kLeastRuns, seen.size());
  if (model.memory) model.usable = usable_share(model.memory->quality, options.margin);
  if (model.memory && model.work) {
    model.memory_from_counters = quality(seen, unseen, peak, [&](const FitRun& run) {
      const double on_top = model.record_bytes ? model.record_bytes->formula.at(run.counters)
                                               : static_cast<double>(run.check.record_bytes);
      return std::optional(model.memory->formula.at(model.work->formula.at(run.counters)) + on_top);
    });
    model.usable_from_counters = usable_share(*model.memory_from_counters, options.margin);
  }
  return model;
}

}  // namespace furlong::shard
