#include "furlong/fleet/hub/kinds.h"

#include "furlong/base/hash.h"

namespace furlong::fleet {
namespace {

constexpr double minutes_a_day = 1440;

Buckets::Options allowance(double most, const KindsOptions& options) {
  return {.per_minute = most / (options.days * minutes_a_day),
          .burst = most,
          .most_names = options.most_machines};
}

/// A digest, since the texts may be long.
std::string key_of(const Subject& subject) {
  Hasher hasher;
  for (const std::string* field : {&subject.silicon, &subject.backend, &subject.program,
                                   &subject.program_class, &subject.metric, &subject.unit})
    hasher.add_field(*field);
  const Digest digest = hasher.finish();
  return {digest.bytes.begin(), digest.bytes.end()};
}

}  // namespace

Kinds::Kinds(KindsOptions options)
    : options_(options),
      new_programs_(allowance(options.programs, options)),
      new_names_(allowance(options.names, options)) {}

Status Kinds::check(IncomingBatch& batch, Store& store, std::int64_t now_ns) {
  const std::scoped_lock lock(mutex_);
  if (!read_) FURLONG_CHECK(read(store));
  for (IncomingBatch::Line& line : batch.lines) {
    if (!line.race) continue;
    if (const Status taken = check_race(*line.race, batch.machine, now_ns); !taken)
      line.race = Error(taken.error());
  }
  return {};
}

Status Kinds::read(Store& store) {
  FURLONG_TRY(const std::vector<SubjectRow> subjects, store.subjects());
  FURLONG_TRY(std::vector<std::string> words, store.words());
  for (const SubjectRow& row : subjects) programs_.insert(key_of(row.subject));
  for (std::string& word : words) names_.insert(std::move(word));
  read_ = true;
  return {};
}

Status Kinds::check_race(const DecodedRace& race, std::string_view machine, std::int64_t now_ns) {
  if (std::string key = key_of(race.subject); !programs_.contains(key)) {
    if (new_programs_.take(machine, now_ns) > 0)
      return fail(
          Code::exhausted,
          "too many programs: a machine may bring {:g} that the fleet does not know yet (of a card, a "
          "program and its class each), and as many again in {:g} days",
          options_.programs, options_.days);
    programs_.insert(std::move(key));
  }
  for (const std::string* name : {&race.slot, &race.label, &race.driver, &race.source, &race.winner})
    FURLONG_CHECK(check_name(*name, machine, now_ns));
  for (const VariantGain& variant : race.variants) FURLONG_CHECK(check_name(variant.name, machine, now_ns));
  return {};
}

Status Kinds::check_name(std::string_view name, std::string_view machine, std::int64_t now_ns) {
  if (name.empty() || names_.contains(name)) return {};
  if (new_names_.take(machine, now_ns) > 0)
    return fail(Code::exhausted,
                "too many names: a machine may bring {:g} that the fleet does not know yet (slots, cards, "
                "drivers, sources, variants), and as many again in {:g} days",
                options_.names, options_.days);
  names_.emplace(name);
  return {};
}

}  // namespace furlong::fleet
