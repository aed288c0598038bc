#pragma once
// What a store maker knows of compilers: how a command of a compile_commands.json is read, and how the
// headers of a translation unit are asked for.

#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "furlong/base/os/process.h"
#include "furlong/shard/executor/command/command_list.h"

namespace furlong::shard::command {

/// The words of a command line as a POSIX shell would quote them. `invalid` for an open quote, and for what
/// takes a shell (an operator, an expansion) with where it stands.
Result<std::vector<std::string>> shell_words(std::string_view line);

/// What a compiler's command writes: the word after -o, else what -c makes of `file`; empty: not known.
std::string compiler_output(std::span<const std::string> argv, const std::string& file);

/// The same command with its output and its own dependency files left out, and -M added: it prints which
/// files it would read, the system's included.
std::vector<std::string> dependency_command(std::span<const std::string> argv);

/// The files behind the colon of the first rule of a makefile. `invalid` where there is no rule.
Result<std::vector<std::string>> parse_dependencies(std::string_view makefile);

/// Runs dependency_command() and tells what the unit reads: absolute, normal, sorted, the source included.
/// `mismatch` with the end of what the compiler said.
Result<std::vector<std::string>> find_dependencies(const Command& command, Processes& processes,
                                                   std::stop_token stop);

}  // namespace furlong::shard::command
