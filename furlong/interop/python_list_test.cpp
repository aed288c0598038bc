#include "furlong/interop/python_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace furlong::interop {
namespace {

using lattice::Value;
using testing::HasSubstr;

std::string shown(const Result<std::vector<Value>>& values) {
  if (!values) return values.error().message();
  std::string text;
  for (const auto& value : *values) text += (text.empty() ? "" : " ") + value.literal();
  return text;
}

std::string list(std::string_view text) { return shown(python_list(text)); }

TEST(PythonList, ReadsWhatTunersWrite) {
  EXPECT_EQ(list("[1, 2, 4]"), "1 2 4");
  EXPECT_EQ(list("[1]"), "1");
  EXPECT_EQ(list("[]"), "");
  EXPECT_EQ(list("()"), "");
  EXPECT_EQ(list(" [ 1 ,2, ] "), "1 2");
  EXPECT_EQ(list("(1, 2)"), "1 2");
  EXPECT_EQ(list("(1,)"), "1");
  EXPECT_EQ(list("([1, 2])"), "1 2");
  EXPECT_EQ(list("[1, 2, 4, 8, 16] + list(range(32, 128+1, 32))"), "1 2 4 8 16 32 64 96 128");
  EXPECT_EQ(list("[2**i for i in range(0, 6)]"), "1 2 4 8 16 32");
  EXPECT_EQ(list("[i for i in range(1, 10+1)]"), "1 2 3 4 5 6 7 8 9 10");
  EXPECT_EQ(list("[i*j_2 for j_2 in [1]]").substr(0, 9), "column 2:");
  EXPECT_EQ(list("[i for i in range(20) if i % 6 == 0 and i > 0]"), "6 12 18");
  EXPECT_EQ(list("[1 if i else 0 for i in range(3)]"), "0 1 1");
  EXPECT_EQ(list("[x / 2 for x in [1, 2] + list(range(3, 5))]"), "0.5 1.0 1.5 2.0");
  EXPECT_EQ(list("range(5)"), "0 1 2 3 4");
  EXPECT_EQ(list("range(5, 0, -2)"), "5 3 1");
  EXPECT_EQ(list("range(3, 1)"), "");
  EXPECT_EQ(list("list([1] + [2])"), "1 2");
  EXPECT_EQ(list("['a+b', \"c,d]\", 'e\\'f']"), "'a+b' 'c,d]' 'e\\'f'");
  EXPECT_EQ(list("[True, -1, 2.5, 1e3, (3), min(4, 5)]"), "True -1 2.5 1000.0 3 4");
  EXPECT_EQ(list("range(9223372036854775806, 9223372036854775807, 5)"), "9223372036854775806");
}

TEST(PythonList, ErrorsNameTheColumn) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "column 1: a list should stand here"},
      {"[1, 2", "column 6: ']' is missing"},
      {"[1, 2)", "column 6: ')' closes nothing"},
      {"1, 2", "column 1: a list [...], list(...) or range(...) should stand here"},
      {"[1] +", "column 6: a list should stand here"},
      {"[1] 2", "column 1: a list [...]"},
      {"[1, 2 +]", "column 8: the expression ends"},
      {"[1, x]", "column 5: 'x' is not defined"},
      {"[1, 1 // 0]", "column 7: division by zero"},
      {"[1,, 2]", "column 4: the expression ends"},
      {"['a", "column 4: a quoted word has no end"},
      {"range(0, 5, 0)", "column 7: range() by steps of 0"},
      {"range(1.5)", "column 7: range() takes whole numbers"},
      {"range(1, 2, 3, 4)", "column 7: range() takes one to three numbers"},
      {"range()", "column 7: the expression ends"},
      {"range(100000)", "column 7: more than 65536 values"},
      {"[i for i range(3)]", "column 4: 'for' without 'in'"},
      {"[i for i, j in range(3)]", "column 8: a comprehension runs over one name"},
      {"[i for i in range(3) for j in range(3)]", "column 22: only one 'for' is supported"},
      {"[i for i in 3]", "column 13: a list [...]"},
      {"[8 // i for i in range(3)]", "column 4: division by zero"},
      {"set([1])", "column 1: a list [...]"},
  };
  for (const auto& [text, message] : cases) {
    const auto values = python_list(text);
    ASSERT_FALSE(values) << text << " gave " << shown(values);
    EXPECT_EQ(values.error().code(), Code::invalid);
    EXPECT_THAT(values.error().message(), HasSubstr(message)) << text;
  }
  std::string deep;
  for (int i = 0; i < 100; ++i) deep += "list(";
  deep += "[1]" + std::string(100, ')');
  EXPECT_THAT(list(deep), HasSubstr("nested too deep"));
  EXPECT_THAT(list(std::string(70000, ' ')), HasSubstr("65536 characters at most"));
}

}  // namespace
}  // namespace furlong::interop
