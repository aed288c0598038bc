#include "furlong/fleet/agent/ingest.h"

#include <algorithm>
#include <system_error>

#include "furlong/base/hash.h"
#include "furlong/base/text.h"
#include "furlong/fleet/agent/spool.h"
#include "furlong/record/record.h"

namespace furlong::fleet {
namespace {

constexpr std::size_t tail_bytes = 256;
constexpr std::size_t lines_a_transaction = 500;
constexpr std::size_t most_notes = 8;
constexpr std::size_t largest_line = 1u << 20;  // as the hub takes them

std::string tail_digest(std::string_view text, std::size_t offset) {
  const std::size_t begin = offset > tail_bytes ? offset - tail_bytes : 0;
  return blake2b_256(text.substr(begin, offset - begin)).brief();
}

bool continues(std::string_view text, const SourceMark& mark) {
  return text.size() >= mark.offset && (mark.offset == 0 || tail_digest(text, mark.offset) == mark.tail);
}

/// The record with what the worker could not know; `line` is as it wrote it.
Result<NewRecord> complete(std::string_view line, const std::string& where, const RecordOrigin& origin,
                           Clock& clock, Random& random) {
  if (line.size() > largest_line)
    return fail(Code::exhausted, "{}: a line of {} bytes, {} are the most", where, line.size(), largest_line);
  FURLONG_TRY(record::RaceRecord record, record::parse_record(line, where));
  if (!record::is_record_id(record.id)) record.id = record::make_record_id(clock, random);
  record.machine = origin.machine;
  record.agent = origin.agent;
  if (record.slot.empty()) record.slot = origin.slot;
  return NewRecord{.id = record.id, .line = record::to_line(record), .digest = blake2b_256(line).hex()};
}

}  // namespace

Result<Ingested> ingest(Files& files, Spool& spool, const std::filesystem::path& file,
                        const RecordOrigin& origin, Clock& clock, Random& random) {
  Ingested ingested;
  const auto note = [&](std::string text) {
    if (ingested.notes.size() < most_notes) ingested.notes.push_back(std::move(text));
  };
  const std::string name = file.filename().string();
  FURLONG_TRY(const SourceMark mark, spool.source(name));
  // Most looks find nothing new. Another file of the very same size is noticed once it grows.
  std::error_code unknown;
  const std::uintmax_t size = std::filesystem::file_size(file, unknown);
  if (!unknown && size == mark.offset) return ingested;
  const auto read = files.read(file);
  if (!read && read.error().code() == Code::unavailable) return ingested;
  if (!read) return read.error();
  const std::string& text = *read;
  std::size_t at = mark.offset;
  if (!continues(text, mark)) {
    note(fmt::format(
        "{}: it is another file than before ({} bytes, {} were taken in): read from its beginning", name,
        text.size(), mark.offset));
    at = 0;
    // Also of a file that was emptied, or it would be another one at every look.
    FURLONG_TRY(const int none, spool.take_in(name, {.offset = 0, .tail = tail_digest(text, 0)}, {}, 0));
    static_cast<void>(none);
  }
  while (at < text.size() && !ingested.full) {
    std::vector<NewRecord> records;
    std::size_t bytes = 0;
    int skipped = 0;
    while (at < text.size() && records.size() < lines_a_transaction) {
      const std::size_t end = text.find('\n', at);
      const bool last = end == std::string::npos;
      const std::string_view line = std::string_view(text).substr(at, last ? std::string::npos : end - at);
      if (!trim(line).empty()) {
        auto record = complete(line, fmt::format("{}: byte {}", name, at), origin, clock, random);
        // Not whole yet: whoever writes it is about to end it, or its next record will.
        if (!record && last) break;
        if (record) {
          bytes += record->line.size();
          FURLONG_TRY(const bool room, spool.has_room(bytes));
          ingested.full = !room;
          if (ingested.full) break;
          records.push_back(*std::move(record));
        } else {
          ++skipped;
          note(fmt::format("skipped a line that is no race record: {}", record.error().text()));
        }
      }
      at = last ? text.size() : end + 1;
    }
    const SourceMark next{.offset = at, .tail = tail_digest(text, at)};
    if (next == mark) break;
    FURLONG_TRY(const int added, spool.take_in(name, next, records, skipped));
    ingested.records += added;
    ingested.skipped += skipped;
    if (records.size() < lines_a_transaction) break;  // what is left is torn, or has no room
  }
  return ingested;
}

Status adopt_records(Spool& spool, const std::string& machine) {
  return spool.adopt(machine, [&](const std::string& line) {
    auto record = record::parse_record(line, "the spool");
    if (!record) return line;  // the hub will say what is wrong with it
    record->machine = machine;
    return record::to_line(*record);
  });
}

Result<bool> is_ingested(Files& files, Spool& spool, const std::filesystem::path& file) {
  FURLONG_TRY(const SourceMark mark, spool.source(file.filename().string()));
  const auto text = files.read(file);
  if (!text) return text.error();
  return text->size() == mark.offset && continues(*text, mark);
}

}  // namespace furlong::fleet
