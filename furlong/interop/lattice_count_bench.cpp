// lattice-count: the valid points of four published tuning problems, counted and listed by Space, against the
// plain way: nested loops over the whole product that interpret every constraint. Both in the same run.
//
// The counts are bounds (exit 3). A yardstick from outside: the fastest public tuner, in Python, was seen to
// list gemm in 0.40 s and hotspot in 0.69 s; the goal is a twentieth of that, 20 and 34 ms.

#include <algorithm>
#include <limits>

#include "bench/harness.h"
#include "furlong/base/os/clock.h"
#include "furlong/base/os/file.h"
#include "furlong/base/random.h"
#include "furlong/interop/t1.h"
#include "furlong/lattice/space.h"

namespace {

using furlong::Result;
using furlong::Status;
using furlong::bench::Bench;
using furlong::bench::Better;
using furlong::interop::T1Problem;
using furlong::lattice::Lattice;
using furlong::lattice::Space;
using furlong::lattice::Value;

struct Problem {
  const char* name;
  std::uint64_t count;
  double goal_ms;  ///< 0: none
  bool small;
};

constexpr Problem problems[] = {{"convolution", 4362, 0, true},
                                {"dedispersion", 11130, 0, true},
                                {"gemm", 116928, 20, false},
                                {"hotspot", 82984, 34, false}};

/// Every constraint's names once resolved: to a knob, or to a fact.
struct Resolved {
  const furlong::lattice::Expression* expression;
  std::vector<std::size_t> knobs;  // by variable; past the last knob: a fact
  std::vector<Value> values;       // by variable
};

/// The plain way. Returns the number of valid points.
Result<std::uint64_t> nested_loops(const T1Problem& problem) {
  const Lattice& lattice = problem.lattice;
  const auto facts = problem.facts();
  std::vector<Resolved> constraints;
  for (const auto& constraint : lattice.constraints) {
    Resolved resolved{&constraint.expression, {}, {}};
    for (const auto& name : constraint.expression.variables()) {
      resolved.knobs.push_back(lattice.knob_index(name).value_or(lattice.knobs.size()));
      resolved.values.push_back(facts(name).value_or(Value()));
    }
    constraints.push_back(std::move(resolved));
  }
  std::vector<std::size_t> at(lattice.knobs.size(), 0);
  std::uint64_t valid = 0;
  while (true) {
    bool holds = true;
    for (auto& constraint : constraints) {
      for (std::size_t v = 0; v < constraint.knobs.size(); ++v)
        if (const std::size_t k = constraint.knobs[v]; k < at.size())
          constraint.values[v] = lattice.knobs[k].values[at[k]];
      FURLONG_TRY(const Value value, constraint.expression->evaluate_in_order(constraint.values));
      holds = value.truthy();
      if (!holds) break;
    }
    valid += holds ? 1 : 0;
    std::size_t k = at.size();
    while (k > 0 && ++at[k - 1] == lattice.knobs[k - 1].values.size()) at[--k] = 0;
    if (k == 0) return valid;
  }
}

double elapsed_ms(std::int64_t since) {
  return static_cast<double>(furlong::system_clock().now_ns() - since) * 1e-6;
}

/// Building the space and writing every point into one table, as a tuner's list of configurations.
Result<double> list_ms(const T1Problem& problem, std::vector<std::uint32_t>& table) {
  const auto start = furlong::system_clock().now_ns();
  FURLONG_TRY(const Space space, Space::build(problem.lattice, problem.facts()));
  table.clear();
  table.reserve(space.count() * problem.lattice.knobs.size());
  for (auto cursor = space.begin_cursor(); cursor.valid(); cursor.next())
    table.insert(table.end(), cursor.point().indices.begin(), cursor.point().indices.end());
  return elapsed_ms(start);
}

/// The i-th point and back, for random i, without listing: µs each.
double at_us(const Space& space, bool& agrees) {
  constexpr int times = 2000;
  furlong::Random random(1, "lattice-count");
  const auto start = furlong::system_clock().now_ns();
  for (int i = 0; i < times; ++i) {
    const auto index = random.below(space.count());
    agrees = agrees && space.index_of(space.at(index)) == index;
  }
  return elapsed_ms(start) * 1e3 / times;
}

Status measure(Bench& bench, const Problem& expected) {
  const std::string path = bench.option("data") + "/" + expected.name + "_milo.json";
  FURLONG_TRY(const std::string text, furlong::system_files().read(path));
  FURLONG_TRY(const T1Problem problem, furlong::interop::read_t1(text, path));

  const int repeats = bench.smoke() ? 1 : 9;
  std::vector<std::uint32_t> table;
  double best_ms = std::numeric_limits<double>::max();
  for (int i = 0; i < repeats; ++i) {
    FURLONG_TRY(const double ms, list_ms(problem, table));
    best_ms = std::min(best_ms, ms);
  }
  FURLONG_TRY(const Space space, Space::build(problem.lattice, problem.facts()));
  const auto listed = static_cast<std::uint64_t>(table.size() / problem.lattice.knobs.size());

  double nested_ms = std::numeric_limits<double>::max();
  std::uint64_t nested_count = 0;
  for (int i = 0; i < (bench.smoke() || !expected.small ? 1 : 3); ++i) {
    const auto start = furlong::system_clock().now_ns();
    FURLONG_TRY(nested_count, nested_loops(problem));
    nested_ms = std::min(nested_ms, elapsed_ms(start));
  }
  bool agrees = true;
  const double one_us = at_us(space, agrees);

  const std::string name = expected.name;
  bench.must(space.count() == expected.count,
             fmt::format("{}: {} valid points; {} are published", name, space.count(), expected.count));
  bench.must(listed == space.count(),
             fmt::format("{}: {} points listed, {} counted", name, listed, space.count()));
  bench.must(nested_count == space.count(),
             fmt::format("{}: nested loops find {} points, the space {}", name, nested_count, space.count()));
  bench.must(agrees, name + ": index_of(at(i)) is i");
  const double speedup = nested_ms / best_ms;
  if (!bench.smoke() && !expected.small)
    bench.at_least(name + ": times faster than nested loops", speedup, 20);

  const furlong::bench::Noise timing{0.15, 0.05};
  bench.metric(name + "_count", static_cast<double>(space.count()), Better::higher, {0, 0});
  bench.metric(name + "_ms", best_ms, Better::lower, timing);
  bench.metric(name + "_nested_ms", nested_ms, Better::lower, timing);
  bench.metric(name + "_speedup", speedup, Better::higher, {0.25, 0});
  bench.metric(name + "_at_us", one_us, Better::lower, {0.25, 0.2});
  bench.row({name,
             {{"valid", static_cast<double>(space.count())},
              {"product", static_cast<double>(space.product())},
              {"list ms", best_ms},
              {"nested ms", nested_ms},
              {"speedup", speedup},
              {"goal ms", expected.goal_ms > 0 ? expected.goal_ms : std::numeric_limits<double>::quiet_NaN()},
              {"at(i) and back us", one_us}},
             "Valid points of published tuning problems"});
  return {};
}

Status run(Bench& bench) {
  for (const auto& problem : problems)
    if (problem.small || !bench.smoke()) FURLONG_CHECK(measure(bench, problem));
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  return furlong::bench::bench_main(argc, argv, "lattice-count", run,
                                    {{"data", "folder of the T1 files", "bench/data/t1"}});
}
