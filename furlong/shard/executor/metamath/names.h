#pragma once
// A table from names to numbers that reading a database spends most of its time in: open addressing, names as
// views into the text, nothing ever removed.

#include <bit>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>
#include <vector>

namespace furlong::shard::metamath {

/// Views must outlive it. Copies are independent. Not thread safe while it grows.
class Names {
 public:
  std::optional<std::uint32_t> find(std::string_view name) const {
    if (slots_.empty()) return std::nullopt;
    const Slot& slot = slots_[place(name, hash(name))];
    if (slot.name.data() == nullptr) return std::nullopt;
    return slot.value;
  }

  /// False, and nothing done, when the name is there. The name must not be empty.
  bool insert(std::string_view name, std::uint32_t value) {
    if (2 * (count_ + 1) > slots_.size()) grow();
    const std::uint64_t code = hash(name);
    Slot& slot = slots_[place(name, code)];
    if (slot.name.data() != nullptr) return false;
    slot = {name, static_cast<std::uint32_t>(code >> 32), value};
    ++count_;
    return true;
  }

 private:
  struct Slot {
    std::string_view name;
    std::uint32_t code = 0;
    std::uint32_t value = 0;
  };

  static std::uint64_t hash(std::string_view name) {
    std::uint64_t code = name.size() * 0x9E3779B97F4A7C15ull;
    const char* at = name.data();
    std::size_t left = name.size();
    for (; left >= 8; left -= 8, at += 8) {
      std::uint64_t word;
      std::memcpy(&word, at, 8);
      code = std::rotl((code ^ word) * 0xBF58476D1CE4E5B9ull, 29);
    }
    std::uint64_t word = 0;
    std::memcpy(&word, at, left);
    code = (code ^ word) * 0x94D049BB133111EBull;
    return code ^ (code >> 31);
  }

  std::size_t place(std::string_view name, std::uint64_t code) const {
    const std::size_t mask = slots_.size() - 1;
    std::size_t at = code & mask;
    while (slots_[at].name.data() != nullptr &&
           (slots_[at].code != static_cast<std::uint32_t>(code >> 32) || slots_[at].name != name))
      at = (at + 1) & mask;
    return at;
  }

  void grow() {
    std::vector<Slot> old(slots_.empty() ? 64 : slots_.size() * 2);
    old.swap(slots_);
    for (const Slot& slot : old)
      if (slot.name.data() != nullptr) slots_[place(slot.name, hash(slot.name))] = slot;
  }

  std::vector<Slot> slots_;
  std::size_t count_ = 0;
};

}  // namespace furlong::shard::metamath
