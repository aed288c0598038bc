#include "furlong/worker/front.h"

#include <algorithm>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <utility>

#include "furlong/base/os/trap.h"
#include "furlong/base/text.h"
#include "furlong/race/race.h"
#include "furlong/record/worker_protocol.h"
#include "furlong/worker/back_line.h"
#include "furlong/worker/internal/line_queue.h"

namespace furlong::worker {
namespace {

using record::JobCommand;
using record::PrepareCommand;
using record::WorkerEvent;

constexpr double kTurn_s = 0.005;  // how long a command may wait for its turn
constexpr std::size_t kMostQueued = 64u << 20;
constexpr std::size_t kMostUnanswered = 1000;
constexpr std::size_t kMostKept = 16;  // commands whose pairs may come back
constexpr double kDrain_s = 5;
constexpr double kPatience_s = 10;  // with a device that does not open, once `quit` has come

/// A trap or the process' own exit; a kill from outside blames nobody.
bool by_itself(const ProcessEnd& end) { return end.signal == 0 || is_trap(end.signal); }

std::string last_line(std::string_view text) {
  text = trim(text);
  const std::size_t cut = text.rfind('\n');
  return one_line(cut == std::string_view::npos ? text : text.substr(cut + 1));
}

}  // namespace

struct Front::State {
  State(Processes& system, Clock& given_clock, const FrontOptions& given,
        std::function<Status(std::string_view)> write)
      : processes(system), clock(given_clock), options(given), out(std::move(write), kMostQueued) {}

  // Between threads.
  std::mutex mutex;
  std::deque<std::string> input;
  bool input_closed = false;

  Processes& processes;
  Clock& clock;
  FrontOptions options;
  LineQueue out;
  std::unique_ptr<Child> back;

  // What the back was told and has told: enough for another one to go on.
  bool told_ready = false, back_ready = false, quitting = false;
  std::optional<JobCommand> current;    // in hand, as it was asked for
  std::uint64_t done = 0;               // of its nonces
  std::optional<JobCommand> pending;    // newer than what is in hand
  std::deque<JobCommand> unanswered;    // told to this back, neither begun nor refused; `pending` is the last
  int statuses = 0;                     // asked for and not answered
  bool stopping = false;                // `stop` is the last word on jobs
  std::optional<record::Pair> swapped;  // told last
  std::optional<JobCommand> resumed;    // what this back was told in place of `current`
  std::uint64_t done_before = 0;        // of `current`, when this back began
  std::map<std::string, PrepareCommand> packs;  // by pair
  std::deque<std::string> packs_order;
  std::optional<PrepareCommand> newest_prepare;
  std::optional<PrepareCommand> prepare_later;  // once the pair in hand is prepared again
  std::set<std::string> sent;                   // pairs that this back was told to prepare
  std::optional<record::Pair> preparing;        // what it is at
  std::map<std::string, int> killers;           // prepares that ended a back with nothing in hand, by pair
  std::string address;                          // of the device that was told in `ready`
  std::set<std::uint64_t> found;                // nonces of `current` that were told
  std::uint64_t prepares = 0, hashes = 0;
  std::vector<FallenLine> fallen;
  std::optional<TakeLine> hand;
  double hand_since_ms = 0, died_ms = 0;
  std::string died_why;
  bool recovering = false;
  int deaths = 0;  // in a row

  double now_ms() { return clock.now_ms(); }
  void tell(const WorkerEvent& event) { out.push(record::print(event), false); }
  void error(Code code, std::string text) { tell(record::ErrorEvent{code, std::move(text)}); }

