// Pages of single races, and of who follows which manifest.

#include <algorithm>
#include <map>

#include "furlong/base/json.h"
#include "furlong/base/text.h"
#include "furlong/fleet/hub/pages.h"
#include "furlong/fleet/record_batch.h"
#include "furlong/record/record.h"

namespace furlong::fleet {
namespace {

constexpr std::int64_t most_races = 1000;
constexpr std::size_t longest_filter = 200;

Status take_time(const ServerRequest& request, std::string_view name, std::int64_t& into) {
  const auto text = request.parameter(name);
  if (!text) return {};
  const auto stamp = record::parse_stamp(*text);
  if (!stamp)
    return fail(Code::invalid, "{}: '{}' is no time; 2026-03-01T12:00:00Z is the form", name,
                one_line(text->substr(0, 40)));
  into = *stamp;
  return {};
}

/// "LABEL@0123456789abcdef" is how a card's key names one of two kinds of silicon with the same label.
void take_card(const std::string& card, RaceFilter& filter) {
  const std::size_t at = card.rfind('@');
  filter.label = card;
  if (at == std::string::npos || card.size() - at != 17) return;
  filter.label = card.substr(0, at);
  filter.silicon = card.substr(at + 1);
}

Json race_line(const RaceSummary& race) {
  Json json{{"id", race.id}};
  put_time(json, "ts", race.ts_us);
  put_time(json, "received", race.received_us);
  json["machine"] = race.machine;
  json["slot"] = race.slot;
  json["card"] = race.label;
  json["silicon"] = race.subject.silicon;
  json["backend"] = race.subject.backend;
  put_text(json, "driver", race.driver);
  json["program"] = race.subject.program;
  if (const auto features = json_parse(race.subject.program_class, "class")) json["class"] = *features;
  put_text(json, "epoch", race.epoch);
  put_text(json, "source", race.source);
  put_text(json, "unit", race.subject.unit);
  put_text(json, "winner", race.winner);
  json["verdict"] = record::verdict_name(race.verdict);
  json["pinned"] = race.pinned;
  put_number(json, "rate", race.rate);
  put_number(json, "base_rate", race.base_rate);
  put_number(json, "gain_pct", race.gain_pct);
  return json;
}

/// The signature is looked at again: what is shown as signed is signed.
bool still_verified(Store& store, const StoredBatch& batch) {
  if (batch.signature.empty()) return false;
  const auto machine = store.machine(batch.machine);
  return machine && *machine && (*machine)->key &&
         verify_body(batch_media_type, batch.body, batch.signature, *(*machine)->key).has_value();
}

}  // namespace

Result<RaceFilter> Pages::race_filter(const ServerRequest& request) const {
  RaceFilter filter;
  const std::pair<std::string_view, std::string*> words[] = {
      {"silicon", &filter.silicon}, {"program", &filter.program}, {"machine", &filter.machine},
      {"driver", &filter.driver},   {"backend", &filter.backend}, {"winner", &filter.variant}};
  for (const auto& [name, value] : request.query)
    if (value.empty() || value.size() > longest_filter)
      return fail(Code::invalid, "{}: a value of 1 to {} bytes is wanted", name, longest_filter);
  if (const auto card = request.parameter("card")) take_card(*card, filter);
  for (const auto& [name, into] : words)
    if (const auto value = request.parameter(name)) *into = *value;
  FURLONG_CHECK(take_time(request, "since", filter.window.from_us));
  FURLONG_CHECK(take_time(request, "until", filter.window.to_us));
  if (const auto before = request.parameter("before")) {
    FURLONG_CHECK_DOING(parse_record_id(*before), "before");
    filter.before = *before;
  }
  if (const auto limit = request.parameter("limit")) {
    const auto count = parse_integer(*limit);
    if (!count || *count < 1 || *count > most_races)
      return fail(Code::invalid, "limit: '{}' is no number from 1 to {}", one_line(limit->substr(0, 40)),
                  most_races);
    filter.limit = static_cast<std::size_t>(*count);
  }
  return filter;
}

ServerReply Pages::races(const ServerRequest& request) {
  auto filter = race_filter(request);
  if (!filter) return error_reply(400, Code::invalid, filter.error().text());
  const auto lease = from_.pool.take();
  if (!lease) return store_failed(lease.error());
  const auto page = (*lease)->page(*filter);
  if (!page) return store_failed(page.error());
  Json list = Json::array();
  for (const RaceSummary& race : page->races) list.push_back(race_line(race));
  Json json{{"schema", 1}, {"races", std::move(list)}};
  put_text(json, "next", page->next);
  return answer(request, make_document(json));
}

ServerReply Pages::race(const ServerRequest& request, const std::string& id) {
  if (!record::is_record_id(id))
    return error_reply(400, Code::invalid,
                       fmt::format("'{}' is no race's id (a UUIDv7)", one_line(id.substr(0, 60))));
  const auto lease = from_.pool.take();
  if (!lease) return store_failed(lease.error());
  const auto found = (*lease)->race(id);
  if (!found) return store_failed(found.error());
  if (!*found)
    return error_reply(
        404, Code::invalid,
        fmt::format("there is no race {}: it never came, is older than what is kept, or a newer one of its "
                    "card and epoch has taken its place",
                    id));
  const StoredBatch& batch = (*found)->batch;
  const auto record = json_parse((*found)->line, "the stored record");
  if (!record) return store_failed(fail(Code::corrupt, "race {}: {}", id, record.error().message()));
  Json json{{"schema", 1}, {"record", *record}};
  Json about{{"id", batch.id}, {"machine", batch.machine}};
  put_time(about, "received", batch.received_us);
  // Not the signature itself: with it and the record anybody could send a batch of one record again.
  about["signed"] = !batch.signature.empty();
  const auto lines = std::ranges::count(batch.body, '\n');
  about["records"] = std::max<std::int64_t>(0, lines - 1);
  about["verified"] = still_verified(**lease, batch);
  json["batch"] = std::move(about);
  return answer(request, make_document(json));
}

ServerReply Pages::rollout(const ServerRequest& request) {
  const auto lease = from_.pool.take();
  if (!lease) return store_failed(lease.error());
  const auto machines = (*lease)->machines();
  if (!machines) return store_failed(machines.error());
  const auto serving = from_.manifest.now();
  return answer(request, make_document(rollout_json(*serving, *machines, from_.canaries.latest(),
                                                    from_.clock.wall_us())));
}

}  // namespace furlong::fleet
