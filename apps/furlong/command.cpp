#include "apps/furlong/command.h"

#include <algorithm>
#include <cstdio>
#include <set>

#include "furlong/base/table.h"
#include "furlong/base/text.h"

namespace furlong::app {

std::string wrap(std::string_view text, std::size_t indent) {
  constexpr std::size_t kWidth = 100;
  std::string out;
  for (const std::string& paragraph : split(text, '\n')) {
    std::string line(indent, ' ');
    std::size_t used = indent;
    bool first = true;
    for (const std::string& word : split(paragraph, ' ')) {
      const std::size_t width = display_width(word);
      if (!first && used + 1 + width > kWidth) {
        out += line + "\n";
        line.assign(indent, ' ');
        used = indent;
        first = true;
      }
      if (!first) {
        line += ' ';
        ++used;
      }
      line += word;
      used += width;
      first = false;
    }
    out += line + "\n";
  }
  return out;
}

namespace {

std::string usage_line(const CommandSpec& command) {
  std::string text = "furlong " + command.name;
  for (const PositionalSpec& positional : command.positionals) {
    std::string name = positional.name + (positional.many ? "…" : "");
    text += positional.required ? " " + name : " [" + name + "]";
  }
  if (!command.options.empty()) text += " [OPTIONS]";
  return text;
}

std::string option_head(const OptionSpec& option) {
  return option.value_name.empty() ? option.name : option.name + " " + option.value_name;
}

std::string option_help(const OptionSpec& option) {
  std::string text = option.help;
  if (!option.choices.empty()) text += " (" + join(option.choices, ", ") + ")";
  if (option.repeatable) text += " May be given several times.";
  return text;
}

/// Two columns; the second is wrapped under itself.
std::string definition(std::string_view head, std::string_view body) {
  constexpr std::size_t kColumn = 26;
  std::string first = "  " + std::string(head);
  std::string wrapped = wrap(body, kColumn);
  const std::size_t width = display_width(first);
  if (width + 1 > kColumn) return first + "\n" + wrapped;
  wrapped.replace(0, width, first);
  return wrapped;
}

std::string group_of(const CommandSpec& command) {
  const auto space = command.name.find(' ');
  return space == std::string::npos ? std::string() : command.name.substr(0, space);
}

std::string group_summary(std::string_view group) {
  if (group == "agent") return "Around the agent of this machine";
  if (group == "knobs") return "Look at the knobs of a program";
  if (group == "pack") return "Freeze a program with all that it needs, check it, sign it";
  if (group == "quarantine") return "The variants that hung, trapped or failed on a card";
  return "Commands";
}

std::vector<OptionSpec> with_help(const CommandSpec& command) {
  std::vector<OptionSpec> options = command.options;
  options.push_back({.name = "--help", .value_name = "", .help = "Print this page."});
  return options;
}

}  // namespace

bool Arguments::flag(std::string_view name) const { return options.contains(std::string(name)); }

std::string Arguments::value(std::string_view name, std::string_view otherwise) const {
  const auto found = options.find(std::string(name));
  return found == options.end() || found->second.empty() ? std::string(otherwise) : found->second.back();
}

const std::vector<std::string>& Arguments::values(std::string_view name) const {
  static const std::vector<std::string> none;
  const auto found = options.find(std::string(name));
  return found == options.end() ? none : found->second;
}

Result<double> Arguments::number(std::string_view name, double otherwise, double low, double high) const {
  if (!flag(name)) return otherwise;
  auto parsed = parse_number(value(name));
  if (!parsed || !(*parsed >= low && *parsed <= high)) {
    return fail(Code::invalid, "{} takes a number{}, not '{}'", name,
                low > -1e300
                    ? fmt::format(" from {:g} {}", low, high < 1e300 ? fmt::format("to {:g}", high) : "up")
                    : "",
                value(name));
  }
  return *parsed;
}

Result<std::int64_t> Arguments::integer(std::string_view name, std::int64_t otherwise, std::int64_t low,
                                        std::int64_t high) const {
  if (!flag(name)) return otherwise;
  auto parsed = parse_integer(value(name));
  if (!parsed || *parsed < low || *parsed > high) {
    return fail(Code::invalid, "{} takes a whole number{}, not '{}'", name,
                low > INT64_MIN
                    ? fmt::format(" from {} {}", low, high < INT64_MAX ? fmt::format("to {}", high) : "up")
                    : "",
                value(name));
  }
  return *parsed;
}

int exit_code_for(const Error& error) {
  switch (error.code()) {
    case Code::invalid:
    case Code::denied:
    case Code::incompatible:
    case Code::corrupt:
      return exit_usage;
    case Code::unavailable:
      return exit_no_device;
    default:
      return exit_failed;
  }
}

void print_out(std::string_view text) { std::fwrite(text.data(), 1, text.size(), stdout); }
void print_err(std::string_view text) { std::fwrite(text.data(), 1, text.size(), stderr); }

int end_of_command(const Result<int>& code) {
  if (!code) print_err("furlong: " + without_controls(code.error().text()) + "\n");
  // A write that failed earlier leaves nothing to flush, only its mark.
  const bool written = std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
  if (!written) print_err("furlong: writing the output failed (is the disk full or the reader gone?)\n");
  if (!code) return exit_code_for(code.error());
  return written ? *code : exit_failed;
}

std::string help_text(const CommandSpec& command) {
  std::string out = "usage: " + usage_line(command) + "\n\n" + wrap(command.summary, 0);
  if (!command.description.empty()) out += "\n" + wrap(command.description, 0);
  if (!command.positionals.empty()) {
    out += "\narguments:\n";
    for (const PositionalSpec& positional : command.positionals)
      out += definition(positional.name, positional.help);
  }
  out += "\noptions:\n";
  for (const OptionSpec& option : with_help(command))
    out += definition(option_head(option), option_help(option));
  if (!command.examples.empty()) {
    out += "\nexamples:\n";
    for (const Example& example : command.examples) {
      out += "  " + example.command + "\n";
      if (!example.what.empty()) out += wrap(example.what, 6);
    }
  }
  return out;
}

std::string general_help() {
  std::string out =
      "usage: furlong COMMAND [ARGUMENTS]\n\n"
      "Races the variants of a compute kernel on the device they will run on: every variant is checked\n"
      "before it is timed, and the answer is a winner or an honest dead heat.\n\ncommands:\n";
  std::set<std::string> groups;
  for (const CommandSpec& command : commands()) {
    if (command.hidden) continue;
    const std::string group = group_of(command);
    if (group.empty()) {
      out += definition(command.name, command.summary);
    } else if (groups.insert(group).second) {
      std::vector<std::string> names;
      for (const CommandSpec& other : commands()) {
        if (group_of(other) == group && !other.hidden) names.push_back(other.name.substr(group.size() + 1));
      }
      out += definition(group, group_summary(group) + ": " + join(names, ", ") + ".");
    }
  }
  out +=
      "\n`furlong COMMAND --help` says more, with examples. Words: a knob is what the field also calls a "
      "tuning\n"
      "parameter, a lattice a search space, a point a configuration; a variant is a point with its name.\n"
      "Exit codes: 0 done (a dead heat is a decision), 2 bad usage or input, 3 failed, 4 no such device.\n";
  return out;
}

std::string group_help(std::string_view group) {
  std::string out = fmt::format("usage: furlong {} COMMAND [ARGUMENTS]\n\ncommands:\n", group);
  bool any = false;
  for (const CommandSpec& command : commands()) {
    if (group_of(command) != group || command.hidden) continue;
    out += definition(command.name, command.summary);
    any = true;
  }
  return any ? out : std::string();
}

std::string markdown_page(const CommandSpec& command) {
  std::string out =
      fmt::format("# furlong {}\n\n{}\n\n    {}\n", command.name, command.summary, usage_line(command));
  if (!command.description.empty()) out += "\n" + command.description + "\n";
  auto cell = [](std::string_view text) { return replace_all(replace_all(text, "|", "\\|"), "\n", " "); };
  if (!command.positionals.empty()) {
    out += "\n| argument | |\n|---|---|\n";
    for (const PositionalSpec& positional : command.positionals)
      out += fmt::format("| `{}` | {} |\n", positional.name, cell(positional.help));
  }
  out += "\n| option | |\n|---|---|\n";
  for (const OptionSpec& option : with_help(command))
    out += fmt::format("| `{}` | {} |\n", cell(option_head(option)), cell(option_help(option)));
  if (!command.examples.empty()) {
    out += "\nExamples:\n";
    for (const Example& example : command.examples)
      out += fmt::format("\n    {}\n{}", example.command,
                         example.what.empty() ? "" : "\n" + example.what + "\n");
  }
  return out;
}

}  // namespace furlong::app
