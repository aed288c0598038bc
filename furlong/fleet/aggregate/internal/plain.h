#pragma once
// The rules of docs/fleet-aggregation.md written down once more, as plainly as can be: all races in maps of
// strings, sorts, pairwise loops. It shares no code with the aggregation; tests compare the two, and the
// bench measures it. By rate, ranked by gain. Internal to furlong/fleet/aggregate.

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "furlong/fleet/store/store.h"
#include "furlong/stats/confidence_sequence.h"

namespace furlong::fleet::plain {

struct Options {
  int min_samples = 3;
  double near_pct = 1;
};

struct Variant {
  double gain = NAN, standing = 0, rate = NAN;
  std::optional<std::pair<double, double>> ci;
  int samples = 0, races = 0, machines = 0;
};

struct Row {
  std::map<std::string, Variant> variants;  ///< those that have a gain that counts
  std::string winner;
  std::vector<std::string> candidates;
  std::set<std::pair<std::string, std::string>> set_aside;  ///< machine, reason
  int voices = 0;
};

struct Race {
  std::string machine, slot, epoch, winner;
  std::int64_t ts = 0;
  RecordId id{};
  int stratum = 0;
  double base_rate = NAN, ceiling = NAN;
  bool fallback = false, base_fallback = false;
  std::map<std::string, std::pair<double, double>> gains;  ///< gain and rate
};

struct Medians {
  std::vector<double> gains, rates;
  std::set<std::string> epochs;
  double gain = NAN, rate = NAN;
};

struct Point {
  double value = 0, weight = 0;
  int voice = 0;
};

inline double median(std::vector<double> values) {
  if (values.empty()) return NAN;
  std::sort(values.begin(), values.end());
  const std::size_t n = values.size();
  return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

inline double median(std::vector<Point> points) {
  std::sort(points.begin(), points.end(), [](const Point& a, const Point& b) { return a.value < b.value; });
  double whole = 0, below = 0;
  for (const Point& point : points) whole += point.weight;
  for (std::size_t i = 0; i < points.size(); ++i) {
    below += points[i].weight;
    if (std::abs(2 * below - whole) < 1e-8 * whole && i + 1 < points.size())
      return (points[i].value + points[i + 1].value) / 2;
    if (2 * below > whole) return points[i].value;
  }
  return NAN;
}

inline std::optional<std::pair<double, double>> interval(std::vector<Point> points) {
  std::map<int, std::pair<double, double>> voices;  // weight, weighted sum
  for (const Point& point : points) {
    voices[point.voice].first += point.weight;
    voices[point.voice].second += point.weight * point.value;
  }
  double sum = 0, squares = 0;
  for (const auto& [voice, each] : voices) {
    sum += each.first;
    squares += each.first * each.first;
  }
  const int n = squares > 0 ? static_cast<int>(sum * sum / squares + 1e-9) : 0;
  if (n < 2 || voices.size() < 2) return std::nullopt;
  int k = 0;
  double below = 0;  // P(X < k + 1)
  for (int i = 0; i < n / 2; ++i) {
    double chance = std::pow(0.5, n);
    for (int j = 1; j <= i; ++j) chance = chance * (n - j + 1) / j;
    below += chance;
    if (2 * below > 0.05) break;
    k = i + 1;
  }
  double lo = 0, hi = 0;
  if (k > 0) {
    std::sort(points.begin(), points.end(), [](const Point& a, const Point& b) { return a.value < b.value; });
    // From each end in as far as k - 1 of n shares reach.
    const double share = double(k - 1) / n + 1e-8;
    double part = 0;
    std::size_t first = 0, last = points.size() - 1;
    while ((part += points[first].weight) / sum <= share) ++first;
    part = 0;
    while ((part += points[last].weight) / sum <= share) --last;
    lo = points[first].value;
    hi = points[last].value;
  } else {
    double mean = 0, variance = 0;
    const double worth = sum * sum / squares;
    for (const auto& [voice, each] : voices) mean += each.second / sum;
    for (const auto& [voice, each] : voices)
      variance += each.first / sum * std::pow(each.second / each.first - mean, 2) * worth / (worth - 1);
    const double half = stats::student_quantile(0.975, n - 1) * std::sqrt(variance / n);
    lo = mean - half;
    hi = mean + half;
  }
  const double middle = median(points);
  return std::pair(std::min(lo, middle), std::max(hi, middle));
}

struct Races {
  std::vector<Race> raced;                             ///< the latest of each machine, slot and epoch
  std::map<std::string, std::set<std::string>> slots;  ///< machines that report them
};

inline Result<std::map<Subject, Races>> read(Store& store, Window window) {
  FURLONG_TRY(const auto subjects, store.subjects());
  FURLONG_TRY(const auto words, store.words());
  FURLONG_TRY(const auto machines, store.machine_names());
  std::map<Subject, Races> all;
  for (const SubjectRow& subject : subjects) {
    std::map<std::tuple<std::string, std::string, std::string>, Race> latest;
    bool seen = false;
    FURLONG_CHECK(store.scan(subject.number, window, [&](const RaceRow& row) {
      seen = true;
      all[subject.subject].slots[words[row.slot]].insert(machines[row.machine]);
      if (row.pinned) return true;
      Race race{.machine = machines[row.machine], .slot = words[row.slot]};
      race.epoch = row.has_epoch ? std::to_string(row.epoch)
                                 : "day " + std::to_string(std::floor(double(row.ts_us) / 86400e6));
      race.winner = words[row.winner];
      race.ts = row.ts_us;
      race.id = row.id;
      if (row.power_limit_w >= 2 && row.power_limit_w <= 100'000)
        race.stratum = int(std::floor(40 * std::log10(double(row.power_limit_w)) + 0.5));
      race.base_rate = row.base_rate;
      race.ceiling = row.ceiling;
      for (const PackedGain& gain : row.gains) {
        const std::string& name = words[gain.variant];
        if (name == "base") {
          if (std::isfinite(gain.rate) && gain.rate > 0) race.base_rate = gain.rate;
          if (gain.fallback) race.base_rate = NAN;
          race.base_fallback = gain.fallback;
          continue;
        }
        race.fallback |= gain.fallback;
        const bool timed = gain.exit == Exit::stayed || gain.exit == Exit::eliminated ||
                           gain.exit == Exit::duplicate || gain.exit == Exit::budget;
        if (timed && !gain.fallback && std::isfinite(gain.gain_pct))
          race.gains[name] = {gain.gain_pct, gain.rate};
      }
      auto& kept = latest[{race.machine, race.slot, race.epoch}];
      if (kept.machine.empty() || std::tie(kept.ts, kept.id) < std::tie(race.ts, race.id)) kept = race;
      return true;
    }));
    if (!seen) continue;
    for (const auto& [key, race] : latest) all[subject.subject].raced.push_back(race);
  }
  return all;
}

/// One subject, step by step.
class Maker {
 public:
  Maker(const Races& races, Options options) : options_(options) {
    for (const Race& race : races.raced) take(race);
    count_races_once();
    for (const auto& [slot, machines] : races.slots)
      for (const std::string& machine : machines)
        if (counts_.contains(machine)) slots_[slot].insert(machine);
    for (auto& [variant, machines] : values_)
      for (auto& [machine, strata] : machines)
        for (auto& [stratum, cell] : strata) {
          cell.gain = static_cast<float>(median(cell.gains));
          cell.rate = static_cast<float>(median(cell.rates));
        }
  }

  Row make() {
    group();
    disagree();
    over_ceiling();
    for (std::size_t v = 0; v < voices_.size(); ++v)
      if (!aside_[v]) ++row_.voices;
    for (const auto& [variant, machines] : values_) add(variant);
    choose();
    return row_;
  }

 private:
  using Members = std::vector<std::string>;

  void take(const Race& race) {
    if (std::isfinite(race.ceiling) && race.ceiling > 0)
      ceilings_[race.machine][race.winner].push_back(race.ceiling);
    const bool base = std::isfinite(race.base_rate) && race.base_rate > 0;
    if (race.base_fallback || (base && race.fallback)) row_.set_aside.insert({race.machine, "fallback"});
    if (!base && !race.base_fallback) row_.set_aside.insert({race.machine, "no-base"});
    if (!base) return;
    ++counts_[race.machine][race.stratum];
    const auto put = [&](const std::string& variant, double gain, double rate) {
      Medians& cell = values_[variant][race.machine][race.stratum];
      cell.gains.push_back(gain);
      if (std::isfinite(rate) && rate > 0) cell.rates.push_back(rate);
      cell.epochs.insert(race.epoch);
    };
    put("base", 0, race.base_rate);
    for (const auto& [variant, gain] : race.gains) put(variant, gain.first, gain.second);
  }

  /// One race of a machine, under several caps, is one race: of the lowest.
  void count_races_once() {
    for (auto& [variant, machines] : values_)
      for (auto& [machine, strata] : machines) {
        std::set<std::string> counted;
        for (auto& [stratum, cell] : strata) {
          std::erase_if(cell.epochs, [&](const std::string& epoch) { return counted.contains(epoch); });
          counted.insert(cell.epochs.begin(), cell.epochs.end());
        }
      }
  }

  void group() {
    std::vector<std::pair<int, std::string>> order;
    for (const auto& [slot, machines] : slots_) order.emplace_back(-int(machines.size()), slot);
    std::sort(order.begin(), order.end());
    std::set<std::string> taken;
    for (const auto& [count, slot] : order) {
      Members members;
      for (const std::string& machine : slots_[slot])
        if (!taken.contains(machine)) members.push_back(machine);
      if (members.size() < 2) continue;
      taken.insert(members.begin(), members.end());
      for (std::size_t i = 1; i < members.size(); ++i) row_.set_aside.insert({members[i], "same-card"});
      voices_.push_back(members);
    }
    for (const auto& [machine, count] : counts_)
      if (!taken.contains(machine)) voices_.push_back({machine});
    std::sort(voices_.begin(), voices_.end());
    aside_.assign(voices_.size(), false);
  }

  double middle_limit() {
    if (middle_limit_) return *middle_limit_;
    std::vector<double> known;
    for (const auto& [machine, counts] : counts_)
      if (main_stratum(machine) != 0) known.push_back(main_stratum(machine));
    return *(middle_limit_ = median(known));
  }

  double low_power(int stratum) {
    const double none = std::isnan(middle_limit()) ? 0 : middle_limit();
    return stratum != 0 ? std::exp(std::log(10.0) * (2 * stratum - 1) / 80)
                        : std::exp(std::log(10.0) * (2 * none - 1) / 80) * 3 / 11;
  }

  double high_power(int stratum) {
    const double none = std::isnan(middle_limit()) ? 0 : middle_limit();
    return stratum != 0 ? std::exp(std::log(10.0) * (2 * stratum + 1) / 80)
                        : std::exp(std::log(10.0) * (2 * none + 1) / 80) * 11 / 3;
  }

  int main_stratum(const std::string& machine) {
    int best = 0, most = 0;
    for (const auto& [stratum, count] : counts_[machine])
      if (count >= most) std::tie(best, most) = std::pair(stratum, count);
    return best;
  }

  std::map<int, double> shifts_of_voices() {
    std::map<int, std::vector<double>> all;
    for (const auto& [variant, machines] : values_) {
      if (variant == "base") continue;
      std::vector<std::pair<int, double>> gains;
      std::vector<double> values;
      for (std::size_t v = 0; v < voices_.size(); ++v)
        for (const std::string& machine : voices_[v]) {
          if (!machines.contains(machine) || !machines.at(machine).contains(main_stratum(machine))) continue;
          const double gain = machines.at(machine).at(main_stratum(machine)).gain;
          if (!(gain > -100)) continue;
          gains.emplace_back(int(v), std::log(1 + gain / 100));
          values.push_back(gains.back().second);
        }
      for (const auto& [v, gain] : gains) all[v].push_back(gain - median(values));
    }
    std::map<int, double> shifts;
    for (const auto& [v, values] : all) shifts[v] = median(values);
    return shifts;
  }

  void disagree() {
    std::map<int, std::vector<double>> bases;
    std::map<std::string, double> base_of;
    for (const auto& [machine, counts] : counts_) {
      base_of[machine] = values_["base"][machine][main_stratum(machine)].rate;
      bases[main_stratum(machine)].push_back(base_of[machine]);
    }
    std::map<int, double> tolerance;
    for (const auto& [stratum, rates] : bases) {
      std::vector<double> distances;
      for (const double rate : rates) distances.push_back(std::abs(rate - median(rates)));
      tolerance[stratum] =
          std::max(stratum == 0 ? 0.25 : 0.10, 5 * 1.4826 * median(distances) / median(rates));
    }
    struct Side {
      double low = INFINITY, high = 0, power_low = INFINITY, power_high = 0, tolerance = 0;
    };
    std::vector<Side> sides;
    for (const Members& members : voices_) {
      Side side;
      for (const std::string& machine : members) {
        const int stratum = main_stratum(machine);
        side.low = std::min(side.low, base_of[machine]);
        side.high = std::max(side.high, base_of[machine]);
        side.power_low = std::min(side.power_low, low_power(stratum));
        side.power_high = std::max(side.power_high, high_power(stratum));
        side.tolerance = std::max(side.tolerance, tolerance[stratum]);
      }
      sides.push_back(side);
    }
    const auto too_fast = [](const Side& a, const Side& b) {
      const bool same = a.power_low == b.power_low && a.power_high == b.power_high;
      const double power = same ? 1 : std::max(1.0, a.power_high / b.power_low);
      return a.low > b.high * power * (1 + std::max(a.tolerance, b.tolerance));
    };
    const std::map<int, double> shifts = shifts_of_voices();
    for (std::size_t i = 0; i < sides.size(); ++i) {
      std::size_t against = 0, under_cap = 0, against_under_cap = 0, shifted = 0;
      for (std::size_t j = 0; j < sides.size(); ++j) {
        const bool contradicts = too_fast(sides[i], sides[j]) || too_fast(sides[j], sides[i]);
        const bool same_cap =
            sides[i].power_low == sides[j].power_low && sides[i].power_high == sides[j].power_high;
        against += contradicts;
        under_cap += same_cap;
        against_under_cap += contradicts && same_cap;
        if (shifts.contains(int(i)) && shifts.contains(int(j)))
          shifted += std::abs(shifts.at(int(i)) - shifts.at(int(j))) > std::log(1.1);
      }
      const bool wrong_base = 2 * against_under_cap > under_cap && 2 * shifted > sides.size();
      if (2 * against <= sides.size() && !wrong_base) continue;
      aside_[i] = true;
      for (const std::string& machine : voices_[i]) row_.set_aside.insert({machine, "base-disagrees"});
    }
  }

  void over_ceiling() {
    struct Reported {
      double rate = 0, power_low = INFINITY, power_high = 0;
    };
    std::vector<Reported> all;
    for (std::size_t v = 0; v < voices_.size(); ++v) {
      if (aside_[v]) continue;
      Reported one;
      one.power_high = high_power(main_stratum(voices_[v].front()));
      for (const std::string& machine : voices_[v]) {
        double ceiling = ceilings_.contains(machine) ? 0 : INFINITY;
        if (ceilings_.contains(machine))
          for (const auto& [winner, rates] : ceilings_[machine])
            ceiling = std::max<double>(ceiling, static_cast<float>(median(rates)));
        one.rate = std::max(one.rate, ceiling);
        one.power_low = std::min(one.power_low, low_power(main_stratum(machine)));
      }
      all.push_back(one);
    }
    const auto limit_of = [&](int stratum) {
      std::vector<double> limits;
      for (const Reported& one : all) {
        const bool same = one.power_low == low_power(stratum) && one.power_high == high_power(stratum);
        limits.push_back(one.rate * (same ? 1 : std::max(1.0, high_power(stratum) / one.power_low)));
      }
      return median(limits);
    };
    std::map<int, double> limits;
    std::vector<std::size_t> whole;
    for (std::size_t v = 0; v < voices_.size(); ++v) {
      if (aside_[v]) continue;
      for (const std::string& machine : voices_[v])
        for (const auto& [variant, machines] : values_) {
          if (!machines.contains(machine)) continue;
          for (const auto& [stratum, cell] : machines.at(machine)) {
            if (!limits.contains(stratum)) limits[stratum] = limit_of(stratum);
            if (!(cell.rate > 1.05 * limits[stratum])) continue;
            above_.insert({variant, machine, stratum});
            row_.set_aside.insert({machine, "above-ceiling"});
            if (variant == "base") whole.push_back(v);
          }
        }
    }
    for (const std::size_t v : whole) aside_[v] = true;
  }

  double share(std::size_t v, int stratum) {
    double here = 0, all = 0;
    for (const std::string& machine : voices_[v])
      for (const auto& [key, count] : counts_[machine]) {
        all += count;
        if (key == stratum) here += count;
      }
    return here / all;
  }

  std::set<int> strata_of(std::size_t v) {
    std::set<int> strata;
    for (const std::string& machine : voices_[v])
      for (const auto& [key, count] : counts_[machine]) strata.insert(key);
    return strata;
  }

  void add(const std::string& variant) {
    std::map<int, std::vector<Point>> heard;  // by stratum
    std::map<int, std::vector<Point>> rates;
    std::map<int, double> card, lost;
    Variant made;
    std::set<int> speakers;
    for (std::size_t v = 0; v < voices_.size(); ++v) {
      if (aside_[v]) continue;
      for (const int stratum : strata_of(v)) {
        card[stratum] += share(v, stratum);
        std::vector<const Medians*> cells;
        bool above = false;
        for (const std::string& machine : voices_[v]) {
          above |= above_.contains({variant, machine, stratum});
          const auto machines = values_[variant].find(machine);
          if (machines == values_[variant].end()) continue;
          const auto cell = machines->second.find(stratum);
          if (cell != machines->second.end()) cells.push_back(&cell->second);
        }
        if (cells.empty()) {
          if (voices_[v].size() > 1) lost[stratum] += share(v, stratum);
          continue;
        }
        std::vector<double> gains, speeds;
        for (const Medians* cell : cells) {
          gains.push_back(cell->gain);
          if (!std::isnan(cell->rate)) speeds.push_back(cell->rate);
        }
        const auto [low, high] = std::minmax_element(gains.begin(), gains.end());
        const bool far_apart =
            !speeds.empty() && *std::max_element(speeds.begin(), speeds.end()) >
                                   1.1F * static_cast<float>(*std::min_element(speeds.begin(), speeds.end()));
        if (above || cells.size() < voices_[v].size() || *high - *low > 2 * options_.near_pct || far_apart) {
          lost[stratum] += share(v, stratum);
          continue;
        }
        heard[stratum].push_back({median(gains), share(v, stratum), int(v)});
        if (!speeds.empty()) rates[stratum].push_back({median(speeds), share(v, stratum), int(v)});
        speakers.insert(int(v));
        for (const Medians* cell : cells) {
          made.samples += int(cell->gains.size());
          made.races += int(cell->epochs.size());
        }
      }
    }
    if (speakers.empty()) return;
    made.machines = int(speakers.size());
    const auto weighed = [&](const std::map<int, std::vector<Point>>& strata) {
      std::vector<Point> points;
      for (const auto& [stratum, list] : strata) {
        double present = 0;
        for (const Point& point : list) present += point.weight;
        for (Point point : list) {
          point.weight *= (card[stratum] - lost[stratum]) / present;
          points.push_back(point);
        }
      }
      return points;
    };
    made.gain = median(weighed(heard));
    made.ci = interval(weighed(heard));
    made.rate = median(weighed(rates));
    std::vector<Point> everybody;
    for (const auto& [stratum, whole] : card) {
      double missing = whole - lost[stratum];
      for (const Point& point : heard[stratum]) {
        everybody.push_back(point);
        missing -= point.weight;
      }
      if (missing > 1e-9) everybody.push_back({0, missing, -1});
    }
    made.standing = median(everybody);
    row_.variants[variant] = made;
  }

  void choose() {
    std::vector<std::tuple<double, bool, std::string>> order;
    for (const auto& [name, variant] : row_.variants)
      if (variant.samples >= options_.min_samples)
        order.emplace_back(-variant.standing, name != "base", name);
    if (order.empty()) return;
    std::sort(order.begin(), order.end());
    row_.winner = -std::get<0>(order.front()) > 0 ? std::get<2>(order.front()) : "base";
    const double best = row_.winner == "base" ? 0 : -std::get<0>(order.front());
    for (const auto& [minus, other, name] : order)
      if (other && -minus >= best - options_.near_pct) row_.candidates.push_back(name);
    row_.candidates.push_back("base");
  }

  const Options options_;
  Row row_;
  std::map<std::string, std::map<std::string, std::map<int, Medians>>> values_;
  std::map<std::string, std::map<int, int>> counts_;
  std::optional<double> middle_limit_;
  std::map<std::string, std::set<std::string>> slots_;
  std::map<std::string, std::map<std::string, std::vector<double>>> ceilings_;
  std::vector<Members> voices_;
  std::vector<bool> aside_;
  std::set<std::tuple<std::string, std::string, int>> above_;
};

inline Result<std::map<Subject, Row>> aggregate(Store& store, Window window, Options options = {}) {
  FURLONG_TRY(const auto races, read(store, window));
  std::map<Subject, Row> rows;
  for (const auto& [subject, list] : races) rows[subject] = Maker(list, options).make();
  return rows;
}

}  // namespace furlong::fleet::plain
