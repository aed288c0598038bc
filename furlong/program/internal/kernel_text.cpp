#include "furlong/program/internal/kernel_text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>

#include "furlong/base/text.h"

namespace furlong::program::internal {
namespace {

bool starts_word(char c) { return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool in_word(char c) { return starts_word(c) || (c >= '0' && c <= '9'); }
bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

// A word, a number or one other character.
struct Token {
  std::string_view text;
  std::size_t at = 0;
};

std::vector<Token> tokens_of(std::string_view text) {
  std::vector<Token> tokens;
  for (std::size_t i = 0; i < text.size();) {
    if (is_blank(text[i])) {
      ++i;
      continue;
    }
    std::size_t end = i + 1;
    if (in_word(text[i]))
      while (end < text.size() && in_word(text[end])) ++end;
    tokens.push_back({text.substr(i, end - i), i});
    i = end;
  }
  return tokens;
}

// Directives would break the reading of signatures and bodies.
std::string blank_directives(std::string text) {
  bool directive = false;
  bool line_start = true;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\n') {
      const bool goes_on = directive && i > 0 && text[i - 1] == '\\';
      directive = goes_on;
      line_start = true;
      continue;
    }
    if (line_start && text[i] == '#') directive = true;
    if (!is_blank(text[i])) line_start = false;
    if (directive && text[i] != '\\') text[i] = ' ';
  }
  return text;
}

// Index of the token that closes the bracket at `open`; tokens.size() when none does.
std::size_t closing(const std::vector<Token>& tokens, std::size_t open, std::string_view left,
                    std::string_view right) {
  int depth = 0;
  for (std::size_t i = open; i < tokens.size(); ++i) {
    if (tokens[i].text == left) ++depth;
    if (tokens[i].text == right && --depth == 0) return i;
  }
  return tokens.size();
}

std::string_view base_type(std::string_view word) {
  static const std::map<std::string_view, std::string_view> names = {
      {"float", "f32"},     {"double", "f64"},  {"half", "f16"},     {"__half", "f16"},   {"_Float16", "f16"},
      {"int8_t", "i8"},     {"uint8_t", "u8"},  {"int16_t", "i16"},  {"uint16_t", "u16"}, {"int32_t", "i32"},
      {"uint32_t", "u32"},  {"int64_t", "i64"}, {"uint64_t", "u64"}, {"size_t", "u64"},   {"uchar", "u8"},
      {"ushort", "u16"},    {"uint", "u32"},    {"ulong", "u64"},    {"bool", "u8"},      {"longlong", "i64"},
      {"ulonglong", "u64"}, {"char", "i8"},     {"short", "i16"},    {"int", "i32"},      {"long", "i64"}};
  const auto found = names.find(word);
  return found == names.end() ? std::string_view() : found->second;
}

// "unsigned long long", "float4", "const T": what a parameter's words say about its elements.
void set_type(const std::vector<std::string_view>& words, Parameter& parameter) {
  bool is_unsigned = false;
  bool is_signed_word = false;
  int longs = 0;
  std::string_view core;
  for (std::string_view word : words) {
    if (word == "unsigned") is_unsigned = true;
    if (word == "signed") is_signed_word = true;
    if (word == "long") ++longs;
    std::string_view stem = word;
    if (base_type(stem).empty()) {  // float4, uchar16
      const std::size_t digits = stem.find_last_not_of("0123456789");
      if (digits != std::string_view::npos && digits + 1 < stem.size() &&
          !base_type(stem.substr(0, digits + 1)).empty()) {
        int lanes = 0;
        std::from_chars(stem.data() + digits + 1, stem.data() + stem.size(), lanes);
        if (lanes >= 1 && lanes <= 16) {
          parameter.lanes = lanes;
          stem = stem.substr(0, digits + 1);
        }
      }
    }
    if (!base_type(stem).empty() &&
        (core.empty() || core == "i32" || stem == "char" || stem == "short" || stem == "double"))
      core = base_type(stem);
  }
  if (longs > 0 && core != "f64") core = "i64";
  if (core.empty() && (is_unsigned || is_signed_word)) core = "i32";
  if (core.empty()) return;
  std::string name(core);
  if (is_unsigned && name[0] == 'i') name[0] = 'u';
  if (auto type = parse_element(name)) parameter.type = *type;
}

Parameter parse_parameter(const std::vector<Token>& tokens, std::size_t begin, std::size_t end) {
  Parameter parameter;
  std::vector<std::string_view> words;
  for (std::size_t i = begin; i < end; ++i) {
    const std::string_view word = tokens[i].text;
    if (word == "[") {  // float x[]: a pointer
      parameter.pointer = true;
      break;
    }
    if (word == "*") parameter.pointer = true;
    if (word == "const" || word == "__constant" || word == "constant") parameter.constant = true;
    if (word == "__constant" || word == "constant") parameter.constant_space = true;
    if (word == "__local" || word == "local") parameter.local_space = true;
    if (starts_word(word[0])) words.push_back(word);
    if (!parameter.type_text.empty() && in_word(word[0])) parameter.type_text += ' ';
    parameter.type_text += word;
  }
  if (words.empty()) return parameter;
  parameter.name = words.back();
  words.pop_back();
  parameter.type_text = parameter.type_text.substr(0, parameter.type_text.rfind(parameter.name));
  parameter.type_text = trim(parameter.type_text);
  set_type(words, parameter);
  return parameter;
}

// Splits at commas outside any bracket.
std::vector<std::pair<std::size_t, std::size_t>> split_list(const std::vector<Token>& tokens,
                                                            std::size_t begin, std::size_t end) {
  std::vector<std::pair<std::size_t, std::size_t>> parts;
  int depth = 0;
  std::size_t start = begin;
  for (std::size_t i = begin; i < end; ++i) {
    const std::string_view word = tokens[i].text;
    if (word == "(" || word == "<" || word == "[" || word == "{") ++depth;
    if (word == ")" || word == ">" || word == "]" || word == "}") --depth;
    if (word != "," || depth != 0) continue;
    parts.emplace_back(start, i);
    start = i + 1;
  }
  if (start < end) parts.emplace_back(start, end);
  return parts;
}

class KernelFinder {
 public:
  KernelFinder(std::string_view text, std::string_view language)
      : clean_(blank_directives(blank_comments(text, true))),
        tokens_(tokens_of(clean_)),
        language_(language) {}

