#include "furlong/fleet/store/memory/memory.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <tuple>

#include "furlong/base/bytes.h"
#include "furlong/base/text.h"
#include "furlong/fleet/store/batch_header.h"

namespace furlong::fleet {

namespace {

/// Numbers of names, from 1 in order of their first use.
class Names {
 public:
  std::uint32_t number(const std::string& name) {
    if (name.empty()) return 0;
    const auto [at, fresh] = numbers_.try_emplace(name, static_cast<std::uint32_t>(names_.size()));
    if (fresh) names_.push_back(name);
    return at->second;
  }
  const std::vector<std::string>& names() const { return names_; }

 private:
  std::map<std::string, std::uint32_t> numbers_;
  std::vector<std::string> names_{""};
};

struct Kept {
  DecodedRace race;
  std::string machine;
  std::uint64_t batch = 0;
  std::size_t line = 0;
};

/// Of which the latest is kept.
using Key = std::tuple<std::string, std::string, Subject, std::string, std::string>;
Key key_of(const std::string& machine, const DecodedRace& race) {
  return {machine, race.slot, race.subject,
          race.epoch.empty() ? fmt::format("day {}", utc_day(race.ts_us)) : race.epoch, race.source};
}

}  // namespace

class MemoryData {
 public:
  std::mutex mutex;
  std::map<Digest, Token> tokens;
  std::map<std::string, Machine> machines;
  Names machine_numbers, words;
  std::vector<SubjectRow> subjects;
  std::map<RecordId, Kept> races;
  std::map<Key, RecordId> latest;
  std::map<std::uint64_t, StoredBatch> batches;
  std::map<std::tuple<std::string, std::string, std::string>, std::uint64_t> batch_of;  ///< machine, id, body
  std::uint64_t next_batch = 1;
  std::uint64_t change = 0;
};

namespace {

class MemoryStore : public Store {
 public:
  explicit MemoryStore(std::shared_ptr<MemoryData> data) : data_(std::move(data)) {}

  Status add_token(const Token& token) override {
    const std::scoped_lock lock(data_->mutex);
    if (!data_->tokens.emplace(token.digest, token).second)
      return fail(Code::invalid, "this token is there already");
    return {};
  }
  Result<std::vector<Token>> tokens() override {
    const std::scoped_lock lock(data_->mutex);
    std::vector<Token> all;
    for (const auto& [digest, token] : data_->tokens) all.push_back(token);
    std::ranges::stable_sort(all, {}, &Token::issued_us);
    return all;
  }
  Result<Machine> enrol(const Digest& digest, const PublicKey& key, std::int64_t now_us) override;
  Result<std::optional<Machine>> machine(std::string_view id) override {
    const std::scoped_lock lock(data_->mutex);
    const auto at = data_->machines.find(std::string(id));
    if (at == data_->machines.end()) return std::nullopt;
    return at->second;
  }
  Result<std::vector<Machine>> machines() override {
    const std::scoped_lock lock(data_->mutex);
    std::vector<Machine> all;
    for (const auto& [id, machine] : data_->machines) all.push_back(machine);
    return all;
  }
  Status retire(std::string_view id) override {
    return change_machine(id, [](Machine& machine) { machine.state = MachineState::retired; });
  }
  Status set_canary(std::string_view id, bool canary) override {
    return change_machine(id, [&](Machine& machine) { machine.canary = canary; });
  }
  Status add_importer(std::string_view name, std::int64_t now_us) override {
    const std::scoped_lock lock(data_->mutex);
    Machine machine{.id = "import:" + std::string(name)};
    machine.enrolled_us = now_us;
    if (!data_->machines.try_emplace(machine.id, machine).second) return {};
    data_->machine_numbers.number(machine.id);
    ++data_->change;
    return {};
  }

  Result<std::vector<BatchOutcome>> add(std::span<const IncomingBatch> batches) override;
  Result<std::uint64_t> prune(std::int64_t before_us, const std::stop_token& stop) override;

