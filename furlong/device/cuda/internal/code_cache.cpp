#include "furlong/device/cuda/internal/code_cache.h"

#include <algorithm>
#include <chrono>
#include <limits>

#include "furlong/base/hash.h"
#include "furlong/base/log.h"
#include "furlong/base/os/clock.h"
#include "furlong/base/text.h"
#include "furlong/device/cuda/internal/include_scan.h"

namespace furlong::device {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMagic = "furlong cuda code\n";
constexpr std::uint32_t kVersion = 1;
constexpr std::size_t kSealBytes = 32;
constexpr std::size_t kMostEntryBytes = 256u << 20;
constexpr unsigned kStoresPerPrune = 64;
constexpr auto kLeftoverAge = std::chrono::hours(1);  // no writing of an entry takes so long
constexpr const char* kExtension = ".cubin";

class Printer {
 public:
  template <class T>
  Printer& number(T value) {
    char bytes[sizeof value];
    store_le(bytes, value);
    out_.append(bytes, sizeof value);
    return *this;
  }
  template <class T>
  Printer& optional(const std::optional<T>& value) {
    return number<std::int64_t>(value ? static_cast<std::int64_t>(*value) : -1);
  }
  Printer& raw(std::string_view bytes) {
    out_.append(bytes);
    return *this;
  }
  Printer& field(std::string_view bytes) { return number<std::uint64_t>(bytes.size()).raw(bytes); }
  std::string& text() { return out_; }

 private:
  std::string out_;
};

class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}

  template <class T>
  Result<T> number() {
    if (bytes_.size() - at_ < sizeof(T)) return corrupt("ends within a number");
    const T value = load_le<T>(bytes_.data() + at_);
    at_ += sizeof(T);
    return value;
  }
  template <class T>
  Status optional(std::optional<T>& into) {
    FURLONG_TRY(const auto value, number<std::int64_t>());
    if (value < -1 || (std::is_same_v<T, int> && value > std::numeric_limits<int>::max()))
      return corrupt("a number is out of range");
    if (value >= 0) into = static_cast<T>(value);
    return {};
  }
  Result<std::string_view> field() {
    FURLONG_TRY(const auto size, number<std::uint64_t>());
    if (size > bytes_.size() - at_) return corrupt("a length passes the end");
    const std::string_view field = bytes_.substr(at_, size);
    at_ += size;
    return field;
  }
  bool skip(std::string_view expected) {
    if (!bytes_.substr(at_).starts_with(expected)) return false;
    at_ += expected.size();
    return true;
  }
  bool at_end() const { return at_ == bytes_.size(); }
  std::size_t left() const { return bytes_.size() - at_; }
  Error corrupt(std::string_view what) const { return fail(Code::corrupt, "byte {}: {}", at_, what); }

 private:
  std::string_view bytes_;
  std::size_t at_ = 0;
};

std::string_view seal_text(const Digest& digest) {
  return {reinterpret_cast<const char*>(digest.bytes.data()), digest.bytes.size()};
}

struct Entry {
  fs::file_time_type when;
  std::uint64_t bytes = 0;
  fs::path path;
  auto operator<=>(const Entry& other) const { return when <=> other.when; }
};

// What stands in the folder; leftovers of killed processes are removed on the way.
std::vector<Entry> entries_of(const fs::path& folder) {
  std::vector<Entry> entries;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    std::error_code gone;  // another process may be at it
    const fs::file_time_type when = entry->last_write_time(gone);
    if (gone) continue;
    if (entry->path().extension() == kExtension) {
      const std::uint64_t bytes = entry->file_size(gone);
      if (!gone) entries.push_back({when, bytes, entry->path()});
    } else if (entry->path().extension() == ".tmp" &&
               when < fs::file_time_type::clock::now() - kLeftoverAge) {
      fs::remove(entry->path(), gone);
    }
  }
  return entries;
}

}  // namespace

