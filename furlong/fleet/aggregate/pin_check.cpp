#include "furlong/fleet/aggregate/pin_check.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "furlong/fleet/aggregate/internal/own_interval.h"
#include "furlong/fleet/aggregate/internal/paired_gains.h"
#include "furlong/fleet/aggregate/internal/scan.h"
#include "furlong/stats/centre.h"

namespace furlong::fleet {
namespace {

constexpr double day_us = 86400e6;

using internal::PinEvidence;

struct SubjectPins {
  internal::PairedGains gains;
  internal::Voices voices;
};

/// One pinned row with enough races to judge it.
struct Judged {
  const SubjectPins* subject = nullptr;
  const Subject* of = nullptr;
  const record::TuningCard* card = nullptr;
  const PinEvidence* evidence = nullptr;
  WordNumber variant = 0;
};

std::size_t races_of(const internal::LogGains& gains, WordNumber variant) {
  std::size_t races = 0;
  if (const auto at = gains.find(variant); at != gains.end())
    for (const auto& [machine, logs] : at->second) races += logs.size();
  return races;
}

Estimate estimate_of(const internal::LogGains& gains, WordNumber variant, const internal::Voices& voices,
                     double error) {
  std::map<std::uint32_t, std::vector<double>> by_voice;
  std::vector<internal::Own> own;
  Estimate estimate;
  for (const auto& [machine, logs] : gains.at(variant)) {
    by_voice[voices.of_machine[machine]].push_back(100 * std::expm1(stats::median(logs)));
    own.push_back({.log_mean = stats::mean(logs),
                   .log_variance = internal::variance_of_mean(logs),
                   .degrees = static_cast<double>(logs.size()) - 1});
    estimate.samples += static_cast<int>(logs.size());
  }
  std::vector<internal::Said> said;
  for (auto& [voice, values] : by_voice) said.push_back({stats::median_in_place(values), 1, voice});
  internal::sort_by_value(said);
  estimate.races = estimate.samples;
  estimate.machines = static_cast<int>(said.size());
  estimate.median = internal::weighted_median(said);
  estimate.ci = internal::voices_interval(said, own, error);
  return estimate;
}

WordNumber commonest_winner(const PinEvidence& evidence, const std::vector<std::string>& words) {
  WordNumber best = 0;
  std::uint64_t most = 0;
  for (const auto& [word, count] : evidence.won_before)
    if (count > most || (count == most && words[word] < words[best]))
      std::tie(best, most) = std::pair(word, count);
  return best;
}

class Judge {
 public:
  Judge(const internal::StoreContents& contents, const PinCheckOptions& options)
      : words_(contents.names.words), base_(contents.known.base), options_(options) {}

  std::vector<Judged> list(const SubjectPins& subject, const Subject& of) const {
    std::vector<Judged> judged;
    for (const auto& [pin, evidence] : subject.gains.pins) {
      const auto at = std::ranges::find(words_, pin.second->variant);
      const auto variant = static_cast<WordNumber>(at - words_.begin());
      if (at != words_.end() && enough(evidence.after, variant))
        judged.push_back({&subject, &of, pin.first, &evidence, variant});
    }
    return judged;
  }

  /// `error` is that of both intervals together.
  void judge(const Judged& one, double error, std::vector<SlowPin>& into) const {
    SlowPin slow{.card = one.card->key, .subject = *one.of, .variant = words_[one.variant]};
    slow.gain_pct = estimate_of(one.evidence->after, one.variant, one.subject->voices, error / 2);
    if (!slow.gain_pct.ci) return;
    const double hi = slow.gain_pct.ci->hi;
    if (one.variant != base_ && -hi > options_.threshold_pct) {
      slow.chosen = "base";
      slow.chosen_gain_pct.median = 0;
      slow.behind_pct = -hi;
    }
    const WordNumber chosen = commonest_winner(*one.evidence, words_);
    if (chosen != 0 && chosen != one.variant && chosen != base_ && enough(one.evidence->before, chosen)) {
      const Estimate before = estimate_of(one.evidence->before, chosen, one.subject->voices, error / 2);
      const double behind = before.ci ? before.ci->lo - hi : 0;
      if (behind > options_.threshold_pct && behind > slow.behind_pct) {
        slow.chosen = words_[chosen];
        slow.chosen_gain_pct = before;
        slow.behind_pct = behind;
      }
    }
    if (!slow.chosen.empty()) into.push_back(std::move(slow));
  }

 private:
  bool enough(const internal::LogGains& gains, WordNumber variant) const {
    return races_of(gains, variant) >= static_cast<std::size_t>(std::max(options_.min_races, 1));
  }
  const std::vector<std::string>& words_;
  const WordNumber base_;
  const PinCheckOptions& options_;
};

}  // namespace

Result<PinCheck> check_pins(const OpenStore& open, const record::Tuning& tuning,
                            const PinCheckOptions& options) {
  FURLONG_CHECK(internal::check_judgement(options.window_days, options.threshold_pct, options.error));
  FURLONG_TRY(std::unique_ptr<Store> store, open());
  FURLONG_TRY(const internal::StoreContents contents, internal::read_contents(*store));
  const std::vector<bool> wanted = internal::named_machines(contents.names, options.machines);
  const auto width = static_cast<std::int64_t>(std::llround(options.window_days * day_us));
  const Window window{options.since_us - width, options.since_us + width};
  std::vector<SubjectPins> subjects(contents.subjects.size());
  const auto scan = [&](Store& own, std::size_t i) -> Status {
    internal::PairedGainReader reader(contents.known, contents.names.words, tuning, contents.subjects[i],
                                      options.since_us, subjects[i].gains);
    FURLONG_CHECK(own.scan(contents.subjects[i].number, window, [&](const RaceRow& row) {
      // A machine that came after the names were read is none of them.
      if (row.machine < wanted.size() && wanted[row.machine]) reader.add(row);
      return true;
    }));
    reader.end();
    subjects[i].voices = internal::find_voices(subjects[i].gains.machines, contents.names);
    return {};
  };
  FURLONG_CHECK(internal::for_each_subject(open, std::move(store), subjects.size(), options.threads, scan));
  const Judge judge(contents, options);
  std::vector<Judged> all;
  for (std::size_t i = 0; i < subjects.size(); ++i)
    std::ranges::copy(judge.list(subjects[i], contents.subjects[i].subject), std::back_inserter(all));
  PinCheck result;
  result.judged = static_cast<int>(all.size());
  for (const Judged& one : all) judge.judge(one, options.error / result.judged, result.slow);
  std::ranges::sort(result.slow, [](const SlowPin& a, const SlowPin& b) {
    return std::tuple(-a.behind_pct, a.card, a.subject, a.variant) <
           std::tuple(-b.behind_pct, b.card, b.subject, b.variant);
  });
  return result;
}

}  // namespace furlong::fleet
