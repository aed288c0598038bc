#include "furlong/interop/header.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <utility>

#include "furlong/base/json.h"
#include "furlong/base/text.h"

namespace furlong::interop {
namespace {

/// An upper- or lower-case C identifier from any text.
std::string identifier(std::string_view text, bool upper) {
  std::string out;
  for (const char c : text) {
    const auto u = static_cast<unsigned char>(c);
    out += std::isalnum(u) ? static_cast<char>(upper ? std::toupper(u) : std::tolower(u)) : '_';
  }
  if (out.empty() || std::isdigit(static_cast<unsigned char>(out[0]))) out.insert(0, "_");
  return out;
}

/// C string literal; the texts come from files and may hold anything.
std::string literal(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto u = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (u < 0x20 || u == 0x7f || c == '?') {
      out += fmt::format("\\{:03o}", u);  // '?' too: no trigraphs
    } else {
      out += c;
    }
  }
  return out + "\"";
}

/// Text for a comment: nothing in it may end the comment, begin another or join lines.
std::string comment(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (static_cast<unsigned char>(c) < 0x20 || c == '\\' || c == '?') c = ' ';
  out = replace_all(out, "*", "* ");
  return replace_all(out, "/", "/ ");
}

std::string values_text(const std::vector<std::pair<std::string, lattice::Value>>& values,
                        std::string_view separator) {
  std::vector<std::string> parts;
  for (const auto& [name, value] : values) parts.push_back(name + "=" + value.text());
  return join(parts, separator);
}

std::string define_value(const lattice::Value& value) {
  if (value.is_bool()) return *value.boolean() ? "1" : "0";
  return value.text();
}

Result<lattice::Value> value_of(const Json& json, std::string_view name) {
  if (json.is_boolean()) return lattice::Value(json.get<bool>());
  if (json.is_number_unsigned() && !std::in_range<std::int64_t>(json.get<std::uint64_t>()))
    return fail(Code::invalid, "{} is {}, which does not fit a 64-bit integer", name, json_line(json));
  if (json.is_number_integer()) return lattice::Value(json.get<std::int64_t>());
  if (json.is_number()) return lattice::Value(json.get<double>());
  if (json.is_string()) return lattice::Value(json.get<std::string>());
  return fail(Code::invalid, "{} is no word, number or boolean", name);
}

Result<std::vector<std::pair<std::string, lattice::Value>>> values_of(const Json& object,
                                                                      std::string_view key,
                                                                      std::string_view name) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_object())
    return fail(Code::invalid, "{}.{} is missing or no object", name, key);
  std::vector<std::pair<std::string, lattice::Value>> values;
  for (const auto& [member, json] : found->items()) {
    FURLONG_TRY(auto value, value_of(json, fmt::format("{}.{}.{}", name, key, member)));
    values.emplace_back(member, std::move(value));
  }
  return values;
}

Result<std::vector<std::string>> words_of(const Json& object, std::string_view key, std::string_view name) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_array())
    return fail(Code::invalid, "{}.{} is missing or no list", name, key);
  std::vector<std::string> words;
  for (const Json& word : *found) {
    if (!word.is_string()) return fail(Code::invalid, "{}.{} holds something that is no word", name, key);
    words.push_back(word.get<std::string>());
  }
  return words;
}

Result<Choice> choice_from_one(const Json& race, std::string_view name) {
  if (!race.is_object()) return fail(Code::invalid, "{} is no object", name);
  FURLONG_TRY(const std::int64_t schema, json_integer(race, "schema", name));
  if (schema != 1)
    return fail(Code::incompatible, "{}: found schema {}, expected 1: race again with this version", name,
                schema);
  Choice choice;
  FURLONG_TRY(choice.program, json_string(race, "program", name));
  FURLONG_TRY(choice.language, json_string(race, "language", name));
  FURLONG_TRY(choice.variant, json_string(race, "winner", name));
  FURLONG_TRY(choice.date, json_string(race, "ts", name));
  FURLONG_TRY(choice.problem, values_of(race, "problem", name));
  const auto device = race.find("device");
  if (device == race.end()) return fail(Code::invalid, "{}.device is missing", name);
  FURLONG_TRY(choice.device, json_string(*device, "label", std::string(name) + ".device"));
  FURLONG_TRY(choice.silicon, json_string(*device, "silicon", std::string(name) + ".device"));
  const auto variants = race.find("variants");
  if (variants == race.end() || !variants->is_array())
    return fail(Code::invalid, "{}.variants is missing", name);
  for (const Json& variant : *variants) {
    FURLONG_TRY(const std::string variant_name,
                json_string(variant, "name", std::string(name) + ".variants"));
    if (variant_name != choice.variant) continue;
    const std::string where = fmt::format("{}.variants.{}", name, variant_name);
    FURLONG_TRY(choice.knobs, values_of(variant, "knobs", where));
    FURLONG_TRY(const auto defines, values_of(variant, "defines", where));
    for (const auto& [macro, value] : defines) choice.defines.emplace_back(macro, value.text());
    FURLONG_TRY(choice.options, words_of(variant, "options", where));
    if (variant.contains("gain") && variant["gain"].is_number()) choice.gain = variant["gain"].get<double>();
    return choice;
  }
  return fail(Code::invalid, "{}: the winner '{}' is not among its variants", name, choice.variant);
}

