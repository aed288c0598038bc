#include "furlong/interop/t1.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "furlong/lattice/lint.h"
#include "furlong/lattice/space.h"

namespace furlong::interop {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

T1Problem read_file(const std::string& name) {
  std::ifstream file("bench/data/t1/" + name + "_milo.json", std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  auto problem = read_t1(text, name);
  EXPECT_TRUE(problem) << problem.error().text();
  return problem ? *problem : T1Problem{};
}

std::vector<lattice::Finding> findings(const T1Problem& problem) {
  lattice::LintOptions options;
  options.user_file = true;
  options.facts = problem.facts();
  for (const auto& [name, value] : problem.fixed) options.known_names.push_back(name);
  return lattice::lint(problem.lattice, options);
}

TEST(T1, PublishedProblemsHaveTheirPublishedCounts) {
  const std::vector<std::tuple<std::string, std::uint64_t, std::uint64_t>> problems = {
      {"convolution", 4362, 10240},
      {"dedispersion", 11130, 22272},
      {"gemm", 116928, 663552},
      {"hotspot", 82984, 4440000}};
  for (const auto& [name, count, product] : problems) {
    const T1Problem problem = read_file(name);
    const auto space = lattice::Space::build(problem.lattice, problem.facts());
    ASSERT_TRUE(space) << space.error().text();
    EXPECT_EQ(space->count(), count) << name;
    EXPECT_EQ(space->product(), product) << name;
    EXPECT_TRUE(space->index_of(problem.lattice.base())) << name << ": base is valid";
  }
}

TEST(T1, ReadsTheHeadingAndTheParameters) {
  const T1Problem problem = read_file("convolution");
  EXPECT_EQ(problem.name, "convolution_milo");
  EXPECT_EQ(problem.language, "cuda");
  EXPECT_EQ(problem.kernel_name, "convolution_kernel");
  EXPECT_EQ(problem.kernel_file, "convolution_milo.cu");
  EXPECT_THAT(problem.compiler_options, ElementsAre("-std=c++11"));
  EXPECT_THAT(problem.problem_size, ElementsAre(4096, 4096));
  EXPECT_EQ(problem.parameters.size(), 10u);
  ASSERT_EQ(problem.lattice.knobs.size(), 7u);
  EXPECT_THAT(problem.fixed, ElementsAre(std::pair<std::string, lattice::Value>("use_cmem", 1),
                                         std::pair<std::string, lattice::Value>("filter_height", 15),
                                         std::pair<std::string, lattice::Value>("filter_width", 15)));
  const auto& knob = problem.lattice.knobs[1];
  EXPECT_EQ(knob.name, "block_size_y");
  EXPECT_EQ(knob.values[knob.default_index], lattice::Value(16));
  EXPECT_THAT(knob.tags,
              ElementsAre("block_size_y_1", "block_size_y_2", "block_size_y_4", "block_size_y_8", ""));
  EXPECT_THAT(knob.applies, ElementsAre(lattice::Applies::define, lattice::Applies::launch));
  EXPECT_THAT(problem.lattice.knob("use_padding")->applies, ElementsAre(lattice::Applies::define));
  EXPECT_THAT(problem.notes, IsEmpty());
}

TEST(T1, ADefaultThatIsNotValidIsReplacedAndSaid) {
  const T1Problem problem = read_file("dedispersion");
  ASSERT_EQ(problem.notes.size(), 1u);
  EXPECT_THAT(
      problem.notes[0],
      HasSubstr("the default point is not valid (constraint 'tile_size_x > 1 or tile_stride_x == 0'"));
  EXPECT_THAT(problem.notes[0],
              HasSubstr("base has tile_stride_x 0 instead of 1, tile_stride_y 0 instead of 1"));
  EXPECT_THAT(problem.lattice.knob("tile_stride_x")->tags, ElementsAre("", "tile_stride_x_1"));
  const T1Problem hotspot = read_file("hotspot");
  EXPECT_THAT(hotspot.notes[0],
              HasSubstr("max_tfactor: the default 1 is none of its values; 10 stands for it"));
}

TEST(T1, PublishedProblemsPassTheLintOfUserFiles) {
  for (const char* name : {"convolution", "dedispersion", "gemm"}) {
    const auto found = findings(read_file(name));
    EXPECT_THAT(found, IsEmpty()) << name << ": "
                                  << (found.empty() ? "" : found[0].where + ": " + found[0].what);
  }
}

std::string document(const std::string& parameters, const std::string& conditions = "[]") {
  return R"({"ConfigurationSpace": {"TuningParameters": )" + parameters + R"(, "Conditions": )" + conditions +
         "}}";
}

TEST(T1, ValuesMayBeJsonArrays) {
  const auto problem = read_t1(
      document(
          R"([{"Name": "a", "Values": [1, 2.5, true, "x y", -3]}, {"Name": "b", "Values": "['p', 'q']", "Default": "q"}])")
          .replace(0, 0, ""),
      "t.json");
  ASSERT_FALSE(problem) << "1 and true are equal";
  EXPECT_THAT(problem.error().message(),
              HasSubstr("t.json: TuningParameters[0] (a): the value True occurs twice"));
  const auto mended = read_t1(
      document(
          R"([{"Name": "a", "Values": [1, 2.5, "x y", "x_y", -3]}, {"Name": "b", "Values": "['p', 'q']", "Default": "q"}])"),
      "t.json");
  ASSERT_TRUE(mended) << mended.error().text();
  EXPECT_THAT(mended->lattice.knobs[0].tags, ElementsAre("", "a_2.5", "a_x_y", "a_x_y.2", "a_m3"));
  EXPECT_EQ(mended->lattice.knobs[1].default_index, 1u);
  EXPECT_THAT(findings(*mended), IsEmpty());
}

TEST(T1, TagsOfDifferentKnobsNeverMeet) {
  const auto problem = read_t1(
      document(R"([{"Name": "a", "Values": ["z", "b_1"]}, {"Name": "a_b", "Values": [0, 1]}])"), "t.json");
  ASSERT_TRUE(problem);
  EXPECT_EQ(problem->lattice.knobs[0].tags[1], "a_b_1");
  EXPECT_EQ(problem->lattice.knobs[1].tags[1], "a_b_1.2");
}

TEST(T1, ErrorsNameThePlace) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"{", "t.json"},
      {"[]", "no ConfigurationSpace; is it a T1 file?"},
      {R"({"ConfigurationSpace": {}})", "TuningParameters must be an array"},
      {document("[7]"), "TuningParameters[0]: Name '' must be a name"},
      {document(R"([{"Name": "a b", "Values": "[1]"}])"), "Name 'a b' must be a name"},
      {document(R"([{"Name": "if", "Values": "[1]"}])"), "Name 'if' must be a name"},
      {document(R"([{"Name": "a", "Values": "[1]"}, {"Name": "a", "Values": "[1]"}])"),
       "two parameters are named 'a'"},
      {document(R"([{"Name": "a"}])"), "TuningParameters[0] (a): Values must be a list"},
      {document(R"([{"Name": "a", "Values": "[]"}])"), "TuningParameters[0] (a): Values is empty"},
      {document(R"([{"Name": "a", "Values": [[1]]}])"), "[1] is no number, boolean or word"},
      {document(R"([{"Name": "a", "Values": [18446744073709551615]}])"), "is no number"},
      {document(R"([{"Name": "a", "Values": "[1, 2 +]"}])"), "TuningParameters[0] (a): Values: column 8:"},
      {document(R"([{"Name": "a", "Values": "[1, 2]"}])", R"({"x": 1})"), "Conditions must be an array"},
      {document(R"([{"Name": "a", "Values": "[1, 2]"}])", R"([{"Expression": 5}])"),
       "Conditions[0]: Expression must be a text"},
      {document(R"([{"Name": "a", "Values": "[1, 2]"}])", R"([{"Expression": "a <"}])"),
       "t.json: Conditions[0]: column 4:"},
      {document(R"([{"Name": "block", "Values": "[1, 2]"}])", R"([{"Expression": "blok < 2"}])"),
       "Conditions[0]: column 1: 'blok' is no parameter, did you mean 'block'?"},
  };
  for (const auto& [text, message] : cases) {
    const auto problem = read_t1(text, "t.json");
    ASSERT_FALSE(problem) << text;
    EXPECT_EQ(problem.error().code(), Code::invalid) << text;
    EXPECT_THAT(problem.error().message(), HasSubstr(message)) << text;
  }
}

TEST(T1, AnEmptySpaceIsSaid) {
  const auto problem =
      read_t1(document(R"([{"Name": "a", "Values": "[1, 2]"}])", R"([{"Expression": "a > 2"}])"), "t.json");
  ASSERT_TRUE(problem);
  EXPECT_THAT(problem->notes,
              ElementsAre(HasSubstr("no point is valid; the default one is not because constraint 'a > 2'")));
}

TEST(T1, ConditionsMayNameFixedParameters) {
  const auto problem =
      read_t1(document(R"([{"Name": "a", "Values": "[1, 2, 3]"}, {"Name": "n", "Values": "[2]"}])",
                       R"([{"Expression": "a >= n"}])"),
              "t.json");
  ASSERT_TRUE(problem);
  EXPECT_EQ(lattice::Space::build(problem->lattice, problem->facts())->count(), 2u);
  EXPECT_EQ(problem->lattice.base(), (lattice::Point{{1}})) << "the nearest valid point to the first values";
}

}  // namespace
}  // namespace furlong::interop
