#include "furlong/shard/executor/metamath/internal/lexer.h"

#include <algorithm>

namespace furlong::shard::metamath {

std::size_t first_foreign_byte(std::string_view text) {
  const auto foreign = [](char c) { return !((c >= 32 && c <= 126) || is_space(c)); };
  // Block by block without a branch inside, which the compiler turns into vector instructions.
  constexpr std::size_t kBlock = 4096;
  for (std::size_t begin = 0; begin < text.size(); begin += kBlock) {
    const std::size_t end = std::min(text.size(), begin + kBlock);
    unsigned found = 0;
    for (std::size_t i = begin; i < end; ++i) found |= static_cast<unsigned>(foreign(text[i]));
    if (found != 0)
      for (std::size_t i = begin; i < end; ++i)
        if (foreign(text[i])) return i;
  }
  return text.size();
}

Error Lexer::wrong(std::size_t offset, std::string message) {
  error_offset_ = offset;
  return {Code::invalid, std::move(message)};
}

std::string_view Lexer::raw() {
  const char* const end = text_.data() + text_.size();
  const char* begin = text_.data() + at_;
  while (begin != end && is_space(*begin)) ++begin;
  const char* stop = begin;
  while (stop != end && !is_space(*stop)) ++stop;
  at_ = static_cast<std::size_t>(stop - text_.data());
  return {begin, static_cast<std::size_t>(stop - begin)};
}

Status Lexer::skip_comment(std::size_t opened) {
  for (;;) {
    at_ = text_.find('$', at_);
    if (at_ == std::string_view::npos || at_ + 1 >= text_.size()) {
      at_ = text_.size();
      return wrong(opened, "this comment does not end: '$)' is missing");
    }
    const char second = text_[at_ + 1];
    if (second == '(') return wrong(at_, "a comment may not hold '$('");
    if (second == ')') {
      const bool alone = is_space(text_[at_ - 1]) && (at_ + 2 == text_.size() || is_space(text_[at_ + 2]));
      if (!alone) return wrong(at_, "'$)' must stand between white space");
      at_ += 2;
      return {};
    }
    ++at_;
  }
}

Result<std::string_view> Lexer::next() {
  for (;;) {
    const std::string_view token = raw();
    if (token != "$(") return token;
    FURLONG_CHECK(skip_comment(offset_of(token)));
  }
}

Result<std::string_view> Lexer::until_end_of_proof() {
  const std::size_t begin = at_;
  for (;;) {
    at_ = text_.find('$', at_);
    if (at_ == std::string_view::npos) {
      at_ = text_.size();
      return wrong(begin, "this proof does not end: '$.' is missing");
    }
    const std::size_t dollar = at_;
    if (!is_space(text_[dollar - 1])) return wrong(dollar, "'$' inside of a token of a proof");
    const std::string_view token = raw();
    if (token == "$.") return text_.substr(begin, dollar - begin);
    if (token != "$(") return wrong(dollar, fmt::format("'{}' inside of a proof", token));
    FURLONG_CHECK(skip_comment(dollar));
  }
}

}  // namespace furlong::shard::metamath
