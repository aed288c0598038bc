#include "furlong/fleet/agent/agent.h"

#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <thread>

#include "furlong/base/os/clock.h"
#include "furlong/base/random.h"
#include "furlong/base/text.h"
#include "furlong/fleet/agent/back_off.h"
#include "furlong/fleet/agent/children.h"
#include "furlong/fleet/agent/finds.h"
#include "furlong/fleet/agent/identity.h"
#include "furlong/fleet/agent/ingest.h"
#include "furlong/fleet/agent/manifest.h"
#include "furlong/fleet/agent/nonces.h"
#include "furlong/fleet/agent/planner.h"
#include "furlong/fleet/agent/problems.h"
#include "furlong/fleet/agent/supervisor.h"
#include "furlong/fleet/manifest/updater.h"

namespace furlong::fleet {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t second_ns = 1'000'000'000;
constexpr std::int64_t turn_ns = second_ns / 5;  // how often each loop looks
constexpr double status_every_s = 2;
constexpr double ingest_every_s =
    5;  // also without a doorbell: a worker may have died between record and bell
constexpr double quit_patience_s = 15;
constexpr std::int64_t chain_patience_ns = 30 * second_ns;  // a chain's node may be waking up
constexpr double lock_patience_s = 1;  // `agent status` and `agent check` take the lock for a moment
constexpr std::uintmax_t largest_records_file = 16u << 20;  // which is read whole at every record

class RealAgent : public Agent, public WorkerSink {
 public:
  RealAgent(const AgentConfig& config, const AgentSurroundings& with, FileLock lock,
            std::unique_ptr<Spool> spool, KeyPair key, std::vector<DeviceInfo> devices,
            const std::vector<NonceShare>& shares, std::unique_ptr<ManifestVerifier> updater)
      : config_(config),
        with_(with),
        clock_(*with.clock),
        lock_(std::move(lock)),
        spool_(std::move(spool)),
        key_(key),
        devices_(std::move(devices)),
        updater_(std::move(updater)),
        packs_(config_, *with.processes, *with.files),
        started_(iso_time(clock_.wall_us())),
        // Machines that start in one millisecond, and one that starts twice in it, make different ids (and
        // waits) all the same.
        seed_(agent_seed(key_.public_key, clock_, with_.seed)),
        ids_(seed_, "records") {
    make_schedule();
    make_supervisors(shares);
    if (config_.hub)
      delivery_ =
          std::make_unique<Delivery>(*config_.hub, key_, *with_.http, *spool_, *with_.files, clock_, seed_,
                                     [this](std::string text) { say(LogLevel::info, std::move(text)); });
  }

  Status run(const std::stop_token& stop) override;
  AgentStatus status() override;

  // WorkerSink
  void say(LogLevel level, std::string text) override {
    const std::scoped_lock lock(say_mutex_);
    if (with_.say) with_.say(level, text);
  }
  void say_plain(std::string line) override {
    const std::scoped_lock lock(say_mutex_);
    if (with_.say_plain) with_.say_plain(line);
  }
  void record_written(const DeviceInfo&) override { doorbell_ = true; }
  void found(const Find& find) override;
  void event(const DeviceInfo& device, const record::WorkerEvent& event) override {
    const std::scoped_lock lock(say_mutex_);
    if (with_.on_event) with_.on_event(device, event);
  }

 private:
  void make_schedule();
  void make_supervisors(const std::vector<NonceShare>& shares);
  /// It stands in the status until problems_.over(what).
  void problem(const std::string& what, const std::string& how) {
    if (problems_.stands(what, how)) say(LogLevel::warning, fmt::format("{}: {}", what, how));
  }
  void supervise(Supervisor& supervisor, const std::stop_token& stop);
  void follow_chain(const std::stop_token& stop);
  void take_chain_line(const std::string& line);
  void keep_schedule(const std::stop_token& stop);
  void watch_chain(const Due& due);
  void prune_packs(const Due& due);
  void report();
  void keep_records(const std::stop_token& stop);
  std::vector<std::string> record_slots();
  void ingest_all();
  void begin_new_files();
  void keep_finds(const std::stop_token& stop);
  void keep_manifest(const std::stop_token& stop);
  void write_status(bool running);
  /// Sleeps in short turns; false: it was stopped.
  bool pause(double seconds, const std::stop_token& stop, const std::atomic<bool>* bell = nullptr);

