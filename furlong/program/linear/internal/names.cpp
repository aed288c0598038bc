#include "furlong/program/linear/internal/names.h"

#include <vector>

#include "furlong/base/text.h"
#include "furlong/program/linear/internal/texts.h"

namespace furlong::program::linear {

Result<std::int64_t> Names::integer(std::string_view name) const {
  const auto value = names_(name);
  if (!value) return fail(Code::invalid, "the emitter needs '{}', which the program does not have", name);
  return lattice::to_integer(*value, name);
}

Result<std::string> Names::word(std::string_view name) const {
  const auto value = names_(name);
  if (!value) return fail(Code::invalid, "the emitter needs '{}', which the program does not have", name);
  if (value->word() == nullptr) return fail(Code::invalid, "'{}' is {}, not a word", name, value->text());
  return *value->word();
}

Result<std::int64_t> Names::integer(std::string_view name, std::int64_t missing) const {
  return names_(name) ? integer(name) : missing;
}

Result<std::string> Names::word(std::string_view name, std::string_view missing) const {
  return names_(name) ? word(name) : std::string(missing);
}

Result<std::size_t> Names::one_of(std::string_view name, std::span<const std::string_view> words) const {
  const auto value = names_(name);
  if (!value) return std::size_t{0};
  std::vector<std::string> known;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (value->word() != nullptr && *value->word() == words[i]) return i;
    known.emplace_back(words[i]);
  }
  return fail(Code::invalid, "{} is {}; it must be one of {}", name, value->text(), join(known, ", "));
}

Result<std::int64_t> Names::side(std::string_view name, std::int64_t largest) const {
  FURLONG_TRY(const std::int64_t value, integer(name));
  if (value >= 1 && value <= largest) return value;
  return fail(Code::invalid, "{} is {}; it must be 1 to {}", name, value, largest);
}

void add_instructions(std::string& text, const Chip& chip) {
  text += instructions_begin_text;
  text += chip.sm >= 80 ? instructions_sm80_text : instructions_sm75_text;
  text += instructions_end_text;
}

Status check_grid(const EmittedLaunch& launch, std::string_view culprit) {
  constexpr std::uint64_t kLargest = (std::uint64_t{1} << 31) - 1;
  if (launch.grid[0] <= kLargest) return {};
  return fail(Code::invalid, "{} would take {} blocks, and a launch has at most {}: {} must be smaller",
              launch.entry, launch.grid[0], kLargest, culprit);
}

void define(std::string& text, std::string_view name, std::int64_t value) {
  text += fmt::format("#define {} {}\n", name, value);
}

}  // namespace furlong::program::linear
