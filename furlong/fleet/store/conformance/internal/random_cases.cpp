// Random deliveries, against the plain reference in memory.
#include <algorithm>

#include "furlong/fleet/store/conformance/internal/rig.h"
#include "furlong/fleet/store/memory/memory.h"

namespace furlong::fleet::conformance {
namespace {

const std::vector<std::string> senders{"import:a", "import:b", "import:c"};

/// Few values for each part of the key, so that races replace each other all the time.
DecodedRace random_race(Random& random, std::uint32_t number) {
  DecodedRace race = a_race(number, static_cast<std::int64_t>(random.below(12)));
  race.slot = fmt::format("slot {}", random.below(2));
  race.source = fmt::format("source {}", random.below(2));
  race.epoch = random.below(4) == 0 ? "" : fmt::format("{:016x}", random.below(3));
  race.subject.program = fmt::format("program {}", random.below(2));
  if (random.below(3) == 0) race.subject.metric = "energy";
  race.driver = fmt::format("{}.1", random.below(30));
  race.winner = random.below(3) == 0 ? "" : fmt::format("v{}", random.below(20));
  race.verdict = static_cast<record::Verdict>(random.below(6));
  race.variants.resize(random.below(6));
  for (VariantGain& variant : race.variants) {
    variant = {.name = fmt::format("v{}", random.below(20))};
    if (random.below(3) > 0) variant.gain_pct = static_cast<float>(random.uniform() * 8 - 4);
    if (random.below(3) > 0) variant.rate = static_cast<float>(random.uniform() * 100);
    variant.exit = static_cast<Exit>(random.below(10));
    variant.fallback = random.below(8) == 0;
  }
  return race;
}

/// A race belongs to one machine; machines send theirs several times, in any order.
struct World {
  std::vector<DecodedRace> races;
  std::vector<std::string> owners;
};

World random_world(Random& random) {
  World world;
  for (std::uint32_t i = 1; i <= 90; ++i) {
    world.races.push_back(random_race(random, i));
    world.owners.push_back(senders[random.below(senders.size())]);
  }
  return world;
}

std::vector<IncomingBatch> random_batches(Random& random, const World& world, std::size_t count) {
  std::vector<IncomingBatch> batches;
  for (std::size_t i = 0; i < count; ++i) {
    if (!batches.empty() && random.below(5) == 0) {  // sent again, as it was
      batches.push_back(batches[random.below(batches.size())]);
      continue;
    }
    const std::string& sender = senders[random.below(senders.size())];
    std::vector<DecodedRace> some;
    for (std::size_t n = random.below(9); n > 0; --n) {
      const std::size_t at = random.below(world.races.size());
      if (world.owners[at] == sender) some.push_back(world.races[at]);
    }
    IncomingBatch batch = a_batch(sender, static_cast<std::uint32_t>(i), some);
    if (random.below(3) == 0) add_refused(batch, fmt::format("refusal {}", i));
    if (random.below(2) == 0) batch.agent = fmt::format("0.{}", random.below(5)), batch.manifest = "m";
    batch.canary = random.below(10) == 0;
    batches.push_back(std::move(batch));
  }
  return batches;
}

Result<std::unique_ptr<Store>> with_senders(Result<std::unique_ptr<Store>> store) {
  if (!store) return store;
  for (const std::string& sender : senders) FURLONG_CHECK((*store)->add_importer(sender.substr(7), 1));
  return store;
}

/// Adds them to both in transactions of random sizes; the outcomes must be the same.
Status add_to_both(Random& random, Store& store, Store& reference, std::span<const IncomingBatch> batches) {
  for (std::size_t at = 0; at < batches.size();) {
    const std::size_t count = std::min(batches.size() - at, std::size_t{1} + random.below(6));
    FURLONG_TRY(const auto outcomes, store.add(batches.subspan(at, count)));
    FURLONG_TRY(const auto expected, reference.add(batches.subspan(at, count)));
    for (std::size_t i = 0; i < count; ++i)
      FURLONG_WANT(outcomes[i].fates == expected[i].fates, "batch {} of the delivery at {}", i, at);
    at += count;
  }
  return {};
}

Status compare(Store& store, Store& reference, std::string_view when) {
  FURLONG_TRY(const auto content, store_content(store));
  FURLONG_TRY(const auto expected, store_content(reference));
  FURLONG_WANT(content == expected, "{}:\n{}", when, content_difference(expected, content));
  return {};
}

Status random_deliveries_end_as_in_the_reference(const MakePlace& make) {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    Random random(seed, "deliveries");
    FURLONG_TRY(const auto store, with_senders(open_new(make)));
    FURLONG_TRY(const auto reference, with_senders(open_memory_store()));
    const World world = random_world(random);
    FURLONG_CHECK(add_to_both(random, *store, *reference, random_batches(random, world, 40)));
    FURLONG_CHECK(compare(*store, *reference, fmt::format("seed {}", seed)));
    FURLONG_TRY(const std::uint64_t gone, store->prune(6));
    FURLONG_TRY(const std::uint64_t expected, reference->prune(6));
    FURLONG_WANT(gone == expected, "seed {}: {} are gone, expected {}", seed, gone, expected);
    FURLONG_CHECK(compare(*store, *reference, fmt::format("seed {}, pruned", seed)));
    FURLONG_CHECK(add_to_both(random, *store, *reference, random_batches(random, world, 40)));
    FURLONG_CHECK(compare(*store, *reference, fmt::format("seed {}, after that", seed)));
  }
  return {};
}

/// Lines of the races alone: what batches and machines' counts say depends on who came first.
Result<std::vector<std::string>> races_of(Store& store) {
  FURLONG_TRY(std::vector<std::string> lines, store_content(store));
  std::erase_if(lines, [](const std::string& line) { return !line.starts_with("scan "); });
  return lines;
}

Status the_order_of_arrival_changes_nothing(const MakePlace& make) {
  Random random(11);
  const World world = random_world(random);
  std::vector<IncomingBatch> batches = random_batches(random, world, 60);
  std::vector<std::string> first;
  for (int order = 0; order < 3; ++order) {
    FURLONG_TRY(const auto store, with_senders(open_new(make)));
    for (std::size_t at = 0; at < batches.size();) {
      const std::size_t count = std::min(batches.size() - at, std::size_t{1} + random.below(20));
      FURLONG_CHECK(store->add(std::span(batches).subspan(at, count)));
      at += count;
    }
    FURLONG_TRY(const auto lines, races_of(*store));
    if (order == 0) first = lines;
    FURLONG_WANT(!lines.empty() && lines == first, "order {}:\n{}", order, content_difference(first, lines));
    random.shuffle(std::span(batches));
  }
  return {};
}

Status random_enrolments_end_as_in_the_reference(const MakePlace& make) {
  Random random(21);
  FURLONG_TRY(const auto store, open_new(make));
  const auto reference = open_memory_store();
  for (int step = 0; step < 150; ++step) {
    const auto number = static_cast<std::uint8_t>(random.below(6));
    const PublicKey key = a_key(static_cast<std::uint8_t>(random.below(4)));
    const auto now_us = static_cast<std::int64_t>(random.below(1200));
    Token token = a_token(number);
    token.canary = random.below(2) == 0;
    if (random.below(4) == 0) token.replaces = a_key(static_cast<std::uint8_t>(random.below(5))).id();
    const std::uint64_t action = random.below(4);
    const auto act = [&](Store& one) -> Status {
      if (action == 0) return one.add_token(token);
      if (action == 1 && now_us < 100) return one.retire(key.id());
      if (action == 2) return one.set_canary(key.id(), token.canary);
      FURLONG_CHECK(one.enrol(token.digest, key, now_us));
      return {};
    };
    const Status got = act(*store), expected = act(*reference);
    FURLONG_WANT(got.has_value() == expected.has_value(), "step {}", step);
    if (!got)
      FURLONG_WANT(got.error().code() == expected.error().code(), "step {}: {}", step, got.error().text());
  }
  return compare(*store, *reference, "at the end");
}

}  // namespace

std::vector<StoreCase> random_cases() {
  return {{"random_deliveries_end_as_in_the_reference", random_deliveries_end_as_in_the_reference},
          {"the_order_of_arrival_changes_nothing", the_order_of_arrival_changes_nothing},
          {"random_enrolments_end_as_in_the_reference", random_enrolments_end_as_in_the_reference}};
}

}  // namespace furlong::fleet::conformance
