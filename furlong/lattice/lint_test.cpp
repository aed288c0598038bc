#include "furlong/lattice/lint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "furlong/base/json.h"
#include "furlong/base/random.h"
#include "furlong/lattice/internal/reachability.h"
#include "furlong/lattice/internal/testing.h"

namespace furlong::lattice {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

LintOptions options() {
  LintOptions options;
  options.known_names = {"device.sm", "n"};
  options.facts = make_facts({{"device.sm", Value(86)}, {"n", Value(4096)}});
  return options;
}

/// Clean by every rule; each test plants one fault.
Lattice clean() {
  Lattice lattice;
  lattice.knobs = {make_knob("unroll", {1, 2, 8}, {"", "u2", "u8"}), make_knob("bounds", {0, 4}, {"", "lb4"}),
                   make_knob("warps", {1, 2, 4}, {"", "w2", "w4"})};
  lattice.knobs[0].wins = "long loops: fewer branches";
  lattice.knobs[0].loses = "short loops: 12 more registers";
  lattice.knobs[0].evidence = "bench unroll-registers";
  lattice.constraints = {make_constraint("bounds != 4 or warps == 4"),
                         make_constraint("unroll * warps <= n")};
  lattice.strictly_better = {{"coalesced", "one transaction instead of 32"}};
  lattice.catalogue = {"base", "u2", "lb4-w4"};
  return lattice;
}

std::string all(const std::vector<Finding>& findings) {
  std::string text;
  for (const auto& finding : findings) text += finding.where + ": " + finding.what + "\n";
  return text;
}

/// The only finding; a planted fault must not raise a flood.
std::string only(const Lattice& lattice, const LintOptions& with = options()) {
  const auto findings = lint(lattice, with);
  EXPECT_EQ(findings.size(), 1u) << all(findings);
  return all(findings);
}

TEST(Lint, ACleanLatticeHasNoFindings) { EXPECT_EQ(all(lint(clean(), options())), ""); }

TEST(Lint, BothSentencesAreNeeded) {
  Lattice lattice = clean();
  lattice.knobs[0].wins = " ";
  EXPECT_THAT(only(lattice), HasSubstr("knob 'unroll': no sentence says where it wins"));
  lattice = clean();
  lattice.knobs[0].loses = "";
  EXPECT_THAT(only(lattice), HasSubstr("what never loses is strictly better"));
  LintOptions user = options();
  user.user_file = true;
  EXPECT_THAT(lint(lattice, user), IsEmpty()) << "in a user's program sentences may be missing";
}

TEST(Lint, TheSentencesDiffer) {
  Lattice lattice = clean();
  lattice.knobs[1].loses = lattice.knobs[1].wins + " ";
  EXPECT_THAT(only(lattice), HasSubstr("knob 'bounds': wins and loses are the same sentence"));
}

TEST(Lint, NumbersNeedEvidence) {
  Lattice lattice = clean();
  lattice.knobs[0].evidence = "";
  EXPECT_THAT(only(lattice),
              HasSubstr("knob 'unroll': 'loses' states a number, and no evidence names the bench"));
  lattice.knobs[0].loses = "int8 on sm_80 with a 2D grid, f16 and H200";
  EXPECT_THAT(lint(lattice, options()), IsEmpty()) << "these digits are parts of names";
  for (const char* sentence : {"2x", "by 3%", "(16-byte)", "at 0.5 ms", "1", "on 2DE grids"}) {
    lattice.knobs[0].loses = sentence;
    EXPECT_THAT(only(lattice), HasSubstr("states a number")) << sentence;
  }
}

TEST(Lint, AtLeastTwoValues) {
  Lattice lattice = clean();
  lattice.knobs.push_back(make_knob("fixed", {7}));
  EXPECT_THAT(only(lattice), HasSubstr("knob 'fixed': a knob has at least two values"));
  lattice.knobs.back() = make_knob("none", {});
  EXPECT_THAT(only(lattice), HasSubstr("knob 'none': a knob has at least two values"));
}

TEST(Lint, ValuesDiffer) {
  Lattice lattice = clean();
  lattice.knobs.push_back(make_knob("same", {1, true, 2}));
  EXPECT_THAT(only(lattice), HasSubstr("knob 'same': the values 1 and True are equal"));
}

TEST(Lint, KnobNamesAreUniqueAndCanBeWritten) {
  Lattice lattice = clean();
  lattice.knobs.push_back(make_knob("unroll", {1, 2}, {"", "x"}));
  EXPECT_THAT(only(lattice), HasSubstr("knob 'unroll': two knobs have this name"));
  for (const char* name : {"", "2x", "a b", "a-b", "a..b", "not", "true"}) {
    lattice.knobs.back() = make_knob(name, {1, 2}, {"", "x"});
    lattice.knobs.back().wins = "here";
    lattice.knobs.back().loses = "there";
    EXPECT_THAT(only(lattice), HasSubstr("the name must be letters")) << name;
  }
}

TEST(Lint, TheStatedDefaultIsTheRealDefault) {
  Lattice lattice = clean();
  lattice.knobs[0].default_index = 1;  // the tags still say that 1 is the default
  const auto findings = all(lint(lattice, options()));
  EXPECT_THAT(findings, HasSubstr("knob 'unroll': the value 1 has no tag, and it is not the default"));
  EXPECT_THAT(findings, HasSubstr("knob 'unroll': the default 2 has the tag 'u2'"));
  lattice.knobs[0].default_index = 3;
  EXPECT_THAT(all(lint(lattice, options())), HasSubstr("the default is value number 3 of 3"));
}

TEST(Lint, OneTagAValue) {
  Lattice lattice = clean();
  lattice.knobs[0].tags.pop_back();
  EXPECT_THAT(only(lattice), HasSubstr("knob 'unroll': 2 tags for 3 values"));
}

TEST(Lint, TagsAreUniqueAndPlain) {
  Lattice lattice = clean();
  lattice.knobs[2].tags[1] = "u8";
  EXPECT_THAT(only(lattice), HasSubstr("variant 'u8': two points have this name"));
  lattice = clean();
  lattice.knobs[2].tags[1] = "base";
  EXPECT_THAT(all(lint(lattice, options())), HasSubstr("a tag is 'base'"));
  lattice.knobs[2].tags[1] = "all";
  EXPECT_THAT(only(lattice), HasSubstr("tag 'all' means a set of variants"));
  for (const char* tag : {"w 2", "w,2", "-w2", "w2-", "w--2", "w=2"}) {
    lattice.knobs[2].tags[1] = tag;
    EXPECT_THAT(all(lint(lattice, options())), HasSubstr("single inner '-' only")) << tag;
  }
}

TEST(Lint, AKnobSaysHowItApplies) {
  Lattice lattice = clean();
  lattice.knobs[1].applies.clear();
  EXPECT_THAT(only(lattice), HasSubstr("knob 'bounds': nothing says how it reaches the kernel"));
}

TEST(Lint, OptionsBelongToValues) {
  Lattice lattice = clean();
  lattice.knobs[1].applies = {Applies::option};
  EXPECT_THAT(only(lattice), HasSubstr("applies as an option, and no value has one"));
  lattice.knobs[1].options = {{1, "-lb4"}};
  EXPECT_THAT(lint(lattice, options()), IsEmpty());
  lattice.knobs[1].options[5] = "-x";
  EXPECT_THAT(only(lattice), HasSubstr("an option for value number 5"));
  lattice.knobs[1].options = {{1, "-lb4"}};
  lattice.knobs[1].applies = {Applies::define};
  EXPECT_THAT(only(lattice), HasSubstr("does not apply as an option"));
}

TEST(Lint, ConstraintNamesExist) {
  Lattice lattice = clean();
  lattice.constraints.push_back(make_constraint("unroll < 4 or warp == 1"));
  lattice.constraints.back().line = 31;
  const auto findings = lint(lattice, options());
  ASSERT_EQ(findings.size(), 1u) << all(findings);
  EXPECT_EQ(findings[0].where, "constraint 'unroll < 4 or warp == 1'");
  EXPECT_THAT(findings[0].what,
              HasSubstr("column 15: 'warp' is neither a knob, nor a problem parameter, nor a device "
                        "fact, did you mean 'warps'?"));
  EXPECT_EQ(findings[0].line, 31);
}

TEST(Lint, RequirementsParseAndTheirNamesExist) {
  Lattice lattice = clean();
  lattice.knobs[0].requires_text = "device.sm >= ";
  EXPECT_THAT(only(lattice), HasSubstr("requires of knob 'unroll': column 14: the expression ends"));
  lattice.knobs[0].requires_text = "device.sn >= 80";
  EXPECT_THAT(only(lattice), HasSubstr("column 1: 'device.sn' is neither"));
  lattice.knobs[0].requires_text = "device.sm >= 90";
  EXPECT_THAT(lint(lattice, options()), IsEmpty()) << "a card without it is no fault of the lattice";
}

TEST(Lint, BaseIsValid) {
  Lattice lattice = clean();
  lattice.constraints.push_back(make_constraint("unroll > 1"));
  lattice.catalogue = {"base", "u2"};
  EXPECT_THAT(only(lattice), HasSubstr("base: constraint 'unroll > 1' does not hold with unroll = 1"));
}

TEST(Lint, WhatCannotBeEvaluatedIsAFinding) {
  Lattice lattice = clean();
  LintOptions without_facts = options();
  without_facts.facts = nullptr;
  EXPECT_THAT(all(lint(lattice, without_facts)),
              HasSubstr("base: constraint 'unroll * warps <= n': column 19: 'n' is not defined"));
  lattice = clean();
  lattice.constraints.push_back(make_constraint("8 // (warps - 2) < 9"));
  EXPECT_THAT(only(lattice), HasSubstr("its valid points cannot be enumerated: constraint '8 // (warps - 2) "
                                       "< 9': column 3: division by zero"));
}

TEST(Lint, TheCatalogueIsValid) {
  Lattice lattice = clean();
  lattice.catalogue = {"base", "u2", "lb4"};
  EXPECT_THAT(only(lattice),
              HasSubstr("catalogue entry 'lb4': constraint 'bounds != 4 or warps == 4' does not hold"));
  lattice.catalogue = {"base", "u3"};
  EXPECT_THAT(only(lattice), HasSubstr("catalogue entry 'u3': variant 'u3': 'u3' is no tag"));
  lattice.catalogue = {"base", "u2", "u2"};
  EXPECT_THAT(only(lattice), HasSubstr("catalogue entry 'u2': listed twice"));
  lattice.catalogue = {"u2", "base"};
  EXPECT_THAT(only(lattice), HasSubstr("base comes first"));
}

TEST(Lint, StrictlyBetterIsDisjointFromTheKnobs) {
  Lattice lattice = clean();
  lattice.strictly_better.push_back({"unroll", "fewer branches"});
  EXPECT_THAT(only(lattice), HasSubstr("strictly better 'unroll': it is a knob too"));
  lattice.strictly_better.back() = {"coalesced", "again"};
  EXPECT_THAT(only(lattice), HasSubstr("listed twice"));
  lattice.strictly_better.back() = {"native", " "};
  EXPECT_THAT(only(lattice), HasSubstr("strictly better 'native': no reason"));
}

TEST(Lint, EveryPointIsReachableOrCoupled) {
  Lattice lattice = clean();
  // Now lb4 and w4 need each other: neither step alone is valid.
  lattice.constraints.push_back(make_constraint("warps != 4 or bounds == 4"));
  EXPECT_THAT(only(lattice),
              HasSubstr("cannot be reached from base by changing one knob at a time; declare which of "
                        "unroll, bounds, warps are coupled"));
  lattice.knobs[1].coupled = {"warps"};
  EXPECT_EQ(all(lint(lattice, options())), "");
  lattice.knobs[1].coupled = {"warp"};
  EXPECT_THAT(all(lint(lattice, options())),
              HasSubstr("coupled with 'warp', which is no knob, did you mean 'warps'?"));
  lattice.knobs[1].coupled = {"bounds", "warps"};
  EXPECT_THAT(only(lattice), HasSubstr("it is coupled with itself"));
}

TEST(Lint, TheDefaultIsNeitherLossyNorRestricted) {
  Lattice lattice = clean();
  lattice.knobs[0].lossy = {0};
  EXPECT_THAT(only(lattice), HasSubstr("knob 'unroll': the default is lossy"));
  lattice.knobs[0].lossy = {2};
  lattice.knobs[0].restricted = {0};
  EXPECT_THAT(only(lattice), HasSubstr("the default is restricted"));
  lattice.knobs[0].restricted = {9};
  EXPECT_THAT(only(lattice), HasSubstr("value number 9 is marked restricted"));
}

/// The slow reference: whether single changes join all valid points to base.
bool all_reachable(const Lattice& lattice) {
  std::set<Point> valid;
  for (const auto& point : whole_product(lattice))
    if (*lattice.satisfies(point, {})) valid.insert(point);
  std::vector<Point> todo{lattice.base()};
  std::set<Point> seen{lattice.base()};
  while (!todo.empty()) {
    const Point point = todo.back();
    todo.pop_back();
    for (const auto& other : valid) {
      int differences = 0;
      for (std::size_t k = 0; k < other.indices.size(); ++k)
        differences += other.indices[k] != point.indices[k];
      if (differences == 1 && seen.insert(other).second) todo.push_back(other);
    }
  }
  return seen.size() == valid.size();
}

TEST(Reachability, AgreesWithTheWholeGraph) {
  Random random(5, "reachability");
  int islands = 0;
  int joined = 0;
  for (int round = 0; round < 300; ++round) {
    Lattice lattice;
    for (const char* name : {"a", "b", "c", "d"}) lattice.knobs.push_back(make_knob(name, {0, 1, 2}));
    const auto name = [&] { return std::string(1, "abcd"[random.below(4)]); };
    const auto constraints = random.between(1, 3);
    for (int c = 0; c < constraints; ++c)
      lattice.constraints.push_back(make_constraint(name() + " * " + std::to_string(random.between(1, 2)) +
                                                    (random.below(2) == 0 ? " == " : " <= ") + name() +
                                                    " + " + name()));
    ASSERT_TRUE(*lattice.satisfies(lattice.base(), {})) << "0 fits all of these";
    const auto found = internal::reachability(lattice, {}, 1000);
    ASSERT_TRUE(found) << found.error().text();
    const bool expected = all_reachable(lattice);
    EXPECT_EQ(found->unreachable == 0, expected) << found->example;
    ++(expected ? joined : islands);
  }
  EXPECT_GT(islands, 30);
  EXPECT_GT(joined, 30);
}

TEST(Reachability, TooLargeACouplingIsNotTried) {
  Lattice lattice;
  std::vector<Value> values;
  for (int v = 0; v < 10; ++v) values.emplace_back(v);
  std::string sum = "0";
  for (int k = 0; k < 20; ++k) {
    lattice.knobs.push_back(make_knob("k" + std::to_string(k), values));
    sum += " + k" + std::to_string(k);
    if (k > 0) lattice.knobs[0].coupled.push_back("k" + std::to_string(k));
  }
  lattice.constraints = {make_constraint(sum + " <= 2")};
  const auto found = internal::reachability(lattice, {}, 1000);  // 231 points, 10^20 assignments
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code(), Code::exhausted);
  EXPECT_THAT(found.error().message(), HasSubstr("the coupled knobs k0, k1"));
}

