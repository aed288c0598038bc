#pragma once
// NVIDIA's run-time compiler: CUDA text to machine code. It needs no card and no driver, only the library,
// which is opened at run time through a symbol table of our own (no CUDA header is used to build).

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "furlong/base/bytes.h"
#include "furlong/base/error.h"
#include "furlong/device/device.h"

namespace furlong::device {

/// Machine code for one architecture.
struct Cubin {
  Bytes image;                       ///< an ELF object, as the driver loads it
  std::vector<std::string> lowered;  ///< for each entry of the request, its name in the image
  std::string log;                   ///< warnings, and what the assembler says of registers
  std::optional<int> registers;      ///< the largest over the entries, as the next two
  std::optional<std::uint64_t> spill_bytes;
  std::optional<std::uint64_t> shared_bytes;  ///< static
  std::string code_hash;                      ///< of the image, 32 hexadecimal digits
  double compile_ms = 0;
};

/// A compiler as a cache sees it.
struct CompilerIdentity {
  std::string text;                                    ///< differs between any two compilers of this machine
  std::vector<std::filesystem::path> toolkit_folders;  ///< its own headers, which change only with it
};

/// An opened library; copies share it. Every call is thread safe, compile() may run on several threads.
class Nvrtc {
 public:
  /// The first that opens of: $FURLONG_NVRTC (a file), the loader's path, the CUDA installations of this
  /// machine
  /// ($CUDA_HOME, $CUDA_PATH, /usr/local/cuda*), newest first. `unavailable` says what to install.
  static Result<Nvrtc> open();
  /// A given library. `incompatible` names the function that a too old one lacks (11.2 has them all).
  static Result<Nvrtc> open(const std::filesystem::path& library);
  /// Every library that opens, each once: the one of $FURLONG_NVRTC alone where that is set (the error of
  /// open() when it does not open), else of all the places above. May be empty.
  static Result<std::vector<Nvrtc>> all();
  /// The libraries of the CUDA installations of this machine, newest first: where a driver cannot run the
  /// code of the newest, an older one is taken.
  static std::vector<std::filesystem::path> installed();

  int major() const;
  int minor() const;
  /// "NVRTC 13.0"
  std::string version() const;
  /// The file that was opened.
  const std::string& name() const;
  /// What decides the code besides a request: version, files of the library with their sizes and dates.
  const CompilerIdentity& identity() const;
  /// "sm_75", "sm_80", … ascending; empty when the library does not tell.
  std::vector<std::string> architectures() const;

  /// Compiles for `arch` ("sm_90"). The request's options follow ours (registers in the log) and reach the
  /// library as they are, one argument each; the toolkit's headers are found where it is installed. `invalid`
  /// with the compiler's log, or for an architecture that this library does not know; `timeout` when stopped.
  Result<Cubin> compile(const CompileRequest& request, std::string_view arch,
                        std::stop_token stop = {}) const;

 private:
  struct Loaded;
  explicit Nvrtc(std::shared_ptr<const Loaded> loaded) : loaded_(std::move(loaded)) {}
  std::shared_ptr<const Loaded> loaded_;
};

}  // namespace furlong::device
