#include "furlong/fleet/hub/canaries.h"

#include <algorithm>
#include <map>

#include "furlong/base/json.h"
#include "furlong/base/text.h"
#include "furlong/fleet/aggregate/pin_check.h"

namespace furlong::fleet {
namespace {

constexpr double day_us = 86'400e6;

bool is_sender(const Machine& machine) { return machine.state == MachineState::active && machine.key; }

Result<std::uint64_t> races_since(Store& store, const std::string& machine, std::int64_t from_us) {
  constexpr std::size_t enough = 10'000;
  RaceFilter filter{.machine = machine};
  filter.window.from_us = from_us;
  filter.limit = enough;
  FURLONG_TRY(const auto races, store.races(filter));
  return static_cast<std::uint64_t>(races.size());
}

std::string sentence(const Regression& regression) {
  return fmt::format("{} of {} on {}, driver {}: {:+.2f}% against before, {:g} to {:g} {}",
                     regression.variant, regression.subject.program, regression.card, regression.driver,
                     regression.change_pct.median, regression.before, regression.after,
                     regression.subject.unit);
}

std::string gain_text(const Estimate& gain) {
  std::string text = fmt::format("{:+.2f}%", gain.median);
  if (gain.ci) text += fmt::format(" ({:+.2f} to {:+.2f})", gain.ci->lo, gain.ci->hi);
  return text;
}

std::string sentence(const SlowPin& pin) {
  const std::string what =
      fmt::format("{}, which the manifest pins for {} on {}, gains {} over base in {} races since",
                  pin.variant, pin.subject.program, pin.card, gain_text(pin.gain_pct), pin.gain_pct.samples);
  if (pin.chosen == "base") return what;
  return fmt::format("{}, where {}, which most races chose before, gained {}", what, pin.chosen,
                     gain_text(pin.chosen_gain_pct));
}

/// What machines obey.
record::Tuning in_force(const ManifestDocument& manifest) {
  record::Tuning tuning = manifest.tuning.value_or(record::Tuning());
  if (manifest.tuning_override) record::apply_override(tuning, *manifest.tuning_override);
  return tuning;
}

}  // namespace

std::string CanaryReport::tag() const {
  return fmt::format("{} {} {} {} {} {} {} {}", manifest, machines, races, regressions, stopping, stops, why,
                     problem);
}

CanaryReport Canaries::latest() const {
  const std::scoped_lock lock(mutex_);
  return latest_;
}

void Canaries::look(const Learned& learned) {
  const auto serving = manifest_.now();
  if (!serving->checked || !serving->checked->manifest) return;
  const ManifestDocument& manifest = *serving->checked->manifest;
  const std::string state = fmt::format("{} {} {}", learned.change, serving->document->tag, latest().problem);
  if (state == judged_) return;
  auto report = judge(manifest);
  if (!report) {
    // The learner tells of the store's errors; it is looked at again with the next change.
    return;
  }
  judged_ = state;
  report->stops = latest().stops;
  if (report->stopping > 0 && !serving->stopped()) stop(manifest, *report);
  tell_of_cards(*report);
  if (report->problem.empty()) report->problem = why_no_stop(serving->checked->root.document);
  const std::scoped_lock lock(mutex_);
  latest_ = *std::move(report);
}

Result<CanaryReport> Canaries::judge(const ManifestDocument& manifest) {
  CanaryReport report{.manifest = manifest.version};
  FURLONG_TRY(const auto store, open_());
  FURLONG_TRY(const auto machines, store->machines());
  RegressionOptions options = options_;
  for (const Machine& machine : machines) {
    if (!is_sender(machine) || !machine.canary) continue;
    options.machines.push_back(machine.id);
    FURLONG_TRY(const std::uint64_t races, races_since(*store, machine.id, manifest.issued_us));
    report.races += races;
  }
  report.machines = options.machines.size();
  if (report.races == 0) return report;
  // The later window begins when the manifest was issued.
  options.until_us = manifest.issued_us + static_cast<std::int64_t>(options.window_days * day_us);
  options.min_races = canary_least_races;
  options.error = canary_look_error;
  FURLONG_TRY(const Regressions found, find_regressions(open_, options));
  const PinCheckOptions trial{.machines = options.machines,
                              .since_us = manifest.issued_us,
                              .window_days = options.window_days,
                              .threshold_pct = options.threshold_pct,
                              .min_races = canary_least_races,
                              .error = canary_look_error,
                              .threads = options.threads};
  FURLONG_TRY(const PinCheck pins, check_pins(open_, in_force(manifest), trial));
  // Where base fell as much it is the driver or the card. No manifest causes that, and no stop mends it.
  const auto caused =
      std::ranges::find_if(found.regressions, [](const Regression& each) { return !each.all_variants; });
  report.regressions = found.regressions.size() + pins.slow.size();
  report.stopping = pins.slow.size() + static_cast<std::size_t>(std::ranges::count(
                                           found.regressions, false, &Regression::all_variants));
  if (!pins.slow.empty())
    report.why = sentence(pins.slow.front());
  else if (caused != found.regressions.end())
    report.why = sentence(*caused);
  else if (!found.regressions.empty())
    report.why = sentence(found.regressions.front()) +
                 "; base fell as much: it is the driver or the card, and no reason for a stop";
  return report;
}

/// Once for one manifest: the numbers change with every race.
void Canaries::tell_of_cards(const CanaryReport& report) {
  if (report.regressions == 0 || report.stopping > 0) return;
  const std::string key = std::to_string(report.manifest);
  if (std::exchange(told_of_cards_, key) == key) return;
  say_(LogLevel::warning, fmt::format("canaries: since manifest {}: {}", report.manifest, report.why));
}

/// Told before a stop is due. Empty: the key may sign one, or there is none, which is the operator's choice.
std::string Canaries::why_no_stop(const RootDocument& root) {
  if (!stop_key_) return {};
  std::string why;
  if (std::ranges::find(root.stop.keys, stop_key_->public_key) == root.stop.keys.end())
    why = fmt::format("the key of --stop-key ({}) is no stop key of root {}", stop_key_->public_key.id(),
                      root.version);
  else if (root.stop.threshold > 1)
    why = fmt::format("root {} wants {} signatures of a stop, and the hub has one key", root.version,
                      root.stop.threshold);
  if (!why.empty() && std::exchange(told_, why) != why)
    say_(LogLevel::error, fmt::format("canaries: {}: the hub can sign no stop", why));
  return why;
}

void Canaries::stop(const ManifestDocument& manifest, CanaryReport& report) {
  const std::string what =
      fmt::format("{} regression{} in the canaries' races since manifest {}: {}", report.stopping,
                  report.stopping == 1 ? "" : "s", manifest.version, report.why);
  const auto tell = [&](LogLevel level, const std::string& text) {
    if (std::exchange(told_, text) != text) say_(level, text);
  };
  if (!stop_key_) {
    report.problem = "no stop key (--stop-key): a stop is due and was not signed";
    return tell(LogLevel::error, fmt::format("canaries: {}; {}", what, report.problem));
  }
  // Judging takes its time: what was published meanwhile was not judged, and is looked at next.
  const auto stopped = manifest_.stop(*stop_key_, manifest.version);
  if (!stopped) {
    report.problem = fmt::format("a stop is due and was not signed: {}", stopped.error().text());
    return tell(LogLevel::error, fmt::format("canaries: {}; {}", what, report.problem));
  }
  ++report.stops;
  tell(LogLevel::error,
       fmt::format("canaries: {}; stop {} is signed and served: from manifest {} on machines race locally",
                   what, stopped->version, stopped->from));
}

Json rollout_json(const Serving& serving, const std::vector<Machine>& machines, const CanaryReport& canaries,
                  std::int64_t now_us) {
  Json json{{"schema", 1}};
  std::uint64_t newest = 0;
  if (serving.checked && serving.checked->manifest) {
    const ManifestDocument& manifest = *serving.checked->manifest;
    newest = manifest.version;
    json["manifest"] =
        Json{{"version", manifest.version}, {"channel", manifest.channel}, {"product", manifest.product}};
    put_time(json["manifest"], "issued", manifest.issued_us);
    put_time(json["manifest"], "expires", manifest.expires_us);
    json["manifest"]["percent"] = manifest.percent;
    json["manifest"]["expired"] = manifest.expires_us <= now_us;
  }
  if (serving.stopped()) {
    const StopDocument& stop = *serving.checked->stop;
    json["stop"] = Json{{"version", stop.version}, {"from", stop.from}};
    put_time(json["stop"], "issued", stop.issued_us);
  }
  put_text(json, "problem", serving.problem.empty() ? canaries.problem : serving.problem);
  struct Count {
    std::size_t machines = 0, canaries = 0;
  };
  std::map<std::string, Count> by_version;
  Json stragglers = Json::array();
  std::size_t senders = 0;
  for (const Machine& machine : machines) {
    if (!is_sender(machine)) continue;
    ++senders;
    Count& count = by_version[machine.manifest];
    ++count.machines;
    count.canaries += machine.canary;
    const auto follows = parse_integer(machine.manifest);
    if (newest > 0 && (!follows || static_cast<std::uint64_t>(std::max<std::int64_t>(*follows, 0)) < newest))
      stragglers.push_back(machine.id);
  }
  json["machines"] = senders;
  json["by_version"] = Json::array();
  for (const auto& [version, count] : by_version) {
    Json row = Json::object();
    put_text(row, "manifest", version);
    row["machines"] = count.machines;
    row["canaries"] = count.canaries;
    json["by_version"].push_back(std::move(row));
  }
  json["stragglers"] = std::move(stragglers);
  json["canaries"] =
      Json{{"machines", canaries.machines}, {"races", canaries.races}, {"regressions", canaries.regressions}};
  put_text(json["canaries"], "why", canaries.why);
  return json;
}

}  // namespace furlong::fleet