TEST(Reachability, TooManyPointsAreNotWalked) {
  const auto found = internal::reachability(clean(), options().facts, 5);
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code(), Code::exhausted);
}

TEST(Show, TextNamesEverything) {
  Lattice lattice = clean();
  lattice.knobs[0].lossy = {2};
  lattice.knobs[0].restricted = {1};
  const std::string text = show_text(lattice);
  for (const char* part :
       {"unroll", "1, 2 (u2, by name only), 8 (u8, lossy)", "long loops: fewer branches",
        "short loops: 12 more registers", "bench unroll-registers", "bounds != 4 or warps == 4",
        "coalesced: one transaction instead of 32", "Catalogue: base u2 lb4-w4"})
    EXPECT_THAT(text, HasSubstr(part));
}

TEST(Show, JsonHasTheMap) {
  Lattice lattice = clean();
  lattice.knobs[0].lossy = {2};
  const Json json = show_json(lattice);
  EXPECT_EQ(json["knobs"].size(), 3u);
  const Json& knob = json["knobs"][0];
  EXPECT_EQ(knob["name"], "unroll");
  EXPECT_EQ(knob["default"], 1);
  EXPECT_EQ(knob["values"][2]["value"], 8);
  EXPECT_EQ(knob["values"][2]["tag"], "u8");
  EXPECT_EQ(knob["values"][2]["lossy"], true);
  EXPECT_EQ(knob["values"][1]["lossy"], false);
  EXPECT_EQ(knob["applies"][0], "define");
  EXPECT_EQ(knob["evidence"], "bench unroll-registers");
  EXPECT_EQ(json["constraints"][0]["expression"], "bounds != 4 or warps == 4");
  EXPECT_EQ(json["strictly_better"][0]["name"], "coalesced");
  EXPECT_EQ(json["catalogue"][2], "lb4-w4");
}

