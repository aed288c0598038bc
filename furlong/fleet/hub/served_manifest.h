#pragma once
// The fleet manifest that the hub gives out: the publisher's file, as long as machines would take it
// (docs/formats/fleet-manifest.md).

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "furlong/base/log.h"
#include "furlong/base/os/clock.h"
#include "furlong/base/os/file.h"
#include "furlong/base/sign.h"
#include "furlong/fleet/hub/reply.h"
#include "furlong/fleet/manifest/publish.h"

namespace furlong::fleet {

/// What is served at a moment. Immutable.
struct Serving {
  std::optional<Document> document;  ///< nullopt: there never was a good one
  ManifestBody body;
  std::optional<CheckedBody> checked;
  std::string problem;  ///< why the file is not what is served; empty: it is
  /// Whether the stop holds for the manifest.
  bool stopped() const;
};

/// Thread safe.
class ServedManifest {
 public:
  /// `file` empty: nothing is served.
  ServedManifest(std::filesystem::path file, Files& files, Clock& clock,
                 std::function<void(LogLevel, std::string_view)> say);

  /// Reads the file and takes what is new and good in it: verified, and no step back from what was served. A
  /// stop that was served and that a publisher overwrote is put back.
  void look();
  std::shared_ptr<const Serving> now() const;
  /// Signs "race locally" for manifest `version`, serves it, and writes it into the file; where that fails it
  /// is served all the same, and look() tries again. Looks at the file first: what was published since the
  /// last look is taken, never overwritten. `denied`: the root names another stop key; `invalid`: `version`
  /// is not (any more) what is served, or the stop is there already.
  Result<StopDocument> stop(const KeyPair& key, std::uint64_t version);

 private:
  void look_at_file();
  Status take(const std::string& text);
  Status check_order(const CheckedBody& next) const;
  void put_stop_back(ManifestBody& body, CheckedBody& checked) const;
  void serve(ManifestBody body, CheckedBody checked, std::string text);
  void tell(std::string problem, std::string_view what_now = {});
  void write();

  const std::filesystem::path file_;
  Files& files_;
  Clock& clock_;
  const std::function<void(LogLevel, std::string_view)> say_;
  std::mutex working_;               ///< look() and stop() take turns
  std::optional<std::string> seen_;  ///< the file's bytes at the last look
  bool unwritten_ = false;           ///< what is served is newer than the file
  mutable std::mutex mutex_;
  std::shared_ptr<const Serving> serving_ = std::make_shared<Serving>();
};

}  // namespace furlong::fleet
