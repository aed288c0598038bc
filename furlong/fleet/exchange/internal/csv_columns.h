#pragma once
// Every column of the CSV form, with what it reads and writes.

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "furlong/base/error.h"
#include "furlong/record/record.h"

namespace furlong::fleet::internal {

/// An empty cell: not known. `set` is not called for one.
struct RaceColumn {
  std::string_view name;
  std::function<std::string(const record::RaceRecord&)> get;
  std::function<Status(record::RaceRecord&, std::string_view)> set;
};
struct VariantColumn {
  std::string_view name;
  std::function<std::string(const record::RacedVariant&)> get;
  std::function<Status(record::RacedVariant&, std::string_view)> set;
};
const std::vector<RaceColumn>& race_columns();
const std::vector<VariantColumn>& variant_columns();

}  // namespace furlong::fleet::internal
