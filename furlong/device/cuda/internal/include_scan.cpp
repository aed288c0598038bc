#include "furlong/device/cuda/internal/include_scan.h"

#include <array>
#include <map>
#include <set>

#include "furlong/base/os/file.h"
#include "furlong/base/text.h"

namespace furlong::device {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostHeaders = 1024;
constexpr std::size_t kMostBytes = 64u << 20;
constexpr std::size_t kMostEntries = 4096;

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}
bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f'; }

// A backslash at the end of a line joins it to the next one before anything else is looked at; compilers
// allow blanks behind it.
std::string spliced(std::string_view text) {
  std::string joined;
  joined.reserve(text.size());
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '\\') {
      std::size_t end = at + 1;
      while (end < text.size() && is_blank(text[end])) ++end;
      if (end < text.size() && text[end] == '\n') {
        at = end;
        continue;
      }
    }
    joined.push_back(text[at]);
  }
  return joined;
}

// Past blanks and comments.
std::size_t skip_blanks(std::string_view text, std::size_t at) {
  while (at < text.size()) {
    if (is_blank(text[at])) {
      ++at;
    } else if (text.substr(at, 2) == "/*") {
      const std::size_t end = text.find("*/", at + 2);
      if (end == std::string_view::npos) return text.size();
      at = end + 2;
    } else {
      break;
    }
  }
  return at;
}

// Whether the word at `at` stands where a directive's name does; also where a comment hides what stands
// before.
bool may_be_directive(std::string_view text, std::size_t at) {
  while (at > 0 && is_blank(text[at - 1])) --at;
  const std::string_view before = text.substr(0, at);
  return before.ends_with('#') || before.ends_with("%:") || before.ends_with("*/");
}

Error unknown_headers(std::string_view why) {
  return fail(Code::unavailable, "which headers it includes cannot be known: {}", why);
}

struct Word {
  std::string_view word;
  bool call;  ///< followed by a parenthesis, else a directive
};
constexpr std::array<Word, 6> kWords{{{"include", false},
                                      {"include_next", false},
                                      {"embed", false},
                                      {"__has_include", true},
                                      {"__has_include_next", true},
                                      {"__has_embed", true}}};

const Word* word_at(std::string_view text, std::size_t begin, std::size_t end) {
  for (const Word& word : kWords) {
    if (text.substr(begin, end - begin) == word.word) return &word;
  }
  return nullptr;
}

/// Folders and files that the options add.
struct Reach {
  std::vector<fs::path> folders;
  std::vector<std::string> names;
};

Status read_options(const CompileRequest& request, Reach& reach) {
  enum class Next { option, folder, name } next = Next::option;
  for (const std::string& option : request.options) {
    const std::string_view text(option);
    if (next != Next::option) {
      if (next == Next::folder) reach.folders.emplace_back(option);
      if (next == Next::name) reach.names.push_back(option);
      next = Next::option;
    } else if (text == "-I" || text == "--include-path") {
      next = Next::folder;
    } else if (text == "-include" || text == "--pre-include") {
      next = Next::name;
    } else if (text.starts_with("--include-path=")) {
      reach.folders.emplace_back(text.substr(15));
    } else if (text.starts_with("-I")) {
      reach.folders.emplace_back(text.substr(text.starts_with("-I=") ? 3 : 2));
    } else if (text.starts_with("-include=")) {
      reach.names.emplace_back(text.substr(9));
    } else if (text.starts_with("--pre-include=")) {
      reach.names.emplace_back(text.substr(14));
    } else if (text == "--no-source-include" || text == "-no-source-include") {
      // takes a folder away, and more folders than the compiler's do no harm
    } else if (text.starts_with('-') && (text.contains("include") || text.contains("pch"))) {
      return unknown_headers(fmt::format("the option {}", option));
    }
  }
  return {};
}

class Scan {
 public:
  Scan(const CompileRequest& request, const std::vector<fs::path>& toolkit)
      : request_(request), toolkit_(toolkit) {}

  Result<std::vector<ReachedHeader>> run() {
    Reach reach;
    for (const fs::path& folder : request_.include_folders) reach.folders.push_back(folder);
    FURLONG_CHECK(read_options(request_, reach));
    add_folder(fs::path(request_.source_name).parent_path());
    for (const fs::path& folder : reach.folders) {
      if (!is_toolkit(folder)) {
        add_folder(folder);
        given_.insert(folder);
      }
    }
    for (std::string& name : reach.names) add_name(std::move(name));
    FURLONG_CHECK(add_text(request_.source));
    // A new name is looked up in the old folders and an old name in the new ones, until nothing comes of it.
    while (!names_.empty() || !new_folders_.empty()) {
      FURLONG_CHECK(look_up());
      if (names_.empty() && new_folders_.empty()) FURLONG_CHECK(add_stand_ins());
    }
    std::vector<ReachedHeader> headers;
    for (auto& [path, digest] : found_) headers.push_back({path, digest});
    return headers;
  }