  const AgentConfig config_;
  const AgentSurroundings with_;
  Clock& clock_;
  FileLock lock_;
  std::unique_ptr<Spool> spool_;
  const KeyPair key_;
  const std::vector<DeviceInfo> devices_;
  const std::unique_ptr<ManifestVerifier> updater_;  // nullptr: none is configured
  Packs packs_;
  const std::string started_;
  const std::int64_t begun_ns_ = clock_.now_ns();
  const std::uint64_t seed_;
  Random ids_;
  std::unique_ptr<Schedule> schedule_;
  ChainSchedule* chain_ = nullptr;  // schedule_, when it follows a command
  std::vector<std::unique_ptr<Supervisor>> supervisors_;
  std::unique_ptr<Delivery> delivery_;
  std::atomic<bool> doorbell_{true};
  std::atomic<bool> find_bell_{true};
  std::atomic<bool> spool_full_{false};
  std::vector<record::Pair> kept_packs_;  // keep_schedule's
  std::mutex say_mutex_;
  Problems problems_{clock_};

  std::mutex mutex_;  // of what follows
  Due due_;
  std::int64_t jumps_ = 0;
  std::string manifest_;
};

void RealAgent::make_schedule() {
  if (config_.schedule.kind == ScheduleConfig::Kind::clock) {
    schedule_ = std::make_unique<ClockSchedule>(config_.schedule);
  } else {
    auto chain = std::make_unique<ChainSchedule>(config_.schedule.lead);
    chain_ = chain.get();
    schedule_ = std::move(chain);
  }
}

void RealAgent::make_supervisors(const std::vector<NonceShare>& shares) {
  // Shares by the order of slots, not of the configuration: moving a table must not move the nonces.
  std::vector<std::string> slots;
  for (const DeviceInfo& device : devices_) slots.push_back(device.slot);
  std::sort(slots.begin(), slots.end());
  for (const DeviceInfo& device : devices_) {
    WorkerSetup setup{.device = device, .argv = worker_command(config_, device)};
    setup.environment = {{"FURLONG_TUNING_FILE", (config_.data / "tuning.json").string()}};
    setup.hang_s = config_.hang_s;
    if (config_.schedule.kind == ScheduleConfig::Kind::clock)
      setup.patience_s = std::min(setup.patience_s, static_cast<double>(config_.schedule.lead) / 3);
    setup.target = config_.work.target;
    const auto at =
        static_cast<std::size_t>(std::find(slots.begin(), slots.end(), device.slot) - slots.begin());
    setup.nonce_first = shares[at].first;
    setup.nonce_count = shares[at].count;
    supervisors_.push_back(
        std::make_unique<Supervisor>(std::move(setup), *with_.processes, *spool_, clock_, *this));
  }
}

bool RealAgent::pause(double seconds, const std::stop_token& stop, const std::atomic<bool>* bell) {
  const std::int64_t until_ns = clock_.now_ns() + static_cast<std::int64_t>(seconds * 1e9);
  while (!stop.stop_requested()) {
    if (bell != nullptr && *bell) return true;
    const std::int64_t left_ns = until_ns - clock_.now_ns();
    if (left_ns <= 0) return true;
    clock_.sleep_ns(std::min(left_ns, turn_ns));
  }
  return false;
}

void RealAgent::found(const Find& find) {
  say(LogLevel::info, fmt::format("{}: FOUND {} nonce {:016x} hash {:016x}", find.device, find.pair.text(),
                                  find.nonce, find.hash));
  find_bell_ = true;
}

// --- the threads

void RealAgent::supervise(Supervisor& supervisor, const std::stop_token& stop) {
  while (!stop.stop_requested()) supervisor.step(static_cast<double>(turn_ns) * 1e-9);
  supervisor.quit(quit_patience_s);
}

void RealAgent::take_chain_line(const std::string& line) {
  if (trim(line).empty()) return;
  const auto read = parse_chain_line(line);
  if (!read) return problem("the schedule command", read.error().text());
  problems_.over("the schedule command");
  problems_.over("the schedule command ended");
  chain_->take(*read);
}

void RealAgent::follow_chain(const std::stop_token& stop) {
  BackOff back_off(clock_, 1, 60);
  while (!stop.stop_requested()) {
    if (!back_off.due()) {
      pause(0.2, stop);
      continue;
    }
    ProcessRequest request{.argv = config_.schedule.command};
    request.guarded = true;
    auto child = with_.processes->start(request);
    if (!child) {
      problem("the schedule command", child.error().text());
      back_off.failed();
      continue;
    }
    int lines = 0;
    for (bool runs = true; runs && !stop.stop_requested();) {
      auto line = (*child)->read_line(0.2);
      if (!line && line.error().code() == Code::timeout) continue;
      runs = line && *line;
      if (runs) take_chain_line(**line);
      if (runs && ++lines >= 3) back_off.succeeded();
    }
    if (stop.stop_requested()) return;  // the child goes with its object
    const ProcessEnd end = (*child)->wait(1);
    back_off.failed();
    problem("the schedule command ended", end.text());
  }
}

void RealAgent::watch_chain(const Due& due) {
  if (chain_ == nullptr) return;
  const std::string what = "no program is due";
  if (due.current) return problems_.over(what);
  if (clock_.now_ns() - begun_ns_ >= chain_patience_ns)
    problem(what,
            "the schedule command has told of none that has begun (a line whose height has reached its "
            "boundary)");
}

void RealAgent::prune_packs(const Due& due) {
  std::vector<record::Pair> wanted;
  if (due.current) wanted.push_back(due.current->pair());
  if (due.next) wanted.push_back(due.next->pair());
  // At a boundary the old program goes on until each worker has swapped.
  for (const auto& supervisor : supervisors_)
    if (const auto serves = supervisor->view().pair) wanted.push_back(*serves);
  if (wanted == kept_packs_) return;
  const Status pruned = packs_.keep_only(wanted);
  if (!pruned) return problem("old packs stay", pruned.error().text());
  problems_.over("old packs stay");
  kept_packs_ = std::move(wanted);
}

void RealAgent::keep_schedule(const std::stop_token& stop) {
  JumpWatch jumps(clock_);
  Planner planner(packs_, clock_, problems_,
                  [this](const std::string& what, const std::string& how) { problem(what, how); });
  do {
    if (const double jump_s = jumps.look(); jump_s != 0) {
      say(LogLevel::warning,
          fmt::format("the wall clock jumped by {:+.0f} s: the schedule is looked at anew", jump_s));
      const std::scoped_lock lock(mutex_);
      ++jumps_;
    }
    const Due due = schedule_->due(clock_.wall_us());
    watch_chain(due);
    const auto hand_over = [&](const WorkerPlan& plan) {
      for (const auto& supervisor : supervisors_) supervisor->set_plan(plan);
      const std::scoped_lock lock(mutex_);
      due_ = due;
    };
    planner.turn(due, hand_over, stop);
    if (planner.complete()) prune_packs(due);
  } while (pause(0.2, stop));
}

std::vector<std::string> RealAgent::record_slots() {
  // Of all files, also of devices that were taken out of the machine or the configuration since.
  std::vector<std::string> slots;
  const auto names = with_.files->list(config_.data);
  if (!names) problem("the data folder", names.error().text());
  constexpr std::string_view head = "records-", tail = ".jsonl";
  for (const std::string& name : names.value_or(std::vector<std::string>()))
    if (name.starts_with(head) && name.ends_with(tail) && name.size() > head.size() + tail.size())
      slots.push_back(name.substr(head.size(), name.size() - head.size() - tail.size()));
  return slots;
}

void RealAgent::ingest_all() {
  if (!config_.hub) return;  // without a hub the records stay in the workers' files, all of them
  bool full = false;
  for (const std::string& slot : record_slots()) {
    const RecordOrigin origin{.machine = key_.public_key.id(), .slot = slot, .agent = with_.version};
    const auto done = ingest(*with_.files, *spool_, records_file(config_, slot), origin, clock_, ids_);
    const std::string what = "records of slot " + slot;
    if (!done) {
      problem(what + " wait in their file", done.error().text());
      continue;
    }
    problems_.over(what + " wait in their file");
    for (const std::string& text : done->notes) say(LogLevel::warning, fmt::format("{}: {}", what, text));
    full |= done->full;
  }
  if (full) {
    problem("the spool is full",
            fmt::format("records wait in the workers' files until the hub has taken some of {} MiB",
                        config_.spool_mib));
  } else {
    problems_.over("the spool is full");
  }
  spool_full_ = full;
}

void RealAgent::begin_new_files() {
  // Only while no worker writes, and only what is in the spool to the last byte.
  if (!config_.hub) return;
  for (const std::string& slot : record_slots()) {
    const fs::path file = records_file(config_, slot);
    std::error_code none;
    if (fs::file_size(file, none) < largest_records_file || none) continue;
    const auto taken = is_ingested(*with_.files, *spool_, file);
    if (!taken || !*taken) continue;
    if (const Status removed = with_.files->remove(file); !removed)
      problem("an old file of records stays", removed.error().text());
  }
}

void RealAgent::report() {
  if (delivery_ == nullptr) return;
  MachineReport report{.agent = with_.version, .canary = config_.manifest && config_.manifest->canary};
  {
    const std::scoped_lock lock(mutex_);
    report.manifest = manifest_;
  }
  delivery_->tell(std::move(report));
}

void RealAgent::keep_records(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    doorbell_ = false;
    ingest_all();
    report();
    const double wait_s = delivery_ ? delivery_->step(stop) : ingest_every_s;
    pause(std::clamp(wait_s, 0.05, ingest_every_s), stop, &doorbell_);
  }
}

