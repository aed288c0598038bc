#include "furlong/fleet/store/sql/names.h"

#include <algorithm>

#include "furlong/base/json.h"

namespace furlong::fleet::sql {
namespace {

constexpr std::string_view find_word = "SELECT number FROM word WHERE text=?1";
constexpr std::string_view last_word = "SELECT coalesce(max(number), 0) FROM word";
constexpr std::string_view add_word = "INSERT INTO word(number, text) VALUES(?1, ?2)";
constexpr std::string_view find_subject = "SELECT number FROM subject WHERE digest=?1";
constexpr std::string_view last_subject = "SELECT coalesce(max(number), 0) FROM subject";
constexpr std::string_view add_subject =
    "INSERT INTO subject(number, digest, silicon, backend, program, class, metric, unit, made_of) "
    "VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";

}  // namespace

Digest digest_of(const Subject& subject) {
  Hasher hasher;
  for (const std::string* field : {&subject.silicon, &subject.backend, &subject.program,
                                   &subject.program_class, &subject.metric, &subject.unit})
    hasher.add_field(*field);
  return hasher.finish();
}

void Names::forget() {
  words_.clear();
  subjects_.clear();
}

void Names::trim() {
  if (words_.size() > most_) words_.clear();
  if (subjects_.size() > most_) subjects_.clear();
}

Result<WordNumber> Names::word(std::string_view text) const {
  if (text.empty()) return WordNumber{0};
  const auto at = words_.find(text);
  if (at == words_.end()) return fail(Code::internal, "a word of {} bytes was not learned", text.size());
  return at->second;
}

Result<std::optional<WordNumber>> Names::find(std::string_view word) {
  std::optional<WordNumber> number;
  FURLONG_CHECK(connection_->once(find_word, {word}, [&](std::size_t, const Row& row) -> Result<bool> {
    number = static_cast<WordNumber>(row.integer(0));
    return true;
  }));
  return number;
}

Status Names::learn(std::span<const std::string_view> words) {
  std::vector<std::string_view> unknown;
  for (const std::string_view text : words)
    if (!text.empty() && !words_.contains(text)) unknown.push_back(text);
  if (unknown.empty()) return {};
  std::ranges::sort(unknown);
  unknown.erase(std::unique(unknown.begin(), unknown.end()), unknown.end());
  std::vector<Value> values(unknown.begin(), unknown.end());
  FURLONG_CHECK(
      connection_->run(find_word, values, 1, [&](std::size_t index, const Row& row) -> Result<bool> {
        words_.emplace(unknown[index], static_cast<WordNumber>(row.integer(0)));
        return true;
      }));
  std::erase_if(unknown, [&](std::string_view text) { return words_.contains(text); });
  if (unknown.empty()) return {};
  std::int64_t last = 0;
  FURLONG_CHECK(connection_->once(last_word, {}, [&](std::size_t, const Row& row) -> Result<bool> {
    last = row.integer(0);
    return true;
  }));
  values.clear();
  for (const std::string_view text : unknown) {
    values.insert(values.end(), {Value(++last), Value(text)});
    words_.emplace(text, static_cast<WordNumber>(last));
  }
  return connection_->run(add_word, values, 2);
}

Result<SubjectNumber> Names::learn_subject(const DecodedRace& race) {
  const Subject& subject = race.subject;
  if (const auto at = subjects_.find(subject); at != subjects_.end()) return at->second;
  const Digest digest = digest_of(subject);
  std::int64_t number = 0;
  const auto take = [&](std::size_t, const Row& row) -> Result<bool> {
    number = row.integer(0);
    return true;
  };
  FURLONG_CHECK(connection_->once(find_subject, {ByteView(digest.bytes)}, take));
  if (number == 0) {
    FURLONG_CHECK(connection_->once(last_subject, {}, take));
    ++number;
    const std::string made_of = json_line(record::silicon_to_json(race.silicon));
    FURLONG_CHECK(connection_->once(
        add_subject,
        {number, ByteView(digest.bytes), std::string_view(subject.silicon), std::string_view(subject.backend),
         std::string_view(subject.program), std::string_view(subject.program_class),
         std::string_view(subject.metric), std::string_view(subject.unit), std::string_view(made_of)}));
  }
  subjects_.emplace(subject, static_cast<SubjectNumber>(number));
  return static_cast<SubjectNumber>(number);
}

}  // namespace furlong::fleet::sql
