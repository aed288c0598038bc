// Lines of records: none crashes the reader, and a record that is read survives its round trip.

#include <cstdlib>

#include "furlong/base/bytes.h"
#include "furlong/record/race_line.h"
#include "furlong/record/records.h"

using namespace furlong;
using namespace furlong::record;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const RecordFile file = parse_records(as_text({data, size}), "fuzz.jsonl");
  for (const RaceRecord& record : file.records) {
    const std::string line = to_line(record);
    const auto again = parse_record(line, "again");
    if (!again || *again != record || to_line(*again) != line) std::abort();
    if (!parse_race_line(race_record_line(record))) std::abort();
  }
  return 0;
}
