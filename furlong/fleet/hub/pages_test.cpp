#include "furlong/fleet/hub/pages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "furlong/base/text.h"
#include "furlong/fleet/hub/internal/testing.h"

namespace furlong::fleet {
namespace {

using hub_testing::error_of;
using hub_testing::get;
using hub_testing::header;
using hub_testing::json_of;
using hub_testing::Sender;
using hub_testing::start_us;
using hub_testing::TestHub;
using ::testing::HasSubstr;

constexpr std::int64_t minute_us = 60'000'000;

class Asking : public ::testing::Test {
 protected:
  Asking() { fleet.know(box); }
  /// Races of as many epochs, a minute apart; their ids, the newest first.
  std::vector<std::string> race(int count) {
    std::vector<std::string> lines, ids;
    for (int i = 0; i < count; ++i) {
      const Json record = box.record(fmt::format("{:016x}", i), start_us - (count - i) * minute_us);
      ids.insert(ids.begin(), record["id"].get<std::string>());
      lines.push_back(json_line(record));
    }
    EXPECT_EQ(fleet.send(box.request(box.body(lines, "0.1.0"))).status, 200);
    fleet.hub().learner().step();
    return ids;
  }
  Json ask(const std::string& path, std::vector<std::pair<std::string, std::string>> query = {}) {
    const ServerReply reply = fleet.send(get(path, std::move(query)));
    EXPECT_EQ(reply.status, 200) << path << ": " << reply.body;
    return json_of(reply);
  }
  std::vector<std::string> ids_of(const Json& page) {
    std::vector<std::string> ids;
    for (const Json& each : page["races"]) ids.push_back(each["id"]);
    return ids;
  }

