#pragma once
// The fleet's manifest on its way to the tuning file. Who verifies it is a seam: without a verifier nothing
// is fetched.

#include <filesystem>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "furlong/base/error.h"
#include "furlong/fleet/agent/config.h"
#include "furlong/fleet/http.h"

namespace furlong {
class Files;
}

namespace furlong::fleet {

struct VerifiedManifest {
  std::string version;                         ///< empty: none was taken yet
  std::optional<std::string> tuning;           ///< the bytes of tuning.json; nullopt: none
  std::optional<std::string> tuning_override;  ///< of override.json
  std::string note;                            ///< why nothing is pinned although there is a manifest
};

/// `denied` when a symbolic link stands where the agent is about to write: an atomic write would follow it.
Status refuse_link(const std::filesystem::path& file);

class ManifestVerifier {
 public:
  virtual ~ManifestVerifier() = default;
  /// Everything that is refused is an error that says why; what was verified is what is given back.
  virtual Result<VerifiedManifest> verify(std::string_view envelope) = 0;
  /// What holds now of what was verified before: a manifest expires without anything being fetched. An error
  /// says that this is not known.
  virtual Result<VerifiedManifest> standing() = 0;
};

class ManifestSource {
 public:
  virtual ~ManifestSource() = default;
  /// The envelope's bytes, the same ones again until they are taken(); nullopt when those taken are the
  /// newest.
  virtual Result<std::optional<std::string>> fetch(const std::stop_token& stop) = 0;
  /// The last bytes were verified and are in use.
  virtual void taken() = 0;
};

/// GET /v1/manifest with the ETag of what was fetched last. What was refused is kept and given again, since a
/// clock or a disk may be mended meanwhile, without being sent again.
class HubManifestSource : public ManifestSource {
 public:
  /// `timeout_s`: of one fetch; a reply that trickles is given up.
  HubManifestSource(HubConfig hub, HttpClient& http, double timeout_s = 60)
      : hub_(std::move(hub)), http_(http), timeout_s_(timeout_s) {}
  Result<std::optional<std::string>> fetch(const std::stop_token& stop) override;
  void taken() override { waiting_.reset(); }

 private:
  const HubConfig hub_;
  HttpClient& http_;
  const double timeout_s_;
  std::string tag_;
  std::optional<std::string> waiting_;  ///< fetched, and not taken
};

/// Fetches, has it verified, and writes tuning.json and override.json as they are, atomically. One thread.
class ManifestFollower {
 public:
  using Note = std::function<void(std::string)>;
  ManifestFollower(ManifestSource& source, ManifestVerifier& verifier, Files& files,
                   std::filesystem::path data, Note note)
      : source_(source), verifier_(verifier), files_(files), data_(std::move(data)), note_(std::move(note)) {}
  /// One look. An error is told and what was good before holds, for as long as it holds by itself: also when
  /// the hub is away.
  Status step(const std::stop_token& stop);
  const std::string& version() const { return version_; }

 private:
  Status fetch_and_verify(const std::stop_token& stop);
  Status put_standing();
  Status put(const char* name, const std::optional<std::string>& bytes, const std::string& version);

  ManifestSource& source_;
  ManifestVerifier& verifier_;
  Files& files_;
  const std::filesystem::path data_;
  Note note_;
  std::string version_;
  std::string told_;  ///< the last note, so that each is told once
};

}  // namespace furlong::fleet
