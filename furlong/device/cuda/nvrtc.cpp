#include "furlong/device/cuda/nvrtc.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>

#include "furlong/base/hash.h"
#include "furlong/base/os/clock.h"
#include "furlong/base/os/library.h"
#include "furlong/base/text.h"
#include "furlong/device/ptxas_log.h"
#include "furlong/device/request.h"

namespace furlong::device {
namespace {

namespace fs = std::filesystem;

using Program = struct NvrtcProgramTag*;
using Code32 = int;  // nvrtcResult

enum : Code32 { kSuccess = 0, kOutOfMemory = 1, kInvalidOption = 5, kCompilation = 6, kNameNotValid = 10 };

/// member, symbol, parameters; each returns nvrtcResult.
#define FURLONG_NVRTC_REQUIRED(X)                                                      \
  X(get_version, nvrtcVersion, (int*, int*))                                           \
  X(create, nvrtcCreateProgram,                                                        \
    (Program*, const char*, const char*, int, const char* const*, const char* const*)) \
  X(destroy, nvrtcDestroyProgram, (Program*))                                          \
  X(compile, nvrtcCompileProgram, (Program, int, const char* const*))                  \
  X(add_name, nvrtcAddNameExpression, (Program, const char*))                          \
  X(lowered_name, nvrtcGetLoweredName, (Program, const char*, const char**))           \
  X(cubin_size, nvrtcGetCUBINSize, (Program, std::size_t*))                            \
  X(cubin, nvrtcGetCUBIN, (Program, char*))                                            \
  X(log_size, nvrtcGetProgramLogSize, (Program, std::size_t*))                         \
  X(log, nvrtcGetProgramLog, (Program, char*))

/// Without the first two the architectures are unknown; without the third a compile cannot be stopped
/// half-way.
#define FURLONG_NVRTC_OPTIONAL(X)                          \
  X(architecture_count, nvrtcGetNumSupportedArchs, (int*)) \
  X(architectures, nvrtcGetSupportedArchs, (int*))         \
  X(set_flow_callback, nvrtcSetFlowCallback, (Program, int (*)(void*, void*), void*))

struct Symbols {
#define FURLONG_NVRTC_MEMBER(member, symbol, parameters) Code32(*member) parameters = nullptr;
  FURLONG_NVRTC_REQUIRED(FURLONG_NVRTC_MEMBER)
  FURLONG_NVRTC_OPTIONAL(FURLONG_NVRTC_MEMBER)
#undef FURLONG_NVRTC_MEMBER
  const char* (*error_string)(Code32) = nullptr;

  std::string error(Code32 code) const {
    return error_string != nullptr ? error_string(code) : fmt::format("NVRTC error {}", code);
  }
};

Result<Symbols> bind(const Library& library) {
  Symbols symbols;
#define FURLONG_NVRTC_BIND(member, symbol, parameters) \
  symbols.member = library.function<Code32 parameters>(#symbol);
  FURLONG_NVRTC_REQUIRED(FURLONG_NVRTC_BIND)
  FURLONG_NVRTC_OPTIONAL(FURLONG_NVRTC_BIND)
#undef FURLONG_NVRTC_BIND
  symbols.error_string = library.function<const char*(Code32)>("nvrtcGetErrorString");
#define FURLONG_NVRTC_NEED(member, symbol, parameters)                                                       \
  if (symbols.member == nullptr) {                                                                           \
    return fail(Code::incompatible, "{} has no " #symbol ": NVRTC 11.2 or newer is needed", library.name()); \
  }
  FURLONG_NVRTC_REQUIRED(FURLONG_NVRTC_NEED)
#undef FURLONG_NVRTC_NEED
  return symbols;
}

// Versions in names are compared as numbers: 13.0 is newer than 9.2.
std::vector<std::int64_t> numbers_in(std::string_view text) {
  std::vector<std::int64_t> numbers;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = at;
    while (end < text.size() && text[end] >= '0' && text[end] <= '9') ++end;
    if (end > at) numbers.push_back(parse_integer(text.substr(at, end - at)).value_or(0));
    at = std::max(end, at + 1);
  }
  return numbers;
}

std::vector<fs::path> cuda_folders() {
  std::vector<fs::path> folders;
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"}) {
    if (const char* value = std::getenv(variable); value != nullptr && *value != '\0')
      folders.emplace_back(value);
  }
  const std::size_t chosen = folders.size();
  std::error_code ignored;
  for (fs::directory_iterator entry("/usr/local", ignored), end; entry != end; entry.increment(ignored)) {
    if (ignored) break;
    if (entry->path().filename().string().starts_with("cuda")) folders.push_back(entry->path());
  }
  std::sort(folders.begin() + static_cast<std::ptrdiff_t>(chosen), folders.end(),
            [](const fs::path& a, const fs::path& b) {
              return numbers_in(a.filename().string()) > numbers_in(b.filename().string());
            });
  return folders;
}

// The library in a folder with the shortest name: libnvrtc.so is a link to the newest there.
std::optional<fs::path> library_in(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code ignored;
  for (fs::directory_iterator entry(folder, ignored), end; entry != end; entry.increment(ignored)) {
    if (ignored) break;
    const std::string name = entry->path().filename().string();
    if (name == "libnvrtc.so" || name.starts_with("libnvrtc.so.")) found.push_back(entry->path());
  }
  if (found.empty()) return std::nullopt;
  return *std::min_element(found.begin(), found.end(), [](const fs::path& a, const fs::path& b) {
    return a.native().size() < b.native().size();
  });
}

// Where the loader found a library that was opened by its bare name; empty when that is not known.
std::string mapped_file(const std::string& name) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    const std::size_t at = line.find('/');
    if (at != std::string::npos && line.find("/" + name, at) != std::string::npos) return line.substr(at);
  }
  return "";
}

