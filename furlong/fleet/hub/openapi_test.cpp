// The description walks: what it says is asked of the real handler, and every answer is checked against its
// schema.

#include "furlong/fleet/hub/openapi.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <regex>
#include <set>

#include "furlong/fleet/hub/internal/testing.h"
#include "furlong/fleet/manifest/internal/testing.h"

namespace furlong::fleet {
namespace {

using hub_testing::get;
using hub_testing::header;
using hub_testing::json_of;
using hub_testing::Sender;
using hub_testing::TestHub;

const Json& description() {
  static const Json json = *json_parse(openapi_text(), "openapi.json");
  return json;
}

bool is_type(const Json& value, const std::string& type) {
  if (type == "object") return value.is_object();
  if (type == "array") return value.is_array();
  if (type == "string") return value.is_string();
  if (type == "boolean") return value.is_boolean();
  if (type == "integer") return value.is_number_integer() || value.is_number_unsigned();
  if (type == "number") return value.is_number();
  ADD_FAILURE() << "unknown type " << type;
  return false;
}

/// The words of JSON Schema that the description uses; another one is an error of the description.
void validate(const Json& value, const Json& schema, const std::string& where);

void validate_object(const Json& value, const Json& schema, const std::string& where) {
  for (const Json& name : schema.value("required", Json::array()))
    EXPECT_TRUE(value.contains(name.get<std::string>()))
        << where << ": " << name << " is missing in " << value.dump(1).substr(0, 300);
  const Json properties = schema.value("properties", Json::object());
  const Json more = schema.value("additionalProperties", Json(true));
  for (const auto& [name, member] : value.items()) {
    const std::string at = where + "." + name;
    if (properties.contains(name))
      validate(member, properties[name], at);
    else if (more.is_object())
      validate(member, more, at);
    else
      EXPECT_TRUE(more.get<bool>()) << at << ": the description has no such member";
  }
}

void validate_text(const std::string& text, const Json& schema, const std::string& where) {
  if (schema.contains("pattern")) {
    EXPECT_TRUE(std::regex_search(text, std::regex(schema["pattern"].get<std::string>())))
        << where << ": " << text;
  }
  EXPECT_GE(text.size(), schema.value("minLength", 0u)) << where;
  EXPECT_LE(text.size(), schema.value("maxLength", 1u << 30)) << where;
}

void validate_list(const Json& value, const Json& schema, const std::string& where) {
  EXPECT_GE(value.size(), schema.value("minItems", 0u)) << where;
  EXPECT_LE(value.size(), schema.value("maxItems", 1u << 30)) << where;
  for (std::size_t i = 0; i < value.size(); ++i)
    validate(value[i], schema["items"], fmt::format("{}[{}]", where, i));
}

void validate(const Json& value, const Json& schema, const std::string& where) {
  static const std::set<std::string> known{
      "$ref",        "type",      "properties", "required", "additionalProperties",
      "items",       "minItems",  "maxItems",   "enum",     "const",
      "pattern",     "minLength", "maxLength",  "minimum",  "maximum",
      "description", "default"};
  for (const auto& [word, argument] : schema.items())
    EXPECT_TRUE(known.contains(word)) << where << ": " << word;
  if (schema.contains("$ref")) {
    const std::string name =
        schema["$ref"].get<std::string>().substr(std::string("#/components/schemas/").size());
    ASSERT_TRUE(description()["components"]["schemas"].contains(name)) << where << ": " << name;
    return validate(value, description()["components"]["schemas"][name], where);
  }
  ASSERT_TRUE(schema.contains("type")) << where;
  const Json types = schema["type"].is_array() ? schema["type"] : Json::array({schema["type"]});
  ASSERT_TRUE(std::ranges::any_of(types, [&](const Json& type) { return is_type(value, type); }))
      << where << ": " << value.dump().substr(0, 200) << " is no " << types;
  if (schema.contains("const")) {
    EXPECT_EQ(value, schema["const"]) << where;
  }
  if (schema.contains("enum")) {
    EXPECT_NE(std::ranges::find(schema["enum"], value), schema["enum"].end()) << where << ": " << value;
  }
  if (value.is_number()) {
    EXPECT_TRUE(std::isfinite(value.get<double>())) << where;
    if (schema.contains("minimum")) {
      EXPECT_GE(value.get<double>(), schema["minimum"].get<double>()) << where;
    }
    if (schema.contains("maximum")) {
      EXPECT_LE(value.get<double>(), schema["maximum"].get<double>()) << where;
    }
  }
  if (value.is_string()) validate_text(value, schema, where);
  if (value.is_object()) validate_object(value, schema, where);
  if (value.is_array()) validate_list(value, schema, where);
}

/// A reply is one that its operation announces, and its body is what is announced.
void expect_described(const ServerReply& reply, const Json& operation, const std::string& where) {
  const std::string status = std::to_string(reply.status);
  ASSERT_TRUE(operation["responses"].contains(status))
      << where << " answers " << status << ": " << reply.body;
  const Json& response = operation["responses"][status];
  if (!response.contains("content")) {
    EXPECT_TRUE(reply.body.empty()) << where;
    return;
  }
  const std::string type = reply.content_type.substr(0, reply.content_type.find(';'));
  ASSERT_TRUE(response["content"].contains(type)) << where << ": " << type;
  if (type == "application/json")
    validate(json_of(reply), response["content"][type]["schema"], where + " " + status);
  const Json headers = response.value("headers", Json::object());
  for (const auto& [name, about] : headers.items())
    EXPECT_FALSE(header(reply, name).empty()) << where << " " << status << ": " << name;
}

/// A fleet with something of everything.
struct Walk {
  TestHub fleet;
  Sender box{1};
  std::string race;

