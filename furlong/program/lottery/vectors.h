#pragma once
// The fixed vectors of a lottery pack: vectors.toml (docs/formats/lottery.md, "Vectors").

#include <string>
#include <string_view>
#include <vector>

#include "furlong/program/lottery/specification.h"
#include "furlong/program/program.h"

namespace furlong::program::lottery {

/// Consecutive nonces from `start` (modulo 2^64), their hashes, and a target that some of them are under.
struct NonceVector {
  std::string name;
  std::uint64_t start = 0;
  std::uint64_t target = 0;
  std::vector<std::uint64_t> hashes;
  /// One bit a nonce, lowest first: hash < target.
  std::vector<std::uint32_t> hits() const;
};

/// Five vectors by the reference interpreter, computed light: from 0, from a nonce of the seed's, across
/// 2^32, across 2^64, and one whose count is no whole number of warps.
std::vector<NonceVector> make_vectors(const LotteryProgram& program, const Parameters& parameters,
                                      const Geometry& geometry);
std::string print_vectors(const std::vector<NonceVector>& vectors);
/// `corrupt` names `where`, line and what is wrong; `incompatible` for another format.
Result<std::vector<NonceVector>> parse_vectors(std::string_view text, std::string_view where);
/// As a program's vector, by the argument names of recipe.h.
Vector program_vector(const NonceVector& vector);

}  // namespace furlong::program::lottery
