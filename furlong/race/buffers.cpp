#include "furlong/race/buffers.h"

#include <algorithm>
#include <cstring>
#include <thread>

#include "furlong/race/internal/hold.h"

namespace furlong::race {
namespace {

using program::ArgumentKind;
using program::Direction;

constexpr std::size_t kPiece = 256 << 10;      // read back and compared at a time
constexpr std::size_t kWholeCheck = 16 << 20;  // inputs up to this are compared whole
constexpr std::size_t kFullPoison = 1 << 20;   // outputs up to this are poisoned byte by byte
constexpr std::size_t kUpload = 64 << 20;      // of a dataset, while the device is held
constexpr std::size_t kEnd = 4096;             // of larger ones, and of spot checks
constexpr int kSpots = 16;
constexpr std::size_t kUnpainted = SIZE_MAX;

std::size_t aligned(std::size_t bytes) { return (bytes + 255) / 256 * 256; }

bool is_input(const program::ArgumentSpec& spec) {
  return spec.kind != ArgumentKind::scalar && spec.kind != ArgumentKind::dataset &&
         spec.direction == Direction::in;
}

/// A byte string in which every byte differs from `expected`.
Bytes differing(ByteView expected, Random& random) {
  Bytes out(expected.begin(), expected.end());
  for (std::size_t i = 0; i < out.size(); i += 8) {
    const std::uint64_t bits = random.next();
    for (std::size_t j = 0; j < 8 && i + j < out.size(); ++j) {
      const auto mask = static_cast<std::uint8_t>(bits >> (8 * j));
      out[i + j] ^= mask == 0 ? std::uint8_t{0x5A} : mask;
    }
  }
  return out;
}

}  // namespace

Buffers::Buffers(device::Device& device, std::shared_ptr<const program::Program> program, std::uint64_t seed)
    : device_(&device), program_(std::move(program)), guard_(guard_bytes), seed_(seed) {
  Random random(seed, "guard zones");
  for (std::uint8_t& byte : guard_) byte = static_cast<std::uint8_t>(random.next() >> 56);
}

Result<std::unique_ptr<Buffers>> Buffers::allocate(device::Device& device,
                                                   std::shared_ptr<const program::Program> program,
                                                   std::span<const std::size_t> bytes, std::uint64_t seed) {
  return make(device, std::move(program), bytes, seed, nullptr);
}

Result<std::unique_ptr<Buffers>> Buffers::allocate_beside(const Buffers& other, device::Device& device,
                                                          std::shared_ptr<const program::Program> program,
                                                          std::span<const std::size_t> bytes,
                                                          std::uint64_t seed) {
  return make(device, std::move(program), bytes, seed, &other);
}

const Buffers::Slot* Buffers::dataset_for(const device::Device& device, const program::Program& program,
                                          std::size_t bytes) const {
  if (&device != device_ || !dataset_loaded_ || !program.recipe || !program_->recipe) return nullptr;
  const std::string key = program.recipe->dataset_key();
  if (key.empty() || key != program_->recipe->dataset_key()) return nullptr;
  for (std::size_t i = 0; i < slots_.size(); ++i)
    if (program_->arguments[i].kind == ArgumentKind::dataset)
      return slots_[i].room >= bytes ? &slots_[i] : nullptr;
  return nullptr;
}

Result<std::unique_ptr<Buffers>> Buffers::make(device::Device& device,
                                               std::shared_ptr<const program::Program> program,
                                               std::span<const std::size_t> bytes, std::uint64_t seed,
                                               const Buffers* beside) {
  std::unique_ptr<Buffers> made(new Buffers(device, std::move(program), seed));
  const auto& arguments = made->program_->arguments;
  if (bytes.size() != arguments.size()) {
    return fail(Code::internal, "{} buffer sizes for {} arguments", bytes.size(), arguments.size());
  }
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    Slot slot;
    slot.painted_at = kUnpainted;
    const Slot* shared = beside != nullptr && arguments[i].kind == ArgumentKind::dataset
                             ? beside->dataset_for(device, *made->program_, bytes[i])
                             : nullptr;
    if (shared != nullptr) {
      slot.room = shared->room;
      slot.buffer = shared->buffer;
      made->samples_ = beside->samples_;
      for (Sample& sample : made->samples_) sample.argument = i;
      made->dataset_loaded_ = true;
    } else if (arguments[i].kind != ArgumentKind::scalar) {
      slot.room = aligned(bytes[i]);
      auto buffer = device.allocate(slot.room + 2 * guard_bytes);
      if (!buffer) return std::move(buffer).error().with(fmt::format("allocating '{}'", arguments[i].name));
      slot.buffer = *std::move(buffer);
    }
    made->slots_.push_back(std::move(slot));
  }
  return made;
}

