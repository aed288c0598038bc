// [program], [source.*], [problem], [let].
#include <algorithm>

#include "furlong/base/text.h"
#include "furlong/program/emitter.h"
#include "furlong/program/internal/draft.h"
#include "furlong/program/internal/headers.h"

namespace furlong::program::internal {
namespace {

constexpr std::size_t kLargestSource = 16u << 20;

Status read_options(const Draft& draft, const TomlNode& table, Edition& edition) {
  const Reader& in = draft.reader;
  if (const TomlNode* node = table.find("options")) {
    FURLONG_TRY(edition.options, in.words(*node, "options"));
  }
  if (const TomlNode* node = table.find("include")) {
    FURLONG_TRY(const auto folders, in.words(*node, "include"));
    for (const std::string& folder : folders) edition.include_folders.push_back(draft.resolve(folder));
  }
  const TomlNode* node = table.find("defines");
  if (node == nullptr) return {};
  FURLONG_CHECK(in.expect_table(*node, "defines"));
  for (const auto& [name, member] : *node->table()) {
    FURLONG_CHECK(in.check_identifier(place_of_key(member), name, "a define's name"));
    FURLONG_TRY(const lattice::Value value, in.value(member, fmt::format("the define {}", name), true));
    // As a define, true is 1: `#if NAME` then works in C as in C++.
    edition.defines.emplace_back(name, value.is_bool() ? (value.truthy() ? "1" : "0") : value.text());
  }
  return {};
}

Status read_source_file(const Draft& draft, const TomlNode& node, Edition& edition) {
  FURLONG_TRY(const std::string path, draft.reader.word(node, "the source"));
  edition.source_file = draft.resolve(path);
  edition.source_name = path;
  auto text = draft.files.read(edition.source_file, kLargestSource);
  if (!text) return draft.reader.error(node, "the source cannot be read: {}", text.error().text());
  edition.source = *std::move(text);
  // C's rule for quoted includes: first the folder of the file itself. A program made in memory has none.
  const std::filesystem::path own = edition.source_file.parent_path();
  if (!own.empty()) edition.include_folders.insert(edition.include_folders.begin(), own);
  return {};
}

Status finish_edition(Draft& draft, Edition edition, const TomlNode& node) {
  if (edition.source.empty()) return draft.reader.error(node, "the {} source is empty", edition.language);
  auto headers =
      read_headers(draft.files, edition.source, edition.source_file.parent_path(), edition.include_folders);
  if (!headers) return draft.reader.error(node, "{}", headers.error().text());
  edition.headers = *std::move(headers);
  draft.program.editions.push_back(std::move(edition));
  return {};
}

// An edition whose texts and launches an emitter makes; what belongs to a source is refused.
Status read_emitter(Draft& draft, const TomlNode& node, const TomlNode& table, std::string_view where,
                    Edition edition) {
  const Reader& in = draft.reader;
  for (const std::string_view key : {"file", "text", "source", "entry", "include"})
    if (const TomlNode* other = table.find(key))
      return in.error(place_of_key(*other),
                      "{} has an emitter, which makes the text and its launches: '{}' is for a source", where,
                      key);
  FURLONG_TRY(const std::string name, in.word(node, "the emitter"));
  auto found = find_emitter(name, draft.emitters);
  if (!found) return in.error(node, "{}", found.error().text());
  edition.emitter = *std::move(found);
  if (edition.emitter->language() != edition.language)
    return in.error(node, "emitter '{}' makes {} texts, and the language here is {}", name,
                    edition.emitter->language(), edition.language);
  edition.source_name = fmt::format("{}.{}", name, edition.language);
  draft.emitter_nodes[edition.language] = &node;
  draft.program.editions.push_back(std::move(edition));
  return {};
}

Status read_one_source(Draft& draft, const std::string& language, const TomlNode& table) {
  const Reader& in = draft.reader;
  const std::string where = fmt::format("[source.{}]", language);
  FURLONG_CHECK(
      in.check_keys(table, where, {"file", "text", "emitter", "entry", "options", "defines", "include"}));
  Edition edition;
  edition.language = language;
  FURLONG_CHECK(read_options(draft, table, edition));
  if (const TomlNode* emitter = table.find("emitter"))
    return read_emitter(draft, *emitter, table, where, std::move(edition));
  const TomlNode* file = table.find("file");
  const TomlNode* text = table.find("text");
  if ((file == nullptr) == (text == nullptr))
    return in.error(table, "{} needs one of 'file', 'text' and 'emitter'", where);
  if (file != nullptr) {
    FURLONG_CHECK(read_source_file(draft, *file, edition));
  } else {
    FURLONG_TRY(edition.source, in.word(*text, "text"));
    edition.source_name = fmt::format("{}.{}", draft.program.name, language);
  }
  if (const TomlNode* entry = table.find("entry")) {
    edition.kernels.emplace_back();
    FURLONG_TRY(edition.kernels.back().entry, in.word(*entry, "entry"));
  }
  return finish_edition(draft, std::move(edition), table);
}

Status read_several_sources(Draft& draft, const TomlNode& sources, const TomlNode& program) {
  const Reader& in = draft.reader;
  FURLONG_CHECK(in.expect_table(sources, "[source]"));
  for (const std::string_view key :
       {"language", "source", "emitter", "entry", "options", "defines", "include"})
    if (const TomlNode* node = program.find(key))
      return in.error(place_of_key(*node),
                      "[program] has '{}' and there are [source.*] tables: put it into them", key);
  for (const auto& [language, table] : *sources.table()) {
    const auto& words = language_words();
    if (std::find(words.begin(), words.end(), language) == words.end())
      return in.error(place_of_key(table), "[source.{}]: '{}' is no language{}", language, language,
                      Reader::choices(language, words));
    FURLONG_CHECK(read_one_source(draft, language, table));
  }
  if (draft.program.editions.empty())
    return in.error(sources, "[source] has no table such as [source.opencl]");
  return {};
}

Status read_single_source(Draft& draft, const TomlNode& program) {
  const Reader& in = draft.reader;
  Edition edition;
  FURLONG_TRY(const TomlNode* language, in.required(program, "[program] without [source.*]", "language"));
  FURLONG_TRY(const std::size_t word, in.one_of(*language, "the language", language_words()));
  edition.language = language_words()[word];
  FURLONG_CHECK(read_options(draft, program, edition));
  if (const TomlNode* emitter = program.find("emitter"))
    return read_emitter(draft, *emitter, program, "[program]", std::move(edition));
  FURLONG_TRY(const TomlNode* source, in.required(program, "[program] without [source.*]", "source"));
  FURLONG_CHECK(read_source_file(draft, *source, edition));
  if (const TomlNode* entry = program.find("entry")) {
    edition.kernels.emplace_back();
    FURLONG_TRY(edition.kernels.back().entry, in.word(*entry, "entry"));
  }
  return finish_edition(draft, std::move(edition), program);
}

Status check_name_text(const Reader& in, const TomlNode& node, std::string_view name) {
  const bool good = name.size() <= 100 && std::all_of(name.begin(), name.end(), [](char c) {
                      return c == '_' || c == '-' || c == '.' || (c >= '0' && c <= '9') ||
                             (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
                    });
  if (good) return {};
  return in.error(
      node, "the program's name '{}' must have only letters, digits, '_', '-' and '.' (at most 100)", name);
}

}  // namespace

Status read_sources(Draft& draft) {
  const Reader& in = draft.reader;
  FURLONG_TRY(const TomlNode* table, in.required(draft.root, "a program file", "program"));
  FURLONG_CHECK(in.check_keys(
      *table, "[program]",
      {"name", "summary", "language", "source", "emitter", "entry", "options", "defines", "include"}));
  FURLONG_TRY(const TomlNode* name, in.required(*table, "[program]", "name"));
  FURLONG_TRY(draft.program.name, in.word(*name, "the program's name"));
  FURLONG_CHECK(check_name_text(in, *name, draft.program.name));
  if (const TomlNode* summary = table->find("summary")) {
    FURLONG_TRY(draft.program.summary, in.string(*summary, "summary"));
  }
  if (const TomlNode* sources = draft.root.find("source"))
    return read_several_sources(draft, *sources, *table);
  return read_single_source(draft, *table);
}

Status read_problem(Draft& draft) {
  const Reader& in = draft.reader;
  if (const TomlNode* table = draft.root.find("problem")) {
    FURLONG_CHECK(in.expect_table(*table, "[problem]"));
    for (const auto& [name, node] : *table->table()) {
      FURLONG_CHECK(in.check_identifier(place_of_key(node), name, "the problem parameter"));
      FURLONG_TRY(lattice::Value value,
                  in.value(node, fmt::format("the problem parameter '{}'", name), true));
      draft.program.problem.emplace_back(name, std::move(value));
    }
  }
  const TomlNode* table = draft.root.find("let");
  if (table == nullptr) return {};
  FURLONG_CHECK(in.expect_table(*table, "[let]"));
  for (const auto& [name, node] : *table->table()) {
    FURLONG_CHECK(in.check_identifier(place_of_key(node), name, "the name in [let]"));
    const auto& problem = draft.program.problem;
    if (std::any_of(problem.begin(), problem.end(), [&](const auto& p) { return p.first == name; }))
      return in.error(place_of_key(node), "[let] '{}' is a problem parameter already", name);
    FURLONG_TRY(PlacedExpression expression, in.expression(node, fmt::format("[let] '{}'", name)));
    draft.program.lets.emplace_back(name, expression.expression);
    draft.lets.push_back(std::move(expression));
  }
  return {};
}

Status check_emitters(const Draft& draft) {
  std::vector<std::string> known;
  for (const auto& [name, value] : draft.program.problem) known.push_back(name);
  for (const auto& [name, expression] : draft.program.lets) known.push_back(name);
  for (const Edition& edition : draft.program.editions) {
    if (edition.emitter == nullptr) continue;
    for (const std::string& name : edition.emitter->problem())
      if (std::find(known.begin(), known.end(), name) == known.end()) {
        const std::string guess = did_you_mean(name, known);
        return draft.reader.error(
            *draft.emitter_nodes.at(edition.language),
            "emitter '{}' reads '{}': give it in [problem] or [let]{}", edition.emitter->name(), name,
            guess.empty() && !known.empty() ? fmt::format(" (they have {})", join(known, ", ")) : guess);
      }
  }
  return {};
}

}  // namespace furlong::program::internal
