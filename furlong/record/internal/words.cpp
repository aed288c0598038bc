#include "furlong/record/internal/words.h"

#include <algorithm>

#include "furlong/base/bytes.h"
#include "furlong/base/text.h"

namespace furlong::record::internal {
namespace {

/// Whether it is text that a terminal shows as it stands, but for ASCII's controls: no foreign bytes, and no
/// controls beyond ASCII.
bool is_plain_beyond_ascii(std::string_view text) {
  if (!is_valid_utf8(text)) return false;
  const std::string shown = one_line(text);  // as many bytes
  for (std::size_t i = 0; i < text.size(); ++i)
    if (static_cast<unsigned char>(text[i]) >= 0x80 && shown[i] != text[i]) return false;
  return true;
}

std::string escaped_bytes(std::string_view text, std::string_view also) {
  const bool utf8 = is_plain_beyond_ascii(text);
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = byte > 0x20 && byte != 0x7F && c != '%' && c != '|' && (byte < 0x80 || utf8) &&
                       also.find(c) == std::string_view::npos;
    if (plain)
      out += c;
    else
      out += fmt::format("%{:02X}", byte);
  }
  return out;
}

}  // namespace

std::string escaped(std::string_view text, std::string_view also) {
  if (text.empty()) return "-";
  return text == "-" ? "%2D" : escaped_bytes(text, also);
}

// Why a variant is out is a sentence: its spaces stay, but for those at its ends.
std::string escaped_sentence(std::string_view text) {
  if (text.empty() || text == "-") return escaped(text, "");
  std::string out;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t space = std::min(text.find(' ', begin), text.size());
    out += escaped_bytes(text.substr(begin, space - begin), "");
    if (space < text.size()) out += space == 0 || space + 1 == text.size() ? "%20" : " ";
    begin = space + 1;
  }
  return out;
}

std::optional<std::string> unescaped(std::string_view text) {
  if (text == "-") return "";
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    const auto byte = from_hex(text.substr(i + 1, std::min<std::size_t>(2, text.size() - i - 1)));
    if (!byte || byte->size() != 1) return std::nullopt;
    out += static_cast<char>(byte->front());
    i += 2;
  }
  return out;
}

bool Words::more() {
  at_ = std::min(text_.find_first_not_of(' ', at_), text_.size());
  return at_ < text_.size();
}

std::string_view Words::next() {
  if (!more()) return {};
  begin_ = at_;
  at_ = std::min(text_.find(' ', at_), text_.size());
  return text_.substr(begin_, at_ - begin_);
}

std::string_view Words::peek() {
  const std::size_t at = at_, begin = begin_;
  const std::string_view word = next();
  at_ = at;
  begin_ = begin;
  return word;
}

std::string_view Words::rest() {
  more();
  const std::string_view all = text_.substr(at_);
  at_ = text_.size();
  return all;
}

Error Words::expected(std::string_view what, std::string_view found) const {
  return fail(Code::invalid, "{}: column {}: expected {}{}", what_,
              (found.empty() ? text_.size() : begin_) + 1, what,
              found.empty() ? ", the line ends" : fmt::format(", found '{}'", found.substr(0, 40)));
}

Status Words::word(std::string_view wanted) {
  const std::string_view found = next();
  if (found != wanted) return expected(fmt::format("'{}'", wanted), found);
  return {};
}

Result<std::string> Words::name(std::string_view what) {
  const std::string_view found = next();
  auto text = unescaped(found);
  if (found.empty() || !text) return expected(what, found);
  return *std::move(text);
}

Result<std::optional<double>> Words::rate(std::string_view what) {
  const std::string_view found = next();
  if (found == "-") return std::optional<double>();
  const auto number = parse_number(found);
  if (!number) return expected(what, found);
  return std::optional(*number);
}

Result<double> Words::ms(std::string_view what) {
  const std::string_view found = next();
  const auto number = parse_number(found);
  if (!number || *number < 0) return expected(what, found);
  return *number;
}

}  // namespace furlong::record::internal
