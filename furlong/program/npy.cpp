#include "furlong/program/npy.h"

#include <algorithm>
#include <optional>

#include "furlong/base/text.h"

namespace furlong::program {
namespace {

constexpr std::string_view kMagic("\x93NUMPY", 6);
constexpr std::size_t kLongestHeader = 1u << 20;

struct NpyHeader {
  ElementType type = ElementType::u8;
  bool swapped = false;
  bool fortran = false;
  std::vector<std::uint64_t> shape;
};

// The header is a Python dict literal; this reads the forms that NumPy writes, in any key order.
class HeaderParser {
 public:
  HeaderParser(std::string_view text, std::size_t start) : text_(text), start_(start) {}

  Result<NpyHeader> parse() {
    if (!accept('{')) return error("'{'");
    bool has_type = false;
    bool has_order = false;
    bool has_shape = false;
    while (!accept('}')) {
      FURLONG_TRY(const std::string key, quoted());
      if (!accept(':')) return error("':'");
      bool* seen = nullptr;
      if (key == "descr") {
        seen = &has_type;
        FURLONG_CHECK(type());
      } else if (key == "fortran_order") {
        seen = &has_order;
        FURLONG_TRY(header_.fortran, boolean());
      } else if (key == "shape") {
        seen = &has_shape;
        FURLONG_CHECK(shape());
      } else {
        return fail(Code::invalid, "unknown key '{}' in the .npy header", key);
      }
      if (std::exchange(*seen, true))
        return fail(Code::invalid, "the key '{}' stands twice in the .npy header", key);
      if (!accept(',') && peek() != '}') return error("',' or '}'");
    }
    if (!has_type || !has_order || !has_shape)
      return fail(Code::invalid, "the .npy header lacks {}",
                  !has_type    ? "descr"
                  : !has_order ? "fortran_order"
                               : "shape");
    if (!trim(text_.substr(at_)).empty()) return error("the header's end");
    return std::move(header_);
  }

 private:
  char peek() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t')) ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool accept(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }
  bool accept(std::string_view word) {
    peek();
    if (!text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }
  Error error(std::string_view wanted) const {
    return fail(Code::corrupt, "byte {} of the .npy header: {} should stand here", start_ + at_, wanted);
  }

  Result<std::string> quoted() {
    const char quote = peek();
    if (quote != '\'' && quote != '"') return error("a word in quotes");
    const std::size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) return error("a word in quotes");
    std::string word(text_.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
    return word;
  }

  Result<bool> boolean() {
    if (accept(std::string_view("True"))) return true;
    if (accept(std::string_view("False"))) return false;
    return error("True or False");
  }

  Status type() {
    if (peek() == '[') return fail(Code::invalid, "the .npy file has records; Furlong reads plain numbers");
    FURLONG_TRY(const std::string text, quoted());
    const bool known = text.size() == 3 && std::string_view("<>|=").find(text[0]) != std::string_view::npos;
    std::string name;
    if (known) {
      const int bits = (text[2] - '0') * 8;
      if (text[1] == 'b' && text[2] == '1') name = "u8";
      if (std::string_view("iuf").find(text[1]) != std::string_view::npos)
        name = fmt::format("{}{}", text[1], bits);
    }
    const auto parsed = parse_element(name);
    if (!parsed)
      return fail(Code::invalid,
                  "the .npy file has elements of type '{}'; Furlong reads i1 to i8, u1 to u8, f2, f4, f8 "
                  "and b1",
                  text.substr(0, 40));
    header_.type = *parsed;
    header_.swapped = text[0] == '>';
    return {};
  }

  Status shape() {
    if (!accept('(')) return error("'('");
    while (!accept(')')) {
      if (peek() < '0' || peek() > '9') return error("a dimension");
      std::uint64_t dimension = 0;
      while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') {
        const auto digit = static_cast<std::uint64_t>(text_[at_] - '0');
        if (__builtin_mul_overflow(dimension, std::uint64_t{10}, &dimension) ||
            __builtin_add_overflow(dimension, digit, &dimension))
          return error("a dimension of at most 64 bits");
        ++at_;
      }
      header_.shape.push_back(dimension);
      if (header_.shape.size() > 64) return error("at most 64 dimensions");
      if (!accept(',') && peek() != ')') return error("',' or ')'");
    }
    return {};
  }

