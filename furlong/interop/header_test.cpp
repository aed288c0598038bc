#include "furlong/interop/header.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <set>

#include "furlong/base/json.h"
#include "furlong/base/os/file.h"
#include "furlong/base/os/process.h"
#include "furlong/base/text.h"

namespace furlong::interop {
namespace {

Choice choice(std::string device, std::int64_t n, std::string variant, int block,
              std::string date = "2026-01-01T00:00:00Z") {
  Choice c;
  c.program = "my kernel";
  c.language = "opencl";
  c.device = std::move(device);
  c.silicon = "0123456789abcdef";
  c.problem = {{"n", lattice::Value(n)}};
  c.variant = std::move(variant);
  c.knobs = {
      {"BLOCK", lattice::Value(block)}, {"PAD", lattice::Value(true)}, {"MODE", lattice::Value("int4")}};
  c.defines = {{"BLOCK_X", std::to_string(block)}, {"PAD", "1"}};
  c.options = {"-O3"};
  c.gain = 0.021;
  c.date = std::move(date);
  return c;
}

Json race(int schema = 1) {
  return Json::parse(
      fmt::format(R"({{"schema":{},"program":"p","language":"host","winner":"u2","ts":"2026-01-01T00:00:00Z",
    "problem":{{"n":64,"flag":true}},"device":{{"label":"CPU","silicon":"00"}},
    "variants":[{{"name":"base","knobs":{{"U":1}},"defines":{{}},"options":[]}},
      {{"name":"u2","knobs":{{"U":2}},"defines":{{"UNROLL":"2"}},"options":["-O3"],"gain":0.5}}]}})",
                  schema));
}

TEST(ChoicesHeader, CompilesAsCAndChoosesTheNearestSize) {
  const auto header =
      choices_header({choice("A_Card", 1000, "b64", 64), choice("A_Card", 100000, "b256", 256),
                      choice("Other", 10, "base", 32)});
  ASSERT_TRUE(header) << header.error().text();
  EXPECT_NE(header->find("#define MY_KERNEL_A_CARD_N1000_BLOCK 64"), std::string::npos) << *header;
  EXPECT_NE(header->find("#define MY_KERNEL_A_CARD_N1000_PAD 1"), std::string::npos);
  auto folder = TemporaryFolder::make("furlong-header");
  ASSERT_TRUE(folder);
  ASSERT_TRUE(system_files().write_atomic(folder->path() / "choices.h", *header));
  ASSERT_TRUE(
      system_files().write_atomic(folder->path() / "main.c",
                                  "#include <stdio.h>\n#include \"choices.h\"\nint main(void) {\n"
                                  "  puts(my_kernel_choose(\"A_Card\", 2000)->variant);\n"
                                  "  puts(my_kernel_choose(\"A_Card\", 90000)->variant);\n"
                                  "  puts(my_kernel_choose(\"Other\", 90000)->variant);\n"
                                  "  puts(my_kernel_choose(\"Unknown\", 1)->variant);\n"
                                  "  puts(my_kernel_choose(\"A_Card\", 90000)->defines);\n  return 0;\n}\n"));
  for (const char* compiler : {"gcc", "g++"}) {
    const auto program = (folder->path() / compiler).string();
    auto built = system_processes().run({.argv = {compiler, "-Wall", "-Wextra", "-Werror", "-o", program,
                                                  (folder->path() / "main.c").string()}},
                                        60);
    ASSERT_TRUE(built) << built.error().text();
    ASSERT_EQ(built->exit_code, 0) << built->standard_error;
    auto ran = system_processes().run({.argv = {program}}, 60);
    ASSERT_TRUE(ran);
    EXPECT_EQ(ran->standard_output, "b64\nb256\nbase\nbase\n-DBLOCK_X=256 -DPAD=1 -O3\n");
  }
}

TEST(ChoicesHeader, NewestRaceStandsAndOrderDoesNotMatter) {
  const auto old_one = choice("A", 8, "old", 1, "2026-01-01T00:00:00Z");
  const auto new_one = choice("A", 8, "new", 2, "2026-02-01T00:00:00Z");
  const auto forward = choices_header({old_one, new_one});
  const auto backward = choices_header({new_one, old_one});
  ASSERT_TRUE(forward && backward);
  EXPECT_EQ(*forward, *backward);
  EXPECT_EQ(forward->find("\"old\""), std::string::npos);
}

