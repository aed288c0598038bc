#include "furlong/fleet/exchange/importer.h"

#include "furlong/fleet/record_batch.h"

namespace furlong::fleet {
namespace {

constexpr std::size_t most_records = 4000, most_bytes = 16u << 20;  // of one transaction
constexpr std::size_t batch_records = 1000, batch_bytes = 4u << 20;

}  // namespace

Status Importer::add(const ImportedRecord& record) {
  FURLONG_TRY(DecodedRace race, decode(record.record));
  // What was exported from a store comes back to where it was.
  std::string machine = as_.empty() ? record.record.machine : as_;
  if (machine.starts_with("import:")) machine.erase(0, 7);
  Waiting& waiting = waiting_[machine];
  waiting.lines.push_back(record.line);
  waiting.races.push_back(std::move(race));
  ++records_;
  bytes_ += record.line.size();
  ++counts_.records;
  if (records_ < most_records && bytes_ < most_bytes) return {};
  return flush();
}

Status Importer::flush() {
  std::vector<IncomingBatch> batches;
  for (auto& [name, waiting] : waiting_) {
    if (made_.try_emplace(name, true).second) FURLONG_CHECK(store_.add_importer(name, now_us_));
    for (std::size_t begin = 0; begin < waiting.lines.size();) {
      RecordBatch records{.id = {}, .machine = "import:" + name, .lines = {}};
      IncomingBatch batch{.id = {}, .machine = records.machine, .signature = {}, .body = {}};
      std::size_t bytes = 0;
      std::string text;
      for (; begin < waiting.lines.size() && records.lines.size() < batch_records && bytes < batch_bytes;
           ++begin) {
        IncomingBatch::Line line{.id = record_id_text(waiting.races[begin].id)};
        line.race = std::move(waiting.races[begin]);
        batch.lines.push_back(std::move(line));
        bytes += waiting.lines[begin].size();
        text += waiting.lines[begin] + "\n";
        records.lines.push_back(std::move(waiting.lines[begin]));
      }
      // The same records make the same batch.
      records.id = content_id(batch.lines.front().race->ts_us, text);
      batch.id = records.id;
      FURLONG_TRY(batch.body, print(records));
      batch.received_us = now_us_;
      batches.push_back(std::move(batch));
    }
  }
  waiting_.clear();
  records_ = bytes_ = 0;
  if (batches.empty()) return {};
  FURLONG_TRY(const std::vector<BatchOutcome> outcomes, store_.add(batches));
  for (const BatchOutcome& outcome : outcomes)
    for (const Fate fate : outcome.fates) ++(fate == Fate::accepted ? counts_.accepted : counts_.duplicate);
  counts_.machines = made_.size();
  return {};
}

}  // namespace furlong::fleet