bool Buffers::fits(const device::Device& device, const program::Program& program,
                   std::span<const std::size_t> bytes) const {
  if (&device != device_ || &program != program_.get() || bytes.size() != slots_.size()) return false;
  for (std::size_t i = 0; i < bytes.size(); ++i)
    if (slots_[i].buffer && bytes[i] > slots_[i].room) return false;
  return true;
}

void Buffers::remember(std::size_t argument, ByteView dataset) {
  Random random(seed_, "dataset samples");
  const auto keep = [&](std::size_t offset) {
    const std::size_t count = std::min(kEnd, dataset.size() - offset);
    samples_.push_back({argument, offset,
                        Bytes(dataset.begin() + static_cast<std::ptrdiff_t>(offset),
                              dataset.begin() + static_cast<std::ptrdiff_t>(offset + count))});
  };
  if (dataset.empty()) return;
  keep(0);
  keep(dataset.size() - std::min(kEnd, dataset.size()));
  for (int i = 0; i < 4 * kSpots; ++i) keep(random.below(dataset.size()));
}

Status Buffers::load_dataset(const Context& context) {
  if (dataset_loaded_) return {};
  samples_.clear();
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    const program::ArgumentSpec& spec = program_->arguments[i];
    if (spec.kind != ArgumentKind::dataset) continue;
    if (!program_->recipe) {
      return fail(Code::invalid, "'{}' is a dataset, and the program has no recipe that builds it",
                  spec.name);
    }
    Bytes bytes(program_->recipe->dataset_bytes());
    if (bytes.size() > slots_[i].room) {
      return fail(Code::invalid, "the recipe's dataset has {} bytes, but '{}' has room for {}", bytes.size(),
                  spec.name, slots_[i].room);
    }
    const int threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
    FURLONG_CHECK_DOING(program_->recipe->build_dataset(bytes, threads, context.stop), "building '{}'",
                        spec.name);
    for (std::size_t at = 0; at < bytes.size(); at += kUpload) {
      const Hold hold(context);
      FURLONG_CHECK_DOING(
          slots_[i].buffer->write(guard_bytes + at,
                                  ByteView(bytes).subspan(at).first(std::min(kUpload, bytes.size() - at))),
          "uploading '{}'", spec.name);
    }
    remember(i, bytes);
  }
  dataset_loaded_ = true;
  return {};
}

Status Buffers::paint(std::size_t argument, std::size_t size) {
  Slot& slot = slots_[argument];
  if (size > slot.room) {
    return fail(Code::internal, "'{}' needs {} bytes and has room for {}", program_->arguments[argument].name,
                size, slot.room);
  }
  if (slot.painted_at == size) return {};
  slot.painted_at = kUnpainted;
  FURLONG_CHECK(slot.buffer->write(0, guard_));
  FURLONG_CHECK(slot.buffer->write(guard_bytes + size, guard_));
  slot.painted_at = size;
  return {};
}

