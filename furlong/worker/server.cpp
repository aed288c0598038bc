#include "furlong/worker/server.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <set>
#include <utility>

#include "furlong/record/records.h"
#include "furlong/worker/device_lock.h"
#include "furlong/worker/internal/chunk_size.h"
#include "furlong/worker/internal/lost_work.h"
#include "furlong/worker/internal/miner.h"
#include "furlong/worker/internal/preparation.h"
#include "furlong/worker/internal/state_json.h"

namespace furlong::worker {
namespace {

using record::Pair;

constexpr double kIdleWait_ms = 100;
constexpr double kRecordRetry_ms = 5000;
constexpr int kMostWrongOfBase = 3;

struct Command {
  record::WorkerCommand what;
  double at_ms = 0;
};

/// A swap whose first chunk is under way.
struct Swapping {
  record::SwapEvent event;
  double old_end_ms = 0;  // of the last chunk of the old pair; the job's arrival where nothing was in service
  double job_ms = 0;
};

/// The job in hand.
struct Work {
  record::JobCommand job;
  std::uint64_t done = 0;  // nonces from job.start on
  bool endless() const { return job.count == 0; }
  bool complete() const { return !endless() && done >= job.count; }
  std::uint64_t next() const { return job.start + done; }
};

/// Whether the device answers nothing any more, or did not end.
bool is_lost(const Error& error) {
  return error.code() == Code::unavailable || error.code() == Code::internal || error.code() == Code::timeout;
}

}  // namespace

struct Server::State {
  State(const Environment& given, const Options& given_options)
      : environment(given),
        options(given_options),
        lock(*given.clock),
        random(given_options.seed),
        hashes(given_options.hashes_before),
        rate_hashes(given_options.hashes_before) {}
  ~State();
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  // Between threads.
  std::mutex mutex;
  std::condition_variable wake;
  std::deque<Command> commands;
  std::vector<FallenVariant> fallen;
  bool changed = false;  // a preparation has something new

  // Of the serving thread.
  Environment environment;
  Options options;
  DeviceLock lock;
  Random random;
  std::unique_ptr<Preparation> preparation;
  bool preparation_told = false;
  std::unique_ptr<Miner> miner, next_miner, retired;
  std::optional<Work> work;
  std::optional<Swapping> swapping;
  std::optional<Command> waiting_job;       // for a pair that is being prepared
  std::map<std::string, std::string> keys;  // of the pair in service, for the quarantine
  LostWork lost;
  std::uint64_t hashes = 0, prepares = 0, chunk_nonces = 0;
  double last_chunk_ms = 0, last_end_ms = 0, last_took_ms = 0;
  double rate_from_ms = 0, last_shadow_ms = 0;
  std::uint64_t rate_hashes = 0;
  std::uint64_t last_taken = 0;             // DeviceLock::taken() after the last chunk
  std::unique_ptr<Holding> holding_for_good;  // of a lost device
  bool check_next_chunk = true;
  int wrong_of_base = 0;
  bool quitting = false;
  std::deque<record::RaceRecord> unwritten;
  double unwritten_try_ms = 0;
  std::set<std::string> told_notes;

  double now_ms() const { return environment.clock->now_ms(); }
  void emit(const record::WorkerEvent& event) const { environment.emit(event); }
  void error(const Error& error) const { emit(record::ErrorEvent{error.code(), error.text()}); }
  void note(const std::string& text);
  void wake_up();

  void push(record::WorkerCommand command);
  std::optional<Command> pop();

  // Commands.
  void handle(const Command& command);
  void prepare(const record::PrepareCommand& command, double at_ms,
               std::shared_ptr<const Bytes> dataset = nullptr);
  void job(const Command& command);
  void begin_job(const record::JobCommand& job);
  void refuse(const record::JobCommand& job, const Error& why);
  void refuse_waiting(const Error& why);
  void end_job(bool complete);
  void tell_state() const;
  bool find_pack(const Pair& pair, record::PrepareCommand& command) const;

