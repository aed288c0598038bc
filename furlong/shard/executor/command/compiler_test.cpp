#include "furlong/shard/executor/command/compiler.h"

#include <gmock/gmock.h>

#include "furlong/shard/executor/command/internal/testing.h"

namespace furlong::shard::command {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<std::string> words(std::string_view line) {
  auto found = shell_words(line);
  EXPECT_TRUE(found) << found.error().text();
  return found ? *found : std::vector<std::string>();
}

TEST(ShellWords, QuotesAsAShellDoes) {
  EXPECT_THAT(words("  cc  -c\ta.c\n"), ElementsAre("cc", "-c", "a.c"));
  EXPECT_THAT(words(R"(a\ b 'c "d' "e 'f" g"h i"j)"), ElementsAre("a b", "c \"d", "e 'f", "gh ij"));
  EXPECT_THAT(words(R"(-DA=\"x\" "-DB=\"y\"" '-DC=\"z\"' "\q")"),
              ElementsAre(R"(-DA="x")", R"(-DB="y")", R"(-DC=\"z\")", R"(\q)"));
  EXPECT_THAT(words("'' \"\""), ElementsAre("", ""));
  EXPECT_THAT(words("a\\\nb $x '$(y)' '&'"), ElementsAre("ab", "$x", "$(y)", "&"));
  EXPECT_THAT(words(""), IsEmpty());
}

TEST(ShellWords, WhatTakesAShellIsRefusedWithItsPlace) {
  for (const char* line :
       {"cc & x", "cc ; x", "cc | x", "cc > x", "cc < x", "cc ` x", "cc $(x)", "cc ${x}"}) {
    const auto found = shell_words(line);
    ASSERT_FALSE(found) << line;
    EXPECT_EQ(found.error().code(), Code::invalid);
    EXPECT_THAT(found.error().text(), HasSubstr("byte 3 (")) << line;
  }
  EXPECT_FALSE(shell_words("cc \"$(x)\""));
  EXPECT_FALSE(shell_words("cc \"x"));
  EXPECT_FALSE(shell_words("cc 'x"));
}

TEST(CompilerOutput, IsWhatTheCommandNamesOrWhatItsSourceMakes) {
  const auto output = [](std::vector<std::string> argv) { return compiler_output(argv, "../src/a.cpp"); };
  EXPECT_EQ(output({"cc", "-c", "x", "-o", "y.o"}), "y.o");
  EXPECT_EQ(output({"cc", "-oy.o", "-c", "x"}), "y.o");
  EXPECT_EQ(output({"cc", "-c", "x"}), "a.o");
  EXPECT_EQ(output({"cc", "x"}), "");
  EXPECT_EQ(output({"cc", "x", "-o"}), "");
}

TEST(DependencyCommand, WritesNoFile) {
  const std::vector<std::string> argv{"c++", "-I.", "-MD",    "-MT", "a.o",         "-MF", "a.d", "-MQx",
                                      "-o",  "a.o", "-oab.o", "-c",  "-Wp,-MD,a.d", "-MP", "-DX", "a.cpp"};
  EXPECT_THAT(dependency_command(argv), ElementsAre("c++", "-I.", "-DX", "a.cpp", "-M", "-MT", "unit"));
}

TEST(Dependencies, AreReadAsMakeReadsThem) {
  const auto files = parse_dependencies("unit: a.cpp \\\n b\\ c.h  d$$.h\\\r\n e\\#.h x\\y.h\nb.h:\n");
  ASSERT_TRUE(files);
  EXPECT_THAT(*files, ElementsAre("a.cpp", "b c.h", "d$.h", "e#.h", "x\\y.h"));
  EXPECT_THAT(*parse_dependencies("unit:"), IsEmpty());
  EXPECT_FALSE(parse_dependencies("nothing"));
}

class Headers : public testing::CommandFixture {
 protected:
  void SetUp() override {
    CommandFixture::SetUp();
    write("include/x.h", "int x;\n");
    write("src/a.c", "#include \"../include/x.h\"\n");
    write("src/b.c", "#include \"../include/x.h\"\n#include \"none.h\"\n");
  }
  Command command(const std::string& name) const {
    Command made;
    made.folder = path("src");
    made.source = path("src/" + name);
    made.argv = {"cc", "-c", "-o", "../" + name + ".o", name};
    return made;
  }
};

TEST_F(Headers, TheCompilerTellsThem) {
  const auto files = find_dependencies(command("a.c"), system_processes(), {});
  if (!files && files.error().code() == Code::unavailable) GTEST_SKIP() << files.error().text();
  ASSERT_TRUE(files) << files.error().text();
  EXPECT_THAT(*files, ::testing::IsSupersetOf({path("include/x.h"), path("src/a.c")}));
  EXPECT_FALSE(system_files().exists(path("a.c.o")));
}

TEST_F(Headers, AFailureSaysWhatTheCompilerSaid) {
  const auto files = find_dependencies(command("b.c"), system_processes(), {});
  ASSERT_FALSE(files);
  if (files.error().code() == Code::unavailable) GTEST_SKIP() << files.error().text();
  EXPECT_EQ(files.error().code(), Code::mismatch);
  EXPECT_THAT(files.error().text(), HasSubstr("none.h"));
}

TEST_F(Headers, AStoreKeepsAUnitWhoseHeadersAreNotTold) {
  const auto entry = [&](const std::string& name) {
    return fmt::format(R"({{"directory":"{}","file":"{}","command":"cc -c -o {}.o {}"}})", path("src"), name,
                       name, name);
  };
  write("compile_commands.json", "[" + entry("a.c") + "," + entry("b.c") + "]");
  const auto summary = make_command_store(path("compile_commands.json"), path("s.store"));
  ASSERT_TRUE(summary) << summary.error().text();
  if (summary->without_headers.size() == 2) GTEST_SKIP() << summary->without_headers[0];
  ASSERT_THAT(summary->without_headers, ElementsAre(HasSubstr("none.h")));
  EXPECT_THAT(summary->without_headers[0], ::testing::StartsWith(path("src/b.c")));
  EXPECT_EQ(summary->commands, 2u);
  const auto store = Store::open(path("s.store"));
  ASSERT_TRUE(store);
  const Unit b = *(*store)->unit(**(*store)->find_unit(path("src/b.c")));
  EXPECT_EQ(b.items.size(), 2u) << "its command and its source";
  EXPECT_THAT(b.references, IsEmpty());
}

TEST_F(Headers, AStopEndsTheSearch) {
  std::stop_source stop;
  stop.request_stop();
  const auto files = find_dependencies(command("a.c"), system_processes(), stop.get_token());
  ASSERT_FALSE(files);
  EXPECT_EQ(files.error().code(), Code::timeout);
}

}  // namespace
}  // namespace furlong::shard::command
