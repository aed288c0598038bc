#include "furlong/fleet/agent/planner.h"

namespace furlong::fleet {

std::optional<WorkerPlan::Step> Planner::step_of(const char* which, const std::optional<Turn>& turn,
                                                 const std::stop_token& stop) {
  const std::string what = fmt::format("no pack for the {} program", which);
  if (!turn) {
    problems_.over(what);
    return std::nullopt;
  }
  const std::string pair = turn->pair().text();
  const auto waits = back_offs_.find(pair);
  if (waits != back_offs_.end() && !waits->second.due()) return std::nullopt;
  const auto pack = packs_.ensure(*turn, stop);
  if (pack) {
    problems_.over(what);
    back_offs_.erase(pair);
    return WorkerPlan::Step{.pair = turn->pair(), .pack = pack->string()};
  }
  if (stop.stop_requested()) return std::nullopt;
  problem_(what, fmt::format("{}: {}", pair, pack.error().text()));
  back_offs_.try_emplace(pair, clock_, 2, 60).first->second.failed();
  return std::nullopt;
}

void Planner::turn(const Due& due, const std::function<void(const WorkerPlan&)>& hand_over,
                   const std::stop_token& stop) {
  std::erase_if(back_offs_, [&](const auto& each) {
    return !(due.current && due.current->pair().text() == each.first) &&
           !(due.next && due.next->pair().text() == each.first);
  });
  WorkerPlan plan;
  plan.current = step_of("current", due.current, stop);
  if (due.next && plan_.next && plan_.next->pair == due.next->pair()) plan.next = plan_.next;
  hand_over(plan);  // what is due now does not wait for the next pack to be made
  plan.next = step_of("next", due.next, stop);
  hand_over(plan);
  complete_ =
      plan.current.has_value() == due.current.has_value() && plan.next.has_value() == due.next.has_value();
  plan_ = std::move(plan);
}

}  // namespace furlong::fleet
