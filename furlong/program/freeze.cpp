// A program file with everything that it refers to becomes a pack.
#include <algorithm>
#include <set>

#include "furlong/base/text.h"
#include "furlong/base/toml.h"
#include "furlong/program/internal/headers.h"
#include "furlong/program/internal/pack_files.h"
#include "furlong/program/internal/reader.h"
#include "furlong/program/pack.h"

namespace furlong::program {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLargestFile = std::size_t{16} << 30;

// A path that the program file names.
struct Mention {
  const TomlNode* node = nullptr;
  std::string prefix;  ///< "host:" in "host:reference.cpp:add"
  std::string path;
  std::string suffix;
  bool is_folder = false;
};

void add_paths(const TomlNode* node, bool is_folder, std::vector<Mention>& mentions) {
  if (node == nullptr) return;
  if (const auto* path = node->string()) mentions.push_back({node, "", *path, "", is_folder});
  if (const auto* items = node->array())
    for (const TomlNode& item : *items) add_paths(&item, is_folder, mentions);
}

void add_reference(const TomlNode* check, std::vector<Mention>& mentions) {
  const TomlNode* node = check != nullptr ? check->find("reference") : nullptr;
  if (node != nullptr && node->string() != nullptr) {
    const std::string& text = *node->string();
    const std::size_t first = text.find(':');
    const std::size_t last = text.rfind(':');
    if (first != std::string::npos && last > first)
      mentions.push_back({node, text.substr(0, first + 1), text.substr(first + 1, last - first - 1),
                          text.substr(last), false});
  }
  const TomlNode* expected = check != nullptr ? check->find("expected") : nullptr;
  if (expected != nullptr && expected->is_table())
    for (const auto& [name, file] : *expected->table()) add_paths(&file, false, mentions);
}

// In a file that the reader has accepted, so that every key has its type.
std::vector<Mention> mentions_of(const TomlNode& root) {
  std::vector<Mention> mentions;
  const TomlNode* program = root.find("program");
  if (program != nullptr) {
    add_paths(program->find("source"), false, mentions);
    add_paths(program->find("include"), true, mentions);
  }
  if (const TomlNode* sources = root.find("source"); sources != nullptr && sources->is_table())
    for (const auto& [language, table] : *sources->table()) {
      add_paths(table.find("file"), false, mentions);
      add_paths(table.find("include"), true, mentions);
    }
  if (const TomlNode* arguments = root.find("argument"); arguments != nullptr && arguments->is_array())
    for (const TomlNode& argument : *arguments->array()) add_paths(argument.find("file"), false, mentions);
  add_reference(root.find("check"), mentions);
  return mentions;
}

fs::path whole_path(const fs::path& path) {
  std::error_code error;
  const fs::path whole = fs::absolute(path, error);
  return (error ? path : whole).lexically_normal();
}

// End of the string literal that starts at `at`, one past its last quote.
std::optional<std::size_t> literal_end(std::string_view text, std::size_t at) {
  const char quote = text[at];
  if (quote != '"' && quote != '\'') return std::nullopt;
  if (text.substr(at).starts_with(std::string(3, quote)))
    return std::nullopt;  // nobody writes a path over many lines
  for (std::size_t i = at + 1; i < text.size(); ++i) {
    if (quote == '"' && text[i] == '\\') {
      ++i;
    } else if (text[i] == quote) {
      return i + 1;
    } else if (text[i] == '\n') {
      break;
    }
  }
  return std::nullopt;
}

struct Freezer {
  const Program& program;
  Files& files;
  std::string text;                          ///< of the program file
  std::map<fs::path, std::string> contents;  ///< by absolute path
  std::map<fs::path, std::string> moved;     ///< absolute mentions: their path in the pack
  std::set<std::string> moved_names;

  fs::path folder() const { return whole_path(program.file).parent_path(); }

  Status add(const fs::path& path) {
    if (contents.contains(path)) return {};
    FURLONG_TRY(contents[path], files.read(path, kLargestFile));
    return {};
  }

  Status add_mention(const internal::Reader& in, const Mention& mention) {
    const bool is_absolute = fs::path(mention.path).is_absolute();
    if (mention.is_folder) {
      if (is_absolute)
        return in.error(*mention.node,
                        "the include folder '{}' is absolute and cannot be packed: a pack carries its own "
                        "headers; give a path relative to the program file",
                        mention.path);
      return {};
    }
    const fs::path path = whole_path(folder() / mention.path);
    auto content = files.read(path, kLargestFile);
    if (!content) return in.error(*mention.node, "{}", content.error().text());
    if (!is_absolute) {
      contents[path] = *std::move(content);
      return {};
    }
    if (!internal::includes_of(*content).empty() && path.extension() != ".npy" &&
        mention.prefix != "library:")
      return in.error(*mention.node,
                      "'{}' is absolute and includes headers: give a path relative to the program file",
                      mention.path);
    std::string name = "files/" + path.filename().string();
    for (int i = 2; !moved_names.insert(name).second; ++i)
      name = fmt::format("files/{}-{}", i, path.filename().string());
    moved[path] = name;
    contents[path] = *std::move(content);
    return {};
  }

