#include "furlong/shard/executor/replay/internal/items.h"

#include "furlong/base/json.h"
#include "furlong/base/json_object.h"
#include "furlong/shard/cost_json.h"
#include "furlong/shard/settings.h"

namespace furlong::shard::replay {

std::string print_cost_item(const CostItem& item) {
  Json json;
  json["furlong_replay_unit"] = kItemFormat;
  json["unit"] = item.unit;
  if (item.failed) {
    json["code"] = code_name(item.failed->code());
    json["why"] = item.failed->message();
    return json_line(json);
  }
  json["cost"] = cost_json(item.cost);
  if (item.touched) {
    std::string digits;
    for (const bool one : *item.touched) digits += one ? '1' : '0';
    json["touched"] = digits;
  }
  return json_line(json);
}

Result<CostItem> parse_cost_item(std::string_view bytes) {
  const std::string name = "an item of a replay";
  auto parsed = json_parse(bytes, name);
  if (!parsed) return fail(Code::corrupt, "{}", parsed.error().text());
  const Json& json = *parsed;
  CostItem item;
  try {
    if (const int format = json.at("furlong_replay_unit").get<int>(); format != kItemFormat)
      return fail(Code::incompatible, "{} is of format {}, this program reads {}: make the store anew", name,
                  format, kItemFormat);
    item.unit = json.at("unit").get<std::uint64_t>();
    if (json.contains("why")) {
      const bool over = json.at("code").get<std::string>() == code_name(Code::exhausted);
      item.failed.emplace(over ? Code::exhausted : Code::mismatch, json.at("why").get<std::string>());
      return item;
    }
    FURLONG_TRY(item.cost, parse_cost(json.at("cost"), name));
    if (json.contains("touched")) {
      item.touched.emplace();
      for (const char digit : json.at("touched").get<std::string>()) {
        if (digit != '0' && digit != '1') return fail(Code::corrupt, "{}: touched holds '{}'", name, digit);
        item.touched->push_back(digit == '1');
      }
    }
  } catch (const Json::exception& error) {
    return fail(Code::corrupt, "{}: {}", name, error.what());
  }
  return item;
}

std::string print_data_item(std::uint64_t unit, std::uint64_t place, std::uint64_t size) {
  std::string text = fmt::format("furlong replay item {}/{}\n", unit, place);
  if (text.size() < size) text.resize(size);
  return text;
}

std::string print_settings(std::uint64_t scale) {
  return fmt::format(R"({{"format":{},"scale":{}}})", kItemFormat, scale);
}

Status check_settings(const std::string& settings) {
  return shard::check_settings(settings, kItemFormat, {{"scale", 1}});
}

}  // namespace furlong::shard::replay