fs::path real_file(const std::string& library) {
  std::error_code ignored;
  const bool bare = library.find('/') == std::string::npos;
  return fs::canonical(bare ? mapped_file(library) : library, ignored);  // empty when it fails
}

// Headers of the toolkit that the library belongs to (cuda_fp16.h, mma.h; cooperative groups need cccl).
std::vector<fs::path> toolkit_folders(const fs::path& library) {
  std::vector<fs::path> folders;
  if (library.empty()) return folders;
  std::error_code ignored;
  const fs::path root = library.parent_path().parent_path();
  for (const fs::path& folder : {root / "include", root / "include" / "cccl"}) {
    if (fs::is_directory(folder, ignored)) folders.push_back(folder);
  }
  return folders;
}

// The library and what lies beside it (its builtins are a file of their own). Reading 100 MB for a digest
// would cost more than a compile: sizes and dates change with every installation.
std::string identity_text(std::string_view version, const fs::path& library) {
  std::vector<std::string> parts;
  std::error_code ignored;
  for (fs::directory_iterator entry(library.parent_path(), ignored), end; entry != end;
       entry.increment(ignored)) {
    if (ignored) break;
    const std::string name = entry->path().filename().string();
    if ((!name.starts_with("libnvrtc") && entry->path() != library) || !entry->is_regular_file(ignored))
      continue;
    parts.push_back(fmt::format("{} {} {}", name, entry->file_size(ignored),
                                entry->last_write_time(ignored).time_since_epoch().count()));
  }
  std::sort(parts.begin(), parts.end());
  return fmt::format("{}\n{}\n{}", version, library.string(), join(parts, "\n"));
}

std::string shown_source_name(const CompileRequest& request) {
  if (!request.source_name.empty()) return request.source_name;
  return (request.name.empty() ? std::string("kernel") : request.name) + ".cu";
}

int stop_compile(void* token, void*) {
  return static_cast<std::stop_token*>(token)->stop_requested() ? 1 : 0;
}

}  // namespace

struct Nvrtc::Loaded {
  Library library;
  Symbols symbols;
  int major = 0;
  int minor = 0;
  CompilerIdentity identity;
};

namespace {

/// One program on its way through the compiler.
class Job {
 public:
  Job(const Symbols& symbols, const CompileRequest& request) : symbols_(symbols), request_(request) {}
  ~Job() {
    if (program_ != nullptr) symbols_.destroy(&program_);
  }
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  Status create() {
    const std::string name = shown_source_name(request_);
    const Code32 code =
        symbols_.create(&program_, request_.source.c_str(), name.c_str(), 0, nullptr, nullptr);
    if (code != kSuccess) return error(code, "taking the source");
    for (const std::string& entry : request_.entries) {
      if (const Code32 added = symbols_.add_name(program_, entry.c_str()); added != kSuccess) {
        return error(added, fmt::format("naming the entry '{}'", entry));
      }
    }
    return {};
  }

  Status compile(const std::vector<std::string>& options, std::stop_token& stop) {
    std::vector<const char*> words;
    for (const std::string& option : options) words.push_back(option.c_str());
    if (symbols_.set_flow_callback != nullptr && stop.stop_possible()) {
      (void)symbols_.set_flow_callback(program_, &stop_compile, &stop);  // without it the compile runs on
    }
    const Code32 code = symbols_.compile(program_, static_cast<int>(words.size()), words.data());
    log_ = read_log();
    if (stop.stop_requested()) {
      return fail(Code::timeout, "compiling '{}': stopped on request", request_.name);
    }
    if (code == kSuccess) return {};
    if (code == kOutOfMemory) return error(code, "compiling");
    if (code == kCompilation || code == kInvalidOption || code == kNameNotValid) {
      return fail(Code::invalid, "'{}': {} does not compile ({}; entries: {}; options: {}):\n{}",
                  request_.name, shown_source_name(request_), symbols_.error(code),
                  join(request_.entries, ", "), join(options, " "), log_);
    }
    return error(code, "compiling");
  }

