#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "tests/fake_cuda/script.h"
#include "tests/fake_cuda/state.h"

namespace furlong::fake {
namespace {

constexpr std::size_t kGuard = std::size_t{2} << 20;
constexpr std::size_t kGranule = 512;    // what a card hands out
constexpr std::size_t kStale = 1 << 16;  // of fresh memory, filled with what nobody should rely on

std::size_t page_rounded(std::size_t bytes) { return (bytes + 4095) / 4096 * 4096; }
std::uint64_t card_rounded(std::uint64_t bytes) { return (bytes + kGranule - 1) / kGranule * kGranule; }

std::uint64_t used_on(int card) {
  std::uint64_t used = 0;
  for (const ContextTag* context : contexts()) used += context->card == card ? context->used : 0;
  return used;
}

}  // namespace

// The lists are locked by the caller.
std::uint64_t free_bytes(int card) {
  std::uint64_t taken = Script::the().bytes("others_use", 0) + used_on(card);
  for (const ContextTag* context : contexts()) {
    if (context->card == card) taken += Script::the().bytes("context_bytes", 64 << 20);
  }
  const std::uint64_t all = card_bytes(card);
  return all > taken ? all - taken : 0;
}

Status32 map_memory(ContextTag& context, std::size_t bytes, Address* out) {
  const std::uint64_t most = Script::the().bytes("out_of_memory_at", ~std::uint64_t{0});
  const std::uint64_t available = free_bytes(context.card);
  // Compared before rounding: sizes near 2^64 are asked for in tests.
  if (bytes > available || card_rounded(bytes) > available || used_on(context.card) + bytes > most)
    return kOutOfMemory;
  const std::size_t inner = page_rounded(bytes);
  void* mapping =
      mmap(nullptr, inner + 2 * kGuard, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED) return kOutOfMemory;
  auto* data = static_cast<std::uint8_t*>(mapping) + kGuard;
  if (mprotect(data, inner, PROT_READ | PROT_WRITE) != 0) {
    munmap(mapping, inner + 2 * kGuard);
    return kOutOfMemory;
  }
  std::memset(data, 0xa5, std::min(inner, kStale));
  *out = reinterpret_cast<Address>(data);
  context.memory[*out] = bytes;
  context.used += card_rounded(bytes);
  return kSuccess;
}

bool unmap_memory(ContextTag& context, Address address) {
  const auto found = context.memory.find(address);
  if (found == context.memory.end()) return false;
  munmap(reinterpret_cast<void*>(address - kGuard), page_rounded(found->second) + 2 * kGuard);
  context.used -= card_rounded(found->second);
  context.memory.erase(found);
  return true;
}

// The end of an allocation counts as within it: a kernel may be given it and not use it.
bool in_memory(ContextTag& context, Address address, std::size_t bytes) {
  auto found = context.memory.upper_bound(address);
  if (found == context.memory.begin()) return false;
  --found;
  const Address offset = address - found->first;
  return offset <= found->second && bytes <= found->second - offset;
}

// Pinned memory is every context's.
bool in_pinned(ContextTag&, const void* at, std::size_t bytes) {
  const auto address = reinterpret_cast<std::uintptr_t>(at);
  for (const ContextTag* context : contexts()) {
    auto found = context->pinned.upper_bound(address);
    if (found == context->pinned.begin()) continue;
    --found;
    if (address - found->first + bytes <= found->second) return true;
  }
  return false;
}

}  // namespace furlong::fake
