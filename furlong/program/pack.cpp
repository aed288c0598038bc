// Packs: sealing, verifying, reading (docs/formats/pack.md).
#include "furlong/program/pack.h"

#include <algorithm>
#include <set>

#include "furlong/base/os/memory.h"
#include "furlong/base/os/paths.h"
#include "furlong/base/text.h"
#include "furlong/base/toml.h"
#include "furlong/program/internal/pack_files.h"
#include "furlong/program/internal/signature_file.h"
#include "furlong/program/lottery/lottery.h"

namespace furlong::program {
namespace {

constexpr std::int64_t kFormat = 1;
constexpr std::string_view kPackFile = "pack.toml";
constexpr std::string_view kSignatureFile = "pack.sig";
constexpr std::string_view kContentStart = "content = \"";
constexpr std::uint64_t kLargestPack = std::uint64_t{16} << 30;
constexpr std::size_t kMostFiles = 10000;
constexpr std::uint64_t kLargestPackFile = std::uint64_t{64} << 20;
constexpr std::uint64_t kLargestSignature = std::uint64_t{64} << 10;
constexpr std::uint64_t kReadAtOnce = std::uint64_t{16} << 20;  // a larger file is hashed before it is held
constexpr int kDeepest = 32;

bool is_listed(const std::string& name) { return name != kPackFile && name != kSignatureFile; }

std::string head(std::string_view kind) { return fmt::format("format = {}\nkind = \"{}\"\n", kFormat, kind); }

std::string content_line(const Digest& digest) {
  return fmt::format("{}{}\"\n", kContentStart, digest.hex());
}

// pack.toml without its third line, the content hash, which cannot be in its own hash. No other line is left
// out, whatever it looks like.
std::string without_content(std::string_view text) {
  std::size_t start = 0;
  for (int line = 0; line < 2; ++line) {
    const std::size_t end = text.find('\n', start);
    if (end == std::string_view::npos) return std::string(text);
    start = end + 1;
  }
  if (!text.substr(start).starts_with(kContentStart)) return std::string(text);
  const std::size_t end = std::min(text.find('\n', start), text.size() - 1) + 1;
  return std::string(text.substr(0, start)) + std::string(text.substr(end));
}

std::string file_table(const PackContents& contents) {
  std::string table = "[files]\n";
  for (const auto& [name, bytes] : contents.files)
    if (is_listed(name)) table += fmt::format("\"{}\" = \"{}\"\n", name, blake2b_256(bytes).hex());
  return table;
}

// What a pack may have in all: it is held in memory until it is verified, and asked for more than there is,
// Linux would promise it and kill the process later.
std::uint64_t largest_pack() {
  const std::uint64_t memory = total_memory_bytes();
  return memory == 0 ? kLargestPack : std::min(kLargestPack, memory / 2);
}

// One line of [files].
Result<Digest> listed_digest(std::string_view pack_file, const std::string& name, const TomlNode& node) {
  if (!internal::is_pack_name(name) || !is_listed(name))
    return fail(Code::denied, "{}:{}: '{}' is no name of a file in a pack", pack_file, node.line, name);
  const auto* hex = node.string();
  const auto listed = hex != nullptr ? Digest::parse(*hex) : Result<Digest>(fail(Code::corrupt, "no string"));
  if (!listed || listed->hex() != *hex)
    return fail(Code::corrupt, "{}:{}: the hash of '{}' is not 64 lower-case hexadecimal digits", pack_file,
                node.line, name);
  return *listed;
}

Error missing_file(std::string_view where, const std::string& name) {
  return fail(Code::corrupt, "{}/{}: the file is missing; {} lists it", where, name, kPackFile);
}
Error foreign_file(std::string_view where, const std::string& name) {
  return fail(Code::corrupt, "{}/{}: a foreign file: {} does not list it", where, name, kPackFile);
}
Status same_digest(std::string_view where, const std::string& name, const Digest& actual,
                   const Digest& listed) {
  if (actual == listed) return {};
  return fail(Code::corrupt, "{}/{}: the file is damaged: its BLAKE2b-256 is {}…, {} says {}…", where, name,
              actual.brief(), kPackFile, listed.brief());
}

Result<const TomlNode*> file_list(const TomlNode& root, std::string_view pack_file) {
  const TomlNode* table = root.find("files");
  if (table == nullptr || !table->is_table())
    return fail(Code::corrupt, "{}: there is no table [files]", pack_file);
  return table;
}

// The table [files] against the files that are there.
struct Listing {
  const PackContents& contents;
  std::string_view where;
  std::string pack_file;

