#include "furlong/shard/executor/command/command_list.h"

#include <gmock/gmock.h>

#include <map>

#include "furlong/base/json.h"

namespace furlong::shard::command {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

Result<std::vector<Command>> parse(std::string_view text) {
  return parse_command_list(text, "/base", "list");
}

std::vector<Command> parsed(std::string_view text) {
  auto commands = parse(text);
  EXPECT_TRUE(commands) << commands.error().text();
  return commands ? *commands : std::vector<Command>();
}

std::string refused(std::string_view text) {
  const auto commands = parse(text);
  EXPECT_FALSE(commands) << text;
  if (commands) return "";
  EXPECT_EQ(commands.error().code(), Code::invalid);
  return commands.error().text();
}

TEST(CommandList, ALineSaysAllOfACommand) {
  const auto commands = parsed(
      R"({"name":"a","argv":["cc","-c","x.c"],"inputs":["x.c","../h/../y.h","x.c"],"outputs":["/out/x.o"],)"
      R"("folder":"sub/","environment":{"Z":"1","A":"2"},"timeout_s":2.5,"any_address_space":true})"
      "\n\n"
      R"({"name":"b","shell":"echo $HOME > b"})");
  ASSERT_EQ(commands.size(), 2u);
  const Command& a = commands[0];
  EXPECT_EQ(a.name, "a");
  EXPECT_THAT(a.argv, ElementsAre("cc", "-c", "x.c"));
  EXPECT_EQ(a.folder, "/base/sub");
  EXPECT_THAT(a.inputs, ElementsAre("/base/sub/x.c", "/base/y.h"));
  EXPECT_THAT(a.outputs, ElementsAre("/out/x.o"));
  EXPECT_THAT(a.environment, ElementsAre(Pair("A", "2"), Pair("Z", "1")));
  EXPECT_EQ(a.timeout_s, 2.5);
  EXPECT_TRUE(a.any_address_space);
  EXPECT_FALSE(a.source);
  EXPECT_EQ(a.where, "list:1");
  const Command& b = commands[1];
  EXPECT_THAT(b.argv, ElementsAre("/bin/sh", "-c", "echo $HOME > b"));
  EXPECT_EQ(b.folder, "/base");
  EXPECT_EQ(b.where, "list:3");
  EXPECT_FALSE(b.any_address_space);
}

TEST(CommandList, WhatIsPrintedIsReadBack) {
  const auto first =
      parsed(R"({"name":"a","shell":"x","inputs":["i"],"outputs":["o"],"environment":{"A":"b"}})");
  const auto second = parsed(print_command(first.at(0)));
  EXPECT_EQ(print_command(second.at(0)), print_command(first.at(0)));
  EXPECT_EQ(second.at(0).inputs, first.at(0).inputs);
  EXPECT_EQ(second.at(0).environment, first.at(0).environment);
}

TEST(CommandList, EachWrongLineIsNamed) {
  const std::string good = R"({"name":"g","argv":["true"]})"
                           "\n";
  const std::vector<std::pair<std::string, std::string>> wrong{
      {"{", "list:2"},
      {"7", "list:2"},
      {R"({"argv":["x"]})", "name is missing"},
      {R"({"name":"","argv":["x"]})", "the name is empty"},
      {R"x({"name":"(inputs)","argv":["x"]})x", "is that of the unit of shared inputs"},
      {R"({"name":"a"})", "neither"},
      {R"({"name":"a","argv":["x"],"shell":"x"})", "both"},
      {R"({"name":"a","argv":[]})", "no program"},
      {R"({"name":"a","argv":[""]})", "no program"},
      {R"({"name":"a","shell":""})", "no program"},
      {R"({"name":"a","argv":"x"})", "argv"},
      {R"({"name":"a","argv":["x",1]})", "argv"},
      {R"({"name":"a","argv":["x\u0000"]})", "zero byte"},
      {R"({"name":"a","argv":["x"],"inputs":[""]})", "a path is empty"},
      {R"({"name":"a","argv":["x"],"inputs":"i"})", "inputs"},
      {R"({"name":"a","argv":["x"],"outputs":["a\u0000b"]})", "zero byte"},
      {R"({"name":"a","argv":["x"],"folder":"a\u0000b"})", "zero byte"},
      {R"({"name":"a","argv":["x"],"environment":["A"]})", "environment"},
      {R"({"name":"a","argv":["x"],"environment":{"A":1}})", "environment"},
      {R"({"name":"a","argv":["x"],"environment":{"A=B":"1"}})", "without '='"},
      {R"({"name":"a","argv":["x"],"timeout_s":-1})", "timeout_s"},
      {R"({"name":"a","argv":["x"],"input":["i"]})", "did you mean 'inputs'"},
      {R"({"name":"a","name":"b","argv":["x"]})", "name"},
      {R"({"name":"g","argv":["x"]})", "is that of list:1, too"},
  };
  for (const auto& [line, why] : wrong) {
    const std::string text = refused(good + line + "\n");
    EXPECT_THAT(text, HasSubstr("list:2")) << line;
    EXPECT_THAT(text, HasSubstr(why)) << line;
  }
}

TEST(CommandList, CommandsMustNotStandInEachOthersWay) {
  EXPECT_THAT(refused("{\"name\":\"a\",\"argv\":[\"x\"],\"outputs\":[\"o\"]}\n"
                      "{\"name\":\"b\",\"argv\":[\"x\"],\"outputs\":[\"./o\"]}"),
              HasSubstr("list:2: b makes the output /base/o, and so does list:1"));
  EXPECT_THAT(refused("{\"name\":\"a\",\"argv\":[\"x\"],\"inputs\":[\"o\"]}\n"
                      "{\"name\":\"b\",\"argv\":[\"x\"],\"outputs\":[\"o\"]}"),
              HasSubstr("the input /base/o of 'a' is an output of 'b' (list:2)"));
  EXPECT_THAT(refused("{\"name\":\"a\",\"argv\":[\"x\"],\"inputs\":[\"o\"],\"outputs\":[\"o\"]}"),
              HasSubstr("is an output of 'a'"));
}

TEST(CommandList, AnEmptyListHasNoCommands) {
  EXPECT_TRUE(parsed("").empty());
  EXPECT_TRUE(parsed("\n  \n").empty());
  EXPECT_TRUE(parsed(" [ ]").empty());
}

TEST(CompileCommands, BothFormsOfACommand) {
  const auto commands = parsed(R"([
    {"directory":"build","file":"../a b.cpp","command":"c++ -DX=\\\"1\\\" -o a.o -c '../a b.cpp'","tool":1},
    {"directory":"/other","file":"/src/b.cpp","arguments":["c++","-c","/src/b.cpp"]},
    {"directory":"/other","file":"c.cpp","arguments":["c++","-c","c.cpp"],"output":"out/c.o"}])");
  ASSERT_EQ(commands.size(), 3u);
  EXPECT_EQ(commands[0].name, "/base/a b.cpp");
  EXPECT_EQ(commands[0].source, "/base/a b.cpp");
  EXPECT_EQ(commands[0].folder, "/base/build");
  EXPECT_THAT(commands[0].argv, ElementsAre("c++", "-DX=\"1\"", "-o", "a.o", "-c", "../a b.cpp"));
  EXPECT_THAT(commands[0].outputs, ElementsAre("/base/build/a.o"));
  EXPECT_THAT(commands[0].inputs, ElementsAre("/base/a b.cpp"));
  EXPECT_THAT(commands[1].outputs, ElementsAre("/other/b.o"));
  EXPECT_THAT(commands[2].outputs, ElementsAre("/other/out/c.o"));
}

