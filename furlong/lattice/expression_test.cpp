#include "furlong/lattice/expression.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <limits>

#include "furlong/base/random.h"
#include "furlong/base/text.h"

namespace furlong::lattice {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Value value_from(std::string_view kind, const std::string& text) {
  if (kind == "int") return Value(parse_integer(text).value_or(0));
  if (kind == "float") return Value(text == "nan" ? std::nan("") : std::strtod(text.c_str(), nullptr));
  if (kind == "bool") return Value(text == "True");
  return Value(text);
}

std::string error_of(std::string_view text, const Environment& environment = {}) {
  auto parsed = Expression::parse(text);
  if (!parsed) return parsed.error().message();
  auto value = parsed->evaluate(environment);
  return value ? "no error: " + value->text() : value.error().message();
}

Value eval(std::string_view text, const Environment& environment = {}) {
  auto parsed = Expression::parse(text);
  EXPECT_TRUE(parsed) << text << ": " << parsed.error().text();
  if (!parsed) return Value(-987654321);
  auto value = parsed->evaluate(environment);
  EXPECT_TRUE(value) << text << ": " << value.error().text();
  return value ? *value : Value(-987654321);
}

bool same_value_and_type(const Value& a, const Value& b) {
  if (a.is_float() && b.is_float()) {
    const double x = *a.floating();
    const double y = *b.floating();
    return std::isnan(x) ? std::isnan(y) : x == y && std::signbit(x) == std::signbit(y);
  }
  return a.is_bool() == b.is_bool() && a.is_integer() == b.is_integer() && a.is_word() == b.is_word() &&
         a == b;
}

struct GoldenTable {
  Environment environment;
  std::vector<std::vector<std::string>> rows;  // expression, kind, value
};

GoldenTable read_golden_table() {
  GoldenTable table;
  std::ifstream file("furlong/lattice/testdata/expressions.tsv");
  for (std::string line; std::getline(file, line);) {
    auto cells = split(line, '\t');
    if (cells.size() != 3) ADD_FAILURE() << "a row without three cells: " << line;
    if (line.starts_with("# ")) {
      table.environment[cells[0].substr(2)] = value_from(cells[1], cells[2]);
    } else {
      table.rows.push_back(std::move(cells));
    }
  }
  return table;
}

/// The word of the message by which a fault of the table is known.
std::string fault_word(const std::string& fault) {
  if (fault == "overflow") return "overflow";
  if (fault == "zero") return "division by zero";
  if (fault == "type") return "does not fit";
  if (fault == "name") return "is not defined";
  if (fault == "complex") return "no real number";
  if (fault == "shift") return "by a negative number";
  if (fault == "finite") return "not finite";
  return "empty list";
}

TEST(Expression, AgreesWithPython) {
  const GoldenTable table = read_golden_table();
  ASSERT_GT(table.rows.size(), 1500u);
  for (const auto& row : table.rows) {
    if (row[1] == "error") {
      EXPECT_THAT(error_of(row[0], table.environment), HasSubstr(fault_word(row[2]))) << row[0];
      continue;
    }
    const Value expected = value_from(row[1], row[2]);
    const Value found = eval(row[0], table.environment);
    EXPECT_TRUE(same_value_and_type(found, expected))
        << row[0] << " gives " << found.text() << ", Python " << expected.text() << " (" << row[1] << ")";
  }
}

TEST(Expression, AllFormsOfEvaluationAgree) {
  const GoldenTable table = read_golden_table();
  const Lookup lookup = [&](std::string_view name) -> std::optional<Value> {
    const auto found = table.environment.find(std::string(name));
    return found == table.environment.end() ? std::nullopt : std::optional(found->second);
  };
  for (const auto& row : table.rows) {
    auto parsed = Expression::parse(row[0]);
    if (!parsed || row[2] == "name") continue;
    std::vector<Value> in_order;
    for (const auto& name : parsed->variables()) in_order.push_back(lookup(name).value_or(Value(0)));
    const auto a = parsed->evaluate(table.environment);
    const auto b = parsed->evaluate(lookup);
    const auto c = parsed->evaluate_in_order(in_order);
    ASSERT_EQ(a.has_value(), b.has_value()) << row[0];
    ASSERT_EQ(a.has_value(), c.has_value()) << row[0];
    if (a) {
      EXPECT_TRUE(same_value_and_type(*a, *b) && same_value_and_type(*a, *c)) << row[0];
    } else {
      EXPECT_EQ(a.error().message(), b.error().message());
      EXPECT_EQ(a.error().message(), c.error().message());
    }
  }
}

TEST(Expression, SyntaxErrorsNameTheColumn) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "column 1: the expression ends"},
      {"1 +", "column 4: the expression ends"},
      {"1 + * 2", "column 5: '*' stands where a value"},
      {"(1", "column 3: the expression ends where ')'"},
      {"1)", "column 2: ')' stands where the end"},
      {"a b", "column 3: 'b' stands where"},
      {"a = 1", "column 3: '=' compares nothing; write =="},
      {"a && b", "column 3: '&&' is no operator; write and"},
      {"a || b", "column 3: '||' is no operator; write or"},
      {"!a", "column 1: '!' is no operator; write not"},
      {"a == true", "column 6: write True for true"},
      {"1 if 2", "column 7: the expression ends where else"},
      {"'abc", "column 1: this quoted word has no end"},
      {"'a\\q'", "column 3: unknown escape"},
      {"012", "column 1: a number may not start with 0"},
      {"0x", "column 3: a digit is missing"},
      {"1e", "column 1: the exponent has no digits"},
      {"12ab", "column 1: '12a' is no number"},
      {"1.2.3", "column 1: '1.2.' is no number"},
      {"1 + 9223372036854775808", "column 5: overflow"},
      {"99999999999999999999", "column 1: overflow"},
      {"1e999", "column 1: 1e999 is outside the range"},
      {"sum(1, 2)", "column 1: no function sum()"},
      {"abs(1, 2)", "column 1: abs() takes 1 value, 2 given"},
      {"ceil_div(1)", "column 1: ceil_div() takes 2 values, 1 given"},
      {"min(1)", "column 1: min() takes a list or at least two values"},
      {"[1, 2]", "column 1: a list may stand only"},
      {"1 + (1, 2)", "column 5: a list may stand only"},
      {"min([1], 2)", "column 5: a list may stand only"},
      {"1 in [1] == True", "column 6: a list may stand only"},
      {"a is b", "column 3: 'is' stands where"},
      {"None", "column 1: None is no value"},
      {"a $ b", "column 3: '$' is not part"},
      {"a \x01 b", "column 3: byte 0x01 may stand only in a quoted word"},
      {"not", "column 4: the expression ends where a value"},
      {"1 not 2", "column 3: 'not' stands where"},
      {"a == not b", "column 6: 'not' stands where"},
  };
  for (const auto& [text, message] : cases) {
    auto parsed = Expression::parse(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().code(), Code::invalid);
    EXPECT_THAT(parsed.error().message(), HasSubstr(message)) << text;
  }
}

