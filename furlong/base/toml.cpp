#include "furlong/base/toml.h"

#include <toml++/toml.h>

#include <algorithm>
#include <optional>
#include <tuple>

#include "furlong/base/text.h"

namespace furlong {
namespace {

constexpr int max_depth = 64;
constexpr std::size_t max_bytes = 16u << 20;  // program files are kilobytes

// toml++ bounds nested brackets but not the parts of a dotted key, and a tree of a million levels
// would overflow the stack when it is destroyed. This scanner knows just enough TOML (strings and
// comments) to bound both before toml++ sees the text. Up to the first syntax error it agrees with
// toml++ on what is a string, and toml++ stops at that error.
class DepthScanner {
 public:
  explicit DepthScanner(std::string_view text) : text_(text) {}

  // Where the text first goes too deep.
  std::optional<std::size_t> too_deep() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '"' || c == '\'') {
        skip_string(c);
        continue;
      }
      if (c == '#') {
        at_ = std::min(text_.find('\n', at_), text_.size());
        continue;
      }
      if (c == '.')
        ++dots_;
      else if (!in_key(c))
        dots_ = 0;
      if (c == '[' || c == '{') ++brackets_;
      if (c == ']' || c == '}') brackets_ = std::max(0, brackets_ - 1);
      if (dots_ > max_depth || brackets_ > max_depth) return at_;
      ++at_;
    }
    return std::nullopt;
  }

 private:
  static bool in_key(char c) {
    return c == '.' || c == ' ' || c == '\t' || c == '_' || c == '-' || (c >= '0' && c <= '9') ||
           (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || static_cast<unsigned char>(c) >= 0x80;
  }

  void skip_string(char quote) {
    const std::string_view three = quote == '"' ? "\"\"\"" : "'''";
    const bool many_lines = text_.substr(at_).starts_with(three);
    at_ += many_lines ? 3 : 1;
    for (; at_ < text_.size(); ++at_) {
      if (quote == '"' && text_[at_] == '\\') {
        ++at_;
      } else if (many_lines && text_.substr(at_).starts_with(three)) {
        at_ += 3;
        // Up to two more quotes belong to the string's end.
        for (int extra = 0; extra < 2 && at_ < text_.size() && text_[at_] == quote; ++extra) ++at_;
        return;
      } else if (!many_lines && (text_[at_] == quote || text_[at_] == '\n')) {
        ++at_;
        return;
      }
    }
  }

  std::string_view text_;
  std::size_t at_ = 0;
  int dots_ = 0;
  int brackets_ = 0;
};

Error at_position(std::string_view name, int line, int column, std::string_view what) {
  return fail(Code::invalid, "{}:{}:{}: {}", name, line, column, what);
}

void set_position(const toml::source_region& region, int& line, int& column) {
  line = static_cast<int>(region.begin.line);
  column = static_cast<int>(region.begin.column);
}

class Converter {
 public:
  explicit Converter(std::string_view name) : name_(name) {}

  Result<TomlNode> convert(const toml::node& from, int depth) {
    TomlNode node;
    set_position(from.source(), node.line, node.column);
    if (depth > max_depth)
      return at_position(name_, node.line, node.column,
                         fmt::format("nested deeper than {} levels", max_depth));
    if (const auto* table = from.as_table()) {
      FURLONG_TRY(node.value, members(*table, depth));
    } else if (const auto* array = from.as_array()) {
      TomlNode::Array elements;
      for (const toml::node& element : *array) {
        FURLONG_TRY(TomlNode converted, convert(element, depth + 1));
        elements.push_back(std::move(converted));
      }
      node.value = std::move(elements);
    } else if (const auto* text = from.as_string()) {
      node.value = text->get();
    } else if (const auto* integer = from.as_integer()) {
      node.value = integer->get();
    } else if (const auto* number = from.as_floating_point()) {
      node.value = number->get();
    } else if (const auto* boolean = from.as_boolean()) {
      node.value = boolean->get();
    } else {
      return at_position(name_, node.line, node.column,
                         "dates and times are not used in Furlong's files: write it as a string in quotes");
    }
    return node;
  }

 private:
  Result<TomlNode::Table> members(const toml::table& table, int depth) {
    TomlNode::Table members;
    for (const auto& [key, value] : table) {
      FURLONG_TRY(TomlNode node, convert(value, depth + 1));
      set_position(key.source(), node.key_line, node.key_column);
      members.push_back({std::string(key.str()), std::move(node)});
    }
    // toml++ keeps tables sorted by name; people mean the order in which they wrote them.
    // (The name settles ties, so that the order never depends on the sort.)
    const auto place = [](const TomlMember& member) {
      return std::tie(member.second.key_line, member.second.key_column, member.first);
    };
    std::sort(members.begin(), members.end(),
              [&](const TomlMember& a, const TomlMember& b) { return place(a) < place(b); });
    return members;
  }

  std::string_view name_;
};

}  // namespace

const TomlNode* TomlNode::find(std::string_view key) const {
  const Table* members = table();
  if (members == nullptr) return nullptr;
  for (const auto& [name, node] : *members)
    if (name == key) return &node;
  return nullptr;
}

std::string_view TomlNode::type_name() const {
  static constexpr std::string_view names[] = {"true or false", "an integer", "a number",
                                               "a string",      "an array",   "a table"};
  return names[value.index()];
}

Result<TomlNode> toml_parse(std::string_view text, std::string_view name) {
  if (text.size() > max_bytes)
    return fail(Code::invalid, "{}: {} are more than the {} allowed for TOML", name, human_bytes(text.size()),
                human_bytes(max_bytes));
  if (const auto deep = DepthScanner(text).too_deep()) {
    const TextPosition position = position_at(text, *deep);
    return at_position(name, position.line, position.column,
                       fmt::format("nested deeper than {} levels", max_depth));
  }
  try {
    const toml::table document = toml::parse(text, name);
    FURLONG_TRY(TomlNode root, Converter(name).convert(document, 0));
    root.line = std::max(root.line, 1);
    root.column = std::max(root.column, 1);
    return root;
  } catch (const toml::parse_error& error) {
    return at_position(name, static_cast<int>(error.source().begin.line),
                       static_cast<int>(error.source().begin.column), error.description());
  } catch (const std::bad_alloc&) {
    return fail(Code::exhausted, "{}: not enough memory to read {} of TOML", name, human_bytes(text.size()));
  } catch (const std::exception& error) {
    return fail(Code::invalid, "{}: {}", name, error.what());
  }
}

}  // namespace furlong
