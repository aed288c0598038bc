// A stream of samples whose filter changes while it runs. The taps of each filter are constants of its
// kernel's text, so that each is a new program: while one filter works, the next one's variants are compiled,
// gated and raced on the same device, and at a boundary of the stream the winner takes over. Every output is
// held against a plain loop.
//
//   hot-swap [DEVICE [FILTERS [STEPS [TAPS [SAMPLES [BUDGET_S [STEP_MS]]]]]]]
//
// DEVICE is host (the default), opencl:0, cuda:0 or the like. A step filters SAMPLES (65536) new samples and
// begins STEP_MS (10) after the one before. Each of FILTERS (4) serves STEPS (200) steps; when the next is
// not ready then, the stream goes on with the old one to the next boundary, and that is a missed swap. Races
// get BUDGET_S (20) seconds. Filters have up to TAPS (31) taps.
//
// Exit 0: every output is right; 1: one is wrong or something failed (the message says what); 2: usage; 4: no
// such device.
#include <chrono>
#include <cstdio>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "furlong/base/log.h"
#include "furlong/base/os/clock.h"
#include "furlong/base/os/file.h"
#include "furlong/base/random.h"
#include "furlong/base/text.h"
#include "furlong/device/cuda/cuda.h"
#include "furlong/device/host/host.h"
#include "furlong/device/opencl/opencl.h"
#include "furlong/device/registry.h"
#include "furlong/program/program.h"
#include "furlong/select/select.h"
#include "furlong/worker/hot_kernel.h"

namespace {

using namespace furlong;

struct Settings {
  std::string device = "host";
  std::int64_t filters = 4, steps = 200, taps = 31, samples = 65536, budget_s = 20, step_ms = 10;
};

using Words = std::vector<std::uint32_t>;

std::span<std::uint8_t> bytes_of(Words& words) {
  return {reinterpret_cast<std::uint8_t*>(words.data()), 4 * words.size()};
}

Words make_words(std::size_t count, Random& random) {
  Words words(count);
  for (std::uint32_t& word : words) word = static_cast<std::uint32_t>(random.next());
  return words;
}

/// The plain loop: y[i] = sum of taps[k] * x[i + k], modulo 2^32.
Words filtered(const Words& taps, const Words& x, std::size_t count) {
  Words y(count);
  for (std::size_t i = 0; i < count; ++i)
    for (std::size_t k = 0; k < taps.size(); ++k) y[i] += taps[k] * x[i + k];
  return y;
}

constexpr const char* kProgram = R"toml(
format = 1
[program]
name = "filter"
[source.host]
entry = "filter"
text = """
{table}
extern "C" void filter(const furlong_block& block, const uint32_t* __restrict x, uint32_t* __restrict y, uint32_t n) {{
  const uint32_t begin = static_cast<uint32_t>(block.x) * CHUNK, end = n - begin < CHUNK ? n : begin + CHUNK;
#if TABLE
  for (uint32_t i = begin; i < end; ++i) y[i] = 0;
  for (unsigned k = 0; k < {taps}; ++k)
    for (uint32_t i = begin; i < end; ++i) y[i] += taps[k] * x[i + k];
#else
  for (uint32_t i = begin; i < end; ++i) y[i] = {sum};
#endif
}}
"""
[source.opencl]
entry = "filter"
text = """
__constant {table}
__kernel void filter(__global const uint* x, __global uint* y, uint n) {{
  const uint i = get_global_id(0);
  if (i >= n) return;
#if TABLE
  uint sum = 0;
  for (uint k = 0; k < {taps}; ++k) sum += taps[k] * x[i + k];
  y[i] = sum;
#else
  y[i] = {sum};
#endif
}}
"""
[source.cuda]
entry = "filter"
text = """
__constant__ {table}
extern "C" __global__ void filter(const unsigned* __restrict__ x, unsigned* __restrict__ y, unsigned n) {{
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
#if TABLE
  unsigned sum = 0;
  for (unsigned k = 0; k < {taps}; ++k) sum += taps[k] * x[i + k];
  y[i] = sum;
#else
  y[i] = {sum};
#endif
}}
"""
[problem]
n = {samples}
[launch.host]
grid = "ceil_div(n, CHUNK)"
[launch.opencl]
grid = "ceil_div(n, GROUP)"
block = "GROUP"
[launch.cuda]
grid = "ceil_div(n, GROUP)"
block = "GROUP"
[[argument]]
name = "x"
type = "u32"
size = "n + {taps} - 1"
fill = "random"
high = 4294967295
[[argument]]
name = "y"
type = "u32"
size = "n"
direction = "out"
[[argument]]
name = "n"
kind = "scalar"
type = "u32"
value = "n"
[check]
kind = "exact"
reference = "base"
[work]
unit = "sample"
amount = "n"
rate_unit = "Msamples/s"
rate_scale = 1e6
[[knob]]
name = "TABLE"
values = [1, 0]
tags = ["", "straight"]
applies = "define"
wins = "a loop over the taps stays small, and each pass is one long vector loop"
loses = "short filters pay for the loop and for passing over the output again"
[[knob]]
name = "CHUNK"
values = [4096, 512, 32768]
tags = ["", "c512", "c32768"]
applies = ["define", "launch"]
languages = ["host"]
wins = "longer chunks cost fewer starts"
loses = "a chunk beyond the nearest cache is fetched again for each tap"
[[knob]]
name = "GROUP"
values = [128, 64, 256]
tags = ["", "g64", "g256"]
applies = "launch"
languages = ["opencl", "cuda"]
wins = "larger groups are fewer to start"
loses = "smaller ones fill the device's last round better"
[catalogue]
host = ["base", "straight", "c512", "straight-c512", "c32768"]
opencl = ["base", "straight", "g64", "g256", "straight-g256"]
cuda = ["base", "straight", "g64", "g256", "straight-g256"]
)toml";

