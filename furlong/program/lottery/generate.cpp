#include <algorithm>
#include <cstring>
#include <numeric>
#include <span>
#include <string_view>

#include "furlong/base/hash.h"
#include "furlong/program/lottery/specification.h"

namespace furlong::program::lottery {
namespace {

constexpr std::uint64_t kMiB = 1ull << 20;
constexpr std::uint64_t kFirstDatasetMiB = 1024;
constexpr std::uint64_t kGrowthMiB = 8;  ///< a day
constexpr std::uint64_t kLastDay = (kLargestDataset / kMiB - kFirstDatasetMiB) / kGrowthMiB;

/// Words from BLAKE2b-256 of a label, the parameters and a block counter.
class Stream {
 public:
  explicit Stream(const Parameters& parameters) {
    constexpr std::string_view label = "furlong lottery program 1";
    std::memcpy(message_.data(), label.data(), label.size());
    std::ranges::copy(parameters.epoch_seed, message_.begin() + 32);
    store_le(&message_[64], static_cast<std::uint64_t>(parameters.day));
    store_le(&message_[72], static_cast<std::uint32_t>(parameters.loads));
    store_le(&message_[76], static_cast<std::uint32_t>(parameters.wide));
  }

  std::uint32_t next() {
    if (used_ == 8) {
      store_le(&message_[80], counter_++);
      block_ = blake2b_256(ByteView(message_));
      used_ = 0;
    }
    return load_le<std::uint32_t>(&block_.bytes[static_cast<std::size_t>(used_++) * 4]);
  }

  /// In [0, bound); the bias is under bound / 2^32.
  std::uint32_t below(std::uint32_t bound) {
    return static_cast<std::uint32_t>((static_cast<std::uint64_t>(next()) * bound) >> 32);
  }

  template <class T>
  void shuffle(std::span<T> items) {
    for (std::size_t i = items.size(); i > 1; --i)
      std::swap(items[i - 1], items[below(static_cast<std::uint32_t>(i))]);
  }

