#pragma once
// From what is due to what workers are told: the packs of both programs, made where they are not there yet.

#include <functional>
#include <map>
#include <stop_token>
#include <string>

#include "furlong/fleet/agent/back_off.h"
#include "furlong/fleet/agent/children.h"
#include "furlong/fleet/agent/problems.h"
#include "furlong/fleet/agent/supervisor.h"

namespace furlong::fleet {

/// One thread.
class Planner {
 public:
  using Problem = std::function<void(const std::string& what, const std::string& how)>;
  Planner(Packs& packs, Clock& clock, Problems& problems, Problem problem)
      : packs_(packs), clock_(clock), problems_(problems), problem_(std::move(problem)) {}
  /// Hands over a plan for the current program before it makes the next one's pack, and a whole one after. A
  /// next program that was planned before is in both: a plan without it would have it prepared anew. A pack
  /// that fails is tried again after 2 ... 60 s, whatever the other does.
  void turn(const Due& due, const std::function<void(const WorkerPlan&)>& hand_over,
            const std::stop_token& stop);
  /// Whether the last plan has a step for all that is due.
  bool complete() const { return complete_; }

 private:
  std::optional<WorkerPlan::Step> step_of(const char* which, const std::optional<Turn>& turn,
                                          const std::stop_token& stop);

  Packs& packs_;
  Clock& clock_;
  Problems& problems_;
  Problem problem_;
  std::map<std::string, BackOff> back_offs_;  ///< of what is due and failed
  WorkerPlan plan_;
  bool complete_ = false;
};

}  // namespace furlong::fleet
