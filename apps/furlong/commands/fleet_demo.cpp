// The whole loop on one machine: agents race, the hub takes their records, a tuning follows, is published,
// and the agents obey without a restart.

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <set>
#include <thread>

#include "apps/furlong/agent_session.h"
#include "apps/furlong/commands.h"
#include "apps/furlong/fleet_folder.h"
#include "apps/furlong/hub_session.h"
#include "apps/furlong/session.h"
#include "apps/furlong/stores.h"
#include "apps/furlong/version.h"
#include "furlong/base/base64.h"
#include "furlong/base/json.h"
#include "furlong/base/os/clock.h"
#include "furlong/base/os/interrupt.h"
#include "furlong/base/os/process.h"
#include "furlong/base/text.h"
#include "furlong/fleet/agent/children.h"
#include "furlong/fleet/agent/supervisor.h"

namespace furlong::app {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t day_us = 86'400'000'000;
constexpr std::int64_t look_every_ns = 200'000'000;

/// Lines of all tellers, with the time since the beginning.
class Transcript {
 public:
  void say(std::string_view who, std::string_view text) {
    const std::scoped_lock lock(mutex_);
    print_out(fmt::format("{:7.1f} s  {:<8} {}\n",
                          static_cast<double>(system_clock().now_ns() - begin_ns_) * 1e-9, who,
                          one_line(text)));
    std::fflush(stdout);
  }

 private:
  std::mutex mutex_;
  const std::int64_t begin_ns_ = system_clock().now_ns();
};

/// What a worker's races say of the tuning that it had.
enum class Obeyed { raced, tuned, pinned };

/// What was heard of one agent's worker. Called from the agent's threads.
class Watch {
 public:
  Watch(std::string name, Transcript& transcript) : name_(std::move(name)), transcript_(transcript) {}

  void event(const record::WorkerEvent& event) {
    std::visit([&](const auto& each) { on(each); }, event);
  }
  /// How the newest race went, and how many there were.
  std::pair<std::optional<Obeyed>, int> races() {
    const std::scoped_lock lock(mutex_);
    return {newest_, races_};
  }
  int starts() {
    const std::scoped_lock lock(mutex_);
    return starts_;
  }
  /// The variant that the newest swap brought.
  std::string served() {
    const std::scoped_lock lock(mutex_);
    return served_;
  }
  void say(std::string_view text) { transcript_.say(name_, text); }

 private:
  void on(const record::ReadyEvent& event) {
    {
      const std::scoped_lock lock(mutex_);
      ++starts_;
    }
    say(fmt::format("worker ready on {} {}", event.device, event.card));
  }
  void on(const record::PreparedEvent& event) {
    say(fmt::format("prepared {}: {} is to serve it", event.pair.text(), event.variant));
  }
  void on(const record::RecordEvent& event) {
    const auto record = record::parse_record(event.json, "the worker's record");
    if (!record) return say(record.error().text());
    const Obeyed how = record->pinned ? Obeyed::pinned : record->tuned ? Obeyed::tuned : Obeyed::raced;
    {
      const std::scoped_lock lock(mutex_);
      newest_ = how;
      ++races_;
    }
    constexpr const char* words[] = {"raced in full", "raced in the tuning's order",
                                     "pinned by the tuning, not raced"};
    say(fmt::format("{}: {}", words[static_cast<int>(how)], fleet::race_summary(*record)));
  }
  void on(const record::SwapEvent& event) {
    {
      const std::scoped_lock lock(mutex_);
      served_ = event.variant;
    }
    say(fmt::format("swap to {}, variant {}: gap {:.1f} ms", event.epoch, event.variant, event.gap_ms));
  }
  template <class Other>
  void on(const Other&) {}

