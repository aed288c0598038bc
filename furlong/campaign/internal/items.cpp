#include "furlong/campaign/internal/items.h"

#include "furlong/base/json.h"
#include "furlong/base/json_object.h"
#include "furlong/base/text.h"
#include "furlong/lattice/value_json.h"

namespace furlong::campaign {
namespace {

const std::string kWhere = "an item of the store";

Bytes bytes_of(const Json& json) {
  const std::string text = json_line(json);
  return {text.begin(), text.end()};
}

Result<PackItem> decode_pack(JsonObject& object, ByteView files) {
  PackItem pack;
  std::string content;
  object.text("pack", content);
  object.require({"pack", "files"});
  const Json* list = object.array("files");
  FURLONG_CHECK(object.strict());
  FURLONG_TRY(pack.content, Digest::parse(content));
  for (std::size_t i = 0; i < list->size(); ++i) {
    JsonObject file((*list)[i], fmt::format("{}: files[{}]", kWhere, i));
    std::string name;
    std::uint64_t bytes = 0;
    file.text("name", name);
    file.integer("bytes", bytes);
    file.require({"name", "bytes"});
    FURLONG_CHECK(file.strict());
    if (bytes > files.size())
      return fail(Code::mismatch, "{}: '{}' has {} bytes, {} are left", kWhere, name, bytes, files.size());
    if (!pack.contents.files.emplace(name, as_text(files.first(bytes))).second)
      return fail(Code::mismatch, "{}: '{}' is there twice", kWhere, name);
    files = files.subspan(bytes);
  }
  if (!files.empty()) return fail(Code::mismatch, "{}: {} bytes are no file's", kWhere, files.size());
  return pack;
}

Result<DatasetItem> decode_dataset(JsonObject& object) {
  DatasetItem dataset;
  std::string key;
  object.text("dataset", key);
  object.text("recipe", dataset.recipe);
  object.integer("bytes", dataset.bytes);
  object.require({"dataset", "recipe", "bytes"});
  FURLONG_CHECK(object.strict());
  FURLONG_TRY(dataset.key, Digest::parse(key));
  return dataset;
}

Result<RaceItem> decode_race(JsonObject& object) {
  RaceItem race;
  std::string content, source;
  object.text("race", race.program);
  object.text("content", content);
  object.text("source", source);
  object.text("device", race.device);
  object.text("variants", race.rules.variants);
  object.texts("allow_lossy", race.rules.allow_lossy);
  object.number("budget_s", race.rules.budget_s, 0);
  object.number("window_ms", race.rules.window_ms, 0);
  object.number("threshold_pct", race.rules.threshold_pct, 0);
  object.integer("seed", race.rules.seed);
  object.require({"race", "content", "source", "problem", "device", "variants", "allow_lossy", "budget_s",
                  "window_ms", "threshold_pct", "seed"});
  const Json* problem = object.object("problem");
  FURLONG_CHECK(object.strict());
  FURLONG_TRY(race.content, Digest::parse(content));
  FURLONG_TRY(race.source, Digest::parse(source));
  FURLONG_TRY(race.problem, problem_of(*problem, kWhere));
  return race;
}

Result<Item> decode_any(ByteView bytes) {
  // A pack's files follow its line.
  const std::string_view text = as_text(bytes);
  const std::string_view line = text.substr(0, text.find('\n'));
  FURLONG_TRY(const Json json, json_parse(line, kWhere));
  JsonObject object(json, kWhere);
  int format = 0;
  object.integer("format", format);
  object.require({"format"});
  FURLONG_CHECK(object.status());
  if (format != kItemFormat)
    return fail(Code::incompatible, "{} is of format {}, this program reads {}: make the store anew", kWhere,
                format, kItemFormat);
  if (json.contains("pack") && line.size() < text.size()) {
    FURLONG_TRY(PackItem pack, decode_pack(object, bytes.subspan(line.size() + 1)));
    return Item(std::move(pack));
  }
  if (line.size() < text.size()) return fail(Code::mismatch, "{} goes on after its line", kWhere);
  if (json.contains("dataset")) {
    FURLONG_TRY(DatasetItem dataset, decode_dataset(object));
    return Item(std::move(dataset));
  }
  FURLONG_TRY(RaceItem race, decode_race(object));
  return Item(std::move(race));
}

}  // namespace

Json problem_json(const Problem& problem) {
  Json object = Json::object();
  for (const auto& [name, value] : problem) object[name] = lattice::value_json(value);
  return object;
}

Result<Problem> problem_of(const Json& object, std::string_view where) {
  Problem problem;
  for (const auto& [name, value] : object.items()) {
    if (value.is_boolean())
      problem.emplace_back(name, lattice::Value(value.get<bool>()));
    else if (value.is_number_integer())
      problem.emplace_back(name, lattice::Value(value.get<std::int64_t>()));
    else if (value.is_number())
      problem.emplace_back(name, lattice::Value(value.get<double>()));
    else if (value.is_string())
      problem.emplace_back(name, lattice::Value(value.get<std::string>()));
    else
      return fail(Code::mismatch, "{}: problem.{} is no boolean, number or word", where, name);
  }
  return problem;
}

std::string problem_text(const Problem& problem) {
  std::vector<std::string> parts;
  for (const auto& [name, value] : problem) parts.push_back(name + "=" + value.text());
  return join(parts, ",");
}

Bytes encode(const PackItem& pack) {
  Json json{{"format", kItemFormat}, {"pack", pack.content.hex()}, {"files", Json::array()}};
  for (const auto& [name, bytes] : pack.contents.files)
    json["files"].push_back(Json{{"name", name}, {"bytes", bytes.size()}});
  Bytes out = bytes_of(json);
  out.push_back('\n');
  for (const auto& [name, bytes] : pack.contents.files) out.insert(out.end(), bytes.begin(), bytes.end());
  return out;
}

Bytes encode(const DatasetItem& dataset) {
  return bytes_of(Json{{"format", kItemFormat},
                       {"dataset", dataset.key.hex()},
                       {"recipe", dataset.recipe},
                       {"bytes", dataset.bytes}});
}

Bytes encode(const RaceItem& race) {
  return bytes_of(Json{{"format", kItemFormat},
                       {"race", race.program},
                       {"content", race.content.hex()},
                       {"source", race.source.hex()},
                       {"problem", problem_json(race.problem)},
                       {"device", race.device},
                       {"variants", race.rules.variants},
                       {"allow_lossy", race.rules.allow_lossy},
                       {"budget_s", race.rules.budget_s},
                       {"window_ms", race.rules.window_ms},
                       {"threshold_pct", race.rules.threshold_pct},
                       {"seed", race.rules.seed}});
}

Result<Item> decode(ByteView bytes) {
  auto item = decode_any(bytes);
  if (item || item.error().code() == Code::incompatible) return item;
  return fail(Code::mismatch, "{}", item.error().text());
}

}  // namespace furlong::campaign
