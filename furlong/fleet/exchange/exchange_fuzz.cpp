// Whatever is read of a file is such as the store takes, and what is written of it reads to the same.

#include <cstdlib>

#include "furlong/base/bytes.h"
#include "furlong/base/text.h"
#include "furlong/fleet/exchange/csv.h"
#include "furlong/fleet/exchange/record_reader.h"
#include "furlong/fleet/store/race.h"

using namespace furlong;
using namespace furlong::fleet;

namespace {

std::vector<ImportedRecord> read(ExchangeFormat format, std::string_view text) {
  std::vector<ImportedRecord> records;
  const ImportDefaults defaults{.machine = "m", .program = "p", .backend = "cuda", .date_us = 0};
  const auto reader = make_record_reader(format, "in", defaults,
                                         {.record = [&](ImportedRecord record) -> Status {
                                            records.push_back(std::move(record));
                                            return {};
                                          },
                                          .problem =
                                              [](const Error& error) {
                                                if (!error.text().starts_with("in:")) std::abort();
                                              }});
  int number = 0;
  for (const std::string& line : split(text, '\n'))
    if (!reader->line(line, ++number)) std::abort();
  if (!reader->end()) std::abort();
  return records;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = as_text({data, size});
  for (const ExchangeFormat format : {ExchangeFormat::jsonl, ExchangeFormat::csv, ExchangeFormat::log}) {
    for (const ImportedRecord& each : read(format, text)) {
      if (!decode(each.record)) std::abort();
      const auto again = record::parse_record(each.line, "line");
      if (!again || !decode(*again)) std::abort();
      const auto lines = read(ExchangeFormat::jsonl, each.line);
      if (lines.size() != 1 || lines[0].line != each.line) std::abort();
      const std::string csv = csv_head() + csv_rows(each.record);
      const auto rows = read(ExchangeFormat::csv, csv);
      if (rows.size() != 1 || csv_head() + csv_rows(rows[0].record) != csv) std::abort();
    }
  }
  return 0;
}
