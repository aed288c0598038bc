#include "furlong/kernel/internal/choice.h"

#include "furlong/base/json.h"
#include "furlong/base/json_object.h"

namespace furlong::kernel {
namespace {

constexpr std::string_view kKind = "raced kernel";

Status read_key(const Json& object, std::string_view name, ChoiceKey& key) {
  for (const auto& [field, value] : object.items()) {
    if (!value.is_string()) return fail(Code::corrupt, "{}: key.{} is no text", name, field);
    key.emplace_back(field, value.get<std::string>());
  }
  return {};
}

}  // namespace

Digest digest_of(const ChoiceKey& key) {
  Hasher hasher;
  hasher.add_field("furlong raced kernel 1");
  for (const auto& [field, value] : key) hasher.add_field(field).add_field(value);
  return hasher.finish();
}

std::string print_choice(const Choice& choice) {
  Json key = Json::object();
  for (const auto& [field, value] : choice.key) key[field] = value;
  Json json = {{"schema", choice_schema},
               {"kind", kKind},
               {"key", std::move(key)},
               {"variant", choice.variant},
               {"text", choice.text},
               {"why", choice.why},
               {"decided", choice.decided},
               {"budget_s", choice.budget_s},
               {"race", record::to_json(choice.race)}};
  return json_pretty(json);
}

Result<Choice> parse_choice(std::string_view text, std::string_view name) {
  const auto json = json_parse(text, name);
  if (!json) return fail(Code::corrupt, "{}", json.error().text());
  JsonObject object(*json, std::string(name));
  int schema = 0;
  std::string kind;
  object.integer("schema", schema);
  object.text("kind", kind);
  object.require({"schema", "kind"});
  if (const Status read = object.status(); !read) return fail(Code::corrupt, "{}", read.error().text());
  if (schema != choice_schema || kind != kKind)
    return fail(Code::incompatible, "{}: '{}' of schema {}, expected '{}' of {}", name, kind, schema, kKind,
                choice_schema);
  Choice choice;
  object.text("variant", choice.variant);
  object.text("text", choice.text);
  object.text("why", choice.why);
  object.boolean("decided", choice.decided);
  object.number("budget_s", choice.budget_s, 0);
  const Json* key = object.object("key");
  const Json* race = object.object("race");
  object.require({"key", "variant", "text", "why", "decided", "budget_s", "race"});
  if (const Status read = object.strict(); !read) return fail(Code::corrupt, "{}", read.error().text());
  FURLONG_CHECK(read_key(*key, name, choice.key));
  auto record = record::from_json(*race, object.path("race"));
  if (!record) return fail(Code::corrupt, "{}", record.error().text());
  choice.race = *std::move(record);
  return choice;
}

std::string difference(const ChoiceKey& now, const ChoiceKey& kept) {
  for (std::size_t i = 0; i < now.size(); ++i) {
    if (i >= kept.size() || kept[i].first != now[i].first) return fmt::format("it has no {}", now[i].first);
    if (kept[i].second != now[i].second)
      return fmt::format("{} is {} and was {}", now[i].first, now[i].second, kept[i].second);
  }
  return kept.size() == now.size() ? "" : fmt::format("{} is not known", kept[now.size()].first);
}

}  // namespace furlong::kernel
