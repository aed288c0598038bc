// The only file that includes CLI11 (13 s of compile time).
#include <CLI/CLI.hpp>

#include "apps/furlong/command.h"
#include "furlong/base/text.h"

namespace furlong::app {
namespace {

std::vector<std::string> option_names(const CommandSpec& command) {
  std::vector<std::string> names{"--help"};
  for (const OptionSpec& option : command.options) names.push_back(option.name);
  return names;
}

/// The option that a word begins ("--write", "--write=FILE"), or nullptr.
const OptionSpec* option_of(const CommandSpec& command, const std::string& word) {
  const std::string name = word.substr(0, word.find('='));
  const auto found = std::ranges::find(command.options, name, &OptionSpec::name);
  return found == command.options.end() ? nullptr : &*found;
}

/// CLI11 says which word is too much; the nearest option is our addition.
Error unknown_word(const CommandSpec& command, const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    if (!word.starts_with("-") || word == "-") continue;
    const std::string name = split(word, '=').front();
    const auto names = option_names(command);
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      return fail(Code::invalid, "{}: unknown option '{}'{} (see furlong {} --help)", command.name, name,
                  did_you_mean(name, names), command.name);
    }
  }
  std::size_t places = command.positionals.size();
  for (std::size_t i = 0; i < words.size(); ++i) {
    const OptionSpec* const option = option_of(command, words[i]);
    if (option != nullptr) {
      i += !option->value_name.empty() && words[i] == option->name;
    } else if (places-- == 0) {
      return fail(Code::invalid, "{}: too many arguments: '{}' (see furlong {} --help)", command.name,
                  words[i], command.name);
    }
  }
  return fail(Code::invalid, "{}: too many arguments (see furlong {} --help)", command.name, command.name);
}

/// An empty value is an unset variable of somebody's script. What an option says that is left out would be a
/// surprise; and CLI11 takes the next word for the value of "--write=".
Status check_not_empty(const CommandSpec& command, const std::vector<std::string>& words) {
  for (std::size_t i = 0; i < words.size() && words[i] != "--"; ++i) {
    const OptionSpec* const option = option_of(command, words[i]);
    if (option == nullptr || option->value_name.empty()) continue;
    const bool is_next = words[i] == option->name;
    if (is_next ? i + 1 < words.size() && words[i + 1].empty() : words[i].size() == option->name.size() + 1)
      return fail(Code::invalid,
                  "{}: the value of {} is empty; leave the option out, or say {} (see furlong {} --help)",
                  command.name, option->name, option->value_name, command.name);
    i += is_next;
  }
  return {};
}

}  // namespace

Result<Arguments> parse_arguments(const CommandSpec& command, const std::vector<std::string>& words) {
  FURLONG_CHECK(check_not_empty(command, words));
  CLI::App app{command.summary};
  app.set_help_flag();
  std::map<std::string, std::vector<std::string>> values;
  std::map<std::string, bool> flags;
  for (const OptionSpec& option : command.options) {
    if (option.value_name.empty()) {
      app.add_flag(option.name, flags[option.name]);
    } else {
      auto* added = app.add_option(option.name, values[option.name])->expected(1)->allow_extra_args(false);
      added->multi_option_policy(option.repeatable ? CLI::MultiOptionPolicy::TakeAll
                                                   : CLI::MultiOptionPolicy::TakeLast);
      if (option.repeatable) added->expected(1, 1 << 20)->allow_extra_args(false);
      if (!option.choices.empty()) added->check(CLI::IsMember(option.choices));
    }
  }
  std::vector<std::string> positionals;
  app.allow_extras(false);
  app.positionals_at_end(false);
  bool many = false;
  std::size_t required = 0;
  for (const PositionalSpec& positional : command.positionals) {
    many |= positional.many;
    required += positional.required ? 1 : 0;
  }
  if (!command.positionals.empty())
    app.add_option("ARGUMENTS", positionals)
        ->expected(0, many ? 1 << 20 : static_cast<int>(command.positionals.size()));
  try {
    std::vector<std::string> reversed(words.rbegin(), words.rend());
    app.parse(reversed);
  } catch (const CLI::ExtrasError&) {
    return unknown_word(command, words);
  } catch (const CLI::ParseError& error) {
    // Of the positionals, when one word too many stands behind an unknown option as if it were its value.
    if (std::string_view(error.what()).starts_with("ARGUMENTS")) return unknown_word(command, words);
    return fail(Code::invalid, "{}: {} (see furlong {} --help)", command.name, error.what(), command.name);
  }
  if (positionals.size() < required) {
    return fail(Code::invalid, "{}: {} is missing (see furlong {} --help)", command.name,
                command.positionals[positionals.size()].name, command.name);
  }
  Arguments arguments;
  arguments.positionals = std::move(positionals);
  for (const OptionSpec& option : command.options) {
    if (option.value_name.empty()) {
      if (flags[option.name]) arguments.options[option.name] = {""};
    } else if (!values[option.name].empty()) {
      arguments.options[option.name] = values[option.name];
    }
  }
  return arguments;
}

}  // namespace furlong::app
