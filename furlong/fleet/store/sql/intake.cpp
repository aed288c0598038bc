#include "furlong/fleet/store/sql/intake.h"

#include <algorithm>
#include <cstring>
#include <tuple>

#include "furlong/base/text.h"
#include "furlong/base/zip.h"
#include "furlong/fleet/store/batch_header.h"
#include "furlong/fleet/store/sql/row.h"

namespace furlong::fleet::sql {
namespace {

constexpr std::string_view find_machine =
    "SELECT number, seen_us, agent, manifest, says_canary, last_refusal, header FROM machine WHERE id=?1";
constexpr std::string_view find_batch = "SELECT number FROM batch WHERE digest=?1";
constexpr std::string_view find_id = "SELECT 1 FROM race WHERE id=?1";
constexpr std::string_view find_key =
    "SELECT ts_us, id, batch FROM race WHERE machine=?1 AND subject=?2 AND slot=?3 AND epoch=?4 AND "
    "source=?5";
constexpr std::string_view read_totals = "SELECT next_batch, races, newest_ts_us FROM totals";
constexpr std::string_view add_batch =
    "INSERT INTO batch(number, digest, machine, id, signature, received_us, races, refused, body_bytes) "
    "VALUES(?1, ?2, ?3, ?4, ?5, ?6, 0, ?7, ?8)";
constexpr std::string_view add_body = "INSERT INTO batch_body(number, body) VALUES(?1, ?2)";
constexpr std::string_view drop_race =
    "DELETE FROM race WHERE subject=?1 AND machine=?2 AND ts_us=?3 AND id=?4";
constexpr std::string_view add_race =
    "INSERT INTO race(subject, machine, ts_us, id, slot, source, epoch, label, driver, winner, data, batch, "
    "line) "
    "VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)";
constexpr std::string_view count_races = "UPDATE batch SET races=races+?2 WHERE number=?1";
constexpr std::string_view set_machine =
    "UPDATE machine SET seen_us=?2, agent=?3, manifest=?4, says_canary=?5, accepted=accepted+?6, "
    "duplicate=duplicate+?7, refused=refused+?8, last_refusal=?9, header=?10 WHERE number=?1";
constexpr std::string_view set_totals =
    "UPDATE totals SET races=races+?1, batches=batches+?2, next_batch=?3, newest_ts_us=?4, change=change+1";

std::string packed_lines(const IncomingBatch& batch) {
  std::string bytes;
  for (std::size_t i = 0; i < batch.lines.size(); ++i) {
    if (batch.lines[i].race || batch.lines[i].gone) continue;
    char four[4];
    store_le(four, static_cast<std::uint32_t>(i));
    bytes.append(four, sizeof four);
  }
  return bytes;
}

RecordId id_of(ByteView bytes) {
  RecordId id{};
  std::memcpy(id.data(), bytes.data(), std::min(bytes.size(), id.size()));
  return id;
}

}  // namespace

Digest batch_digest(std::string_view machine, std::string_view id, std::string_view body) {
  Hasher hasher;
  return hasher.add_field(machine).add_field(id).add_field(body).finish();
}

Status Intake::prepare() {
  bodies_.resize(batches_.size());
  for (std::size_t i = 0; i < batches_.size(); ++i) {
    const IncomingBatch& batch = batches_[i];
    bodies_[i].digest = batch_digest(batch.machine, batch.id, batch.body);
    first_of_.try_emplace(bodies_[i].digest, i);
    if (mode_ == Mode::add && batch.lines.empty()) continue;  // a report: nothing of it is kept
    FURLONG_TRY(bodies_[i].packed, deflate(batch.body, Zip::quick));
  }
  return {};
}

Result<std::vector<BatchOutcome>> Intake::run() {
  names_->trim();
  FURLONG_CHECK(find_senders());
  FURLONG_CHECK(find_bodies());
  collect();
  FURLONG_CHECK(find_ids());
  FURLONG_CHECK(find_keys());
  decide();
  FURLONG_CHECK(put_bodies());
  FURLONG_CHECK(put_races());
  FURLONG_CHECK(count_batches());
  if (mode_ == Mode::add) FURLONG_CHECK(put_senders());
  FURLONG_CHECK(put_totals());
  return std::move(outcomes_);
}

Status Intake::find_senders() {
  std::vector<Value> ids;
  for (const IncomingBatch& batch : batches_)
    if (senders_.try_emplace(batch.machine).second) ids.emplace_back(std::string_view(batch.machine));
  FURLONG_CHECK(
      connection_->run(find_machine, ids, 1, [&](std::size_t index, const Row& row) -> Result<bool> {
        Sender& sender = senders_[std::string(std::get<std::string_view>(ids[index]))];
        sender.number = static_cast<MachineNumber>(row.integer(0));
        sender.seen_us = row.integer(1);
        sender.agent = row.text(2);
        sender.manifest = row.text(3);
        sender.says_canary = row.integer(4) != 0;
        sender.last_refusal = row.text(5);
        sender.header = row.text(6);
        return true;
      }));
  for (const auto& [id, sender] : senders_)
    if (sender.number == 0)
      return fail(Code::invalid, "{}: there is no machine '{}'", connection_->name(),
                  one_line(id.substr(0, 60)));
  return {};
}

Status Intake::find_bodies() {
  std::vector<Value> digests;
  for (const Body& body : bodies_) digests.emplace_back(ByteView(body.digest.bytes));
  return connection_->run(find_batch, digests, 1, [&](std::size_t index, const Row& row) -> Result<bool> {
    bodies_[index].number = static_cast<std::uint64_t>(row.integer(0));
    bodies_[index].known = true;
    return true;
  });
}

void Intake::collect() {
  std::size_t most = 0;
  for (const IncomingBatch& batch : batches_) most += batch.lines.size();
  candidates_.reserve(most);  // pointers into it are kept
  for (std::size_t b = 0; b < batches_.size(); ++b) {
    if (mode_ == Mode::copy && (bodies_[b].known || first_of_[bodies_[b].digest] != b)) continue;
    for (std::size_t i = 0; i < batches_[b].lines.size(); ++i) {
      const IncomingBatch::Line& line = batches_[b].lines[i];
      if (!line.race || line.gone) continue;
      candidates_.push_back(
          {.batch = b, .line = i, .race = &*line.race, .sender = &senders_[batches_[b].machine]});
    }
  }
}

Status Intake::find_ids() {
  std::vector<Value> ids;
  for (const Candidate& each : candidates_) ids.emplace_back(ByteView(each.race->id));
  return connection_->run(find_id, ids, 1, [&](std::size_t index, const Row&) -> Result<bool> {
    candidates_[index].there = true;
    return true;
  });
}

Intake::Key Intake::key_of(const Candidate& candidate) {
  return {candidate.sender->number, candidate.subject, candidate.slot, candidate.source, candidate.epoch};
}

Status Intake::find_keys() {
  std::vector<std::string_view> words;
  for (const Candidate& each : candidates_)
    if (!each.there) words.insert(words.end(), {each.race->slot, each.race->source});
  FURLONG_CHECK(names_->learn(words));
  std::vector<Value> values;
  std::vector<decltype(latest_)::iterator> asked;
  for (Candidate& each : candidates_) {
    if (each.there) continue;
    FURLONG_TRY(each.subject, names_->learn_subject(*each.race));
    FURLONG_TRY(each.slot, names_->word(each.race->slot));
    FURLONG_TRY(each.source, names_->word(each.race->source));
    FURLONG_TRY(each.epoch, pack_epoch(each.race->epoch, each.race->ts_us));
    const auto [at, fresh] = latest_.try_emplace(key_of(each));
    if (!fresh) continue;
    asked.push_back(at);
    const auto& [machine, subject, slot, source, epoch] = at->first;
    values.insert(values.end(),
                  {Value(std::int64_t{machine}), Value(std::int64_t{subject}), Value(std::int64_t{slot}),
                   Value(as_bytes(epoch)), Value(std::int64_t{source})});
  }
  return connection_->run(find_key, values, 5, [&](std::size_t index, const Row& row) -> Result<bool> {
    asked[index]->second = {.ts_us = row.integer(0),
                            .id = id_of(row.blob(1)),
                            .batch = static_cast<std::uint64_t>(row.integer(2))};
    return true;
  });
}

Fate Intake::fate_of(Candidate& candidate) {
  const DecodedRace& race = *candidate.race;
  if (candidate.there || taken_.contains(race.id)) return Fate::duplicate;
  const auto at = latest_.find(key_of(candidate));
  Latest& latest = at->second;
  const bool none = latest.candidate == nullptr && latest.batch == 0;
  if (!none && std::tie(latest.ts_us, latest.id) > std::tie(race.ts_us, race.id)) return Fate::duplicate;
  if (latest.candidate != nullptr) {
    latest.candidate->kept = false;
    taken_.erase(latest.id);
  } else if (!none) {
    replaced_.emplace_back(at->first, latest);
  }
  latest = {.ts_us = race.ts_us, .id = race.id, .candidate = &candidate};
  candidate.kept = true;
  taken_[race.id] = true;
  return Fate::accepted;
}

void Intake::decide() {
  auto candidate = candidates_.begin();
  for (std::size_t b = 0; b < batches_.size(); ++b) {
    const IncomingBatch& batch = batches_[b];
    Sender& sender = senders_[batch.machine];
    BatchOutcome outcome;
    bool keep = mode_ == Mode::copy;
    for (std::size_t i = 0; i < batch.lines.size(); ++i) {
      const IncomingBatch::Line& line = batch.lines[i];
      Fate fate = Fate::duplicate;
      if (line.gone) {
        // As one that was replaced.
      } else if (!line.race) {
        fate = Fate::refused;
        sender.last_refusal = line.race.error().text();
        ++sender.refused;
      } else if (candidate != candidates_.end() && candidate->batch == b && candidate->line == i) {
        fate = fate_of(*candidate++);
        ++(fate == Fate::accepted ? sender.accepted : sender.duplicate);
      }
      keep = keep || fate == Fate::accepted;
      outcome.fates.push_back(fate);
    }
    take_header(sender, batch);
    Body& body = bodies_[first_of_[bodies_[b].digest]];
    body.keep = body.keep || keep;
    outcomes_.push_back(std::move(outcome));
  }
}

Status Intake::put_bodies() {
  FURLONG_CHECK(connection_->once(read_totals, {}, [&](std::size_t, const Row& row) -> Result<bool> {
    next_batch_ = row.integer(0);
    races_before_ = row.integer(1);
    newest_us_ = row.integer(2);
    return true;
  }));
  std::vector<Value> batches, contents;
  std::vector<std::string> refused;
  refused.reserve(batches_.size());
  for (std::size_t b = 0; b < batches_.size(); ++b) {
    Body& body = bodies_[b];
    const std::size_t first = first_of_[body.digest];
    if (first != b) {
      body.number = bodies_[first].number;
      continue;
    }
    if (body.known || !body.keep) continue;
    const IncomingBatch& batch = batches_[b];
    body.number = static_cast<std::uint64_t>(next_batch_);
    refused.push_back(packed_lines(batch));
    batches.insert(batches.end(),
                   {Value(next_batch_), Value(ByteView(body.digest.bytes)),
                    Value(std::int64_t{senders_[batch.machine].number}), Value(std::string_view(batch.id)),
                    Value(std::string_view(batch.signature)), Value(batch.received_us),
                    Value(as_bytes(refused.back())), Value(static_cast<std::int64_t>(batch.body.size()))});
    contents.insert(contents.end(), {Value(next_batch_), Value(as_bytes(body.packed))});
    ++next_batch_;
    ++new_batches_;
  }
  FURLONG_CHECK(connection_->run(add_batch, batches, 8));
  return connection_->run(add_body, contents, 2);
}

Status Intake::put_races() {
  std::vector<Value> values;
  for (const auto& [key, latest] : replaced_)
    values.insert(values.end(), {Value(std::int64_t{std::get<1>(key)}), Value(std::int64_t{std::get<0>(key)}),
                                 Value(latest.ts_us), Value(ByteView(latest.id))});
  FURLONG_CHECK(connection_->run(drop_race, values, 4));
  std::vector<std::string_view> words;
  for (const Candidate& each : candidates_) {
    if (!each.kept) continue;
    words.insert(words.end(), {each.race->label, each.race->driver, each.race->winner});
    for (const VariantGain& variant : each.race->variants) words.push_back(variant.name);
  }
  FURLONG_CHECK(names_->learn(words));
  std::vector<std::string> rows;
  rows.reserve(candidates_.size());  // views of them are kept
  values.clear();
  for (const Candidate& each : candidates_) {
    if (!each.kept) continue;
    const DecodedRace& race = *each.race;
    FURLONG_TRY(std::string packed, row_of(race));
    rows.push_back(std::move(packed));
    FURLONG_TRY(const WordNumber label, names_->word(race.label));
    FURLONG_TRY(const WordNumber driver, names_->word(race.driver));
    FURLONG_TRY(const WordNumber winner, names_->word(race.winner));
    values.insert(values.end(),
                  {Value(std::int64_t{each.subject}), Value(std::int64_t{each.sender->number}),
                   Value(race.ts_us), Value(ByteView(race.id)), Value(std::int64_t{each.slot}),
                   Value(std::int64_t{each.source}), Value(as_bytes(each.epoch)), Value(std::int64_t{label}),
                   Value(std::int64_t{driver}), Value(std::int64_t{winner}), Value(as_bytes(rows.back())),
                   Value(static_cast<std::int64_t>(bodies_[each.batch].number)),
                   Value(static_cast<std::int64_t>(each.line))});
  }
  return connection_->run(add_race, values, 13);
}

Result<std::string> Intake::row_of(const DecodedRace& race) const {
  std::vector<PackedGain> gains;
  gains.reserve(race.variants.size());
  for (const VariantGain& each : race.variants) {
    FURLONG_TRY(const WordNumber variant, names_->word(each.name));
    gains.push_back({.variant = variant,
                     .gain_pct = each.gain_pct,
                     .half_pct = each.half_pct,
                     .rate = each.rate,
                     .power_w = each.power_w,
                     .exit = each.exit,
                     .fallback = each.fallback});
  }
  RaceRow row{.verdict = race.verdict,
              .pinned = race.pinned,
              .rate = race.rate,
              .base_rate = race.base_rate,
              .gain_pct = race.gain_pct,
              .ceiling = race.ceiling,
              .power_limit_w = race.power_limit_w,
              .power_pct = race.power_pct};
  row.gains = gains;
  return pack_row(row);
}

Status Intake::count_batches() {
  std::map<std::uint64_t, std::int64_t> races_of;
  for (const Candidate& each : candidates_)
    if (each.kept) ++races_of[bodies_[each.batch].number];
  for (const auto& [key, latest] : replaced_) --races_of[latest.batch];
  std::vector<Value> values;
  for (const auto& [number, races] : races_of)
    if (races != 0) values.insert(values.end(), {Value(static_cast<std::int64_t>(number)), Value(races)});
  return connection_->run(count_races, values, 2);
}

Status Intake::put_senders() {
  std::vector<Value> values;
  for (const auto& [id, sender] : senders_)
    values.insert(
        values.end(),
        {Value(std::int64_t{sender.number}), Value(sender.seen_us), Value(std::string_view(sender.agent)),
         Value(std::string_view(sender.manifest)), Value(std::int64_t{sender.says_canary}),
         Value(sender.accepted), Value(sender.duplicate), Value(sender.refused),
         Value(std::string_view(sender.last_refusal)), Value(std::string_view(sender.header))});
  return connection_->run(set_machine, values, 10);
}

Status Intake::put_totals() {
  std::int64_t added = -static_cast<std::int64_t>(replaced_.size());
  // What is replaced is older than what replaces it: the newest never goes but with all the others.
  std::int64_t newest_us = races_before_ > 0 ? newest_us_ : INT64_MIN;
  for (const Candidate& each : candidates_) {
    if (!each.kept) continue;
    ++added;
    newest_us = std::max(newest_us, each.race->ts_us);
  }
  if (newest_us == INT64_MIN) newest_us = 0;
  return connection_->once(set_totals, {added, new_batches_, next_batch_, newest_us});
}

}  // namespace furlong::fleet::sql
