#include "furlong/fleet/store/copy.h"

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "furlong/base/os/file.h"
#include "furlong/base/os/settle.h"

namespace furlong::fleet {
namespace {

// Of batches that are read before they are put, since `from` may not be asked while it is read.
constexpr std::size_t most_bytes = 4u << 20, most_batches = 64;

class Copy {
 public:
  Copy(Store& from, Store& to, const CopyProgress& progress) : from_(from), to_(to), progress_(progress) {}

  Result<CopyCounts> run() {
    FURLONG_TRY(const StoreTotals totals, from_.totals());
    counts_.of_batches = totals.batches;
    FURLONG_CHECK(copy_machines());
    FURLONG_CHECK(copy_tokens());
    for (bool more = true; more;) {
      FURLONG_TRY(const std::vector<StoredBatch> some, read_some());
      more = !some.empty();
      if (more) FURLONG_CHECK(copy_some(some));
    }
    // What has come meanwhile: machines and their counts, and tokens that they have used up.
    FURLONG_CHECK(copy_machines());
    FURLONG_CHECK(copy_tokens());
    return counts_;
  }

 private:
  Status copy_machines();
  Status copy_tokens();
  Result<std::vector<StoredBatch>> read_some();
  Status copy_some(std::span<const StoredBatch> some);
  Result<IncomingBatch> decoded(const StoredBatch& batch) const;
  Status mark_gone(std::span<IncomingBatch> batches);
  void tell() const {
    if (progress_) progress_(counts_);
  }

  Store& from_;
  Store& to_;
  const CopyProgress& progress_;
  CopyCounts counts_;
  std::set<std::string, std::less<>> known_;  ///< machines that `to` has
  std::uint64_t last_ = 0;                    ///< number of the last batch that was read
};

Status Copy::copy_machines() {
  FURLONG_TRY(const std::vector<Machine> there, to_.machines());
  std::map<std::string_view, const Machine*> known;
  for (const Machine& machine : there) known.emplace(machine.id, &machine);
  FURLONG_TRY(const std::vector<Machine> machines, from_.machines());
  for (const Machine& machine : machines) {
    known_.insert(machine.id);
    const auto at = known.find(machine.id);
    if (at != known.end() && *at->second == merged(*at->second, machine)) continue;
    FURLONG_CHECK(to_.put_machine(machine));
    ++counts_.machines;
  }
  tell();
  return {};
}

Status Copy::copy_tokens() {
  FURLONG_TRY(const std::vector<Token> there, to_.tokens());
  std::map<Digest, const Token*> known;
  for (const Token& token : there) known.emplace(token.digest, &token);
  FURLONG_TRY(const std::vector<Token> tokens, from_.tokens());
  for (const Token& token : tokens) {
    const auto at = known.find(token.digest);
    if (at != known.end() && *at->second == merged(*at->second, token)) continue;
    FURLONG_CHECK(to_.put_token(token));
    ++counts_.tokens;
  }
  tell();
  return {};
}

Result<std::vector<StoredBatch>> Copy::read_some() {
  std::vector<StoredBatch> some;
  std::size_t bytes = 0;
  FURLONG_CHECK(from_.batches(last_, [&](const StoredBatch& batch) -> Result<bool> {
    last_ = batch.number;
    bytes += batch.body.size();
    some.push_back(batch);
    return bytes < most_bytes && some.size() < most_batches;
  }));
  return some;
}

Status Copy::copy_some(std::span<const StoredBatch> some) {
  std::vector<IncomingBatch> fresh;
  for (const StoredBatch& batch : some) {
    FURLONG_TRY(const bool there, to_.has_batch(batch));
    counts_.there += there;
    if (there) continue;
    FURLONG_TRY(IncomingBatch one, decoded(batch));
    fresh.push_back(std::move(one));
  }
  // One that was enrolled since they were copied.
  const auto is_new = [&](const IncomingBatch& batch) { return !known_.contains(batch.machine); };
  if (std::ranges::any_of(fresh, is_new)) FURLONG_CHECK(copy_machines());
  FURLONG_CHECK(mark_gone(fresh));
  FURLONG_TRY(const std::uint64_t races, to_.put_batches(fresh));
  counts_.batches += fresh.size();
  counts_.races += races;
  tell();
  return {};
}

Result<IncomingBatch> Copy::decoded(const StoredBatch& batch) const {
  IncomingBatch one{.id = batch.id,
                    .machine = batch.machine,
                    .signature = batch.signature,
                    .body = batch.body,
                    .received_us = batch.received_us};
  std::string_view rest = batch.body;
  rest.remove_prefix(std::min(rest.size(), rest.find('\n')));  // its header
  auto refused = batch.refused.begin();
  for (std::uint32_t number = 0; rest.size() > 1; ++number) {
    rest.remove_prefix(1);
    const std::string_view text = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(text.size());
    if (refused != batch.refused.end() && *refused == number) {
      ++refused;
      one.lines.push_back({.race = fail(Code::invalid, "it was refused before")});
      continue;
    }
    const std::string where = fmt::format("batch {} ({}), line {}", batch.number, batch.id, number + 1);
    auto record = record::parse_record(text, where);
    auto race = record ? decode(*record) : Result<DecodedRace>(Error(record.error()));
    if (!race) return fail(Code::corrupt, "{}: {}", where, race.error().text());
    one.lines.push_back({.id = record->id, .race = std::move(race)});
  }
  return one;
}

Status Copy::mark_gone(std::span<IncomingBatch> batches) {
  std::vector<RecordId> ids;
  for (const IncomingBatch& batch : batches)
    for (const IncomingBatch::Line& line : batch.lines)
      if (line.race) ids.push_back(line.race->id);
  FURLONG_TRY(const std::vector<bool> there, from_.have(ids));
  auto at = there.begin();
  for (IncomingBatch& batch : batches)
    for (IncomingBatch::Line& line : batch.lines)
      if (line.race) line.gone = !*at++;
  return {};
}

}  // namespace

Result<CopyCounts> copy_store(Store& from, Store& to, const CopyProgress& progress) {
  return Copy(from, to, progress).run();
}

Status backup_store(Store& from, const std::filesystem::path& file, const OpenFile& open_file,
                    const CopyProgress& progress) {
  Files& files = system_files();
  if (files.exists(file))
    return fail(Code::invalid, "{}: is there already: a backup makes a new file", file.string());
  // Its own: two that are told the same name must not write into one file.
  std::random_device entropy;
  std::filesystem::path partial = file;
  partial += fmt::format(".{:08x}{:08x}.partial", entropy(), entropy());
  const auto clean = [&]() -> Status {
    for (const char* suffix : {"", "-wal", "-shm", "-journal"})
      FURLONG_CHECK(files.remove(partial.native() + suffix));
    return {};
  };
  const auto make = [&]() -> Status {
    FURLONG_TRY(const bool made, from.snapshot(partial));
    if (made) return {};
    FURLONG_TRY(const std::unique_ptr<Store> to, open_file(partial));
    FURLONG_CHECK(copy_store(from, *to, progress));
    return {};
  };
  Status status = make();
  if (status) status = settle_file(partial, file);
  if (!status) {
    const Status cleaned = clean();
    static_cast<void>(cleaned);  // the first error is the one to tell
  }
  return status;
}

}  // namespace furlong::fleet
