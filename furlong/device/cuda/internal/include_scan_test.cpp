#include "furlong/device/cuda/internal/include_scan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "furlong/base/os/file.h"

namespace furlong::device {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
namespace fs = std::filesystem;

std::vector<std::string> names(std::string_view text) {
  const auto found = included_names(text);
  EXPECT_TRUE(found) << found.error().text();
  return found.value_or(std::vector<std::string>{});
}

TEST(IncludedNames, AreFoundHoweverTheyAreWritten) {
  EXPECT_THAT(names("#include \"a.h\"\n  #  include <b/c.h>\n"), ElementsAre("a.h", "b/c.h"));
  EXPECT_THAT(names("#include/**/\"a.h\""), ElementsAre("a.h"));
  EXPECT_THAT(names("/* */ # /* x */ include /* y\n */ <a.h>"), ElementsAre("a.h"));
  EXPECT_THAT(names("#inc\\\nlude \"a\\\r\n.h\""), ElementsAre("a.h"));
  EXPECT_THAT(names("#include \\ \t\n\"a.h\""), ElementsAre("a.h"));
  EXPECT_THAT(names("%:include \"a.h\"\n#include_next <b.h>"), ElementsAre("a.h", "b.h"));
  EXPECT_THAT(names("#if __has_include(<a.h>) && __has_include( \"b.h\" )"), ElementsAre("a.h", "b.h"));
  EXPECT_THAT(names("#embed \"a.bin\""), ElementsAre("a.bin"));
}

// More than the compiler reads does no harm.
TEST(IncludedNames, AreTakenFromCommentsToo) {
  EXPECT_THAT(names("// #include \"a.h\"\n#if 0\n#include <b.h>\n#endif"), ElementsAre("a.h", "b.h"));
}

TEST(IncludedNames, OtherTextHasNone) {
  EXPECT_THAT(names(""), IsEmpty());
  EXPECT_THAT(names("#"), IsEmpty());
  EXPECT_THAT(names("int included = includes; // include this\n#ifdef __has_include\n#endif"), IsEmpty());
  EXPECT_THAT(names("#error do not include MACRO\n"), IsEmpty());
  EXPECT_THAT(names("if (include < 3) x();\n"), IsEmpty());
}

TEST(IncludedNames, AComputedOneIsRefusedAndShown) {
  for (const char* text : {"#include HEADER", "# include HEADER(a)", "%:include X", "#include_next X",
                           "#if __has_include(HEADER)", "#include", "#include \"a.h\n", "#include <a.h\n",
                           "# /* a */ include X", "\?\?=include \"a.h\"", "#inc\?\?/\nlude X", "#embed X"}) {
    const auto found = included_names(text);
    ASSERT_FALSE(found) << text;
    EXPECT_EQ(found.error().code(), Code::unavailable);
  }
  EXPECT_THAT(included_names("\n#include HEADER(a)\nint x;").error().text(),
              HasSubstr("'include HEADER(a)' names one by a macro"));
}

class ReachedHeadersTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto made = TemporaryFolder::make("furlong-include-scan");
    ASSERT_TRUE(made);
    place_.emplace(std::move(*made));
    request_.source_name = (at("src") / "mine.cu").string();
    request_.include_folders = {at("inc")};
    for (const char* folder : {"src", "inc", "toolkit"}) fs::create_directory(at(folder));
  }
  fs::path at(const std::string& name) const { return place_->path() / name; }
  void write(const std::string& name, std::string_view text) {
    ASSERT_TRUE(system_files().write_atomic(at(name), text));
  }
  std::vector<std::string> reached(std::string source) {
    request_.source = std::move(source);
    const auto found = reached_headers(request_, {at("toolkit")});
    EXPECT_TRUE(found) << found.error().text();
    std::vector<std::string> paths;
    if (found) {
      for (const ReachedHeader& header : *found)
        paths.push_back(header.path.lexically_relative(place_->path()).lexically_normal().string());
    }
    return paths;
  }
  std::optional<TemporaryFolder> place_;
  CompileRequest request_;
};

TEST_F(ReachedHeadersTest, AreFollowedThroughEveryFolder) {
  write("inc/a.h", "#include \"sub/b.h\"\n");
  write("inc/sub/b.h", "#include \"c.h\"\n#include <d.h>\n");
  write("inc/sub/c.h", "\n");
  write("inc/d.h", "#include \"a.h\"\n");
  write("inc/unnamed.h", "\n");
  write("src/own.h", "\n");
  EXPECT_THAT(reached("#include <a.h>\n"), ElementsAre("inc/a.h", "inc/d.h", "inc/sub/b.h", "inc/sub/c.h"));
  EXPECT_THAT(reached("#include \"own.h\"\n"), ElementsAre("src/own.h"));
  EXPECT_THAT(reached("int x;"), IsEmpty());
  EXPECT_THAT(reached("#include <absent.h>\n"), IsEmpty());
  EXPECT_THAT(reached("#include \"" + at("inc/sub/c.h").string() + "\"\n"), ElementsAre("inc/sub/c.h"));
}