TEST(Lint, ClaimsSayWhatRecordsCanTell) {
  Lattice lattice = clean();
  const auto claim = [&](std::size_t value, ClaimOutcome outcome, std::string where) {
    lattice = clean();
    lattice.knobs[0].claims = {{value, outcome, std::move(where), 7}};
    return lint(lattice, options());
  };
  EXPECT_THAT(claim(1, ClaimOutcome::wins, "n >= 16384 and device.sm >= 80"), IsEmpty());
  EXPECT_THAT(claim(2, ClaimOutcome::loses, ""), IsEmpty()) << "everywhere";
  EXPECT_THAT(all(claim(3, ClaimOutcome::wins, "")),
              HasSubstr("a claim about value number 3, and there is none"));
  EXPECT_THAT(all(claim(0, ClaimOutcome::wins, "")), HasSubstr("it is the default"));
  EXPECT_THAT(all(claim(1, ClaimOutcome::wins, "n >=")), HasSubstr("the claim that 2 wins: where: column 5"));
  EXPECT_THAT(all(claim(1, ClaimOutcome::ties, "device.warp == 32")), HasSubstr("'device.warp' is not told"));
  EXPECT_THAT(all(claim(1, ClaimOutcome::ties, "warps == 2")), HasSubstr("'warps' is not told"));
  EXPECT_EQ(claim(1, ClaimOutcome::wins, "n >=")[0].line, 7);
  claim(1, ClaimOutcome::wins, "n > 1");
  lattice.knobs[0].claims.push_back(lattice.knobs[0].claims[0]);
  EXPECT_THAT(only(lattice), HasSubstr("the claim that 2 wins stands twice"));
}

