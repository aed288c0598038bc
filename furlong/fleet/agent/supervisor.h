#pragma once
// Keeps one device's worker running and on the program that is due.

#include <deque>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "furlong/base/log.h"
#include "furlong/base/os/process.h"
#include "furlong/fleet/agent/spool.h"
#include "furlong/fleet/agent/worker_view.h"
#include "furlong/record/record.h"

namespace furlong {
class Clock;
}

namespace furlong::fleet {

struct WorkerSetup {
  DeviceInfo device;
  std::vector<std::string> argv;  ///< the worker's command line
  std::vector<std::pair<std::string, std::string>> environment;
  double hang_s = 120;
  double patience_s = 60;  ///< how long the next pair's preparation waits for the race of the current one
  std::uint64_t target = 0;
  std::uint64_t nonce_first = 0;
  std::uint64_t nonce_count = 0;  ///< 0: all 2^64
};

/// What a worker is to do. Packs are folders that are there.
struct WorkerPlan {
  struct Step {
    record::Pair pair;
    std::string pack;
    bool operator==(const Step&) const = default;
  };
  std::optional<Step> current;
  std::optional<Step> next;  ///< to be prepared
  bool operator==(const WorkerPlan&) const = default;
};

/// Who hears of it. Called from the supervisors' threads.
class WorkerSink {
 public:
  virtual ~WorkerSink() = default;
  virtual void say(LogLevel level, std::string text) = 0;
  /// A line for machines that read the log, at its very beginning: "worker: race …", "TUNING {…}".
  virtual void say_plain(std::string line) = 0;
  /// A record lies in the device's file.
  virtual void record_written(const DeviceInfo& device) = 0;
  /// A new find, which is in the spool.
  virtual void found(const Find& find) = 0;
  /// Every event, after what it changed.
  virtual void event(const DeviceInfo& device, const record::WorkerEvent& event) = 0;
};

/// "RTX 5090 kernel race: u2-ldg at 118.3 MH/s (+2.1% over base, 17 variants, 41 s)".
std::string race_summary(const record::RaceRecord& record);
/// "RTX 5090" of "NVIDIA_GeForce_RTX_5090".
std::string card_words(std::string_view label);

/// One thread calls step() and quit(); set_plan() and view() may be called from any.
class Supervisor {
 public:
  Supervisor(WorkerSetup setup, Processes& processes, Spool& spool, Clock& clock, WorkerSink& sink);
  ~Supervisor();
  void set_plan(const WorkerPlan& plan);
  WorkerView view();
  /// Starts the worker when it is due, tells it what the plan asks for, and handles what it says within
  /// `wait_s`.
  void step(double wait_s);
  /// Orderly end: "quit", what it still says is taken, then its end within `patience_s` or a kill.
  void quit(double patience_s);

 private:
  /// One prepare that this worker process was asked for.
  struct Asked {
    enum class State { running, done, failed };
    record::Pair pair;
    State state = State::running;
    std::int64_t at_ns = 0;
    int failures = 0;
  };
  struct Job {
    std::string name;
    record::Pair pair;
    std::int64_t sent_ns = 0;
    bool confirmed = false;  ///< it was seen at work
    bool refused = false;
    bool nothing_left = false;  ///< its nonces are done: the worker was not asked for it
  };

  void start();
  void ended(const ProcessEnd& end, const std::string& why);
  void kill(const std::string& why);
  void reconcile();
  void reconcile_job(const WorkerPlan::Step& step);
  void reconcile_prepare(const WorkerPlan& plan);
  bool wants_prepare(const record::Pair& pair);
  bool asks_for(const record::Pair& pair) const;
  bool is_prepared(const record::Pair& pair) const;
  bool prepares_another(const record::Pair& pair) const;
  /// Nothing waits for the current pair's preparation, so that the next one's may begin.
  bool served(const WorkerPlan& plan) const;
  void remember(Job job);
  void send_prepare(const WorkerPlan::Step& step);
  void send_job(const WorkerPlan::Step& step);
  void send(const record::WorkerCommand& command);
  void watch_for_hang();
  void take_line(const std::string& line);
  void apply(const record::WorkerEvent& event);
  void on(const record::ReadyEvent& event);
  void on(const record::PreparedEvent& event);
  void on(const record::RaceEvent& event);
  void on(const record::RecordEvent& event);
  void on(const record::RateEvent& event);
  void on(const record::FoundEvent& event);
  void on(const record::SwapEvent& event);
  void on(const record::DoneEvent& event);
  void on(const record::LostEvent& event);
  void on(const record::RevertedEvent& event);
  void on(const record::RecoveredEvent& event);
  void on(const record::StateEvent& event);
  void on(const record::NoteEvent& event);
  void on(const record::ErrorEvent& event);
  void on(const record::ByeEvent& event);
  void on(const record::UnknownEvent& event);
  /// Those that the spool could not take (a full disk) are kept here and tried again before any progress is
  /// kept.
  bool save_finds();
  void give_up_finds();
  void keep_progress(const std::string& job, std::uint64_t next);
  Job* find_job(std::string_view name);
  void say(LogLevel level, const std::string& text);
  std::string now() const;

  const WorkerSetup setup_;
  Processes& processes_;
  Spool& spool_;
  Clock& clock_;
  WorkerSink& sink_;

  std::unique_ptr<Child> child_;
  bool ready_ = false;
  std::int64_t started_ns_ = 0;
  std::int64_t heard_ns_ = 0;  ///< of the last event
  std::int64_t pinged_ns_ = 0;
  std::int64_t next_start_ns_ = 0;
  std::int64_t next_since_ns_ = 0;  ///< since when there is a next pair
  int quick_crashes_ = 0;           ///< in a row, for the back-off
  int job_number_ = 0;
  std::vector<Asked> asked_;
  std::vector<Find> unsaved_finds_;
  std::optional<std::int64_t> unsaved_told_ns_;  ///< when it was last said that they wait
  std::deque<Job> jobs_;                         ///< of this worker process; the last is the one in hand

  std::mutex mutex_;  // of what follows
  WorkerPlan plan_;
  WorkerView view_;
};

}  // namespace furlong::fleet
