#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include "apps/furlong/backends.h"
#include "apps/furlong/commands.h"
#include "apps/furlong/session.h"
#include "furlong/base/json.h"
#include "furlong/base/os/interrupt.h"
#include "furlong/base/os/process.h"
#include "furlong/worker/back_line.h"
#include "furlong/worker/front.h"
#include "furlong/worker/server.h"

namespace furlong::app {
namespace {

constexpr std::size_t kMostLine = 64u << 10;

/// One line with its newline, whole, to a descriptor.
Status write_line(int descriptor, std::string line) {
  line += '\n';
  std::size_t done = 0;
  while (done < line.size()) {
    const ssize_t count = ::write(descriptor, line.data() + done, line.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0)
      return fail(Code::unavailable, "the reader of the worker's events is gone: {}", std::strerror(errno));
    done += static_cast<std::size_t>(count);
  }
  return {};
}

/// Lines of standard input, on a thread that may wait there for ever.
void read_lines(std::function<void(std::string_view)> line, std::function<void()> end) {
  std::thread([line = std::move(line), end = std::move(end)] {
    std::string text;
    bool too_long = false;
    char byte = 0;
    std::streambuf& input = *std::cin.rdbuf();
    for (int c = input.sbumpc(); c != std::char_traits<char>::eof(); c = input.sbumpc()) {
      byte = static_cast<char>(c);
      if (byte == '\n') {
        line(text);
        text.clear();
        too_long = false;
      } else if (text.size() < kMostLine) {
        text += byte;
      } else if (!std::exchange(too_long, true)) {
        text = "a-line-longer-than-64-KiB " + text.substr(0, 40);  // answered as an unknown command
        text.resize(kMostLine, ' ');
      }
    }
    if (!text.empty()) line(text);
    end();
  }).detach();
}

Result<worker::Options> worker_options(const Arguments& arguments) {
  worker::Options options;
  options.race = arguments.value("--race", options.race);
  options.variant = arguments.value("--variant");
  FURLONG_TRY(options.race_budget_s, arguments.number("--race-budget-s", 120, 0.1, 540));
  FURLONG_TRY(options.max_pause_ms, arguments.number("--max-pause-ms", 3600, 0, 1e9));
  FURLONG_TRY(options.horizon_s, arguments.number("--horizon", 0, 0, 1e9));
  FURLONG_TRY(const double threshold, arguments.number("--threshold", 0.5, 0, 50));
  options.threshold = threshold / 100;
  options.classic = arguments.flag("--classic");
  FURLONG_TRY(options.chunk_ms, arguments.number("--chunk-ms", 50, 1, 10'000));
  FURLONG_TRY(options.rate_every_s, arguments.number("--rate-every-s", 10, 0.01, 3600));
  FURLONG_TRY(options.shadow_every_s, arguments.number("--shadow-every-s", 1, 0, 3600));
  FURLONG_TRY(options.hang_s, arguments.number("--hang-s", 20, 0.1, 3600));
  FURLONG_CHECK(arguments.integer("--memory-mib", 0, 0, 1 << 30));
  options.records = arguments.value("--records");
  options.packs = arguments.value("--packs");
  options.allow_unsigned = arguments.flag("--allow-unsigned");
  if (const char* file = std::getenv("FURLONG_TUNING_FILE")) options.tuning_file = file;
  const char* emulated = std::getenv("FURLONG_EMU");
  options.emulated = emulated != nullptr && std::string_view(emulated) == "1";
  FURLONG_TRY(const std::int64_t seed, arguments.integer("--seed", 1, 0));
  options.seed = static_cast<std::uint64_t>(seed);
  if (options.race != "off" && options.race.empty())
    return fail(Code::invalid, "--race takes off, catalogue, or names of variants");
  return options;
}

// --- the front

Result<int> run_front(const Arguments& arguments) {
  FURLONG_CHECK(worker_options(arguments));  // what is wrong with them is told before anything begins
  FURLONG_TRY(const auto executable, own_executable());
  worker::FrontOptions options;
  options.back = {executable.string(), "worker-back"};
  for (const auto& [name, values] : arguments.options) {
    if (name == "--serve") continue;
    for (const std::string& value : values) {
      options.back.push_back(name);
      if (!value.empty()) options.back.push_back(value);
    }
  }
  const std::stop_token stop = stop_on_interrupt();
  worker::Front front(system_processes(), system_clock(), options,
                      [](std::string_view line) { return write_line(STDOUT_FILENO, std::string(line)); });
  read_lines([&](std::string_view line) { front.submit_line(line); }, [&] { front.close_input(); });
  FURLONG_TRY(const worker::FrontEnd end, front.run(stop));
  if (!end.why.empty()) print_err("furlong worker: " + end.why + "\n");
  std::fflush(stderr);
  // The thread that reads standard input may wait there for ever.
  std::_Exit(stop.stop_requested() ? 128 + interrupt_signal() : end.code);
}

// --- the back

/// The protocol's own end of standard output; kernels that print get standard error.
class ProtocolOutput {
 public:
  ProtocolOutput() {
    descriptor_ = ::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
    ::dup2(STDERR_FILENO, STDOUT_FILENO);
  }
  void write(std::string line) {
    const std::lock_guard lock(mutex_);
    if (!write_line(descriptor_, std::move(line))) std::_Exit(exit_failed);  // the front is gone
  }

 private:
  std::mutex mutex_;
  int descriptor_ = -1;
};

class LineHand : public Hand {
 public:
  LineHand(ProtocolOutput& output, record::Pair pair) : output_(output), pair_(std::move(pair)) {}
  void take(std::uint32_t kind, std::string_view name, double limit_s) noexcept override {
    output_.write(print(worker::BackLine(worker::TakeLine{pair_, kind, limit_s, std::string(name)})));
  }
  void drop() noexcept override { output_.write(print(worker::BackLine(worker::DropLine{}))); }
  void reach(std::uint32_t) noexcept override {}

 private:
  ProtocolOutput& output_;
  record::Pair pair_;
};

/// Hands by pair: few are alive at a time.
class Hands {
 public:
  explicit Hands(ProtocolOutput& output) : output_(output) {}
  Hand* of(const record::Pair& pair) {
    const std::lock_guard lock(mutex_);
    auto& hand = hands_[pair.text()];
    if (!hand) hand = std::make_unique<LineHand>(output_, pair);
    return hand.get();
  }

 private:
  ProtocolOutput& output_;
  std::mutex mutex_;
  std::map<std::string, std::unique_ptr<LineHand>> hands_;
};

Result<int> run_back(const Arguments& arguments) {
  FURLONG_TRY(worker::Options options, worker_options(arguments));
  FURLONG_TRY(const std::int64_t prepares, arguments.integer("--prepares-before", 0, 0));
  FURLONG_TRY(const std::int64_t hashes, arguments.integer("--hashes-before", 0, 0));
  options.prepares_before = static_cast<std::uint64_t>(prepares);
  options.hashes_before = static_cast<std::uint64_t>(hashes);
  device::Registry registry;
  add_backends(registry);
  const std::string address = arguments.value("--device", "auto");
  if (address.starts_with("sim"))
    return fail(Code::invalid, "a worker serves real devices; a simulated one has no time of its own");
  FURLONG_TRY(const auto device, open_device(registry, address));
  FURLONG_TRY(const std::int64_t memory_mib, arguments.integer("--memory-mib", 0, 0, 1 << 30));
  if (memory_mib > 0) device->set_memory_limit(static_cast<std::uint64_t>(memory_mib) << 20);
  FURLONG_TRY(race::Quarantine quarantine, open_quarantine());
  FURLONG_TRY(const auto executable, own_executable());

  ProtocolOutput output;
  Hands hands(output);
  worker::Environment environment;
  environment.device = device.get();
  environment.clock = &system_clock();
  environment.quarantine = &quarantine;
  environment.files = &system_files();
  environment.processes = &system_processes();
  environment.trial_command = {executable.string(), "trial"};
  environment.trial_program = [&](const std::string& pack, const std::string& language) {
    program::ProgramRequest request;
    request.what = pack;
    Json json = program_to_json(request, {}, language);
    json["device"] = device->facts().address();
    return json_line(json);
  };
  environment.choose_language = [&](const program::Program& program) {
    return choose_language(program, device->facts());
  };
  environment.emit = [&](const record::WorkerEvent& event) { output.write(record::print(event)); };
  const auto tell = [&](const worker::BackLine& line) { output.write(worker::print(line)); };
  environment.begun = [=](const record::JobCommand& job) { tell(worker::BeginLine{job}); };
  environment.refused = [=](const record::JobCommand& job) { tell(worker::RefusedLine{job}); };
  environment.progress = [=](std::uint64_t done, std::uint64_t checked, std::uint64_t all) {
    tell(worker::AtLine{done, checked, all});
  };
  environment.prepares = [=](std::uint64_t count) { tell(worker::PreparesLine{count}); };
  environment.prepare_ended = [=](const record::Pair& pair) { tell(worker::EndedLine{pair}); };
  environment.hand = [&](const record::Pair& pair) { return hands.of(pair); };
  worker::Server server(environment, options);
  read_lines(
      [&](std::string_view line) {
        const auto back_line = worker::is_back_line(line)
                                   ? worker::parse_back_line(line)
                                   : Result<worker::BackLine>(Error(Code::invalid, "a command"));
        if (!back_line) return server.submit_line(line);
        if (const auto* fallen = std::get_if<worker::FallenLine>(&*back_line))
          server.add_fallen({fallen->pair, {fallen->variant, fallen->why, {}}});
      },
      [&] { server.submit(record::QuitCommand{}); });
  const Status served = server.serve();
  if (!served) print_err("furlong worker: " + served.error().text() + "\n");
  std::fflush(stderr);
  std::_Exit(served ? exit_ok : exit_failed);
}

std::vector<OptionSpec> worker_option_specs() {
  return {
      {.name = "--device",
       .value_name = "D",
       .help = "Device to own: cuda:0, opencl:0, host. Default: the best one here.",
       .complete = "device"},
      {.name = "--race",
       .value_name = "V",
       .help = "What a prepare races: catalogue (default), off, or names joined by commas; a pack that has "
               "no such "
               "variant is refused when it is prepared."},
      {.name = "--race-budget-s",
       .value_name = "S",
       .help = "Time for a race from the moment base is ready. Default 120, at most 540."},
      {.name = "--max-pause-ms",
       .value_name = "MS",
       .help = "A race ends, decided or not, before a heat with which its gates and windows would have "
               "paused the "
               "work in hand for longer. Default 3600, 0.1% of an hour; 0: no cap."},
      {.name = "--horizon",
       .value_name = "S",
       .help = "Time that a winner would serve: a race ends when what is left to win no longer pays for the "
               "pause."},
      {.name = "--threshold", .value_name = "PCT", .help = "By how much a winner beats base. Default 0.5."},
      {.name = "--classic",
       .value_name = "",
       .help = "The plain rule: each variant once for 2 s, the work in hand paused meanwhile."},
      {.name = "--variant",
       .value_name = "NAME",
       .help = "This variant is built and gated and serves; nothing is timed."},
      {.name = "--records",
       .value_name = "FILE",
       .help = "Append each race record to this JSON-lines file before it is told.",
       .complete = "file"},
      {.name = "--packs",
       .value_name = "FOLDER",
       .help = "Where the pack of a pair that nobody prepared may lie, as <epoch>-<day>.",
       .complete = "folder"},
      {.name = "--allow-unsigned",
       .value_name = "",
       .help = "Serve packs without a trusted signature. A pack is code and runs as you."},
      {.name = "--chunk-ms", .value_name = "MS", .help = "Length of a chunk of work. Default 50."},
      {.name = "--rate-every-s", .value_name = "S", .help = "Time between two rate events. Default 10."},
      {.name = "--shadow-every-s",
       .value_name = "S",
       .help = "Time between two shadow checks of live work. Default 1."},
      {.name = "--hang-s",
       .value_name = "S",
       .help = "A chunk that takes longer than this, beside ten times the one before it, is taken for hung. "
               "Default 20."},
      {.name = "--memory-mib",
       .value_name = "M",
       .help = "The most device memory to use. Where two datasets have no room, the worker swaps late and "
               "says so. "
               "Default: what the device has."},
      {.name = "--seed", .value_name = "N", .help = "Of the races' orders and inputs. Default 1."},
  };
}

}  // namespace

CommandSpec worker_command() {
  std::vector<OptionSpec> options = worker_option_specs();
  options.push_back({.name = "--serve",
                     .value_name = "",
                     .help = "Serve commands from standard input: what a worker does with or without it."});
  return {
      .name = "worker",
      .summary =
          "Own one device: serve a lottery program on it and have the next one built, checked and raced "
          "before its hour.",
      .description =
          "Commands on standard input, events on standard output, one line each "
          "(docs/formats/worker-protocol.md): prepare, job, status, stop, quit. The end of standard input is "
          "quit. FURLONG_TUNING_FILE names a tuning file, read again at every prepare; FURLONG_EMU=1 runs "
          "CUDA "
          "text on the host without a race.\n"
          "What runs on the device runs in a process of its own: one that a kernel ends is replaced, without "
          "that kernel, and work goes on where it was.\n"
          "Exit 0: orderly end; 2: bad usage; 3: the device does not serve; 4: no device.",
      .positionals = {},
      .options = std::move(options),
      .examples = {{"furlong worker --device cuda:0 --serve", ""},
                   {"furlong worker --device host --race off --packs packs --allow-unsigned", ""}},
      .run = run_front};
}

CommandSpec worker_back_command() {
  std::vector<OptionSpec> options = worker_option_specs();
  options.push_back(
      {.name = "--prepares-before", .value_name = "N", .help = "Prepares of earlier processes."});
  options.push_back({.name = "--hashes-before", .value_name = "N", .help = "Hashes of earlier processes."});
  return {.name = "worker-back",
          .summary = "The process of a worker that owns the device (started by it).",
          .options = std::move(options),
          .hidden = true,
          .run = run_back};
}

}  // namespace furlong::app
