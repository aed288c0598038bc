#pragma once
// The agent's ManifestVerifier: what is trusted, kept in the data folder.

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "furlong/base/os/clock.h"
#include "furlong/base/os/file.h"
#include "furlong/fleet/agent/manifest.h"
#include "furlong/fleet/manifest/trust.h"

namespace furlong::fleet {

/// data/manifest-state.json
std::filesystem::path manifest_state_file(const std::filesystem::path& data);

/// One thread. What is new is on disk before it is given to anybody, so that a kill at any moment leaves the
/// old state or the new one, and nothing that was seen is forgotten.
class ManifestUpdater : public ManifestVerifier {
 public:
  /// `pinned_root` is the text of the root that a person put on this machine. Another one than the state
  /// began with, and not the one that it has come to, begins anew. A state that cannot be read is no error
  /// here: verify() and standing() say it each time, and nothing changes until a person has mended it.
  static Result<std::unique_ptr<ManifestUpdater>> open(std::string_view pinned_root, const Client& client,
                                                       const std::filesystem::path& data, Files& files,
                                                       Clock& clock);

  /// Takes the roots, the stop and the manifest of a body, each on its own: one that is refused does not keep
  /// the others out, and the first refusal is the error.
  Result<VerifiedManifest> verify(std::string_view body) override;
  Result<VerifiedManifest> standing() override;
  /// For tests and commands; `corrupt` and others as above.
  Result<const Trust*> trust() const;

 private:
  ManifestUpdater(Client client, std::filesystem::path file, Files& files, Clock& clock)
      : client_(std::move(client)), file_(std::move(file)), files_(files), clock_(clock) {}
  void load(const Signed<RootDocument>& pinned);
  Status save(const Trust& trust);

  const Client client_;
  const std::filesystem::path file_;
  Files& files_;
  Clock& clock_;
  std::optional<Trust> trust_;
  std::optional<Error> unreadable_;
};

}  // namespace furlong::fleet
