#include "furlong/lattice/space.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "furlong/lattice/internal/testing.h"

namespace furlong::lattice {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<Point> listed(const Space& space) {
  std::vector<Point> points;
  for (auto cursor = space.begin_cursor(); cursor.valid(); cursor.next()) points.push_back(cursor.point());
  return points;
}

/// The reference: every point of the product, checked one by one.
struct Reference {
  std::vector<Point> valid;
  bool error = false;
};

Reference nested_loops(const Lattice& lattice, const Lookup& facts) {
  Reference reference;
  for (const auto& point : whole_product(lattice)) {
    const auto holds = lattice.satisfies(point, facts);
    reference.error = reference.error || !holds;
    if (holds && *holds) reference.valid.push_back(point);
  }
  return reference;
}

// --- random lattices ---------------------------------------------------------------------------------

std::string pick(Random& random, const std::vector<std::string>& from) {
  return from[random.below(from.size())];
}

class RandomLattice {
 public:
  /// Every second one is tame: positive integers under the usual products and remainders.
  explicit RandomLattice(std::uint64_t seed) : random_(seed, "lattice"), tame_(seed % 2 == 0) {}

  Lattice make() {
    const bool words = !tame_ && random_.below(4) == 0;
    const auto knobs = random_.between(1, 6);
    for (int k = 0; k < knobs; ++k) {
      lattice_.knobs.push_back(knob("k" + std::to_string(k), words && random_.below(3) == 0));
      names_.push_back(lattice_.knobs.back().name);
      if (random_.below(8) == 0)
        lattice_.knobs.back().requires_text = pick(random_, {"device.sm >= 80", "device.sm > 90", "k0 != 1"});
    }
    const auto constraints = tame_ ? random_.between(1, 3) : random_.between(0, 5);
    for (int c = 0; c < constraints; ++c) lattice_.constraints.push_back(make_constraint(constraint()));
    return lattice_;
  }

 private:
  Knob knob(std::string name, bool words) {
    static const std::vector<std::vector<Value>> sets = {
        {1, 2, 4, 8}, {16, 32, 48, 64}, {1, 2, 3, 4, 5}, {7},          {8, 16, 32},
        {0, 1},       {-2, -1, 0, 3},   {0.5, 1.0, 2.5}, {false, true}};
    static const std::vector<std::vector<Value>> word_sets = {
        {"int4", "char4"}, {"", "a", "b"}, {"auto", 1, 2}};
    return make_knob(std::move(name), words ? word_sets[random_.below(word_sets.size())]
                                            : sets[random_.below(tame_ ? 5 : sets.size())]);
  }

  std::string constraint() {
    switch (random_.below(tame_ ? 6 : 8)) {
      case 0:
        return name() + " * " + name() + " <= " + number();
      case 1:
        return name() + " % " + name() + " == 0";
      case 2:
        return number() + " <= " + name() + " * " + name() + " * " + name() + " <= 512";
      case 3:
        return name() + " == 0 or " + name() + " % " + number() + " != 0";
      case 4:
        return name() + " % ((" + name() + " * " + name() + ") / " + name() + ") == 0";
      case 5:
        return "not (" + name() + " == " + number() + " and " + name() + " == " + number() + ")";
      default:
        return expression(3);
    }
  }

