// Products of two matrices: each precision as a share of its own ceiling and of the vendor's library in the
// same run, and the kernels of a precision beside each other.
#include <limits>
#include <map>

#include "bench/linear/subject.h"
#include "furlong/device/ceilings.h"
#include "furlong/device/cuda/vendor_blas.h"

namespace furlong::bench {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

struct Kernel {
  std::string precision, pipeline;
  std::vector<std::string> variants;  // the fastest counts
};

std::vector<Kernel> kernels() {
  std::vector<Kernel> all{{"int64", "plain", {"base"}}, {"int8_dp4a", "plain", {"dp4a"}}};
  for (const auto& [precision, tag] :
       {std::pair{"int8_imma", "imma"}, {"bf16_hmma", "bf16"}, {"fp16_hmma", "fp16"}}) {
    const std::string name = tag;
    all.push_back({precision, "basic", {name + "-basic"}});
    all.push_back({precision, "double", {name, name + "-t64", name + "-st3", name + "-t64-st3"}});
    all.push_back({precision, "group", {name + "-group", name + "-group-t256"}});
  }
  return all;
}

std::optional<device::CeilingKind> ceiling_of(const std::string& precision) {
  if (precision == "int8_imma") return device::CeilingKind::matrix_i8;
  if (precision == "bf16_hmma") return device::CeilingKind::matrix_bf16;
  if (precision == "fp16_hmma") return device::CeilingKind::matrix_f16;
  return std::nullopt;
}

Result<double> vendor_ms(Subject& subject, device::VendorBlas& blas, const std::string& precision,
                         std::int64_t side) {
  using Type = device::VendorProduct::Type;
  const Type type = precision == "int8_imma"   ? Type::int8
                    : precision == "bf16_hmma" ? Type::bf16
                                               : Type::fp16;
  // The operands that our kernel has just multiplied; a buffer of its own for the product, whose elements are
  // its own.
  FURLONG_TRY(const auto c, subject.device().allocate(static_cast<std::size_t>(side * side) * 4));
  const device::VendorProduct product{.type = type,
                                      .m = side,
                                      .n = side,
                                      .k = side,
                                      .a = subject.buffer("packed_a"),
                                      .b = subject.buffer("packed_b"),
                                      .c = c.get()};
  const int batch = side <= 2048 ? 200 : 4;
  FURLONG_TRY(const auto times, blas.time(std::span(&product, 1), 6, batch));
  return median({times.begin() + 1, times.end()});
}

Status one_side(Bench& bench, Stage& stage, std::int64_t side, const device::Ceilings& ceilings,
                Result<device::VendorBlas>& blas) {
  const bool smoke = bench.smoke();
  FURLONG_TRY(const auto instance,
              linear_instance(stage, "gemm", {{"m", side}, {"n", side}, {"k", side}, {"operand_max", 45}}));
  std::vector<std::string> all;  // every variant's scratch must have room
  for (const Kernel& kernel : kernels()) {
    for (const std::string& variant : kernel.variants) {
      FURLONG_TRY(const lattice::Point point, lattice::parse_variant(instance.lattice(), variant));
      FURLONG_TRY(const std::string why, instance.lattice().why_invalid(point, instance.facts()));
      if (why.empty()) all.push_back(variant);
    }
  }
  FURLONG_TRY(const auto subject, Subject::make(stage, instance, all));
  const double operations =
      2.0 * static_cast<double>(side) * static_cast<double>(side) * static_cast<double>(side);
  std::map<std::string, std::map<std::string, double>> found;  // precision → pipeline → ms
  std::map<std::string, double> vendor;
  Bytes plain;  // int64's product
  const std::string group = fmt::format("{0} x {0} x {0}", side);
  for (const Kernel& kernel : kernels()) {
    double best = kNone;
    std::string name;
    for (const std::string& variant : kernel.variants) {
      const Status ready = subject->prepare(variant);
      if (!ready) {
        if (!smoke && ready.error().code() != Code::invalid) return Error(ready.error()).with(variant);
        continue;  // matrix instructions do not compile for a CPU, warp groups are Hopper's
      }
      if (!subject->notes().empty() && variant != "base") continue;  // it would be another kernel
      FURLONG_TRY(const double ms, subject->time_ms());
      if (!(best <= ms)) best = ms, name = variant;
    }
    if (name.empty()) continue;
    FURLONG_CHECK(subject->prepare(name));
    // Every product exact: the same bytes as int64's at this size, and the reference's on the check's.
    FURLONG_TRY(Bytes got, subject->read("c"));
    if (plain.empty())
      plain = std::move(got);
    else if (got != plain)
      return fail(Code::mismatch, "{} differs from int64 at {}", name, group);
    if (blas && ceiling_of(kernel.precision) && !vendor.contains(kernel.precision)) {
      FURLONG_TRY(vendor[kernel.precision], vendor_ms(*subject, *blas, kernel.precision, side));
    }
    FURLONG_CHECK(subject->check(name));
    found[kernel.precision][kernel.pipeline] = best;
    const double rate = operations / best * 1e-9;  // TOP/s
    double of_ceiling = kNone;
    if (const auto kind = ceiling_of(kernel.precision))
      if (const auto ceiling = ceilings.rate(*kind)) of_ceiling = rate * 1e12 / *ceiling;
    const double of_vendor = vendor.contains(kernel.precision) ? vendor[kernel.precision] / best : kNone;
    bench.row({fmt::format("{} {} ({})", kernel.precision, kernel.pipeline, name),
               {{"us", best * 1e3}, {"TOP/s", rate}, {"of ceiling", of_ceiling}, {"of vendor", of_vendor}},
               group});
    say(fmt::format("{}: {} {}: {:.1f} us, {:.1f} TOP/s", group, kernel.precision, kernel.pipeline,
                    best * 1e3, rate));
  }
  for (const auto& [precision, ms] : vendor)
    bench.row({"vendor, " + precision.substr(0, 4),
               {{"us", ms * 1e3}, {"TOP/s", operations / ms * 1e-9}, {"of ceiling", kNone}, {"of vendor", 1}},
               group});
  const auto ratio = [&](const char* a, const char* pa, const char* b, const char* pb) {
    return found[a].contains(pa) && found[b].contains(pb) ? found[a][pa] / found[b][pb] : kNone;
  };
  bench.row({group,
             {{"int8_imma over bf16_hmma, double", ratio("bf16_hmma", "double", "int8_imma", "double")},
              {"the same, warp groups", ratio("bf16_hmma", "group", "int8_imma", "group")},
              {"double over basic, int8", ratio("int8_imma", "basic", "int8_imma", "double")},
              {"bf16", ratio("bf16_hmma", "basic", "bf16_hmma", "double")},
              {"group over double, int8", ratio("int8_imma", "double", "int8_imma", "group")},
              {"bf16 ", ratio("bf16_hmma", "double", "bf16_hmma", "group")}},
             "times faster"});
  if (smoke) return {};
  for (const auto& [precision, by_pipeline] : found) {
    double best = kNone;
    for (const auto& [pipeline, ms] : by_pipeline) best = std::fmin(best, ms);
    bench.metric(fmt::format("gemm_{}_{}_tops", side, precision), operations / best * 1e-9, Better::higher,
                 {.relative = 0.05});
  }
  return {};
}

}  // namespace

Status gemm_section(Bench& bench, Stage& stage) {
  device::Ceilings ceilings;
  if (stage.on_card()) {
    device::CeilingOptions options;
    options.sizes = {std::uint64_t{64} << 20};
    FURLONG_TRY(ceilings, device::measure_ceilings(stage.device(), options));
  }
  auto blas = device::VendorBlas::open(stage.device());
  if (!blas && stage.on_card()) say(fmt::format("the vendor's library is left out: {}", blas.error().text()));
  for (const std::int64_t side :
       bench.smoke() ? std::vector<std::int64_t>{64} : std::vector<std::int64_t>{1024, 8192})
    FURLONG_CHECK(one_side(bench, stage, side, ceilings, blas));
  return {};
}

}  // namespace furlong::bench
