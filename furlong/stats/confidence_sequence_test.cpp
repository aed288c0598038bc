#include "furlong/stats/confidence_sequence.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "furlong/base/random.h"
#include "furlong/stats/centre.h"

namespace furlong::stats {
namespace {

TEST(RunningMoments, MatchesTwoPassFormulas) {
  Random random(1);
  std::vector<double> values;
  RunningMoments moments;
  EXPECT_EQ(moments.variance(), 0);
  for (int i = 0; i < 200; ++i) {
    values.push_back(1000 + 1e-3 * random.normal());  // a large mean over small noise
    moments.add(values.back());
    if (i < 1) continue;
    EXPECT_NEAR(moments.mean(), mean(values), 1e-12 * 1000);
    EXPECT_NEAR(std::sqrt(moments.variance()), deviation(values), 1e-9);
    double products = 0;
    for (std::size_t k = 0; k + 1 < values.size(); ++k)
      products += (values[k] - mean(values)) * (values[k + 1] - mean(values));
    EXPECT_NEAR(moments.lag_products(), products, 1e-9 * static_cast<double>(values.size()));
  }
  EXPECT_EQ(moments.count(), 200);
}

TEST(TMixture, RadiusInvertsTheEvidence) {
  // At the end of the interval the evidence against the null is exactly 1 / error.
  Random random(2);
  for (const double error : {0.05, 0.005, 0.0003})
    for (const double effect_variance : {0.5, 10.0, 60.0})
      for (const double degrees : {0.0, 4.0}) {
        const VariancePrior prior{degrees, 1.5};
        RunningMoments samples;
        for (int n = 1; n <= 60; ++n) {
          samples.add(3 + random.normal());
          const double half = t_mixture_half_width(samples, error, effect_variance, prior);
          if (!std::isfinite(half)) continue;
          for (const double side : {-1.0, 1.0})
            EXPECT_NEAR(
                t_mixture_evidence(samples, samples.mean() + side * half, effect_variance, prior) * error, 1,
                1e-6);
          EXPECT_LT(t_mixture_evidence(samples, samples.mean() + 0.5 * half, effect_variance, prior) * error,
                    1);
        }
      }
}

TEST(TMixture, EvidenceIsTheIntegralOfLikelihoodRatios) {
  // The Bayes factor by brute force: integrate the likelihood over effect size and sigma on a grid.
  const std::vector<double> values{0.9, 1.4, 0.2, 1.1, 0.7};
  RunningMoments samples;
  for (double v : values) samples.add(v);
  const double g = 2.0;
  const auto marginal = [&](bool alternative) {
    double sum = 0;
    for (double log_sigma = -5; log_sigma < 5; log_sigma += 0.01) {
      const double sigma = std::exp(log_sigma);  // right Haar: d sigma / sigma = d log sigma
      const int steps = alternative ? 400 : 1;
      for (int s = 0; s < steps; ++s) {
        const double effect = alternative ? -10 + 20 * (s + 0.5) / steps : 0;
        const double prior =
            alternative ? std::exp(-effect * effect / (2 * g)) / std::sqrt(2 * M_PI * g) * 20 / steps : 1;
        double log_likelihood = 0;
        for (double v : values) log_likelihood += -std::log(sigma) - std::pow(v / sigma - effect, 2) / 2;
        sum += prior * std::exp(log_likelihood);
      }
    }
    return sum;
  };
  EXPECT_NEAR(t_mixture_evidence(samples, 0, g), marginal(true) / marginal(false),
              1e-3 * t_mixture_evidence(samples, 0, g));
}

TEST(TMixture, RadiusShrinksWithSamplesErrorAndKnowledge) {
  double before = std::numeric_limits<double>::infinity();
  for (int n = 1; n <= 2000; ++n) {
    const double radius = t_mixture_radius(n, 0.005, 10);
    EXPECT_LE(radius, before) << n;
    before = radius;
    EXPECT_LE(t_mixture_radius(n, 0.05, 10), radius);
  }
  EXPECT_TRUE(std::isinf(t_mixture_radius(1, 0.05, 10)));
  EXPECT_TRUE(std::isinf(t_mixture_radius(3, 0.005, 10)));
  EXPECT_TRUE(std::isfinite(t_mixture_radius(3, 0.005, 10, 4)));
  EXPECT_TRUE(std::isinf(t_mixture_radius(10, 0, 10)));
  EXPECT_TRUE(std::isinf(t_mixture_radius(10, 0.05, 0)));
}

TEST(TMixture, RadiusIsWiderThanASingleLook) {
  // In the same unit, the sample deviation.
  for (int n = 4; n < 1000; n = n * 3 / 2) {
    const double single = single_look_radius(n, 0.005);
    EXPECT_GT(t_mixture_radius(n, 0.005, 10) * std::sqrt(n - 1.0), single) << n;
  }
}

TEST(TMixture, BestEffectVarianceIsAMinimum) {
  for (const int n : {4, 8, 30, 300})
    for (const double degrees : {0.0, 4.0}) {
      const double g = best_effect_variance(n, 0.005, degrees);
      const double at = t_mixture_radius(n, 0.005, g, degrees);
      ASSERT_TRUE(std::isfinite(at)) << n;
      EXPECT_LE(at, t_mixture_radius(n, 0.005, g * 1.2, degrees));
      EXPECT_LE(at, t_mixture_radius(n, 0.005, g / 1.2, degrees));
    }
}

// The share of series whose interval ever leaves out the true mean.
template <class Draw>
double miss_rate(int series, int samples, double error, VariancePrior prior, Draw draw) {
  RadiusTable radius(error, 10, prior.degrees);
  int misses = 0;
  for (int s = 0; s < series; ++s) {
    RunningMoments moments;
    for (int n = 1; n <= samples; ++n) {
      moments.add(draw(s, n));
      const double half = radius.at(n) * std::sqrt(moments.squares() + prior.degrees * prior.variance);
      if (std::abs(moments.mean()) > half) {
        ++misses;
        break;
      }
    }
  }
  return static_cast<double>(misses) / series;
}

TEST(ConfidenceSequence, CoversAtEveryHeatAtOnce) {
  Random random(3);
  const auto gaussian = [&](int, int) { return random.normal(); };
  // 5% allowed at any of 300 looks together; the binomial scatter of 4,000 series is 0.35%.
  const double missed = miss_rate(4000, 300, 0.05, {}, gaussian);
  EXPECT_LE(missed, 0.05 + 0.01);
  EXPECT_GE(missed, 0.01) << "far too wide: is it computed at all?";
  EXPECT_LE(miss_rate(4000, 300, 0.005, {}, gaussian), 0.005 + 0.0035);
}

TEST(ConfidenceSequence, CoversWithAVariancePriorThatIsRight) {
  Random random(4);
  const auto gaussian = [&](int, int) { return 0.7 * random.normal(); };
  EXPECT_LE(miss_rate(4000, 300, 0.05, {4, 0.49}, gaussian), 0.05 + 0.01);
}

TEST(ConfidenceSequence, SingleLookIntervalDoesNotCoverWhenLookedAtAgain) {
  // The mistake that the sequence exists to avoid, so that the test above is known to be able to fail.
  Random random(5);
  int misses = 0;
  for (int s = 0; s < 1000; ++s) {
    RunningMoments moments;
    bool missed = false;
    for (int n = 1; n <= 300 && !missed; ++n) {
      moments.add(random.normal());
      missed =
          n >= 4 && std::abs(moments.mean()) > single_look_radius(n, 0.05) * std::sqrt(moments.variance());
    }
    misses += missed;
  }
  EXPECT_GT(misses, 250);
}

TEST(Quantiles, KnownValues) {
  EXPECT_NEAR(normal_quantile(0.975), 1.959963985, 1e-8);
  EXPECT_NEAR(student_quantile(0.975, 4), 2.776445105, 1e-8);
  EXPECT_NEAR(single_look_radius(5, 0.05), 2.776445105 / std::sqrt(5), 1e-8);
  EXPECT_TRUE(std::isnan(normal_quantile(0)));
  EXPECT_TRUE(std::isnan(normal_quantile(1.5)));
  EXPECT_TRUE(std::isnan(student_quantile(0.5, 0)));
  EXPECT_TRUE(std::isinf(single_look_radius(1, 0.05)));
}

TEST(CorrelationInflation, MatchesAFirstOrderAutoregression) {
  EXPECT_EQ(correlation_inflation(-0.5), 1);
  EXPECT_EQ(correlation_inflation(0), 1);
  EXPECT_NEAR(correlation_inflation(0.5), std::sqrt(3), 1e-12);
  EXPECT_TRUE(std::isfinite(correlation_inflation(2)));
  // Measured: the mean of n correlated samples scatters that much more than that of white ones.
  Random random(6);
  constexpr int kSeries = 3000, kSamples = 200;
  double squares = 0;
  for (int s = 0; s < kSeries; ++s) {
    double x = random.normal(), sum = 0;
    for (int i = 0; i < kSamples; ++i) {
      x = 0.5 * x + std::sqrt(0.75) * random.normal();
      sum += x;
    }
    squares += sum * sum / kSamples;
  }
  EXPECT_NEAR(std::sqrt(squares / kSeries), correlation_inflation(0.5), 0.08);
}

}  // namespace
}  // namespace furlong::stats
