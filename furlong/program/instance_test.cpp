// Instances: problems, selection, plans, launches, inputs.
#include "furlong/program/instance.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "furlong/base/random.h"
#include "furlong/program/internal/testing.h"
#include "furlong/program/npy.h"

namespace furlong::program {
namespace {

using lattice::Value;
using testing::read;
using testing::with;
using Overrides = std::vector<std::pair<std::string, Value>>;

std::shared_ptr<const Program> must_read(std::string_view text) {
  auto program = read(text);
  EXPECT_TRUE(program) << program.error().text();
  return program ? *program : nullptr;
}

Instance must_make(std::string_view text, const Overrides& overrides = {},
                   const lattice::Environment& facts = {}) {
  auto instance = Instance::make(must_read(text), "opencl", overrides, facts);
  EXPECT_TRUE(instance) << instance.error().text();
  return *std::move(instance);
}

std::vector<std::string> names(const Instance& instance, const std::vector<lattice::Point>& points) {
  std::vector<std::string> list;
  for (const auto& point : points) list.push_back(lattice::variant_name(instance.lattice(), point));
  return list;
}

lattice::Point point_of(const Instance& instance, std::string_view name) {
  auto point = lattice::parse_variant(instance.lattice(), name);
  EXPECT_TRUE(point) << point.error().text();
  return *point;
}

template <class T>
std::string message(const Result<T>& result) {
  return result ? "no error" : result.error().text();
}

TEST(Instance, OverridesMustBeKnownAndOfTheirSort) {
  const auto program = must_read(testing::kProgram);
  EXPECT_EQ(message(Instance::make(program, "cuda", {}, {})),
            "program 'add' has no source in language 'cuda' (it has opencl)");
  EXPECT_EQ(message(Instance::make(program, "opencl", {{"scal", 1}}, {})),
            "program 'add' has no problem parameter 'scal', did you mean 'scale'?");
  EXPECT_EQ(message(Instance::make(program, "opencl", {{"size", 1}}, {})),
            "program 'add' has no problem parameter 'size' (it has n, scale)");
  EXPECT_EQ(message(Instance::make(program, "opencl", {{"n", 1.5}}, {})),
            "problem parameter 'n' is an integer, which '1.5' is not");
  const auto instance = Instance::make(program, "opencl", {{"n", 7}, {"scale", 3}}, {});
  ASSERT_TRUE(instance);
  EXPECT_EQ(instance->problem().at("n"), Value(7));
}

TEST(Instance, SelectPutsBaseFirstAndNothingTwice) {
  const Instance instance = must_make(testing::kProgram);
  EXPECT_EQ(names(instance, *instance.select("u2,b32,u2")), (std::vector<std::string>{"base", "u2", "b32"}));
  EXPECT_EQ(names(instance, *instance.select("all")),
            (std::vector<std::string>{"base", "b32", "b32-u2", "u2", "b128", "b128-u2"}));
  // No catalogue: a small lattice is raced whole.
  EXPECT_EQ(instance.select("catalogue")->size(), 6u);
  EXPECT_EQ(message(instance.select("u2,,b32")), "a variant's name is empty in 'u2,,b32'");
}

TEST(Instance, SelectNamesWhyAVariantIsNotValid) {
  const Instance instance = must_make(testing::kProgram, {}, {{"device.max_threads", 128}});
  EXPECT_EQ(names(instance, *instance.select("all")),
            (std::vector<std::string>{"base", "b32", "b32-u2", "u2"}));
  const auto refused = instance.select("b128");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::invalid);
  EXPECT_NE(refused.error().text().find("variant 'b128' is not valid here"), std::string::npos)
      << refused.error().text();
  EXPECT_NE(refused.error().text().find("a block has that many threads at most"), std::string::npos);
  const Instance tiny = must_make(testing::kProgram, {}, {{"device.max_threads", 64}});
  EXPECT_NE(message(tiny.select("u2")).find("base of program 'add' is not valid"), std::string::npos);
}

TEST(Instance, LossyAndRestrictedValuesNeedTheirName) {
  const Instance instance = must_make(with("define = \"UNROLL\"", "define = \"UNROLL\"\nlossy = [2]"));
  EXPECT_EQ(names(instance, *instance.select("all")), (std::vector<std::string>{"base", "b32", "b128"}));
  const auto denied = instance.select("u2");
  ASSERT_FALSE(denied);
  EXPECT_EQ(denied.error().code(), Code::denied);
  EXPECT_EQ(denied.error().text(),
            "variant 'u2' lowers precision by knob 'unroll': allow it with --allow-lossy unroll");
  const std::vector<std::string> allow = {"unroll"};
  EXPECT_EQ(instance.select("all", allow)->size(), 6u);
  EXPECT_TRUE(instance.select("u2", allow));
  const std::vector<std::string> unknown = {"unrol"};
  EXPECT_EQ(message(instance.select("all", unknown)),
            "program 'add' has no knob 'unrol' whose loss could be allowed, did you mean 'unroll'?");
  const Instance restricted = must_make(with("define = \"UNROLL\"", "define = \"UNROLL\"\nrestricted = [2]"));
  EXPECT_EQ(restricted.select("all")->size(), 3u);
  EXPECT_EQ(names(restricted, *restricted.select("u2")), (std::vector<std::string>{"base", "u2"}));
}

TEST(Instance, AllOfALargeLatticeIsRefused) {
  std::string text(testing::kProgram);
  for (const char* name : {"x", "y", "z", "w"}) {
    text += fmt::format("\n[[knob]]\nname = \"{}\"\nvalues = [", name);
    for (int i = 0; i < 20; ++i) text += fmt::format("{}, ", i);
    text += "]\n";
  }
  const Instance instance = must_make(text);
  const auto all = instance.select("all");
  ASSERT_FALSE(all);
  EXPECT_NE(all.error().text().find("960000 variants of program 'add', more than 100000"), std::string::npos)
      << all.error().text();
  // The catalogue of a large lattice: base and each change of one knob.
  EXPECT_EQ(instance.select("catalogue")->size(), 1u + 2u + 1u + 4u * 19u);
}

TEST(Instance, PlansCarryDefinesOptionsEntriesAndAHashOfTheirOwn) {
  std::string text =
      with("entry = \"add\"",
           "entry = \"add_{block}\"\noptions = [\"-w\"]\ndefines = { FAST = true, N = \"{n}\" }");
  text.replace(text.find("define = \"UNROLL\""), 17,
               "applies = [\"define\", \"option\"]\ndefine = \"UNROLL\"\noption = [\"\", \"-two\"]");
  const Instance instance = must_make(text);
  const auto plan = instance.plan(point_of(instance, "b32-u2"));
  ASSERT_TRUE(plan) << plan.error().text();
  EXPECT_EQ(plan->name, "b32-u2");
  EXPECT_EQ(plan->entries, (std::vector<std::string>{"add_32"}));
  using Define = std::pair<std::string, std::string>;
  EXPECT_EQ(plan->defines, (std::vector<Define>{{"FAST", "1"}, {"N", "1024"}, {"UNROLL", "2"}}));
  EXPECT_EQ(plan->options, (std::vector<std::string>{"-w", "-two"}));
  std::set<Digest> hashes;
  const auto all = *instance.select("all");
  for (const auto& point : all) hashes.insert(instance.plan(point)->source_hash);
  EXPECT_EQ(hashes.size(), 6u);  // block is in the entry, unroll in a define
}

TEST(Instance, RewritesNameTheVariantThatDoesNotFit) {
  const auto rewriting = [](std::string_view anchor) {
    return with(
        "define = \"UNROLL\"",
        fmt::format("applies = \"rewrite\"\nrewrites = [{{ value = 2, anchor = '{}', replace = 'i < 2' }}]",
                    anchor));
  };
  const Instance good = must_make(rewriting("i < UNROLL"));
  EXPECT_NE(good.plan(point_of(good, "u2"))->source.find("int i = 0; i < 2;"), std::string::npos);
  EXPECT_EQ(good.plan(good.lattice().base())->source, testing::kSource);
  const Instance missing = must_make(rewriting("i < unroll"));
  EXPECT_EQ(message(missing.plan(point_of(missing, "u2"))), "u2: anchor not found: 'i < unroll'");
  const Instance twice = must_make(rewriting("float*"));
  EXPECT_EQ(message(twice.plan(point_of(twice, "u2"))), "u2: anchor 'float*' occurs 2 times, expected 1");
}

TEST(Instance, LaunchesFollowKnobsAndProblem) {
  const Instance instance = must_make(testing::kProgram, {{"n", 1000}});
  const auto inputs = instance.timed_inputs(1, {});
  ASSERT_TRUE(inputs) << inputs.error().text();
  const auto launches = instance.launches(point_of(instance, "b32"), *inputs);
  ASSERT_TRUE(launches) << launches.error().text();
  ASSERT_EQ(launches->size(), 1u);
  EXPECT_EQ((*launches)[0].block, (std::array<std::uint64_t, 3>{64, 1, 1}));
  EXPECT_EQ((*launches)[0].grid, (std::array<std::uint64_t, 3>{16, 1, 1}));
}

struct BadLaunch {
  std::string_view grid, message;
};
class BadLaunches : public ::testing::TestWithParam<BadLaunch> {};
TEST_P(BadLaunches, NameTheExpression) {
  const Instance instance =
      must_make(with("grid = \"ceil_div(n, threads)\"", fmt::format("grid = {}", GetParam().grid)));
  const auto inputs = instance.timed_inputs(1, {});
  ASSERT_TRUE(inputs);
  EXPECT_EQ(message(instance.launches(instance.lattice().base(), *inputs)), GetParam().message);
}
INSTANTIATE_TEST_SUITE_P(
    Grids, BadLaunches,
    ::testing::Values(
        BadLaunch{"\"n // 2048\"",
                  "base: grid of kernel 'add' ('n // 2048') is 0; it must be 1 to 2147483648"},
        BadLaunch{"\"-n\"", "base: grid of kernel 'add' ('-n') is -1024; it must be 1 to 2147483648"},
        BadLaunch{"\"n * 4194304\"",
                  "base: grid of kernel 'add' ('n * 4194304') is 4294967296; it must be 1 to 2147483648"},
        BadLaunch{
            "\"n ** 9\"",
            "base: grid of kernel 'add' ('n ** 9'): column 3: overflow: the result of '**' is too large"},
        BadLaunch{"\"n / 0\"", "base: grid of kernel 'add' ('n / 0'): column 3: division by zero in '/'"},
        BadLaunch{"\"n / 3\"",
                  "base: grid of kernel 'add' ('n / 3'): 341.3333333333333 is no whole number of 64 bits"},
        BadLaunch{"[2147483648, 2147483648, 4]",
                  "base: grid of kernel 'add': 2147483648 x 2147483648 x 4 is more than 64 bits can say"}));

TEST(Instance, SizesThatOverflowAreErrors) {
  const auto error = [](std::string_view size) {
    const Instance instance = must_make(with("size = \"n\"", fmt::format("size = \"{}\"", size)));
    return message(instance.timed_inputs(1, {}));
  };
  EXPECT_EQ(error("n - n"), "size of argument 'a' ('n - n') is 0; it must be at least 1");
  EXPECT_EQ(error("n * 4503599627370496"),
            "argument 'a': 4611686018427387904 elements of f32 are more bytes than 64 bits can say");
  EXPECT_TRUE(error("n * 1099511627776").starts_with("argument 'a' needs 4 PiB, this machine has "))
      << error("n * 1099511627776");
}

TEST(Instance, InputsComeFromTheSeedAlone) {
  const Instance instance = must_make(testing::kProgram);
  const auto one = instance.timed_inputs(5, {});
  const auto same = instance.timed_inputs(5, {});
  const auto other = instance.timed_inputs(6, {});
  ASSERT_TRUE(one && same && other);
  EXPECT_EQ(one->bytes, same->bytes);
  EXPECT_NE(one->bytes[0], other->bytes[0]);
  EXPECT_EQ(one->buffer_bytes, (std::vector<std::size_t>{4096, 4096, 0}));
  EXPECT_TRUE(one->bytes[1].empty());
  EXPECT_EQ(load_le<std::int32_t>(one->bytes[2].data()), 1024);
  EXPECT_EQ(one->name, "random inputs of seed 5");
}

TEST(Instance, ScratchIsAsLargeAsTheGreediestPointNeeds) {
  std::string text = with(
      "[check]",
      "[[argument]]\nname = \"s\"\ntype = \"u8\"\nsize = \"threads\"\ndirection = \"scratch\"\n\n[check]");
  const Instance instance = must_make(text);
  const auto points = *instance.select("b32,b128");
  EXPECT_EQ(instance.timed_inputs(1, points)->buffer_bytes[3], 256u);
  EXPECT_EQ(instance.timed_inputs(1, {})->buffer_bytes[3], 128u);  // base alone
}

TEST(Instance, ScalarsMayDependOnKnobs) {
  const Instance instance = must_make(with("value = \"n\"", "value = \"n * block\""));
  const auto inputs = *instance.timed_inputs(1, {});
  EXPECT_EQ(load_le<std::int32_t>(instance.scalar_bytes(2, point_of(instance, "b32"), inputs)->data()),
            1024 * 32);
  EXPECT_EQ(load_le<std::int32_t>(inputs.bytes[2].data()), 1024 * 64);
  const Instance large = must_make(with("value = \"n\"", "value = \"n * 4194304\""));
  EXPECT_EQ(message(large.timed_inputs(1, {})), "value of argument 'n': 4294967296 does not fit i32");
}

TEST(Instance, TheCheckHasAProblemOfItsOwn) {
  const Instance instance =
      must_make(with("bound = 1e-6", "bound = 1e-6\nproblem = { n = 100 }"), {{"n", 5000}});
  EXPECT_EQ(instance.check_inputs(1, {})->buffer_bytes[0], 400u);
  EXPECT_EQ(instance.timed_inputs(1, {})->buffer_bytes[0], 20000u);
}

TEST(Instance, APointThatTheCheckProblemForbidsIsNamed) {
  std::string text = with("bound = 1e-6", "bound = 1e-6\nproblem = { n = 100 }");
  text += "\n[[constraint]]\nexpression = \"n % block == 0 or block == 64\"\n";
  const Instance instance = must_make(text);
  const std::string error = message(instance.check_inputs(1, *instance.select("b128")));
  EXPECT_TRUE(error.starts_with("b128 is valid on the timed problem but not on the one of [check]: "))
      << error;
}

TEST(Instance, ExpectedFilesBelongToTheCheckProblem) {
  FakeFiles files;
  const std::vector<std::uint64_t> shape = {8};
  ASSERT_TRUE(files.write_atomic("/p/b.npy", as_text(*write_npy(ElementType::f32, shape, Bytes(32, 1)))));
  std::string text =
      with("bound = 1e-6",
           "bound = 1e-6\nreference = \"files\"\nexpected = { b = \"b.npy\" }\nproblem = { n = 8 }");
  text.replace(text.find("size = \"n\""), 10, "size = \"n\"\nfill = \"sequence\"");
  const auto program = read(text, files);
  ASSERT_TRUE(program) << program.error().text();
  const auto instance = Instance::make(*program, "opencl", {}, {});
  EXPECT_EQ(instance->check_inputs(1, {})->expected[1], Bytes(32, 1));
  EXPECT_TRUE(instance->timed_inputs(1, {})->expected[1].empty());
  text.replace(text.find("problem = { n = 8 }"), 19, "problem = { n = 9 }");
  const auto wrong = read(text, files);
  ASSERT_TRUE(wrong);
  EXPECT_EQ(message(Instance::make(*wrong, "opencl", {}, {})->check_inputs(1, {})),
            "the expected file of 'b' has 8 elements, the problem gives 9: choose the file's problem in "
            "[check] problem");
}

TEST(Instance, VectorsFixScalarsInputsAndOutputs) {
  auto program = std::make_shared<Program>(*must_read(testing::kProgram));
  Vector vector;
  vector.name = "first";
  vector.scalars = {{"n", 2}};
  vector.inputs["a"] = Bytes(8, 3);
  vector.expected["b"] = Bytes(8, 4);
  program->vectors = {vector, vector};
  program->vectors[1].inputs["a"].pop_back();
  const auto instance = Instance::make(program, "opencl", {}, {});
  ASSERT_EQ(instance->vector_count(), 2u);
  const auto inputs = instance->vector_inputs(0, {});
  ASSERT_TRUE(inputs) << inputs.error().text();
  EXPECT_EQ(inputs->name, "vector first");
  EXPECT_EQ(inputs->bytes[0], Bytes(8, 3));
  EXPECT_EQ(inputs->expected[1], Bytes(8, 4));
  EXPECT_TRUE(inputs->scalar_fixed[2]);
  EXPECT_EQ(load_le<std::int32_t>(instance->scalar_bytes(2, instance->lattice().base(), *inputs)->data()), 2);
  EXPECT_EQ(message(instance->vector_inputs(1, {})),
            "vector first: argument 'a' has 7 bytes, the problem gives 8");
  EXPECT_EQ(message(instance->vector_inputs(2, {})), "program 'add' has 2 vectors; there is no vector 2");
}

TEST(Instance, WorkAndClass) {
  const Instance instance =
      must_make(std::string(testing::kProgram) + "\n[class]\nlarge = \"1 if n > 100 else 0\"\n");
  EXPECT_EQ(instance.work(instance.lattice().base())->amount, 1024);
  EXPECT_EQ(*instance.work(instance.lattice().base())->bytes, 8192);
  EXPECT_FALSE(instance.work(instance.lattice().base())->flops);
  ASSERT_EQ(instance.class_values().size(), 1u);
  EXPECT_EQ(instance.class_values()[0], (std::pair<std::string, std::int64_t>("large", 1)));
  const Instance none = must_make(with("amount = \"n\"", "amount = \"n - 1024\""));
  EXPECT_EQ(message(none.work(none.lattice().base())),
            "amount of [work] ('n - 1024') is 0; it must be over 0");
}

TEST(Instance, WorkTellsHowMemoryIsRead) {
  const auto work_of = [](std::string_view keys) {
    const Instance instance = must_make(with("bytes = \"n * 8\"", keys));
    return instance.work(instance.lattice().base());
  };
  const auto streamed = work_of("bytes = \"n * 8\"\nint_ops = \"n * 3\"");
  EXPECT_EQ(streamed->loads, (std::array<double, random_widths>{0, 0, 0}));
  EXPECT_EQ(streamed->int_ops, 3072);
  const auto lines = work_of("bytes = \"n * 8\"\naccess = \"random128\"\ndataset = \"n * 64\"");
  EXPECT_EQ(lines->loads, (std::array<double, random_widths>{0, 0, 64}));
  EXPECT_EQ(lines->dataset, 65536);
  const auto mixed = work_of("loads = { random4 = \"n\", random16 = \"n - 1024\" }\ndataset = \"n * 64\"");
  EXPECT_EQ(mixed->loads, (std::array<double, random_widths>{1024, 0, 0}));
  EXPECT_EQ(message(work_of("loads = { random4 = \"n - 1025\" }\ndataset = \"n\"")),
            "loads of [work] ('n - 1025') is -1; it must be at least 0");
}

// Property: what "all" gives is what a plain walk over the product with the constraint gives.
TEST(Instance, AllIsTheProductUnderTheConstraints) {
  Random random(3);
  for (int round = 0; round < 20; ++round) {
    const std::int64_t limit = random.between(128, 600);
    const std::int64_t factor = random.between(1, 4);
    const Instance instance =
        must_make(with("threads = \"block * 2\"", fmt::format("threads = \"block * {} * unroll\"", factor)),
                  {}, {{"device.max_threads", limit}});
    std::set<std::string> expected;
    for (const std::int64_t block : {32, 64, 128})
      for (const std::int64_t unroll : {1, 2})
        if (block * factor * unroll <= limit) expected.insert(fmt::format("{} {}", block, unroll));
    const auto points = instance.select("all");
    if (64 * factor > limit) {
      EXPECT_FALSE(points);
      continue;
    }
    ASSERT_TRUE(points) << points.error().text();
    std::set<std::string> got;
    for (const auto& point : *points)
      got.insert(fmt::format("{} {}", instance.lattice().value(point, "block")->text(),
                             instance.lattice().value(point, "unroll")->text()));
    EXPECT_EQ(got, expected);
  }
}

}  // namespace
}  // namespace furlong::program