  std::vector<KernelText> find() {
    std::vector<KernelText> kernels;
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
      if (!is_marker(i)) continue;
      if (auto kernel = read(i)) kernels.push_back(*std::move(kernel));
    }
    return kernels;
  }

 private:
  std::string_view word(std::size_t i) const {
    return i < tokens_.size() ? tokens_[i].text : std::string_view();
  }

  bool is_marker(std::size_t i) const {
    if (language_ == "cuda") return word(i) == "__global__";
    if (language_ == "opencl") return word(i) == "__kernel" || word(i) == "kernel";
    return word(i) == "void" && word(i + 2) == "(";
  }

  // From the marker to the parameters: attributes are skipped, and those that fix the block are read.
  std::optional<KernelText> read(std::size_t marker) {
    KernelText kernel;
    std::size_t i = language_ == "host" ? marker : marker + 1;
    for (; i < tokens_.size(); ++i) {
      if (word(i) == ";" || word(i) == "{" || word(i) == "}") return std::nullopt;
      if (word(i + 1) != "(" || !starts_word(word(i)[0])) continue;
      const std::size_t end = closing(tokens_, i + 1, "(", ")");
      if (word(i) != "__attribute__" && word(i) != "__launch_bounds__" && word(i) != "alignas") break;
      read_attribute(i, end, kernel);
      i = end;
    }
    const std::size_t end = closing(tokens_, i + 1, "(", ")");
    if (i >= tokens_.size() || end >= tokens_.size()) return std::nullopt;
    kernel.name = word(i);
    if (!read_parameters(i + 2, end, kernel)) return std::nullopt;
    std::size_t brace = end + 1;
    while (word(brace) == "__attribute__") {
      const std::size_t past = closing(tokens_, brace + 1, "(", ")");
      read_attribute(brace, past, kernel);
      brace = past + 1;
    }
    if (word(brace) == "noexcept") ++brace;
    if (word(brace) != "{") return std::nullopt;
    const std::size_t close = closing(tokens_, brace, "{", "}");
    const std::size_t stop = close < tokens_.size() ? tokens_[close].at : clean_.size();
    kernel.body = clean_.substr(tokens_[brace].at + 1, stop - tokens_[brace].at - 1);
    read_templates(marker, kernel);
    return kernel;
  }

  void read_attribute(std::size_t begin, std::size_t end, KernelText& kernel) {
    for (std::size_t i = begin; i < end; ++i) {
      if (word(i) != "__launch_bounds__" && word(i) != "reqd_work_group_size") continue;
      const std::size_t most = word(i) == "__launch_bounds__" ? 1 : 3;  // its second number is no dimension
      std::vector<std::int64_t> threads;
      for (std::size_t k = i + 2; k < end && threads.size() < most; k += 2) {  // a number, then a comma
        const auto number = parse_integer(word(k));
        if (!number || *number < 1 || *number > 65536) break;
        threads.push_back(*number);
      }
      if (!threads.empty()) kernel.fixed_block = std::move(threads);
    }
  }

  // false: a host function that is no kernel.
  bool read_parameters(std::size_t begin, std::size_t end, KernelText& kernel) {
    bool block_seen = false;
    for (const auto& [from, to] : split_list(tokens_, begin, end)) {
      if (to == from + 1 && word(from) == "void") continue;
      bool is_block = false;
      for (std::size_t i = from; i < to; ++i) is_block = is_block || word(i) == "furlong_block";
      if (is_block && language_ == "host") {
        block_seen = true;
        continue;
      }
      kernel.parameters.push_back(parse_parameter(tokens_, from, to));
    }
    return language_ != "host" || block_seen;
  }

