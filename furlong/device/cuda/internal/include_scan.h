#pragma once
// Which headers a CUDA text can reach: NVRTC has no preprocessing pass that could be asked, so the cache of
// machine code finds them itself.

#include <filesystem>
#include <string>
#include <vector>

#include "furlong/base/hash.h"
#include "furlong/device/device.h"

namespace furlong::device {

struct ReachedHeader {
  std::filesystem::path path;  ///< as the compiler would spell it
  Digest digest;
};

/// Every file that the request's text could include, whatever the conditions around the lines: each name that
/// stands in a text after `include` or `__has_include`, looked up in every folder that holds one of the texts
/// and in every include folder, and so on for what is found; sorted by path. More than the compiler reads,
/// never less. Headers in the toolkit's own folders are left out (they change only with the compiler), but a
/// file in an include folder that stands in for one of them counts. `unavailable`, with the reason, where it
/// cannot be known: a name made by a macro, precompiled headers, more than 1024 headers or 64 MiB of them, an
/// include folder of more than 4096 entries beside toolkit headers.
Result<std::vector<ReachedHeader>> reached_headers(const CompileRequest& request,
                                                   const std::vector<std::filesystem::path>& toolkit_folders);

/// The names after `include` and the like in one text, comments and strings too. `unavailable` for a computed
/// one.
Result<std::vector<std::string>> included_names(std::string_view text);

}  // namespace furlong::device