  std::string expression(int depth) {
    if (depth == 0 || random_.below(7) == 0) return random_.below(3) == 0 ? number() : name();
    const std::string a = expression(depth - 1);
    const std::string b = expression(depth - 1);
    switch (random_.below(14)) {
      case 0:
        return "(" + a + " and " + b + ")";
      case 1:
        return "(" + a + " or " + b + ")";
      case 2:
        return "(not " + a + ")";
      case 3:
        return "(" + a + " if " + expression(depth - 1) + " else " + b + ")";
      case 4:
        return "min(" + a + ", " + b + ")";
      case 5:
        return "max(" + a + ", " + b + ", " + number() + ")";
      case 6:
        return "(" + a + pick(random_, {" in ", " not in "}) + "(" + b + ", " + number() + ", " + number() +
               "))";
      case 7:
        return pick(random_, {"abs", "int", "-", "+", "~"}) + "(" + a + ")";
      case 8:
        return "ceil_div(" + a + ", " + b + ")";
      case 9:
        return "(" + a + pick(random_, {" & ", " | ", " ^ ", " << ", " >> "}) + b + ")";
      case 10:
      case 11:
        return "(" + a + pick(random_, {" < ", " <= ", " > ", " >= ", " == ", " != "}) + b + ")";
      default:
        return "(" + a + pick(random_, {" + ", " - ", " * ", " / ", " // ", " % ", " ** "}) + b + ")";
    }
  }

  std::string name() {
    return random_.below(12) == 0 ? pick(random_, {"device.sm", "n"}) : pick(random_, names_);
  }
  std::string number() {
    if (tame_) return pick(random_, {"2", "3", "4", "8", "16", "32", "64", "100"});
    return pick(random_,
                {"0", "1", "2", "3", "4", "8", "16", "32", "64", "100", "0.5", "-1", "'int4'", "''"});
  }

  Random random_;
  bool tame_;
  Lattice lattice_;
  std::vector<std::string> names_;
};

void expect_same_as_reference(const Lattice& lattice, const Space& space, const Reference& reference,
                              Random& random) {
  ASSERT_EQ(space.count(), reference.valid.size());
  const auto points = listed(space);
  ASSERT_EQ(points, reference.valid) << "the order is lexicographic";
  for (std::size_t i = 0; i < points.size(); ++i) {
    ASSERT_EQ(space.at(i), points[i]);
    ASSERT_EQ(space.index_of(points[i]), i);
  }
  for (int i = 0; i < 50; ++i) {
    Point point;
    for (const auto& knob : lattice.knobs)
      point.indices.push_back(static_cast<std::uint32_t>(random.below(knob.values.size())));
    const auto index = space.index_of(point);
    const bool valid = std::binary_search(reference.valid.begin(), reference.valid.end(), point);
    ASSERT_EQ(index.has_value(), valid) << "the checker and the enumerator agree";
    std::vector<Point> expected;
    for (const auto& other : reference.valid) {
      std::size_t differences = 0;
      for (std::size_t k = 0; k < other.indices.size(); ++k)
        differences += other.indices[k] != point.indices[k];
      if (differences == 1) expected.push_back(other);
    }
    auto neighbours = space.neighbours(point);
    std::sort(neighbours.begin(), neighbours.end());
    ASSERT_EQ(neighbours, expected);
  }
}

TEST(SpaceProperty, AgreesWithNestedLoops) {
  const auto facts = make_facts({{"device.sm", Value(86)}, {"n", Value(24)}});
  int errors = 0;
  int proper = 0;
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    const Lattice lattice = RandomLattice(seed).make();
    std::string description = "seed " + std::to_string(seed);
    for (const auto& constraint : lattice.constraints) description += " | " + constraint.expression.text();
    SCOPED_TRACE(description);
    const Reference reference = nested_loops(lattice, facts);
    const auto space = Space::build(lattice, facts);
    ASSERT_EQ(space.has_value(), !reference.error) << (space ? "" : space.error().text());
    if (!space) {
      ++errors;
      EXPECT_EQ(space.error().code(), Code::invalid);
      continue;
    }
    Random random(seed, "points");
    expect_same_as_reference(lattice, *space, reference, random);
    if (testing::Test::HasFatalFailure()) return;
    proper += !lattice.constraints.empty() && space->count() > 0 && space->count() < space->product();
  }
  EXPECT_GT(errors, 70) << "the generator must also make constraints without value";
  EXPECT_GT(proper, 170) << "and constraints that exclude some points and not all";
}

// --- single cases ------------------------------------------------------------------------------------