/// The filter as a program for the device.
Result<std::shared_ptr<const program::Instance>> program_of(const Words& taps, std::int64_t samples,
                                                            const device::Facts& facts) {
  std::vector<std::string> values, products;
  for (std::size_t k = 0; k < taps.size(); ++k) {
    values.push_back(fmt::format("{}u", taps[k]));
    products.push_back(fmt::format("{}u * x[i + {}]", taps[k], k));
  }
  // __constant and __constant__ say const themselves.
  const bool host = facts.languages.front() == device::Language::host;
  const std::string table =
      fmt::format("{}unsigned taps[] = {{{}}};", host ? "const " : "", join(values, ", "));
  FakeFiles none;  // the program lives in memory
  FURLONG_TRY(const auto program,
              program::parse_program(fmt::format(fmt::runtime(kProgram), fmt::arg("table", table),
                                                 fmt::arg("sum", join(products, " + ")),
                                                 fmt::arg("taps", taps.size()), fmt::arg("samples", samples)),
                                     "filter.toml", "", none));
  FURLONG_TRY(program::Instance instance,
              program::Instance::make(program, device::language_name(facts.languages.front()), {},
                                      expression_facts(facts)));
  return std::make_shared<const program::Instance>(std::move(instance));
}

/// The stream: its buffers, the filter in use and the next one. What is on the device is given up under
/// holds.
class Stream {
 public:
  Stream(device::Device& device, worker::HotKernel& hot, const Settings& settings)
      : device_(device), hot_(hot), settings_(settings), random_(1) {}

  /// All filters, each for its steps; nothing of the stream is on the device afterwards.
  Status run() {
    const Status ran = serve();
    FURLONG_TRY(auto held, hot_.hold());
    bound_.reset();
    next_bound_.reset();
    old_bound_.reset();
    next_.reset();
    x_.reset();
    y_.reset();
    const Status ended = held.end();
    FURLONG_CHECK(ran);
    return ended;
  }

