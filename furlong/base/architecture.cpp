#include "furlong/base/architecture.h"

#include <charconv>

namespace furlong {

std::int64_t compute_capability(std::string_view architecture) {
  std::int64_t value = 0;
  if (architecture.starts_with("sm_"))
    std::from_chars(architecture.data() + 3, architecture.data() + architecture.size(), value);
  return value < 0 ? 0 : value;
}

}  // namespace furlong
