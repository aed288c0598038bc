#pragma once
// The lines that a worker's two processes add to the protocol between them (furlong/worker/front.h): they
// begin with '@' and never reach the outside. Both processes are of one build. Pure functions.

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "furlong/base/error.h"
#include "furlong/record/worker_protocol.h"
#include "furlong/worker/server.h"

namespace furlong::worker {

/// To the front: a job is in hand from now on, in the place of any other.
struct BeginLine {
  record::JobCommand job;
  bool operator==(const BeginLine&) const = default;
};
/// To the front: a job will never be.
struct RefusedLine {
  record::JobCommand job;
  bool operator==(const RefusedLine&) const = default;
};
/// To the front: a chunk of the job in hand is done.
struct AtLine {
  std::uint64_t done = 0;     ///< nonces of the job
  std::uint64_t checked = 0;  ///< of them surely right: they are not done again
  std::uint64_t hashes = 0;   ///< since `ready`, of all processes
  bool operator==(const AtLine&) const = default;
};
/// To the front: what is in hand from now on, as Hand::take.
struct TakeLine {
  record::Pair pair;
  std::uint32_t kind = 0;
  double limit_s = 0;
  std::string name;
  bool operator==(const TakeLine&) const = default;
};
/// To the front: nothing is in hand.
struct DropLine {
  bool operator==(const DropLine&) const = default;
};
/// To the front: a prepare has begun.
struct PreparesLine {
  std::uint64_t prepares = 0;
  bool operator==(const PreparesLine&) const = default;
};
/// To the front: the prepare of a pair has ended, well or not.
struct EndedLine {
  record::Pair pair;
  bool operator==(const EndedLine&) const = default;
};
/// To the back: a variant ended an earlier process.
struct FallenLine {
  record::Pair pair;
  std::string variant, why;
  bool operator==(const FallenLine&) const = default;
};
using BackLine =
    std::variant<BeginLine, RefusedLine, AtLine, TakeLine, DropLine, PreparesLine, EndedLine, FallenLine>;

std::string print(const BackLine& line);
/// Whether the line is one of these, by its first byte.
bool is_back_line(std::string_view line);
Result<BackLine> parse_back_line(std::string_view line);

}  // namespace furlong::worker
