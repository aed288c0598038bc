#include "furlong/fleet/store/conformance/conformance.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "furlong/fleet/store/conformance/internal/rig.h"

namespace furlong::fleet {
namespace {

std::string subject_text(const Subject& subject) {
  return fmt::format("{}|{}|{}|{}|{}|{}", subject.silicon, subject.backend, subject.program,
                     subject.program_class, subject.metric, subject.unit);
}

std::string number_text(float value) { return std::isnan(value) ? "-" : fmt::format("{}", value); }

/// Reads everything; what one call says must fit what the others say.
class Reader {
 public:
  explicit Reader(Store& store) : store_(store) {}

  Result<std::vector<std::string>> read() {
    FURLONG_TRY(words_, store_.words());
    FURLONG_TRY(machines_, store_.machine_names());
    FURLONG_TRY(const std::vector<SubjectRow> subjects, store_.subjects());
    for (const SubjectRow& subject : subjects) FURLONG_CHECK(read_subject(subject));
    FURLONG_CHECK(read_pages());
    FURLONG_CHECK(read_machines());
    FURLONG_CHECK(read_batches());
    FURLONG_TRY(const StoreTotals totals, store_.totals());
    if (totals.races != races_ || totals.races != summaries_ || totals.batches != batches_)
      return fail(Code::corrupt,
                  "{} races and {} batches by totals(), {} by scan(), {} by races(), {} by batches()",
                  totals.races, totals.batches, races_, summaries_, batches_);
    FURLONG_TRY(const std::optional<std::int64_t> newest, store_.newest_ts());
    if (newest != newest_ || totals.newest_ts_us != newest_.value_or(0))
      return fail(Code::corrupt, "newest_ts() is not of the newest race");
    lines_.push_back(fmt::format("races {} newest {}", races_, newest_.value_or(0)));
    std::ranges::sort(lines_);
    return std::move(lines_);
  }

 private:
  Result<std::string> name(const std::vector<std::string>& names, std::uint32_t number) const {
    if (number >= names.size()) return fail(Code::corrupt, "the number {} has no name", number);
    return names[number];
  }

  Status read_subject(const SubjectRow& subject) {
    std::optional<RaceRow> before;
    Status status;
    FURLONG_CHECK(store_.scan(subject.number, {INT64_MIN, INT64_MAX}, [&](const RaceRow& row) {
      ++races_;
      newest_ = std::max(newest_.value_or(row.ts_us), row.ts_us);
      if (before &&
          std::tie(before->machine, before->ts_us, before->id) >= std::tie(row.machine, row.ts_us, row.id))
        status = fail(Code::corrupt, "scan() is not in order at {}", record_id_text(row.id));
      before = row;
      auto line = row_text(subject, row);
      if (line) lines_.push_back(*std::move(line));
      if (!line && status) status = Error(line.error());
      return true;
    }));
    return status;
  }

  Result<std::string> row_text(const SubjectRow& subject, const RaceRow& row) const {
    std::string text =
        fmt::format("scan {} {} {} ({} {} {} {})", record_id_text(row.id), row.ts_us,
                    subject_text(subject.subject), subject.silicon.vendor, subject.silicon.arch,
                    subject.silicon.multiprocessors, subject.silicon.memory_bytes);
    FURLONG_TRY(const std::string machine, name(machines_, row.machine));
    text += " " + machine;
    for (const WordNumber word : {row.slot, row.label, row.driver, row.source, row.winner}) {
      FURLONG_TRY(const std::string word_text, name(words_, word));
      text += fmt::format(" '{}'", word_text);
    }
    text +=
        fmt::format(" {}{:x} {} {}", row.has_epoch, row.epoch, record::verdict_name(row.verdict), row.pinned);
    for (const float value :
         {row.rate, row.base_rate, row.gain_pct, row.ceiling, row.power_limit_w, row.power_pct})
      text += " " + number_text(value);
    for (const PackedGain& gain : row.gains) {
      FURLONG_TRY(const std::string variant, name(words_, gain.variant));
      text += fmt::format(" [{} {} {} {} {} {} {}]", variant, number_text(gain.gain_pct),
                          number_text(gain.half_pct), number_text(gain.rate), number_text(gain.power_w),
                          exit_name(gain.exit), gain.fallback);
    }
    return text;
  }

