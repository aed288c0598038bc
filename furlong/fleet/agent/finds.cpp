#include "furlong/fleet/agent/finds.h"

#include "furlong/fleet/agent/children.h"

namespace furlong::fleet {

FindsGiver::FindsGiver(std::vector<std::string> command, Processes& processes, Spool& spool, Clock& clock,
                       Problems& problems, Problem problem)
    : command_(std::move(command)),
      processes_(processes),
      spool_(spool),
      problems_(problems),
      problem_(std::move(problem)),
      fresh_(clock, 1, 300),
      again_(clock, 1, 300) {}

bool FindsGiver::step(const std::stop_token& stop) {
  // Parked by an agent before: whoever mends the command starts the agent again.
  if (!begun_) begun_ = spool_.forget_tries().has_value();
  while (!stop.stop_requested() && fresh_.due() && give_one(0, 0, fresh_, stop)) {
  }
  while (!stop.stop_requested() && again_.due() && give_one(1, most_tries - 1, again_, stop)) {
  }
  return fresh_.due();
}

bool FindsGiver::give_one(int least, int most, BackOff& back_off, const std::stop_token& stop) {
  const auto waiting = spool_.waiting_find(least, most);
  if (!waiting) {
    problem_("finds wait", waiting.error().text());
    back_off.failed();
    return false;
  }
  if (!*waiting) return false;
  const Find& find = (**waiting).find;
  const Status given = give_find(processes_, command_, find, stop);
  if (given) {
    if (const Status taken = spool_.find_taken(find); !taken) {
      problem_("finds wait", taken.error().text());
      back_off.failed();
      return false;
    }
    problems_.over("finds wait");
    fresh_.succeeded();
    again_.succeeded();
    return true;
  }
  if (stop.stop_requested()) return false;
  back_off.failed();
  problem_("finds wait", given.error().text());
  if (const Status refused = spool_.find_refused(find); !refused)
    problem_("finds wait", refused.error().text());
  else if ((**waiting).tries + 1 >= most_tries)
    problem_(fmt::format("the find of nonce {:016x}", find.nonce),
             fmt::format("the command took it at none of {} times; it waits for the agent's next start: {}",
                         most_tries, to_json_line(find)));
  return true;
}

}  // namespace furlong::fleet
