// Writing a pack's folder all or nothing.
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>

#include "furlong/program/internal/pack_files.h"
#include "furlong/program/pack.h"

namespace furlong::program {
namespace {

namespace fs = std::filesystem;

Code code_of(std::error_code error) {
  if (error == std::errc::no_space_on_device) return Code::exhausted;
  if (error == std::errc::permission_denied || error == std::errc::operation_not_permitted ||
      error == std::errc::read_only_file_system)
    return Code::denied;
  return Code::internal;
}

Error system_error(const fs::path& path, std::string_view doing, std::error_code error) {
  return fail(code_of(error), "{}: {}: {}", path.string(), doing, error.message());
}

// Whether the folder holds exactly these bytes (its signature aside).
bool holds(const fs::path& folder, const PackContents& contents) {
  std::error_code error;
  std::size_t found = 0;
  fs::recursive_directory_iterator entry(folder, error);
  if (error) return false;
  for (; entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    if (error) return false;
    if (entry->is_directory(error)) continue;
    const std::string name = entry->path().lexically_relative(folder).generic_string();
    if (name == "pack.sig" && !contents.files.contains(name)) continue;
    const auto wanted = contents.files.find(name);
    if (wanted == contents.files.end() || !entry->is_regular_file(error)) return false;
    const auto bytes = system_files().read(entry->path(), wanted->second.size());
    if (!bytes || *bytes != wanted->second) return false;
    ++found;
  }
  return found == contents.files.size();
}

// Removes the folder when it goes, unless it was renamed into place.
struct Scratch {
  fs::path path;
  ~Scratch() {
    std::error_code error;
    if (!path.empty()) fs::remove_all(path, error);
  }
};

Status sync_folder(const fs::path& folder) {
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return system_error(folder, "opening", {errno, std::generic_category()});
  const int failed = ::fsync(descriptor) != 0 ? errno : 0;
  ::close(descriptor);
  // Some file systems cannot sync a folder and say EINVAL; there is nothing more to do there.
  if (failed != 0 && failed != EINVAL)
    return system_error(folder, "syncing", {failed, std::generic_category()});
  return {};
}

// Both names change at once, so that a reader sees the old pack or the new one. Where the file system cannot,
// the old one is moved aside first.
Status exchange(const fs::path& fresh, const fs::path& folder) {
  if (::renameat2(AT_FDCWD, fresh.c_str(), AT_FDCWD, folder.c_str(), RENAME_EXCHANGE) == 0) return {};
  if (errno != EINVAL && errno != ENOSYS)
    return system_error(folder, "replacing", {errno, std::generic_category()});
  std::error_code error;
  const fs::path aside = fresh.string() + ".old";
  fs::rename(folder, aside, error);
  if (error) return system_error(folder, "moving aside", error);
  fs::rename(fresh, folder, error);
  if (error) {
    std::error_code back;
    fs::rename(aside, folder, back);
    return system_error(folder, "replacing", error);
  }
  fs::rename(aside, fresh, error);
  return {};
}

// Only a pack may be replaced, and nothing that is not of it may go with it: what its list (read as text,
// since a damaged pack is to be replaceable) does not name is somebody's.
Status check_replaceable(const fs::path& target) {
  std::error_code error;
  if (fs::is_symlink(target, error) || !fs::is_directory(target, error) ||
      !fs::is_regular_file(target / "pack.toml", error))
    return fail(Code::invalid,
                "{} is no pack's folder (it has no pack.toml), so it is not replaced: choose another folder",
                target.string());
  const auto list = system_files().read(target / "pack.toml", 16u << 20);
  for (fs::recursive_directory_iterator entry(target, error), end; !error && entry != end;
       entry.increment(error)) {
    if (entry->is_directory(error) && !entry->is_symlink(error)) continue;
    const std::string name = entry->path().lexically_relative(target).generic_string();
    if (name == "pack.toml" || name == "pack.sig") continue;
    if (!list || list->find('"' + name + '"') == std::string::npos)
      return fail(
          Code::invalid,
          "{}: '{}' is not of the pack there, so it is not replaced: move it away, or choose another folder",
          target.string(), name);
  }
  return {};
}

}  // namespace

Status write_pack(const PackContents& contents, const std::filesystem::path& folder, bool replace) {
  for (const auto& [name, bytes] : contents.files)
    if (!internal::is_pack_name(name)) return fail(Code::invalid, "'{}' cannot be in a pack", name);
  FURLONG_CHECK(verify_contents(contents, folder.string()));
  const fs::path target = (folder / "x").lexically_normal().parent_path();  // without a slash at the end
  std::error_code error;
  const bool there = fs::exists(target, error);
  if (there && holds(target, contents)) return {};
  if (there && !replace && !(fs::is_directory(target, error) && fs::is_empty(target, error)))
    return fail(Code::invalid,
                "{}: there is another pack or something else already; replace it explicitly or choose "
                "another folder",
                target.string());
  if (there && !(fs::is_directory(target, error) && fs::is_empty(target, error)))
    FURLONG_CHECK(check_replaceable(target));
  const fs::path parent = target.has_parent_path() ? target.parent_path() : fs::path(".");
  fs::create_directories(parent, error);
  if (error) return system_error(parent, "making the folder", error);
  static std::atomic<unsigned> serial = 0;  // two threads may write two packs of one name
  Scratch scratch{parent / fmt::format(".{}.new-{}-{}", target.filename().string(), ::getpid(), ++serial)};
  fs::remove_all(scratch.path, error);
  fs::create_directory(scratch.path, error);
  if (error) return system_error(scratch.path, "making the folder", error);
  for (const auto& [name, bytes] : contents.files)
    FURLONG_CHECK(system_files().write_atomic(scratch.path / name, bytes));
  FURLONG_CHECK(sync_folder(scratch.path));
  if (there) {
    FURLONG_CHECK(exchange(scratch.path, target));  // the old pack is now the scratch, and goes with it
  } else {
    fs::rename(scratch.path, target, error);
    if (error && holds(target, contents)) return {};  // another process has just written the same pack
    if (error) return system_error(target, "renaming into place", error);
    scratch.path.clear();
  }
  return sync_folder(parent);
}

}  // namespace furlong::program
