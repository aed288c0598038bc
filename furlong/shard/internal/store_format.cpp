#include "furlong/shard/internal/store_format.h"

namespace furlong::shard::internal {
namespace {

void append(Bytes& to, ByteView bytes) { to.insert(to.end(), bytes.begin(), bytes.end()); }

void append_count(Bytes& to, std::size_t count) {
  std::array<std::uint8_t, 4> bytes;
  store_le(bytes.data(), static_cast<std::uint32_t>(count));
  append(to, bytes);
}

class Cursor {
 public:
  explicit Cursor(ByteView bytes) : bytes_(bytes) {}

  Result<ByteView> take(std::uint64_t count, std::string_view what) {
    if (count > bytes_.size() - at_)
      return fail(Code::corrupt, "byte {} of the unit: {} needs {} bytes, {} are left", at_, what, count,
                  bytes_.size() - at_);
    const ByteView part = bytes_.subspan(at_, count);
    at_ += count;
    return part;
  }
  Result<std::uint32_t> count(std::string_view what) {
    FURLONG_TRY(const ByteView bytes, take(4, what));
    return load_le<std::uint32_t>(bytes.data());
  }
  Result<std::vector<Key>> keys(std::string_view what) {
    FURLONG_TRY(const std::uint32_t number, count(what));
    FURLONG_TRY(const ByteView bytes, take(std::uint64_t{number} * sizeof(Key::bytes), what));
    std::vector<Key> keys(number);
    for (std::size_t i = 0; i < keys.size(); ++i)
      std::memcpy(keys[i].bytes.data(), bytes.data() + i * sizeof(Key::bytes), sizeof(Key::bytes));
    return keys;
  }
  std::size_t left() const { return bytes_.size() - at_; }

 private:
  ByteView bytes_;
  std::size_t at_ = 0;
};

}  // namespace

Hasher store_digest_head(const std::string& executor, int executor_version, const std::string& settings) {
  Hasher hasher;
  hasher.add_field("furlong store 1")
      .add_field(executor)
      .add_field(std::to_string(executor_version))
      .add_field(settings);
  return hasher;
}

std::array<std::uint8_t, 4> index_bytes(UnitIndex index) {
  return {static_cast<std::uint8_t>(index >> 24), static_cast<std::uint8_t>(index >> 16),
          static_cast<std::uint8_t>(index >> 8), static_cast<std::uint8_t>(index)};
}

// The top bit of the first number is the table.
constexpr std::uint32_t kSharedBit = 0x80000000;

std::array<std::uint8_t, 8> encode_place(const Place& place) {
  std::array<std::uint8_t, 8> bytes;
  store_le(bytes.data(), place.number | (place.shared ? kSharedBit : 0));
  store_le(bytes.data() + 4, place.owner);
  return bytes;
}

Result<Place> decode_place(ByteView bytes) {
  if (bytes.size() != 8) return fail(Code::corrupt, "an entry of the index has {} bytes", bytes.size());
  const auto number = load_le<std::uint32_t>(bytes.data());
  return Place{number & ~kSharedBit, (number & kSharedBit) != 0, load_le<std::uint32_t>(bytes.data() + 4)};
}

Digest name_key(std::string_view name) { return blake2b_256(name); }

Bytes encode_unit(const Unit& unit) {
  Bytes bytes;
  bytes.reserve(12 + unit.name.size() + 32 * (1 + unit.items.size() + unit.references.size()));
  append(bytes, unit.key.bytes);
  append_count(bytes, unit.name.size());
  append(bytes, as_bytes(unit.name));
  for (const auto* keys : {&unit.items, &unit.references}) {
    append_count(bytes, keys->size());
    for (const Key& key : *keys) append(bytes, key.bytes);
  }
  return bytes;
}

Result<Unit> decode_unit(ByteView bytes) {
  Cursor cursor(bytes);
  Unit unit;
  FURLONG_TRY(const ByteView key, cursor.take(sizeof(Key::bytes), "the key"));
  std::memcpy(unit.key.bytes.data(), key.data(), key.size());
  FURLONG_TRY(const std::uint32_t length, cursor.count("the length of the name"));
  FURLONG_TRY(const ByteView name, cursor.take(length, "the name"));
  unit.name = as_text(name);
  FURLONG_TRY(unit.items, cursor.keys("the list of items"));
  FURLONG_TRY(unit.references, cursor.keys("the list of references"));
  if (cursor.left() != 0) return fail(Code::corrupt, "{} bytes too many after the unit", cursor.left());
  if (unit_key(unit.items, unit.references) != unit.key)
    return fail(Code::corrupt, "the unit '{}' is not that of its key {}", unit.name, unit.key.brief());
  return unit;
}

}  // namespace furlong::shard::internal
