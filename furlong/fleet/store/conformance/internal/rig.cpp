#include "furlong/fleet/store/conformance/internal/rig.h"

#include "furlong/base/bytes.h"

namespace furlong::fleet::conformance {

DecodedRace a_race(std::uint32_t number, std::int64_t ts_us) {
  DecodedRace race;
  race.id[6] = 0x70;  // a UUIDv7
  race.id[8] = 0x80;
  for (int i = 0; i < 4; ++i)
    race.id[static_cast<std::size_t>(15 - i)] = static_cast<std::uint8_t>(number >> (8 * i));
  race.ts_us = ts_us;
  race.slot = "s-77aa01";
  race.subject = {.silicon = "9c1f0a5b7d3e2f46",
                  .backend = "cuda",
                  .program = "lottery",
                  .program_class = R"({"loads":128,"wide":0})",
                  .metric = "",
                  .unit = "MH/s"};
  race.silicon = {.vendor = "NVIDIA", .arch = "sm_90", .multiprocessors = 132, .memory_bytes = 1ull << 37};
  race.silicon.hash = race.subject.silicon;
  race.label = "NVIDIA_H200";
  race.driver = "580.159.04";
  race.agent = "0.1.0";
  race.epoch = fmt::format("{:016x}", 0xfedc000000000000ull + number);
  race.source = "b3d1c0";
  race.winner = "u2";
  race.verdict = record::Verdict::winner;
  race.rate = 103.5F;
  race.base_rate = 100.25F;
  race.gain_pct = 2.9F;
  race.power_limit_w = 700;
  race.variants = {{.name = "base", .gain_pct = 0, .rate = 100.25F, .power_w = 410.5F},
                   {.name = "u2", .gain_pct = 2.9F, .half_pct = 0.4F, .rate = 103.5F},
                   {.name = "u8", .exit = Exit::compile, .fallback = true}};
  return race;
}

IncomingBatch a_batch(std::string machine, std::uint32_t number, const std::vector<DecodedRace>& races) {
  IncomingBatch batch;
  batch.id = fmt::format("01956a3c-8f00-7abc-8def-{:012x}", number);
  batch.machine = std::move(machine);
  batch.signature = std::string(128, 'a');
  batch.body = fmt::format("{{\"batch\":\"{}\"}}\n", batch.id);
  batch.received_us = 1'000'000 + number;
  for (const DecodedRace& race : races) {
    batch.lines.push_back({.id = record_id_text(race.id), .race = race});
    batch.body += fmt::format("{{\"id\":\"{}\"}}\n", batch.lines.back().id);
  }
  return batch;
}

void add_refused(IncomingBatch& batch, std::string why) {
  batch.lines.push_back({.id = "?", .race = Error(Code::invalid, std::move(why))});
  batch.body += "{}\n";
}

PublicKey a_key(std::uint8_t number) {
  PublicKey key;
  key.bytes.fill(number);
  return key;
}

Token a_token(std::uint8_t number) {
  Token token;
  token.digest = blake2b_256(fmt::format("token {}", number));
  token.label = fmt::format("rack {}", number);
  token.issued_us = 100 + number;
  token.expires_us = 1000;
  return token;
}

Result<std::unique_ptr<Store>> open_new(const MakePlace& make) {
  FURLONG_TRY(const OpenPlace open, make());
  return open({});
}

Result<std::unique_ptr<Store>> open_with_importer(const MakePlace& make) {
  FURLONG_TRY(std::unique_ptr<Store> store, open_new(make));
  FURLONG_CHECK(store->add_importer("logs", 1));
  return store;
}

Result<BatchOutcome> add_one(Store& store, const IncomingBatch& batch) {
  FURLONG_TRY(std::vector<BatchOutcome> outcomes, store.add({&batch, 1}));
  if (outcomes.size() != 1)
    return fail(Code::mismatch, "one batch was added, {} outcomes came", outcomes.size());
  return std::move(outcomes.front());
}

Result<Machine> the_machine(Store& store, std::string_view id) {
  FURLONG_TRY(std::optional<Machine> machine, store.machine(id));
  if (!machine) return fail(Code::mismatch, "there is no machine '{}'", id);
  return *std::move(machine);
}

Result<std::vector<std::string>> page_ids(Store& store, const RaceFilter& filter) {
  FURLONG_TRY(const std::vector<RaceSummary> page, store.races(filter));
  std::vector<std::string> ids;
  for (const RaceSummary& race : page) ids.push_back(race.id);
  return ids;
}

Status expect_code(const Status& status, Code code, std::string_view what) {
  if (!status && status.error().code() == code) return {};
  return fail(Code::mismatch, "{}: expected '{}', got {}", what, code_name(code),
              status ? std::string("no error")
                     : fmt::format("'{}': {}", code_name(status.error().code()), status.error().text()));
}

}  // namespace furlong::fleet::conformance
