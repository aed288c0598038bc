#pragma once
// What the tests of the hub share: machines that sign, records, a hub on a store in memory that can fail.

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "furlong/base/json.h"
#include "furlong/base/os/clock.h"
#include "furlong/base/os/file.h"
#include "furlong/base/random.h"
#include "furlong/fleet/hub/core.h"
#include "furlong/fleet/record_batch.h"
#include "furlong/fleet/store/memory/memory.h"
#include "furlong/record/record.h"

namespace furlong::fleet::hub_testing {

inline constexpr std::int64_t start_us = 1'772'366'400'000'000;  // 2026-03-01T12:00:00Z

/// A wall clock that begins in 2026.
class TestClock : public FakeClock {
 public:
  std::int64_t wall_us() override { return start_us + FakeClock::wall_us(); }
};

/// A machine with a key of its own.
struct Sender {
  KeyPair key;
  Random random;
  std::int64_t bodies = 0;  ///< made by body()
  explicit Sender(std::uint64_t number)
      : key(*KeyPair::from_seed(blake2b_256(fmt::format("sender {}", number)).bytes)),
        random(number, "sender") {}
  std::string id() const { return key.public_key.id(); }

  std::string record_id(std::int64_t at_us = start_us) {
    struct At : FakeClock {
      std::int64_t us;
      explicit At(std::int64_t at) : us(at) {}
      std::int64_t wall_us() override { return us; }
    } clock(at_us);
    return record::make_record_id(clock, random);
  }
  /// A whole record, as its JSON.
  Json record(const std::string& epoch = "00f1e2d3c4b5a697", std::int64_t at_us = start_us) {
    return Json{{"schema", 1},
                {"id", record_id(at_us)},
                {"ts", iso_time(at_us)},
                {"machine", id()},
                {"slot", "s-0"},
                {"agent", "0.1.0"},
                {"card", "NVIDIA_H200"},
                {"silicon", {{"vendor", "NVIDIA"}, {"arch", "sm_90"}, {"hash", "9c1f0a5b7d3e2f46"}}},
                {"backend", "cuda"},
                {"driver", "580.95.05"},
                {"program", "lottery"},
                {"source", "b3d1c0"},
                {"epoch", epoch},
                {"class", {{"loads", 128}, {"wide", 0}}},
                {"unit", "MH/s"},
                {"variants", {{"base", 115.9}, {"u2", 118.3}}},
                {"detail", {{"u2", {{"gain_pct", 2.1}, {"ci", {1.8, 2.4}}}}}},
                {"winner", "u2"},
                {"rate", 118.3},
                {"base_rate", 115.9},
                {"gain_pct", 2.1},
                {"verdict", "winner"}};
  }
  /// Each with a newer id than the one before.
  std::string body(const std::vector<std::string>& lines, const std::string& agent = "",
                   const std::string& manifest = "", bool canary = false) {
    return *print(RecordBatch{.id = record_id(start_us + 1000 * bodies++),
                              .machine = id(),
                              .lines = lines,
                              .agent = agent,
                              .manifest = manifest,
                              .canary = canary});
  }
  ServerRequest request(const std::string& body, const std::string& peer = "192.0.2.1") const {
    ServerRequest request{.method = "POST", .path = "/v1/records"};
    request.headers = {{"content-type", std::string(batch_media_type)},
                       {"furlong-machine", id()},
                       {"furlong-signature", sign_body(batch_media_type, body, key)}};
    request.body = body;
    request.peer = peer;
    return request;
  }
  ServerRequest enrolment(const std::string& token, const std::string& peer = "192.0.2.1") const {
    ServerRequest request{.method = "POST", .path = "/v1/enrol"};
    request.body = print(EnrolRequest{token, key.public_key});
    request.headers = {{"content-type", std::string(enrol_media_type)},
                       {"furlong-machine", id()},
                       {"furlong-signature", sign_body(enrol_media_type, request.body, key)}};
    request.peer = peer;
    return request;
  }
};

inline ServerRequest get(std::string path, std::vector<std::pair<std::string, std::string>> query = {}) {
  return {.method = "GET", .path = std::move(path), .query = std::move(query)};
}

/// A store in memory; `fault` is asked before each call and may return an error: "add", "machine", "enrol", …
struct StoreFaults {
  std::mutex mutex;
  std::function<Status(std::string_view call)> fault;
  std::atomic<int> adds = 0;
  Status ask(std::string_view call) {
    std::function<Status(std::string_view)> now;
    {
      const std::scoped_lock lock(mutex);
      now = fault;
    }
    return now ? now(call) : Status();
  }
  void set(std::function<Status(std::string_view)> next) {
    const std::scoped_lock lock(mutex);
    fault = std::move(next);
  }
};

class FaultyStore : public Store {
 public:
  FaultyStore(std::unique_ptr<Store> store, std::shared_ptr<StoreFaults> faults)
      : store_(std::move(store)), faults_(std::move(faults)) {}
  Status add_token(const Token& token) override {
    return asked("add_token", [&] { return store_->add_token(token); });
  }
  Result<std::vector<Token>> tokens() override {
    return asked("tokens", [&] { return store_->tokens(); });
  }
  Result<Machine> enrol(const Digest& token, const PublicKey& key, std::int64_t now_us) override {
    return asked("enrol", [&] { return store_->enrol(token, key, now_us); });
  }
  Result<std::optional<Machine>> machine(std::string_view id) override {
    return asked("machine", [&] { return store_->machine(id); });
  }
  Result<std::vector<Machine>> machines() override {
    return asked("machines", [&] { return store_->machines(); });
  }
  Status retire(std::string_view id) override {
    return asked("retire", [&] { return store_->retire(id); });
  }
  Status set_canary(std::string_view id, bool canary) override { return store_->set_canary(id, canary); }
  Status add_importer(std::string_view name, std::int64_t now_us) override {
    return store_->add_importer(name, now_us);
  }
  Result<std::vector<BatchOutcome>> add(std::span<const IncomingBatch> batches) override {
    ++faults_->adds;
    return asked("add", [&] { return store_->add(batches); });
  }
  Result<std::uint64_t> prune(std::int64_t before_us, const std::stop_token& stop) override {
    return asked("prune", [&] { return store_->prune(before_us, stop); });
  }
  Result<std::vector<SubjectRow>> subjects() override { return store_->subjects(); }
  Result<std::vector<std::string>> words() override { return store_->words(); }
  Result<std::vector<std::string>> machine_names() override { return store_->machine_names(); }
  Status scan(SubjectNumber subject, Window window,
              const std::function<bool(const RaceRow&)>& visit) override {
    return store_->scan(subject, window, visit);
  }
  Result<std::optional<std::int64_t>> newest_ts() override { return store_->newest_ts(); }
  Result<RacePage> page(const RaceFilter& filter) override {
    return asked("races", [&] { return store_->page(filter); });
  }
  Result<std::optional<RaceText>> race(std::string_view id) override {
    return asked("race", [&] { return store_->race(id); });
  }
  Result<StoreTotals> totals() override {
    return asked("totals", [&] { return store_->totals(); });
  }
  Status batches(std::uint64_t after, const std::function<Result<bool>(const StoredBatch&)>& visit) override {
    return store_->batches(after, visit);
  }
  Status put_machine(const Machine& machine) override { return store_->put_machine(machine); }
  Status put_token(const Token& token) override { return store_->put_token(token); }
  Result<std::vector<bool>> have(std::span<const RecordId> ids) override { return store_->have(ids); }
  Result<bool> has_batch(const StoredBatch& batch) override { return store_->has_batch(batch); }
  Result<std::uint64_t> put_batches(std::span<const IncomingBatch> batches) override {
    return store_->put_batches(batches);
  }
  Result<bool> snapshot(const std::filesystem::path& file) override { return store_->snapshot(file); }

