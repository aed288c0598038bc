#include "furlong/fleet/exchange/internal/complete.h"

#include <algorithm>
#include <array>

#include "furlong/base/hash.h"
#include "furlong/base/os/clock.h"
#include "furlong/base/text.h"
#include "furlong/fleet/store/race.h"

namespace furlong::fleet {

std::string content_id(std::int64_t ts_us, std::string_view text) {
  const Digest digest = blake2b_256(text);
  const auto ms = static_cast<std::uint64_t>(std::max<std::int64_t>(ts_us, 0) / 1000);
  RecordId id{};
  for (std::size_t i = 0; i < 6; ++i) id[i] = static_cast<std::uint8_t>(ms >> (8 * (5 - i)));
  std::copy(digest.bytes.begin(), digest.bytes.begin() + 10, id.begin() + 6);
  id[6] = static_cast<std::uint8_t>(0x70 | (id[6] & 0x0F));
  id[8] = static_cast<std::uint8_t>(0x80 | (id[8] & 0x3F));
  return record_id_text(id);
}

namespace internal {
namespace {

/// True when it was empty and is not any more.
bool fill(std::string& value, const std::string& otherwise) {
  if (!value.empty() || otherwise.empty()) return false;
  value = otherwise;
  return true;
}

Status there(std::string_view what, const std::string& value, std::string_view option) {
  if (!value.empty()) return {};
  return fail(Code::invalid, "it does not say its {}; {} would", what, option);
}

}  // namespace

Result<ImportedRecord> complete(record::RaceRecord record, std::string_view text, int number,
                                const ImportDefaults& defaults) {
  bool changed = text.empty();
  changed |= fill(record.machine, defaults.machine);
  changed |= fill(record.card, defaults.card);
  changed |= fill(record.program, defaults.program);
  changed |= fill(record.backend, defaults.backend);
  changed |= fill(record.unit, defaults.unit);
  changed |= fill(record.driver, defaults.driver);
  changed |= fill(record.slot, defaults.slot);
  changed |= fill(record.source, defaults.source);
  FURLONG_CHECK(there("machine", record.machine, "--machine"));
  FURLONG_CHECK(there("card", record.card, "--card"));
  FURLONG_CHECK(there("program", record.program, "--program"));
  FURLONG_CHECK(there("back end", record.backend, "--backend"));
  FURLONG_CHECK(there("time", record.ts, "--date"));
  // Cards of one name in one machine cannot be told apart then, and count as one.
  changed |= fill(record.slot, blake2b_256(record.machine + "\n" + record.card).brief());
  changed |= fill(record.source, "unstated");
  FURLONG_TRY(const std::int64_t ts_us, record::parse_stamp(record.ts));
  if (ts_us > defaults.latest_us)
    return fail(Code::invalid, "its time {} lies ahead: nothing later than {} is taken", record.ts,
                iso_time(defaults.latest_us));
  if (!record::is_record_id(record.id)) {
    record.id.clear();
    record.id = content_id(ts_us, record::to_line(record));
    changed = true;
  }
  FURLONG_CHECK(decode(record));
  if (record.machine.size() > 200 || one_line(record.machine) != record.machine)
    return fail(Code::invalid, "machine: '{}' is no name of one", one_line(record.machine.substr(0, 60)));
  if (record.find("") != nullptr) return fail(Code::invalid, "variants: one has no name");
  ImportedRecord imported{.record = std::move(record), .line = {}, .number = number};
  imported.line = changed ? record::to_line(imported.record) : std::string(trim(text));
  // A table can hold what a record cannot.
  if (changed) FURLONG_CHECK(record::parse_record(imported.line, "the record"));
  return imported;
}

}  // namespace internal
}  // namespace furlong::fleet
