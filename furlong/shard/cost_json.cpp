#include "furlong/shard/cost_json.h"

#include <cmath>

#include "furlong/base/json.h"

namespace furlong::shard {

Json cost_json(const Cost& cost) {
  Json json;
  json["work"] = cost.work;
  json["record_bytes"] = cost.record_bytes;
  json["seconds"] = cost.seconds;
  json["peak_bytes"] = cost.peak_bytes;
  json["features"] = Json::object();
  for (const auto& [name, value] : cost.features) json["features"][name] = value;
  return json;
}

Result<Cost> parse_cost(const Json& json, const std::string& name) {
  Cost cost;
  try {
    cost.work = json.at("work").get<double>();
    for (const char* bytes : {"record_bytes", "peak_bytes"})
      if (!json.at(bytes).is_number_unsigned())
        return fail(Code::corrupt, "{}: {} is no number of bytes", name, bytes);
    cost.record_bytes = json.at("record_bytes").get<std::uint64_t>();
    cost.seconds = json.at("seconds").get<double>();
    cost.peak_bytes = json.at("peak_bytes").get<std::uint64_t>();
    for (const auto& [feature, value] : json.at("features").items())
      cost.features[feature] = value.get<double>();
  } catch (const Json::exception& error) {
    return fail(Code::corrupt, "{}: {}", name, error.what());
  }
  if (!std::isfinite(cost.work) || cost.work < 0 || !(cost.seconds >= 0))
    return fail(Code::corrupt, "{}: a cost of {} and {} s", name, cost.work, cost.seconds);
  return cost;
}

}  // namespace furlong::shard
