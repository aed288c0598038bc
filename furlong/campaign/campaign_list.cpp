#include "furlong/campaign/campaign_list.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <set>

#include "furlong/base/json.h"
#include "furlong/base/text.h"
#include "furlong/base/toml.h"

namespace furlong::campaign {
namespace {

namespace fs = std::filesystem;

/// JSON lines are read as the same tree, every node of it on its line.
Result<TomlNode> toml_of(const Json& json, int line, const std::string& where) {
  TomlNode node;
  node.line = node.key_line = line;
  node.column = node.key_column = 1;
  if (json.is_boolean()) {
    node.value = json.get<bool>();
  } else if (json.is_number_unsigned() &&
             json.get<std::uint64_t>() > std::uint64_t{std::numeric_limits<std::int64_t>::max()}) {
    return fail(Code::invalid, "{}: {} is beyond 64-bit integers", where, json.dump());
  } else if (json.is_number_integer()) {
    node.value = json.get<std::int64_t>();
  } else if (json.is_number()) {
    node.value = json.get<double>();
  } else if (json.is_string()) {
    node.value = json.get<std::string>();
  } else if (json.is_array()) {
    TomlNode::Array array;
    for (const Json& item : json) {
      FURLONG_TRY(TomlNode made, toml_of(item, line, where));
      array.push_back(std::move(made));
    }
    node.value = std::move(array);
  } else if (json.is_object()) {
    TomlNode::Table table;
    for (const auto& [key, value] : json.items()) {
      FURLONG_TRY(TomlNode made, toml_of(value, line, where));
      table.push_back({key, std::move(made)});
    }
    node.value = std::move(table);
  } else {
    return fail(Code::invalid, "{}: null stands for nothing here: leave the key out", where);
  }
  return node;
}

class Reader {
 public:
  Reader(fs::path folder, std::string name) : folder_(std::move(folder)), name_(std::move(name)) {}

  Result<std::vector<ListedProgram>> toml(std::string_view text) {
    FURLONG_TRY(const TomlNode root, toml_parse(text, name_));
    FURLONG_CHECK(known_keys(root, {"format", "devices", "race", "program"}));
    const TomlNode* format = root.find("format");
    if (format == nullptr)
      return fail(Code::invalid, "{}: the key 'format' is missing: format = {}", name_, kListFormat);
    FURLONG_CHECK(check_format(*format));
    if (const TomlNode* devices = root.find("devices")) {
      FURLONG_TRY(default_.devices, device_list(*devices));
    }
    if (const TomlNode* race = root.find("race")) FURLONG_CHECK(rules(*race, default_.rules));
    std::vector<ListedProgram> programs;
    const TomlNode* list = root.find("program");
    if (list == nullptr || !list->is_array() || list->array()->empty())
      return fail(Code::invalid, "{}: there is no [[program]]", name_);
    for (const TomlNode& node : *list->array()) {
      FURLONG_TRY(ListedProgram one, program(node));
      programs.push_back(std::move(one));
    }
    return programs;
  }

  Result<std::vector<ListedProgram>> json_lines(std::string_view text) {
    std::vector<ListedProgram> programs;
    int number = 0;
    for (const std::string& line : split(text, '\n')) {
      ++number;
      if (trim(line).empty()) continue;
      const std::string where = fmt::format("line {} of {}", number, name_);
      FURLONG_TRY(const Json json, json_parse(trim(line), where));
      FURLONG_TRY(const TomlNode node, toml_of(json, number, where));
      FURLONG_TRY(ListedProgram one, program(node, true));
      programs.push_back(std::move(one));
    }
    if (programs.empty()) return fail(Code::invalid, "{}: there is no program in it", name_);
    return programs;
  }

 private:
  std::string at(const TomlNode& node) const {
    return fmt::format("{}:{}:{}", name_, node.line, node.column);
  }
  Error wrong(const TomlNode& node, std::string_view key, std::string_view wanted) const {
    return fail(Code::invalid, "{}: '{}' is {}, not {}", at(node), key, wanted, node.type_name());
  }

  Status check_format(const TomlNode& node) const {
    if (node.integer() == nullptr) return wrong(node, "format", "a number");
    if (*node.integer() == kListFormat) return {};
    return fail(Code::incompatible, "{}: found format {} of a campaign, expected {}", at(node),
                *node.integer(), kListFormat);
  }

