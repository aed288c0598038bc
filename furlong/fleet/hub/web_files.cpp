#include "furlong/fleet/hub/web_files.h"

#include <algorithm>

#include "furlong/base/text.h"

namespace furlong::fleet {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t most_files = 2000;
constexpr std::size_t most_bytes = 64u << 20;
constexpr std::size_t most_file_bytes = 16u << 20;
constexpr int most_depth = 8;

constexpr std::string_view empty_page = R"(<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Furlong hub</title></head>
<body><h1>Furlong hub</h1>
<p>This hub runs, but it was started without the dashboard's files. Start it with <code>--web FOLDER</code>, where FOLDER
has an index.html: <code>share/furlong/web</code> of an installation, or <code>web/dist</code> of a source tree after
<code>./dev web</code>.</p>
<p>Its figures are there as JSON: <a href="v1/summary">v1/summary</a>, <a href="v1/cards">v1/cards</a>,
<a href="v1/races">v1/races</a>, <a href="v1/machines">v1/machines</a>; all of it in <a href="v1/openapi.json">v1/openapi.json</a>.
For Prometheus: <a href="metrics">metrics</a>.</p>
</body></html>
)";

bool lies_in(const fs::path& root, const fs::path& path) {
  std::error_code error;
  const fs::path real_root = fs::weakly_canonical(root, error);
  if (error) return false;
  const fs::path real = fs::weakly_canonical(path, error);
  if (error) return false;
  const auto [end, rest] = std::ranges::mismatch(real_root, real);
  return end == real_root.end();
}

}  // namespace

std::string_view content_type_of(std::string_view name) {
  static constexpr std::pair<std::string_view, std::string_view> types[] = {
      {".html", "text/html; charset=utf-8"},
      {".js", "text/javascript; charset=utf-8"},
      {".mjs", "text/javascript; charset=utf-8"},
      {".css", "text/css; charset=utf-8"},
      {".json", "application/json"},
      {".map", "application/json"},
      {".svg", "image/svg+xml"},
      {".png", "image/png"},
      {".ico", "image/x-icon"},
      {".webp", "image/webp"},
      {".woff2", "font/woff2"},
      {".txt", "text/plain; charset=utf-8"},
      {".webmanifest", "application/manifest+json"}};
  for (const auto& [ending, type] : types)
    if (name.ends_with(ending)) return type;
  return "application/octet-stream";
}

bool has_hashed_name(std::string_view path) {
  constexpr std::size_t hash_letters = 8;
  if (!path.starts_with("/assets/")) return false;
  const std::string_view name = path.substr(path.rfind('/') + 1);
  const std::string_view stem = name.substr(0, name.rfind('.'));
  if (stem.size() < hash_letters + 2 || stem[stem.size() - hash_letters - 1] != '-') return false;
  return std::ranges::all_of(stem.substr(stem.size() - hash_letters), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '-';
  });
}

Result<WebFiles> WebFiles::read(const fs::path& folder, Files& files) {
  WebFiles web;
  FURLONG_CHECK(web.read_folder(folder, folder, files, 0));
  if (!web.files_.contains("/index.html"))
    return fail(Code::unavailable, "{}: there is no index.html in it", folder.string());
  return web;
}

Status WebFiles::read_folder(const fs::path& root, const fs::path& folder, Files& files, int depth) {
  if (depth > most_depth) return fail(Code::exhausted, "{}: folders are nested too deep", root.string());
  FURLONG_TRY(const auto names, files.list(folder));
  for (const std::string& name : names) {
    const fs::path path = folder / name;
    if (name.starts_with('.') || !lies_in(root, path)) continue;
    if (name.ends_with('/')) {
      FURLONG_CHECK(read_folder(root, folder / name.substr(0, name.size() - 1), files, depth + 1));
      continue;
    }
    auto bytes = files.read(path, most_file_bytes);
    if (!bytes && bytes.error().code() == Code::invalid && files_.size() < most_files)
      continue;  // no regular file
    if (!bytes) return bytes.error();
    bytes_ += bytes->size();
    if (files_.size() == most_files || bytes_ > most_bytes)
      return fail(Code::exhausted, "{}: more than {} files or {} are no dashboard", root.string(), most_files,
                  human_bytes(most_bytes));
    const std::string at = "/" + path.lexically_relative(root).generic_string();
    files_.emplace(at, File{.document = make_document(*std::move(bytes)),
                            .content_type = std::string(content_type_of(name)),
                            .hashed = has_hashed_name(at)});
  }
  return {};
}

ServerReply WebFiles::reply(const ServerRequest& request) const {
  if (request.method != "GET" && request.method != "HEAD") {
    ServerReply reply = error_reply(405, Code::invalid, "only GET and HEAD are for this path");
    reply.headers.emplace_back("Allow", "GET, HEAD");
    return reply;
  }
  if (files_.empty() && request.path == "/")
    return answer(request, make_document(std::string(empty_page)), "text/html; charset=utf-8");
  const auto at = files_.find(request.path == "/" ? "/index.html" : request.path);
  if (at == files_.end())
    return error_reply(404, Code::invalid,
                       fmt::format("there is no '{}' here", one_line(request.path.substr(0, 60))));
  ServerReply reply = answer(request, at->second.document, at->second.content_type);
  if (at->second.hashed)
    for (auto& [name, value] : reply.headers)
      if (name == "Cache-Control") value = "public, max-age=31536000, immutable";
  return reply;
}

void add_security_headers(ServerReply& reply, bool page) {
  reply.headers.emplace_back(
      "Content-Security-Policy",
      page ? "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
           : "default-src 'none'; frame-ancestors 'none'");
  reply.headers.emplace_back("Referrer-Policy", "no-referrer");
  reply.headers.emplace_back("X-Frame-Options", "DENY");
  reply.headers.emplace_back("Cross-Origin-Resource-Policy", "same-origin");
}

}  // namespace furlong::fleet