  const std::string name_;
  Transcript& transcript_;
  std::mutex mutex_;
  std::optional<Obeyed> newest_;
  std::string served_;
  int races_ = 0, starts_ = 0;
};

struct DemoOptions {
  std::size_t agents = 2;
  std::int64_t epoch_s = 0;
  std::int64_t epochs = 12;
  std::string race;
  std::vector<fleet::DeviceInfo> devices;
  fs::path furlong;
};

/// The keys of a fleet whose operator, publisher and hub are one person for some minutes.
struct Keys {
  KeyPair root = KeyPair::generate(), publish = KeyPair::generate(), stop = KeyPair::generate();
};

class Demo {
 public:
  Demo(DemoOptions options, fs::path folder, std::stop_token interrupted)
      : options_(std::move(options)), folder_(std::move(folder)), interrupted_(std::move(interrupted)) {}

  /// True: the loop was seen whole. False: it was interrupted, or the epochs were over before.
  Result<bool> run() {
    FURLONG_CHECK(make_fleet());
    FURLONG_CHECK(start_hub());
    FURLONG_CHECK(open_agents());
    std::stop_source stop;
    Status hub_ended;
    std::vector<Status> agents_ended(agents_.size());
    std::jthread hub([&] {
      hub_ended = hub_->run(hub_stop_.get_token());
      ++ended_;
    });
    Result<bool> whole = false;
    {
      std::vector<std::jthread> agents;
      for (std::size_t i = 0; i < agents_.size(); ++i)
        agents.emplace_back([&, i] {
          agents_ended[i] = agents_[i]->run(stop.get_token());
          ++ended_;
        });
      whole = follow_the_loop();
      say("", "agents and hub end");
      stop.request_stop();
    }
    hub_stop_.request_stop();
    hub.join();
    FURLONG_CHECK(hub_ended);
    for (const Status& ended : agents_ended) FURLONG_CHECK(ended);
    FURLONG_CHECK(whole);
    return *whole;
  }

 private:
  void say(std::string_view who, std::string_view text) { transcript_.say(who, text); }
  fs::path fleet_folder() const { return folder_ / "fleet"; }
  std::string store_url() const { return "sqlite:" + (folder_ / "hub.sqlite").string(); }
  Result<std::unique_ptr<fleet::Store>> open_store() const {
    return fleet::open_store(store_kinds(), store_url());
  }

