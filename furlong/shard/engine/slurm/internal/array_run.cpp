#include "furlong/shard/engine/slurm/internal/array_run.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "furlong/base/text.h"

namespace furlong::shard::slurm {
namespace {

constexpr double kCancelSeconds = 120;  // a job gets Slurm's KillWait (30 s) to end by itself

}  // namespace

ArrayRun::ArrayRun(const SlurmOptions& slurm, Commands& commands, Clock& clock,
                   std::span<const EngineTask> tasks, const EngineOptions& options,
                   const std::function<bool(const TaskEnd&)>& ended)
    : slurm_(slurm),
      commands_(commands),
      clock_(clock),
      options_(options),
      ended_(ended),
      start_ns_(clock.now_ns()),
      pace_("run", tasks.size(), options.progress, clock) {
  for (const EngineTask& task : tasks) {
    Shard shard;
    shard.task = &task;
    shard.request = job_request(task, slurm);
    shards_.push_back(std::move(shard));
  }
}

Status ArrayRun::run() {
  while (!all_settled()) {
    if (options_.stop.stop_requested()) return cancel_all(fail(Code::timeout, "the run was stopped"));
    const auto rows = commands_.queue(options_.stop);
    if (options_.stop.stop_requested()) continue;
    if (!rows) {
      FURLONG_CHECK(be_patient(rows.error(), queue_silent_ns_));
    } else {
      queue_silent_ns_.reset();
      adopt(*rows);
      FURLONG_CHECK(look(*rows));
      FURLONG_CHECK(halted_ ? drop_pending() : submit());
      show_waiting(*rows);
    }
    pace_.advance(0);
    // A short run is to end soon, a long one is not to ask a shared controller every second.
    if (!all_settled()) sleep(std::min(slurm_.poll_s, 1 + seconds_since(start_ns_) / 20));
  }
  pace_.end();
  return {};
}

bool ArrayRun::all_settled() const {
  return std::ranges::all_of(shards_, [](const Shard& shard) { return shard.settled; });
}

std::string ArrayRun::where(const Shard& shard) const {
  return fmt::format("{} (job {})", shard.task->name, shard.job->text());
}

void ArrayRun::sleep(double seconds) {
  const std::int64_t begin_ns = clock_.now_ns();
  while (seconds_since(begin_ns) < seconds && !options_.stop.stop_requested()) clock_.sleep_ns(100'000'000);
}

Status ArrayRun::be_patient(const Error& error, std::optional<std::int64_t>& since) {
  const auto jobs = jobs_in_queue();
  std::string left;
  if (!jobs.empty())
    left =
        fmt::format("; the jobs {} may still be in the queue, and the next run of this plan waits for them",
                    join(jobs, " "));
  if (!is_passing(error)) return fail(error.code(), "{}{}", error.message(), left);
  if (!since) {
    since = clock_.now_ns();
    tell(fmt::format("{}; asking again for up to {:.0f} s", error.message(), slurm_.patience_s));
  }
  if (seconds_since(*since) < slurm_.patience_s) return {};
  return fail(Code::unavailable, "{} (for {:.0f} s by now){}", error.message(), seconds_since(*since), left);
}

// A run that was killed left its jobs behind, and so did an sbatch whose answer was lost: such a job is
// waited for, since a shard must not be at work twice.
void ArrayRun::adopt(const Rows& rows) {
  std::map<ShardId, Shard*> waiting;
  for (Shard& shard : shards_)
    if (!shard.settled && !shard.job) waiting[shard.task->shard] = &shard;
  std::map<std::uint64_t, std::vector<std::uint32_t>> adopted;
  for (const JobRow& row : rows) {
    if (waiting.empty()) break;
    if (!row.index || phase_of(row.state) == Phase::ended) continue;
    const auto offset = offset_of(row.name, slurm_.plan);
    if (!offset || *row.index > std::numeric_limits<ShardId>::max() - *offset) continue;
    const auto found = waiting.find(*offset + *row.index);
    if (found == waiting.end()) continue;
    Shard& shard = *found->second;
    waiting.erase(found);
    shard.job = JobId{row.array, *row.index};
    if (std::ranges::none_of(arrays_, [&](const Array& array) { return array.id == row.array; }))
      arrays_.push_back({row.array, false, std::nullopt});
    adopted[row.array].push_back(shard.task->shard);
  }
  for (auto& [array, shards] : adopted)
    tell(fmt::format("array {}: shards {} are in the queue already, of an earlier run: waiting for them",
                     array, index_list(std::move(shards))));
}

Status ArrayRun::look(const Rows& rows) {
  std::map<JobId, const JobRow*> by_job;
  std::map<std::uint64_t, bool> rest_cancelled;  // one line stands for all elements that never came up
  for (const JobRow& row : rows) {
    if (row.index) by_job[{row.array, *row.index}] = &row;
    if (!row.index && row.state == "CANCELLED") rest_cancelled[row.array] = true;
  }
  std::optional<Error> unanswered;
  for (Shard& shard : shards_) {
    if (shard.settled || !shard.job) continue;
    const auto found = by_job.find(*shard.job);
    const JobRow* row = found == by_job.end() ? nullptr : found->second;
    if (row != nullptr) shard.seconds = row->seconds;
    if (row != nullptr && phase_of(row->state) != Phase::ended) {
      shard.gone_ns.reset();
      show_running(shard, *row);
    } else {
      job_gone(shard, row, row == nullptr && rest_cancelled.contains(shard.job->array), unanswered);
    }
  }
  // A good answer for one job is none for another: patience begins anew only when all were answered.
  if (unanswered) return be_patient(*unanswered, ended_silent_ns_);
  ended_silent_ns_.reset();
  return {};
}

void ArrayRun::show_running(Shard& shard, const JobRow& row) {
  const bool running = phase_of(row.state) == Phase::running;
  if (running && !shard.pace) {
    shard.begun = true;
    shard.pace =
        pace_.begin(fmt::format("{} (job {} on {})", shard.task->name, shard.job->text(), row.nodes));
  } else if (!running && shard.pace) {  // somebody had it queued again
    pace_.finish(*std::exchange(shard.pace, std::nullopt));
  }
}

// While nothing runs, progress says what is being waited for.
void ArrayRun::show_waiting(const Rows& rows) {
  const bool running =
      std::ranges::any_of(shards_, [](const Shard& shard) { return shard.pace.has_value(); });
  const auto waiting = std::ranges::find_if(rows, [&](const JobRow& row) {
    return phase_of(row.state) == Phase::pending && offset_of(row.name, slurm_.plan);
  });
  if (running || waiting == rows.end()) {
    if (waiting_pace_) pace_.finish(*std::exchange(waiting_pace_, std::nullopt));
    return;
  }
  const std::string what = fmt::format("job {} is pending: {}", waiting->array, one_line(waiting->reason));
  if (waiting_pace_)
    pace_.rename(*waiting_pace_, what);
  else
    waiting_pace_ = pace_.begin(what);
}

// `row`: its last line in the queue, null where Slurm lists it no more; `cancelled`: before it came up.
// An error of asking how it ended is left in `unanswered`, and the shard as it is: it is asked for again at
// the next look.
void ArrayRun::job_gone(Shard& shard, const JobRow* row, bool cancelled, std::optional<Error>& unanswered) {
  if (slurm_.has_receipt(shard.task->shard)) return settle(shard, std::nullopt);
  JobEnd end;
  if (row != nullptr) end = {row->state, row->nodes, 0, 0};
  if (cancelled) end.state = "CANCELLED";
  if (end.state.empty() || end.state == "FAILED") {
    // One who does not answer, or refuses, is not asked for all the others, which may take a minute each.
    if (unanswered && unanswered->code() != Code::incompatible) return;
    const auto known = commands_.ended(*shard.job);
    if (!known) {
      unanswered = known.error();
      return;
    }
    if (*known) end = **known;
    if (!end.state.empty() && phase_of(end.state) != Phase::ended) return;
  }
  if (halted_ && !shard.begun && (end.state == "CANCELLED" || end.state.empty())) {
    shard.settled = true;  // dropped before it began: nobody is told
    return;
  }
  if (end.state.empty() || end.state == "COMPLETED") {
    // The receipt may be on its way to us.
    if (!shard.gone_ns) shard.gone_ns = clock_.now_ns();
    if (seconds_since(*shard.gone_ns) < slurm_.receipt_patience_s) return;
  }
  const LogEnd log = read_log(slurm_.logs / (shard.job->text() + ".log"));
  submit_again_or_settle(shard, judge(end, log, shard.request, slurm_.final_exit_codes));
}

void ArrayRun::submit_again_or_settle(Shard& shard, const Verdict& verdict) {
  const std::string what = fmt::format("{}: {}", where(shard), verdict.why);
  if (verdict.again && !halted_ && shard.resubmitted < slurm_.resubmit) {
    ++shard.resubmitted;
    tell(fmt::format("{}; submitting it again ({} of {})", what, shard.resubmitted, slurm_.resubmit));
    if (shard.pace) pace_.finish(*std::exchange(shard.pace, std::nullopt));
    shard.job.reset();
    shard.gone_ns.reset();
    shard.request = verdict.request;
    return;
  }
  const std::string times =
      shard.resubmitted == 0 ? "" : fmt::format(", after {} submissions", shard.resubmitted + 1);
  settle(shard, fail(verdict.code, "{}{} (its log: {}/{}.log)", what, times, slurm_.logs.string(),
                     shard.job->text()));
}

void ArrayRun::settle(Shard& shard, std::optional<Error> error) {
  if (shard.pace) pace_.finish(*std::exchange(shard.pace, std::nullopt));
  if (error) tell(error->message());
  shard.settled = true;
  if (!ended_({shard.task->shard, std::move(error), shard.seconds, 0})) halted_ = true;
  pace_.advance(1);
}

// After a failure: what runs is seen to its end, what waits is taken out.
Status ArrayRun::drop_pending() {
  std::vector<std::string> jobs;
  for (Shard& shard : shards_) {
    if (shard.settled) continue;
    if (!shard.job) shard.settled = true;
    if (shard.job && !shard.pace) jobs.push_back(shard.job->text());
  }
  if (jobs.empty()) return {};
  if (const Status status = commands_.cancel(jobs, true); !status)
    return be_patient(status.error(), submit_silent_ns_);
  submit_silent_ns_.reset();
  return {};
}

std::vector<ArrayRun::Group> ArrayRun::groups() {
  std::vector<Group> found;
  for (Shard& shard : shards_) {
    if (shard.settled || shard.job) continue;
    const std::uint32_t offset = shard.task->shard - shard.task->shard % max_array_size_;
    const auto same = std::ranges::find_if(
        found, [&](const Group& group) { return group.request == shard.request && group.offset == offset; });
    if (same != found.end())
      same->shards.push_back(&shard);
    else
      found.push_back({shard.request, offset, {&shard}});
  }
  return found;
}

// Slurm limits what is at work per array (%n), the run over all of them: each array gets what those before it
// can't use, and an array that could use nothing is submitted later.
Status ArrayRun::submit() {
  const bool limited = options_.jobs != 0;
  std::size_t left = limited ? options_.jobs : std::numeric_limits<std::size_t>::max();
  for (Array& array : arrays_) {
    const auto members = static_cast<std::size_t>(std::ranges::count_if(shards_, [&](const Shard& shard) {
      return !shard.settled && shard.job && shard.job->array == array.id;
    }));
    const std::size_t share = std::min(members, left);
    left -= share;
    // A share that has become smaller needs no telling: so has the array.
    if (!limited || share == 0 || (array.at_once && *array.at_once >= share)) continue;
    if (commands_.set_at_once(array.id, static_cast<unsigned>(share)))
      array.at_once = static_cast<unsigned>(share);  // else at the next look: the run goes on, only slower
  }
  const auto to_submit = [](const Shard& shard) { return !shard.settled && !shard.job; };
  while (left > 0 && !halted_ && std::ranges::any_of(shards_, to_submit)) {
    if (max_array_size_ == 0) {
      const auto size = commands_.max_array_size();
      if (!size) return be_patient(size.error(), submit_silent_ns_);
      max_array_size_ = *size;
    }
    auto waiting = groups();
    Group& group = waiting.front();
    if (take_receipts(group)) continue;
    const std::size_t share = std::min(group.shards.size(), left);
    if (const Status status = submit_group(group, limited ? static_cast<unsigned>(share) : 0); !status) {
      if (is_passing(status.error())) return be_patient(status.error(), submit_silent_ns_);
      FURLONG_CHECK(refused(group, status.error()));
      if (halted_) return {};
    } else {
      left -= share;
    }
    submit_silent_ns_.reset();
  }
  return {};
}

// A job of an earlier run may have ended between the look at the receipts and that at the queue.
bool ArrayRun::take_receipts(Group& group) {
  bool any = false;
  for (Shard* shard : group.shards) {
    if (!slurm_.has_receipt(shard->task->shard)) continue;
    settle(*shard, std::nullopt);
    any = true;
  }
  return any;
}

Status ArrayRun::submit_group(Group& group, unsigned at_once) {
  Submission submission;
  submission.name = job_name(slurm_.plan, group.offset);
  submission.script = job_script(slurm_.command, group.offset);
  submission.at_once = at_once;
  submission.request = group.request;
  submission.cpus = slurm_.cpus;
  submission.logs = slurm_.logs;
  submission.arguments = slurm_.sbatch_arguments;
  std::vector<std::uint32_t> shards;
  for (const Shard* shard : group.shards) {
    shards.push_back(shard->task->shard);
    submission.indices.push_back(shard->task->shard - group.offset);
  }
  FURLONG_TRY(const std::uint64_t id, commands_.submit(submission));
  arrays_.push_back({id, true, at_once == 0 ? std::nullopt : std::optional<unsigned>(at_once)});
  for (Shard* shard : group.shards) shard->job = JobId{id, shard->task->shard - group.offset};
  tell(fmt::format("array {}: shards {}, {} each{}", id, index_list(shards), group.request.text(),
                   at_once == 0 ? "" : fmt::format(", {} at a time", at_once)));
  return {};
}

// What no node can give is the failure of those shards; any other refusal is the run's.
Status ArrayRun::refused(Group& group, const Error& error) {
  for (const char* phrase : {"Memory specification", "node configuration is not available"}) {
    if (error.message().find(phrase) == std::string::npos) continue;
    for (Shard* shard : group.shards)
      settle(*shard, fail(Code::exhausted,
                          "{}: no node gives {} ({}): split it (furlong shard rebudget), or choose another "
                          "partition",
                          shard->task->name, group.request.text(), error.message()));
    return {};
  }
  return cancel_all(error);
}

std::vector<std::string> ArrayRun::jobs_in_queue() const {
  std::vector<std::string> jobs;
  for (const Array& array : arrays_) {
    bool any = false;
    for (const Shard& shard : shards_) {
      if (shard.settled || !shard.job || shard.job->array != array.id) continue;
      any = true;
      if (!array.own) jobs.push_back(shard.job->text());
    }
    if (any && array.own) jobs.push_back(std::to_string(array.id));
  }
  return jobs;
}

Status ArrayRun::cancel_all(Error why) {
  const std::int64_t begin_ns = clock_.now_ns();
  std::optional<Error> trouble;
  for (;;) {
    // Also what an sbatch without an answer may have put there. The queue is asked once more after scancel:
    // what runs takes a while to end.
    const auto rows = commands_.queue();
    const bool sure = rows.has_value();
    if (rows) {
      adopt(*rows);
      for (Shard& shard : shards_) {
        if (shard.settled || !shard.job) continue;
        const bool there = std::ranges::any_of(*rows, [&](const JobRow& row) {
          return row.array == shard.job->array && row.index == shard.job->index &&
                 phase_of(row.state) != Phase::ended;
        });
        if (there) continue;
        if (slurm_.has_receipt(shard.task->shard)) settle(shard, std::nullopt);
        shard.job.reset();
        shard.settled = true;
      }
    } else {
      trouble = rows.error();
    }
    const auto jobs = jobs_in_queue();
    if (sure && jobs.empty()) {
      pace_.end();
      return why;
    }
    if (const Status status = commands_.cancel(jobs, false); !status) trouble = status.error();
    if (seconds_since(begin_ns) > kCancelSeconds && jobs.empty())
      return fail(why.code(), "{}; whether jobs called furlong-{}+… are left in the queue is not known ({})",
                  why.message(), slurm_.plan, trouble ? trouble->message() : "");
    if (seconds_since(begin_ns) > kCancelSeconds)
      return fail(why.code(), "{}; the jobs {} are still in the queue{}: scancel {}", why.message(),
                  join(jobs, ", "), trouble ? " (" + trouble->message() + ")" : "", join(jobs, " "));
    clock_.sleep_ns(500'000'000);
  }
}

}  // namespace furlong::shard::slurm
