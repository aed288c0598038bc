#include "furlong/base/json.h"

#include <gmock/gmock.h>

#include <cmath>

#include "furlong/base/random.h"

namespace furlong {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

TEST(JsonParse, KeepsTheOrderOfKeysAndTheValues) {
  const auto parsed = json_parse(R"( {"z":1,"a":[true,null,-2,1.5e3,"é\u00e9\ud83d\ude00"],"m":{}} )", "x");
  ASSERT_TRUE(parsed) << parsed.error().text();
  EXPECT_EQ(json_line(*parsed), R"({"z":1,"a":[true,null,-2,1500.0,"éé😀"],"m":{}})");
  EXPECT_EQ((*parsed)["z"], 1);
  EXPECT_TRUE((*parsed)["m"].is_object());
}

TEST(JsonParse, ScalarsAreDocuments) {
  EXPECT_EQ(*json_parse("18446744073709551615", "x"), Json(18446744073709551615ull));
  EXPECT_EQ(*json_parse("-9223372036854775808", "x"), Json(std::numeric_limits<std::int64_t>::min()));
  EXPECT_EQ(*json_parse("\"\"", "x"), Json(""));
}

struct Malformed {
  std::string text;
  std::size_t byte;
  const char* reason;
};

const Malformed malformed[] = {
    {"", 0, "unexpected end of input"},
    {"   ", 3, "unexpected end of input"},
    {"{", 1, "unexpected end of input"},
    {"{\"a\":1", 6, "unexpected end of input"},
    {"[1,]", 3, "unexpected ']'"},
    {"{\"a\":1,}", 7, "unexpected '}'"},
    {"{a:1}", 1, "invalid literal"},
    {"{'a':1}", 1, "invalid literal"},
    {"{\"a\" 1}", 5, "expected ':'"},
    {"{1:2}", 1, "expected string literal"},
    {"[1 2]", 3, "expected ']'"},
    {"[1}", 2, "expected ']'"},
    {"1 2", 2, "expected end of input"},
    {"{} x", 3, "invalid literal"},
    {"{}{}", 2, "expected end of input"},
    {"NaN", 0, "invalid literal"},
    {"[Infinity]", 1, "invalid literal"},
    {"[-Infinity]", 2, "invalid number"},
    {"nul", 3, "invalid literal"},
    {"True", 0, "invalid literal"},
    {"01", 1, "expected end of input"},
    {"+1", 0, "invalid literal"},
    {".5", 0, "invalid literal"},
    {"1.", 2, "invalid number"},
    {"1e", 2, "invalid number"},
    {"-", 1, "invalid number"},
    {"0x10", 1, "invalid literal"},
    {"1e999", 4, "number overflow"},
    {"[1, -1e400]", 9, "number overflow"},
    {"\"abc", 4, "missing closing quote"},
    {"\"\\x\"", 2, "forbidden character after backslash"},
    {"\"\\u12g4\"", 5, "must be followed by 4 hex digits"},
    {"\"\\ud800\"", 7, "surrogate"},
    {"\"\\udc00\"", 6, "surrogate"},
    {"\"a\nb\"", 2, "control character"},
    {std::string("\"a\0b\"", 5), 2, "control character"},
    {std::string("{}\0", 3), 2, "zero byte"},
    {std::string("[1]\0 garbage", 12), 3, "zero byte"},
    {std::string("[\0", 2), 1, "unexpected end of input"},
    {"\"\xFF\"", 1, "ill-formed UTF-8"},
    {"\"\xC0\xAF\"", 1, "ill-formed UTF-8"},
    {"\"\xED\xA0\x80\"", 2, "ill-formed UTF-8"},
    {"\xEF\xBB\xBF{}", 0, "byte order mark"},
    {"// c\n{}", 0, "invalid literal"},
    {"{\"a\":1,\"a\":2}", 9, "the key 'a' stands twice"},
    {"{\"a\":1,\"\\u0061\":2}", 14, "the key 'a' stands twice"},
    {"[{\"b\":{}},{\"b\":{},\n\"c\":0,\"b\":0}]", 27, "the key 'b' stands twice"},
};

TEST(JsonParse, EveryMalformedTextIsInvalidAndNamesTheByte) {
  for (const Malformed& bad : malformed) {
    const auto parsed = json_parse(bad.text, "pack.json");
    ASSERT_FALSE(parsed) << bad.text;
    EXPECT_EQ(parsed.error().code(), Code::invalid);
    EXPECT_THAT(parsed.error().text(), StartsWith(fmt::format("pack.json: byte {} (line ", bad.byte)))
        << bad.text;
    EXPECT_THAT(parsed.error().text(), HasSubstr(bad.reason)) << bad.text;
    EXPECT_THAT(parsed.error().text(), testing::Not(HasSubstr("last read"))) << bad.text;
  }
}

TEST(JsonParse, TellsLineAndColumn) {
  const auto parsed = json_parse("{\n  \"a\": tru\n}", "x");
  ASSERT_FALSE(parsed);
  EXPECT_THAT(parsed.error().text(), StartsWith("x: byte 12 (line 2, column 11): syntax error"));
}

TEST(JsonParse, DuplicatesAreFoundAmongManyKeys) {
  std::string text = "{";
  for (int i = 0; i < 20'000; ++i) text += fmt::format("\"k{}\":{},", i, i);
  const auto good = json_parse(text + "\"last\":0}", "x");
  ASSERT_TRUE(good);
  EXPECT_EQ(good->size(), 20'001u);
  const auto bad = json_parse(text + "\"k7\":0}", "x");
  ASSERT_FALSE(bad);
  EXPECT_THAT(bad.error().text(), HasSubstr("the key 'k7' stands twice"));
}

TEST(JsonParse, BoundsSizeAndDepth) {
  const auto nested = [](int depth) {
    return std::string(static_cast<std::size_t>(depth), '[') +
           std::string(static_cast<std::size_t>(depth), ']');
  };
  EXPECT_TRUE(json_parse(nested(64), "x"));
  const auto deep = json_parse(nested(65), "x");
  ASSERT_FALSE(deep);
  EXPECT_THAT(deep.error().text(), StartsWith("x: byte 64 (line 1, column 65): nested deeper than 64"));
  EXPECT_FALSE(json_parse(std::string(1'000'000, '['), "x"));
  EXPECT_TRUE(json_parse("[[]]", "x", {.max_bytes = 4, .max_depth = 2}));
  EXPECT_FALSE(json_parse("[[]]", "x", {.max_bytes = 4, .max_depth = 1}));
  const auto large = json_parse("[[ ]]", "x", {.max_bytes = 4, .max_depth = 2});
  ASSERT_FALSE(large);
  EXPECT_EQ(large.error().code(), Code::invalid);
}

TEST(JsonParse, EveryPrefixOfADocumentIsAnErrorAtItsEnd) {
  const std::string whole = R"({"a":[1,{"b":"c\n"},true,null],"d":-1.5e-3})";
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const auto parsed = json_parse(whole.substr(0, size), "torn");
    ASSERT_FALSE(parsed) << size;
    EXPECT_THAT(parsed.error().text(), HasSubstr(fmt::format("byte {} ", size)));
  }
}

// A random tree: written and read again, it is the same.
Json random_tree(Random& random, int depth) {
  switch (random.below(depth > 0 ? 7 : 5)) {
    case 0:
      return nullptr;
    case 1:
      return random.below(2) == 0;
    case 2:
      return random.between(std::numeric_limits<std::int64_t>::min(), -1);
    case 3:
      return random.normal() * std::pow(10.0, static_cast<double>(random.between(-300, 300)));
    case 4: {
      std::string text(random.below(8), ' ');
      for (char& c : text) c = static_cast<char>(random.below(128));
      return text + "é";
    }
    case 5: {
      Json array = Json::array();
      for (auto left = random.below(4); left > 0; --left) array.push_back(random_tree(random, depth - 1));
      return array;
    }
    default: {
      Json object = Json::object();
      for (auto left = random.below(25); left > 0; --left)
        object[fmt::format("k{}", random.below(1000))] = random_tree(random, depth - 1);
      return object;
    }
  }
}

TEST(JsonWrite, ReadsBackAsItWas) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Random random(seed, "json");
    const Json tree = random_tree(random, 3);
    for (const std::string& text : {json_line(tree), json_pretty(tree)}) {
      const auto parsed = json_parse(text, "x");
      ASSERT_TRUE(parsed) << parsed.error().text() << "\n" << text;
      EXPECT_EQ(*parsed, tree) << text;
    }
    EXPECT_EQ(json_line(tree).find('\n'), std::string::npos);
  }
}

