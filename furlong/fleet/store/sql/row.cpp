#include "furlong/fleet/store/sql/row.h"

#include <charconv>

#include "furlong/base/bytes.h"

namespace furlong::fleet::sql {
namespace {

constexpr std::size_t numbers_at = 2, head_bytes = numbers_at + 6 * 4;
constexpr std::size_t day_bytes = 4;
constexpr std::uint8_t pinned_bit = 1;
constexpr std::uint8_t most_verdict = static_cast<std::uint8_t>(record::Verdict::none);

}  // namespace

std::string pack_row(const RaceRow& row) {
  std::string bytes(head_bytes, '\0');
  bytes[0] = static_cast<char>(row.verdict);
  bytes[1] = static_cast<char>(row.pinned ? pinned_bit : 0);
  std::size_t at = numbers_at;
  for (const float number :
       {row.rate, row.base_rate, row.gain_pct, row.ceiling, row.power_limit_w, row.power_pct}) {
    store_le(bytes.data() + at, std::isnan(number) ? absent : number);
    at += 4;
  }
  for (const PackedGain& gain : row.gains) pack(gain, bytes);
  return bytes;
}

Status unpack_head(std::string_view bytes, RaceRow& row) {
  if (bytes.size() < head_bytes)
    return fail(Code::corrupt, "byte {}: it is cut off here, {} are the least", bytes.size(), head_bytes);
  const auto verdict = static_cast<std::uint8_t>(bytes[0]);
  const auto flags = static_cast<std::uint8_t>(bytes[1]);
  if (verdict > most_verdict || (flags & ~pinned_bit) != 0)
    return fail(Code::corrupt, "byte {} is wrong", verdict > most_verdict ? 0 : 1);
  row.verdict = static_cast<record::Verdict>(verdict);
  row.pinned = flags != 0;
  const char* const at = bytes.data() + numbers_at;
  row.rate = load_le<float>(at);
  row.base_rate = load_le<float>(at + 4);
  row.gain_pct = load_le<float>(at + 8);
  row.ceiling = load_le<float>(at + 12);
  row.power_limit_w = load_le<float>(at + 16);
  row.power_pct = load_le<float>(at + 20);
  return {};
}

Status unpack_row(std::string_view bytes, RaceRow& row, std::vector<PackedGain>& gains) {
  FURLONG_CHECK(unpack_head(bytes, row));
  FURLONG_CHECK(unpack(bytes.substr(head_bytes), gains));
  row.gains = gains;
  return {};
}

Result<std::string> pack_epoch(std::string_view text, std::int64_t ts_us) {
  if (text.empty()) {
    std::string day(day_bytes, '\0');
    store_le(day.data(), static_cast<std::uint32_t>(utc_day(ts_us)));
    return day;
  }
  std::uint64_t epoch = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), epoch, 16);
  if (error != std::errc() || end != text.data() + text.size() || text.size() > 16)
    return fail(Code::invalid, "epoch: '{}' is not of 16 hexadecimal digits", text.substr(0, 40));
  std::string bytes(8, '\0');
  store_le(bytes.data(), epoch);
  return bytes;
}

Status unpack_epoch(ByteView bytes, RaceRow& row) {
  if (bytes.size() != day_bytes && bytes.size() != 8)
    return fail(Code::corrupt, "an epoch of {} bytes", bytes.size());
  row.has_epoch = bytes.size() == 8;
  row.epoch = row.has_epoch ? load_le<std::uint64_t>(bytes.data()) : 0;
  return {};
}

std::string epoch_text(const RaceRow& row) {
  return row.has_epoch ? fmt::format("{:016x}", row.epoch) : std::string();
}

}  // namespace furlong::fleet::sql
