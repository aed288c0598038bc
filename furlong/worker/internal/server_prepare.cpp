// The server's preparation of the next pair: from the command to a kernel that was launched once.

#include <algorithm>

#include "furlong/record/records.h"
#include "furlong/worker/internal/server_state.h"

namespace furlong::worker {
namespace {

constexpr double kRecordRetry_ms = 5'000, kMostRecordRetry_ms = 300'000;
constexpr std::uint64_t kFirstLaunch = 1024;  // nonces of the launch ahead of the swap

}  // namespace

/// The folder of packs may hold it, under the pair's name.
bool Server::State::find_pack(const record::Pair& pair, record::PrepareCommand& command) const {
  if (options.packs.empty()) return false;
  const std::filesystem::path folder = options.packs / fmt::format("{}-{}", pair.epoch, pair.day);
  if (!environment.files->exists(folder / "pack.toml")) return false;
  command = {pair, folder.string()};
  return true;
}

const record::Pair* Server::State::preparing() const {
  if (queued) return &queued->command.pair;
  return preparation ? &preparation->pair() : nullptr;
}

/// Why the next pair cannot be on the device beside the one in service; empty: it can, as far as is known.
std::string Server::State::late() const {
  if (queued || !preparation) return {};
  return no_room.empty() ? preparation->late() : no_room;
}

/// A job waits for base of the pair that is being prepared: the next one's prepare does not take its place,
/// or where preparing takes as long as an epoch nothing would ever be served.
bool Server::State::must_wait(const QueuedPrepare& asked) const {
  const record::Pair* pair = preparing();
  return waiting_job && pair != nullptr && !preparation_told && *pair != asked.command.pair &&
         std::get<record::JobCommand>(waiting_job->what).pair == *pair;
}

/// Takes the place of whatever is being prepared, unless that must be served first.
void Server::State::prepare(QueuedPrepare asked) {
  if (must_wait(asked)) {
    behind = std::move(asked);
    return;
  }
  behind.reset();
  const record::Pair* before = preparing();
  if (before != nullptr && *before != asked.command.pair && !preparation_told)
    note(fmt::format("the prepare of {} is given up for that of {}", before->text(),
                     asked.command.pair.text()));
  if (waiting_job && std::get<record::JobCommand>(waiting_job->what).pair != asked.command.pair)
    refuse_waiting(fail(Code::unavailable, "a prepare of {} came while its own pair was still being prepared",
                        asked.command.pair.text()));
  if (preparation) preparation->stop();
  queued = std::move(asked);
  start_queued();
}

/// Once the one before it has ended: it holds the device for one window at a time, and work goes on
/// meanwhile.
void Server::State::start_queued() {
  if (!queued || !drop_preparation()) return;
  const QueuedPrepare next = std::move(*queued);
  queued.reset();
  if (next.alone) {
    const Holding holding(lock);
    given_up.clear();
    miner.reset();
  }
  ++prepares;
  if (environment.prepares) environment.prepares(options.prepares_before + prepares);
  Preparation::Asked asked;
  asked.command = next.command;
  asked.since_ms = next.at_ms;
  asked.entry = {options.race, options.variant, options.prepares_before + prepares};
  asked.dataset = next.dataset;
  if (miner) asked.beside = miner->serving().buffers;
  {
    const std::lock_guard guard(mutex);
    for (const FallenVariant& one : fallen)
      if (one.pair == next.command.pair) asked.fallen.push_back(one.fallen);
  }
  preparation_told = false;
  ready_ms.reset();
  no_room.clear();
  lost.begin(now_ms());
  preparation =
      std::make_unique<Preparation>(environment, options, lock, std::move(asked), [this] { wake_up(); });
}

/// What the preparation has come to: base may serve, or it is at its end. An Error: the device is lost.
Status Server::State::look_at_preparation() {
  if (!preparation || queued) return {};
  const bool finished = preparation->finished();  // before the best: it is then the last
  const Serving best = preparation->best();
  const bool ours = miner && miner->serving().pair == preparation->pair();
  const bool new_here =
      !next_miner || next_miner->serving().variant != best.variant || next_miner->serving().pair != best.pair;
  if (!best.empty() && !ours && new_here && no_room.empty()) FURLONG_CHECK(ready_next(best));
  if (finished && !preparation_told) {
    if (!best.empty() && ours && miner->serving().variant != best.variant) serve_by(best);
    FURLONG_CHECK(finish_preparation());
  }
  return take_waiting_job();
}

Status Server::State::take_waiting_job() {
  if (!waiting_job || !preparation || queued) return {};
  const Command command = *waiting_job;
  const record::Pair pair = std::get<record::JobCommand>(command.what).pair;
  if (pair != preparation->pair()) return {};
  if (next_miner && next_miner->serving().pair == pair) {
    waiting_job.reset();
    return swap(command);
  }
  if (!late().empty()) {
    waiting_job.reset();
    swap_late(command);
  } else if (preparation_told) {
    refuse_waiting(fail(Code::unavailable, "its pair could not be prepared"));
    if (!fallback) return {};  // what is in hand goes on
    // What was given up for it takes its place again.
    const auto [before, job] = *std::exchange(fallback, std::nullopt);
    prepare({before, now_ms(), nullptr, false});
    waiting_job = Command{job, now_ms()};
  }
  return {};
}

/// Outputs allocated, the kernel loaded and launched once, ahead of the swap. A variant that cannot be had
/// leaves base. An Error: the device is lost.
Status Server::State::ready_next(const Serving& serving) {
  Status ready = launch_once(serving);
  if (!ready && !is_lost(ready.error()) && ready.error().code() != Code::exhausted && !serving.is_base()) {
    note(fmt::format("{}: {} does not run, base does: {}", serving.pair.text(), serving.variant,
                     ready.error().text()));
    ready = launch_once(serving.by_base());
  }
  if (ready) return {};
  if (is_lost(ready.error())) return ready;
  if (ready.error().code() == Code::exhausted && miner) {
    no_room = ready.error().text();
  } else {
    error(Error(ready.error()).with(fmt::format("preparing {}", serving.pair.text())));
  }
  return {};
}

Status Server::State::launch_once(const Serving& serving) {
  {
    const Holding holding(lock);
    if (next_miner && next_miner->serving().pair == serving.pair) {
      next_miner->serve(serving);
    } else {
      next_miner.reset();
      // On a lost device there is nothing to make: run_held() says so.
      if (!preparation->lost_device()) {
        FURLONG_TRY(next_miner, Miner::make(*environment.device, serving));
      }
    }
  }
  return run_held(serving, options.hang_s, [&] {
    const Status ran = next_miner->run(0, std::min(next_miner->launch_nonces(), kFirstLaunch), 0);
    if (!ran && !is_lost(ran.error())) next_miner.reset();
    return ran;
  });
}

Status Server::State::finish_preparation() {
  preparation_told = true;
  const Result<Prepared> result = preparation->result();
  const record::Pair pair = preparation->pair();
  const bool ours = miner && miner->serving().pair == pair;
  const double over_ms = now_ms() - preparation->asked().since_ms;
  const std::optional<double> lost_ms = lost.finish();
  if (environment.prepare_ended) environment.prepare_ended(pair);
  if (preparation->lost_device()) return lost_to_race();
  if (!result) {
    error(Error(result.error()).with(fmt::format("preparing {}", pair.text())));
    return {};
  }
  for (const std::string& text : result->notes) note(text);
  if (ours) keys = result->keys;
  if (result->record) keep_record(*result->record, result->race_line);
  if (!late().empty()) {
    note(fmt::format("{}: no room beside the pair in service ({}); its dataset {}, and it swaps late",
                     pair.text(), late(),
                     preparation->dataset() ? "waits in host memory" : "is built at the boundary"));
    return {};
  }
  const Miner* serves = ours ? miner.get() : next_miner.get();
  if (serves == nullptr) return {};  // why was told
  ready_ms = now_ms();
  emit(record::PreparedEvent{pair, serves->serving().variant, over_ms});
  if (lost_ms) emit(record::LostEvent{pair, *lost_ms, preparation->held_ms(), over_ms});
  return {};
}

/// Gives up the preparation; false while it still has to end.
bool Server::State::drop_preparation() {
  if (!preparation) return true;
  if (!preparation->finished()) return false;
  const Holding holding(lock);
  next_miner.reset();
  preparation->release();
  preparation.reset();
  return true;
}

void Server::State::keep_record(record::RaceRecord record, const std::string& line) {
  emit(record::RaceEvent{line});
  unwritten.push_back(std::move(record));
  write_records(true);
}

/// The file has a record before anybody is told of it, so that a reader that dies loses none.
void Server::State::write_records(bool now) {
  if (unwritten.empty() || (!now && now_ms() < unwritten_try_ms)) return;
  while (!unwritten.empty()) {
    if (!options.records.empty()) {
      if (const Status written = record::append_record(options.records, unwritten.front()); !written) {
        note("a race record waits in memory: " + written.error().text());
        unwritten_delay_ms = std::clamp(2 * unwritten_delay_ms, kRecordRetry_ms, kMostRecordRetry_ms);
        unwritten_try_ms = now_ms() + unwritten_delay_ms;
        return;
      }
    }
    unwritten_delay_ms = 0;
    emit(record::RecordEvent{record::to_line(unwritten.front())});
    unwritten.pop_front();
  }
}

}  // namespace furlong::worker
