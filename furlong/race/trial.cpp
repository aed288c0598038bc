#include "furlong/race/trial.h"

#include <algorithm>
#include <deque>

#include "furlong/base/os/file.h"
#include "furlong/base/text.h"
#include "furlong/race/internal/entrant.h"
#include "furlong/race/internal/trial_protocol.h"

namespace furlong::race {
namespace {

using Kind = TrialEvent::Kind;

constexpr double kSlice_s = 0.1;  // between two looks at the stop token
constexpr double kEnd_s = 10;     // for a child to end by itself after its last word
constexpr double kStartAtLeast_s = 60;
constexpr int kMostNoise = 100'000;  // foreign lines (kernels that print) before a child is taken for mad

/// How one child went.
struct Session {
  std::vector<std::size_t> passed;                                    // in order
  std::optional<std::size_t> in_hand;                                 // when it ended
  std::optional<std::pair<std::size_t, TrialEvent>> failed_for_good;  // it named the culprit and ended
  std::vector<std::pair<std::size_t, TrialEvent>> failed;
  std::optional<Error> refused;       // nothing could be tried
  bool began = false, ended = false;  // said `begin` / `end`
  bool hung = false;
  bool out_of_budget = false;  // killed for that alone
  std::string death;           // how it ended, unless by `end`
};

class Trial {
 public:
  Trial(Processes& processes, const TrialAsked& asked, std::stop_token stop)
      : processes_(processes),
        asked_(asked),
        stop_(std::move(stop)),
        clock_(asked.clock != nullptr ? *asked.clock : system_clock()),
        start_(now()) {
    report_.findings.resize(asked.variants.size());
  }
  Result<TrialReport> run();

 private:
  Result<Session> session(const std::vector<std::size_t>& variants);
  /// Waits and the time by the clock since then, whichever is longer: children in tests take no time.
  struct Since {
    double ms = 0, waits_s = 0;
  };
  Since now() const { return {clock_.now_ms(), waits_s_}; }
  double since_s(const Since& then) const {
    return std::max(waits_s_ - then.waits_s, 1e-3 * (clock_.now_ms() - then.ms));
  }
  bool out_of_budget() const { return since_s(start_) > asked_.budget_s; }
  Result<std::optional<std::string>> next_line(Child& child, const Since& since, double timeout_s);
  void note_event(const std::vector<std::size_t>& variants, const TrialEvent& event, Session& session);
  Status after_death(const Session& session);
  Status blame_one_of(std::vector<std::size_t> suspects, std::optional<std::size_t> last,
                      const std::string& death);
  void settle(const Session& session);
  void bad(std::size_t variant, std::string why);
  const std::string& name(std::size_t variant) const { return asked_.variants[variant]; }
  double start_limit() const { return std::max(kStartAtLeast_s, 3 * asked_.timeout_s); }

