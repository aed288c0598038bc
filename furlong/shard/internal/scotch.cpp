#include "furlong/shard/internal/scotch.h"

#include <algorithm>
#include <cstdio>
#include <limits>
#include <mutex>
#include <numeric>

// After <cstdio>, which it needs and does not include.
#include <scotch.h>

// Scotch asks its user for these, and else its own print and end the program.
extern "C" {
void SCOTCH_errorProg(const char* const) {}
void SCOTCH_errorPrint(const char* const, ...) {}
void SCOTCH_errorPrintW(const char* const, ...) {}
}

namespace furlong::shard::scotch {
namespace {

constexpr std::uint64_t kMostSum = std::uint64_t{1} << 29;  // of weights: a link counts at both its ends

struct Context {
  SCOTCH_Context handle;
  bool made = false;
  ~Context() {
    if (made) SCOTCH_contextExit(&handle);
  }
};
struct GraphHandle {
  SCOTCH_Graph handle;
  bool made = false;
  ~GraphHandle() {
    if (made) SCOTCH_graphExit(&handle);
  }
};
struct Strategy {
  SCOTCH_Strat handle;
  bool made = false;
  ~Strategy() {
    if (made) SCOTCH_stratExit(&handle);
  }
};

// So that the sum of all is at most kMostSum, and none is 0.
class Scale {
 public:
  explicit Scale(double sum, std::size_t count)
      : factor_(std::min(
            1.0, (static_cast<double>(kMostSum) - static_cast<double>(count)) / std::max(sum, 1.0))) {}
  SCOTCH_Num operator()(std::uint64_t weight) const {
    return static_cast<SCOTCH_Num>(static_cast<double>(weight) * factor_) +
           (factor_ < 1 || weight == 0 ? 1 : 0);
  }

 private:
  double factor_;
};

}  // namespace

Result<std::vector<std::uint32_t>> bisect(const Graph& graph, std::uint32_t parts, double imbalance,
                                          std::uint64_t seed) {
  const std::size_t n = graph.vertex_weights.size();
  if (parts == 0) return fail(Code::invalid, "a graph cannot be cut into no parts");
  if (n == 0) return std::vector<std::uint32_t>();
  if (parts == 1) return std::vector<std::uint32_t>(n, 0);
  if (n + graph.links.size() > kMostSum / 2)
    return fail(Code::exhausted, "a graph of {} vertices and {} links is too large for Scotch", n,
                graph.links.size());
  if (SCOTCH_numSizeof() != sizeof(SCOTCH_Num))
    return fail(Code::incompatible, "Scotch was built with {}-byte numbers, its header says {}",
                SCOTCH_numSizeof(), sizeof(SCOTCH_Num));
  double vertex_sum = 0, link_sum = 0;
  for (const std::uint64_t weight : graph.vertex_weights) vertex_sum += static_cast<double>(weight);
  for (const Graph::Link& link : graph.links) link_sum += static_cast<double>(link.weight);
  const Scale vertex_scale(vertex_sum, n), link_scale(link_sum, graph.links.size());
  std::vector<SCOTCH_Num> first(n + 1), to(graph.links.size() * 2), link_weights(to.size()),
      vertex_weights(n);
  for (std::size_t v = 0; v < n; ++v) vertex_weights[v] = vertex_scale(graph.vertex_weights[v]);
  for (const Graph::Link& link : graph.links) {
    ++first[link.a + 1];
    ++first[link.b + 1];
  }
  std::partial_sum(first.begin(), first.end(), first.begin());
  std::vector<SCOTCH_Num> next(first.begin(), first.end() - 1);
  for (const Graph::Link& link : graph.links) {
    const SCOTCH_Num weight = link_scale(link.weight);
    for (const auto& [from, other] : {std::pair(link.a, link.b), std::pair(link.b, link.a)}) {
      const auto at = static_cast<std::size_t>(next[from]++);
      to[at] = static_cast<SCOTCH_Num>(other);
      link_weights[at] = weight;
    }
  }
  // A context of its own: neither the state of Scotch's random numbers nor its threads change the result.
  static std::mutex mutex;
  const std::scoped_lock lock(mutex);
  const auto failed = [](const char* what) { return fail(Code::internal, "Scotch: {} failed", what); };
  Context context;
  if (SCOTCH_contextInit(&context.handle) != 0) return failed("making a context");
  context.made = true;
  if (SCOTCH_contextOptionSetNum(&context.handle, SCOTCH_OPTIONNUMDETERMINISTIC, 1) != 0)
    return failed("asking for a deterministic result");
  SCOTCH_contextRandomSeed(&context.handle, static_cast<SCOTCH_Num>(seed & 0x7FFFFFFF));
  SCOTCH_contextRandomReset(&context.handle);
  GraphHandle plain, bound;
  if (SCOTCH_graphInit(&plain.handle) != 0) return failed("making a graph");
  plain.made = true;
  if (SCOTCH_graphBuild(&plain.handle, 0, static_cast<SCOTCH_Num>(n), first.data(), first.data() + 1,
                        vertex_weights.data(), nullptr, static_cast<SCOTCH_Num>(to.size()), to.data(),
                        link_weights.data()) != 0)
    return failed("building the graph");
  if (SCOTCH_graphInit(&bound.handle) != 0) return failed("making a graph");
  bound.made = true;
  if (SCOTCH_contextBindGraph(&context.handle, &plain.handle, &bound.handle) != 0)
    return failed("binding the graph");
  Strategy strategy;
  if (SCOTCH_stratInit(&strategy.handle) != 0) return failed("making a strategy");
  strategy.made = true;
  if (SCOTCH_stratGraphMapBuild(&strategy.handle, SCOTCH_STRATRECURSIVE, static_cast<SCOTCH_Num>(parts),
                                imbalance) != 0)
    return failed("building the strategy");
  std::vector<SCOTCH_Num> part(n);
  if (SCOTCH_graphPart(&bound.handle, static_cast<SCOTCH_Num>(parts), &strategy.handle, part.data()) != 0)
    return failed("cutting the graph");
  return std::vector<std::uint32_t>(part.begin(), part.end());
}

}  // namespace furlong::shard::scotch