  // Preparations.
  void look_at_preparation();
  Status ready_next(const Serving& serving);
  void finish_preparation();
  void drop_preparation();
  void keep_record(record::RaceRecord record, const std::string& line);
  void write_records(bool now);

  // Work.
  Status swap(const Command& job_command);
  void tell_swap(double begin_ms);
  void swap_late(const Command& job_command);
  Status step();
  Status chunk();
  Status run_chunk(std::uint64_t nonces, bool sampled);
  Status lost_device(const Error& error, bool alone, Hand* hand);
  Status revert(const Error& why);
  void tell_rate();
  void retire();
  void close();
  void abandon();
  Status serve();
};

void Server::State::note(const std::string& text) {
  if (told_notes.size() > 1000) told_notes.clear();
  if (told_notes.insert(text).second) emit(record::NoteEvent{text});
}

void Server::State::wake_up() {
  {
    const std::lock_guard guard(mutex);
    changed = true;
  }
  wake.notify_all();
}

void Server::State::push(record::WorkerCommand command) {
  {
    const std::lock_guard guard(mutex);
    commands.push_back({std::move(command), now_ms()});
  }
  wake.notify_all();
}

std::optional<Command> Server::State::pop() {
  const std::lock_guard guard(mutex);
  if (commands.empty()) return std::nullopt;
  Command command = std::move(commands.front());
  commands.pop_front();
  return command;
}

// --- commands

void Server::State::handle(const Command& command) {
  if (const auto* c = std::get_if<record::PrepareCommand>(&command.what)) {
    if (preparation && !preparation->finished() && preparation->asked().command == *c) return;
    prepare(*c, command.at_ms);
  } else if (std::holds_alternative<record::JobCommand>(command.what)) {
    job(command);
  } else if (std::holds_alternative<record::StatusCommand>(command.what)) {
    tell_state();
  } else if (std::holds_alternative<record::StopCommand>(command.what)) {
    refuse_waiting(fail(Code::invalid, "stopped before its pair was ready"));
    end_job(false);
  } else {
    quitting = true;
  }
}

void Server::State::prepare(const record::PrepareCommand& command, double at_ms,
                            std::shared_ptr<const Bytes> dataset) {
  if (preparation && !preparation->finished() && preparation->pair() != command.pair)
    note(fmt::format("the prepare of {} is given up for that of {}", preparation->pair().text(),
                     command.pair.text()));
  if (waiting_job && std::get<record::JobCommand>(waiting_job->what).pair != command.pair)
    refuse_waiting(fail(Code::invalid, "{} is prepared before its pair was ready", command.pair.text()));
  drop_preparation();
  ++prepares;
  if (environment.prepares) environment.prepares(options.prepares_before + prepares);
  Preparation::Asked asked;
  asked.command = command;
  asked.since_ms = at_ms;
  asked.entry = {options.race, options.variant, options.prepares_before + prepares};
  asked.dataset = std::move(dataset);
  if (miner) asked.beside = miner->serving().buffers;
  {
    const std::lock_guard guard(mutex);
    for (const FallenVariant& one : fallen)
      if (one.pair == command.pair) asked.fallen.push_back(one.fallen);
  }
  preparation_told = false;
  lost.begin(now_ms());
  preparation =
      std::make_unique<Preparation>(environment, options, lock, std::move(asked), [this] { wake_up(); });
}

/// The folder of packs may hold it, under the pair's name.
bool Server::State::find_pack(const Pair& pair, record::PrepareCommand& command) const {
  if (options.packs.empty()) return false;
  const std::filesystem::path folder = options.packs / fmt::format("{}-{}", pair.epoch, pair.day);
  if (!environment.files->exists(folder / "pack.toml")) return false;
  command = {pair, folder.string()};
  return true;
}

void Server::State::job(const Command& command) {
  const auto& asked = std::get<record::JobCommand>(command.what);
  refuse_waiting(fail(Code::invalid, "job {} takes its place", asked.job));
  if (miner && miner->serving().pair == asked.pair) {
    begin_job(asked);
    return;
  }
  const bool known = preparation && preparation->pair() == asked.pair;
  if (known && !preparation->late().empty()) {
    swap_late(command);
    return;
  }
  const bool failed = known && preparation->finished() && preparation->best().empty();
  record::PrepareCommand prepare_command;
  if (failed) prepare_command = preparation->asked().command;
  if (known && !failed) {
    waiting_job = command;  // look_at_preparation() takes it when base is ready, at once if it is
    wake_up();
    return;
  }
  if (failed || find_pack(asked.pair, prepare_command)) {
    prepare(prepare_command, command.at_ms);
    waiting_job = command;
    return;
  }
  error(fail(Code::invalid, "job {}: nobody prepared {}{}", asked.job, asked.pair.text(),
             options.packs.empty() ? ""
                                   : fmt::format(", and {} has no pack {}-{}", options.packs.string(),
                                                 asked.pair.epoch, asked.pair.day)));
}

void Server::State::begin_job(const record::JobCommand& asked) {
  end_job(false);
  work = Work{asked, 0};
  if (environment.begun) environment.begun(asked);
}

void Server::State::refuse(const record::JobCommand& asked, const Error& why) {
  error(Error(why).with(fmt::format("job {}", asked.job)));
  if (environment.refused) environment.refused(asked);
}

/// The job that waits for its pair will never be.
void Server::State::refuse_waiting(const Error& why) {
  if (!waiting_job) return;
  const Command command = *std::exchange(waiting_job, std::nullopt);
  refuse(std::get<record::JobCommand>(command.what), why);
}

void Server::State::end_job(bool complete) {
  if (!work) return;
  emit(record::DoneEvent{work->job.job, work->job.start, work->done, complete});
  work.reset();
}

void Server::State::tell_state() const {
  StateFields fields;
  fields.facts = &environment.device->facts();
  if (miner) {
    fields.pair = miner->serving().pair;
    fields.variant = miner->serving().variant;
  }
  if (work) {
    fields.job = work->job.job;
    fields.next = work->next();
  }
  if (preparation) {
    fields.preparing = preparation->pair();
    fields.ready = preparation->best().variant;
    fields.preparing_done = preparation->finished();
  }
  fields.hashes = hashes;
  fields.prepares = prepares;
  fields.unwritten_records = unwritten.size();
  emit(record::StateEvent{state_json(fields)});
}

// --- preparations

/// What the preparation has come to: base may serve, or it is at its end.
void Server::State::look_at_preparation() {
  if (!preparation) return;
  const Serving best = preparation->best();
  const bool ours = miner && miner->serving().pair == preparation->pair();
  if (!best.empty() && !ours &&
      (!next_miner || next_miner->serving().variant != best.variant ||
       next_miner->serving().pair != best.pair)) {
    if (const Status made = ready_next(best); !made) error(made.error());
  }
  if (!best.empty() && ours && miner->serving().variant != best.variant && preparation->finished() &&
      !preparation_told) {
    miner->serve(best);  // of the pair in service: from the next chunk on
    lost.forget();
    check_next_chunk = true;
  }
  if (preparation->finished() && !preparation_told) finish_preparation();
  if (!waiting_job) return;
  const auto& asked = std::get<record::JobCommand>(waiting_job->what);
  if (asked.pair != preparation->pair()) return;
  const Command command = *waiting_job;
  if (!preparation->late().empty()) {
    waiting_job.reset();
    swap_late(command);
  } else if (next_miner && next_miner->serving().pair == asked.pair) {
    waiting_job.reset();
    if (const Status swapped = swap(command); !swapped) error(swapped.error());
  } else if (preparation->finished()) {
    refuse_waiting(fail(Code::unavailable, "its pair could not be prepared"));  // what is in hand goes on
  }
}

/// Outputs allocated, the kernel loaded and launched once, ahead of the swap.
Status Server::State::ready_next(const Serving& serving) {
  const Holding holding(lock);
  if (next_miner && next_miner->serving().pair == serving.pair) {
    next_miner->serve(serving);
  } else {
    next_miner.reset();
    FURLONG_TRY(next_miner, Miner::make(*environment.device, serving));
  }
  Hand* hand = environment.hand ? environment.hand(serving.pair) : nullptr;
  if (hand != nullptr)
    hand->take(static_cast<std::uint32_t>(race::Holding::variant), serving.variant, options.hang_s);
  const Status ran = next_miner->run(0, std::min<std::uint64_t>(next_miner->launch_nonces(), 1024), 0);
  if (hand != nullptr) hand->drop();
  if (!ran) next_miner.reset();
  return ran;
}

void Server::State::finish_preparation() {
  preparation_told = true;
  const Result<Prepared> result = preparation->result();
  const double over_ms = now_ms() - preparation->asked().since_ms;
  const std::optional<double> lost_ms = lost.finish(now_ms());
  if (!result) {
    error(Error(result.error()).with(fmt::format("preparing {}", preparation->pair().text())));
    return;
  }
  for (const std::string& text : result->notes) note(text);
  if (!preparation->late().empty()) {
    note(fmt::format("{}: no room beside the pair in service ({}); its dataset {}, and it swaps late",
                     preparation->pair().text(), preparation->late(),
                     preparation->dataset() ? "waits in host memory" : "is built at the boundary"));
    return;
  }
  if (miner && miner->serving().pair == preparation->pair()) keys = result->keys;
  if (result->record) keep_record(*result->record, result->race_line);
  emit(record::PreparedEvent{preparation->pair(), preparation->best().variant, over_ms});
  if (lost_ms) emit(record::LostEvent{preparation->pair(), *lost_ms, result->paused_ms, over_ms});
}

void Server::State::drop_preparation() {
  if (!preparation) return;
  preparation->stop();
  std::unique_ptr<Preparation> old = std::move(preparation);
  while (!old->finished()) {  // it holds the device for one window at a time, and needs it to end
    std::unique_lock guard(mutex);
    wake.wait_for(guard, std::chrono::milliseconds(1));
  }
  const Holding holding(lock);
  next_miner.reset();
  old->release();
}

void Server::State::keep_record(record::RaceRecord record, const std::string& line) {
  emit(record::RaceEvent{line});
  unwritten.push_back(std::move(record));
  write_records(true);
}

/// The file has a record before anybody is told of it, so that a reader that dies loses none.
void Server::State::write_records(bool now) {
  if (unwritten.empty() || (!now && now_ms() < unwritten_try_ms)) return;
  unwritten_try_ms = now_ms() + kRecordRetry_ms;
  while (!unwritten.empty()) {
    if (!options.records.empty()) {
      if (const Status written = record::append_record(options.records, unwritten.front()); !written) {
        error(Error(written.error()).with("a race record waits in memory"));
        return;
      }
    }
    emit(record::RecordEvent{record::to_line(unwritten.front())});
    unwritten.pop_front();
  }
}

// --- work

Status Server::State::swap(const Command& job_command) {
  const auto& asked = std::get<record::JobCommand>(job_command.what);
  const bool prepared = preparation->finished();
  const bool working = work.has_value();
  const double old_end_ms = last_end_ms;
  end_job(false);
  retired = std::move(miner);
  miner = std::move(next_miner);
  const Result<Prepared> result = prepared ? preparation->result() : Result<Prepared>(Prepared{});
  keys = result ? result->keys : std::map<std::string, std::string>();
  lost.forget();
  wrong_of_base = 0;
  check_next_chunk = true;
  chunk_nonces = 0;
  begin_job(asked);
  rate_from_ms = now_ms();
  rate_hashes = hashes;
  swapping = Swapping{{}, working && old_end_ms > 0 ? old_end_ms : job_command.at_ms, job_command.at_ms};
  swapping->event.epoch = asked.pair.epoch;
  swapping->event.day = asked.pair.day;
  swapping->event.variant = miner->serving().variant;
  swapping->event.prepared = prepared;
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

/// Two datasets have no room: the old one goes first.
void Server::State::swap_late(const Command& job_command) {
  if (!miner) {  // nothing to give up: there is no room for one
    refuse(std::get<record::JobCommand>(job_command.what), fail(Code::exhausted, "{}", preparation->late()));
    return;
  }
  const record::PrepareCommand command = preparation->asked().command;
  const std::shared_ptr<const Bytes> dataset = preparation->dataset();
  end_job(false);
  drop_preparation();
  {
    const Holding holding(lock);
    miner.reset();
  }
  prepare(command, job_command.at_ms, dataset);
  waiting_job = job_command;
}

/// What the swap left, after it and not in it.
void Server::State::retire() {
  if (!retired) return;
  const Holding holding(lock);
  retired.reset();
  if (preparation && preparation->finished()) {
    preparation->release();
    preparation.reset();
  }
}

Status Server::State::run_chunk(std::uint64_t nonces, bool sampled) {
  auto holding = std::make_unique<Holding>(lock);
  const bool alone = lock.taken() == last_taken + 1;  // nobody else had the device since the last chunk
  const double begin_ms = now_ms();
  Hand* hand = environment.hand ? environment.hand(miner->serving().pair) : nullptr;
  if (hand != nullptr)
    hand->take(static_cast<std::uint32_t>(race::Holding::variant), miner->serving().variant,
               options.hang_s + 10e-3 * last_took_ms);
  Status ran = miner->run(work->next(), nonces, work->job.target);
  if (ran && sampled) ran = miner->sample(options.shadow_nonces, random);
  last_took_ms = now_ms() - begin_ms;
  if (!ran && is_lost(ran.error())) {
    // Work that comes after it would fail too, and be blamed for it: while it is this variant's own doing the
    // device is given to nobody any more.
    if (alone) holding_for_good = std::move(holding);
    holding.reset();
    return lost_device(ran.error(), alone, hand);
  }
  if (hand != nullptr) hand->drop();
  last_taken = lock.taken();
  return ran;
}

/// A platform that has lost its device tells nobody who did it: the variant in service, or one of the race
/// that had the device since the last chunk. The race then finds out by itself and quarantines it.
Status Server::State::lost_device(const Error& error, bool alone, Hand* hand) {
  bool ours = alone || !preparation;
  if (!ours) {
    while (!preparation->finished()) {
      std::unique_lock guard(mutex);
      wake.wait_for(guard, std::chrono::milliseconds(1));
    }
    const Result<Prepared> result = preparation->result();
    ours = result || result.error().code() != Code::unavailable;
    if (!ours && hand != nullptr) hand->drop();
    if (!ours) return Error(result.error());
  }
  // Who looks after this process reads it from the hand once it has ended.
  if (hand != nullptr)
    hand->take(static_cast<std::uint32_t>(race::Holding::lost),
               fmt::format("{}\n{}", miner->serving().variant, "trap: in service: " + error.text()),
               options.hang_s);
  return error;
}

Status Server::State::chunk() {
  if (chunk_nonces == 0) chunk_nonces = std::min<std::uint64_t>(miner->launch_nonces(), 4096);
  const std::uint64_t nonces =
      work->endless() ? chunk_nonces : std::min(chunk_nonces, work->job.count - work->done);
  const double before_ms = now_ms();
  const bool sampled = check_next_chunk || before_ms - last_shadow_ms >= 1e3 * options.shadow_every_s;
  FURLONG_CHECK_DOING(run_chunk(nonces, sampled), "{} in service", miner->serving().variant);
  const double end_ms = now_ms();
  tell_swap(end_ms - last_took_ms);
  Result<std::vector<Find>> finds = miner->finds();
  Status right = finds ? Status() : Status(finds.error());
  if (right && sampled) right = miner->check();
  if (!right && right.error().code() == Code::mismatch)
    return revert(right.error());  // the chunk is done again
  FURLONG_CHECK(right);
  if (sampled) {
    last_shadow_ms = end_ms;
    check_next_chunk = false;
    wrong_of_base = 0;
  }
  for (const Find& find : *finds) emit(record::FoundEvent{work->job.job, find.nonce, find.hash});
  work->done += nonces;
  hashes += nonces;
  // Chunks that a job's end cut short tell nothing of the speed.
  if (nonces == chunk_nonces) {
    if (last_end_ms > 0) lost.chunk(end_ms, end_ms - last_end_ms, nonces);
    chunk_nonces = next_chunk(nonces, last_took_ms, options.chunk_ms, miner->launch_nonces());
  }
  last_end_ms = end_ms;
  if (environment.progress) environment.progress(work->done, hashes);
  if (work->complete()) end_job(true);
  if (end_ms - rate_from_ms >= 1e3 * options.rate_every_s) tell_rate();
  return {};
}

Status Server::State::revert(const Error& why) {
  const Serving wrong = miner->serving();
  if (wrong.is_base()) {
    if (++wrong_of_base < kMostWrongOfBase) {
      error(Error(why).with("base in service"));
      return {};
    }
    return Error(why).with(fmt::format("base computed wrong results {} times in a row", wrong_of_base));
  }
  miner->serve(wrong.by_base());
  lost.forget();
  check_next_chunk = true;
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
  event.mhs = 1e-3 * static_cast<double>(hashes - rate_hashes) / over_ms;
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

/// One turn: what came in, what became ready, a chunk.
Status Server::State::step() {
  while (!quitting) {
    const std::optional<Command> command = pop();
    if (!command) break;
    handle(*command);
  }
  bool look = false;
  {
    const std::lock_guard guard(mutex);
    std::swap(look, changed);
  }
  if (look) look_at_preparation();
  write_records(false);
  if (quitting) return {};
  if (work && miner) return chunk();
  last_end_ms = 0;
  std::unique_lock guard(mutex);
  wake.wait_for(guard, std::chrono::duration<double, std::milli>(kIdleWait_ms),
                [&] { return changed || !commands.empty(); });
  return {};
}

void Server::State::close() {
  end_job(false);
  write_records(true);
  drop_preparation();
  const Holding holding(lock);
  next_miner.reset();
  miner.reset();
  retired.reset();
}

/// The end of a device. What is in hand is not done: another process goes on with it.
void Server::State::abandon() {
  write_records(true);
  if (preparation) preparation->stop();
}

Server::State::~State() { holding_for_good.reset(); }

Status Server::State::serve() {
  const device::Facts& facts = environment.device->facts();
  emit(record::ReadyEvent{record::worker_protocol, facts.address(), facts.label, facts.driver,
                          facts.silicon.arch});
  Status status;
  while (status && !quitting) status = step();
  if (!status) {
    abandon();
    return status;
  }
  close();
  emit(record::ByeEvent{});
  return status;
}

Server::Server(const Environment& environment, const Options& options)
    : state_(std::make_unique<State>(environment, options)) {}
Server::~Server() = default;

void Server::submit(record::WorkerCommand command) { state_->push(std::move(command)); }

void Server::submit_line(std::string_view line) {
  if (line.find_first_not_of(" \r\n") == std::string_view::npos) return;
  auto command = record::parse_worker_command(line);
  if (command)
    submit(*std::move(command));
  else
    state_->error(command.error());
}

void Server::add_fallen(FallenVariant fallen) {
  const std::lock_guard guard(state_->mutex);
  state_->fallen.push_back(std::move(fallen));
}

Status Server::serve() { return state_->serve(); }

}  // namespace furlong::worker
