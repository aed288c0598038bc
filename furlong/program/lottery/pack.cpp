// Making a lottery pack, and reading one back as a program.
#include <algorithm>

#include "furlong/base/os/file.h"
#include "furlong/base/toml.h"
#include "furlong/program/lottery/emit.h"
#include "furlong/program/lottery/recipe.h"
#include "furlong/program/lottery/shipped.h"
#include "furlong/program/lottery/vectors.h"

namespace furlong::program::lottery {
namespace {

constexpr std::string_view kPackFile = "pack.toml";
constexpr std::string_view kVectorsFile = "vectors.toml";
constexpr std::size_t kEpochDigits = 16;

/// Nonces of a timed launch with the most loads: about 2 ms on a large card with a dataset beyond its caches.
/// A small dataset is for CPUs and tests, where that many would take seconds.
constexpr std::int64_t kCountLarge = 1 << 19;
constexpr std::int64_t kMostLoads = 128;
constexpr std::int64_t kCountSmall = 1 << 14;
constexpr std::uint64_t kSmallDataset = 32ull << 20;

std::string print_fields(const Parameters& p, const Geometry& geometry) {
  return fmt::format(
      "[lottery]\n"
      "format = {}\n"
      "epoch_seed = \"{}\"\n"
      "day = {}\n"
      "loads = {}\n"
      "wide = {}\n"
      "cache_bytes = {}\n"
      "dataset_bytes = {}\n",
      kFormat, to_hex(p.epoch_seed), p.day, p.loads, p.wide, geometry.cache_bytes, geometry.dataset_bytes);
}

struct Fields {
  Parameters parameters;
  Geometry geometry;
};

/// Reads the table [lottery] of a pack.toml.
class FieldReader {
 public:
  FieldReader(const TomlNode& table, std::string_view where) : table_(table), where_(where) {}

  Result<Fields> read() const {
    FURLONG_TRY(const std::int64_t format, integer("format"));
    if (format != kFormat)
      return fail(Code::incompatible, "{}: a lottery of format {}, but this build knows format {}", where_,
                  format, kFormat);
    Fields fields;
    Parameters& p = fields.parameters;
    FURLONG_TRY(p.epoch_seed, seed());
    FURLONG_TRY(p.day, integer("day"));
    FURLONG_TRY(p.loads, integer("loads"));
    FURLONG_TRY(p.wide, integer("wide"));
    FURLONG_TRY(const std::int64_t cache, integer("cache_bytes"));
    FURLONG_TRY(const std::int64_t dataset, integer("dataset_bytes"));
    fields.geometry = {static_cast<std::uint64_t>(cache), static_cast<std::uint64_t>(dataset)};
    return fields;
  }

 private:
  Result<const TomlNode*> member(std::string_view key) const {
    const TomlNode* node = table_.find(key);
    if (node == nullptr)
      return fail(Code::invalid, "{}:{}:{}: [lottery] needs the key '{}'", where_, table_.line, table_.column,
                  key);
    return node;
  }

  Result<std::int64_t> integer(std::string_view key) const {
    FURLONG_TRY(const TomlNode* node, member(key));
    if (node->integer() == nullptr)
      return fail(Code::invalid, "{}:{}:{}: '{}' must be an integer, not {}", where_, node->line,
                  node->column, key, node->type_name());
    return *node->integer();
  }

  Result<std::array<std::uint8_t, 32>> seed() const {
    FURLONG_TRY(const TomlNode* node, member("epoch_seed"));
    std::array<std::uint8_t, 32> seed{};
    if (node->string() != nullptr) {
      const auto bytes = from_hex(*node->string());
      if (bytes && bytes->size() == seed.size()) {
        std::ranges::copy(*bytes, seed.begin());
        return seed;
      }
    }
    return fail(Code::invalid, "{}:{}:{}: 'epoch_seed' must be a string of 64 hexadecimal digits", where_,
                node->line, node->column);
  }

