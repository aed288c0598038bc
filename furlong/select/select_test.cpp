#include "furlong/select/select.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <thread>

#include "furlong/base/os/file.h"
#include "furlong/base/random.h"

namespace furlong {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr const char* kProgram = R"toml(
format = 1
[program]
name = "mix"
[source.cuda]
text = "__global__ void mix(unsigned* x) {}"
entry = "mix"
[source.host]
text = "void mix(const furlong_block&, unsigned* x) {}"
entry = "mix"
[problem]
n = 1024
mode = "a"
[launch]
grid = 1
block = 1
[[argument]]
name = "x"
type = "u32"
size = "n"
direction = "out"
[[knob]]
name = "U"
values = [1, 2, 4, 8]
tags = ["", "u2", "u4", "u8"]
wins = "w"
loses = "l"
[[knob]]
name = "HALF"
values = [false, true]
tags = ["", "half"]
lossy = [true]
wins = "w"
loses = "l"
[[constraint]]
expression = "U * 8192 <= device.shared_bytes"
)toml";

std::shared_ptr<const program::Program> program_of(std::string text) {
  FakeFiles files;
  auto made = program::parse_program(text, "mix.toml", "", files);
  EXPECT_TRUE(made) << made.error().text();
  return *made;
}
std::shared_ptr<const program::Program> mix() {
  static const auto program = program_of(kProgram);
  return program;
}
std::shared_ptr<const program::Program> mix_with_class() {
  static const auto program = program_of(std::string(kProgram) + "[class]\nn = \"n\"\n");
  return program;
}

device::Facts card(std::string label = "H200", int multiprocessors = 132, std::uint64_t gib = 140) {
  device::Facts facts;
  facts.backend = "cuda";
  facts.label = std::move(label);
  facts.silicon = {"NVIDIA", "sm_90", multiprocessors, gib << 30, 3201};
  facts.driver = "580.95";
  facts.languages = {device::Language::cuda};
  facts.max_threads_per_block = 1024;
  facts.max_shared_bytes = 65536;
  facts.warp = 32;
  return facts;
}

/// A tuning's card of this silicon with no rows yet.
record::TuningCard entry_of(const device::Facts& facts) {
  return {.key = facts.label,
          .silicon = record::Silicon{facts.silicon.vendor, facts.silicon.arch, facts.silicon.multiprocessors,
                                     facts.silicon.memory_bytes, facts.silicon.memory_clock_mhz,
                                     facts.silicon.hash(), ""},
          .aliases = {},
          .rows = {},
          .extra = {}};
}

record::TuningSize size(std::int64_t n, std::string variant,
                        std::vector<std::pair<std::string, double>> gains = {}) {
  return {.problem = {{"n", n}, {"mode", "a"}},
          .variant = std::move(variant),
          .rate = {},
          .base_rate = {},
          .gains_pct = std::move(gains),
          .extra = {}};
}

record::TuningRow row(std::vector<record::TuningSize> sizes, std::string variant = "") {
  record::TuningRow made;
  made.program = "mix";
  made.variant = std::move(variant);
  made.backend = "cuda";
  made.sizes = std::move(sizes);
  return made;
}

record::Tuning tuning(std::vector<std::pair<device::Facts, record::TuningRow>> rows) {
  record::Tuning made;
  for (auto& [facts, one] : rows) {
    made.cards.push_back(entry_of(facts));
    made.cards.back().rows.push_back(std::move(one));
  }
  return made;
}

Selection chosen(const record::Tuning& from, std::int64_t n = 1024, const device::Facts& facts = card(),
                 const SelectOptions& options = {}, std::shared_ptr<const program::Program> program = mix()) {
  auto made = select(std::move(program), facts, {{"n", n}}, from, options);
  EXPECT_TRUE(made) << made.error().text();
  return *std::move(made);
}

std::string refused(const record::Tuning& from, const SelectOptions& options = {},
                    const std::vector<std::pair<std::string, lattice::Value>>& problem = {}) {
  const auto made = select(mix(), card(), problem, from, options);
  return made ? "chosen: " + made->how
              : std::string(code_name(made.error().code())) + ": " + made.error().text();
}

