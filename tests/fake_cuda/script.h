#pragma once
// What a test wants the made-up driver to be and to do wrong. $FURLONG_FAKE_CUDA names a file, or is the text
// itself where it holds a '='. Lines (or parts between ';') of `key = value`; README.md lists the keys.

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace furlong::fake {

/// "700@50": from a list of what happens at which call. "@N+": from the N-th on; without '@': always.
struct Plan {
  std::string what;
  std::uint64_t first = 0;  ///< 0: always
  bool onwards = false;
  bool at(std::uint64_t count) const { return first == 0 || count == first || (onwards && count >= first); }
};

/// Thread safe.
class Script {
 public:
  static Script& the();

  /// Anew, with all counts at 0. Empty: what the environment says.
  void set(std::string_view text);

  std::string text(const std::string& key, std::string_view fallback = "") const;
  std::int64_t number(const std::string& key, std::int64_t fallback) const;
  double real(const std::string& key, double fallback) const;
  /// With KiB, MiB, GiB.
  std::uint64_t bytes(const std::string& key, std::uint64_t fallback) const;
  bool has(const std::string& key) const;
  /// The first of the keys that is there: for one card or kernel before all of them.
  std::string first_of(std::initializer_list<std::string> keys, std::string_view fallback = "") const;

  /// Counts one more use of `counter`, and says what the comma-separated plans of `key` have for it.
  std::optional<std::string> happens(const std::string& key, const std::string& counter);
  /// The next of the comma-separated values "0*20, 4*3, 0", the last for ever: one step a call.
  std::string next(const std::string& key, std::string_view fallback);

 private:
  Script();
  void read(std::string_view text);

  mutable std::recursive_mutex mutex_;
  std::map<std::string, std::string> values_;
  std::map<std::string, std::uint64_t> counts_;
};

/// "1.5 GiB" as bytes; 0 for what is no number.
std::uint64_t parse_bytes(std::string_view text);
std::vector<std::string> words(std::string_view text, char separator);

}  // namespace furlong::fake
