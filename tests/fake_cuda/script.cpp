#include "tests/fake_cuda/script.h"

#include <cstdlib>
#include <fstream>
#include <sstream>

namespace furlong::fake {
namespace {

std::string trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos) return "";
  return std::string(text.substr(begin, text.find_last_not_of(" \t\r\n") + 1 - begin));
}

std::string environment_text() {
  const char* value = std::getenv("FURLONG_FAKE_CUDA");
  if (value == nullptr) return "";
  if (std::string_view(value).find('=') != std::string_view::npos) return value;
  std::ifstream file(value);
  std::stringstream all;
  all << file.rdbuf();
  return all.str();
}

Plan parse_plan(std::string_view text) {
  Plan plan;
  const std::size_t at = text.find('@');
  plan.what = trimmed(text.substr(0, at));
  if (at == std::string_view::npos) return plan;
  std::string when = trimmed(text.substr(at + 1));
  if (when.ends_with('+')) {
    plan.onwards = true;
    when.pop_back();
  }
  plan.first = std::strtoull(when.c_str(), nullptr, 10);
  return plan;
}

}  // namespace

std::vector<std::string> words(std::string_view text, char separator) {
  std::vector<std::string> out;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(separator, at), text.size());
    if (std::string word = trimmed(text.substr(at, end - at)); !word.empty()) out.push_back(std::move(word));
    at = end + 1;
  }
  return out;
}

std::uint64_t parse_bytes(std::string_view text) {
  const std::string copy(text);
  char* end = nullptr;
  const double value = std::strtod(copy.c_str(), &end);
  const std::string unit = trimmed(end);
  const double scale = unit == "KiB"   ? 1024.0
                       : unit == "MiB" ? 1048576.0
                       : unit == "GiB" ? 1073741824.0
                                       : 1.0;
  return value > 0 ? static_cast<std::uint64_t>(value * scale) : 0;
}

Script& Script::the() {
  static Script* script = new Script;  // never destroyed: threads of the card outlive main()
  return *script;
}

Script::Script() { read(environment_text()); }

void Script::set(std::string_view text) {
  const std::lock_guard lock(mutex_);
  read(text.empty() ? environment_text() : std::string(text));
}

void Script::read(std::string_view text) {
  values_.clear();
  counts_.clear();
  std::string lines(text);
  for (char& c : lines) c = c == ';' ? '\n' : c;
  for (const std::string& line : words(lines, '\n')) {
    const std::size_t equals = line.find('=');
    if (line.starts_with('#') || equals == std::string::npos) continue;
    values_[trimmed(line.substr(0, equals))] = trimmed(line.substr(equals + 1));
  }
}

bool Script::has(const std::string& key) const {
  const std::lock_guard lock(mutex_);
  return values_.contains(key);
}

std::string Script::text(const std::string& key, std::string_view fallback) const {
  const std::lock_guard lock(mutex_);
  const auto found = values_.find(key);
  return found == values_.end() ? std::string(fallback) : found->second;
}

std::string Script::first_of(std::initializer_list<std::string> keys, std::string_view fallback) const {
  const std::lock_guard lock(mutex_);
  for (const std::string& key : keys) {
    if (values_.contains(key)) return values_.at(key);
  }
  return std::string(fallback);
}

std::int64_t Script::number(const std::string& key, std::int64_t fallback) const {
  const std::string value = text(key);
  return value.empty() ? fallback : std::strtoll(value.c_str(), nullptr, 0);
}

double Script::real(const std::string& key, double fallback) const {
  const std::string value = text(key);
  return value.empty() ? fallback : std::strtod(value.c_str(), nullptr);
}

std::uint64_t Script::bytes(const std::string& key, std::uint64_t fallback) const {
  const std::string value = text(key);
  return value.empty() ? fallback : parse_bytes(value);
}

std::optional<std::string> Script::happens(const std::string& key, const std::string& counter) {
  const std::lock_guard lock(mutex_);
  const std::uint64_t count = ++counts_[counter];
  const auto found = values_.find(key);
  if (found == values_.end()) return std::nullopt;
  for (const std::string& word : words(found->second, ',')) {
    const Plan plan = parse_plan(word);
    if (plan.at(count)) return plan.what;
  }
  return std::nullopt;
}

std::string Script::next(const std::string& key, std::string_view fallback) {
  const std::lock_guard lock(mutex_);
  const auto found = values_.find(key);
  if (found == values_.end()) return std::string(fallback);
  std::uint64_t left = counts_["next " + key]++;
  std::string last;
  for (const std::string& word : words(found->second, ',')) {
    const std::size_t star = word.find('*');
    last = trimmed(std::string_view(word).substr(0, star));
    const std::uint64_t times =
        star == std::string::npos ? 1 : std::strtoull(word.c_str() + star + 1, nullptr, 10);
    if (left < times) return last;
    left -= times;
  }
  return last;
}

}  // namespace furlong::fake
