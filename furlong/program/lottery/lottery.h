#pragma once
// The lottery: a random program per epoch and day (docs/formats/lottery.md). Specification objects here; the
// emitters, the reference interpreter and the dataset are in files of their own and share only these
// structures.

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "furlong/program/pack.h"
#include "furlong/program/program.h"

namespace furlong::program::lottery {

struct Parameters {
  std::array<std::uint8_t, 32> epoch_seed{};
  std::int64_t day = 0;
  std::string geometry = "small";
  std::int64_t dataset_mib = 0;  ///< 0: by geometry and day
  std::int64_t loads = 128;      ///< per hash: 32, 64 or 128
  std::int64_t wide = 0;         ///< of them 16-byte: 0, 8 or 32
};

/// The seed of `furlong race lottery` when none is given.
std::array<std::uint8_t, 32> demonstration_seed();

/// Same parameters, same bytes.
Result<PackContents> make_pack(const Parameters& parameters);
/// The program of a verified lottery pack: its texts, vectors and recipe joined with the lattice that ships
/// with this build.
Result<std::shared_ptr<const Program>> program_of_pack(const PackContents& contents,
                                                       const std::filesystem::path& folder);

}  // namespace furlong::program::lottery
