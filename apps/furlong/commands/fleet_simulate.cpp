#include <algorithm>

#include "apps/furlong/commands.h"
#include "apps/furlong/fleet_records.h"
#include "apps/furlong/outputs.h"
#include "apps/furlong/session.h"
#include "furlong/base/json.h"
#include "furlong/base/os/clock.h"
#include "furlong/base/os/file.h"
#include "furlong/base/os/interrupt.h"
#include "furlong/base/os/stream.h"
#include "furlong/base/text.h"
#include "furlong/fleet/simulate/feed.h"

namespace furlong::app {
namespace {

constexpr std::size_t largest_token_file = 16u << 20;
constexpr std::int64_t hour_us = 3'600'000'000;

/// "a,b" and repeated options alike.
std::vector<std::string> names(const Arguments& arguments, const char* option) {
  std::vector<std::string> all;
  for (const std::string& value : arguments.values(option))
    for (const std::string& name : split(value, ','))
      if (!trim(name).empty()) all.emplace_back(trim(name));
  return all;
}

Status read_counts(const Arguments& arguments, fleet::SimulateOptions& options) {
  for (const auto& [option, into] : {std::pair<const char*, std::size_t*>{"--machines", &options.machines},
                                     {"--liars", &options.liars},
                                     {"--clones", &options.clones},
                                     {"--shared-cards", &options.shared_cards},
                                     {"--clock-off", &options.clocks_off},
                                     {"--canaries", &options.canaries},
                                     {"--regressions", &options.regressions}}) {
    FURLONG_TRY(const std::int64_t value,
                arguments.integer(option, static_cast<std::int64_t>(*into), 0, 1'000'000));
    *into = static_cast<std::size_t>(value);
  }
  return {};
}

Status read_shares(const Arguments& arguments, fleet::SimulateOptions& options) {
  for (const auto& [option, into] : {std::pair<const char*, double*>{"--tuned", &options.tuned_share},
                                     {"--pinned", &options.pinned_share},
                                     {"--guests", &options.guest_share}}) {
    FURLONG_TRY(const double percent, arguments.number(option, 100 * *into, 0, 100));
    *into = percent / 100;
  }
  return {};
}

Result<fleet::SimulateOptions> simulate_options(const Arguments& arguments) {
  fleet::SimulateOptions options;
  FURLONG_TRY(const std::int64_t seed, arguments.integer("--seed", 1, 0));
  options.seed = static_cast<std::uint64_t>(seed);
  FURLONG_TRY(options.days, arguments.number("--days", options.days, 0.001, 36'500));
  FURLONG_TRY(options.epoch_s, arguments.number("--epoch-s", options.epoch_s, 1, 86'400));
  FURLONG_TRY(options.noise, arguments.number("--noise", options.noise, 0, 1000));
  options.capped = !arguments.flag("--no-caps");
  options.cards = names(arguments, "--cards");
  options.programs = names(arguments, "--programs");
  FURLONG_CHECK(read_counts(arguments, options));
  FURLONG_CHECK(read_shares(arguments, options));
  const std::string from = arguments.value("--from");
  if (from == "now") {
    const std::int64_t begin_us =
        system_clock().wall_us() - static_cast<std::int64_t>(options.days * 24 * hour_us);
    options.from_us = begin_us - begin_us % hour_us;
    if (options.from_us < fleet::earliest_simulated_us)
      return fail(Code::invalid, "--days: {:g} days before now no fleet had begun; 1990 is the earliest",
                  options.days);
  } else if (!from.empty()) {
    const auto time = fleet::parse_time_argument(from);
    if (!time) return fail(Code::invalid, "--from: {}", time.error().text());
    options.from_us = *time;
  }
  return options;
}

struct Ended {
  fleet::FeedCounts counts;
  std::string where;
};

/// JSON lines, as they happen; machines that share a key share it there as well.
Result<Ended> to_file(const Arguments& arguments, fleet::Simulation& simulation,
                      const fleet::FeedProgress& progress, const std::stop_token& stop) {
  const std::string name = arguments.value("--out");
  std::optional<FileWriter> file;
  if (name != "-") {
    FURLONG_TRY(file, FileWriter::open(name));
  }
  Ended ended{.counts = {}, .where = name == "-" ? "standard output" : name};
  record::RaceRecord record;
  while (!stop.stop_requested() && simulation.next(record)) {
    const std::string line = record::to_line(record) + "\n";
    if (file)
      FURLONG_CHECK(file->write(line));
    else
      print_out(line);
    ++ended.counts.records;
    if (ended.counts.records % 256 == 0) progress(ended.counts, simulation.progress());
  }
  if (file && !stop.stop_requested()) FURLONG_CHECK(file->commit());
  if (file && stop.stop_requested()) ended.counts.records = 0;
  return ended;
}

Result<Ended> to_store(const Arguments& arguments, fleet::Simulation& simulation,
                       const fleet::FeedProgress& progress, const std::stop_token& stop) {
  FURLONG_TRY(const auto store, open_store(arguments, {.create = true}));
  FURLONG_TRY(const auto counts, fleet::feed_store(simulation, *store, progress, stop));
  return Ended{.counts = counts, .where = fleet::shown_url(arguments.value("--store"))};
}

Result<Ended> to_hub(const Arguments& arguments, fleet::Simulation& simulation,
                     const fleet::FeedProgress& progress, const std::stop_token& stop) {
  fleet::HubFeed feed{.url = arguments.value("--hub"), .ca_file = arguments.value("--ca-file"), .tokens = {}};
  while (feed.url.ends_with('/')) feed.url.pop_back();
  if (!feed.url.starts_with("http://") && !feed.url.starts_with("https://"))
    return fail(Code::invalid, "--hub: '{}' is no address as http://127.0.0.1:8470", one_line(feed.url));
  if (feed.url.substr(0, feed.url.find('/', feed.url.find("://") + 3)).find('@') != std::string::npos)
    return fail(Code::invalid,
                "--hub: a hub knows machines by their keys; leave user and password out of its address");
  if (!feed.ca_file.empty() && !std::filesystem::is_regular_file(feed.ca_file))
    return fail(Code::invalid, "--ca-file: {}: there is no such file", feed.ca_file.string());
  FURLONG_TRY(feed.records_per_s, arguments.number("--rate", 0, 0, 1e9));
  FURLONG_TRY(const std::int64_t senders, arguments.integer("--senders", 4, 1, 256));
  FURLONG_TRY(const std::int64_t batch, arguments.integer("--batch", 24, 1, 10'000));
  feed.senders = static_cast<int>(senders);
  feed.most_records = static_cast<std::size_t>(batch);
  if (arguments.given("--token-file")) {
    FURLONG_TRY(const std::string text,
                as_input(system_files().read(arguments.value("--token-file"), largest_token_file)));
    for (const std::string& line : split(text, '\n'))
      if (!trim(line).empty()) feed.tokens.emplace_back(trim(line));
  }
  FURLONG_TRY(const auto counts,
              fleet::feed_hub(simulation, feed, fleet::open_curl, system_clock(), progress, stop));
  return Ended{.counts = counts, .where = feed.url};
}

void say(const Arguments& arguments, const fleet::Simulation& simulation, const Ended& ended, double seconds,
         bool interrupted) {
  const fleet::FeedCounts& counts = ended.counts;
  std::size_t cards = 0;
  for (const fleet::SimulatedMachine& machine : simulation.machines()) cards += machine.slots.size();
  if (!arguments.flag("--json")) {
    // Standard output may be where the records went.
    print_err(fmt::format("{} of {} with {} in {}{}\n", count_text(counts.records, "record"),
                          count_text(simulation.machines().size(), "machine"), count_text(cards, "card"),
                          ended.where, interrupted ? "; interrupted" : ""));
    if (counts.batches > 0)
      print_err(fmt::format("{}: {} new, {} duplicate, {} refused; {} machines enrolled, {} retries\n",
                            fmt::format("{} batches", counts.batches), counts.accepted, counts.duplicate,
                            counts.refused, counts.machines, counts.retries));
    if (!counts.last_refusal.empty()) print_err("the last refused: " + counts.last_refusal + "\n");
    return;
  }
  const std::string text = json_pretty(Json{{"schema", 1},
                                            {"kind", "fleet-simulate"},
                                            {"seed", simulation.options().seed},
                                            {"machines", simulation.machines().size()},
                                            {"cards", cards},
                                            {"records", counts.records},
                                            {"batches", counts.batches},
                                            {"accepted", counts.accepted},
                                            {"duplicate", counts.duplicate},
                                            {"refused", counts.refused},
                                            {"enrolled", counts.machines},
                                            {"retries", counts.retries},
                                            {"seconds", seconds},
                                            {"interrupted", interrupted}});
  arguments.value("--out") == "-" ? print_err(text) : print_out(text);
}

Result<int> run(const Arguments& arguments) {
  const std::stop_token stop = stop_on_interrupt();
  const int outputs = arguments.given("--out") + arguments.given("--store") + arguments.given("--hub");
  if (outputs != 1)
    return fail(Code::invalid, "--out FILE, --store URL or --hub URL: one of the three, {} were given",
                outputs);
  FURLONG_CHECK(can_write_outputs(arguments, {"--out", "--truth"}));
  FURLONG_TRY(const fleet::SimulateOptions options, simulate_options(arguments));
  FURLONG_TRY(const auto simulation, fleet::Simulation::make(options));
  // Before the races: what is known does not hang on how far they come.
  if (arguments.given("--truth"))
    FURLONG_CHECK(system_files().write_atomic(arguments.value("--truth"), fleet::truth_text(*simulation)));
  RecordsProgress line(arguments.value("--out") == "-");
  const fleet::FeedProgress progress = [&](const fleet::FeedCounts& counts, double share) {
    line.show(count_text(counts.records, "record"), share);
  };
  const std::int64_t begin_ns = system_clock().now_ns();
  const auto feed = arguments.given("--out") ? to_file : arguments.given("--store") ? to_store : to_hub;
  FURLONG_TRY(const Ended ended, feed(arguments, *simulation, progress, stop));
  line.clear();
  say(arguments, *simulation, ended, static_cast<double>(system_clock().now_ns() - begin_ns) * 1e-9,
      stop.stop_requested());
  return stop.stop_requested() ? 128 + interrupt_signal() : exit_ok;
}

std::vector<OptionSpec> options() {
  const auto count = [](const char* name, const char* help) {
    return OptionSpec{.name = name, .value_name = "N", .help = help};
  };
  const auto percent = [](const char* name, const char* help) {
    return OptionSpec{.name = name, .value_name = "P", .help = help};
  };
  return {
      count("--machines", "Machines, those that are wrong somehow among them. Default 50."),
      {.name = "--days", .value_name = "D", .help = "How long they race. Default 7."},
      {.name = "--seed", .value_name = "S", .help = "Everything follows from it. Default 1."},
      {.name = "--from",
       .value_name = "T",
       .help = "Time of the first race, or now: the last one is then just over. Default 2026-03-01."},
      {.name = "--cards",
       .value_name = "C",
       .help = "Only these models. Default: all.",
       .repeatable = true,
       .choices = fleet::simulated_models()},
      {.name = "--programs",
       .value_name = "P",
       .help = "lottery, gemv or both. Default: both.",
       .repeatable = true},
      count("--liars",
            "Machines that praise a variant, name rates that their card cannot reach, or slow base down."),
      count("--clones", "Boxes with the key of another."),
      count("--shared-cards", "Machines with the cards of another under their own key."),
      count("--clock-off", "Machines whose clock is wrong, by hours or by years."),
      count("--canaries", "Machines of the canary group."),
      count("--regressions", "Variants that get slower halfway, with a driver or without."),
      percent("--tuned", "Percent of the machines that race in the order of a tuning. Default 0."),
      percent("--pinned", "Percent of the machines that are pinned, and race one time in 20. Default 0."),
      percent("--guests", "Percent of the machines that come later, or go earlier. Default 0."),
      {.name = "--no-caps", .value_name = "", .help = "Every card at its default power limit."},
      {.name = "--epoch-s", .value_name = "S", .help = "Length of an epoch. Default 3600."},
      {.name = "--noise", .value_name = "F", .help = "Factor on the recorded noise. Default 1; 0: none."},
      {.name = "--out",
       .value_name = "FILE",
       .help = "Write JSON lines; - is standard output.",
       .complete = "file"},
      {.name = "--store",
       .value_name = "URL",
       .help =
           "File them in a store (sqlite:FILE, postgresql://…), under enrolled machines with signatures."},
      {.name = "--hub", .value_name = "URL", .help = "Send them to a hub as agents would."},
      {.name = "--token-file",
       .value_name = "FILE",
       .help = "With --hub: enrolment tokens (furlong hub token), one a line and key; machines that are "
               "enrolled need none.",
       .complete = "file"},
      {.name = "--rate",
       .value_name = "R",
       .help = "With --hub: records a second. Default: as fast as it takes them."},
      count("--senders", "With --hub: connections at once. Default 4."),
      count("--batch", "With --hub: records of a batch. Default 24."),
      {.name = "--ca-file", .value_name = "FILE", .help = "With --hub: whom to trust.", .complete = "file"},
      {.name = "--truth",
       .value_name = "FILE",
       .help = "Write what is true, as JSON: machines, the best variants, gains.",
       .complete = "file"},
      {.name = "--json", .value_name = "", .help = "The counts as JSON."}};
}

}  // namespace

CommandSpec fleet_simulate_command() {
  return {.name = "fleet simulate",
          .summary =
              "Make up a fleet and its race records, with the truth beside them: to try hub, tuning and "
              "dashboard.",
          .description =
              "Machines with one to eight cards, drivers that change, power caps; two programs, whose "
              "variants have true "
              "gains by card, class and power cap; noise as recorded on real cards; races that end in a "
              "winner, a dead "
              "heat or the end of their budget. On demand liars, clones, wrong clocks and planted "
              "regressions. The same "
              "options give the same records.\n"
              "With --store and --hub machines are enrolled and batches signed by their keys.",
          .positionals = {},
          .options = options(),
          .examples = {{"furlong fleet simulate --store sqlite:try.sqlite --from now", ""},
                       {"furlong fleet simulate --machines 200 --days 28 --liars 3 --clones 2 --truth "
                        "truth.json --out records.jsonl",
                        ""},
                       {"furlong fleet simulate --hub http://127.0.0.1:8470 --token-file tokens.txt --from "
                        "now --rate 500",
                        ""}},
          .run = run};
}

}  // namespace furlong::app