  Result<std::vector<SubjectRow>> subjects() override {
    const std::scoped_lock lock(data_->mutex);
    return data_->subjects;
  }
  Result<std::vector<std::string>> words() override {
    const std::scoped_lock lock(data_->mutex);
    return data_->words.names();
  }
  Result<std::vector<std::string>> machine_names() override {
    const std::scoped_lock lock(data_->mutex);
    return data_->machine_numbers.names();
  }
  Status scan(SubjectNumber subject, Window window,
              const std::function<bool(const RaceRow&)>& visit) override;
  Result<std::optional<std::int64_t>> newest_ts() override {
    const std::scoped_lock lock(data_->mutex);
    return newest();
  }
  Result<RacePage> page(const RaceFilter& filter) override;
  Result<std::optional<RaceText>> race(std::string_view id) override;
  Result<StoreTotals> totals() override;
  Status batches(std::uint64_t after, const std::function<Result<bool>(const StoredBatch&)>& visit) override {
    std::vector<StoredBatch> all;
    {
      const std::scoped_lock lock(data_->mutex);
      for (auto at = data_->batches.upper_bound(after); at != data_->batches.end(); ++at)
        all.push_back(at->second);
    }
    for (const StoredBatch& batch : all) {
      FURLONG_TRY(const bool more, visit(batch));
      if (!more) break;
    }
    return {};
  }
  Status put_machine(const Machine& machine) override {
    const std::scoped_lock lock(data_->mutex);
    const auto [at, fresh] = data_->machines.try_emplace(machine.id, machine);
    if (!fresh) at->second = merged(at->second, machine);
    data_->machine_numbers.number(machine.id);
    ++data_->change;
    return {};
  }
  Status put_token(const Token& token) override {
    const std::scoped_lock lock(data_->mutex);
    const auto [at, fresh] = data_->tokens.try_emplace(token.digest, token);
    if (!fresh) at->second = merged(at->second, token);
    return {};
  }
  Result<std::vector<bool>> have(std::span<const RecordId> ids) override {
    const std::scoped_lock lock(data_->mutex);
    std::vector<bool> there;
    for (const RecordId& id : ids) there.push_back(data_->races.contains(id));
    return there;
  }
  Result<bool> has_batch(const StoredBatch& batch) override {
    const std::scoped_lock lock(data_->mutex);
    return data_->batch_of.contains({batch.machine, batch.id, batch.body});
  }
  Result<std::uint64_t> put_batches(std::span<const IncomingBatch> batches) override;
  Result<bool> snapshot(const std::filesystem::path&) override { return false; }

 private:
  Status change_machine(std::string_view id, const std::function<void(Machine&)>& change) {
    const std::scoped_lock lock(data_->mutex);
    const auto at = data_->machines.find(std::string(id));
    if (at == data_->machines.end())
      return fail(Code::invalid, "there is no machine '{}'", one_line(id.substr(0, 60)));
    change(at->second);
    ++data_->change;
    return {};
  }
  std::optional<std::int64_t> newest() const {
    std::optional<std::int64_t> newest;
    for (const auto& [id, kept] : data_->races)
      newest = std::max(newest.value_or(INT64_MIN), kept.race.ts_us);
    return newest;
  }
  SubjectNumber subject_number(const DecodedRace& race) {
    for (const SubjectRow& row : data_->subjects)
      if (row.subject == race.subject) return row.number;
    const auto number = static_cast<SubjectNumber>(data_->subjects.size() + 1);
    data_->subjects.push_back({number, race.subject, race.silicon});
    return number;
  }
  bool keep(const std::string& machine, const DecodedRace& race);
  void name_all(const DecodedRace& race);
  Status check_machines(std::span<const IncomingBatch> batches) const;
  BatchOutcome add_one(const IncomingBatch& batch, bool copied);
  RaceSummary summary(const Kept& kept) const;
  static bool fits(const RaceFilter& filter, const Kept& kept);

