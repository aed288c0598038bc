// Stands in for libFuzzer where the build has none: runs a fuzzer on its seed files and on a fixed number
// of mutations of them, the same on every machine. Usage: PROGRAM SEED_FOLDER. Ends nonzero when the
// folder is missing or empty, since a fuzzer that ran on nothing proves nothing; a fault in the fuzzed
// code ends the program by itself (abort, sanitizer, signal).

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "furlong/base/random.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

using Input = std::vector<std::uint8_t>;

constexpr std::size_t mutations = 2000;
constexpr std::size_t longest = 1u << 16;

std::vector<Input> read_seeds(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> paths;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error))
    if (entry->is_regular_file(error)) paths.push_back(entry->path());
  std::sort(paths.begin(), paths.end());  // the folder's own order differs from machine to machine
  std::vector<Input> seeds;
  for (const auto& path : paths) {
    std::ifstream in(path, std::ios::binary);
    seeds.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
  }
  return seeds;
}

std::size_t position(furlong::Random& random, const Input& input) { return random.below(input.size() + 1); }

// One of the changes that find faults in parsers: a flipped bit, a foreign byte, a cut, a doubled or
// swapped piece, a piece of another seed, an extreme number.
void mutate(Input& input, const std::vector<Input>& seeds, furlong::Random& random) {
  static constexpr const char* numbers[] = {"-1", "0", "9223372036854775808", "1e999",
                                            "18446744073709551616"};
  const auto at = static_cast<std::ptrdiff_t>(position(random, input));
  const auto until = std::min(static_cast<std::ptrdiff_t>(input.size()),
                              at + static_cast<std::ptrdiff_t>(random.below(64)) + 1);
  switch (random.below(7)) {
    case 0:
      if (at < until) input[static_cast<std::size_t>(at)] ^= static_cast<std::uint8_t>(1u << random.below(8));
      break;
    case 1:
      if (at < until) input[static_cast<std::size_t>(at)] = static_cast<std::uint8_t>(random.below(256));
      break;
    case 2:
      input.erase(input.begin() + at, input.begin() + until);
      break;
    case 3: {
      const Input piece(input.begin() + at, input.begin() + until);
      for (std::uint64_t times = random.below(80) + 1; times > 0; --times)
        input.insert(input.begin() + at, piece.begin(), piece.end());
      break;
    }
    case 4: {
      const Input& other = seeds[random.below(seeds.size())];
      const auto from = static_cast<std::ptrdiff_t>(position(random, other));
      input.insert(input.begin() + at, other.begin() + from, other.end());
      break;
    }
    case 5: {
      const std::string number = numbers[random.below(std::size(numbers))];
      input.insert(input.begin() + at, number.begin(), number.end());
      break;
    }
    default:
      input.resize(static_cast<std::size_t>(at));
  }
  if (input.size() > longest) input.resize(longest);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s SEED_FOLDER\n", argv[0]);
    return 2;
  }
  const std::vector<Input> seeds = read_seeds(argv[1]);
  if (seeds.empty()) {
    std::fprintf(stderr, "%s: the seed folder is missing or has no files\n", argv[1]);
    return 1;
  }
  for (const Input& seed : seeds) LLVMFuzzerTestOneInput(seed.data(), seed.size());
  for (std::size_t i = 0; i < mutations; ++i) {
    furlong::Random random(i, "fuzz replay");
    Input input = seeds[i % seeds.size()];
    for (std::uint64_t steps = random.below(4) + 1; steps > 0; --steps) mutate(input, seeds, random);
    LLVMFuzzerTestOneInput(input.data(), input.size());
  }
  std::printf("ran %zu seeds and %zu mutations\n", seeds.size(), mutations);
  return 0;
}
