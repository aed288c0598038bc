#include "furlong/campaign/internal/receipt_body.h"

#include "furlong/base/json.h"

namespace furlong::campaign {

Bytes write_receipt_body(std::span<const UnitRun> runs) {
  std::string text = json_line(Json{{"format", kReceiptFormat}, {"units", runs.size()}}) + "\n";
  for (const UnitRun& run : runs) {
    Json line{{"unit", run.unit.hex()}, {"name", run.name}};
    if (run.raced) {
      line["problem"] = problem_json(run.item.problem);
      line["device"] = run.item.device;
      line["seconds"] = run.job.seconds;
      line["device_bytes"] = run.job.record_bytes;
      line["reference"] = run.reference;
      line["sentence"] = run.sentence;
      line["record"] = record::to_json(run.record);
    }
    text += json_line(line) + "\n";
  }
  return {text.begin(), text.end()};
}

}  // namespace furlong::campaign
