#include "furlong/shard/executor/command/command_list.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "furlong/base/json.h"
#include "furlong/base/json_object.h"
#include "furlong/base/text.h"
#include "furlong/shard/executor/command/compiler.h"
#include "furlong/shard/executor/command/make_store.h"

namespace furlong::shard::command {
namespace {

namespace fs = std::filesystem;

std::string absolute(const std::string& path, const fs::path& folder) {
  std::string normal = (folder / path).lexically_normal().string();
  if (normal.size() > 1 && normal.ends_with('/')) normal.pop_back();
  return normal;
}

void tidy(std::vector<std::string>& paths) {
  std::sort(paths.begin(), paths.end());
  paths.erase(std::unique(paths.begin(), paths.end()), paths.end());
}

// The system would cut such a text, or take it for another.
Status check_text(const std::string& text, std::string_view what, const std::string& where) {
  if (text.find('\0') == text.npos) return {};
  return fail(Code::invalid, "{}: {} has a zero byte", where, what);
}

Status take_paths(JsonObject& object, std::string_view key, const std::string& where, const fs::path& folder,
                  std::vector<std::string>& into) {
  std::vector<std::string> paths;
  object.texts(key, paths);
  for (const std::string& path : paths) {
    if (path.empty()) return fail(Code::invalid, "{}: {}: a path is empty", where, key);
    FURLONG_CHECK(check_text(path, key, where));
    into.push_back(absolute(path, folder));
  }
  tidy(into);
  return {};
}

Status take_environment(JsonObject& object, const std::string& where, Command& command) {
  const Json* environment = object.object("environment");
  if (environment == nullptr) return {};
  for (const auto& [name, value] : environment->items()) {
    if (name.empty() || name.find('=') != name.npos || !value.is_string())
      return fail(Code::invalid, "{}: environment: '{}': a name without '=' and a text are wanted", where,
                  name);
    command.environment.emplace_back(name, value.get<std::string>());
    FURLONG_CHECK(check_text(name, "environment", where));
    FURLONG_CHECK(check_text(command.environment.back().second, "environment", where));
  }
  std::sort(command.environment.begin(), command.environment.end());
  return {};
}

Result<Command> parse_line(std::string_view line, const fs::path& base, const std::string& where) {
  FURLONG_TRY(const Json json, json_parse(line, where));
  JsonObject object(json, where);
  Command command;
  command.where = where;
  std::string shell, folder;
  object.text("name", command.name);
  object.texts("argv", command.argv);
  object.text("shell", shell);
  object.text("folder", folder);
  object.number("timeout_s", command.timeout_s, 0);
  object.boolean("any_address_space", command.any_address_space);
  object.require({"name"});
  const fs::path home = absolute(folder, base);
  FURLONG_CHECK(object.status());
  FURLONG_CHECK(take_paths(object, "inputs", where, home, command.inputs));
  FURLONG_CHECK(take_paths(object, "outputs", where, home, command.outputs));
  FURLONG_CHECK(take_environment(object, where, command));
  FURLONG_CHECK(object.strict());
  command.folder = home.string();
  const bool has_argv = json.contains("argv"), has_shell = json.contains("shell");
  if (has_argv == has_shell)
    return fail(Code::invalid, "{}: a command is given as \"argv\" or as \"shell\", and this has {}", where,
                has_argv ? "both" : "neither");
  if (has_shell) command.argv = {"/bin/sh", "-c", shell};
  if (command.argv.empty() || command.argv.front().empty() || (has_shell && shell.empty()))
    return fail(Code::invalid, "{}: {}: there is no program", where, has_shell ? "shell" : "argv");
  for (const std::string& word : command.argv) FURLONG_CHECK(check_text(word, "argv", where));
  FURLONG_CHECK(check_text(command.folder, "folder", where));
  return command;
}

Result<std::vector<Command>> parse_lines(std::string_view text, const fs::path& folder,
                                         const std::string& name) {
  std::vector<Command> commands;
  std::size_t number = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = trim(text.substr(at, end - at));
    at = end + 1;
    ++number;
    if (line.empty()) continue;
    FURLONG_TRY(Command command, parse_line(line, folder, fmt::format("{}:{}", name, number)));
    commands.push_back(std::move(command));
  }
  return commands;
}

Result<Command> parse_entry(const Json& json, const fs::path& base, const std::string& where) {
  JsonObject object(json, where);
  Command command;
  command.where = where;
  std::string directory, file, line, output;
  object.text("directory", directory);
  object.text("file", file);
  object.text("command", line);
  object.texts("arguments", command.argv);
  object.text("output", output);
  object.require({"directory", "file"});
  FURLONG_CHECK(object.status());  // what else stands there is some tool's own
  command.folder = absolute(directory, base);
  command.source = absolute(file, command.folder);
  command.name = *command.source;
  if (command.argv.empty()) {
    if (line.empty())
      return fail(Code::invalid, "{}: {}: it has neither \"arguments\" nor a \"command\"", where, file);
    auto words = shell_words(line);
    if (!words) return Error(words.error()).with(fmt::format("{}: {}", where, file));
    command.argv = *std::move(words);
  }
  for (const std::string& word : command.argv) FURLONG_CHECK(check_text(word, "the command", where));
  for (const std::string* path : {&command.folder, &command.name})
    FURLONG_CHECK(check_text(*path, "a path", where));
  if (command.argv.empty() || command.argv.front().empty())
    return fail(Code::invalid, "{}: {}: there is no program", where, file);
  if (output.empty()) output = compiler_output(command.argv, file);
  FURLONG_CHECK(check_text(output, "output", where));
  if (!output.empty()) command.outputs = {absolute(output, command.folder)};
  command.inputs = {*command.source};
  return command;
}

// What two commands differ in, and names do not.
auto content(const Command& command) { return std::tie(command.argv, command.folder, command.outputs); }

// One file may be compiled in several ways, and entries that say the same twice are one. Which of them gets
// which suffix follows from what they are, not from where they stand.
void name_apart(std::vector<Command>& commands) {
  std::map<std::string, std::set<std::tuple<std::vector<std::string>, std::string, std::vector<std::string>>>>
      known;
  std::erase_if(commands,
                [&](const Command& command) { return !known[command.name].insert(content(command)).second; });
  for (Command& command : commands) {
    const auto& ways = known[command.name];
    const auto place = std::distance(ways.begin(), ways.find(content(command)));
    if (place > 0) command.name += fmt::format("#{}", place + 1);
  }
}

Result<std::vector<Command>> parse_database(std::string_view text, const fs::path& folder,
                                            const std::string& name) {
  FURLONG_TRY(const Json json, json_parse(text, name, {.max_bytes = 1u << 30}));
  if (!json.is_array()) return fail(Code::invalid, "{}: not an array of compile commands", name);
  std::vector<Command> commands;
  for (std::size_t i = 0; i < json.size(); ++i) {
    FURLONG_TRY(Command command, parse_entry(json[i], folder, fmt::format("{}: entry {}", name, i)));
    commands.push_back(std::move(command));
  }
  name_apart(commands);
  return commands;
}

Status check_together(const std::vector<Command>& commands) {
  std::map<std::string_view, const Command*> names, makers;
  for (const Command& command : commands) {
    if (command.name.empty()) return fail(Code::invalid, "{}: the name is empty", command.where);
    if (command.name == kInputsUnit)
      return fail(Code::invalid, "{}: the name '{}' is that of the unit of shared inputs: choose another",
                  command.where, kInputsUnit);
    const auto [named, fresh] = names.emplace(command.name, &command);
    if (!fresh)
      return fail(Code::invalid, "{}: the name '{}' is that of {}, too: names must differ", command.where,
                  one_line(command.name), named->second->where);
    for (const std::string& output : command.outputs)
      if (const auto [made, first] = makers.emplace(output, &command); !first)
        return fail(Code::invalid, "{}: {} makes the output {}, and so does {}", command.where,
                    one_line(command.name), output, made->second->where);
  }
  return check_independent(commands);
}

}  // namespace

