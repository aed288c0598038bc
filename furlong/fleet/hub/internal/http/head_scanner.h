#pragma once
// Finds the end of a request's head in bytes as they come, and refuses at once what no honest client sends
// and what two readers of HTTP could take for different requests: bare CR or LF, folded lines, control
// characters.

#include <cstddef>
#include <string_view>

namespace furlong::fleet {

class HeadScanner {
 public:
  enum class Found { more, end, folded, control, line_end };

  /// Scans on. `taken` is how many of `bytes` belong to the head, with the empty line that ends it. An empty
  /// line before the request line is skipped (it is part of the head, see blank_bytes).
  Found feed(std::string_view bytes, std::size_t& taken);
  /// Bytes at the begin of the head to leave out: 0 or 2.
  std::size_t blank_bytes() const { return blank_; }

 private:
  enum class At { begin, first_line, line, line_begin, cr_at_begin, cr, cr_at_line_begin };
  Found step(char byte);
  At at_ = At::begin;
  bool first_ = true;  // the request line
  std::size_t blank_ = 0;
};

}  // namespace furlong::fleet