std::string print_code_entry(const std::string& key, const Cubin& cubin) {
  Printer out;
  out.raw(kMagic).number(kVersion).field(key).field(cubin.code_hash).field(cubin.log);
  out.optional(cubin.registers).optional(cubin.spill_bytes).optional(cubin.shared_bytes);
  out.number(cubin.compile_ms);
  out.number<std::uint64_t>(cubin.lowered.size());
  for (const std::string& name : cubin.lowered) out.field(name);
  out.field(as_text(cubin.image));
  const Digest seal = blake2b_256(out.text());
  return std::move(out.raw(seal_text(seal)).text());
}

Result<Cubin> parse_code_entry(const std::string& key, std::string_view bytes) {
  Reader head(bytes);
  if (!head.skip(kMagic)) return head.corrupt("no entry of the code cache");
  FURLONG_TRY(const auto version, head.number<std::uint32_t>());
  if (version != kVersion)
    return fail(Code::incompatible, "found code entry version {}, expected {}", version, kVersion);
  if (head.left() < kSealBytes) return head.corrupt("ends before its digest");
  const std::string_view inside = bytes.substr(0, bytes.size() - kSealBytes);
  if (bytes.substr(inside.size()) != seal_text(blake2b_256(inside)))
    return fail(Code::corrupt, "byte {}: the digest does not hold", inside.size());

  Reader in(inside);
  (void)in.skip(kMagic);
  FURLONG_CHECK(in.number<std::uint32_t>());
  FURLONG_TRY(const std::string_view found_key, in.field());
  if (found_key != key) return in.corrupt("the entry is another key's");
  Cubin cubin;
  FURLONG_TRY(cubin.code_hash, in.field());
  FURLONG_TRY(cubin.log, in.field());
  FURLONG_CHECK(in.optional(cubin.registers));
  FURLONG_CHECK(in.optional(cubin.spill_bytes));
  FURLONG_CHECK(in.optional(cubin.shared_bytes));
  FURLONG_TRY(cubin.compile_ms, in.number<double>());
  FURLONG_TRY(const auto names, in.number<std::uint64_t>());
  if (names > in.left() / sizeof(std::uint64_t)) return in.corrupt("more names than bytes");
  for (std::uint64_t i = 0; i < names; ++i) {
    FURLONG_TRY(const std::string_view name, in.field());
    cubin.lowered.emplace_back(name);
  }
  FURLONG_TRY(const std::string_view image, in.field());
  if (!in.at_end()) return in.corrupt("bytes follow the image");
  const ByteView view = as_bytes(image);
  cubin.image.assign(view.begin(), view.end());
  return cubin;
}

Result<CachedCubin> compile_through(CodeCache& cache, const Nvrtc& nvrtc, const CompileRequest& request,
                                    std::string_view arch, std::stop_token stop) {
  const double start_ms = system_clock().now_ms();
  const Result<std::string> key = CodeCache::key(request, nvrtc, arch);
  if (key) {
    std::optional<Cubin> kept = cache.load(*key);
    // Its digest says that it is as it was written, not that a compile of this request wrote it.
    if (kept && (kept->image.empty() || kept->lowered.size() != request.entries.size())) {
      log_warning(
          "the cached machine code of '{}' has {} bytes and {} of {} entries, the text is compiled anew",
          request.name, kept->image.size(), kept->lowered.size(), request.entries.size());
      kept.reset();
    }
    if (kept) {
      kept->compile_ms = system_clock().now_ms() - start_ms;
      return CachedCubin{std::move(*kept), true};
    }
  } else {
    log_debug("'{}' is compiled without the cache: {}", request.name, key.error().text());
  }
  FURLONG_TRY(Cubin cubin, nvrtc.compile(request, arch, std::move(stop)));
  if (key) {
    // A header that changed meanwhile: whether the compiler saw the old or the new one is not known.
    const Result<std::string> after = CodeCache::key(request, nvrtc, arch);
    if (after && *after == *key) cache.store(*key, cubin);
  }
  return CachedCubin{std::move(cubin), false};
}

CodeCache::CodeCache(fs::path folder, CodeCacheLimits limits, Files& files)
    : folder_(std::move(folder)), limits_(limits), files_(files) {}

