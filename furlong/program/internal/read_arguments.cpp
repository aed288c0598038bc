// [[argument]].
#include <algorithm>
#include <cmath>
#include <limits>

#include "furlong/base/text.h"
#include "furlong/program/emitter.h"
#include "furlong/program/internal/draft.h"
#include "furlong/program/npy.h"

namespace furlong::program::internal {
namespace {

constexpr std::size_t kLargestDataFile = std::size_t{64} << 30;

const std::vector<std::string>& type_words() {
  static const std::vector<std::string> words = {"i8",  "u8",  "i16", "u16", "i32", "u32",
                                                 "i64", "u64", "f16", "f32", "f64"};
  return words;
}

// What random integers cover when the file gives no low and high: the whole range, so that no bit is left
// untested.
std::pair<double, double> whole_range(ElementType type) {
  switch (type) {
    case ElementType::i8:
      return {-128, 127};
    case ElementType::u8:
      return {0, 255};
    case ElementType::i16:
      return {-32768, 32767};
    case ElementType::u16:
      return {0, 65535};
    case ElementType::i32:
      return {-0x1p31, 0x1p31 - 1};
    case ElementType::u32:
      return {0, 0x1p32 - 1};
    case ElementType::i64:
      return {-0x1p63, 0x1p63};  // 2^63 - 1 is no double; the filler stops at the type's end
    case ElementType::u64:
      return {0, 0x1p64};
    case ElementType::f16:
    case ElementType::f32:
    case ElementType::f64:
      break;
  }
  return {0, 1};
}

// What `low` and `high` may be: past the type's own ends every random input would be infinite.
std::pair<double, double> bounds_of(ElementType type) {
  if (!is_floating(type)) return whole_range(type);
  const double largest = type == ElementType::f16   ? 65504.0
                         : type == ElementType::f32 ? static_cast<double>(std::numeric_limits<float>::max())
                                                    : std::numeric_limits<double>::max();
  return {-largest, largest};
}

struct ArgumentReader {
  const Draft& draft;
  const Reader& in;
  const TomlNode& table;
  ArgumentSpec spec;
  std::string label;

  Status refuse(std::string_view key, std::string_view why) const {
    const TomlNode* node = table.find(key);
    if (node == nullptr) return {};
    return in.error(place_of_key(*node), "{}: '{}' {}", label, key, why);
  }

  Status read_kind() {
    static const std::vector<std::string> kinds = {"scalar", "buffer", "constant", "dataset"};
    if (const TomlNode* node = table.find("kind")) {
      FURLONG_TRY(const std::size_t word, in.one_of(*node, fmt::format("kind of {}", label), kinds));
      spec.kind = static_cast<ArgumentKind>(word);
      if (spec.kind == ArgumentKind::dataset)
        return in.error(
            *node,
            "{}: a dataset comes with a built-in recipe (the lottery); use kind = \"buffer\" with "
            "fill = \"file\" or \"random\"",
            label);
    }
    FURLONG_TRY(const TomlNode* type, in.required(table, label, "type"));
    FURLONG_TRY(const std::size_t word, in.one_of(*type, fmt::format("type of {}", label), type_words()));
    spec.type = static_cast<ElementType>(word);
    return {};
  }

  Status read_scalar() {
    for (const std::string_view key : {"size", "file", "direction"})
      FURLONG_CHECK(refuse(key, "is for buffers; a scalar has 'value'"));
    spec.count = lattice::Expression::constant(1);
    if (const TomlNode* fill = table.find("fill")) {
      FURLONG_CHECK(in.one_of(*fill, fmt::format("fill of scalar {}", label), {"random"}));
      FURLONG_CHECK(refuse("value", "and fill = \"random\" exclude each other"));
      spec.fill = Fill::random;
      return read_random();
    }
    for (const std::string_view key : {"low", "high", "seed"})
      FURLONG_CHECK(refuse(key, "is for fill = \"random\""));
    FURLONG_TRY(const TomlNode* value, in.required(table, label, "value"));
    FURLONG_TRY(const PlacedExpression placed, in.expression(*value, fmt::format("value of {}", label)));
    FURLONG_CHECK(check_names(draft, placed, Uses::knobs_of_edition));
    spec.value = placed.expression;
    return {};
  }

