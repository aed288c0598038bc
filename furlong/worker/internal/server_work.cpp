// The server's chunks of work, and the swap to another pair.

#include <algorithm>
#include <cmath>

#include "furlong/worker/internal/chunk_size.h"
#include "furlong/worker/internal/server_state.h"

namespace furlong::worker {
namespace {

constexpr int kMostWrongOfBase = 3;
constexpr std::uint64_t kFirstChunk = 4096;
constexpr double kMostReferences = 1000;  // of one chunk's finds, expected
constexpr double kRaceEnds_ms = 60'000;   // for a race that has lost the device

}  // namespace

// --- swaps

Status Server::State::swap(const Command& job_command) {
  const auto& asked = std::get<record::JobCommand>(job_command.what);
  const double from_ms = work && last_end_ms > 0 ? last_end_ms : job_command.at_ms;
  end_job(false);
  retired = std::move(miner);
  miner = std::move(next_miner);
  serving_command = preparation->asked().command;
  fallback.reset();
  const Result<Prepared> result = preparation_told ? preparation->result() : Result<Prepared>(Prepared{});
  keys = result ? result->keys : std::map<std::string, std::string>();
  lost.forget();
  wrong_of_base = 0;
  check_next_chunk = true;
  chunk_nonces = 0;
  begin_job(asked);
  rate_from_ms = now_ms();
  rate_hashes = hashes;
  swapping = Swapping{{}, from_ms, job_command.at_ms};
  swapping->event.epoch = asked.pair.epoch;
  swapping->event.day = asked.pair.day;
  swapping->event.variant = miner->serving().variant;
  swapping->event.prepared = ready_ms && *ready_ms <= job_command.at_ms;
  FURLONG_CHECK(chunk());
  retire();
  return {};
}

/// The first chunk of the new pair is done.
void Server::State::tell_swap(double begin_ms) {
  if (!swapping) return;
  record::SwapEvent& event = swapping->event;
  event.gap_ms = std::max(begin_ms - swapping->old_end_ms, 0.0);
  event.late_ms = std::max(begin_ms - swapping->job_ms, 0.0);
  event.gap_chunks = event.gap_ms / std::max(last_took_ms, options.chunk_ms);
  emit(event);
  swapping.reset();
}

/// Two pairs have no room: the old one goes first.
void Server::State::swap_late(const Command& job_command) {
  if (!miner) {  // nothing to give up: there is no room for one
    refuse(std::get<record::JobCommand>(job_command.what), fail(Code::exhausted, "{}", late()));
    return;
  }
  if (work && serving_command) fallback.emplace(*serving_command, work->rest());
  end_job(false);
  prepare({preparation->asked().command, job_command.at_ms, preparation->dataset(), true});
  waiting_job = job_command;
}

/// What the swap left, after it and not in it.
void Server::State::retire() {
  if (!retired) return;
  const Holding holding(lock);
  retired.reset();
  if (preparation && preparation_told) {
    preparation->release();
    preparation.reset();
  }
}

/// What serves no more is kept until the device is held: the last owner frees it.
void Server::State::serve_by(Serving serving) {
  given_up.push_back(miner->serving());
  miner->serve(std::move(serving));
  lost.forget();
  check_next_chunk = true;
}

// --- chunks

/// The race found that the device is gone, or is about to: it names who took it, by the hand and in the
/// quarantine.
Status Server::State::lost_to_race() {
  if (wait_for(kRaceEnds_ms, [&] { return preparation->finished(); }))
    if (const auto result = preparation->result(); !result) return result.error();
  return fail(Code::unavailable, "{} was lost in a race", environment.device->facts().address());
}

/// Work that ran here took the device: whoever looks after this process reads it from the hand. The caller
/// keeps the device held for good, so that nobody else fails on it and is blamed.
Error Server::State::lost_here(const record::Pair& pair, const std::string& variant, const Error& lost_by) {
  if (Hand* hand = hand_of(pair); hand != nullptr)
    hand->take(static_cast<std::uint32_t>(race::Holding::lost),
               fmt::format("{}\n{}", variant, "trap: in service: " + lost_by.text()), options.hang_s);
  return Error(lost_by).with(fmt::format("{} in service", variant));
}

/// Runs `launches` of a pair's variant with the device held and the hand told. An Error of a lost device has
/// been told to whoever looks after this process.
Status Server::State::run_held(const Serving& serving, double limit_s,
                               const std::function<Status()>& launches) {
  auto holding = std::make_unique<Holding>(lock);
  if (preparation && preparation->lost_device()) {
    holding.reset();
    return lost_to_race();
  }
  Hand* hand = hand_of(serving.pair);
  if (hand != nullptr)
    hand->take(static_cast<std::uint32_t>(race::Holding::variant), serving.variant, limit_s);
  const Status ran = launches();
  if (!ran && is_lost(ran.error())) {
    holding_for_good = std::move(holding);
    return lost_here(serving.pair, serving.variant, ran.error());
  }
  if (hand != nullptr) hand->drop();
  return ran;
}

Status Server::State::run_chunk(std::uint64_t nonces, bool sampled) {
  return run_held(miner->serving(), options.hang_s + 10e-3 * last_took_ms, [&]() -> Status {
    given_up.clear();
    const double begin_ms = now_ms();
    Status ran = miner->run(work->next(), nonces, work->job.target);
    if (ran && sampled) ran = miner->sample(options.shadow_nonces, random);
    last_took_ms = now_ms() - begin_ms;
    return ran;
  });
}

/// So that verifying a chunk's finds does not take longer than the chunk: a bit of a find stands for one
/// nonce of each launch.
std::uint64_t Server::State::most_nonces() const {
  const double share = static_cast<double>(work->job.target) * 0x1p-64;
  if (share <= 0) return UINT64_MAX;
  const auto launch = static_cast<double>(miner->launch_nonces());
  const double of_one = kMostReferences / share;
  return static_cast<std::uint64_t>(
      std::max(std::min(of_one < launch ? of_one : std::sqrt(of_one * launch), 0x1p60), 256.0));
}

Status Server::State::chunk() {
  if (chunk_nonces == 0) chunk_nonces = std::min(miner->launch_nonces(), kFirstChunk);
  std::uint64_t nonces = std::min(chunk_nonces, most_nonces());
  if (!work->endless()) nonces = std::min(nonces, work->job.count - work->done);
  const bool last = !work->endless() && work->done + nonces == work->job.count;
  const bool sampled = check_next_chunk || last || now_ms() - last_shadow_ms >= 1e3 * options.shadow_every_s;
  FURLONG_CHECK(run_chunk(nonces, sampled));
  const double end_ms = now_ms();
  tell_swap(end_ms - last_took_ms);
  Result<std::vector<Find>> finds = miner->finds();
  Status right = finds ? Status() : Status(finds.error());
  if (right && sampled) right = miner->check();
  if (!right && right.error().code() == Code::mismatch) return revert(right.error());
  FURLONG_CHECK(right);
  for (const Find& find : *finds)
    if (work->told.insert(find.nonce).second) emit(record::FoundEvent{work->job.job, find.nonce, find.hash});
  work->done += nonces;
  hashes += nonces;
  if (sampled) {
    last_shadow_ms = end_ms;
    check_next_chunk = false;
    wrong_of_base = 0;
    work->checked = work->done;
    work->told.clear();
  }
  count_chunk(nonces, end_ms);
  if (environment.progress) environment.progress(work->done, work->checked, hashes);
  if (work->complete()) end_job(true);
  if (end_ms - rate_from_ms >= 1e3 * options.rate_every_s) tell_rate();
  return {};
}

/// For the figure of lost work, and the next chunk's size.
void Server::State::count_chunk(std::uint64_t nonces, double end_ms) {
  const bool whole = nonces == chunk_nonces;  // one that a job's end cut short tells nothing of the speed
  if (last_end_ms > 0) lost.chunk(end_ms, end_ms - last_end_ms, nonces, whole);
  if (whole) chunk_nonces = next_chunk(nonces, last_took_ms, options.chunk_ms, miner->launch_nonces());
  last_end_ms = end_ms;
}

/// Live work differs from the reference: what was done since the last good check is done again, by base.
Status Server::State::revert(const Error& why) {
  hashes -= work->done - work->checked;
  work->done = work->checked;
  const Serving wrong = miner->serving();
  if (wrong.is_base()) {
    if (++wrong_of_base >= kMostWrongOfBase)
      return Error(why).with(fmt::format("base computed wrong results {} times in a row", wrong_of_base));
    error(Error(why).with("base in service"));
    return {};
  }
  serve_by(wrong.by_base());
  if (environment.quarantine != nullptr) {
    const auto key = keys.find(wrong.variant);
    race::QuarantineEntry entry;
    const device::Facts& facts = environment.device->facts();
    entry.key = {facts.silicon.hash(), facts.driver, key == keys.end() ? "" : key->second};
    entry.program = wrong.instance->program().name;
    entry.variant = wrong.variant;
    entry.device_label = facts.label;
    entry.why = "in service: " + why.text();
    entry.when = iso_time(environment.clock->wall_us());
    const Status put = entry.key.source.empty() ? Status(fail(Code::internal, "its key is not known"))
                                                : environment.quarantine->put(entry);
    if (!put)
      note(fmt::format("{} was not written to the quarantine: {}", wrong.variant, put.error().text()));
  }
  emit(record::RevertedEvent{wrong.pair, wrong.variant, why.text()});
  return {};
}

void Server::State::tell_rate() {
  const double now = now_ms();
  const double over_ms = now - rate_from_ms;
  if (over_ms <= 0 || !miner) return;
  record::RateEvent event;
  event.pair = miner->serving().pair;
  event.variant = miner->serving().variant;
  event.mhs = hashes > rate_hashes ? 1e-3 * static_cast<double>(hashes - rate_hashes) / over_ms : 0;
  event.hashes = hashes;
  event.job = work ? work->job.job : "none";
  event.next = work ? work->next() : 0;
  {
    const Holding holding(lock);
    event.power_w = environment.device->telemetry().power_w;
  }
  emit(event);
  rate_from_ms = now;
  rate_hashes = hashes;
}

}  // namespace furlong::worker
