#pragma once
// Brings finds to the finds command, each until it is taken.

#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "furlong/fleet/agent/back_off.h"
#include "furlong/fleet/agent/problems.h"
#include "furlong/fleet/agent/spool.h"

namespace furlong {
class Processes;
}

namespace furlong::fleet {

/// A find that the command does not take is tried again after all others, and at last parked until the agent
/// starts again; new ones do not wait for it. One thread.
class FindsGiver {
 public:
  using Problem = std::function<void(const std::string& what, const std::string& how)>;
  FindsGiver(std::vector<std::string> command, Processes& processes, Spool& spool, Clock& clock,
             Problems& problems, Problem problem);
  /// Gives what is due. Returns whether a new find may be given now.
  bool step(const std::stop_token& stop);
  static constexpr int most_tries = 50;  ///< some four hours

 private:
  bool give_one(int least, int most, BackOff& back_off, const std::stop_token& stop);

  const std::vector<std::string> command_;
  Processes& processes_;
  Spool& spool_;
  Problems& problems_;
  Problem problem_;
  BackOff fresh_, again_;  // one bad find tried again must not hold up those that were never tried
  bool begun_ = false;
};

}  // namespace furlong::fleet
