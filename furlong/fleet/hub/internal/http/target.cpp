#include "furlong/fleet/hub/internal/http/target.h"

#include <algorithm>

#include "furlong/base/text.h"

namespace furlong::fleet {
namespace {

int hex_value(char digit) {
  if (digit >= '0' && digit <= '9') return digit - '0';
  if (digit >= 'a' && digit <= 'f') return digit - 'a' + 10;
  if (digit >= 'A' && digit <= 'F') return digit - 'A' + 10;
  return -1;
}

/// `what` names the piece in messages.
Result<std::string> decode(std::string_view text, bool plus_is_blank, std::string_view what) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    char byte = text[i];
    if (byte == '+' && plus_is_blank) {
      byte = ' ';
    } else if (byte == '%') {
      const int high = i + 1 < text.size() ? hex_value(text[i + 1]) : -1;
      const int low = i + 2 < text.size() ? hex_value(text[i + 2]) : -1;
      if (high < 0 || low < 0)
        return fail(Code::invalid, "the {} has a '%' that is not followed by two hexadecimal digits", what);
      byte = static_cast<char>(high * 16 + low);
      i += 2;
    }
    if (static_cast<unsigned char>(byte) < 0x20 || byte == 0x7f)
      return fail(Code::invalid, "the {} has a control character", what);
    out += byte;
  }
  if (!is_valid_utf8(out)) return fail(Code::invalid, "the {} is no valid UTF-8", what);
  return out;
}

/// The part from the path on of an absolute target.
Result<std::string_view> after_authority(std::string_view target) {
  const std::size_t colon = target.find("://");
  std::string scheme(target.substr(0, colon == std::string_view::npos ? 0 : colon));
  std::ranges::transform(scheme, scheme.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  if (scheme != "http" && scheme != "https")
    return fail(Code::invalid, "the target of the request is neither a path nor an http address");
  const std::string_view rest = target.substr(colon + 3);
  const std::size_t end = std::min(rest.find_first_of("/?"), rest.size());
  if (end == 0) return fail(Code::invalid, "the target of the request is an address without a host");
  return rest.substr(end);
}

}  // namespace

Result<Target> parse_target(std::string_view target) {
  for (const char byte : target)
    if (static_cast<unsigned char>(byte) <= 0x20 || static_cast<unsigned char>(byte) >= 0x7f || byte == '#')
      return fail(Code::invalid, "the target of the request has a byte that must be escaped");
  if (!target.starts_with('/')) {
    FURLONG_TRY(target, after_authority(target));
  }
  const std::size_t mark = std::min(target.find('?'), target.size());
  Target out;
  const std::string_view path = target.substr(0, mark);
  FURLONG_TRY(out.path, decode(path.empty() ? "/" : path, false, "path"));
  std::string_view query = target.substr(std::min(mark + 1, target.size()));
  while (!query.empty()) {
    const std::size_t end = std::min(query.find('&'), query.size());
    const std::string_view item = query.substr(0, end);
    query.remove_prefix(std::min(end + 1, query.size()));
    if (item.empty()) continue;
    if (out.query.size() == most_parameters)
      return fail(Code::invalid, "the query has more than {} parameters", most_parameters);
    const std::size_t equals = std::min(item.find('='), item.size());
    FURLONG_TRY(std::string name, decode(item.substr(0, equals), true, "query"));
    FURLONG_TRY(std::string value, decode(item.substr(std::min(equals + 1, item.size())), true, "query"));
    out.query.emplace_back(std::move(name), std::move(value));
  }
  return out;
}

}  // namespace furlong::fleet