Lattice convolution_like() {
  Lattice lattice;
  lattice.knobs = {make_knob("x", {16, 32, 48, 64}), make_knob("y", {1, 2, 4, 8}), make_knob("pad", {0, 1}),
                   make_knob("free", {1, 2, 3})};
  lattice.constraints = {make_constraint("32 <= x * y <= 256"), make_constraint("pad == 0 or x % 32 != 0")};
  return lattice;
}

TEST(Space, CountsWithoutTheProduct) {
  const auto space = Space::build(convolution_like(), {});
  ASSERT_TRUE(space);
  EXPECT_EQ(space->product(), 4u * 4 * 2 * 3);
  EXPECT_EQ(space->count(), nested_loops(convolution_like(), {}).valid.size());
}

TEST(Space, AHugeProductIsNoTrouble) {
  Lattice lattice;
  for (int k = 0; k < 60; ++k) lattice.knobs.push_back(make_knob("k" + std::to_string(k), {0, 1}));
  // A chain that leaves exactly the 61 points 0…01…1.
  for (int k = 0; k + 1 < 60; ++k)
    lattice.constraints.push_back(make_constraint("k" + std::to_string(k) + " <= k" + std::to_string(k + 1)));
  const auto space = Space::build(lattice, {});
  ASSERT_TRUE(space);
  EXPECT_EQ(space->product(), std::uint64_t{1} << 60);
  EXPECT_EQ(space->count(), 61u);
  EXPECT_EQ(space->at(1).indices.back(), 1u);
  EXPECT_EQ(space->index_of(space->at(37)), 37u);
}

TEST(Space, InterleavedGroupsStayInLexicographicOrder) {
  Lattice lattice;
  lattice.knobs = {make_knob("a1", {1, 2, 3}), make_knob("b1", {1, 2, 3}), make_knob("free", {0, 1}),
                   make_knob("a2", {1, 2, 3}), make_knob("b2", {1, 2, 3})};
  lattice.constraints = {make_constraint("a1 <= a2"), make_constraint("b1 != b2")};
  const auto space = Space::build(lattice, {});
  ASSERT_TRUE(space);
  Random random(3);
  expect_same_as_reference(lattice, *space, nested_loops(lattice, {}), random);
}

TEST(Space, ManyInterleavedPairsNeedFewNodes) {
  Lattice lattice;
  for (const char* half : {"a", "b"})
    for (int k = 0; k < 20; ++k) lattice.knobs.push_back(make_knob(half + std::to_string(k), {1, 2, 3}));
  for (int k = 0; k < 20; ++k)
    lattice.constraints.push_back(make_constraint("a" + std::to_string(k) + " < b" + std::to_string(k)));
  const auto space = Space::build(lattice, {}, 2000);
  ASSERT_TRUE(space) << space.error().text();
  EXPECT_EQ(space->count(), 3486784401u);  // 3^20
  Random random(4);
  for (int i = 0; i < 100; ++i) {
    const auto index = random.below(space->count());
    EXPECT_EQ(space->index_of(space->at(index)), index);
  }
}

TEST(Space, RandomPointsAreUniform) {
  const auto space = Space::build(convolution_like(), {});
  ASSERT_TRUE(space);
  Random random(20240501, "uniform");
  std::vector<double> hits(space->count(), 0);
  const double draws = 200.0 * static_cast<double>(space->count());
  for (double i = 0; i < draws; ++i) hits[*space->index_of(space->random(random))] += 1;
  double chi_square = 0;
  for (const double h : hits) chi_square += (h - 200) * (h - 200) / 200;
  const double degrees = static_cast<double>(space->count() - 1);
  // Mean and standard deviation of chi-square; 4 of them leave a false alarm below one in ten thousand,
  // and the seed is fixed. A point that is never drawn alone would add 200.
  EXPECT_LT(std::abs(chi_square - degrees), 4 * std::sqrt(2 * degrees));
}

