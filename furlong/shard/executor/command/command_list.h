#pragma once
// What a store of commands is made of: JSON lines, one command a line, or a compile_commands.json.
// docs/formats/command-store.md.

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "furlong/base/error.h"

namespace furlong::shard::command {

/// One command, with absolute paths in their normal form.
struct Command {
  std::string name;
  std::vector<std::string> argv;
  std::string folder;                                            ///< that it runs in
  std::vector<std::pair<std::string, std::string>> environment;  ///< added; sorted by name
  std::vector<std::string> inputs, outputs;                      ///< sorted, none twice
  double timeout_s = 0;                                          ///< 0: none
  bool any_address_space = false;                                ///< MeasuredRequest::any_address_space
  /// Of an entry of a compile_commands.json: its source, whose headers are to be found.
  std::optional<std::string> source;
  std::string where;  ///< "list.jsonl:3"; no part of the command
};

/// A text that begins with '[' is a compile_commands.json, any other is JSON lines. `folder` is absolute:
/// relative paths are relative to it (those of a command to its folder). `name` is the file's, for messages.
/// `invalid` names the line or the entry, and the field: bad JSON, unknown keys, a name or an output twice,
/// an output of one command that is an input of another (commands run in any order).
Result<std::vector<Command>> parse_command_list(std::string_view text, const std::filesystem::path& folder,
                                                const std::string& name);

/// `invalid` for an input that one of them makes. Asked again when the headers are known.
Status check_independent(const std::vector<Command>& commands);

/// One line of the list that parse_command_list() reads back as the same command; not for one with a source.
std::string print_command(const Command& command);

}  // namespace furlong::shard::command
