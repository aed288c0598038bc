#include "furlong/program/linear/linear.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "furlong/base/random.h"

namespace furlong::program::linear {
namespace {

using Values = std::map<std::string, lattice::Value, std::less<>>;

lattice::Lookup lookup(Values values) {
  return [values = std::move(values)](std::string_view name) -> std::optional<lattice::Value> {
    const auto found = values.find(name);
    if (found == values.end()) return std::nullopt;
    return found->second;
  };
}

lattice::Lookup card(int sm, std::int64_t memory_mib, std::int64_t multiprocessors) {
  return lookup({{"device.sm", sm},
                 {"device.vendor", "NVIDIA"},
                 {"device.memory_mib", memory_mib},
                 {"device.multiprocessors", multiprocessors},
                 {"device.shared_bytes", 100'000}});
}

Values gemv(std::int64_t n, std::int64_t k, std::int64_t batch) {
  return {{"n", n}, {"k", k}, {"batch", batch}, {"copies", 1}, {"chip", "h200"}};
}

Values gemm(std::int64_t side, std::string_view precision, std::string_view chip) {
  return {{"m", side},
          {"n", side},
          {"k", side},
          {"operand_max", 45},
          {"chip", std::string(chip)},
          {"precision", std::string(precision)}};
}

Values with(Values values, const std::string& name, lattice::Value value) {
  values[name] = std::move(value);
  return values;
}

std::string message(const auto& result) { return result ? "no error" : result.error().text(); }

TEST(LinearChips, EachRowIsItsOwnAndSaysWhereItIsFrom) {
  std::set<std::string> names;
  for (const Chip& chip : chips()) {
    EXPECT_TRUE(names.insert(chip.name).second) << chip.name;
    EXPECT_EQ(chip.arch, fmt::format("sm_{}", chip.sm));
    EXPECT_GT(chip.source.size(), 20u) << chip.name;
    EXPECT_GE(chip.shared_optin_bytes, chip.shared_bytes) << chip.name;
    EXPECT_GT(chip.multiprocessors, 0);
    EXPECT_GT(chip.memory_rate, 1e11);
    EXPECT_TRUE(chip.has.dp4a && chip.has.int8_mma && chip.has.fp16_mma) << chip.name;
    EXPECT_EQ(chip.has.bf16_mma, chip.sm >= 80) << chip.name;
    EXPECT_EQ(chip.has.warp_groups, chip.sm == 90) << chip.name;
    EXPECT_EQ(chip.has.nvfp4_mma, chip.sm >= 100) << chip.name;
  }
  for (const char* name : {"rtx3060", "a100", "rtx4090", "h100", "h200", "b200", "rtx5090"})
    EXPECT_TRUE(names.contains(name)) << name;
}

TEST(LinearChips, AnUnknownNameNamesTheNearest) {
  EXPECT_NE(message(find_chip("rtx3600")).find("rtx3060"), std::string::npos);
  const auto resolved = resolve_chip("h20", card(90, 143'000, 132));
  ASSERT_FALSE(resolved);
  EXPECT_EQ(resolved.error().code(), Code::invalid);
  EXPECT_NE(resolved.error().text().find("h200"), std::string::npos);
}

TEST(LinearChips, ThePresentOneIsTheNearestOfItsArchitecture) {
  EXPECT_EQ(resolve_chip("present", card(90, 143'000, 132))->name, "h200");
  EXPECT_EQ(resolve_chip("present", card(90, 81'000, 132))->name, "h100");
  EXPECT_EQ(resolve_chip("present", card(86, 12'000, 28))->name, "rtx3060");
  EXPECT_EQ(resolve_chip("present", lookup({}))->name, "rtx3060") << "without a card";
  const auto other = resolve_chip("present", card(103, 280'000, 160));
  ASSERT_TRUE(other);
  EXPECT_EQ(other->name, "sm_103");
  EXPECT_EQ(other->multiprocessors, 160);
  EXPECT_TRUE(other->has.bf16_mma);
  EXPECT_FALSE(other->has.warp_groups);
}

// What runs here is raced for what is here: another chip's text would be recorded as this one's.
TEST(LinearChips, ATextForAnotherArchitectureIsNotForThisCard) {
  EXPECT_TRUE(resolve_chip("h100", card(90, 143'000, 132)));
  for (const char* other : {"b200", "rtx3060", "t4"}) {
    const auto refused = resolve_chip(other, card(90, 143'000, 132));
    ASSERT_FALSE(refused) << other;
    EXPECT_EQ(refused.error().code(), Code::invalid);
    EXPECT_NE(refused.error().text().find("sm_90"), std::string::npos) << refused.error().text();
  }
}

TEST(LinearPrecision, AutoIsAlwaysThePlainOneAndSaysSo) {
  for (const Chip& chip : chips()) {
    const auto whole = resolve_precision("auto", false, chip, 4096, 4096, 4096);
    ASSERT_TRUE(whole);
    EXPECT_EQ(whole->precision, Precision::int64);
    EXPECT_EQ(whole->note, "precision auto is int64");
    EXPECT_FALSE(whole->fallback);
    EXPECT_EQ(resolve_precision("auto", true, chip, 4096, 4096, 4096)->precision, Precision::f32);
  }
}

TEST(LinearPrecision, WhatIsNamedIsTakenOrFallsBackAndSaysWhy) {
  const Chip h200 = **find_chip("h200"), t4 = **find_chip("t4");
  EXPECT_EQ(resolve_precision("bf16_hmma", false, h200, 64, 64, 64)->precision, Precision::bf16_hmma);
  const auto old = resolve_precision("bf16_hmma", false, t4, 64, 64, 64);
  ASSERT_TRUE(old);
  EXPECT_EQ(old->precision, Precision::int64);
  EXPECT_TRUE(old->fallback);
  EXPECT_NE(old->note.find("t4 (sm_75)"), std::string::npos);
  for (const auto& [m, n, k] :
       {std::array<std::int64_t, 3>{17, 64, 64}, {64, 17, 64}, {64, 64, 17}, {1, 1, 1}}) {
    const auto ragged = resolve_precision("int8_imma", false, h200, m, n, k);
    ASSERT_TRUE(ragged);
    EXPECT_EQ(ragged->precision, Precision::int64);
    EXPECT_TRUE(ragged->fallback);
    EXPECT_NE(ragged->note.find("int64 is used"), std::string::npos) << ragged->note;
  }
  EXPECT_NE(message(resolve_precision("bf16", false, h200, 64, 64, 64)).find("bf16_hmma"), std::string::npos);
  EXPECT_FALSE(resolve_precision("int8_imma", true, h200, 64, 64, 64)) << "real numbers are not int8";
}

TEST(LinearPrecision, OneMapSaysWhatIsMultiplied) {
  EXPECT_EQ(operands_of(Precision::int64), Operands::int64);
  EXPECT_EQ(operands_of(Precision::int8_dp4a), Operands::int8);
  EXPECT_EQ(operands_of(Precision::int8_imma), Operands::int8);
  EXPECT_EQ(operands_of(Precision::bf16_hmma), Operands::bf16);
  EXPECT_EQ(operands_of(Precision::fp16_hmma), Operands::fp16);
  EXPECT_EQ(operands_of(Precision::f32), Operands::f32);
}

// 127 * 127 * 133,144 is the last sum under 2^31: one more k is refused, and the message says the largest.
TEST(LinearPrecision, SumsThatDoNotFitAreRefusedWithTheLargestK) {
  EXPECT_TRUE(check_sums(Operands::int8, 127, 133'144));
  const auto over = check_sums(Operands::int8, 127, 133'145);
  ASSERT_FALSE(over);
  EXPECT_NE(over.error().text().find("at most 133144"), std::string::npos) << over.error().text();
  EXPECT_TRUE(check_sums(Operands::int8, 128, 131'071));
  EXPECT_FALSE(check_sums(Operands::int8, 128, 131'072));
  EXPECT_FALSE(check_sums(Operands::int8, 129, 1));
  EXPECT_TRUE(check_sums(Operands::bf16, 45, 8192));
  EXPECT_FALSE(check_sums(Operands::bf16, 46, 8192));
  EXPECT_FALSE(check_sums(Operands::bf16, 257, 1));
  EXPECT_TRUE(check_sums(Operands::fp16, 2048, 4));
  EXPECT_FALSE(check_sums(Operands::fp16, 2049, 1));
  EXPECT_TRUE(check_sums(Operands::int64, std::numeric_limits<std::int64_t>::max(), largest_side));
  EXPECT_TRUE(check_sums(Operands::int8, 0, largest_side));
}

TEST(LinearPrecision, OperandsThatDoNotFitAreNamed) {
  const std::vector<std::int64_t> ends{127, -128, 0};
  EXPECT_TRUE(check_operands(Operands::int8, ends));
  const std::vector<std::int64_t> over{1, 128};
  const auto refused = check_operands(Operands::int8, over);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().text().find("operand 1 is 128"), std::string::npos) << refused.error().text();
  const std::vector<std::int64_t> least{std::numeric_limits<std::int64_t>::min()};
  EXPECT_FALSE(check_operands(Operands::int8, least));
  EXPECT_FALSE(check_operands(Operands::fp16, least));
  EXPECT_TRUE(check_operands(Operands::int64, least));
}

TEST(LinearEmitters, TheSameNamesGiveTheSameBytes) {
  for (const auto& [emitter, values] : {std::pair{make_gemv_emitter(), gemv(4096, 4096, 8)},
                                        {make_gemm_emitter(), gemm(1024, "bf16_hmma", "h200")}}) {
    const auto first = emitter->emit(lookup(values)), again = emitter->emit(lookup(values));
    ASSERT_TRUE(first) << message(first);
    EXPECT_EQ(first->source, again->source);
    EXPECT_EQ(first->launches.size(), again->launches.size());
    EXPECT_TRUE(first->launches.front().once);
  }
}

TEST(LinearEmitters, ShapesThatCannotBeAreNamed) {
  const auto emitter = make_gemv_emitter();
  for (const auto& [name, value] : {std::pair<const char*, std::int64_t>{"n", 0},
                                    {"k", 0},
                                    {"batch", 0},
                                    {"batch", 9},
                                    {"n", -1},
                                    {"n", largest_side + 1},
                                    {"k", largest_side}}) {
    const auto made = emitter->emit(lookup(with(gemv(64, 64, 1), name, value)));
    ASSERT_FALSE(made) << name << " " << value;
    EXPECT_EQ(made.error().code(), Code::invalid);
    EXPECT_EQ(made.error().text().find(fmt::format("{} is {}", name, value)), 0u) << made.error().text();
  }
  EXPECT_TRUE(emitter->emit(lookup(gemv(1, 1, 1))));
  EXPECT_TRUE(emitter->emit(lookup(gemv(7919, 104'729, 8)))) << "primes";
  EXPECT_TRUE(emitter->emit(lookup(gemv(1 << 20, 1 << 14, 1)))) << "2^34 elements";
  const auto missing = emitter->emit(lookup({{"k", 1}, {"batch", 1}, {"copies", 1}}));
  EXPECT_NE(message(missing).find("'n'"), std::string::npos);
  EXPECT_FALSE(emitter->emit(lookup(with(gemv(64, 64, 1), "chip", "gtx1"))));
}

TEST(LinearEmitters, KnobsOutOfTheirValuesAreNamed) {
  const auto emitter = make_gemv_emitter();
  for (const auto& [name, value] : {std::pair<const char*, lattice::Value>{"dot", "fma"},
                                    {"gemv_load", "short2"},
                                    {"activations", "int4"},
                                    {"warps", 0},
                                    {"warps", 33},
                                    {"rows", 9},
                                    {"unroll", 0},
                                    {"split_k", 257}}) {
    const auto made = emitter->emit(lookup(with(gemv(64, 64, 1), name, value)));
    ASSERT_FALSE(made) << name;
    EXPECT_NE(made.error().text().find(name), std::string::npos) << made.error().text();
  }
  EXPECT_FALSE(emitter->emit(lookup(with(with(gemv(64, 64, 1), "dot", "imma"), "activations", "dequant"))));
}

TEST(LinearEmitters, ALaunchOfTooManyBlocksIsRefused) {
  Values large = gemm(64, "auto", "h200");
  large["m"] = large["n"] = std::int64_t{1} << 23;
  const auto made = make_gemm_emitter()->emit(lookup(large));
  ASSERT_FALSE(made);
  EXPECT_NE(made.error().text().find("blocks"), std::string::npos) << made.error().text();
}

TEST(LinearEmitters, TheKernelFollowsShapeAndChip) {
  const auto emitter = make_gemm_emitter();
  const auto entry = [&](Values values) {
    const auto made = emitter->emit(lookup(std::move(values)));
    return made ? made->launches.back().entry : message(made);
  };
  EXPECT_EQ(entry(gemm(1024, "auto", "h200")), "gemm_plain");
  EXPECT_EQ(entry(gemm(1024, "int8_dp4a", "h200")), "gemm_dp4a");
  EXPECT_EQ(entry(gemm(1024, "int8_imma", "h200")), "gemm_block");
  EXPECT_EQ(entry(with(gemm(1024, "int8_imma", "h200"), "pipeline", "basic")), "gemm_warp");
  EXPECT_EQ(entry(with(gemm(1024, "int8_imma", "h200"), "pipeline", "group")), "gemm_group");
  for (const auto& values : {with(gemm(1024, "int8_imma", "b200"), "pipeline", "group"),
                             gemm(1040, "int8_imma", "h200"), gemm(1024, "int8_imma", "t4")}) {
    const auto made = emitter->emit(lookup(values));
    ASSERT_TRUE(made) << message(made);
    EXPECT_EQ(made->launches.back().entry, "gemm_warp");
    EXPECT_TRUE(made->fallback);
    ASSERT_EQ(made->notes.size(), 1u);
    EXPECT_NE(made->notes[0].find("the basic kernel is used"), std::string::npos) << made->notes[0];
  }
  const auto group = emitter->emit(lookup(with(gemm(1024, "int8_imma", "h200"), "pipeline", "group")));
  ASSERT_TRUE(group);
  EXPECT_EQ(group->options, std::vector<std::string>{"--gpu-architecture=sm_90a"});
  EXPECT_EQ(group->launches.back().shared_bytes, 4u * (128 + 128) * 128 + 1024);
}

// Who names a chip is told what it lacks; on the card at hand another kernel serves, and a note says so.
TEST(LinearEmitters, APrecisionThatANamedChipLacksIsAnError) {
  const auto named = make_gemm_emitter()->emit(lookup(gemm(1024, "bf16_hmma", "t4")));
  ASSERT_FALSE(named);
  EXPECT_EQ(named.error().code(), Code::invalid);
  EXPECT_EQ(named.error().text(),
            "t4 (sm_75) has no instruction for bf16_hmma: name another precision or chip");
  Values present = gemm(1024, "bf16_hmma", "present");
  for (const auto& [name, value] : {std::pair<const char*, lattice::Value>{"device.sm", 75},
                                    {"device.vendor", "NVIDIA"},
                                    {"device.memory_mib", 15'000},
                                    {"device.multiprocessors", 40}})
    present[name] = value;
  const auto fallen = make_gemm_emitter()->emit(lookup(present));
  ASSERT_TRUE(fallen) << message(fallen);
  EXPECT_TRUE(fallen->fallback);
  EXPECT_EQ(fallen->launches.back().entry, "gemm_plain");
}

TEST(LinearEmitters, SumsThatOverflowAreRefusedBeforeAnyText) {
  const auto made = make_gemm_emitter()->emit(
      lookup(with(with(gemm(1024, "int8_imma", "h200"), "operand_max", 128), "k", 131'072)));
  ASSERT_FALSE(made);
  EXPECT_NE(made.error().text().find("131071"), std::string::npos) << made.error().text();
}

// Whatever the names hold, the answer is a text with launches of known entries and positive sides, or an
// error.
TEST(LinearEmitters, AnyNamesGiveATextOrAnError) {
  Random random(7);
  const std::vector<std::string> words{"dp4a",      "imma",  "int4",  "char4", "dequant", "int8",     "auto",
                                       "bf16_hmma", "group", "basic", "h200",  "t4",      "nonsense", ""};
  const std::vector<std::string> names{
      "n",       "k",    "m",      "batch", "copies",    "operand_max", "warps",     "rows",     "unroll",
      "split_k", "tile", "stages", "dot",   "gemv_load", "activations", "precision", "pipeline", "chip"};
  int texts = 0;
  for (int round = 0; round < 4000; ++round) {
    Values values = round % 2 == 0 ? gemv(64, 64, 1) : gemm(128, "int8_imma", "h200");
    for (int change = 0; change < 3; ++change) {
      const std::string& name = names[random.below(names.size())];
      if (random.below(2) == 0)
        values[name] = words[random.below(words.size())];
      else
        values[name] =
            random.between(-2, 300) * (random.below(8) == 0 ? std::int64_t{1} << random.below(55) : 1);
    }
    const auto emitter = round % 2 == 0 ? make_gemv_emitter() : make_gemm_emitter();
    const auto made = emitter->emit(lookup(values));
    if (!made) {
      EXPECT_EQ(made.error().code(), Code::invalid) << made.error().text();
      continue;
    }
    ++texts;
    for (const EmittedLaunch& launch : made->launches) {
      EXPECT_NE(made->source.find(" " + launch.entry + "("), std::string::npos) << launch.entry;
      EXPECT_GE(launch.grid[0], 1u);
      EXPECT_LE(launch.block[0], 1024u);
    }
  }
  EXPECT_GT(texts, 400);
}

}  // namespace
}  // namespace furlong::program::linear
