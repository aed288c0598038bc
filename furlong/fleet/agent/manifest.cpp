#include "furlong/fleet/agent/manifest.h"

#include "furlong/base/os/file.h"
#include "furlong/base/text.h"

namespace furlong::fleet {
namespace {

constexpr std::size_t largest_manifest = 8u << 20;

}  // namespace

Result<std::optional<std::string>> HubManifestSource::fetch(const std::stop_token& stop) {
  HttpRequest request{.url = hub_.url + "/v1/manifest"};
  request.timeout_s = timeout_s_;
  request.max_reply_bytes = largest_manifest;
  request.ca_file = hub_.ca_file;
  if (!tag_.empty()) request.headers.emplace_back("If-None-Match", tag_);
  FURLONG_TRY(HttpResponse response, http_.send(request, stop));
  if (response.status == 304) return waiting_;
  if (response.status != 200) return fail(Code::unavailable, "{}: HTTP {}", request.url, response.status);
  const std::string tag = response.header("etag").value_or("");
  // Foreign text that goes back in a header: one that could break out of it is not remembered.
  tag_ = tag.size() <= 200 && one_line(tag) == tag ? tag : "";
  waiting_ = std::move(response.body);
  return waiting_;
}

Status refuse_link(const std::filesystem::path& file) {
  std::error_code none;
  if (!std::filesystem::is_symlink(std::filesystem::symlink_status(file, none))) return {};
  return fail(Code::denied, "{}: a symbolic link stands there; it is not followed: remove it", file.string());
}

Status ManifestFollower::step(const std::stop_token& stop) {
  const Status fetched = fetch_and_verify(stop);
  FURLONG_CHECK(put_standing());
  return fetched;
}

Status ManifestFollower::fetch_and_verify(const std::stop_token& stop) {
  FURLONG_TRY(const auto envelope, source_.fetch(stop));
  if (!envelope) return {};
  FURLONG_CHECK(verifier_.verify(*envelope));
  source_.taken();
  return {};
}

Status ManifestFollower::put_standing() {
  FURLONG_TRY(const VerifiedManifest manifest, verifier_.standing());
  if (manifest.note != told_ && !manifest.note.empty())
    note_(fmt::format("manifest {}: {}; workers race in full", manifest.version, manifest.note));
  told_ = manifest.note;
  FURLONG_CHECK(put("tuning.json", manifest.tuning, manifest.version));
  FURLONG_CHECK(put("override.json", manifest.tuning_override, manifest.version));
  version_ = manifest.version;
  return {};
}

Status ManifestFollower::put(const char* name, const std::optional<std::string>& bytes,
                             const std::string& version) {
  const std::filesystem::path file = data_ / name;
  const std::string of = version.empty() ? "no manifest" : "manifest " + version;
  FURLONG_CHECK(refuse_link(file));
  const auto there = files_.read(file);
  if (!there && there.error().code() != Code::unavailable) return there.error();
  if (!bytes) {
    if (!there) return {};
    FURLONG_CHECK(files_.remove(file));
    note_(fmt::format("{}: {} is no more", of, name));
    return {};
  }
  if (there && *there == *bytes) return {};
  FURLONG_CHECK(files_.write_atomic(file, *bytes));
  note_(fmt::format("{}: {} is new ({} bytes)", of, name, bytes->size()));
  return {};
}

}  // namespace furlong::fleet