// Which of two the compiler takes depends on its order, and the later one counts when the first goes.
TEST_F(ReachedHeadersTest, EveryCandidateCounts) {
  write("inc/a.h", "1\n");
  write("src/a.h", "2\n");
  EXPECT_THAT(reached("#include \"a.h\"\n"), ElementsAre("inc/a.h", "src/a.h"));
}

TEST_F(ReachedHeadersTest, AHeaderThatIncludesItselfEnds) {
  fs::create_directory(at("inc/sub"));
  write("inc/a.h", "#pragma once\n#include \"sub/../a.h\"\n#include \"../inc/a.h\"\n");
  const auto found = reached("#include \"a.h\"\n");
  EXPECT_FALSE(found.empty());
  EXPECT_LE(found.size(), 4u);
}

TEST_F(ReachedHeadersTest, OptionsAddFoldersAndFiles) {
  request_.include_folders.clear();
  write("inc/a.h", "\n");
  for (const std::vector<std::string>& options :
       std::vector<std::vector<std::string>>{{"-I" + at("inc").string()},
                                             {"-I=" + at("inc").string()},
                                             {"-I", at("inc").string()},
                                             {"--include-path=" + at("inc").string()},
                                             {"--include-path", at("inc").string()}}) {
    request_.options = options;
    EXPECT_THAT(reached("#include <a.h>\n"), ElementsAre("inc/a.h")) << options.front();
  }
  for (const std::vector<std::string>& options :
       std::vector<std::vector<std::string>>{{"-include=" + at("inc/a.h").string()},
                                             {"-include", at("inc/a.h").string()},
                                             {"--pre-include=" + at("inc/a.h").string()},
                                             {"--pre-include", at("inc/a.h").string()}}) {
    request_.options = options;
    EXPECT_THAT(reached("int x;"), ElementsAre("inc/a.h")) << options.front();
  }
  for (const char* option : {"--pch", "--use-pch=x", "-pch", "--create-pch=x", "--included-somehow=x"}) {
    request_.options = {option};
    const auto found = reached_headers(request_, {});
    ASSERT_FALSE(found) << option;
    EXPECT_THAT(found.error().text(), HasSubstr(option));
  }
  request_.options = {"--no-source-include", "-DINCLUDE=1"};
  EXPECT_THAT(reached("int x;"), IsEmpty());
}

TEST_F(ReachedHeadersTest, TheToolkitsHeadersAreLeftOutButNotThoseThatStandInForThem) {
  write("toolkit/cuda_fp16.h", "#include <assert.h>\n#include COMPUTED\n");
  write("toolkit/assert.h", "\n");
  write("inc/mine.h", "\n");
  EXPECT_THAT(reached("#include <cuda_fp16.h>\n"), IsEmpty());
  write("inc/assert.h", "#include \"more.h\"\n");
  write("inc/more.h", "\n");
  EXPECT_THAT(reached("#include <cuda_fp16.h>\n"), ElementsAre("inc/assert.h", "inc/more.h"));
  EXPECT_THAT(reached("#include <mine.h>\n"), ElementsAre("inc/mine.h"));
  request_.include_folders = {at("toolkit")};
  EXPECT_THAT(reached("#include <cuda_fp16.h>\n"), IsEmpty());
}

TEST_F(ReachedHeadersTest, WhatCannotBeKnownIsRefused) {
  write("inc/a.h", "#include COMPUTED\n");
  request_.source = "#include <a.h>\n";
  auto found = reached_headers(request_, {});
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code(), Code::unavailable);
  EXPECT_THAT(found.error().text(), HasSubstr("COMPUTED"));
  std::string many;
  for (int i = 0; i < 1100; ++i) {
    many += "#include \"" + std::to_string(i) + ".h\"\n";
    std::ofstream(at("inc/" + std::to_string(i) + ".h")) << "\n";
  }
  request_.source = many;
  found = reached_headers(request_, {});
  ASSERT_FALSE(found);
  EXPECT_THAT(found.error().text(), HasSubstr("more than 1024"));
}

}  // namespace
}  // namespace furlong::device
