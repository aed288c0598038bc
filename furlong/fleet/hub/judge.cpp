#include "furlong/fleet/hub/judge.h"

#include <algorithm>
#include <map>

#include "furlong/base/json.h"
#include "furlong/base/os/clock.h"
#include "furlong/base/text.h"
#include "furlong/record/record.h"

namespace furlong::fleet {
namespace {

constexpr std::size_t longest_why = 300;
constexpr std::size_t longest_id = 64;
constexpr std::size_t most_why_bytes = 256u << 10;  // of a reply; an agent reads 1 MiB

/// For a reply, a log and a page: one line, cut, and text whatever it was.
std::string clean(std::string_view text, std::size_t longest) {
  std::string cut(text.substr(0, longest));
  while (cut.size() + 4 > longest && !is_valid_utf8(cut)) cut.pop_back();  // cut through a character
  if (!is_valid_utf8(cut))
    std::ranges::replace_if(cut, [](char c) { return static_cast<unsigned char>(c) >= 0x80; }, '?');
  return one_line(cut);
}

/// The record's own, for the reply: it may be refused for anything.
std::string id_of(const Json& json) {
  if (!json.is_object()) return "";
  const auto id = json.find("id");
  if (id == json.end() || !id->is_string()) return "";
  return clean(id->get_ref<const std::string&>(), longest_id);
}

Result<DecodedRace> judge_record(const Json& json, std::string_view machine, std::int64_t now_us,
                                 const JudgeOptions& options) {
  FURLONG_TRY(const record::RaceRecord record, record::from_json(json, "record"));
  FURLONG_CHECK(record::check_complete(record));
  if (record.machine != machine)
    return fail(Code::invalid, "machine: '{}' is not the sender, {}", clean(record.machine, longest_id),
                machine);
  FURLONG_TRY(DecodedRace race, decode(record));
  const double ahead_s = static_cast<double>(race.ts_us - now_us) * 1e-6;
  if (ahead_s > options.future_s)
    return fail(Code::invalid, "ts: {} is {:.0f} s ahead of the hub's clock ({}), {:.0f} s are the most",
                clean(record.ts, 40), ahead_s, iso_time(now_us), options.future_s);
  return race;
}

IncomingBatch::Line judge_line(std::string_view text, std::string_view machine, std::int64_t now_us,
                               const JudgeOptions& options) {
  IncomingBatch::Line line;
  const auto json =
      json_parse(text, "record", {.max_bytes = options.limits.line_bytes, .max_depth = options.most_depth});
  if (json) line.id = id_of(*json);
  line.race = json ? judge_record(*json, machine, now_us, options) : Result<DecodedRace>(json.error());
  if (!line.race) line.race = Error(line.race.error().code(), clean(line.race.error().text(), longest_why));
  return line;
}

}  // namespace

Result<IncomingBatch> judge_batch(std::string_view body, std::string_view machine, std::int64_t now_us,
                                  const JudgeOptions& options) {
  FURLONG_TRY(const RecordBatch batch, parse_record_batch(body, options.limits));
  if (batch.machine != machine)
    return fail(Code::invalid, "batch line 1: machine: '{}' is not the sender, {}", batch.machine, machine);
  IncomingBatch incoming{.id = batch.id, .machine = std::string(machine), .body = std::string(body)};
  incoming.received_us = now_us;
  incoming.agent = batch.agent;
  incoming.manifest = batch.manifest;
  incoming.canary = batch.canary;
  incoming.lines.reserve(batch.lines.size());
  for (const std::string& line : batch.lines)
    incoming.lines.push_back(judge_line(line, machine, now_us, options));
  return incoming;
}

std::size_t judging_bytes(std::string_view body) {
  const auto lines = static_cast<std::size_t>(std::ranges::count(body, '\n'));
  return judging_factor * body.size() + judging_line_bytes * lines;
}

BatchReply make_reply(const IncomingBatch& batch, const BatchOutcome& outcome) {
  const std::size_t count = std::min(batch.lines.size(), outcome.fates.size());
  // The batch's first line is its header, and people count from one.
  const auto name = [&](std::size_t i) {
    const std::string& id = batch.lines[i].id;
    return id.empty() ? fmt::format("line {}", i + 2) : id;
  };
  std::map<std::string, Fate> best;
  for (std::size_t i = 0; i < count; ++i) {
    const auto at = best.try_emplace(name(i), outcome.fates[i]).first;
    at->second = std::min(at->second, outcome.fates[i]);  // accepted, duplicate, refused
  }
  BatchReply reply;
  std::size_t why_bytes = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const auto at = best.find(name(i));
    if (at == best.end() || at->second != outcome.fates[i]) continue;
    if (at->second == Fate::accepted) reply.accepted.push_back(at->first);
    if (at->second == Fate::duplicate) reply.duplicate.push_back(at->first);
    if (at->second == Fate::refused) {
      const auto& race = batch.lines[i].race;
      std::string why = race ? "refused" : race.error().text();
      why_bytes += why.size();
      if (why_bytes > most_why_bytes) why = "refused; the reply has no room for more reasons";
      reply.refused.push_back({at->first, std::move(why)});
    }
    best.erase(at);
  }
  return reply;
}

}  // namespace furlong::fleet
