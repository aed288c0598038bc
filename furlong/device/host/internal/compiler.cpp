#include "furlong/device/host/internal/compiler.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>

#include "furlong/base/hash.h"
#include "furlong/base/log.h"
#include "furlong/base/os/file.h"
#include "furlong/base/os/process.h"
#include "furlong/base/text.h"
#include "furlong/device/host/internal/elf.h"
#include "furlong/device/host/internal/prelude.h"

namespace furlong::device::host {
namespace {

constexpr double kCompileTimeoutS = 600;
constexpr double kVersionTimeoutS = 20;
// A compiler proper outlives its driver when this process is killed: it must not run for ever.
constexpr std::uint64_t kCompileCpuSeconds = 1200;
// Behind the bytes of a cached object, before the digest of object and log: loaders do not look there.
constexpr std::string_view kSeal = "\nfurlong sealed 1\n";
constexpr auto kLeftoverAge = std::chrono::hours(1);  // no writing of an object takes so long

// English messages whatever the user's language, so that logs can be compared and searched.
ProcessRequest child(std::vector<std::string> argv) {
  ProcessRequest request;
  request.argv = std::move(argv);
  request.environment = {{"LC_ALL", "C"}};
  request.cpu_seconds = kCompileCpuSeconds;
  return request;
}

Result<Compiler> ask_version(std::vector<std::string> command) {
  std::vector<std::string> argv = command;
  argv.push_back("--version");
  FURLONG_TRY(ProcessEnd end, system_processes().run(child(std::move(argv)), kVersionTimeoutS));
  if (end.signal != 0 || end.exit_code != 0) {
    return fail(Code::unavailable, "'{} --version' ended with {}", join(command, " "), end.text());
  }
  const std::string& out = end.standard_output;
  return Compiler{std::move(command), std::string(trim(std::string_view(out).substr(0, out.find('\n'))))};
}

// Whether a line includes by a quoted name, an absolute one or a macro: not one of the compiler's headers.
bool names_own_header(std::string_view source) {
  for (std::size_t at = 0; at < source.size();) {
    const std::size_t end = std::min(source.find('\n', at), source.size());
    std::string_view line = trim(source.substr(at, end - at));
    at = end + 1;
    if (!line.starts_with('#')) continue;
    line = trim(line.substr(1));
    if (!line.starts_with("include")) continue;
    line = trim(line.substr(line.starts_with("include_next") ? 12 : 7));
    if (!line.starts_with('<') || line.starts_with("</")) return true;
  }
  return false;
}

bool environment_adds_folders() {
  for (const char* name : {"CPATH", "CPLUS_INCLUDE_PATH"}) {
    if (const char* value = std::getenv(name); value != nullptr && *value != '\0') return true;
  }
  return false;
}

// Such headers may change without the source changing, so the cache key must see their text.
bool includes_own_headers(const CompileRequest& request) {
  if (!request.include_folders.empty() || names_own_header(request.source) || environment_adds_folders())
    return true;
  for (const std::string& option : request.options) {
    if (option.starts_with("-I") || option.starts_with("-i")) return true;
  }
  return false;
}

std::vector<std::string> code_options(const CompileRequest& request) {
  std::vector<std::string> options{"-O2", "-march=native", "-std=c++20"};
  for (const auto& [name, value] : request.defines) options.push_back(fmt::format("-D{}={}", name, value));
  for (const auto& folder : request.include_folders) options.push_back("-I" + folder.string());
  options.insert(options.end(), request.options.begin(), request.options.end());
  return options;
}

std::vector<std::string> command_line(const Compiler& compiler, const std::vector<std::string>& options,
                                      std::vector<std::string> rest) {
  std::vector<std::string> argv = compiler.command;
  argv.insert(argv.end(), options.begin(), options.end());
  argv.insert(argv.end(), std::make_move_iterator(rest.begin()), std::make_move_iterator(rest.end()));
  return argv;
}

// The compiler's word for a full disk, unless the source is quoted with it (#error, an assertion).
bool says_disk_is_full(std::string_view log) {
  for (const std::string& line : split(log, '\n')) {
    if (!line.contains("No space left on device") && !line.contains("Disk quota exceeded")) continue;
    if (!line.contains('#') && !line.contains('|') && !line.contains("assert") &&
        !line.contains("deprecated"))
      return true;
  }
  return false;
}

Error temporary_folder_is_full(const std::filesystem::path& folder, const CompileRequest& request,
                               std::string_view why) {
  return fail(Code::exhausted,
              "compiling '{}': the temporary folder {} is full ({}): free some space there, or set TMPDIR to "
              "another folder",
              request.name, folder.parent_path().string(), why);
}

/// One request on its way through the compiler.
struct Job {
  const Compiler& compiler;
  const CompileRequest& request;
  std::vector<std::string> options;
  std::filesystem::path folder;
  std::stop_token stop;

