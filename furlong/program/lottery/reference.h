#pragma once
// The reference interpreter: plain C++ that walks the instructions. It shares no code with the emitters;
// what they emit is judged by it.

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "furlong/program/lottery/dataset.h"
#include "furlong/program/lottery/specification.h"

namespace furlong::program::lottery {

/// Row `index` of the dataset: from memory ("full") or computed from the cache ("light").
using RowSource = std::function<Row(std::uint32_t index)>;
/// What the interpreter tells about each load: position in the program, iteration, word index read.
using LoadObserver = std::function<void(int instruction, int iteration, std::uint32_t word)>;

RowSource light_rows(const Cache& cache);
/// `dataset` is little-endian words, whole rows; it must outlive the source.
RowSource full_rows(std::span<const std::uint8_t> dataset);

/// The hash of one nonce. `dataset_words` is a multiple of 16 and less than 2^32.
std::uint64_t reference_hash(const LotteryProgram& program, std::uint64_t nonce, std::uint32_t dataset_words,
                             const RowSource& rows, const LoadObserver& observe = {});

/// Hashes of `count` nonces from `start` (modulo 2^64), on `threads` threads; `rows` must be thread safe.
std::vector<std::uint64_t> reference_hashes(const LotteryProgram& program, std::uint64_t start,
                                            std::uint32_t count, std::uint32_t dataset_words,
                                            const RowSource& rows, int threads);

}  // namespace furlong::program::lottery