  Status make_fleet() {
    fleet::RootDocument root{.product = "furlong-demo"};
    root.root.keys = {keys_.root.public_key};
    root.publish.keys = {keys_.publish.public_key};
    root.stop.keys = {keys_.stop.public_key};
    root.expires_us = (system_clock().wall_us() / 1'000'000 + 86'400) * 1'000'000;
    fleet::Envelope envelope = fleet::envelope_of(root);
    add_signature(envelope, keys_.root);
    FURLONG_CHECK(write_fleet({.roots = {envelope}, .manifest = {}, .stop = {}}, fleet_folder()));
    say("operator", "keys for root, publishing and stops; the root is what agents trust");
    return {};
  }

  Status start_hub() {
    fleet::HubOptions options;
    options.http.port = 0;
    options.manifest = fleet_body_file(fleet_folder());
    options.web = shipped_web();
    options.aggregate = aggregate_options();
    options.refresh_s = 1;
    options.lattices = shipped_lattices();
    options.version = version_text();
    fleet::HubSurroundings with;
    with.open_store = [this] { return open_store(); };
    with.files = &system_files();
    with.clock = &system_clock();
    with.say = [this](LogLevel level, std::string_view text) {
      if (level >= LogLevel::warning) say("hub", text);
    };
    FURLONG_TRY(hub_, fleet::Hub::start(options, with));
    url_ = fmt::format("http://127.0.0.1:{}", hub_->port());
    say("hub", fmt::format("listens; dashboard: {}/", url_));
    return {};
  }

  Result<std::string> make_token(std::size_t number) const {
    FURLONG_TRY(const auto store, open_store());
    const std::string text = make_secret_text();
    fleet::Token token{.digest = blake2b_256(text), .label = fmt::format("demo-{}", number + 1)};
    token.issued_us = system_clock().wall_us();
    token.expires_us = token.issued_us + day_us;
    FURLONG_CHECK(store->add_token(token));
    return text;
  }

  Result<fleet::AgentConfig> agent_config(std::size_t number) const {
    const fleet::DeviceInfo& device = options_.devices[number % options_.devices.size()];
    fleet::AgentConfig config;
    config.data = folder_ / fmt::format("agent-{}", number + 1);
    config.furlong = options_.furlong;
    config.devices = {{.address = device.address}};
    config.schedule.epoch_s = options_.epoch_s;
    config.schedule.lead = std::max<std::int64_t>(1, options_.epoch_s * 3 / 4);
    config.schedule.seed = "furlong fleet demo";
    config.work.geometry = "small";
    config.work.race = options_.race;
    config.work.target = device.is_host_cpu ? 1ull << 41 : 1ull << 34;
    config.work.race_budget_s =
        std::min(static_cast<double>(options_.epoch_s) / 2, fleet::most_race_budget_s);
    config.hub.emplace();
    config.hub->url = url_;
    config.hub->manifest_every_s = 1;
    config.hub->retry_most_s = 2;
    FURLONG_TRY(config.hub->enrol_token, make_token(number));
    config.manifest.emplace();
    config.manifest->root = fleet_root_file(fleet_folder());
    return config;
  }

  Status open_agents() {
    for (std::size_t i = 0; i < options_.agents; ++i) {
      FURLONG_TRY(const fleet::AgentConfig config, agent_config(i));
      FURLONG_TRY(auto client, fleet::open_curl());
      clients_.push_back(std::move(client));
      const std::string name = fmt::format("agent {}", i + 1);
      watches_.push_back(std::make_unique<Watch>(name, transcript_));
      fleet::AgentSurroundings with = agent_surroundings(clients_.back().get());
      with.say = [this, name](LogLevel level, std::string_view text) {
        if (level >= LogLevel::warning || text.find("manifest") != std::string_view::npos ||
            text.find("enrolled") != std::string_view::npos)
          say(name, text);
      };
      with.say_plain = {};
      Watch& watch = *watches_.back();
      with.on_event = [&watch](const fleet::DeviceInfo&, const record::WorkerEvent& event) {
        watch.event(event);
      };
      FURLONG_TRY(auto agent, fleet::Agent::open(config, with, interrupted_));
      agents_.push_back(std::move(agent));
      say(name,
          fmt::format("on {}, a new program every {} s", config.devices.front().address, options_.epoch_s));
    }
    return {};
  }

  /// So that a handful of races on a busy machine is enough: a real fleet has the defaults.
  fleet::AggregateOptions aggregate_options() const {
    fleet::AggregateOptions options;
    options.min_samples = 1;
    options.near_pct = 100;
    return options;
  }

  /// Until it holds; false: interrupted, or the epochs are over.
  bool wait(std::string_view what, const std::function<bool()>& holds) {
    for (;;) {
      if (holds()) return true;
      if (interrupted_.stop_requested()) return false;
      if (ended_ > 0) {
        say("", fmt::format("the hub or an agent ended, and this was not seen: {}", what));
        return false;
      }
      if (system_clock().now_ns() > end_ns_) {
        say("",
            fmt::format("{} epochs are over, and this was not seen: {}; on a slow machine give longer ones "
                        "(--epoch-s) or more (--epochs)",
                        options_.epochs, what));
        return false;
      }
      system_clock().sleep_ns(look_every_ns);
    }
  }

  /// Every agent's newest race, begun after this call, went so.
  bool wait_obeyed(std::string_view what, Obeyed how) {
    std::vector<int> before;
    for (const auto& watch : watches_) before.push_back(watch->races().second);
    return wait(what, [&] {
      for (std::size_t i = 0; i < watches_.size(); ++i) {
        const auto [newest, races] = watches_[i]->races();
        if (races == before[i] || newest != how) return false;
      }
      return true;
    });
  }

  Result<bool> follow_the_loop() {
    FURLONG_TRY(const auto store, open_store());
    Status asked;
    const bool arrived = wait("a race of every machine in the store", [&] {
      const auto machines = store->machines();
      if (!machines) asked = machines.error();
      return !machines ||
             (machines->size() == agents_.size() &&
              std::ranges::all_of(*machines, [](const auto& each) { return each.accepted > 0; }));
    });
    FURLONG_CHECK(asked);
    if (!arrived) return false;
    FURLONG_TRY(const fleet::StoreTotals totals, store->totals());
    say("hub", fmt::format("{} races of {} machines, signed, in the store", totals.races, totals.machines));

    FURLONG_TRY(const auto first, wait_tuning());
    if (!first) return false;
    FURLONG_CHECK(publish(*first));
    if (!wait_obeyed("races in the tuning's order", Obeyed::tuned)) return false;
    say("", "every agent races in the order of the tuning, with no restart");

    const std::vector<fleet::Pin> chosen = pins(*first);
    for (const fleet::Pin& pin : chosen) {
      pinned_.insert(pin.variant);
      say("operator", fmt::format("pins {} to {}", pin.card, pin.variant));
    }
    FURLONG_TRY(const fleet::Aggregate second, aggregate(chosen));
    FURLONG_CHECK(publish(second));
    if (!wait_obeyed("pinned variants", Obeyed::pinned)) return false;
    if (!wait("the pinned variant in service", [&] {
          return std::ranges::all_of(watches_,
                                     [&](const auto& each) { return pinned_.contains(each->served()); });
        }))
      return false;
    say("", "every agent serves the pinned variant, without a race");

    FURLONG_CHECK(stop_tuning());
    if (!wait_obeyed("full races after the stop", Obeyed::raced)) return false;
    say("", "every agent races in full again");
    for (std::size_t i = 0; i < watches_.size(); ++i)
      if (watches_[i]->starts() != 1)
        return fail(Code::internal, "worker {} was started {} times; the loop wants no restart", i + 1,
                    watches_[i]->starts());
    return true;
  }

  Result<fleet::Aggregate> aggregate(std::vector<fleet::Pin> pins) const {
    fleet::AggregateOptions options = aggregate_options();
    options.pins = std::move(pins);
    return fleet::aggregate([this] { return open_store(); }, options);
  }

  /// On a busy machine the first races may disagree so much that nothing follows from them; more come. Empty:
  /// interrupted, or the epochs are over.
  Result<std::optional<fleet::Aggregate>> wait_tuning() {
    std::optional<fleet::Aggregate> found;
    Status failed;
    bool told = false;
    const auto look = [&] {
      auto now = aggregate({});
      if (!now) {
        failed = now.error();
        return true;
      }
      if (pins(*now).empty()) {
        if (!std::exchange(told, true))
          say("tuning",
              fmt::format("none yet that says more than base: {}; more races are awaited", why_none(*now)));
        return false;
      }
      found = *std::move(now);
      return true;
    };
    if (!wait("races that a tuning follows from", look)) return std::optional<fleet::Aggregate>();
    FURLONG_CHECK(failed);
    return found;
  }

  static std::string why_none(const fleet::Aggregate& aggregate) {
    for (const fleet::CardEvidence& card : aggregate.cards)
      for (const fleet::RowEvidence& row : card.rows)
        return row.set_aside.empty() ? row.why : row.set_aside.front().why;
    return "no race counts";
  }

  /// In no race a copy of another one: to pin a copy of base would show nothing.
  static bool has_own_code(const fleet::RowEvidence& row, const std::string& name) {
    const auto at = std::ranges::find(row.variants, name, &fleet::VariantEvidence::name);
    return at != row.variants.end() && !at->exits.contains(std::string(exit_name(fleet::Exit::duplicate)));
  }

  /// The best variant of each card that is not base, whether it beats base or not: it is to be seen that it
  /// is obeyed.
  static std::vector<fleet::Pin> pins(const fleet::Aggregate& aggregate) {
    std::vector<fleet::Pin> pins;
    for (const fleet::CardEvidence& card : aggregate.cards) {
      for (const fleet::RowEvidence& row : card.rows) {
        const auto best = std::ranges::find_if(row.candidates, [&](const std::string& name) {
          return name != "base" && has_own_code(row, name);
        });
        if (best == row.candidates.end()) continue;
        pins.push_back({.card = card.key, .variant = *best, .program = row.subject.program});
        break;
      }
    }
    return pins;
  }

  Status publish(const fleet::Aggregate& aggregate) {
    fleet::PublishRequest request;
    request.expires_days = 0.5;  // the root ends after one
    request.tuning.replace = to_tuning(aggregate);
    for (const record::TuningCard& card : request.tuning.replace->cards)
      for (const record::TuningRow& row : card.rows)
        say("tuning", fmt::format("{} {}: {}{}, then {}", card.key, row.program, row.variant,
                                  row.race ? " first" : " pinned", join(row.candidates, ", ")));
    if (request.tuning.replace->cards.empty())
      return fail(Code::internal, "no tuning follows from these races: see {}", store_url());
    FURLONG_TRY(FleetFolder fleet, read_fleet(fleet_folder()));
    const auto* current = fleet.checked.manifest ? &*fleet.checked.manifest : nullptr;
    FURLONG_TRY(const auto next, fleet::next_manifest(fleet.checked.root.document, current, nullptr, request,
                                                      system_clock().wall_us()));
    fleet.body.manifest = fleet::envelope_of(next);
    add_signature(*fleet.body.manifest, keys_.publish);
    FURLONG_CHECK(write_fleet(fleet.body, fleet.path));
    say("operator", fmt::format("manifest {} is published", next.version));
    return {};
  }

  Status stop_tuning() {
    FURLONG_TRY(FleetFolder fleet, read_fleet(fleet_folder()));
    FURLONG_TRY(const auto stop, fleet::next_stop(fleet.checked.root.document, *fleet.checked.manifest,
                                                  nullptr, 0, system_clock().wall_us()));
    fleet.body.stop = fleet::envelope_of(stop);
    add_signature(*fleet.body.stop, keys_.stop);
    FURLONG_CHECK(write_fleet(fleet.body, fleet.path));
    say("operator", fmt::format("stop {}: race locally", stop.version));
    return {};
  }

  const DemoOptions options_;
  const fs::path folder_;
  const std::stop_token interrupted_;
  const Keys keys_;
  Transcript transcript_;
  std::stop_source hub_stop_;
  std::unique_ptr<fleet::Hub> hub_;
  std::string url_;
  std::atomic<int> ended_ = 0;  ///< threads of hub and agents
  /// By the clock: with a worker that never gets ready no epoch is ever prepared.
  const std::int64_t end_ns_ =
      system_clock().now_ns() + (options_.epochs + 1) * options_.epoch_s * 1'000'000'000;
  std::set<std::string> pinned_;  ///< variants
  std::vector<std::unique_ptr<fleet::HttpClient>> clients_;
  std::vector<std::unique_ptr<Watch>> watches_;
  std::vector<std::unique_ptr<fleet::Agent>> agents_;  // the last: they use what is above
};

/// The devices that were named, else all cards, else the first device.
Result<std::vector<fleet::DeviceInfo>> demo_devices(const Arguments& arguments, const fs::path& furlong) {
  FURLONG_TRY(const auto there, fleet::list_devices(system_processes(), furlong));
  if (arguments.given("--device")) {
    fleet::AgentConfig named;
    for (const std::string& each : arguments.values("--device")) named.devices.push_back({.address = each});
    return fleet::choose_devices(named, there);
  }
  std::vector<fleet::DeviceInfo> cards;
  std::ranges::copy_if(there, std::back_inserter(cards), [](const auto& each) { return !each.is_host_cpu; });
  if (cards.empty()) cards.push_back(there.front());
  return cards;
}

Result<DemoOptions> demo_options(const Arguments& arguments) {
  DemoOptions options;
  FURLONG_TRY(const std::int64_t agents, arguments.integer("--agents", 2, 1, 16));
  options.agents = static_cast<std::size_t>(agents);
  FURLONG_TRY(options.epochs, arguments.integer("--epochs", 12, 1, 100'000));
  FURLONG_TRY(options.furlong, own_executable());
  if (arguments.given("--worker")) options.furlong = arguments.value("--worker");
  FURLONG_TRY(options.devices, demo_devices(arguments, options.furlong));
  const bool host = std::ranges::any_of(options.devices, &fleet::DeviceInfo::is_host_cpu);
  FURLONG_TRY(options.epoch_s, arguments.integer("--epoch-s", host ? 40 : 20, 2, 86'400));
  // On a processor a text takes the compiler seconds; these two differ from base in how they are launched.
  options.race = arguments.value("--variants", host ? "n64,n1024" : "");
  return options;
}

Result<int> run(const Arguments& arguments) {
  FURLONG_TRY(DemoOptions options, demo_options(arguments));
  const std::stop_token interrupted = stop_on_interrupt();
  std::optional<TemporaryFolder> temporary;
  fs::path folder = arguments.value("--keep");
  if (folder.empty()) {
    FURLONG_TRY(temporary, TemporaryFolder::make("furlong-fleet"));
    folder = temporary->path();
  } else if (system_files().exists(folder)) {
    return fail(Code::invalid, "--keep: {} is there already; name a folder that is not", folder.string());
  } else {
    folder = fs::absolute(folder);
  }
  Demo demo(std::move(options), folder, interrupted);
  const Result<bool> whole = demo.run();
  if (interrupted.stop_requested()) return 128 + interrupt_signal();
  if (!whole) return whole.error();
  if (!*whole) return exit_failed;
  print_out("the loop was seen whole: records, tuning, manifest, obedience, stop\n");
  return exit_ok;
}

}  // namespace

CommandSpec fleet_demo_command() {
  return {
      .name = "fleet demo",
      .summary = "Watch a fleet's whole loop on this machine: agents, hub, tuning, manifest, obedience.",
      .description =
          "Needs no configuration: a hub on a free port of this machine, keys, a root, and agents that "
          "enrol with tokens, "
          "each with a worker on the lottery in its small geometry and short epochs. Their records "
          "arrive at the hub; "
          "what follows from them is published; the workers race in the tuning's order, then take a "
          "pinned variant, "
          "then, after a stop, race in full again, and none is started anew. Says what happens and where "
          "the dashboard "
          "is. Everything is removed at the end.\n"
          "Exit 0: the loop was seen whole; 3: it was not, within --epochs; 130: it was ended by Ctrl-C.",
      .positionals = {},
      .options = {{.name = "--agents", .value_name = "N", .help = "How many. Default 2."},
                  {.name = "--device",
                   .value_name = "D",
                   .help = "Which devices they take in turn. Default: all cards, else the first device.",
                   .repeatable = true,
                   .complete = "device"},
                  {.name = "--epoch-s",
                   .value_name = "N",
                   .help = "Length of an epoch in seconds. Default 20; 40 on the host's processor."},
                  {.name = "--epochs", .value_name = "N", .help = "Give up after so many. Default 12."},
                  {.name = "--variants",
                   .value_name = "A,B",
                   .help = "Raced besides base. Default: the catalogue; on the host's processor n64,n1024."},
                  {.name = "--keep",
                   .value_name = "DIR",
                   .help = "Work in this new folder, and leave it: store, manifest, the agents' data.",
                   .complete = "folder"},
                  {.name = "--worker",
                   .value_name = "FILE",
                   .help = "The furlong program to start as worker, in place of this one.",
                   .complete = "file"}},
      .examples = {{"furlong fleet demo", ""},
                   {"furlong fleet demo --agents 4 --epoch-s 30 --keep demo", ""}},
      .run = run};
}

}  // namespace furlong::app
