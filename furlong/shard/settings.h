#pragma once
// The settings of a store as most executors have them: the format of its items, and a few numbers.

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "furlong/base/error.h"

namespace furlong::shard {

struct SettingsNumber {
  std::string_view key;
  std::uint64_t least = 0;
};

/// `settings` is a JSON object of "format" and `numbers`, all required, and of nothing else: the errors of
/// JsonObject; `incompatible` for another format than `format`.
Status check_settings(const std::string& settings, int format,
                      std::initializer_list<SettingsNumber> numbers = {});

}  // namespace furlong::shard
