#include "furlong/lattice/internal/tokens.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>

namespace furlong::lattice::internal {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_name_start(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_name_part(char c) { return is_name_start(c) || is_digit(c); }

constexpr std::array<std::string_view, 9> kKeywords = {"and",  "or",   "not",   "in",  "if",
                                                       "else", "True", "False", "None"};

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}

  Result<std::vector<Token>> run() {
    std::vector<Token> tokens;
    while (true) {
      while (at_ < text_.size() &&
             (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n' || text_[at_] == '\r'))
        ++at_;
      FURLONG_TRY(Token token, next());
      const bool end = token.kind == Token::Kind::end;
      tokens.push_back(std::move(token));
      if (end) return tokens;
    }
  }

 private:
  char peek(std::size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }
  int column() const { return static_cast<int>(at_) + 1; }

  Result<Token> next() {
    Token token;
    token.column = column();
    if (at_ >= text_.size()) return token;
    const char c = peek();
    if (is_digit(c) || (c == '.' && is_digit(peek(1)))) return number(std::move(token));
    if (is_name_start(c)) return name(std::move(token));
    if (c == '"' || c == '\'') return word(std::move(token), c);
    return symbol(std::move(token));
  }

  Result<Token> name(Token token) {
    const std::size_t start = at_;
    while (is_name_part(peek())) ++at_;
    while (peek() == '.' && is_name_start(peek(1))) {
      ++at_;
      while (is_name_part(peek())) ++at_;
    }
    token.text = std::string(text_.substr(start, at_ - start));
    const bool keyword = std::find(kKeywords.begin(), kKeywords.end(), token.text) != kKeywords.end();
    token.kind = keyword ? Token::Kind::keyword : Token::Kind::name;
    if (token.text == "true" || token.text == "false")
      return fail(Code::invalid, "column {}: write {} for {}", token.column,
                  token.text == "true" ? "True" : "False", token.text);
    return token;
  }

  Result<Token> symbol(Token token) {
    static constexpr std::array<std::string_view, 26> symbols = {
        "**", "//", "<<", ">>", "<=", ">=", "==", "!=", "+", "-", "*", "/", "%",
        "<",  ">",  "(",  ")",  "[",  "]",  ",",  "~",  "&", "|", "^", "=", "!"};
    const std::string_view rest = text_.substr(at_);
    for (const auto candidate : symbols) {
      if (!rest.starts_with(candidate)) continue;
      if (candidate == "=")
        return fail(Code::invalid, "column {}: '=' compares nothing; write ==", token.column);
      if (candidate == "!")
        return fail(Code::invalid, "column {}: '!' is no operator; write not", token.column);
      if (rest.starts_with("&&") || rest.starts_with("||"))
        return fail(Code::invalid, "column {}: '{}' is no operator; write {}", token.column,
                    rest.substr(0, 2), rest[0] == '&' ? "and" : "or");
      token.kind = Token::Kind::symbol;
      token.text = std::string(candidate);
      at_ += candidate.size();
      return token;
    }
    const auto byte = static_cast<unsigned char>(rest[0]);
    if (byte < 0x20 || byte >= 0x7f)
      return fail(Code::invalid, "column {}: byte 0x{:02x} may stand only in a quoted word", token.column,
                  byte);
    return fail(Code::invalid, "column {}: '{}' is not part of the expression language", token.column,
                rest[0]);
  }

  Result<Token> word(Token token, char quote) {
    ++at_;
    std::string value;
    while (true) {
      if (at_ >= text_.size() || peek() == '\n')
        return fail(Code::invalid, "column {}: this quoted word has no end", token.column);
      const char c = peek();
      ++at_;
      if (c == quote) break;
      if (c != '\\') {
        value += c;
        continue;
      }
      const char escaped = peek();
      const int escape_column = column() - 1;
      ++at_;
      switch (escaped) {
        case '\\':
          value += '\\';
          break;
        case '\'':
          value += '\'';
          break;
        case '"':
          value += '"';
          break;
        case 'n':
          value += '\n';
          break;
        case 't':
          value += '\t';
          break;
        default:
          return fail(Code::invalid, "column {}: unknown escape in a quoted word", escape_column);
      }
    }
    token.kind = Token::Kind::word;
    token.value = Value(std::move(value));
    return token;
  }

  Result<Token> number(Token token) {
    const std::size_t start = at_;
    token.kind = Token::Kind::number;
    const char marker = static_cast<char>(peek(1) | 0x20);
    if (peek() == '0' && (marker == 'x' || marker == 'o' || marker == 'b')) {
      const int base = marker == 'x' ? 16 : marker == 'o' ? 8 : 2;
      at_ += 2;
      if (peek() == '_') ++at_;  // Python allows 0x_ff
      FURLONG_TRY(const std::string digits, digit_run(base));
      return integer(std::move(token), digits, base, start);
    }
    std::string digits;
    bool is_float = false;
    if (is_digit(peek())) {
      FURLONG_TRY(digits, digit_run(10));
    }
    if (peek() == '.') {
      is_float = true;
      digits += '.';
      ++at_;
      if (is_digit(peek())) {
        FURLONG_TRY(const std::string fraction, digit_run(10));
        digits += fraction;
      }
    }
    if (peek() == 'e' || peek() == 'E') {
      is_float = true;
      digits += 'e';
      ++at_;
      if (peek() == '+' || peek() == '-') digits += text_[at_++];
      if (!is_digit(peek()))
        return fail(Code::invalid, "column {}: the exponent has no digits", token.column);
      FURLONG_TRY(const std::string exponent, digit_run(10));
      digits += exponent;
    }
    if (!is_float) return integer(std::move(token), digits, 10, start);
    return floating(std::move(token), digits, start);
  }

  /// Digits with single underscores between them, as in Python.
  Result<std::string> digit_run(int base) {
    const auto fits = [base](char c) {
      if (base == 16) return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
      return c >= '0' && c < '0' + base;
    };
    std::string digits;
    if (!fits(peek())) return fail(Code::invalid, "column {}: a digit is missing", column());
    while (fits(peek()) || (peek() == '_' && fits(peek(1)))) {
      if (peek() != '_') digits += peek();
      ++at_;
    }
    return digits;
  }

  Status check_end_of_number(std::size_t start) const {
    if (is_name_part(peek()) || (peek() == '.' && is_digit(peek(1))))
      return fail(Code::invalid, "column {}: '{}' is no number", start + 1,
                  text_.substr(start, at_ + 1 - start));
    return {};
  }

  Result<Token> integer(Token token, const std::string& digits, int base, std::size_t start) {
    FURLONG_CHECK(check_end_of_number(start));
    if (base == 10 && digits.size() > 1 && digits[0] == '0' &&
        digits.find_first_not_of('0') != std::string::npos)
      return fail(Code::invalid, "column {}: a number may not start with 0", token.column);
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
    constexpr auto largest = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    if (error != std::errc{} || end != digits.data() + digits.size() || value > largest + 1)
      return fail(Code::invalid, "column {}: overflow: {} does not fit 64 bits", token.column,
                  text_.substr(start, at_ - start));
    token.lowest_magnitude = value == largest + 1;
    if (!token.lowest_magnitude) token.value = Value(static_cast<std::int64_t>(value));
    return token;
  }

  Result<Token> floating(Token token, const std::string& digits, std::size_t start) {
    FURLONG_CHECK(check_end_of_number(start));
    double value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc{} || end != digits.data() + digits.size())
      return fail(Code::invalid, "column {}: {} is outside the range of a float", token.column,
                  text_.substr(start, at_ - start));
    token.value = Value(value);
    return token;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

Result<std::vector<Token>> tokenize(std::string_view text) { return Lexer(text).run(); }

}  // namespace furlong::lattice::internal
