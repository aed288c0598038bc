#include "furlong/base/json.h"
#include "furlong/base/json_object.h"
#include "furlong/shard/model.h"

// A model as JSON. Read strictly: people mend these by hand.

namespace furlong::shard {
namespace {

constexpr const char* kVersionKey = "furlong_shard_model";

Json quality_json(const Quality& quality) {
  Json json;
  json["runs"] = quality.runs;
  json["mape"] = quality.mape;
  json["worst_under"] = quality.worst_under;
  json["unseen"] = quality.unseen;
  json["unseen_mape"] = quality.unseen_mape;
  json["unseen_worst_under"] = quality.unseen_worst_under;
  return json;
}

Json formula_json(const TermSum& sum) {
  Json json;
  json["base"] = sum.base;
  json["terms"] = Json::array();
  for (const Term& term : sum.terms)
    json["terms"].push_back(
        {{"feature", term.feature}, {"form", term_form_name(term.form)}, {"coefficient", term.coefficient}});
  return json;
}

Json formula_json(const Line& line) {
  Json json;
  json["base"] = line.base;
  json["per_work"] = line.per_work;
  return json;
}

template <class Formula>
void put(Json& json, const char* key, const std::optional<Fitted<Formula>>& fitted) {
  if (!fitted) return;
  json[key] = formula_json(fitted->formula);
  json[key]["quality"] = quality_json(fitted->quality);
}

std::uint32_t small(std::uint64_t value) { return static_cast<std::uint32_t>(value); }
constexpr std::uint64_t kMostRuns = 0xFFFFFFFF;

void count(JsonObject& object, std::string_view key, std::uint32_t& into) {
  std::uint64_t value = into;
  object.integer(key, value, 0, kMostRuns);
  into = small(value);
}

Result<Quality> read_quality(const Json& json, const std::string& where) {
  Quality quality;
  JsonObject object(json, where);
  count(object, "runs", quality.runs);
  object.number("mape", quality.mape, 0);
  object.number("worst_under", quality.worst_under, 0);
  count(object, "unseen", quality.unseen);
  object.number("unseen_mape", quality.unseen_mape, 0);
  object.number("unseen_worst_under", quality.unseen_worst_under, 0);
  FURLONG_CHECK(object.strict());
  return quality;
}

Result<Term> read_term(const Json& json, const std::string& where) {
  Term term;
  std::string form;
  JsonObject object(json, where);
  object.text("feature", term.feature);
  object.text("form", form);
  object.number("coefficient", term.coefficient, 0);
  object.require({"feature", "form", "coefficient"});
  FURLONG_CHECK(object.strict());
  if (form != "linear" && form != "nlogn")
    return fail(Code::invalid, "{}.form: 'linear' or 'nlogn' is wanted, not '{}'", where, form);
  term.form = form == "linear" ? TermForm::linear : TermForm::nlogn;
  return term;
}

Status read_formula(JsonObject& object, TermSum& sum) {
  object.number("base", sum.base, 0);
  object.require({"base", "terms"});
  const Json* terms = object.array("terms");
  FURLONG_CHECK(object.status());
  for (std::size_t i = 0; i < terms->size(); ++i) {
    FURLONG_TRY(Term term, read_term((*terms)[i], fmt::format("{}[{}]", object.path("terms"), i)));
    sum.terms.push_back(std::move(term));
  }
  return {};
}

Status read_formula(JsonObject& object, Line& line) {
  object.number("base", line.base, 0);
  object.number("per_work", line.per_work, 0);
  object.require({"base", "per_work"});
  return object.status();
}

template <class Formula>
Status take(JsonObject& parent, const char* key, std::optional<Fitted<Formula>>& into) {
  const Json* json = parent.object(key);
  FURLONG_CHECK(parent.status());
  if (json == nullptr) return {};
  Fitted<Formula> fitted;
  JsonObject object(*json, parent.path(key));
  FURLONG_CHECK(read_formula(object, fitted.formula));
  if (const Json* quality = object.object("quality")) {
    FURLONG_TRY(fitted.quality, read_quality(*quality, object.path("quality")));
  }
  FURLONG_CHECK(object.strict());
  into = std::move(fitted);
  return {};
}

Status read_provenance(const Json& json, const std::string& where, Provenance& from) {
  JsonObject object(json, where);
  object.text("store", from.store);
  object.text("executor", from.executor);
  object.integer("executor_version", from.executor_version);
  object.text("machine", from.machine);
  object.text("date", from.date);
  object.text("note", from.note);
  count(object, "runs", from.runs);
  count(object, "held_out", from.held_out);
  object.integer("seed", from.seed);
  return object.strict();
}

}  // namespace

std::string print_model(const Model& model) {
  Json json;
  json[kVersionKey] = kModelVersion;
  const Provenance& from = model.provenance;
  Json& provenance = json["provenance"];
  provenance["store"] = from.store;
  provenance["executor"] = from.executor;
  provenance["executor_version"] = from.executor_version;
  provenance["machine"] = from.machine;
  provenance["date"] = from.date;
  provenance["note"] = from.note;
  provenance["runs"] = from.runs;
  provenance["held_out"] = from.held_out;
  provenance["seed"] = from.seed;
  put(json, "work", model.work);
  put(json, "record_bytes", model.record_bytes);
  put(json, "memory", model.memory);
  put(json, "seconds", model.seconds);
  put(json, "check_memory", model.check_memory);
  put(json, "check_seconds", model.check_seconds);
  if (model.memory_from_counters) json["memory_from_counters"] = quality_json(*model.memory_from_counters);
  json["margin"] = model.margin;
  if (model.usable) json["usable"] = *model.usable;
  if (model.usable_from_counters) json["usable_from_counters"] = *model.usable_from_counters;
  return json_pretty(json);
}

Result<Model> parse_model(std::string_view text, const std::string& name) {
  FURLONG_TRY(const Json json, json_parse(text, name));
  const auto version = json_integer(json, kVersionKey, name);
  if (!version) return fail(Code::invalid, "{}: not a model of shards: it has no \"{}\"", name, kVersionKey);
  if (*version != kModelVersion)
    return fail(Code::incompatible, "{}: found a model of version {}, expected {}: {}", name, *version,
                kModelVersion,
                *version > kModelVersion ? "take a newer Furlong, or fit it anew with furlong shard fit"
                                         : "fit it anew with furlong shard fit");
  Model model;
  JsonObject object(json, name);
  int ignored = 0;
  object.integer(kVersionKey, ignored);
  object.require({"provenance"});
  const Json* provenance = object.object("provenance");
  FURLONG_CHECK(object.status());
  FURLONG_CHECK(read_provenance(*provenance, object.path("provenance"), model.provenance));
  FURLONG_CHECK(take(object, "work", model.work));
  FURLONG_CHECK(take(object, "record_bytes", model.record_bytes));
  FURLONG_CHECK(take(object, "memory", model.memory));
  FURLONG_CHECK(take(object, "seconds", model.seconds));
  FURLONG_CHECK(take(object, "check_memory", model.check_memory));
  FURLONG_CHECK(take(object, "check_seconds", model.check_seconds));
  if (const Json* quality = object.object("memory_from_counters")) {
    FURLONG_TRY(model.memory_from_counters, read_quality(*quality, object.path("memory_from_counters")));
  }
  object.number("margin", model.margin, 0, 1);
  object.number("usable", model.usable, 0);
  object.number("usable_from_counters", model.usable_from_counters, 0);
  FURLONG_CHECK(object.strict());
  for (const auto& usable : {model.usable, model.usable_from_counters})
    if (usable && !(*usable > 0 && *usable <= 1))
      return fail(Code::invalid, "{}: a usable share must be above 0 and at most 1, not {}", name, *usable);
  return model;
}

Result<Model> read_model(Files& files, const std::filesystem::path& file) {
  FURLONG_TRY(const std::string text, files.read(file));
  return parse_model(text, file.string());
}

Status write_model(Files& files, const std::filesystem::path& file, const Model& model) {
  return files.write_atomic(file, print_model(model));
}

}  // namespace furlong::shard
