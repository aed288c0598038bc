#include "furlong/race/internal/trial_protocol.h"

#include <array>
#include <utility>

#include "furlong/base/json.h"
#include "furlong/base/json_object.h"
#include "furlong/base/text.h"

namespace furlong::race {
namespace {

using Kind = TrialEvent::Kind;

constexpr JsonLimits kLimits{.max_bytes = 1 << 20, .max_depth = 16};
constexpr std::string_view kMark = R"({"furlong-trial":)";
constexpr std::array kKinds{std::pair{Kind::ready, "ready"},   std::pair{Kind::begin, "begin"},
                            std::pair{Kind::built, "built"},   std::pair{Kind::passed, "passed"},
                            std::pair{Kind::failed, "failed"}, std::pair{Kind::error, "error"},
                            std::pair{Kind::end, "end"}};

Code parse_code(std::string_view word) {
  for (const Code code : {Code::unavailable, Code::invalid, Code::mismatch, Code::timeout, Code::exhausted,
                          Code::corrupt, Code::incompatible, Code::denied})
    if (code_name(code) == word) return code;
  return Code::internal;
}

Status check_version(const Json& object, std::string_view where) {
  FURLONG_TRY(const std::int64_t version, json_integer(object, "furlong-trial", where));
  if (version == trial_protocol) return {};
  return fail(Code::incompatible,
              "{} is of version {}, expected {}: parent and trial are of different builds", where, version,
              trial_protocol);
}

/// Text of a compiler or a system message may hold any bytes; JSON holds UTF-8 only.
std::string printable(std::string_view text) {
  constexpr std::size_t most = 4000;
  std::string out;
  for (const char c : text.substr(0, most)) out += is_valid_utf8({&c, 1}) ? c : '?';
  return is_valid_utf8(text.substr(0, most)) ? std::string(text.substr(0, most)) : out;
}

}  // namespace

std::string to_line(const TrialRequest& request) {
  Json object;
  object["furlong-trial"] = trial_protocol;
  object["program"] = request.program_json;
  object["device"] = request.device;
  object["variants"] = request.variants;
  object["seed"] = request.seed;
  object["memory_bytes"] = request.memory_bytes;
  return json_line(object);
}

Result<TrialRequest> parse_trial_request(std::string_view line) {
  constexpr std::string_view where = "the trial request";
  FURLONG_TRY(const Json object, json_parse(line, where, kLimits));
  if (!object.is_object()) return fail(Code::invalid, "{} is not a JSON object", where);
  FURLONG_CHECK(check_version(object, where));
  TrialRequest request;
  JsonObject reader(object, std::string(where));
  reader.value("furlong-trial");
  reader.text("program", request.program_json);
  reader.text("device", request.device);
  reader.texts("variants", request.variants);
  reader.integer("seed", request.seed);
  reader.integer("memory_bytes", request.memory_bytes);
  reader.require({"program", "device", "variants"});
  FURLONG_CHECK(reader.strict());
  return request;
}

std::string to_line(const TrialEvent& event) {
  Json object;
  object["furlong-trial"] = trial_protocol;
  for (const auto& [kind, word] : kKinds)
    if (kind == event.kind) object["event"] = word;
  if (!event.variant.empty()) object["variant"] = event.variant;
  if (event.kind == Kind::failed || event.kind == Kind::error) {
    object["code"] = std::string(code_name(event.code));
    object["why"] = printable(event.why);
  }
  if (event.lost) object["lost"] = true;
  return json_line(object);
}

Result<std::optional<TrialEvent>> parse_trial_event(std::string_view line) {
  constexpr std::string_view where = "the trial's event";
  if (!line.starts_with(kMark)) return std::optional<TrialEvent>();
  FURLONG_TRY(const Json object, json_parse(line, where, kLimits));
  if (!object.is_object()) return fail(Code::invalid, "{} is not a JSON object", where);
  FURLONG_CHECK(check_version(object, where));
  TrialEvent event;
  std::string word, code;
  JsonObject reader(object, std::string(where));
  reader.value("furlong-trial");
  reader.text("event", word);
  reader.text("variant", event.variant);
  reader.text("code", code);
  reader.text("why", event.why);
  reader.boolean("lost", event.lost);
  reader.require({"event"});
  FURLONG_CHECK(reader.strict());
  event.code = parse_code(code);
  bool known = false;
  for (const auto& [kind, name] : kKinds) {
    if (word != name) continue;
    event.kind = kind;
    known = true;
  }
  if (!known) return fail(Code::invalid, "{} '{}' is none of the protocol's", where, word);
  const bool names_one = event.kind == Kind::begin || event.kind == Kind::built ||
                         event.kind == Kind::passed || event.kind == Kind::failed;
  if (names_one && event.variant.empty()) return fail(Code::invalid, "{} '{}' names no variant", where, word);
  return std::optional<TrialEvent>(std::move(event));
}

}  // namespace furlong::race
