#include "furlong/fleet/agent/manifest.h"

#include "furlong/base/os/file.h"
#include "furlong/base/text.h"

namespace furlong::fleet {
namespace {

constexpr std::size_t largest_manifest = 8u << 20;

}  // namespace

Result<std::optional<std::string>> HubManifestSource::fetch(const std::stop_token& stop) {
  HttpRequest request{.url = hub_.url + "/v1/manifest"};
  request.max_reply_bytes = largest_manifest;
  request.ca_file = hub_.ca_file;
  if (!tag_.empty()) request.headers.emplace_back("If-None-Match", tag_);
  FURLONG_TRY(HttpResponse response, http_.send(request, stop));
  if (response.status == 304) return std::optional<std::string>();
  if (response.status != 200) return fail(Code::unavailable, "{}: HTTP {}", request.url, response.status);
  const std::string tag = response.header("etag").value_or("");
  // Foreign text that goes back in a header: one that could break out of it is not remembered.
  fetched_tag_ = tag.size() <= 200 && one_line(tag) == tag ? tag : "";
  return std::optional(std::move(response.body));
}

Status ManifestFollower::step(const std::stop_token& stop) {
  FURLONG_TRY(const auto envelope, source_.fetch(stop));
  if (!envelope) return {};
  FURLONG_TRY(const VerifiedManifest manifest, verifier_.verify(*envelope));
  FURLONG_CHECK(put("tuning.json", manifest.tuning, manifest.version));
  FURLONG_CHECK(put("override.json", manifest.tuning_override, manifest.version));
  version_ = manifest.version;
  source_.taken();
  return {};
}

Status ManifestFollower::put(const char* name, const std::optional<std::string>& bytes,
                             const std::string& version) {
  const std::filesystem::path file = data_ / name;
  const auto there = files_.read(file);
  if (!there && there.error().code() != Code::unavailable) return there.error();
  if (!bytes) {
    if (!there) return {};
    FURLONG_CHECK(files_.remove(file));
    note_(fmt::format("manifest {}: {} is no more", version, name));
    return {};
  }
  if (there && *there == *bytes) return {};
  FURLONG_CHECK(files_.write_atomic(file, *bytes));
  note_(fmt::format("manifest {}: {} is new ({} bytes)", version, name, bytes->size()));
  return {};
}

}  // namespace furlong::fleet
