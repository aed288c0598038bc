// fleet-intake: sustained intake on loopback, by a real hub over HTTP, of several machines that each send one
// signed batch after the other, into each kind of store. Beside it, in the same run, the plain method: each
// batch in a transaction of its own. Every acknowledged record is looked for in the store afterwards. What
// limits is named from measured parts: signature, reading and judging, transactions.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <set>
#include <thread>

#include "bench/harness.h"
#include "furlong/base/json.h"
#include "furlong/base/os/clock.h"
#include "furlong/base/os/file.h"
#include "furlong/base/random.h"
#include "furlong/base/text.h"
#include "furlong/fleet/hub/hub.h"
#include "furlong/fleet/hub/judge.h"
#include "furlong/fleet/record_batch.h"
#include "furlong/fleet/store/postgres/postgres.h"
#include "furlong/fleet/store/postgres/testing.h"
#include "furlong/fleet/store/sqlite/sqlite.h"

namespace {

using furlong::Code;
using furlong::fail;
using furlong::Json;
using furlong::Result;
using furlong::Status;
using furlong::bench::Bench;
using furlong::bench::Better;
namespace fleet = furlong::fleet;
using SteadyClock = std::chrono::steady_clock;

double seconds_since(SteadyClock::time_point begin) {
  return std::chrono::duration<double>(SteadyClock::now() - begin).count();
}

double quantile(std::vector<double> values, double share) {
  if (values.empty()) return NAN;
  std::ranges::sort(values);
  const auto at = static_cast<std::size_t>(std::ceil(share * static_cast<double>(values.size())));
  return values[std::clamp<std::size_t>(at, 1, values.size()) - 1];
}

struct Load {
  int machines = 8, batches = 200, records = 20;
  int total() const { return machines * batches * records; }
};

/// What one machine sends, made and signed beforehand: the bench measures the hub.
struct Machine {
  furlong::KeyPair key;
  std::vector<std::string> bodies, signatures;
  std::string id() const { return key.public_key.id(); }
};

/// As a worker with 20 variants writes it.
std::string record_line(const std::string& machine, int slot, std::uint64_t epoch, furlong::Clock& clock,
                        furlong::Random& random) {
  Json variants{{"base", 115.9}},
      detail{{"base", {{"heats", 21}, {"regs", 40}, {"compile_ms", 61.5}, {"power_w", 391.0}}}};
  for (int i = 1; i < 20; ++i) {
    const double gain = random.normal();
    const std::string name = fmt::format("u{}-ldg", i);
    variants[name] = 115.9 * (1 + gain / 100);
    detail[name] = Json{{"gain_pct", gain},    {"ci", {gain - 0.3, gain + 0.3}},
                        {"heats", 21},         {"regs", 48},
                        {"compile_ms", 70.25}, {"power_w", 398.5}};
  }
  return furlong::json_line(
      Json{{"schema", 1},
           {"id", furlong::record::make_record_id(clock, random)},
           {"ts", furlong::iso_time(clock.wall_us())},
           {"machine", machine},
           {"slot", fmt::format("s-{}", slot)},
           {"agent", "0.1.0"},
           {"card", "NVIDIA_H200"},
           {"silicon", {{"vendor", "NVIDIA"}, {"arch", "sm_90"}, {"hash", "9c1f0a5b7d3e2f46"}}},
           {"backend", "cuda"},
           {"driver", "580.95.05"},
           {"program", "lottery"},
           {"language", "cuda"},
           {"source", "b3d1c0"},
           {"epoch", fmt::format("{:016x}", epoch)},
           {"class", {{"loads", 128}, {"wide", 0}}},
           {"unit", "MH/s"},
           {"variants", std::move(variants)},
           {"detail", std::move(detail)},
           {"winner", "u2-ldg"},
           {"rate", 118.3},
           {"base_rate", 115.9},
           {"gain_pct", 2.1},
           {"verdict", "winner"}});
}

Result<std::vector<Machine>> make_machines(const Load& load) {
  std::vector<Machine> machines;
  furlong::Clock& clock = furlong::system_clock();
  for (int m = 0; m < load.machines; ++m) {
    furlong::Random random(static_cast<std::uint64_t>(m), "fleet-intake");
    Machine machine{
        .key = *furlong::KeyPair::from_seed(furlong::blake2b_256(fmt::format("machine {}", m)).bytes)};
    for (int b = 0; b < load.batches; ++b) {
      fleet::RecordBatch batch{.id = furlong::record::make_record_id(clock, random), .machine = machine.id()};
      for (int r = 0; r < load.records; ++r)
        batch.lines.push_back(record_line(machine.id(), r % 8,
                                          static_cast<std::uint64_t>(b * load.records + r), clock, random));
      FURLONG_TRY(std::string body, fleet::print(batch));
      machine.signatures.push_back(fleet::sign_body(fleet::batch_media_type, body, machine.key));
      machine.bodies.push_back(std::move(body));
    }
    machines.push_back(std::move(machine));
  }
  return machines;
}

/// One connection that is kept, as an agent's proxy or a test client has it.
class Connection {
 public:
  explicit Connection(std::uint16_t port) {
    socket_ = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int on = 1;
    ::setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) failed_ = true;
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection() { ::close(socket_); }

