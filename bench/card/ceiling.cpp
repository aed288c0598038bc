#include "bench/card/ceiling.h"

#include <algorithm>
#include <string_view>

#include "bench/card/stage.h"
#include "furlong/base/bytes.h"

namespace furlong::bench {
namespace {

// Every text: `rounds` loads a thread, from places that depend on the thread and the round alone (an LCG with
// a permuted output, O'Neill 2014), so that UNROLL of them are in flight together.
constexpr std::string_view kCuda = R"(
extern "C" __global__ void random_loads(const unsigned* data, unsigned words, unsigned rounds, unsigned* out) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned state = i * 2654435769u + 12345u, sum = 0u;
#pragma unroll UNROLL
  for (unsigned r = 0u; r < rounds; ++r) {
    state = state * 747796405u + 2891336453u;
    const unsigned mixed = ((state >> ((state >> 28) + 4u)) ^ state) * 277803737u;
    sum ^= data[__umulhi((mixed >> 22) ^ mixed, words)];
  }
  out[i] = sum;
}
)";
constexpr std::string_view kOpencl = R"(
__kernel void random_loads(__global const uint* data, uint words, uint rounds, __global uint* out) {
  const uint i = (uint)get_global_id(0);
  uint state = i * 2654435769u + 12345u, sum = 0u;
#pragma unroll UNROLL
  for (uint r = 0u; r < rounds; ++r) {
    state = state * 747796405u + 2891336453u;
    const uint mixed = ((state >> ((state >> 28) + 4u)) ^ state) * 277803737u;
    sum ^= data[mul_hi((mixed >> 22) ^ mixed, words)];
  }
  out[i] = sum;
}
)";
constexpr std::string_view kHost = R"(
#include <stdint.h>
extern "C" void random_loads(const furlong_block& block, const uint32_t* data, uint32_t words, uint32_t rounds,
                             uint32_t* out) {
  for (uint64_t t = 0; t < block.threads_x; ++t) {
    const uint32_t i = static_cast<uint32_t>(block.x * block.threads_x + t);
    uint32_t state = i * 2654435769u + 12345u, sum = 0u;
    for (uint32_t r = 0; r < rounds; ++r) {
      state = state * 747796405u + 2891336453u;
      const uint32_t mixed = ((state >> ((state >> 28) + 4u)) ^ state) * 277803737u;
      sum ^= data[(static_cast<uint64_t>((mixed >> 22) ^ mixed) * words) >> 32];
    }
    out[i] = sum;
  }
}
)";

constexpr std::uint32_t kRounds = 128;

Result<std::pair<device::Language, std::string_view>> text_for(const device::Facts& facts) {
  const std::pair<device::Language, std::string_view> texts[] = {
      {device::Language::cuda, kCuda}, {device::Language::opencl, kOpencl}, {device::Language::host, kHost}};
  for (const auto& text : texts)
    if (std::ranges::find(facts.languages, text.first) != facts.languages.end()) return text;
  return fail(Code::invalid, "{} runs none of CUDA, OpenCL and C++: its ceiling is not known",
              facts.address());
}

template <class T>
Bytes scalar(T value) {
  Bytes bytes(sizeof value);
  store_le(bytes.data(), value);
  return bytes;
}

}  // namespace

Result<Ceiling> random_load_ceiling(device::Device& device, std::uint64_t bytes, std::uint64_t launch_loads) {
  FURLONG_TRY(const auto text, text_for(device.facts()));
  const std::uint64_t threads = std::max<std::uint64_t>(1, launch_loads / kRounds / 1024) * 1024;
  FURLONG_TRY(const auto data, device.allocate(bytes));
  FURLONG_TRY(const auto out, device.allocate(threads * 4));
  FURLONG_CHECK(data->fill(0x5A, 0, bytes));
  Ceiling best;
  for (const int unroll : {4, 8, 16, 32}) {
    device::CompileRequest request;
    request.language = text.first;
    request.name = fmt::format("random-loads-{}", unroll);
    request.source = text.second;
    request.source_name = "random_loads";
    request.entries = {"random_loads"};
    request.defines = {{"UNROLL", std::to_string(unroll)}};
    FURLONG_TRY(const auto module, device.compile(request));
    for (const std::uint64_t block : {128, 256, 512}) {
      if (block > static_cast<std::uint64_t>(device.facts().max_threads_per_block)) continue;
      device::Launch launch;
      launch.module = module.get();
      launch.entry = "random_loads";
      launch.grid = {threads / block, 1, 1};
      launch.block = {block, 1, 1};
      launch.arguments = {device::BufferArgument{data.get(), 0},
                          scalar(static_cast<std::uint32_t>(bytes / 4)), scalar(kRounds),
                          device::BufferArgument{out.get(), 0}};
      const device::Launch pipeline[] = {launch};
      FURLONG_TRY(std::vector<double> times, device.time({.pipeline = pipeline, .repeats = 6}));
      if (times.size() > 1) times.erase(times.begin());
      const double rate = static_cast<double>(threads) * kRounds / (1e-3 * median(std::move(times)));
      if (rate > best.loads_per_s) best = {rate, fmt::format("unroll {}, {} threads", unroll, block)};
    }
    if (text.first == device::Language::host) break;  // its text has no unrolling to choose
  }
  return best;
}

}  // namespace furlong::bench
