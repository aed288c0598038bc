// The furlong program: finds the command, parses, runs, and turns errors into one line and an exit code.
#include <fcntl.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <string>
#include <vector>

#include "apps/furlong/command.h"
#include "apps/furlong/completion.h"
#include "furlong/base/log.h"
#include "furlong/base/text.h"

namespace furlong::app {
namespace {

const CommandSpec* find(std::string_view name) {
  for (const CommandSpec& command : commands())
    if (command.name == name) return &command;
  return nullptr;
}

int unknown_command(const std::string& word) {
  std::vector<std::string> names;
  for (const CommandSpec& command : commands())
    if (!command.hidden) names.push_back(split(command.name, ' ').front());
  print_err(
      fmt::format("furlong: unknown command '{}'{} (see furlong --help)\n", word, did_you_mean(word, names)));
  return exit_usage;
}

int run_command(const CommandSpec& command, const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    if (word == "--help" || word == "-h") {
      print_out(help_text(command));
      return end_of_command(exit_ok);
    }
  }
  auto arguments = parse_arguments(command, words);
  if (!arguments) return end_of_command(arguments.error());
  return end_of_command(command.run(*arguments));
}

int dispatch(const std::vector<std::string>& words) {
  if (words.empty() || words[0] == "--help" || words[0] == "-h") {
    (words.empty() ? print_err : print_out)(general_help());
    return end_of_command(words.empty() ? exit_usage : exit_ok);
  }
  if (words[0] == "help") {  // `furlong help knobs lint` is `furlong knobs lint --help`
    std::vector<std::string> asked(words.begin() + 1, words.end());
    asked.emplace_back("--help");
    return dispatch(asked);
  }
  if (words[0] == "--version") return run_command(*find("version"), {});
  if (words.size() >= 2) {
    if (const auto* command = find(words[0] + " " + words[1]))
      return run_command(*command, {words.begin() + 2, words.end()});
  }
  if (const auto* command = find(words[0])) {
    // `furlong hub tokn`: the group's name is a command of its own, and takes no argument.
    const auto seconds = second_words(words[0]);
    if (words.size() >= 2 && !words[1].starts_with("-") && command->positionals.empty() && !seconds.empty()) {
      print_err(fmt::format("furlong: unknown command '{} {}'{} (see furlong help {})\n", words[0], words[1],
                            did_you_mean(words[1], seconds), words[0]));
      return exit_usage;
    }
    return run_command(*command, {words.begin() + 1, words.end()});
  }
  const std::string group = group_help(words[0]);
  if (group.empty()) return unknown_command(words[0]);
  const bool asked = words.size() >= 2 && (words[1] == "--help" || words[1] == "-h");
  if (words.size() >= 2 && !asked)
    print_err(fmt::format("furlong {}: unknown command '{}'{}\n\n", words[0], words[1],
                          did_you_mean(words[1], second_words(words[0]))));
  (asked ? print_out : print_err)(group);
  return end_of_command(asked ? exit_ok : exit_usage);
}

}  // namespace
}  // namespace furlong::app

namespace {

/// A descriptor that was closed by whoever started the program must not become some file that it opens: what
/// is read there ends at once, what is written there fails and is told.
void open_standard_descriptors() {
  for (const int descriptor : {0, 1, 2})
    if (::fcntl(descriptor, F_GETFD) < 0 && ::open("/dev/null", descriptor == 2 ? O_RDWR : O_RDONLY) < 0)
      return;
}

}  // namespace

int main(int count, char** words) {
  open_standard_descriptors();
  // Past a limit of file size (ulimit -f) a write is an error like that of a full disk, and no sudden death.
  // What is started from here has the signal again.
  std::signal(SIGXFSZ, SIG_IGN);
  const char* level = std::getenv("FURLONG_LOG");
  using furlong::LogLevel;
  const std::string_view word = level ? level : "warning";
  furlong::log_to_stderr(word == "debug"   ? LogLevel::debug
                         : word == "info"  ? LogLevel::info
                         : word == "error" ? LogLevel::error
                                           : LogLevel::warning);
  return furlong::app::dispatch(std::vector<std::string>(words + 1, words + count));
}