 private:
  bool is_toolkit(const fs::path& folder) const {
    std::error_code ignored;
    for (const fs::path& own : toolkit_) {
      if (fs::equivalent(folder, own, ignored)) return true;
    }
    return false;
  }
  void add_folder(const fs::path& folder) {
    // By its real place: a header that includes itself as "sub/../x.h" makes no end of spellings.
    std::error_code ignored;
    const fs::path real = fs::canonical(folder.empty() ? fs::path(".") : folder, ignored);
    if (!ignored && folders_.emplace(real, folder).second) new_folders_.push_back(folder);
  }
  void add_name(std::string name) {
    if (seen_.insert(name).second) names_.push_back(std::move(name));
  }
  Status add_text(std::string_view text) {
    FURLONG_TRY(const std::vector<std::string> names, included_names(text));
    for (const std::string& name : names) add_name(name);
    return {};
  }

  Status add_file(const fs::path& path) {
    std::error_code ignored;
    if (found_.contains(path) || !fs::is_regular_file(path, ignored)) return {};
    FURLONG_TRY(const std::string text, system_files().read(path, kMostBytes));
    bytes_ += text.size();
    if (found_.size() >= kMostHeaders || bytes_ > kMostBytes)
      return unknown_headers(
          fmt::format("there are more than {} of them, or {}", kMostHeaders, human_bytes(kMostBytes)));
    found_[path] = blake2b_256(text);
    add_folder(path.parent_path());
    return add_text(text);
  }

  Status look_up() {
    const std::vector<std::string> names = std::move(names_);
    const std::vector<fs::path> folders = std::move(new_folders_);
    names_.clear();
    new_folders_.clear();
    const std::map<fs::path, fs::path> all = folders_;  // grows meanwhile
    for (const auto& [real, folder] : all) {
      for (const std::string& name : names) FURLONG_CHECK(add_file(folder / name));
    }
    const std::vector<std::string> known(seen_.begin(), seen_.end());
    for (const fs::path& folder : folders) {
      for (const std::string& name : known) FURLONG_CHECK(add_file(folder / name));
    }
    return {};
  }

  bool uses_toolkit() const {
    for (const std::string& name : seen_) {
      for (const fs::path& own : toolkit_) {
        if (system_files().exists(own / name)) return true;
      }
    }
    return false;
  }

  // The toolkit's headers include each other by names that are looked up in the include folders first.
  Status add_stand_ins() {
    if (given_.empty() || stand_ins_done_ || !uses_toolkit()) return {};
    stand_ins_done_ = true;
    std::size_t entries = 0;
    for (const fs::path& folder : given_) {
      std::error_code error;
      for (fs::recursive_directory_iterator entry(folder, error), end; !error && entry != end;
           entry.increment(error)) {
        if (++entries > kMostEntries)
          return unknown_headers(
              fmt::format("the toolkit's may find others among the more than {} files of {}", kMostEntries,
                          folder.string()));
        const fs::path name = entry->path().lexically_relative(folder);
        for (const fs::path& own : toolkit_) {
          std::error_code ignored;
          if (fs::is_regular_file(own / name, ignored)) FURLONG_CHECK(add_file(entry->path()));
        }
      }
      if (error && error != std::errc::no_such_file_or_directory)
        return unknown_headers(fmt::format("{}: {}", folder.string(), error.message()));
    }
    return {};
  }

  const CompileRequest& request_;
  const std::vector<fs::path>& toolkit_;
  std::map<fs::path, fs::path> folders_;  // by real place, as first spelled
  std::set<fs::path> given_;
  std::vector<fs::path> new_folders_;
  std::set<std::string> seen_;
  std::vector<std::string> names_;
  std::map<fs::path, Digest> found_;
  std::size_t bytes_ = 0;
  bool stand_ins_done_ = false;
};

}  // namespace

Result<std::vector<std::string>> included_names(std::string_view source) {
  if (source.contains("\?\?=") || source.contains("\?\?/")) return unknown_headers("the text has trigraphs");
  const std::string joined = spliced(source);
  const std::string_view text(joined);
  std::vector<std::string> names;
  for (std::size_t at = 0; at < text.size();) {
    if (!is_word(text[at])) {
      ++at;
      continue;
    }
    const std::size_t begin = at;
    while (at < text.size() && is_word(text[at])) ++at;
    const Word* word = word_at(text, begin, at);
    if (word == nullptr) continue;
    std::size_t next = skip_blanks(text, at);
    if (word->call) {
      if (next >= text.size() || text[next] != '(') continue;  // asked whether it is defined
      next = skip_blanks(text, next + 1);
    }
    const char open = next < text.size() ? text[next] : '\0';
    if (open == '"' || open == '<') {
      const std::size_t end = text.find_first_of(open == '"' ? "\"\n" : ">\n", next + 1);
      if (end != std::string_view::npos && text[end] != '\n') {
        names.emplace_back(text.substr(next + 1, end - next - 1));
        continue;
      }
    }
    if (word->call || may_be_directive(text, begin)) {
      const std::string_view line = text.substr(next, std::min(text.find('\n', next), text.size()) - next);
      return unknown_headers(fmt::format("'{} {}' names one by a macro", word->word, one_line(line)));
    }
  }
  return names;
}

Result<std::vector<ReachedHeader>> reached_headers(const CompileRequest& request,
                                                   const std::vector<fs::path>& toolkit_folders) {
  Result<std::vector<ReachedHeader>> headers = Scan(request, toolkit_folders).run();
  // A header that is there but cannot be read: the compiler will say so.
  if (!headers && headers.error().code() != Code::unavailable) return unknown_headers(headers.error().text());
  return headers;
}

}  // namespace furlong::device
