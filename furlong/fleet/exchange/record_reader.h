#pragma once
// Race records as fleets without agents have them: JSON lines, CSV, and logs with race lines
// (docs/formats/fleet-exchange.md). Readers take one line of text after the other and keep no more than one
// race of it.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "furlong/base/error.h"
#include "furlong/record/record.h"

namespace furlong::fleet {

enum class ExchangeFormat { jsonl, csv, log };
std::string_view exchange_format_name(ExchangeFormat format);
Result<ExchangeFormat> parse_exchange_format(std::string_view text);
/// By the first line that is not empty.
ExchangeFormat guess_format(std::string_view line);
/// A file's first line without the mark of byte order that editors and spreadsheets put before it.
std::string_view without_byte_order_mark(std::string_view line);

/// What lines do not say themselves.
struct ImportDefaults {
  std::string machine, slot, card, program, unit, backend, source, driver;
  /// Day, or time, of lines that have none; in a log it also dates stamps without a year or a day.
  std::optional<std::int64_t> date_us;
  std::int64_t latest_us = INT64_MAX;  ///< records from after it are refused
};

struct ImportedRecord {
  record::RaceRecord record;  ///< decode() takes it
  std::string line;  ///< what is filed: the very line where it was complete, else as to_line() writes it
  int number = 0;    ///< of the line of the input where it begins
};

class RecordReader {
 public:
  struct Sink {
    std::function<Status(ImportedRecord)> record;  ///< its error ends the reading
    std::function<void(Error)> problem;            ///< a line that is left out: "FILE:LINE: …"
  };
  virtual ~RecordReader() = default;
  /// The next line of the input, without its newline. Errors: only those of the sink.
  virtual Status line(std::string_view text, int number) = 0;
  /// After the last line.
  virtual Status end() = 0;
};

/// `name` is the input's, for messages.
std::unique_ptr<RecordReader> make_record_reader(ExchangeFormat format, std::string name,
                                                 const ImportDefaults& defaults, RecordReader::Sink sink);

/// A time that people give: "2026-03-01", "2026-03-01T12:00:00Z" or with an offset "+01:00"; microseconds
/// since 1970.
Result<std::int64_t> parse_time_argument(std::string_view text);

/// Of a record without one: a UUIDv7 of its time and of what it says, so that the same record has the same
/// one wherever it is read.
std::string content_id(std::int64_t ts_us, std::string_view text);

}  // namespace furlong::fleet
