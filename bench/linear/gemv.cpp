// Q8_0 matrix times vectors: our kernels beside a plain read of the same bytes and the vendor's bf16 product,
// as shares of the read and of the datasheet's peak.
#include <algorithm>
#include <limits>

#include "bench/linear/subject.h"
#include "furlong/base/text.h"
#include "furlong/device/cuda/vendor_blas.h"
#include "furlong/program/linear/chips.h"

namespace furlong::bench {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
constexpr std::uint64_t kRotate = std::uint64_t{128} << 20;

struct Shape {
  std::int64_t n, k;
};

// What ggml's Q8_0 kernel took on an H200, measured elsewhere (the design's page on linear algebra):
// microseconds.
double ggml_us(const Shape& shape, std::int64_t batch) {
  struct Row {
    Shape shape;
    double one, eight;
  };
  for (const Row& row : {Row{{28672, 8192}, 79.3, 156}, Row{{128256, 4096}, 190, 361},
                         Row{{14336, 4096}, 23.4, 44.8}, Row{{4096, 4096}, 8.1, 14.4}})
    if (row.shape.n == shape.n && row.shape.k == shape.k)
      return batch == 1 ? row.one : batch == 8 ? row.eight : kNone;
  return kNone;
}

constexpr std::string_view kRead = R"cuda(
extern "C" __global__ void __launch_bounds__(256) stream_read(const uint4* from, unsigned* out, unsigned long long first,
                                                              unsigned long long count) {
  const unsigned long long own = blockIdx.x * 4096ull + threadIdx.x;
  uint4 got[16];
  unsigned sum = 0;
#pragma unroll
  for (int i = 0; i < 16; ++i)
    got[i] = own + i * 256ull < count ? __ldcs(from + first + own + i * 256ull) : make_uint4(0, 0, 0, 0);
#pragma unroll
  for (int i = 0; i < 16; ++i) sum += got[i].x ^ got[i].y ^ got[i].z ^ got[i].w;
  if (sum == 0x9e3779b9u) out[0] = sum;
}
)cuda";

/// A plain read of as many bytes as one copy of the matrix has, copy after copy.
Result<double> read_ms(Stage& stage, device::Buffer& weights, std::uint64_t copy_bytes, std::uint64_t copies,
                       device::Buffer& out) {
  device::CompileRequest request;
  request.language = device::Language::cuda;
  request.name = request.source_name = "stream_read";
  request.source = kRead;
  request.entries = {"stream_read"};
  FURLONG_TRY(const auto module, stage.device().compile(request));
  const std::uint64_t words = copy_bytes / 16;
  std::vector<device::Launch> pipeline;
  for (std::uint64_t copy = 0; copy < copies; ++copy) {
    device::Launch launch{.module = module.get(),
                          .entry = "stream_read",
                          .grid = {(words + 4095) / 4096, 1, 1},
                          .block = {256, 1, 1},
                          .shared_bytes = 0,
                          .arguments = {}};
    launch.arguments.emplace_back(device::BufferArgument{&weights, 0});
    launch.arguments.emplace_back(device::BufferArgument{&out, 0});
    Bytes first(8), count(8);
    store_le<std::uint64_t>(first.data(), copy * copy_bytes / 16);
    store_le<std::uint64_t>(count.data(), words);
    launch.arguments.emplace_back(std::move(first));
    launch.arguments.emplace_back(std::move(count));
    pipeline.push_back(std::move(launch));
  }
  FURLONG_TRY(const double ms, median_ms(stage.device(), pipeline, !stage.on_card()));
  return ms / static_cast<double>(copies);
}

