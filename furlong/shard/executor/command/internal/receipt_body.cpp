#include "furlong/shard/executor/command/internal/receipt_body.h"

#include "furlong/base/json.h"

namespace furlong::shard::command {

Bytes write_receipt_body(std::span<const UnitRun> runs) {
  Json json;
  json["format"] = kReceiptFormat;
  json["units"] = Json::array();
  for (const UnitRun& run : runs) {
    Json unit;
    unit["unit"] = run.unit.hex();
    unit["name"] = run.name;
    unit["inputs"] = run.inputs;
    if (run.has_command) {
      unit["exit_status"] = 0;  // another one has no receipt
      unit["seconds"] = run.seconds;
      unit["user_seconds"] = run.user_s;
      unit["system_seconds"] = run.system_s;
      unit["peak_bytes"] = run.peak_bytes;
      unit["memory"] = memory_meter_name(run.meter);
    }
    unit["outputs"] = Json::array();
    for (const InputItem& output : run.outputs)
      unit["outputs"].push_back(
          {{"path", output.path}, {"blake2b", output.hash.hex()}, {"bytes", output.bytes}});
    json["units"].push_back(std::move(unit));
  }
  const std::string text = json_line(json);
  return {text.begin(), text.end()};
}

}  // namespace furlong::shard::command
