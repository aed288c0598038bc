#pragma once
// The kernels whose rates are a device's ceilings, in every language, and what they must give.
//
// Memory holds mix(i) in word i. A kernel's output is one word an element (a thread, or a lane of its
// vector): what it read, summed, so that no load can be left out and a wrong address shows. Arithmetic
// kernels give the sum of their chains' last values.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "furlong/device/ceilings.h"

namespace furlong::device::internal {

/// Chains of multiply-adds of an element that do not wait for each other.
inline constexpr unsigned kChains = 8;
/// Steps of each chain in one round of an arithmetic kernel.
inline constexpr unsigned kSteps = 16;
/// Accumulators of a matrix kernel's warp, one instruction each a round.
inline constexpr unsigned kTiles = 8;
/// Scalars of the arithmetic kernels: a full-period generator's, and the step of the circle.
inline constexpr std::uint32_t kFactor = 1664525u, kAddend = 1013904223u;
inline constexpr float kAngle = 0.0625f;

/// A finaliser that spreads every bit over all (MurmurHash3's fmix32, Austin Appleby, public domain).
constexpr std::uint32_t mix(std::uint32_t x) {
  x ^= x >> 16;
  x *= 0x85ebca6bu;
  x ^= x >> 13;
  x *= 0xc2b2ae35u;
  return x ^ (x >> 16);
}

/// One of several ways of running a kernel; the fastest is the ceiling.
struct Way {
  int unroll = 8;  ///< loads in flight an element (memory kernels)
  int block = 256;
  int width = 1;  ///< elements a thread (OpenCL arithmetic on CPUs: vectors)
  /// Streams: each thread goes through a strip of its own, as suits a CPU's compiler that runs the threads of
  /// a block one after another; else the threads of a block go side by side.
  bool strips = false;
};
std::string words_of(CeilingKind kind, const Way& way);

/// The kernel function of a kind; "fill" fills memory.
std::string entry_of(CeilingKind kind);
bool is_memory(CeilingKind kind);
bool is_matrix(CeilingKind kind);
bool is_random(CeilingKind kind);

/// `language` has kernels of the kind on a device of this architecture.
bool has_kernel(CeilingKind kind, Language language, std::string_view arch);
std::vector<Way> ways_of(CeilingKind kind, Language language, const Facts& facts);
/// The module with the kind's kernel: all memory kernels (and "fill") of one way are one module.
CompileRequest request_of(CeilingKind kind, Language language, const Way& way);

/// One launch of a kernel, for its expected output.
struct Run {
  CeilingKind kind = CeilingKind::stream_read;
  Way way;
  std::uint64_t bytes = 0;     ///< of the memory read
  std::uint64_t elements = 0;  ///< outputs
  std::uint32_t rounds = 1;
};
/// Units (CeilingRate) of one launch.
double work_of(const Run& run);
/// What output `element` must be. Of a copy: word `element` of the destination.
/// Floats: with `fused` false, of a multiplication and an addition that are rounded each.
std::uint32_t expected(const Run& run, std::uint64_t element, bool fused = true);
/// Steps that expected() takes, about: how many elements can be checked.
double cost_of(const Run& run);

}  // namespace furlong::device::internal
