#include "furlong/program/lottery/vectors.h"

#include <algorithm>
#include <charconv>

#include "furlong/base/toml.h"
#include "furlong/program/lottery/reference.h"

namespace furlong::program::lottery {
namespace {

constexpr std::int64_t kVectorsFormat = 1;
constexpr std::size_t kMostNonces = 1u << 20;

/// Reads vectors.toml; every error names the place.
class VectorReader {
 public:
  explicit VectorReader(std::string_view where) : where_(where) {}

  template <class... A>
  Error error(const TomlNode& node, fmt::format_string<A...> format, A&&... args) const {
    return fail(Code::corrupt, "{}:{}:{}: {}", where_, node.line, node.column,
                fmt::format(format, std::forward<A>(args)...));
  }

  Result<const TomlNode*> member(const TomlNode& table, std::string_view key) const {
    const TomlNode* node = table.find(key);
    if (node == nullptr) return error(table, "the vector has no '{}'", key);
    return node;
  }

  /// Exactly `digits` hexadecimal digits.
  Result<std::uint64_t> hexadecimal(const TomlNode& node, std::size_t digits) const {
    const std::string* text = node.string();
    std::uint64_t value = 0;
    if (text != nullptr && text->size() == digits) {
      const auto [end, code] = std::from_chars(text->data(), text->data() + digits, value, 16);
      if (code == std::errc() && end == text->data() + digits) return value;
    }
    return error(node, "a string of {} hexadecimal digits must stand here", digits);
  }

  Result<NonceVector> vector(const TomlNode& table) const {
    NonceVector vector;
    FURLONG_TRY(const TomlNode* name, member(table, "name"));
    if (name->string() == nullptr) return error(*name, "the name must be a string");
    vector.name = *name->string();
    FURLONG_TRY(const TomlNode* start, member(table, "start"));
    FURLONG_TRY(vector.start, hexadecimal(*start, 16));
    FURLONG_TRY(const TomlNode* target, member(table, "target"));
    FURLONG_TRY(vector.target, hexadecimal(*target, 16));
    FURLONG_TRY(const TomlNode* hashes, member(table, "hashes"));
    if (!hashes->is_array() || hashes->array()->empty() || hashes->array()->size() > kMostNonces)
      return error(*hashes, "hashes must be an array of 1 to {} hashes", kMostNonces);
    for (const TomlNode& hash : *hashes->array()) {
      FURLONG_TRY(const std::uint64_t value, hexadecimal(hash, 16));
      vector.hashes.push_back(value);
    }
    FURLONG_CHECK(check_hits(table, vector));
    return vector;
  }

 private:
  Status check_hits(const TomlNode& table, const NonceVector& vector) const {
    FURLONG_TRY(const TomlNode* hits, member(table, "hits"));
    const std::vector<std::uint32_t> expected = vector.hits();
    if (!hits->is_array() || hits->array()->size() != expected.size())
      return error(*hits, "hits must be an array of {} words", expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const TomlNode& node = (*hits->array())[i];
      FURLONG_TRY(const std::uint64_t word, hexadecimal(node, 8));
      if (word != expected[i])
        return error(node, "hits word {} is {:08x}, but the hashes under the target make it {:08x}", i, word,
                     expected[i]);
    }
    return {};
  }

  std::string_view where_;
};

template <class T>
Bytes little_endian(const std::vector<T>& words) {
  Bytes bytes(words.size() * sizeof(T));
  for (std::size_t i = 0; i < words.size(); ++i) store_le(&bytes[i * sizeof(T)], words[i]);
  return bytes;
}

}  // namespace

std::vector<std::uint32_t> NonceVector::hits() const {
  std::vector<std::uint32_t> words((hashes.size() + 31) / 32);
  for (std::size_t i = 0; i < hashes.size(); ++i)
    if (hashes[i] < target) words[i / 32] |= 1u << (i % 32);
  return words;
}

std::vector<NonceVector> make_vectors(const LotteryProgram& program, const Parameters& parameters,
                                      const Geometry& geometry) {
  struct Range {
    std::string_view name;
    std::uint64_t start;
    std::uint32_t count;
  };
  const auto of_seed = load_le<std::uint64_t>(parameters.epoch_seed.data());
  const Range ranges[] = {{"from 0", 0, 32},
                          {"from the seed's first 8 bytes", of_seed, 32},
                          {"across 2^32", 0xfffffff0ull, 32},
                          {"across 2^64", 0xfffffffffffffff0ull, 32},
                          {"a ragged count", 0x0123456789abcdefull, 45}};
  const Cache cache(parameters, geometry.cache_lines());
  std::vector<NonceVector> vectors;
  for (const Range& range : ranges) {
    NonceVector& vector = vectors.emplace_back();
    vector.name = range.name;
    vector.start = range.start;
    vector.hashes =
        reference_hashes(program, range.start, range.count, geometry.dataset_words(), light_rows(cache), 1);
    std::vector<std::uint64_t> sorted = vector.hashes;
    std::ranges::sort(sorted);
    vector.target = sorted[sorted.size() / 4];  // the comparison is strict, so a quarter are hits
  }
  return vectors;
}

std::string print_vectors(const std::vector<NonceVector>& vectors) {
  std::string out = fmt::format("format = {}\n", kVectorsFormat);
  for (const NonceVector& vector : vectors) {
    out += fmt::format("\n[[vector]]\nname = \"{}\"\nstart = \"{:016x}\"\ntarget = \"{:016x}\"\nhashes = [\n",
                       vector.name, vector.start, vector.target);
    for (std::size_t i = 0; i < vector.hashes.size(); ++i)
      out += fmt::format("{}\"{:016x}\",{}", i % 4 == 0 ? "  " : " ", vector.hashes[i],
                         i % 4 == 3 || i + 1 == vector.hashes.size() ? "\n" : "");
    out += "]\nhits = [";
    for (const std::uint32_t word : vector.hits()) out += fmt::format("\"{:08x}\", ", word);
    out.resize(out.size() - 2);
    out += "]\n";
  }
  return out;
}

Result<std::vector<NonceVector>> parse_vectors(std::string_view text, std::string_view where) {
  auto root = toml_parse(text, where);
  if (!root) return Error(Code::corrupt, root.error().message());
  const VectorReader reader(where);
  const TomlNode* format = root->find("format");
  if (format == nullptr || format->integer() == nullptr) return reader.error(*root, "'format' is missing");
  if (*format->integer() != kVectorsFormat)
    return fail(Code::incompatible, "{}: vectors of format {}, but this build reads format {}", where,
                *format->integer(), kVectorsFormat);
  const TomlNode* list = root->find("vector");
  if (list == nullptr || !list->is_array() || list->array()->empty())
    return reader.error(*root, "there is no [[vector]]");
  std::vector<NonceVector> vectors;
  for (const TomlNode& node : *list->array()) {
    if (!node.is_table()) return reader.error(node, "a vector must be a table");
    FURLONG_TRY(NonceVector vector, reader.vector(node));
    vectors.push_back(std::move(vector));
  }
  return vectors;
}

Vector program_vector(const NonceVector& vector) {
  Vector out;
  out.name = vector.name;
  out.inputs["start"] = little_endian(std::vector{vector.start});
  out.inputs["target"] = little_endian(std::vector{vector.target});
  out.scalars["count"] = static_cast<std::int64_t>(vector.hashes.size());
  out.expected["hashes"] = little_endian(vector.hashes);
  out.expected["hits"] = little_endian(vector.hits());
  return out;
}

}  // namespace furlong::program::lottery
