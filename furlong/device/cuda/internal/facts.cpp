#include "furlong/device/cuda/internal/facts.h"

#include <algorithm>
#include <array>

#include "furlong/device/silicon.h"

namespace furlong::device::cuda {
namespace {

// As nvidia-smi writes it: GPU-8-4-4-4-12 hexadecimal digits.
std::string uuid_text(const Uuid& uuid) {
  const std::string hex = to_hex(ByteView(uuid.bytes, sizeof uuid.bytes));
  return fmt::format("GPU-{}-{}-{}-{}-{}", hex.substr(0, 8), hex.substr(8, 4), hex.substr(12, 4),
                     hex.substr(16, 4), hex.substr(20));
}

}  // namespace

std::string bus_id(const Api& api, Card card) {
  return fmt::format("{:04x}:{:02x}:{:02x}.0", api.attribute(card, kAttributePciDomain),
                     api.attribute(card, kAttributePciBus), api.attribute(card, kAttributePciDevice));
}

Facts card_facts(const Api& api, Card card, int index) {
  Facts facts;
  facts.backend = "cuda";
  facts.index = index;
  std::array<char, 256> name{};
  if (api.card_name(name.data(), static_cast<int>(name.size()) - 1, card) == kSuccess)
    facts.label = label_of(name.data());
  facts.silicon.vendor = "NVIDIA";
  facts.silicon.arch =
      fmt::format("sm_{}{}", api.attribute(card, kAttributeMajor), api.attribute(card, kAttributeMinor));
  facts.silicon.multiprocessors = api.attribute(card, kAttributeMultiprocessors);
  std::size_t memory = 0;
  if (api.card_memory(&memory, card) == kSuccess) {
    facts.silicon.memory_bytes = rounded_memory(memory);
    facts.max_buffer_bytes = memory;
  }
  facts.silicon.memory_clock_mhz = api.attribute(card, kAttributeMemoryClockKhz) / 1000;
  facts.driver = fmt::format("CUDA-{}.{}", api.version / 1000, api.version % 1000 / 10);
  Uuid uuid{};
  if (api.uuid != nullptr && api.uuid(&uuid, card) == kSuccess) facts.uuid = uuid_text(uuid);
  facts.languages = {Language::cuda};
  facts.max_threads_per_block = api.attribute(card, kAttributeMaxThreadsPerBlock, 1);
  for (int axis = 0; axis < 3; ++axis)
    facts.max_block[static_cast<std::size_t>(axis)] =
        static_cast<std::uint64_t>(api.attribute(card, kAttributeMaxBlockX + axis, 1));
  const int shared = api.attribute(card, kAttributeSharedPerBlock);
  facts.max_shared_bytes =
      static_cast<std::uint64_t>(std::max(shared, api.attribute(card, kAttributeSharedPerBlockOptin)));
  facts.cache_bytes = static_cast<std::uint64_t>(api.attribute(card, kAttributeL2Bytes));
  facts.warp = api.attribute(card, kAttributeWarpSize, 32);
  facts.memory_is_host_memory = api.attribute(card, kAttributeIntegrated) != 0;
  return facts;
}

}  // namespace furlong::device::cuda