/// The vendor's product in bf16, twice the bytes of Q8_0, on copies of at least 128 MiB.
Result<double> vendor_ms(Stage& stage, device::VendorBlas& blas, const Shape& shape, std::int64_t batch) {
  const auto bytes = static_cast<std::uint64_t>(shape.n * shape.k) * 2;
  const std::uint64_t copies = std::max<std::uint64_t>(1, (kRotate + bytes - 1) / bytes);
  FURLONG_TRY(const auto x, stage.device().allocate(static_cast<std::size_t>(batch * shape.k) * 2));
  FURLONG_TRY(const auto y, stage.device().allocate(static_cast<std::size_t>(batch * shape.n) * 4));
  FURLONG_CHECK(x->fill(0x3c, 0, x->size()));
  std::vector<std::unique_ptr<device::Buffer>> weights;
  std::vector<device::VendorProduct> products;
  for (std::uint64_t copy = 0; copy < copies; ++copy) {
    FURLONG_TRY(auto buffer, stage.device().allocate(bytes));
    FURLONG_CHECK(buffer->fill(0x3c, 0, bytes));
    products.push_back({.type = device::VendorProduct::Type::bf16,
                        .m = batch,
                        .n = shape.n,
                        .k = shape.k,
                        .a = x.get(),
                        .b = buffer.get(),
                        .c = y.get()});
    weights.push_back(std::move(buffer));
  }
  FURLONG_TRY(const auto times, blas.time(products, 6, std::max(1, static_cast<int>(40 / copies))));
  return median({times.begin() + 1, times.end()});
}

struct Best {
  double ms = kNone, whole_ms = kNone;
  std::string name;
};

Result<Best> best_of(Bench& bench, Subject& subject, const std::vector<std::string>& names, double copies) {
  Best best;
  for (const std::string& name : names) {
    const Status ready = subject.prepare(name);
    if (!ready) {
      if (!bench.smoke()) return Error(ready.error()).with(name);
      continue;  // on a CPU the matrix instructions do not compile
    }
    FURLONG_TRY(const double ms, subject.time_ms("gemv_activations"));
    if (!(best.ms * copies <= ms)) {
      FURLONG_TRY(const double whole, subject.time_ms());
      best = {ms / copies, whole / copies, name};
    }
  }
  if (!best.name.empty()) FURLONG_CHECK(subject.check(best.name));
  return best;
}

}  // namespace

