#include "apps/furlong/outputs.h"

#include <unistd.h>

#include <cerrno>
#include <map>
#include <system_error>

namespace furlong::app {

Status can_write(const std::string& option, const std::filesystem::path& file) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (file.empty()) return fail(Code::invalid, "{} takes a file's name, not ''", option);
  if (fs::is_directory(file, error))
    return fail(Code::invalid, "{}: {} is a folder, not a file", option, file.string());
  fs::path there = fs::exists(file, error) ? file : fs::absolute(file, error).parent_path();
  while (!fs::exists(there, error) && there.has_relative_path()) there = there.parent_path();
  if (there != file && !fs::is_directory(there, error))
    return fail(Code::invalid, "{}: {}: {} is no folder", option, file.string(), there.string());
  if (::access(there.c_str(), W_OK) != 0)
    return fail(Code::invalid, "{}: {} cannot be written: {}: {}", option, file.string(), there.string(),
                std::generic_category().message(errno));
  return {};
}

Status can_write_outputs(const Arguments& arguments, std::initializer_list<const char*> options) {
  std::map<std::filesystem::path, std::string> taken;
  for (const char* option : options) {
    if (!arguments.given(option) || arguments.value(option) == "-") continue;
    const std::filesystem::path file = arguments.value(option);
    FURLONG_CHECK(can_write(option, file));
    std::error_code error;
    const auto [other, fresh] = taken.emplace(std::filesystem::weakly_canonical(file, error), option);
    if (!fresh && !std::filesystem::is_character_file(file, error))
      return fail(Code::invalid, "{} and {} both name {}: give each a file of its own", other->second, option,
                  file.string());
  }
  return {};
}

}  // namespace furlong::app
