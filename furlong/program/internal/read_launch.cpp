// [launch], [launch.<language>], [[kernel]].
#include <algorithm>

#include "furlong/base/text.h"
#include "furlong/program/emitter.h"
#include "furlong/program/internal/draft.h"
#include "furlong/program/internal/substitute.h"

namespace furlong::program::internal {
namespace {

constexpr std::size_t kMostKernels = 64;

// Where a key is looked up: the kernel's own table, then the language's, then the common one.
using Tables = std::vector<const TomlNode*>;

const TomlNode* find_in(const Tables& tables, std::string_view key) {
  for (const TomlNode* table : tables)
    if (table != nullptr)
      if (const TomlNode* node = table->find(key)) return node;
  return nullptr;
}

struct KernelReader {
  const Draft& draft;
  const Reader& in;
  const Edition& edition;
  Tables tables;
  std::string label;             ///< "kernel 'add'"
  std::set<std::string>& names;  ///< every name that the launch uses

  Result<lattice::Expression> expression(const TomlNode& node, std::string_view key) {
    FURLONG_TRY(const PlacedExpression placed, in.expression(node, fmt::format("{} of {}", key, label)));
    FURLONG_CHECK(check_names(draft, placed, Uses::knobs_of_edition, edition.language));
    for (const std::string& name : placed.expression.variables()) {
      names.insert(name);
      if (const auto let = draft.let_knobs.find(name); let != draft.let_knobs.end())
        names.insert(let->second.begin(), let->second.end());
    }
    return placed.expression;
  }

  Status dimensions(std::string_view key, std::array<lattice::Expression, 3>& into) {
    into.fill(lattice::Expression::constant(1));
    const TomlNode* node = find_in(tables, key);
    if (node == nullptr) {
      if (key == "block" && edition.language == "host") return {};  // a host kernel is called once a block
      return in.error(draft.root, "{} in language {} has no '{}': give it in [launch]", label,
                      edition.language, key);
    }
    if (!node->is_array()) {
      FURLONG_TRY(into[0], expression(*node, key));
      return {};
    }
    const auto& items = *node->array();
    if (items.empty() || items.size() > 3)
      return in.error(*node, "{} of {} must have 1 to 3 dimensions, not {}", key, label, items.size());
    for (std::size_t i = 0; i < items.size(); ++i) {
      FURLONG_TRY(into[i], expression(items[i], key));
    }
    return {};
  }

  Status arguments(KernelSpec& kernel) {
    const auto& all = draft.program.arguments;
    const TomlNode* node = find_in(tables, "arguments");
    if (node == nullptr) {
      for (std::size_t i = 0; i < all.size(); ++i) kernel.arguments.push_back(i);
      return {};
    }
    FURLONG_TRY(const TomlNode::Array* items, in.array(*node, fmt::format("arguments of {}", label)));
    std::vector<std::string> known;
    for (const ArgumentSpec& argument : all) known.push_back(argument.name);
    for (const TomlNode& item : *items) {
      FURLONG_TRY(const std::size_t index, in.one_of(item, fmt::format("an argument of {}", label), known));
      kernel.arguments.push_back(index);
    }
    return {};
  }

