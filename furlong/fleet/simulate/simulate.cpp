#include "furlong/fleet/simulate/simulate.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "furlong/base/hash.h"
#include "furlong/base/json.h"
#include "furlong/base/os/clock.h"
#include "furlong/fleet/simulate/internal/noise.h"
#include "furlong/fleet/simulate/internal/race.h"

namespace furlong::fleet {
namespace {

using namespace internal;

constexpr int pinned_race_every = 20;

Status check_range(std::string_view name, double value, double low, double high) {
  if (value >= low && value <= high) return {};
  return fail(Code::invalid, "{}: {} is not between {} and {}", name, value, low, high);
}

Status check(const SimulateOptions& options) {
  constexpr std::int64_t latest_us = 4'102'444'800'000'000;
  FURLONG_CHECK(check_range("machines", static_cast<double>(options.machines), 1, 1e6));
  FURLONG_CHECK(check_range("days", options.days, 1e-3, 36'500));
  FURLONG_CHECK(check_range("epoch_s", options.epoch_s, 1, 86'400));
  FURLONG_CHECK(check_range("most_cards", options.most_cards, 1, 8));
  FURLONG_CHECK(check_range("noise", options.noise, 0, 1000));
  FURLONG_CHECK(check_range("margin_pct", options.margin_pct, 0, 5));
  for (const auto& [name, share] : {std::pair<std::string_view, double>{"tuned_share", options.tuned_share},
                                    {"pinned_share", options.pinned_share},
                                    {"guest_share", options.guest_share},
                                    {"absent_share", options.absent_share},
                                    {"short_budget_share", options.short_budget_share},
                                    {"dead_heat_share", options.dead_heat_share}})
    FURLONG_CHECK(check_range(name, share, 0, 1));
  if (options.from_us < earliest_simulated_us || options.from_us > latest_us)
    return fail(Code::invalid, "from_us: {} is not between 1990 and 2100", options.from_us);
  return {};
}

/// Something that a card does in every epoch, at a time of its own.
struct Event {
  std::uint32_t at_ms, box;
  std::uint16_t slot, program;
};

struct EpochTexts {
  std::uint64_t number = UINT64_MAX;
  std::string epoch, source;
};

}  // namespace

struct Simulation::State {
  SimulateOptions options;
  World world;
  Fleet fleet;
  std::vector<Event> events;
  std::uint64_t epochs = 0;
  std::uint64_t epoch_us = 0;
  std::uint64_t epoch = 0;
  std::size_t event = 0;
  std::size_t machine = 0;
  Draft draft;
  DraftTexts texts;
  std::vector<EpochTexts> epoch_texts;  // few, by number: clocks that are off live in other epochs
  std::vector<std::string> sources;     // of programs without epoch
  std::shared_ptr<const record::Tuning> followed;
  mutable std::optional<record::Tuning> own_tuning;

  void schedule();
  bool step();
  bool begin(const Event& each);
  void choose_order(std::uint64_t prepare);
  std::uint64_t gemv_day(const Event& each) const;
  void set_texts(const Program& program, std::uint64_t number);
  std::array<double, cap_count> spread(std::size_t model) const;
  std::string newest_driver(std::size_t model, std::int64_t at_us) const;
  std::uint64_t lottery_class(std::uint64_t number) const {
    return mix(options.seed ^ 0x636c'6173'73, number) % programs()[0].classes.size();
  }
};

void Simulation::State::schedule() {
  const auto epoch_ms = static_cast<std::uint64_t>(options.epoch_s * 1e3);
  for (std::size_t i = 0; i < fleet.boxes.size(); ++i) {
    const Box& box = fleet.boxes[i];
    for (const std::size_t program : world.programs) {
      if (!world.has(box.model, program)) continue;
      for (std::size_t slot = 0; slot < box.slots.size(); ++slot) {
        // Within the first four fifths; what is not the lottery has the rest of the hour.
        const double u = unit(mix(mix(box.seed, slot), 50 + program));
        const double from = program == 0 ? 0 : 0.8, to = program == 0 ? 0.8 : 1;
        const auto at = static_cast<std::uint32_t>((from + (to - from) * u) * static_cast<double>(epoch_ms));
        events.push_back({at, static_cast<std::uint32_t>(i), static_cast<std::uint16_t>(slot),
                          static_cast<std::uint16_t>(program)});
      }
    }
  }
  std::ranges::sort(events, {}, [](const Event& each) {
    return std::tuple(each.at_ms, each.box, each.slot, each.program);
  });
}

std::array<double, cap_count> Simulation::State::spread(std::size_t model) const {
  std::array<double, cap_count> weights{};
  for (std::size_t i = 0; i < fleet.boxes.size(); ++i)
    if (fleet.boxes[i].model == model && fleet.machines[i].role == SimulatedRole::honest)
      weights[fleet.boxes[i].cap] += 1;
  return weights;
}

std::string Simulation::State::newest_driver(std::size_t model, std::int64_t at_us) const {
  std::string newest;
  for (std::size_t i = 0; i < fleet.boxes.size(); ++i) {
    if (fleet.boxes[i].model != model) continue;
    const std::string& driver = driver_at(fleet.machines[i], at_us);
    if (newest.empty() || record::compare_drivers(newest, driver) < 0) newest = driver;
  }
  return newest;
}

void Simulation::State::set_texts(const Program& program, std::uint64_t number) {
  if (!program.has_epoch) {
    texts = {{}, sources[static_cast<std::size_t>(&program - programs().data())]};
    return;
  }
  EpochTexts& entry = epoch_texts[number % epoch_texts.size()];
  if (entry.number != number) {
    entry.number = number;
    entry.epoch = fmt::format("{:016x}", mix(options.seed ^ 0x6570'6f63'68, number));
    entry.source = blake2b_256(fmt::format("simulated {} {}", program.name, entry.epoch)).hex();
  }
  texts = {entry.epoch, entry.source};
}

void Simulation::State::choose_order(std::uint64_t prepare) {
  const std::vector<TrueVariant>& variants = draft.subject->variants;
  draft.order.clear();
  draft.order.push_back(0);
  draft.tuned = draft.pinned = false;
  const auto add = [&](const std::string& name) {
    const auto at = std::ranges::find(variants, name, &TrueVariant::name);
    if (at == variants.end()) return false;
    const auto number = static_cast<std::size_t>(at - variants.begin());
    if (std::ranges::find(draft.order, number) == draft.order.end()) draft.order.push_back(number);
    return true;
  };
  const record::Tuning* tuning = followed.get();
  if (tuning == nullptr && draft.machine->tuned) tuning = &*own_tuning;
  if (tuning != nullptr) {
    const record::TuningMatch match = record::find_tuning(
        *tuning, {.silicon = models()[draft.subject->model].silicon,
                  .label = draft.machine->label,
                  .program = draft.subject->subject.program,
                  .program_class = programs()[draft.subject->program].classes[draft.subject->program_class],
                  .driver = *draft.driver});
    if (match.row != nullptr) {
      const bool may_pin = followed != nullptr || draft.machine->pinned;
      if (may_pin && !record::races_now(*match.row, prepare) && add(match.row->variant)) {
        draft.pinned = true;
        return;
      }
      if (match.row->candidates.empty()) add(match.row->variant);
      for (const std::string& name : match.row->candidates) add(name);
      draft.tuned = draft.order.size() > 1;
    }
  }
  for (std::size_t i = 1; i < variants.size(); ++i)
    if (std::ranges::find(draft.order, i) == draft.order.end()) draft.order.push_back(i);
}

bool Simulation::State::begin(const Event& each) {
  const SimulatedMachine& box = fleet.machines[each.box];
  const std::int64_t at_us =
      options.from_us + static_cast<std::int64_t>(epoch * epoch_us) + each.at_ms * 1000ll;
  if (at_us < box.from_us || at_us >= box.to_us) return false;
  const std::uint64_t seed = mix(mix(fleet.boxes[each.box].seed, each.slot * 16ull + each.program), epoch);
  if (unit(mix(seed, 3)) < options.absent_share) return false;
  const Program& program = programs()[each.program];
  // Agents go by their own clock.
  const auto number =
      static_cast<std::uint64_t>(std::max<std::int64_t>(at_us + box.clock_off_us, 0)) / epoch_us;
  std::uint64_t program_class = 0;
  if (program.has_epoch) {
    program_class = lottery_class(number);
  } else {
    const auto a_day = std::max<std::uint64_t>(1, 86'400'000'000ull / epoch_us);
    if (epoch % a_day != mix(fleet.boxes[each.box].seed, each.slot) % a_day) return false;
    program_class = (epoch / a_day + each.box) % program.classes.size();
  }
  machine = each.box;
  draft.machine = &box;
  draft.box = &fleet.boxes[each.box];
  draft.slot = each.slot;
  draft.subject = &world.subjects[world.subject(draft.box->model, each.program, program_class)];
  draft.driver = &driver_at(box, at_us);
  draft.true_ts_us = at_us;
  draft.seed = seed;
  choose_order(epoch + mix(fleet.boxes[each.box].seed, each.slot) % pinned_race_every + 1);
  set_texts(program, number);
  run_race(options, world, draft);
  return true;
}

bool Simulation::State::step() {
  while (epoch < epochs) {
    while (event < events.size())
      if (begin(events[event++])) return true;
    event = 0;
    ++epoch;
  }
  return false;
}

Simulation::Simulation(std::unique_ptr<State> state) : state_(std::move(state)) {}
Simulation::~Simulation() = default;

Result<std::unique_ptr<Simulation>> Simulation::make(const SimulateOptions& options) {
  FURLONG_CHECK(check(options));
  auto state = std::make_unique<State>();
  state->options = options;
  FURLONG_TRY(state->world, make_world(options));
  FURLONG_TRY(state->fleet, make_fleet(options, state->world));
  state->epoch_us = static_cast<std::uint64_t>(options.epoch_s * 1e6);
  state->epochs =
      static_cast<std::uint64_t>(std::ceil(options.days * 86'400e6 / static_cast<double>(state->epoch_us)));
  state->epoch_texts.resize(64);
  for (const Program& program : programs())
    state->sources.push_back(blake2b_256(fmt::format("simulated {}", program.name)).hex());
  state->schedule();
  std::unique_ptr<Simulation> simulation(new Simulation(std::move(state)));
  simulation->state_->own_tuning = simulation->true_tuning();
  return simulation;
}

const SimulateOptions& Simulation::options() const { return state_->options; }
const std::vector<SimulatedMachine>& Simulation::machines() const { return state_->fleet.machines; }
KeyPair Simulation::key(std::size_t machine) const { return key_of(state_->fleet.boxes.at(machine)); }
std::size_t Simulation::machine() const { return state_->machine; }
std::int64_t Simulation::true_ts_us() const { return state_->draft.true_ts_us; }
double Simulation::progress() const {
  return static_cast<double>(state_->epoch) / static_cast<double>(state_->epochs);
}
void Simulation::follow(std::shared_ptr<const record::Tuning> tuning) {
  state_->followed = std::move(tuning);
}

bool Simulation::next(record::RaceRecord& record) {
  if (!state_->step()) return false;
  write_down(state_->draft, state_->texts, record);
  return true;
}

bool Simulation::next(DecodedRace& race) {
  if (!state_->step()) return false;
  write_down(state_->draft, state_->texts, race);
  return true;
}

Truth Simulation::truth(std::optional<std::int64_t> at_us) const {
  const State& state = *state_;
  Truth truth;
  truth.at_us =
      at_us.value_or(state.options.from_us + static_cast<std::int64_t>(state.options.days * 86'400e6) - 1);
  truth.regressions = state.world.planted;
  for (const TrueSubject& each : state.world.subjects) {
    const auto weights = state.spread(each.model);
    TruthSubject subject{.subject = each.subject, .model = std::string(models()[each.model].name)};
    double all[cap_count] = {};
    const std::string driver = state.newest_driver(each.model, truth.at_us);
    for (std::size_t cap = 0; cap < cap_count; ++cap) {
      if (weights[cap] == 0) continue;
      double one[cap_count] = {};
      one[cap] = 1;
      all[cap] = weights[cap];
      subject.machines += static_cast<std::size_t>(weights[cap]);
      subject.caps.push_back(truth_row(state.world, each, one, driver, truth.at_us));
      subject.caps.back().cap_pct = caps_pct[cap];
    }
    if (subject.machines == 0) continue;
    subject.overall = truth_row(state.world, each, all, driver, truth.at_us);
    subject.overall.cap_pct = 0;
    for (std::size_t i = 0; i < state.fleet.machines.size(); ++i)
      if (state.fleet.boxes[i].model == each.model) subject.labels.push_back(state.fleet.machines[i].label);
    std::ranges::sort(subject.labels);
    subject.labels.erase(std::ranges::unique(subject.labels).begin(), subject.labels.end());
    truth.subjects.push_back(std::move(subject));
  }
  std::ranges::sort(truth.subjects, {}, &TruthSubject::subject);
  return truth;
}

record::Tuning Simulation::true_tuning() const {
  record::Tuning tuning{.updated = iso_time(state_->options.from_us), .window_days = 7};
  const Truth at_begin = truth(state_->options.from_us);
  for (const std::size_t model : state_->world.models) {
    record::TuningCard card{.silicon = models()[model].silicon};
    const std::string label(models()[model].labels.front());
    card.key = label + "@" + card.silicon->hash;
    for (const TruthSubject& subject : at_begin.subjects) {
      if (subject.model != models()[model].name) continue;
      const auto& program = *std::ranges::find(programs(), subject.subject.program, &Program::name);
      for (std::size_t i = 0; i < program.classes.size(); ++i) {
        const TrueSubject& each = state_->world.subjects[state_->world.subject(
            model, static_cast<std::size_t>(&program - programs().data()), i)];
        if (each.subject != subject.subject) continue;
        record::TuningRow row{.program = subject.subject.program, .program_class = program.classes[i]};
        row.variant = subject.overall.best;
        row.race = false;
        row.race_every_n = pinned_race_every;
        row.backend = subject.subject.backend;
        row.by = program.name == "lottery" ? "mhs" : "rate";
        for (const auto& [name, gain] : subject.overall.gains)
          if (name != "base" && gain >= subject.overall.gain_pct - 1) row.candidates.push_back(name);
        row.candidates.emplace_back("base");
        card.rows.push_back(std::move(row));
      }
    }
    if (!card.rows.empty()) tuning.cards.push_back(std::move(card));
  }
  return tuning;
}

}  // namespace furlong::fleet