bool same_place(const Choice& a, const Choice& b) {
  return a.silicon == b.silicon && a.device == b.device &&
         values_text(a.problem, ",") == values_text(b.problem, ",");
}

Status prepare(std::vector<Choice>& choices) {
  if (choices.empty()) return fail(Code::invalid, "no race to take a choice from");
  for (const Choice& choice : choices) {
    if (choice.program != choices[0].program)
      return fail(Code::invalid, "races of two programs, '{}' and '{}': write one header for each",
                  choices[0].program, choice.program);
  }
  const auto key = [](const Choice& c) {
    return std::make_tuple(c.device, c.silicon, values_text(c.problem, ","));
  };
  std::stable_sort(choices.begin(), choices.end(), [&](const Choice& a, const Choice& b) {
    return key(a) != key(b) ? key(a) < key(b) : a.date > b.date;
  });
  choices.erase(std::unique(choices.begin(), choices.end(), same_place), choices.end());
  return {};
}

/// The first problem parameter that is an integer everywhere and differs: sizes are told apart by it. The
/// first integer one when none differs; empty when there is none.
std::string size_parameter(const std::vector<Choice>& choices) {
  std::string fallback;
  for (const auto& [name, value] : choices[0].problem) {
    if (!value.is_integer()) continue;
    if (fallback.empty()) fallback = name;
    for (const Choice& choice : choices)
      for (const auto& [other, theirs] : choice.problem)
        if (other == name && !(theirs == value)) return name;
  }
  return fallback;
}

std::int64_t size_of(const Choice& choice, std::string_view parameter) {
  for (const auto& [name, value] : choice.problem)
    if (name == parameter && value.is_integer()) return *value.integer();
  return 0;
}

std::string define_options(const Choice& choice) {
  std::vector<std::string> parts;
  for (const auto& [name, value] : choice.defines) parts.push_back("-D" + name + "=" + value);
  parts.insert(parts.end(), choice.options.begin(), choice.options.end());
  return join(parts, " ");
}

/// The prefixes of the choices' macros: program, device and size. Choices that would share one get the rest
/// of their problem behind it, then their silicon, then a number: of two macros of one name the compiler
/// would take the second for both.
std::vector<std::string> macro_prefixes(const std::vector<Choice>& choices, std::string_view program,
                                        std::string_view parameter) {
  std::vector<std::string> prefixes;
  for (const Choice& choice : choices) {
    prefixes.push_back(fmt::format("{}_{}", program, identifier(choice.device, true)));
    if (!parameter.empty())
      prefixes.back() += fmt::format("_{}{}", identifier(parameter, true), size_of(choice, parameter));
  }
  const auto extend_shared = [&](auto suffix) {
    std::map<std::string, int> owners;
    for (const std::string& prefix : prefixes) ++owners[prefix];
    std::map<std::string, int> number;
    for (std::size_t i = 0; i < choices.size(); ++i)
      if (const std::string shared = prefixes[i]; owners[shared] > 1)
        prefixes[i] += suffix(choices[i], ++number[shared]);
  };
  extend_shared([&](const Choice& choice, int) {
    std::string rest;
    for (const auto& [name, value] : choice.problem)
      if (name != parameter) rest += "_" + identifier(name + value.text(), true);
    return rest;
  });
  extend_shared([](const Choice& choice, int) { return "_" + identifier("S" + choice.silicon, true); });
  extend_shared([](const Choice&, int number) { return number == 1 ? "" : fmt::format("_{}", number); });
  return prefixes;
}

std::string macros(const Choice& choice, std::string_view prefix) {
  std::string out =
      fmt::format("/* {} ({}), {}: {}, {:+.2f}% over base, raced {} */\n", comment(choice.device),
                  comment(choice.silicon), comment(values_text(choice.problem, ", ")),
                  comment(choice.variant), 100 * choice.gain, comment(choice.date));
  for (const auto& [name, value] : choice.knobs)
    out += fmt::format("#define {}_{} {}\n", prefix, identifier(name, true),
                       value.is_word() ? identifier(value.text(), false) : define_value(value));
  return out + "\n";
}

