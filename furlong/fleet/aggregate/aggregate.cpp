#include "furlong/fleet/aggregate/aggregate.h"

#include <algorithm>
#include <cmath>

#include "furlong/base/json.h"
#include "furlong/base/text.h"
#include "furlong/fleet/aggregate/internal/cards.h"
#include "furlong/fleet/aggregate/internal/choice.h"
#include "furlong/fleet/aggregate/internal/row.h"
#include "furlong/fleet/aggregate/internal/scan.h"

namespace furlong::fleet {
namespace {

using internal::ScannedCard;
using internal::ScannedRow;

constexpr double day_us = 86400e6;

Status check_options(const AggregateOptions& options) {
  const auto at_least = [](const char* what, double value, double least, double most) -> Status {
    if (value >= least && value <= most) return {};
    return fail(Code::invalid, "{} is {:g}: {:g} to {:g} is wanted", what, value, least, most);
  };
  FURLONG_CHECK(at_least("the window in days", options.window_days, 1e-3, 36500));
  FURLONG_CHECK(at_least("the least number of samples", options.min_samples, 1, 1e9));
  FURLONG_CHECK(at_least("what counts as near in percent", options.near_pct, 0, 100));
  FURLONG_CHECK(at_least("the threshold in percent", options.threshold_pct, 0, 100));
  FURLONG_CHECK(at_least("the races of a stable winner", options.stable_races, 1, 1e9));
  return at_least("the machines of a stable winner", options.stable_machines, 1, 1e9);
}

Window window_of(const AggregateOptions& options, std::int64_t newest_us) {
  Window window;
  window.to_us = options.until_us.value_or(newest_us + 1);
  window.from_us = window.to_us - static_cast<std::int64_t>(std::llround(options.window_days * day_us));
  return window;
}

/// One subject's races to one row. What of `aggregate` is counted here is the caller's to add up.
struct Scanned {
  std::optional<ScannedRow> row;  ///< nullopt: no race in the window
  std::uint64_t races = 0, superseded = 0;
};

Result<Scanned> scan_subject(Store& store, const internal::StoreContents& contents, const SubjectRow& subject,
                             Window window, const AggregateOptions& options) {
  internal::SubjectData data;
  internal::MachineReader reader(contents.known);
  reader.begin(internal::quantity_of(subject.subject, options.by), data);
  FURLONG_CHECK(store.scan(subject.number, window, [&](const RaceRow& row) {
    reader.add(row);
    return true;
  }));
  reader.end();
  Scanned scanned{.row = std::nullopt, .races = data.seen, .superseded = data.superseded};
  if (data.seen == 0) return scanned;
  ScannedRow row{.silicon = subject.silicon};
  const auto& words = contents.names.words;
  for (const auto& machine : data.machines) {
    row.machines.push_back(contents.names.machines[machine.number]);
    for (const WordNumber label : machine.labels) row.labels[words[label]].insert(machine.number);
  }
  for (const auto& [source, machines] : data.sources_seen) row.sources[words[source]] = machines;
  row.machines_with_source = data.machines_with_source;
  for (const WordNumber variant : data.named) row.named.insert(words[variant]);
  row.row = internal::row_of(subject.subject, data, contents.names, options);
  scanned.row = std::move(row);
  return scanned;
}

record::ProgramClass class_of(const Subject& subject) {
  const auto json = json_parse(subject.program_class, "class");
  if (!json) return {};
  return record::class_from_json(*json, "class").value_or(record::ProgramClass());
}

/// What the tuning before had for a card.
const record::TuningCard* previous_card(const AggregateOptions& options, const CardEvidence& card) {
  if (!options.previous) return nullptr;
  const record::TuningCard* found = nullptr;
  std::size_t best = 0;
  static constexpr std::string_view ways[] = {"silicon", "key", "alias", "label"};
  std::vector<std::string> labels = card.aliases;
  labels.push_back(card.label);
  for (const record::TuningCard& previous : options.previous->cards)
    for (const std::string& label : labels) {
      const auto way = record::card_way(previous, {.silicon = card.silicon, .label = label});
      const auto at = static_cast<std::size_t>(std::ranges::find(ways, way) - std::begin(ways));
      if (at == std::size(ways) || (found != nullptr && at >= best)) continue;
      found = &previous;
      best = at;
    }
  return found;
}

/// One machine with the program's old text must not keep the pin of all others.
bool at_least_half_report(const ScannedRow& row, const std::string& source) {
  const auto at = row.sources.find(source);
  return at != row.sources.end() && 2 * at->second >= row.machines_with_source;
}

bool has_variant(const ScannedRow& row, const record::TuningRow* previous, const std::string& variant) {
  return variant == "base" || row.named.contains(variant) ||
         std::ranges::find(row.row.variants, variant, &VariantEvidence::name) != row.row.variants.end() ||
         (previous != nullptr &&
          (previous->variant == variant ||
           std::ranges::find(previous->candidates, variant) != previous->candidates.end()));
}

/// Chooses for all cards, and finds out which pins fitted something.
class Choices {
 public:
  explicit Choices(const AggregateOptions& options)
      : options_(options), fitted_(options.pins.size(), false) {}