void RealAgent::keep_finds(const std::stop_token& stop) {
  if (config_.finds_command.empty()) return;
  FindsGiver giver(config_.finds_command, *with_.processes, *spool_, clock_, problems_,
                   [this](const std::string& what, const std::string& how) { problem(what, how); });
  while (!stop.stop_requested()) {
    find_bell_ = false;
    const bool at_once = giver.step(stop);
    pause(1, stop, at_once ? &find_bell_ : nullptr);
  }
}

void RealAgent::keep_manifest(const std::stop_token& stop) {
  ManifestVerifier* verifier = with_.verifier != nullptr ? with_.verifier : updater_.get();
  if (!config_.hub || verifier == nullptr) return;
  HubManifestSource source(*config_.hub, *with_.http);
  ManifestFollower follower(source, *verifier, *with_.files, config_.data,
                            [this](std::string text) { say(LogLevel::info, std::move(text)); });
  while (!stop.stop_requested()) {
    const Status done = follower.step(stop);
    if (done)
      problems_.over("the manifest was not taken");
    else if (!stop.stop_requested())
      problem("the manifest was not taken", done.error().text() + "; what was in use stays");
    {
      const std::scoped_lock lock(mutex_);
      manifest_ = follower.version();
    }
    pause(static_cast<double>(config_.hub->manifest_every_s), stop);
  }
}

