#pragma once
// The target of a request line, decoded.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "furlong/base/error.h"

namespace furlong::fleet {

struct Target {
  std::string path;                                        ///< begins with '/'; decoded once; valid UTF-8
  std::vector<std::pair<std::string, std::string>> query;  ///< decoded, in order; '+' is a blank
  bool operator==(const Target&) const = default;
};

/// More than so many parameters are refused: each costs far more memory than its two bytes.
constexpr std::size_t most_parameters = 256;

/// "/path?query" or "http://host/path?query" (whose host is ignored). `invalid`, in words that name the
/// culprit: another form, a byte that must be escaped, a bad escape, and what decodes to a control character
/// or to no valid UTF-8. ".." is not resolved: what a path means is its reader's business.
Result<Target> parse_target(std::string_view target);

}  // namespace furlong::fleet
