#include <unistd.h>

#include <algorithm>
#include <deque>
#include <mutex>
#include <thread>

#include "apps/furlong/agent_session.h"
#include "apps/furlong/commands.h"
#include "apps/furlong/session.h"
#include "furlong/base/os/clock.h"
#include "furlong/base/os/interrupt.h"
#include "furlong/base/os/process.h"
#include "furlong/base/text.h"
#include "furlong/fleet/agent/children.h"
#include "furlong/fleet/agent/supervisor.h"

namespace furlong::app {
namespace {

constexpr std::size_t lines_shown = 14;

/// Gathers what the agent tells, and shows it: every line as it comes, or (on a terminal) the last ones under
/// a head.
class Show {
 public:
  explicit Show(bool terminal) : terminal_(terminal), begin_ns_(system_clock().now_ns()) {}

  void line(const std::string& text) {
    const std::scoped_lock lock(mutex_);
    add(text);
  }
  void event(const record::WorkerEvent& event) {
    const std::scoped_lock lock(mutex_);
    std::visit([&](const auto& each) { on(each); }, event);
  }
  void draw(const fleet::AgentStatus& status) {
    if (!terminal_) return;
    const std::scoped_lock lock(mutex_);
    std::string text = drawn_ == 0 ? "" : fmt::format("\033[{}A", drawn_);
    drawn_ = 0;
    const auto put = [&](const std::string& row) {
      // Cut, since a row that wraps would not be where the next drawing looks for it.
      text += "\033[2K" + row.substr(0, 118) + "\n";
      ++drawn_;
    };
    for (const fleet::WorkerView& view : status.devices) put(head(view));
    put(status.next_in_s ? fmt::format("next boundary in {:.0f} s; Ctrl-C ends", *status.next_in_s) : "");
    for (const std::string& each : lines_) put(each);
    print_out(text);
    std::fflush(stdout);
  }
  int swaps() {
    const std::scoped_lock lock(mutex_);
    return swaps_;
  }
  std::string summary() {
    const std::scoped_lock lock(mutex_);
    std::string text = fmt::format(
        "\nswaps      {} (the first is the start), {} of the others prepared ahead\n", swaps_, prepared_);
    if (!gaps_ms_.empty()) {
      std::sort(gaps_ms_.begin(), gaps_ms_.end());
      text += fmt::format("gaps       median {:.2f} ms, longest {:.2f} ms ({:.2f} chunks)\n",
                          gaps_ms_[gaps_ms_.size() / 2], gaps_ms_.back(), longest_chunks_);
    }
    text += fmt::format("races      {}\nfinds      {} (each verified on the host by the reference)\n", races_,
                        finds_);
    return text;
  }

 private:
  static std::string head(const fleet::WorkerView& view) {
    return fmt::format("{} {}: {} {} {} at {}{}, swaps {}, finds {}", view.device.address, view.device.label,
                       view.state, view.pair ? view.pair->text() : "", view.variant,
                       view.mhs ? fmt::format("{:.3g} MH/s", *view.mhs) : "-",
                       view.power_w ? fmt::format(", {:.0f} W", *view.power_w) : "", view.swaps, view.finds);
  }
  void add(const std::string& text) {
    const std::string row = fmt::format(
        "{:7.1f} s  {}", static_cast<double>(system_clock().now_ns() - begin_ns_) * 1e-9, one_line(text));
    if (!terminal_) {
      print_out(row + "\n");
      std::fflush(stdout);
      return;
    }
    lines_.push_back(row);
    if (lines_.size() > lines_shown) lines_.pop_front();
  }

  void on(const record::ReadyEvent& event) {
    add(fmt::format("worker ready on {} {}, driver {}", event.device, event.card, event.driver));
  }
  void on(const record::PreparedEvent& event) {
    add(fmt::format("prepared {}: {} serves it, after {:.1f} s", event.pair.text(), event.variant,
                    event.ms * 1e-3));
  }
  void on(const record::RecordEvent& event) {
    ++races_;
    if (const auto record = record::parse_record(event.json, "the record")) add(fleet::race_summary(*record));
  }
  void on(const record::RateEvent& event) {
    if (!terminal_)
      add(fmt::format("rate {:.4g} MH/s with {}, {} hashes", event.mhs, event.variant, event.hashes));
  }
  void on(const record::FoundEvent& event) {
    ++finds_;
    add(fmt::format("found nonce {:016x}, hash {:016x}: verified", event.nonce, event.hash));
  }
  void on(const record::SwapEvent& event) {
    ++swaps_;
    add(fmt::format("swap to {} day {}, variant {}: gap {:.2f} ms ({:.2f} chunks){}", event.epoch, event.day,
                    event.variant, event.gap_ms, event.gap_chunks, event.prepared ? "" : ", not prepared"));
    if (swaps_ == 1) return;  // the start: there was nothing before it
    prepared_ += event.prepared ? 1 : 0;
    gaps_ms_.push_back(event.gap_ms);
    longest_chunks_ = std::max(longest_chunks_, event.gap_chunks);
  }
  void on(const record::LostEvent& event) {
    add(fmt::format("preparing {} cost the work {:.0f} ms of {:.1f} s, {:.0f} ms of it pauses",
                    event.pair.text(), event.lost_ms, event.over_ms * 1e-3, event.paused_ms));
  }
  void on(const record::RevertedEvent& event) {
    add(fmt::format("{} reverted to base: {}", event.variant, event.why));
  }
  void on(const record::RecoveredEvent& event) {
    add(fmt::format("device back after {:.0f} ms: {}", event.ms, event.why));
  }
  void on(const record::NoteEvent& event) { add("note: " + event.text); }
  void on(const record::ErrorEvent& event) {
    add(fmt::format("error {}: {}", code_name(event.code), event.message));
  }
  template <class Other>
  void on(const Other&) {}