  struct Reply {
    int status = 0;
    std::string body;
  };
  Result<Reply> ask(const std::string& head, const std::string& body) {
    if (failed_ || !send_all(head) || !send_all(body))
      return fail(Code::unavailable, "the hub's connection is gone");
    std::string got;
    std::size_t end = std::string::npos;
    while ((end = got.find("\r\n\r\n")) == std::string::npos)
      if (!receive(got)) return fail(Code::unavailable, "no reply");
    std::string lower = got.substr(0, end);
    std::ranges::transform(lower, lower.begin(),
                           [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
    const std::size_t length_at = lower.find("content-length:");
    if (length_at == std::string::npos) return fail(Code::invalid, "a reply without its length");
    const std::string_view rest = std::string_view(lower).substr(length_at + 15);
    FURLONG_TRY(const auto length, furlong::parse_integer(furlong::trim(rest.substr(0, rest.find('\r')))));
    while (got.size() < end + 4 + static_cast<std::size_t>(length))
      if (!receive(got)) return fail(Code::unavailable, "half a reply");
    FURLONG_TRY(const auto status, furlong::parse_integer(got.substr(9, 3)));
    return Reply{static_cast<int>(status), got.substr(end + 4)};
  }

 private:
  bool send_all(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
  }
  bool receive(std::string& into) {
    char buffer[65536];
    const ssize_t got = ::recv(socket_, buffer, sizeof buffer, 0);
    if (got <= 0) return false;
    into.append(buffer, static_cast<std::size_t>(got));
    return true;
  }
  int socket_ = -1;
  bool failed_ = false;
};

struct Outcome {
  double seconds = 0;
  std::vector<double> latency_ms;
  std::vector<std::string> acknowledged;
  int repeated = 0;  ///< answered 429 or 503, and sent again
  double store_s = 0, wait_s = 0, commits = 0, batches = 0;
  int lost = 0;
};

/// What one machine does: its batches in order, each until it is acknowledged.
Status send_all(const Machine& machine, std::uint16_t port, Outcome& outcome) {
  Connection connection(port);
  for (std::size_t i = 0; i < machine.bodies.size(); ++i) {
    const std::string head = fmt::format(
        "POST /v1/records HTTP/1.1\r\nHost: hub\r\nContent-Type: {}\r\nFurlong-Machine: "
        "{}\r\nFurlong-Signature: "
        "{}\r\nContent-Length: {}\r\n\r\n",
        fleet::batch_media_type, machine.id(), machine.signatures[i], machine.bodies[i].size());
    const auto begin = SteadyClock::now();
    while (true) {
      FURLONG_TRY(const auto reply, connection.ask(head, machine.bodies[i]));
      if (reply.status == 429 || reply.status == 503) {
        ++outcome.repeated;
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        continue;
      }
      if (reply.status != 200)
        return fail(Code::internal, "HTTP {}: {}", reply.status, reply.body.substr(0, 300));
      FURLONG_TRY(const auto read, fleet::parse_batch_reply(reply.body));
      outcome.latency_ms.push_back(1e3 * seconds_since(begin));
      outcome.acknowledged.insert(outcome.acknowledged.end(), read.accepted.begin(), read.accepted.end());
      break;
    }
  }
  return {};
}

double metric(const std::string& text, const std::string& name) {
  const std::size_t at = text.find("\nfurlong_hub_" + name + " ");
  if (at == std::string::npos) return NAN;
  const std::size_t from = at + name.size() + 14;
  const auto value = furlong::parse_number(text.substr(from, text.find('\n', from) - from));
  return value ? *value : NAN;
}

Status read_parts(std::uint16_t port, Outcome& outcome) {
  Connection connection(port);
  FURLONG_TRY(const auto reply, connection.ask("GET /metrics HTTP/1.1\r\nHost: hub\r\n\r\n", ""));
  outcome.store_s = metric(reply.body, "store_write_seconds_total");
  outcome.wait_s = metric(reply.body, "queue_wait_seconds_total");
  outcome.commits = metric(reply.body, "commits_total");
  outcome.batches = metric(reply.body, "committed_batches_total");
  return {};
}

/// Every acknowledged record by its id; how many are not there.
Result<int> count_lost(const fleet::OpenStore& open, const std::vector<std::string>& acknowledged) {
  FURLONG_TRY(const auto store, open());
  std::set<std::string> there;
  fleet::RaceFilter filter;
  filter.limit = 1000;
  while (true) {
    FURLONG_TRY(const auto page, store->races(filter));
    for (const auto& race : page) there.insert(race.id);
    if (page.size() < filter.limit) break;
    filter.before = page.back().id;
  }
  return static_cast<int>(
      std::ranges::count_if(acknowledged, [&](const auto& id) { return !there.contains(id); }));
}

Result<Outcome> run_hub(const fleet::OpenStore& open, const std::vector<Machine>& machines,
                        std::size_t commit_batches) {
  {
    FURLONG_TRY(const auto store, open());
    for (const Machine& machine : machines)
      FURLONG_CHECK(store->put_machine({.id = machine.id(), .key = machine.key.public_key}));
  }
  fleet::HubOptions options;
  options.batches_per_minute = 1e9;
  options.refresh_s = 1e6;  // of what the races say, another bench tells
  options.commit_batches = commit_batches;
  options.version = "bench";
  fleet::HubSurroundings with;
  with.open_store = open;
  with.files = &furlong::system_files();
  with.clock = &furlong::system_clock();
  with.say = [](furlong::LogLevel, std::string_view) {};
  FURLONG_TRY(const auto hub, fleet::Hub::start(options, with));
  std::vector<Outcome> outcomes(machines.size());
  std::vector<Status> statuses(machines.size());
  std::vector<std::thread> threads;
  const auto begin = SteadyClock::now();
  for (std::size_t i = 0; i < machines.size(); ++i)
    threads.emplace_back([&, i] { statuses[i] = send_all(machines[i], hub->port(), outcomes[i]); });
  for (std::thread& thread : threads) thread.join();
  Outcome all;
  all.seconds = seconds_since(begin);
  for (const Status& status : statuses)
    if (!status) return status.error();
  for (Outcome& each : outcomes) {
    std::ranges::move(each.latency_ms, std::back_inserter(all.latency_ms));
    std::ranges::move(each.acknowledged, std::back_inserter(all.acknowledged));
    all.repeated += each.repeated;
  }
  FURLONG_CHECK(read_parts(hub->port(), all));
  FURLONG_TRY(all.lost, count_lost(open, all.acknowledged));
  return all;
}

/// What one thread takes for a batch without the rest, µs.
struct Parts {
  double verify_us = 0, judge_us = 0;
};

Result<Parts> measure_parts(const std::vector<Machine>& machines) {
  Parts parts;
  const std::size_t count = std::min<std::size_t>(machines.front().bodies.size(), 50);
  const Machine& machine = machines.front();
  auto begin = SteadyClock::now();
  for (std::size_t i = 0; i < count; ++i)
    FURLONG_CHECK(fleet::verify_body(fleet::batch_media_type, machine.bodies[i], machine.signatures[i],
                                     machine.key.public_key));
  parts.verify_us = 1e6 * seconds_since(begin) / static_cast<double>(count);
  begin = SteadyClock::now();
  for (std::size_t i = 0; i < count; ++i)
    FURLONG_CHECK(fleet::judge_batch(machine.bodies[i], machine.id(), furlong::system_clock().wall_us()));
  parts.judge_us = 1e6 * seconds_since(begin) / static_cast<double>(count);
  return parts;
}

std::string bottleneck(const Outcome& outcome, const Parts& parts, std::size_t batches) {
  const double cores = std::max(1u, std::thread::hardware_concurrency());
  const double store = outcome.store_s / outcome.seconds;
  const double each = static_cast<double>(batches) / (1e6 * outcome.seconds * cores);
  const double verify = parts.verify_us * each, judge = parts.judge_us * each;
  const std::pair<double, const char*> shares[] = {{store, "the store's transactions, by one thread"},
                                                   {judge, "reading and judging records, on all cores"},
                                                   {verify, "checking signatures, on all cores"}};
  const auto* const most =
      std::ranges::max_element(shares, {}, [](const auto& share) { return share.first; });
  return fmt::format(
      "{}: {:.0f}% of the time (store {:.0f}%, judging {:.0f}%, signatures {:.0f}% of the cores)",
      most->second, 100 * most->first, 100 * store, 100 * judge, 100 * verify);
}

void report(Bench& bench, const std::string& kind, const std::string& method, const Load& load,
            const Outcome& outcome, const Parts& parts) {
  const double rate = static_cast<double>(outcome.acknowledged.size()) / outcome.seconds;
  const double p99 = quantile(outcome.latency_ms, 0.99);
  bench.row({.name = method,
             .values = {{"records_per_s", rate},
                        {"p50_ms", quantile(outcome.latency_ms, 0.5)},
                        {"p99_ms", p99},
                        {"lost", outcome.lost},
                        {"sent_again", outcome.repeated},
                        {"batches_per_commit", outcome.batches / std::max(1.0, outcome.commits)},
                        {"store_ms", 1e3 * outcome.store_s / std::max(1.0, outcome.commits)},
                        {"wait_ms", 1e3 * outcome.wait_s / std::max(1.0, outcome.batches)},
                        {"verify_ms", parts.verify_us / 1e3},
                        {"judge_ms", parts.judge_us / 1e3}},
             .group = kind});
  const bool first = kind == "sqlite" && method == "group-commit";
  const std::string suffix = first ? "" : fmt::format("_{}{}", kind, method == "plain" ? "_plain" : "");
  bench.metric("records_per_s" + suffix, rate, Better::higher, {.relative = 0.15});
  bench.metric("p99_ms" + suffix, p99, Better::lower, {.relative = 0.3, .absolute = 2});
  bench.metric("lost" + suffix, outcome.lost, Better::lower, {.relative = 0});
  bench.at_most(fmt::format("acknowledged records that {} has lost", kind), outcome.lost, 0);
  bench.must(static_cast<int>(outcome.acknowledged.size()) == load.total(),
             fmt::format("{}, {}: {} of {} records were acknowledged", kind, method,
                         outcome.acknowledged.size(), load.total()));
  bench.environment(fmt::format("bottleneck, {}, {}", kind, method),
                    bottleneck(outcome, parts, static_cast<std::size_t>(load.machines * load.batches)));
}

/// Both methods, each on a store of its own.
Status run_store(Bench& bench, const std::string& kind,
                 const std::function<Result<fleet::OpenStore>()>& fresh, const Load& load,
                 const std::vector<Machine>& machines, const Parts& parts) {
  for (const auto& [method, commit] :
       {std::pair<const char*, std::size_t>{"group-commit", 64}, {"plain", 1}}) {
    FURLONG_TRY(const fleet::OpenStore open, fresh());
    FURLONG_TRY(const Outcome outcome, run_hub(open, machines, commit));
    report(bench, kind, method, load, outcome, parts);
    FURLONG_TRY(const auto store, open());
    FURLONG_TRY(const auto totals, store->totals());
    bench.environment(kind, totals.version);
  }
  return {};
}

Status run(Bench& bench) {
  const auto number = [&](const char* name, int smoke) -> Result<int> {
    FURLONG_TRY(const auto value, furlong::parse_integer(bench.option(name)));
    return bench.smoke() ? smoke : static_cast<int>(value);
  };
  Load load;
  FURLONG_TRY(load.machines, number("machines", 3));
  FURLONG_TRY(load.batches, number("batches", 4));
  FURLONG_TRY(load.records, number("records", 5));
  FURLONG_TRY(const auto machines, make_machines(load));
  FURLONG_TRY(const Parts parts, measure_parts(machines));
  FURLONG_TRY(const auto folder, furlong::TemporaryFolder::make("furlong-intake-"));
  int files = 0;
  const auto opener = [](const fleet::StoreKind& kind, std::string url) -> fleet::OpenStore {
    return [kind, url] { return kind.open(url, {}); };
  };
  FURLONG_CHECK(run_store(
      bench, "sqlite",
      [&]() -> Result<fleet::OpenStore> {
        return opener(fleet::sqlite::store_kind(),
                      fmt::format("sqlite:{}/{}.sqlite", folder.path().string(), ++files));
      },
      load, machines, parts));
  const auto server = fleet::postgres::TestServer::start(true);
  if (!server) {
    bench.environment("postgresql", "not run: " + server.error().text());
    return {};
  }
  return run_store(
      bench, "postgresql",
      [&]() -> Result<fleet::OpenStore> {
        FURLONG_TRY(const std::string url, (*server)->new_database());
        return opener(fleet::postgres::store_kind(), url);
      },
      load, machines, parts);
}

}  // namespace

int main(int argc, char** argv) {
  return furlong::bench::bench_main(argc, argv, "fleet-intake", run,
                                    {{"machines", "that send at once, each one batch after the other", "8"},
                                     {"batches", "of each", "200"},
                                     {"records", "in each, of 20 variants", "20"}});
}