Status gemv_section(Bench& bench, Stage& stage) {
  const bool smoke = bench.smoke();
  const std::vector<Shape> shapes =
      smoke ? std::vector<Shape>{{16, 64}}
            : std::vector<Shape>{{28672, 8192}, {128256, 4096}, {14336, 4096}, {4096, 4096}};
  auto blas = device::VendorBlas::open(stage.device());
  if (!blas && stage.on_card()) say(fmt::format("the vendor's library is left out: {}", blas.error().text()));
  if (blas) bench.environment("vendor", blas->version());
  bool faster = true;
  double worst_share = 1;
  for (const Shape& shape : shapes) {
    for (const std::int64_t batch : {std::int64_t{1}, std::int64_t{8}}) {
      if (smoke && batch > 1) continue;
      FURLONG_TRY(const auto instance,
                  linear_instance(
                      stage, "gemv",
                      {{"n", shape.n}, {"k", shape.k}, {"batch", batch}, {"rotate_mib", smoke ? 0 : 128}}));
      const std::uint64_t bytes =
          static_cast<std::uint64_t>(shape.n) * static_cast<std::uint64_t>((shape.k + 31) / 32 * 34);
      const std::uint64_t copies =
          smoke ? 1 : std::clamp<std::uint64_t>((kRotate + bytes - 1) / bytes, 1, 64);
      const std::vector<std::string> wide =
          smoke ? std::vector<std::string>{"base"}
                : std::vector<std::string>{"base", "r2", "u2", "r2-u2", "r4", "r4-u2"};
      const std::vector<std::string> narrow =
          smoke ? std::vector<std::string>{"char4"}
                : std::vector<std::string>{"char4", "char4-r2", "char4-u4", "char4-r2-u2", "char4-r4-u4"};
      const std::vector<std::string> matrix =
          smoke
              ? std::vector<std::string>{}
              : std::vector<std::string>{"imma", "imma-w4", "imma-r2", "imma-u2", "imma-w4-u2", "imma-r2-u2"};
      const std::vector<std::string> one_word =
          smoke ? std::vector<std::string>{"x8"}
                : std::vector<std::string>{"x8", "x8-r2", "x8-r2-u2", "imma-x8", "imma-x8-u2"};
      const std::vector<std::string> exact{"f64"};
      std::vector<std::string> all;
      for (const auto* list : {&wide, &narrow, &matrix, &one_word, &exact})
        all.insert(all.end(), list->begin(), list->end());
      FURLONG_TRY(const auto subject, Subject::make(stage, instance, all));
      const auto count = static_cast<double>(copies);
      FURLONG_TRY(const Best int4, best_of(bench, *subject, wide, count));
      FURLONG_TRY(const Best char4, best_of(bench, *subject, narrow, count));
      FURLONG_TRY(const Best imma, best_of(bench, *subject, matrix, count));
      FURLONG_TRY(const Best int8, best_of(bench, *subject, one_word, count));
      FURLONG_TRY(const Best dequant, best_of(bench, *subject, exact, count));
      FURLONG_TRY(const double read,
                  read_ms(stage, *subject->buffer("weights"), bytes, copies, *subject->buffer("y")));
      double vendor = kNone;
      if (blas) {
        FURLONG_TRY(vendor, vendor_ms(stage, *blas, shape, batch));
      }
      const auto facts = instance.facts();
      FURLONG_TRY(const auto chip, program::linear::resolve_chip("present", facts));
      const double peak_ms =
          chip.memory_rate > 0 ? static_cast<double>(bytes) / chip.memory_rate * 1e3 : kNone;
      const std::string group = fmt::format("{} x {}, batch {}: {} in {} cop{}", shape.n, shape.k, batch,
                                            human_bytes(bytes), copies, copies == 1 ? "y" : "ies");
      const auto row = [&](const std::string& name, double ms, double whole, double moved) {
        bench.row({name,
                   {{"us", ms * 1e3},
                    {"with x, us", whole * 1e3},
                    {"TB/s", moved / ms * 1e-9},
                    {"of read", read / ms * moved / static_cast<double>(bytes)},
                    {"of peak", peak_ms / ms * moved / static_cast<double>(bytes)}},
                   group});
      };
      const auto q8 = static_cast<double>(bytes);
      row("int4 (" + int4.name + ")", int4.ms, int4.whole_ms, q8);
      row("char4 (" + char4.name + ")", char4.ms, char4.whole_ms, q8);
      if (!imma.name.empty()) row("matrix (" + imma.name + ")", imma.ms, imma.whole_ms, q8);
      row("one int8 word (" + int8.name + ")", int8.ms, int8.whole_ms, q8);
      row("dequant (" + dequant.name + ")", dequant.ms, dequant.whole_ms, q8);
      row("plain read", read, kNone, q8);
      row("vendor, bf16", vendor, kNone, static_cast<double>(shape.n * shape.k) * 2);
      const double ggml = ggml_us(shape, batch);
      row("ggml (elsewhere)", ggml * 1e-3, kNone, q8);
      const double ours = std::fmin(int4.ms, imma.ms);
      const std::string key = fmt::format("gemv_{}x{}_b{}", shape.n, shape.k, batch);
      bench.metric(key + "_us", ours * 1e3, Better::lower, {.relative = 0.03, .absolute = 0.1});
      if (stage.on_card() && ggml == ggml) faster = faster && ours * 1e3 < ggml;
      if (shape.n >= 28672 && batch == 1) worst_share = std::min(worst_share, read / ours);
      say(fmt::format("{}: {:.1f} us, {:.0f}% of the read", group, ours * 1e3, 100 * read / ours));
    }
  }
  if (!stage.on_card() || smoke) return {};
  bench.must(faster, "faster than ggml's kernel at every shape and batch");
  bench.at_least("share of the plain read on the two large shapes, one vector", worst_share, 0.92);
  return {};
}

}  // namespace furlong::bench