TEST(Select, TheVeryCaseIsExactAndLosesNothing) {
  const auto from = tuning({{card(), row({size(1024, "u2", {{"u2", 3}, {"u4", -1}}), size(4096, "u4")})}});
  const Selection s = chosen(from);
  EXPECT_EQ(s.variant, "u2");
  EXPECT_EQ(s.fit(), "exact");
  EXPECT_EQ(s.card, CardFit::own);
  EXPECT_EQ(s.size, SizeFit::exact);
  EXPECT_EQ(s.measured_on, "H200");
  EXPECT_EQ(record::class_text(s.measured_at), "n=1024,mode=a");
  EXPECT_DOUBLE_EQ(*s.measured_gain, 0.03);
  EXPECT_EQ(s.expected_loss, 0);
  EXPECT_EQ(s.how, "u2 won on this card (H200), at n=1024,mode=a; nothing to lose by what was measured");
  EXPECT_THAT(s.notes, IsEmpty());
  const auto plan = s.instance.plan(s.point);
  ASSERT_TRUE(plan) << plan.error().text();
  EXPECT_EQ(plan->name, "u2");
  EXPECT_EQ(s.instance.edition().language, "cuda");
}

TEST(Select, BaseThatWasNotBeatenIsAChoiceAndNoFallback) {
  const Selection s = chosen(tuning({{card(), row({size(1024, "base", {{"u2", -3}})})}}));
  EXPECT_EQ(s.fit(), "exact");
  EXPECT_EQ(s.measured_gain, 0);
  EXPECT_EQ(
      s.how,
      "base was not beaten on this card (H200), at n=1024,mode=a; nothing to lose by what was measured");
}

// Between n = 1024, where u2 wins, and n = 16384, where it is 1.02/1.10 of the winner.
TEST(Select, NearestSizeByRatioLosesItsShareOfTheWay) {
  const auto from =
      tuning({{card(),
               row({size(1024, "u2", {{"u2", 4}, {"u4", 1}}), size(16384, "u4", {{"u2", 2}, {"u4", 10}})})}});
  const double whole = 1 - 1.02 / 1.10;
  const Selection near = chosen(from, 2048);
  EXPECT_EQ(near.variant, "u2");
  EXPECT_EQ(near.fit(), "nearest size");
  EXPECT_NEAR(*near.expected_loss, whole / 4, 1e-12);
  EXPECT_EQ(near.how,
            "u2 won on this card (H200), at n=1024,mode=a, the nearest of 2 measured sizes to n=2048,mode=a; "
            "expected to lose 1.8% "
            "of what a race here would find");
  EXPECT_EQ(chosen(from, 4095).variant, "u2");
  EXPECT_EQ(chosen(from, 4097).variant, "u4") << "the middle is the geometric one";
  const Selection beyond = chosen(from, 2);  // far outside of what was measured: the whole difference
  EXPECT_EQ(beyond.variant, "u2");
  EXPECT_NEAR(*beyond.expected_loss, whole, 1e-12);
}

TEST(Select, OneSizeAloneDoesNotTellWhatAnotherLoses) {
  const Selection s = chosen(tuning({{card(), row({size(1024, "u2", {{"u2", 4}})})}}), 4096);
  EXPECT_EQ(s.variant, "u2");
  EXPECT_EQ(s.fit(), "nearest size");
  EXPECT_EQ(s.expected_loss, std::nullopt);
  EXPECT_THAT(s.how, HasSubstr("the only measured size"));
  EXPECT_THAT(s.how, HasSubstr("not known before a race here"));
}

TEST(Select, EqualWordsBeforeNearNumbers) {
  auto sizes = std::vector{size(1024, "u2", {{"u2", 1}}), size(1 << 20, "u4", {{"u4", 1}})};
  sizes[0].problem[1].second = "b";
  const Selection s = chosen(tuning({{card(), row(sizes)}}));
  EXPECT_EQ(s.variant, "u4");
  EXPECT_EQ(s.expected_loss, std::nullopt) << "a size of another mode tells nothing of this one";
}

