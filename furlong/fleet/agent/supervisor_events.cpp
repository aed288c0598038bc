// What a supervisor does with each event of its worker.
#include <algorithm>

#include "furlong/base/os/clock.h"
#include "furlong/base/text.h"
#include "furlong/fleet/agent/supervisor.h"
#include "furlong/record/race_line.h"
#include "furlong/record/record.h"

namespace furlong::fleet {
namespace {

constexpr std::size_t most_unsaved = 10'000;
constexpr std::int64_t tell_again_ns = 60'000'000'000;

std::string foreign(std::string_view text) { return one_line(text.substr(0, 500)); }

}  // namespace

void Supervisor::take_line(const std::string& line) {
  auto event = record::parse_worker_event(line);
  if (!event) {
    // Another protocol: this worker and this agent cannot work together, however often it is started.
    if (event.error().code() == Code::incompatible) return kill(event.error().text());
    return say(LogLevel::warning, "a line of the worker cannot be read: " + event.error().text());
  }
  heard_ns_ = clock_.now_ns();
  apply(*event);
}

void Supervisor::apply(const record::WorkerEvent& event) {
  std::visit([&](const auto& each) { on(each); }, event);
  sink_.event(setup_.device, event);
}

void Supervisor::on(const record::ReadyEvent& event) {
  ready_ = true;
  const std::scoped_lock lock(mutex_);
  view_.state = "idle";
  view_.device.label = event.card;
  view_.driver = event.driver;
  view_.arch = event.arch;
}

void Supervisor::on(const record::PreparedEvent& event) {
  for (Asked& each : asked_)
    if (each.pair == event.pair) each.state = Asked::State::done;
  say(LogLevel::info, fmt::format("{}: prepared, {} serves it ({:.1f} s)", event.pair.text(), event.variant,
                                  event.ms * 1e-3));
  const std::scoped_lock lock(mutex_);
  ++view_.prepares;
}

void Supervisor::on(const record::RaceEvent& event) { sink_.say_plain("worker: " + one_line(event.line)); }

void Supervisor::on(const record::RecordEvent& event) {
  sink_.say_plain("TUNING " + one_line(event.json));
  sink_.record_written(setup_.device);
  const auto record = record::parse_record(event.json, "the worker's record");
  if (!record) return say(LogLevel::warning, record.error().text());
  sink_.say(LogLevel::info, race_summary(*record));
  const std::scoped_lock lock(mutex_);
  ++view_.races;
  view_.race_mhs = record->rate;
  view_.race_gain_pct = record->gain_pct;
  view_.race_variants = static_cast<int>(record->variants.size());
  view_.race_winner = record->winner;
  view_.last_race = record->ts;
}

bool Supervisor::save_finds() {
  while (!unsaved_finds_.empty()) {
    const auto added = spool_.add_find(unsaved_finds_.front());
    if (!added) {
      const std::int64_t now_ns = clock_.now_ns();
      if (!unsaved_told_ns_ || now_ns - *unsaved_told_ns_ >= tell_again_ns) {
        say(LogLevel::error,
            fmt::format("{} finds wait to be stored: {}", unsaved_finds_.size(), added.error().text()));
        unsaved_told_ns_ = now_ns;
      }
      return false;
    }
    if (*added) sink_.found(unsaved_finds_.front());
    unsaved_finds_.erase(unsaved_finds_.begin());
  }
  unsaved_told_ns_.reset();
  return true;
}

void Supervisor::give_up_finds() {
  // The log is the last place where they can be found.
  for (const Find& each : unsaved_finds_)
    say(LogLevel::error, fmt::format("a find is NOT stored: epoch {} day {} nonce {:016x} hash {:016x} at {}",
                                     each.pair.epoch, each.pair.day, each.nonce, each.hash, each.at));
  unsaved_finds_.clear();
}

void Supervisor::keep_progress(const std::string& job_name, std::uint64_t next) {
  const Job* job = find_job(job_name);
  if (job == nullptr || !save_finds()) return;
  const Status kept =
      spool_.set_progress(job->pair, setup_.device.slot, {.first = setup_.nonce_first, .next = next});
  // The work goes on: after a restart some of it would be done again, and finds that come twice are known.
  if (!kept) say(LogLevel::warning, "progress is not kept: " + kept.error().text());
}

void Supervisor::on(const record::RateEvent& event) {
  if (Job* job = find_job(event.job)) job->confirmed = true;
  keep_progress(event.job, event.next);
  const std::scoped_lock lock(mutex_);
  view_.state = "serving";
  view_.pair = event.pair;
  view_.variant = event.variant;
  view_.mhs = event.mhs;
  view_.power_w = event.power_w;
  view_.hashes = event.hashes;
}

void Supervisor::on(const record::FoundEvent& event) {
  Job* job = find_job(event.job);
  if (job == nullptr)
    return say(LogLevel::warning, fmt::format("a find of job '{}', which was not given", foreign(event.job)));
  job->confirmed = true;
  unsaved_finds_.push_back({.pair = job->pair,
                            .slot = setup_.device.slot,
                            .nonce = event.nonce,
                            .hash = event.hash,
                            .device = setup_.device.address,
                            .at = now()});
  {
    const std::scoped_lock lock(mutex_);
    ++view_.finds;
  }
  if (!save_finds() && unsaved_finds_.size() >= most_unsaved) give_up_finds();
}

void Supervisor::on(const record::SwapEvent& event) {
  const record::Pair pair{.epoch = event.epoch, .day = event.day};
  for (Job& job : jobs_)
    if (job.pair == pair) job.confirmed = true;
  say(LogLevel::info,
      fmt::format("{}: swapped to {}, gap {:.1f} ms ({:.2f} chunks{})", pair.text(), event.variant,
                  event.gap_ms, event.gap_chunks, event.prepared ? ", prepared" : ""));
  const std::scoped_lock lock(mutex_);
  view_.state = "serving";
  view_.pair = pair;
  view_.variant = event.variant;
  view_.gap_ms = event.gap_ms;
  view_.gap_chunks = event.gap_chunks;
  view_.last_swap = now();
  ++view_.swaps;
  view_.unprepared_swaps += event.prepared ? 0 : 1;
}

void Supervisor::on(const record::DoneEvent& event) {
  keep_progress(event.job, event.start + event.hashes);
  if (Job* job = find_job(event.job)) job->confirmed = true;
  const bool in_hand = !jobs_.empty() && jobs_.back().name == event.job;
  if (!event.complete || !in_hand) return;
  say(LogLevel::info, fmt::format("job {} is complete: {} hashes", foreign(event.job), event.hashes));
  const std::scoped_lock lock(mutex_);
  view_.state = "idle";
  view_.mhs.reset();
}

void Supervisor::on(const record::LostEvent& event) {
  say(LogLevel::info,
      fmt::format("{}: preparing cost the work {:.0f} ms ({:.0f} ms of it pauses, over {:.1f} s)",
                  event.pair.text(), event.lost_ms, event.paused_ms, event.over_ms * 1e-3));
  const std::scoped_lock lock(mutex_);
  view_.lost_ms = event.lost_ms;
}

void Supervisor::on(const record::RevertedEvent& event) {
  const std::string text = fmt::format("{}: {} was wrong on live work, base serves: {}", event.pair.text(),
                                       foreign(event.variant), foreign(event.why));
  say(LogLevel::error, text);
  const std::scoped_lock lock(mutex_);
  view_.last_error = text;
  if (view_.pair == event.pair) view_.variant = "base";
}

void Supervisor::on(const record::RecoveredEvent& event) {
  say(LogLevel::warning,
      fmt::format("the device was lost and is back after {:.0f} ms: {}", event.ms, foreign(event.why)));
}

void Supervisor::on(const record::StateEvent&) {}  // the answer to a ping: that it came is all

void Supervisor::on(const record::NoteEvent& event) { say(LogLevel::info, foreign(event.text)); }

void Supervisor::on(const record::ErrorEvent& event) {
  const std::string text = fmt::format("{}: {}", code_name(event.code), foreign(event.message));
  say(LogLevel::warning, text);
  // A job that was refused is named first in the message; what is left is the prepare in hand. Both are tried
  // again, later: one that goes on all the same answers the second command as well.
  if (event.message.starts_with("job ")) {
    const bool in_hand = !jobs_.empty() && event.message.starts_with("job " + jobs_.back().name + ":");
    if (in_hand && !jobs_.back().confirmed) jobs_.back().refused = true;
  } else {
    for (Asked& each : asked_) {
      if (each.state != Asked::State::running) continue;
      each.state = Asked::State::failed;
      each.at_ns = clock_.now_ns();
      ++each.failures;
    }
  }
  const std::scoped_lock lock(mutex_);
  view_.last_error = text;
}

void Supervisor::on(const record::ByeEvent&) {}

void Supervisor::on(const record::UnknownEvent& event) {
  sink_.say(LogLevel::debug, "unknown event of a newer worker: " + foreign(event.line));
}

}  // namespace furlong::fleet