TEST(Space, ExcludingEverythingGivesNoPoints) {
  Lattice lattice = convolution_like();
  lattice.constraints.push_back(make_constraint("x < 0"));
  const auto space = Space::build(lattice, {});
  ASSERT_TRUE(space);
  EXPECT_EQ(space->count(), 0u);
  EXPECT_FALSE(space->begin_cursor().valid());
  EXPECT_EQ(space->index_of(lattice.base()), std::nullopt);
  EXPECT_THAT(space->neighbours(lattice.base()), IsEmpty());
}

TEST(Space, ALatticeWithoutKnobsHasOnePoint) {
  Lattice lattice;
  const auto space = Space::build(lattice, {});
  ASSERT_TRUE(space);
  EXPECT_EQ(space->count(), 1u);
  EXPECT_THAT(listed(*space), ElementsAre(Point{}));
  lattice.constraints = {make_constraint("n > 10")};
  EXPECT_EQ(Space::build(lattice, make_facts({{"n", Value(5)}}))->count(), 0u);
  EXPECT_EQ(Space::build(lattice, make_facts({{"n", Value(50)}}))->count(), 1u);
}

TEST(Space, UnknownNamesAreErrors) {
  Lattice lattice = convolution_like();
  lattice.constraints.push_back(make_constraint("x == 16 or padd == 0"));
  const auto space = Space::build(lattice, {});
  ASSERT_FALSE(space);
  EXPECT_EQ(space.error().code(), Code::invalid);
  EXPECT_THAT(space.error().message(),
              HasSubstr("constraint 'x == 16 or padd == 0': column 12: 'padd' is neither a "
                        "knob nor known here, did you mean 'pad'?"));
}

TEST(Space, AnErrorNamesItsConstraint) {
  Lattice lattice = convolution_like();
  lattice.constraints.push_back(make_constraint("x // pad > 0"));
  lattice.constraints.back().line = 40;
  EXPECT_EQ(Space::build(lattice, {}).error().message(),
            "line 40: constraint 'x // pad > 0': column 3: division by zero in '//'");
  lattice.constraints.push_back(make_constraint("pad == 1"));
  EXPECT_TRUE(Space::build(lattice, {})) << "pad == 1 protects it";
}

TEST(Space, AnErrorDoesNotCountWhenAnotherGroupIsEmpty) {
  Lattice lattice = convolution_like();
  lattice.constraints.push_back(make_constraint("1 // (free - 1) > 5"));
  EXPECT_FALSE(Space::build(lattice, {}));
  lattice.constraints.push_back(make_constraint("x * y > 100000"));
  const auto space = Space::build(lattice, {});
  ASSERT_TRUE(space) << "every point is excluded by x * y > 100000";
  EXPECT_EQ(space->count(), 0u);
}

TEST(Space, RequirementsFollowTheFacts) {
  Lattice lattice = convolution_like();
  lattice.knobs[3].requires_text = "device.sm >= 80";
  const auto count = [&](int sm) {
    return Space::build(lattice, make_facts({{"device.sm", Value(sm)}}))->count();
  };
  EXPECT_EQ(count(86), 3 * count(75));
  EXPECT_THAT(Space::build(lattice, {}).error().message(),
              HasSubstr("'device.sm' is neither a knob nor known"));
}

// Forty conditions on three knobs: few nodes, but what tells two prefixes apart is long.
TEST(Space, TheLimitCountsWhatTellsPrefixesApart) {
  Lattice lattice;
  std::vector<Value> values;
  for (int v = 0; v < 64; ++v) values.emplace_back(v);
  lattice.knobs = {make_knob("a", values), make_knob("b", values), make_knob("c", {0, 1})};
  for (int i = 0; i < 40; ++i)
    lattice.constraints.push_back(make_constraint(fmt::format("(a * 1000 + b + {}) % 7919 != c * 7919", i)));
  const auto space = Space::build(lattice, {});
  ASSERT_TRUE(space) << space.error().text();
  EXPECT_EQ(space->count(), nested_loops(lattice, {}).valid.size());
  const auto refused = Space::build(lattice, {}, 50'000);  // nodes and edges alone are fewer
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::exhausted);
  EXPECT_THAT(refused.error().message(), HasSubstr("passes 50000 nodes"));
}

