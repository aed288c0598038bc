// What copies are made with.
#include "furlong/fleet/store/conformance/internal/rig.h"

namespace furlong::fleet::conformance {
namespace {

const std::string logs = "import:logs";

Status batches_come_in_order_of_receipt(const MakePlace& make) {
  FURLONG_TRY(const auto store, open_with_importer(make));
  std::vector<std::string> added;
  for (std::uint32_t i = 1; i <= 150; ++i) {
    const IncomingBatch batch = a_batch(logs, 1000 - i, {a_race(i, 10)});
    FURLONG_CHECK(add_one(*store, batch));
    added.push_back(batch.id);
  }
  std::vector<std::string> ids;
  std::vector<std::uint64_t> numbers;
  FURLONG_CHECK(store->batches(0, [&](const StoredBatch& batch) -> Result<bool> {
    ids.push_back(batch.id);
    numbers.push_back(batch.number);
    return true;
  }));
  FURLONG_WANT(ids == added, "{} of {}", ids.size(), added.size());
  std::size_t seen = 0;
  FURLONG_CHECK(store->batches(numbers[99], [&](const StoredBatch& batch) -> Result<bool> {
    FURLONG_WANT(batch.number > numbers[99], "after it");
    return ++seen < 10;
  }));
  FURLONG_WANT(seen == 10, "until the visitor has enough: {}", seen);
  FURLONG_CHECK(expect_code(
      store->batches(0, [](const StoredBatch&) -> Result<bool> { return fail(Code::timeout, "enough"); }),
      Code::timeout, "the visitor's error"));
  FURLONG_CHECK(
      store->batches(numbers.back(), [&](const StoredBatch&) -> Result<bool> { return ++seen > 0; }));
  FURLONG_WANT(seen == 10, "there is none after the last");
  return {};
}

Status what_has_gone_on_is_not_put_back(const MakePlace& make) {
  FURLONG_TRY(const auto store, open_new(make));
  const auto put = [&](const Machine& machine) -> Result<Machine> {
    FURLONG_CHECK(store->put_machine(machine));
    return the_machine(*store, machine.id);
  };
  Machine old{.id = a_key(3).id(), .key = a_key(3), .label = "old", .enrolled_us = 10, .seen_us = 20};
  old.agent = "1", old.manifest = "7";
  old.accepted = 30, old.refused = 2;
  Machine live = old;
  live.label = "live", live.agent = "2", live.manifest = "8", live.canary = true;
  live.seen_us = 90, live.accepted = 29, live.duplicate = 5, live.last_refusal = "why";
  FURLONG_CHECK(put(live));
  FURLONG_TRY(Machine machine, put(old));
  Machine expected = live;
  expected.accepted = 30;
  FURLONG_WANT(machine == expected, "what was heard later, and the larger counts");
  FURLONG_CHECK(store->retire(old.id));
  for (const Machine& copy : {old, live}) {
    FURLONG_TRY(machine, put(copy));
    FURLONG_WANT(machine.state == MachineState::retired, "retired stays so");
  }
  Machine anew = old;
  anew.enrolled_us = 50, anew.seen_us = 0, anew.label = "anew";
  FURLONG_TRY(machine, put(anew));
  FURLONG_WANT(machine.label == "anew" && machine.seen_us == 90 && machine.enrolled_us == 50,
               "a later enrolment says more than a later batch: {}", machine.label);
  FURLONG_WANT(machine.state == MachineState::retired && machine.accepted == 30, "the rest stays");

  FURLONG_CHECK(store->add_token(a_token(1)));
  FURLONG_TRY(const Machine user, store->enrol(a_token(1).digest, a_key(1), 500));
  FURLONG_CHECK(store->put_token(a_token(1)));
  FURLONG_CHECK(expect_code(store->enrol(a_token(1).digest, a_key(2), 500), Code::denied, "used stays used"));
  FURLONG_TRY(const auto tokens, store->tokens());
  FURLONG_WANT(tokens.front().machine == user.id, "by whom it was");
  return {};
}

Status machines_and_tokens_are_put_as_they_are(const MakePlace& make) {
  FURLONG_TRY(const auto store, open_new(make));
  Machine machine{.id = "7dd9d66144961473", .key = a_key(3), .state = MachineState::retired, .label = "l"};
  machine.canary = true;
  machine.enrolled_us = 1;
  machine.seen_us = 2;
  machine.agent = "a";
  machine.manifest = "m";
  machine.says_canary = true;
  machine.header = "h";
  machine.replaces = "r";
  machine.accepted = 3, machine.duplicate = 4, machine.refused = 5;
  machine.last_refusal = "why";
  FURLONG_CHECK(store->put_machine(machine));
  FURLONG_TRY(Machine back, the_machine(*store, machine.id));
  FURLONG_WANT(back == machine, "a new one");
  machine.label = "another", machine.canary = false, machine.seen_us = 3, machine.accepted = 4;
  FURLONG_CHECK(store->put_machine(machine));
  FURLONG_TRY(back, the_machine(*store, machine.id));
  FURLONG_WANT(back == machine, "one that was there");
  Token token = a_token(1);
  FURLONG_CHECK(store->put_token(token));
  token.machine = machine.id;
  FURLONG_CHECK(store->put_token(token));
  FURLONG_TRY(const auto tokens, store->tokens());
  FURLONG_WANT(tokens == std::vector{token}, "{} tokens", tokens.size());
  FURLONG_TRY(const auto names, store->machine_names());
  FURLONG_WANT((names == std::vector<std::string>{"", machine.id}), "one number");
  return {};
}

Status what_is_there_is_told(const MakePlace& make) {
  FURLONG_TRY(const auto store, open_with_importer(make));
  const IncomingBatch batch = a_batch(logs, 1, {a_race(1, 10), a_race(2, 10)});
  FURLONG_CHECK(add_one(*store, batch));
  FURLONG_TRY(const auto there, store->have(std::vector{a_race(3, 0).id, a_race(2, 0).id, a_race(1, 0).id}));
  FURLONG_WANT((there == std::vector{false, true, true}), "one each");
  FURLONG_TRY(const auto none, store->have({}));
  FURLONG_WANT(none.empty(), "none asked");
  StoredBatch stored{.id = batch.id, .machine = batch.machine, .body = batch.body};
  FURLONG_TRY(const bool known, store->has_batch(stored));
  FURLONG_WANT(known, "machine, id and bytes");
  for (std::string* part : {&stored.id, &stored.machine, &stored.body}) {
    const std::string before = *part;
    *part += "x";
    FURLONG_TRY(const bool other, store->has_batch(stored));
    FURLONG_WANT(!other, "each of them counts");
    *part = before;
  }
  return {};
}

Status copied_batches_are_kept_whatever_comes_of_them(const MakePlace& make) {
  FURLONG_TRY(const auto store, open_with_importer(make));
  IncomingBatch batch = a_batch(logs, 1, {a_race(1, 10), a_race(2, 20)});
  add_refused(batch, "bad");
  batch.agent = "0.9";
  batch.lines[0].gone = true;
  IncomingBatch replaced = a_batch(logs, 2, {a_race(2, 20)});
  FURLONG_TRY(const std::uint64_t fresh, store->put_batches(std::vector{batch, replaced}));
  FURLONG_WANT(fresh == 1, "{} races are new", fresh);
  FURLONG_TRY(const StoreTotals totals, store->totals());
  FURLONG_WANT(totals.races == 1 && totals.batches == 2, "{} races, {} batches", totals.races,
               totals.batches);
  FURLONG_TRY(const Machine machine, the_machine(*store, logs));
  FURLONG_WANT((machine == Machine{.id = logs, .enrolled_us = 1}), "its machine stays as it was");
  FURLONG_TRY(const auto text, store->race(record_id_text(a_race(2, 0).id)));
  FURLONG_WANT(text && text->batch.refused == std::vector<std::uint32_t>{2},
               "what was refused is still told");
  FURLONG_TRY(const auto before, store_content(*store));
  batch.lines[0].gone = false;
  FURLONG_CHECK(store->put_batches(std::vector{batch, replaced, batch}));
  FURLONG_TRY(const auto after, store_content(*store));
  FURLONG_WANT(before == after, "one that is there is left alone: {}", content_difference(before, after));
  FURLONG_CHECK(
      expect_code(store->put_batches(std::vector{a_batch("import:x", 3, {})}), Code::invalid, "no machine"));
  FURLONG_CHECK(store->put_batches({}));
  return {};
}

}  // namespace

std::vector<StoreCase> copy_cases() {
  return {{"batches_come_in_order_of_receipt", batches_come_in_order_of_receipt},
          {"machines_and_tokens_are_put_as_they_are", machines_and_tokens_are_put_as_they_are},
          {"what_has_gone_on_is_not_put_back", what_has_gone_on_is_not_put_back},
          {"what_is_there_is_told", what_is_there_is_told},
          {"copied_batches_are_kept_whatever_comes_of_them", copied_batches_are_kept_whatever_comes_of_them}};
}

}  // namespace furlong::fleet::conformance
