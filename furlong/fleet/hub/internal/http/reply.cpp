#include "furlong/fleet/hub/internal/http/reply.h"

#include <algorithm>
#include <array>
#include <ctime>
#include <utility>

#include "furlong/base/text.h"

namespace furlong::fleet {
namespace {

constexpr std::size_t least_gzip_bytes = 1024;  // below it the packet is no smaller

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& letter : out)
    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
  return out;
}

bool is_token(std::string_view name) {
  constexpr std::string_view others = "!#$%&'*+-.^_`|~";
  return !name.empty() && std::ranges::all_of(name, [&](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           others.find(c) != std::string_view::npos;
  });
}

bool is_value(std::string_view value) {
  return std::ranges::all_of(
      value, [](char c) { return c == '\t' || (static_cast<unsigned char>(c) >= 0x20 && c != 0x7f); });
}

std::string_view reason(int status) {
  static constexpr std::array<std::pair<int, std::string_view>, 28> words{{
      {200, "OK"},
      {201, "Created"},
      {202, "Accepted"},
      {204, "No Content"},
      {301, "Moved Permanently"},
      {302, "Found"},
      {303, "See Other"},
      {304, "Not Modified"},
      {307, "Temporary Redirect"},
      {308, "Permanent Redirect"},
      {400, "Bad Request"},
      {401, "Unauthorized"},
      {403, "Forbidden"},
      {404, "Not Found"},
      {405, "Method Not Allowed"},
      {406, "Not Acceptable"},
      {408, "Request Timeout"},
      {409, "Conflict"},
      {410, "Gone"},
      {412, "Precondition Failed"},
      {413, "Content Too Large"},
      {415, "Unsupported Media Type"},
      {417, "Expectation Failed"},
      {422, "Unprocessable Content"},
      {429, "Too Many Requests"},
      {431, "Request Header Fields Too Large"},
      {500, "Internal Server Error"},
      {503, "Service Unavailable"},
  }};
  for (const auto& [code, word] : words)
    if (code == status) return word;
  return "";
}

Code code_of(int status) {
  switch (status) {
    case 408:
      return Code::timeout;
    case 429:
      return Code::exhausted;
    case 500:
      return Code::internal;
    case 503:
      return Code::unavailable;
    default:
      return Code::invalid;
  }
}

bool has_header(const ServerReply& reply, std::string_view name) {
  return std::ranges::any_of(reply.headers, [&](const auto& field) { return lower(field.first) == name; });
}

}  // namespace

bool may_have_body(int status) { return status != 204 && status != 304; }

ServerReply error_reply(int status, std::string_view message, int retry_after_s) {
  ServerReply reply{.status = status};
  reply.body = fmt::format(R"({{"schema":1,"error":{{"code":"{}","message":"{}"}}}})",
                           code_name(code_of(status)), message);
  if (retry_after_s > 0) reply.headers.emplace_back("Retry-After", std::to_string(retry_after_s));
  if (status == 415) reply.headers.emplace_back("Accept-Encoding", "gzip, deflate");
  return reply;
}

Status check_reply(const ServerReply& reply) {
  static constexpr std::array<std::string_view, 9> ours{
      "connection", "content-length",        "date", "keep-alive", "server", "trailer", "transfer-encoding",
      "upgrade",    "x-content-type-options"};
  if (reply.status < 200 || reply.status > 599)
    return fail(Code::invalid, "{} is no status of a reply", reply.status);
  if (!is_value(reply.content_type)) return fail(Code::invalid, "the content type has a control character");
  for (const auto& [name, value] : reply.headers) {
    if (!is_token(name)) return fail(Code::invalid, "'{}' is no name of a header", one_line(name));
    if (!is_value(value)) return fail(Code::invalid, "the header {} has a control character", name);
    if (std::ranges::find(ours, lower(name)) != ours.end())
      return fail(Code::invalid, "the header {} is written by the server alone", name);
  }
  return {};
}

bool accepts_gzip(std::string_view accept_encoding) {
  bool named = false, gzip = false, any = false;
  for (const std::string& item : split(accept_encoding, ',')) {
    const std::vector<std::string> pieces = split(item, ';');
    const std::string name = lower(trim(pieces.front()));
    bool wanted = true;
    for (std::size_t i = 1; i < pieces.size(); ++i) {
      const std::string weight = lower(trim(pieces[i]));
      if (!weight.starts_with("q=")) continue;
      const auto number = parse_number(std::string_view(weight).substr(2));
      wanted = number && *number > 0;
    }
    if (name == "gzip" || name == "x-gzip") {
      named = true;
      gzip = gzip || wanted;
    } else if (name == "*") {
      any = wanted;
    }
  }
  return named ? gzip : any;
}

bool is_worth_gzip(const ServerReply& reply) {
  if (reply.body.size() <= least_gzip_bytes || has_header(reply, "content-encoding")) return false;
  std::string type = lower(reply.content_type);
  for (const auto& [name, value] : reply.headers)
    if (lower(name) == "content-type") type = lower(value);
  if (type.starts_with("text/")) return true;
  return std::ranges::any_of(std::array<std::string_view, 4>{"json", "javascript", "xml", "wasm"},
                             [&](std::string_view word) { return type.find(word) != std::string::npos; });
}

std::string http_date(std::int64_t wall_us) {
  static constexpr std::array<std::string_view, 7> days{"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  static constexpr std::array<std::string_view, 12> months{"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                           "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const std::time_t seconds = wall_us / 1'000'000;
  std::tm when{};
  gmtime_r(&seconds, &when);
  return fmt::format("{}, {:02} {} {:04} {:02}:{:02}:{:02} GMT", days[static_cast<std::size_t>(when.tm_wday)],
                     when.tm_mday, months[static_cast<std::size_t>(when.tm_mon)], when.tm_year + 1900,
                     when.tm_hour, when.tm_min, when.tm_sec);
}

std::string print_head(const ServerReply& reply, const WireOptions& options) {
  std::string out;
  const auto add = [&out](std::string_view name, std::string_view value) {
    out.append(name).append(": ").append(value).append("\r\n");
  };
  out = fmt::format("HTTP/1.1 {} {}\r\n", reply.status, reason(reply.status));
  add("Date", http_date(options.wall_us));
  add("Server", "furlong");
  add("X-Content-Type-Options", "nosniff");
  if (may_have_body(reply.status)) {
    if (!reply.content_type.empty() && !has_header(reply, "content-type"))
      add("Content-Type", reply.content_type);
    add("Content-Length", std::to_string(reply.body.size()));
  }
  for (const auto& [name, value] : reply.headers) add(name, value);
  if (!options.keep_alive)
    add("Connection", "close");
  else if (!options.http_1_1)
    add("Connection", "keep-alive");
  out += "\r\n";
  return out;
}

}  // namespace furlong::fleet
