#pragma once
// Machines that take a new manifest before the others: whether their races since it was issued are slower
// than the same machines' races before, whether what it pins is slower than what they would choose, and the
// stop that follows. docs/hub.md, "Canaries".

#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "furlong/base/json_fwd.h"
#include "furlong/base/log.h"
#include "furlong/base/os/clock.h"
#include "furlong/base/sign.h"
#include "furlong/fleet/aggregate/aggregate.h"
#include "furlong/fleet/hub/learner.h"
#include "furlong/fleet/hub/served_manifest.h"

namespace furlong::fleet {

/// The canaries are looked at after every change, up to hundreds of times a manifest, and one look is enough
/// for a stop. So each look has a twentieth of the error that a report has, and nothing is judged by fewer
/// races than these; docs/hub.md says how often that stops falsely.
inline constexpr double canary_look_error = 0.05 / 20;
inline constexpr int canary_least_races = 8;

struct CanaryReport {
  std::uint64_t manifest = 0;  ///< version that was judged; 0: none yet
  std::size_t machines = 0;    ///< canaries that are active
  std::uint64_t races = 0;     ///< of theirs, since it was issued
  std::size_t regressions = 0;
  std::size_t stopping = 0;  ///< of these, those that a manifest can cause
  std::uint64_t stops = 0;   ///< signed by this hub since its start
  std::string why;           ///< the worst regression in a sentence
  std::string problem;       ///< why a stop that is due was not signed
  std::string tag() const;
};

/// latest() may be called from any thread, look() from one.
class Canaries {
 public:
  using Say = std::function<void(LogLevel, std::string_view)>;
  Canaries(std::optional<KeyPair> stop_key, RegressionOptions options, OpenStore open,
           ServedManifest& manifest, Say say)
      : stop_key_(std::move(stop_key)),
        options_(std::move(options)),
        open_(std::move(open)),
        manifest_(manifest),
        say_(std::move(say)) {}

  CanaryReport latest() const;
  /// After a change of the races or of the manifest. One stop for one manifest, at most.
  void look(const Learned& learned);

 private:
  Result<CanaryReport> judge(const ManifestDocument& manifest);
  void tell_of_cards(const CanaryReport& report);
  void stop(const ManifestDocument& manifest, CanaryReport& report);
  std::string why_no_stop(const RootDocument& root);

  const std::optional<KeyPair> stop_key_;
  const RegressionOptions options_;
  const OpenStore open_;
  ServedManifest& manifest_;
  const Say say_;
  std::string judged_;  ///< manifest and races that were looked at last
  std::string told_, told_of_cards_;
  mutable std::mutex mutex_;
  CanaryReport latest_;
};

/// The reply of GET /v1/rollout.
Json rollout_json(const Serving& serving, const std::vector<Machine>& machines, const CanaryReport& canaries,
                  std::int64_t now_us);

}  // namespace furlong::fleet
