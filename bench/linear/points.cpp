// Every valid point of the linear-algebra lattices compiles, and a large sample of them runs and is right.
#include <atomic>
#include <thread>

#include "bench/card/sections.h"
#include "bench/linear/subject.h"
#include "furlong/base/text.h"
#include "furlong/lattice/space.h"
#include "furlong/race/internal/entrant.h"

namespace furlong::bench {
namespace {

struct Compiled {
  std::size_t done = 0, spilled = 0;
  int most_registers = 0;
};

Result<Compiled> compile_all(Stage& stage, const program::Instance& instance,
                             const std::vector<lattice::Point>& points) {
  std::atomic<std::size_t> next = 0;
  std::mutex mutex;
  Compiled compiled;
  std::string failed;
  const auto work = [&] {
    for (std::size_t i = next++; i < points.size(); i = next++) {
      const auto one = [&]() -> Result<device::KernelFacts> {
        FURLONG_TRY(const program::VariantPlan plan, instance.plan(points[i]));
        FURLONG_TRY(const auto module, stage.device().compile(race::compile_request(instance, plan, 0)));
        return module->facts();
      };
      const auto facts = one();
      const std::lock_guard lock(mutex);
      if (!facts) {
        if (failed.empty())
          failed = lattice::variant_name(instance.lattice(), points[i]) + ": " + facts.error().text();
        continue;
      }
      ++compiled.done;
      compiled.spilled += facts->spill_bytes.value_or(0) > 0 ? 1u : 0u;
      compiled.most_registers = std::max(compiled.most_registers, facts->registers.value_or(0));
    }
  };
  {
    std::vector<std::jthread> crew;
    for (unsigned t = 0; t < std::max(1u, std::thread::hardware_concurrency()); ++t) crew.emplace_back(work);
  }
  if (!failed.empty()) return fail(Code::mismatch, "{}", failed);
  return compiled;
}

}  // namespace

Status points_section(Bench& bench, Stage& stage) {
  const bool smoke = bench.smoke();
  const auto sample = static_cast<std::size_t>(parse_integer(bench.option("sample")).value_or(100));
  using Problem = std::vector<std::pair<std::string, lattice::Value>>;
  for (const auto& [name, problem] :
       {std::pair<std::string, Problem>{"gemv", {{"n", 1000}, {"k", 8200}, {"batch", 8}, {"rotate_mib", 0}}},
        {"gemv", {{"n", 1000}, {"k", 8200}, {"batch", 1}, {"rotate_mib", 0}}},
        {"gemm", {{"m", 512}, {"n", 512}, {"k", 512}}},
        {"gemm_real", {{"m", 512}, {"n", 512}, {"k", 512}}}}) {
    FURLONG_TRY(const auto instance, linear_instance(stage, name, problem));
    FURLONG_TRY(const auto space, lattice::Space::build(instance.lattice(), instance.facts()));
    std::vector<lattice::Point> points;
    for (std::uint64_t i = 0; i < space.count(); ++i) points.push_back(space.at(i));
    if (smoke) points.resize(1);  // base: the others' matrix instructions do not compile for a CPU
    FURLONG_TRY(const Compiled compiled, compile_all(stage, instance, points));
    Random random(1);
    random.shuffle(std::span(points));
    points.resize(std::min(points.size(), sample));
    FURLONG_TRY(const int ran, launch_points(stage, instance, points));
    const std::string label =
        fmt::format("{}, batch {}", name, name == "gemv" ? problem[2].second.text() : "-");
    bench.row({label,
               {{"of the product", static_cast<double>(space.product())},
                {"valid", static_cast<double>(space.count())},
                {"compiled", static_cast<double>(compiled.done)},
                {"with spills", static_cast<double>(compiled.spilled)},
                {"most registers", static_cast<double>(compiled.most_registers)},
                {"launched and right", static_cast<double>(ran)}},
               "points"});
    say(fmt::format("{}: {} points compiled, {} launched", label, compiled.done, ran));
    bench.must(compiled.done == (smoke ? 1 : space.count()), label + ": every valid point compiles");
  }
  return {};
}

}  // namespace furlong::bench
