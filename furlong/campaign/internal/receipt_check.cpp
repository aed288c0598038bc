// Judges the body of a receipt. What it reads of items and body it reads anew; only the program of a pack and
// the gate are those that the races use.

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "furlong/base/json.h"
#include "furlong/base/json_object.h"
#include "furlong/base/random.h"
#include "furlong/base/text.h"
#include "furlong/campaign/internal/receipt_body.h"

namespace furlong::campaign {
namespace {

const std::string kWhere = "the receipt";
constexpr std::string_view kBase = "base";

/// What a unit's own item promises.
struct Promise {
  bool race = false;
  std::string program, source, device;
  Json problem;
};

Result<Promise> promise_of(const shard::Unit& unit, shard::ItemSource& items) {
  Promise promise;
  for (const shard::Key& key : unit.items) {
    FURLONG_TRY(const ByteView bytes, items.item(key));
    const std::string_view text = as_text(bytes);
    FURLONG_TRY(const Json json, json_parse(text.substr(0, text.find('\n')), "an item of the store"));
    if (!json.is_object() || !json.contains("race")) continue;
    if (promise.race) return fail(Code::mismatch, "it has two races");
    promise.race = true;
    JsonObject object(json, "an item of the store");
    object.text("race", promise.program);
    object.text("source", promise.source);
    object.text("device", promise.device);
    object.require({"source", "device", "problem"});
    const Json* problem = object.object("problem");
    FURLONG_CHECK(object.status());
    promise.problem = *problem;
  }
  return promise;
}

struct Told {
  std::string key, name, device, reference, sentence;
  double seconds = 0;
  std::uint64_t device_bytes = 0;
  Json problem;
  std::optional<record::RaceRecord> record;
};

Result<Told> read_line(const std::string& line, std::size_t number) {
  const std::string where = fmt::format("{}: line {}", kWhere, number);
  FURLONG_TRY(const Json json, json_parse(line, where));
  JsonObject object(json, where);
  Told told;
  object.text("unit", told.key);
  object.text("name", told.name);
  object.text("device", told.device);
  object.text("reference", told.reference);
  object.text("sentence", told.sentence);
  object.number("seconds", told.seconds, 0);
  object.integer("device_bytes", told.device_bytes);
  object.require({"unit", "name"});
  const Json* problem = object.object("problem");
  const Json* record = object.object("record");
  FURLONG_CHECK(object.strict());
  if (record == nullptr) return told;
  object.require({"device", "problem", "seconds"});
  FURLONG_CHECK(object.status());
  told.problem = *problem;
  FURLONG_TRY(told.record, record::from_json(*record, where + ": record"));
  return told;
}

/// Whether the decision follows from the record's own figures.
Status judge_decision(const record::RaceRecord& record) {
  if (record.variants.empty() || record.variants[0].name != kBase)
    return fail(Code::mismatch, "its record does not begin with base");
  std::set<std::string> names;
  for (const record::RacedVariant& variant : record.variants)
    if (!names.insert(variant.name).second)
      return fail(Code::mismatch, "its record has '{}' twice", one_line(variant.name));
  const record::RacedVariant* winner = record.find(record.winner);
  if (winner == nullptr)
    return fail(Code::mismatch, "its winner '{}' was not in the race", one_line(record.winner));
  if (!winner->rate || !winner->detail.out.empty())
    return fail(Code::mismatch, "its winner '{}' was out of the race", winner->name);
  if (record.rate != winner->rate || record.base_rate != record.variants[0].rate)
    return fail(Code::mismatch, "its rates are not those of its variants");
  const bool base_stays = record.winner == kBase;
  const bool ahead = !base_stays && record.gain_pct && *record.gain_pct > 0;
  switch (record.verdict) {
    case record::Verdict::winner:
      if (ahead) return {};
      break;
    case record::Verdict::dead_heat:
    case record::Verdict::none:
      if (base_stays) return {};
      break;
    case record::Verdict::out_of_budget:
      if (base_stays || ahead) return {};
      break;
    case record::Verdict::pinned:
    case record::Verdict::classic:
      return fail(Code::mismatch, "no race of a campaign ends as '{}'", record::verdict_name(record.verdict));
  }
  return fail(Code::mismatch, "its verdict '{}' does not go with '{}' at {:+.3f}%",
              record::verdict_name(record.verdict), record.winner, record.gain_pct.value_or(0));
}

Status judge_race(const Told& told, const Promise& promise) {
  const record::RaceRecord& record = *told.record;
  if (record.source != promise.source || record.program != promise.program)
    return fail(Code::mismatch, "its record is of the program '{}' {}, not '{}' {}", one_line(record.program),
                one_line(record.source.substr(0, 16)), promise.program, promise.source.substr(0, 16));
  if (told.problem != promise.problem)
    return fail(Code::mismatch, "its record is of the problem {}, not {}", json_line(told.problem),
                json_line(promise.problem));
  if (told.device != promise.device)
    return fail(Code::mismatch, "its record is of the device {}, not {}", one_line(told.device),
                promise.device);
  const std::string_view silicon = silicon_of(promise.device);
  const std::string_view backend = std::string_view(promise.device).substr(0, promise.device.find(':'));
  if (silicon.empty() ? record.backend != backend : record.silicon.hash != silicon)
    return fail(Code::mismatch, "its record is of {} ({}, silicon:{}), not of {}", one_line(record.card),
                one_line(record.backend), one_line(record.silicon.hash), promise.device);
  return judge_decision(record);
}

/// Whether the program has such variants, in some language: which one, only a device tells.
Status judge_names(const program::Program& program, const record::RaceRecord& record) {
  for (const record::RacedVariant& variant : record.variants) {
    const bool known = std::ranges::any_of(program.editions, [&](const program::Edition& edition) {
      return lattice::parse_variant(edition.lattice, variant.name).has_value();
    });
    if (!known)
      return fail(Code::mismatch, "'{}' is no variant of the program '{}'", one_line(variant.name),
                  program.name);
  }
  return {};
}

class Judge {
 public:
  Judge(shard::ItemSource& items, const shard::VerifyOptions& options, const MakeDevices& devices)
      : items_(items),
        options_(options),
        random_(options.seed, "receipts of a campaign"),
        stage_(devices(), 0, options.stop) {}

