// The only file that includes curl's headers. The library itself is opened at run time, so that a machine
// without it runs everything but the hub's client.
#include <curl/curl.h>

#include <algorithm>
#include <array>
#include <mutex>

#include "furlong/base/os/library.h"
#include "furlong/base/text.h"
#include "furlong/fleet/http.h"

namespace furlong::fleet {
namespace {

/// The functions that are used, from whichever of libcurl's builds is there.
struct CurlTable {
  decltype(&::curl_global_init) global_init = nullptr;
  decltype(&::curl_easy_init) easy_init = nullptr;
  decltype(&::curl_easy_cleanup) easy_cleanup = nullptr;
  CURLcode (*easy_setopt)(CURL*, CURLoption, ...) = nullptr;
  decltype(&::curl_easy_perform) easy_perform = nullptr;
  CURLcode (*easy_getinfo)(CURL*, CURLINFO, ...) = nullptr;
  decltype(&::curl_easy_strerror) easy_strerror = nullptr;
  decltype(&::curl_slist_append) slist_append = nullptr;
  decltype(&::curl_slist_free_all) slist_free_all = nullptr;
};

template <class F>
bool take(const Library& library, const char* name, F& into) {
  into = reinterpret_cast<F>(library.symbol(name));
  return into != nullptr;
}

bool fill(const Library& library, CurlTable& table) {
  return take(library, "curl_global_init", table.global_init) &&
         take(library, "curl_easy_init", table.easy_init) &&
         take(library, "curl_easy_cleanup", table.easy_cleanup) &&
         take(library, "curl_easy_setopt", table.easy_setopt) &&
         take(library, "curl_easy_perform", table.easy_perform) &&
         take(library, "curl_easy_getinfo", table.easy_getinfo) &&
         take(library, "curl_easy_strerror", table.easy_strerror) &&
         take(library, "curl_slist_append", table.slist_append) &&
         take(library, "curl_slist_free_all", table.slist_free_all);
}

/// What one exchange gathers; curl's callbacks write here.
struct Exchange {
  const HttpRequest* request = nullptr;
  std::stop_token stop;
  HttpResponse response;
  std::size_t bytes = 0;
  bool too_large = false;

  bool room_for(std::size_t more) {
    bytes += more;
    too_large |= bytes > request->max_reply_bytes;
    return !too_large;
  }
};

std::size_t on_body(char* data, std::size_t, std::size_t size, void* user) {
  auto& exchange = *static_cast<Exchange*>(user);
  if (!exchange.room_for(size)) return 0;
  exchange.response.body.append(data, size);
  return size;
}

std::size_t on_header(char* data, std::size_t, std::size_t size, void* user) {
  auto& exchange = *static_cast<Exchange*>(user);
  if (!exchange.room_for(size)) return 0;
  const std::string_view line(data, size);
  // A proxy's answer, or "100 Continue", comes before the one that counts.
  if (line.starts_with("HTTP/")) exchange.response.headers.clear();
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos) return size;
  std::string name(trim(line.substr(0, colon)));
  for (char& letter : name)
    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
  exchange.response.headers.emplace_back(std::move(name), trim(line.substr(colon + 1)));
  return size;
}

int on_progress(void* user, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  return static_cast<Exchange*>(user)->stop.stop_requested() ? 1 : 0;
}

Code code_of(CURLcode result) {
  switch (result) {
    case CURLE_OPERATION_TIMEDOUT:
      return Code::timeout;
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_ISSUER_ERROR:
      return Code::denied;
    case CURLE_OUT_OF_MEMORY:
      return Code::exhausted;
    case CURLE_URL_MALFORMAT:
    case CURLE_UNSUPPORTED_PROTOCOL:
      return Code::invalid;
    default:
      return Code::unavailable;
  }
}

class CurlHttp : public HttpClient {
 public:
  CurlHttp(Library library, const CurlTable& table) : library_(std::move(library)), curl_(table) {}

  Result<HttpResponse> send(const HttpRequest& request, const std::stop_token& stop) override {
    // One handle a request: a connection kept over hours of silence is a closed one, and handles are not
    // shared by threads.
    const std::unique_ptr<CURL, decltype(curl_.easy_cleanup)> handle(curl_.easy_init(), curl_.easy_cleanup);
    if (!handle) return fail(Code::exhausted, "{}: libcurl gives no handle", request.url);
    std::unique_ptr<curl_slist, decltype(curl_.slist_free_all)> headers(nullptr, curl_.slist_free_all);
    const auto add = [&](const std::string& line) {
      curl_slist* const before = headers.release();
      curl_slist* const longer = curl_.slist_append(before, line.c_str());
      headers.reset(longer == nullptr ? before : longer);
    };
    for (const auto& [name, value] : request.headers) add(fmt::format("{}: {}", name, value));
    add("Expect:");  // no "100 Continue" to wait for
    Exchange exchange{.request = &request, .stop = stop};
    std::array<char, CURL_ERROR_SIZE> words{};
    FURLONG_CHECK(set_options(handle.get(), request, exchange, headers.get(), words.data()));
    const CURLcode result = curl_.easy_perform(handle.get());
    if (stop.stop_requested()) return fail(Code::unavailable, "{}: stopped", request.url);
    if (exchange.too_large)
      return fail(Code::exhausted, "{}: the reply has more than {} bytes", request.url,
                  request.max_reply_bytes);
    if (result != CURLE_OK)
      return fail(code_of(result), "{}: {}", request.url,
                  words[0] != 0 ? one_line(words.data()) : curl_.easy_strerror(result));
    long status = 0;
    curl_.easy_getinfo(handle.get(), CURLINFO_RESPONSE_CODE, &status);
    exchange.response.status = static_cast<int>(status);
    return std::move(exchange.response);
  }