  Status choose(ScannedCard& scanned) {
    const record::TuningCard* card = previous_card(options_, scanned.card);
    const bool unpinned = std::ranges::any_of(
        options_.unpin, [&](const std::string& name) { return internal::is_called(scanned.card, name); });
    std::vector<internal::RowMachines> machines;
    for (ScannedRow& row : scanned.rows) {
      const record::TuningRow* previous = card == nullptr ? nullptr : previous_row(*card, row.row.subject);
      internal::RowOrders orders;
      FURLONG_TRY(orders.pin, pin_of(scanned.card, row, previous));
      if (!unpinned) orders.previous = previous;
      if (previous != nullptr && !previous->source.empty())
        orders.previous_source_seen = at_least_half_report(row, previous->source);
      internal::choose(row.row, orders, options_);
      machines.push_back({&row.row, row.machines, previous != nullptr && !previous->backend.empty()});
    }
    internal::choose_back_ends(machines, options_);
    return {};
  }

  /// `invalid` names the first pin that fitted nothing.
  Status all_fitted(const std::vector<ScannedCard>& cards) const {
    for (std::size_t i = 0; i < fitted_.size(); ++i)
      if (!fitted_[i]) return misfit(options_.pins[i], cards);
    for (const std::string& name : options_.unpin)
      if (std::ranges::none_of(cards, [&](const auto& each) { return internal::is_called(each.card, name); }))
        return no_such_card(name, cards);
    return {};
  }

  static Error no_such_card(std::string_view name, const std::vector<ScannedCard>& cards) {
    std::vector<std::string> names;
    for (const ScannedCard& each : cards) {
      names.push_back(each.card.key);
      names.insert(names.end(), each.card.aliases.begin(), each.card.aliases.end());
    }
    return fail(Code::invalid, "no card '{}' has races in the window{}", one_line(name.substr(0, 200)),
                nearest_choices(name, names));
  }

 private:
  static const record::TuningRow* previous_row(const record::TuningCard& card, const Subject& subject) {
    const record::ProgramClass wanted = class_of(subject);
    for (const record::TuningRow& row : card.rows)
      if (row.program == subject.program && record::same_class(row.program_class, wanted) &&
          (row.backend.empty() || row.backend == subject.backend))
        return &row;
    return nullptr;
  }

  Result<const Pin*> pin_of(const CardEvidence& card, const ScannedRow& row,
                            const record::TuningRow* previous) {
    const Pin* found = nullptr;
    for (std::size_t i = 0; i < options_.pins.size(); ++i) {
      const Pin& pin = options_.pins[i];
      if (!internal::is_called(card, pin.card) ||
          (!pin.program.empty() && pin.program != row.row.subject.program) ||
          !has_variant(row, previous, pin.variant))
        continue;
      fitted_[i] = true;
      if (found != nullptr && found->variant != pin.variant)
        return fail(Code::invalid, "two pins for {} and program {}: '{}' and '{}'", card.key,
                    row.row.subject.program, one_line(found->variant), one_line(pin.variant));
      found = &pin;
    }
    return found;
  }

