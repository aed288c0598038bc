#pragma once
// Choices of races as a C header: the defines of the variant to use, per card and problem size, and a
// function that picks the row for a card and size. For programs that take the choice home without linking
// Furlong.

#include <string>
#include <utility>
#include <vector>

#include "furlong/base/error.h"
#include "furlong/base/json_fwd.h"
#include "furlong/lattice/value.h"

namespace furlong::interop {

/// What one race chose.
struct Choice {
  std::string program;
  std::string language;
  std::string device;   ///< the card's label
  std::string silicon;  ///< 16 hexadecimal digits
  std::vector<std::pair<std::string, lattice::Value>> problem;
  std::string variant;
  std::vector<std::pair<std::string, lattice::Value>> knobs;  ///< all of them, in knob order
  std::vector<std::pair<std::string, std::string>> defines;   ///< macros that the kernel's compiler gets
  std::vector<std::string> options;                           ///< and its options
  double gain = 0;                                            ///< over base, ratio - 1
  std::string date;                                           ///< ISO time of the race
};

/// Choices in a file that `furlong race --json` wrote (one race or a dispatch table). `invalid` names what is
/// missing, `incompatible` another schema.
Result<std::vector<Choice>> choices_from_race(const Json& document, std::string_view name);

/// The header's text. All choices must be of one program (`invalid` otherwise, or when there are none).
/// Deterministic: sorted by device, then problem; of two races for the same device and problem the newer
/// stands.
Result<std::string> choices_header(std::vector<Choice> choices);

/// The same as a JSON document.
Json choices_json(const std::vector<Choice>& choices);

}  // namespace furlong::interop
