#pragma once
// The dashboard's files, read at the start and held in memory: what was not read then cannot be asked for.

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

#include "furlong/base/error.h"
#include "furlong/base/os/file.h"
#include "furlong/fleet/hub/http_server.h"
#include "furlong/fleet/hub/reply.h"

namespace furlong::fleet {

/// Immutable once read; thread safe.
class WebFiles {
 public:
  /// Nothing to show: "/" is a page that says what is missing.
  WebFiles() = default;
  /// All regular files below the folder that lie in it: symbolic links out of it are left out. `unavailable`:
  /// no index.html; `exhausted`: more than 2000 files, or 64 MiB.
  static Result<WebFiles> read(const std::filesystem::path& folder, Files& files);

  ServerReply reply(const ServerRequest& request) const;
  std::size_t size() const { return files_.size(); }

 private:
  struct File {
    Document document;
    std::string content_type;
    bool hashed = false;  ///< its name changes with its content
  };
  Status read_folder(const std::filesystem::path& root, const std::filesystem::path& folder, Files& files,
                     int depth);

  std::map<std::string, File, std::less<>> files_;  ///< by path: "/index.html"
  std::size_t bytes_ = 0;
};

std::string_view content_type_of(std::string_view name);
/// "/assets/index-3f9a1c2b.js": what the builder puts there has eight characters of its hash before the
/// ending.
bool has_hashed_name(std::string_view path);
/// Sent with every reply of the hub.
void add_security_headers(ServerReply& reply, bool page);

}  // namespace furlong::fleet
