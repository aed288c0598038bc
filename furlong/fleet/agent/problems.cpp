#include "furlong/fleet/agent/problems.h"

#include <algorithm>

#include "furlong/base/os/clock.h"

namespace furlong::fleet {
namespace {

constexpr std::size_t most_kept = 20;
constexpr std::int64_t log_again_ns = 60'000'000'000;

}  // namespace

bool Problems::stands(std::string_view what, std::string_view how) {
  const std::scoped_lock lock(mutex_);
  const std::int64_t now_ns = clock_.now_ns();
  const auto known =
      std::find_if(list_.begin(), list_.end(), [&](const One& each) { return each.what == what; });
  if (known != list_.end()) {
    known->how = how;
    if (now_ns - known->logged_ns < log_again_ns) return false;
    known->logged_ns = now_ns;
    return true;
  }
  list_.push_back({.what = std::string(what), .how = std::string(how), .logged_ns = now_ns});
  if (list_.size() > most_kept) list_.erase(list_.begin());
  return true;
}

void Problems::over(std::string_view what) {
  const std::scoped_lock lock(mutex_);
  std::erase_if(list_, [&](const One& each) { return each.what == what; });
}

std::vector<std::string> Problems::texts() {
  const std::scoped_lock lock(mutex_);
  std::vector<std::string> texts;
  for (const One& each : list_) texts.push_back(each.what + ": " + each.how);
  return texts;
}

}  // namespace furlong::fleet
