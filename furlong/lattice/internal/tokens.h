#pragma once
// Words of the expression language.

#include <string>
#include <string_view>
#include <vector>

#include "furlong/lattice/value.h"

namespace furlong::lattice::internal {

struct Token {
  enum class Kind { number, word, name, keyword, symbol, end };
  Kind kind = Kind::end;
  std::string text;  ///< the name, keyword or symbol as it stands
  Value value;       ///< of a number or a quoted word
  int column = 1;    ///< 1-based
  /// The literal 9223372036854775808, which is a number only behind a minus.
  bool lowest_magnitude = false;
};

/// The last token has kind `end`. `invalid` with "column N: what".
Result<std::vector<Token>> tokenize(std::string_view text);

}  // namespace furlong::lattice::internal