  Status read_direction() {
    static const std::vector<std::string> words = {"in", "out", "inout", "scratch"};
    const TomlNode* node = table.find("direction");
    if (node == nullptr) return {};
    FURLONG_TRY(const std::size_t word, in.one_of(*node, fmt::format("direction of {}", label), words));
    spec.direction = static_cast<Direction>(word);
    if (spec.kind == ArgumentKind::constant && spec.direction != Direction::in)
      return in.error(*node, "{}: a constant is only read; its direction is \"in\"", label);
    return {};
  }

  Status read_size() {
    FURLONG_TRY(const TomlNode* size, in.required(table, label, "size"));
    FURLONG_TRY(const PlacedExpression placed, in.expression(*size, fmt::format("size of {}", label)));
    const bool scratch = spec.direction == Direction::scratch;
    FURLONG_CHECK(check_names(draft, placed, scratch ? Uses::knobs_of_edition : Uses::problem));
    spec.count = placed.expression;
    return {};
  }

  bool has_recipe() const {
    return std::any_of(draft.program.editions.begin(), draft.program.editions.end(),
                       [](const Edition& edition) {
                         return edition.emitter != nullptr && edition.emitter->recipe() != nullptr;
                       });
  }

  Status read_fill() {
    static const std::vector<std::string> words = {"random", "zeros",  "sequence", "value",
                                                   "file",   "poison", "recipe"};
    const bool filled = spec.direction == Direction::in || spec.direction == Direction::inout;
    spec.fill = filled ? Fill::random : Fill::poison;
    const TomlNode* node = table.find("fill");
    if (node == nullptr) {
      if (filled && table.find("file") != nullptr) spec.fill = Fill::file;
      if (filled && table.find("value") != nullptr) spec.fill = Fill::value;
      return {};
    }
    FURLONG_TRY(const std::size_t word, in.one_of(*node, fmt::format("fill of {}", label), words));
    spec.fill = static_cast<Fill>(word + 1);
    if (!filled && spec.fill != Fill::poison)
      return in.error(
          *node, "{}: what an output or scratch held before is poisoned; direction = \"inout\" keeps a fill",
          label);
    if (spec.fill == Fill::recipe && !has_recipe())
      return in.error(*node, "{}: fill = \"recipe\" is for programs whose emitter makes their inputs", label);
    if (filled && spec.fill == Fill::poison)
      return in.error(*node,
                      "{}: \"poison\" is for outputs; an input needs random, zeros, sequence, value or file",
                      label);
    return {};
  }

  Status read_random() {
    std::tie(spec.low, spec.high) = whole_range(spec.type);
    const TomlNode* low = table.find("low");
    const TomlNode* high = table.find("high");
    if (low != nullptr) {
      FURLONG_TRY(spec.low, in.number(*low, fmt::format("low of {}", label)));
    }
    if (high != nullptr) {
      FURLONG_TRY(spec.high, in.number(*high, fmt::format("high of {}", label)));
    }
    for (const TomlNode* bound : {low, high}) {
      if (bound == nullptr) continue;
      const auto range = bounds_of(spec.type);
      const double value = bound == low ? spec.low : spec.high;
      if (!(value >= range.first && value <= range.second))
        return in.error(*bound, "{}: {} does not fit the type {}", label, value, element_name(spec.type));
      if (!is_floating(spec.type) && value != std::trunc(value))
        return in.error(*bound, "{}: {} is no whole number, but the type is {}", label, value,
                        element_name(spec.type));
    }
    if (!(spec.low <= spec.high))
      return in.error(high != nullptr ? *high : *low, "{}: low ({}) is over high ({})", label, spec.low,
                      spec.high);
    if (const TomlNode* seed = table.find("seed")) {
      FURLONG_TRY(const std::int64_t value, in.integer(*seed, fmt::format("seed of {}", label)));
      if (value < 0) return in.error(*seed, "{}: the seed must not be negative", label);
      spec.seed = static_cast<std::uint64_t>(value);
    }
    return {};
  }

