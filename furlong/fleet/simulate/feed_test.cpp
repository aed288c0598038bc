#include "furlong/fleet/simulate/feed.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <set>

#include "furlong/base/os/clock.h"
#include "furlong/fleet/record_batch.h"
#include "furlong/fleet/store/memory/memory.h"

namespace furlong::fleet {
namespace {

SimulateOptions small() {
  SimulateOptions options;
  options.machines = 10;
  options.days = 1;
  options.clones = options.canaries = 1;
  return options;
}

std::size_t count_races(const SimulateOptions& options) {
  const auto simulation = *Simulation::make(options);
  DecodedRace race;
  std::size_t count = 0;
  while (simulation->next(race)) ++count;
  return count;
}

TEST(BatchMaker, EveryRaceIsInOneSignedBatchOfItsMachine) {
  const auto simulation = *Simulation::make(small()), again = *Simulation::make(small());
  BatchMaker maker(*simulation, 7), other(*again, 7);
  std::set<std::string> ids;
  std::set<RecordId> races;
  for (;;) {
    const auto batch = maker.next(), same = other.next();
    ASSERT_TRUE(batch);
    ASSERT_EQ(batch->has_value(), same->has_value());
    if (!*batch) break;
    const SimulatedBatch& one = **batch;
    EXPECT_EQ(one.body, (*same)->body);
    const auto parsed = parse_record_batch(one.body);
    ASSERT_TRUE(parsed) << parsed.error().text();
    EXPECT_EQ(parsed->machine, simulation->machines()[one.machine].id);
    EXPECT_EQ(parsed->id, one.id);
    EXPECT_EQ(parsed->canary, simulation->machines()[one.machine].canary);
    ASSERT_EQ(parsed->lines.size(), one.races.size());
    EXPECT_LE(one.races.size(), 7u);
    EXPECT_TRUE(
        verify_body(batch_media_type, one.body, one.signature, simulation->key(one.machine).public_key));
    EXPECT_TRUE(ids.insert(one.id).second);
    for (const DecodedRace& race : one.races) races.insert(race.id);
  }
  EXPECT_EQ(races.size(), count_races(small()));
}

TEST(FeedStore, FilesEverythingUnderEnrolledMachines) {
  const auto data = make_memory_data();
  const auto store = open_memory_store(data);
  const auto simulation = *Simulation::make(small());
  double share = 0;
  const auto counts =
      feed_store(*simulation, *store, [&](const FeedCounts&, double now) { share = now; }, {});
  ASSERT_TRUE(counts) << counts.error().text();
  EXPECT_EQ(counts->machines, 9u) << "two boxes share a key";
  EXPECT_EQ(counts->records, count_races(small()));
  EXPECT_EQ(counts->accepted + counts->duplicate, counts->records);
  EXPECT_EQ(store->totals()->races, counts->accepted);
  EXPECT_DOUBLE_EQ(share, 1);
  const std::vector<Machine> machines = *store->machines();
  EXPECT_EQ(machines.size(), 9u);
  EXPECT_EQ(std::ranges::count_if(machines, &Machine::canary), 1);
  ASSERT_TRUE(store->batches(0, [&](const StoredBatch& batch) -> Result<bool> {
    const auto machine = store->machine(batch.machine);
    EXPECT_TRUE(verify_body(batch_media_type, batch.body, batch.signature, *(*machine)->key));
    return true;
  }));
  // The same fleet once more changes nothing.
  const auto again = *Simulation::make(small());
  const auto twice = feed_store(*again, *store, {}, {});
  EXPECT_EQ(twice->machines, 0u);
  EXPECT_EQ(twice->duplicate, counts->records);
  EXPECT_EQ(store->totals()->races, counts->accepted);
}

TEST(FeedStore, EndsWhenItIsStopped) {
  const auto store = open_memory_store();
  SimulateOptions options = small();
  options.days = 10'000;
  const auto simulation = *Simulation::make(options);
  std::stop_source stop;
  const auto counts = feed_store(
      *simulation, *store, [&](const FeedCounts&, double) { stop.request_stop(); }, stop.get_token());
  ASSERT_TRUE(counts);
  EXPECT_GT(counts->records, 0u);
  EXPECT_LT(simulation->progress(), 0.1);
  EXPECT_GT(store->totals()->races, counts->accepted / 2) << "some take the place of others";
}

/// A hub of a few lines: it knows keys by tokens, checks signatures, and is busy now and then.
class SmallHub {
 public:
  Result<HttpResponse> answer(const HttpRequest& request) {
    const std::scoped_lock lock(mutex_);
    if (++asked_ % 5 == 0) return HttpResponse{.status = 429, .headers = {{"retry-after", "0"}}};
    const auto header = [&](std::string_view name) {
      for (const auto& [key, value] : request.headers)
        if (key == name) return value;
      return std::string();
    };
    const std::string machine = header(machine_header), signature = header(signature_header);
    if (request.url == "http://hub/v1/enrol") {
      const auto enrol = parse_enrol_request(request.body);
      if (!enrol || !verify_body(enrol_media_type, request.body, signature, enrol->key))
        return HttpResponse{.status = 400};
      if (!tokens.contains(enrol->token)) return HttpResponse{.status = 403, .body = "no such token"};
      tokens.erase(enrol->token);
      keys_[enrol->key.id()] = enrol->key;
      return HttpResponse{.status = 200, .body = R"({"schema":1,"machine":")" + enrol->key.id() + "\"}"};
    }
    if (!keys_.contains(machine)) return HttpResponse{.status = 401, .body = "unknown key"};
    if (!verify_body(batch_media_type, request.body, signature, keys_[machine]))
      return HttpResponse{.status = 401};
    const auto batch = parse_record_batch(request.body);
    if (!batch) return HttpResponse{.status = 400};
    BatchReply reply;
    for (const std::string& line : batch->lines) {
      const auto record = record::parse_record(line, "line");
      (records.insert(record->id).second ? reply.accepted : reply.duplicate).push_back(record->id);
    }
    return HttpResponse{.status = 200, .body = print(reply)};
  }
  std::set<std::string> tokens, records;