TEST(Select, ARowWithoutSizesHoldsForEverySize) {
  auto fleet = row({}, "u2");
  fleet.gain_pct = 2.5;
  fleet.candidates = {"u2", "u4", "base"};
  Selection s = chosen(tuning({{card(), fleet}}), 77);
  EXPECT_EQ(s.variant, "u2");
  EXPECT_EQ(s.size, SizeFit::every);
  EXPECT_EQ(s.fit(), "exact");
  EXPECT_DOUBLE_EQ(*s.measured_gain, 0.025);
  EXPECT_EQ(s.expected_loss, 0);
  fleet.variant = "gone";
  s = chosen(tuning({{card(), fleet}}), 77);
  EXPECT_EQ(s.variant, "u2") << "the best candidate that there is";
  EXPECT_EQ(s.expected_loss, 0.01);
  EXPECT_THAT(s.notes, ElementsAre(HasSubstr("gone of H200 is passed over")));
}

TEST(Select, TheNearestCardOfTheArchitectureThenOfTheVendor) {
  auto other = card("B200", 148, 180);
  other.silicon.arch = "sm_100";
  const auto gains = [](double u2, double u4) {
    return std::vector<std::pair<std::string, double>>{{"u2", u2}, {"u4", u4}};
  };
  auto from = tuning({{card("H100_half", 66, 40), row({size(1024, "u2", gains(5, 2))})},
                      {card("H100", 130, 80), row({size(1024, "u4", gains(1, 4))})},
                      {other, row({size(1024, "u8", {{"u4", 2}, {"u8", 5}})})}});
  const Selection s = chosen(from);
  EXPECT_EQ(s.variant, "u4");
  EXPECT_EQ(s.fit(), "nearest card");
  EXPECT_EQ(s.card, CardFit::same_architecture);
  EXPECT_EQ(s.measured_on, "H100");
  // u4 is 1.02/1.05 of the winner on both other cards of the vendor.
  EXPECT_NEAR(*s.expected_loss, 1 - 1.02 / 1.05, 1e-12);
  EXPECT_EQ(s.how,
            "u4 won on H100, the nearest measured card of architecture sm_90, at n=1024,mode=a; expected to "
            "lose 2.9% of what a race "
            "here would find");
  from.cards.erase(from.cards.begin(), from.cards.begin() + 2);
  const Selection far = chosen(from, 2048);
  EXPECT_EQ(far.variant, "u8");
  EXPECT_EQ(far.card, CardFit::same_vendor);
  EXPECT_EQ(far.fit(), "nearest card and size");
  EXPECT_EQ(far.expected_loss, std::nullopt) << "one card tells nothing of another";
  EXPECT_THAT(far.how, HasSubstr("on B200, the nearest measured card of NVIDIA"));
}

TEST(Select, ACardWhoseFiguresAreUnknownIsTheLastOfItsKind) {
  auto from = tuning(
      {{card("Bare", 0, 0), row({size(1024, "u2")})}, {card("Small", 20, 8), row({size(1024, "u4")})}});
  EXPECT_EQ(chosen(from).measured_on, "Small");
}

TEST(Select, ARenamedCardIsItsSiliconAndATwinNameIsNot) {
  auto from = tuning({{card("Old_name"), row({size(1024, "u4")})}});
  EXPECT_EQ(chosen(from).card, CardFit::own);
  from = tuning({{card("H200", 64), row({size(1024, "u4")})}});
  EXPECT_EQ(chosen(from).card, CardFit::same_architecture) << "the name alone, with other silicon";
}

TEST(Select, AnotherVendorAnEmptyTuningAndAnotherBackEndAreBase) {
  auto other = card("MI300");
  other.silicon.vendor = "AMD";
  Selection s = chosen(tuning({{other, row({size(1024, "u4")})}}));
  EXPECT_EQ(s.variant, "base");
  EXPECT_EQ(s.fit(), "base");
  EXPECT_EQ(s.expected_loss, std::nullopt);
  EXPECT_EQ(s.how,
            "base: the tuning has no card of this vendor and back end; what it loses here is not known "
            "before a race here");
  EXPECT_EQ(chosen({}).fit(), "base");
  auto of_opencl = row({size(1024, "u4")});
  of_opencl.backend = "opencl";
  s = chosen(tuning({{card(), of_opencl}}));
  EXPECT_EQ(s.fit(), "base");
  EXPECT_THAT(s.notes, ElementsAre("the row of H200 is of back end opencl, this is cuda"));
}

