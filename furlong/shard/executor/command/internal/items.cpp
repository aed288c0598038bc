#include "furlong/shard/executor/command/internal/items.h"

#include "furlong/base/json.h"
#include "furlong/base/json_object.h"

namespace furlong::shard::command {
namespace {

const std::string kWhere = "an item of the store";

Bytes bytes_of(const Json& json) {
  const std::string text = json_line(json);
  return {text.begin(), text.end()};
}

Result<InputItem> decode_input(JsonObject& object) {
  InputItem input;
  std::string hash;
  object.text("input", input.path);
  object.text("blake2b", hash);
  object.integer("bytes", input.bytes);
  object.require({"input", "blake2b", "bytes"});
  FURLONG_CHECK(object.strict());
  FURLONG_TRY(input.hash, Digest::parse(hash));
  return input;
}

Result<Command> decode_command(JsonObject& object) {
  Command command;
  object.text("command", command.name);
  object.texts("argv", command.argv);
  object.text("folder", command.folder);
  object.texts("outputs", command.outputs);
  object.number("timeout_s", command.timeout_s, 0);
  object.boolean("any_address_space", command.any_address_space);
  object.require({"command", "argv", "folder", "outputs"});
  if (const Json* environment = object.object("environment"))
    for (const auto& [name, value] : environment->items()) {
      if (!value.is_string()) return fail(Code::mismatch, "{}: environment: {}: no text", kWhere, name);
      command.environment.emplace_back(name, value.get<std::string>());
    }
  FURLONG_CHECK(object.strict());
  if (command.argv.empty()) return fail(Code::mismatch, "{}: argv: there is no program", kWhere);
  return command;
}

}  // namespace

Bytes encode(const Command& command) {
  Json json;
  json["format"] = kItemFormat;
  json["command"] = command.name;
  json["argv"] = command.argv;
  json["folder"] = command.folder;
  if (!command.environment.empty()) {
    json["environment"] = Json::object();
    for (const auto& [name, value] : command.environment) json["environment"][name] = value;
  }
  json["outputs"] = command.outputs;
  if (command.timeout_s > 0) json["timeout_s"] = command.timeout_s;
  if (command.any_address_space) json["any_address_space"] = true;
  return bytes_of(json);
}

Bytes encode(const InputItem& input) {
  Json json;
  json["format"] = kItemFormat;
  json["input"] = input.path;
  json["blake2b"] = input.hash.hex();
  json["bytes"] = input.bytes;
  return bytes_of(json);
}

Result<std::variant<Command, InputItem>> decode(ByteView bytes) {
  const auto rejected = [](const Error& error) { return fail(Code::mismatch, "{}", error.text()); };
  const auto json = json_parse(as_text(bytes), kWhere);
  if (!json) return rejected(json.error());
  JsonObject object(*json, kWhere);
  int format = 0;
  object.integer("format", format);
  object.require({"format"});
  if (const Status status = object.status(); !status) return rejected(status.error());
  if (format != kItemFormat)
    return fail(Code::incompatible, "{} is of format {}, this program reads {}: make the store anew", kWhere,
                format, kItemFormat);
  if (json->contains("input")) {
    auto input = decode_input(object);
    if (!input) return rejected(input.error());
    return std::variant<Command, InputItem>(*std::move(input));
  }
  auto command = decode_command(object);
  if (!command) return rejected(command.error());
  return std::variant<Command, InputItem>(*std::move(command));
}

}  // namespace furlong::shard::command
