#include "furlong/worker/internal/lost_work.h"

#include <gtest/gtest.h>

#include <cmath>

#include "furlong/base/random.h"
#include "furlong/worker/internal/chunk_size.h"

namespace furlong::worker {
namespace {

/// Chunks of 50 ms and 1000 nonces until `until_ms`.
double work(LostWork& lost, double from_ms, double until_ms, double slow = 1) {
  for (double at = from_ms; at < until_ms;) {
    at += 50 * slow;
    lost.chunk(at, 50 * slow, 1000);
    from_ms = at;
  }
  return from_ms;
}

TEST(LostWork, PausesAndSlowdownAreWhatIsMissing) {
  LostWork lost;
  double at = work(lost, 0, 1000);
  EXPECT_DOUBLE_EQ(lost.undisturbed_rate().value(), 20);
  lost.begin(at);
  at = work(lost, at, 2000);
  at += 300;  // a pause: the next chunk ends 350 ms after the one before
  lost.chunk(at + 50, 350, 1000);
  at = work(lost, at + 50, 4350, 2);  // and 2 s at half the rate
  EXPECT_NEAR(lost.finish().value(), 300 + (at - 2350) / 2, 1e-6);
  EXPECT_FALSE(lost.running());
}

TEST(LostWork, UndisturbedWorkLosesNothingWhateverThePhase) {
  Random random(3);
  for (int i = 0; i < 100; ++i) {
    LostWork lost;
    double at = work(lost, 0, 1000);
    lost.begin(at + 50 * random.uniform());  // in the middle of a chunk
    at = work(lost, at, 3000);
    EXPECT_NEAR(lost.finish().value(), 0, 1e-6);
  }
}

TEST(LostWork, WithoutAStretchToCompareWithNothingIsTold) {
  LostWork lost;
  lost.begin(0);
  work(lost, 0, 1000);
  EXPECT_FALSE(lost.finish());
  double at = work(lost, 1000, 2000);
  lost.begin(at);
  EXPECT_FALSE(lost.finish());  // no chunk ended meanwhile
  lost.begin(at);
  lost.chunk(at + 50, 50, 1000);
  lost.interrupt();  // the job ended
  EXPECT_FALSE(lost.finish());
  lost.begin(at);
  lost.forget();  // the pair was swapped
  EXPECT_FALSE(lost.finish());
}

TEST(ChunkSize, ComesToTheLengthAskedFor) {
  for (const double rate : {1.0, 50.0, 3000.0, 250'000.0}) {  // nonces a ms
    std::uint64_t nonces = 4096;
    for (int i = 0; i < 30; ++i) {
      nonces = next_chunk(nonces, static_cast<double>(nonces) / rate, 50, 524288);
      EXPECT_TRUE(nonces < 524288 || nonces % 524288 == 0) << nonces;
    }
    const double took_ms = static_cast<double>(nonces) / rate;
    EXPECT_TRUE(nonces == 256 || std::abs(took_ms - 50) < 50 * 0.05) << rate << " " << took_ms;
  }
  EXPECT_EQ(next_chunk(1000, 0, 50, 8192), 4000u);
  EXPECT_EQ(next_chunk(1000, 1e9, 50, 8192), 256u);
}

}  // namespace
}  // namespace furlong::worker
