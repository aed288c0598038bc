#include "furlong/base/text.h"

#include <gmock/gmock.h>

#include <limits>

#include "furlong/base/random.h"

namespace furlong {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(Text, SplitAndJoin) {
  EXPECT_THAT(split("", ','), ElementsAre(""));
  EXPECT_THAT(split("a", ','), ElementsAre("a"));
  EXPECT_THAT(split(",a,,b,", ','), ElementsAre("", "a", "", "b", ""));
  EXPECT_EQ(join(std::vector<std::string>{}, ", "), "");
  EXPECT_EQ(join(std::vector<std::string>{"a", "", "b"}, ", "), "a, , b");
  Random random(1, "split");
  for (int run = 0; run < 200; ++run) {
    std::string text(random.below(20), ' ');
    for (char& c : text) c = "ab,"[random.below(3)];
    EXPECT_EQ(join(split(text, ','), ","), text);
  }
}

TEST(Text, Trim) {
  EXPECT_EQ(trim(" \t a b\r\n"), "a b");
  EXPECT_EQ(trim(" \n "), "");
  EXPECT_EQ(trim(""), "");
}

TEST(Text, ReplaceAll) {
  EXPECT_EQ(replace_all("aaa", "aa", "b"), "ba");
  EXPECT_EQ(replace_all("a$x$x", "$x", "$x$x"), "a$x$x$x$x");
  EXPECT_EQ(replace_all("abc", "", "x"), "abc");
  EXPECT_EQ(replace_all("", "a", "x"), "");
}

TEST(Text, NearestFindsSlipsOnly) {
  const std::vector<std::string> knobs = {"unroll", "layout", "ldg"};
  EXPECT_EQ(nearest("unrol", knobs), "unroll");
  EXPECT_EQ(nearest("layuot", knobs), "layout");
  EXPECT_EQ(nearest("lgd", knobs), "ldg");
  EXPECT_EQ(nearest("tile", knobs), "");
  EXPECT_EQ(nearest("", knobs), "");
  EXPECT_EQ(nearest(std::string(100'000, 'u'), knobs), "");
  EXPECT_EQ(did_you_mean("unrol", knobs), ", did you mean 'unroll'?");
  EXPECT_EQ(did_you_mean("x", knobs), "");
}

TEST(Text, NearestChoicesAlwaysNameSome) {
  const std::vector<std::string> tags = {"u2", "u8", "ldg", "", "r32", "r64", "w2", "lb8"};
  EXPECT_EQ(nearest_choices("ldgg", tags), ", did you mean 'ldg'?");
  EXPECT_EQ(nearest_choices("r8", tags), "; the nearest are 'r32', 'r64', 'u8' and 'u2'");
  EXPECT_EQ(nearest_choices("r8", tags, 2), "; the nearest are 'r32' and 'r64'");
  EXPECT_EQ(nearest_choices("u4", tags, 1), "; the nearest is 'u2'");
  EXPECT_EQ(nearest_choices("vectorised", tags, 1), "; the nearest is 'r32'");
  EXPECT_EQ(nearest_choices("r8", {}), "");
  EXPECT_EQ(nearest_choices(std::string(100'000, 'u'), tags), "");
}

TEST(Text, IntegersAreWholeStrings) {
  EXPECT_EQ(*parse_integer("-9223372036854775808"), std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(*parse_integer("042"), 42);
  for (const char* bad : {"", " 1", "1 ", "+1", "1.0", "0x10", "9223372036854775808", "--1", "1e3"}) {
    const auto parsed = parse_integer(bad);
    ASSERT_FALSE(parsed) << bad;
    EXPECT_EQ(parsed.error().code(), Code::invalid);
    EXPECT_THAT(parsed.error().text(), HasSubstr(fmt::format("'{}'", bad)));
  }
}

TEST(Text, NumbersAreWholeStringsAndFinite) {
  EXPECT_EQ(*parse_number("-1.5e3"), -1500);
  EXPECT_EQ(*parse_number("7"), 7);
  for (const char* bad : {"", " 1", "1 ", "+1", "1,5", "nan", "inf", "1e999", "0x1p3", "1.2.3"})
    EXPECT_FALSE(parse_number(bad)) << bad;
}

TEST(Text, Utf8) {
  for (const char* good : {"", "abc", "é", "€", "😀", "\xF4\x8F\xBF\xBF", "\xEF\xBF\xBF"})
    EXPECT_TRUE(is_valid_utf8(good)) << good;
  for (const char* bad :
       {"\x80", "\xC3", "\xC0\xAF", "\xC1\xBF", "\xE0\x80\xAF", "\xED\xA0\x80", "\xF0\x80\x80\x80",
        "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFF", "a\xE2\x82", "\xE2\x28\xA1", "\xF0\x9F\x98\x28"})
    EXPECT_FALSE(is_valid_utf8(bad)) << bad;
}

TEST(Text, HtmlEscape) {
  EXPECT_EQ(html_escape("<a b=\"c\">'&"), "&lt;a b=&quot;c&quot;&gt;&#39;&amp;");
  EXPECT_EQ(html_escape("a\x1b[31m\n\tb\x7f"), "a [31m\n\tb ");
}

TEST(Text, ControlCharactersBecomeBlanks) {
  for (int c = 0; c < 256; ++c) {
    const std::string text = {'a', static_cast<char>(c), 'b'};
    const bool control = c < 0x20 || c == 0x7F;
    EXPECT_EQ(one_line(text), control ? "a b" : text) << c;
    EXPECT_EQ(without_controls(text), control && c != '\n' ? "a b" : text) << c;
  }
}

TEST(Text, ControlsBeyondAsciiBecomeBlanks) {
  EXPECT_EQ(one_line("a\u009b31mb"), "a  31mb");
  EXPECT_EQ(one_line("a\u202eb\u2066c\u200fd"), "a   b   c   d");
  for (const char* plain : {"é", "…", "→", "\u2010", "a\xC2", "\xE2\x80"}) EXPECT_EQ(one_line(plain), plain);
  EXPECT_EQ(without_controls("a\u009b\nb"), "a  \nb");
}

TEST(Text, HumanBytes) {
  EXPECT_EQ(human_bytes(0), "0 B");
  EXPECT_EQ(human_bytes(1023), "1023 B");
  EXPECT_EQ(human_bytes(1024), "1 KiB");
  EXPECT_EQ(human_bytes(16u << 20), "16 MiB");
  EXPECT_EQ(human_bytes((3ull << 30) / 2), "1.5 GiB");
  EXPECT_EQ(human_bytes((1u << 20) - 1), "1 MiB");
  EXPECT_EQ(human_bytes(std::numeric_limits<std::uint64_t>::max()), "16 EiB");
}

TEST(Text, PositionAt) {
  const auto at = [](std::size_t offset) {
    const TextPosition position = position_at("ab\n\ncd", offset);
    return std::pair(position.line, position.column);
  };
  EXPECT_EQ(at(0), std::pair(1, 1));
  EXPECT_EQ(at(2), std::pair(1, 3));
  EXPECT_EQ(at(3), std::pair(2, 1));
  EXPECT_EQ(at(4), std::pair(3, 1));
  EXPECT_EQ(at(5), std::pair(3, 2));
  EXPECT_EQ(at(99), std::pair(3, 3));
}

}  // namespace
TEST(Text, AmountsOfMemory) {
  EXPECT_EQ(*parse_bytes("12"), 12u);
  EXPECT_EQ(*parse_bytes("2", 1u << 30), 2ull << 30);
  EXPECT_EQ(*parse_bytes("512M", 1u << 30), 512ull << 20);
  EXPECT_EQ(*parse_bytes("1.5GiB"), 3ull << 29);
  EXPECT_EQ(*parse_bytes(" 16 kb "), 16384u);
  EXPECT_EQ(*parse_bytes("7 B"), 7u);
  EXPECT_EQ(*parse_bytes("0"), 0u);
  for (const char* text : {"", "G", "-1", "1x", "1 GiBi", "bB", "1.2.3M", "nan", "9e99", "8E", "1 2"}) {
    const auto bytes = parse_bytes(text);
    ASSERT_FALSE(bytes) << text;
    EXPECT_EQ(bytes.error().code(), Code::invalid);
    EXPECT_NE(bytes.error().text().find(text), std::string::npos);
  }
  for (const std::uint64_t bytes : {0ull, 17ull, 1024ull, 3ull << 19, 5ull << 30})  // what is printed is read
    EXPECT_EQ(*parse_bytes(human_bytes(bytes)), bytes);
}

}  // namespace furlong