  Processes& processes_;
  const TrialAsked& asked_;
  std::stop_token stop_;
  TrialReport report_;
  Clock& clock_;
  double waits_s_ = 0;
  Since start_;
  // The children's TMPDIR: a child that is killed leaves what it was making, and it goes with this.
  std::optional<TemporaryFolder> temporary_;
};

bool died(const Session& session) {
  return !session.ended && !session.failed_for_good && !session.refused && !session.out_of_budget;
}

std::string last_words(const ProcessEnd& end) {
  std::string text = end.text();
  const std::string_view tail = trim(end.standard_error);
  if (tail.empty()) return text;
  const std::size_t line = tail.rfind('\n');
  return text + ": " + std::string(tail.substr(line == std::string_view::npos ? 0 : line + 1).substr(0, 300));
}

/// `timeout` when none came within `timeout_s` of `since`, when the budget is used up and when stopped.
Result<std::optional<std::string>> Trial::next_line(Child& child, const Since& since, double timeout_s) {
  for (;;) {
    if (stop_.stop_requested()) {
      child.kill();
      return fail(Code::timeout, "stopped during the trial");
    }
    if (out_of_budget()) return fail(Code::timeout, "the budget is used up");
    auto line = child.read_line(kSlice_s);
    if (line || line.error().code() != Code::timeout) return line;
    waits_s_ += kSlice_s;
    if (waits_s_ - since.waits_s >= timeout_s)
      return line;  // and not by the clock: both may have been paused
  }
}

void Trial::note_event(const std::vector<std::size_t>& variants, const TrialEvent& event, Session& session) {
  std::optional<std::size_t> which;
  for (const std::size_t v : variants)
    if (name(v) == event.variant) which = v;
  switch (event.kind) {
    case Kind::begin:
      session.in_hand = which;
      session.began = true;
      if (which && asked_.doing) asked_.doing(session.passed.size() + session.failed.size(), event.variant);
      break;
    case Kind::passed:
      if (which && which == session.in_hand) session.passed.push_back(*which);
      session.in_hand.reset();
      break;
    case Kind::failed:
      if (which && event.lost) session.failed_for_good = {*which, event};
      if (which && !event.lost) session.failed.emplace_back(*which, event);
      session.in_hand.reset();
      break;
    case Kind::error:
      session.refused = Error(event.code, event.why);
      break;
    case Kind::end:
      session.ended = true;
      break;
    case Kind::ready:
    case Kind::built:
      break;
  }
}

Result<Session> Trial::session(const std::vector<std::size_t>& variants) {
  Session session;
  session.out_of_budget = report_.out_of_budget = out_of_budget();
  if (session.out_of_budget) return session;
  TrialRequest request{asked_.program_json, asked_.device, {}, asked_.seed, asked_.memory_bytes};
  for (const std::size_t v : variants) request.variants.push_back(name(v));
  ProcessRequest start;
  start.argv = asked_.command;
  start.input = to_line(request) + "\n";
  start.address_space_bytes = asked_.address_space_bytes;
  if (temporary_) start.environment.emplace_back("TMPDIR", temporary_->path().string());
  ++report_.processes;
  auto child = processes_.start(start);
  if (!child) {
    session.refused = std::move(child).error();
    return session;
  }
  double limit_s = start_limit();
  Since event_at = now();
  for (int noise = 0; !session.ended && !session.refused && !session.failed_for_good;) {
    auto line = next_line(**child, event_at, limit_s);
    if (!line && stop_.stop_requested()) return Error(std::move(line).error());
    if (!line && out_of_budget()) {
      session.out_of_budget = report_.out_of_budget = true;
      (*child)->kill();
      return session;
    }
    if (!line) {
      session.hung = line.error().code() == Code::timeout;
      session.death = session.hung ? fmt::format("ran past {:.3g} s", limit_s) : line.error().text();
      (*child)->kill();
      return session;
    }
    if (!*line) break;
    auto event = parse_trial_event(**line);
    if (!event && event.error().code() == Code::incompatible) {
      session.refused = std::move(event).error();
      break;
    }
    if (!event || !*event) {
      // A kernel that prints is not a sign of life: one that prints for ever hangs as well.
      session.hung = since_s(event_at) >= limit_s;
      if (!session.hung && ++noise < kMostNoise) continue;
      session.death = session.hung ? fmt::format("ran past {:.3g} s", limit_s) : "it printed without end";
      (*child)->kill();
      return session;
    }
    note_event(variants, **event, session);
    limit_s = (*event)->kind == Kind::built ? asked_.timeout_s : 3 * asked_.timeout_s;
    event_at = now();
  }
  const ProcessEnd end = (*child)->wait(kEnd_s);
  const bool clean = end.signal == 0 && end.exit_code == 0 && !end.timed_out;
  if (session.ended && !clean) session.ended = false;  // it died on its way out: somebody had damaged it
  if (!session.ended) session.death = last_words(end);
  return session;
}

void Trial::bad(std::size_t variant, std::string why) {
  report_.findings[variant] = {TrialFinding::Kind::bad, std::move(why), true};
}

/// What a session says for sure.
void Trial::settle(const Session& session) {
  for (const std::size_t v : session.passed) report_.findings[v] = {TrialFinding::Kind::good, {}, true};
  const auto judge = [&](std::size_t v, const TrialEvent& event) {
    const Error error(event.code, event.why);
    // Memory that runs out within the limit is what the trial is there to find.
    if (fault_of(error) == Fault::refused && event.code != Code::exhausted) {
      report_.findings[v] = {TrialFinding::Kind::refused, event.why, true};
    } else {
      bad(v, event.code == Code::exhausted ? "memory: " + event.why : fault_words(error));
    }
  };
  for (const auto& [v, event] : session.failed) judge(v, event);
  if (session.failed_for_good) judge(session.failed_for_good->first, session.failed_for_good->second);
}

/// `suspects` had passed before the process died with `last` in hand (or on its way out), and `last` alone is
/// fine.
Status Trial::blame_one_of(std::vector<std::size_t> suspects, std::optional<std::size_t> last,
                           const std::string& death) {
  const auto kills = [&](std::vector<std::size_t> some) -> Result<bool> {
    if (last) some.push_back(*last);
    FURLONG_TRY(const Session again, session(some));
    return died(again);
  };
  const std::vector<std::size_t> all = suspects;
  while (suspects.size() > 1 && !report_.out_of_budget) {
    const auto middle = suspects.begin() + static_cast<std::ptrdiff_t>(suspects.size() / 2);
    std::vector<std::size_t> front(suspects.begin(), middle);
    FURLONG_TRY(const bool in_front, kills(front));
    if (in_front) {
      suspects = std::move(front);
    } else {
      suspects.erase(suspects.begin(), middle);
    }
  }
  FURLONG_TRY(const bool culprit, kills(suspects));
  if (report_.out_of_budget) {  // one of them kills, and there is no time to find out who
    for (const std::size_t v : all) report_.findings[v] = {};
    if (last) report_.findings[*last] = {};
    return {};
  }
  if (culprit) {
    bad(suspects[0], fmt::format("trap: {} after it had run{}", death,
                                 last ? fmt::format(", with {} in hand", name(*last)) : ""));
    return {};
  }
  report_.notes.push_back(
      fmt::format("a trial process died once ({}) and not again: no variant could be named", death));
  for (const std::size_t v : all) report_.findings[v].certain = false;
  if (last) report_.findings[*last].certain = false;
  return {};
}

Status Trial::after_death(const Session& session) {
  if (session.in_hand && (session.hung || session.passed.empty())) {
    bad(*session.in_hand, (session.hung ? "hang: " : "trap: ") + session.death);
    return {};
  }
  if (session.passed.empty()) return {};
  if (session.in_hand) {
    FURLONG_TRY(const Session alone, this->session({*session.in_hand}));
    settle(alone);
    if (died(alone)) {
      bad(*session.in_hand, (alone.hung ? "hang: " : "trap: ") + alone.death);
      return {};
    }
    if (report_.findings[*session.in_hand].kind != TrialFinding::Kind::good && !alone.out_of_budget)
      return {};
  }
  return blame_one_of(session.passed, session.in_hand, session.death);
}

Result<TrialReport> Trial::run() {
  // Where none can be made, the child tells why when it needs one.
  if (auto folder = TemporaryFolder::make("furlong-trial")) temporary_.emplace(*std::move(folder));
  std::deque<std::size_t> rest;
  for (std::size_t v = 0; v < asked_.variants.size(); ++v) rest.push_back(v);
  while (!rest.empty()) {
    FURLONG_TRY(const Session now, session({rest.begin(), rest.end()}));
    if (!now.out_of_budget && (now.refused || (!now.began && !now.ended))) {
      report_.notes.push_back(fmt::format("no trial: {}", now.refused ? now.refused->text() : now.death));
      return report_;
    }
    settle(now);
    if (died(now)) FURLONG_CHECK(after_death(now));
    const std::size_t before = rest.size();
    std::erase_if(rest,
                  [&](std::size_t v) { return report_.findings[v].kind != TrialFinding::Kind::untried; });
    if (report_.out_of_budget) {
      report_.notes.push_back("the trial ran out of the race's budget");
      return report_;
    }
    if (rest.size() == before) {
      report_.notes.push_back(fmt::format("the trial came to no result: {}", now.death));
      return report_;
    }
    if (now.ended && !rest.empty()) {
      report_.notes.push_back("the trial passed over a variant");
      return report_;
    }
  }
  return report_;
}

}  // namespace

Result<TrialReport> run_trial(Processes& processes, const TrialAsked& asked, std::stop_token stop) {
  if (asked.variants.empty()) return TrialReport{};
  if (asked.command.empty()) return fail(Code::invalid, "the trial has no command");
  return Trial(processes, asked, std::move(stop)).run();
}

}  // namespace furlong::race
