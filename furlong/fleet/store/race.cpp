#include "furlong/fleet/store/race.h"

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cstring>

#include "furlong/base/bytes.h"
#include "furlong/base/json.h"
#include "furlong/base/text.h"

namespace furlong::fleet {
namespace {

constexpr std::size_t longest_name = 200;
constexpr std::size_t longest_class = 2000;
constexpr std::size_t most_variants = 4096;

struct ExitWord {
  Exit exit;
  std::string_view word;
};
constexpr ExitWord exit_words[] = {{Exit::stayed, ""},
                                   {Exit::compile, "compile"},
                                   {Exit::trial, "trial"},
                                   {Exit::gate, "gate"},
                                   {Exit::launch, "launch"},
                                   {Exit::quarantined, "quarantined"},
                                   {Exit::eliminated, "eliminated"},
                                   {Exit::duplicate, "duplicate"},
                                   {Exit::budget, "budget"},
                                   {Exit::other, "other"}};

float number_of(const std::optional<double>& value) { return value ? static_cast<float>(*value) : absent; }

/// Equal, and absent numbers equal each other.
bool same(float a, float b) { return a == b || (std::isnan(a) && std::isnan(b)); }

Status check_name(std::string_view key, std::string_view name, std::size_t longest = longest_name) {
  if (name.size() > longest)
    return fail(Code::invalid, "{}: {} bytes are too long, {} are the most", key, name.size(), longest);
  if (one_line(name) != name)
    return fail(Code::invalid, "{}: '{}' has control characters", key, one_line(name));
  return {};
}

/// A card without a name can be neither published nor asked for.
Status check_label(std::string_view label) {
  const bool shows = std::ranges::any_of(
      label, [](char each) { return std::isgraph(static_cast<unsigned char>(each)) != 0; });
  return shows ? Status() : fail(Code::invalid, "card: '{}' is no name", label);
}

Status check_names(const DecodedRace& race) {
  const std::pair<std::string_view, const std::string*> names[] = {{"slot", &race.slot},
                                                                   {"silicon", &race.subject.silicon},
                                                                   {"backend", &race.subject.backend},
                                                                   {"program", &race.subject.program},
                                                                   {"metric", &race.subject.metric},
                                                                   {"unit", &race.subject.unit},
                                                                   {"card", &race.label},
                                                                   {"driver", &race.driver},
                                                                   {"agent", &race.agent},
                                                                   {"source", &race.source},
                                                                   {"winner", &race.winner}};
  for (const auto& [key, name] : names) FURLONG_CHECK(check_name(key, *name));
  FURLONG_CHECK(check_label(race.label));
  for (const VariantGain& variant : race.variants) FURLONG_CHECK(check_name("variants", variant.name));
  return check_name("class", race.subject.program_class, longest_class);
}

std::string class_key(const record::ProgramClass& program_class) {
  record::ProgramClass sorted = program_class;
  std::ranges::sort(sorted, {}, [](const auto& feature) { return feature.first; });
  return json_line(record::class_to_json(sorted));
}

VariantGain decode_variant(const record::RacedVariant& variant, const std::optional<double>& base_rate) {
  const record::VariantDetail& detail = variant.detail;
  VariantGain gain{.name = variant.name};
  gain.rate = number_of(variant.rate);
  gain.power_w = number_of(detail.power_w);
  gain.exit = exit_of(detail.exit);
  gain.fallback = detail.fallback;
  if (detail.ci) gain.half_pct = static_cast<float>((detail.ci->hi - detail.ci->lo) / 2);
  if (variant.name == "base") {
    gain.gain_pct = variant.rate ? 0.0F : absent;
  } else if (detail.gain_pct) {
    gain.gain_pct = static_cast<float>(*detail.gain_pct);
  } else if (variant.rate && base_rate && *base_rate > 0) {
    // Records of plain logs have rates alone; both are of this race.
    gain.gain_pct = static_cast<float>(100 * (*variant.rate / *base_rate - 1));
  }
  return gain;
}

void add_varint(std::uint32_t value, std::string& bytes) {
  for (; value >= 0x80; value >>= 7) bytes.push_back(static_cast<char>(value | 0x80));
  bytes.push_back(static_cast<char>(value));
}

void add_float(float value, std::string& bytes) {
  char four[4];
  store_le(four, value);
  bytes.append(four, sizeof four);
}

constexpr std::uint8_t exit_mask = 0x0f, fallback_bit = 0x10;
enum : std::uint8_t { has_gain = 1, has_half = 2, has_rate = 4, has_power = 8 };

}  // namespace

std::string_view exit_name(Exit exit) {
  for (const ExitWord& each : exit_words)
    if (each.exit == exit) return each.word;
  return "other";
}

Exit exit_of(std::string_view text) {
  for (const ExitWord& each : exit_words)
    if (each.word == text) return each.exit;
  return Exit::other;
}

Result<RecordId> parse_record_id(std::string_view text) {
  if (!record::is_record_id(text))
    return fail(Code::invalid, "'{}' is no record's id (a UUIDv7)", one_line(text.substr(0, 60)));
  std::string digits(text);
  std::erase(digits, '-');
  FURLONG_TRY(const Bytes bytes, from_hex(digits));
  RecordId id{};
  if (bytes.size() != id.size()) return fail(Code::internal, "an id of {} bytes", bytes.size());
  std::ranges::copy(bytes, id.begin());
  return id;
}

std::int32_t utc_day(std::int64_t ts_us) {
  const std::chrono::sys_time<std::chrono::microseconds> at{std::chrono::microseconds(ts_us)};
  return std::chrono::floor<std::chrono::days>(at).time_since_epoch().count();
}

std::string record_id_text(const RecordId& id) {
  std::string text = to_hex(id);
  for (const std::size_t at : {8u, 13u, 18u, 23u}) text.insert(at, 1, '-');
  return text;
}

bool VariantGain::operator==(const VariantGain& other) const {
  return name == other.name && same(gain_pct, other.gain_pct) && same(half_pct, other.half_pct) &&
         same(rate, other.rate) && same(power_w, other.power_w) && exit == other.exit &&
         fallback == other.fallback;
}

bool DecodedRace::operator==(const DecodedRace& other) const {
  return id == other.id && ts_us == other.ts_us && slot == other.slot && subject == other.subject &&
         silicon == other.silicon && label == other.label && driver == other.driver && agent == other.agent &&
         epoch == other.epoch && source == other.source && winner == other.winner &&
         verdict == other.verdict && same(rate, other.rate) && same(base_rate, other.base_rate) &&
         same(gain_pct, other.gain_pct) && same(ceiling, other.ceiling) &&
         same(power_limit_w, other.power_limit_w) && same(power_pct, other.power_pct) &&
         pinned == other.pinned && variants == other.variants;
}

Result<DecodedRace> decode(const record::RaceRecord& record) {
  FURLONG_CHECK(record::check_complete(record));
  if (record.variants.size() > most_variants)
    return fail(Code::invalid, "variants: {} of them, {} are the most", record.variants.size(),
                most_variants);
  DecodedRace race;
  FURLONG_TRY(race.id, parse_record_id(record.id));
  FURLONG_TRY(race.ts_us, record::parse_stamp(record.ts));
  race.slot = record.slot;
  race.silicon = record.silicon;
  race.silicon.extra.clear();
  race.subject = {.silicon = record.silicon.hash.empty() ? "label:" + record.card : record.silicon.hash,
                  .backend = record.backend,
                  .program = record.program,
                  .program_class = class_key(record.program_class),
                  .metric = record.metric,
                  .unit = record.unit};
  race.label = record.card;
  race.driver = record.driver;
  race.agent = record.agent;
  race.epoch = record.epoch;
  race.source = record.source;
  race.winner = record.winner;
  race.verdict = record.verdict;
  race.rate = number_of(record.rate);
  race.base_rate = number_of(record.base_rate);
  race.gain_pct = number_of(record.gain_pct);
  race.ceiling = number_of(record.ceiling);
  race.power_limit_w = number_of(record.power_limit_w);
  race.power_pct = number_of(record.power_pct);
  race.pinned = record.pinned;
  race.variants.reserve(record.variants.size());
  std::optional<double> base_rate = record.base_rate;
  if (const record::RacedVariant* base = record.find("base"); !base_rate && base != nullptr)
    base_rate = base->rate;
  for (const record::RacedVariant& variant : record.variants)
    race.variants.push_back(decode_variant(variant, base_rate));
  FURLONG_CHECK(check_names(race));
  return race;
}

void pack(const PackedGain& gain, std::string& bytes) {
  add_varint(gain.variant, bytes);
  bytes.push_back(
      static_cast<char>(static_cast<std::uint8_t>(gain.exit) | (gain.fallback ? fallback_bit : 0)));
  const std::pair<std::uint8_t, float> numbers[] = {
      {has_gain, gain.gain_pct}, {has_half, gain.half_pct}, {has_rate, gain.rate}, {has_power, gain.power_w}};
  std::uint8_t there = 0;
  for (const auto& [bit, value] : numbers)
    if (!std::isnan(value)) there |= bit;
  bytes.push_back(static_cast<char>(there));
  for (const auto& [bit, value] : numbers)
    if ((there & bit) != 0) add_float(value, bytes);
}

Status unpack(std::string_view bytes, std::vector<PackedGain>& gains) {
  gains.clear();
  const auto torn = [&](std::size_t at) {
    return fail(Code::corrupt, "packed variants: byte {} of {} is wrong", at, bytes.size());
  };
  std::size_t at = 0;
  while (at < bytes.size()) {
    PackedGain gain;
    std::uint64_t number = 0;
    for (int shift = 0;; shift += 7) {
      if (at == bytes.size() || shift > 28) return torn(at);
      const auto byte = static_cast<std::uint8_t>(bytes[at++]);
      number |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) break;
    }
    if (number > UINT32_MAX || bytes.size() - at < 2) return torn(at);
    gain.variant = static_cast<std::uint32_t>(number);
    const auto flags = static_cast<std::uint8_t>(bytes[at++]);
    if ((flags & exit_mask) > static_cast<std::uint8_t>(Exit::other) ||
        (flags & ~(exit_mask | fallback_bit)) != 0)
      return torn(at - 1);
    gain.exit = static_cast<Exit>(flags & exit_mask);
    gain.fallback = (flags & fallback_bit) != 0;
    const auto there = static_cast<std::uint8_t>(bytes[at++]);
    if (there > 15) return torn(at - 1);
    for (const auto& [bit, to] : {std::pair<std::uint8_t, float*>{has_gain, &gain.gain_pct},
                                  {has_half, &gain.half_pct},
                                  {has_rate, &gain.rate},
                                  {has_power, &gain.power_w}}) {
      if ((there & bit) == 0) continue;
      if (bytes.size() - at < 4) return torn(at);
      *to = load_le<float>(bytes.data() + at);
      at += 4;
    }
    gains.push_back(gain);
  }
  return {};
}

}  // namespace furlong::fleet
