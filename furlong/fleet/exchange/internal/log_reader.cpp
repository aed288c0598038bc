// Logs of agents and workers, however their lines are begun: "TUNING {…}", "record {…}", "worker: race …",
// "race …".

#include <algorithm>
#include <deque>

#include "furlong/base/os/clock.h"
#include "furlong/base/text.h"
#include "furlong/fleet/exchange/internal/complete.h"
#include "furlong/fleet/exchange/internal/readers.h"
#include "furlong/fleet/exchange/internal/stamps.h"
#include "furlong/record/race_line.h"

namespace furlong::fleet::internal {
namespace {

/// A race is told twice, as a line and as a record, by each of at most so many cards at once.
constexpr std::size_t most_waiting = 64;

/// Where `word` begins as a word of its own.
std::size_t find_word(std::string_view text, std::string_view word) {
  for (std::size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1))
    if (at == 0 || text[at - 1] == ' ' || text[at - 1] == '\t') return at;
  return std::string_view::npos;
}

bool is_lottery(const record::ProgramClass& features) {
  const auto has = [&](std::string_view name) {
    return std::ranges::any_of(features, [&](const auto& feature) { return feature.first == name; });
  };
  return features.size() == 2 && has("loads") && has("wide");
}

record::RaceRecord record_of(const record::RaceLine& line) {
  record::RaceRecord race;
  race.card = line.device;
  race.driver = line.driver;
  race.arch = line.arch;
  if (line.epoch != std::string(16, '0')) race.epoch = line.epoch;
  race.program_class = line.program_class;
  if (is_lottery(line.program_class)) {
    race.program = "lottery";
    race.unit = "MH/s";
  }
  for (const record::RaceLine::Variant& each : line.variants) {
    record::RacedVariant variant{.name = each.name, .rate = each.rate, .detail = {}};
    variant.detail.regs = each.regs;
    variant.detail.warps = each.warps;
    race.variants.push_back(std::move(variant));
  }
  for (const record::RaceLine::Out& out : line.outs)
    for (record::RacedVariant& variant : race.variants)
      if (variant.name == out.variant) variant.detail.out = out.why;
  race.winner = line.winner;
  race.rate = line.rate;
  race.base_rate = line.base_rate;
  race.gain_pct = line.gain_pct;
  race.ci = line.ci;
  race.verdict = line.verdict.value_or(record::Verdict::none);
  race.heats = line.heats.value_or(0);
  race.paused_ms = line.paused_ms.value_or(0);
  race.compile_ms = line.compile_ms;
  race.bench_ms = line.bench_ms;
  race.total_ms = line.total_ms;
  race.pinned = line.pinned;
  race.tuned = line.tuned;
  return race;
}

class LogReader : public RecordReader {
 public:
  LogReader(std::string name, const ImportDefaults& defaults, Sink sink)
      : name_(std::move(name)), defaults_(defaults), sink_(std::move(sink)), stamps_(defaults.date_us) {}

  Status line(std::string_view text, int number) override {
    if (text.ends_with('\r')) text.remove_suffix(1);
    stamps_.see(text);
    for (const std::string_view word : {std::string_view("TUNING {"), std::string_view("record {")})
      if (const std::size_t at = find_word(text, word); at != std::string_view::npos)
        return take_record(text.substr(at + word.size() - 1), number);
    if (const std::size_t at = find_word(text, "race "); at != std::string_view::npos)
      return take_line(text.substr(at), number);
    return {};
  }

  Status end() override {
    while (!lines_.empty()) FURLONG_CHECK(give_oldest());
    return {};
  }

 private:
  struct Waiting {
    std::string printed;
    record::RaceRecord record;
    int number;
  };

  void problem(int number, const Error& error) {
    sink_.problem(fail(error.code(), "{}:{}: {}", name_, number, error.text()));
  }

  Status give(record::RaceRecord record, std::string_view text, int number) {
    auto imported = complete(std::move(record), text, number, defaults_);
    if (!imported) {
      problem(number, imported.error());
      return {};
    }
    return sink_.record(*std::move(imported));
  }

  Status give_oldest() {
    Waiting oldest = std::move(lines_.front());
    lines_.pop_front();
    return give(std::move(oldest.record), {}, oldest.number);
  }

  Status take_record(std::string_view json, int number) {
    auto record = record::parse_record(json, fmt::format("{}:{}", name_, number));
    if (!record) {
      sink_.problem(std::move(record).error());
      return {};
    }
    // The same race as a line: the record says more.
    std::string printed = record::race_record_line(*record);
    const auto line = std::ranges::find(lines_, printed, &Waiting::printed);
    if (line != lines_.end()) {
      lines_.erase(line);
    } else {
      records_.push_back(std::move(printed));
      if (records_.size() > most_waiting) records_.pop_front();
    }
    return give(*std::move(record), json, number);
  }

  Status take_line(std::string_view text, int number) {
    const auto line = record::parse_race_line(text);
    if (!line) {
      // Words of people may begin so as well; only what is meant as one is told.
      if (text.find(" variants ") != std::string_view::npos &&
          text.find(" winner ") != std::string_view::npos)
        problem(number, line.error());
      return {};
    }
    std::string printed = record::print(*line);
    const auto record = std::ranges::find(records_, printed);
    if (record != records_.end()) {
      records_.erase(record);
      return {};
    }
    record::RaceRecord race = record_of(*line);
    if (const auto now_us = stamps_.now_us()) race.ts = iso_time(*now_us);
    lines_.push_back({std::move(printed), std::move(race), number});
    if (lines_.size() > most_waiting) return give_oldest();
    return {};
  }

  const std::string name_;
  const ImportDefaults defaults_;
  const Sink sink_;
  Stamps stamps_;
  std::deque<Waiting> lines_;        // whose record has not come
  std::deque<std::string> records_;  // whose line has not come
};

}  // namespace

std::unique_ptr<RecordReader> make_log_reader(std::string name, const ImportDefaults& defaults,
                                              RecordReader::Sink sink) {
  return std::make_unique<LogReader>(std::move(name), defaults, std::move(sink));
}

}  // namespace furlong::fleet::internal
