#include "furlong/lattice/lattice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "furlong/base/random.h"
#include "furlong/lattice/internal/testing.h"
#include "furlong/lattice/internal/variant_names.h"

namespace furlong::lattice {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// unroll u2 u8; load ldg ldcg; bounds lb4 lb8; warps w2 w4 w8, with lb4 needing w4 and lb8 needing w2.
Lattice lottery() {
  Lattice lattice;
  lattice.knobs = {make_knob("unroll", {1, 2, 8}, {"", "u2", "u8"}),
                   make_knob("load", {"plain", "ldg", "ldcg"}, {"", "ldg", "ldcg"}),
                   make_knob("bounds", {0, 4, 8}, {"", "lb4", "lb8"}),
                   make_knob("warps", {1, 2, 4, 8}, {"", "w2", "w4", "w8"})};
  lattice.constraints = {make_constraint("bounds != 4 or warps == 4"),
                         make_constraint("bounds != 8 or warps == 2")};
  lattice.catalogue = {"base", "u2", "lb4-w4", "u2-ldg"};
  return lattice;
}

TEST(Names, JoinTheTagsInKnobOrder) {
  const Lattice lattice = lottery();
  EXPECT_EQ(variant_name(lattice, lattice.base()), "base");
  EXPECT_EQ(variant_name(lattice, {{1, 1, 0, 0}}), "u2-ldg");
  EXPECT_EQ(variant_name(lattice, {{0, 0, 1, 2}}), "lb4-w4");
}

TEST(Names, ParseBackToTheirPoint) {
  const Lattice lattice = lottery();
  for (const auto& point : whole_product(lattice)) {
    const auto parsed = parse_variant(lattice, variant_name(lattice, point));
    ASSERT_TRUE(parsed) << variant_name(lattice, point) << ": " << parsed.error().text();
    EXPECT_EQ(*parsed, point);
  }
}

TEST(Names, ErrorsNameThePart) {
  const Lattice lattice = lottery();
  const auto message = [&](std::string_view name) {
    const auto parsed = parse_variant(lattice, name);
    return parsed ? std::string("parsed") : parsed.error().message();
  };
  EXPECT_THAT(message("u2-ldgg"), HasSubstr("'ldgg' is no tag of this lattice, did you mean 'ldg'?"));
  EXPECT_THAT(message("u3"), HasSubstr("'u3' is no tag of this lattice; the nearest are 'u2', 'u8'"));
  EXPECT_THAT(message("w4-lb4"), HasSubstr("'lb4' (knob 'bounds') stands out of place"));
  EXPECT_THAT(message("u2-u8"), HasSubstr("'u8' (knob 'unroll') stands out of place"));
  EXPECT_THAT(message("u2-"), HasSubstr("'' is no tag"));
  EXPECT_THAT(message(""), HasSubstr("empty variant name"));
  EXPECT_THAT(message(std::string(5000, 'u')), HasSubstr("5000 bytes"));
}

TEST(Names, TagsMayHoldHyphens) {
  Lattice lattice;
  lattice.knobs = {make_knob("a", {0, 1, 2}, {"", "x", "x-y"}), make_knob("b", {0, 1, 2}, {"", "y-z", "z"})};
  // "x-y-z" is (x, y-z) and (x-y, z).
  EXPECT_EQ(internal::ambiguous_name(lattice), "x-y-z");
  EXPECT_THAT(parse_variant(lattice, "x-y-z").error().message(), HasSubstr("two readings"));
  lattice.knobs[1].tags = {"", "y-w", "z"};
  EXPECT_EQ(internal::ambiguous_name(lattice), "");
  for (const auto& point : whole_product(lattice))
    EXPECT_EQ(*parse_variant(lattice, variant_name(lattice, point)), point);
}

/// Whether two points of the product share a name: what ambiguous_name answers without the product.
bool shares_a_name(const Lattice& lattice) {
  std::set<std::string> seen;
  for (const auto& point : whole_product(lattice))
    if (!seen.insert(variant_name(lattice, point)).second) return true;
  return false;
}

TEST(Names, TheProofOfUniquenessAgreesWithTheProduct) {
  Random random(7, "names");
  int ambiguous = 0;
  for (int round = 0; round < 600; ++round) {
    Lattice lattice;
    const auto knobs = random.between(1, 4);
    for (int k = 0; k < knobs; ++k) {
      std::vector<Value> values;
      std::vector<std::string> tags;
      const auto count = random.between(2, 3);
      for (int v = 0; v < count; ++v) {
        values.emplace_back(v);
        std::string tag;
        const auto pieces = v == 0 ? 0 : random.between(1, 3);
        for (int p = 0; p < pieces; ++p)
          tag += (p > 0 ? "-" : "") + std::string(1, "abcdefgh"[random.below(round % 2 == 0 ? 3 : 8)]);
        tags.push_back(tag);
      }
      lattice.knobs.push_back(make_knob("k" + std::to_string(k), values, tags));
    }
    const std::string name = internal::ambiguous_name(lattice);
    const bool shared = shares_a_name(lattice);
    EXPECT_EQ(!name.empty(), shared) << name;
    if (shared) {
      ++ambiguous;
      EXPECT_THAT(parse_variant(lattice, name).error().message(), HasSubstr("two readings")) << name;
    }
  }
  EXPECT_GT(ambiguous, 100);
  EXPECT_LT(ambiguous, 500);
}

TEST(Names, ATagMayNotBeBase) {
  Lattice lattice;
  lattice.knobs = {make_knob("a", {0, 1}, {"", "base"})};
  EXPECT_EQ(internal::ambiguous_name(lattice), "base");
}

TEST(Names, CatalogueInOrder) {
  Lattice lattice = lottery();
  const auto points = catalogue_points(lattice);
  ASSERT_TRUE(points);
  EXPECT_THAT(*points, ElementsAre(Point{{0, 0, 0, 0}}, Point{{1, 0, 0, 0}}, Point{{0, 0, 1, 2}},
                                   Point{{1, 1, 0, 0}}));
  lattice.catalogue.push_back("u3");
  EXPECT_THAT(catalogue_points(lattice).error().text(),
              HasSubstr("catalogue entry 'u3': variant 'u3': 'u3' is no tag"));
}

TEST(Constraints, AreCheckedAndExplained) {
  Lattice lattice = lottery();
  lattice.constraints[0].reason = "the launch bound states 128 threads";
  lattice.constraints[0].line = 12;
  EXPECT_TRUE(*lattice.satisfies(lattice.base(), {}));
  EXPECT_FALSE(*lattice.satisfies({{0, 0, 1, 0}}, {}));
  EXPECT_EQ(
      *lattice.why_invalid({{0, 0, 1, 0}}, {}),
      "line 12: constraint 'bounds != 4 or warps == 4' does not hold with bounds = 4, warps = 1: the launch "
      "bound states 128 threads");
  EXPECT_EQ(*lattice.why_invalid({{0, 0, 1, 2}}, {}), "");
}

TEST(Constraints, FactsAreNamesToo) {
  Lattice lattice = lottery();
  lattice.constraints.push_back(make_constraint("warps * 32 <= device.max_threads"));
  const auto facts = make_facts({{"device.max_threads", Value(64)}});
  EXPECT_TRUE(*lattice.satisfies(lattice.base(), facts));
  EXPECT_THAT(*lattice.why_invalid({{0, 0, 0, 3}}, facts), HasSubstr("warps = 8, device.max_threads = 64"));
  EXPECT_THAT(
      lattice.satisfies(lattice.base(), {}).error().message(),
      HasSubstr(
          "constraint 'warps * 32 <= device.max_threads': column 15: 'device.max_threads' is not defined"));
}

TEST(Constraints, OneThatExcludesThePointOutweighsAnError) {
  Lattice lattice;
  lattice.knobs = {make_knob("a", {0, 4}), make_knob("b", {2, 0})};
  lattice.constraints = {make_constraint("a % b == 0"), make_constraint("b != 0")};
  EXPECT_FALSE(*lattice.satisfies({{0, 1}}, {}));
  lattice.constraints.pop_back();
  EXPECT_THAT(lattice.satisfies({{0, 1}}, {}).error().message(), HasSubstr("division by zero"));
}

TEST(Constraints, ARequirementBindsAllButTheDefault) {
  Lattice lattice = lottery();
  lattice.knobs[1].requires_text = "device.sm >= 80";
  const auto old_card = make_facts({{"device.sm", Value(75)}});
  const auto new_card = make_facts({{"device.sm", Value(86)}});
  EXPECT_TRUE(*lattice.satisfies(lattice.base(), old_card));
  EXPECT_TRUE(*lattice.satisfies({{0, 1, 0, 0}}, new_card));
  EXPECT_THAT(
      *lattice.why_invalid({{0, 1, 0, 0}}, old_card),
      HasSubstr("knob 'load' requires 'device.sm >= 80' does not hold with device.sm = 75, load = ldg"));
  EXPECT_TRUE(*lattice.satisfies(lattice.base(), {})) << "base needs no facts";
  EXPECT_FALSE(lattice.satisfies({{0, 1, 0, 0}}, {})) << "another value does";
  lattice.knobs[1].requires_text = "device.sm >=";
  EXPECT_THAT(lattice.satisfies(lattice.base(), new_card).error().message(),
              HasSubstr("requires 'device.sm >=': column 13"));
}

TEST(Constraints, APointOfAnotherShapeIsInvalid) {
  const Lattice lattice = lottery();
  EXPECT_THAT(lattice.satisfies({{0, 0}}, {}).error().message(),
              HasSubstr("2 values for a lattice of 4 knobs"));
  EXPECT_THAT(lattice.satisfies({{0, 0, 0, 9}}, {}).error().message(),
              HasSubstr("knob 'warps' has 4 values"));
}

TEST(Admission, LossyAndRestrictedValuesNeedTheirName) {
  Lattice lattice;
  lattice.knobs = {make_knob("cache_precision", {"f32", "f16"}, {"", "c16"}),
                   make_knob("precision", {"int64", "int8", "bf16"}, {"", "i8", "b16"})};
  lattice.knobs[0].lossy = {1};
  lattice.knobs[1].lossy = {2};
  lattice.knobs[1].restricted = {1};
  EXPECT_THAT(lossy_knobs(lattice, {{1, 2}}), ElementsAre("cache_precision", "precision"));
  EXPECT_THAT(lossy_knobs(lattice, {{0, 1}}), IsEmpty());
  EXPECT_THAT(restricted_knobs(lattice, {{1, 1}}), ElementsAre("precision"));

  const auto valid = [&](const Lattice& l) {
    std::vector<std::string> names;
    for (const auto& point : whole_product(l))
      if (*l.satisfies(point, {})) names.push_back(variant_name(l, point));
    return names;
  };
  const std::vector<std::string> cache{"cache_precision"};
  const std::vector<std::string> precision{"precision"};
  EXPECT_THAT(valid(*admitting(lattice, {}, {})), ElementsAre("base"));
  EXPECT_THAT(valid(*admitting(lattice, cache, {})), ElementsAre("base", "c16"));
  EXPECT_THAT(valid(*admitting(lattice, {}, precision)), ElementsAre("base", "i8"));
  EXPECT_THAT(valid(*admitting(lattice, precision, precision)), ElementsAre("base", "i8", "b16"));
  EXPECT_THAT(admitting(lattice, std::vector<std::string>{"cache_precison"}, {}).error().message(),
              HasSubstr("no knob 'cache_precison' with a lossy value, did you mean 'cache_precision'?"));
  EXPECT_FALSE(admitting(lattice, {}, cache)) << "it has no restricted value";
}

TEST(Lattice, FindsKnobsAndValues) {
  const Lattice lattice = lottery();
  EXPECT_EQ(lattice.knob("load")->values.size(), 3u);
  EXPECT_EQ(lattice.knob("loads"), nullptr);
  EXPECT_EQ(*lattice.knob_index("warps"), 3u);
  EXPECT_EQ(*lattice.value({{0, 1, 0, 0}}, "load"), Value("ldg"));
  EXPECT_EQ(lattice.value({{0, 1, 0, 0}}, "loads"), std::nullopt);
  EXPECT_EQ(lattice.value({{0}}, "load"), std::nullopt);
  EXPECT_EQ(applies_name(Applies::launch), "launch");
}

}  // namespace
}  // namespace furlong::lattice