  Status read_fill_keys() {
    if (spec.fill != Fill::random)
      for (const std::string_view key : {"low", "high", "seed"})
        FURLONG_CHECK(refuse(key, "is for fill = \"random\""));
    if (spec.fill != Fill::value) FURLONG_CHECK(refuse("value", "is for scalars and fill = \"value\""));
    if (spec.fill != Fill::file) FURLONG_CHECK(refuse("file", "is for fill = \"file\""));
    if (spec.fill == Fill::random) return read_random();
    if (spec.fill == Fill::value) {
      FURLONG_TRY(const TomlNode* value, in.required(table, label, "value"));
      FURLONG_TRY(const PlacedExpression placed, in.expression(*value, fmt::format("value of {}", label)));
      FURLONG_CHECK(check_names(draft, placed, Uses::problem));
      spec.value = placed.expression;
    }
    if (spec.fill == Fill::file) {
      FURLONG_TRY(const TomlNode* file, in.required(table, label, "file"));
      FURLONG_TRY(const std::string path, in.word(*file, fmt::format("file of {}", label)));
      spec.file = draft.resolve(path);
      FURLONG_TRY(spec.data, read_data_file(draft, *file, spec.file));
      if (spec.data->type && *spec.data->type != spec.type)
        return in.error(*file, "{}: the file has elements of type {}, the argument {}", label,
                        element_name(*spec.data->type), element_name(spec.type));
    }
    return {};
  }
};

Status read_argument(Draft& draft, const TomlNode& table) {
  const Reader& in = draft.reader;
  FURLONG_CHECK(in.check_keys(
      table, "this [[argument]]",
      {"name", "kind", "type", "size", "value", "fill", "low", "high", "seed", "file", "direction"}));
  ArgumentReader reading{.draft = draft, .in = in, .table = table, .spec = {}, .label = {}};
  FURLONG_TRY(const TomlNode* name, in.required(table, "an [[argument]]", "name"));
  // "in" is a fine name for an argument: expressions never name arguments.
  FURLONG_TRY(reading.spec.name, in.word(*name, "the argument's name"));
  if (!is_identifier(reading.spec.name))
    return in.error(*name,
                    "the argument's name '{}' must be a letter or '_' and then letters, digits and '_'",
                    reading.spec.name);
  if (draft.program.argument_index(reading.spec.name))
    return in.error(*name, "there are two arguments '{}'", reading.spec.name);
  reading.spec.line = table.line;
  reading.label = fmt::format("argument '{}'", reading.spec.name);
  FURLONG_CHECK(reading.read_kind());
  if (reading.spec.kind == ArgumentKind::scalar) {
    FURLONG_CHECK(reading.read_scalar());
  } else {
    FURLONG_CHECK(reading.read_direction());
    FURLONG_CHECK(reading.read_size());
    FURLONG_CHECK(reading.read_fill());
    FURLONG_CHECK(reading.read_fill_keys());
  }
  draft.program.arguments.push_back(std::move(reading.spec));
  return {};
}

}  // namespace

Result<std::shared_ptr<const DataFile>> read_data_file(const Draft& draft, const TomlNode& node,
                                                       const std::filesystem::path& path) {
  const auto content = draft.files.read(path, kLargestDataFile);
  if (!content) return draft.reader.error(node, "{}", content.error().text());
  auto data = parse_data_file(as_bytes(*content), path.extension() == ".npy");
  if (!data) return draft.reader.error(node, "{}: {}", path.filename().string(), data.error().text());
  return std::make_shared<const DataFile>(*std::move(data));
}

Status read_arguments(Draft& draft) {
  const TomlNode* node = draft.root.find("argument");
  if (node == nullptr)
    return draft.reader.error(draft.root,
                              "a program file needs an [[argument]] for each parameter of the kernel");
  if (!node->is_array())
    return draft.reader.error(*node, "'argument' must be written [[argument]], once for each");
  for (const TomlNode& table : *node->array()) FURLONG_CHECK(read_argument(draft, table));
  const auto& arguments = draft.program.arguments;
  const bool checked =
      std::any_of(arguments.begin(), arguments.end(), [](const ArgumentSpec& a) { return a.is_output(); });
  if (!checked)
    return draft.reader.error(
        *node, "no argument has direction \"out\" or \"inout\": there would be nothing to check");
  const bool by_recipe = std::any_of(arguments.begin(), arguments.end(),
                                     [](const ArgumentSpec& a) { return a.fill == Fill::recipe; });
  for (const Edition& edition : draft.program.editions)
    if (by_recipe && edition.emitter != nullptr && draft.program.recipe == nullptr)
      draft.program.recipe = edition.emitter->recipe();
  return {};
}

}  // namespace furlong::program::internal