  Status check(const TomlNode& table) const {
    for (const auto& [name, node] : *table.table()) {
      FURLONG_TRY(const Digest listed, listed_digest(pack_file, name, node));
      const auto found = contents.files.find(name);
      if (found == contents.files.end()) return missing_file(where, name);
      FURLONG_CHECK(same_digest(where, name, blake2b_256(found->second), listed));
    }
    for (const auto& [name, bytes] : contents.files)
      if (is_listed(name) && table.find(name) == nullptr) return foreign_file(where, name);
    return {};
  }
};

Result<TomlNode> parse_pack_file(const PackContents& contents, std::string_view where) {
  const auto found = contents.files.find(std::string(kPackFile));
  if (found == contents.files.end())
    return fail(Code::corrupt, "{}/{}: the file is missing", where, kPackFile);
  const std::string name = fmt::format("{}/{}", where, kPackFile);
  auto root = toml_parse(found->second, name);
  if (!root) return fail(Code::corrupt, "{}", root.error().text());
  const TomlNode* format = root->find("format");
  if (format == nullptr || format->integer() == nullptr)
    return fail(Code::corrupt, "{}: there is no format number", name);
  if (*format->integer() != kFormat)
    return fail(Code::incompatible, "{}:{}:{}: found pack format {}, expected {}", name, format->line,
                format->column, *format->integer(), kFormat);
  return *std::move(root);
}

// Reads the folder: pack.toml, then every file that it lists. What it does not list, links and anything else
// that is no plain file are refused unread (a pipe or a device could be read for ever), and a file that is
// not as listed before its bytes take any memory.
struct FolderReader {
  Files& files;
  const std::filesystem::path& folder;
  std::uint64_t room = largest_pack();
  std::map<std::string, Digest> listed = {};
  std::set<std::string> found = {};  // names beside pack.toml
  PackContents contents = {};

  std::string where() const { return folder.string(); }

  Status read() {
    FURLONG_CHECK(check_kind(folder / kPackFile, false));
    FURLONG_CHECK(take(std::string(kPackFile), kLargestPackFile));
    FURLONG_TRY(const TomlNode root, parse_pack_file(contents, where()));
    const std::string pack_file = fmt::format("{}/{}", where(), kPackFile);
    FURLONG_TRY(const TomlNode* table, file_list(root, pack_file));
    for (const auto& [name, node] : *table->table()) {
      FURLONG_TRY(listed[name], listed_digest(pack_file, name, node));
    }
    FURLONG_CHECK(walk("", 0));
    for (const auto& [name, digest] : listed)
      if (!found.contains(name)) return missing_file(where(), name);
    for (const std::string& name : found) FURLONG_CHECK(take_verified(name));
    return {};
  }

 private:
  // Files that only a fake knows are not on the disk, and then there is nothing to look at.
  Status check_kind(const std::filesystem::path& path, bool is_folder) const {
    std::error_code error;
    const auto status = std::filesystem::symlink_status(path, error);
    if (std::filesystem::is_symlink(status))
      return fail(Code::denied, "{}: a pack holds no symbolic links", path.string());
    if (is_folder || error || !std::filesystem::exists(status)) return {};
    if (!std::filesystem::is_regular_file(status))
      return fail(Code::denied, "{}: a pack holds only files and folders, no pipes or devices",
                  path.string());
    return {};
  }

  Error too_large() const {
    return fail(Code::exhausted, "{}: a pack of more than {} is not read", folder.string(),
                human_bytes(largest_pack()));
  }

  Status walk(const std::string& inside, int depth) {
    if (depth > kDeepest)
      return fail(Code::invalid, "{}: a pack has at most {} levels of folders", folder.string(), kDeepest);
    FURLONG_TRY(const auto names, files.list(inside.empty() ? folder : folder / inside));
    for (const std::string& name : names) {
      const bool is_folder = name.ends_with('/');
      const std::string full = inside + name;
      if (full == kPackFile) continue;
      FURLONG_CHECK(check_kind(folder / (is_folder ? full.substr(0, full.size() - 1) : full), is_folder));
      if (is_folder) {
        FURLONG_CHECK(walk(full, depth + 1));
        continue;
      }
      if (full != kSignatureFile && !listed.contains(full)) return foreign_file(where(), full);
      if (found.size() >= kMostFiles)
        return fail(Code::invalid, "{}: a pack has at most {} files", folder.string(), kMostFiles);
      found.insert(full);
    }
    return {};
  }

