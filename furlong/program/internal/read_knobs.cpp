// [[knob]], [[constraint]], [[strictly_better]], catalogue.
#include <algorithm>

#include "furlong/base/text.h"
#include "furlong/program/internal/draft.h"

namespace furlong::program::internal {
namespace {

std::string knob_label(const KnobDraft& k) { return fmt::format("knob '{}'", k.knob.name); }

std::optional<std::size_t> value_index(const lattice::Knob& knob, const lattice::Value& value) {
  const auto found = std::find(knob.values.begin(), knob.values.end(), value);
  if (found == knob.values.end()) return std::nullopt;
  return static_cast<std::size_t>(found - knob.values.begin());
}

std::string value_list(const lattice::Knob& knob) {
  std::vector<std::string> texts;
  for (const auto& value : knob.values) texts.push_back(value.text());
  return join(texts, ", ");
}

Result<std::size_t> known_value(const Reader& in, const TomlNode& node, const KnobDraft& k,
                                std::string_view what) {
  FURLONG_TRY(const lattice::Value value, in.value(node, what, false));
  const auto index = value_index(k.knob, value);
  if (!index)
    return in.error(node, "{}: {} is none of its values ({})", what, value.text(), value_list(k.knob));
  return *index;
}

Status read_values(const Reader& in, const TomlNode& table, KnobDraft& k) {
  const std::string what = fmt::format("values of {}", knob_label(k));
  FURLONG_TRY(const TomlNode* node, in.required(table, knob_label(k), "values"));
  FURLONG_TRY(const TomlNode::Array* items, in.array(*node, what));
  for (const TomlNode& item : *items) {
    FURLONG_TRY(lattice::Value value, in.value(item, fmt::format("each of the {}", what), false));
    if (value_index(k.knob, value)) return in.error(item, "{}: {} stands twice", what, value.text());
    if (!k.knob.values.empty() && k.knob.values[0].is_word() != value.is_word())
      return in.error(item, "{}: words and numbers cannot be mixed", what);
    k.knob.values.push_back(std::move(value));
  }
  if (k.knob.values.size() < 2)
    return in.error(*node, "{}: a knob has at least two; one that has no choice belongs into the source",
                    what);
  const TomlNode* chosen = table.find("default");
  if (chosen == nullptr) return {};
  FURLONG_TRY(k.knob.default_index, known_value(in, *chosen, k, fmt::format("default of {}", knob_label(k))));
  return {};
}

// How a value shows in a variant's name when the file does not say: numbers after the initials of the knob's
// name (unroll 4: u4, block_x 32: bx32), words as they are, booleans as the knob's name.
std::string derived_tag(const lattice::Knob& knob, const lattice::Value& value) {
  if (const auto* word = value.word()) return *word;
  if (const auto* flag = value.boolean()) return *flag ? knob.name : "no_" + knob.name;
  std::string tag;
  for (const std::string& part : split(knob.name, '_'))
    if (!part.empty()) tag += part[0];
  return tag + replace_all(value.text(), "-", "m");
}

bool is_tag(std::string_view tag) {
  return !tag.empty() && tag != "base" && tag != "all" && tag != "catalogue" &&
         std::all_of(tag.begin(), tag.end(), [](char c) {
           return c == '_' || c == '.' || c == '+' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
                  (c >= 'A' && c <= 'Z');
         });
}

Status read_tags(const Reader& in, const TomlNode& table, KnobDraft& k) {
  const std::string what = fmt::format("tags of {}", knob_label(k));
  const TomlNode* node = table.find("tags");
  if (node != nullptr) {
    FURLONG_TRY(const TomlNode::Array* items, in.array(*node, what));
    if (items->size() != k.knob.values.size())
      return in.error(*node, "{}: {} for {} values", what, items->size(), k.knob.values.size());
    for (const TomlNode& item : *items) {
      FURLONG_TRY(k.knob.tags.emplace_back(), in.string(item, fmt::format("each of the {}", what)));
    }
    if (!k.knob.tags[k.knob.default_index].empty())
      return in.error((*items)[k.knob.default_index], "{}: the default's tag must be \"\", not '{}'", what,
                      k.knob.tags[k.knob.default_index]);
  } else {
    for (const auto& value : k.knob.values) k.knob.tags.push_back(derived_tag(k.knob, value));
    k.knob.tags[k.knob.default_index].clear();
  }
  for (std::size_t i = 0; i < k.knob.tags.size(); ++i) {
    if (i == k.knob.default_index || is_tag(k.knob.tags[i])) continue;
    return in.error(
        node != nullptr ? *node : table,
        "{}: '{}' for {} must be letters, digits, '_', '.' and '+', and not a word such as 'base'{}", what,
        k.knob.tags[i], k.knob.values[i].text(), node != nullptr ? "" : "; give tags = [...]");
  }
  return {};
}

Status read_applies(const Draft& draft, const TomlNode& table, KnobDraft& k) {
  const Reader& in = draft.reader;
  static const std::vector<std::string> words = {"define", "option", "launch", "rewrite", "emit"};
  const TomlNode* node = table.find("applies");
  if (node == nullptr) {
    k.knob.applies = {lattice::Applies::define};
    return {};
  }
  const auto add = [&](const TomlNode& item) -> Status {
    FURLONG_TRY(const std::size_t word, in.one_of(item, fmt::format("applies of {}", knob_label(k)), words));
    const auto applies = static_cast<lattice::Applies>(word);
    if (applies == lattice::Applies::emit && draft.emitter_nodes.empty())
      return in.error(item,
                      "{}: 'emit' is for programs with an emitter; a source takes its knobs by "
                      "define, option, launch or rewrite",
                      knob_label(k));
    if (std::find(k.knob.applies.begin(), k.knob.applies.end(), applies) != k.knob.applies.end())
      return in.error(item, "applies of {}: '{}' stands twice", knob_label(k), words[word]);
    k.knob.applies.push_back(applies);
    return {};
  };
  if (!node->is_array()) return add(*node);
  for (const TomlNode& item : *node->array()) FURLONG_CHECK(add(item));
  if (k.knob.applies.empty()) return in.error(*node, "applies of {} is empty", knob_label(k));
  return {};
}

bool applies(const KnobDraft& k, lattice::Applies how) {
  return std::find(k.knob.applies.begin(), k.knob.applies.end(), how) != k.knob.applies.end();
}

// A key that only works with one way of applying, and the other way round.
Result<const TomlNode*> paired_key(const Reader& in, const TomlNode& table, const KnobDraft& k,
                                   std::string_view key, lattice::Applies how, bool needed) {
  const TomlNode* node = table.find(key);
  if (node != nullptr && !applies(k, how))
    return in.error(place_of_key(*node), "{} has '{}' but does not apply as {}: add it to applies",
                    knob_label(k), key, lattice::applies_name(how));
  if (node == nullptr && needed && applies(k, how))
    return in.error(table, "{} applies as {} and needs the key '{}'", knob_label(k),
                    lattice::applies_name(how), key);
  return node;
}

Status read_option(const Reader& in, const TomlNode& node, KnobDraft& k) {
  const std::string what = fmt::format("option of {}", knob_label(k));
  if (const auto* items = node.array()) {
    if (items->size() != k.knob.values.size())
      return in.error(node, "{}: {} for {} values", what, items->size(), k.knob.values.size());
    for (std::size_t i = 0; i < items->size(); ++i) {
      FURLONG_TRY(std::string text, in.string((*items)[i], fmt::format("each {}", what)));
      if (!text.empty()) k.knob.options[i] = std::move(text);
    }
    return {};
  }
  FURLONG_TRY(const std::string format, in.word(node, what));
  const bool holds_value = format.find("{}") != std::string::npos;
  if (!holds_value && !k.knob.values[0].is_bool())
    return in.error(node, "{}: '{}' has no {{}} for the value; or give one string a value in an array", what,
                    format);
  for (std::size_t i = 0; i < k.knob.values.size(); ++i) {
    if (holds_value) k.knob.options[i] = replace_all(format, "{}", k.knob.values[i].text());
    if (!holds_value && k.knob.values[i].truthy()) k.knob.options[i] = format;
  }
  return {};
}

Status read_rewrite(const Reader& in, const TomlNode& item, KnobDraft& k) {
  const std::string where = fmt::format("a rewrite of {}", knob_label(k));
  FURLONG_CHECK(in.check_keys(item, where, {"value", "anchor", "replace", "count", "languages"}));
  FURLONG_TRY(const TomlNode* value, in.required(item, where, "value"));
  FURLONG_TRY(const std::size_t index, known_value(in, *value, k, where));
  if (index == k.knob.default_index)
    return in.error(*value, "{}: {} is the default, which is the source as it stands", where,
                    k.knob.values[index].text());
  Rewrite rewrite;
  FURLONG_TRY(const TomlNode* anchor, in.required(item, where, "anchor"));
  FURLONG_TRY(rewrite.anchor, in.word(*anchor, fmt::format("anchor of {}", where)));
  FURLONG_TRY(const TomlNode* replace, in.required(item, where, "replace"));
  FURLONG_TRY(rewrite.replacement, in.string(*replace, fmt::format("replace of {}", where)));
  if (const TomlNode* count = item.find("count")) {
    FURLONG_TRY(const std::int64_t expected, in.integer(*count, fmt::format("count of {}", where)));
    if (expected < 1 || expected > 10000) return in.error(*count, "count of {} must be 1 to 10000", where);
    rewrite.expected = static_cast<int>(expected);
  }
  std::set<std::string> languages;
  if (const TomlNode* node = item.find("languages")) {
    FURLONG_TRY(const auto words, in.words(*node, fmt::format("languages of {}", where)));
    for (const std::string& word : words) {
      if (std::find(language_words().begin(), language_words().end(), word) == language_words().end())
        return in.error(*node, "languages of {}: '{}' is no language{}", where, word,
                        Reader::choices(word, language_words()));
      languages.insert(word);
    }
  }
  k.rewrites[index].emplace_back(std::move(rewrite), std::move(languages));
  return {};
}

Status read_ways(const Draft& draft, const TomlNode& table, KnobDraft& k) {
  const Reader& in = draft.reader;
  FURLONG_CHECK(read_applies(draft, table, k));
  FURLONG_TRY(const TomlNode* define, paired_key(in, table, k, "define", lattice::Applies::define, false));
  if (applies(k, lattice::Applies::define)) k.define_name = k.knob.name;
  if (define != nullptr) {
    FURLONG_TRY(k.define_name, in.identifier(*define, fmt::format("define of {}", knob_label(k))));
  }
  FURLONG_TRY(const TomlNode* option, paired_key(in, table, k, "option", lattice::Applies::option, true));
  if (option != nullptr) FURLONG_CHECK(read_option(in, *option, k));
  FURLONG_TRY(const TomlNode* rewrites,
              paired_key(in, table, k, "rewrites", lattice::Applies::rewrite, true));
  if (rewrites == nullptr) return {};
  FURLONG_TRY(const TomlNode::Array* items,
              in.array(*rewrites, fmt::format("rewrites of {}", knob_label(k))));
  for (const TomlNode& item : *items) FURLONG_CHECK(read_rewrite(in, item, k));
  for (std::size_t i = 0; i < k.knob.values.size(); ++i)
    if (i != k.knob.default_index && !k.rewrites.contains(i))
      return in.error(*rewrites, "{} has no rewrite for the value {}", knob_label(k),
                      k.knob.values[i].text());
  return {};
}

Status read_index_set(const Reader& in, const TomlNode& table, const KnobDraft& k, std::string_view key,
                      std::set<std::size_t>& into) {
  const TomlNode* node = table.find(key);
  if (node == nullptr) return {};
  const std::string what = fmt::format("{} of {}", key, knob_label(k));
  FURLONG_TRY(const TomlNode::Array* items, in.array(*node, what));
  for (const TomlNode& item : *items) {
    FURLONG_TRY(const std::size_t index, known_value(in, item, k, what));
    if (index == k.knob.default_index)
      return in.error(item, "{}: the default cannot be {}; base must be right for everybody", what, key);
    into.insert(index);
  }
  return {};
}

Status read_sentences(const Draft& draft, const TomlNode& table, KnobDraft& k) {
  const Reader& in = draft.reader;
  for (const auto& [key, into] : {std::pair<std::string_view, std::string*>{"wins", &k.knob.wins},
                                  {"loses", &k.knob.loses},
                                  {"evidence", &k.knob.evidence}}) {
    if (const TomlNode* node = table.find(key)) {
      FURLONG_TRY(*into, in.string(*node, fmt::format("{} of {}", key, knob_label(k))));
    }
  }
  if (const TomlNode* node = table.find("requires")) {
    FURLONG_TRY(k.requirement, in.expression(*node, fmt::format("requires of {}", knob_label(k))));
  }
  if (const TomlNode* node = table.find("languages")) {
    FURLONG_TRY(k.knob.languages, in.words(*node, fmt::format("languages of {}", knob_label(k))));
    for (const std::string& word : k.knob.languages)
      if (draft.program.edition(word) == nullptr)
        return in.error(*node, "languages of {}: the program has no source in '{}'", knob_label(k), word);
  }
  if (const TomlNode* node = table.find("coupled")) {
    FURLONG_TRY(k.knob.coupled, in.words(*node, fmt::format("coupled of {}", knob_label(k))));
  }
  FURLONG_CHECK(read_index_set(in, table, k, "lossy", k.knob.lossy));
  return read_index_set(in, table, k, "restricted", k.knob.restricted);
}

Status check_new_name(const Draft& draft, const TomlNode& node, const std::string& name) {
  const auto same = [&](const auto& named) { return named.first == name; };
  const Program& program = draft.program;
  std::string_view taken;
  if (std::any_of(program.problem.begin(), program.problem.end(), same)) taken = "a problem parameter";
  if (std::any_of(program.lets.begin(), program.lets.end(), same)) taken = "a name in [let]";
  for (const KnobDraft& k : draft.knobs)
    if (k.knob.name == name) taken = "a knob";
  if (taken.empty()) return {};
  return draft.reader.error(node, "'{}' is {} already", name, taken);
}

Status read_knob(Draft& draft, const TomlNode& table) {
  const Reader& in = draft.reader;
  FURLONG_CHECK(in.check_keys(
      table, "this [[knob]]",
      {"name", "values", "default", "tags", "applies", "define", "option", "rewrites", "wins", "loses",
       "claims", "evidence", "requires", "languages", "lossy", "restricted", "coupled"}));
  KnobDraft k;
  k.node = &table;
  k.knob.line = table.line;
  FURLONG_TRY(const TomlNode* name, in.required(table, "a [[knob]]", "name"));
  FURLONG_TRY(k.knob.name, in.identifier(*name, "the knob's name"));
  FURLONG_CHECK(check_new_name(draft, *name, k.knob.name));
  FURLONG_CHECK(read_values(in, table, k));
  FURLONG_CHECK(read_tags(in, table, k));
  FURLONG_CHECK(read_ways(draft, table, k));
  FURLONG_CHECK(read_sentences(draft, table, k));
  FURLONG_CHECK(read_claims(draft, table, k.knob));
  draft.knobs.push_back(std::move(k));
  return {};
}

// Two values with one tag would give two variants one name.
Status check_tags_differ(const Draft& draft) {
  std::map<std::string, std::string> owner;
  for (const KnobDraft& k : draft.knobs)
    for (const std::string& tag : k.knob.tags) {
      if (tag.empty()) continue;
      const auto [at, fresh] = owner.emplace(tag, k.knob.name);
      if (!fresh)
        return draft.reader.error(
            *k.node, "the tag '{}' is used by {}: give one of them other tags = [...]", tag,
            at->second == k.knob.name ? fmt::format("two values of knob '{}'", k.knob.name)
                                      : fmt::format("knob '{}' and knob '{}'", at->second, k.knob.name));
    }
  return {};
}

}  // namespace

Status read_knobs(Draft& draft) {
  const TomlNode* node = draft.root.find("knob");
  if (node == nullptr) return {};
  const Reader& in = draft.reader;
  if (!node->is_array()) return in.error(*node, "'knob' must be written [[knob]], once for each knob");
  for (const TomlNode& table : *node->array()) FURLONG_CHECK(read_knob(draft, table));
  FURLONG_CHECK(check_tags_differ(draft));
  for (const KnobDraft& k : draft.knobs)
    for (const std::string& other : k.knob.coupled) {
      std::vector<std::string> names;
      for (const KnobDraft& each : draft.knobs) names.push_back(each.knob.name);
      if (std::find(names.begin(), names.end(), other) == names.end() || other == k.knob.name)
        return in.error(*k.node, "coupled of {}: '{}' is no other knob{}", knob_label(k), other,
                        did_you_mean(other, names));
    }
  return {};
}

}  // namespace furlong::program::internal
