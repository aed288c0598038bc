#pragma once
// What people write of a campaign: programs, problems, devices and how to race, as TOML or as JSON lines
// (docs/formats/campaign.md).

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "furlong/base/error.h"
#include "furlong/lattice/value.h"

namespace furlong::campaign {

/// Values by parameter, in the program's order or the list's.
using Problem = std::vector<std::pair<std::string, lattice::Value>>;

/// How a unit is raced; the rest is as race::Options has it.
struct RaceRules {
  std::string variants = "catalogue";
  std::vector<std::string> allow_lossy;  ///< knobs; sorted, none twice
  double budget_s = 120;
  double window_ms = 5;
  double threshold_pct = 0.5;
  std::uint64_t seed = 1;
  bool operator==(const RaceRules&) const = default;
};

struct ListedProgram {
  std::string where;                 ///< "races.toml:3:8", for messages
  std::filesystem::path file;        ///< a program file, or a pack's folder; absolute
  bool allow_unsigned = false;       ///< take a pack without a trusted signature
  std::vector<Problem> problems;     ///< at least one; may be empty itself: the program's defaults
  std::vector<std::string> devices;  ///< "host:0" or "silicon:0123456789abcdef"; at least one
  RaceRules rules;
};

inline constexpr int kListFormat = 1;
/// Of one program: more are taken for a slip.
inline constexpr std::size_t kMostProblems = 1'000'000;

/// `name` is the list's, `folder` where its relative paths begin. `invalid` with line and column, and for an
/// unknown key with the nearest known one; `incompatible` for another format (found, expected).
Result<std::vector<ListedProgram>> parse_campaign(std::string_view text, const std::filesystem::path& folder,
                                                  const std::string& name);

/// "opencl" → "opencl:0"; `invalid` for what names no device ("auto": a store must say which).
Result<std::string> device_name(std::string_view text);
/// The 16 digits of a "silicon:…", else empty.
std::string_view silicon_of(std::string_view device);

}  // namespace furlong::campaign