Status Buffers::load(const program::RunInputs& inputs, std::uint64_t id) {
  const bool there = loaded_ == id && id != 0;
  loaded_ = 0;
  if (!there) ++scratch_epoch_;  // a layout of other inputs
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    const program::ArgumentSpec& spec = program_->arguments[i];
    if (!slots_[i].buffer) continue;
    FURLONG_CHECK_DOING(paint(i, inputs.buffer_bytes[i]), "painting the guards of '{}'", spec.name);
    const bool inout = spec.direction == Direction::inout;
    if (inputs.bytes[i].empty() || spec.kind == ArgumentKind::dataset || (there && !inout)) continue;
    if (inputs.bytes[i].size() > inputs.buffer_bytes[i]) {
      return fail(Code::internal, "{}: '{}' has {} bytes for a buffer of {}", inputs.name, spec.name,
                  inputs.bytes[i].size(), inputs.buffer_bytes[i]);
    }
    FURLONG_CHECK_DOING(slots_[i].buffer->write(guard_bytes, inputs.bytes[i]), "uploading '{}'", spec.name);
  }
  loaded_ = id;
  return {};
}

void Buffers::forget() {
  loaded_ = 0;
  ++scratch_epoch_;
  for (Slot& slot : slots_) slot.painted_at = kUnpainted;
}

Status Buffers::restore(const program::RunInputs& inputs) {
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    if (!slots_[i].buffer || program_->arguments[i].direction != Direction::inout || inputs.bytes[i].empty())
      continue;
    FURLONG_CHECK_DOING(slots_[i].buffer->write(guard_bytes, inputs.bytes[i]), "uploading '{}'",
                        program_->arguments[i].name);
  }
  return {};
}

std::size_t Buffers::inout_bytes(const program::Program& program, const program::RunInputs& inputs) {
  std::size_t sum = 0;
  for (std::size_t i = 0; i < program.arguments.size(); ++i)
    if (program.arguments[i].direction == Direction::inout &&
        program.arguments[i].kind != ArgumentKind::scalar)
      sum += inputs.bytes[i].size();
  return sum;
}

Status Buffers::poison(const program::RunInputs& inputs, const std::vector<Bytes>& expected, Random& random) {
  ++scratch_epoch_;
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    const program::ArgumentSpec& spec = program_->arguments[i];
    const std::size_t size = inputs.buffer_bytes[i];
    if (!slots_[i].buffer || size == 0) continue;
    if (spec.direction != Direction::out && spec.direction != Direction::scratch) continue;
    device::Buffer& buffer = *slots_[i].buffer;
    const bool tolerant =
        program_->check.kind == program::CheckKind::tolerance && program::is_floating(spec.type);
    if (spec.direction == Direction::out && tolerant) {
      // All bits set is NaN in every floating type, and NaN passes no tolerance; any other poison could.
      FURLONG_CHECK(buffer.fill(0xFF, guard_bytes, size));
      continue;
    }
    const auto byte = static_cast<std::uint8_t>(random.next() >> 56);
    const bool known = spec.direction == Direction::out && i < expected.size() && expected[i].size() == size;
    if (known && size <= kFullPoison) {
      FURLONG_CHECK(buffer.write(guard_bytes, differing(expected[i], random)));
      continue;
    }
    FURLONG_CHECK(buffer.fill(byte, guard_bytes, size));
    if (!known) continue;
    const ByteView all(expected[i]);
    FURLONG_CHECK(buffer.write(guard_bytes, differing(all.first(kEnd), random)));
    FURLONG_CHECK(buffer.write(guard_bytes + size - kEnd, differing(all.last(kEnd), random)));
  }
  return {};
}

Status Buffers::check_zone(std::size_t argument, std::size_t offset, bool after) {
  scratch_.resize(guard_bytes);
  FURLONG_CHECK(slots_[argument].buffer->read(offset, scratch_));
  if (scratch_ == guard_) return {};
  const auto first = std::mismatch(scratch_.begin(), scratch_.end(), guard_.begin()).first - scratch_.begin();
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < guard_bytes; ++i) wrong += scratch_[i] != guard_[i];
  slots_[argument].painted_at = kUnpainted;  // painted anew by the next load
  const std::string& name = program_->arguments[argument].name;
  if (after) {
    return fail(Code::mismatch,
                "it wrote past the end of '{}': {} bytes of the guard zone changed, the first {} past it",
                name, wrong, first);
  }
  return fail(Code::mismatch,
              "it wrote before the start of '{}': {} bytes of the guard zone changed, the first {} before it",
              name, wrong, guard_bytes - static_cast<std::size_t>(first));
}

