#pragma once
// The lines between a race and its trial process (docs/formats/trial-protocol.md): one JSON object a line.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "furlong/base/error.h"

namespace furlong::race {

inline constexpr int trial_protocol = 1;

/// What the child is asked, on its standard input.
struct TrialRequest {
  std::string program_json;           ///< Context::trial_program_json, opaque here
  std::string device;                 ///< "cuda:0"
  std::vector<std::string> variants;  ///< in this order
  std::uint64_t seed = 1;             ///< of the random inputs
  std::uint64_t memory_bytes = 0;     ///< the most that device buffers may take; 0: what they need
  bool operator==(const TrialRequest&) const = default;
};
std::string to_line(const TrialRequest& request);
/// `invalid` names what is wrong; `incompatible` another version, found and expected.
Result<TrialRequest> parse_trial_request(std::string_view line);

/// What the child says, on its standard output.
struct TrialEvent {
  enum class Kind {
    ready,   ///< device and program are open
    begin,   ///< the variant is in hand: compiling
    built,   ///< it is compiled and runs from now on
    passed,  ///< it ran and left everything else alone
    failed,  ///< it did not; `code` and `why`; when `lost` the child ends, since its device is gone
    error,   ///< nothing could be tried: `code` and `why`
    end,     ///< all have been tried
  };
  Kind kind = Kind::ready;
  std::string variant;
  Code code = Code::internal;
  std::string why;
  bool lost = false;
  bool operator==(const TrialEvent&) const = default;
};
std::string to_line(const TrialEvent& event);
/// nullopt for a line that is not the protocol's: a kernel may print. `invalid` for a broken event.
Result<std::optional<TrialEvent>> parse_trial_event(std::string_view line);

}  // namespace furlong::race