  Status known_keys(const TomlNode& table, const std::vector<std::string>& known) const {
    if (!table.is_table())
      return fail(Code::invalid, "{}: a table is wanted, not {}", at(table), table.type_name());
    for (const auto& [key, node] : *table.table())
      if (std::ranges::find(known, key) == known.end())
        return fail(Code::invalid, "{}:{}:{}: unknown key '{}'{}", name_, node.key_line, node.key_column, key,
                    nearest_choices(key, known));
    return {};
  }

  Result<std::vector<std::string>> words(const TomlNode& node, std::string_view key) const {
    if (!node.is_array()) return wrong(node, key, "a list of strings");
    std::vector<std::string> list;
    for (const TomlNode& item : *node.array()) {
      if (item.string() == nullptr) return wrong(item, key, "a list of strings");
      list.push_back(*item.string());
    }
    return list;
  }

  Result<std::vector<std::string>> device_list(const TomlNode& node) const {
    FURLONG_TRY(const std::vector<std::string> list, words(node, "devices"));
    std::vector<std::string> devices;
    for (const std::string& word : list) {
      auto device = device_name(word);
      if (!device) return fail(Code::invalid, "{}: {}", at(node), device.error().text());
      if (std::ranges::find(devices, *device) == devices.end()) devices.push_back(*std::move(device));
    }
    if (devices.empty()) return fail(Code::invalid, "{}: 'devices' is empty", at(node));
    return devices;
  }

  Status number(const TomlNode& table, std::string_view key, double least, double most, double& into) const {
    const TomlNode* node = table.find(key);
    if (node == nullptr) return {};
    double value = 0;
    if (node->integer() != nullptr)
      value = static_cast<double>(*node->integer());
    else if (node->number() != nullptr)
      value = *node->number();
    else
      return wrong(*node, key, "a number");
    if (!(value >= least && value <= most))
      return fail(Code::invalid, "{}: '{}' is {} to {}, not {}", at(*node), key, least, most, value);
    into = value;
    return {};
  }

