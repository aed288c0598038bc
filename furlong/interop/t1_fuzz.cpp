// Any bytes as a T1 file, and as a Python list: an answer or an `invalid` error; what is read has distinct
// names that parse back.

#include <cstdlib>

#include "furlong/base/bytes.h"
#include "furlong/interop/python_list.h"
#include "furlong/interop/t1.h"

using furlong::Code;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = furlong::as_text({data, size});
  const auto values = furlong::interop::python_list(text);
  if (!values && (values.error().code() != Code::invalid || !values.error().message().starts_with("column ")))
    std::abort();
  const auto problem = furlong::interop::read_t1(text, "fuzz");
  if (!problem) {
    if (problem.error().code() != Code::invalid) std::abort();
    return 0;
  }
  const auto& lattice = problem->lattice;
  for (std::size_t k = 0; k < lattice.knobs.size(); ++k) {
    furlong::lattice::Point point = lattice.base();
    for (std::size_t v = 0; v < lattice.knobs[k].values.size(); ++v) {
      point.indices[k] = static_cast<std::uint32_t>(v);
      const auto parsed = parse_variant(lattice, variant_name(lattice, point));
      if (!parsed || *parsed != point) std::abort();
    }
  }
  return 0;
}
