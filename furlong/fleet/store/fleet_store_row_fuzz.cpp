// A race's packed numbers that are read are packed to bytes that are read to the same.

#include <cstdlib>

#include "furlong/base/bytes.h"
#include "furlong/fleet/store/sql/row.h"

using namespace furlong;
using namespace furlong::fleet;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes = as_text({data, size});
  RaceRow row;
  std::vector<PackedGain> gains;
  if (const Status status = sql::unpack_row(bytes, row, gains); !status) {
    if (status.error().code() != Code::corrupt) std::abort();
    return 0;
  }
  // What may be written in two ways (a number with needless bytes, a NaN of another kind) is one after that.
  const std::string packed = sql::pack_row(row);
  RaceRow again;
  std::vector<PackedGain> gains_again;
  if (!sql::unpack_row(packed, again, gains_again) || gains_again.size() != gains.size()) std::abort();
  if (sql::pack_row(again) != packed) std::abort();
  return 0;
}
