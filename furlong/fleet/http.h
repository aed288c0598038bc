#pragma once
// HTTP as the agent needs it, behind a seam: one request, one bounded reply.

#include <filesystem>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "furlong/base/error.h"

namespace furlong::fleet {

struct HttpRequest {
  std::string method = "GET";  ///< "GET" or "POST"
  std::string url;
  std::vector<std::pair<std::string, std::string>> headers = {};
  std::string body = {};
  double connect_timeout_s = 10;
  double timeout_s = 60;                   ///< of the whole exchange
  double stall_timeout_s = 0;              ///< ended when nothing moves for so long; 0: no such limit
  std::size_t max_reply_bytes = 1u << 20;  ///< headers and body
  std::filesystem::path ca_file = {};      ///< whom to trust in place of the system's list
};

struct HttpResponse {
  int status = 0;
  std::vector<std::pair<std::string, std::string>> headers = {};  ///< names in lower case
  std::string body = {};
  /// The last of that name (in lower case), or nullopt.
  std::optional<std::string> header(std::string_view name) const;
};

/// Certificates are verified always; redirects are not followed. Any status is a response; `timeout`,
/// `exhausted` (the reply is larger than allowed), `denied` (the other side's certificate) and `unavailable`
/// (no connection, or it was closed) are errors that name the address. Thread safe; `stop` ends a request in
/// progress within a second.
class HttpClient {
 public:
  virtual ~HttpClient() = default;
  virtual Result<HttpResponse> send(const HttpRequest& request, const std::stop_token& stop) = 0;
};

/// libcurl, opened at run time: nothing links it. `unavailable` says which package to install.
Result<std::unique_ptr<HttpClient>> open_curl();

}  // namespace furlong::fleet
