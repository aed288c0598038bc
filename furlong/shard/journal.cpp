#include "furlong/shard/journal.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "furlong/base/json.h"
#include "furlong/base/os/file.h"

namespace furlong::shard {
namespace {

constexpr std::size_t kSumDigits = 16;

std::string sealed(const std::string& body) {
  return fmt::format("{} {}\n", blake2b_256(body).hex().substr(0, kSumDigits), body);
}

// What a whole line holds; nothing when its check sum does not fit.
std::optional<std::string_view> unsealed(std::string_view line) {
  if (line.size() <= kSumDigits || line[kSumDigits] != ' ') return std::nullopt;
  const std::string_view body = line.substr(kSumDigits + 1);
  if (blake2b_256(body).hex().substr(0, kSumDigits) != line.substr(0, kSumDigits)) return std::nullopt;
  return body;
}

struct Line {
  std::size_t number;  // from 1
  std::string_view body;
};

// All whole lines from the front, and where they end. Damage that has a whole line after it is no torn end.
Result<std::vector<Line>> whole_lines(std::string_view text, const std::string& name, std::size_t& end) {
  std::vector<Line> lines;
  std::size_t number = 0, damaged = 0;
  end = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t newline = text.find('\n', at);
    if (newline == text.npos) break;
    ++number;
    const auto body = unsealed(text.substr(at, newline - at));
    at = newline + 1;
    if (!body && damaged == 0) damaged = number;
    if (!body) continue;
    if (damaged != 0)
      return fail(Code::corrupt,
                  "{}:{}: the check sum does not fit, and whole lines follow: remove the file to "
                  "begin anew",
                  name, damaged);
    lines.push_back({number, *body});
    end = at;
  }
  return lines;
}

Error system_error(const std::string& name, std::string_view doing, int number) {
  const Code code = number == ENOSPC || number == EDQUOT || number == EFBIG ? Code::exhausted
                    : number == EACCES || number == EROFS                   ? Code::denied
                                                                            : Code::internal;
  return fail(code, "{}: {}: {}", name, doing, std::generic_category().message(number));
}

Status check_head(const Line& line, const std::string& name, const std::string& identity) {
  FURLONG_TRY(const Json head, json_parse(line.body, name));
  const auto version = json_integer(head, "furlong_shard_journal", name);
  if (!version) return fail(Code::invalid, "{}: not a journal of shards", name);
  if (*version != kJournalVersion)
    return fail(Code::incompatible, "{}: found a journal of version {}, expected {}: remove it to begin anew",
                name, *version, kJournalVersion);
  const std::string found = head.contains("about") ? json_line(head["about"]) : "";
  if (found != identity)
    return fail(Code::invalid, "{}: the journal is about {}, not {}: remove it, or give another file", name,
                found, identity);
  return {};
}

}  // namespace

Journal::~Journal() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

Result<std::unique_ptr<Journal>> Journal::open(const std::filesystem::path& file,
                                               const std::string& identity) {
  auto journal = std::make_unique<Journal>();
  journal->name_ = file.string();
  journal->identity_ = identity;
  const std::string& name = journal->name_;
  Files& files = system_files();
  // Whole from its first moment: a head that is torn would be nobody's.
  const std::string head =
      sealed(fmt::format(R"({{"furlong_shard_journal":{},"about":{}}})", kJournalVersion, identity));
  std::error_code ignored;
  if (!files.exists(file) || std::filesystem::file_size(file, ignored) == 0)
    FURLONG_CHECK(files.write_atomic(file, head));
  journal->descriptor_ = ::open(file.c_str(), O_RDWR | O_APPEND | O_CLOEXEC);
  if (journal->descriptor_ < 0) return system_error(name, "opening", errno);
  if (::flock(journal->descriptor_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
    return fail(Code::denied, "{}: another process writes to this journal", name);
  FURLONG_TRY(const std::string text, files.read(file));
  std::size_t end = 0;
  FURLONG_TRY(const std::vector<Line> lines, whole_lines(text, name, end));
  if (lines.empty()) return fail(Code::invalid, "{}: not a journal of shards", name);
  FURLONG_CHECK(check_head(lines[0], name, identity));
  for (const Line& line : std::span(lines).subspan(1)) {
    const std::string where = fmt::format("{}:{}", name, line.number);
    FURLONG_TRY(const Json finding, json_parse(line.body, where));
    FURLONG_TRY(const std::string kind, json_string(finding, "kind", where));
    FURLONG_TRY(const std::string key, json_string(finding, "key", where));
    if (!finding.contains("value")) return fail(Code::invalid, "{}: no value", where);
    journal->findings_.try_emplace({kind, key}, json_line(finding["value"]));
  }
  journal->dropped_bytes_ = text.size() - end;
  if (end < text.size() && ::ftruncate(journal->descriptor_, static_cast<off_t>(end)) != 0)
    return system_error(name, "dropping a torn end", errno);
  return journal;
}

std::optional<std::string> Journal::find(const std::string& kind, const std::string& key) const {
  const std::scoped_lock lock(mutex_);
  const auto found = findings_.find({kind, key});
  if (found == findings_.end()) return std::nullopt;
  return found->second;
}

Status Journal::add(const std::string& kind, const std::string& key, const std::string& value) {
  const std::scoped_lock lock(mutex_);
  if (!findings_.try_emplace({kind, key}, value).second || descriptor_ < 0) return {};
  const std::string line = sealed(fmt::format(R"({{"kind":{},"key":{},"value":{}}})", json_line(Json(kind)),
                                              json_line(Json(key)), value));
  // One write: with O_APPEND it is there whole or torn at the end, where it is dropped.
  for (std::size_t done = 0; done < line.size();) {
    const ssize_t wrote = ::write(descriptor_, line.data() + done, line.size() - done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return system_error(name_, "writing", errno);
    done += static_cast<std::size_t>(wrote);
  }
  return {};
}

Status Journal::sync() {
  const std::scoped_lock lock(mutex_);
  if (descriptor_ >= 0 && ::fdatasync(descriptor_) != 0)
    return system_error(name_, "writing to the disk", errno);
  return {};
}

Digest Journal::digest(const std::string& scope) const {
  const std::scoped_lock lock(mutex_);
  Hasher hasher;
  hasher.add_field("furlong shard journal 1").add_field(identity_);
  const auto foreign = [&](const std::string& kind) {
    const std::size_t blank = kind.find(' ');
    return blank != std::string::npos && kind.substr(blank + 1) != scope;
  };
  for (const auto& [place, value] : findings_) {
    if (foreign(place.first)) continue;
    hasher.add_field(place.first).add_field(place.second).add_field(value);
  }
  return hasher.finish();
}

std::size_t Journal::size() const {
  const std::scoped_lock lock(mutex_);
  return findings_.size();
}

}  // namespace furlong::shard