  Status judge(const Told& told, const shard::Unit& unit) {
    // Drawn for every unit, so that the sample does not depend on what is found.
    const bool gated = random_.uniform() < options_.sample;
    const std::uint64_t seed = random_.next();
    FURLONG_TRY(const Promise promise, promise_of(unit, items_));
    if (promise.race != told.record.has_value())
      return fail(Code::mismatch, "the receipt has a race of it: {}; its unit is one: {}",
                  told.record.has_value(), promise.race);
    if (!promise.race) return {};
    FURLONG_CHECK(judge_race(told, promise));
    FURLONG_TRY(const auto program, program_of(unit));
    if (program->source_hash().hex() != promise.source)
      return fail(Code::mismatch, "its program is not the one of its item");
    FURLONG_CHECK(judge_names(*program, *told.record));
    return gated ? gate_again(*told.record, unit, seed) : Status();
  }

 private:
  Result<std::shared_ptr<const program::Program>> program_of(const shard::Unit& unit) {
    for (const shard::Key& key : unit.references) {
      if (const auto known = programs_.find(key); known != programs_.end()) return known->second;
      FURLONG_TRY(const ByteView bytes, items_.item(key));
      FURLONG_TRY(const Item item, decode(bytes));
      const auto* pack = std::get_if<PackItem>(&item);
      if (pack == nullptr) continue;
      FURLONG_TRY(programs_[key], stage_.program(*pack));
      return programs_[key];
    }
    return fail(Code::mismatch, "it refers to no program");
  }

