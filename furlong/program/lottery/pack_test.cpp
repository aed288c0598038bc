#include "furlong/program/pack.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "furlong/base/os/file.h"
#include "furlong/lattice/lint.h"
#include "furlong/lattice/space.h"
#include "furlong/program/instance.h"
#include "furlong/program/lottery/lottery.h"
#include "furlong/program/lottery/recipe.h"
#include "furlong/program/lottery/vectors.h"

namespace furlong::program::lottery {
namespace {

constexpr std::array<std::string_view, 4> kLanguages = {"cuda", "opencl", "host", "metal"};

const PackContents& demonstration_pack() {
  static const PackContents pack = *make_pack({.epoch_seed = demonstration_seed()});
  return pack;
}

std::shared_ptr<const Program> demonstration_program() {
  const auto program = program_of_pack(demonstration_pack(), "demonstration");
  EXPECT_TRUE(program) << program.error().text();
  return program ? *program : nullptr;
}

Instance instance_of(std::string_view language) {
  auto instance = Instance::make(demonstration_program(), language, {}, {});
  EXPECT_TRUE(instance) << instance.error().text();
  return *std::move(instance);
}

TEST(LotteryPack, SameParametersSameBytes) {
  EXPECT_EQ(make_pack({.epoch_seed = demonstration_seed()})->files, demonstration_pack().files);
  EXPECT_NE(pack_hash(*make_pack({.epoch_seed = demonstration_seed(), .day = 1})),
            pack_hash(demonstration_pack()));
}

// Every byte of a pack of a fixed epoch. When a text is changed on purpose this hash changes, and with it the
// pack of every epoch: packs that were made before keep theirs and still race.
TEST(LotteryPack, GoldenHash) {
  EXPECT_EQ(pack_hash(demonstration_pack()).hex(),
            "1c82a45a1e07d54980ba1e45b0b5f542c52bb5d57ddba6753a9c6fe8de7a8ac4");
}

TEST(LotteryPack, HoldsTextsVectorsAndParameters) {
  const auto& files = demonstration_pack().files;
  for (const char* name :
       {"lottery.cu", "lottery.cl", "lottery.cpp", "lottery.metal", "vectors.toml", "pack.toml"})
    EXPECT_TRUE(files.contains(name)) << name;
  EXPECT_EQ(files.size(), 6u);
  EXPECT_NE(
      files.at("pack.toml").find("[lottery]\nformat = 1\nepoch_seed = \"" + to_hex(demonstration_seed())),
      std::string::npos);
}

TEST(LotteryPack, RefusesBadParameters) {
  const auto pack = make_pack({.loads = 100});
  ASSERT_FALSE(pack);
  EXPECT_EQ(pack.error().code(), Code::invalid);
}

TEST(LotteryPack, MakesTheProgramWithItsClassAndProblem) {
  const auto pack =
      make_pack({.epoch_seed = demonstration_seed(), .day = 9, .dataset_mib = 65, .loads = 64, .wide = 8});
  ASSERT_TRUE(pack) << pack.error().text();
  const auto program = program_of_pack(*pack, "somewhere");
  ASSERT_TRUE(program) << program.error().text();
  EXPECT_EQ((*program)->name, "lottery");
  EXPECT_EQ((*program)->epoch, to_hex(demonstration_seed()).substr(0, 16));
  EXPECT_EQ((*program)->day, 9);
  EXPECT_EQ((*program)->recipe->dataset_bytes(), 65ull << 20);
  EXPECT_GE((*program)->vectors.size(), 4u);
  const auto instance = Instance::make(*program, "cuda", {}, {});
  ASSERT_TRUE(instance) << instance.error().text();
  const std::vector<std::pair<std::string, std::int64_t>> wanted = {{"loads", 64}, {"wide", 8}};
  EXPECT_EQ(instance->class_values(), wanted);
  const auto work = instance->work(instance->lattice().base());
  ASSERT_TRUE(work) << work.error().text();
  EXPECT_EQ(work->amount, 1048576);
  EXPECT_EQ(*work->bytes, 1048576.0 * (56 * 4 + 8 * 16));
  EXPECT_EQ(work->loads[0], 1048576.0 * 56);
  EXPECT_EQ(work->loads[1], 1048576.0 * 8);
  EXPECT_EQ(work->dataset, static_cast<double>((*program)->recipe->dataset_bytes()));
}

// A record of such a race would hold its winner for another class than the one that ran.
TEST(LotteryPack, TheClassAndTheDatasetCannotBeOverridden) {
  const auto program = program_of_pack(demonstration_pack(), "");
  ASSERT_TRUE(program) << program.error().text();
  for (const char* name : {"loads", "wide", "dataset_words"}) {
    const auto refused = Instance::make(*program, "cuda", {{name, 64}}, {});
    ASSERT_FALSE(refused) << name;
    EXPECT_EQ(refused.error().code(), Code::invalid);
    EXPECT_NE(refused.error().text().find(fmt::format("problem parameter '{}' is ", name)), std::string::npos)
        << refused.error().text();
  }
  EXPECT_TRUE(Instance::make(*program, "cuda", {{"loads", 128}, {"count", 64}}, {}));
}

TEST(LotteryPack, AnUnknownVariantIsAnsweredWithTheNearest) {
  const auto program = program_of_pack(demonstration_pack(), "");
  ASSERT_TRUE(program) << program.error().text();
  const auto refusal = [&](std::string_view language, std::string_view variant) {
    const auto instance = Instance::make(*program, language, {}, {});
    EXPECT_TRUE(instance) << instance.error().text();
    const auto points = instance->select(variant);
    return points ? "selected" : points.error().text();
  };
  EXPECT_EQ(refusal("cuda", "r8"),
            "variant 'r8': 'r8' is no tag of this lattice; the nearest are 'r32', 'r64', 'u8' and 'w8'");
  EXPECT_EQ(refusal("cuda", "u2-ldgg"),
            "variant 'u2-ldgg': 'ldgg' is no tag of this lattice, did you mean 'ldg'?");
  EXPECT_EQ(refusal("cuda", "catalog"),
            "'catalog' is no variant of program 'lottery', did you mean 'catalogue'?");
  EXPECT_EQ(
      refusal("opencl", "r32"),
      "variant 'r32': 'r32' is no tag of this lattice; the nearest are 'u2', 'u8', 'g64' and 'g128'; it is "
      "a variant in language cuda, and this is opencl");
}

TEST(LotteryPack, RefusesAnotherFormatAndDamagedFields) {
  const auto refused = [](std::string_view file, std::string_view from, std::string_view to) {
    PackContents pack = demonstration_pack();
    std::string& text = pack.files[std::string(file)];
    const std::size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
    const auto program = program_of_pack(pack, "folder");
    EXPECT_FALSE(program) << to;
    return program ? Error(Code::internal, "it was read") : program.error();
  };
  const Error format = refused("pack.toml", "[lottery]\nformat = 1", "[lottery]\nformat = 2");
  EXPECT_EQ(format.code(), Code::incompatible);
  EXPECT_NE(format.text().find("format 2"), std::string::npos) << format.text();
  EXPECT_NE(format.text().find("format 1"), std::string::npos) << format.text();
  EXPECT_NE(refused("pack.toml", "day = 0", "day = \"x\"").text().find("'day' must be an integer"),
            std::string::npos);
  EXPECT_NE(refused("pack.toml", "day = 0", "dai = 0").text().find("needs the key 'day'"), std::string::npos);
  EXPECT_NE(refused("pack.toml", "loads = 128", "loads = 7").text().find("loads is 7"), std::string::npos);
  EXPECT_NE(refused("pack.toml", "epoch_seed = \"0", "epoch_seed = \"").text().find("64 hexadecimal digits"),
            std::string::npos);
  EXPECT_NE(refused("pack.toml", "dataset_bytes = 16777216", "dataset_bytes = 16777217")
                .text()
                .find("dataset_bytes"),
            std::string::npos);
  EXPECT_NE(refused("pack.toml", "cache_bytes = 1048576", "cache_bytes = -64").text().find("cache_bytes"),
            std::string::npos);
  EXPECT_NE(refused("vectors.toml", "start = \"0", "start = \"").text().find("16 hexadecimal digits"),
            std::string::npos);
  const Error hits = refused("vectors.toml", "hits = [\"", "hits = [\"00000000\", \"");
  EXPECT_EQ(hits.code(), Code::corrupt);
  EXPECT_EQ(refused("vectors.toml", "format = 1", "format = 3").code(), Code::incompatible);
  PackContents missing = demonstration_pack();
  missing.files.erase("lottery.metal");
  EXPECT_FALSE(program_of_pack(missing, "folder"));
}

TEST(LotteryVectors, RoundTripAndHoldHits) {
  const auto vectors = parse_vectors(demonstration_pack().files.at("vectors.toml"), "vectors.toml");
  ASSERT_TRUE(vectors) << vectors.error().text();
  EXPECT_EQ(print_vectors(*vectors), demonstration_pack().files.at("vectors.toml"));
  int whole_warps = 0;
  for (const NonceVector& vector : *vectors) {
    whole_warps += static_cast<int>(vector.hashes.size()) / 32;
    const auto hits =
        std::ranges::count_if(vector.hashes, [&](std::uint64_t hash) { return hash < vector.target; });
    EXPECT_EQ(static_cast<std::size_t>(hits), vector.hashes.size() / 4);
  }
  EXPECT_GE(whole_warps, 4);
}

// A damaged digit anywhere in the hashes or targets is either seen by the reader or changes what the gate
// expects.
TEST(LotteryVectors, NoDamageIsSilent) {
  const std::string& text = demonstration_pack().files.at("vectors.toml");
  const auto whole = parse_vectors(text, "vectors.toml");
  ASSERT_TRUE(whole);
  for (std::size_t at = 12; at < text.size(); at += 7) {
    std::string damaged = text;
    damaged[at] = damaged[at] == '5' ? '6' : '5';
    const auto read = parse_vectors(damaged, "vectors.toml");
    if (read) {
      EXPECT_NE(print_vectors(*read), print_vectors(*whole)) << "byte " << at;
    }
  }
}

// Fresh inputs: any nonce, the recipe's outputs, and vectors whose 64-bit values pass 2^63.
TEST(LotteryInputs, ComeFromRecipeAndVectors) {
  const Instance instance = instance_of("host");
  const std::vector<lattice::Point> points = {instance.lattice().base()};
  const auto a = instance.check_inputs(1, points);
  const auto b = instance.check_inputs(2, points);
  ASSERT_TRUE(a) << a.error().text();
  ASSERT_TRUE(b) << b.error().text();
  EXPECT_NE(a->bytes[kStart], b->bytes[kStart]);
  EXPECT_EQ(a->expected[kHashes].size(), a->buffer_bytes[kHashes]);
  const bool some_hit = std::ranges::any_of(a->expected[kHits], [](std::uint8_t byte) { return byte != 0; });
  EXPECT_TRUE(some_hit);

  ASSERT_EQ(instance.vector_count(), 5u);
  for (std::size_t i = 0; i < instance.vector_count(); ++i) {
    const auto inputs = instance.vector_inputs(i, points);
    ASSERT_TRUE(inputs) << inputs.error().text();
    // The recipe, asked with the vector's inputs, gives the vector's outputs.
    std::vector<Bytes> expected(kArguments);
    ASSERT_TRUE(
        instance.program().recipe->reference(instance.program(), inputs->problem, inputs->bytes, expected));
    EXPECT_EQ(expected[kHashes], inputs->expected[kHashes]);
    EXPECT_EQ(expected[kHits], inputs->expected[kHits]);
  }
  EXPECT_EQ(load_le<std::uint64_t>(instance.vector_inputs(3, points)->bytes[kStart].data()),
            0xfffffffffffffff0ull);
}

TEST(LotteryRecipe, NamesWhatIsWrong) {
  const auto recipe = demonstration_program()->recipe;
  Bytes small(64);
  const Status status = recipe->build_dataset(small, 1, {});
  ASSERT_FALSE(status);
  EXPECT_NE(status.error().text().find("16777216"), std::string::npos);
  std::vector<Bytes> expected;
  EXPECT_FALSE(recipe->reference(*demonstration_program(), {}, std::vector<Bytes>(3), expected));
  std::vector<Bytes> inputs(kArguments);
  inputs[kStart].resize(8), inputs[kCount].resize(2), inputs[kTarget].resize(8);
  const Status short_count = recipe->reference(*demonstration_program(), {}, inputs, expected);
  ASSERT_FALSE(short_count);
  EXPECT_NE(short_count.error().text().find("'count'"), std::string::npos);
}

TEST(LotteryRecipe, LeavesOtherHitBits) {
  const auto recipe = demonstration_program()->recipe;
  std::vector<Bytes> inputs(kArguments), expected(kArguments);
  inputs[kStart] = Bytes(8), inputs[kCount] = {3, 0, 0, 0}, inputs[kTarget] = Bytes(8, 0xff);
  inputs[kHits] = {0, 0, 0, 0x80};
  ASSERT_TRUE(recipe->reference(*demonstration_program(), {}, inputs, expected));
  EXPECT_EQ(expected[kHits], (Bytes{7, 0, 0, 0x80}));
}

// The cache is filled at first use; that two threads come first at once must not matter.
TEST(LotteryRecipe, MayBeAskedByManyThreads) {
  const auto recipe = demonstration_program()->recipe;
  const Instance instance = instance_of("host");
  const auto inputs = instance.vector_inputs(0, std::vector{instance.lattice().base()});
  ASSERT_TRUE(inputs);
  std::array<std::vector<Bytes>, 4> answers;
  {
    std::vector<std::jthread> threads;
    for (auto& answer : answers)
      threads.emplace_back(
          [&] { (void)recipe->reference(instance.program(), inputs->problem, inputs->bytes, answer); });
  }
  for (const auto& answer : answers) {
    ASSERT_EQ(answer.size(), static_cast<std::size_t>(kArguments));
    EXPECT_EQ(answer[kHashes], inputs->expected[kHashes]);
  }
}

// ---- the lattice that ships

TEST(LotteryLattice, CatalogueNamesAreFrozen) {
  const auto names = [](std::string_view language) { return instance_of(language).lattice().catalogue; };
  using Names = std::vector<std::string>;
  EXPECT_EQ(names("cuda"), (Names{"base", "u2", "u8", "ldg", "ldcg", "ldcs", "r32", "r64", "lb4-w4", "lb8-w2",
                                  "w2", "w4", "w8", "u2-ldg", "u2-w4", "ldg-w4", "ldcg-w4"}));
  EXPECT_EQ(names("metal"), (Names{"base", "u2", "u8", "mt256", "mt512", "mt1024", "g64", "g128", "g256",
                                   "osize", "u2-g128", "u8-g128", "mt256-g128", "mt512-g256"}));
  EXPECT_EQ(names("opencl"),
            (Names{"base", "u2", "u8", "g64", "g128", "g256", "fast", "u2-g128", "u8-g128"}));
  EXPECT_EQ(names("host").front(), "base");
}

TEST(LotteryLattice, LintIsClean) {
  for (const std::string_view language : kLanguages) {
    const Instance instance = instance_of(language);
    lattice::LintOptions options;
    for (const auto& [name, value] : instance.program().problem) options.known_names.push_back(name);
    for (const std::string& name : device_fact_names()) options.known_names.push_back(name);
    options.facts = instance.facts();
    for (const lattice::Finding& finding : lattice::lint(instance.lattice(), options))
      ADD_FAILURE() << language << ": " << finding.where << ": " << finding.what;
  }
}

// All valid points, not only the catalogue's: each plans, and no two are the same text, options, defines and
// launch.
TEST(LotteryLattice, EveryPointPlansAndDiffers) {
  for (const std::string_view language : kLanguages) {
    const Instance instance = instance_of(language);
    const auto points = instance.select("all");
    ASSERT_TRUE(points) << points.error().text();
    EXPECT_GE(points->size(), instance.lattice().catalogue.size());
    std::map<std::string, std::string> seen;
    const auto inputs = instance.timed_inputs(1, *points);
    ASSERT_TRUE(inputs) << inputs.error().text();
    for (const lattice::Point& point : *points) {
      const auto plan = instance.plan(point);
      ASSERT_TRUE(plan) << plan.error().text();
      const auto launches = instance.launches(point, *inputs);
      ASSERT_TRUE(launches) << launches.error().text();
      ASSERT_EQ(launches->size(), 1u);
      const auto& launch = launches->front();
      EXPECT_GE(launch.grid[0] * launch.block[0], 16384u);
      const std::string key = plan->source_hash.hex() + fmt::format("/{}", launch.block[0]);
      const auto [at, fresh] = seen.emplace(key, plan->name);
      EXPECT_TRUE(fresh) << plan->name << " is the same as " << at->second;
    }
  }
}

TEST(LotteryLattice, BaseIsThePacksText) {
  constexpr std::array<std::string_view, 4> files = {"lottery.cu", "lottery.cl", "lottery.cpp",
                                                     "lottery.metal"};
  for (std::size_t i = 0; i < kLanguages.size(); ++i) {
    const Instance instance = instance_of(kLanguages[i]);
    EXPECT_EQ(instance.plan(instance.lattice().base())->source,
              demonstration_pack().files.at(std::string(files[i])));
  }
}

TEST(LotteryLattice, WhatExcludesEachOther) {
  const auto refused = [](std::string_view language, std::string_view variant) {
    const auto points = instance_of(language).select(variant);
    EXPECT_FALSE(points) << variant;
    return points ? std::string() : points.error().text();
  };
  EXPECT_NE(refused("cuda", "lb4").find("blocks of 128 threads"), std::string::npos);
  EXPECT_NE(refused("cuda", "lb8-w4").find("blocks of 64 threads"), std::string::npos);
  EXPECT_NE(refused("cuda", "r32-lb4-w4").find("ignores a register cap"), std::string::npos);
  EXPECT_NE(refused("metal", "mt128").find("mt"), std::string::npos);
}

// A pack whose text lacks an anchor still races, without the variants that need it.
TEST(LotteryLattice, ATextWithoutTheAnchorRefusesTheVariantByName) {
  PackContents pack = demonstration_pack();
  std::string& text = pack.files["lottery.cu"];
  const std::string_view hint = "#pragma unroll 1\n";
  text.replace(text.find(hint), hint.size(), "");
  const auto program = program_of_pack(pack, "folder");
  ASSERT_TRUE(program) << program.error().text();
  const auto instance = Instance::make(*program, "cuda", {}, {});
  ASSERT_TRUE(instance);
  const auto points = instance->select("u2,ldg");
  ASSERT_TRUE(points) << points.error().text();
  EXPECT_TRUE(instance->plan((*points)[0]));
  const auto plan = instance->plan((*points)[1]);
  ASSERT_FALSE(plan);
  EXPECT_NE(plan.error().text().find("u2: anchor not found"), std::string::npos) << plan.error().text();
  EXPECT_TRUE(instance->plan((*points)[2]));
}

}  // namespace
}  // namespace furlong::program::lottery
