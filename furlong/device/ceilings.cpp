#include "furlong/device/ceilings.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <map>
#include <memory>

#include "furlong/base/text.h"
#include "furlong/device/internal/ceiling_kernels.h"

namespace furlong::device {
namespace {

using internal::Run;
using internal::Way;

struct Named {
  std::string_view name, words, unit;
};
constexpr std::array<Named, ceiling_kinds> kNames{{
    {"stream_read", "stream reads", "byte"},
    {"stream_copy", "stream copies", "byte"},
    {"random4", "random 4-byte loads", "load"},
    {"random16", "random 16-byte loads", "load"},
    {"random128", "random 128-byte loads", "load"},
    {"integer", "32-bit integer arithmetic", "operation"},
    {"float", "single-precision arithmetic", "operation"},
    {"matrix_f16", "f16 matrix instructions", "operation"},
    {"matrix_bf16", "bf16 matrix instructions", "operation"},
    {"matrix_i8", "i8 matrix instructions", "operation"},
}};

constexpr std::uint64_t kMiB = 1u << 20;
constexpr std::uint64_t kSmallestSize = 64u << 10;        // a block of every way of streaming fits
constexpr std::uint64_t kLargestSize = 16384 * kMiB - 1;  // words are counted in 32 bits
constexpr double kCheckedSteps = 2e6;                     // of the host's computation, a launch

std::vector<std::uint64_t> usual_sizes(const Facts& facts) {
  if (facts.runs_on_host_cpu) return {16 * kMiB, 64 * kMiB, 256 * kMiB};
  return {64 * kMiB, 256 * kMiB, 1024 * kMiB, 8192 * kMiB};
}

Bytes scalar(auto value) {
  Bytes bytes(sizeof value);
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

/// Compares elements of a kernel's output with what they must be. Whether multiplications and additions are
/// fused is up to a CPU and its compiler; either will do, but one of them throughout.
class Likeness {
 public:
  Likeness(const Run& run, Language language)
      : run_(run), apart_(run.kind == CeilingKind::floating && language == Language::host) {}

  Status check(std::uint64_t element, std::uint32_t got) {
    const std::uint32_t want = internal::expected(run_, element);
    fused_ = fused_ && got == want;
    if (!fused_) apart_ = apart_ && got == internal::expected(run_, element, false);
    if (fused_ || apart_) return {};
    return fail(Code::mismatch,
                "the kernel '{}' ({}) gives {} in element {} instead of {}: its rate is no ceiling",
                internal::entry_of(run_.kind), internal::words_of(run_.kind, run_.way), got, element, want);
  }

 private:
  const Run& run_;
  bool fused_ = true;
  bool apart_;
};

/// Everything of one measurement.
class Meter {
 public:
  Meter(Device& device, const CeilingOptions& options, Language language)
      : device_(device), facts_(device.facts()), options_(options), language_(language) {}

  /// Fills in the rates and what is left out.
  Status measure(Ceilings& ceilings);

 private:
  Status measure_one(CeilingKind kind, std::uint64_t bytes, Ceilings& ceilings);
  Result<CeilingRate> best_of(CeilingKind kind, std::uint64_t bytes);
  Result<CeilingRate> run_way(CeilingKind kind, std::uint64_t bytes, const Way& way);
  Result<Module*> module_for(CeilingKind kind, const Way& way);
  Status fill_memory();
  Run run_of(CeilingKind kind, std::uint64_t bytes, const Way& way) const;
  Launch launch_of(Module* module, const Run& run) const;
  Result<double> median_ms(const Launch& launch, int repeats, int batch);
  Status fit_rounds(Launch& launch, Run& run, int& batch, Module* module);
  Status check(const Run& run);
  Status stopped() const;
  void say(CeilingKind kind, std::uint64_t bytes);

  Device& device_;
  const Facts& facts_;
  const CeilingOptions& options_;
  Language language_;
  std::map<std::string, std::shared_ptr<Module>> modules_;
  std::unique_ptr<Buffer> memory_, copy_, out_;
  std::uint64_t out_elements_ = 0;
  std::size_t done_ = 0, total_ = 0;
};

Status Meter::stopped() const {
  if (!options_.stop.stop_requested()) return {};
  return fail(Code::timeout, "{}: measuring the ceilings was stopped", facts_.address());
}

void Meter::say(CeilingKind kind, std::uint64_t bytes) {
  if (!options_.progress) return;
  std::string doing(ceiling_words(kind));
  if (bytes > 0) doing += ", " + human_bytes(bytes);
  options_.progress({done_, total_, doing});
}

Result<Module*> Meter::module_for(CeilingKind kind, const Way& way) {
  const CompileRequest request = internal::request_of(kind, language_, way);
  auto& module = modules_[request.name];
  if (!module) {
    FURLONG_TRY(module, device_.compile(request, options_.stop));
  }
  return module.get();
}

Run Meter::run_of(CeilingKind kind, std::uint64_t bytes, const Way& way) const {
  Run run{.kind = kind, .way = way, .bytes = bytes, .elements = options_.elements, .rounds = 1};
  const auto units = static_cast<std::uint64_t>(std::max(1, facts_.silicon.multiprocessors));
  if (kind <= CeilingKind::stream_copy) {
    // Long strips for each block, so that the sums written are few, but enough blocks for every unit.
    const std::uint64_t blocks_wanted = units * (facts_.runs_on_host_cpu ? 8 : 32);
    const std::uint64_t row = static_cast<std::uint64_t>(way.block) * 16u * static_cast<unsigned>(way.unroll);
    while (run.rounds < 64 && bytes / (row * run.rounds * 2) >= blocks_wanted) run.rounds *= 2;
    run.elements = bytes / (16u * static_cast<unsigned>(way.unroll)) / run.rounds;
    return run;
  }
  if (run.elements == 0) {
    // Several times what is resident at once.
    run.elements = units * (facts_.runs_on_host_cpu ? 2048 : internal::is_random(kind) ? 16384 : 8192);
  }
  const auto block = static_cast<std::uint64_t>(way.block);
  const std::uint64_t step = block * static_cast<std::uint64_t>(way.width);
  run.elements = std::max(step, run.elements / step * step);
  return run;
}

Launch Meter::launch_of(Module* module, const Run& run) const {
  Launch launch{.module = module, .entry = internal::entry_of(run.kind)};
  const auto block = static_cast<std::uint64_t>(run.way.block);
  launch.block = {block, 1, 1};
  launch.grid = {run.elements / (block * static_cast<std::uint64_t>(run.way.width)), 1, 1};
  const Argument out = BufferArgument{out_.get(), 0};
  if (!internal::is_memory(run.kind)) {
    launch.arguments = {out, scalar(run.rounds)};
    if (run.kind == CeilingKind::integer) {
      launch.arguments.emplace_back(scalar(internal::kFactor));
      launch.arguments.emplace_back(scalar(internal::kAddend));
    } else if (run.kind == CeilingKind::floating) {
      launch.arguments.emplace_back(scalar(internal::kAngle));
    }
    return launch;
  }
  launch.arguments = {BufferArgument{memory_.get(), 0}, out, scalar(run.rounds)};
  if (run.kind == CeilingKind::stream_copy) launch.arguments[1] = BufferArgument{copy_.get(), 0};
  if (internal::is_random(run.kind)) {
    const unsigned width = run.kind == CeilingKind::random4    ? 4
                           : run.kind == CeilingKind::random16 ? 16
                                                               : 128;
    launch.arguments.emplace_back(scalar(static_cast<std::uint32_t>(run.bytes / width)));
  }
  return launch;
}

Status Meter::fill_memory() {
  const Way way = internal::ways_of(CeilingKind::random4, language_, facts_)[0];
  FURLONG_TRY(Module* const module, module_for(CeilingKind::random4, way));
  const auto quads = static_cast<std::uint32_t>(memory_->size() / 16);
  Launch launch{.module = module, .entry = "fill"};
  const auto block = static_cast<std::uint64_t>(way.block);
  launch.block = {block, 1, 1};
  launch.grid = {(quads + block - 1) / block, 1, 1};
  launch.arguments = {BufferArgument{memory_.get(), 0}, scalar(quads)};
  FURLONG_CHECK(device_.launch(launch));
  return device_.finish();
}

Result<double> Meter::median_ms(const Launch& launch, int repeats, int batch) {
  FURLONG_TRY(std::vector<double> ms,
              device_.time({.pipeline = {&launch, 1}, .repeats = repeats, .batch = batch}));
  if (ms.size() > 1) ms.erase(ms.begin());
  std::ranges::sort(ms);
  const double median = ms[ms.size() / 2];
  if (!(median > 0))
    return fail(Code::internal, "{}: {} took {} ms by the device's clock", facts_.address(), launch.entry,
                median);
  return median;
}

/// Makes a launch, or for streams a batch of them, last as long as it should.
Status Meter::fit_rounds(Launch& launch, Run& run, int& batch, Module* module) {
  constexpr int kMostBatch = 256;
  for (int step = 0; step < 8; ++step) {
    FURLONG_TRY(const double ms, median_ms(launch, 2, batch));
    const double factor = options_.launch_ms / (ms * batch);
    if (factor <= 1) break;
    if (run.kind <= CeilingKind::stream_copy) {
      batch = static_cast<int>(std::clamp(std::ceil(batch * factor), 1.0, double{kMostBatch}));
      break;
    }
    if (run.rounds >= options_.max_rounds) break;
    // A short launch tells little of a long one: not too far at once.
    const double rounds = std::ceil(run.rounds * std::min(16.0, 1.1 * factor));
    run.rounds = static_cast<std::uint32_t>(std::min<double>(rounds, options_.max_rounds));
    launch = launch_of(module, run);
  }
  return {};
}

Result<CeilingRate> Meter::run_way(CeilingKind kind, std::uint64_t bytes, const Way& way) {
  FURLONG_CHECK(stopped());
  FURLONG_TRY(Module* const module, module_for(kind, way));
  Run run = run_of(kind, bytes, way);
  if (kind != CeilingKind::stream_copy && run.elements > out_elements_) {
    out_.reset();
    FURLONG_TRY(out_, device_.allocate(run.elements * 4));
    out_elements_ = run.elements;
  }
  Buffer& written = kind == CeilingKind::stream_copy ? *copy_ : *out_;
  FURLONG_CHECK(written.fill(0xa5, 0, written.size()));
  Launch launch = launch_of(module, run);
  FURLONG_CHECK(device_.launch(launch));  // some platforms compile at the first
  FURLONG_CHECK(device_.finish());
  int batch = 1;
  FURLONG_CHECK(fit_rounds(launch, run, batch, module));
  FURLONG_CHECK(written.fill(0xa5, 0, written.size()));
  double fastest = 0;
  for (int window = 0; window < options_.windows; ++window) {
    FURLONG_CHECK(stopped());
    FURLONG_TRY(const double ms, median_ms(launch, options_.repeats, batch));
    if (fastest == 0 || ms < fastest) fastest = ms;
  }
  FURLONG_CHECK(check(run));
  return CeilingRate{.kind = kind,
                     .bytes = bytes,
                     .rate = internal::work_of(run) / (fastest * 1e-3),
                     .launch_ms = fastest,
                     .how = internal::words_of(kind, way)};
}

/// Compares what the timed launches left with what the host computes: all of it where that is little, else
/// elements from everywhere in it.
Status Meter::check(const Run& run) {
  const bool copy = run.kind == CeilingKind::stream_copy;
  Buffer& buffer = copy ? *copy_ : *out_;
  const std::uint64_t count = copy ? run.bytes / 4 : run.elements;
  const auto most = static_cast<std::uint64_t>(std::max(16.0, kCheckedSteps / internal::cost_of(run)));
  const std::uint64_t strips = copy ? 64 : 1;  // of a copy too much to fetch it all
  const std::uint64_t strip = copy ? std::min(count / strips, most / strips) : count;
  const std::uint64_t apart = std::max<std::uint64_t>(1, copy ? 1 : (count + most - 1) / most);
  std::vector<std::uint32_t> got(strip);
  Likeness likeness(run, language_);
  for (std::uint64_t s = 0; s < strips; ++s) {
    const std::uint64_t first = strips == 1       ? 0
                                : s + 1 == strips ? count - strip
                                                  : s * ((count - strip) / (strips - 1));
    FURLONG_CHECK(buffer.read(first * 4, {reinterpret_cast<std::uint8_t*>(got.data()), got.size() * 4}));
    for (std::uint64_t i = 0; i < strip; i += apart)
      FURLONG_CHECK_DOING(likeness.check(first + i, got[i]), "{}", facts_.address());
    FURLONG_CHECK_DOING(likeness.check(first + strip - 1, got.back()), "{}", facts_.address());
  }
  return {};
}

Result<CeilingRate> Meter::best_of(CeilingKind kind, std::uint64_t bytes) {
  CeilingRate best;
  for (const Way& way : internal::ways_of(kind, language_, facts_)) {
    FURLONG_TRY(CeilingRate found, run_way(kind, bytes, way));
    if (found.rate > best.rate) best = std::move(found);
  }
  return best;
}

Status Meter::measure_one(CeilingKind kind, std::uint64_t bytes, Ceilings& ceilings) {
  const bool uncopied = kind == CeilingKind::stream_copy && (copy_ == nullptr || copy_->size() < bytes);
  const bool out = std::ranges::find(ceilings.left_out, kind, &LeftOut::kind) != ceilings.left_out.end();
  if (!uncopied && !out) {
    say(kind, bytes);
    auto found = best_of(kind, bytes);
    if (found) {
      ceilings.rates.push_back(*std::move(found));
    } else if (found.error().code() == Code::mismatch || found.error().code() == Code::invalid) {
      std::erase_if(ceilings.rates, [&](const CeilingRate& rate) { return rate.kind == kind; });
      ceilings.left_out.push_back({kind, found.error().text()});
    } else {
      return found.error();
    }
  }
  ++done_;
  return {};
}

/// The largest size that fits, or null.
Result<std::unique_ptr<Buffer>> allocate_largest(Device& device, std::span<const std::uint64_t> sizes) {
  for (auto size = sizes.rbegin(); size != sizes.rend(); ++size) {
    auto buffer = device.allocate(*size);
    if (buffer || buffer.error().code() != Code::exhausted) return buffer;
  }
  return std::unique_ptr<Buffer>();
}

Status Meter::measure(Ceilings& ceilings) {
  std::vector<std::uint64_t> sizes = options_.sizes.empty() ? usual_sizes(facts_) : options_.sizes;
  for (const std::uint64_t size : sizes)
    if (!std::has_single_bit(size) || size < kSmallestSize || size > kLargestSize)
      return fail(Code::invalid,
                  "ceilings are measured at powers of two from 64 KiB to 8 GiB, not at {} bytes", size);
  std::ranges::sort(sizes);
  FURLONG_TRY(memory_, allocate_largest(device_, sizes));
  if (memory_ == nullptr)
    return fail(Code::exhausted, "{}: not even {} of memory are free to measure the ceilings in",
                facts_.address(), human_bytes(sizes.front()));
  FURLONG_TRY(copy_, allocate_largest(device_, sizes));
  std::erase_if(sizes, [&](std::uint64_t size) { return size > memory_->size(); });
  std::vector<CeilingKind> arithmetic;
  for (std::size_t k = static_cast<std::size_t>(CeilingKind::integer); k < ceiling_kinds; ++k)
    if (internal::has_kernel(static_cast<CeilingKind>(k), language_, facts_.silicon.arch))
      arithmetic.push_back(static_cast<CeilingKind>(k));
  total_ = sizes.size() * 5 + arithmetic.size();
  FURLONG_CHECK_DOING(fill_memory(), "filling the memory");
  for (const std::uint64_t size : sizes)
    for (const CeilingKind kind : {CeilingKind::stream_read, CeilingKind::random4, CeilingKind::random16,
                                   CeilingKind::random128, CeilingKind::stream_copy})
      FURLONG_CHECK(measure_one(kind, size, ceilings));
  for (const CeilingKind kind : arithmetic) FURLONG_CHECK(measure_one(kind, 0, ceilings));
  if (ceilings.rates.empty()) return fail(Code::mismatch, "{}", ceilings.left_out.front().why);
  std::ranges::stable_sort(ceilings.rates, {}, &CeilingRate::kind);
  return {};
}

Result<Language> choose_language(const Facts& facts, const CeilingOptions& options) {
  if (options.language) return *options.language;
  for (const Language language : facts.languages)
    if (internal::has_kernel(CeilingKind::stream_read, language, facts.silicon.arch)) return language;
  return fail(Code::unavailable, "{}: there are no kernels for its ceilings in its languages",
              facts.address());
}

}  // namespace

std::string_view ceiling_name(CeilingKind kind) { return kNames[static_cast<std::size_t>(kind)].name; }
std::string_view ceiling_words(CeilingKind kind) { return kNames[static_cast<std::size_t>(kind)].words; }
std::string_view ceiling_unit(CeilingKind kind) { return kNames[static_cast<std::size_t>(kind)].unit; }

std::optional<double> Ceilings::rate(CeilingKind kind, std::uint64_t bytes) const {
  const CeilingRate* below = nullptr;
  for (const CeilingRate& at : rates) {
    if (at.kind != kind) continue;
    if (at.bytes == 0 || at.bytes == bytes) return at.rate;
    if (at.bytes < bytes) {
      below = &at;
      continue;
    }
    if (below == nullptr) return std::nullopt;
    const double from = std::log2(static_cast<double>(below->bytes));
    const double share =
        (std::log2(static_cast<double>(bytes)) - from) / (std::log2(static_cast<double>(at.bytes)) - from);
    return below->rate + share * (at.rate - below->rate);
  }
  return below == nullptr ? std::nullopt : std::optional<double>(below->rate);
}

Result<Ceilings> measure_ceilings(Device& device, const CeilingOptions& options) {
  const Facts& facts = device.facts();
  FURLONG_TRY(const Language language, choose_language(facts, options));
  Clock& clock = options.clock != nullptr ? *options.clock : system_clock();
  const double start_ms = clock.now_ms();
  Ceilings ceilings{.backend = facts.backend,
                    .label = facts.label,
                    .silicon = facts.silicon.hash(),
                    .driver = facts.driver,
                    .compiler = facts.compiler,
                    .language = std::string(language_name(language))};
  Meter meter(device, options, language);
  FURLONG_CHECK(meter.measure(ceilings));
  ceilings.measured = iso_time(clock.wall_us());
  ceilings.took_s = 1e-3 * (clock.now_ms() - start_ms);
  return ceilings;
}

}  // namespace furlong::device
