#pragma once
// The verified bytes of a pack as files, so that nothing is read from the disk a second time.

#include <map>
#include <optional>
#include <string>

#include "furlong/base/os/file.h"

namespace furlong::program::internal {

/// Whether a name can stand in a pack: a relative path of letters, digits, '.', '_' and '-', without "." and
/// "..".
bool is_pack_name(std::string_view name);

/// Read-only. Paths outside `folder` are `denied`, names that the pack has not are `unavailable`. Refers to
/// `files`, which must outlive it. Thread safe.
class PackFiles : public Files {
 public:
  PackFiles(std::filesystem::path folder, const std::map<std::string, std::string>& files);
  /// The pack's name of a path, or nullopt when it is outside.
  std::optional<std::string> name_of(const std::filesystem::path& path) const;

  Result<std::string> read(const std::filesystem::path& path, std::size_t max_bytes) override;
  Status write_atomic(const std::filesystem::path& path, std::string_view bytes) override;
  bool exists(const std::filesystem::path& path) override;
  Result<std::vector<std::string>> list(const std::filesystem::path& folder) override;
  Status remove(const std::filesystem::path& path) override;

 private:
  std::filesystem::path folder_;
  const std::map<std::string, std::string>& files_;
};

}  // namespace furlong::program::internal