  const std::shared_ptr<MemoryData> data_;
};

Result<Machine> MemoryStore::enrol(const Digest& digest, const PublicKey& key, std::int64_t now_us) {
  const std::scoped_lock lock(data_->mutex);
  const auto token = data_->tokens.find(digest);
  if (token == data_->tokens.end()) return fail(Code::denied, "no such token was issued here");
  const std::string id = key.id();
  const auto known = data_->machines.find(id);
  if (known != data_->machines.end() && known->second.state == MachineState::retired)
    return fail(Code::denied, "machine {} is retired; give it a new key and a new token", id);
  if (!token->second.machine.empty()) {
    if (token->second.machine == id && known != data_->machines.end()) return known->second;
    return fail(Code::denied, "this token was used by another key");
  }
  if (now_us >= token->second.expires_us) return fail(Code::denied, "this token has expired");
  token->second.machine = id;
  Machine machine = known != data_->machines.end() ? known->second : Machine{.id = id};
  machine.key = key;
  machine.label = token->second.label;
  machine.canary = token->second.canary;
  machine.enrolled_us = now_us;
  if (const std::string& old = token->second.replaces; !old.empty() && old != id) {
    machine.replaces = old;
    if (const auto at = data_->machines.find(old); at != data_->machines.end())
      at->second.state = MachineState::retired;
  }
  data_->machines.insert_or_assign(id, machine);
  data_->machine_numbers.number(id);
  ++data_->change;
  return machine;
}

void MemoryStore::name_all(const DecodedRace& race) {
  for (const std::string* name : {&race.slot, &race.label, &race.driver, &race.source, &race.winner})
    data_->words.number(*name);
  for (const VariantGain& variant : race.variants) data_->words.number(variant.name);
  subject_number(race);
}

bool MemoryStore::keep(const std::string& machine, const DecodedRace& race) {
  if (data_->races.contains(race.id)) return false;
  const auto [at, fresh] = data_->latest.try_emplace(key_of(machine, race), race.id);
  if (!fresh) {
    const DecodedRace& before = data_->races.at(at->second).race;
    if (std::tie(before.ts_us, before.id) > std::tie(race.ts_us, race.id)) return false;
    data_->races.erase(at->second);
    at->second = race.id;
  }
  data_->races.emplace(race.id, Kept{.race = race, .machine = machine});
  name_all(race);
  return true;
}

BatchOutcome MemoryStore::add_one(const IncomingBatch& batch, bool copied) {
  Machine& machine = data_->machines.at(batch.machine);
  BatchOutcome outcome;
  StoredBatch stored{.number = data_->next_batch,
                     .id = batch.id,
                     .machine = batch.machine,
                     .signature = batch.signature,
                     .body = batch.body,
                     .received_us = batch.received_us};
  const auto known = data_->batch_of.find({batch.machine, batch.id, batch.body});
  if (known != data_->batch_of.end()) stored.number = known->second;
  bool any = copied;
  for (std::size_t i = 0; i < batch.lines.size(); ++i) {
    const IncomingBatch::Line& line = batch.lines[i];
    if (line.gone) {
      outcome.fates.push_back(Fate::duplicate);
      continue;
    }
    if (!line.race) {
      outcome.fates.push_back(Fate::refused);
      stored.refused.push_back(static_cast<std::uint32_t>(i));
      machine.last_refusal = line.race.error().text();
      ++machine.refused;
      continue;
    }
    const bool accepted = keep(batch.machine, *line.race);
    outcome.fates.push_back(accepted ? Fate::accepted : Fate::duplicate);
    ++(accepted ? machine.accepted : machine.duplicate);
    if (!accepted) continue;
    any = true;
    Kept& kept = data_->races.at(line.race->id);
    kept.batch = stored.number;
    kept.line = i;
  }
  take_header(machine, batch);
  if (any && known == data_->batch_of.end()) {
    data_->batch_of.emplace(std::tuple(batch.machine, batch.id, batch.body), stored.number);
    data_->batches.emplace(data_->next_batch++, std::move(stored));
  }
  return outcome;
}

Result<std::vector<BatchOutcome>> MemoryStore::add(std::span<const IncomingBatch> batches) {
  const std::scoped_lock lock(data_->mutex);
  FURLONG_CHECK(check_machines(batches));
  std::vector<BatchOutcome> outcomes;
  for (const IncomingBatch& batch : batches) outcomes.push_back(add_one(batch, false));
  if (!batches.empty()) ++data_->change;
  return outcomes;
}

Status MemoryStore::check_machines(std::span<const IncomingBatch> batches) const {
  for (const IncomingBatch& batch : batches)
    if (!data_->machines.contains(batch.machine))
      return fail(Code::invalid, "there is no machine '{}'", one_line(batch.machine.substr(0, 60)));
  return {};
}

Result<std::uint64_t> MemoryStore::put_batches(std::span<const IncomingBatch> batches) {
  const std::scoped_lock lock(data_->mutex);
  FURLONG_CHECK(check_machines(batches));
  std::uint64_t fresh = 0;
  for (const IncomingBatch& batch : batches) {
    if (data_->batch_of.contains({batch.machine, batch.id, batch.body})) continue;
    Machine& machine = data_->machines.at(batch.machine);
    const Machine before = machine;
    const BatchOutcome outcome = add_one(batch, true);
    fresh += static_cast<std::uint64_t>(std::ranges::count(outcome.fates, Fate::accepted));
    machine = before;
  }
  if (!batches.empty()) ++data_->change;
  return fresh;
}

Result<std::uint64_t> MemoryStore::prune(std::int64_t before_us, const std::stop_token& stop) {
  if (stop.stop_requested()) return std::uint64_t{0};
  const std::scoped_lock lock(data_->mutex);
  std::uint64_t gone = 0;
  for (auto at = data_->races.begin(); at != data_->races.end();) {
    const bool old = at->second.race.ts_us < before_us;
    if (old) data_->latest.erase(key_of(at->second.machine, at->second.race));
    gone += old;
    at = old ? data_->races.erase(at) : std::next(at);
  }
  // A batch that still has a race keeps its evidence, however old it is.
  std::erase_if(data_->batches, [&](const auto& each) {
    const bool needed =
        std::ranges::any_of(data_->races, [&](const auto& race) { return race.second.batch == each.first; });
    return each.second.received_us < before_us && !needed;
  });
  std::erase_if(data_->batch_of, [&](const auto& each) { return !data_->batches.contains(each.second); });
  if (gone > 0) ++data_->change;
  return gone;
}

Status MemoryStore::scan(SubjectNumber subject, Window window,
                         const std::function<bool(const RaceRow&)>& visit) {
  const std::scoped_lock lock(data_->mutex);
  if (subject == 0 || subject > data_->subjects.size()) return {};
  const Subject& wanted = data_->subjects[subject - 1].subject;
  std::vector<const Kept*> rows;
  for (const auto& [id, kept] : data_->races)
    if (kept.race.subject == wanted && kept.race.ts_us >= window.from_us && kept.race.ts_us < window.to_us)
      rows.push_back(&kept);
  std::ranges::sort(rows, {}, [&](const Kept* kept) {
    return std::tuple(data_->machine_numbers.number(kept->machine), kept->race.ts_us, kept->race.id);
  });
  for (const Kept* kept : rows) {
    const DecodedRace& race = kept->race;
    std::vector<PackedGain> gains;
    for (const VariantGain& each : race.variants)
      gains.push_back({.variant = data_->words.number(each.name),
                       .gain_pct = each.gain_pct,
                       .half_pct = each.half_pct,
                       .rate = each.rate,
                       .power_w = each.power_w,
                       .exit = each.exit,
                       .fallback = each.fallback});
    RaceRow row{.machine = data_->machine_numbers.number(kept->machine), .ts_us = race.ts_us, .id = race.id};
    row.slot = data_->words.number(race.slot);
    row.label = data_->words.number(race.label);
    row.driver = data_->words.number(race.driver);
    row.source = data_->words.number(race.source);
    row.winner = data_->words.number(race.winner);
    row.has_epoch = !race.epoch.empty();
    row.epoch = row.has_epoch ? std::stoull(race.epoch, nullptr, 16) : 0;
    row.verdict = race.verdict;
    row.pinned = race.pinned;
    row.rate = race.rate;
    row.base_rate = race.base_rate;
    row.gain_pct = race.gain_pct;
    row.ceiling = race.ceiling;
    row.power_limit_w = race.power_limit_w;
    row.power_pct = race.power_pct;
    row.gains = gains;
    if (!visit(row)) break;
  }
  return {};
}

RaceSummary MemoryStore::summary(const Kept& kept) const {
  const DecodedRace& race = kept.race;
  RaceSummary summary{.id = record_id_text(race.id),
                      .machine = kept.machine,
                      .slot = race.slot,
                      .label = race.label,
                      .driver = race.driver,
                      .epoch = race.epoch,
                      .source = race.source,
                      .winner = race.winner,
                      .subject = race.subject};
  summary.ts_us = race.ts_us;
  summary.received_us = data_->batches.at(kept.batch).received_us;
  summary.verdict = race.verdict;
  summary.pinned = race.pinned;
  summary.rate = race.rate;
  summary.base_rate = race.base_rate;
  summary.gain_pct = race.gain_pct;
  return summary;
}

bool MemoryStore::fits(const RaceFilter& filter, const Kept& kept) {
  const DecodedRace& race = kept.race;
  const auto is = [](const std::string& wanted, const std::string& text) {
    return wanted.empty() || wanted == text;
  };
  return is(filter.machine, kept.machine) && is(filter.label, race.label) &&
         is(filter.silicon, race.subject.silicon) && is(filter.program, race.subject.program) &&
         is(filter.driver, race.driver) && is(filter.backend, race.subject.backend) &&
         is(filter.variant, race.winner) && race.ts_us >= filter.window.from_us &&
         race.ts_us < filter.window.to_us;
}

Result<RacePage> MemoryStore::page(const RaceFilter& filter) {
  std::optional<RecordId> before;
  if (!filter.before.empty()) {
    FURLONG_TRY(before, parse_record_id(filter.before));
  }
  const std::scoped_lock lock(data_->mutex);
  RacePage page;
  const std::size_t limit = std::min<std::size_t>(filter.limit, 1000);
  if (limit == 0 || filter.window.from_us > newest().value_or(INT64_MIN)) return page;
  std::size_t walked = 0;
  auto at = std::make_reverse_iterator(before ? data_->races.lower_bound(*before) : data_->races.end());
  for (; at != data_->races.rend(); ++at) {
    if (walked++ == filter.walk) {
      page.next = record_id_text(std::prev(at)->first);
      break;
    }
    if (!fits(filter, at->second)) continue;
    if (page.races.size() == limit) {
      page.next = page.races.back().id;
      break;
    }
    page.races.push_back(summary(at->second));
  }
  return page;
}

Result<std::optional<Store::RaceText>> MemoryStore::race(std::string_view id) {
  FURLONG_TRY(const RecordId wanted, parse_record_id(id));
  const std::scoped_lock lock(data_->mutex);
  const auto at = data_->races.find(wanted);
  if (at == data_->races.end()) return std::nullopt;
  RaceText text{.line = {}, .batch = data_->batches.at(at->second.batch)};
  // The first line of the body is the batch's header.
  text.line = split(text.batch.body, '\n').at(at->second.line + 1);
  return text;
}

Result<StoreTotals> MemoryStore::totals() {
  const std::scoped_lock lock(data_->mutex);
  StoreTotals totals;
  totals.races = data_->races.size();
  totals.batches = data_->batches.size();
  totals.machines = data_->machines.size();
  totals.subjects = data_->subjects.size();
  totals.newest_ts_us = newest().value_or(0);
  totals.change = data_->change;
  totals.version = "memory";
  return totals;
}

}  // namespace

std::shared_ptr<MemoryData> make_memory_data() { return std::make_shared<MemoryData>(); }

std::unique_ptr<Store> open_memory_store(std::shared_ptr<MemoryData> data) {
  return std::make_unique<MemoryStore>(std::move(data));
}

}  // namespace furlong::fleet