  Status rules(const TomlNode& table, RaceRules& into) const {
    FURLONG_CHECK(
        known_keys(table, {"variants", "allow_lossy", "budget_s", "window_ms", "threshold_pct", "seed"}));
    // The bounds of furlong race.
    FURLONG_CHECK(number(table, "budget_s", 0.1, 540, into.budget_s));
    FURLONG_CHECK(number(table, "window_ms", 0.1, 10'000, into.window_ms));
    FURLONG_CHECK(number(table, "threshold_pct", 0, 50, into.threshold_pct));
    if (const TomlNode* seed = table.find("seed")) {
      if (seed->integer() == nullptr || *seed->integer() < 0)
        return wrong(*seed, "seed", "a number from 0 on");
      into.seed = static_cast<std::uint64_t>(*seed->integer());
    }
    if (const TomlNode* variants = table.find("variants")) {
      if (variants->string() == nullptr)
        return wrong(*variants, "variants", "a string such as \"catalogue\"");
      into.variants = *variants->string();
    }
    if (const TomlNode* allow = table.find("allow_lossy")) {
      FURLONG_TRY(into.allow_lossy, words(*allow, "allow_lossy"));
      std::ranges::sort(into.allow_lossy);
      const auto twice = std::ranges::unique(into.allow_lossy);
      into.allow_lossy.erase(twice.begin(), twice.end());
    }
    return {};
  }

  Result<lattice::Value> value(const TomlNode& node, std::string_view parameter) const {
    if (const bool* flag = node.boolean()) return lattice::Value(*flag);
    if (const std::int64_t* integer = node.integer()) return lattice::Value(*integer);
    if (const double* real = node.number()) return lattice::Value(*real);
    if (const std::string* word = node.string()) return lattice::Value(*word);
    return wrong(node, parameter, "a number, a string or true or false");
  }

  /// Every combination of the parameters' values.
  Result<std::vector<Problem>> product(const TomlNode& table) const {
    if (!table.is_table()) return wrong(table, "problems", "a table of lists");
    std::vector<Problem> problems{{}};
    for (const auto& [parameter, node] : *table.table()) {
      std::vector<lattice::Value> values;
      if (node.is_array()) {
        for (const TomlNode& item : *node.array()) {
          FURLONG_TRY(lattice::Value one, value(item, parameter));
          values.push_back(std::move(one));
        }
      } else {
        FURLONG_TRY(lattice::Value one, value(node, parameter));
        values.push_back(std::move(one));
      }
      if (values.empty()) return fail(Code::invalid, "{}: '{}' has no value", at(node), parameter);
      if (values.size() > kMostProblems / problems.size())
        return fail(Code::invalid, "{}: more than {} problems of one program", at(node), kMostProblems);
      std::vector<Problem> grown;
      for (const Problem& problem : problems)
        for (const lattice::Value& one : values) {
          grown.push_back(problem);
          grown.back().emplace_back(parameter, one);
        }
      problems = std::move(grown);
    }
    return problems;
  }

  Result<std::vector<Problem>> cases(const TomlNode& list) const {
    if (!list.is_array() || list.array()->empty()) return wrong(list, "cases", "a list of tables");
    std::vector<Problem> problems;
    for (const TomlNode& item : *list.array()) {
      if (!item.is_table()) return wrong(item, "cases", "a list of tables");
      Problem problem;
      for (const auto& [parameter, node] : *item.table()) {
        FURLONG_TRY(lattice::Value one, value(node, parameter));
        problem.emplace_back(parameter, std::move(one));
      }
      problems.push_back(std::move(problem));
    }
    return problems;
  }

  Result<ListedProgram> program(const TomlNode& node, bool with_format = false) const {
    std::vector<std::string> keys{"file", "problems", "cases", "devices", "race", "allow_unsigned"};
    if (with_format) keys.push_back("format");
    FURLONG_CHECK(known_keys(node, keys));
    ListedProgram one = default_;
    one.where = at(node);
    if (const TomlNode* format = node.find("format")) FURLONG_CHECK(check_format(*format));
    const TomlNode* file = node.find("file");
    if (file == nullptr) return fail(Code::invalid, "{}: the key 'file' is missing", at(node));
    if (file->string() == nullptr || file->string()->empty())
      return wrong(*file, "file", "the path of a program file or of a pack's folder");
    one.where = at(*file);
    one.file = (folder_ / *file->string()).lexically_normal();
    if (const TomlNode* devices = node.find("devices")) {
      FURLONG_TRY(one.devices, device_list(*devices));
    }
    if (one.devices.empty())
      return fail(Code::invalid, "{}: no device to race on: devices = [\"host:0\"] here{}", at(node),
                  with_format ? "" : " or at the list's top");
    if (const TomlNode* race = node.find("race")) FURLONG_CHECK(rules(*race, one.rules));
    if (const TomlNode* unsigned_too = node.find("allow_unsigned")) {
      if (unsigned_too->boolean() == nullptr) return wrong(*unsigned_too, "allow_unsigned", "true or false");
      one.allow_unsigned = *unsigned_too->boolean();
    }
    const TomlNode* table = node.find("problems");
    const TomlNode* list = node.find("cases");
    if (table != nullptr && list != nullptr)
      return fail(Code::invalid, "{}: give 'problems' (all combinations) or 'cases' (one by one), not both",
                  at(*list));
    one.problems = {{}};
    if (table != nullptr) {
      FURLONG_TRY(one.problems, product(*table));
    }
    if (list != nullptr) {
      FURLONG_TRY(one.problems, cases(*list));
    }
    return one;
  }

  const fs::path folder_;
  const std::string name_;
  ListedProgram default_;
};

}  // namespace

std::string_view silicon_of(std::string_view device) {
  constexpr std::string_view prefix = "silicon:";
  return device.starts_with(prefix) ? device.substr(prefix.size()) : std::string_view();
}

Result<std::string> device_name(std::string_view text) {
  const auto malformed = [&] {
    return fail(
        Code::invalid,
        "'{}' names no device: write \"opencl:0\", or \"silicon:\" and the 16 digits that furlong devices "
        "shows of a card",
        text);
  };
  if (const std::string_view hash = silicon_of(text); !hash.empty()) {
    const bool digits =
        std::ranges::all_of(hash, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
    if (hash.size() != 16 || !digits) return malformed();
    return std::string(text);
  }
  const std::size_t colon = text.find(':');
  const std::string_view backend = text.substr(0, colon);
  const bool lower = std::ranges::all_of(backend, [](char c) { return (c >= 'a' && c <= 'z') || c == '_'; });
  if (backend.empty() || !lower || backend == "auto" || backend == "silicon") return malformed();
  if (colon == text.npos) return std::string(text) + ":0";
  const std::string_view index = text.substr(colon + 1);
  const bool number = std::ranges::all_of(index, [](char c) { return c >= '0' && c <= '9'; });
  if (index.empty() || index.size() > 6 || !number) return malformed();
  return fmt::format("{}:{}", backend, *parse_integer(index));
}

Result<std::vector<ListedProgram>> parse_campaign(std::string_view text, const fs::path& folder,
                                                  const std::string& name) {
  Reader reader(folder, name);
  const std::string_view begin = trim(text);
  return begin.starts_with('{') ? reader.json_lines(text) : reader.toml(text);
}

}  // namespace furlong::campaign