  const bool terminal_;
  const std::int64_t begin_ns_;
  std::mutex mutex_;
  std::deque<std::string> lines_;
  int drawn_ = 0;
  int swaps_ = 0, prepared_ = 0, races_ = 0, finds_ = 0;
  std::vector<double> gaps_ms_;
  double longest_chunks_ = 0;
};

/// The first card, else the first device.
Result<fleet::DeviceInfo> best_device(const fleet::AgentConfig& config, const std::string& asked) {
  FURLONG_TRY(const auto there, fleet::list_devices(system_processes(), config.furlong));
  if (asked.empty()) {
    const auto card =
        std::find_if(there.begin(), there.end(), [](const auto& each) { return !each.is_host_cpu; });
    return card == there.end() ? there.front() : *card;
  }
  fleet::AgentConfig named = config;
  named.devices = {{.address = asked}};
  FURLONG_TRY(const auto chosen, fleet::choose_devices(named, there));
  return chosen.front();
}

Result<fleet::AgentConfig> demo_config(const Arguments& arguments, const std::filesystem::path& data) {
  fleet::AgentConfig config;
  config.data = data;
  FURLONG_TRY(config.furlong, own_executable());
  if (arguments.given("--worker")) config.furlong = arguments.value("--worker");
  FURLONG_TRY(const fleet::DeviceInfo device, best_device(config, arguments.value("--device")));
  config.devices = {{.address = device.address}};
  FURLONG_TRY(config.schedule.epoch_s,
              arguments.integer("--epoch-s", device.is_host_cpu ? 60 : 20, 2, 86'400));
  config.schedule.lead = std::max<std::int64_t>(1, config.schedule.epoch_s * 3 / 4);
  config.schedule.seed = "furlong agent demo";
  config.work.geometry = "small";
  // A find every few seconds: a processor does about a million hashes a second, a card some hundred millions.
  config.work.target = device.is_host_cpu ? 1ull << 41 : 1ull << 34;
  config.work.race_budget_s =
      std::min(static_cast<double>(config.schedule.epoch_s) / 2, fleet::most_race_budget_s);
  config.work.arguments = {"--rate-every-s", "2"};
  return config;
}

Result<int> run(const Arguments& arguments) {
  FURLONG_TRY(const std::int64_t epochs, arguments.integer("--epochs", 0, 0, 1'000'000));
  FURLONG_TRY(const auto folder, TemporaryFolder::make("furlong-demo"));
  FURLONG_TRY(const fleet::AgentConfig config, demo_config(arguments, folder.path()));
  const std::stop_token interrupted = stop_on_interrupt();
  Show show(isatty(STDOUT_FILENO) == 1);
  fleet::AgentSurroundings with = agent_surroundings(nullptr);
  with.say = [&](LogLevel level, std::string_view text) {
    if (level >= LogLevel::warning) show.line(std::string(text));
  };
  with.say_plain = {};
  with.on_event = [&](const fleet::DeviceInfo&, const record::WorkerEvent& event) { show.event(event); };
  FURLONG_TRY(const auto agent, fleet::Agent::open(config, with, interrupted));
  show.line(fmt::format("{}: a new program every {} s, prepared {} s ahead", config.devices.front().address,
                        config.schedule.epoch_s, config.schedule.lead));
  std::stop_source stop;
  Status ended;
  {
    const std::jthread work([&] { ended = agent->run(stop.get_token()); });
    // --epochs counts boundaries that were crossed; the first swap is the start.
    while (!interrupted.stop_requested() && (epochs == 0 || show.swaps() <= epochs)) {
      show.draw(agent->status());
      system_clock().sleep_ns(200'000'000);
    }
    stop.request_stop();
  }
  FURLONG_CHECK(ended);
  show.draw(agent->status());
  print_out(show.summary());
  return exit_ok;
}

}  // namespace

CommandSpec agent_demo_command() {
  return {
      .name = "agent demo",
      .summary =
          "Watch an agent on this machine: a new program every few seconds, prepared, raced and swapped to.",
      .description =
          "Needs no configuration: a data folder that is removed at the end, the best device here, the "
          "lottery in its "
          "small geometry, short epochs by the clock. Shows the rate, each preparation with its race, each "
          "swap with "
          "its gap, and the finds, every one verified. Ctrl-C ends it and leaves nothing behind; that is "
          "exit code 0, for without --epochs "
          "there is no other end.",
      .positionals = {},
      .options = {{.name = "--device",
                   .value_name = "D",
                   .help = "Default: the first card, else the first device (furlong devices).",
                   .complete = "device"},
                  {.name = "--epoch-s",
                   .value_name = "N",
                   .help = "Length of an epoch in seconds. Default 20; 60 on the host's processor, where the "
                           "race and the work share it."},
                  {.name = "--epochs",
                   .value_name = "N",
                   .help = "End after so many boundaries. Default: run on."},
                  {.name = "--worker",
                   .value_name = "FILE",
                   .help = "The furlong program to start as worker, in place of this one.",
                   .complete = "file"}},
      .examples = {{"furlong agent demo", ""},
                   {"furlong agent demo --device cuda:0 --epoch-s 30 --epochs 3", ""}},
      .run = run};
}

}  // namespace furlong::app
