#include "furlong/lattice/value_json.h"

#include "furlong/base/json.h"

namespace furlong::lattice {

Json value_json(const Value& value) {
  if (const auto* flag = value.boolean()) return *flag;
  if (const auto* integer = value.integer()) return *integer;
  if (const auto* number = value.floating()) return *number;
  return *value.word();
}

}  // namespace furlong::lattice