TEST(Select, ATuningOfAnotherProgramIsInvalidWithTheNames) {
  auto wrong = row({size(1024, "u4")});
  wrong.program = "mixx";
  auto from = tuning({{card(), wrong}});
  EXPECT_EQ(refused(from),
            "invalid: the tuning is of program 'mixx' and has nothing for 'mix', did you mean 'mixx'?");
  wrong.program = "gemv";
  from.cards[0].rows.push_back(wrong);
  EXPECT_EQ(refused(from, {.tuning_name = "t.json"}),
            "invalid: t.json is of programs 'gemv', 'mixx' and has nothing for 'mix', did you mean 'mixx'?");
}

TEST(Select, MistakesOfTheCallerAreNamed) {
  const auto from = tuning({{card(), row({size(1024, "u4")})}});
  EXPECT_THAT(refused(from, {.language = "opencl"}), HasSubstr("no source in language 'opencl'"));
  EXPECT_THAT(refused(from, {}, {{"m", 5}}), HasSubstr("'m'"));
  auto small = card();
  small.max_shared_bytes = 100;
  const auto made = select(mix(), small, {}, from);
  ASSERT_FALSE(made);
  EXPECT_THAT(made.error().text(),
              HasSubstr("base of program 'mix' is not valid on this problem and device"));
  auto opencl = card();
  opencl.languages = {device::Language::opencl};
  const auto none = select(mix(), opencl, {}, from);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().text(), "program 'mix' is written in cuda, host; device cuda:0 runs opencl");
}

TEST(Select, WhatCannotRunHereGivesWayToTheNextBest) {
  auto small = card();
  small.max_shared_bytes = 4 * 8192;
  const auto from = tuning(
      {{small, row({size(1024, "u8", {{"u8", 9}, {"u4", 6}, {"u2", 7}, {"gone", 8}}), size(4096, "u4")})}});
  const Selection s = chosen(from, 1024, small);
  EXPECT_EQ(s.variant, "u2");
  EXPECT_EQ(s.fit(), "exact");
  EXPECT_NEAR(*s.expected_loss, 1 - 1.07 / 1.09, 1e-12);
  EXPECT_THAT(s.how, HasSubstr("u2 was the best that can run here of those raced on this card"));
  ASSERT_EQ(s.notes.size(), 2u);
  EXPECT_THAT(s.notes[0], HasSubstr("u8 of H200 is passed over: it is not valid here"));
  EXPECT_THAT(s.notes[1], HasSubstr("gone of H200 is passed over"));
  const Selection next =
      chosen(tuning({{small, row({size(1024, "u8", {{"u4", -1}}), size(4096, "u4")})}}), 1024, small);
  EXPECT_EQ(next.variant, "u4") << "the next size's winner";
  EXPECT_EQ(next.fit(), "nearest size");
}

TEST(Select, PrecisionIsLoweredOnlyWhereAllowed) {
  const auto from = tuning({{card(), row({size(1024, "half", {{"half", 40}})})}});
  const Selection s = chosen(from);
  EXPECT_EQ(s.fit(), "base");
  EXPECT_THAT(s.notes, ElementsAre("half of H200 is passed over: it lowers precision by knob 'HALF'"));
  EXPECT_THAT(s.how, HasSubstr("names no variant that can run here"));
  EXPECT_EQ(chosen(from, 1024, card(), {.allow = {"HALF"}}).variant, "half");
}

TEST(Select, RowsOfOtherNamesSuchAsAllAreNoVariants) {
  for (const char* name : {"all", "catalogue", "u2,u4", "", "base-u2"}) {
    auto one = row({}, name);
    one.candidates = {"u4"};
    EXPECT_EQ(chosen(tuning({{card(), one}})).variant, "u4") << name;
  }
}

TEST(Select, AnOlderDriverThanTheRowNeedsPassesItOver) {
  auto newer = row({size(1024, "u4")});
  newer.min_driver = "590.1";
  const Selection s = chosen(tuning({{card(), newer}}));
  EXPECT_EQ(s.variant, "base");
  EXPECT_THAT(s.notes, ElementsAre("the row of H200 needs driver 590.1, this is 580.95"));
}

