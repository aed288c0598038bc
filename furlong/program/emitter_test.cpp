// Programs with an emitter: their files, plans and launches.
#include "furlong/program/emitter.h"

#include <gtest/gtest.h>

#include <thread>

#include "furlong/program/instance.h"
#include "furlong/program/internal/test_emitter.h"
#include "furlong/program/pack.h"

namespace furlong::program {
namespace {

using testing::emitted_with;
using testing::read_emitted;
using testing::ScaleEmitter;
using Overrides = std::vector<std::pair<std::string, lattice::Value>>;

template <class T>
std::string message(const Result<T>& result) {
  return result ? "no error" : result.error().text();
}

Instance must_make(Result<std::shared_ptr<const Program>> program, const Overrides& problem = {}) {
  EXPECT_TRUE(program) << program.error().text();
  auto instance = Instance::make(*program, "host", problem, {});
  EXPECT_TRUE(instance) << instance.error().text();
  return *std::move(instance);
}

lattice::Point point_of(const Instance& instance, std::string_view name) {
  auto point = lattice::parse_variant(instance.lattice(), name);
  EXPECT_TRUE(point) << point.error().text();
  return *point;
}

std::uint32_t scalar(const LaunchPlan& launch, const Instance& instance, std::string_view name) {
  const auto found = launch.scalars.find(*instance.program().argument_index(name));
  EXPECT_NE(found, launch.scalars.end()) << name;
  return found == launch.scalars.end() ? 0 : load_le<std::uint32_t>(found->second.data());
}

struct Mistake {
  std::string from, to, message;
};
class EmitterMistakes : public ::testing::TestWithParam<Mistake> {};

TEST_P(EmitterMistakes, NameThePlace) {
  EXPECT_EQ(message(read_emitted(emitted_with(GetParam().from, GetParam().to))), GetParam().message);
}

INSTANTIATE_TEST_SUITE_P(
    Files, EmitterMistakes,
    ::testing::Values(
        Mistake{"\"test.scale\"", "\"test.scales\"",
                "scale.toml:5:11: there is no emitter 'test.scales', did you mean 'test.scale'?"},
        Mistake{"language = \"host\"", "language = \"cuda\"",
                "scale.toml:5:11: emitter 'test.scale' makes host texts, and the language here is cuda"},
        Mistake{"emitter = ", "source = \"scale.cpp\"\nemitter = ",
                "scale.toml:5:1: [program] has an emitter, which makes the text and its launches: 'source' "
                "is for "
                "a source"},
        Mistake{
            "emitter = ", "entry = \"scale\"\nemitter = ",
            "scale.toml:5:1: [program] has an emitter, which makes the text and its launches: 'entry' is for "
            "a source"},
        Mistake{
            "language = \"host\"\nemitter = \"test.scale\"",
            "[source.host]\nemitter = \"test.scale\"\ntext = \"x\"",
            "scale.toml:6:1: [source.host] has an emitter, which makes the text and its launches: 'text' is "
            "for a source"},
        Mistake{"[problem]\nn = 4096", "[problem]\nm = 4096",
                "scale.toml:5:11: emitter 'test.scale' reads 'n': give it in [problem] or [let] (they "
                "have m)"},
        Mistake{
            "[check]", "[launch]\ngrid = \"n\"\n[check]",
            "scale.toml:37:2: [launch]: emitter 'test.scale' makes the launches in language host, so none is "
            "given here"},
        Mistake{
            "[check]", "[[kernel]]\nentry = \"scale\"\n[check]",
            "scale.toml:37:3: [[kernel]]: emitter 'test.scale' makes the launches in language host, so none "
            "is given here"},
        Mistake{
            "\"layout\"", "\"layouts\"",
            "scale.toml:44:1: knob 'layouts' applies as emit, but emitter 'test.scale' reads no such knob, "
            "did you mean 'layout'?"},
        Mistake{"values = [1, 2, 3]\napplies = \"emit\"", "values = [1, 2, 3]\napplies = \"define\"",
                "scale.toml:50:1: emitter 'test.scale' reads knob 'parts': add \"emit\" to its applies"},
        Mistake{
            "applies = \"emit\"",
            "applies = [\"emit\", \"rewrite\"]\nrewrites = [{value = \"turned\", anchor = \"x\", replace = "
            "\"y\"}, {value = \"copied\", anchor = \"x\", replace = \"y\"}]",
            "scale.toml:44:1: knob 'layout' applies as rewrite, but emitter 'test.scale' makes the text in "
            "language host, which no rewrite changes"},
        Mistake{"\"min(n, 512 + n % 512)\"", "\"min(m, 512)\"",
                "scale.toml:39:22: 'n' in problem of [check]: 'm' is not defined; it can be n, device.sm, "
                "device.max_threads, device.warp, device.shared_bytes, device.arch, device.multiprocessors, "
                "device.memory_mib, device.vendor or device.backend"}));

TEST(Emitters, StandBesideSourcesOfOtherLanguages) {
  const std::string text =
      emitted_with("language = \"host\"\nemitter = \"test.scale\"",
                   "[source.host]\nemitter = \"test.scale\"\n"
                   "[source.opencl]\nentry = \"scale\"\ntext = \"kernel void scale() {}\"");
  EXPECT_EQ(message(read_emitted(text)),
            "scale.toml:47:1: knob 'layout' only applies as emit, but language opencl has a source and no "
            "emitter: say in 'languages' where it exists");
  std::string mended = text;
  for (std::size_t at = 0; (at = mended.find("applies = \"emit\"", at)) != std::string::npos; at += 20)
    mended.insert(at, "languages = \"host\"\n");
  EXPECT_EQ(message(read_emitted(mended)),
            "scale.toml:1:1: kernel 'scale' in language opencl has no 'grid': give it in [launch]");
  mended += "[launch]\ngrid = \"n\"\nblock = 1\n";
  const auto program = read_emitted(mended);
  ASSERT_TRUE(program) << program.error().text();
  EXPECT_EQ((*program)->edition("opencl")->emitter, nullptr);
  ASSERT_NE((*program)->edition("host")->emitter, nullptr);
  EXPECT_TRUE((*program)->edition("host")->kernels.empty());
  EXPECT_EQ(
      message(read_emitted(mended + "[launch.host]\ngrid = 1\n")),
      "scale.toml:64:9: [launch.host]: emitter 'test.scale' makes the launches in language host, so none is "
      "given here");
}

TEST(Emitters, ARecipeIsTheReferenceWhereTheyHaveOne) {
  const auto program = read_emitted();
  ASSERT_TRUE(program) << program.error().text();
  ASSERT_NE((*program)->recipe, nullptr);
  EXPECT_EQ((*program)->check.reference, ReferenceKind::recipe);
  const Instance instance = must_make(program);
  const auto inputs = instance.check_inputs(3, {});
  ASSERT_TRUE(inputs) << inputs.error().text();
  ASSERT_EQ(inputs->expected[1].size(), 4u * 512);
  EXPECT_EQ(load_le<std::uint32_t>(inputs->expected[1].data() + 40),
            3 * load_le<std::uint32_t>(inputs->bytes[0].data() + 40) + 10);
}

TEST(Emitters, TheCheckedProblemFollowsFromTheTimedOne) {
  for (const auto& [n, checked] : {std::pair{4096, 512}, {5000, 904}, {700, 700}, {3, 3}}) {
    const Instance instance = must_make(read_emitted(), {{"n", n}});
    const auto inputs = instance.check_inputs(1, {});
    ASSERT_TRUE(inputs) << inputs.error().text();
    EXPECT_EQ(inputs->problem.at("n"), lattice::Value(checked));
  }
  const Instance broken = must_make(read_emitted(emitted_with("\"min(n, 512 + n % 512)\"", "\"n / 3\"")));
  EXPECT_EQ(message(broken.check_inputs(1, {})),
            "'n' in problem of [check] ('n / 3'): 1365.3333333333333 is no whole number of 64 bits");
}

TEST(Emitters, MakeThePlanAndItsLaunches) {
  const Instance instance = must_make(read_emitted(), {{"n", 1000}});
  const lattice::Point turned = point_of(instance, "turned-p3");
  const auto plan = instance.plan(turned);
  ASSERT_TRUE(plan) << plan.error().text();
  EXPECT_EQ(plan->name, "turned-p3");
  EXPECT_EQ(plan->source_name, "test.scale.host");
  EXPECT_NE(plan->source.find("x[n - 1 - i]"), std::string::npos);
  EXPECT_EQ(plan->entries, (std::vector<std::string>{"keep", "scale"}));
  EXPECT_EQ(plan->options, (std::vector<std::string>{"-fno-strict-aliasing"}));
  EXPECT_TRUE(plan->notes.empty());

  const auto inputs = instance.timed_inputs(1, {});
  const auto launches = instance.launches(turned, *inputs);
  ASSERT_TRUE(launches) << launches.error().text();
  ASSERT_EQ(launches->size(), 4u);
  EXPECT_TRUE((*launches)[0].once);  // though the emitter made it last
  EXPECT_EQ((*launches)[0].entry, "keep");
  EXPECT_EQ((*launches)[0].arguments, (std::vector<std::size_t>{0, 2, 3}));
  EXPECT_FALSE((*launches)[1].once);
  EXPECT_EQ((*launches)[2].arguments, (std::vector<std::size_t>{2, 1, 3, 4, 5}));
  EXPECT_EQ(scalar((*launches)[2], instance, "from"), 333u);
  EXPECT_EQ(scalar((*launches)[2], instance, "to"), 666u);
  const auto own = instance.scalar_bytes((*launches)[2], 4, turned, *inputs);
  EXPECT_EQ(load_le<std::uint32_t>(own->data()), 333u);
  const auto common = instance.scalar_bytes((*launches)[2], 3, turned, *inputs);
  EXPECT_EQ(load_le<std::uint32_t>(common->data()), 1000u);

  const auto base = instance.plan(instance.lattice().base());
  ASSERT_TRUE(base);
  EXPECT_EQ(base->entries, (std::vector<std::string>{"scale"}));
  EXPECT_NE(base->source_hash, plan->source_hash);
}

TEST(Emitters, SayWhatTheyResolved) {
  const Instance instance = must_make(read_emitted(), {{"n", 2}});
  const auto plan = instance.plan(point_of(instance, "p3"));
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->notes, (std::vector<std::string>{"parts 3 is 2: there are no more elements"}));
  EXPECT_TRUE(plan->fallback);
  EXPECT_FALSE(instance.plan(point_of(instance, "p2"))->fallback);
}

TEST(Emitters, ErrorsNameTheVariant) {
  const Instance none = must_make(read_emitted(), {{"n", 0}});
  EXPECT_EQ(message(none.plan(point_of(none, "p2"))), "p2: test.scale: n is 0; it must be at least 1");
  // A name that cannot be evaluated is not taken for one that is missing.
  std::string text = emitted_with("[problem]\nn = 4096", "[problem]\nk = 0\n[let]\nn = \"4096 // k\"");
  const std::string checked = "problem = { n = \"min(n, 512 + n % 512)\" }\n";
  text.erase(text.find(checked), checked.size());
  const Instance failing = must_make(read_emitted(text));
  EXPECT_NE(message(failing.plan(failing.lattice().base())).find("base: [let] 'n': "), std::string::npos)
      << message(failing.plan(failing.lattice().base()));
}

struct Defect {
  std::function<void(Emitted&, std::int64_t)> change;
  std::string message;
};
class EmitterDefects : public ::testing::TestWithParam<Defect> {};

TEST_P(EmitterDefects, AreSaid) {
  const Instance instance =
      must_make(read_emitted(testing::kEmitted, std::make_shared<ScaleEmitter>(GetParam().change)));
  const auto inputs = instance.timed_inputs(1, {});
  EXPECT_EQ(message(instance.launches(point_of(instance, "turned"), *inputs)), GetParam().message);
}

INSTANTIATE_TEST_SUITE_P(
    All, EmitterDefects,
    ::testing::Values(
        Defect{[](Emitted& e, std::int64_t) { e.source.clear(); },
               "turned by emitter 'test.scale': it made no text"},
        Defect{
            [](Emitted& e, std::int64_t) { e.launches[0].arguments[0] = "z"; },
            "turned by emitter 'test.scale': kernel 'scale' is passed 'z', which is no argument of program "
            "'scale'"},
        Defect{[](Emitted& e, std::int64_t) { e.launches[0].scalars["y"] = 1; },
               "turned by emitter 'test.scale': kernel 'scale' has a value for 'y', which is no scalar that "
               "it is "
               "passed"},
        Defect{[](Emitted& e, std::int64_t) { e.launches[1].arguments[1] = "y"; },
               "turned by emitter 'test.scale': kernel 'keep' runs once and is passed 'y', an output: it may "
               "write scratch only"},
        Defect{
            [](Emitted& e, std::int64_t) { e.launches[0].once = true, e.launches[0].arguments[1] = "kept"; },
            "turned by emitter 'test.scale': it made no launch that could be timed"},
        Defect{[](Emitted& e, std::int64_t) { e.launches[0].scalars["from"] = -1; },
               "turned: 'from' of kernel 'scale': -1 does not fit u32"},
        Defect{[](Emitted& e, std::int64_t) { e.launches[0].grid[1] = 0; },
               "turned: grid of kernel 'scale' is 0; it must be 1 to 2147483648"},
        Defect{[](Emitted& e, std::int64_t) { e.launches[0].block = {1u << 31, 1u << 31, 4}; },
               "turned: block of kernel 'scale': 2147483648 x 2147483648 x 4 is more than 64 bits can say"}));

TEST(Emitters, TheGateMustRunWhatIsTimed) {
  const auto program =
      read_emitted(testing::kEmitted, std::make_shared<ScaleEmitter>([](Emitted& emitted, std::int64_t n) {
                     if (n < 1000) emitted.source += "// small\n";
                   }));
  const Instance instance = must_make(program);
  const auto inputs = instance.check_inputs(1, {});
  ASSERT_TRUE(inputs);
  EXPECT_EQ(
      message(instance.launches(instance.lattice().base(), *inputs)),
      "base: emitter 'test.scale' makes another text for the problem of random inputs of seed 1 than for the "
      "timed one, so that what is timed would not be checked: give them the same remainders (in [check] "
      "problem, m = \"min(m, 256 + m % 256)\")");
  EXPECT_TRUE(instance.launches(instance.lattice().base(), *instance.timed_inputs(1, {})));
}

TEST(Emitters, AProgramsHashCoversWhatTheyMake) {
  const Digest before = (*read_emitted())->source_hash();
  EXPECT_EQ((*read_emitted())->source_hash(), before);
  const auto changed = [](std::function<void(Emitted&, std::int64_t)> change) {
    return (*read_emitted(testing::kEmitted, std::make_shared<ScaleEmitter>(std::move(change))))
        ->source_hash();
  };
  EXPECT_EQ(changed([](Emitted&, std::int64_t) {}), before);
  EXPECT_NE(changed([](Emitted& e, std::int64_t) { e.source += "\n"; }), before);
  // Of one variant alone.
  EXPECT_NE(changed([](Emitted& e, std::int64_t) {
              if (e.launches.size() == 3) e.launches[2].scalars["to"] = 5;
            }),
            before);
}

TEST(Emitters, APackNamesThem) {
  const auto folder = TemporaryFolder::make("furlong-emitter-test");
  ASSERT_TRUE(folder) << folder.error().text();
  const std::filesystem::path file = folder->path() / "scale.toml", pack = folder->path() / "pack";
  ASSERT_TRUE(system_files().write_atomic(file, testing::kEmitted));
  const std::vector<std::shared_ptr<const Emitter>> emitters = {std::make_shared<ScaleEmitter>()};
  const auto program = load_program_file(file, system_files(), emitters);
  ASSERT_TRUE(program) << program.error().text();
  const auto contents = freeze_program(**program);
  ASSERT_TRUE(contents) << contents.error().text();
  EXPECT_EQ(contents->files.size(), 2u);  // the program file and pack.toml
  ASSERT_TRUE(write_pack(*contents, pack));
  const auto loaded = load_pack(pack, system_files(), emitters);
  ASSERT_TRUE(loaded) << loaded.error().text();
  EXPECT_EQ((*loaded)->source_hash(), (*program)->source_hash());
  EXPECT_EQ((*loaded)->edition("host")->emitter, emitters[0]);
  const std::string unknown = message(load_pack(pack));
  EXPECT_TRUE(unknown.starts_with((pack / "scale.toml").string() + ":5:11: there is no emitter 'test.scale'"))
      << unknown;
  // Another version of the emitter is told by what it makes.
  const std::vector<std::shared_ptr<const Emitter>> newer = {
      std::make_shared<ScaleEmitter>([](Emitted& emitted, std::int64_t) { emitted.source += "// 2\n"; })};
  EXPECT_NE((*load_pack(pack, system_files(), newer))->source_hash(), (*program)->source_hash());
}

TEST(Emitters, MakeTheSameFromManyThreads) {
  const Instance instance = must_make(read_emitted());
  const lattice::Point point = point_of(instance, "turned-p2");
  const Digest alone = instance.plan(point)->source_hash;
  std::vector<Digest> seen(4);
  {
    std::vector<std::jthread> threads;
    for (Digest& one : seen)
      threads.emplace_back([&] {
        for (int i = 0; i < 100; ++i) one = instance.plan(point)->source_hash;
      });
  }
  for (const Digest& one : seen) EXPECT_EQ(one, alone);
}

}  // namespace
}  // namespace furlong::program
