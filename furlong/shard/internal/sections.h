#pragma once
// The one writer and reader of Furlong's binary files of sections: plans and profiles.

#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "furlong/base/bytes.h"
#include "furlong/base/hash.h"

namespace furlong::shard::sections {

/// The bytes of a file of sections (tag, length, body), written front to back. One thread at a time.
class Out {
 public:
  template <class T>
  Out& number(T value) {
    char bytes[sizeof value];
    store_le(bytes, value);
    text_.append(bytes, sizeof value);
    return *this;
  }
  Out& raw(std::string_view bytes) {
    text_ += bytes;
    return *this;
  }
  Out& text(std::string_view value) { return number(static_cast<std::uint32_t>(value.size())).raw(value); }
  Out& digest(const Digest& value) { return raw(as_text(value.bytes)); }
  /// As they are, without their number.
  template <class T>
  Out& numbers(const std::vector<T>& values) {
    return raw(as_text({reinterpret_cast<const std::uint8_t*>(values.data()), values.size() * sizeof(T)}));
  }
  Out& section(std::string_view tag, const Out& body) {
    return raw(tag).number(std::uint64_t{body.text_.size()}).raw(body.text_);
  }
  std::string take() { return std::move(text_); }
  const std::string& bytes() const { return text_; }

 private:
  std::string text_;
};

/// Reads them, with every length checked against what is left, so that a damaged length takes no memory.
/// Errors are `corrupt` with the byte for what is torn, `incompatible` for an unknown tag. One thread at a
/// time.
class In {
 public:
  /// `name` is the file's, `mend` what to do about one of another version ("regenerate it with …"). All three
  /// must live as long.
  In(std::string_view bytes, const std::string& name, std::string_view mend, std::size_t offset = 0)
      : bytes_(bytes), name_(name), mend_(mend), offset_(offset) {}

  std::size_t left() const { return bytes_.size() - at_; }
  std::size_t byte() const { return offset_ + at_; }
  const std::string& name() const { return name_; }
  std::string_view mend() const { return mend_; }

  Result<std::string_view> raw(std::uint64_t count, std::string_view what) {
    if (count > left())
      return fail(Code::corrupt, "{}: byte {}: torn: {} needs {} bytes, {} are left", name_, byte(), what,
                  count, left());
    const std::string_view part = bytes_.substr(at_, count);
    at_ += count;
    return part;
  }
  template <class T>
  Result<T> number(std::string_view what) {
    FURLONG_TRY(const std::string_view part, raw(sizeof(T), what));
    return load_le<T>(part.data());
  }
  Result<double> amount(std::string_view what) {
    const std::size_t start = byte();
    FURLONG_TRY(const double value, number<double>(what));
    if (!std::isfinite(value) || value < 0 || std::signbit(value))
      return fail(Code::invalid, "{}: byte {}: {} of {} cannot be", name_, start, what, value);
    return value;
  }
  /// Finite, not negative.
  Result<std::vector<double>> amounts(std::uint64_t count, std::string_view what) {
    const std::size_t start = byte();
    FURLONG_TRY(auto list, numbers<double>(count, what));
    for (std::size_t i = 0; i < list.size(); ++i)
      if (!std::isfinite(list[i]) || std::signbit(list[i]))
        return fail(Code::invalid, "{}: byte {}: {} of {} cannot be", name_, start + i * sizeof(double), what,
                    list[i]);
    return list;
  }
  Result<std::string> text(std::string_view what) {
    FURLONG_TRY(const auto length, number<std::uint32_t>(what));
    FURLONG_TRY(const std::string_view part, raw(length, what));
    return std::string(part);
  }
  Result<Digest> digest(std::string_view what) {
    Digest digest;
    FURLONG_TRY(const std::string_view part, raw(sizeof digest.bytes, what));
    std::memcpy(digest.bytes.data(), part.data(), part.size());
    return digest;
  }
  /// Nothing is allocated that the bytes do not back.
  template <class T = std::uint32_t>
  Result<std::vector<T>> numbers(std::uint64_t count, std::string_view what) {
    if (count > left() / sizeof(T))
      return fail(Code::corrupt, "{}: byte {}: torn: {} needs {} numbers, {} bytes are left", name_, byte(),
                  what, count, left());
    FURLONG_TRY(const std::string_view part, raw(count * sizeof(T), what));
    std::vector<T> list(count);
    if (count > 0) std::memcpy(list.data(), part.data(), part.size());
    return list;
  }
  Result<In> section(std::string_view tag) {
    const std::size_t start = byte();
    FURLONG_TRY(const std::string_view found, raw(tag.size(), "a section's tag"));
    if (found != tag)
      return fail(Code::incompatible, "{}: byte {}: found the unknown tag {}, expected {}: {}", name_, start,
                  to_hex(as_bytes(found)), tag, mend_);
    FURLONG_TRY(const auto length, number<std::uint64_t>("a section's length"));
    const std::size_t body = byte();
    FURLONG_TRY(const std::string_view part, raw(length, fmt::format("the section {}", tag)));
    return In(part, name_, mend_, body);
  }
  Status done(std::string_view what) const {
    if (left() == 0) return {};
    return fail(Code::corrupt, "{}: byte {}: {} bytes too many in {}", name_, byte(), left(), what);
  }

 private:
  std::string_view bytes_;
  const std::string& name_;
  std::string_view mend_;
  std::size_t offset_;
  std::size_t at_ = 0;
};

}  // namespace furlong::shard::sections