 private:
  std::mutex mutex_;
  int asked_ = 0;
  std::map<std::string, PublicKey> keys_;
};

class SmallClient : public HttpClient {
 public:
  explicit SmallClient(SmallHub& hub) : hub_(hub) {}
  Result<HttpResponse> send(const HttpRequest& request, const std::stop_token&) override {
    return hub_.answer(request);
  }

 private:
  SmallHub& hub_;
};

Result<FeedCounts> feed(SmallHub& hub, std::vector<std::string> tokens, const std::stop_token& stop = {}) {
  const auto simulation = *Simulation::make(small());
  const HubFeed options{.url = "http://hub", .ca_file = {}, .tokens = std::move(tokens), .senders = 3};
  return feed_hub(
      *simulation, options,
      [&]() -> Result<std::unique_ptr<HttpClient>> { return std::make_unique<SmallClient>(hub); },
      system_clock(), {}, stop);
}

TEST(FeedHub, SendsEverythingThroughABusyHub) {
  SmallHub hub;
  std::vector<std::string> tokens;
  for (int i = 0; i < 9; ++i) tokens.push_back("token-" + std::to_string(i));
  hub.tokens = {tokens.begin(), tokens.end()};
  const auto counts = feed(hub, tokens);
  ASSERT_TRUE(counts) << counts.error().text();
  EXPECT_EQ(counts->machines, 9u);
  EXPECT_EQ(counts->accepted, count_races(small()));
  EXPECT_EQ(hub.records.size(), counts->accepted);
  EXPECT_GT(counts->retries, 0u);
  EXPECT_TRUE(hub.tokens.empty());
  const auto again = feed(hub, {});
  ASSERT_TRUE(again) << again.error().text();
  EXPECT_EQ(again->duplicate, counts->accepted) << "enrolled already";
}

TEST(FeedHub, AHubThatDoesNotKnowItIsTold) {
  SmallHub hub;
  const auto unknown = feed(hub, {});
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code(), Code::denied);
  EXPECT_NE(unknown.error().text().find("unknown key"), std::string::npos) << unknown.error().text();
  const auto wrong = feed(hub, {"wrong"});
  ASSERT_FALSE(wrong);
  EXPECT_NE(wrong.error().text().find("no such token"), std::string::npos) << wrong.error().text();
}

TEST(FeedHub, EndsWhenItIsStopped) {
  SmallHub hub;
  hub.tokens = {"a"};
  std::stop_source stop;
  stop.request_stop();
  const auto counts = feed(hub, {"a"}, stop.get_token());
  ASSERT_TRUE(counts);
  EXPECT_EQ(counts->records, 0u);
}

}  // namespace
}  // namespace furlong::fleet
