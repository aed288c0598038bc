#pragma once
// Machine code that NVRTC made, kept on disk, so that a text is compiled once per machine. The format is
// docs/formats/cuda-code.md.

#include <atomic>
#include <filesystem>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "furlong/base/os/file.h"
#include "furlong/device/cuda/nvrtc.h"

namespace furlong::device {

struct CodeCacheLimits {
  std::size_t entries = 4096;
  std::uint64_t bytes = 1ull << 30;
};

/// A folder of entries, one file each, shared by any number of threads and processes: entries appear by
/// rename and carry a digest, so a reader sees a whole entry or none. It never fails: what cannot be read is
/// a miss, what cannot be written is not kept, and either costs one warning. Thread safe.
class CodeCache {
 public:
  explicit CodeCache(std::filesystem::path folder, CodeCacheLimits limits = {},
                     Files& files = system_files());

  /// Nothing when it is absent, damaged (with a warning), or of another version. `compile_ms` is what the
  /// compile took when it was made. A read entry counts as new when the oldest are dropped.
  std::optional<Cubin> load(const std::string& key);
  /// Every 64th time also drops the oldest entries, down to three quarters of the limit that is passed.
  void store(const std::string& key, const Cubin& cubin);
  /// Drops the oldest entries as above, and after an hour what a killed process left half written.
  void prune();

  /// 64 hexadecimal digits over all that decides the code: the text and its shown name, entries, defines,
  /// options, include folders, the bytes of every header that the text could reach, the compiler's files and
  /// the architecture. `unavailable`, with the reason, where the headers cannot be known (see
  /// include_scan.h): compile without the cache then.
  static Result<std::string> key(const CompileRequest& request, const Nvrtc& nvrtc, std::string_view arch);
  static Result<std::string> key(const CompileRequest& request, const CompilerIdentity& compiler,
                                 std::string_view arch);

 private:
  std::filesystem::path file(const std::string& key) const;
  std::filesystem::path folder_;
  CodeCacheLimits limits_;
  Files& files_;
  std::atomic<unsigned> stores_{0};
  std::atomic<bool> told_{false};
};

struct CachedCubin {
  Cubin cubin;
  bool from_cache = false;
};
/// Nvrtc::compile, with its errors, through the cache: what a back end calls. `compile_ms` is what it took
/// now. Nothing is kept when a header changed during the compile. A kept entry without code, or with other
/// than one name for each of the request's entries, is compiled anew, with a warning. Thread safe.
Result<CachedCubin> compile_through(CodeCache& cache, const Nvrtc& nvrtc, const CompileRequest& request,
                                    std::string_view arch, std::stop_token stop = {});

/// An entry's bytes.
std::string print_code_entry(const std::string& key, const Cubin& cubin);
/// `corrupt` names the byte; `incompatible` names the versions found and expected.
Result<Cubin> parse_code_entry(const std::string& key, std::string_view bytes);

}  // namespace furlong::device