Status Buffers::check_guards(const program::RunInputs& inputs) {
  Status found;
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    if (!slots_[i].buffer) continue;
    for (const bool after : {false, true}) {
      Status zone = check_zone(i, after ? guard_bytes + inputs.buffer_bytes[i] : 0, after);
      if (!zone && zone.error().code() != Code::mismatch) return zone;
      if (!zone && found) found = std::move(zone);
    }
  }
  return found;
}

Status Buffers::check_piece(std::size_t argument, std::size_t offset, ByteView want) {
  for (std::size_t at = 0; at < want.size(); at += kPiece) {
    const std::size_t count = std::min(kPiece, want.size() - at);
    scratch_.resize(count);
    FURLONG_CHECK(slots_[argument].buffer->read(guard_bytes + offset + at, scratch_));
    if (std::memcmp(scratch_.data(), want.data() + at, count) == 0) continue;
    const auto first =
        std::mismatch(scratch_.begin(), scratch_.end(), want.begin() + static_cast<std::ptrdiff_t>(at));
    const std::string& name = program_->arguments[argument].name;
    const auto byte = offset + at + static_cast<std::size_t>(first.first - scratch_.begin());
    if (program_->arguments[argument].kind == ArgumentKind::dataset) dataset_loaded_ = false;
    loaded_ = 0;
    return fail(Code::mismatch, "it wrote to its input '{}' (byte {})", name, byte);
  }
  return {};
}

Status Buffers::check_inputs(const program::RunInputs& inputs, Random& random) {
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    if (!slots_[i].buffer || !is_input(program_->arguments[i])) continue;
    const ByteView want(inputs.bytes[i]);
    if (want.size() <= kWholeCheck) {
      FURLONG_CHECK(check_piece(i, 0, want));
      continue;
    }
    FURLONG_CHECK(check_piece(i, 0, want.first(kEnd)));
    FURLONG_CHECK(check_piece(i, want.size() - kEnd, want.last(kEnd)));
    for (int spot = 0; spot < kSpots; ++spot) {
      const std::size_t at = random.below(want.size() - kEnd);
      FURLONG_CHECK(check_piece(i, at, want.subspan(at, kEnd)));
    }
  }
  if (samples_.empty() || !dataset_loaded_) return {};
  FURLONG_CHECK(check_piece(samples_[0].argument, samples_[0].offset, samples_[0].bytes));
  FURLONG_CHECK(check_piece(samples_[1].argument, samples_[1].offset, samples_[1].bytes));
  for (int spot = 0; spot < kSpots; ++spot) {
    const Sample& sample = samples_[random.below(samples_.size())];
    FURLONG_CHECK(check_piece(sample.argument, sample.offset, sample.bytes));
  }
  return {};
}

Result<Bytes> Buffers::read(std::size_t argument, const program::RunInputs& inputs) {
  Bytes bytes(inputs.buffer_bytes[argument]);
  FURLONG_CHECK(slots_[argument].buffer->read(guard_bytes, bytes));
  return bytes;
}

Result<bool> Buffers::equals(std::size_t argument, ByteView want) {
  for (std::size_t at = 0; at < want.size(); at += kPiece) {
    const std::size_t count = std::min(kPiece, want.size() - at);
    scratch_.resize(count);
    FURLONG_CHECK(slots_[argument].buffer->read(guard_bytes + at, scratch_));
    if (std::memcmp(scratch_.data(), want.data() + at, count) != 0) return false;
  }
  return true;
}

device::BufferArgument Buffers::argument(std::size_t index) const {
  return {slots_[index].buffer.get(), guard_bytes};
}

std::uint64_t Buffers::total_bytes() const {
  std::uint64_t sum = 0;
  for (const Slot& slot : slots_)
    if (slot.buffer) sum += slot.room + 2 * guard_bytes;
  return sum;
}

}  // namespace furlong::race