TEST(Select, AnotherTextOfTheProgramIsSaid) {
  auto one = row({size(1024, "u4")});
  one.source = mix()->source_hash().hex();
  EXPECT_THAT(chosen(tuning({{card(), one}})).notes, IsEmpty());
  one.source[0] = one.source[0] == '0' ? '1' : '0';
  EXPECT_THAT(chosen(tuning({{card(), one}})).notes,
              ElementsAre("the row of H200 was raced with another text of mix"));
}

TEST(Select, TheClassOfTheProgramComesBeforeTheGeneralRow) {
  record::Tuning from;
  from.cards.push_back(entry_of(card()));
  from.cards[0].rows = {row({}, "u2"), row({}, "u4"), row({}, "u8")};
  from.cards[0].rows[1].program_class = {{"n", 1024}};
  from.cards[0].rows[2].program_class = {{"n", 4096}};
  const auto of = [&](std::int64_t n) { return chosen(from, n, card(), {}, mix_with_class()); };
  EXPECT_EQ(of(1024).variant, "u4");
  EXPECT_EQ(of(1024).size, SizeFit::exact);
  EXPECT_EQ(of(4096).variant, "u8");
  EXPECT_EQ(of(3000).variant, "u2") << "a row without a class holds for every class";
  from.cards[0].rows.erase(from.cards[0].rows.begin());
  const Selection s = of(3000);
  EXPECT_EQ(s.variant, "u8");
  EXPECT_EQ(s.size, SizeFit::nearest);
  EXPECT_EQ(s.expected_loss, std::nullopt);
  EXPECT_THAT(s.how, HasSubstr("for the nearest class, n=4096"));
}

// --- random tunings against a plain search

const std::vector<std::string> kNames{"base", "u2", "u4", "u8", "gone"};

record::TuningSize random_size(Random& random, std::int64_t n) {
  record::TuningSize made = size(n, kNames[random.below(kNames.size())]);
  made.problem[1].second = random.below(3) == 0 ? "b" : "a";
  for (std::size_t i = 1; i < kNames.size(); ++i)
    if (random.below(4) != 0) made.gains_pct.emplace_back(kNames[i], random.uniform() * 10 - 5);
  for (const auto& [name, gain] : made.gains_pct)  // the winner is the best of those timed, as a race says it
    for (const auto& [winner, best] : made.gains_pct)
      if (winner == made.variant && gain > best) made.variant = name;
  return made;
}

device::Facts random_card(Random& random, const std::string& label) {
  auto facts = card(label, static_cast<int>(random.below(4)) * 33, random.below(4) * 20);
  facts.silicon.vendor = random.below(4) == 0 ? "AMD" : "NVIDIA";
  facts.silicon.arch = random.below(2) == 0 ? "sm_90" : "sm_80";
  facts.max_shared_bytes = random.below(2) == 0 ? 65536 : 4 * 8192;
  return facts;
}

record::Tuning random_tuning(Random& random, const device::Facts& own) {
  record::Tuning made;
  for (std::uint64_t n = random.below(5), i = 0; i < n; ++i) {
    const auto facts = random.below(4) == 0 ? own : random_card(random, "card");
    made.cards.push_back(entry_of(facts));
    made.cards.back().key = fmt::format("card{}", i);
    auto one = row({});
    one.backend = random.below(5) == 0 ? "opencl" : "cuda";
    for (std::uint64_t k = random.below(4), at = 0; at < k; ++at)
      one.sizes.push_back(random_size(random, std::int64_t{1} << (2 * at + random.below(2) + 6)));
    if (one.sizes.empty()) one.variant = kNames[random.below(kNames.size())];
    made.cards.back().rows.push_back(std::move(one));
  }
  return made;
}

double ratio2(double a, double b) {
  return a > 0 && b > 0 ? std::pow(std::log(a / b), 2) : std::pow(std::log(16.0), 2);
}

struct Plain {
  std::string variant = "base", card;
  record::ProgramClass problem;
};

