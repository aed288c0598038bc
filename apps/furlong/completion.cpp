#include "apps/furlong/completion.h"

#include <set>

#include "apps/furlong/command.h"
#include "furlong/base/text.h"

namespace furlong::app {

std::vector<std::string> second_words(std::string_view group) {
  std::vector<std::string> words;
  for (const CommandSpec& command : commands()) {
    const auto parts = split(command.name, ' ');
    if (!command.hidden && parts.size() == 2 && parts[0] == group) words.push_back(parts[1]);
  }
  return words;
}

namespace {

std::vector<std::string> first_words() {
  std::vector<std::string> words;
  std::set<std::string> seen;
  for (const CommandSpec& command : commands()) {
    if (command.hidden) continue;
    const std::string word = split(command.name, ' ').front();
    if (seen.insert(word).second) words.push_back(word);
  }
  words.push_back("help");
  return words;
}

std::vector<std::string> option_words(const CommandSpec& command) {
  std::vector<std::string> words;
  for (const OptionSpec& option : command.options) words.push_back(option.name);
  words.push_back("--help");
  return words;
}

std::string bash_script() {
  std::string out =
      "# bash completion for furlong: source <(furlong completion bash)\n"
      "_furlong() {\n"
      "  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]}\n"
      "  local first=${COMP_WORDS[1]} command=${COMP_WORDS[1]} begin=2 place=0 at\n"
      "  COMPREPLY=()\n"
      "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n";
  out += fmt::format("    COMPREPLY=($(compgen -W '{}' -- \"$current\")); return\n  fi\n",
                     join(first_words(), " "));
  out += "  case \"$first\" in\n";
  for (const std::string& word : first_words()) {
    const auto seconds = second_words(word);
    if (seconds.empty()) continue;
    out += fmt::format(
        // An option in the second place is one of the command that the group's name is (furlong hub).
        "    {}) if [[ ${{COMP_WORDS[2]}} != -* ]]; then\n"
        "      if [ \"$COMP_CWORD\" -eq 2 ]; then COMPREPLY=($(compgen -W '{}' -- \"$current\")); return; "
        "fi\n"
        "      command=\"$first ${{COMP_WORDS[2]}}\" begin=3; fi ;;\n",
        word, join(seconds, " "));
  }
  out += "    help) if [ \"$COMP_CWORD\" -eq 3 ]; then\n      case \"${COMP_WORDS[2]}\" in\n";
  for (const std::string& word : first_words()) {
    const auto seconds = second_words(word);
    if (seconds.empty()) continue;
    out += fmt::format("        {}) COMPREPLY=($(compgen -W '{}' -- \"$current\")) ;;\n", word,
                       join(seconds, " "));
  }
  out += "      esac\n      return; fi ;;\n";
  out += "  esac\n  case \"$command:$previous\" in\n";
  for (const CommandSpec& command : commands()) {
    if (command.hidden) continue;
    for (const OptionSpec& option : command.options) {
      if (option.value_name.empty()) continue;
      std::string action = "COMPREPLY=()";
      if (!option.choices.empty()) {
        action = fmt::format("COMPREPLY=($(compgen -W '{}' -- \"$current\"))", join(option.choices, " "));
      } else if (option.complete == "file" || option.complete == "folder") {
        action =
            fmt::format("COMPREPLY=($(compgen -{} -- \"$current\"))", option.complete == "file" ? "f" : "d");
      } else if (option.complete == "device") {
        action = "COMPREPLY=($(compgen -W \"$(furlong devices --addresses 2>/dev/null)\" -- \"$current\"))";
      }
      out += fmt::format("    '{}:{}') {}; return ;;\n", command.name, option.name, action);
    }
  }
  out += "  esac\n  if [[ $current == -* ]]; then\n    case \"$command\" in\n";
  for (const CommandSpec& command : commands()) {
    if (command.hidden) continue;
    out += fmt::format("      '{}') COMPREPLY=($(compgen -W '{}' -- \"$current\")) ;;\n", command.name,
                       join(option_words(command), " "));
  }
  // Which of the positionals the word is: values of options count as some, and are rare before them.
  out +=
      "    esac\n    return\n  fi\n"
      "  for ((at = begin; at < COMP_CWORD; ++at)); do [[ ${COMP_WORDS[at]} == -* ]] || ((++place)); done\n"
      "  case \"$command:$place\" in\n";
  for (const CommandSpec& command : commands()) {
    if (command.hidden) continue;
    for (std::size_t place = 1; place < command.positionals.size(); ++place)
      if (const PositionalSpec& later = command.positionals[place]; !later.choices.empty())
        out += fmt::format("    '{}:{}') COMPREPLY=($(compgen -W '{}' -- \"$current\")); return ;;\n",
                           command.name, place, join(later.choices, " "));
  }
  out += "  esac\n  case \"$command\" in\n";
  for (const CommandSpec& command : commands()) {
    if (command.hidden || command.positionals.empty()) continue;
    const PositionalSpec& positional = command.positionals.front();
    const std::string_view paths = positional.complete == "file"     ? "-f "
                                   : positional.complete == "folder" ? "-d "
                                                                     : "";
    out += fmt::format("    '{}') COMPREPLY=($(compgen {}-W '{}' -- \"$current\")) ;;\n", command.name, paths,
                       join(positional.choices, " "));
  }
  out +=
      fmt::format("    help) COMPREPLY=($(compgen -W '{}' -- \"$current\")) ;;\n", join(first_words(), " "));
  out += "  esac\n}\ncomplete -o filenames -F _furlong furlong\n";
  return out;
}

std::string zsh_script() {
  std::string out =
      "#compdef furlong\n# zsh completion for furlong: source <(furlong completion zsh)\n_furlong() {\n";
  out += fmt::format(
      "  if (( CURRENT == 2 )); then compadd -- {}; return; fi\n  local command=$words[2]\n"
      "  local -i begin=3 place=0 at\n",
      join(first_words(), " "));
  out += "  case $command in\n";
  for (const std::string& word : first_words()) {
    const auto seconds = second_words(word);
    if (seconds.empty()) continue;
    out += fmt::format(
        "    {}) if [[ $words[3] != -* ]]; then\n"
        "      if (( CURRENT == 3 )); then compadd -- {}; return; fi; command=\"$words[2] $words[3]\" "
        "begin=4; fi "
        ";;\n",
        word, join(seconds, " "));
  }
  out += "    help) if (( CURRENT == 4 )); then\n      case $words[3] in\n";
  for (const std::string& word : first_words()) {
    const auto seconds = second_words(word);
    if (!seconds.empty()) out += fmt::format("        {}) compadd -- {} ;;\n", word, join(seconds, " "));
  }
  out += "      esac\n      return; fi ;;\n";
  out += "  esac\n  case \"$command:$words[CURRENT-1]\" in\n";
  for (const CommandSpec& command : commands()) {
    if (command.hidden) continue;
    for (const OptionSpec& option : command.options) {
      if (option.value_name.empty()) continue;
      std::string action = option.complete == "file"     ? "_files"
                           : option.complete == "folder" ? "_files -/"
                                                         : ":";
      if (!option.choices.empty()) action = "compadd -- " + join(option.choices, " ");
      if (option.complete == "device") action = "compadd -- $(furlong devices --addresses 2>/dev/null)";
      out += fmt::format("    '{}:{}') {}; return ;;\n", command.name, option.name, action);
    }
  }
  out += "  esac\n  if [[ $words[CURRENT] == -* ]]; then\n    case $command in\n";
  for (const CommandSpec& command : commands()) {
    if (command.hidden) continue;
    out += fmt::format("      '{}') compadd -- {} ;;\n", command.name, join(option_words(command), " "));
  }
  out +=
      "    esac\n    return\n  fi\n"
      "  for ((at = begin; at < CURRENT; ++at)); do [[ $words[at] == -* ]] || ((++place)); done\n"
      "  case \"$command:$place\" in\n";
  for (const CommandSpec& command : commands()) {
    if (command.hidden) continue;
    for (std::size_t place = 1; place < command.positionals.size(); ++place)
      if (const PositionalSpec& later = command.positionals[place]; !later.choices.empty())
        out += fmt::format("    '{}:{}') compadd -- {}; return ;;\n", command.name, place,
                           join(later.choices, " "));
  }
  out += "  esac\n  case $command in\n";
  for (const CommandSpec& command : commands()) {
    if (command.hidden || command.positionals.empty()) continue;
    const PositionalSpec& positional = command.positionals.front();
    std::vector<std::string> actions;
    if (!positional.choices.empty()) actions.push_back("compadd -- " + join(positional.choices, " "));
    if (positional.complete == "file") actions.emplace_back("_files");
    if (positional.complete == "folder") actions.emplace_back("_files -/");
    if (!actions.empty()) out += fmt::format("    '{}') {} ;;\n", command.name, join(actions, "; "));
  }
  out += fmt::format("    help) compadd -- {} ;;\n", join(first_words(), " "));
  out += "  esac\n}\ncompdef _furlong furlong\n";
  return out;
}

std::string fish_script() {
  std::string out = "# fish completion for furlong: furlong completion fish | source\n";
  for (const std::string& word : first_words()) {
    out += fmt::format("complete -c furlong -f -n __fish_use_subcommand -a {}\n", word);
    const auto seconds = second_words(word);
    if (!seconds.empty()) {
      out += fmt::format(
          "complete -c furlong -f -n '__fish_seen_subcommand_from {0}; and not __fish_seen_subcommand_from "
          "{1}' -a '{1}'\n",
          word, join(seconds, " "));
    }
  }
  for (const CommandSpec& command : commands()) {
    if (command.hidden) continue;
    const auto parts = split(command.name, ' ');
    std::string condition = "__fish_seen_subcommand_from " + parts[0];
    if (parts.size() == 2) condition += "; and __fish_seen_subcommand_from " + parts[1];
    if (command.positionals.empty() || command.positionals.front().complete.empty())
      out += fmt::format("complete -c furlong -f -n '{}'\n", condition);
    for (const PositionalSpec& positional : command.positionals)
      if (!positional.choices.empty())
        out += fmt::format("complete -c furlong -n '{}' -a '{}'\n", condition, join(positional.choices, " "));
    for (const OptionSpec& option : command.options) {
      std::string line = fmt::format("complete -c furlong -n '{}' -l {} -d '{}'", condition,
                                     option.name.substr(2), replace_all(option.help, "'", "\\'"));
      // -r: a value, by default a file; -x: a value that is no file.
      const bool path = option.complete == "file" || option.complete == "folder";
      if (!option.value_name.empty()) line += path ? " -r" : " -x";
      if (!option.choices.empty()) line += fmt::format(" -a '{}'", join(option.choices, " "));
      if (option.complete == "device") line += " -a '(furlong devices --addresses 2>/dev/null)'";
      out += line + "\n";
    }
  }
  out += fmt::format("complete -c furlong -f -n '__fish_seen_subcommand_from help' -a '{}'\n",
                     join(first_words(), " "));
  return out;
}

}  // namespace

Result<std::string> completion_script(std::string_view shell) {
  if (shell == "bash") return bash_script();
  if (shell == "zsh") return zsh_script();
  if (shell == "fish") return fish_script();
  return fail(Code::invalid, "no completion for the shell '{}': bash, zsh or fish", shell);
}

}  // namespace furlong::app
