#pragma once
// A file of race records, one JSON object a line, that only grows: `furlong race --record`, the worker's own
// log and what `furlong knobs audit` reads (docs/formats/race-record.md). Several processes may append at
// once.

#include <cstdint>
#include <filesystem>
#include <string_view>
#include <vector>

#include "furlong/base/error.h"
#include "furlong/base/os/file.h"
#include "furlong/record/record.h"

namespace furlong::record {

/// Adds one line and returns when it is on the disk. On failure the file is cut back to what it was: nothing
/// of the record stays, nothing before it is touched, and the call may be repeated. A line that a crash left
/// torn is ended first, so that it spoils no other. The file and its folders are made. Errors: `exhausted`
/// (disk full), `denied`, `timeout` (another process holds the file for over 60 s), `internal`; each names
/// the file.
Status append_record(const std::filesystem::path& file, const RaceRecord& record);

struct RecordFile {
  std::vector<RaceRecord> records;  ///< every line that can be read, in order
  /// One a line that cannot: `corrupt` for a torn last line, else parse_record's error; each names the line
  /// and the byte at which it begins.
  std::vector<Error> problems;
};
/// Never fails: what is damaged is in `problems`. Empty lines are skipped. `name` is the file's, for
/// messages.
RecordFile parse_records(std::string_view text, std::string_view name);
/// Errors as Files::read: `invalid` when the file is larger than `max_bytes`, or no regular file.
Result<RecordFile> read_records(Files& files, const std::filesystem::path& file,
                                std::size_t max_bytes = 1u << 30);

}  // namespace furlong::record
