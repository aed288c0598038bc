// Asks for the raced kernel of y = W x, Q8_0 weights, of one shape on the first CUDA card, runs it and holds
// it against a plain loop. The first run races; the next ones on the same card, driver and compiler find its
// choice in the cache.
//
//   linear-cuda [N K [BATCH [BUDGET_S [ROTATE_MIB]]]]
//
// The race multiplies ROTATE_MIB (128) of copies of W in turn, as if each came from memory; 0: one that stays
// in the card's cache.
//
// Exit 0: y is right; 1: it is wrong or something failed (the message says what); 2: usage; 4: no card.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "furlong/base/log.h"
#include "furlong/base/os/clock.h"
#include "furlong/base/random.h"
#include "furlong/base/text.h"
#include "furlong/device/cuda/cuda.h"
#include "furlong/kernel/linear.h"

namespace {

using namespace furlong;

constexpr std::size_t kBlock = 32, kBlockBytes = 34;  // an f16 scale, then 32 int8

std::size_t blocks(std::size_t k) { return (k + kBlock - 1) / kBlock; }

/// Rows of Q8_0 blocks; what fills up the last block of a row is never read into a result.
Bytes make_weights(const kernel::GemvShape& shape, Random& random) {
  Bytes bytes(static_cast<std::size_t>(shape.n) * blocks(static_cast<std::size_t>(shape.k)) * kBlockBytes);
  for (std::size_t at = 0; at < bytes.size(); at += kBlockBytes) {
    // Scales of 2^-7 to 2^-6: f16 with exponent 8.
    store_le<std::uint16_t>(bytes.data() + at, static_cast<std::uint16_t>(0x2000 | (random.next() & 0x3ff)));
    for (std::size_t i = 0; i < kBlock; ++i)
      bytes[at + 2 + i] = static_cast<std::uint8_t>(random.between(-127, 127));
  }
  return bytes;
}

std::vector<float> make_vectors(const kernel::GemvShape& shape, Random& random) {
  std::vector<float> x(static_cast<std::size_t>(shape.batch * shape.k));
  for (float& value : x) value = static_cast<float>(2 * random.uniform() - 1);
  return x;
}

double scale_of(const std::uint8_t* block) {
  const auto half = load_le<std::uint16_t>(block);
  return std::ldexp(1024 + (half & 0x3ff), (half >> 10 & 0x1f) - 25);
}

/// The plain loop, in double.
std::vector<double> product(const kernel::GemvShape& shape, const Bytes& weights,
                            const std::vector<float>& x) {
  const auto n = static_cast<std::size_t>(shape.n), k = static_cast<std::size_t>(shape.k);
  std::vector<double> y(static_cast<std::size_t>(shape.batch) * n);
  for (std::size_t row = 0; row < n; ++row)
    for (std::size_t i = 0; i < k; ++i) {
      const std::uint8_t* block = weights.data() + (row * blocks(k) + i / kBlock) * kBlockBytes;
      const double weight = scale_of(block) * static_cast<std::int8_t>(block[2 + i % kBlock]);
      for (std::size_t column = 0; column < y.size() / n; ++column)
        y[column * n + row] += weight * static_cast<double>(x[column * k + i]);
    }
  return y;
}

/// Norm of the error over norm of what is expected.
double error_of(const std::vector<float>& got, const std::vector<double>& want) {
  double error = 0, norm = 0;
  for (std::size_t i = 0; i < want.size(); ++i) {
    const double difference = static_cast<double>(got[i]) - want[i];
    error += difference * difference;
    norm += want[i] * want[i];
  }
  return std::sqrt(error / norm);
}

ByteView bytes_of(const std::vector<float>& values) {
  return {reinterpret_cast<const std::uint8_t*>(values.data()), 4 * values.size()};
}

Status run(device::Device& device, const kernel::GemvShape& shape, double budget_s, std::int64_t rotate_mib) {
  const double start_ms = system_clock().now_ms();
  kernel::GemvOptions options;
  options.rotate_mib = rotate_mib;
  options.kernel.race_options.budget_s = budget_s;
  FURLONG_TRY(const kernel::RacedKernel gemv, kernel::raced_gemv(device, shape, options));
  std::printf("%lld x %lld by %lld on %s: %s\n", static_cast<long long>(shape.n),
              static_cast<long long>(shape.k), static_cast<long long>(shape.batch),
              device.facts().label.c_str(), gemv.variant().c_str());
  std::printf("%s\n", gemv.why().c_str());
  std::printf("%s after %.1f s\n", gemv.from_cache() ? "from the cache" : "raced",
              1e-3 * (system_clock().now_ms() - start_ms));

  Random random(1);
  const Bytes weights = make_weights(shape, random);
  const std::vector<float> x = make_vectors(shape, random);
  std::vector<float> y(static_cast<std::size_t>(shape.batch * shape.n));
  FURLONG_TRY(const auto weights_buffer, device.allocate(weights.size()));
  FURLONG_TRY(const auto x_buffer, device.allocate(4 * x.size()));
  FURLONG_TRY(const auto y_buffer, device.allocate(4 * y.size()));
  FURLONG_CHECK(weights_buffer->write(0, weights));
  FURLONG_CHECK(x_buffer->write(0, bytes_of(x)));
  FURLONG_TRY(kernel::Bound bound, gemv.bind(kernel::Arguments()
                                                 .buffer("weights", *weights_buffer)
                                                 .buffer("x", *x_buffer)
                                                 .buffer("y", *y_buffer)));
  FURLONG_CHECK(bound.prepare());  // the layout of the weights: once, until they change
  FURLONG_CHECK(bound.launch());
  FURLONG_CHECK(device.finish());
  FURLONG_CHECK(y_buffer->read(0, {reinterpret_cast<std::uint8_t*>(y.data()), 4 * y.size()}));
  const double error = error_of(y, product(shape, weights, x));
  if (!(error < 2e-4)) return fail(Code::mismatch, "wrong: the error is {:g} of the norm", error);

  FURLONG_TRY(const auto times, device.time({.pipeline = bound.launches(), .repeats = 6}));
  std::printf("right to %.1e of the norm; %.4g us, %.4g GB/s of weights\n", error, 1e3 * times.back(),
              1e-6 * static_cast<double>(weights.size()) / times.back());
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  std::int64_t numbers[] = {4096, 4096, 1, 60, 128};
  bool usage = argc == 2 || argc > 6;
  for (int i = 1; i < argc && !usage; ++i) {
    const auto number = parse_integer(argv[i]);
    usage = !number;
    if (number) numbers[i - 1] = *number;
  }
  if (usage || numbers[3] < 1) {
    std::fprintf(stderr, "usage: %s [N K [BATCH [BUDGET_S [ROTATE_MIB]]]]\n", argv[0]);
    return 2;
  }
  log_to_stderr(LogLevel::warning);
  const auto driver = device::make_cuda_driver();
  const auto card = driver->open(0);
  if (!card) {
    std::fprintf(stderr, "no CUDA card here: %s\n", card.error().text().c_str());
    return 4;
  }
  const Status status = run(**card, {.n = numbers[0], .k = numbers[1], .batch = numbers[2]},
                            static_cast<double>(numbers[3]), numbers[4]);
  if (!status) std::fprintf(stderr, "%s\n", status.error().text().c_str());
  return status ? 0 : 1;
}