TEST(Lint, AClaimHasASentenceOnItsSide) {
  LintOptions user = options();
  user.user_file = true;
  Lattice lattice = clean();
  lattice.knobs[0].wins = "";
  lattice.knobs[0].claims = {{1, ClaimOutcome::wins, "n > 1", 0}};
  EXPECT_THAT(all(lint(lattice, user)), HasSubstr("the claim that 2 wins: 'wins' has no sentence"));
  lattice.knobs[0].claims = {{1, ClaimOutcome::loses, "n > 1", 0}};
  EXPECT_THAT(lint(lattice, user), IsEmpty());
  lattice.knobs[0].loses = "";
  EXPECT_THAT(all(lint(lattice, user)), HasSubstr("the claim that 2 loses: 'loses' has no sentence"));
}

TEST(Show, JsonHasTheClaims) {
  Lattice lattice = clean();
  lattice.knobs[0].claims = {{2, ClaimOutcome::loses, "n <= 64", 0}};
  EXPECT_EQ(json_line(show_json(lattice)["knobs"][0]["claims"]),
            R"([{"value":8,"outcome":"loses","where":"n <= 64"}])");
}

TEST(Show, MarkdownIsOneRowAKnob) {
  Lattice lattice = clean();
  lattice.knobs[0].languages = {"cuda", "opencl"};
  lattice.knobs[0].lossy = {2};
  lattice.knobs[0].requires_text = "device.sm >= 80 | n == 2";
  lattice.knobs[0].wins = "where a | b\nor <c> holds, by *12%*";
  EXPECT_EQ(
      show_markdown(lattice),
      "| knob | values | default | wins | loses | evidence |\n"
      "|---|---|---|---|---|---|\n"
      "| `unroll` (cuda, opencl), needs `device.sm >= 80 \\| n == 2` | `1`, `2` (u2), `8` (u8, lossy) | `1` "
      "| "
      "where a \\| b or \\<c> holds, by \\*12%\\* | short loops: 12 more registers | bench unroll-registers "
      "|\n"
      "| `bounds` | `0`, `4` (lb4) | `0` | on bounds of the one kind | on bounds of the other kind |  |\n"
      "| `warps` | `1`, `2` (w2), `4` (w4) | `1` | on warps of the one kind | on warps of the other kind |  "
      "|\n"
      "\n"
      "Strictly better, so always applied and no knobs:\n"
      "\n"
      "- coalesced: one transaction instead of 32\n");
  EXPECT_EQ(show_markdown(Lattice()), "No knobs.\n");
}

}  // namespace
}  // namespace furlong::lattice
