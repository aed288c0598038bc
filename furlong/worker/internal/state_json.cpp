#include "furlong/worker/internal/state_json.h"

#include "furlong/base/json.h"

namespace furlong::worker {
namespace {

Json pair_json(const record::Pair& pair) { return {{"epoch", pair.epoch}, {"day", pair.day}}; }

}  // namespace

std::string state_json(const StateFields& fields) {
  Json json{{"state", fields.job ? "working" : "idle"}, {"device", fields.facts->address()}};
  if (fields.pair) {
    json["pair"] = pair_json(*fields.pair);
    json["variant"] = fields.variant;
  }
  if (fields.job) {
    json["job"] = *fields.job;
    json["next"] = fmt::format("{:016x}", fields.next);
  }
  if (fields.preparing) {
    json["preparing"] = pair_json(*fields.preparing);
    json["preparing"]["done"] = fields.preparing_done;
    if (!fields.ready.empty()) json["preparing"]["ready"] = fields.ready;
  }
  json["hashes"] = fields.hashes;
  json["prepares"] = fields.prepares;
  json["unwritten_records"] = fields.unwritten_records;
  return json_line(json);
}

}  // namespace furlong::worker
