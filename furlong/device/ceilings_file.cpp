// Ceilings on disk (docs/formats/ceilings.md).
#include <algorithm>

#include "furlong/base/hash.h"
#include "furlong/base/json.h"
#include "furlong/base/json_object.h"
#include "furlong/base/log.h"
#include "furlong/device/ceilings.h"

namespace furlong::device {
namespace {

constexpr int kSchema = 1;
constexpr std::size_t kMostBytes = 1u << 20;

Result<CeilingKind> parse_kind(const std::string& word, const std::string& where) {
  for (std::size_t k = 0; k < ceiling_kinds; ++k)
    if (ceiling_name(static_cast<CeilingKind>(k)) == word) return static_cast<CeilingKind>(k);
  return fail(Code::invalid, "{}: there is no ceiling '{}'", where, word);
}

Result<CeilingRate> parse_rate(const Json& value, const std::string& where) {
  CeilingRate rate;
  std::string kind;
  JsonObject object(value, where);
  object.require({"kind", "bytes", "rate"});
  object.text("kind", kind);
  object.integer("bytes", rate.bytes);
  object.number("rate", rate.rate, 1e-3);
  object.number("launch_ms", rate.launch_ms, 0);
  object.text("how", rate.how);
  FURLONG_CHECK(object.status());
  FURLONG_TRY(rate.kind, parse_kind(kind, where));
  return rate;
}

Result<LeftOut> parse_left_out(const Json& value, const std::string& where) {
  LeftOut one;
  std::string kind;
  JsonObject object(value, where);
  object.require({"kind", "why"});
  object.text("kind", kind);
  object.text("why", one.why);
  FURLONG_CHECK(object.status());
  FURLONG_TRY(one.kind, parse_kind(kind, where));
  return one;
}

/// What makes other ceilings of the same silicon.
bool is_of(const Ceilings& ceilings, const Facts& facts) {
  const bool card = ceilings.backend == facts.backend && ceilings.silicon == facts.silicon.hash() &&
                    ceilings.driver == facts.driver;
  return card &&
         (!facts.runs_on_host_cpu || (ceilings.compiler == facts.compiler && ceilings.label == facts.label));
}

}  // namespace

Json to_json(const Ceilings& ceilings) {
  Json rates = Json::array();
  for (const CeilingRate& rate : ceilings.rates)
    rates.push_back(Json{{"kind", ceiling_name(rate.kind)},
                         {"bytes", rate.bytes},
                         {"rate", rate.rate},
                         {"unit", ceiling_unit(rate.kind)},
                         {"launch_ms", rate.launch_ms},
                         {"how", rate.how}});
  Json left_out = Json::array();
  for (const LeftOut& one : ceilings.left_out)
    left_out.push_back(Json{{"kind", ceiling_name(one.kind)}, {"why", one.why}});
  return Json{{"schema", kSchema},
              {"kind", "ceilings"},
              {"measured", ceilings.measured},
              {"took_s", ceilings.took_s},
              {"backend", ceilings.backend},
              {"label", ceilings.label},
              {"silicon", ceilings.silicon},
              {"driver", ceilings.driver},
              {"compiler", ceilings.compiler},
              {"language", ceilings.language},
              {"rates", std::move(rates)},
              {"left_out", std::move(left_out)}};
}

Result<Ceilings> parse_ceilings(std::string_view text, std::string_view name) {
  FURLONG_TRY(const Json document, json_parse(text, name));
  JsonObject object(document, std::string(name));
  Ceilings ceilings;
  std::string kind;
  int schema = 0;
  object.require({"schema", "kind"});
  object.text("kind", kind);
  object.integer("schema", schema);
  FURLONG_CHECK(object.status());
  if (kind != "ceilings") return fail(Code::invalid, "{}: is of kind '{}', not 'ceilings'", name, kind);
  if (schema != kSchema)
    return fail(Code::incompatible, "{}: found schema {}, expected {}", name, schema, kSchema);
  object.require({"backend", "silicon", "driver", "rates"});
  object.text("measured", ceilings.measured);
  object.number("took_s", ceilings.took_s, 0);
  object.text("backend", ceilings.backend);
  object.text("label", ceilings.label);
  object.text("silicon", ceilings.silicon);
  object.text("driver", ceilings.driver);
  object.text("compiler", ceilings.compiler);
  object.text("language", ceilings.language);
  const Json* const rates = object.array("rates");
  const Json* const left_out = object.array("left_out");
  FURLONG_CHECK(object.status());
  for (std::size_t i = 0; i < rates->size(); ++i) {
    FURLONG_TRY(CeilingRate rate, parse_rate((*rates)[i], fmt::format("{}: rates[{}]", name, i)));
    ceilings.rates.push_back(std::move(rate));
  }
  for (std::size_t i = 0; left_out != nullptr && i < left_out->size(); ++i) {
    FURLONG_TRY(LeftOut one, parse_left_out((*left_out)[i], fmt::format("{}: left_out[{}]", name, i)));
    ceilings.left_out.push_back(std::move(one));
  }
  std::ranges::stable_sort(ceilings.rates, {},
                           [](const CeilingRate& rate) { return std::pair(rate.kind, rate.bytes); });
  return ceilings;
}

std::filesystem::path ceilings_file(const std::filesystem::path& folder, const Facts& facts) {
  Hasher hasher;
  hasher.add_field("furlong ceilings").add_field(facts.backend).add_field(facts.silicon.hash());
  hasher.add_field(facts.driver);
  if (facts.runs_on_host_cpu) hasher.add_field(facts.compiler).add_field(facts.label);
  return folder / (facts.backend + "-" + hasher.finish().brief() + ".json");
}

std::optional<Ceilings> cached_ceilings(const std::filesystem::path& folder, const Facts& facts,
                                        Files& files) {
  const std::filesystem::path file = ceilings_file(folder, facts);
  if (!files.exists(file)) return std::nullopt;
  const auto text = files.read(file, kMostBytes);
  auto parsed = text ? parse_ceilings(*text, file.string()) : Result<Ceilings>(text.error());
  if (parsed && !is_of(*parsed, facts))
    parsed = fail(Code::invalid, "{}: is of another device ({}, driver {})", file.string(), parsed->label,
                  parsed->driver);
  if (parsed) return *std::move(parsed);
  log_warning("the kept ceilings are not used: {}; furlong devices --ceilings measures them anew",
              parsed.error().text());
  return std::nullopt;
}

Status cache_ceilings(const std::filesystem::path& folder, const Facts& facts, const Ceilings& ceilings,
                      Files& files) {
  return files.write_atomic(ceilings_file(folder, facts), json_pretty(to_json(ceilings)));
}

}  // namespace furlong::device
