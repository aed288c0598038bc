#pragma once
// The tokens of a Metamath text (appendix E of the book): printable ASCII between white space; comments are
// skipped between tokens.

#include <string>
#include <string_view>

#include "furlong/base/error.h"

namespace furlong::shard::metamath {

constexpr bool is_space(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r' || c == '\f'; }

/// The first byte that no Metamath text may have, or the size.
std::size_t first_foreign_byte(std::string_view text);

/// Over a text without foreign bytes, which must outlive it. One thread at a time. Its errors are `invalid`
/// with a message only; error_offset() says where.
class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}

  /// The next token that is no comment; empty at the end.
  Result<std::string_view> next();
  /// The bytes up to a "$." that stands outside comments; reading goes on behind it.
  Result<std::string_view> until_end_of_proof();
  /// Of a token that came from here.
  std::size_t offset_of(std::string_view token) const {
    return static_cast<std::size_t>(token.data() - text_.data());
  }
  std::size_t error_offset() const { return error_offset_; }
  std::size_t offset() const { return at_; }

 private:
  std::string_view raw();
  Status skip_comment(std::size_t opened);
  Error wrong(std::size_t offset, std::string message);

  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t error_offset_ = 0;
};

}  // namespace furlong::shard::metamath