TEST(JsonWrite, Golden) {
  Json value;
  value["b"] = {1, 2.5};
  value["a"] = std::nan("");
  value["c"] = Json::object();
  value["d"] = "\xFF\"";  // broken UTF-8 is replaced, not thrown at
  EXPECT_EQ(json_line(value), "{\"b\":[1,2.5],\"a\":null,\"c\":{},\"d\":\"\xEF\xBF\xBD\\\"\"}");
  EXPECT_EQ(json_pretty({{"a", 1}}), "{\n  \"a\": 1\n}\n");
}

TEST(JsonMembers, AreReadWithClearErrors) {
  const Json object =
      *json_parse(R"({"s":"x","n":1.5,"i":-3,"b":true,"u":18446744073709551615,"w":2.0})", "x");
  EXPECT_EQ(*json_string(object, "s", "file"), "x");
  EXPECT_EQ(*json_number(object, "n", "file"), 1.5);
  EXPECT_EQ(*json_number(object, "i", "file"), -3);
  EXPECT_EQ(*json_integer(object, "i", "file"), -3);
  EXPECT_EQ(*json_bool(object, "b", "file"), true);
  const auto text_of = [](const auto& result) {
    EXPECT_FALSE(result);
    return result ? std::string() : result.error().text();
  };
  EXPECT_EQ(text_of(json_string(object, "i", "file")), "file.i must be a string, not number");
  EXPECT_EQ(text_of(json_string(object, "zz", "file")), "file.zz is missing");
  EXPECT_EQ(text_of(json_number(object, "s", "file")), "file.s must be a number, not string");
  EXPECT_EQ(text_of(json_integer(object, "n", "file")), "file.n must be a whole number");
  EXPECT_EQ(text_of(json_integer(object, "u", "file")), "file.u does not fit a 64-bit integer");
  EXPECT_EQ(text_of(json_bool(object, "i", "file")), "file.i must be true or false, not number");
  EXPECT_EQ(text_of(json_bool(Json(3), "i", "file")), "file must be an object, not number");
}

}  // namespace
}  // namespace furlong
