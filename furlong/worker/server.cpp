#include "furlong/worker/server.h"

#include <algorithm>
#include <utility>

#include "furlong/worker/internal/server_state.h"
#include "furlong/worker/internal/state_json.h"

namespace furlong::worker {
namespace {

constexpr double kIdleWait_ms = 100;
constexpr double kCloseWait_ms = 20'000;  // for a preparation that is told to end

}  // namespace

bool is_lost(const Error& error) {
  return error.code() == Code::unavailable || error.code() == Code::internal || error.code() == Code::timeout;
}

record::JobCommand Work::rest() const {
  record::JobCommand left = job;
  left.start += done;
  if (left.count != 0) left.count -= done;
  return left;
}

Server::State::State(const Environment& given, const Options& given_options)
    : environment(given),
      options(given_options),
      lock(*given.clock),
      random(given_options.seed),
      hashes(given_options.hashes_before),
      rate_hashes(given_options.hashes_before) {}

Server::State::~State() {
  holding_for_good.reset();
  preparation.reset();  // its thread uses the device and the lock
}

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

bool Server::State::wait_for(double limit_ms, const std::function<bool()>& holds) {
  for (double waited_ms = 0; !holds(); ++waited_ms) {
    if (waited_ms >= limit_ms) return false;
    std::unique_lock guard(mutex);
    wake.wait_for(guard, std::chrono::milliseconds(1));
  }
  return true;
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

/// Whether a prepare of that pack is under way, or has led to what can serve: it is not done twice.
bool Server::State::is_prepared(const record::PrepareCommand& command) {
  if (behind && behind->command == command) return true;
  if (queued) return queued->command == command;
  const bool known = preparation && preparation->asked().command == command;
  if (known && !preparation_told) return true;
  const bool serves = serving_command == command && miner != nullptr;
  const Miner* ready = known && next_miner ? next_miner.get() : serves ? miner.get() : nullptr;
  if (ready == nullptr) return known && !late().empty();
  // Whatever else was being prepared is given up for it, as by any other prepare.
  if (!known && preparation && !preparation_told) return false;
  emit(record::PreparedEvent{command.pair, ready->serving().variant, 0});
  return true;
}

Status Server::State::handle(const Command& command) {
  if (const auto* c = std::get_if<record::PrepareCommand>(&command.what)) {
    if (!is_prepared(*c)) prepare({*c, command.at_ms, nullptr, false});
  } else if (std::holds_alternative<record::JobCommand>(command.what)) {
    return job(command);
  } else if (std::holds_alternative<record::StatusCommand>(command.what)) {
    tell_state();
  } else if (std::holds_alternative<record::StopCommand>(command.what)) {
    refuse_waiting(fail(Code::invalid, "stopped before its pair was ready"));
    fallback.reset();
    end_job(false);
  } else {
    quitting = true;
  }
  return {};
}

Status Server::State::job(const Command& command) {
  const auto& asked = std::get<record::JobCommand>(command.what);
  refuse_waiting(fail(Code::invalid, "job {} takes its place", asked.job));
  fallback.reset();
  if (behind && behind->command.pair == asked.pair) prepare(*std::exchange(behind, std::nullopt));
  if (miner && miner->serving().pair == asked.pair) {
    begin_job(asked);
    return {};
  }
  const record::Pair* pair = preparing();
  const bool known = pair != nullptr && *pair == asked.pair;
  const bool failed = known && !queued && preparation_told && !next_miner && late().empty();
  record::PrepareCommand prepare_command;
  if (failed) prepare_command = preparation->asked().command;
  if (failed || (!known && find_pack(asked.pair, prepare_command)))
    prepare({prepare_command, command.at_ms, nullptr, false});
  if (known || !prepare_command.pack.empty()) {
    waiting_job = command;  // taken as soon as base may serve, at once if it may
    return look_at_preparation();
  }
  refuse(asked, fail(Code::invalid, "nobody prepared {}{}", asked.pair.text(),
                     options.packs.empty() ? ""
                                           : fmt::format(", and {} has no pack {}-{}", options.packs.string(),
                                                         asked.pair.epoch, asked.pair.day)));
  return {};
}

void Server::State::begin_job(const record::JobCommand& asked) {
  end_job(false);
  work = Work{asked, 0, 0, {}};
  if (environment.begun) environment.begun(asked);
}

void Server::State::end_job(bool complete) {
  if (!work) return;
  emit(record::DoneEvent{work->job.job, work->job.start, work->done, complete});
  work.reset();
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
  if (const record::Pair* pair = preparing()) {
    fields.preparing = *pair;
    if (next_miner) fields.ready = next_miner->serving().variant;
    fields.preparing_done = preparation_told && !queued;
  }
  fields.hashes = hashes;
  fields.prepares = prepares;
  fields.unwritten_records = unwritten.size();
  emit(record::StateEvent{state_json(fields)});
}

/// One turn: what came in, what became ready, a chunk.
Status Server::State::step() {
  while (!quitting) {
    const std::optional<Command> command = pop();
    if (!command) break;
    FURLONG_CHECK(handle(*command));
  }
  if (behind && !waiting_job) prepare(*std::exchange(behind, std::nullopt));
  start_queued();
  bool look = false;
  {
    const std::lock_guard guard(mutex);
    std::swap(look, changed);
  }
  if (look) FURLONG_CHECK(look_at_preparation());
  write_records(false);
  if (quitting) return {};
  if (work && miner) return chunk();
  lost.interrupt();
  last_end_ms = 0;
  std::unique_lock guard(mutex);
  wake.wait_for(guard, std::chrono::duration<double, std::milli>(queued ? 1 : kIdleWait_ms),
                [&] { return changed || !commands.empty(); });
  return {};
}

void Server::State::close() {
  refuse_waiting(fail(Code::invalid, "the worker ends before its pair was ready"));
  end_job(false);
  write_records(true);
  for (const record::RaceRecord& record : unwritten) {  // whoever listens may keep what the disk does not
    error(fail(Code::exhausted, "a race record was not written to {}; it is told here",
               options.records.string()));
    emit(record::RecordEvent{record::to_line(record)});
  }
  queued.reset();
  behind.reset();
  if (preparation) preparation->stop();
  // A compiler that does not end holds what is on the device; the end of the process frees it.
  if (!wait_for(kCloseWait_ms, [&] { return drop_preparation(); })) return;
  const Holding holding(lock);
  given_up.clear();
  miner.reset();
  retired.reset();
}

/// The end of a device. What is in hand is not done: another process goes on with it.
void Server::State::abandon() {
  write_records(true);
  if (preparation) preparation->stop();
}

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