  TestHub fleet;
  Sender box{1};
};

TEST_F(Asking, RacesPageByPage) {
  const auto all = race(25);
  std::vector<std::string> seen;
  std::vector<std::pair<std::string, std::string>> query{{"limit", "10"}};
  for (int pages = 1;; ++pages) {
    const Json page = ask("/v1/races", query);
    for (const std::string& id : ids_of(page)) seen.push_back(id);
    if (!page.contains("next")) {
      EXPECT_EQ(pages, 3);
      break;
    }
    query = {{"limit", "10"}, {"before", page["next"]}};
  }
  EXPECT_EQ(seen, all);
  EXPECT_FALSE(ask("/v1/races", {{"limit", "25"}}).contains("next")) << "a full page that is the last one";
  const Json one = ask("/v1/races", {{"limit", "1"}})["races"][0];
  EXPECT_EQ(one["ts"], "2026-03-01T11:59:00Z");
  EXPECT_EQ(one["rate"], 118.3) << "as it was told, not as a float is";
  EXPECT_EQ(one["class"], (Json{{"loads", 128}, {"wide", 0}}));
}

TEST_F(Asking, Filters) {
  race(4);
  const auto count = [&](const char* name, const std::string& value) {
    return ask("/v1/races", {{name, value}})["races"].size();
  };
  for (const auto& [name, value] :
       std::initializer_list<std::pair<const char*, const char*>>{{"card", "NVIDIA_H200"},
                                                                  {"card", "NVIDIA_H200@9c1f0a5b7d3e2f46"},
                                                                  {"silicon", "9c1f0a5b7d3e2f46"},
                                                                  {"program", "lottery"},
                                                                  {"driver", "580.95.05"},
                                                                  {"backend", "cuda"},
                                                                  {"winner", "u2"}}) {
    EXPECT_EQ(count(name, value), 4u) << name;
    EXPECT_EQ(count(name, std::string(value) + "x"), 0u) << name;
  }
  EXPECT_EQ(count("machine", box.id()), 4u);
  EXPECT_EQ(count("since", "2026-03-01T11:58:00Z"), 2u);
  EXPECT_EQ(count("until", "2026-03-01T11:58:00Z"), 2u);
}

TEST_F(Asking, WrongParameters) {
  const auto refused = [&](const std::string& name, const std::string& value, const char* words) {
    const ServerReply reply = fleet.send(get("/v1/races", {{name, value}}));
    EXPECT_EQ(reply.status, 400);
    EXPECT_THAT(error_of(reply), HasSubstr(words));
  };
  refused("wnner", "u2", "unknown parameter 'wnner', did you mean 'winner'?");
  refused("limit", "0", "limit: '0' is no number from 1 to 1000");
  refused("limit", "1001", "limit");
  refused("limit", "ten", "limit");
  refused("since", "yesterday", "since: 'yesterday' is no time");
  refused("before", "x", "before");
  refused("card", "", "card: a value of 1 to 200 bytes");
  refused("card", std::string(201, 'x'), "card");
  refused("\x1b[2J", "x", "unknown parameter ' [2J'");
  const ServerReply twice = fleet.send(get("/v1/races", {{"card", "a"}, {"card", "b"}}));
  EXPECT_THAT(error_of(twice), HasSubstr("'card' is given twice"));
  EXPECT_THAT(error_of(fleet.send(get("/v1/machines", {{"x", "1"}}))), HasSubstr("takes no parameters"));
}

TEST_F(Asking, OneRaceAsItWasSigned) {
  const auto ids = race(3);
  const Json reply = ask("/v1/races/" + ids[1]);
  EXPECT_EQ(reply["record"]["id"], ids[1]);
  EXPECT_EQ(reply["record"]["detail"]["u2"]["ci"], (Json{1.8, 2.4}));
  EXPECT_EQ(reply["batch"]["records"], 3);
  EXPECT_EQ(reply["batch"]["machine"], box.id());
  EXPECT_EQ(reply["batch"]["verified"], true);
  Machine other = **fleet.store()->machine(box.id());
  other.key = Sender(2).key.public_key;
  ASSERT_TRUE(fleet.store()->put_machine(other));
  EXPECT_EQ(ask("/v1/races/" + ids[1])["batch"]["verified"], false) << "it is looked at each time";
  EXPECT_EQ(fleet.send(get("/v1/races/01956a3c-8f00-7abc-8def-0123456789ab")).status, 404);
  EXPECT_EQ(fleet.send(get("/v1/races/nonsense")).status, 400);
}

TEST_F(Asking, Machines) {
  race(2);
  ASSERT_TRUE(fleet.store()->put_machine({.id = "import:old", .enrolled_us = start_us}));
  const Json list = ask("/v1/machines")["machines"];
  ASSERT_EQ(list.size(), 2u);
  EXPECT_EQ(list[0]["id"], box.id());
  EXPECT_EQ(list[0]["accepted"], 2);
  EXPECT_EQ(list[0]["seen"], "2026-03-01T12:00:00Z");
  EXPECT_EQ(list[0]["agent"], "0.1.0");
  EXPECT_FALSE(list[1].contains("seen")) << "absent, not null";
}

TEST_F(Asking, TagsOfWhatHasNotChanged) {
  race(1);
  for (const char* path :
       {"/v1/summary", "/v1/cards", "/v1/tuning", "/v1/races", "/v1/machines", "/v1/regressions", "/v1/knobs",
        "/v1/rollout", "/v1/openapi.json", "/healthz", "/"}) {
    const ServerReply first = fleet.send(get(path));
    ASSERT_EQ(first.status, 200) << path;
    ServerRequest again = get(path);
    again.headers = {{"if-none-match", "\"other\", W/" + header(first, "ETag")}};
    fleet.clock.advance_ns(1'500'000'000);
    const ServerReply same = fleet.send(again);
    EXPECT_EQ(same.status, 304) << path;
    EXPECT_EQ(same.body, "") << path;
    EXPECT_EQ(header(same, "ETag"), header(first, "ETag")) << path;
  }
}

TEST_F(Asking, SummaryTellsOfChange) {
  const Json empty = ask("/v1/summary");
  race(1);
  const Json one = ask("/v1/summary");
  EXPECT_NE(one["change"], empty["change"]);
  EXPECT_EQ(one["races"], 1);
  EXPECT_EQ(one["stale_s"], 0);
  EXPECT_LE(one["change"].get<double>(), 0x1p53);
  EXPECT_EQ(one["store"]["kind"], "memory");
  // Within refresh_s of the last aggregates a new race makes them stale.
  EXPECT_EQ(fleet.send(box.request(box.body({json_line(box.record("00000000000000aa"))}))).status, 200);
  fleet.clock.advance_ns(1'000'000'000);
  fleet.hub().learner().step();
  fleet.clock.advance_ns(3'000'000'000);
  EXPECT_EQ(ask("/v1/summary")["stale_s"], 3);
  fleet.clock.advance_ns(10'000'000'000);
  fleet.hub().learner().step();
  EXPECT_EQ(ask("/v1/summary")["stale_s"], 0);
}

TEST_F(Asking, ReadersGetTheLastResultsWhenTheStoreIsGone) {
  race(1);
  fleet.faults->set([](std::string_view) -> Status { return fail(Code::unavailable, "gone"); });
  fleet.clock.advance_ns(60'000'000'000);
  fleet.hub().learner().step();
  EXPECT_EQ(ask("/v1/cards")["cards"].size(), 1u);
  EXPECT_EQ(fleet.send(get("/v1/tuning")).status, 200);
  EXPECT_THAT(fleet.all_said(), HasSubstr("store: gone; the last results go on being served"));
  EXPECT_THAT(fleet.send(get("/metrics")).body, HasSubstr("furlong_hub_store_up 0\n"));
  fleet.faults->set({});
  fleet.hub().learner().step();
  EXPECT_THAT(fleet.all_said(), HasSubstr("store: it answers again"));
}

TEST_F(Asking, BeforeTheFirstResults) {
  const ServerReply reply = fleet.send(get("/v1/cards"));
  EXPECT_EQ(reply.status, 503);
  EXPECT_EQ(header(reply, "Retry-After"), "1");
}

TEST_F(Asking, Cards) {
  race(5);
  const Json list = ask("/v1/cards");
  ASSERT_EQ(list["cards"].size(), 1u);
  const Json row = list["cards"][0]["rows"][0];
  for (const char* key : {"variants", "set_aside", "why"}) EXPECT_FALSE(row.contains(key)) << key;
  const std::string key = list["cards"][0]["key"];
  const Json card = ask("/v1/cards/" + key);
  EXPECT_TRUE(card["rows"][0].contains("variants"));
  EXPECT_EQ(ask("/v1/cards/9c1f0a5b7d3e2f46"), card) << "by the hash of its silicon";
  const ServerReply none = fleet.send(get("/v1/cards/" + key + "x"));
  EXPECT_EQ(none.status, 404);
  EXPECT_THAT(error_of(none), HasSubstr(key));
}

TEST_F(Asking, MethodsAndPaths) {
  const auto ask_by = [&](const std::string& method, const std::string& path) {
    ServerRequest request = get(path);
    request.method = method;
    return fleet.send(request);
  };
  EXPECT_EQ(ask_by("HEAD", "/v1/machines").status, 200);
  EXPECT_EQ(header(ask_by("POST", "/v1/machines"), "Allow"), "GET, HEAD");
  EXPECT_EQ(ask_by("DELETE", "/v1/races/x").status, 405);
  EXPECT_EQ(header(ask_by("GET", "/v1/records"), "Allow"), "POST");
  EXPECT_EQ(ask_by("PUT", "/").status, 405);
  for (const char* path :
       {"/v1", "/v1/", "/v1/nothing", "/v1/races/", "/v2/races", "/nothing", "//v1/races", "/v1/../v1/races"})
    EXPECT_EQ(ask_by("GET", path).status, 404) << path;
}

TEST_F(Asking, SecurityHeadersOnEverything) {
  race(1);
  for (const char* path : {"/v1/summary", "/v1/none", "/", "/none", "/metrics"}) {
    const ServerReply reply = fleet.send(get(path));
    EXPECT_THAT(header(reply, "Content-Security-Policy"), HasSubstr("default-src '")) << path;
    EXPECT_EQ(header(reply, "X-Frame-Options"), "DENY") << path;
    EXPECT_EQ(header(reply, "Referrer-Policy"), "no-referrer") << path;
    EXPECT_EQ(header(reply, "Access-Control-Allow-Origin"), "") << path;
  }
  EXPECT_THAT(header(fleet.send(get("/")), "Content-Security-Policy"), HasSubstr("default-src 'self'"));
}

TEST_F(Asking, KnobsByTheFleetsRaces) {
  lattice::Lattice lattice;
  lattice.knobs.push_back({.name = "UNROLL", .values = {1, 2}, .tags = {"", "u2"}});
  lattice.catalogue = {"base", "u2"};
  fleet.options.lattices = {{"lottery", "cuda", "", lattice}};
  EXPECT_EQ(ask("/v1/knobs")["programs"][0]["races"], 0) << "before there is a race";
  race(6);
  const Json row = ask("/v1/knobs")["programs"][0];
  EXPECT_EQ(row["program"], "lottery");
  EXPECT_EQ(row["knobs"], 1);
  EXPECT_EQ(row["races"], 6);
  const Json audit = ask("/v1/knobs/lottery");
  EXPECT_EQ(audit["cut"], false);
  EXPECT_EQ(audit["races"], 6);
  EXPECT_EQ(audit["editions"][0]["report"]["knobs"][0]["knob"], "UNROLL");
  EXPECT_THAT(error_of(fleet.send(get("/v1/knobs/lotery"))), HasSubstr("lottery"));
}

TEST_F(Asking, AuditsReadABoundedNumberOfRaces) {
  race(20);
  lattice::Lattice lattice;
  lattice.knobs.push_back({.name = "UNROLL", .values = {1, 2}, .tags = {"", "u2"}});
  lattice.catalogue = {"base", "u2"};
  const auto with = fleet.surroundings();
  Audits audits({{"lottery", "cuda", "", lattice}}, with.open_store, fleet.clock, with.say,
                {.most_races = 7});
  Learned learned;
  learned.change = 1;
  audits.refresh(learned);
  const Json audit = *json_parse(audits.latest()->programs.at("lottery").body, "audit");
  EXPECT_EQ(audit["races"], 7);
  EXPECT_EQ(audit["cut"], true);
}

/// With it and the record anybody could send a batch of one record again.
TEST_F(Asking, ARaceIsToldWithoutTheSignatureOfItsBatch) {
  const std::string id = race(1).front();
  const ServerReply reply = fleet.send(get("/v1/races/" + id));
  const std::string signature = (**fleet.store()->race(id)).batch.signature;
  ASSERT_EQ(signature.size(), 128u);
  EXPECT_EQ(reply.body.find(signature.substr(0, 32)), std::string::npos);
  EXPECT_EQ(json_of(reply)["batch"]["signed"], true);
  EXPECT_EQ(json_of(reply)["batch"]["verified"], true);
}

/// Names of cards are the machines' own words: they get so many documents, and those that more machines speak
/// for get them first.
TEST(Learning, CardsAreBounded) {
  Aggregate aggregate;
  for (int i = 0; i < 10; ++i) {
    CardEvidence card{.key = fmt::format("card-{}", i), .silicon = {}, .label = fmt::format("card-{}", i)};
    card.rows.resize(1);
    card.rows[0].machines = i == 4 ? 2 : 1;
    card.rows[0].races = i == 4 ? 5 : 1000 + i;
    aggregate.cards.push_back(std::move(card));
  }
  const Learned learned = learn(aggregate, {}, 3);
  ASSERT_EQ(learned.cards.size(), 3u);
  EXPECT_EQ(learned.cards[0].key, "card-4") << "two machines say more than a thousand races of one";
  EXPECT_EQ(learned.cards[1].key, "card-8");
  EXPECT_EQ(learned.cards[2].key, "card-9");
  EXPECT_EQ(learned.cards_left_out, 7u);
  EXPECT_THAT(learned.list.body, HasSubstr("\"cards_left_out\":7"));
  EXPECT_EQ(learn(aggregate, {}).list.body.find("cards_left_out"), std::string::npos);
}

TEST_F(Asking, OldRacesAreForgottenOnceAnHour) {
  race(3);
  fleet.core.reset();
  fleet.options.keep_days = 1;
  int prunes = 0;
  fleet.faults->set([&](std::string_view call) -> Status {
    prunes += call == "prune";
    return {};
  });
  constexpr std::int64_t hour_ns = 3'600'000'000'000;
  fleet.hub().pruner().step();
  EXPECT_EQ(fleet.store()->totals()->races, 3u);
  EXPECT_EQ(prunes, 1);
  fleet.clock.advance_ns(hour_ns - 1);
  fleet.hub().pruner().step();
  EXPECT_EQ(prunes, 1) << "not within the hour";
  fleet.clock.advance_ns(25 * hour_ns);
  fleet.hub().pruner().step();
  EXPECT_EQ(prunes, 2);
  EXPECT_EQ(fleet.store()->totals()->races, 0u);
  EXPECT_THAT(fleet.all_said(), HasSubstr("3 races older than 1 days are forgotten"));
  EXPECT_THAT(fleet.send(get("/metrics")).body, HasSubstr("furlong_hub_pruned_races_total 3\n"));
}

TEST_F(Asking, MetricsAreWellFormed) {
  race(2);
  fleet.send(box.request(box.body({"{}"})));
  const std::string text = fleet.send(get("/metrics")).body;
  EXPECT_THAT(text, HasSubstr("furlong_hub_records_total{fate=\"accepted\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("furlong_hub_records_total{fate=\"refused\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("furlong_hub_requests_total{route=\"/v1/records\",status=\"2xx\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("furlong_hub_build_info{version=\"0.1.0\",store=\"memory\"} 1\n"));
  std::set<std::string> helped, typed;
  for (const std::string& line : split(text, '\n')) {
    if (line.empty()) continue;
    const auto words = split(line, ' ');
    if (line.starts_with("# HELP "))
      EXPECT_TRUE(helped.insert(words[2]).second) << line;
    else if (line.starts_with("# TYPE "))
      EXPECT_TRUE(typed.insert(words[2]).second) << line;
    else {
      std::string name = line.substr(0, line.find_first_of("{ "));
      for (const char* suffix : {"_bucket", "_sum", "_count"})
        if (name.ends_with(suffix) &&
            helped.contains(name.substr(0, name.size() - std::string(suffix).size())))
          name.resize(name.size() - std::string(suffix).size());
      EXPECT_TRUE(typed.contains(name)) << line;
      EXPECT_TRUE(parse_number(words.back())) << line;
    }
    EXPECT_THAT(words[line[0] == '#' ? 2 : 0], ::testing::StartsWith("furlong_hub_"));
  }
  EXPECT_EQ(helped, typed);
}

TEST_F(Asking, LabelsOfMetricsAreEscaped) {
  PrometheusText text;
  text.family("x", "gauge", "y");
  text.sample(1, {{"a", "q\"b\\c\nd"}});
  EXPECT_THAT(text.take(), HasSubstr("furlong_hub_x{a=\"q\\\"b\\\\c\\nd\"} 1\n"));
}

}  // namespace
}  // namespace furlong::fleet
