#pragma once
// What a machine remembers of the fleet's documents, in manifest-state.json of the data folder
// (docs/formats/fleet-manifest.md). Pure functions.

#include <string>
#include <string_view>

#include "furlong/fleet/manifest/trust.h"

namespace furlong::fleet {

/// The envelopes themselves, so that all signatures are checked again at the next start.
std::string print(const Trust& trust);
/// `corrupt`: torn, changed, or signed by nobody; `incompatible`: another schema.
Result<Trust> parse_trust(std::string_view text, std::string_view name);

}  // namespace furlong::fleet