  Status start_back();
  Status send(const std::string& line);
  Status send_prepare(const PrepareCommand& prepare);
  void give_up_job(bool complete);
  void forget_job();
  bool wants_to_quit();
  void hear_the_rest();
  Status resume();
  Status take_input();
  Status command(const std::string& line);
  void remember(const PrepareCommand& prepare);
  Status hear(const std::string& line);
  Status hear_event(const std::string& line);
  Status hear_back(const BackLine& line);
  void begin(const BeginLine& line);
  void answered(const JobCommand& job);
  void at(const AtLine& line);
  bool tell_found(const record::FoundEvent& event);
  void tell_done(record::DoneEvent event);
  bool hung();
  void bury(const ProcessEnd& end, bool was_hung);
  void blame_prepare(const record::Pair& pair);
  void pause_before_restart(std::stop_token stop);
  Result<FrontEnd> serve_until_death(std::stop_token stop, bool& dead);
  FrontEnd end_orderly();
  Result<FrontEnd> run(std::stop_token stop);
};

Status Front::State::start_back() {
  ProcessRequest request;
  request.argv = options.back;
  if (!address.empty()) {  // the same device again, also where "the best one" was asked for
    const auto at = std::ranges::find(request.argv, "--device");
    if (at != request.argv.end() && at + 1 != request.argv.end())
      *(at + 1) = address;
    else
      request.argv.insert(request.argv.end(), {"--device", address});
  }
  request.argv.insert(request.argv.end(), {"--prepares-before", std::to_string(prepares), "--hashes-before",
                                           std::to_string(hashes)});
  request.grace_s = 2;
  request.guarded = true;
  back_ready = false;
  hand.reset();
  resumed.reset();
  sent.clear();
  preparing.reset();
  FURLONG_TRY(back, processes.start(request));
  return {};
}

Status Front::State::send(const std::string& line) { return back->write(line + "\n"); }

Status Front::State::send_prepare(const PrepareCommand& prepare) {
  sent.insert(prepare.pair.text());
  preparing = prepare.pair;
  return send(record::print(prepare));
}

/// The job in hand is over.
void Front::State::give_up_job(bool complete) {
  if (!current) return;
  tell(record::DoneEvent{current->job, current->start, done, complete});
  forget_job();
}

void Front::State::forget_job() {
  current.reset();
  resumed.reset();
  done = done_before = 0;
  found.clear();
}

/// What the last back had in hand, to the next.
Status Front::State::resume() {
  for (const FallenLine& one : fallen) FURLONG_CHECK(send(print(one)));
  if (current && current->count != 0 && done >= current->count) give_up_job(true);
  if (stopping) give_up_job(false);
  stopping = false;
  for (const JobCommand& job : unanswered)
    if (job != pending)
      error(Code::unavailable,
            fmt::format("job {}: another took its place before the worker's process ended", job.job));
  unanswered.clear();
  // A newer job takes the place of the one in hand at once, if its pair can be had; else it is refused again.
  const bool newer =
      pending && (packs.contains(pending->pair.text()) || (current && current->pair == pending->pair));
  if (newer) give_up_job(false);
  const std::optional<JobCommand> job = newer || !current ? pending : current;
  prepare_later.reset();
  std::optional<PrepareCommand> first = newest_prepare;
  if (job) {
    const auto pack = packs.find(job->pair.text());
    if (pack != packs.end()) {
      first = pack->second;
      if (newest_prepare && newest_prepare->pair != job->pair) prepare_later = newest_prepare;
    }
  }
  if (first) FURLONG_CHECK(send_prepare(*first));
  for (int i = std::exchange(statuses, 0); i > 0; --i) FURLONG_CHECK(command("status"));
  if (!job) return {};
  JobCommand again = *job;
  if (job == current) {
    again.start += done;
    if (again.count != 0) again.count -= done;
    done_before = done;
    resumed = again;
  }
  if (pending) unanswered.push_back(*pending);
  FURLONG_CHECK(send(record::print(again)));
  return pending && job == current ? send(record::print(*pending)) : Status();
}

void Front::State::remember(const PrepareCommand& prepare) {
  newest_prepare = prepare;
  prepare_later.reset();
  const std::string key = prepare.pair.text();
  if (!packs.contains(key)) packs_order.push_back(key);
  packs[key] = prepare;
  if (packs_order.size() > kMostKept) {
    packs.erase(packs_order.front());
    packs_order.pop_front();
  }
}

Status Front::State::command(const std::string& line) {
  const auto parsed = record::parse_worker_command(line);
  if (!parsed) {
    error(parsed.error().code(), parsed.error().text());
    return {};
  }
  if (const auto* prepare = std::get_if<PrepareCommand>(&*parsed)) {
    remember(*prepare);
    return send_prepare(*prepare);
  }
  if (const auto* job = std::get_if<JobCommand>(&*parsed)) {
    pending = *job;
    stopping = false;
    unanswered.push_back(*job);
    if (unanswered.size() > kMostUnanswered) unanswered.pop_front();
    // Another back was told to prepare it.
    const auto pack = packs.find(job->pair.text());
    if (pack != packs.end() && !sent.contains(pack->first)) {
      if (prepare_later && prepare_later->pair == job->pair) prepare_later.reset();
      FURLONG_CHECK(send_prepare(pack->second));
    }
  }
  if (std::holds_alternative<record::StatusCommand>(*parsed)) ++statuses;
  if (std::holds_alternative<record::StopCommand>(*parsed)) {
    pending.reset();
    stopping = true;
  }
  if (std::holds_alternative<record::QuitCommand>(*parsed)) quitting = true;
  return send(line);
}

Status Front::State::take_input() {
  while (!quitting) {
    std::string line;
    {
      const std::lock_guard lock(mutex);
      if (input.empty()) {
        if (!input_closed) return {};
        line = "quit";
      } else {
        line = std::move(input.front());
        input.pop_front();
      }
    }
    if (trim(line).empty()) continue;
    FURLONG_CHECK(command(line));
  }
  return {};
}

void Front::State::begin(const BeginLine& line) {
  answered(line.job);
  if (resumed && *resumed == line.job) return;  // `current`, from where it was
  forget_job();
  current = line.job;
}

/// The back has begun or refused it.
void Front::State::answered(const JobCommand& job) {
  if (pending == job) pending.reset();
  const auto at = std::ranges::find(unanswered, job);
  if (at != unanswered.end()) unanswered.erase(at);
}

void Front::State::at(const AtLine& line) {
  if (recovering) {
    tell(record::RecoveredEvent{now_ms() - died_ms, died_why});
    recovering = false;
  }
  deaths = 0;
  hashes = line.hashes;
  done = done_before + line.done;
  // What comes again comes from here on.
  const std::uint64_t sure = done_before + line.checked;
  std::erase_if(found, [&](std::uint64_t nonce) { return current && nonce - current->start < sure; });
}

Status Front::State::hear_back(const BackLine& line) {
  if (const auto* job = std::get_if<BeginLine>(&line)) begin(*job);
  if (const auto* job = std::get_if<RefusedLine>(&line)) {
    if (resumed == job->job)
      give_up_job(false);
    else
      answered(job->job);
  }
  if (const auto* ended = std::get_if<EndedLine>(&line)) {
    if (preparing == ended->pair) preparing.reset();
    killers.erase(ended->pair.text());
    if (prepare_later && prepare_later->pair != ended->pair) {
      const PrepareCommand prepare = *prepare_later;
      prepare_later.reset();
      return send_prepare(prepare);
    }
  }
  if (const auto* where = std::get_if<AtLine>(&line)) at(*where);
  if (const auto* take = std::get_if<TakeLine>(&line)) {
    hand = *take;
    hand_since_ms = now_ms();
  }
  if (std::holds_alternative<DropLine>(line)) hand.reset();
  if (const auto* count = std::get_if<PreparesLine>(&line)) prepares = count->prepares;
  return {};
}

bool Front::State::tell_found(const record::FoundEvent& event) {
  // Nonces after the last chunk that was told of are done again by the next back.
  return !current || current->job != event.job || found.insert(event.nonce).second;
}

void Front::State::tell_done(record::DoneEvent event) {
  const bool of_current = current && current->job == event.job;
  if (of_current) {
    event.start = current->start;
    event.hashes += done_before;
  }
  tell(event);
  if (of_current) forget_job();
}

Status Front::State::hear_event(const std::string& line) {
  const auto event = record::parse_worker_event(line);
  if (!event || std::holds_alternative<record::UnknownEvent>(*event)) {
    if (!trim(line).empty())
      out.push(record::print(WorkerEvent(record::NoteEvent{"a kernel printed: " + line.substr(0, 200)})),
               true);
    return {};
  }
  if (std::holds_alternative<record::ReadyEvent>(*event)) {
    back_ready = true;
    const std::string& device = std::get<record::ReadyEvent>(*event).device;
    if (!told_ready) tell(*event);
    told_ready = true;
    if (address.empty()) address = device;
    if (device != address) return fail(Code::unavailable, "{} opened in place of {}", device, address);
    return resume();
  }
  if (std::holds_alternative<record::ByeEvent>(*event)) return {};
  if (const auto* find = std::get_if<record::FoundEvent>(&*event); find != nullptr && !tell_found(*find))
    return {};
  if (std::holds_alternative<record::StateEvent>(*event) && statuses > 0) --statuses;
  if (const auto* swap = std::get_if<record::SwapEvent>(&*event)) {
    const record::Pair pair{swap->epoch, swap->day};
    const bool again = resumed && swapped == pair;  // the same pair on another back: `recovered` tells of it
    swapped = pair;
    if (again) return {};
  }
  if (const auto* done_event = std::get_if<record::DoneEvent>(&*event)) {
    tell_done(*done_event);
    return {};
  }
  out.push(line, std::holds_alternative<record::RateEvent>(*event) ||
                     std::holds_alternative<record::StateEvent>(*event));
  return {};
}

Status Front::State::hear(const std::string& line) {
  if (!is_back_line(line)) return hear_event(line);
  // What a kernel printed may look like anything.
  if (const auto parsed = parse_back_line(line)) return hear_back(*parsed);
  return {};
}

bool Front::State::hung() { return hand && now_ms() - hand_since_ms > 1e3 * hand->limit_s; }

/// What the end of a back means: whom to blame, and how it is told.
void Front::State::bury(const ProcessEnd& end, bool was_hung) {
  const std::string what = was_hung ? fmt::format("hang: ran past {:g} s", hand->limit_s)
                                    : (end.signal != 0 ? "trap: " : "") + end.text();
  if (!recovering) died_ms = now_ms();
  recovering = true;
  ++deaths;
  died_why = what;
  const std::string said = last_line(end.standard_error);
  if (!said.empty()) died_why += " (" + said + ")";
  std::string variant = hand ? hand->name : "";
  std::string why = what;
  if (hand && hand->kind == static_cast<std::uint32_t>(race::Holding::lost)) {
    const std::size_t cut = variant.find('\n');
    why = cut == std::string::npos ? what : variant.substr(cut + 1);
    variant = variant.substr(0, cut);
  }
  const bool a_variant = hand && hand->kind != static_cast<std::uint32_t>(race::Holding::reference);
  if (a_variant && (was_hung || by_itself(end))) {
    died_why = fmt::format("'{}' ended the process: {}", variant, died_why);
    // Base in service serves whatever comes; a device on which it cannot is out of order, and that shows in
    // `deaths`. The base of a pair that is being prepared ends that prepare.
    const bool in_service = current && hand->pair == current->pair;
    if (variant != "base" || (!in_service && current)) fallen.push_back({hand->pair, variant, why});
    if (fallen.size() > 64) fallen.erase(fallen.begin());
  } else if (!hand && by_itself(end) && preparing) {
    blame_prepare(*preparing);
  }
  error(Code::unavailable, fmt::format("the worker's process ended: {}; another one goes on", died_why));
  hand.reset();
}

/// A prepare during which the process ended twice with nothing in hand is not asked for again.
void Front::State::blame_prepare(const record::Pair& pair) {
  const std::string key = pair.text();
  if (++killers[key] < 2) return;
  error(Code::unavailable, fmt::format("preparing {} is given up: the worker's process ended in it {} times",
                                       key, killers[key]));
  packs.erase(key);
  std::erase(packs_order, key);
  if (newest_prepare && newest_prepare->pair == pair) newest_prepare.reset();
  if (pending && pending->pair == pair) pending.reset();
}

void Front::State::pause_before_restart(std::stop_token stop) {
  if (deaths < 2) return;
  const double delay_s = std::min(options.first_delay_s * static_cast<double>(1u << std::min(deaths - 2, 20)),
                                  options.most_delay_s);
  const double until_ms = now_ms() + 1e3 * delay_s;
  while (now_ms() < until_ms && !stop.stop_requested()) {
    {
      const std::lock_guard lock(mutex);
      if (input_closed) return;
    }
    clock.sleep_ns(10'000'000);
  }
}

FrontEnd Front::State::end_orderly() {
  // What it still has to say.
  const double until_ms = now_ms() + 1e3 * options.quit_limit_s;
  while (now_ms() < until_ms) {
    const auto line = back->read_line(0.1);
    if (!line && line.error().code() == Code::timeout) continue;
    if (!line || !*line) break;
    if (!hear(**line)) break;
  }
  const ProcessEnd end = back->wait(std::max(1.0, 1e-3 * (until_ms - now_ms())));
  give_up_job(false);
  if (end.timed_out) tell(record::NoteEvent{"the worker's process did not end by itself and was killed"});
  tell(record::ByeEvent{});
  if (out.broken()) return {3, "the reader of the worker's events is gone"};
  return {};
}

/// `quit`, or the end of the input, wherever it stands among what was not yet passed on.
bool Front::State::wants_to_quit() {
  const std::lock_guard lock(mutex);
  return input_closed ||
         std::ranges::any_of(input, [](const std::string& line) { return trim(line) == "quit"; });
}

/// What a back that is gone had said before: who is to blame, records, finds.
void Front::State::hear_the_rest() {
  const double until_ms = now_ms() + 2000;
  while (now_ms() < until_ms) {
    const auto line = back->read_line(0.2);
    if (!line || !*line) return;
    static_cast<void>(hear(**line));
  }
}

/// Turns of hearing and telling until the back is gone (`dead`) or the worker is to end.
Result<FrontEnd> Front::State::serve_until_death(std::stop_token stop, bool& dead) {
  const double start_ms = now_ms();
  for (;;) {
    if (stop.stop_requested() || out.broken()) quitting = true;
    // A reader that does not read: the back waits in its own writes, and work with it. Nothing is lost.
    if (out.full() && !quitting) {
      clock.sleep_ns(10'000'000);
      hand_since_ms = now_ms();
      continue;
    }
    const auto line = back->read_line(kTurn_s);
    Status fine;
    if (line && *line) fine = hear(**line);
    const bool gone = (line && !*line) || (!line && line.error().code() != Code::timeout) || !fine;
    if (!gone && back_ready && fine) fine = take_input();
    if (!back_ready && !quitting && now_ms() - start_ms > 1e3 * kPatience_s && wants_to_quit()) {
      // Opening a device may take long, and there is nothing to end in order.
      back->kill();
      give_up_job(false);
      tell(record::ByeEvent{});
      return FrontEnd{};
    }
    if (quitting && (back_ready || stop.stop_requested())) {
      if (stop.stop_requested() || out.broken()) static_cast<void>(send("quit"));
      back->close_input();
      return end_orderly();
    }
    const bool was_hung = hung() || (!back_ready && now_ms() - start_ms > 1e3 * options.start_limit_s);
    if (!gone && fine && !was_hung) continue;
    if (!was_hung) {
      back->close_input();
      hear_the_rest();
    }
    const ProcessEnd end = was_hung ? back->kill() : back->wait(2);
    if (!told_ready) {
      const std::string said = last_line(end.standard_error);
      return FrontEnd{end.signal == 0 && end.exit_code > 0 ? end.exit_code : 3,
                      said.empty() ? "the worker's process ended before it was ready: " + end.text() : said};
    }
    bury(end, was_hung && hand.has_value());
    dead = true;
    return FrontEnd{};
  }
}

Result<FrontEnd> Front::State::run(std::stop_token stop) {
  for (;;) {
    if (const Status started = start_back(); !started) {
      if (!told_ready) return started.error();
      ++deaths;
      error(started.error().code(), started.error().text());
    } else {
      bool dead = false;
      FURLONG_TRY(const FrontEnd end, serve_until_death(stop, dead));
      back.reset();
      if (!dead) return end;
    }
    if (deaths >= options.most_deaths) {
      give_up_job(false);
      return FrontEnd{3, fmt::format("the worker's process ended {} times in a row: {}", deaths, died_why)};
    }
    pause_before_restart(stop);
    bool ended = stop.stop_requested();
    {
      const std::lock_guard lock(mutex);
      ended = ended || (input_closed && input.empty());
    }
    if (ended) {
      give_up_job(false);
      tell(record::ByeEvent{});
      return FrontEnd{};
    }
  }
}

Front::Front(Processes& processes, Clock& clock, const FrontOptions& options,
             std::function<Status(std::string_view)> write)
    : state_(std::make_unique<State>(processes, clock, options, std::move(write))) {}
Front::~Front() = default;

void Front::submit_line(std::string_view line) {
  const std::lock_guard lock(state_->mutex);
  state_->input.emplace_back(line);
}

void Front::close_input() {
  const std::lock_guard lock(state_->mutex);
  state_->input_closed = true;
}

Result<FrontEnd> Front::run(std::stop_token stop) {
  Result<FrontEnd> end = state_->run(std::move(stop));
  if (end && !end->why.empty() && state_->told_ready) state_->error(Code::unavailable, end->why);
  state_->out.drain(kDrain_s);
  return end;
}

}  // namespace furlong::worker
