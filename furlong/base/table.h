#pragma once
// The one table printer: columns aligned by display width, plain text, for terminals and logs.

#include <string>
#include <vector>

namespace furlong {

class Table {
 public:
  enum class Align { left, right };
  void column(std::string heading, Align align = Align::left);
  /// One cell a column; missing ones are empty.
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