  static Error misfit(const Pin& pin, const std::vector<ScannedCard>& cards) {
    std::vector<std::string> programs, variants;
    bool card_there = false;
    for (const ScannedCard& each : cards) {
      if (!internal::is_called(each.card, pin.card)) continue;
      card_there = true;
      for (const ScannedRow& row : each.rows) {
        programs.push_back(row.row.subject.program);
        if (!pin.program.empty() && pin.program != row.row.subject.program) continue;
        for (const VariantEvidence& variant : row.row.variants) variants.push_back(variant.name);
      }
    }
    if (!card_there) return Error(no_such_card(pin.card, cards)).with("pin");
    const auto dedupe = [](std::vector<std::string>& names) {
      std::ranges::sort(names);
      names.erase(std::ranges::unique(names).begin(), names.end());
    };
    dedupe(programs);
    dedupe(variants);
    if (!pin.program.empty() && std::ranges::find(programs, pin.program) == programs.end())
      return fail(Code::invalid, "pin: {} has no races of program '{}'{}", one_line(pin.card),
                  one_line(pin.program), nearest_choices(pin.program, programs));
    return fail(Code::invalid, "pin: {} has not raced '{}'{}", one_line(pin.card), one_line(pin.variant),
                nearest_choices(pin.variant, variants));
  }

  const AggregateOptions& options_;
  std::vector<bool> fitted_;
};

}  // namespace

std::string_view choice_name(Choice choice) {
  switch (choice) {
    case Choice::none:
      return "none";
    case Choice::race:
      return "race";
    case Choice::pinned_by_operator:
      return "pinned-by-operator";
    case Choice::pinned_by_stability:
      return "pinned-by-stability";
  }
  return "none";
}

Result<Aggregate> aggregate(const OpenStore& open, const AggregateOptions& options) {
  FURLONG_CHECK(check_options(options));
  FURLONG_TRY(std::unique_ptr<Store> store, open());
  FURLONG_TRY(const internal::StoreContents contents, internal::read_contents(*store));
  Aggregate result{.options = options, .window = window_of(options, contents.newest_us)};
  std::vector<Scanned> scanned(contents.subjects.size());
  FURLONG_CHECK(internal::for_each_subject(
      open, std::move(store), scanned.size(), options.threads, [&](Store& own, std::size_t i) -> Status {
        FURLONG_TRY(scanned[i], scan_subject(own, contents, contents.subjects[i], result.window, options));
        return {};
      }));
  std::vector<ScannedRow> rows;
  for (Scanned& each : scanned) {
    result.races += each.races;
    result.superseded += each.superseded;
    if (each.row) rows.push_back(std::move(*each.row));
  }
  std::vector<ScannedCard> cards = internal::make_cards(std::move(rows));
  Choices choices(options);
  for (ScannedCard& card : cards) FURLONG_CHECK(choices.choose(card));
  FURLONG_CHECK(choices.all_fitted(cards));
  for (ScannedCard& scanned_card : cards) {
    for (ScannedRow& row : scanned_card.rows) {
      result.updated_us = std::max(result.updated_us, row.row.newest_us);
      scanned_card.card.rows.push_back(std::move(row.row));
    }
    std::ranges::sort(scanned_card.card.rows, {}, [](const RowEvidence& row) {
      return std::tie(row.subject.program, row.subject.program_class, row.subject.backend, row.subject.metric,
                      row.subject.unit);
    });
    result.cards.push_back(std::move(scanned_card.card));
  }
  return result;
}

Result<CardEvidence> explain(const OpenStore& open, std::string_view card, const AggregateOptions& options) {
  FURLONG_TRY(Aggregate all, aggregate(open, options));
  return find_card(std::move(all.cards), card);
}

Result<CardEvidence> find_card(std::vector<CardEvidence> cards, std::string_view name) {
  std::vector<std::string> names, called;
  CardEvidence* found = nullptr;
  for (CardEvidence& card : cards) {
    names.push_back(card.key);
    names.insert(names.end(), card.aliases.begin(), card.aliases.end());
    if (card.key == name) return std::move(card);
    if (!internal::is_called(card, name)) continue;
    found = &card;
    called.push_back(card.key);
  }
  if (called.size() > 1)
    return fail(Code::invalid, "'{}' is the name of {} cards: say {}", one_line(name), called.size(),
                join(called, " or "));
  if (found == nullptr)
    return fail(Code::invalid, "no card '{}' has races in the window{}", one_line(name.substr(0, 200)),
                nearest_choices(name, names));
  return std::move(*found);
}

}  // namespace furlong::fleet
