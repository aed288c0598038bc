#include "furlong/fleet/agent/supervisor.h"

#include <algorithm>
#include <cmath>

#include "furlong/base/os/clock.h"
#include "furlong/base/text.h"
#include "furlong/record/record.h"

namespace furlong::fleet {
namespace {

using record::Pair;

constexpr double first_back_off_s = 1;
constexpr double longest_back_off_s = 60;
constexpr double good_stretch_s = 300;  // of service, after which earlier crashes no longer count
constexpr double prepare_again_s = 30;
constexpr double job_again_s = 10;
constexpr std::size_t jobs_remembered = 64;

double seconds(std::int64_t ns) { return static_cast<double>(ns) * 1e-9; }

std::int64_t nanoseconds(double s) { return static_cast<std::int64_t>(s * 1e9); }

double back_off_s(double first, int failures, double longest) {
  return std::min(longest, first * std::pow(2.0, std::clamp(failures - 1, 0, 20)));
}

std::string last_line(std::string_view text) {
  text = trim(text);
  const std::size_t begin = text.rfind('\n');
  return one_line(begin == std::string_view::npos ? text : text.substr(begin + 1)).substr(0, 300);
}

}  // namespace

std::string card_words(std::string_view label) {
  std::string words = replace_all(label, "_", " ");
  for (const std::string_view brand : {"NVIDIA ", "GeForce "})
    if (words.starts_with(brand)) words.erase(0, brand.size());
  return words;
}

std::string race_summary(const record::RaceRecord& record) {
  const std::string unit = record.unit.empty() ? "MH/s" : record.unit;
  std::string text = card_words(record.card) + " kernel race: ";
  if (record.winner.empty())
    return text + fmt::format("undecided, base serves ({}{} variants, {:.0f} s)",
                              record.notes.empty() ? "" : record.notes[0] + ", ", record.variants.size(),
                              record.total_ms * 1e-3);
  text += record.winner;
  if (record.rate) text += fmt::format(" at {:.1f} {}", *record.rate, unit);
  std::string gain = record.winner == "base" ? "nothing beat base" : "";
  if (gain.empty() && record.gain_pct) gain = fmt::format("{:+.1f}% over base", *record.gain_pct);
  if (record.pinned) gain = "pinned by tuning";
  return text + fmt::format(" ({}{}{} variants, {:.0f} s)", gain, gain.empty() ? "" : ", ",
                            record.variants.size(), record.total_ms * 1e-3);
}

Supervisor::Supervisor(WorkerSetup setup, Processes& processes, Spool& spool, Clock& clock, WorkerSink& sink)
    : setup_(std::move(setup)), processes_(processes), spool_(spool), clock_(clock), sink_(sink) {
  view_.device = setup_.device;
  next_start_ns_ = clock_.now_ns();
}

Supervisor::~Supervisor() = default;

void Supervisor::set_plan(const WorkerPlan& plan) {
  const std::scoped_lock lock(mutex_);
  plan_ = plan;
}

WorkerView Supervisor::view() {
  const std::scoped_lock lock(mutex_);
  return view_;
}

void Supervisor::say(LogLevel level, const std::string& text) {
  sink_.say(level, fmt::format("{}: {}", setup_.device.address, text));
}

std::string Supervisor::now() const { return iso_time(clock_.wall_us()); }

void Supervisor::step(double wait_s) {
  save_finds();
  if (!child_) {
    const std::int64_t left_ns = next_start_ns_ - clock_.now_ns();
    if (left_ns > 0) return clock_.sleep_ns(std::min(left_ns, nanoseconds(wait_s)));
    start();
    if (!child_) return;
  }
  reconcile();
  if (!child_) return;
  auto line = child_->read_line(wait_s);
  if (!line) {
    if (line.error().code() != Code::timeout) return kill(line.error().text());
  } else if (!*line) {
    return ended(child_->wait(5), "");
  } else {
    take_line(**line);
  }
  if (child_) watch_for_hang();
}

void Supervisor::start() {
  ProcessRequest request{.argv = setup_.argv, .environment = setup_.environment};
  request.guarded = true;
  auto child = processes_.start(request);
  started_ns_ = heard_ns_ = pinged_ns_ = clock_.now_ns();
  ready_ = false;
  asked_.clear();
  jobs_.clear();
  next_since_ns_ = started_ns_;
  if (!child) {
    ProcessEnd end;
    return ended(end, child.error().text());
  }
  child_ = std::move(*child);
  const std::scoped_lock lock(mutex_);
  view_.state = "starting";
  view_.pid = child_->pid();
}

void Supervisor::ended(const ProcessEnd& end, const std::string& why) {
  const std::int64_t now_ns = clock_.now_ns();
  const bool good = ready_ && seconds(now_ns - started_ns_) >= good_stretch_s;
  quick_crashes_ = good ? 1 : quick_crashes_ + 1;
  const double wait_s = back_off_s(first_back_off_s, quick_crashes_, longest_back_off_s);
  next_start_ns_ = now_ns + nanoseconds(wait_s);
  child_.reset();
  ready_ = false;
  std::string culprit = why.empty() ? end.text() : why;
  if (const std::string words = last_line(end.standard_error); !words.empty()) culprit += ": " + words;
  int crashes = 0;
  {
    const std::scoped_lock lock(mutex_);
    crashes = ++view_.crashes;
    view_.culprit = culprit;
    view_.state = "restarting";
    view_.pid = 0;
    view_.mhs.reset();
    view_.power_w.reset();
  }
  say(LogLevel::warning,
      fmt::format("the worker ended: {} (crash {}; started again in {:.0f} s)", culprit, crashes, wait_s));
}

void Supervisor::kill(const std::string& why) {
  const ProcessEnd end = child_->kill();
  ended(end, why);
}

void Supervisor::watch_for_hang() {
  const std::int64_t now_ns = clock_.now_ns();
  const double quiet_s = seconds(now_ns - heard_ns_);
  if (quiet_s >= setup_.hang_s)
    return kill(fmt::format("hung: it said nothing for {:.0f} s and was killed", quiet_s));
  if (quiet_s < setup_.hang_s / 2 || pinged_ns_ > heard_ns_ || !ready_) return;
  pinged_ns_ = now_ns;
  send(record::StatusCommand{});
}

void Supervisor::send(const record::WorkerCommand& command) {
  const Status sent = child_->write(record::print(command) + "\n");
  // A worker that has closed its input is about to end: read_line tells how.
  if (!sent && sent.error().code() != Code::unavailable) kill(sent.error().text());
}

void Supervisor::reconcile() {
  if (!ready_) return;
  WorkerPlan plan;
  {
    const std::scoped_lock lock(mutex_);
    plan = plan_;
  }
  if (plan.current) reconcile_job(*plan.current);
  if (child_) reconcile_prepare(plan);
}

void Supervisor::reconcile_job(const WorkerPlan::Step& step) {
  const std::int64_t now_ns = clock_.now_ns();
  if (!jobs_.empty() && jobs_.back().pair == step.pair) {
    const Job& job = jobs_.back();
    if (!job.refused || seconds(now_ns - job.sent_ns) < job_again_s) return;
    // Its preparation would take the place of the next pair's, which may be the better of the two.
    if (!is_prepared(step.pair) && prepares_another(step.pair)) return;
  }
  // First, so that the job's pair is known; what is in hand goes on until its base is ready.
  if (wants_prepare(step.pair)) send_prepare(step);
  if (child_) send_job(step);
}

bool Supervisor::wants_prepare(const Pair& pair) {
  for (const Asked& each : asked_)
    if (each.pair == pair)
      return each.state == Asked::State::failed &&
             seconds(clock_.now_ns() - each.at_ns) >= back_off_s(prepare_again_s, each.failures, 600);
  return true;
}

void Supervisor::reconcile_prepare(const WorkerPlan& plan) {
  const auto planned = [&](const Pair& pair) {
    return (plan.current && plan.current->pair == pair) || (plan.next && plan.next->pair == pair);
  };
  std::erase_if(asked_, [&](const Asked& each) { return !planned(each.pair); });
  const auto running = std::find_if(asked_.begin(), asked_.end(),
                                    [](const Asked& each) { return each.state == Asked::State::running; });
  const std::int64_t now_ns = clock_.now_ns();
  if (!plan.next) next_since_ns_ = now_ns;
  if (plan.next && asks_for(plan.next->pair)) {
    // Wanted already. A retry is all that is left to do.
    if (running == asked_.end() && wants_prepare(plan.next->pair)) send_prepare(*plan.next);
    return;
  }
  if (plan.next) {
    // One at a time: the next pair's prepare would take the place of the one that runs, and a job that waits
    // for that would be refused. Its race alone may go on for some time.
    const bool patient = running != asked_.end() && seconds(now_ns - next_since_ns_) < setup_.patience_s;
    if (served(plan) && !patient) send_prepare(*plan.next);
    return;
  }
  if (plan.current && running == asked_.end() && wants_prepare(plan.current->pair))
    send_prepare(*plan.current);
}

bool Supervisor::asks_for(const Pair& pair) const {
  return std::any_of(asked_.begin(), asked_.end(), [&](const Asked& each) { return each.pair == pair; });
}

bool Supervisor::is_prepared(const Pair& pair) const {
  return std::any_of(asked_.begin(), asked_.end(), [&](const Asked& each) {
    return each.pair == pair && each.state == Asked::State::done;
  });
}

bool Supervisor::prepares_another(const Pair& pair) const {
  return std::any_of(asked_.begin(), asked_.end(), [&](const Asked& each) {
    return each.pair != pair && each.state == Asked::State::running;
  });
}

bool Supervisor::served(const WorkerPlan& plan) const {
  if (!plan.current) return true;
  if (!jobs_.empty() && (jobs_.back().confirmed || jobs_.back().nothing_left)) return true;
  // A pair that cannot be prepared here is tried again and again; the next one must not wait for that.
  return std::any_of(asked_.begin(), asked_.end(), [&](const Asked& each) {
    return each.pair == plan.current->pair && each.state == Asked::State::failed;
  });
}

void Supervisor::remember(Job job) {
  jobs_.push_back(std::move(job));
  if (jobs_.size() <= jobs_remembered) return;
  // The job at work is the last that was seen at work, however many were refused since: its finds come.
  auto at_work = jobs_.end();
  for (auto each = jobs_.begin(); each != jobs_.end(); ++each)
    if (each->confirmed) at_work = each;
  jobs_.erase(at_work == jobs_.begin() ? std::next(jobs_.begin()) : jobs_.begin());
}

void Supervisor::send_prepare(const WorkerPlan::Step& step) {
  const auto known =
      std::find_if(asked_.begin(), asked_.end(), [&](const Asked& each) { return each.pair == step.pair; });
  Asked asked = known == asked_.end() ? Asked{.pair = step.pair} : *known;
  if (known != asked_.end()) asked_.erase(known);
  asked.state = Asked::State::running;
  asked.at_ns = clock_.now_ns();
  asked_.push_back(asked);
  send(record::PrepareCommand{.pair = step.pair, .pack = step.pack});
}

void Supervisor::send_job(const WorkerPlan::Step& step) {
  Spool::Progress progress{.first = setup_.nonce_first, .next = setup_.nonce_first};
  const auto kept = spool_.progress(step.pair, setup_.device.slot);
  if (!kept) say(LogLevel::warning, "where it stopped is not known: " + kept.error().text());
  // Another share than before (a device was added): begun anew. Finds that come twice are known.
  if (kept && *kept && (**kept).first == progress.first) progress = **kept;
  Job job{.name = fmt::format("{}-{}-{}", step.pair.epoch, step.pair.day, ++job_number_), .pair = step.pair};
  job.sent_ns = clock_.now_ns();
  std::uint64_t count = 0;
  if (setup_.nonce_count != 0) {
    count = setup_.nonce_count - (progress.next - progress.first);
    job.nothing_left = count == 0 || count > setup_.nonce_count;
  }
  remember(job);
  if (job.nothing_left) {
    say(LogLevel::info, fmt::format("{}: its nonces are all done", step.pair.text()));
    return send(record::StopCommand{});
  }
  send(record::JobCommand{
      .pair = step.pair, .job = job.name, .target = setup_.target, .start = progress.next, .count = count});
}

void Supervisor::quit(double patience_s) {
  if (child_) {
    send(record::QuitCommand{});
    const std::int64_t until_ns = clock_.now_ns() + nanoseconds(patience_s);
    while (child_ && clock_.now_ns() < until_ns) {
      auto line = child_->read_line(std::max(0.01, seconds(until_ns - clock_.now_ns())));
      if (!line || !*line) break;
      take_line(**line);
    }
    if (child_) {
      const ProcessEnd end = child_->wait(std::max(0.1, seconds(until_ns - clock_.now_ns())));
      if (end.timed_out) say(LogLevel::warning, "the worker did not quit and was killed");
      child_.reset();
    }
  }
  if (!save_finds()) give_up_finds();
  const std::scoped_lock lock(mutex_);
  view_.state = "stopped";
  view_.pid = 0;
}

Supervisor::Job* Supervisor::find_job(std::string_view name) {
  for (Job& job : jobs_)
    if (job.name == name) return &job;
  return nullptr;
}

}  // namespace furlong::fleet