// Of two macros of one name a program would silently take the second choice for both.
TEST(ChoicesHeader, NoTwoChoicesShareAMacro) {
  std::vector<Choice> choices = {choice("Card A", 64, "b64", 64), choice("Card_A", 64, "b32", 32),
                                 choice("Card A", 64, "b128", 128), choice("Card A", 64, "b256", 256),
                                 choice("Other", 64, "b64", 64)};
  choices[2].problem.emplace_back("k", lattice::Value(2));
  choices[3].silicon = "fedcba9876543210";
  const auto header = choices_header(choices);
  ASSERT_TRUE(header) << header.error().text();
  std::set<std::string> names;
  std::size_t macros = 0;
  for (const std::string& line : split(*header, '\n')) {
    if (!line.starts_with("#define ") || line.ends_with("_H")) continue;
    ++macros;
    EXPECT_TRUE(names.insert(split(line, ' ')[1]).second) << line;
  }
  EXPECT_EQ(macros, 3 * choices.size());
  EXPECT_TRUE(names.contains("MY_KERNEL_OTHER_N64_BLOCK")) << "the plain name stays where it is the only one";
}

TEST(ChoicesHeader, TextsFromFilesCannotLeaveTheirPlace) {
  auto hostile = choice("x */ int evil; /* \"\\ \n?\?/", 8, "v\"; int evil", 1, "2026 */ int evil; /*");
  hostile.silicon = "00 */ int evil; /*";
  hostile.program = "9*/ lives";
  const auto header = choices_header({hostile});
  ASSERT_TRUE(header);
  const std::string comments = header->substr(0, header->find("struct "));
  EXPECT_EQ(comments.find("*/ int evil"), std::string::npos) << *header;
  auto folder = TemporaryFolder::make("furlong-header");
  ASSERT_TRUE(folder);
  ASSERT_TRUE(system_files().write_atomic(
      folder->path() / "main.c", *header + "int main(void) { return _9___lives_choose(0, 1) == 0; }\n"));
  auto built = system_processes().run(
      {.argv = {"gcc", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", (folder->path() / "main.c").string()}},
      60);
  ASSERT_TRUE(built);
  EXPECT_EQ(built->exit_code, 0) << built->standard_error << *header;
}

TEST(ChoicesHeader, RefusesNothingAndTwoPrograms) {
  EXPECT_EQ(choices_header({}).error().code(), Code::invalid);
  auto other = choice("A", 1, "v", 1);
  other.program = "other";
  EXPECT_NE(choices_header({choice("A", 1, "v", 1), other}).error().message().find("two programs"),
            std::string::npos);
}

TEST(ChoicesFromRace, ReadsTheWinnersKnobs) {
  const auto choices = choices_from_race(race(), "race.json");
  ASSERT_TRUE(choices) << choices.error().text();
  ASSERT_EQ(choices->size(), 1u);
  EXPECT_EQ((*choices)[0].variant, "u2");
  EXPECT_EQ((*choices)[0].knobs[0].second, lattice::Value(2));
  EXPECT_EQ((*choices)[0].defines, (std::vector<std::pair<std::string, std::string>>{{"UNROLL", "2"}}));
  EXPECT_EQ((*choices)[0].options, std::vector<std::string>{"-O3"});
  EXPECT_DOUBLE_EQ((*choices)[0].gain, 0.5);
  const auto both = choices_from_race(Json{{"schema", 1}, {"races", {race(), race()}}}, "race.json");
  ASSERT_TRUE(both);
  EXPECT_EQ(both->size(), 2u);
}

TEST(ChoicesFromRace, NamesWhatIsWrong) {
  EXPECT_EQ(choices_from_race(race(2), "f").error().code(), Code::incompatible);
  for (const char* key : {"schema", "program", "language", "winner", "ts", "problem", "device", "variants"}) {
    Json broken = race();
    broken.erase(key);
    const auto result = choices_from_race(broken, "race.json");
    ASSERT_FALSE(result) << key;
    EXPECT_NE(result.error().text().find(key), std::string::npos) << result.error().text();
  }
  Json large = race();
  large["problem"]["n"] = 18446744073709551615ull;
  EXPECT_NE(choices_from_race(large, "f").error().text().find("does not fit a 64-bit integer"),
            std::string::npos);
  Json gone = race();
  gone["winner"] = "u8";
  EXPECT_NE(choices_from_race(gone, "f").error().message().find("u8"), std::string::npos);
  EXPECT_FALSE(choices_from_race(Json(5), "f"));
}

TEST(ChoicesJson, RoundsUp) {
  const Json json = choices_json({choice("A", 8, "b64", 64)});
  EXPECT_EQ(json["choices"][0]["defines"], "-DBLOCK_X=64 -DPAD=1 -O3");
  EXPECT_EQ(json["choices"][0]["problem"]["n"], 8);
}

}  // namespace
}  // namespace furlong::interop