  Status read_pages() {
    RaceFilter filter;
    filter.window = {INT64_MIN, INT64_MAX};
    filter.limit = 7;
    std::string last;
    for (;;) {
      FURLONG_TRY(const std::vector<RaceSummary> page, store_.races(filter));
      for (const RaceSummary& race : page) {
        ++summaries_;
        if (!last.empty() && race.id >= last)
          return fail(Code::corrupt, "races() gives {} after {}", race.id, last);
        last = race.id;
        FURLONG_TRY(const std::optional<Store::RaceText> text, store_.race(race.id));
        if (!text) return fail(Code::corrupt, "race() does not know {}", race.id);
        lines_.push_back(fmt::format(
            "page {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} of {}: {}", race.id, race.ts_us,
            race.received_us, race.machine, race.slot, race.label, race.driver, race.epoch, race.source,
            race.winner, subject_text(race.subject), record::verdict_name(race.verdict), race.pinned,
            number_text(race.rate), number_text(race.base_rate), number_text(race.gain_pct),
            text->batch.received_us, text->batch.id, text->line));
      }
      if (page.empty()) return {};
      filter.before = page.back().id;
    }
  }

  Status read_machines() {
    FURLONG_TRY(const std::vector<Machine> machines, store_.machines());
    for (const Machine& one : machines)
      lines_.push_back(fmt::format("machine {} {} {} '{}' {} {} {} '{}' '{}' {} '{}' '{}' {} {} {} '{}'",
                                   one.id, one.key ? one.key->hex() : "none", machine_state_name(one.state),
                                   one.label, one.canary, one.enrolled_us, one.seen_us, one.agent,
                                   one.manifest, one.says_canary, one.header, one.replaces, one.accepted,
                                   one.duplicate, one.refused, one.last_refusal));
    FURLONG_TRY(const std::vector<Token> tokens, store_.tokens());
    for (const Token& one : tokens)
      lines_.push_back(fmt::format("token {} '{}' {} '{}' {} {} '{}'", one.digest.hex(), one.label,
                                   one.canary, one.replaces, one.issued_us, one.expires_us, one.machine));
    return {};
  }

  Status read_batches() {
    std::uint64_t before = 0;
    return store_.batches(0, [&](const StoredBatch& batch) -> Result<bool> {
      if (batch.number <= before)
        return fail(Code::corrupt, "batches() gives {} after {}", batch.number, before);
      before = batch.number;
      ++batches_;
      lines_.push_back(fmt::format("batch {} {} {} {} {} {}", batch.id, batch.machine, batch.signature,
                                   batch.received_us, blake2b_256(batch.body).brief(),
                                   fmt::join(batch.refused, ",")));
      return true;
    });
  }

  Store& store_;
  std::vector<std::string> words_, machines_, lines_;
  std::uint64_t races_ = 0, summaries_ = 0, batches_ = 0;
  std::optional<std::int64_t> newest_;
};

}  // namespace

std::vector<StoreCase> store_conformance_cases() {
  std::vector<StoreCase> all;
  for (auto& part : {conformance::machine_cases(), conformance::intake_cases(), conformance::reading_cases(),
                     conformance::copy_cases(), conformance::opening_cases(), conformance::random_cases()})
    all.insert(all.end(), part.begin(), part.end());
  return all;
}

Result<std::vector<std::string>> store_content(Store& store) { return Reader(store).read(); }

std::string content_difference(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  std::vector<std::string> only_a, only_b;
  std::ranges::set_difference(a, b, std::back_inserter(only_a));
  std::ranges::set_difference(b, a, std::back_inserter(only_b));
  std::string text;
  for (std::size_t i = 0; i < std::min<std::size_t>(only_a.size(), 3); ++i) text += "- " + only_a[i] + "\n";
  for (std::size_t i = 0; i < std::min<std::size_t>(only_b.size(), 3); ++i) text += "+ " + only_b[i] + "\n";
  return text;
}

}  // namespace furlong::fleet
