#pragma once
// Certificate and key of the server, and a watch on their files. Only this folder includes it.

#include <boost/asio/ssl/context.hpp>
#include <filesystem>
#include <memory>
#include <mutex>

#include "furlong/base/error.h"

namespace furlong::fleet {

class TlsContext {
 public:
  boost::asio::ssl::context context{boost::asio::ssl::context::tls_server};
};

/// TLS 1.2 and newer, without compression and renegotiation. `invalid` names the file and the mend.
Result<std::shared_ptr<TlsContext>> load_tls(const std::filesystem::path& certificate,
                                             const std::filesystem::path& key);

/// Thread safe.
class TlsCertificate {
 public:
  static Result<std::unique_ptr<TlsCertificate>> open(std::filesystem::path certificate,
                                                      std::filesystem::path key);
  std::shared_ptr<TlsContext> current() const;
  /// Looks at the files and takes what changed; says in the log what is wrong with it and keeps the old.
  void refresh();

 private:
  using Times = std::pair<std::filesystem::file_time_type, std::filesystem::file_time_type>;
  TlsCertificate() = default;
  Times times() const;
  std::filesystem::path certificate_, key_;
  Times seen_, unfit_;  // of the thread that refreshes
  mutable std::mutex mutex_;
  std::shared_ptr<TlsContext> context_;
};

}  // namespace furlong::fleet
