#include "furlong/lattice/internal/interval.h"

#include <gtest/gtest.h>

#include "furlong/base/random.h"

namespace furlong::lattice::internal {
namespace {

constexpr std::int64_t kTop = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kLow = std::numeric_limits<std::int64_t>::min();

std::int64_t random_integer(Random& random) {
  static const std::vector<std::int64_t> special = {0,
                                                    1,
                                                    -1,
                                                    2,
                                                    3,
                                                    -7,
                                                    16,
                                                    32,
                                                    1024,
                                                    62,
                                                    63,
                                                    64,
                                                    kTop,
                                                    kTop - 1,
                                                    kLow,
                                                    kLow + 1,
                                                    std::int64_t{1} << 53,
                                                    (std::int64_t{1} << 53) + 1,
                                                    -(std::int64_t{1} << 53) - 1,
                                                    std::int64_t{1} << 32};
  switch (random.below(4)) {
    case 0:
      return special[random.below(special.size())];
    case 1:
      return random.between(-1000, 1000);
    default:
      return random.between(-9, 9);
  }
}

Value random_value(Random& random) {
  switch (random.below(12)) {
    case 0:
      return Value(random.below(2) == 0);
    case 1:
      return Value(std::string(1, "abc"[random.below(3)]));
    case 2:
      return Value("");
    case 3:
      return Value(static_cast<double>(random.between(-20, 20)) / 4);
    case 4:
      return Value(static_cast<double>(random.between(-20, 20)));
    case 5:
      return Value(random.below(2) == 0 ? 1e300 : 9007199254740993.0);
    default:
      return Value(random_integer(random));
  }
}

bool holds(const Interval& interval, const Value& value, WordIds& words) {
  if (interval.kind == Interval::Kind::any) return true;
  const Interval one = interval_of(value, words);
  if (one.kind != interval.kind) return false;
  if (one.real && !interval.real) return false;
  return interval.lo <= one.lo && one.hi <= interval.hi;
}

/// Some values, and the interval that holds them all.
struct Sample {
  std::vector<Value> values;
  Interval interval;
};

Sample random_sample(Random& random, WordIds& words) {
  Sample sample;
  const auto count = random.between(1, 4);
  for (int i = 0; i < count; ++i)
    sample.values.push_back(i > 0 && random.below(3) != 0 ? Value(random.between(1, 64))
                                                          : random_value(random));
  sample.interval = interval_of(sample.values[0], words);
  for (const auto& value : sample.values) sample.interval = unite(sample.interval, interval_of(value, words));
  return sample;
}

TEST(Interval, EveryOperationHoldsEveryResult) {
  Random random(11, "interval");
  WordIds words;
  int exact = 0;
  for (int round = 0; round < 60000; ++round) {
    const Sample a = random_sample(random, words);
    const Sample b = random_sample(random, words);
    const auto op = static_cast<Binary>(random.below(12));
    const Interval result = apply(op, a.interval, b.interval);
    exact += result.exact();
    for (const auto& x : a.values) {
      for (const auto& y : b.values) {
        Value out;
        const Fault fault = apply(op, x, y, out);
        if (fault != Fault::none) {
          ASSERT_TRUE(result.fails) << x.text() << symbol(op) << y.text();
        } else {
          ASSERT_TRUE(holds(result, out, words)) << x.text() << symbol(op) << y.text() << " = " << out.text()
                                                 << " not in [" << result.lo << ", " << result.hi << "]";
        }
      }
    }
  }
  EXPECT_GT(exact, 1500);
}

TEST(Interval, SingleOperandsHoldTheirResults) {
  Random random(12, "interval");
  WordIds words;
  for (int round = 0; round < 20000; ++round) {
    const Sample a = random_sample(random, words);
    const Sample b = random_sample(random, words);
    const auto op = static_cast<Unary>(random.below(5));
    const Interval unary = apply(op, a.interval);
    const Interval rounded_up = ceil_div(a.interval, b.interval);
    for (const auto& x : a.values) {
      Value out;
      if (apply(op, x, out) != Fault::none) {
        ASSERT_TRUE(unary.fails) << symbol(op) << x.text();
      } else {
        ASSERT_TRUE(holds(unary, out, words)) << symbol(op) << x.text() << " = " << out.text();
      }
      for (const auto& y : b.values) {
        if (ceil_div(x, y, out) != Fault::none) {
          ASSERT_TRUE(rounded_up.fails) << x.text() << ", " << y.text();
        } else {
          ASSERT_TRUE(holds(rounded_up, out, words))
              << "ceil_div(" << x.text() << ", " << y.text() << ") = " << out.text();
        }
      }
    }
  }
}

TEST(Interval, ComparisonsThatAreSureAreRight) {
  Random random(13, "interval");
  WordIds words;
  int sure = 0;
  for (int round = 0; round < 60000; ++round) {
    const Sample a = random_sample(random, words);
    const Sample b = random_sample(random, words);
    const auto comparator = static_cast<Comparator>(random.below(6));
    const Interval result = compare(comparator, a.interval, b.interval);
    sure += result.exact();
    for (const auto& x : a.values) {
      for (const auto& y : b.values) {
        bool truth = false;
        const Fault fault = compare(static_cast<Order>(comparator), x, y, truth);
        if (fault != Fault::none) {
          ASSERT_TRUE(result.fails) << x.text() << " and " << y.text();
          continue;
        }
        ASSERT_FALSE(result.surely_true() && !truth)
            << x.text() << symbol(static_cast<Order>(comparator)) << y.text();
        ASSERT_FALSE(result.surely_false() && truth)
            << x.text() << symbol(static_cast<Order>(comparator)) << y.text();
      }
    }
  }
  EXPECT_GT(sure, 10000);
}

TEST(Interval, KnowsWhatTuningConstraintsNeed) {
  const auto range = [](std::int64_t lo, std::int64_t hi) {
    return Interval{lo, hi, Interval::Kind::number, false, false};
  };
  const Interval product = apply(Binary::mul, range(32, 1024), range(1, 32));
  EXPECT_EQ(product.lo, 32);
  EXPECT_EQ(product.hi, 32768);
  EXPECT_TRUE(compare(Comparator::less_equal, product, range(40000, 40000)).surely_true());
  EXPECT_TRUE(compare(Comparator::less, product, range(32, 32)).surely_false());
  const Interval quotient = apply(Binary::div, range(64, 64), range(16, 16));
  EXPECT_TRUE(quotient.exact() && quotient.lo == 4 && quotient.real) << "64 / 16 is the float 4";
  const Interval rest = apply(Binary::mod, range(32, 32), quotient);
  EXPECT_TRUE(rest.surely_false());
  EXPECT_FALSE(apply(Binary::div, range(1, 1), range(2, 2)).exact());
  EXPECT_TRUE(apply(Binary::floor_div, range(1, 9), range(-1, 1)).fails);
}

}  // namespace
}  // namespace furlong::lattice::internal
