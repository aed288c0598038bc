#include "furlong/fleet/simulate/internal/models.h"

#include "furlong/base/hash.h"

namespace furlong::fleet::internal {
namespace {

using namespace std::string_view_literals;

constexpr std::string_view nvidia[] = {"570.86.15", "570.133.20", "575.57.08", "580.65.06", "580.95.05"};
constexpr std::string_view amd[] = {"3581.0", "3590.0", "3625.0"};
constexpr std::string_view apple[] = {"14.5", "15.1", "15.3"};

// The catalogues of programs/lottery/lottery.toml and programs/linear/gemv.toml.
constexpr std::string_view lottery_cuda[] = {"base", "u2",     "u8",     "ldg",    "ldcg",   "ldcs",
                                             "r32",  "r64",    "lb4-w4", "lb8-w2", "w2",     "w4",
                                             "w8",   "u2-ldg", "u2-w4",  "ldg-w4", "ldcg-w4"};
constexpr std::string_view lottery_metal[] = {"base",    "u2",      "u8",        "mt256", "mt512",
                                              "mt1024",  "g64",     "g128",      "g256",  "osize",
                                              "u2-g128", "u8-g128", "mt256-g128"};
constexpr std::string_view lottery_opencl[] = {"base", "u2",   "u8",      "g64",    "g128",
                                               "g256", "fast", "u2-g128", "u8-g128"};
constexpr std::string_view gemv_cuda[] = {"base", "imma", "char4", "w4",    "w16",   "r2",       "r4",
                                          "u2",   "u4",   "s4",    "r2-u2", "w4-r2", "char4-r2", "imma-u2"};

std::span<const std::string_view> lottery_variants(std::string_view backend) {
  if (backend == "cuda") return lottery_cuda;
  if (backend == "metal") return lottery_metal;
  return lottery_opencl;
}

std::span<const std::string_view> gemv_variants(std::string_view backend) {
  if (backend == "cuda") return gemv_cuda;
  return {};
}

double number(const record::ProgramClass& features, std::string_view name) {
  for (const auto& [feature, value] : features)
    if (const std::int64_t* whole = value.integer(); feature == name && whole != nullptr)
      return static_cast<double>(*whole);
  return 0;
}

/// A hash costs its loads; wide ones fetch more.
double lottery_factor(const record::ProgramClass& features) {
  return 128 / number(features, "loads") * (1 - 0.009 * number(features, "wide"));
}

double gemv_factor(const record::ProgramClass& features) { return 1 - 0.04 * number(features, "batch"); }

std::string silicon_hash(const record::Silicon& silicon) {
  Hasher hasher;
  hasher.add_field("furlong silicon 1").add_field(silicon.vendor).add_field(silicon.arch);
  hasher.add_field(std::to_string(silicon.multiprocessors)).add_field(std::to_string(silicon.memory_bytes));
  hasher.add_field(std::to_string(silicon.memory_clock_mhz));
  return hasher.finish().brief();
}

record::Silicon silicon(std::string vendor, std::string arch, int multiprocessors, std::uint64_t memory_gib,
                        int memory_clock_mhz) {
  record::Silicon made{.vendor = std::move(vendor),
                       .arch = std::move(arch),
                       .multiprocessors = multiprocessors,
                       .memory_bytes = memory_gib << 30,
                       .memory_clock_mhz = memory_clock_mhz};
  made.hash = silicon_hash(made);
  return made;
}

Model cuda(std::vector<std::string_view> labels, record::Silicon silicon, double power_w, double mhs,
           double gemv_rate, double noise) {
  const std::string_view name = labels.front();
  return {name,
          std::move(labels),
          std::move(silicon),
          "cuda",
          "cuda",
          "NVRTC 13.0",
          nvidia,
          power_w,
          mhs,
          gemv_rate,
          noise};
}

std::vector<Model> make_models() {
  std::vector<Model> made{
      cuda({"NVIDIA_H200"}, silicon("NVIDIA", "sm_90", 132, 141, 3201), 700, 196.5, 4200, 1),
      cuda({"NVIDIA_A100-SXM4-80GB"}, silicon("NVIDIA", "sm_80", 108, 80, 1593), 400, 98.2, 1790, 1.2),
      cuda({"NVIDIA_L40S"}, silicon("NVIDIA", "sm_89", 142, 48, 9001), 350, 74.6, 760, 2),
      // Drivers disagree about the brand's name.
      cuda({"NVIDIA_GeForce_RTX_5090", "GeForce_RTX_5090"}, silicon("NVIDIA", "sm_120", 170, 32, 14001), 575,
           115.9, 1620, 3),
      cuda({"NVIDIA_GeForce_RTX_4090"}, silicon("NVIDIA", "sm_89", 128, 24, 10501), 450, 71.3, 930, 3),
      cuda({"NVIDIA_GeForce_RTX_3060"}, silicon("NVIDIA", "sm_86", 28, 12, 7501), 170, 24.1, 330, 4),
      // The same name was sold with a narrower memory.
      cuda({"NVIDIA_GeForce_RTX_3060"}, silicon("NVIDIA", "sm_86", 28, 8, 7501), 170, 16.9, 220, 4),
  };
  made.back().name = "NVIDIA_GeForce_RTX_3060_8GB";
  made.push_back({"AMD_Radeon_RX_7900_XTX",
                  {"AMD_Radeon_RX_7900_XTX", "gfx1100"},
                  silicon("AMD", "gfx1100", 96, 24, 1249),
                  "opencl",
                  "opencl",
                  "clang 17.0",
                  amd,
                  355,
                  61.4,
                  0,
                  4});
  made.push_back({"Apple_M2_Max",
                  {"Apple_M2_Max"},
                  silicon("Apple", "apple8", 38, 64, 0),
                  "metal",
                  "metal",
                  "Metal 3.2",
                  apple,
                  0,
                  20.8,
                  0,
                  5});
  return made;
}

std::vector<Program> make_programs() {
  std::vector<record::ProgramClass> lottery;
  for (const int loads : {128, 64, 32})
    for (const int wide : {0, 8, 32}) lottery.push_back({{"loads", loads}, {"wide", wide}});
  std::vector<record::ProgramClass> gemv;
  for (const auto& [n, k, batch] : {std::tuple{4096, 4096, 1}, {14336, 4096, 1}, {4096, 14336, 4}})
    gemv.push_back({{"n", n}, {"k", k}, {"batch", batch}, {"rotate_mib", 128}});
  return {{"lottery", "MH/s", true, std::move(lottery), lottery_variants, lottery_factor},
          {"gemv", "Gweight/s", false, std::move(gemv), gemv_variants, gemv_factor}};
}

}  // namespace

const std::vector<Model>& models() {
  static const std::vector<Model> all = make_models();
  return all;
}

const std::vector<Program>& programs() {
  static const std::vector<Program> all = make_programs();
  return all;
}

}  // namespace furlong::fleet::internal
