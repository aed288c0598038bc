// A tuning that is read is printed to one that is read to the same bytes; looking things up in it never
// fails.

#include <cstdlib>

#include "furlong/base/bytes.h"
#include "furlong/record/tuning.h"

using namespace furlong;
using namespace furlong::record;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  auto tuning = parse_tuning(as_text({data, size}), "fuzz.json");
  if (!tuning) return 0;
  const std::string text = print(*tuning);
  const auto again = parse_tuning(text, "again");
  if (!again || print(*again) != text) std::abort();
  TuningQuery query;
  query.label = tuning->cards.empty() ? "none" : tuning->cards[0].key;
  query.silicon.hash = "9c1f0a5b7d3e2f46";
  query.program_class = {{"loads", 128}, {"wide", 0}};
  query.driver = "580.95.05";
  const TuningMatch match = find_tuning(*tuning, query);
  if ((match.row == nullptr) != (match.card == nullptr)) std::abort();
  apply_override(*tuning, *again);
  if (print(*tuning) != text) std::abort();  // overriding with itself changes nothing
  return 0;
}