 private:
  std::array<std::uint8_t, 88> message_{};
  std::uint64_t counter_ = 0;
  Digest block_;
  int used_ = 8;
};

std::vector<Operation> draw_operations(Stream& stream, std::size_t loads, std::size_t wide) {
  // A dealt deck rather than independent draws: every program costs the same and has every operation.
  std::vector<Operation> arithmetic(kInstructions - loads);
  for (std::size_t i = 0; i < arithmetic.size(); ++i)
    arithmetic[i] = static_cast<Operation>(i % kArithmeticOperations);
  stream.shuffle(std::span(arithmetic));
  std::vector<Operation> reads(loads, Operation::load);
  std::fill_n(reads.begin(), wide, Operation::load_wide);
  stream.shuffle(std::span(reads));

  const std::size_t stride = kInstructions / loads;
  std::vector<Operation> operations;
  std::size_t next_arithmetic = 0;
  for (std::size_t i = 0; i < kInstructions; ++i)
    operations.push_back(i % stride == stride - 1 ? reads[i / stride] : arithmetic[next_arithmetic++]);
  return operations;
}

/// A source for destination `d` from the deck, in which every register has its turns, so that none is without
/// influence; never d itself and never its last source, so that no two instructions cancel.
std::uint8_t take_source(Stream& stream, std::vector<std::uint8_t>& deck, std::uint8_t d, int last_source) {
  const auto fits = [&](std::uint8_t source) { return source != d && source != last_source; };
  if (const auto found = std::ranges::find_if(deck, fits); found != deck.end()) {
    const std::uint8_t source = *found;
    deck.erase(found);
    return source;
  }
  for (;;) {  // the deck's end may hold only what does not fit
    const std::uint32_t k = stream.below(kRegisters - 1);
    const auto source = static_cast<std::uint8_t>(k < d ? k : k + 1);
    if (fits(source)) return source;
  }
}

}  // namespace

std::array<std::uint8_t, 32> demonstration_seed() {
  return blake2b_256(std::string_view("furlong lottery demonstration")).bytes;
}

Status check_parameters(const Parameters& p) {
  if (p.day < 0) return fail(Code::invalid, "day is {}: it must be 0 or more", p.day);
  if (p.geometry != "small" && p.geometry != "default")
    return fail(Code::invalid, "geometry is '{}': it must be 'small' or 'default'", p.geometry);
  if (p.dataset_mib != 0 && (p.dataset_mib < 64 || p.dataset_mib > 8192))
    return fail(Code::invalid, "dataset-mib is {}: it must be 64 to 8192 (or 0: by geometry and day)",
                p.dataset_mib);
  if (p.loads != 32 && p.loads != 64 && p.loads != 128)
    return fail(Code::invalid, "loads is {}: it must be 32, 64 or 128 per hash", p.loads);
  if (p.wide != 0 && p.wide != 8 && p.wide != 32)
    return fail(Code::invalid, "wide is {}: it must be 0, 8 or 32 per hash", p.wide);
  if (p.dataset_mib == 0 && p.geometry == "default" && static_cast<std::uint64_t>(p.day) > kLastDay)
    return fail(Code::invalid,
                "day is {}: the default dataset passes 16 GiB after day {}; give dataset-mib (64 to 8192)",
                p.day, kLastDay);
  return {};
}

Result<Geometry> geometry_of(const Parameters& p) {
  FURLONG_CHECK(check_parameters(p));
  const bool small = p.geometry == "small";
  Geometry geometry;
  geometry.cache_bytes = (small ? 1 : 16) * kMiB;
  if (p.dataset_mib != 0)
    geometry.dataset_bytes = static_cast<std::uint64_t>(p.dataset_mib) * kMiB;
  else if (small)
    geometry.dataset_bytes = 16 * kMiB;
  else
    geometry.dataset_bytes = (kFirstDatasetMiB + static_cast<std::uint64_t>(p.day) * kGrowthMiB) * kMiB;
  geometry.dataset_bytes -= geometry.dataset_bytes % kRowBytes;
  return geometry;
}

Result<LotteryProgram> generate_program(const Parameters& parameters) {
  FURLONG_CHECK(check_parameters(parameters));
  Stream stream(parameters);
  LotteryProgram program;
  for (auto& key : program.nonce_keys) key = stream.next();
  for (auto& key : program.hash_keys) key = stream.next();
  for (auto& key : program.register_keys) key = stream.next();

  const auto loads = static_cast<std::size_t>(parameters.loads / kIterations);
  const auto wide = static_cast<std::size_t>(parameters.wide / kIterations);
  const auto operations = draw_operations(stream, loads, wide);

  // Every sixteen instructions write each register once: no register goes stale.
  std::array<std::uint8_t, kInstructions> destinations{};
  for (std::size_t i = 0; i < kInstructions; i += kRegisters) {
    const auto block = std::span(destinations).subspan(i, kRegisters);
    std::iota(block.begin(), block.end(), std::uint8_t{0});
    stream.shuffle(block);
  }

  std::vector<std::uint8_t> sources(kInstructions - loads);
  for (std::size_t i = 0; i < sources.size(); ++i) sources[i] = static_cast<std::uint8_t>(i % kRegisters);
  stream.shuffle(std::span(sources));

  const auto stride = static_cast<std::uint32_t>(kInstructions / loads);
  std::array<int, kRegisters> last_source{};
  last_source.fill(-1);
  for (std::size_t i = 0; i < kInstructions; ++i) {
    Instruction& instruction = program.instructions[i];
    instruction.operation = operations[i];
    instruction.destination = destinations[i];
    const std::uint8_t d = instruction.destination;
    if (i % stride == stride - 1) {
      // The address is a register written since the load before, so no two loads share an address.
      instruction.source = destinations[i - 1 - stream.below(stride - 1)];
    } else {
      instruction.source = take_source(stream, sources, d, last_source[d]);
    }
    last_source[d] = instruction.source;
    const std::uint32_t word = stream.next();
    instruction.constant = word | (instruction.operation == Operation::high ? 0x80000000u : 1u);
    instruction.rotation = static_cast<std::uint8_t>(1 + stream.below(31));
  }
  return program;
}

}  // namespace furlong::program::lottery