// Both beginnings leave the number 2, one the integer and one the float, which rounds what is added to it.
TEST(Space, AnIntegerAndAFloatOfOneValueAreToldApart) {
  for (const char* chosen : {"min(a, h)", "(a if a < 3 else h)", "(a == 2 and a or h)"}) {
    SCOPED_TRACE(chosen);
    Lattice lattice;
    lattice.knobs = {make_knob("a", {3, 2}), make_knob("h", {2.0, 1.0}),
                     make_knob("c", {std::int64_t{9007199254740993}, 0})};
    lattice.constraints = {make_constraint(std::string("(") + chosen + " + c) % 2 == 1")};
    const Reference reference = nested_loops(lattice, {});
    ASSERT_FALSE(reference.error);
    const auto space = Space::build(lattice, {});
    ASSERT_TRUE(space) << space.error().text();
    EXPECT_EQ(listed(*space), reference.valid);
    EXPECT_FALSE(reference.valid.empty());
  }
}

TEST(Space, LimitsAreErrors) {
  EXPECT_EQ(Space::build(convolution_like(), {}, 10).error().code(), Code::exhausted);
  Lattice lattice;
  for (int k = 0; k < 70; ++k) lattice.knobs.push_back(make_knob("k" + std::to_string(k), {0, 1}));
  const auto space = Space::build(lattice, {});
  ASSERT_FALSE(space);
  EXPECT_EQ(space.error().code(), Code::exhausted);
  EXPECT_THAT(space.error().message(), HasSubstr("2^64-1"));
  Lattice one_group = lattice;
  std::string sum = "k0";
  for (int k = 1; k < 70; ++k) sum += " + k" + std::to_string(k);
  one_group.constraints = {make_constraint(sum + " < 69")};
  EXPECT_THAT(Space::build(one_group, {}).error().message(), HasSubstr("2^64-1"));
  lattice.knobs[0].values.clear();
  EXPECT_THAT(Space::build(lattice, {}).error().message(), HasSubstr("knob 'k0' has no values"));
}

TEST(Space, LargestNumbersAreExact) {
  Lattice lattice;
  const std::int64_t top = std::numeric_limits<std::int64_t>::max();
  lattice.knobs = {
      make_knob("a", {top, top - 1, std::numeric_limits<std::int64_t>::min(), std::int64_t{1} << 53}),
      make_knob("b", {1, 9007199254740993, 0.5})};
  for (const char* text :
       {"a - 1 < b * 1.0", "a == 9223372036854775807.0", "b == 9007199254740992.0", "a + 0.0 == a",
        "a / b > 1", "min(a, b) == b", "(a if b else 0.5) > 0", "-a < 0 or b == 1", "abs(a) > b"}) {
    SCOPED_TRACE(text);
    Lattice one = lattice;
    one.constraints = {make_constraint(text)};
    const Reference reference = nested_loops(one, {});
    const auto space = Space::build(one, {});
    ASSERT_EQ(space.has_value(), !reference.error);
    if (space) {
      EXPECT_EQ(listed(*space), reference.valid);
    }
  }
}

TEST(Space, MovesAndItsCursorsStayValid) {
  auto space = Space::build(convolution_like(), {});
  ASSERT_TRUE(space);
  auto cursor = space->begin_cursor();
  Space moved = std::move(*space);
  std::uint64_t count = 0;
  for (; cursor.valid(); cursor.next()) ++count;
  EXPECT_EQ(count, moved.count());
  cursor.next();
  EXPECT_FALSE(cursor.valid());
}

}  // namespace
}  // namespace furlong::lattice
