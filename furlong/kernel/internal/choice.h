#pragma once
// What is kept of a race for the next start (docs/formats/raced-kernel.md).

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "furlong/base/error.h"
#include "furlong/base/hash.h"
#include "furlong/record/record.h"

namespace furlong::kernel {

inline constexpr int choice_schema = 1;

/// All that a choice depends on, by name, in a fixed order.
using ChoiceKey = std::vector<std::pair<std::string, std::string>>;

/// A value type.
struct Choice {
  ChoiceKey key;
  std::string variant;
  std::string text;     ///< VariantPlan::source_hash of the variant, in hexadecimal digits
  std::string why;      ///< one sentence
  bool decided = true;  ///< false: the race ended before it was sure
  double budget_s = 0;  ///< of that race
  record::RaceRecord race;
  bool operator==(const Choice&) const = default;
};

/// Names the file.
Digest digest_of(const ChoiceKey& key);
std::string print_choice(const Choice& choice);
/// `corrupt`: no JSON, or a known key of a wrong type or missing; `incompatible`: another schema, found and
/// expected named. `name` is the file's, for messages.
Result<Choice> parse_choice(std::string_view text, std::string_view name);
/// Empty when both are the same, else the first difference: "driver is 570.86 and was 580.10".
std::string difference(const ChoiceKey& now, const ChoiceKey& kept);

}  // namespace furlong::kernel