  std::string source() const { return (folder / "kernel.cpp").string(); }
  std::string object() const { return (folder / "kernel.so").string(); }

  // Standard output of the run and, in `log`, its messages.
  Result<std::string> run(std::vector<std::string> rest, std::string& log) const {
    ProcessRequest request_to_run = child(command_line(compiler, options, std::move(rest)));
    // The compiler's own temporary files go where ours are: a compiler that is killed leaves them, and they
    // go with the folder.
    request_to_run.environment.emplace_back("TMPDIR", folder.string());
    FURLONG_TRY(ProcessEnd end, system_processes().run(request_to_run, kCompileTimeoutS, stop));
    if (end.stopped || end.timed_out) {
      return fail(Code::timeout, "compiling '{}': {}", request.name,
                  end.stopped ? "stopped on request" : end.text());
    }
    // Only the prelude's own lines still carry the temporary file's name.
    log = std::string(trim(replace_all(end.standard_error, source(), "furlong-prelude")));
    if (end.signal != 0 || end.exit_code != 0) {
      if (says_disk_is_full(log)) return temporary_folder_is_full(folder, request, log);
      return fail(Code::invalid, "'{}': {} does not compile {} ({}):\n{}", request.name,
                  compiler.command.front(), shown_source_name(request), end.text(), log);
    }
    return std::move(end.standard_output);
  }
};

Status write_source(const Job& job, const std::string& unit) {
  std::ofstream out(job.source(), std::ios::binary);
  out << unit;
  out.close();
  if (!out) return temporary_folder_is_full(job.folder, job.request, "writing the source failed");
  return {};
}

Result<std::string> cache_key(const Job& job, const std::string& unit, std::string_view cpu_identity) {
  Hasher hasher;
  hasher.add_field("furlong host object 2")
      .add_field(unit)
      .add_field(cpu_identity)
      .add_field(job.compiler.version);
  for (const std::string& word : job.compiler.command) hasher.add_field(word);
  for (const std::string& word : job.options) hasher.add_field(word);
  if (includes_own_headers(job.request)) {
    std::string log;
    FURLONG_TRY(std::string text, job.run({"-E", "-P", "-x", "c++", job.source()}, log));
    hasher.add_field(text);
  }
  return hasher.finish().hex();
}

std::string seal_of(std::string_view object, std::string_view log) {
  Hasher hasher;
  hasher.add_field("furlong host object").add_field(object).add_field(log);
  return fmt::format("{}{}", kSeal, hasher.finish().hex());
}

/// What one place of the cache holds. A flipped bit in the code would load all the same, and then crash or
/// compute something else: so object and log are kept with their digest.
struct CacheEntry {
  std::filesystem::path object, log;

  Status store(const std::string& bytes, const std::string& text) const {
    FURLONG_CHECK(system_files().write_atomic(log, text));
    return system_files().write_atomic(object, bytes + seal_of(bytes, text));
  }

  // Nothing when it is absent or damaged.
  std::optional<Compiled> load() const {
    if (!system_files().exists(object)) return std::nullopt;
    Result<Compiled> loaded = load_sealed();
    if (loaded) return std::move(*loaded);
    log_warning("the cached kernel {} is damaged and is compiled anew: {}", object.string(),
                loaded.error().message());
    return std::nullopt;
  }

  void remove() const {
    for (const auto& path : {object, log}) {
      const Status removed = system_files().remove(path);
      if (!removed) log_warning("{}", removed.error().text());
    }
  }

