// [[constraint]], [[strictly_better]], catalogue; what goes into each language's lattice.
#include <algorithm>

#include "furlong/program/emitter.h"
#include "furlong/program/internal/draft.h"

namespace furlong::program::internal {
namespace {

bool holds_for(const std::vector<std::string>& languages, const std::string& language) {
  return languages.empty() || std::find(languages.begin(), languages.end(), language) != languages.end();
}

bool acts(const KnobDraft& k, lattice::Applies how) {
  return std::find(k.knob.applies.begin(), k.knob.applies.end(), how) != k.knob.applies.end();
}

// A knob that the edition cannot take up would be raced without any effect; one that an emitter reads without
// being told so would have an effect that its row does not state.
Status check_emit(const Draft& draft, const KnobDraft& k, const Edition& edition) {
  const Reader& in = draft.reader;
  const bool emits = acts(k, lattice::Applies::emit);
  if (edition.emitter == nullptr) {
    if (!emits || k.knob.applies.size() > 1) return {};
    return in.error(*k.node,
                    "knob '{}' only applies as emit, but language {} has a source and no emitter: say in "
                    "'languages' where it exists",
                    k.knob.name, edition.language);
  }
  const auto reads = edition.emitter->knobs();
  const std::vector<std::string> names(reads.begin(), reads.end());
  const bool known = std::find(names.begin(), names.end(), k.knob.name) != names.end();
  if (emits && !known)
    return in.error(*k.node, "knob '{}' applies as emit, but emitter '{}' reads no such knob{}", k.knob.name,
                    edition.emitter->name(), Reader::choices(k.knob.name, names));
  if (!emits && known)
    return in.error(*k.node, "emitter '{}' reads knob '{}': add \"emit\" to its applies",
                    edition.emitter->name(), k.knob.name);
  if (acts(k, lattice::Applies::rewrite))
    return in.error(*k.node,
                    "knob '{}' applies as rewrite, but emitter '{}' makes the text in language {}, which no "
                    "rewrite changes",
                    k.knob.name, edition.emitter->name(), edition.language);
  return {};
}

Status add_rewrites(const Draft& draft, const KnobDraft& k, std::size_t knob_index, Edition& edition) {
  for (const auto& [value, list] : k.rewrites) {
    std::vector<Rewrite> mine;
    for (const auto& [rewrite, languages] : list)
      if (languages.empty() || languages.contains(edition.language)) mine.push_back(rewrite);
    if (mine.empty())
      return draft.reader.error(*k.node, "knob '{}' has no rewrite for the value {} in language {}",
                                k.knob.name, k.knob.values[value].text(), edition.language);
    edition.rewrites[{knob_index, value}] = std::move(mine);
  }
  return {};
}

Status add_define(const Draft& draft, const KnobDraft& k, std::size_t knob_index, Edition& edition,
                  std::set<std::string>& defined) {
  if (k.define_name.empty()) return {};
  if (!defined.insert(k.define_name).second)
    return draft.reader.error(*k.node,
                              "knob '{}' defines {}, which something else in language {} defines too",
                              k.knob.name, k.define_name, edition.language);
  if (k.define_name != k.knob.name) edition.define_names[knob_index] = k.define_name;
  return {};
}

Status add_knobs(Draft& draft, Edition& edition) {
  std::set<std::string> defined;
  for (const auto& [name, value] : edition.defines) defined.insert(name);
  for (const KnobDraft& k : draft.knobs) {
    if (!holds_for(k.knob.languages, edition.language)) continue;
    const std::size_t index = edition.lattice.knobs.size();
    edition.lattice.knobs.push_back(k.knob);
    std::erase_if(edition.lattice.knobs.back().coupled,
                  [&](const std::string& other) { return !draft.knob_exists(other, edition.language); });
    FURLONG_CHECK(check_emit(draft, k, edition));
    FURLONG_CHECK(add_define(draft, k, index, edition, defined));
    FURLONG_CHECK(add_rewrites(draft, k, index, edition));
    if (!k.requirement) continue;
    FURLONG_CHECK(check_names(draft, *k.requirement, Uses::knobs_of_edition, edition.language));
    FURLONG_TRY(const lattice::Expression bare, without_lets(draft, *k.requirement));
    edition.lattice.knobs.back().requires_text = bare.text();
  }
  return {};
}

Status read_constraint(Draft& draft, const TomlNode& table) {
  const Reader& in = draft.reader;
  FURLONG_CHECK(in.check_keys(table, "this [[constraint]]", {"expression", "reason", "languages"}));
  FURLONG_TRY(const TomlNode* node, in.required(table, "a [[constraint]]", "expression"));
  FURLONG_TRY(const PlacedExpression placed, in.expression(*node, "constraint"));
  lattice::Constraint constraint;
  constraint.line = table.line;
  if (const TomlNode* reason = table.find("reason")) {
    FURLONG_TRY(constraint.reason, in.string(*reason, "reason of a constraint"));
  }
  std::vector<std::string> languages;
  if (const TomlNode* words = table.find("languages")) {
    FURLONG_TRY(languages, in.words(*words, "languages of a constraint"));
    for (const std::string& word : languages)
      if (draft.program.edition(word) == nullptr)
        return in.error(*words, "languages of a constraint: the program has no source in '{}'", word);
  }
  FURLONG_TRY(constraint.expression, without_lets(draft, placed));
  for (Edition& edition : draft.program.editions) {
    if (!holds_for(languages, edition.language)) continue;
    FURLONG_CHECK(check_names(draft, placed, Uses::knobs_of_edition, edition.language));
    edition.lattice.constraints.push_back(constraint);
  }
  return {};
}

Status read_strictly_better(Draft& draft, const TomlNode& table) {
  const Reader& in = draft.reader;
  FURLONG_CHECK(in.check_keys(table, "this [[strictly_better]]", {"name", "reason"}));
  lattice::StrictlyBetter entry;
  FURLONG_TRY(const TomlNode* name, in.required(table, "a [[strictly_better]]", "name"));
  FURLONG_TRY(entry.name, in.word(*name, "name of a [[strictly_better]]"));
  FURLONG_TRY(const TomlNode* reason, in.required(table, "a [[strictly_better]]", "reason"));
  FURLONG_TRY(entry.reason, in.word(*reason, fmt::format("reason of '{}'", entry.name)));
  for (Edition& edition : draft.program.editions) edition.lattice.strictly_better.push_back(entry);
  return {};
}

template <class Read>
Status each_table(Draft& draft, std::string_view key, Read read) {
  const TomlNode* node = draft.root.find(key);
  if (node == nullptr) return {};
  if (!node->is_array())
    return draft.reader.error(*node, "'{}' must be written [[{}]], once for each", key, key);
  for (const TomlNode& table : *node->array()) FURLONG_CHECK(read(draft, table));
  return {};
}

// The names of one array into the editions of `languages`; each must be a variant in at least one of them.
Status read_catalogue_names(Draft& draft, const TomlNode& node, const std::vector<std::string>& languages) {
  const Reader& in = draft.reader;
  FURLONG_TRY(const TomlNode::Array* items, in.array(node, "catalogue"));
  for (const TomlNode& item : *items) {
    FURLONG_TRY(const std::string name, in.word(item, "each variant of the catalogue"));
    std::optional<Error> why;
    bool known = false;
    for (Edition& edition : draft.program.editions) {
      if (!holds_for(languages, edition.language)) continue;
      auto point = lattice::parse_variant(edition.lattice, name);
      if (!point) {
        if (!why) why = point.error();
        continue;
      }
      known = true;
      auto& catalogue = edition.lattice.catalogue;
      const std::string canonical = lattice::variant_name(edition.lattice, *point);
      if (canonical != name)
        return in.error(item, "catalogue: '{}' is written '{}' (tags stand in the order of the knobs)", name,
                        canonical);
      if (std::find(catalogue.begin(), catalogue.end(), name) != catalogue.end() && name != "base")
        return in.error(item, "catalogue: '{}' stands twice", name);
      if (name != "base") catalogue.push_back(name);
    }
    if (!known) return in.error(item, "catalogue: {}", why ? why->text() : "no language");
  }
  return {};
}

Status read_catalogue(Draft& draft) {
  const TomlNode* node = draft.root.find("catalogue");
  if (node == nullptr) return {};
  for (Edition& edition : draft.program.editions) edition.lattice.catalogue = {"base"};
  if (!node->is_table()) return read_catalogue_names(draft, *node, {});
  for (const auto& [language, names] : *node->table()) {
    if (draft.program.edition(language) == nullptr)
      return draft.reader.error(place_of_key(names), "[catalogue]: the program has no source in '{}'",
                                language);
    FURLONG_CHECK(read_catalogue_names(draft, names, {language}));
  }
  // A language that the table does not name has no catalogue, rather than one of base alone.
  for (Edition& edition : draft.program.editions)
    if (node->find(edition.language) == nullptr) edition.lattice.catalogue.clear();
  return {};
}

}  // namespace

Status read_lattice(Draft& draft) {
  for (Edition& edition : draft.program.editions) FURLONG_CHECK(add_knobs(draft, edition));
  FURLONG_CHECK(each_table(draft, "constraint", read_constraint));
  FURLONG_CHECK(each_table(draft, "strictly_better", read_strictly_better));
  for (const Edition& edition : draft.program.editions)
    for (const auto& better : edition.lattice.strictly_better)
      if (edition.lattice.knob(better.name) != nullptr)
        return draft.reader.error(*draft.root.find("strictly_better"),
                                  "'{}' is a knob and strictly better: it cannot be both", better.name);
  return read_catalogue(draft);
}

}  // namespace furlong::program::internal
