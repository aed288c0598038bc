// The made-up card: by default of the shape of an H100-class one with little memory.

#include <cstdlib>

#include "tests/fake_cuda/script.h"
#include "tests/fake_cuda/state.h"

namespace furlong::fake {
namespace {

const std::map<int, int>& defaults() {
  static const auto* values = new std::map<int, int>{
      {kAttributeMaxThreadsPerBlock, 1024},
      {kAttributeMaxBlockX, 1024},
      {kAttributeMaxBlockY, 1024},
      {kAttributeMaxBlockZ, 64},
      {kAttributeMaxGridX, 2147483647},
      {kAttributeMaxGridY, 65535},
      {kAttributeMaxGridZ, 65535},
      {kAttributeSharedPerBlock, 48 << 10},
      {kAttributeWarpSize, 32},
      {kAttributeRegistersPerBlock, 65536},
      {13, 1755000},  // clock in kHz
      {kAttributeMultiprocessors, 8},
      {kAttributeIntegrated, 0},
      {kAttributeComputeMode, 0},
      {kAttributePciBus, 0x1b},
      {kAttributePciDevice, 0},
      {kAttributeMemoryClockKhz, 2619000},
      {37, 5120},  // width of the memory bus
      {kAttributeL2Bytes, 4 << 20},
      {kAttributeThreadsPerMultiprocessor, 2048},
      {kAttributePciDomain, 0},
      {kAttributeMajor, 9},
      {kAttributeMinor, 0},
      {81, 233472},  // shared bytes of a multiprocessor
      {82, 65536},   // its registers
      {kAttributeSharedPerBlockOptin, 227 << 10},
      {106, 32},  // blocks of a multiprocessor
  };
  return *values;
}

}  // namespace

int card_count() { return static_cast<int>(Script::the().number("cards", 1)); }

bool known_attribute(int which) {
  return defaults().contains(which) || Script::the().has("attribute." + std::to_string(which));
}

int attribute(int card, int which) {
  const std::string number = std::to_string(which);
  const std::string own = std::to_string(card) + ".attribute." + number;
  std::string value = Script::the().first_of({own, "attribute." + number});
  if (value.empty() && which == kAttributeComputeMode) {
    value = Script::the().first_of({std::to_string(card) + ".compute_mode", "compute_mode"});
  }
  if (!value.empty()) return static_cast<int>(std::strtol(value.c_str(), nullptr, 0));
  const auto found = defaults().find(which);
  if (found == defaults().end()) return 0;
  return which == kAttributePciBus ? found->second + card : found->second;
}

std::uint64_t card_bytes(int card) {
  return parse_bytes(Script::the().first_of({std::to_string(card) + ".memory", "memory"}, "2GiB"));
}

}  // namespace furlong::fake
