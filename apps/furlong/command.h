#pragma once
// A command of the furlong program as data: the parser, --help, the pages in docs/cli and the shell
// completion are all made from this one description.

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "furlong/base/error.h"

namespace furlong::app {

struct OptionSpec {
  std::string name;        ///< "--device"
  std::string value_name;  ///< "D"; empty: a flag
  std::string help;        ///< one sentence
  bool repeatable = false;
  std::vector<std::string> choices;  ///< accepted values, for checking and completion; empty: any
  std::string complete;              ///< "file", "folder", "device", or empty
};

struct PositionalSpec {
  std::string name;  ///< "PROGRAM"
  std::string help;
  bool required = true;
  bool many = false;
  std::vector<std::string> choices;  ///< for completion only
  std::string complete = "file";
};

struct Example {
  std::string command;
  std::string what;
};

/// What was typed, after checking against the spec.
class Arguments {
 public:
  std::map<std::string, std::vector<std::string>> options;  ///< by option name; flags hold one empty value
  std::vector<std::string> positionals;

  bool flag(std::string_view name) const;
  /// The last value given, or `otherwise`.
  std::string value(std::string_view name, std::string_view otherwise = {}) const;
  const std::vector<std::string>& values(std::string_view name) const;
  bool given(std::string_view name) const { return flag(name); }
  /// `invalid` names the option when it is not a number (in [low, high]).
  Result<double> number(std::string_view name, double otherwise, double low = -1e300,
                        double high = 1e300) const;
  Result<std::int64_t> integer(std::string_view name, std::int64_t otherwise, std::int64_t low = INT64_MIN,
                               std::int64_t high = INT64_MAX) const;
};

/// Breaks text into lines of at most 100 columns, each begun with `indent` blanks; newlines in the text are
/// kept. A word that is longer stays whole.
std::string wrap(std::string_view text, std::size_t indent);

/// Exit codes of every command (docs/cli).
enum ExitCode { exit_ok = 0, exit_usage = 2, exit_failed = 3, exit_no_device = 4 };
/// invalid, denied, incompatible and corrupt input → 2; unavailable → 4; else 3.
int exit_code_for(const Error& error);

/// To standard output and standard error. Whether all of it was written is told by end_of_command.
void print_out(std::string_view text);
void print_err(std::string_view text);

/// The end of a command: tells an Error on standard error, and whether all of standard output was written (a
/// full disk, a reader that is gone). Returns the exit code.
int end_of_command(const Result<int>& code);

struct CommandSpec {
  std::string name;     ///< "race", "knobs show"
  std::string summary;  ///< one line
  std::string description;
  std::vector<PositionalSpec> positionals;
  std::vector<OptionSpec> options;
  std::vector<Example> examples;
  bool hidden = false;
  std::function<Result<int>(const Arguments&)> run;
};

/// All commands, in the order of `furlong --help`. Each comes from its own file in commands/.
const std::vector<CommandSpec>& commands();

/// The page of one command, of a group ("knobs") or (empty name) of the program. Width 100.
std::string help_text(const CommandSpec& command);
std::string general_help();
std::string group_help(std::string_view group);
/// Markdown for docs/cli.
std::string markdown_page(const CommandSpec& command);

/// Parses the arguments after the command's name. `invalid` says what is wrong and names the nearest option.
Result<Arguments> parse_arguments(const CommandSpec& command, const std::vector<std::string>& words);

/// The completion script for bash, zsh or fish.
Result<std::string> completion_script(std::string_view shell);

}  // namespace furlong::app
