#pragma once
// The system's C++ compiler as a child process, and the cache of what it made.

#include <filesystem>
#include <string>
#include <vector>

#include "furlong/base/os/library.h"
#include "furlong/device/device.h"

namespace furlong::device::host {

struct Compiler {
  std::vector<std::string> command;  ///< program and first arguments, such as {"g++"}
  std::string version;               ///< first line of --version
};

/// $FURLONG_CXX (split at spaces), else the first of c++, g++, clang++ that answers --version.
/// `unavailable` says what to install.
Result<Compiler> find_compiler();

/// A loaded shared object.
struct Compiled {
  Library object;
  std::string log;  ///< warnings
  std::string code_hash;
  bool from_cache = false;
};

/// Compiles `unit` (a whole translation unit) with -O2 -march=native -std=c++20, then the request's
/// options, and loads it. Objects are kept under `cache` by a hash of everything that decides the code:
/// text, options, compiler and `cpu_identity`, and the preprocessed text where other headers than the
/// compiler's own are included. Safe against other processes: objects appear by rename. A cache that cannot
/// be written is only a warning; objects are kept with their digest, and a damaged one is compiled anew.
/// `invalid` with the compiler's log, and when the options make no shared library or it cannot be loaded;
/// `exhausted` when the temporary folder is full; `timeout` when stopped. Thread safe.
Result<Compiled> compile_unit(const Compiler& compiler, const CompileRequest& request,
                              const std::string& unit, std::string_view cpu_identity,
                              const std::filesystem::path& cache, std::stop_token stop);

/// Removes the oldest objects, down to three quarters of `most`, when there are more than `most`. What cannot
/// be removed stays: another process may be at it. Also what a killed process left half written, after an
/// hour.
void prune_cache(const std::filesystem::path& cache, std::size_t most);

}  // namespace furlong::device::host
