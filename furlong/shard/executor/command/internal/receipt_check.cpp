// Judges the body of a receipt. Shares nothing with what ran the commands and wrote it: items and body are
// read anew here.

#include <filesystem>
#include <limits>
#include <map>
#include <set>

#include "furlong/base/json.h"
#include "furlong/base/json_object.h"
#include "furlong/base/os/file.h"
#include "furlong/base/random.h"
#include "furlong/base/text.h"
#include "furlong/shard/executor/command/internal/receipt_body.h"

namespace furlong::shard::command {
namespace {

const std::string kWhere = "the receipt";

/// What a unit's own items promise.
struct Promise {
  bool has_command = false;
  std::vector<std::string> outputs;
};

Result<Promise> promise_of(const Unit& unit, ItemSource& items) {
  Promise promise;
  for (const Key& key : unit.items) {
    FURLONG_TRY(const ByteView bytes, items.item(key));
    FURLONG_TRY(const Json json, json_parse(as_text(bytes), "an item of the store"));
    if (!json.is_object() || !json.contains("command")) continue;
    if (promise.has_command) return fail(Code::mismatch, "it has two commands");
    promise.has_command = true;
    JsonObject object(json, "an item of the store");
    object.texts("outputs", promise.outputs);
    FURLONG_CHECK(object.status());
  }
  return promise;
}

struct Told {
  std::string key, name, memory;
  int exit_status = -1;
  std::uint64_t inputs = 0, peak_bytes = 0;
  double seconds = 0, user_seconds = 0, system_seconds = 0;
  std::vector<InputItem> outputs;
};

Result<InputItem> read_output(const Json& json, const std::string& where) {
  JsonObject object(json, where);
  InputItem output;
  std::string hash;
  object.text("path", output.path);
  object.text("blake2b", hash);
  object.integer("bytes", output.bytes);
  object.require({"path", "blake2b", "bytes"});
  FURLONG_CHECK(object.strict());
  FURLONG_TRY(output.hash, Digest::parse(hash));
  return output;
}

Result<Told> read_unit(const Json& json, std::size_t number, bool& has_command) {
  const std::string where = fmt::format("{}: units[{}]", kWhere, number);
  JsonObject object(json, where);
  Told told;
  object.text("unit", told.key);
  object.text("name", told.name);
  object.text("memory", told.memory);
  object.integer("exit_status", told.exit_status, std::numeric_limits<int>::min());
  object.integer("inputs", told.inputs);
  object.integer("peak_bytes", told.peak_bytes);
  object.number("seconds", told.seconds, 0);
  object.number("user_seconds", told.user_seconds, 0);
  object.number("system_seconds", told.system_seconds, 0);
  object.require({"unit", "name", "inputs", "outputs"});
  const Json* outputs = object.array("outputs");
  FURLONG_CHECK(object.strict());
  has_command = json.contains("exit_status");
  if (has_command) {
    object.require({"seconds", "user_seconds", "system_seconds", "peak_bytes", "memory"});
    FURLONG_CHECK(object.status());
  }
  for (std::size_t i = 0; i < outputs->size(); ++i) {
    FURLONG_TRY(InputItem output, read_output((*outputs)[i], fmt::format("{}: outputs[{}]", where, i)));
    told.outputs.push_back(std::move(output));
  }
  return told;
}

Status check_file(const InputItem& output) {
  std::error_code error;
  if (!std::filesystem::exists(output.path, error))
    return fail(Code::mismatch, "the output {} is not there any more", output.path);
  const auto hash = system_files().hash(output.path, std::numeric_limits<std::size_t>::max());
  if (!hash) return fail(Code::mismatch, "an output: {}", hash.error().text());
  if (*hash == output.hash && std::filesystem::file_size(output.path, error) == output.bytes) return {};
  return fail(Code::mismatch, "the output {} has other content than the receipt says", output.path);
}

Status judge_unit(const Told& told, bool has_command, const Unit& unit, ItemSource& items, bool look) {
  FURLONG_TRY(const Promise promise, promise_of(unit, items));
  if (promise.has_command != has_command)
    return fail(Code::mismatch, "the receipt tells of a command: {}; its unit has one: {}", has_command,
                promise.has_command);
  if (has_command && told.exit_status != 0)
    return fail(Code::mismatch, "its command ended with exit status {}", told.exit_status);
  std::vector<std::string> paths;
  for (const InputItem& output : told.outputs) paths.push_back(output.path);
  if (paths != promise.outputs)
    return fail(Code::mismatch, "the receipt tells of other outputs than its own");
  if (!look) return {};
  for (const InputItem& output : told.outputs) FURLONG_CHECK(check_file(output));
  return {};
}

// JSON that is wrong makes a receipt that does not hold, not an input to be mended.
Error rejected(const Error& error) {
  if (error.code() != Code::invalid) return error;
  return fail(Code::mismatch, "{}", error.text());
}

}  // namespace

Status check_receipt_body(ByteView body, std::span<const Unit> units, ItemSource& items,
                          const VerifyOptions& options) {
  const auto json = json_parse(as_text(body), kWhere, {.max_bytes = 1u << 30});
  if (!json) return rejected(json.error());
  JsonObject object(*json, kWhere);
  int format = 0;
  object.integer("format", format);
  object.require({"format", "units"});
  const Json* list = object.array("units");
  if (const Status status = object.strict(); !status) return rejected(status.error());
  if (format != kReceiptFormat)
    return fail(Code::incompatible, "the receipt is of format {}, this program reads {}: run the shard anew",
                format, kReceiptFormat);

  std::map<std::string, const Unit*> wanted;
  for (const Unit& unit : units) wanted.emplace(unit.key.hex(), &unit);
  Random random(options.seed, "outputs of commands");
  for (std::size_t i = 0; i < list->size(); ++i) {
    if (options.stop.stop_requested()) return fail(Code::timeout, "stopped");
    bool has_command = false;
    const auto told = read_unit((*list)[i], i, has_command);
    if (!told) return rejected(told.error());
    const auto unit = wanted.find(told->key);
    if (unit == wanted.end())
      return fail(Code::mismatch, "the receipt tells of '{}' twice, or it is not the claim's",
                  one_line(told->name));
    const bool look = random.uniform() < options.sample;
    if (const Status status = judge_unit(*told, has_command, *unit->second, items, look); !status)
      return rejected(status.error()).with(fmt::format("unit '{}'", one_line(unit->second->name)));
    wanted.erase(unit);
  }
  if (wanted.empty()) return {};
  return fail(Code::mismatch, "the receipt does not tell of '{}'", one_line(wanted.begin()->second->name));
}

}  // namespace furlong::shard::command
