#include "furlong/base/toml.h"

#include <gmock/gmock.h>

namespace furlong {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

std::vector<std::string> keys_of(const TomlNode& node) {
  std::vector<std::string> keys;
  for (const auto& [key, member] : *node.table()) keys.push_back(key);
  return keys;
}

TEST(Toml, ValuesOfEveryType) {
  const auto root =
      toml_parse("b = true\ni = -0x1F\nn = 1e3\ns = \"a\\tb\"\na = [1, \"x\"]\nt = {k = 1}\n", "x");
  ASSERT_FALSE(root) << "a minus before 0x is no TOML";
  const auto good =
      toml_parse("b = true\ni = 0x1F\nn = 1e3\ns = \"a\\tb\"\na = [1, \"x\"]\nt = {k = 1}\n", "x");
  ASSERT_TRUE(good) << good.error().text();
  EXPECT_EQ(*good->find("b")->boolean(), true);
  EXPECT_EQ(*good->find("i")->integer(), 31);
  EXPECT_EQ(*good->find("n")->number(), 1000);
  EXPECT_EQ(*good->find("s")->string(), "a\tb");
  EXPECT_EQ(good->find("a")->array()->size(), 2u);
  EXPECT_EQ(*good->find("t")->find("k")->integer(), 1);
  EXPECT_EQ(good->find("zz"), nullptr);
  EXPECT_EQ(good->find("i")->find("k"), nullptr);
  std::vector<std::string_view> types;
  for (const auto& [key, node] : *good->table()) types.push_back(node.type_name());
  EXPECT_THAT(types,
              ElementsAre("true or false", "an integer", "a number", "a string", "an array", "a table"));
}

TEST(Toml, TablesKeepTheOrderOfTheFile) {
  const auto root =
      toml_parse("z = 1\nb.y = 1\na = {q = 1, c = 2}\n[m]\n[c]\nx = 1\na = 2\n[m.k]\n[[l]]\n", "x");
  ASSERT_TRUE(root) << root.error().text();
  EXPECT_THAT(keys_of(*root), ElementsAre("z", "b", "a", "m", "c", "l"));
  EXPECT_THAT(keys_of(*root->find("c")), ElementsAre("x", "a"));
  EXPECT_THAT(keys_of(*root->find("a")), ElementsAre("q", "c"));
}

TEST(Toml, EveryNodeKnowsItsPlace) {
  const auto root =
      toml_parse("# c\nname = \"u\"\n\n[[knob]]\n  values = [1,\n    2]\n[[knob]]\nx.y = 3\n", "x");
  ASSERT_TRUE(root) << root.error().text();
  const TomlNode& name = *root->find("name");
  EXPECT_EQ(std::pair(name.line, name.column), std::pair(2, 8));
  EXPECT_EQ(std::pair(name.key_line, name.key_column), std::pair(2, 1));
  const TomlNode& knobs = *root->find("knob");
  ASSERT_EQ(knobs.array()->size(), 2u);
  EXPECT_EQ(knobs.array()->at(0).line, 4);
  EXPECT_EQ(knobs.array()->at(1).line, 7);
  const TomlNode& values = *knobs.array()->at(0).find("values");
  EXPECT_EQ(std::pair(values.line, values.column), std::pair(5, 12));
  EXPECT_EQ(std::pair(values.key_line, values.key_column), std::pair(5, 3));
  EXPECT_EQ(std::pair(values.array()->at(1).line, values.array()->at(1).column), std::pair(6, 5));
  const TomlNode& y = *knobs.array()->at(1).find("x")->find("y");
  EXPECT_EQ(std::pair(y.key_line, y.key_column), std::pair(8, 3));
}

TEST(Toml, ErrorsNameFileLineAndColumn) {
  struct Bad {
    const char* text;
    const char* place;
  };
  const Bad all[] = {{"a = 1\nb = \n", "p.toml:2:"},
                     {"a = 1\na = 2\n", "p.toml:2:"},
                     {"[t]\n[t]\n", "p.toml:2:"},
                     {"x = \"\\q\"", "p.toml:1:"},
                     {"x = 'a\n'", "p.toml:1:"},
                     {"x = \"\xFF\"", "p.toml:1:"},
                     {"\n\nx = 01", "p.toml:3:"},
                     {"x = [1", "p.toml:1:"},
                     {"x = 99999999999999999999", "p.toml:1:"},
                     {"just words", "p.toml:1:"}};
  for (const Bad& bad : all) {
    const auto parsed = toml_parse(bad.text, "p.toml");
    ASSERT_FALSE(parsed) << bad.text;
    EXPECT_EQ(parsed.error().code(), Code::invalid);
    EXPECT_THAT(parsed.error().text(), StartsWith(bad.place)) << bad.text;
  }
}

TEST(Toml, DatesAreRefusedWithAMend) {
  for (const char* text :
       {"a = 1\nd = 1979-05-27\n", "a = 1\nd = 07:32:00\n", "a = 1\nd = 1979-05-27T07:32:00Z\n"}) {
    const auto parsed = toml_parse(text, "p.toml");
    ASSERT_FALSE(parsed) << text;
    EXPECT_THAT(parsed.error().text(), StartsWith("p.toml:2:5: "));
    EXPECT_THAT(parsed.error().text(), HasSubstr("in quotes"));
  }
}

std::string repeated(std::string_view piece, int times) {
  std::string text;
  for (int i = 0; i < times; ++i) text += piece;
  return text;
}

TEST(Toml, DepthIsBounded) {
  EXPECT_TRUE(toml_parse("a = " + repeated("[", 60) + repeated("]", 60), "x"));
  EXPECT_TRUE(toml_parse(repeated("a.", 60) + "b = 1", "x"));
  const std::string deep[] = {
      "a = " + repeated("[", 100'000),
      "a = " + repeated("[", 65) + repeated("]", 65),
      "a = " + repeated("{a=", 100'000),
      repeated("a.", 1'000'000) + "b = 1",
      "[" + repeated("a . ", 100'000) + "b]",
      repeated("\"a b\".", 100'000) + "b = 1",
      repeated("'a'.", 100) + "b = 1",
      repeated("a.", 40) + "b = {" + repeated("c.", 40) + "d = 1}",
      "x = '''a''' # ]\n" + repeated("a.", 70) + "b = 1",
  };
  for (const std::string& text : deep) {
    const auto parsed = toml_parse(text, "x");
    ASSERT_FALSE(parsed) << text.substr(0, 40);
    EXPECT_THAT(parsed.error().text(), HasSubstr("nested deeper than 64")) << text.substr(0, 40);
  }
}

TEST(Toml, DotsAndBracketsInStringsAndCommentsAreNoDepth) {
  const std::string dots = repeated("[.", 100);
  const std::string text = "# " + dots + "\na = \"\\\"" + dots + "\"\nb = '" + dots + "'\nc = \"\"\"\n" +
                           dots + "\\\"\"\"\"\"\"\nd = '''\n" + dots + "'''''\n";
  const auto parsed = toml_parse(text, "x");
  ASSERT_TRUE(parsed) << parsed.error().text();
  EXPECT_EQ(*parsed->find("c")->string(), dots + "\"\"\"");
  EXPECT_EQ(*parsed->find("d")->string(), dots + "''");
}

TEST(Toml, AZeroByteDoesNotHideWhatFollows) {
  EXPECT_FALSE(toml_parse(std::string("a = 1\n\0b = 2\n", 13), "x"));
  EXPECT_FALSE(toml_parse(std::string("a = 1\0", 6), "x"));
}

TEST(Toml, AnEmptyFileIsAnEmptyTable) {
  const auto parsed = toml_parse("", "x");
  ASSERT_TRUE(parsed);
  EXPECT_TRUE(parsed->is_table());
  EXPECT_TRUE(parsed->table()->empty());
  EXPECT_EQ(parsed->line, 1);
}

}  // namespace
}  // namespace furlong
