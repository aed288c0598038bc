#pragma once
// Words of the line formats (race line, worker protocol): escaping, and reading them one by one.

#include <optional>
#include <string>
#include <string_view>

#include "furlong/base/error.h"

namespace furlong::record::internal {

/// A name as one word: never empty, never "-", without space, bar or control character. `also`: further
/// characters to escape.
std::string escaped(std::string_view text, std::string_view also = {});
/// A sentence: its spaces stay, but for those at its ends.
std::string escaped_sentence(std::string_view text);
/// Back from both; nullopt for a broken %XX.
std::optional<std::string> unescaped(std::string_view text);

/// The words of a line, with the column at which each stands; errors begin with what the line is.
class Words {
 public:
  Words(std::string_view text, std::string_view what) : text_(text), what_(what) {}

  bool more();
  std::string_view next();
  std::string_view peek();
  /// All that is left, without the blanks before it.
  std::string_view rest();
  /// At the word that next() gave last, or at the end when there was none.
  Error expected(std::string_view what, std::string_view found) const;

  Status word(std::string_view wanted);
  Result<std::string> name(std::string_view what);
  Result<std::optional<double>> rate(std::string_view what);
  Result<double> ms(std::string_view what);

 private:
  std::string_view text_, what_;
  std::size_t at_ = 0, begin_ = 0;
};

}  // namespace furlong::record::internal
