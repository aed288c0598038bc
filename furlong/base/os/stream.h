#pragma once
// Files too large to hold: read line by line, written piece by piece.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "furlong/base/error.h"

namespace furlong {

/// Lines of a file or of standard input. Memory does not grow with the file. For one thread.
class LineReader {
 public:
  /// "-" is standard input; pipes are read too. Errors as Files::read, but that a pipe is none.
  static Result<LineReader> open(const std::filesystem::path& path, std::size_t most_line_bytes = 1u << 20);
  ~LineReader();
  LineReader(LineReader&&) noexcept;
  LineReader& operator=(LineReader&&) noexcept;

  struct Line {
    std::string_view text;  ///< without its newline; valid until the next call
    int number = 0;         ///< from 1
    bool too_long = false;  ///< `text` is its beginning, the rest was skipped
  };
  /// The next line, also a last one without a newline; nullopt at the end, or when `stop` was asked for.
  Result<std::optional<Line>> next(const std::stop_token& stop = {});
  std::uint64_t bytes_read() const;
  /// Of a regular file; else nullopt.
  std::optional<std::uint64_t> size() const;

 private:
  struct State;
  explicit LineReader(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// A file that appears whole, or not at all: pieces go to a temporary file in its folder, commit() syncs it
/// and gives it its name. Without commit() the temporary file is removed. Errors as Files::write_atomic. For
/// one thread.
class FileWriter {
 public:
  /// Folders are made. What is no regular file (/dev/stdout, a pipe) is written to directly.
  static Result<FileWriter> open(const std::filesystem::path& path);
  ~FileWriter();
  FileWriter(FileWriter&&) noexcept;
  FileWriter& operator=(FileWriter&&) noexcept;
  Status write(std::string_view bytes);
  Status commit();

 private:
  struct State;
  explicit FileWriter(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace furlong