  std::string_view text_;
  std::size_t start_;
  std::size_t at_ = 0;
  NpyHeader header_;
};

std::optional<std::uint64_t> bytes_of(ElementType type, std::span<const std::uint64_t> shape) {
  // A dimension of 0 makes the product 0, whatever the others would overflow to.
  if (std::find(shape.begin(), shape.end(), std::uint64_t{0}) != shape.end()) return 0;
  std::uint64_t bytes = element_bytes(type);
  for (const std::uint64_t dimension : shape)
    if (__builtin_mul_overflow(bytes, dimension, &bytes)) return std::nullopt;
  return bytes;
}

void swap_elements(Bytes& bytes, std::size_t size) {
  for (std::size_t i = 0; i + size <= bytes.size(); i += size)
    std::reverse(bytes.begin() + static_cast<std::ptrdiff_t>(i),
                 bytes.begin() + static_cast<std::ptrdiff_t>(i + size));
}

}  // namespace

Result<DataFile> parse_npy(ByteView file) {
  if (!as_text(file).starts_with(kMagic))
    return fail(Code::corrupt, "byte 0: no .npy file (its magic is missing)");
  if (file.size() < 10) return fail(Code::corrupt, "byte {}: the .npy file ends in its header", file.size());
  const int major = file[6];
  if (major < 1 || major > 3)
    return fail(Code::incompatible, "found .npy format {}, expected 1, 2 or 3", major);
  const std::size_t start = major == 1 ? 10 : 12;
  if (file.size() < start)
    return fail(Code::corrupt, "byte {}: the .npy file ends in its header", file.size());
  const std::size_t length =
      major == 1 ? load_le<std::uint16_t>(file.data() + 8) : load_le<std::uint32_t>(file.data() + 8);
  if (length > kLongestHeader)
    return fail(Code::invalid, "the .npy header has {} bytes; at most {} are read", length, kLongestHeader);
  if (file.size() - start < length)
    return fail(Code::corrupt, "byte {}: the .npy file ends in its header", file.size());
  FURLONG_TRY(const NpyHeader header, HeaderParser(as_text(file.subspan(start, length)), start).parse());
  if (header.fortran && header.shape.size() > 1)
    return fail(Code::invalid, "the .npy array is in Fortran order; save it with numpy.ascontiguousarray");
  const auto expected = bytes_of(header.type, header.shape);
  const ByteView data = file.subspan(start + length);
  if (!expected || *expected != data.size())
    return fail(Code::corrupt, "byte {}: the .npy file has {} bytes of elements, its shape needs {}",
                file.size(), data.size(),
                expected ? fmt::format("{}", *expected) : "more than 64 bits can say");
  DataFile result{.type = header.type, .shape = header.shape, .bytes = Bytes(data.begin(), data.end())};
  if (header.swapped) swap_elements(result.bytes, element_bytes(header.type));
  return result;
}

Result<Bytes> write_npy(ElementType type, std::span<const std::uint64_t> shape, ByteView bytes) {
  const auto expected = bytes_of(type, shape);
  if (!expected || *expected != bytes.size())
    return fail(Code::invalid, "{} bytes do not fit the shape of an .npy file", bytes.size());
  const std::string_view name = element_name(type);
  std::string header = fmt::format("{{'descr': '{}{}{}', 'fortran_order': False, 'shape': (",
                                   element_bytes(type) == 1 ? '|' : '<', name[0], element_bytes(type));
  for (const std::uint64_t dimension : shape) header += fmt::format("{}, ", dimension);
  if (shape.size() > 1) header.resize(header.size() - 2);
  if (shape.size() == 1) header.resize(header.size() - 1);
  header += "), }";
  // The elements start at a multiple of 64 bytes, the header ends in a newline.
  while ((10 + header.size() + 1) % 64 != 0) header += ' ';
  header += '\n';
  if (header.size() > 65535)
    return fail(Code::invalid, "{} dimensions are too many for an .npy file", shape.size());
  Bytes file(kMagic.begin(), kMagic.end());
  file.insert(file.end(), {1, 0, static_cast<std::uint8_t>(header.size() & 255),
                           static_cast<std::uint8_t>(header.size() >> 8)});
  file.insert(file.end(), header.begin(), header.end());
  file.insert(file.end(), bytes.begin(), bytes.end());
  return file;
}

Result<DataFile> parse_data_file(ByteView file, bool named_npy) {
  if (named_npy || as_text(file).starts_with(kMagic)) return parse_npy(file);
  return DataFile{.type = std::nullopt, .shape = {}, .bytes = Bytes(file.begin(), file.end())};
}

}  // namespace furlong::program