 private:
  template <class Call>
  auto asked(std::string_view name, Call call) -> decltype(call()) {
    if (const Status wrong = faults_->ask(name); !wrong) return wrong.error();
    return call();
  }
  std::unique_ptr<Store> store_;
  std::shared_ptr<StoreFaults> faults_;
};

/// A hub on a store in memory, asked directly.
struct TestHub {
  std::shared_ptr<MemoryData> data = make_memory_data();
  std::shared_ptr<StoreFaults> faults = std::make_shared<StoreFaults>();
  TestClock clock;
  FakeFiles files;
  HubOptions options;
  std::mutex said_mutex;
  std::vector<std::string> said;
  std::unique_ptr<HubCore> core;

  TestHub() { options.version = "0.1.0"; }
  ~TestHub() { core.reset(); }

  HubSurroundings surroundings() {
    HubSurroundings with;
    with.open_store = [data = data, faults = faults]() -> Result<std::unique_ptr<Store>> {
      if (const Status wrong = faults->ask("open"); !wrong) return wrong.error();
      return std::make_unique<FaultyStore>(open_memory_store(data), faults);
    };
    with.files = &files;
    with.clock = &clock;
    with.say = [this](LogLevel, std::string_view text) {
      const std::scoped_lock lock(said_mutex);
      said.emplace_back(text);
    };
    return with;
  }
  HubCore& hub() {
    if (core == nullptr) core = *HubCore::open(options, surroundings());
    return *core;
  }
  std::unique_ptr<Store> store() { return open_memory_store(data); }

  std::string token(const std::string& text, double days = 1, const std::string& replaces = "") {
    const Status added =
        store()->add_token({.digest = blake2b_256(text),
                            .label = "box",
                            .replaces = replaces,
                            .issued_us = clock.wall_us(),
                            .expires_us = clock.wall_us() + static_cast<std::int64_t>(days * 86'400e6)});
    return added ? text : "";
  }
  /// Known to the store without an enrolment.
  void know(const Sender& sender) {
    static_cast<void>(
        store()->put_machine({.id = sender.id(), .key = sender.key.public_key, .label = "known"}));
  }
  ServerReply send(const ServerRequest& request) { return hub().handle(request); }
  std::string all_said() {
    const std::scoped_lock lock(said_mutex);
    std::string all;
    for (const std::string& line : said) all += line + "\n";
    return all;
  }
};

inline std::string header(const ServerReply& reply, std::string_view name) {
  for (const auto& [key, value] : reply.headers)
    if (key == name) return value;
  return "";
}

inline Json json_of(const ServerReply& reply) {
  auto json = json_parse(reply.body, "reply");
  return json ? *json : Json("unreadable: " + reply.body);
}

inline std::string error_of(const ServerReply& reply) {
  const Json json = json_of(reply);
  return json.is_object() && json.contains("error") ? json["error"]["message"].get<std::string>()
                                                    : "no error: " + reply.body;
}

}  // namespace furlong::fleet::hub_testing
