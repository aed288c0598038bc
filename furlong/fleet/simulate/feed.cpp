#include "furlong/fleet/simulate/feed.h"

#include <algorithm>

#include "furlong/base/hash.h"
#include "furlong/base/os/clock.h"
#include "furlong/fleet/record_batch.h"
#include "furlong/fleet/simulate/internal/noise.h"

namespace furlong::fleet {
namespace {

constexpr std::size_t most_waiting_bytes = 64u << 20;  // of all machines together
constexpr std::size_t batches_a_transaction = 16;
constexpr const char* agent_version = "0.1.0";

}  // namespace

struct BatchMaker::State {
  struct Waiting {
    std::vector<std::string> lines;
    std::vector<DecodedRace> races;
    std::size_t bytes = 0;
    std::int64_t last_us = 0;
    std::uint64_t batches = 0;
  };
  Simulation& simulation;
  const std::size_t most_records;
  std::vector<Waiting> waiting;  // by box
  std::size_t bytes = 0;
  std::size_t rest = 0;  // box to look at next, once all races are run
  bool ended = false;
  record::RaceRecord record;

  Result<SimulatedBatch> send(std::size_t machine);
};

Result<SimulatedBatch> BatchMaker::State::send(std::size_t machine) {
  Waiting& from = waiting[machine];
  SimulatedBatch batch{.machine = machine, .key = simulation.machines()[machine].id, .sent_us = from.last_us};
  batch.races = std::exchange(from.races, {});
  bytes -= std::exchange(from.bytes, 0);
  // A UUIDv7 of its time, its sender and its number.
  Random random(internal::mix(internal::mix(simulation.options().seed, machine), ++from.batches));
  FakeClock clock;
  clock.advance_ns(batch.sent_us * 1000);
  batch.id = record::make_record_id(clock, random);
  const SimulatedMachine& sender = simulation.machines()[machine];
  const RecordBatch records{.id = batch.id,
                            .machine = batch.key,
                            .lines = std::exchange(from.lines, {}),
                            .agent = agent_version,
                            .canary = sender.canary};
  FURLONG_TRY(batch.body, print(records));
  batch.signature = sign_body(batch_media_type, batch.body, simulation.key(machine));
  return batch;
}

BatchMaker::BatchMaker(Simulation& simulation, std::size_t most_records)
    : state_(new State{.simulation = simulation,
                       .most_records = std::max<std::size_t>(1, most_records),
                       .waiting = std::vector<State::Waiting>(simulation.machines().size())}) {}
BatchMaker::~BatchMaker() = default;

Result<std::optional<SimulatedBatch>> BatchMaker::next() {
  State& state = *state_;
  while (!state.ended) {
    if (!state.simulation.next(state.record)) {
      state.ended = true;
      break;
    }
    const std::size_t machine = state.simulation.machine();
    State::Waiting& to = state.waiting[machine];
    FURLONG_TRY(DecodedRace race, decode(state.record));
    to.races.push_back(std::move(race));
    to.lines.push_back(record::to_line(state.record));
    to.bytes += to.lines.back().size();
    to.last_us = state.simulation.true_ts_us();
    state.bytes += to.lines.back().size();
    if (to.lines.size() < state.most_records && state.bytes < most_waiting_bytes) continue;
    FURLONG_TRY(auto batch, state.send(machine));
    return std::optional(std::move(batch));
  }
  while (state.rest < state.waiting.size() && state.waiting[state.rest].lines.empty()) ++state.rest;
  if (state.rest == state.waiting.size()) return std::optional<SimulatedBatch>();
  FURLONG_TRY(auto batch, state.send(state.rest));
  return std::optional(std::move(batch));
}

namespace {

Status enrol_all(const Simulation& simulation, Store& store, FeedCounts& counts) {
  const std::int64_t now_us = simulation.options().from_us;
  for (std::size_t i = 0; i < simulation.machines().size(); ++i) {
    const SimulatedMachine& machine = simulation.machines()[i];
    if (machine.role == SimulatedRole::key_clone) continue;  // the key is there
    FURLONG_TRY(const auto known, store.machine(machine.id));
    if (known) continue;
    const Token token{.digest = blake2b_256(fmt::format("simulated token of {}", machine.id)),
                      .label = fmt::format("simulated-{}", i),
                      .canary = machine.canary,
                      .replaces = {},
                      .issued_us = now_us,
                      .expires_us = now_us + 1,
                      .machine = {}};
    FURLONG_CHECK(store.add_token(token));
    FURLONG_CHECK(store.enrol(token.digest, simulation.key(i).public_key, now_us));
    ++counts.machines;
  }
  return {};
}

IncomingBatch incoming(SimulatedBatch batch, bool canary) {
  IncomingBatch made{.id = std::move(batch.id),
                     .machine = std::move(batch.key),
                     .signature = std::move(batch.signature),
                     .body = std::move(batch.body),
                     .received_us = batch.sent_us,
                     .agent = agent_version,
                     .manifest = {},
                     .canary = canary,
                     .lines = {}};
  for (DecodedRace& race : batch.races) {
    IncomingBatch::Line line{.id = record_id_text(race.id)};
    line.race = std::move(race);
    made.lines.push_back(std::move(line));
  }
  return made;
}

}  // namespace

Result<FeedCounts> feed_store(Simulation& simulation, Store& store, const FeedProgress& progress,
                              const std::stop_token& stop) {
  FeedCounts counts;
  FURLONG_CHECK(enrol_all(simulation, store, counts));
  BatchMaker maker(simulation, 100);
  std::vector<IncomingBatch> waiting;
  const auto file = [&]() -> Status {
    FURLONG_TRY(const auto outcomes, store.add(waiting));
    for (const BatchOutcome& outcome : outcomes)
      for (const Fate fate : outcome.fates)
        ++(fate == Fate::accepted    ? counts.accepted
           : fate == Fate::duplicate ? counts.duplicate
                                     : counts.refused);
    for (const IncomingBatch& batch : waiting) counts.records += batch.lines.size();
    counts.batches += waiting.size();
    waiting.clear();
    if (progress) progress(counts, simulation.progress());
    return {};
  };
  while (!stop.stop_requested()) {
    FURLONG_TRY(auto batch, maker.next());
    if (!batch) break;
    const bool canary = simulation.machines()[batch->machine].canary;
    waiting.push_back(incoming(*std::move(batch), canary));
    if (waiting.size() >= batches_a_transaction) FURLONG_CHECK(file());
  }
  if (!waiting.empty()) FURLONG_CHECK(file());
  return counts;
}

}  // namespace furlong::fleet
