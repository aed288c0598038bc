#pragma once
// The sections of the card's bench, each of which can be run by itself (bench/card_bench.cpp).

#include "bench/card/stage.h"

namespace furlong::bench {

/// Rates of the lottery's classes and dataset sizes as shares of the random-load ceiling, and who wins where.
Status lottery_section(Bench& bench, Stage& stage);
/// The race and the plain rule on the same packs: pause and agreement.
Status classic_section(Bench& bench, Stage& stage);
/// Races of separately compiled copies of base: switches; and with one that is 1% faster: found or not.
Status copies_section(Bench& bench, Stage& stage);
/// Compile time of the lottery's catalogue by threads, without and with a warm cache, a fresh process each.
Status compile_section(Bench& bench, Stage& stage);
/// What such a process does: compiles the catalogue once, with --threads.
Status compile_once(Bench& bench, Stage& stage);
/// Compiles and launches every variant of the shipped programs once on small inputs, in buffers without guard
/// zones: for compute-sanitizer.
Status launch_all(Bench& bench, Stage& stage);
/// The same for these points of one program; returns how many ran. An output that differs from a known one is
/// `mismatch` and names the variant.
Result<int> launch_points(Stage& stage, const program::Instance& instance,
                          std::vector<lattice::Point> points);

}  // namespace furlong::bench
