#pragma once
// The one table printer: columns aligned by display width, plain text, for terminals and logs.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace furlong {

/// Columns that UTF-8 text takes on a terminal: wide characters count two, combining marks none, a
/// broken sequence one.
std::size_t display_width(std::string_view text);

/// Not thread safe while columns or rows are added.
class Table {
 public:
  enum class Align { left, right };
  void column(std::string heading, Align align = Align::left);
  /// One cell a column; missing ones are empty, surplus ones are not shown, control characters
  /// become spaces.
  void row(std::vector<std::string> cells);
  /// Two spaces between columns, a rule under the headings, a newline at the end of every line.
  std::string text() const;
  std::size_t rows() const { return rows_.size(); }

 private:
  struct Column {
    std::string heading;
    Align align;
  };
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace furlong
