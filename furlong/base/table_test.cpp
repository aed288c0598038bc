#include "furlong/base/table.h"

#include <gmock/gmock.h>

namespace furlong {
namespace {

TEST(Table, Golden) {
  Table table;
  table.column("variant");
  table.column("rate", Table::Align::right);
  table.column("note");
  table.row({"base", "41.2", "über"});
  table.row({"u2-ldg", "1044.0"});
  table.row({"日本", "é", "x", "surplus"});
  table.row({"two\nlines\x1b[31m", "", "end "});
  EXPECT_EQ(table.text(),
            "variant           rate  note\n"
            "--------------  ------  ----\n"
            "base              41.2  über\n"
            "u2-ldg          1044.0\n"
            "日本                 é  x\n"
            "two lines [31m          end\n");
  EXPECT_EQ(table.rows(), 4u);
}

TEST(Table, Empty) {
  EXPECT_EQ(Table().text(), "\n\n");
  Table table;
  table.column("a");
  EXPECT_EQ(table.text(), "a\n-\n");
}

TEST(DisplayWidth, CountsColumns) {
  EXPECT_EQ(display_width(""), 0u);
  EXPECT_EQ(display_width("abc"), 3u);
  EXPECT_EQ(display_width("é"), 1u);
  EXPECT_EQ(display_width("e\u0301"), 1u);
  EXPECT_EQ(display_width("日本語"), 6u);
  EXPECT_EQ(display_width("한"), 2u);
  EXPECT_EQ(display_width("😀"), 2u);
  EXPECT_EQ(display_width("a\u200Bb"), 2u);
  EXPECT_EQ(display_width("\xE2\x82"), 1u);
  EXPECT_EQ(display_width("\xFFz"), 2u);
}

}  // namespace
}  // namespace furlong
