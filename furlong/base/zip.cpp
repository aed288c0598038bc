#include "furlong/base/zip.h"

#include <zlib.h>

#include <algorithm>
#include <limits>

namespace furlong {
namespace {

// As the library's functions take the window's size: 16 more stands for gzip's frame.
constexpr int zlib_window = 15;
constexpr int gzip_window = 15 + 16;
constexpr std::size_t piece = 1u << 30;  // its counters are 32 bits wide

Bytef* bytes_of(const char* data) { return reinterpret_cast<Bytef*>(const_cast<char*>(data)); }

struct Deflater {
  z_stream stream{};
  ~Deflater() { deflateEnd(&stream); }
};

struct Inflater {
  z_stream stream{};
  ~Inflater() { inflateEnd(&stream); }
};

Result<std::string> compress(std::string_view bytes, int window, Zip effort) {
  Deflater one;
  const int level = effort == Zip::quick ? Z_BEST_SPEED : Z_DEFAULT_COMPRESSION;
  if (deflateInit2(&one.stream, level, Z_DEFLATED, window, 8, Z_DEFAULT_STRATEGY) != Z_OK)
    return fail(Code::exhausted, "compressing {} bytes: not enough memory", bytes.size());
  std::string out;
  std::size_t taken = 0, made = 0;
  for (int result = Z_OK; result != Z_STREAM_END;) {
    const std::size_t now = std::min(bytes.size() - taken, piece);
    one.stream.next_in = bytes_of(bytes.data() + taken);
    one.stream.avail_in = static_cast<uInt>(now);
    out.resize(made + std::max<std::size_t>(4096, std::min(bytes.size() / 2, piece)));
    one.stream.next_out = bytes_of(out.data() + made);
    one.stream.avail_out = static_cast<uInt>(out.size() - made);
    result = ::deflate(&one.stream, taken + now == bytes.size() ? Z_FINISH : Z_NO_FLUSH);
    taken += now - one.stream.avail_in;
    made = out.size() - one.stream.avail_out;
    if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR)
      return fail(Code::internal, "compressing {} bytes: zlib's error {}", bytes.size(), result);
  }
  out.resize(made);
  return out;
}

Result<std::string> expand(std::string_view bytes, std::size_t most_bytes, int window) {
  Inflater one;
  if (inflateInit2(&one.stream, window) != Z_OK)
    return fail(Code::exhausted, "decompressing {} bytes: not enough memory", bytes.size());
  const auto damaged = [&](std::size_t at, std::string_view why) {
    return fail(Code::corrupt, "compressed data, byte {}: {}", at, why);
  };
  std::string out;
  std::size_t taken = 0, made = 0;
  // One byte more than allowed shows that there is more; a few times the input is the usual.
  const std::size_t most = most_bytes < std::numeric_limits<std::size_t>::max() ? most_bytes + 1 : most_bytes;
  for (int result = Z_OK; result != Z_STREAM_END;) {
    const std::size_t now = std::min(bytes.size() - taken, piece);
    if (made == out.size())
      out.resize(
          std::min(most, made + std::max({made, std::size_t{4096}, std::min(bytes.size() * 4, piece)})));
    const std::size_t room = std::min(out.size() - made, piece);
    one.stream.next_in = bytes_of(bytes.data() + taken);
    one.stream.avail_in = static_cast<uInt>(now);
    one.stream.next_out = bytes_of(out.data() + made);
    one.stream.avail_out = static_cast<uInt>(room);
    result = ::inflate(&one.stream, Z_NO_FLUSH);
    taken += now - one.stream.avail_in;
    made += room - one.stream.avail_out;
    if (made > most_bytes)
      return fail(Code::exhausted, "compressed data: it holds more than the {} bytes that are allowed",
                  most_bytes);
    if (result == Z_MEM_ERROR)
      return fail(Code::exhausted, "decompressing {} bytes: not enough memory", bytes.size());
    if (result == Z_NEED_DICT) return damaged(taken, "it needs a dictionary");
    if (result == Z_DATA_ERROR || result == Z_STREAM_ERROR)
      return damaged(taken, one.stream.msg != nullptr ? one.stream.msg : "not zlib's");
    if (result != Z_STREAM_END && taken == bytes.size() && one.stream.avail_out != 0)
      return damaged(taken, "it is cut off here");
  }
  if (taken != bytes.size()) return damaged(taken, "bytes after the end");
  out.resize(made);
  return out;
}

}  // namespace

Result<std::string> gzip(std::string_view bytes, Zip effort) { return compress(bytes, gzip_window, effort); }
Result<std::string> deflate(std::string_view bytes, Zip effort) {
  return compress(bytes, zlib_window, effort);
}
Result<std::string> inflate_gzip(std::string_view bytes, std::size_t most_bytes) {
  return expand(bytes, most_bytes, gzip_window);
}
Result<std::string> inflate(std::string_view bytes, std::size_t most_bytes) {
  return expand(bytes, most_bytes, zlib_window);
}

}  // namespace furlong
