#include "furlong/fleet/store/postgres/internal/wire.h"

#include <bit>

#include "furlong/base/text.h"

namespace furlong::fleet::postgres {
namespace {

// Of pg_type, which never changes them.
constexpr Oid bytea_type = 17, big_type = 20, text_type = 25, double_type = 701;

std::uint64_t swapped(std::uint64_t value) { return __builtin_bswap64(value); }

bool holds(std::string_view text) { return text.find('\0') == std::string_view::npos && is_valid_utf8(text); }

std::string mended(std::string_view text) {
  std::string kept;
  while (!text.empty()) {
    // The longest character first: what is none in any length is replaced byte by byte.
    std::size_t length = std::min<std::size_t>(4, text.size());
    while (length > 0 && !holds(text.substr(0, length))) --length;
    kept += length == 0 ? "?" : text.substr(0, length);
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return kept;
}

}  // namespace

Oid type_of(const sql::Value& value) {
  struct {
    Oid operator()(std::int64_t) const { return big_type; }
    Oid operator()(double) const { return double_type; }
    Oid operator()(std::string_view) const { return text_type; }
    Oid operator()(ByteView) const { return bytea_type; }
  } visitor;
  return std::visit(visitor, value);
}

Parameters::Parameters(std::span<const sql::Value> values) : formats_(values.size(), 1) {
  numbers_.reserve(values.size());  // pointers into both are kept
  mended_.reserve(values.size());
  for (const sql::Value& value : values) {
    if (const auto* integer = std::get_if<std::int64_t>(&value)) {
      numbers_.push_back(swapped(static_cast<std::uint64_t>(*integer)));
      add(reinterpret_cast<const char*>(&numbers_.back()), 8);
    } else if (const auto* number = std::get_if<double>(&value)) {
      numbers_.push_back(swapped(std::bit_cast<std::uint64_t>(*number)));
      add(reinterpret_cast<const char*>(&numbers_.back()), 8);
    } else if (const auto* text = std::get_if<std::string_view>(&value)) {
      if (holds(*text)) {
        add(text->data(), text->size());
      } else {
        mended_.push_back(mended(*text));
        add(mended_.back().data(), mended_.back().size());
      }
    } else {
      const std::string_view bytes = as_text(std::get<ByteView>(value));
      add(bytes.data(), bytes.size());
    }
  }
}

void Parameters::add(const char* data, std::size_t size) {
  values_.push_back(data == nullptr ? "" : data);  // a null pointer would be NULL
  lengths_.push_back(static_cast<int>(size));
}

std::int64_t PostgresRow::integer(int column) const {
  const std::string_view bytes = text(column);
  if (bytes.size() == 8) return static_cast<std::int64_t>(swapped(load_le<std::uint64_t>(bytes.data())));
  if (bytes.size() == 4)
    return static_cast<std::int32_t>(__builtin_bswap32(load_le<std::uint32_t>(bytes.data())));
  return 0;
}

std::string_view PostgresRow::text(int column) const {
  return {libpq_->value(result_, row_, column),
          static_cast<std::size_t>(libpq_->length(result_, row_, column))};
}

Code code_of_state(std::string_view state) {
  const std::string_view of_class = state.substr(0, 2);
  if (of_class == "08" || state == "57P01" || state == "57P02" || state == "57P03" || state == "25P03" ||
      of_class == "3D")
    return Code::unavailable;
  if (of_class == "53" || state == "54000") return Code::exhausted;
  if (of_class == "28" || state == "42501" || state == "25006") return Code::denied;
  if (state == "55P03" || state == "57014" || of_class == "40") return Code::timeout;
  if (of_class == "XX" || state == "58P01" || state == "42P01" || state == "42703") return Code::corrupt;
  if (of_class == "22") return Code::invalid;
  return Code::internal;
}

Code code_of_words(std::string_view words) {
  for (const std::string_view refusal :
       {"authentication failed", "no password supplied", "no pg_hba.conf entry", "permission denied for"})
    if (words.find(refusal) != std::string_view::npos) return Code::denied;
  return Code::unavailable;
}

}  // namespace furlong::fleet::postgres
