#include "furlong/shard/executor/command/compiler.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <utility>

#include "furlong/base/text.h"
#include "furlong/shard/executor/command/internal/execute.h"

namespace furlong::shard::command {
namespace {

namespace fs = std::filesystem;

bool blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

// In one of the ways in which compilers take an option with a value: "-o x", "-ox".
bool option_with_value(std::string_view word, std::span<const std::string_view> names, bool& next_too) {
  for (const std::string_view name : names) {
    if (!word.starts_with(name)) continue;
    next_too = word.size() == name.size();
    return true;
  }
  return false;
}

}  // namespace

Result<std::vector<std::string>> shell_words(std::string_view line) {
  std::vector<std::string> words;
  std::optional<std::string> word;
  const auto append = [&](char c) {
    if (!word) word.emplace();
    *word += c;
  };
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (blank(c)) {
      if (word) words.push_back(*std::move(word));
      word.reset();
    } else if (c == '\'') {
      const std::size_t end = line.find('\'', i + 1);
      if (end == line.npos) return fail(Code::invalid, "the quote at byte {} is not closed", i);
      if (!word) word.emplace();
      *word += line.substr(i + 1, end - i - 1);
      i = end;
    } else if (c == '"') {
      const std::size_t begin = i;
      if (!word) word.emplace();
      for (++i; i < line.size() && line[i] != '"'; ++i) {
        constexpr std::string_view kEscaped = "$`\"\\";
        if (line[i] == '\\' && i + 1 < line.size() && kEscaped.find(line[i + 1]) != kEscaped.npos)
          ++i;
        else if (line[i] == '`' || (line[i] == '$' && i + 1 < line.size() && line[i + 1] == '('))
          return fail(Code::invalid, "byte {} ('{}') takes a shell: give it as a line with \"shell\"", i,
                      line[i]);
        append(line[i]);
      }
      if (i >= line.size()) return fail(Code::invalid, "the quote at byte {} is not closed", begin);
    } else if (c == '\\') {
      if (++i < line.size() && line[i] != '\n') append(line[i]);
    } else if (std::string_view("&;|<>`").find(c) != std::string_view::npos ||
               (c == '$' && i + 1 < line.size() && (line[i + 1] == '(' || line[i + 1] == '{'))) {
      return fail(Code::invalid, "byte {} ('{}') takes a shell: give it as a line with \"shell\"", i, c);
    } else {
      append(c);
    }
  }
  if (word) words.push_back(*std::move(word));
  return words;
}

std::string compiler_output(std::span<const std::string> argv, const std::string& file) {
  bool compiles = false;
  for (std::size_t i = 1; i < argv.size(); ++i) {
    if (argv[i] == "-o") return i + 1 < argv.size() ? argv[i + 1] : "";
    if (argv[i].starts_with("-o") && argv[i].size() > 2) return argv[i].substr(2);
    compiles |= argv[i] == "-c";
  }
  if (!compiles) return "";
  return fs::path(file).stem().string() + ".o";  // in the working folder, wherever the source is
}

std::vector<std::string> dependency_command(std::span<const std::string> argv) {
  static constexpr std::array<std::string_view, 4> kWithValue{"-o", "-MF", "-MT", "-MQ"};
  static constexpr std::array<std::string_view, 7> kAlone{"-c", "-M", "-MM", "-MD", "-MMD", "-MP", "-MG"};
  std::vector<std::string> words;
  for (std::size_t i = 0; i < argv.size(); ++i) {
    const std::string& word = argv[i];
    bool next_too = false;
    if (i == 0) {
      words.push_back(word);
    } else if (option_with_value(word, kWithValue, next_too)) {
      i += next_too ? 1 : 0;
    } else if (std::ranges::find(kAlone, word) == kAlone.end() && !word.starts_with("-Wp,-M") &&
               !word.starts_with("-save-temps")) {
      words.push_back(word);
    }
  }
  // The rule's target, which would be the output's name with whatever it has in it.
  words.insert(words.end(), {"-M", "-MT", "unit"});
  return words;
}

Result<std::vector<std::string>> parse_dependencies(std::string_view makefile) {
  const std::size_t colon = makefile.find(':');
  if (colon == makefile.npos) return fail(Code::invalid, "the compiler printed no rule");
  std::vector<std::string> files;
  std::string file;
  const auto end_file = [&] {
    if (!file.empty()) files.push_back(std::exchange(file, {}));
  };
  for (std::size_t i = colon + 1; i < makefile.size(); ++i) {
    const char c = makefile[i];
    const char next = i + 1 < makefile.size() ? makefile[i + 1] : '\0';
    if (c == '\\' && next == '\n') {
      end_file();
      ++i;
    } else if (c == '\\' && next == '\r' && i + 2 < makefile.size() && makefile[i + 2] == '\n') {
      end_file();
      i += 2;
    } else if ((c == '\\' && (next == ' ' || next == '#')) || (c == '$' && next == '$')) {
      file += next;
      ++i;
    } else if (c == '\n') {
      break;
    } else if (blank(c)) {
      end_file();
    } else {
      file += c;
    }
  }
  end_file();
  return files;
}

Result<std::vector<std::string>> find_dependencies(const Command& command, Processes& processes,
                                                   std::stop_token stop) {
  constexpr double kTimeout_s = 600;
  ProcessRequest request;
  request.argv = dependency_command(command.argv);
  request.environment = command.environment;
  request.folder = command.folder;
  FURLONG_TRY(const ProcessEnd end, processes.run(request, kTimeout_s, stop));
  if (end.stopped) return fail(Code::timeout, "stopped");
  if (end.timed_out || end.signal != 0 || end.exit_code != 0)
    return fail(Code::mismatch, "{}{}", end.text(), end_of_errors(end.standard_error));
  FURLONG_TRY(std::vector<std::string> files, parse_dependencies(end.standard_output));
  for (std::string& file : files) {
    if (!is_valid_utf8(file))
      return fail(Code::mismatch, "it reads {}, whose name is not UTF-8", one_line(file));
    file = (fs::path(command.folder) / file).lexically_normal().string();
  }
  if (command.source) files.push_back(*command.source);
  std::sort(files.begin(), files.end());
  files.erase(std::unique(files.begin(), files.end()), files.end());
  return files;
}

}  // namespace furlong::shard::command