  // template <typename T, int N> before the marker, with extern "C" and attributes between.
  void read_templates(std::size_t marker, KernelText& kernel) {
    std::size_t start = marker;
    while (start > 0 && word(start - 1) != ";" && word(start - 1) != "}" && word(start - 1) != "{") --start;
    for (std::size_t i = start; i < marker; ++i) {
      if (word(i) != "template" || word(i + 1) != "<") continue;
      const std::size_t end = closing(tokens_, i + 1, "<", ">");
      if (end >= marker) return;
      for (const auto& [from, to] : split_list(tokens_, i + 2, end)) {
        TemplateParameter parameter;
        parameter.is_type = word(from) == "typename" || word(from) == "class";
        for (std::size_t k = from; k < to && word(k) != "="; ++k)
          if (starts_word(word(k)[0])) parameter.name = word(k);
        kernel.templates.push_back(std::move(parameter));
      }
    }
  }

  std::string clean_;
  std::vector<Token> tokens_;
  std::string language_;
};

std::optional<std::int64_t> macro_value(std::string_view text) {
  text = trim(text);
  while (text.size() > 2 && text.front() == '(' && text.back() == ')')
    text = trim(text.substr(1, text.size() - 2));
  while (!text.empty() &&
         (text.back() == 'u' || text.back() == 'U' || text.back() == 'l' || text.back() == 'L'))
    text.remove_suffix(1);
  auto value = parse_integer(text);
  if (!value) return std::nullopt;
  return *value;
}

int count_word(std::string_view text, std::string_view wanted) {
  int count = 0;
  for (std::size_t at = text.find(wanted); at != std::string_view::npos; at = text.find(wanted, at + 1)) {
    const bool left = at == 0 || !in_word(text[at - 1]);
    const std::size_t end = at + wanted.size();
    if (left && (end >= text.size() || !in_word(text[end]))) ++count;
  }
  return count;
}

// The words of a line that begins with '#': {"define", "N", "16"}, the rest as one.
std::optional<std::array<std::string_view, 3>> directive(std::string_view line) {
  line = trim(line);
  if (!line.starts_with('#')) return std::nullopt;
  std::array<std::string_view, 3> words;
  line = trim(line.substr(1));
  for (int i = 0; i < 2; ++i) {
    std::size_t end = 0;
    while (end < line.size() && in_word(line[end])) ++end;
    words[static_cast<std::size_t>(i)] = line.substr(0, end);
    if (i == 1 && end < line.size() && line[end] == '(') return std::nullopt;  // a macro with parameters
    line = trim(line.substr(end));
  }
  words[2] = line;
  return words;
}

}  // namespace

std::string blank_comments(std::string_view text, bool strings) {
  std::string result(text);
  const auto blank = [&](std::size_t from, std::size_t to) {
    for (std::size_t i = from; i < to && i < result.size(); ++i)
      if (result[i] != '\n') result[i] = ' ';
  };
  for (std::size_t i = 0; i < text.size();) {
    std::size_t end = i + 1;
    if (text.substr(i).starts_with("//")) {
      end = std::min(text.find('\n', i), text.size());
      blank(i, end);
    } else if (text.substr(i).starts_with("/*")) {
      const std::size_t close = text.find("*/", i + 2);
      end = close == std::string_view::npos ? text.size() : close + 2;
      blank(i, end);
    } else if (text[i] == '"' || text[i] == '\'') {
      while (end < text.size() && text[end] != text[i] && text[end] != '\n') end += text[end] == '\\' ? 2 : 1;
      end = std::min(end + 1, text.size());
      if (strings) blank(i, end);
    }
    i = end;
  }
  return result;
}

std::vector<KernelText> find_kernels(std::string_view text, std::string_view language) {
  return KernelFinder(text, language).find();
}

std::vector<MacroText> find_macros(std::string_view text) {
  const std::string clean = blank_comments(text, true);
  const std::vector<std::string> lines = split(clean, '\n');
  const std::vector<std::string> written = split(text, '\n');
  std::vector<MacroText> macros;
  std::string_view guard;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (trim(lines[i]).empty()) continue;
    const auto words = directive(lines[i]);
    const std::string_view before = std::exchange(guard, std::string_view());
    if (!words) continue;
    if ((*words)[0] == "ifndef") guard = (*words)[1];
    const std::string name((*words)[1]);
    if ((*words)[0] != "define" || name.empty()) continue;
    const auto value = macro_value((*words)[2]);
    if (!value) continue;
    const int mentions = (before == name ? 2 : 1);
    macros.push_back({.name = name,
                      .value = *value,
                      .guarded = before == name,
                      .line = written[i],
                      .uses = count_word(clean, name) - mentions});
  }
  return macros;
}

bool has_word(std::string_view text, std::string_view word) { return count_word(text, word) > 0; }

bool only_written(std::string_view body, std::string_view name) {
  const std::vector<Token> tokens = tokens_of(body);
  bool written = false;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i].text != name) continue;
    if (i + 1 >= tokens.size() || tokens[i + 1].text != "[") return false;
    const std::size_t close = closing(tokens, i + 1, "[", "]");
    // "=" alone: "==" compares, "+=" reads.
    if (close + 2 >= tokens.size() || tokens[close + 1].text != "=" || tokens[close + 2].text == "=")
      return false;
    written = true;
  }
  return written;
}

}  // namespace furlong::program::internal
