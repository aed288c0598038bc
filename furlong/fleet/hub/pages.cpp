#include "furlong/fleet/hub/pages.h"

#include <algorithm>
#include <cctype>

#include "furlong/base/hash.h"
#include "furlong/base/json.h"
#include "furlong/base/text.h"
#include "furlong/fleet/hub/openapi.h"

namespace furlong::fleet {
namespace {

constexpr double not_yet_retry_s = 1;

/// "SQLite 3.40.1" → "sqlite".
std::string kind_of(const std::string& version) {
  std::string kind = version.substr(0, version.find(' '));
  std::ranges::transform(kind, kind.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return kind;
}

/// Differs whenever anything that is shown may; whole in every reader of JSON.
std::uint64_t change_number(const PageSources& from, const Learned* learned, const Serving& serving) {
  Hasher hasher;
  const StoreTotals totals = from.learner.totals();
  hasher.add_field(fmt::format("{} {} {} {}", totals.change, totals.races, totals.batches, totals.machines));
  hasher.add_field(learned == nullptr ? ""
                                      : learned->list.tag + learned->regressions.tag + learned->tuning.tag);
  hasher.add_field(serving.document ? serving.document->tag : "");
  hasher.add_field(serving.problem);
  hasher.add_field(from.audits.latest()->list.tag);
  hasher.add_field(from.canaries.latest().tag());
  const Digest digest = hasher.finish();
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < 8; ++i) number = number << 8 | digest.bytes[i];
  return number >> 11;
}

}  // namespace

std::vector<Route> Pages::routes() {
  const auto plain = [this](auto page) {
    return [this, page](const ServerRequest& request, const std::string&) { return (this->*page)(request); };
  };
  const auto of_item = [this](auto page) {
    return [this, page](const ServerRequest& request, const std::string& item) {
      return (this->*page)(request, item);
    };
  };
  return {{"GET", "/v1/summary", {}, plain(&Pages::summary)},
          {"GET", "/v1/cards", {}, plain(&Pages::cards)},
          {"GET", "/v1/cards/{key}", {}, of_item(&Pages::card)},
          {"GET", "/v1/tuning", {}, plain(&Pages::tuning)},
          {"GET",
           "/v1/races",
           {"card", "silicon", "program", "machine", "driver", "backend", "winner", "since", "until",
            "before", "limit"},
           plain(&Pages::races),
           Share::page},
          {"GET", "/v1/races/{id}", {}, of_item(&Pages::race), Share::page},
          {"GET", "/v1/machines", {}, plain(&Pages::machines), Share::page},
          {"GET", "/v1/regressions", {}, plain(&Pages::regressions)},
          {"GET", "/v1/knobs", {}, plain(&Pages::knobs)},
          {"GET", "/v1/knobs/{program}", {}, of_item(&Pages::knobs_of)},
          {"GET", "/v1/rollout", {}, plain(&Pages::rollout), Share::page},
          {"GET", "/v1/manifest", {}, plain(&Pages::manifest)},
          {"GET",
           "/v1/openapi.json",
           {},
           [](const ServerRequest& request, const std::string&) {
             static const Document document = make_document(std::string(openapi_text()));
             return answer(request, document);
           }},
          {"GET", "/healthz", {}, plain(&Pages::health), Share::probe}};
}

ServerReply Pages::store_failed(const Error& error) const {
  from_.metrics.store_error(error.code());
  return store_reply(error);
}

ServerReply Pages::with_learned(const std::function<ServerReply(const Learned&)>& page) const {
  if (const auto learned = from_.learner.latest()) return page(*learned);
  if (const auto problem = from_.learner.problem()) return store_failed(*problem);
  return busy_reply(503, not_yet_retry_s, Code::unavailable, "the hub has just started and reads its races");
}

ServerReply Pages::cards(const ServerRequest& request) {
  return with_learned([&](const Learned& learned) { return answer(request, learned.list); });
}

ServerReply Pages::card(const ServerRequest& request, const std::string& name) {
  return with_learned([&](const Learned& learned) {
    if (const Learned::Card* card = learned.find(name)) return answer(request, card->document);
    std::vector<std::string> keys;
    for (const Learned::Card& each : learned.cards) keys.push_back(each.key);
    return error_reply(404, Code::invalid,
                       fmt::format("no card, or more than one, is called '{}'{}",
                                   one_line(name.substr(0, 100)), nearest_choices(name, keys)));
  });
}

ServerReply Pages::tuning(const ServerRequest& request) {
  return with_learned([&](const Learned& learned) { return answer(request, learned.tuning); });
}

ServerReply Pages::regressions(const ServerRequest& request) {
  return with_learned([&](const Learned& learned) { return answer(request, learned.regressions); });
}

ServerReply Pages::summary(const ServerRequest& request) {
  const auto learned = from_.learner.latest();
  const StoreTotals totals = from_.learner.totals();
  const auto serving = from_.manifest.now();
  Json json{{"schema", 1}};
  json["change"] = change_number(from_, learned.get(), *serving);
  json["races"] = totals.races;
  json["machines"] = totals.machines;
  json["cards"] = learned == nullptr ? 0 : learned->cards.size();
  put_time(json, "newest", totals.newest_ts_us);
  json["store"] =
      Json{{"kind", kind_of(totals.version)}, {"version", totals.version}, {"bytes", totals.bytes}};
  json["version"] = from_.version;
  const auto whole = [](double seconds) { return static_cast<std::uint64_t>(std::max(0.0, seconds)); };
  json["uptime_s"] = whole(static_cast<double>(from_.clock.now_ns() - from_.started_ns) * 1e-9);
  json["stale_s"] = whole(from_.learner.stale_s());
  if (learned != nullptr) put_time(json, "updated", learned->updated_us);
  Document document = make_document(json);
  // A reader that waits is not woken by the time that passes.
  Json timeless = json;
  timeless.erase("uptime_s");
  timeless["stale_s"] = json["stale_s"] != 0;
  document.tag = make_document(timeless).tag;
  return answer(request, document);
}

ServerReply Pages::machines(const ServerRequest& request) {
  const auto lease = from_.pool.take();
  if (!lease) return store_failed(lease.error());
  const auto machines = (*lease)->machines();
  if (!machines) return store_failed(machines.error());
  Json list = Json::array();
  for (const Machine& machine : *machines) {
    Json json{{"id", machine.id}};
    put_text(json, "label", machine.label);
    json["state"] = machine_state_name(machine.state);
    json["canary"] = machine.canary;
    if (machine.says_canary) json["says_canary"] = true;
    put_time(json, "enrolled", machine.enrolled_us);
    put_time(json, "seen", machine.seen_us);
    put_text(json, "agent", machine.agent);
    put_text(json, "manifest", machine.manifest);
    put_text(json, "replaces", machine.replaces);
    json["accepted"] = machine.accepted;
    json["duplicate"] = machine.duplicate;
    json["refused"] = machine.refused;
    put_text(json, "last_refusal", machine.last_refusal);
    list.push_back(std::move(json));
  }
  return answer(request, make_document(Json{{"schema", 1}, {"machines", std::move(list)}}));
}

ServerReply Pages::knobs(const ServerRequest& request) {
  return answer(request, from_.audits.latest()->list);
}

ServerReply Pages::knobs_of(const ServerRequest& request, const std::string& program) {
  const auto audits = from_.audits.latest();
  if (const auto at = audits->programs.find(program); at != audits->programs.end())
    return answer(request, at->second);
  std::vector<std::string> names;
  for (const auto& [name, document] : audits->programs) names.push_back(name);
  return error_reply(404, Code::invalid,
                     fmt::format("'{}' is no program that this hub ships{}", one_line(program.substr(0, 100)),
                                 nearest_choices(program, names)));
}

ServerReply Pages::manifest(const ServerRequest& request) {
  const auto serving = from_.manifest.now();
  if (serving->document) return answer(request, *serving->document);
  return error_reply(
      404, Code::invalid,
      serving->problem.empty() ? "no manifest is published here" : "no manifest: " + serving->problem);
}

ServerReply Pages::health(const ServerRequest& request) {
  const auto lease = from_.pool.take();
  // A read that touches the store and costs it nothing.
  const auto alive =
      lease ? (*lease)->machine("0000000000000000") : Result<std::optional<Machine>>(lease.error());
  if (!alive) return store_failed(alive.error());
  return answer(request, make_document(Json{{"schema", 1}, {"status", "ok"}}));
}

}  // namespace furlong::fleet