 private:
  Result<Compiled> load_sealed() const {
    FURLONG_TRY(std::string bytes, system_files().read(object));
    FURLONG_TRY(std::string text, system_files().read(log));
    const std::string_view whole(bytes);
    const std::size_t end = whole.size() - std::min(whole.size(), seal_of({}, {}).size());
    const std::string_view inside = whole.substr(0, end);
    if (whole.substr(end) != seal_of(inside, text)) return fail(Code::corrupt, "its digest does not hold");
    std::string hash = elf_code_hash(as_bytes(inside));
    FURLONG_TRY(Library library, Library::open(object));
    return Compiled{std::move(library), std::move(text), std::move(hash), true};
  }
};

// Options after which the compiler makes something else than a program, or nothing.
bool stops_early(std::string_view option) {
  for (const char* early : {"-E", "-S", "-c", "-M", "-MM", "-fsyntax-only", "-r", "--version", "--help",
                            "-###", "-emit-llvm", "--precompile"}) {
    if (option == early) return true;
  }
  return option.starts_with("-print-") || option.starts_with("-dump") || option.starts_with("--print-");
}

Error no_shared_object(const Job& job) {
  std::vector<std::string> culprits;
  for (const std::string& option : job.request.options) {
    if (stops_early(option)) culprits.push_back(option);
  }
  const std::string named = culprits.empty() ? join(job.request.options, " ") : join(culprits, " ");
  return fail(Code::invalid, "'{}': {} makes no shared library of {} with the options '{}': leave {} out",
              job.request.name, job.compiler.command.front(), shown_source_name(job.request), named,
              culprits.empty() ? "the one that stops it before linking" : named);
}

Error not_loaded(const Job& job, const std::filesystem::path& object, const Error& error) {
  const std::string why = replace_all(error.message(), object.string() + ": ", "");
  if (why.contains("failed to map segment"))
    return fail(Code::denied,
                "'{}': nothing can be run from {} ({}): set TMPDIR to a folder that is not mounted noexec",
                job.request.name, object.parent_path().string(), why);
  return fail(Code::invalid,
              "'{}': what {} makes of {} cannot be loaded: {} (is a function only declared, or a library "
              "missing?)",
              job.request.name, job.compiler.command.front(), shown_source_name(job.request), why);
}

}  // namespace

Result<Compiler> find_compiler() {
  if (const char* chosen = std::getenv("FURLONG_CXX"); chosen != nullptr && *chosen != '\0') {
    std::vector<std::string> words;
    for (const std::string& word : split(chosen, ' ')) {
      if (!word.empty()) words.push_back(word);
    }
    Result<Compiler> found = words.empty() ? fail(Code::invalid, "it is blank") : ask_version(words);
    if (found) return found;
    return fail(Code::unavailable, "FURLONG_CXX is '{}', which does not run: {}", chosen,
                found.error().message());
  }
  for (const char* name : {"c++", "g++", "clang++"}) {
    if (Result<Compiler> found = ask_version({name})) return found;
  }
  return fail(Code::unavailable,
              "no C++ compiler answers (c++, g++ and clang++ were tried): install g++ or set FURLONG_CXX");
}

Result<Compiled> compile_unit(const Compiler& compiler, const CompileRequest& request,
                              const std::string& unit, std::string_view cpu_identity,
                              const std::filesystem::path& cache, std::stop_token stop) {
  if (stop.stop_requested()) return fail(Code::timeout, "compiling '{}': stopped on request", request.name);
  FURLONG_TRY(TemporaryFolder folder, TemporaryFolder::make("furlong-host"));
  const Job job{compiler, request, code_options(request), folder.path(), std::move(stop)};
  FURLONG_CHECK(write_source(job, unit));
  FURLONG_TRY(const std::string key, cache_key(job, unit, cpu_identity));
  const CacheEntry kept{cache / (key + ".so"), cache / (key + ".log")};
  if (std::optional<Compiled> cached = kept.load()) return std::move(*cached);

  std::string log;
  FURLONG_CHECK(job.run(
      {"-fPIC", "-shared", "-fvisibility=hidden", "-x", "c++", job.source(), "-o", job.object(), "-lm"},
      log));
  const Result<std::string> bytes = system_files().read(job.object());
  if (!bytes && bytes.error().code() != Code::unavailable) return bytes.error();
  if (!bytes || !is_shared_object(as_bytes(*bytes))) return no_shared_object(job);
  // Through the cache where it can be written, else from the temporary folder (the mapping outlives it).
  const Status stored = kept.store(*bytes, log);
  if (!stored) log_warning("the kernel cache cannot be written: {}", stored.error().text());
  Result<Library> library = Library::open(stored ? kept.object : std::filesystem::path(job.object()));
  if (!library && stored) {  // what cannot be loaded is not kept; or the cache alone is mounted noexec
    kept.remove();
    library = Library::open(job.object());
  }
  if (!library) return not_loaded(job, job.object(), library.error());
  return Compiled{std::move(*library), std::move(log), elf_code_hash(as_bytes(*bytes)), false};
}

namespace {

// Of a process that was killed: the atomic writer's temporary file, or a log that its object never followed.
bool is_leftover(const std::filesystem::path& path) {
  if (path.extension() == ".tmp") return true;
  std::error_code error;
  return path.extension() == ".log" &&
         !std::filesystem::exists(std::filesystem::path(path).replace_extension(".so"), error) && !error;
}

}  // namespace

void prune_cache(const std::filesystem::path& cache, std::size_t most) {
  namespace fs = std::filesystem;
  std::vector<std::pair<fs::file_time_type, fs::path>> objects;
  std::error_code error;
  for (fs::directory_iterator entry(cache, error), end; !error && entry != end; entry.increment(error)) {
    const fs::path& path = entry->path();
    std::error_code gone;
    const fs::file_time_type when = fs::last_write_time(path, gone);
    if (gone) continue;
    if (path.extension() == ".so") {
      objects.emplace_back(when, path);
    } else if (when < fs::file_time_type::clock::now() - kLeftoverAge && is_leftover(path)) {
      fs::remove(path, gone);
    }
  }
  if (objects.size() <= most) return;
  std::sort(objects.begin(), objects.end());
  objects.resize(objects.size() - most * 3 / 4);
  for (auto& [when, object] : objects) {
    fs::remove(object, error);
    fs::remove(object.replace_extension(".log"), error);
  }
}

}  // namespace furlong::device::host
