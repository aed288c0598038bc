#pragma once
// A store from a list of commands. Unit = a command: it owns the item of its command and the items of the
// inputs that it alone reads, and refers to those of the inputs that others read, too, which are the items of
// one unit before all others, "(inputs)". An input's item is no content, but path, hash and size, so that a
// changed file is another item, other units and other claims. docs/formats/command-store.md.

#include <cstdint>
#include <filesystem>
#include <stop_token>
#include <string>
#include <vector>

#include "furlong/base/os/process.h"
#include "furlong/shard/progress.h"
#include "furlong/shard/types.h"

namespace furlong::shard::command {

/// The name of the unit that owns the shared inputs; no command can be named that.
inline constexpr std::string_view kInputsUnit = "(inputs)";

struct StoreSummary {
  std::uint64_t commands = 0, units = 0, items = 0, item_bytes = 0;
  std::uint64_t inputs = 0, input_bytes = 0;  ///< files, and what they hold
  std::uint64_t shared = 0;                   ///< inputs that more than one command reads
  /// Entries of a compile_commands.json whose headers the compiler did not tell, and why; they are kept with
  /// their source alone.
  std::vector<std::string> without_headers;
};

/// Reads `list` and writes the store file; nothing is left behind on failure. `invalid` with line and path
/// for an input that is not there or no regular file. Headers are asked of the compiler by as many threads as
/// there are processors. Units stand in the order of the list. Progress is of the step "store", in commands.
Result<StoreSummary> make_command_store(const std::filesystem::path& list, const std::filesystem::path& store,
                                        const Progress& progress = {}, std::stop_token stop = {},
                                        Processes& processes = system_processes());

}  // namespace furlong::shard::command
