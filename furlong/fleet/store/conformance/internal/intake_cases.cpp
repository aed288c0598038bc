// What becomes of batches, and what is forgotten.
#include "furlong/fleet/store/conformance/internal/rig.h"

namespace furlong::fleet::conformance {
namespace {

const std::string logs = "import:logs";

Status check_fates(const BatchOutcome& outcome, const std::vector<Fate>& expected, std::string_view what) {
  if (outcome.fates == expected) return {};
  std::string got;
  for (const Fate fate : outcome.fates)
    got += fate == Fate::accepted ? 'a' : fate == Fate::duplicate ? 'd' : 'r';
  return fail(Code::mismatch, "{}: {} lines, got '{}'", what, expected.size(), got);
}

Status an_unknown_machine_is_invalid_and_nothing_is_kept(const MakePlace& make) {
  FURLONG_TRY(const auto store, open_with_importer(make));
  const std::vector batches{a_batch(logs, 1, {a_race(1, 10)}), a_batch("import:none", 2, {a_race(2, 10)})};
  FURLONG_CHECK(expect_code(store->add(batches), Code::invalid, "one of them is unknown"));
  FURLONG_TRY(const StoreTotals totals, store->totals());
  FURLONG_WANT(totals.races == 0 && totals.batches == 0 && totals.subjects == 0, "all in one transaction");
  FURLONG_TRY(const auto outcome, add_one(*store, batches.front()));
  FURLONG_CHECK(check_fates(outcome, {Fate::accepted}, "and it may be sent again"));
  FURLONG_TRY(const auto content, store_content(*store));
  FURLONG_WANT(!content.empty(), "its names are there as well");
  FURLONG_TRY(const auto nothing, store->add({}));
  FURLONG_WANT(nothing.empty(), "no batch, no outcome");
  return {};
}

Status the_same_id_is_a_duplicate(const MakePlace& make) {
  FURLONG_TRY(const auto store, open_with_importer(make));
  const IncomingBatch batch = a_batch(logs, 1, {a_race(1, 10), a_race(2, 10)});
  FURLONG_TRY(const auto first, add_one(*store, batch));
  FURLONG_CHECK(check_fates(first, {Fate::accepted, Fate::accepted}, "new ones"));
  FURLONG_TRY(const auto again, add_one(*store, batch));
  FURLONG_CHECK(check_fates(again, {Fate::duplicate, Fate::duplicate}, "the same batch"));
  FURLONG_TRY(const auto mixed,
              add_one(*store, a_batch(logs, 2, {a_race(3, 10), a_race(1, 10), a_race(3, 10)})));
  FURLONG_CHECK(
      check_fates(mixed, {Fate::accepted, Fate::duplicate, Fate::duplicate}, "also within a batch"));
  const std::vector two{a_batch(logs, 3, {a_race(4, 10)}), a_batch(logs, 4, {a_race(4, 10)})};
  FURLONG_TRY(const auto outcomes, store->add(two));
  FURLONG_CHECK(check_fates(outcomes[0], {Fate::accepted}, "the first of two"));
  FURLONG_CHECK(check_fates(outcomes[1], {Fate::duplicate}, "the second of two"));
  FURLONG_TRY(const auto ids, page_ids(*store));
  FURLONG_WANT(ids.size() == 4, "{} races", ids.size());
  return {};
}

DecodedRace of_epoch(DecodedRace race, std::string epoch = "00f1e2d3c4b5a697") {
  race.epoch = std::move(epoch);
  return race;
}

Status the_newer_of_a_key_replaces_the_older(const MakePlace& make) {
  FURLONG_TRY(const auto store, open_with_importer(make));
  const auto old = of_epoch(a_race(5, 10)), newer = of_epoch(a_race(3, 20)), older = of_epoch(a_race(9, 5));
  FURLONG_TRY(const auto first, add_one(*store, a_batch(logs, 1, {old})));
  FURLONG_CHECK(check_fates(first, {Fate::accepted}, "the first"));
  FURLONG_TRY(const auto second, add_one(*store, a_batch(logs, 2, {newer})));
  FURLONG_CHECK(check_fates(second, {Fate::accepted}, "a newer one by its time, whatever its id"));
  FURLONG_TRY(const auto third, add_one(*store, a_batch(logs, 3, {older, old})));
  FURLONG_CHECK(
      check_fates(third, {Fate::duplicate, Fate::duplicate}, "older ones, also one that was there"));
  FURLONG_TRY(const auto ids, page_ids(*store));
  FURLONG_WANT(ids == std::vector{record_id_text(newer.id)}, "one is left");
  FURLONG_TRY(const auto gone, store->race(record_id_text(old.id)));
  FURLONG_WANT(!gone, "the older one is not");
  FURLONG_TRY(const StoreTotals totals, store->totals());
  FURLONG_WANT(totals.races == 1 && totals.batches == 2, "{} races, {} batches", totals.races,
               totals.batches);
  return {};
}

Status without_an_epoch_it_is_the_day_that_counts(const MakePlace& make) {
  constexpr std::int64_t day_us = 86'400'000'000;
  FURLONG_TRY(const auto store, open_with_importer(make));
  std::vector<DecodedRace> races(5, of_epoch(a_race(1, 10), ""));
  const std::int64_t times[] = {20 * day_us, 21 * day_us - 1, 21 * day_us, 20 * day_us - 1, 19 * day_us};
  for (std::size_t i = 0; i < races.size(); ++i) {
    races[i].id[15] = static_cast<std::uint8_t>(i + 1);
    races[i].ts_us = times[i];
  }
  for (std::uint8_t i = 0; i < 4; ++i) {
    FURLONG_TRY(const auto fates, add_one(*store, a_batch(logs, i + 1, {races[i]})));
    FURLONG_CHECK(check_fates(fates, {Fate::accepted}, "a newer one, or of another day"));
  }
  FURLONG_TRY(const auto fates, add_one(*store, a_batch(logs, 9, {races[0], races[4]})));
  FURLONG_CHECK(check_fates(fates, {Fate::duplicate, Fate::duplicate}, "older ones of their day"));
  FURLONG_TRY(const auto ids, page_ids(*store));
  FURLONG_WANT(ids.size() == 3, "the latest of each of three days, not {}", ids.size());
  return {};
}

Status equal_times_are_decided_by_the_id(const MakePlace& make) {
  for (const bool low_first : {true, false}) {
    FURLONG_TRY(const auto store, open_with_importer(make));
    const auto low = of_epoch(a_race(1, 10)), high = of_epoch(a_race(2, 10));
    FURLONG_TRY(const auto first, add_one(*store, a_batch(logs, 1, {low_first ? low : high})));
    FURLONG_TRY(const auto second, add_one(*store, a_batch(logs, 2, {low_first ? high : low})));
    FURLONG_CHECK(check_fates(second, {low_first ? Fate::accepted : Fate::duplicate}, "the second"));
    FURLONG_TRY(const auto ids, page_ids(*store));
    FURLONG_WANT(ids == std::vector{record_id_text(high.id)}, "the higher id is left");
  }
  return {};
}

Status one_delivery_may_hold_several_of_a_key(const MakePlace& make) {
  FURLONG_TRY(const auto store, open_with_importer(make));
  FURLONG_CHECK(add_one(*store, a_batch(logs, 1, {of_epoch(a_race(1, 10))})));
  const std::vector delivery{a_batch(logs, 2, {of_epoch(a_race(2, 20)), of_epoch(a_race(3, 15))}),
                             a_batch(logs, 3, {of_epoch(a_race(4, 30)), of_epoch(a_race(2, 20))})};
  FURLONG_TRY(const auto outcomes, store->add(delivery));
  FURLONG_CHECK(check_fates(outcomes[0], {Fate::accepted, Fate::duplicate}, "the first batch"));
  FURLONG_CHECK(check_fates(outcomes[1], {Fate::accepted, Fate::duplicate}, "the second batch"));
  FURLONG_TRY(const auto ids, page_ids(*store));
  FURLONG_WANT(ids == std::vector{record_id_text(a_race(4, 0).id)}, "the newest is left");
  FURLONG_TRY(const auto content, store_content(*store));
  FURLONG_WANT(!content.empty(), "all calls agree");
  FURLONG_TRY(const StoreTotals totals, store->totals());
  FURLONG_WANT(totals.batches == 3, "each batch had a record that was accepted");
  return {};
}

Status each_part_of_the_key_counts(const MakePlace& make) {
  FURLONG_TRY(const auto store, open_with_importer(make));
  FURLONG_CHECK(store->add_importer("other", 1));
  std::vector<DecodedRace> races(12, of_epoch(a_race(1, 10)));
  for (std::size_t i = 0; i < races.size(); ++i) races[i].id[15] = static_cast<std::uint8_t>(i + 1);
  races[1].slot = "s-77aa02";
  races[2].source = "b3d1c1";
  races[3].epoch = "00f1e2d3c4b5a698";
  races[4].epoch = "";
  races[5].epoch = "0000000000000000";
  races[6].subject.silicon = "label:NVIDIA_H200";
  races[7].subject.backend = "opencl";
  races[8].subject.program = "gemm";
  races[9].subject.program_class = "{}";
  races[10].subject.metric = "energy";
  races[11].subject.unit = "GB/s";
  FURLONG_TRY(const auto outcome, add_one(*store, a_batch(logs, 1, races)));
  FURLONG_CHECK(check_fates(outcome, std::vector<Fate>(races.size(), Fate::accepted), "all differ"));
  for (DecodedRace& race : races) race.id[14] = 1;
  FURLONG_TRY(const auto others, add_one(*store, a_batch("import:other", 2, races)));
  FURLONG_CHECK(check_fates(others, std::vector<Fate>(races.size(), Fate::accepted), "another machine's"));
  for (DecodedRace& race : races) race.id[14] = 2, race.driver = "1", race.label = "2", race.winner = "base";
  FURLONG_TRY(const auto again, add_one(*store, a_batch(logs, 3, races)));
  FURLONG_CHECK(check_fates(again, std::vector<Fate>(races.size(), Fate::accepted), "they replace"));
  FURLONG_TRY(const StoreTotals totals, store->totals());
  FURLONG_WANT(totals.races == 24 && totals.subjects == 7, "{} races of {} subjects", totals.races,
               totals.subjects);
  return {};
}

Status a_batch_is_kept_once_and_only_with_a_new_record(const MakePlace& make) {
  FURLONG_TRY(const auto store, open_with_importer(make));
  IncomingBatch refused = a_batch(logs, 1, {});
  add_refused(refused, "no record");
  FURLONG_CHECK(add_one(*store, refused));
  FURLONG_CHECK(add_one(*store, a_batch(logs, 2, {})));
  FURLONG_TRY(StoreTotals totals, store->totals());
  FURLONG_WANT(totals.batches == 0, "a report and refusals leave none");
  const IncomingBatch batch = a_batch(logs, 3, {a_race(1, 10)});
  FURLONG_CHECK(add_one(*store, batch));
  FURLONG_CHECK(add_one(*store, batch));
  FURLONG_CHECK(add_one(*store, a_batch(logs, 4, {a_race(1, 10)})));
  FURLONG_TRY(totals, store->totals());
  FURLONG_WANT(totals.batches == 1, "once; and none of duplicates alone");
  IncomingBatch same_name = batch;  // a signature over other bytes is other evidence
  same_name.body += "{}\n";
  same_name.lines.push_back({.id = record_id_text(a_race(2, 10).id), .race = a_race(2, 10)});
  FURLONG_CHECK(add_one(*store, same_name));
  FURLONG_TRY(totals, store->totals());
  FURLONG_WANT(totals.batches == 2, "other bytes under the same id are another batch");
  const std::vector twice{a_batch(logs, 5, {a_race(3, 10)}), a_batch(logs, 5, {a_race(3, 10)})};
  FURLONG_CHECK(store->add(twice));
  FURLONG_TRY(totals, store->totals());
  FURLONG_WANT(totals.batches == 3, "also within one delivery");
  return {};
}

Status counts_and_header_go_to_the_machine(const MakePlace& make) {
  FURLONG_TRY(const auto store, open_with_importer(make));
  IncomingBatch batch = a_batch(logs, 9, {a_race(1, 10), a_race(1, 10)});
  add_refused(batch, "first");
  add_refused(batch, "second");
  batch.agent = "0.2.0";
  batch.manifest = "17";
  FURLONG_CHECK(add_one(*store, batch));
  FURLONG_TRY(Machine machine, the_machine(*store, logs));
  FURLONG_WANT(machine.accepted == 1 && machine.duplicate == 1 && machine.refused == 2, "counts");
  FURLONG_WANT(machine.last_refusal == fail(Code::invalid, "second").text(), "'{}'", machine.last_refusal);
  FURLONG_WANT(machine.seen_us == batch.received_us, "seen");
  FURLONG_WANT(machine.agent == "0.2.0" && machine.manifest == "17" && !machine.canary, "its header");
  IncomingBatch report = a_batch(logs, 2, {});  // received before the other
  report.agent = "0.3.0";
  report.canary = true;
  FURLONG_CHECK(add_one(*store, report));
  FURLONG_TRY(machine, the_machine(*store, logs));
  FURLONG_WANT(machine.seen_us == batch.received_us, "the newest");
  FURLONG_WANT(machine.agent == "0.3.0" && machine.manifest.empty() && machine.says_canary,
               "a report's header");
  FURLONG_WANT(!machine.canary, "its own word makes it none");
  FURLONG_CHECK(add_one(*store, a_batch(logs, 3, {})));
  FURLONG_TRY(machine, the_machine(*store, logs));
  FURLONG_WANT(machine.agent == "0.3.0" && machine.says_canary, "not told, not changed");
  return {};
}

constexpr std::int64_t batch_time_us = 1'741'244'108'544'000;  // of a_batch's ids

IncomingBatch with_header(std::uint32_t number, std::int64_t received_us, std::string agent) {
  IncomingBatch batch = a_batch(logs, number, {});
  batch.received_us = received_us;
  batch.agent = std::move(agent);
  batch.manifest = fmt::format("{}", number);
  return batch;
}

/// Out of order, or sent again by somebody who read it on a page: neither sets back what the machine follows,
/// nor makes one that is gone look alive.
Status only_a_newer_batch_tells_of_its_machine(const MakePlace& make) {
  const auto says = [](Store& store, std::int64_t seen_us, std::string_view agent,
                       std::uint32_t number) -> Status {
    FURLONG_TRY(const Machine machine, the_machine(store, logs));
    FURLONG_WANT(machine.seen_us == seen_us && machine.agent == agent, "{} of {}", machine.seen_us,
                 machine.agent);
    FURLONG_WANT(
        machine.manifest == fmt::format("{}", number) && machine.header == a_batch(logs, number, {}).id,
        "{} by {}", machine.manifest, machine.header);
    return {};
  };
  constexpr std::int64_t us = batch_time_us;
  for (const bool together : {false, true}) {
    FURLONG_TRY(const auto store, open_with_importer(make));
    IncomingBatch late = with_header(5, us + 30, "0.4.0");
    late.canary = true;
    const std::vector sent{with_header(7, us + 20, "0.5.0"), late, with_header(7, us + 40, "0.5.0")};
    if (together)
      FURLONG_CHECK(store->add(sent));
    else
      for (const IncomingBatch& batch : sent) FURLONG_CHECK(add_one(*store, batch));
    FURLONG_CHECK(says(*store, us + 20, "0.5.0", 7));
    FURLONG_TRY(const Machine machine, the_machine(*store, logs));
    FURLONG_WANT(!machine.says_canary, "an older batch does not say so");
    FURLONG_CHECK(add_one(*store, with_header(8, us + 50, "0.6.0")));
    FURLONG_CHECK(says(*store, us + 50, "0.6.0", 8));
  }
  return {};
}

/// A machine's clock that was ahead once does not silence it for ever.
Status a_batch_from_the_future_holds_no_header_up(const MakePlace& make) {
  FURLONG_TRY(const auto store, open_with_importer(make));
  const std::int64_t before_us = batch_time_us - 86'400'000'000;
  FURLONG_CHECK(add_one(*store, with_header(9, before_us, "0.4.0")));
  FURLONG_CHECK(add_one(*store, with_header(3, before_us + 1, "0.5.0")));
  FURLONG_TRY(const Machine machine, the_machine(*store, logs));
  FURLONG_WANT(machine.agent == "0.5.0" && machine.seen_us == before_us + 1, "{}", machine.agent);
  return {};
}

Status refused_lines_are_named(const MakePlace& make) {
  FURLONG_TRY(const auto store, open_with_importer(make));
  IncomingBatch batch = a_batch(logs, 1, {});
  add_refused(batch, "bad");
  const IncomingBatch good = a_batch(logs, 1, {a_race(1, 10)});
  batch.lines.push_back(good.lines.front());
  batch.body += good.body.substr(good.body.find('\n') + 1);
  add_refused(batch, "worse");
  FURLONG_TRY(const auto outcome, add_one(*store, batch));
  FURLONG_CHECK(check_fates(outcome, {Fate::refused, Fate::accepted, Fate::refused}, "in order"));
  FURLONG_TRY(const auto text, store->race(record_id_text(a_race(1, 10).id)));
  FURLONG_WANT((text->batch.refused == std::vector<std::uint32_t>{0, 2}), "lines from 0");
  FURLONG_WANT(text->line == fmt::format("{{\"id\":\"{}\"}}", record_id_text(a_race(1, 10).id)),
               "its own line");
  return {};
}

Status prune_forgets_what_is_older(const MakePlace& make) {
  FURLONG_TRY(const auto store, open_with_importer(make));
  FURLONG_CHECK(store->add_importer("other", 1));
  IncomingBatch first = a_batch(logs, 1, {a_race(1, 10), a_race(2, 99)}),
                second = a_batch(logs, 2, {a_race(3, 100)});
  IncomingBatch third = a_batch("import:other", 3, {a_race(4, 50), a_race(5, 2000)});
  first.received_us = 10;
  second.received_us = 50;
  third.received_us = 60;
  FURLONG_CHECK(store->add(std::vector{first, second, third}));
  std::stop_source stopped;
  stopped.request_stop();
  FURLONG_TRY(const std::uint64_t none, store->prune(100, stopped.get_token()));
  FURLONG_WANT(none == 0, "whoever stops it waits for no step: {}", none);
  FURLONG_TRY(const std::uint64_t gone, store->prune(100));
  FURLONG_WANT(gone == 3, "{} races are gone", gone);
  FURLONG_TRY(const auto ids, page_ids(*store));
  FURLONG_WANT((ids == std::vector{record_id_text(a_race(5, 0).id), record_id_text(a_race(3, 0).id)}),
               "two stay");
  FURLONG_TRY(const StoreTotals totals, store->totals());
  FURLONG_WANT(totals.races == 2 && totals.batches == 2 && totals.machines == 2,
               "a batch that is needed stays");
  FURLONG_TRY(const auto text, store->race(ids.front()));
  FURLONG_WANT(text && text->batch.body == third.body, "with its bytes");
  FURLONG_TRY(const auto content, store_content(*store));
  FURLONG_WANT(!content.empty(), "all calls agree");
  FURLONG_TRY(const std::uint64_t again, store->prune(100));
  FURLONG_WANT(again == 0, "{} more", again);
  FURLONG_TRY(const auto back, add_one(*store, first));
  FURLONG_CHECK(check_fates(back, {Fate::accepted, Fate::accepted}, "what is forgotten is new again"));
  FURLONG_TRY(const std::uint64_t all, store->prune(INT64_MAX));
  FURLONG_WANT(all == 4, "{} are gone at last", all);
  FURLONG_TRY(const auto newest, store->newest_ts());
  FURLONG_WANT(!newest, "there is none");
  FURLONG_CHECK(add_one(*store, second));
  FURLONG_TRY(const auto newer, store->newest_ts());
  FURLONG_WANT(newer == 100, "the newest that is there, not that ever was");
  return {};
}

Status names_beyond_what_is_kept_in_memory_are_right(const MakePlace& make) {
  FURLONG_TRY(const OpenPlace open, make());
  FURLONG_TRY(const auto store, open({.names_in_memory = 12}));
  FURLONG_TRY(const auto plain, open_with_importer(make));
  FURLONG_CHECK(store->add_importer("logs", 1));
  // Slots and sources alone are more than fit, in the very delivery that goes beyond; then some that were
  // forgotten come again.
  std::uint32_t number = 0;
  for (std::uint32_t delivery = 0; delivery < 6; ++delivery) {
    std::vector<DecodedRace> races;
    for (std::uint32_t i = 0; i < 8; ++i) {
      ++number;
      DecodedRace race = a_race(number, number);
      race.slot = fmt::format("slot {}", delivery % 4 * 8 + i);
      race.source = fmt::format("source {}", delivery % 4 * 8 + i);
      race.label = fmt::format("label {}", i);
      race.subject.program = fmt::format("program {} {}", delivery % 4, i);
      race.variants[1].name = race.winner = fmt::format("variant {} {}", delivery, i);
      races.push_back(race);
    }
    const IncomingBatch batch = a_batch(logs, delivery, races);
    FURLONG_CHECK(add_one(*store, batch));
    FURLONG_CHECK(add_one(*plain, batch));
  }
  FURLONG_TRY(const auto expected, store_content(*plain));
  FURLONG_TRY(const auto content, store_content(*store));
  FURLONG_WANT(content == expected, "{}", content_difference(content, expected));
  FURLONG_TRY(const auto words, store->words());
  FURLONG_WANT(words.size() == 1 + 32 + 32 + 8 + 48 + 3, "{} words, each once", words.size());
  return {};
}

Status what_is_added_is_there_when_it_is_opened_again(const MakePlace& make) {
  FURLONG_TRY(const OpenPlace open, make());
  std::vector<std::string> before;
  {
    FURLONG_TRY(const auto store, open({}));
    FURLONG_CHECK(store->add_importer("logs", 1));
    FURLONG_CHECK(add_one(*store, a_batch(logs, 1, {a_race(1, 10), a_race(2, 20)})));
    FURLONG_TRY(before, store_content(*store));
  }
  FURLONG_TRY(const auto store, open({}));
  FURLONG_TRY(const auto after, store_content(*store));
  FURLONG_WANT(before == after, "{}", content_difference(before, after));
  FURLONG_TRY(const auto outcome, add_one(*store, a_batch(logs, 2, {a_race(2, 20), a_race(3, 30)})));
  FURLONG_CHECK(check_fates(outcome, {Fate::duplicate, Fate::accepted}, "and goes on"));
  return {};
}

}  // namespace

std::vector<StoreCase> intake_cases() {
  return {
      {"an_unknown_machine_is_invalid_and_nothing_is_kept",
       an_unknown_machine_is_invalid_and_nothing_is_kept},
      {"the_same_id_is_a_duplicate", the_same_id_is_a_duplicate},
      {"the_newer_of_a_key_replaces_the_older", the_newer_of_a_key_replaces_the_older},
      {"without_an_epoch_it_is_the_day_that_counts", without_an_epoch_it_is_the_day_that_counts},
      {"equal_times_are_decided_by_the_id", equal_times_are_decided_by_the_id},
      {"one_delivery_may_hold_several_of_a_key", one_delivery_may_hold_several_of_a_key},
      {"each_part_of_the_key_counts", each_part_of_the_key_counts},
      {"a_batch_is_kept_once_and_only_with_a_new_record", a_batch_is_kept_once_and_only_with_a_new_record},
      {"counts_and_header_go_to_the_machine", counts_and_header_go_to_the_machine},
      {"only_a_newer_batch_tells_of_its_machine", only_a_newer_batch_tells_of_its_machine},
      {"a_batch_from_the_future_holds_no_header_up", a_batch_from_the_future_holds_no_header_up},
      {"refused_lines_are_named", refused_lines_are_named},
      {"prune_forgets_what_is_older", prune_forgets_what_is_older},
      {"names_beyond_what_is_kept_in_memory_are_right", names_beyond_what_is_kept_in_memory_are_right},
      {"what_is_added_is_there_when_it_is_opened_again", what_is_added_is_there_when_it_is_opened_again}};
}

}  // namespace furlong::fleet::conformance