Result<std::vector<Command>> parse_command_list(std::string_view text, const fs::path& folder,
                                                const std::string& name) {
  const bool database = trim(text).starts_with('[');
  FURLONG_TRY(std::vector<Command> commands,
              database ? parse_database(text, folder, name) : parse_lines(text, folder, name));
  FURLONG_CHECK(check_together(commands));
  return commands;
}

Status check_independent(const std::vector<Command>& commands) {
  std::map<std::string_view, const Command*> makers;
  for (const Command& command : commands)
    for (const std::string& output : command.outputs) makers.emplace(output, &command);
  for (const Command& command : commands)
    for (const std::string& input : command.inputs)
      if (const auto maker = makers.find(input); maker != makers.end())
        return fail(Code::invalid,
                    "{}: the input {} of '{}' is an output of '{}' ({}): commands of a store run in any "
                    "order, so make "
                    "both one command, or a second store when the first has run",
                    command.where, input, one_line(command.name), one_line(maker->second->name),
                    maker->second->where);
  return {};
}

std::string print_command(const Command& command) {
  Json json;
  json["name"] = command.name;
  json["argv"] = command.argv;
  json["folder"] = command.folder;
  json["environment"] = Json::object();
  for (const auto& [name, value] : command.environment) json["environment"][name] = value;
  json["inputs"] = command.inputs;
  json["outputs"] = command.outputs;
  json["timeout_s"] = command.timeout_s;
  json["any_address_space"] = command.any_address_space;
  return json_line(json);
}

}  // namespace furlong::shard::command
