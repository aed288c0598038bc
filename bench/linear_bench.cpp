// Linear algebra on a card: Q8_0 matrix times vectors and products of two matrices beside a plain read, the
// measured ceilings and the vendor's library in the same run; and every point of the lattices compiled, a
// sample launched.

#include "bench/linear/subject.h"

namespace furlong::bench {
namespace {

struct Section {
  const char* name;
  Status (*run)(Bench&, Stage&);
};
constexpr Section kSections[] = {{"gemv", gemv_section}, {"gemm", gemm_section}, {"points", points_section}};

std::vector<BenchOption> options() {
  return {{"device", "where; auto: cuda:0, in a smoke run host:0", "auto"},
          {"section", "gemv, gemm, points, or all", "all"},
          {"sample", "points: how many of each lattice are launched", "150"}};
}

Status run(Bench& bench) {
  const std::string wanted = bench.option("section");
  const std::string given = bench.option("device");
  const std::string address = given != "auto" ? given : bench.smoke() ? "host:0" : "cuda:0";
  auto opened = Stage::open(address);
  if (!opened && opened.error().code() == Code::unavailable)
    return fail(Code::unavailable, "unavailable: {}. This bench needs a card (or --device D)",
                opened.error().text());
  FURLONG_TRY(const auto stage, std::move(opened));
  const device::Facts& facts = stage->device().facts();
  bench.environment("device", facts.label);
  bench.environment("driver", facts.driver);
  bench.environment("device compiler", facts.compiler);
  bool known = false;
  for (const Section& section : kSections) {
    if (wanted != "all" && wanted != section.name) continue;
    known = true;
    FURLONG_CHECK_DOING(section.run(bench, *stage), "section {}", section.name);
  }
  if (!known) return fail(Code::invalid, "there is no section '{}' (gemv, gemm, points, all)", wanted);
  return {};
}

}  // namespace
}  // namespace furlong::bench

int main(int argc, char** argv) {
  return furlong::bench::bench_main(argc, argv, "linear", furlong::bench::run, furlong::bench::options());
}