  const TomlNode& table_;
  std::string_view where_;
};

Result<const std::string*> file_of(const PackContents& contents, std::string_view name,
                                   const std::filesystem::path& folder) {
  const auto found = contents.files.find(std::string(name));
  if (found == contents.files.end())
    return fail(Code::corrupt, "{}: the lottery pack has no file '{}'", folder.string(), name);
  return &found->second;
}

Result<Fields> read_fields(const PackContents& contents, const std::filesystem::path& folder) {
  FURLONG_TRY(const std::string* text, file_of(contents, kPackFile, folder));
  const std::string where = (folder / kPackFile).string();
  FURLONG_TRY(const TomlNode root, toml_parse(*text, where));
  const TomlNode* table = root.find("lottery");
  if (table == nullptr || !table->is_table())
    return fail(Code::invalid, "{}: there is no table [lottery]: this is no lottery pack", where);
  return FieldReader(*table, where).read();
}

/// The shipped program file over the pack's texts.
Result<Program> shipped_program(const PackContents& contents, const std::filesystem::path& folder) {
  FakeFiles texts;  // the verified bytes, so that nothing is read from disk again
  for (const auto& [name, bytes] : contents.files) FURLONG_CHECK(texts.write_atomic(folder / name, bytes));
  FURLONG_TRY(const auto program, parse_program(shipped_program_text(), "lottery.toml", folder, texts));
  return Program(*program);
}

Status set_problem(Program& program, std::string_view name, std::int64_t value) {
  for (auto& [parameter, standard] : program.problem) {
    if (parameter != name) continue;
    standard = value;
    return {};
  }
  return fail(Code::internal, "the shipped lottery.toml has no problem parameter '{}'", name);
}

/// What a program file cannot say: the dataset, the random start, the reference.
Status join_recipe(Program& program, const Fields& fields) {
  const auto names = argument_names();
  const bool same_order = std::ranges::equal(program.arguments, names, {}, &ArgumentSpec::name);
  if (!same_order)
    return fail(Code::internal, "the arguments of the shipped lottery.toml are not those of the recipe");
  program.arguments[kDataset].kind = ArgumentKind::dataset;
  program.arguments[kDataset].fill = Fill::none;
  program.arguments[kStart].fill = Fill::random;
  program.arguments[kStart].high = 0x1p64;
  FURLONG_TRY(program.recipe, make_recipe(fields.parameters, fields.geometry));
  program.check.reference = ReferenceKind::recipe;
  FURLONG_CHECK(set_problem(program, "loads", fields.parameters.loads));
  FURLONG_CHECK(set_problem(program, "wide", fields.parameters.wide));
  FURLONG_CHECK(set_problem(program, "dataset_words", fields.geometry.dataset_words()));
  program.fixed_problem = {"loads", "wide", "dataset_words"};  // written into the texts
  // With fewer loads a hash takes less: more of them keep the end of a launch, when the card empties, as
  // small a part of it.
  const std::int64_t large = kCountLarge * kMostLoads / fields.parameters.loads;
  return set_problem(program, "count", fields.geometry.dataset_bytes <= kSmallDataset ? kCountSmall : large);
}

}  // namespace

Result<PackContents> make_pack(const Parameters& parameters) {
  FURLONG_TRY(const Geometry geometry, geometry_of(parameters));
  FURLONG_TRY(const LotteryProgram program, generate_program(parameters));
  const TextOrigin origin{to_hex(parameters.epoch_seed), parameters.day, parameters.loads, parameters.wide};
  PackContents contents;
  contents.files["lottery.cu"] = emit_cuda(program, geometry, origin);
  contents.files["lottery.cl"] = emit_opencl(program, geometry, origin);
  contents.files["lottery.cpp"] = emit_host(program, geometry, origin);
  contents.files["lottery.metal"] = emit_metal(program, geometry, origin);
  contents.files[std::string(kVectorsFile)] = print_vectors(make_vectors(program, parameters, geometry));
  FURLONG_CHECK(seal_pack(contents, "lottery", print_fields(parameters, geometry)));
  return contents;
}

Result<std::shared_ptr<const Program>> program_of_pack(const PackContents& contents,
                                                       const std::filesystem::path& folder) {
  FURLONG_TRY(const Fields fields, read_fields(contents, folder));
  FURLONG_TRY(const std::string* vectors_text, file_of(contents, kVectorsFile, folder));
  FURLONG_TRY(const auto vectors, parse_vectors(*vectors_text, (folder / kVectorsFile).string()));
  FURLONG_TRY(Program program, shipped_program(contents, folder));
  FURLONG_CHECK_DOING(join_recipe(program, fields), "reading {}", (folder / kPackFile).string());
  for (const NonceVector& vector : vectors) program.vectors.push_back(program_vector(vector));
  program.epoch = to_hex(fields.parameters.epoch_seed).substr(0, kEpochDigits);
  program.day = fields.parameters.day;
  program.file.clear();
  return std::make_shared<const Program>(std::move(program));
}

}  // namespace furlong::program::lottery