  Status gate_again(const record::RaceRecord& record, const shard::Unit& unit, std::uint64_t seed) {
    auto ready = stage_.prepare(unit, items_);
    // Another machine raced it: the record is all that can be looked at here.
    if (!ready && ready.error().code() == Code::unavailable) return {};
    if (!ready) return ready.error();
    if (!*ready) return fail(Code::mismatch, "it is no race");
    Ready& race = **ready;
    if (race.context.device->facts().silicon.hash() != record.silicon.hash) return {};
    const auto& lattice = race.instance->lattice();
    std::vector<std::string> raced, asked;
    for (const record::RacedVariant& variant : record.variants) raced.push_back(variant.name);
    for (const lattice::Point& point : race.points) asked.push_back(lattice::variant_name(lattice, point));
    if (raced != asked)
      return fail(Code::mismatch, "its record is of the variants {}, not {}", one_line(join(raced, ",")),
                  join(asked, ","));
    std::vector<lattice::Point> points{race.points[0]};
    if (record.winner != kBase)
      points.push_back(
          race.points[static_cast<std::size_t>(std::ranges::find(asked, record.winner) - asked.begin())]);
    race.options.seed = seed;
    const auto outcome = race::check(*race.instance, points, points.size(), race.options, race.context);
    if (!outcome) return outcome.error();
    const race::VariantOutcome& winner = outcome->variants.back();
    if (winner.exit == race::Exit::none || winner.exit == race::Exit::duplicate) return {};
    return fail(Code::mismatch, "its winner '{}' does not pass its gate any more: {}", winner.name,
                winner.why);
  }

  shard::ItemSource& items_;
  const shard::VerifyOptions& options_;
  Random random_;
  Stage stage_;
  std::map<shard::Key, std::shared_ptr<const program::Program>> programs_;  // by item
};

// JSON that is wrong makes a receipt that does not hold, not an input to be mended.
Error rejected(const Error& error) {
  if (error.code() != Code::invalid && error.code() != Code::incompatible) return error;
  return fail(Code::mismatch, "{}", error.text());
}

Status check_head(const std::string& line, std::size_t& units) {
  const std::string where = kWhere + ": line 1";
  FURLONG_TRY(const Json json, json_parse(line, where));
  JsonObject object(json, where);
  int format = 0;
  std::uint64_t count = 0;
  object.integer("format", format);
  object.integer("units", count);
  object.require({"format", "units"});
  FURLONG_CHECK(object.status());
  if (format != kReceiptFormat)
    return fail(Code::incompatible, "the receipt is of format {}, this program reads {}: run the shard anew",
                format, kReceiptFormat);
  units = count;
  return object.strict();
}

}  // namespace

Status check_receipt_body(ByteView body, std::span<const shard::Unit> units, shard::ItemSource& items,
                          const shard::VerifyOptions& options, const MakeDevices& devices) {
  std::vector<std::string> lines = split(as_text(body), '\n');
  if (lines.size() < 2 || !lines.back().empty())
    return fail(Code::mismatch, "the receipt is torn: its last line has no end");
  lines.pop_back();
  std::size_t count = 0;
  if (const Status head = check_head(lines[0], count); !head)
    return head.error().code() == Code::incompatible ? head : Status(rejected(head.error()));
  if (count != lines.size() - 1)
    return fail(Code::mismatch, "the receipt says {} units and has {}", count, lines.size() - 1);

  std::map<std::string, const shard::Unit*> wanted;
  for (const shard::Unit& unit : units) wanted.emplace(unit.key.hex(), &unit);
  std::vector<std::pair<Told, const shard::Unit*>> told;
  for (std::size_t i = 1; i < lines.size(); ++i) {
    auto line = read_line(lines[i], i + 1);
    if (!line) return rejected(line.error());
    const auto unit = wanted.find(line->key);
    if (unit == wanted.end())
      return fail(Code::mismatch, "the receipt tells of '{}' twice, or it is not the claim's",
                  one_line(line->name));
    told.emplace_back(*std::move(line), unit->second);
    wanted.erase(unit);
  }
  if (!wanted.empty())
    return fail(Code::mismatch, "the receipt does not tell of '{}'", one_line(wanted.begin()->second->name));

  Judge judge(items, options, devices);
  for (const auto& [line, unit] : told) {
    if (options.stop.stop_requested()) return fail(Code::timeout, "stopped");
    if (const Status status = judge.judge(line, *unit); !status)
      return rejected(status.error()).with(fmt::format("unit '{}'", one_line(unit->name)));
  }
  return {};
}

}  // namespace furlong::campaign
