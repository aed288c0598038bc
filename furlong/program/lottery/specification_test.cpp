// The vectors of docs/formats/lottery.md are what this code computes. The page's second reader is
// tests/formats/lottery_test.py, an implementation of its own.
#include <gtest/gtest.h>

#include "furlong/base/os/file.h"
#include "furlong/program/lottery/reference.h"

namespace furlong::program::lottery {
namespace {

constexpr std::array<std::string_view, 8> kNames = {"add",    "subtract", "exclusive", "multiply",
                                                    "rotate", "high",     "load",      "load_wide"};

std::string words_text(std::span<const std::uint32_t> words) {
  std::string out;
  for (const std::uint32_t word : words) out += fmt::format(" {:08x}", word);
  return out;
}

void add_hashes(std::string& out, const Parameters& parameters, std::initializer_list<std::uint64_t> nonces) {
  const Geometry geometry = *geometry_of(parameters);
  const LotteryProgram program = *generate_program(parameters);
  const Cache cache(parameters, geometry.cache_lines());
  for (const std::uint64_t nonce : nonces)
    out += fmt::format("hash {:016x}: {:016x}\n", nonce,
                       reference_hash(program, nonce, geometry.dataset_words(), light_rows(cache)));
}

void add_program(std::string& out, const LotteryProgram& program) {
  out += fmt::format("nonce_key:{}\n", words_text(program.nonce_keys));
  out += fmt::format("hash_key:{}\n", words_text(program.hash_keys));
  out += fmt::format("register_key:{}\n", words_text(program.register_keys));
  for (std::size_t i = 0; i < program.instructions.size(); ++i) {
    const Instruction& x = program.instructions[i];
    out += fmt::format("{} {} {} {} {:08x} {}\n", i, kNames[static_cast<std::size_t>(x.operation)],
                       x.destination, x.source, x.constant, x.rotation);
  }
}

std::string vector_block() {
  Parameters demonstration{.epoch_seed = demonstration_seed()};
  const Geometry geometry = *geometry_of(demonstration);
  const Cache cache(demonstration, geometry.cache_lines());
  const std::uint32_t last_row = geometry.dataset_rows() - 1;
  std::string out = fmt::format("[demonstration seed, day 0, small, 128 loads, 0 wide]\nepoch_seed: {}\n",
                                to_hex(demonstration.epoch_seed));
  add_program(out, *generate_program(demonstration));
  out += fmt::format("cache line 0:{}\n", words_text(cache.lines().front()));
  out += fmt::format("cache line {}:{}\n", cache.lines().size() - 1, words_text(cache.lines().back()));
  out += fmt::format("dataset row 0:{}\n", words_text(cache.dataset_row(0)));
  out += fmt::format("dataset row {}:{}\n", last_row, words_text(cache.dataset_row(last_row)));
  add_hashes(out, demonstration, {0, 1, 0x0123456789abcdef, 0xffffffffffffffff});

  out += "\n[demonstration seed, day 3, dataset of 65 MiB over the small cache, 64 loads, 32 wide]\n";
  add_hashes(out, {.epoch_seed = demonstration_seed(), .day = 3, .dataset_mib = 65, .loads = 64, .wide = 32},
             {0, 0xfedcba9876543210});
  Parameters counting{.day = 1, .loads = 32, .wide = 8};
  for (std::size_t i = 0; i < 32; ++i) counting.epoch_seed[i] = static_cast<std::uint8_t>(i);
  out += "\n[epoch_seed 000102…1f, day 1, small, 32 loads, 8 wide]\n";
  add_hashes(out, counting, {0, 0x8000000000000000});
  return out;
}

TEST(LotterySpecification, VectorsInTheDocumentAreWhatTheCodeComputes) {
  const auto page = system_files().read("docs/formats/lottery.md");
  ASSERT_TRUE(page) << page.error().text();
  const std::string block = "```text\n" + vector_block() + "```\n";
  EXPECT_NE(page->find(block), std::string::npos) << "the page must hold this block:\n" << block;
}

}  // namespace
}  // namespace furlong::program::lottery