/// Every (card, size, variant) with its rank, and the least of them: no sorting in steps, no sharing with the
/// part.
Plain plain_search(const record::Tuning& from, const device::Facts& own, std::int64_t n) {
  using Rank = std::tuple<int, double, std::string, int, double, std::string, int, double, std::string>;
  std::optional<Rank> least;
  Plain found;
  for (const record::TuningCard& each : from.cards) {
    const record::Silicon& silicon = *each.silicon;
    if (silicon.vendor != own.silicon.vendor) continue;
    const bool same = silicon.hash == own.silicon.hash();
    const int tier = same ? 0 : silicon.arch == own.silicon.arch ? 1 : 2;
    const double far = same ? 0
                            : ratio2(silicon.multiprocessors, own.silicon.multiprocessors) +
                                  ratio2(static_cast<double>(silicon.memory_bytes),
                                         static_cast<double>(own.silicon.memory_bytes));
    for (const record::TuningRow& one : each.rows) {
      if (one.backend != "cuda") continue;
      const auto consider = [&](int words, double squares, const record::ProgramClass& problem, int place,
                                double gain, const std::string& name) {
        if (name == "gone" || (name == "u8" && own.max_shared_bytes < 65536)) return;
        const Rank rank{tier, far, each.key, words, squares, record::class_text(problem), place, -gain, name};
        if (least && *least <= rank) return;
        least = rank;
        found = {name, each.key, problem};
      };
      if (one.sizes.empty()) consider(0, 0, {}, 0, 0, one.variant);
      for (const record::TuningSize& at : one.sizes) {
        const int words = *at.problem[1].second.word() == "a" ? 0 : 1;
        const double squares = std::pow(
            std::log(static_cast<double>(*at.problem[0].second.integer()) / static_cast<double>(n)), 2);
        consider(words, squares, at.problem, 0, 0, at.variant);
        for (const auto& [name, gain] : at.gains_pct)
          if (gain > 0) consider(words, squares, at.problem, 1, gain, name);
      }
    }
  }
  return found;
}

TEST(Select, RandomTuningsAreAnsweredAsAPlainSearchAnswers) {
  Random random(23);
  int exact = 0, base = 0, other = 0, known = 0;
  for (int turn = 0; turn < 4000; ++turn) {
    const device::Facts own = random_card(random, "own");
    const auto from = random_tuning(random, own);
    const std::int64_t n = std::int64_t{1} << (6 + random.below(8));
    const Selection s = chosen(from, n, own);
    const Plain want = plain_search(from, own, n);
    ASSERT_EQ(s.variant, want.variant) << turn << ": " << s.how;
    ASSERT_EQ(s.measured_on, want.card) << turn << ": " << s.how;
    ASSERT_TRUE(record::same_class(s.measured_at, want.problem)) << turn << ": " << s.how;
    ASSERT_EQ(lattice::variant_name(s.instance.lattice(), s.point), s.variant);
    if (s.expected_loss) {
      ASSERT_GE(*s.expected_loss, 0);
      ASSERT_LE(*s.expected_loss, 1);
      ++known;
    }
    if (s.fit() == "base") {
      ASSERT_EQ(s.variant, "base");
      ASSERT_EQ(s.expected_loss, std::nullopt);
    }
    (s.fit() == "exact" ? exact : s.fit() == "base" ? base : other) += 1;
  }
  EXPECT_GT(exact, 100);
  EXPECT_GT(base, 100);
  EXPECT_GT(other, 500);
  EXPECT_GT(known, 500);
}

TEST(Select, SeveralThreadsGetTheSameAnswer) {
  const auto from =
      tuning({{card(), row({size(1024, "u2", {{"u2", 3}}), size(65536, "u4", {{"u2", 1}, {"u4", 4}})})}});
  const std::string want = chosen(from, 3000).how;
  std::vector<std::string> got(4);
  {
    std::vector<std::jthread> threads;
    for (std::string& text : got)
      threads.emplace_back([&] {
        for (int i = 0; i < 50; ++i)
          if (const auto s = select(mix(), card(), {{"n", 3000}}, from)) text = s->how;
      });
  }
  EXPECT_THAT(got, ::testing::Each(want));
}

}  // namespace
}  // namespace furlong
