// What got slower from one window to the next. docs/fleet-aggregation.md, "Regressions".

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "furlong/base/os/clock.h"
#include "furlong/base/table.h"
#include "furlong/base/text.h"
#include "furlong/fleet/aggregate/aggregate.h"
#include "furlong/fleet/aggregate/internal/cards.h"
#include "furlong/fleet/aggregate/internal/change.h"
#include "furlong/fleet/aggregate/internal/interval.h"
#include "furlong/fleet/aggregate/internal/own_interval.h"
#include "furlong/fleet/aggregate/internal/scan.h"
#include "furlong/stats/centre.h"

namespace furlong::fleet {
namespace {

using internal::Change;
using internal::Said;

constexpr double day_us = 86400e6;

/// One variant with one driver on one card, over all voices.
struct Comparison {
  std::string variant, driver, driver_before;
  double before = 0, after = 0;
  std::vector<Said> said;               ///< change in percent, one a voice, ascending
  std::vector<const Change*> machines;  ///< of all voices
  int samples = 0;
  std::uint64_t pairs = 0;  ///< races of the window that has fewer
};

struct SubjectComparisons {
  internal::SubjectChanges changes;
  internal::ScannedRow row;  ///< for the card's name
  std::vector<Comparison> comparisons;
};

std::string commonest(const std::map<WordNumber, std::uint64_t>& counts, const internal::StoreNames& names) {
  std::pair<std::uint64_t, std::string> best;
  for (const auto& [word, count] : counts)
    if (count > best.first || (count == best.first && names.words[word] < best.second))
      best = {count, names.words[word]};
  return best.second;
}

Comparison compare(std::span<const Change* const> changes, const internal::Voices& voices) {
  Comparison comparison;
  comparison.machines.assign(changes.begin(), changes.end());
  std::map<std::uint32_t, std::vector<double>> by_voice;
  std::vector<double> before, after;
  for (const Change* change : changes) {
    by_voice[voices.of_machine[change->machine]].push_back(change->pct);
    before.push_back(change->before);
    after.push_back(change->after);
    comparison.samples += static_cast<int>(change->samples);
    comparison.pairs += change->pairs;
  }
  for (auto& [voice, values] : by_voice)
    comparison.said.push_back({stats::median_in_place(values), 1, voice});
  internal::sort_by_value(comparison.said);
  comparison.before = stats::median_in_place(before);
  comparison.after = stats::median_in_place(after);
  return comparison;
}

/// Groups by variant and driver; by name, so that numbers do not matter.
void make_comparisons(const internal::StoreNames& names, SubjectComparisons& subject) {
  const internal::Voices voices = internal::find_voices(subject.changes.machines, names);
  std::map<std::pair<std::string, std::string>, std::vector<const Change*>> groups;
  for (const Change& change : subject.changes.changes)
    groups[{names.words[change.variant], names.words[change.driver]}].push_back(&change);
  for (auto& [key, changes] : groups) {
    std::ranges::sort(changes, {}, [&](const Change* change) -> const std::string& {
      return names.machines[subject.changes.machines.machines[change->machine].number];
    });
    Comparison comparison = compare(changes, voices);
    std::tie(comparison.variant, comparison.driver) = key;
    const auto& counts =
        subject.changes.drivers_before.at({changes.front()->variant, changes.front()->driver});
    comparison.driver_before = commonest(counts, names);
    subject.comparisons.push_back(std::move(comparison));
  }
}

Status scan_subject(Store& store, const internal::StoreContents& contents, const SubjectRow& subject,
                    const std::vector<bool>& wanted, const Regressions& windows, SubjectComparisons& into) {
  internal::ChangeReader reader(contents.known, windows.after.from_us, into.changes);
  FURLONG_CHECK(
      store.scan(subject.number, {windows.before.from_us, windows.after.to_us}, [&](const RaceRow& row) {
        // A machine that came after the names were read is in no list either.
        if (wanted.empty() || (row.machine < wanted.size() && wanted[row.machine])) reader.add(row);
        return true;
      }));
  reader.end();
  into.row.row.subject = subject.subject;
  into.row.silicon = subject.silicon;
  for (const auto& machine : into.changes.machines.machines)
    for (const WordNumber label : machine.labels)
      into.row.labels[contents.names.words[label]].insert(machine.number);
  make_comparisons(contents.names, into);
  return {};
}

Estimate change_of(const Comparison& comparison, double error) {
  Estimate estimate;
  std::vector<internal::Own> own;
  for (const Change* change : comparison.machines) own.push_back(change->own);
  estimate.median = internal::weighted_median(comparison.said);
  estimate.ci = internal::voices_interval(comparison.said, own, error);
  estimate.samples = comparison.samples;
  estimate.races = comparison.samples;
  estimate.machines = static_cast<int>(comparison.said.size());
  return estimate;
}

bool base_slowed_too(const SubjectComparisons& subject, const Comparison& one, double threshold_pct) {
  for (const Comparison& other : subject.comparisons)
    if (other.variant == "base" && other.driver == one.driver)
      return internal::weighted_median(other.said) <= internal::weighted_median(one.said) + threshold_pct;
  return false;
}

bool is_wanted(const Comparison& comparison, const RegressionOptions& options) {
  return static_cast<int>(comparison.said.size()) >= options.min_machines &&
         comparison.pairs >= static_cast<std::uint64_t>(std::max(options.min_races, 0));
}

MachineNumber number_of(const SubjectComparisons& subject, const Change& change) {
  return subject.changes.machines.machines[change.machine].number;
}

/// The comparisons of one card, over all its programs. The chance of any false alarm among them is at most
/// the options' error. Each machine has the same part of it, which it spreads over the comparisons that it
/// takes part in: one that makes up thousands of programs and variants takes from its own part alone.
class Family {
 public:
  void add(const SubjectComparisons& subject, const Comparison& comparison) {
    for (const Change* change : comparison.machines) ++comparisons_of_[number_of(subject, *change)];
  }