TEST(CompileCommands, OneFileInSeveralWaysHasSuffixesThatDoNotDependOnTheOrder) {
  const std::string debug = R"({"directory":"/b","file":"a.c","command":"cc -g -o d.o -c a.c"})";
  const std::string release = R"({"directory":"/b","file":"a.c","command":"cc -O2 -o r.o -c a.c"})";
  const auto names = [&](const std::string& text) {
    std::map<std::string, std::string> found;
    for (const Command& command : parsed(text)) found[command.outputs.at(0)] = command.name;
    return found;
  };
  const auto found = names("[" + debug + "," + release + "," + debug + "]");
  EXPECT_THAT(found, ElementsAre(Pair("/b/d.o", "/b/a.c#2"), Pair("/b/r.o", "/b/a.c")));
  EXPECT_EQ(names("[" + release + "," + debug + "]"), found);
}

TEST(CompileCommands, EachWrongEntryIsNamed) {
  const std::vector<std::pair<std::string, std::string>> wrong{
      {"3", "entry 1"},
      {R"({"file":"a.c","command":"cc"})", "directory"},
      {R"({"directory":"/b","command":"cc"})", "file"},
      {R"({"directory":"/b","file":"b.c"})", "neither"},
      {R"({"directory":"/b","file":"b.c","command":"cc 'x"})", "byte 3 is not closed"},
      {R"({"directory":"/b","file":"b.c","command":"cc x && rm y"})", "takes a shell"},
      {R"({"directory":"/b","file":"b.c","command":"   "})", "no program"},
      {R"({"directory":"/b","file":"b.c","arguments":["cc","\u0000"]})", "zero byte"},
      {R"({"directory":"/b","file":"b.c","command":"cc -o a.o -c b.c"})", "makes the output /b/a.o"},
  };
  for (const auto& [entry, why] : wrong) {
    const std::string text =
        refused(R"([{"directory":"/b","file":"a.c","command":"cc -c a.c"},)" + entry + "]");
    EXPECT_THAT(text, HasSubstr("list: entry 1")) << entry;
    EXPECT_THAT(text, HasSubstr(why)) << entry;
  }
  EXPECT_THAT(refused("[1"), HasSubstr("list"));
}

}  // namespace
}  // namespace furlong::shard::command