  Status take(const std::string& name, std::uint64_t most) {
    FURLONG_TRY(std::string bytes, files.read(folder / name, std::min(room, most)));
    room -= bytes.size();
    contents.files[name] = std::move(bytes);
    return {};
  }

  Status take_verified(const std::string& name) {
    if (name == kSignatureFile) return take(name, kLargestSignature);
    std::error_code error;
    const std::uintmax_t bytes = std::filesystem::file_size(folder / name, error);
    if (!error && bytes > room) return too_large();
    if (!error && bytes > kReadAtOnce) {
      FURLONG_TRY(const Digest before, files.hash(folder / name, room));
      FURLONG_CHECK(same_digest(where(), name, before, listed[name]));
    }
    FURLONG_CHECK(take(name, room));
    return same_digest(where(), name, blake2b_256(contents.files[name]), listed[name]);
  }
};

Result<PackContents> read_folder(const std::filesystem::path& folder, Files& files) {
  if (!files.exists(folder / kPackFile))
    return fail(Code::invalid, "{}: there is no {}: this folder is no pack", folder.string(), kPackFile);
  FolderReader reader{.files = files, .folder = folder};
  FURLONG_CHECK(reader.read());
  return std::move(reader.contents);
}

Result<std::shared_ptr<const Program>> program_file_of_pack(const PackContents& contents,
                                                            const std::filesystem::path& folder,
                                                            Emitters emitters) {
  FURLONG_TRY(const TomlNode root, parse_pack_file(contents, folder.string()));
  const TomlNode* table = root.find("program");
  const TomlNode* file = table != nullptr ? table->find("file") : nullptr;
  if (file == nullptr || file->string() == nullptr)
    return fail(Code::invalid, "{}/{}: [program] file is missing", folder.string(), kPackFile);
  const auto text = contents.files.find(*file->string());
  if (text == contents.files.end())
    return fail(Code::corrupt, "{}/{}: the program file '{}' is not in the pack", folder.string(), kPackFile,
                *file->string());
  internal::PackFiles inside(folder, contents.files);
  const std::filesystem::path path = folder / *file->string();
  FURLONG_TRY(const auto program,
              parse_program(text->second, path.string(), path.parent_path(), inside, emitters));
  for (const Edition& edition : program->editions)
    for (const auto& include : edition.include_folders)
      if (!inside.name_of(include))
        return fail(Code::denied, "{}: the include folder '{}' is outside the pack", path.string(),
                    include.string());
  return program;
}

Result<std::shared_ptr<const Program>> read_kind(const PackContents& contents, const std::string& kind,
                                                 const std::filesystem::path& folder, Emitters emitters) {
  if (kind == "lottery") return lottery::program_of_pack(contents, folder);
  if (kind == "program") return program_file_of_pack(contents, folder, emitters);
  return fail(Code::incompatible, "{}/{}: found a pack of kind '{}', expected program or lottery",
              folder.string(), kPackFile, kind);
}

// A signature that is there must hold, trusted or not: a broken one is damage.
Result<bool> signed_by_trusted(const PackContents& contents, const std::filesystem::path& folder,
                               Files& files) {
  const auto found = contents.files.find(std::string(kSignatureFile));
  if (found == contents.files.end()) return false;
  const std::string name = (folder / kSignatureFile).string();
  FURLONG_TRY(const PublicKey key, internal::check_signature_file(found->second, pack_hash(contents), name));
  FURLONG_TRY(const auto trusted, trusted_keys(files));
  return std::find(trusted.begin(), trusted.end(), key) != trusted.end();
}

}  // namespace

Digest pack_hash(const PackContents& contents) {
  Hasher hasher;
  hasher.add_field("furlong pack content 1");
  for (const auto& [name, bytes] : contents.files) {
    if (!is_listed(name)) continue;
    hasher.add_field(name);
    hasher.add_field(blake2b_256(bytes).hex());
  }
  const auto found = contents.files.find(std::string(kPackFile));
  hasher.add_field(kPackFile);
  hasher.add_field(found == contents.files.end() ? std::string() : without_content(found->second));
  return hasher.finish();
}

Status seal_pack(PackContents& contents, std::string_view kind, std::string_view body) {
  for (const auto& [name, bytes] : contents.files)
    if (!internal::is_pack_name(name) || name == kSignatureFile)
      return fail(Code::invalid,
                  "'{}' cannot be in a pack: names are relative paths of letters, digits, '.', '_' and '-'",
                  name);
  contents.files.erase(std::string(kPackFile));
  const std::string start = head(kind);
  std::string rest = "\n";
  if (!body.empty()) rest += fmt::format("{}{}\n", body, body.ends_with('\n') ? "" : "\n");
  rest += file_table(contents);
  contents.files[std::string(kPackFile)] = start + rest;
  const Digest digest = pack_hash(contents);
  contents.files[std::string(kPackFile)] = start + content_line(digest) + rest;
  return {};
}

Result<std::string> verify_contents(const PackContents& contents, std::string_view where) {
  FURLONG_TRY(const TomlNode root, parse_pack_file(contents, where));
  const std::string pack_file = fmt::format("{}/{}", where, kPackFile);
  const TomlNode* kind = root.find("kind");
  if (kind == nullptr || kind->string() == nullptr)
    return fail(Code::corrupt, "{}: there is no kind", pack_file);
  FURLONG_TRY(const TomlNode* table, file_list(root, pack_file));
  FURLONG_CHECK((Listing{.contents = contents, .where = where, .pack_file = pack_file}.check(*table)));
  // The bytes before the body are the only ones possible, so that no byte of pack.toml is without meaning.
  const std::string expected = head(*kind->string()) + content_line(pack_hash(contents));
  const std::string& text = contents.files.find(std::string(kPackFile))->second;
  if (text.starts_with(expected)) return *kind->string();
  const auto differ = std::mismatch(expected.begin(), expected.end(), text.begin(), text.end());
  return fail(Code::corrupt, "{}: damaged: the content hash does not hold (byte {})", pack_file,
              differ.second - text.begin());
}

Result<std::shared_ptr<const Program>> load_pack(const std::filesystem::path& folder, Files& files,
                                                 Emitters emitters) {
  FURLONG_TRY(const PackContents contents, read_folder(folder, files));
  FURLONG_TRY(const std::string kind, verify_contents(contents, folder.string()));
  FURLONG_TRY(const bool trusted, signed_by_trusted(contents, folder, files));
  FURLONG_TRY(const auto program, read_kind(contents, kind, folder, emitters));
  auto result = std::make_shared<Program>(*program);
  result->file = folder;
  result->trusted = trusted;
  return std::shared_ptr<const Program>(std::move(result));
}

Result<PackContents> read_pack(const std::filesystem::path& folder, Files& files) {
  FURLONG_TRY(PackContents contents, read_folder(folder, files));
  FURLONG_CHECK(verify_contents(contents, folder.string()));
  return contents;
}

Status sign_pack(const std::filesystem::path& folder, const KeyPair& key) {
  FURLONG_TRY(const PackContents contents, read_folder(folder, system_files()));
  FURLONG_CHECK(verify_contents(contents, folder.string()));
  return system_files().write_atomic(folder / kSignatureFile,
                                     internal::make_signature_file(pack_hash(contents), key));
}

Status verify_pack_signature(const std::filesystem::path& folder, std::span<const PublicKey> trusted) {
  FURLONG_TRY(const PackContents contents, read_folder(folder, system_files()));
  FURLONG_CHECK(verify_contents(contents, folder.string()));
  const auto found = contents.files.find(std::string(kSignatureFile));
  if (found == contents.files.end())
    return fail(Code::denied, "{}: the pack is not signed (furlong pack sign)", folder.string());
  FURLONG_TRY(const PublicKey key, internal::check_signature_file(found->second, pack_hash(contents),
                                                                  (folder / kSignatureFile).string()));
  if (std::find(trusted.begin(), trusted.end(), key) != trusted.end()) return {};
  return fail(Code::denied, "{}: the pack is signed by key {}, which is none of the {} trusted ones",
              folder.string(), key.id(), trusted.size());
}

Result<std::vector<PublicKey>> trusted_keys(Files& files) {
  const std::filesystem::path path = config_folder() / "trusted-keys";
  std::vector<PublicKey> keys;
  if (!files.exists(path)) return keys;
  FURLONG_TRY(const std::string text, files.read(path, 1u << 20));
  int number = 0;
  for (const std::string& whole : split(text, '\n')) {
    ++number;
    const std::string_view line = trim(std::string_view(whole).substr(0, whole.find('#')));
    if (line.empty()) continue;
    auto key = PublicKey::parse(line);
    if (!key) return fail(Code::invalid, "{}:{}: {}", path.string(), number, key.error().text());
    keys.push_back(*key);
  }
  return keys;
}

}  // namespace furlong::program
