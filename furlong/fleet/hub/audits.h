#pragma once
// What the fleet's races say of the knobs of the shipped programs (furlong/audit), made anew in the
// background.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "furlong/base/log.h"
#include "furlong/base/os/clock.h"
#include "furlong/fleet/hub/hub.h"
#include "furlong/fleet/hub/learner.h"
#include "furlong/fleet/hub/reply.h"

namespace furlong::fleet {

/// latest() may be called from any thread, refresh() from one.
class Audits {
 public:
  struct Options {
    std::size_t most_races = 20'000;     ///< of a program, the newest
    std::size_t most_bytes = 24u << 20;  ///< of their lines: read, they take some times as much
    double every_s = 60;                 ///< at most so often
  };
  struct Made {
    Document list;                                          ///< of GET /v1/knobs
    std::map<std::string, Document, std::less<>> programs;  ///< of GET /v1/knobs/{program}
  };
  /// Without a race at first.
  Audits(std::vector<ShippedLattice> lattices, OpenStore open, Clock& clock,
         std::function<void(LogLevel, std::string_view)> say, Options options);
  Audits(std::vector<ShippedLattice> lattices, OpenStore open, Clock& clock,
         std::function<void(LogLevel, std::string_view)> say)
      : Audits(std::move(lattices), std::move(open), clock, std::move(say), Options{}) {}

  std::shared_ptr<const Made> latest() const;
  /// When the races have changed and it is time.
  void refresh(const Learned& learned);

 private:
  struct Records;
  Result<Records> read(Store& store, const std::string& program, const Window& window) const;
  Result<Made> make(Store* store, const Window& window) const;

  const std::vector<ShippedLattice> lattices_;
  const OpenStore open_;
  Clock& clock_;
  const std::function<void(LogLevel, std::string_view)> say_;
  const Options options_;
  std::unique_ptr<Store> store_;
  std::uint64_t change_ = 0;
  std::int64_t next_ns_ = 0;
  bool made_once_ = false;
  std::string told_;
  mutable std::mutex mutex_;
  std::shared_ptr<const Made> latest_;
};

}  // namespace furlong::fleet
