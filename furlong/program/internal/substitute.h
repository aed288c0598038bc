#pragma once
// Names in texts: {name} in entries and defines, and names put into expressions.

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "furlong/lattice/expression.h"

namespace furlong::program::internal {

/// The names in braces, each once, in order: "k<{block}, {n}>" has block and n. Braces around anything but a
/// name
/// ("{0, 1}") are left alone.
std::vector<std::string> placeholders(std::string_view text);
/// Every {name} replaced by its value as text; `invalid` names one that `lookup` does not know.
Result<std::string> fill_placeholders(std::string_view text, const lattice::Lookup& lookup);
/// An expression's text with whole names replaced; words in quotes are left alone.
std::string substitute_names(std::string_view expression,
                             const std::map<std::string, std::string>& replacement);

}  // namespace furlong::program::internal