  Result<KernelSpec> read(std::string entry) {
    KernelSpec kernel;
    kernel.entry = std::move(entry);
    FURLONG_CHECK(dimensions("grid", kernel.grid));
    FURLONG_CHECK(dimensions("block", kernel.block));
    kernel.shared_bytes = lattice::Expression::constant(0);
    if (const TomlNode* node = find_in(tables, "shared_bytes")) {
      FURLONG_TRY(kernel.shared_bytes, expression(*node, "shared_bytes"));
    }
    FURLONG_CHECK(arguments(kernel));
    for (const std::string& name : placeholders(kernel.entry)) names.insert(name);
    return kernel;
  }
};

Status refuse_for_emitter(const Draft& draft, const Edition& edition, Place place, std::string_view what) {
  if (edition.emitter == nullptr) return {};
  return draft.reader.error(place,
                            "{}: emitter '{}' makes the launches in language {}, so none is given here", what,
                            edition.emitter->name(), edition.language);
}

Status check_launch_tables(const Draft& draft, const TomlNode& launch) {
  const Reader& in = draft.reader;
  FURLONG_CHECK(in.check_keys(
      launch, "[launch]", {"grid", "block", "shared_bytes", "arguments", "cuda", "opencl", "host", "metal"}));
  for (const auto& [key, node] : *launch.table()) {
    const auto& words = language_words();
    if (std::find(words.begin(), words.end(), key) == words.end()) continue;
    const std::string where = fmt::format("[launch.{}]", key);
    if (draft.program.edition(key) == nullptr)
      return in.error(place_of_key(node), "{}: the program has no source in '{}'", where, key);
    FURLONG_CHECK(refuse_for_emitter(draft, *draft.program.edition(key), place_of_key(node), where));
    FURLONG_CHECK(in.check_keys(node, where, {"grid", "block", "shared_bytes", "arguments"}));
  }
  return {};
}

// [launch] and [[kernel]] where every language has an emitter.
Status refuse_without_source(const Draft& draft, const TomlNode* launch, const TomlNode* kernels) {
  const auto& editions = draft.program.editions;
  const auto sourced = [](const Edition& edition) { return edition.emitter == nullptr; };
  if (std::any_of(editions.begin(), editions.end(), sourced)) return {};
  if (launch != nullptr)
    FURLONG_CHECK(refuse_for_emitter(draft, editions[0], place_of_key(*launch), "[launch]"));
  if (kernels != nullptr)
    FURLONG_CHECK(refuse_for_emitter(draft, editions[0], place_of_key(*kernels), "[[kernel]]"));
  return {};
}

Status read_single_kernel(Draft& draft, Edition& edition, const Tables& tables,
                          std::set<std::string>& names) {
  if (edition.kernels.empty())
    return draft.reader.error(draft.root,
                              "the program has no 'entry' in language {}: give the kernel's name beside its "
                              "source, or [[kernel]] tables",
                              edition.language);
  const std::string entry = edition.kernels[0].entry;
  KernelReader reading{.draft = draft,
                       .in = draft.reader,
                       .edition = edition,
                       .tables = tables,
                       .label = fmt::format("kernel '{}'", entry),
                       .names = names};
  FURLONG_TRY(edition.kernels[0], reading.read(entry));
  const TomlNode* source = draft.root.find("source");
  const TomlNode* table = source != nullptr ? source->find(edition.language) : draft.root.find("program");
  return check_placeholders(draft, *table->find("entry"), entry, edition.language);
}

Status read_pipeline(Draft& draft, Edition& edition, const TomlNode& kernels, const Tables& common,
                     std::set<std::string>& names) {
  const Reader& in = draft.reader;
  if (!edition.kernels.empty())
    return in.error(
        kernels,
        "the {} source has an 'entry' and there are [[kernel]] tables: name the kernels in one place",
        edition.language);
  for (const TomlNode& table : *kernels.array()) {
    FURLONG_CHECK(in.check_keys(table, "this [[kernel]]",
                                {"entry", "grid", "block", "shared_bytes", "arguments", "languages"}));
    if (const TomlNode* node = table.find("languages")) {
      FURLONG_TRY(const auto words, in.words(*node, "languages of a [[kernel]]"));
      for (const std::string& word : words) {
        const Edition* named = draft.program.edition(word);
        if (named == nullptr)
          return in.error(*node, "languages of a [[kernel]]: the program has no source in '{}'", word);
        FURLONG_CHECK(refuse_for_emitter(draft, *named, place_of(*node), "[[kernel]]"));
      }
      if (std::find(words.begin(), words.end(), edition.language) == words.end()) continue;
    }
    FURLONG_TRY(const TomlNode* entry, in.required(table, "a [[kernel]]", "entry"));
    FURLONG_TRY(const std::string name, in.word(*entry, "entry"));
    FURLONG_CHECK(check_placeholders(draft, *entry, name, edition.language));
    Tables tables = {&table};
    tables.insert(tables.end(), common.begin(), common.end());
    KernelReader reading{.draft = draft,
                         .in = in,
                         .edition = edition,
                         .tables = std::move(tables),
                         .label = fmt::format("kernel '{}'", name),
                         .names = names};
    FURLONG_TRY(KernelSpec kernel, reading.read(name));
    edition.kernels.push_back(std::move(kernel));
    if (edition.kernels.size() > kMostKernels)
      return in.error(table, "a pipeline has at most {} kernels", kMostKernels);
  }
  if (edition.kernels.empty()) return in.error(kernels, "no [[kernel]] is for language {}", edition.language);
  return {};
}

Status check_all_passed(const Draft& draft, const Edition& edition) {
  std::set<std::size_t> passed;
  for (const KernelSpec& kernel : edition.kernels)
    passed.insert(kernel.arguments.begin(), kernel.arguments.end());
  for (std::size_t i = 0; i < draft.program.arguments.size(); ++i) {
    if (passed.contains(i)) continue;
    const ArgumentSpec& argument = draft.program.arguments[i];
    return draft.reader.error(Place{argument.line, 1}, "argument '{}' is passed to no kernel in language {}",
                              argument.name, edition.language);
  }
  return {};
}

// A knob of the launch that nothing in the launch names would be raced without any effect.
Status check_launch_knobs(const Draft& draft, std::set<std::string> names) {
  const auto add = [&](const lattice::Expression& e) {
    for (const std::string& name : e.variables()) {
      names.insert(name);
      if (const auto let = draft.let_knobs.find(name); let != draft.let_knobs.end())
        names.insert(let->second.begin(), let->second.end());
    }
  };
  for (const ArgumentSpec& argument : draft.program.arguments) {
    add(argument.count);
    add(argument.value);
  }
  for (const KnobDraft& k : draft.knobs) {
    const auto& applies = k.knob.applies;
    if (std::find(applies.begin(), applies.end(), lattice::Applies::launch) == applies.end()) continue;
    if (names.contains(k.knob.name)) continue;
    return draft.reader.error(
        *k.node,
        "knob '{}' applies to the launch, but no grid, block, shared_bytes, entry, size or value "
        "uses it",
        k.knob.name);
  }
  return {};
}

Status check_defines(const Draft& draft, const Edition& edition) {
  const TomlNode* source = draft.root.find("source");
  const TomlNode* table = source != nullptr ? source->find(edition.language) : draft.root.find("program");
  const TomlNode* defines = table->find("defines");
  if (defines == nullptr) return {};
  for (const auto& [name, value] : edition.defines)
    FURLONG_CHECK(check_placeholders(draft, *defines->find(name), value, edition.language));
  return {};
}

}  // namespace

Status read_launch(Draft& draft) {
  const TomlNode* launch = draft.root.find("launch");
  const TomlNode* kernels = draft.root.find("kernel");
  if (launch != nullptr) FURLONG_CHECK(check_launch_tables(draft, *launch));
  if (kernels != nullptr && !kernels->is_array())
    return draft.reader.error(*kernels,
                              "'kernel' must be written [[kernel]], once for each kernel of the pipeline");
  FURLONG_CHECK(refuse_without_source(draft, launch, kernels));
  std::set<std::string> names;
  for (Edition& edition : draft.program.editions) {
    if (edition.emitter != nullptr) {
      FURLONG_CHECK(check_defines(draft, edition));
      continue;
    }
    const Tables tables = {launch != nullptr ? launch->find(edition.language) : nullptr, launch};
    if (kernels != nullptr) {
      FURLONG_CHECK(read_pipeline(draft, edition, *kernels, tables, names));
    } else {
      FURLONG_CHECK(read_single_kernel(draft, edition, tables, names));
    }
    FURLONG_CHECK(check_all_passed(draft, edition));
    FURLONG_CHECK(check_defines(draft, edition));
  }
  return check_launch_knobs(draft, std::move(names));
}

}  // namespace furlong::program::internal