  std::int64_t steps() const { return step_; }
  std::int64_t swaps() const { return swaps_; }
  std::int64_t missed() const { return missed_; }

 private:
  Status serve() {
    FURLONG_CHECK(allocate());
    FURLONG_CHECK(submit_next());
    FURLONG_CHECK(hot_.wait());  // there is nothing to work with meanwhile
    FURLONG_CHECK(bind_ahead());
    FURLONG_CHECK(swap());
    due_ = std::chrono::steady_clock::now();
    for (std::int64_t filter = 1; filter <= settings_.filters; ++filter) {
      // Base took over before its race was over: the winner follows between two steps.
      while (early_) {
        FURLONG_CHECK(step());
        if (next_bound_) FURLONG_CHECK(swap());
      }
      const bool last = filter == settings_.filters;
      if (!last) FURLONG_CHECK(submit_next());
      for (bool over = false; !over;) {
        for (std::int64_t i = 0; i < settings_.steps; ++i) FURLONG_CHECK(step());
        over = last || next_bound_;
        if (!over) ++missed_now_;
      }
      if (!last) FURLONG_CHECK(swap());
    }
    return check();
  }

  Status allocate() {
    const auto samples = static_cast<std::size_t>(settings_.samples);
    input_.resize(samples + static_cast<std::size_t>(settings_.taps) - 1);
    output_.resize(samples);
    FURLONG_TRY(auto held, hot_.hold());
    FURLONG_TRY(x_, device_.allocate(4 * input_.size()));
    FURLONG_TRY(y_, device_.allocate(4 * output_.size()));
    return held.end();
  }

  /// Of another length each time.
  Status submit_next() {
    const std::uint64_t taps = 1 + random_.below(static_cast<std::uint64_t>(settings_.taps));
    next_taps_ = make_words(taps, random_);
    FURLONG_TRY(auto next, program_of(next_taps_, settings_.samples, device_.facts()));
    FURLONG_CHECK(hot_.submit(std::move(next)));
    submitted_at_ = step_;
    return {};
  }

  Status bind_ahead() {
    FURLONG_TRY(auto held, hot_.hold());
    FURLONG_CHECK(bind_next());
    return held.end();
  }

  /// Under a hold and ahead of the boundary, at which nothing is left to do then.
  Status bind_next() {
    old_bound_.reset();
    const auto next = hot_.next(early_ ? worker::Take::winner : worker::Take::best_so_far);
    if (!next || next == next_) return {};
    FURLONG_TRY(kernel::Bound bound, next->bind(kernel::Arguments().buffer("x", *x_).buffer("y", *y_)));
    FURLONG_CHECK(bound.prepare());
    next_bound_.emplace(std::move(bound));
    next_ = next;
    return {};
  }

  /// Filters new samples. They are checked by the next step: not between this one and a swap.
  Status step() {
    FURLONG_CHECK(check());
    const worker::State state = hot_.state();
    if (state.error) return *state.error;
    std::this_thread::sleep_until(due_);
    due_ = std::max(due_, std::chrono::steady_clock::now()) + std::chrono::milliseconds(settings_.step_ms);
    for (std::uint32_t& word : input_) word = static_cast<std::uint32_t>(random_.next());
    FURLONG_TRY(worker::HotKernel::Held held, hot_.hold());
    FURLONG_CHECK(x_->write(0, bytes_of(input_)));
    FURLONG_CHECK(bound_->launch());
    FURLONG_CHECK(device_.finish());
    FURLONG_CHECK(y_->read(0, bytes_of(output_)));
    FURLONG_CHECK(bind_next());
    FURLONG_CHECK(held.end());
    ++step_;
    unchecked_ = taps_;
    return {};
  }

  Status check() {
    if (unchecked_.empty()) return {};
    if (output_ != filtered(unchecked_, input_, output_.size()))
      return fail(Code::mismatch, "the output of step {} is wrong", step_);
    unchecked_.clear();
    return {};
  }

