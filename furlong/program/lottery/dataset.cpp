#include "furlong/program/lottery/dataset.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <string_view>
#include <thread>

#include "furlong/base/hash.h"

namespace furlong::program::lottery {
namespace {

constexpr int kCacheDoubleRounds = 4;
constexpr int kCacheReads = 8;  ///< lines that a row reads, besides its own

void quarter_round(Row& x, std::size_t a, std::size_t b, std::size_t c, std::size_t d) {
  x[a] += x[b], x[d] = std::rotl(x[d] ^ x[a], 16);
  x[c] += x[d], x[b] = std::rotl(x[b] ^ x[c], 12);
  x[a] += x[b], x[d] = std::rotl(x[d] ^ x[a], 8);
  x[c] += x[d], x[b] = std::rotl(x[b] ^ x[c], 7);
}

/// ChaCha's double round (Bernstein 2008): columns, then diagonals.
void double_round(Row& x) {
  quarter_round(x, 0, 4, 8, 12);
  quarter_round(x, 1, 5, 9, 13);
  quarter_round(x, 2, 6, 10, 14);
  quarter_round(x, 3, 7, 11, 15);
  quarter_round(x, 0, 5, 10, 15);
  quarter_round(x, 1, 6, 11, 12);
  quarter_round(x, 2, 7, 8, 13);
  quarter_round(x, 3, 4, 9, 14);
}

Digest cache_key(const Parameters& parameters, std::uint32_t lines) {
  std::array<std::uint8_t, 80> message{};
  constexpr std::string_view label = "furlong lottery cache 1";
  std::memcpy(message.data(), label.data(), label.size());
  std::ranges::copy(parameters.epoch_seed, message.begin() + 32);
  store_le(&message[64], static_cast<std::uint64_t>(parameters.day));
  store_le(&message[72], static_cast<std::uint64_t>(lines) * kRowBytes);
  return blake2b_256(ByteView(message));
}

std::uint32_t scaled(std::uint32_t word, std::uint32_t bound) {
  return static_cast<std::uint32_t>((static_cast<std::uint64_t>(word) * bound) >> 32);
}

// ---- several rows at once, for filling: four words a vector, as ChaCha is usually vectorised, and kTogether
// rows side by side so that their reads of the cache overlap.

typedef std::uint32_t Quad __attribute__((vector_size(16)));
constexpr std::size_t kTogether = 4;
using QuadRow = std::array<Quad, 4>;
using Batch = std::array<QuadRow, kTogether>;

template <int N>
void rotate_quad(Quad& x) {
  x = (x << N) | (x >> (32 - N));
}

void quarter_rounds(QuadRow& x) {
  x[0] += x[1], x[3] ^= x[0], rotate_quad<16>(x[3]);
  x[2] += x[3], x[1] ^= x[2], rotate_quad<12>(x[1]);
  x[0] += x[1], x[3] ^= x[0], rotate_quad<8>(x[3]);
  x[2] += x[3], x[1] ^= x[2], rotate_quad<7>(x[1]);
}

void double_round(QuadRow& x) {
  quarter_rounds(x);
  x[1] = __builtin_shufflevector(x[1], x[1], 1, 2, 3, 0);
  x[2] = __builtin_shufflevector(x[2], x[2], 2, 3, 0, 1);
  x[3] = __builtin_shufflevector(x[3], x[3], 3, 0, 1, 2);
  quarter_rounds(x);
  x[1] = __builtin_shufflevector(x[1], x[1], 3, 0, 1, 2);
  x[2] = __builtin_shufflevector(x[2], x[2], 2, 3, 0, 1);
  x[3] = __builtin_shufflevector(x[3], x[3], 1, 2, 3, 0);
}

QuadRow load_quads(const Row& row) {
  QuadRow quads;
  std::memcpy(&quads, row.data(), sizeof quads);
  return quads;
}

/// Rows first, …, first + kTogether - 1; the same as Cache::dataset_row of each.
void fill_batch(std::span<const Row> lines, std::uint32_t first, std::uint8_t* into) {
  const auto count = static_cast<std::uint32_t>(lines.size());
  Batch batch;
  for (std::uint32_t i = 0; i < kTogether; ++i) {
    batch[i] = load_quads(lines[(first + i) % count]);
    batch[i][0][0] ^= first + i;
    double_round(batch[i]);
  }
  for (std::size_t read = 0; read < kCacheReads; ++read) {
    for (QuadRow& x : batch) {
      const QuadRow line = load_quads(lines[scaled(x[read / 4][read % 4], count)]);
      for (std::size_t k = 0; k < 4; ++k) x[k] ^= line[k];
    }
    for (QuadRow& x : batch) double_round(x);
  }
  std::memcpy(into, &batch, sizeof batch);
}

void fill_rows(const Cache& cache, std::uint64_t first, std::uint64_t end, std::uint8_t* data) {
  std::uint64_t i = first;
  for (; i + kTogether <= end; i += kTogether)
    fill_batch(cache.lines(), static_cast<std::uint32_t>(i), data + i * kRowBytes);
  for (; i < end; ++i) {
    const Row row = cache.dataset_row(static_cast<std::uint32_t>(i));
    std::memcpy(data + i * kRowBytes, row.data(), kRowBytes);
  }
}

}  // namespace

Cache::Cache(const Parameters& parameters, std::uint32_t lines) : lines_(lines) {
  const Digest key = cache_key(parameters, lines);
  constexpr std::string_view constants = "every row comes from this cache.";
  static_assert(constants.size() == 32);
  Row state;
  std::memcpy(state.data(), key.bytes.data(), 32);
  std::memcpy(state.data() + 8, constants.data(), 32);
  for (std::uint32_t i = 0; i < lines; ++i) {
    Row mixed = state;
    mixed[12] ^= i;
    for (int round = 0; round < kCacheDoubleRounds; ++round) double_round(mixed);
    for (std::size_t k = 0; k < kRowWords; ++k) state[k] += mixed[k];
    lines_[i] = state;
  }
}

Row Cache::dataset_row(std::uint32_t index) const {
  const auto lines = static_cast<std::uint32_t>(lines_.size());
  Row x = lines_[index % lines];
  x[0] ^= index;
  double_round(x);
  for (std::size_t read = 0; read < kCacheReads; ++read) {
    const Row& line = lines_[scaled(x[read], lines)];
    for (std::size_t k = 0; k < kRowWords; ++k) x[k] ^= line[k];
    double_round(x);
  }
  return x;
}

Status fill_dataset(const Cache& cache, std::span<std::uint8_t> into, int threads, std::stop_token stop) {
  if (into.size() % kRowBytes != 0 || into.size() / kRowBytes > 0xffffffffull)
    return fail(Code::invalid,
                "a dataset of {} bytes: it must be whole rows of {} bytes, fewer than 2^32 of them",
                into.size(), kRowBytes);
  const std::uint64_t rows = into.size() / kRowBytes;
  constexpr std::uint64_t chunk = 4096;  // rows between two looks at the stop token
  std::atomic<std::uint64_t> next{0};
  const auto work = [&] {
    for (;;) {
      const std::uint64_t first = next.fetch_add(chunk, std::memory_order_relaxed);
      if (first >= rows || stop.stop_requested()) return;
      fill_rows(cache, first, std::min(first + chunk, rows), into.data());
    }
  };
  {
    std::vector<std::jthread> helpers;
    for (int i = 1; i < threads; ++i) helpers.emplace_back(work);
    work();
  }
  if (stop.stop_requested() && next.load() < rows + chunk * static_cast<std::uint64_t>(std::max(threads, 1)))
    return fail(Code::timeout, "building the dataset was stopped after about {} of {} rows",
                std::min(next.load(), rows), rows);
  return {};
}

}  // namespace furlong::program::lottery