  double error_of(const SubjectComparisons& subject, const Comparison& comparison, double error) const {
    double parts = 0;
    for (const Change* change : comparison.machines)
      parts += 1.0 / comparisons_of_.at(number_of(subject, *change));
    return error * parts / static_cast<double>(comparisons_of_.size());
  }

 private:
  std::map<MachineNumber, int> comparisons_of_;
};

void judge(const SubjectComparisons& subject, const std::string& key, const Family& family,
           const RegressionOptions& options, std::vector<Regression>& into) {
  for (const Comparison& one : subject.comparisons) {
    if (!is_wanted(one, options)) continue;
    Estimate change = change_of(one, family.error_of(subject, one, options.error));
    if (!change.ci || !(change.ci->hi < -options.threshold_pct)) continue;
    into.push_back({.card = key,
                    .silicon = subject.row.silicon.hash,
                    .subject = subject.row.row.subject,
                    .driver = one.driver,
                    .driver_before = one.driver_before,
                    .variant = one.variant,
                    .before = one.before,
                    .after = one.after,
                    .change_pct = change,
                    .all_variants = base_slowed_too(subject, one, options.threshold_pct)});
  }
}

std::map<std::string, std::string> keys_of(const std::vector<SubjectComparisons>& subjects) {
  std::vector<internal::ScannedRow> rows;
  for (const SubjectComparisons& subject : subjects)
    if (!subject.row.labels.empty()) rows.push_back(subject.row);
  std::map<std::string, std::string> keys;
  for (const internal::ScannedCard& card : internal::make_cards(std::move(rows)))
    keys[card.rows.front().row.subject.silicon] = card.card.key;
  return keys;
}

}  // namespace

Result<Regressions> find_regressions(const OpenStore& open, const RegressionOptions& options) {
  FURLONG_CHECK(internal::check_judgement(options.window_days, options.threshold_pct, options.error));
  FURLONG_TRY(std::unique_ptr<Store> store, open());
  FURLONG_TRY(const internal::StoreContents contents, internal::read_contents(*store));
  Regressions result;
  const auto width = static_cast<std::int64_t>(std::llround(options.window_days * day_us));
  result.after.to_us = options.until_us.value_or(contents.newest_us + 1);
  result.after.from_us = result.before.to_us = result.after.to_us - width;
  result.before.from_us = result.before.to_us - width;
  std::vector<bool> wanted;  // empty: everybody's races count
  if (!options.machines.empty()) wanted = internal::named_machines(contents.names, options.machines);
  std::vector<SubjectComparisons> subjects(contents.subjects.size());
  FURLONG_CHECK(internal::for_each_subject(
      open, std::move(store), subjects.size(), options.threads, [&](Store& own, std::size_t i) {
        return scan_subject(own, contents, contents.subjects[i], wanted, result, subjects[i]);
      }));
  std::map<std::string, Family> families;  // by card
  for (const SubjectComparisons& subject : subjects)
    for (const Comparison& one : subject.comparisons) {
      if (!is_wanted(one, options)) continue;
      families[subject.row.row.subject.silicon].add(subject, one);
      ++result.compared;
    }
  const auto keys = keys_of(subjects);
  for (const SubjectComparisons& subject : subjects) {
    const std::string& silicon = subject.row.row.subject.silicon;
    if (families.contains(silicon))
      judge(subject, keys.at(silicon), families.at(silicon), options, result.regressions);
  }
  std::ranges::sort(result.regressions, {}, [](const Regression& one) {
    return std::tuple(one.change_pct.median, one.card, one.subject, one.driver, one.variant);
  });
  return result;
}

std::string show_text(const Regressions& regressions) {
  std::string text =
      fmt::format("{} to {} against {} to {}: {} compared, {} slower\n", iso_time(regressions.after.from_us),
                  iso_time(regressions.after.to_us), iso_time(regressions.before.from_us),
                  iso_time(regressions.before.to_us), regressions.compared, regressions.regressions.size());
  if (regressions.regressions.empty()) return text;
  Table table;
  for (const char* heading : {"card", "program", "variant", "driver", "before it"}) table.column(heading);
  for (const char* heading : {"before", "after", "change %", "interval", "machines"})
    table.column(heading, Table::Align::right);
  table.column("what");
  for (const Regression& one : regressions.regressions) {
    const bool same_driver = one.driver == one.driver_before;
    table.row({one.card, one.subject.program, one.variant, one.driver,
               same_driver ? "the same" : one.driver_before, fmt::format("{:.4g}", one.before),
               fmt::format("{:.4g}", one.after), fmt::format("{:+.2f}", one.change_pct.median),
               fmt::format("{:+.2f} to {:+.2f}", one.change_pct.ci->lo, one.change_pct.ci->hi),
               std::to_string(one.change_pct.machines),
               one.all_variants ? (same_driver ? "the card: base too" : "the driver or the card: base too")
                                : "this variant"});
  }
  return without_controls(text + table.text());
}

}  // namespace furlong::fleet
