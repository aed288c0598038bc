#include "furlong/base/os/paths.h"

#include <pwd.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

namespace furlong {
namespace {

std::filesystem::path variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::filesystem::path() : std::filesystem::path(value);
}

std::filesystem::path home() {
  if (auto folder = variable("HOME"); folder.is_absolute()) return folder;
  // Services may run without HOME: the user database knows it.
  std::vector<char> buffer(16384);
  passwd entry{};
  passwd* found = nullptr;
  if (getpwuid_r(getuid(), &entry, buffer.data(), buffer.size(), &found) == 0 && found != nullptr &&
      found->pw_dir != nullptr && found->pw_dir[0] == '/')
    return found->pw_dir;
  std::error_code error;
  const auto temporary = std::filesystem::temp_directory_path(error);
  return (error ? std::filesystem::path("/tmp") : temporary) / ("furlong-" + std::to_string(getuid()));
}

std::filesystem::path folder(const char* own, const char* xdg, const char* in_home) {
  if (auto chosen = variable(own); !chosen.empty()) return chosen;
  // The XDG specification: a relative path in such a variable is to be ignored.
  if (auto base = variable(xdg); base.is_absolute()) return base / "furlong";
  return home() / in_home / "furlong";
}

}  // namespace

std::filesystem::path cache_folder() { return folder("FURLONG_CACHE_DIR", "XDG_CACHE_HOME", ".cache"); }
std::filesystem::path state_folder() { return folder("FURLONG_STATE_DIR", "XDG_STATE_HOME", ".local/state"); }
std::filesystem::path config_folder() { return folder("FURLONG_CONFIG_DIR", "XDG_CONFIG_HOME", ".config"); }

}  // namespace furlong
