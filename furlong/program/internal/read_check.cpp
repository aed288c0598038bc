// [check], [work], [class].
#include <algorithm>

#include "furlong/base/text.h"
#include "furlong/program/emitter.h"
#include "furlong/program/internal/draft.h"
#include "furlong/program/internal/substitute.h"

namespace furlong::program::internal {
namespace {

constexpr std::size_t kLargestSource = 16u << 20;

// "host:file.cpp:function" and "library:file.so:function".
Status read_function_reference(Draft& draft, const TomlNode& node, std::string_view text,
                               std::string_view word) {
  CheckSpec& check = draft.program.check;
  const std::size_t last = text.rfind(':');
  const std::string file(text.substr(0, last == std::string_view::npos ? 0 : last));
  if (last != std::string_view::npos) check.function = text.substr(last + 1);
  if (file.empty() || check.function.empty())
    return draft.reader.error(node, "the reference must be \"{}:FILE:FUNCTION\"", word);
  check.file = draft.resolve(file);
  if (check.reference == ReferenceKind::host) {
    auto source = draft.files.read(check.file, kLargestSource);
    if (!source) return draft.reader.error(node, "the reference cannot be read: {}", source.error().text());
    check.host_source = *std::move(source);
  } else if (!draft.files.exists(check.file)) {
    return draft.reader.error(node, "the reference's library '{}' is not there", file);
  }
  return {};
}

Status read_recipe(Draft& draft, const TomlNode& node) {
  for (const Edition& edition : draft.program.editions)
    if (edition.emitter != nullptr && draft.program.recipe == nullptr)
      draft.program.recipe = edition.emitter->recipe();
  if (draft.program.recipe == nullptr)
    return draft.reader.error(node,
                              "\"recipe\" is for programs with a built-in recipe (the lottery, emitters with "
                              "a reference); use base, host, library or files");
  draft.program.check.reference = ReferenceKind::recipe;
  return {};
}

Status read_reference(Draft& draft, const TomlNode& node) {
  FURLONG_TRY(const std::string text, draft.reader.word(node, "the reference"));
  CheckSpec& check = draft.program.check;
  const std::string_view view = text;
  if (text == "base") {
    check.reference = ReferenceKind::base;
  } else if (text == "files") {
    check.reference = ReferenceKind::files;
  } else if (view.starts_with("host:")) {
    check.reference = ReferenceKind::host;
    return read_function_reference(draft, node, view.substr(5), "host");
  } else if (view.starts_with("library:")) {
    check.reference = ReferenceKind::library;
    return read_function_reference(draft, node, view.substr(8), "library");
  } else if (text == "recipe") {
    return read_recipe(draft, node);
  } else {
    const std::string word = text.substr(0, text.find(':'));
    return draft.reader.error(
        node, "the reference cannot be '{}'{}", text,
        Reader::choices(word, {"base", "host:FILE:FUNCTION", "library:FILE:FUNCTION", "files"}));
  }
  return {};
}

Status read_expected(Draft& draft, const TomlNode& node) {
  const Reader& in = draft.reader;
  CheckSpec& check = draft.program.check;
  if (check.reference != ReferenceKind::files)
    return in.error(place_of_key(node), "'expected' is for reference = \"files\"");
  FURLONG_CHECK(in.expect_table(node, "expected"));
  std::vector<std::string> outputs;
  for (const ArgumentSpec& argument : draft.program.arguments)
    if (argument.is_output()) outputs.push_back(argument.name);
  for (const auto& [name, member] : *node.table()) {
    if (std::find(outputs.begin(), outputs.end(), name) == outputs.end())
      return in.error(place_of_key(member), "expected: '{}' is no output{}", name,
                      Reader::choices(name, outputs));
    FURLONG_TRY(const std::string path, in.word(member, fmt::format("the expected file of '{}'", name)));
    check.expected_files[name] = draft.resolve(path);
    FURLONG_TRY(auto data, read_data_file(draft, member, check.expected_files[name]));
    const ElementType type = draft.program.arguments[*draft.program.argument_index(name)].type;
    if (data->type && *data->type != type)
      return in.error(member, "expected: the file has elements of type {}, '{}' has {}",
                      element_name(*data->type), name, element_name(type));
    check.expected_data[name] = std::move(data);
  }
  return {};
}

// Files hold the outputs of certain inputs, and only of them.
Status check_files_reference(const Draft& draft, const TomlNode& node) {
  const CheckSpec& check = draft.program.check;
  for (const ArgumentSpec& argument : draft.program.arguments) {
    if (argument.is_output() && !check.expected_data.contains(argument.name))
      return draft.reader.error(node, "reference = \"files\" needs expected = {{ {} = \"FILE\" }}",
                                argument.name);
    if (argument.fill == Fill::random)
      return draft.reader.error(
          Place{argument.line, 1},
          "argument '{}' is filled at random, but the expected outputs are files: fill it from a "
          "file, or with zeros, sequence or value",
          argument.name);
  }
  return {};
}

// A value of [problem] changed for the gate must not be compiled into the kernel.
Status check_not_compiled_in(const Draft& draft, const TomlNode& node, const std::string& name) {
  for (const Edition& edition : draft.program.editions) {
    std::vector<std::string> texts;
    for (const auto& [define, value] : edition.defines) texts.push_back(value);
    for (const KernelSpec& kernel : edition.kernels) texts.push_back(kernel.entry);
    for (const std::string& text : texts) {
      const auto names = placeholders(text);
      if (std::find(names.begin(), names.end(), name) != names.end())
        return draft.reader.error(place_of_key(node),
                                  "the check cannot change '{}': it is compiled into the {} kernel "
                                  "('{}')",
                                  name, edition.language, text);
    }
  }
  return {};
}

// A word for a parameter that is one; else a number, or an expression over the timed problem.
Result<lattice::Expression> check_value(const Draft& draft, const TomlNode& node, const std::string& name,
                                        const lattice::Value& usual) {
  const Reader& in = draft.reader;
  const std::string what = fmt::format("'{}' in problem of [check]", name);
  if (node.string() != nullptr && !usual.is_word()) {
    FURLONG_TRY(const PlacedExpression placed, in.expression(node, what));
    FURLONG_CHECK(check_names(draft, placed, Uses::problem));
    return placed.expression;
  }
  FURLONG_TRY(lattice::Value value, in.value(node, what, true));
  if (usual.is_word() != value.is_word()) return in.error(node, "{} must be a word as in [problem]", what);
  return lattice::Expression::constant(std::move(value));
}

Status read_check_problem(Draft& draft, const TomlNode& table) {
  const Reader& in = draft.reader;
  FURLONG_CHECK(in.expect_table(table, "problem of [check]"));
  std::vector<std::string> names;
  for (const auto& [name, value] : draft.program.problem) names.push_back(name);
  for (const auto& [name, node] : *table.table()) {
    const auto known = std::find(names.begin(), names.end(), name);
    if (known == names.end())
      return in.error(place_of_key(node), "problem of [check]: '{}' is no problem parameter{}", name,
                      Reader::choices(name, names));
    const lattice::Value& usual =
        draft.program.problem[static_cast<std::size_t>(known - names.begin())].second;
    FURLONG_TRY(lattice::Expression value, check_value(draft, node, name, usual));
    FURLONG_CHECK(check_not_compiled_in(draft, node, name));
    draft.program.check.problem.emplace_back(name, std::move(value));
  }
  return {};
}

// `activations == 'int8' and 0.02 or 0.001`
Status read_bound_by_knob(Draft& draft, const TomlNode& node) {
  FURLONG_TRY(const PlacedExpression placed, draft.reader.expression(node, "bound"));
  FURLONG_CHECK(check_names(draft, placed, Uses::knobs_of_edition));
  draft.program.check.bound_by_knob = placed.expression;
  return {};
}

Status read_check_kind(Draft& draft, const TomlNode& table) {
  const Reader& in = draft.reader;
  CheckSpec& check = draft.program.check;
  if (const TomlNode* kind = table.find("kind")) {
    FURLONG_TRY(const std::size_t word, in.one_of(*kind, "kind of [check]", {"exact", "tolerance"}));
    check.kind = word == 0 ? CheckKind::exact : CheckKind::tolerance;
  }
  const TomlNode* bound = table.find("bound");
  if (check.kind == CheckKind::exact) {
    if (bound != nullptr) return in.error(place_of_key(*bound), "'bound' is for kind = \"tolerance\"");
    return {};
  }
  FURLONG_TRY(const TomlNode* needed, in.required(table, "[check] with kind = \"tolerance\"", "bound"));
  if (needed->string() != nullptr) return read_bound_by_knob(draft, *needed);
  FURLONG_TRY(check.bound, in.number(*needed, "bound"));
  // A bound of 1 would pass an output of zeros: the gate could not fail.
  if (!(check.bound > 0 && check.bound < 1)) return in.error(*needed, "bound must be over 0 and under 1");
  return {};
}

Result<lattice::Expression> work_expression(const Draft& draft, const TomlNode& node, std::string_view what) {
  FURLONG_TRY(const PlacedExpression placed, draft.reader.expression(node, what));
  FURLONG_CHECK(check_names(draft, placed, Uses::knobs_of_edition));
  return placed.expression;
}

/// access, dataset and loads: how the bytes are moved.
Status read_access(Draft& draft, const TomlNode& table) {
  const Reader& in = draft.reader;
  WorkSpec& work = draft.program.work;
  const TomlNode* const access = table.find("access");
  const TomlNode* const loads = table.find("loads");
  const TomlNode* const dataset = table.find("dataset");
  if (access != nullptr) {
    if (loads != nullptr) return in.error(place_of_key(*access), "[work] has either 'access' or 'loads'");
    FURLONG_TRY(const std::size_t word,
                in.one_of(*access, "access", {"stream", "random4", "random16", "random128"}));
    work.access = static_cast<Access>(word);
    if (work.access != Access::stream && !work.bytes)
      return in.error(place_of_key(*access), "random access needs 'bytes', those that are loaded");
  }
  if (loads != nullptr) {
    FURLONG_CHECK(in.check_keys(*loads, "loads of [work]", {"random4", "random16", "random128"}));
    const char* const widths[] = {"random4", "random16", "random128"};
    for (std::size_t i = 0; i < random_widths; ++i) {
      const TomlNode* const node = loads->find(widths[i]);
      if (node == nullptr) continue;
      FURLONG_TRY(work.loads[i], work_expression(draft, *node, fmt::format("{} of loads", widths[i])));
    }
  }
  const bool random = work.access != Access::stream || loads != nullptr;
  if (random && dataset == nullptr)
    return in.error(place_of_key(access != nullptr ? *access : *loads),
                    "random access needs 'dataset', the bytes of the region that is read");
  if (dataset == nullptr) return {};
  if (!random)
    return in.error(place_of_key(*dataset), "'dataset' is for random access (access = \"random4\")");
  FURLONG_TRY(work.dataset, work_expression(draft, *dataset, "dataset"));
  return {};
}

Status read_class(Draft& draft) {
  const TomlNode* table = draft.root.find("class");
  if (table == nullptr) return {};
  const Reader& in = draft.reader;
  FURLONG_CHECK(in.expect_table(*table, "[class]"));
  for (const auto& [name, node] : *table->table()) {
    FURLONG_CHECK(in.check_identifier(place_of_key(node), name, "the class feature"));
    FURLONG_TRY(const PlacedExpression placed, in.expression(node, fmt::format("class feature '{}'", name)));
    FURLONG_CHECK(check_names(draft, placed, Uses::problem));
    draft.program.class_features.emplace_back(name, placed.expression);
  }
  return {};
}

}  // namespace

Status read_check(Draft& draft) {
  const TomlNode* table = draft.root.find("check");
  if (table == nullptr) return {};
  const Reader& in = draft.reader;
  FURLONG_CHECK(in.check_keys(*table, "[check]", {"kind", "bound", "reference", "expected", "problem"}));
  FURLONG_CHECK(read_check_kind(draft, *table));
  if (const TomlNode* node = table->find("reference")) FURLONG_CHECK(read_reference(draft, *node));
  if (const TomlNode* node = table->find("expected")) FURLONG_CHECK(read_expected(draft, *node));
  if (const TomlNode* node = table->find("problem")) FURLONG_CHECK(read_check_problem(draft, *node));
  if (draft.program.check.reference == ReferenceKind::files) return check_files_reference(draft, *table);
  return {};
}

Status read_work(Draft& draft) {
  const Reader& in = draft.reader;
  WorkSpec& work = draft.program.work;
  work.amount = lattice::Expression::constant(1);
  FURLONG_CHECK(read_class(draft));
  const TomlNode* table = draft.root.find("work");
  if (table == nullptr) return {};
  FURLONG_CHECK(in.check_keys(*table, "[work]",
                              {"unit", "amount", "bytes", "flops", "int_ops", "access", "dataset", "loads",
                               "rate_unit", "rate_scale"}));
  if (const TomlNode* node = table->find("unit")) {
    FURLONG_TRY(work.unit, in.word(*node, "unit"));
  }
  if (const TomlNode* node = table->find("amount")) {
    FURLONG_TRY(work.amount, work_expression(draft, *node, "amount"));
  }
  if (const TomlNode* node = table->find("bytes")) {
    FURLONG_TRY(work.bytes, work_expression(draft, *node, "bytes"));
  }
  if (const TomlNode* node = table->find("flops")) {
    FURLONG_TRY(work.flops, work_expression(draft, *node, "flops"));
  }
  if (const TomlNode* node = table->find("int_ops")) {
    FURLONG_TRY(work.int_ops, work_expression(draft, *node, "int_ops"));
  }
  FURLONG_CHECK(read_access(draft, *table));
  work.rate_unit = work.unit + "/s";
  if (const TomlNode* node = table->find("rate_unit")) {
    FURLONG_TRY(work.rate_unit, in.word(*node, "rate_unit"));
  }
  if (const TomlNode* node = table->find("rate_scale")) {
    FURLONG_TRY(work.rate_scale, in.number(*node, "rate_scale"));
    if (!(work.rate_scale > 0)) return in.error(*node, "rate_scale must be over 0");
  }
  return {};
}

}  // namespace furlong::program::internal
