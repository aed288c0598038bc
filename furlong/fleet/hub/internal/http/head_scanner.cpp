#include "furlong/fleet/hub/internal/http/head_scanner.h"

namespace furlong::fleet {

HeadScanner::Found HeadScanner::feed(std::string_view bytes, std::size_t& taken) {
  for (taken = 0; taken < bytes.size();)
    if (const Found found = step(bytes[taken++]); found != Found::more) return found;
  return Found::more;
}

HeadScanner::Found HeadScanner::step(char byte) {
  const auto code = static_cast<unsigned char>(byte);
  switch (at_) {
    case At::cr_at_begin:
      if (byte != '\n') return Found::line_end;
      blank_ = 2;
      at_ = At::first_line;
      return Found::more;
    case At::cr:
      if (byte != '\n') return Found::line_end;
      at_ = At::line_begin;
      first_ = false;
      return Found::more;
    case At::cr_at_line_begin:
      return byte == '\n' ? Found::end : Found::line_end;
    case At::line_begin:
      if (byte == ' ' || byte == '\t') return Found::folded;
      if (byte == '\r') {
        at_ = At::cr_at_line_begin;
        return Found::more;
      }
      break;
    case At::begin:
    case At::first_line:
      if (byte == '\r') {
        if (at_ == At::first_line) return Found::line_end;  // one empty line is forgiven
        at_ = At::cr_at_begin;
        return Found::more;
      }
      break;
    case At::line:
      if (byte == '\r') {
        at_ = At::cr;
        return Found::more;
      }
      break;
  }
  if (byte == '\n') return Found::line_end;
  if ((code < 0x20 && byte != '\t') || code == 0x7f) return Found::control;
  if (first_ && (byte == '\t' || code >= 0x80)) return Found::control;
  at_ = At::line;
  return Found::more;
}

}  // namespace furlong::fleet