// --- status

AgentStatus RealAgent::status() {
  AgentStatus status{
      .version = with_.version, .machine = key_.public_key.id(), .pid = getpid(), .started = started_};
  status.written = iso_time(clock_.wall_us());
  for (const auto& supervisor : supervisors_) status.devices.push_back(supervisor->view());
  if (auto counts = spool_->counts()) status.spool = *counts;
  if (config_.finds_command.empty()) status.spool.finds_waiting = 0;  // for nobody
  status.spool_full = spool_full_;
  if (config_.hub) status.hub_url = config_.hub->url;
  if (delivery_) status.hub = delivery_->state();
  const std::scoped_lock lock(mutex_);
  if (due_.current) status.current = due_.current->pair();
  if (due_.next) status.next = due_.next->pair();
  status.next_in_s = due_.next_in_s;
  status.clock_jumps = jumps_;
  status.manifest = manifest_;
  status.problems = problems_.texts();
  return status;
}

void RealAgent::write_status(bool running) {
  AgentStatus now = status();
  if (!running) now.pid = 0;
  const Status written = with_.files->write_atomic(agent_status_file(config_.data), print(now));
  if (!written)
    problem("status.json is not written", written.error().text());
  else
    problems_.over("status.json is not written");
}

Status RealAgent::run(const std::stop_token& stop) {
  ingest_all();
  begin_new_files();
  std::stop_source others;  // workers end first, so that their last words are heard
  {
    std::vector<std::jthread> workers, services;
    services.emplace_back([&] { keep_schedule(others.get_token()); });
    services.emplace_back([&] { keep_records(others.get_token()); });
    services.emplace_back([&] { keep_finds(others.get_token()); });
    services.emplace_back([&] { keep_manifest(others.get_token()); });
    if (chain_ != nullptr) services.emplace_back([&] { follow_chain(others.get_token()); });
    for (const auto& supervisor : supervisors_)
      workers.emplace_back([&, one = supervisor.get()] { supervise(*one, stop); });
    do {
      write_status(true);
    } while (pause(status_every_s, stop));
    workers.clear();  // joins
    others.request_stop();
  }
  ingest_all();
  write_status(false);
  return {};
}

}  // namespace