constexpr std::string_view kChooser = R"(
/* The row for a card and size: the card's own rows by silicon hash or label (else all rows), of them the nearest size by
   ratio. Never null. */
static inline const struct {0}_choice* {0}_choose(const char* card, long long size) {{
  const struct {0}_choice* best = {0}_choices;
  double best_distance = -1;
  int own = 0, i;
  for (i = 0; i < {1}; ++i)
    if (card && (!strcmp({0}_choices[i].card, card) || !strcmp({0}_choices[i].silicon, card))) own = 1;
  for (i = 0; i < {1}; ++i) {{
    const struct {0}_choice* row = &{0}_choices[i];
    double a = (double)(row->size > 0 ? row->size : 1), b = (double)(size > 0 ? size : 1);
    double distance = a > b ? a / b : b / a;
    if (own && strcmp(row->card, card) && strcmp(row->silicon, card)) continue;
    if (best_distance < 0 || distance < best_distance) {{
      best = row;
      best_distance = distance;
    }}
  }}
  return best;
}}
)";

}  // namespace

Result<std::vector<Choice>> choices_from_race(const Json& document, std::string_view name) {
  std::vector<Choice> choices;
  if (document.is_object() && document.contains("races")) {
    if (!document["races"].is_array()) return fail(Code::invalid, "{}.races is no list", name);
    std::size_t i = 0;
    for (const Json& race : document["races"]) {
      FURLONG_TRY(auto choice, choice_from_one(race, fmt::format("{}.races[{}]", name, i++)));
      choices.push_back(std::move(choice));
    }
    return choices;
  }
  FURLONG_TRY(auto choice, choice_from_one(document, name));
  choices.push_back(std::move(choice));
  return choices;
}

Result<std::string> choices_header(std::vector<Choice> choices) {
  FURLONG_CHECK(prepare(choices));
  const std::string program = identifier(choices[0].program, false);
  const std::string upper = identifier(choices[0].program, true);
  const std::string parameter = size_parameter(choices);
  std::string out = fmt::format(
      "/* Variants of '{0}' that won races, written by furlong export. C and C++. */\n#ifndef "
      "FURLONG_CHOICES_{1}_H\n"
      "#define FURLONG_CHOICES_{1}_H\n\n#include <string.h>\n\n",
      comment(choices[0].program), upper);
  const std::vector<std::string> prefixes = macro_prefixes(choices, upper, parameter);
  for (std::size_t i = 0; i < choices.size(); ++i) out += macros(choices[i], prefixes[i]);
  out += fmt::format(
      "struct {0}_choice {{\n  const char* card;     /* label */\n  const char* silicon;  /* hash */\n  long "
      "long size;       /* {1} */\n"
      "  const char* problem;\n  const char* variant;\n  const char* defines;  /* macros and options for the "
      "compiler */\n}};\n\n"
      "static const struct {0}_choice {0}_choices[] = {{\n",
      program, parameter.empty() ? "no size parameter" : comment(parameter));
  for (const Choice& choice : choices)
    out += fmt::format("  {{{}, {}, {}, {}, {}, {}}},\n", literal(choice.device), literal(choice.silicon),
                       size_of(choice, parameter), literal(values_text(choice.problem, ",")),
                       literal(choice.variant), literal(define_options(choice)));
  out += "};\n";
  out += fmt::format(fmt::runtime(kChooser), program, choices.size());
  return out + "\n#endif\n";
}

Json choices_json(const std::vector<Choice>& choices) {
  const auto values = [](const std::vector<std::pair<std::string, lattice::Value>>& pairs) {
    Json object = Json::object();
    for (const auto& [name, value] : pairs) {
      if (value.is_bool())
        object[name] = *value.boolean();
      else if (value.is_integer())
        object[name] = *value.integer();
      else if (value.is_float())
        object[name] = *value.floating();
      else
        object[name] = *value.word();
    }
    return object;
  };
  Json rows = Json::array();
  for (const Choice& choice : choices)
    rows.push_back(Json{{"program", choice.program},
                        {"language", choice.language},
                        {"device", choice.device},
                        {"silicon", choice.silicon},
                        {"problem", values(choice.problem)},
                        {"variant", choice.variant},
                        {"knobs", values(choice.knobs)},
                        {"defines", define_options(choice)},
                        {"gain", choice.gain},
                        {"ts", choice.date}});
  return Json{{"schema", 1}, {"choices", rows}};
}

}  // namespace furlong::interop
