#include "furlong/program/linear/chips.h"

#include <cmath>
#include <cstdlib>
#include <vector>

#include "furlong/base/text.h"

namespace furlong::program::linear {
namespace {

constexpr std::uint64_t kKiB = 1024, kGB = 1'000'000'000, kGiB = std::uint64_t{1} << 30;

// Static shared memory is 48 KiB on all of them; the larger limits: CUDA C++ Programming Guide, "Technical
// Specifications per Compute Capability".
std::vector<Chip> rows() {
  return {
      Chip{.name = "t4",
           .label = "Tesla_T4",
           .sm = 75,
           .arch = "sm_75",
           .shared_bytes = 48 * kKiB,
           .shared_optin_bytes = 64 * kKiB,
           .multiprocessors = 40,
           .memory_bytes = 16 * kGiB,
           .memory_rate = 320.0 * kGB,
           .has = {},
           .source = "NVIDIA T4 datasheet (DS-09385-001); Turing whitepaper (WP-09183-001), table 2"},
      Chip{.name = "a100",
           .label = "NVIDIA_A100-SXM4-80GB",
           .sm = 80,
           .arch = "sm_80",
           .shared_bytes = 48 * kKiB,
           .shared_optin_bytes = 163 * kKiB,
           .multiprocessors = 108,
           .memory_bytes = 80 * kGiB,
           .memory_rate = 2039.0 * kGB,
           .has = {},
           .source = "NVIDIA A100 80GB datasheet (2188504); A100 whitepaper, table 1"},
      Chip{.name = "rtx3060",
           .label = "NVIDIA_GeForce_RTX_3060",
           .sm = 86,
           .arch = "sm_86",
           .shared_bytes = 48 * kKiB,
           .shared_optin_bytes = 99 * kKiB,
           .multiprocessors = 28,
           .memory_bytes = 12 * kGiB,
           .memory_rate = 360.0 * kGB,
           .has = {},
           .source =
               "NVIDIA GeForce RTX 3060 specifications (12 GB, 192 bit, 15 Gbit/s); Ampere GA10x whitepaper"},
      Chip{.name = "rtx4090",
           .label = "NVIDIA_GeForce_RTX_4090",
           .sm = 89,
           .arch = "sm_89",
           .shared_bytes = 48 * kKiB,
           .shared_optin_bytes = 99 * kKiB,
           .multiprocessors = 128,
           .memory_bytes = 24 * kGiB,
           .memory_rate = 1008.0 * kGB,
           .has = {},
           .source = "NVIDIA Ada GPU architecture whitepaper, appendix A"},
      Chip{.name = "h100",
           .label = "NVIDIA_H100_80GB_HBM3",
           .sm = 90,
           .arch = "sm_90",
           .shared_bytes = 48 * kKiB,
           .shared_optin_bytes = 227 * kKiB,
           .multiprocessors = 132,
           .memory_bytes = 80 * kGiB,
           .memory_rate = 3350.0 * kGB,
           .has = {},
           .source = "NVIDIA H100 datasheet (SXM); H100 whitepaper, table 3"},
      Chip{.name = "h200",
           .label = "NVIDIA_H200",
           .sm = 90,
           .arch = "sm_90",
           .shared_bytes = 48 * kKiB,
           .shared_optin_bytes = 227 * kKiB,
           .multiprocessors = 132,
           .memory_bytes = 141 * kGB,
           .memory_rate = 4800.0 * kGB,
           .has = {},
           .source = "NVIDIA H200 datasheet (SXM); multiprocessors and shared memory as its driver tells"},
      Chip{.name = "b200",
           .label = "NVIDIA_B200",
           .sm = 100,
           .arch = "sm_100",
           .shared_bytes = 48 * kKiB,
           .shared_optin_bytes = 227 * kKiB,
           .multiprocessors = 148,
           .memory_bytes = 180 * kGB,
           .memory_rate = 8000.0 * kGB,
           .has = {},
           .source = "NVIDIA DGX B200 datasheet (1,440 GB and 64 TB/s for 8); Blackwell tuning guide"},
      Chip{.name = "rtx5090",
           .label = "NVIDIA_GeForce_RTX_5090",
           .sm = 120,
           .arch = "sm_120",
           .shared_bytes = 48 * kKiB,
           .shared_optin_bytes = 99 * kKiB,
           .multiprocessors = 170,
           .memory_bytes = 32 * kGiB,
           .memory_rate = 1792.0 * kGB,
           .has = {},
           .source = "NVIDIA RTX Blackwell GPU architecture whitepaper, appendix A"},
  };
}

// The instructions follow from the architecture, so that a row cannot contradict it.
const std::vector<Chip>& table() {
  static const std::vector<Chip> filled = [] {
    std::vector<Chip> all = rows();
    for (Chip& chip : all) chip.has = instructions_of(chip.sm);
    return all;
  }();
  return filled;
}

std::int64_t fact(const lattice::Lookup& facts, std::string_view name) {
  const auto value = facts(name);
  return value && value->integer() != nullptr ? *value->integer() : 0;
}

std::string word_fact(const lattice::Lookup& facts, std::string_view name) {
  const auto value = facts(name);
  return value && value->word() != nullptr ? *value->word() : std::string();
}

// By how much the row's memory and multiprocessors differ from the device's.
double distance(const Chip& chip, const lattice::Lookup& facts) {
  const double mib = static_cast<double>(fact(facts, "device.memory_mib"));
  const double units = static_cast<double>(fact(facts, "device.multiprocessors"));
  const double own_mib = static_cast<double>(chip.memory_bytes >> 20);
  return std::fabs(mib - own_mib) / own_mib + std::fabs(units - chip.multiprocessors) / chip.multiprocessors;
}

Chip unlisted(const lattice::Lookup& facts, int sm) {
  Chip chip;
  chip.name = chip.label = chip.arch = fmt::format("sm_{}", sm);
  chip.sm = sm;
  chip.shared_bytes = 48 * kKiB;
  chip.shared_optin_bytes = static_cast<std::uint64_t>(fact(facts, "device.shared_bytes"));
  chip.multiprocessors = static_cast<int>(fact(facts, "device.multiprocessors"));
  chip.memory_bytes = static_cast<std::uint64_t>(fact(facts, "device.memory_mib")) << 20;
  chip.has = instructions_of(sm);
  chip.source = "the device's own facts";
  return chip;
}

}  // namespace

// PTX ISA 9.0: dp4a from sm_61, mma of f16 and int8 from sm_75, of bf16 and cp.async from sm_80, wgmma on
// sm_90a alone, of fp8 from sm_89; nvfp4 on sm_100 and sm_120.
Instructions instructions_of(int sm) {
  return {.dp4a = sm >= 61,
          .int8_mma = sm >= 75,
          .fp16_mma = sm >= 75,
          .bf16_mma = sm >= 80,
          .async_copy = sm >= 80,
          .warp_groups = sm == 90,
          .fp8_mma = sm >= 89,
          .nvfp4_mma = sm >= 100};
}

std::span<const Chip> chips() { return table(); }

Result<const Chip*> find_chip(std::string_view name) {
  std::vector<std::string> known;
  for (const Chip& chip : table()) {
    if (chip.name == name) return &chip;
    known.emplace_back(chip.name);
  }
  return fail(Code::invalid, "there is no chip '{}'{} (known: {})", name,
              did_you_mean(std::string(name), known), join(known, ", "));
}

Result<Chip> resolve_chip(std::string_view asked, const lattice::Lookup& facts) {
  const int present = static_cast<int>(fact(facts, "device.sm"));
  if (asked != "present") {
    FURLONG_TRY(const Chip* chip, find_chip(asked));
    if (present > 0 && present != chip->sm && word_fact(facts, "device.vendor") == "NVIDIA")
      return fail(Code::invalid,
                  "the text would be for a {} ({}), and this device is an sm_{}: leave chip at 'present', or "
                  "emit the text for the other card with furlong emit",
                  chip->name, chip->arch, present);
    return *chip;
  }
  if (present <= 0) return **find_chip(default_chip);
  const Chip* nearest = nullptr;
  for (const Chip& chip : table())
    if (chip.sm == present && (nearest == nullptr || distance(chip, facts) < distance(*nearest, facts)))
      nearest = &chip;
  return nearest != nullptr ? *nearest : unlisted(facts, present);
}

}  // namespace furlong::program::linear