TEST(Expression, EvaluationErrorsNameTheColumn) {
  EXPECT_EQ(error_of("1 + missing"), "column 5: 'missing' is not defined");
  EXPECT_EQ(error_of("4 // (2 - 2)"), "column 3: division by zero in '//'");
  EXPECT_EQ(error_of("9223372036854775807 + 1"), "column 21: overflow: the result of '+' is too large");
  EXPECT_EQ(error_of("1 < 'a'"), "column 3: '<' does not fit an integer and a word");
  EXPECT_EQ(error_of("-'a'"), "column 1: '-' does not fit a word");
}

TEST(Expression, NamesMayHaveDots) {
  EXPECT_EQ(eval("device.sm >= 80", {{"device.sm", Value(86)}}), Value(true));
  EXPECT_THAT(error_of("device.sm >= 80"), HasSubstr("'device.sm' is not defined"));
}

TEST(Expression, KnowsItsNamesAndTheirColumns) {
  const auto parsed = Expression::parse("b + a * b - device.sm");
  ASSERT_TRUE(parsed);
  EXPECT_THAT(parsed->variables(), ElementsAre("b", "a", "device.sm"));
  EXPECT_EQ(parsed->column_of("b"), 1);
  EXPECT_EQ(parsed->column_of("a"), 5);
  EXPECT_EQ(parsed->column_of("device.sm"), 13);
  EXPECT_EQ(parsed->column_of("c"), 0);
  EXPECT_EQ(parsed->text(), "b + a * b - device.sm");
}

TEST(Expression, ConstantsAndTheDefault) {
  EXPECT_EQ(*Expression().evaluate(Environment{}), Value(0));
  EXPECT_EQ(Expression().text(), "0");
  const Expression word = Expression::constant(Value("int4"));
  EXPECT_EQ(*word.evaluate(Environment{}), Value("int4"));
  EXPECT_TRUE(word.variables().empty());
}

