#pragma once
// zlib's formats, bounded: the only file that includes zlib.h is this one's .cpp. Pure functions, safe from
// any thread; the memory that they take is that of the result and about 300 KiB.

#include <cstddef>
#include <string>
#include <string_view>

#include "furlong/base/error.h"

namespace furlong {

/// How much work to put into it: `quick` for what is written while somebody waits.
enum class Zip { quick, usual };

/// One gzip member (RFC 1952), without name or time: the same bytes and effort give the same result.
/// `exhausted` without memory.
Result<std::string> gzip(std::string_view bytes, Zip effort = Zip::usual);
/// zlib's format (RFC 1950), which HTTP calls "deflate".
Result<std::string> deflate(std::string_view bytes, Zip effort = Zip::usual);

/// What was compressed. `exhausted` beyond `most_bytes`, and then no more than that was held; `corrupt` for a
/// bad checksum, a cut, what is no gzip, and bytes after the one member, with the byte at which it was found.
Result<std::string> inflate_gzip(std::string_view bytes, std::size_t most_bytes);
/// The same of zlib's format.
Result<std::string> inflate(std::string_view bytes, std::size_t most_bytes);

}  // namespace furlong
