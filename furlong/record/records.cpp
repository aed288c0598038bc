#include "furlong/record/records.h"

#include "furlong/base/text.h"
#include "furlong/record/internal/append_file.h"

namespace furlong::record {
namespace {

constexpr double lock_timeout_s = 60;

}  // namespace

Status append_record(const std::filesystem::path& file, const RaceRecord& record) {
  const auto append = [&]() -> Status {
    FURLONG_TRY(const auto open, internal::open_append_file(file, lock_timeout_s));
    return internal::append_line(*open, to_line(record));
  };
  FURLONG_CHECK_DOING(append(), "appending a race record to {}", file.string());
  return {};
}

RecordFile parse_records(std::string_view text, std::string_view name) {
  RecordFile read;
  std::size_t begin = 0;
  for (int number = 1; begin < text.size(); ++number) {
    const std::size_t end = text.find('\n', begin);
    const bool last = end == std::string_view::npos;
    const std::string_view line = text.substr(begin, last ? std::string_view::npos : end - begin);
    if (!trim(line).empty()) {
      auto record = parse_record(line, fmt::format("{}:{}", name, number));
      if (record)
        read.records.push_back(*std::move(record));  // also a last line that lacks nothing but its newline
      else if (last)
        read.problems.push_back(fail(Code::corrupt,
                                     "{}:{}: byte {}: the last line is torn after {} bytes: {}", name, number,
                                     begin, line.size(), record.error().text()));
      else
        read.problems.push_back(fail(record.error().code(), "{} (line {} begins at byte {})",
                                     record.error().text(), number, begin));
    }
    if (last) break;
    begin = end + 1;
  }
  return read;
}

Result<RecordFile> read_records(Files& files, const std::filesystem::path& file, std::size_t max_bytes) {
  FURLONG_TRY(const std::string text, files.read(file, max_bytes));
  return parse_records(text, file.string());
}

}  // namespace furlong::record