TEST(Expression, OnlyNeededNamesAreLookedUp) {
  int asked = 0;
  const Lookup lookup = [&](std::string_view) -> std::optional<Value> {
    ++asked;
    return Value(0);
  };
  EXPECT_EQ(*Expression::parse("a and b and c")->evaluate(lookup), Value(0));
  EXPECT_EQ(asked, 1);
  EXPECT_FALSE(Expression::parse("a")->evaluate(Lookup()));
}

TEST(Expression, DepthAndLengthAreBounded) {
  const auto repeat = [](std::string_view piece, int times) {
    std::string out;
    for (int i = 0; i < times; ++i) out += piece;
    return out;
  };
  EXPECT_EQ(eval(repeat("(", 90) + "1" + repeat(")", 90)), Value(1));
  EXPECT_THAT(error_of(repeat("(", 5000)), HasSubstr("levels of nesting"));
  EXPECT_THAT(error_of(repeat("-", 5000) + "1"), HasSubstr("levels of nesting"));
  EXPECT_THAT(error_of(repeat("not ", 5000) + "1"), HasSubstr("levels of nesting"));
  EXPECT_THAT(error_of(repeat("2 ** ", 5000) + "1"), HasSubstr("levels of nesting"));
  EXPECT_THAT(error_of(repeat("1 if 1 else ", 3000) + "1"), HasSubstr("levels of nesting"));
  EXPECT_EQ(eval(repeat("1 + ", 300) + "1"), Value(301));
  EXPECT_THAT(error_of(repeat("1 + ", 5000) + "1"), HasSubstr("levels deep"));
  EXPECT_EQ(eval(repeat("0 or ", 5000) + "7"), Value(7)) << "a chain of one operator is not deep";
  EXPECT_THAT(error_of(std::string(70000, ' ') + "1"), HasSubstr("65536 characters at most"));
}

TEST(Expression, WordsAreBounded) {
  std::string sum = "w";
  Environment environment{{"w", Value(std::string(1000, 'x'))}};
  for (int i = 0; i < 10; ++i) sum += " + w";
  EXPECT_THAT(error_of(sum, environment), HasSubstr("overflow"));
}

TEST(Value, TextIsWhatADefineTakes) {
  EXPECT_EQ(Value(8).text(), "8");
  EXPECT_EQ(Value(true).text(), "true");
  EXPECT_EQ(Value(2.5).text(), "2.5");
  EXPECT_EQ(Value(2.0).text(), "2.0");
  EXPECT_EQ(Value(1e300).text(), "1e+300");
  EXPECT_EQ(Value("int4").text(), "int4");
}

TEST(Value, ALiteralIsReadBackAsTheValue) {
  for (const Value& value :
       {Value(8), Value(-3), Value(std::numeric_limits<std::int64_t>::min()), Value(true), Value(false),
        Value(2.5), Value(-2.0), Value(1e300), Value("int4"), Value(""), Value("it's \\ a\n\ttab\"")}) {
    const auto parsed = Expression::parse(value.literal());
    ASSERT_TRUE(parsed) << value.literal();
    EXPECT_TRUE(same_value_and_type(*parsed->evaluate(Environment{}), value)) << value.literal();
  }
}

TEST(Value, EqualityIsByNumber) {
  EXPECT_EQ(Value(true), Value(1));
  EXPECT_EQ(Value(1), Value(1.0));
  EXPECT_FALSE(Value("1") == Value(1));
  EXPECT_FALSE(Value(9007199254740993) == Value(9007199254740992.0));
  EXPECT_FALSE(Value(std::nan("")) == Value(std::nan("")));
}

TEST(Value, ToIntegerTakesWholeNumbersOnly) {
  EXPECT_EQ(*to_integer(Value(7), "x"), 7);
  EXPECT_EQ(*to_integer(Value(true), "x"), 1);
  EXPECT_EQ(*to_integer(Value(4.0), "x"), 4);
  EXPECT_THAT(to_integer(Value(4.5), "grid.x").error().message(),
              HasSubstr("grid.x: 4.5 is no whole number"));
  EXPECT_FALSE(to_integer(Value(1e30), "x"));
  EXPECT_FALSE(to_integer(Value(std::nan("")), "x"));
  EXPECT_THAT(to_integer(Value("big"), "n").error().message(), HasSubstr("n: 'big' is a word"));
}

}  // namespace
}  // namespace furlong::lattice