  Result<Bytes> image() const {
    std::size_t size = 0;
    if (const Code32 code = symbols_.cubin_size(program_, &size); code != kSuccess)
      return error(code, "sizing the code");
    if (size == 0)
      return fail(Code::invalid, "'{}': no machine code came out: name a real architecture (sm_…)",
                  request_.name);
    Bytes bytes(size);
    const Code32 code = symbols_.cubin(program_, reinterpret_cast<char*>(bytes.data()));
    if (code != kSuccess) return error(code, "reading the code");
    return bytes;
  }

  Result<std::vector<std::string>> lowered() const {
    std::vector<std::string> names;
    for (const std::string& entry : request_.entries) {
      const char* name = nullptr;  // owned by the program
      const Code32 code = symbols_.lowered_name(program_, entry.c_str(), &name);
      if (code != kSuccess || name == nullptr) {
        return fail(Code::invalid, "'{}': {} has no kernel '{}' ({})", request_.name,
                    shown_source_name(request_), entry, symbols_.error(code));
      }
      names.emplace_back(name);
    }
    return names;
  }

  const std::string& log() const { return log_; }

 private:
  Error error(Code32 code, std::string_view doing) const {
    return fail(code == kOutOfMemory ? Code::exhausted : Code::internal, "'{}': {}: {}", request_.name, doing,
                symbols_.error(code));
  }
  std::string read_log() const {
    std::size_t size = 0;
    if (symbols_.log_size(program_, &size) != kSuccess || size <= 1) return "";
    std::string log(size, '\0');
    if (symbols_.log(program_, log.data()) != kSuccess) return "";
    log.resize(std::min(log.find('\0'), log.size()));
    return std::string(trim(log));
  }

  const Symbols& symbols_;
  const CompileRequest& request_;
  Program program_ = nullptr;
  std::string log_;
};

std::vector<std::string> option_list(const CompileRequest& request, std::string_view arch,
                                     const std::vector<fs::path>& toolkit) {
  // A text for one architecture's own instructions ("sm_90a") names it itself: the option may stand only
  // once.
  const bool named =
      std::any_of(request.options.begin(), request.options.end(), [](const std::string& option) {
        return option.starts_with("--gpu-architecture=") || option.starts_with("-arch=");
      });
  std::vector<std::string> options;
  if (!named) options.push_back(fmt::format("--gpu-architecture={}", arch));
  // One ptxas option per argument; -v makes the assembler tell registers and spills.
  options.push_back("--ptxas-options=-v");
  for (const auto& [name, value] : request.defines) options.push_back(fmt::format("-D{}={}", name, value));
  for (const auto& folder : request.include_folders) options.push_back("-I" + folder.string());
  options.insert(options.end(), request.options.begin(), request.options.end());
  for (const fs::path& folder : toolkit) options.push_back("-I" + folder.string());
  return options;
}

}  // namespace

std::vector<fs::path> Nvrtc::installed() {
  std::vector<fs::path> libraries;
  for (const fs::path& folder : cuda_folders()) {
    for (const char* part : {"lib64", "targets/x86_64-linux/lib", "targets/sbsa-linux/lib", "lib"}) {
      const std::optional<fs::path> library = library_in(folder / part);
      if (!library) continue;
      std::error_code ignored;
      const bool known = std::any_of(libraries.begin(), libraries.end(), [&](const fs::path& other) {
        return fs::equivalent(other, *library, ignored);  // /usr/local/cuda is a link to one of the others
      });
      if (!known) libraries.push_back(*library);
      break;
    }
  }
  return libraries;
}

namespace {

std::vector<fs::path> candidates() {
  std::vector<fs::path> candidates{"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2", "libnvrtc.so"};
  for (fs::path& library : Nvrtc::installed()) candidates.push_back(std::move(library));
  return candidates;
}

std::optional<fs::path> chosen_library() {
  const char* chosen = std::getenv("FURLONG_NVRTC");
  if (chosen == nullptr || *chosen == '\0') return std::nullopt;
  return chosen;
}

}  // namespace