  Walk() {
    namespace made = testing_support;
    ManifestBody body;
    body.roots = {made::signed_by(made::root_document(), {made::root_key()})};
    body.manifest = made::signed_by(made::manifest_document(), {made::publish_key()});
    body.stop = made::signed_by(made::stop_document(), {made::stop_key()});
    EXPECT_TRUE(fleet.files.write_atomic("manifest.json", print(body)));
    fleet.options.manifest = "manifest.json";
    lattice::Lattice lattice;
    lattice.knobs.push_back({.name = "UNROLL",
                             .values = {lattice::Value(std::int64_t{1}), lattice::Value(std::int64_t{2})},
                             .tags = {"", "u2"}});
    lattice.catalogue = {"base", "u2"};
    fleet.options.lattices = {{"lottery", "cuda", "", lattice}};
    fleet.know(box);
    EXPECT_EQ(fleet.send(Sender(2).enrolment(fleet.token("t"))).status, 200);
    Json record = box.record();
    race = record["id"];
    Json worse = box.record("0000000000000002");
    worse.erase("slot");
    EXPECT_EQ(fleet.send(box.request(box.body({json_line(record), json_line(worse)}, "0.1.0"))).status, 200);
    fleet.hub().learner().step();
  }
};

std::string filled(const std::string& path, const Walk& walk) {
  const std::pair<std::string, std::string> items[] = {
      {"{key}", "NVIDIA_H200"}, {"{id}", walk.race}, {"{program}", "lottery"}};
  for (const auto& [name, value] : items)
    if (const std::size_t at = path.find(name); at != std::string::npos) return path.substr(0, at) + value;
  return path;
}

TEST(Openapi, EveryRouteIsDescribedAndEveryPathIsARoute) {
  TestHub fleet;
  std::set<std::string> routes, described;
  for (const Route& route : fleet.hub().router().routes()) routes.insert(route.method + " " + route.path);
  for (const auto& [path, methods] : description()["paths"].items())
    for (const auto& [method, operation] : methods.items())
      described.insert((method == "get" ? "GET " : "POST ") + path);
  EXPECT_EQ(routes, described);
  EXPECT_EQ(description()["openapi"], "3.1.0");
}

TEST(Openapi, ParametersAreThoseOfTheRoutes) {
  TestHub fleet;
  for (const Route& route : fleet.hub().router().routes()) {
    const Json& operation = description()["paths"][route.path][route.method == "GET" ? "get" : "post"];
    std::set<std::string> described;
    bool has_item = false;
    for (const Json& parameter : operation.value("parameters", Json::array())) {
      if (parameter["in"] == "query") described.insert(parameter["name"].get<std::string>());
      if (parameter["in"] != "path") continue;
      has_item = true;
      EXPECT_NE(route.path.find("{" + parameter["name"].get<std::string>() + "}"), std::string::npos);
    }
    EXPECT_EQ(described, std::set<std::string>(route.parameters.begin(), route.parameters.end()))
        << route.path;
    EXPECT_EQ(has_item, route.path.find('{') != std::string::npos) << route.path;
  }
}

TEST(Openapi, EveryGetAnswersAsDescribed) {
  Walk walk;
  for (const auto& [path, methods] : description()["paths"].items()) {
    if (!methods.contains("get")) continue;
    const Json& operation = methods["get"];
    const ServerReply reply = walk.fleet.send(get(filled(path, walk)));
    EXPECT_EQ(reply.status, 200) << path << ": " << reply.body;
    expect_described(reply, operation, path);
    const ServerReply wrong = walk.fleet.send(get(filled(path, walk), {{"no-such", "1"}}));
    EXPECT_EQ(wrong.status, 400) << path;
    expect_described(wrong, operation, path);
    ServerRequest again = get(filled(path, walk));
    again.headers = {{"if-none-match", header(reply, "ETag")}};
    if (path == "/metrics") continue;
    const ServerReply same = walk.fleet.send(again);
    EXPECT_EQ(same.status, 304) << path;
    expect_described(same, operation, path);
    if (path.find('{') == std::string::npos) continue;
    const ServerReply none =
        walk.fleet.send(get(path.substr(0, path.find('{')) + "01956a3c-8f00-7abc-8def-0123456789ab"));
    EXPECT_EQ(none.status, 404) << path;
    expect_described(none, operation, path);
  }
}

TEST(Openapi, EveryParameterIsTaken) {
  Walk walk;
  const std::map<std::string, std::string> values{{"since", "2026-02-01T00:00:00Z"},
                                                  {"until", "2026-04-01T00:00:00Z"},
                                                  {"before", walk.race},
                                                  {"limit", "3"}};
  const Json& operation = description()["paths"]["/v1/races"]["get"];
  for (const Json& parameter : operation["parameters"]) {
    const std::string name = parameter["name"];
    const auto value = values.contains(name) ? values.at(name) : "x";
    const ServerReply reply = walk.fleet.send(get("/v1/races", {{name, value}}));
    EXPECT_EQ(reply.status, 200) << name << ": " << reply.body;
    expect_described(reply, operation, "/v1/races?" + name);
  }
}

TEST(Openapi, EveryPostAnswersAsDescribed) {
  Walk walk;
  Sender fresh(7);
  const std::string token = walk.fleet.token("more");
  const std::string body = walk.box.body({});
  const auto expect = [&](ServerRequest request, int status) {
    const ServerReply reply = walk.fleet.send(request);
    EXPECT_EQ(reply.status, status) << request.path << ": " << reply.body;
    expect_described(reply, description()["paths"][request.path]["post"], request.path);
  };
  expect(fresh.enrolment(token), 200);
  expect(fresh.enrolment("wrong"), 403);
  expect(walk.box.request(body), 200);
  expect(walk.box.request(body + "x"), 400);
  expect(walk.box.request("{\"schema\":2}\n"), 422);
  expect(walk.box.request(std::string((8u << 20) + 1, ' ')), 413);
  expect(Sender(9).request(body), 403);
  for (const auto& request : {walk.box.request(body), fresh.enrolment(token)}) {
    ServerRequest other = request;
    other.headers[0].second = "text/plain";
    expect(other, 415);
  }
  walk.fleet.faults->set([](std::string_view call) -> Status {
    return call == "add" || call == "enrol" ? Status(fail(Code::exhausted, "full")) : Status();
  });
  expect(walk.box.request(body), 503);
  expect(fresh.enrolment(token), 503);
  walk.fleet.faults->set({});
  for (int i = 0; i < 300; ++i) walk.fleet.send(walk.box.request(body));
  expect(walk.box.request(body), 429);
}

TEST(Openapi, ReadersOfAStoreThatIsAwayAreToldAsDescribed) {
  Walk walk;
  walk.fleet.faults->set([](std::string_view) -> Status { return fail(Code::unavailable, "gone"); });
  for (const auto& [path, methods] : description()["paths"].items())
    if (methods.contains("get"))
      expect_described(walk.fleet.send(get(filled(path, walk))), methods["get"], path);
}

}  // namespace
}  // namespace furlong::fleet