  /// What is bound ahead takes over.
  Status swap() {
    FURLONG_TRY(const worker::SwapReport report, hot_.swap(next_));
    old_bound_ = std::exchange(bound_, std::exchange(next_bound_, std::nullopt));
    next_.reset();  // not the last who shares it
    taps_ = next_taps_;
    std::printf(
        "step %lld: %zu taps, %s%s; gap %.0f us; %lld steps served meanwhile, %lld missed swaps, "
        "paused %.0f ms\n  %s\n",
        static_cast<long long>(step_), taps_.size(), report.variant.c_str(),
        report.early ? " until its race is over" : "", 1e3 * report.gap_ms.value_or(0),
        static_cast<long long>(step_ - submitted_at_), static_cast<long long>(missed_now_),
        report.pause.held_ms, report.why.c_str());
    swaps_ += !early_;
    missed_ += std::exchange(missed_now_, 0);
    early_ = report.early;
    return {};
  }

  device::Device& device_;
  worker::HotKernel& hot_;
  const Settings& settings_;
  Random random_;
  Words input_, output_, taps_, next_taps_, unchecked_;
  std::unique_ptr<device::Buffer> x_, y_;
  std::shared_ptr<const kernel::RacedKernel> next_;  // that next_bound_ is of
  std::optional<kernel::Bound> bound_, next_bound_, old_bound_;
  std::int64_t step_ = 0, submitted_at_ = 0, swaps_ = 0, missed_ = 0, missed_now_ = 0;
  bool early_ = false;
  std::chrono::steady_clock::time_point due_;
};

Status run(device::Device& device, const Settings& settings) {
  worker::HotOptions options;
  options.kernel.race_options.budget_s = static_cast<double>(settings.budget_s);
  options.kernel.keep = options.kernel.use_kept = false;  // no filter comes twice
  FURLONG_TRY(const auto hot, worker::HotKernel::make(device, std::move(options)));
  Stream stream(device, *hot, settings);
  FURLONG_CHECK(stream.run());
  std::printf("%lld filters, %lld swaps, %lld missed; all %lld steps are right\n",
              static_cast<long long>(settings.filters), static_cast<long long>(stream.swaps()),
              static_cast<long long>(stream.missed()), static_cast<long long>(stream.steps()));
  return {};
}

/// False: usage.
bool read_settings(int argc, char** argv, Settings& settings) {
  if (argc > 1) settings.device = argv[1];
  struct Number {
    std::int64_t* value;
    std::int64_t least, most;
  };
  const Number numbers[] = {{&settings.filters, 1, 1'000'000}, {&settings.steps, 1, 1'000'000'000},
                            {&settings.taps, 1, 1024},         {&settings.samples, 1, 1 << 28},
                            {&settings.budget_s, 1, 540},      {&settings.step_ms, 0, 1'000'000}};
  if (argc > 2 + static_cast<int>(std::size(numbers))) return false;
  for (int i = 2; i < argc; ++i) {
    const Number& number = numbers[i - 2];
    const auto value = parse_integer(argv[i]);
    if (!value || *value < number.least || *value > number.most) return false;
    *number.value = *value;
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  if (!read_settings(argc, argv, settings)) {
    std::fprintf(stderr, "usage: %s [DEVICE [FILTERS [STEPS [TAPS [SAMPLES [BUDGET_S [STEP_MS]]]]]]]\n",
                 argv[0]);
    return 2;
  }
  log_to_stderr(LogLevel::warning);
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  device::Registry registry;
  registry.add(device::make_host_driver());
  registry.add(device::make_opencl_driver());
  registry.add(device::make_cuda_driver());
  const auto device = registry.open(settings.device);
  if (!device) {
    std::fprintf(stderr, "%s\n", device.error().text().c_str());
    return 4;
  }
  const Status status = run(**device, settings);
  if (!status) std::fprintf(stderr, "%s\n", status.error().text().c_str());
  return status ? 0 : 1;
}
