#include "furlong/fleet/simulate/internal/fleet.h"

#include <algorithm>
#include <numeric>

#include "furlong/base/hash.h"
#include "furlong/base/random.h"
#include "furlong/fleet/simulate/internal/noise.h"

namespace furlong::fleet::internal {
namespace {

constexpr std::int64_t hour_us = 3'600'000'000, day_us = 24 * hour_us;
constexpr double machine_spread = 4;  // cards of one model differ more than copies of a kernel on one card

std::int64_t end_of(const SimulateOptions& options) {
  return options.from_us + static_cast<std::int64_t>(options.days * day_us);
}

void add_slots(const SimulateOptions& options, Random& random, SimulatedMachine& machine, Box& box) {
  const Model& model = models()[box.model];
  // Most machines have one card or two.
  auto count = static_cast<int>(1 + random.below(2));
  if (random.below(4) == 0) count = static_cast<int>(random.between(1, 8));
  count = std::min(count, options.most_cards);
  for (int i = 0; i < count; ++i) {
    Slot slot{.seed = random.next()};
    slot.level = 1 + options.noise * machine_spread * draw(level_noise_pct, random) / 100;
    // As the worker makes it of the card's UUID.
    machine.slots.push_back(
        blake2b_256("simulated card " + to_hex(as_bytes(std::to_string(slot.seed)))).brief());
    box.slots.push_back(slot);
  }
  const auto label = random.below(model.labels.size());
  machine.label = std::string(model.labels[label]);
}

void add_drivers(const SimulateOptions& options, Random& random, std::span<const std::string_view> versions,
                 SimulatedMachine& machine) {
  std::size_t version = random.below((versions.size() + 1) / 2);
  machine.drivers = {{machine.from_us, std::string(versions[version])}};
  // About every ten days a newer one, so that most weeks see two or three side by side.
  std::int64_t at = machine.from_us;
  while (version + 1 < versions.size()) {
    at += static_cast<std::int64_t>((1 + 18 * random.uniform()) * day_us);
    if (at >= std::min(machine.to_us, end_of(options))) break;
    version += 1 + random.below(versions.size() - 1 - version);
    machine.drivers.emplace_back(at, versions[version]);
  }
}

/// Machines of these models take the driver of a planted regression when it begins, and not before.
void plant_drivers(const SimulateOptions& options, const World& world, std::uint64_t seed, std::size_t model,
                   SimulatedMachine& machine) {
  for (const Regressed& each : world.regressions) {
    if (each.driver.empty() || each.model != model) continue;
    const auto versions = models()[model].drivers;
    std::string before(versions.front());
    for (const std::string_view version : versions)
      if (record::compare_drivers(version, each.driver) < 0) before = std::string(version);
    std::erase_if(machine.drivers, [&](const auto& change) {
      return change.first > machine.from_us && record::compare_drivers(change.second, each.driver) >= 0;
    });
    for (auto& [from_us, driver] : machine.drivers)
      if (record::compare_drivers(driver, each.driver) >= 0) driver = before;
    // Not all on one day, and not all.
    if (unit(mix(seed, 77)) < 0.2) continue;
    const std::int64_t at = each.from_us + static_cast<std::int64_t>(unit(mix(seed, 78)) * 6 * hour_us);
    if (at <= machine.from_us) {
      machine.drivers = {{machine.from_us, each.driver}};
    } else if (at < end_of(options)) {
      std::erase_if(machine.drivers, [&](const auto& change) { return change.first >= at; });
      machine.drivers.emplace_back(at, each.driver);
    }
  }
}

void add_one(const SimulateOptions& options, const World& world, std::size_t number, Fleet& fleet) {
  Random random(mix(options.seed, 0x6d61'6368'696e'6500 + number));
  SimulatedMachine machine;
  Box box{.key_seed = random.next(), .seed = random.next()};
  box.model = world.models[number % world.models.size()];
  const Model& model = models()[box.model];
  machine.model = std::string(model.name);
  machine.silicon = model.silicon.hash;
  machine.backend = std::string(model.backend);
  add_slots(options, random, machine, box);
  const bool uncapped = random.below(5) < 2;
  box.cap = !options.capped || model.power_w <= 0 || uncapped ? 0 : 1 + random.below(cap_count - 1);
  machine.cap_pct = caps_pct[box.cap];
  machine.from_us = options.from_us;
  machine.to_us = end_of(options);
  const double whole = static_cast<double>(machine.to_us - machine.from_us);
  if (random.uniform() < options.guest_share) {
    const auto part = static_cast<std::int64_t>((0.1 + 0.7 * random.uniform()) * whole);
    (random.below(2) == 0 ? machine.from_us : machine.to_us) = options.from_us + part;
  }
  add_drivers(options, random, model.drivers, machine);
  plant_drivers(options, world, box.seed, box.model, machine);
  machine.pinned = random.uniform() < options.pinned_share;
  machine.tuned = machine.pinned || random.uniform() < options.tuned_share;
  fleet.machines.push_back(std::move(machine));
  fleet.boxes.push_back(std::move(box));
}

/// A variant that it would like to win: one that is never the best where that can be had.
std::string favourite(const World& world, std::size_t model, std::uint64_t seed) {
  const TrueSubject* subject = nullptr;
  std::vector<int> won;
  for (const TrueSubject& each : world.subjects) {
    if (each.model != model) continue;
    if (subject == nullptr) {
      subject = &each;
      won.assign(each.variants.size(), 0);
    }
    if (each.program != subject->program) continue;
    const auto best =
        std::ranges::max_element(each.variants, {}, [](const auto& v) { return v.gain_pct[0]; });
    ++won[static_cast<std::size_t>(best - each.variants.begin())];
  }
  std::vector<std::size_t> order(won.size() - 1);
  std::iota(order.begin(), order.end(), 1);
  Random random(seed);
  random.shuffle(std::span(order));
  std::erase_if(order, [&](std::size_t i) { return subject->variants[i].fate != Exit::stayed; });
  const auto least = std::ranges::min_element(order, {}, [&](std::size_t i) { return won[i]; });
  return subject->variants[*least].name;
}

class Roles {
 public:
  Roles(const SimulateOptions& options, Fleet& fleet)
      : fleet_(fleet), random_(mix(options.seed, 0x726f'6c65)) {
    order_.resize(fleet.machines.size());
    std::iota(order_.begin(), order_.end(), 0);
    random_.shuffle(std::span(order_));
  }
  /// The next honest machine that has none, `unpinned` so that what it says is seen.
  SimulatedMachine& take(SimulatedRole role) {
    SimulatedMachine& machine = fleet_.machines[order_[next_]];
    taken_ = order_[next_++];
    machine.role = role;
    return machine;
  }
  std::size_t taken() const { return taken_; }
  /// One that stays honest, of the same model where there is one.
  std::size_t original(std::size_t from) {
    std::size_t found = order_.back();
    for (std::size_t i = order_.size(); i > from; --i) {
      found = order_[i - 1];
      if (fleet_.boxes[found].model == fleet_.boxes[taken_].model) break;
    }
    return found;
  }

 private:
  Fleet& fleet_;
  Random random_;
  std::vector<std::size_t> order_;
  std::size_t next_ = 0, taken_ = 0;
};

void copy_cards(Fleet& fleet, std::size_t from, std::size_t to) {
  const SimulatedMachine& original = fleet.machines[from];
  SimulatedMachine& machine = fleet.machines[to];
  machine.model = original.model;
  machine.silicon = original.silicon;
  machine.backend = original.backend;
  machine.label = original.label;
  machine.slots = original.slots;
  machine.cap_pct = original.cap_pct;
  machine.drivers = original.drivers;
  machine.from_us = original.from_us;
  machine.to_us = original.to_us;
  Box& box = fleet.boxes[to];
  box.model = fleet.boxes[from].model;
  box.cap = fleet.boxes[from].cap;
  box.slots = fleet.boxes[from].slots;
}

void give_roles(const SimulateOptions& options, const World& world, Fleet& fleet) {
  Roles roles(options, fleet);
  const std::size_t with_role = options.liars + options.clones + options.shared_cards;
  constexpr SimulatedRole kinds[] = {SimulatedRole::inflates, SimulatedRole::above_ceiling,
                                     SimulatedRole::wrong_base};
  for (std::size_t i = 0; i < options.liars; ++i) {
    SimulatedMachine& liar = roles.take(kinds[i % 3]);
    const Box& box = fleet.boxes[roles.taken()];
    liar.favourite = favourite(world, box.model, box.seed);
    liar.pinned = liar.tuned = false;
  }
  for (std::size_t i = 0; i < options.clones; ++i) {
    SimulatedMachine& clone = roles.take(SimulatedRole::key_clone);
    clone.of = roles.original(with_role);
    fleet.boxes[roles.taken()].key_seed = fleet.boxes[*clone.of].key_seed;
  }
  for (std::size_t i = 0; i < options.shared_cards; ++i) {
    SimulatedMachine& clone = roles.take(SimulatedRole::card_clone);
    clone.of = roles.original(with_role);
    copy_cards(fleet, *clone.of, roles.taken());
  }
  Random random(mix(options.seed, 0x636c'6f63));
  for (std::size_t i = 0; i < options.clocks_off; ++i) {
    SimulatedMachine& machine = roles.take(SimulatedRole::honest);
    const std::int64_t sign = random.below(2) == 0 ? 1 : -1;
    machine.clock_off_us =
        sign * (i % 2 == 0 ? random.between(1, 20) * hour_us : random.between(1, 6) * 365 * day_us);
  }
  for (std::size_t i = 0; i < options.canaries; ++i) roles.take(SimulatedRole::honest).canary = true;
}

}  // namespace

KeyPair key_of(const Box& box) {
  const Digest seed = blake2b_256(fmt::format("furlong simulated machine {:016x}", box.key_seed));
  // A seed of 32 bytes is always one.
  return *KeyPair::from_seed(seed.bytes);
}

Result<Fleet> make_fleet(const SimulateOptions& options, const World& world) {
  const std::size_t roles =
      options.liars + options.clones + options.shared_cards + options.clocks_off + options.canaries;
  if (roles >= options.machines)
    return fail(
        Code::invalid,
        "{} liars, {} clones, {} with shared cards, {} with wrong clocks and {} canaries leave none of {} "
        "machines as it should be",
        options.liars, options.clones, options.shared_cards, options.clocks_off, options.canaries,
        options.machines);
  Fleet fleet;
  fleet.machines.reserve(options.machines);
  for (std::size_t i = 0; i < options.machines; ++i) add_one(options, world, i, fleet);
  give_roles(options, world, fleet);
  for (std::size_t i = 0; i < options.machines; ++i)
    fleet.machines[i].id = key_of(fleet.boxes[i]).public_key.id();
  return fleet;
}

const std::string& driver_at(const SimulatedMachine& machine, std::int64_t at_us) {
  std::size_t now = 0;
  while (now + 1 < machine.drivers.size() && machine.drivers[now + 1].first <= at_us) ++now;
  return machine.drivers[now].second;
}

}  // namespace furlong::fleet::internal

namespace furlong::fleet {

std::string_view simulated_role_name(SimulatedRole role) {
  switch (role) {
    case SimulatedRole::honest:
      return "honest";
    case SimulatedRole::inflates:
      return "inflates";
    case SimulatedRole::above_ceiling:
      return "above-ceiling";
    case SimulatedRole::wrong_base:
      return "wrong-base";
    case SimulatedRole::key_clone:
      return "key-clone";
    case SimulatedRole::card_clone:
      return "card-clone";
  }
  return "honest";
}

}  // namespace furlong::fleet
