#include "furlong/base/json_object.h"

#include <gtest/gtest.h>

#include "furlong/base/json.h"

namespace furlong {
namespace {

Json parsed(std::string_view text) { return json_parse(text, "test").value(); }

TEST(JsonObject, ReadsEveryKindAndLeavesTheAbsentAlone) {
  const Json json = parsed(
      R"({"t":"x","ts":["a","b"],"b":true,"n":1.5,"i":-3,"u":18446744073709551615,"z":null,"o":{},"a":[1]})");
  JsonObject object(json, "f");
  std::string text, absent = "kept";
  std::vector<std::string> texts;
  bool flag = false;
  double number = 0;
  int integer = 0;
  std::uint64_t wide = 0;
  std::optional<double> none, some;
  object.text("t", text);
  object.text("missing", absent);
  object.texts("ts", texts);
  object.boolean("b", flag);
  object.number("n", number);
  object.number("n", some);
  object.number("z", none);
  object.integer("i", integer, -5);
  object.integer("u", wide);
  EXPECT_NE(object.object("o"), nullptr);
  EXPECT_NE(object.array("a"), nullptr);
  EXPECT_TRUE(object.strict());
  EXPECT_EQ(text, "x");
  EXPECT_EQ(absent, "kept");
  EXPECT_EQ(texts, (std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE(flag);
  EXPECT_EQ(number, 1.5);
  EXPECT_EQ(some, 1.5);
  EXPECT_FALSE(none.has_value());
  EXPECT_EQ(integer, -3);
  EXPECT_EQ(wide, 18446744073709551615ull);
}

TEST(JsonObject, FirstErrorNamesTheMember) {
  const Json json = parsed(R"({"n":"x","i":1.5,"big":4294967296,"ts":["a",2],"neg":-1})");
  const auto message = [&](auto read) {
    JsonObject object(json, "f.json: d[0]");
    read(object);
    const Status status = object.status();
    return status ? std::string("no error") : status.error().text();
  };
  double number = 7;
  int integer = 7;
  std::uint64_t wide = 7;
  std::vector<std::string> texts;
  EXPECT_EQ(message([&](JsonObject& o) { o.number("n", number); }),
            "f.json: d[0].n must be a number, not string");
  EXPECT_EQ(message([&](JsonObject& o) { o.integer("i", integer); }),
            "f.json: d[0].i must be a whole number, not number");
  EXPECT_EQ(message([&](JsonObject& o) { o.integer("big", integer); }),
            "f.json: d[0].big is 4294967296: must be from 0 to 2147483647");
  EXPECT_EQ(message([&](JsonObject& o) { o.integer("neg", wide, std::uint64_t{0}, std::uint64_t{5}); }),
            "f.json: d[0].neg is -1: must be from 0 to 5");
  EXPECT_EQ(message([&](JsonObject& o) { o.texts("ts", texts); }),
            "f.json: d[0].ts[1] must be a string, not number");
  EXPECT_EQ(message([&](JsonObject& o) { o.require({"n", "gone"}); }), "f.json: d[0].gone is missing");
  EXPECT_EQ(message([&](JsonObject& o) { o.number("n", number), o.integer("i", integer); }),
            "f.json: d[0].n must be a number, not string");
  EXPECT_EQ(number, 7);
  EXPECT_EQ(integer, 7);
  EXPECT_EQ(wide, 7u);
}

TEST(JsonObject, NoObjectIsAnErrorAndNeverACrash) {
  const Json json = parsed("[1]");
  JsonObject object(json, "f");
  int integer = 0;
  object.integer("i", integer);
  object.require({"i"});
  EXPECT_EQ(object.strict().error().text(), "f must be an object, not array");
  EXPECT_EQ(object.unknown(), "");
}

TEST(JsonObject, UnknownKeysAreRefusedOrKept) {
  const Json json = parsed(R"({"noise":0.1,"nose":1,"later":{"x":[1,2]}})");
  JsonObject object(json, "f");
  double noise = 0;
  object.number("noise", noise);
  EXPECT_TRUE(object.status());
  EXPECT_EQ(object.strict().error().text(), "f: unknown key 'nose', did you mean 'noise'?");
  EXPECT_EQ(object.unknown(), R"({"nose":1,"later":{"x":[1,2]}})");
  Json written = parsed(R"({"noise":0.2,"nose":3})");
  add_unknown(written, object.unknown());
  EXPECT_EQ(json_line(written), R"({"noise":0.2,"nose":3,"later":{"x":[1,2]}})");
}

}  // namespace
}  // namespace furlong
