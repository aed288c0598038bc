#include "furlong/base/os/library.h"

#include <dlfcn.h>

#include <system_error>
#include <utility>

namespace furlong {

Result<Library> Library::open(const std::filesystem::path& path) {
  // The loader would open a pipe and wait for its writer. A bare name is looked for by the loader alone.
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (path.has_parent_path() && std::filesystem::exists(status) && !std::filesystem::is_regular_file(status))
    return fail(Code::invalid, "{}: is no regular file, so no library", path.string());
  // NOW: a missing dependency shows here, not in the middle of a race. LOCAL: two host kernels may
  // use one symbol name.
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* why = dlerror();
    return fail(Code::unavailable, "{}: {}", path.string(), why == nullptr ? "cannot be loaded" : why);
  }
  return Library(handle, path.string());
}

Result<Library> Library::open_any(std::span<const std::string> names) {
  std::string tried;
  for (const std::string& name : names) {
    auto library = open(name);
    if (library) return library;
    tried += (tried.empty() ? "" : "; ") + library.error().message();
  }
  return fail(Code::unavailable, "none of {} libraries can be loaded: {}", names.size(), tried);
}

Library::~Library() {
  if (handle_ != nullptr) dlclose(handle_);
}
Library::Library(Library&& other) noexcept
    : handle_(std::exchange(other.handle_, nullptr)), name_(std::move(other.name_)) {}
Library& Library::operator=(Library&& other) noexcept {
  std::swap(handle_, other.handle_);
  std::swap(name_, other.name_);
  return *this;
}

void* Library::symbol(const char* name) const { return handle_ == nullptr ? nullptr : dlsym(handle_, name); }

}  // namespace furlong
