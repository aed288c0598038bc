// The tuning file as JSON, and back.

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "furlong/base/json.h"
#include "furlong/base/json_object.h"
#include "furlong/record/tuning.h"

namespace furlong::record {
namespace {

constexpr std::string_view lottery = "lottery";

// --- writing

bool is_count(const lattice::Value& value) {
  return value.is_integer() && *value.integer() >= 0 && std::in_range<int>(*value.integer());
}

bool is_lottery_class(const ProgramClass& features) {
  return features.size() == 2 && features[0].first == "loads" && features[1].first == "wide" &&
         is_count(features[0].second) && is_count(features[1].second);
}

Json size_to_json(const TuningSize& size) {
  Json object = Json::object();
  object["problem"] = class_to_json(size.problem);
  object["variant"] = size.variant;
  if (size.rate) object["rate"] = *size.rate;
  if (size.base_rate) object["base_rate"] = *size.base_rate;
  auto gains = size.gains_pct;
  std::ranges::sort(gains);
  Json members = Json::object();
  for (const auto& [variant, gain] : gains) members[variant] = gain;
  object["gains_pct"] = std::move(members);
  add_unknown(object, size.extra);
  return object;
}

// By the values of the parameters, in their order; the text tells apart what those do not.
auto size_key(const TuningSize& size) {
  std::vector<double> numbers;
  for (const auto& [name, value] : size.problem)
    numbers.push_back(value.integer() != nullptr    ? static_cast<double>(*value.integer())
                      : value.floating() != nullptr ? *value.floating()
                                                    : 0);
  return std::pair(std::move(numbers), json_line(class_to_json(size.problem)));
}

void put_sizes(Json& object, const TuningRow& row) {
  std::vector<const TuningSize*> sizes;
  for (const TuningSize& size : row.sizes) sizes.push_back(&size);
  std::ranges::sort(sizes, {}, [](const TuningSize* size) { return size_key(*size); });
  Json elements = Json::array();
  for (const TuningSize* const size : sizes) elements.push_back(size_to_json(*size));
  object["sizes"] = std::move(elements);
}

void put_row(Json& object, const TuningRow& row) {
  // The lottery's figures have kept their own names.
  const bool plain = row.program != lottery;
  const auto put = [&](const char* key, const std::optional<double>& value) {
    if (value) object[key] = *value;
  };
  if (!row.variant.empty()) object["variant"] = row.variant;
  object["race"] = row.race;
  object["candidates"] = row.candidates;
  object["samples"] = row.samples;
  object["races"] = row.races;
  object["machines"] = row.machines;
  put(plain ? "rate" : "mhs", row.rate);
  put(plain ? "base_rate" : "base_mhs", row.base_rate);
  put("gain_pct", row.gain_pct);
  put(plain ? "rate_per_w" : "mh_per_w", row.rate_per_w);
  if (!row.backend.empty()) object["worker"] = row.backend;
  if (!row.by.empty()) object["by"] = row.by;
  if (row.race_every_n != TuningRow().race_every_n) object["race_every_n"] = row.race_every_n;
  if (!row.min_driver.empty()) object["min_driver"] = row.min_driver;
  if (!row.source.empty()) object["source"] = row.source;
  if (!row.sizes.empty()) put_sizes(object, row);
}

// Which of the card's three places a row is written to.
enum class Place { card, classes, programs };
Place place_of(const TuningRow& row) {
  if (row.program != lottery) return Place::programs;
  if (row.program_class.empty()) return Place::card;
  return is_lottery_class(row.program_class) ? Place::classes : Place::programs;
}

std::string sort_key(const TuningRow& row) {
  return row.program + '\n' + (row.program_class.empty() ? "" : json_line(class_to_json(row.program_class)));
}

Json card_to_json(const TuningCard& card) {
  Json object = Json::object();
  if (card.silicon) object["silicon"] = silicon_to_json(*card.silicon);
  object["aliases"] = card.aliases;
  object["program"] = lottery;
  std::vector<const TuningRow*> rows;
  for (const TuningRow& row : card.rows) rows.push_back(&row);
  std::ranges::sort(rows, {}, [](const TuningRow* row) { return sort_key(*row); });
  Json classes = Json::array(), programs = Json::array();
  std::string_view
      row_extra;  // of the row that stands in the card itself: written at its end, where it is read
  for (const TuningRow* const row : rows) {
    Json element = Json::object();
    switch (place_of(*row)) {
      case Place::card:
        put_row(object, *row);
        row_extra = row->extra;
        break;
      case Place::classes:
        element = class_to_json(row->program_class);
        put_row(element, *row);
        add_unknown(element, row->extra);
        classes.push_back(std::move(element));
        break;
      case Place::programs:
        element["program"] = row->program;
        if (!row->program_class.empty()) element["class"] = class_to_json(row->program_class);
        put_row(element, *row);
        add_unknown(element, row->extra);
        programs.push_back(std::move(element));
        break;
    }
  }
  object["classes"] = std::move(classes);
  object["programs"] = std::move(programs);
  add_unknown(object, row_extra);
  add_unknown(object, card.extra);
  return object;
}

// --- reading

bool has_row(JsonObject& object) {
  return object.value("variant") != nullptr || object.value("race") != nullptr ||
         object.value("candidates") != nullptr || object.value("sizes") != nullptr;
}

Result<TuningSize> read_size(const Json& json, std::string where) {
  JsonObject object(json, std::move(where));
  TuningSize size;
  object.require({"problem", "variant"});
  if (const Json* const problem = object.object("problem")) {
    FURLONG_TRY(size.problem, class_from_json(*problem, object.path("problem")));
    if (size.problem.empty()) object.keep(fail(Code::invalid, "{} is empty", object.path("problem")));
  }
  object.text("variant", size.variant);
  object.number("rate", size.rate, 0);
  object.number("base_rate", size.base_rate, 0);
  if (const Json* const gains = object.object("gains_pct"))
    for (const auto& [variant, gain] : gains->items()) {
      if (!gain.is_number() || !(gain.get<double>() > -100) || !std::isfinite(gain.get<double>()))
        return fail(Code::invalid, "{}.{} is no number over -100", object.path("gains_pct"), variant);
      size.gains_pct.emplace_back(variant, gain.get<double>());
    }
  FURLONG_CHECK(object.status());
  if (size.variant.empty()) return fail(Code::invalid, "{} is empty", object.path("variant"));
  size.extra = object.unknown();
  return size;
}

Status read_sizes(JsonObject& object, TuningRow& row) {
  const Json* const sizes = object.array("sizes");
  if (sizes == nullptr) return {};
  for (std::size_t i = 0; i < sizes->size(); ++i) {
    const std::string where = fmt::format("{}[{}]", object.path("sizes"), i);
    FURLONG_TRY(TuningSize size, read_size((*sizes)[i], where));
    for (const TuningSize& other : row.sizes)
      if (same_class(other.problem, size.problem))
        return fail(Code::invalid, "{}: a second entry for {}", where, class_text(size.problem));
    row.sizes.push_back(std::move(size));
  }
  return {};
}

void read_row(JsonObject& object, TuningRow& row) {
  object.text("variant", row.variant);
  object.boolean("race", row.race);
  object.texts("candidates", row.candidates);
  object.integer("samples", row.samples);
  object.integer("races", row.races);
  object.integer("machines", row.machines);
  object.number("mhs", row.rate, 0);
  object.number("rate", row.rate, 0);
  object.number("base_mhs", row.base_rate, 0);
  object.number("base_rate", row.base_rate, 0);
  object.number("gain_pct", row.gain_pct, -100);
  object.number("mh_per_w", row.rate_per_w, 0);
  object.number("rate_per_w", row.rate_per_w, 0);
  object.text("worker", row.backend);
  object.text("backend", row.backend);
  object.text("by", row.by);
  object.integer("race_every_n", row.race_every_n);
  object.text("min_driver", row.min_driver);
  object.text("source", row.source);
  if (Status sizes = read_sizes(object, row); !sizes) object.keep(std::move(sizes).error());
  if (row.program.empty()) object.keep(fail(Code::invalid, "{} is empty", object.path("program")));
  if (!row.race && row.variant.empty())
    object.keep(
        fail(Code::invalid, "{} is missing: a row that does not race must name one", object.path("variant")));
  if (std::ranges::find(row.candidates, "") != row.candidates.end())
    object.keep(fail(Code::invalid, "{} holds an empty name", object.path("candidates")));
}

Status add_row(TuningCard& card, TuningRow row, const JsonObject& object) {
  const bool twice = std::ranges::any_of(card.rows, [&](const TuningRow& other) {
    return other.program == row.program && same_class(other.program_class, row.program_class);
  });
  if (twice)
    return fail(Code::invalid, "{}: a second row for program {} and class {}", object.path("program"),
                row.program, row.program_class.empty() ? "any" : class_text(row.program_class));
  card.rows.push_back(std::move(row));
  return {};
}

Status read_class_row(const Json& json, std::string where, const std::string& program, TuningCard& card) {
  JsonObject object(json, std::move(where));
  TuningRow row;
  row.program = program;
  int loads = 0, wide = 0;
  object.require({"loads", "wide"});
  object.integer("loads", loads);
  object.integer("wide", wide);
  row.program_class = {{"loads", loads}, {"wide", wide}};
  read_row(object, row);
  FURLONG_CHECK(object.status());
  row.extra = object.unknown();
  return add_row(card, std::move(row), object);
}

Status read_program_row(const Json& json, std::string where, TuningCard& card) {
  JsonObject object(json, std::move(where));
  TuningRow row;
  object.require({"program"});
  object.text("program", row.program);
  if (const Json* const features = object.object("class")) {
    FURLONG_TRY(row.program_class, class_from_json(*features, object.path("class")));
  }
  read_row(object, row);
  FURLONG_CHECK(object.status());
  row.extra = object.unknown();
  return add_row(card, std::move(row), object);
}

Result<TuningCard> read_card(const std::string& key, const Json& json, std::string where) {
  TuningCard card;
  card.key = key;
  JsonObject object(json, std::move(where));
  if (const Json* const silicon = object.object("silicon")) {
    FURLONG_TRY(card.silicon, silicon_from_json(*silicon, object.path("silicon")));
  }
  object.texts("aliases", card.aliases);
  TuningRow row;
  object.text("program", row.program);
  const std::string program = row.program;
  if (const Json* const features = object.object("class")) {
    FURLONG_TRY(row.program_class, class_from_json(*features, object.path("class")));
  }
  const bool there = has_row(object);
  read_row(object, row);
  const Json* const classes = object.array("classes");
  const Json* const programs = object.array("programs");
  FURLONG_CHECK(object.status());
  // Unknown keys beside a row are the row's: an element of `classes` keeps its own in the same way.
  (there ? row.extra : card.extra) = object.unknown();
  if (there) FURLONG_CHECK(add_row(card, std::move(row), object));
  std::size_t i = 0;
  if (classes != nullptr)
    for (const Json& element : *classes)
      FURLONG_CHECK(
          read_class_row(element, fmt::format("{}[{}]", object.path("classes"), i++), program, card));
  i = 0;
  if (programs != nullptr)
    for (const Json& element : *programs)
      FURLONG_CHECK(read_program_row(element, fmt::format("{}[{}]", object.path("programs"), i++), card));
  return card;
}

}  // namespace

Result<Tuning> tuning_from_json(const Json& json, std::string_view name) {
  JsonObject object(json, std::string(name));
  int schema = 0;
  object.require({"schema"});
  object.integer("schema", schema, std::numeric_limits<int>::min());
  FURLONG_CHECK(object.status());
  if (schema != tuning_schema)
    return fail(Code::incompatible, "{}: tuning of schema {}, expected {}{}", name, schema, tuning_schema,
                schema > tuning_schema ? ": a newer program wrote it" : "");
  Tuning tuning;
  object.text("updated", tuning.updated);
  if (!tuning.updated.empty())
    if (const auto stamp = parse_stamp(tuning.updated); !stamp)
      object.keep(Error(stamp.error()).with(object.path("updated")));
  object.integer("window_days", tuning.window_days);
  object.require({"cards"});
  const Json* const cards = object.object("cards");
  FURLONG_CHECK(object.status());
  for (const auto& [key, card] : cards->items()) {
    if (key.empty()) return fail(Code::invalid, "{} holds a card without a name", object.path("cards"));
    FURLONG_TRY(TuningCard read, read_card(key, card, fmt::format("{}.{}", object.path("cards"), key)));
    tuning.cards.push_back(std::move(read));
  }
  tuning.extra = object.unknown();
  return tuning;
}

Result<Tuning> parse_tuning(std::string_view text, std::string_view name) {
  FURLONG_TRY(const Json json, json_parse(text, name));
  return tuning_from_json(json, name);
}

Json tuning_to_json(const Tuning& tuning) {
  Json object = Json::object();
  object["schema"] = tuning_schema;
  if (!tuning.updated.empty()) object["updated"] = tuning.updated;
  if (tuning.window_days != 0) object["window_days"] = tuning.window_days;
  std::vector<const TuningCard*> cards;
  for (const TuningCard& card : tuning.cards) cards.push_back(&card);
  std::ranges::sort(cards, {}, [](const TuningCard* card) { return card->key; });
  Json members = Json::object();
  for (const TuningCard* const card : cards) members[card->key] = card_to_json(*card);
  object["cards"] = std::move(members);
  add_unknown(object, tuning.extra);
  return object;
}

std::string print(const Tuning& tuning) { return json_pretty(tuning_to_json(tuning)); }

}  // namespace furlong::record