fs::path agent_lock_file(const fs::path& data) { return data / "agent.lock"; }
fs::path agent_status_file(const fs::path& data) { return data / "status.json"; }

Result<bool> agent_runs(const fs::path& data) {
  std::error_code none;
  if (!fs::exists(agent_lock_file(data), none)) return false;
  const auto lock = FileLock::acquire(agent_lock_file(data), 0);
  if (lock) return false;
  if (lock.error().code() == Code::timeout) return true;
  return lock.error();
}

namespace {

Result<std::unique_ptr<ManifestVerifier>> open_updater(const AgentConfig& config,
                                                       const AgentSurroundings& with, const KeyPair& key) {
  if (!config.manifest) return nullptr;
  const ManifestConfig& manifest = *config.manifest;
  const auto root = with.files->read(manifest.root, 1u << 20);
  if (!root) return Error(Code::invalid, root.error().text()).with("reading the pinned root");
  const Client client{.machine = key.public_key.id(),
                      .channel = manifest.channel,
                      .canary = manifest.canary,
                      .version = with.version};
  auto updater = ManifestUpdater::open(*root, client, config.data, *with.files, *with.clock);
  if (!updater) return Error(std::move(updater).error()).with(manifest.root.string());
  return *std::move(updater);
}

}  // namespace

Result<std::unique_ptr<Agent>> Agent::open(const AgentConfig& config, const AgentSurroundings& with,
                                           const std::stop_token& stop) {
  std::error_code made;
  fs::create_directories(config.data, made);
  if (made)
    return fail(Code::denied, "{}: the data folder cannot be made: {}", config.data.string(), made.message());
  auto lock = FileLock::acquire(agent_lock_file(config.data), lock_patience_s);
  if (!lock && lock.error().code() == Code::timeout)
    return fail(Code::denied, "{}: another agent works in this data folder", config.data.string());
  if (!lock) return lock.error();
  FURLONG_TRY(auto spool,
              Spool::open(config.data / "spool.sqlite", {.pending_bytes = config.spool_mib << 20,
                                                         .finds_wait = !config.finds_command.empty()}));
  FURLONG_TRY(const KeyPair key, machine_key(*with.files, config.data / "machine.key"));
  FURLONG_CHECK(adopt_records(*spool, key.public_key.id()));
  FURLONG_TRY(const auto there, list_devices(*with.processes, config.furlong, stop));
  FURLONG_TRY(auto devices, choose_devices(config, there));
  FURLONG_TRY(const auto shares,
              split_nonces(config.work.nonce_first, config.work.nonce_count, devices.size()));
  if (config.hub && with.http == nullptr) return fail(Code::internal, "a hub without an HTTP client");
  FURLONG_TRY(auto updater, open_updater(config, with, key));
  return std::make_unique<RealAgent>(config, with, *std::move(lock), std::move(spool), key,
                                     std::move(devices), shares, std::move(updater));
}

}  // namespace furlong::fleet
