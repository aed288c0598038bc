#pragma once
// What every bench shares: its options, its result file, its table, its exit code. A bench is
//
//   int main(int argc, char** argv) { return furlong::bench::bench_main(argc, argv, "lattice-count", run); }
//
// with Status run(Bench& bench), in furlong/<part>/x_bench.cpp or bench/x_bench.cpp: the program bench_x.
//
//   bench_x [--json FILE] [--smoke] [--help] [the bench's own options]
//
// Exit 0: ok. 1: it could not run. 2: bad usage. 3: it ran and missed one of its bounds.
// The result file: {"name", "status": "ok" | "missed" | "failed", "metrics": {name: value}, "better": {name:
// "lower" | "higher"}, "noise": {name: {"relative", "absolute"}}, "rows": [{...}], "missed": [text],
// "environment": {"device", "driver", "compiler", "commit", "date", ...}}.

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "furlong/base/error.h"

namespace furlong::bench {

/// Of the result file.
constexpr int kResultVersion = 1;

enum class Better { lower, higher };

/// What a metric moves by from run to run: two values within either are the same.
struct Noise {
  double relative = 0.02;
  double absolute = 0;
};

struct Metric {
  std::string name;
  double value = 0;
  Better better = Better::lower;
  Noise noise;
};

/// An option of one bench, given as "--name VALUE".
struct BenchOption {
  std::string name;
  std::string help;
  std::string value;  ///< the default
};

/// A row's cells, in the order of the columns of its table.
struct BenchRow {
  std::string name;
  std::vector<std::pair<std::string, double>> values;
  std::string group;  ///< rows of one group are printed as one table; the heading of it
};

/// Collects one run's results. Not thread safe.
class Bench {
 public:
  Bench(std::string name, bool smoke, std::map<std::string, std::string> options = {});

  /// A tiny run: the same code on inputs small enough for the tests.
  bool smoke() const { return smoke_; }
  /// The value of one of the bench's own options. The name must be one of those given to bench_main.
  const std::string& option(const std::string& name) const { return options_.at(name); }

  void metric(std::string name, double value, Better better, Noise noise = {});
  /// Values that are not finite become null in the file and "-" in the table.
  void row(BenchRow row);
  /// A bound that must hold. A value that is not a number misses it.
  void at_most(std::string_view what, double value, double limit);
  void at_least(std::string_view what, double value, double limit);
  void must(bool held, std::string what);
  /// Replaces or adds a fact about where the bench ran ("device", "driver").
  void environment(std::string key, std::string value);

  const std::vector<std::string>& missed() const { return missed_; }
  /// The result file's text; `failure` empty when the bench ran.
  std::string json(std::string_view failure) const;
  /// Rows as tables, the metrics, the bounds missed.
  std::string text() const;

 private:
  std::string name_;
  bool smoke_;
  std::map<std::string, std::string> options_;
  std::vector<Metric> metrics_;
  std::vector<BenchRow> rows_;
  std::vector<std::string> missed_;
  std::map<std::string, std::string> environment_;
};

/// Parses the command line, runs the bench, prints its tables, writes the file, returns the exit code.
int bench_main(int argc, char** argv, std::string_view name, const std::function<Status(Bench&)>& run,
               std::vector<BenchOption> options = {});

}  // namespace furlong::bench
