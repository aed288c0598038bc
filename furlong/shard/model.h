#pragma once
// Models of what a shard will cost: stage 1 goes from counters, which are known before anything runs, to W;
// stage 2 from W, predicted or measured, to memory and seconds. Fitted on measured runs, judged on runs that
// the fit never saw. docs/formats/model.md.

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "furlong/base/os/file.h"
#include "furlong/shard/plan.h"

namespace furlong::shard {

inline constexpr int kModelVersion = 1;

/// x * log2(x + 2): what sorting or indexing x things takes. Superadditive: that of a sum is at least the
/// sum.
double nlogn(double x);

/// By name: Cost::features, or what profile_counters() counts.
using Counters = std::map<std::string, double>;

enum class TermForm { linear, nlogn };
std::string_view term_form_name(TermForm form);  ///< "nlogn"
struct Term {
  std::string feature;
  TermForm form = TermForm::linear;
  double coefficient = 0;  ///< not negative, so that the model is monotone
  double at(double x) const { return coefficient * (form == TermForm::nlogn ? nlogn(x) : x); }
  bool operator==(const Term&) const = default;
};

/// Stage 1: base + the sum of the terms. A counter that is not there counts 0.
struct TermSum {
  double base = 0;
  std::vector<Term> terms;
  double at(const Counters& counters) const;
  bool operator==(const TermSum&) const = default;
};

/// Stage 2: base + per_work * W.
struct Line {
  double base = 0, per_work = 0;
  double at(double work) const { return base + per_work * work; }
  bool operator==(const Line&) const = default;
};

/// How well a formula foretells measured runs.
struct Quality {
  std::uint32_t runs = 0;    ///< that it was fitted on
  double mape = 0;           ///< mean of |predicted - measured| / measured over them
  double worst_under = 0;    ///< greatest (measured - predicted) / measured, 0 where none was under
  std::uint32_t unseen = 0;  ///< runs that the fit never saw; the two below are 0 without any
  double unseen_mape = 0, unseen_worst_under = 0;
  double worst() const { return worst_under > unseen_worst_under ? worst_under : unseen_worst_under; }
  bool operator==(const Quality&) const = default;
};

template <class Formula>
struct Fitted {
  Formula formula;
  Quality quality;
  bool operator==(const Fitted&) const = default;
};

/// Where a model comes from. The caller says machine and date.
struct Provenance {
  std::string store;  ///< a digest, or a name
  std::string executor;
  int executor_version = 0;
  std::string machine;
  std::string date;        ///< "2026-03-01"
  std::string note;        ///< what else should be known
  std::uint32_t runs = 0;  ///< in all, those held out too
  std::uint32_t held_out = 0;
  std::uint64_t seed = 0;  ///< of the choice of those
  bool operator==(const Provenance&) const = default;
};

struct Model {
  Provenance provenance;
  std::optional<Fitted<TermSum>> work;          ///< counters to W
  std::optional<Fitted<TermSum>> record_bytes;  ///< counters to filled bytes of the record
  /// W to a job's peak less the record's bytes; judged on the whole peak.
  std::optional<Fitted<Line>> memory;
  std::optional<Fitted<Line>> seconds;                      ///< W to a job's wall seconds
  std::optional<Fitted<Line>> check_memory, check_seconds;  ///< the same of the check alone
  /// The whole way from counters to a job's peak.
  std::optional<Quality> memory_from_counters;
  double margin = 0;
  /// Recommended shares of a budget: 1 - the worst under-prediction of memory - margin, with a measured W and
  /// with one predicted from counters; absent where nothing was fitted to tell by.
  std::optional<double> usable, usable_from_counters;
  bool operator==(const Model&) const = default;
};

/// Where the W comes from that a model is applied to.
enum class WorkSource { measured, counters };

/// Sets base_bytes, ram_per_work, base_seconds, seconds_per_work, usable and fitted as far as the model has
/// them. `invalid` where the sizing has a budget of memory and the model no memory, or the same of time.
Status apply_model(const Model& model, Sizing& sizing, WorkSource source = WorkSource::measured);

/// What the job of a shard is predicted to take, from the W that its check measured: asked before an
/// expensive job.
struct Gate {
  double work = 0;
  std::uint64_t bytes = 0;  ///< predicted peak; 0: the model does not say
  double seconds = 0;       ///< 0: the model does not say
  bool over_budget = false;
  bool reaches_cut = false;  ///< over the usable share of a budget
  std::string text() const;  ///< one line for people
};
/// `budgets`: only its budgets are looked at; the errors of apply_model().
Result<Gate> gate(const Model& model, const Cost& check, Sizing budgets);

/// One measured shard.
struct FitRun {
  std::string name;                  ///< "shard 3"
  Counters counters;                 ///< what was known of it beforehand
  Cost check;                        ///< measured cold; its features are not looked at
  double job_seconds = 0;            ///< 0: not measured
  std::uint64_t job_peak_bytes = 0;  ///< 0: not measured
};

/// Columns of a costs CSV beside the features: what the job of a shard took.
inline constexpr std::string_view kJobSecondsColumn = "job_seconds", kJobPeakColumn = "job_peak_bytes";
/// The rows of a costs CSV (parse_costs_csv) as runs: features become counters, but for the two columns
/// above.
std::vector<FitRun> fit_runs(std::span<const CostRow> rows);

struct FitOptions {
  double held_out =
      0.25;  ///< share of the runs that the fit does not see; at least one of five or more, else none
  std::uint64_t seed = 1;  ///< of which ones
  double margin = 0.05;    ///< of `usable`
  Provenance provenance;   ///< runs, held_out and seed are set
};

/// Least squares of relative errors with coefficients that are not negative; a stage 1 formula has at most a
/// term for each four runs that it is fitted on. A formula is fitted where at least three runs have what it
/// takes. `invalid` names the run whose figure cannot be (not finite, negative, twice the name), and tells
/// when no formula can be fitted at all.
Result<Model> fit_model(std::span<const FitRun> runs, const FitOptions& options);

/// For people: formulas, their quality on seen and unseen runs, provenance, the recommended usable share.
std::string model_text(const Model& model);
/// JSON, deterministic.
std::string print_model(const Model& model);
/// `invalid` for what is no model, `incompatible` for another version; both name `name`.
Result<Model> parse_model(std::string_view text, const std::string& name);
Result<Model> read_model(Files& files, const std::filesystem::path& file);
Status write_model(Files& files, const std::filesystem::path& file, const Model& model);

}  // namespace furlong::shard