 private:
  Status set_options(CURL* handle, const HttpRequest& request, Exchange& exchange, curl_slist* headers,
                     char* words) const {
    CURLcode refused = CURLE_OK;
    const auto set = [&](CURLoption option, auto value) {
      const CURLcode result = curl_.easy_setopt(handle, option, value);
      if (result != CURLE_OK && refused == CURLE_OK) refused = result;
    };
    set(CURLOPT_ERRORBUFFER, words);
    set(CURLOPT_URL, request.url.c_str());
    set(CURLOPT_HTTPHEADER, headers);
    set(CURLOPT_USERAGENT, "furlong-agent");
    if (request.method == "POST") {
      set(CURLOPT_POST, 1L);
      set(CURLOPT_POSTFIELDS, request.body.data());
      set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
    }
    set(CURLOPT_NOSIGNAL, 1L);  // threads
    set(CURLOPT_FOLLOWLOCATION, 0L);
    // Before 7.85 (Ubuntu 22.04) there is only the mask of CURLOPT_PROTOCOLS, which newer headers call
    // deprecated.
    constexpr auto protocols_mask = static_cast<CURLoption>(CURLOPTTYPE_LONG + 181);
    const CURLcode named = curl_.easy_setopt(handle, CURLOPT_PROTOCOLS_STR, "http,https");
    if (named == CURLE_UNKNOWN_OPTION)
      set(protocols_mask, static_cast<long>(CURLPROTO_HTTP | CURLPROTO_HTTPS));
    else if (refused == CURLE_OK)
      refused = named;
    // Plain http is for this machine only: a proxy of the environment would carry it, token and all,
    // elsewhere.
    if (!request.url.starts_with("https://")) set(CURLOPT_PROXY, "");
    set(CURLOPT_SSL_VERIFYPEER, 1L);
    set(CURLOPT_SSL_VERIFYHOST, 2L);
    if (!request.ca_file.empty()) set(CURLOPT_CAINFO, request.ca_file.c_str());
    set(CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(request.connect_timeout_s * 1e3));
    set(CURLOPT_TIMEOUT_MS, static_cast<long>(request.timeout_s * 1e3));
    if (request.stall_timeout_s > 0) {
      set(CURLOPT_LOW_SPEED_LIMIT, 1L);
      set(CURLOPT_LOW_SPEED_TIME, std::max(1L, static_cast<long>(request.stall_timeout_s)));
    }
    set(CURLOPT_WRITEFUNCTION, &on_body);
    set(CURLOPT_WRITEDATA, &exchange);
    set(CURLOPT_HEADERFUNCTION, &on_header);
    set(CURLOPT_HEADERDATA, &exchange);
    set(CURLOPT_NOPROGRESS, 0L);
    set(CURLOPT_XFERINFOFUNCTION, &on_progress);
    set(CURLOPT_XFERINFODATA, &exchange);
    // One that is not in force may be the one that keeps a secret: nothing is sent without all of them.
    if (refused != CURLE_OK)
      return fail(Code::incompatible,
                  "{}: this libcurl refuses an option ({}): install libcurl4 (7.85 or newer)", request.url,
                  curl_.easy_strerror(refused));
    return {};
  }

  Library library_;
  CurlTable curl_;
};

}  // namespace

std::optional<std::string> HttpResponse::header(std::string_view name) const {
  std::optional<std::string> found;
  for (const auto& [key, value] : headers)
    if (key == name) found = value;
  return found;
}

Result<std::unique_ptr<HttpClient>> open_curl() {
  static const std::array<std::string, 2> names{"libcurl.so.4", "libcurl-gnutls.so.4"};
  auto library = Library::open_any(names);
  if (!library)
    return fail(Code::unavailable, "the hub's client needs libcurl, which is not here ({}): install libcurl4",
                library.error().message());
  CurlTable table;
  if (!fill(*library, table))
    return fail(Code::unavailable, "{} lacks a function: install libcurl4 (7.85 or newer)", library->name());
  static std::once_flag once;
  std::call_once(once, [&] { table.global_init(CURL_GLOBAL_DEFAULT); });
  return std::make_unique<CurlHttp>(std::move(*library), table);
}

}  // namespace furlong::fleet