Result<Nvrtc> Nvrtc::open() {
  if (const auto chosen = chosen_library()) {
    Result<Nvrtc> opened = open(*chosen);
    if (!opened) return Error(opened.error()).with("opening $FURLONG_NVRTC");
    return opened;
  }
  std::string last;
  for (const fs::path& candidate : candidates()) {
    Result<Nvrtc> opened = open(candidate);
    if (opened) return opened;
    if (opened.error().code() != Code::unavailable) last = opened.error().message();
  }
  return fail(Code::unavailable,
              "NVRTC is not here: install CUDA's run-time compiler (cuda-nvrtc) or set FURLONG_NVRTC to "
              "libnvrtc.so{}{}",
              last.empty() ? "" : "; ", last);
}

Result<std::vector<Nvrtc>> Nvrtc::all() {
  std::vector<Nvrtc> found;
  if (const auto chosen = chosen_library()) {
    FURLONG_TRY(Nvrtc opened, open());
    found.push_back(std::move(opened));
    return found;
  }
  for (const fs::path& candidate : candidates()) {
    Result<Nvrtc> opened = open(candidate);
    if (!opened) continue;
    const bool known = std::any_of(found.begin(), found.end(), [&](const Nvrtc& other) {
      return other.identity().text ==
             opened->identity().text;  // the loader's path and a folder name one file
    });
    if (!known) found.push_back(*std::move(opened));
  }
  return found;
}

Result<Nvrtc> Nvrtc::open(const fs::path& path) {
  FURLONG_TRY(Library library, Library::open(path));
  FURLONG_TRY(const Symbols symbols, bind(library));
  int major = 0;
  int minor = 0;
  if (const Code32 code = symbols.get_version(&major, &minor); code != kSuccess) {
    return fail(Code::incompatible, "{} does not tell its version: {}", path.string(), symbols.error(code));
  }
  const fs::path file = real_file(path.string());
  CompilerIdentity identity{identity_text(fmt::format("NVRTC {}.{}", major, minor), file),
                            toolkit_folders(file)};
  auto loaded =
      std::make_shared<Loaded>(Loaded{std::move(library), symbols, major, minor, std::move(identity)});
  return Nvrtc(std::move(loaded));
}

int Nvrtc::major() const { return loaded_->major; }
int Nvrtc::minor() const { return loaded_->minor; }
std::string Nvrtc::version() const { return fmt::format("NVRTC {}.{}", loaded_->major, loaded_->minor); }
const CompilerIdentity& Nvrtc::identity() const { return loaded_->identity; }
const std::string& Nvrtc::name() const { return loaded_->library.name(); }

std::vector<std::string> Nvrtc::architectures() const {
  const Symbols& symbols = loaded_->symbols;
  int count = 0;
  if (symbols.architecture_count == nullptr || symbols.architectures == nullptr) return {};
  if (symbols.architecture_count(&count) != kSuccess || count <= 0) return {};
  std::vector<int> numbers(static_cast<std::size_t>(count));
  if (symbols.architectures(numbers.data()) != kSuccess) return {};
  std::sort(numbers.begin(), numbers.end());
  std::vector<std::string> names;
  for (int number : numbers) names.push_back(fmt::format("sm_{}", number));
  return names;
}

Result<Cubin> Nvrtc::compile(const CompileRequest& request, std::string_view arch,
                             std::stop_token stop) const {
  if (request.language != Language::cuda) {
    return fail(Code::invalid, "'{}' is {} text; NVRTC compiles cuda text", request.name,
                language_name(request.language));
  }
  if (request.entries.empty()) {
    return fail(Code::invalid, "'{}' names no entry: list the kernel functions to make", request.name);
  }
  if (!arch.starts_with("sm_")) {
    return fail(Code::invalid, "'{}' is no architecture with machine code: write sm_90 or the like", arch);
  }
  if (stop.stop_requested()) return fail(Code::timeout, "compiling '{}': stopped on request", request.name);
  FURLONG_CHECK(check_request(request));
  const double start_ms = system_clock().now_ms();
  Job job(loaded_->symbols, request);
  FURLONG_CHECK(job.create());
  FURLONG_CHECK(job.compile(option_list(request, arch, loaded_->identity.toolkit_folders), stop));
  Cubin cubin;
  FURLONG_TRY(cubin.image, job.image());
  FURLONG_TRY(cubin.lowered, job.lowered());
  cubin.log = job.log();
  const PtxasFacts facts = parse_ptxas_log(cubin.log);
  cubin.registers = facts.registers;
  cubin.spill_bytes = facts.spill_bytes;
  cubin.shared_bytes = facts.shared_bytes;
  cubin.code_hash = blake2b_256(cubin.image).hex().substr(0, 32);
  cubin.compile_ms = system_clock().now_ms() - start_ms;
  return cubin;
}

}  // namespace furlong::device