fs::path CodeCache::file(const std::string& key) const { return folder_ / (key + kExtension); }

std::optional<Cubin> CodeCache::load(const std::string& key) {
  const fs::path path = file(key);
  if (!files_.exists(path)) return std::nullopt;
  const Result<std::string> bytes = files_.read(path, kMostEntryBytes);
  if (!bytes && !files_.exists(path)) return std::nullopt;  // another process dropped it meanwhile
  Result<Cubin> cubin = bytes ? parse_code_entry(key, *bytes) : Result<Cubin>(bytes.error());
  if (!cubin) {
    if (cubin.error().code() != Code::incompatible)
      log_warning("the cached machine code {} is not used, the text is compiled anew: {}", path.string(),
                  cubin.error().text());
    return std::nullopt;
  }
  std::error_code ignored;  // a read-only cache keeps its order
  fs::last_write_time(path, fs::file_time_type::clock::now(), ignored);
  return std::move(*cubin);
}

void CodeCache::store(const std::string& key, const Cubin& cubin) {
  const Status written = files_.write_atomic(file(key), print_code_entry(key, cubin));
  if (!written && !told_.exchange(true))
    log_warning("the cache of machine code cannot be written, texts are compiled anew each time: {}",
                written.error().text());
  if (stores_++ % kStoresPerPrune == 0) prune();
}

void CodeCache::prune() {
  std::vector<Entry> entries = entries_of(folder_);
  std::uint64_t bytes = 0;
  for (const Entry& entry : entries) bytes += entry.bytes;
  std::size_t count = entries.size();
  if (count <= limits_.entries && bytes <= limits_.bytes) return;
  std::sort(entries.begin(), entries.end());
  for (const Entry& entry : entries) {
    if (count <= limits_.entries / 4 * 3 && bytes <= limits_.bytes / 4 * 3) break;
    std::error_code ignored;  // what cannot be removed stays
    fs::remove(entry.path, ignored);
    bytes -= entry.bytes;
    --count;
  }
}

Result<std::string> CodeCache::key(const CompileRequest& request, const Nvrtc& nvrtc, std::string_view arch) {
  return key(request, nvrtc.identity(), arch);
}

Result<std::string> CodeCache::key(const CompileRequest& request, const CompilerIdentity& compiler,
                                   std::string_view arch) {
  for (const std::string& option : request.options) {
    if (option.starts_with("--time") || option.starts_with("-time") || option.contains("time-trace"))
      return fail(Code::unavailable, "the option {} writes a file, which no cache brings back", option);
  }
  FURLONG_TRY(const std::vector<ReachedHeader> headers, reached_headers(request, compiler.toolkit_folders));
  Hasher hasher;
  // Before each list its length, so that nothing can pass from one list to the next unseen.
  const auto begin_list = [&](std::size_t size) { hasher.add_field(std::to_string(size)); };
  hasher.add_field(fmt::format("furlong cuda code {}", kVersion))
      .add_field(compiler.text)
      .add_field(arch)
      .add_field(request.source)
      .add_field(request.source_name.empty() ? request.name + ".cu" : request.source_name);  // __FILE__, logs
  begin_list(compiler.toolkit_folders.size());
  for (const fs::path& folder : compiler.toolkit_folders) hasher.add_field(folder.native());
  begin_list(request.entries.size());
  for (const std::string& entry : request.entries) hasher.add_field(entry);
  begin_list(request.defines.size());
  for (const auto& [name, value] : request.defines) hasher.add_field(name).add_field(value);
  begin_list(request.options.size());
  for (const std::string& option : request.options) hasher.add_field(option);
  begin_list(request.include_folders.size());
  for (const fs::path& folder : request.include_folders) hasher.add_field(folder.native());
  begin_list(headers.size());
  for (const ReachedHeader& header : headers)
    hasher.add_field(header.path.native()).add_field(header.digest.hex());
  return hasher.finish().hex();
}

}  // namespace furlong::device
