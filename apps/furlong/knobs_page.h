#pragma once
// The trade-off table of a program as a part of a page.

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "furlong/program/program.h"

namespace furlong::app {

/// "## name", the summary, the knobs of all its languages (or of one) in the file's order, the
/// strictly-better list. The same program gives the same bytes.
std::string program_markdown(const program::Program& program, std::string_view language = {});

/// docs/knobs.md: every program file under `folder`, in the order of their paths. Errors name the file.
Result<std::string> knobs_page(const std::filesystem::path& folder);

}  // namespace furlong::app