  // The host reference's headers; those of the sources came with the program.
  Status add_headers() {
    for (const Edition& edition : program.editions)
      for (const Header& header : edition.headers) contents[whole_path(header.file)] = header.text;
    if (program.check.reference != ReferenceKind::host) return {};
    FURLONG_TRY(const auto headers, internal::read_headers(files, program.check.host_source,
                                                           program.check.file.parent_path(), {}));
    for (const Header& header : headers) contents[whole_path(header.file)] = header.text;
    return {};
  }

  // The deepest folder that holds everything that is not moved.
  fs::path common_folder() const {
    fs::path root = folder();
    for (const auto& [path, bytes] : contents) {
      if (moved.contains(path)) continue;
      while (true) {
        const std::string relative = path.lexically_relative(root).generic_string();
        if (!relative.starts_with("..") || root == root.parent_path()) break;
        root = root.parent_path();
      }
    }
    return root;
  }

  // Absolute paths in the program file become relative ones; everything else stays as it was written.
  Status rewrite_text(const internal::Reader& in, const std::vector<Mention>& mentions,
                      const fs::path& root) {
    std::map<std::size_t, std::pair<std::size_t, std::string>> edits;
    for (const Mention& mention : mentions) {
      if (mention.is_folder || !fs::path(mention.path).is_absolute()) continue;
      const auto start = in.offset(internal::place_of(*mention.node));
      const auto end = start ? literal_end(text, *start) : std::nullopt;
      if (!end)
        return in.error(*mention.node, "the absolute path '{}' must be a string of one line to be packed",
                        mention.path);
      const fs::path in_pack = root / moved.at(whole_path(mention.path));
      edits[*start] = {*end, '"' + mention.prefix + in_pack.lexically_relative(folder()).generic_string() +
                                 mention.suffix + '"'};
    }
    for (auto edit = edits.rbegin(); edit != edits.rend();
         ++edit)  // from the end, so that offsets stay right
      text.replace(edit->first, edit->second.first - edit->first, edit->second.second);
    return {};
  }

  Result<PackContents> finish(const fs::path& root) {
    PackContents pack;
    const std::string name = whole_path(program.file).lexically_relative(root).generic_string();
    for (auto& [path, bytes] : contents) {
      const auto found = moved.find(path);
      const std::string in_pack =
          found != moved.end() ? found->second : path.lexically_relative(root).generic_string();
      if (!pack.files.emplace(in_pack, std::move(bytes)).second)
        return fail(Code::invalid, "two files would be '{}' in the pack; rename one", in_pack);
    }
    pack.files[name] = text;
    FURLONG_CHECK(seal_pack(pack, "program",
                            fmt::format("[program]\nname = \"{}\"\nfile = \"{}\"\n", program.name, name)));
    return pack;
  }
};

// What was packed must be the program that was given: a file may have changed on disk since it was read.
Status check_same(const Program& program, const PackContents& pack, const std::string& name) {
  internal::PackFiles inside("/pack", pack.files);
  const fs::path path = fs::path("/pack") / name;
  std::vector<std::shared_ptr<const Emitter>> emitters;
  for (const Edition& edition : program.editions)
    if (edition.emitter != nullptr) emitters.push_back(edition.emitter);
  FURLONG_TRY(const auto again,
              parse_program(pack.files.at(name), path.string(), path.parent_path(), inside, emitters));
  if (again->source_hash() == program.source_hash()) return {};
  return fail(Code::invalid,
              "{}: the program or a file that it refers to changed while it was packed; read it again",
              program.file.string());
}

}  // namespace

Result<PackContents> freeze_program(const Program& program, Files& files) {
  if (program.file.empty())
    return fail(Code::invalid, "program '{}' was not read from a program file, so there is nothing to pack",
                program.name);
  Freezer freezer{
      .program = program, .files = files, .text = {}, .contents = {}, .moved = {}, .moved_names = {}};
  FURLONG_TRY(freezer.text, files.read(program.file));
  const std::string original = freezer.text;
  const std::string name = program.file.string();
  FURLONG_TRY(const TomlNode root, toml_parse(original, name));
  const internal::Reader in(original, name);
  const auto mentions = mentions_of(root);
  for (const Mention& mention : mentions) FURLONG_CHECK(freezer.add_mention(in, mention));
  FURLONG_CHECK(freezer.add_headers());
  const fs::path common = freezer.common_folder();
  FURLONG_CHECK(freezer.rewrite_text(in, mentions, common));
  FURLONG_TRY(PackContents pack, freezer.finish(common));
  FURLONG_CHECK(
      check_same(program, pack, whole_path(program.file).lexically_relative(common).generic_string()));
  return pack;
}

}  // namespace furlong::program
