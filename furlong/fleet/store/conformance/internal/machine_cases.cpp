// Tokens and machines.
#include "furlong/fleet/store/conformance/internal/rig.h"

namespace furlong::fleet::conformance {
namespace {

Status tokens_are_listed_the_oldest_first(const MakePlace& make) {
  FURLONG_TRY(const auto store, open_new(make));
  Token early = a_token(1), late = a_token(2);
  early.canary = true;
  early.replaces = "7dd9d66144961473";
  FURLONG_CHECK(store->add_token(late));
  FURLONG_CHECK(store->add_token(early));
  FURLONG_TRY(const auto tokens, store->tokens());
  FURLONG_WANT((tokens == std::vector{early, late}), "{} tokens", tokens.size());
  return {};
}

Status a_token_is_added_once(const MakePlace& make) {
  FURLONG_TRY(const auto store, open_new(make));
  FURLONG_CHECK(store->add_token(a_token(1)));
  Token again = a_token(1);
  again.label = "other";
  FURLONG_CHECK(expect_code(store->add_token(again), Code::invalid, "the digest is there already"));
  FURLONG_TRY(const auto tokens, store->tokens());
  FURLONG_WANT(tokens == std::vector{a_token(1)}, "the first stays as it was");
  return {};
}

Status a_token_takes_one_key_in(const MakePlace& make) {
  FURLONG_TRY(const auto store, open_new(make));
  Token token = a_token(1);
  token.canary = true;
  FURLONG_CHECK(store->add_token(token));
  FURLONG_TRY(const Machine machine, store->enrol(token.digest, a_key(1), 500));
  Machine expected{
      .id = a_key(1).id(), .key = a_key(1), .label = token.label, .canary = true, .enrolled_us = 500};
  FURLONG_WANT(machine == expected, "as the token says");
  FURLONG_TRY(const auto known, store->machine(machine.id));
  FURLONG_WANT(known == expected, "and kept so");
  FURLONG_TRY(const auto tokens, store->tokens());
  FURLONG_WANT(tokens.front().machine == machine.id, "the token says who used it");
  return {};
}

Status the_same_token_and_key_are_answered_the_same(const MakePlace& make) {
  FURLONG_TRY(const auto store, open_new(make));
  FURLONG_CHECK(store->add_token(a_token(1)));
  FURLONG_TRY(const Machine first, store->enrol(a_token(1).digest, a_key(1), 500));
  FURLONG_TRY(const Machine again, store->enrol(a_token(1).digest, a_key(1), 999'999));
  FURLONG_WANT(again == first, "also when the token would have expired meanwhile");
  return {};
}

Status enrolment_is_denied(const MakePlace& make) {
  FURLONG_TRY(const auto store, open_new(make));
  FURLONG_CHECK(expect_code(store->enrol(a_token(9).digest, a_key(1), 500), Code::denied, "no such token"));
  FURLONG_CHECK(store->add_token(a_token(1)));
  FURLONG_CHECK(expect_code(store->enrol(a_token(1).digest, a_key(1), 1000), Code::denied, "it has expired"));
  FURLONG_TRY(const auto none, store->machines());
  FURLONG_WANT(none.empty(), "nobody was taken in");
  FURLONG_CHECK(store->enrol(a_token(1).digest, a_key(1), 999));
  FURLONG_CHECK(expect_code(store->enrol(a_token(1).digest, a_key(2), 999), Code::denied, "another's token"));
  FURLONG_CHECK(store->retire(a_key(1).id()));
  FURLONG_CHECK(
      expect_code(store->enrol(a_token(1).digest, a_key(1), 999), Code::denied, "retired, old token"));
  FURLONG_CHECK(store->add_token(a_token(2)));
  FURLONG_CHECK(
      expect_code(store->enrol(a_token(2).digest, a_key(1), 999), Code::denied, "retired, new token"));
  FURLONG_TRY(const auto tokens, store->tokens());
  FURLONG_WANT(tokens.back().machine.empty(), "a denied enrolment uses no token up");
  return {};
}

Status a_replacement_retires_the_old_machine(const MakePlace& make) {
  FURLONG_TRY(const auto store, open_new(make));
  FURLONG_CHECK(store->add_token(a_token(1)));
  FURLONG_TRY(const Machine old, store->enrol(a_token(1).digest, a_key(1), 500));
  Token token = a_token(2);
  token.replaces = old.id;
  FURLONG_CHECK(store->add_token(token));
  FURLONG_TRY(const Machine fresh, store->enrol(token.digest, a_key(2), 600));
  FURLONG_WANT(fresh.replaces == old.id && fresh.state == MachineState::active, "the new one says so");
  FURLONG_TRY(const auto before, store->machine(old.id));
  FURLONG_WANT(before && before->state == MachineState::retired, "the old one is retired");
  Token of_nobody = a_token(3);
  of_nobody.replaces = "0000000000000000";
  FURLONG_CHECK(store->add_token(of_nobody));
  FURLONG_TRY(const Machine third, store->enrol(of_nobody.digest, a_key(3), 600));
  FURLONG_WANT(third.replaces == of_nobody.replaces, "a machine that is not there is none to retire");
  return {};
}

Status a_key_may_be_enrolled_anew(const MakePlace& make) {
  FURLONG_TRY(const auto store, open_new(make));
  FURLONG_CHECK(store->add_token(a_token(1)));
  FURLONG_TRY(const Machine first, store->enrol(a_token(1).digest, a_key(1), 500));
  FURLONG_CHECK(store->add(std::vector{a_batch(first.id, 1, {a_race(1, 10)})}));
  Token token = a_token(2);
  token.canary = true;
  token.replaces = first.id;
  FURLONG_CHECK(store->add_token(token));
  FURLONG_TRY(const Machine again, store->enrol(token.digest, a_key(1), 700));
  FURLONG_WANT(again.label == token.label && again.canary && again.enrolled_us == 700,
               "as the new token says");
  FURLONG_WANT(again.accepted == 1 && again.state == MachineState::active,
               "it replaces itself: no retirement");
  return {};
}

Status machines_are_listed_by_id(const MakePlace& make) {
  FURLONG_TRY(const auto store, open_new(make));
  for (const char* name : {"b", "c", "a", "Z", "\xc3\xa4"}) FURLONG_CHECK(store->add_importer(name, 1));
  FURLONG_TRY(const auto machines, store->machines());
  std::string ids;
  for (const Machine& machine : machines) ids += machine.id + " ";
  FURLONG_WANT(ids == "import:Z import:a import:b import:c import:\xc3\xa4 ", "byte by byte: {}", ids);
  FURLONG_TRY(const auto none, store->machine("import:d"));
  FURLONG_WANT(!none, "there is no d");
  FURLONG_TRY(const auto nobody, store->machine(""));
  FURLONG_WANT(!nobody, "the empty name is none's");
  return {};
}

Status an_importer_is_made_once(const MakePlace& make) {
  FURLONG_TRY(const auto store, open_new(make));
  FURLONG_CHECK(store->add_importer("logs", 5));
  FURLONG_CHECK(store->add_importer("logs", 6));
  FURLONG_TRY(const auto machines, store->machines());
  FURLONG_WANT((machines == std::vector{Machine{.id = "import:logs", .enrolled_us = 5}}), "without a key");
  return {};
}

Status a_retired_machines_races_still_count(const MakePlace& make) {
  FURLONG_TRY(const auto store, open_with_importer(make));
  FURLONG_CHECK(add_one(*store, a_batch("import:logs", 1, {a_race(1, 10)})));
  FURLONG_CHECK(store->retire("import:logs"));
  FURLONG_TRY(const Machine machine, the_machine(*store, "import:logs"));
  FURLONG_WANT(machine.state == MachineState::retired, "it is");
  std::size_t races = 0;
  FURLONG_CHECK(store->scan(1, {}, [&](const RaceRow&) { return ++races > 0; }));
  FURLONG_WANT(races == 1, "{} races", races);
  FURLONG_CHECK(expect_code(store->retire("import:none"), Code::invalid, "no such machine"));
  return {};
}

Status canaries_are_set_and_unset(const MakePlace& make) {
  FURLONG_TRY(const auto store, open_with_importer(make));
  for (const bool canary : {true, false}) {
    FURLONG_CHECK(store->set_canary("import:logs", canary));
    FURLONG_TRY(const Machine machine, the_machine(*store, "import:logs"));
    FURLONG_WANT(machine.canary == canary, "{}", canary);
  }
  FURLONG_CHECK(expect_code(store->set_canary("import:none", true), Code::invalid, "no such machine"));
  return {};
}

Status odd_texts_come_back_as_they_were(const MakePlace& make) {
  FURLONG_TRY(const auto store, open_new(make));
  const std::string odd =
      "'; DROP TABLE machine; -- \"$1 ?1 %s \xf0\x9f\x8f\x87 \\ {} " + std::string(3000, 'x');
  Token token = a_token(1);
  token.label = odd;
  FURLONG_CHECK(store->add_token(token));
  FURLONG_TRY(const Machine machine, store->enrol(token.digest, a_key(1), 1));
  FURLONG_WANT(machine.label == odd, "the label");
  FURLONG_TRY(const auto machines, store->machines());
  FURLONG_WANT(machines.size() == 1 && machines.front().label == odd, "the label as read");
  return {};
}

Status texts_that_are_no_text_do_no_harm(const MakePlace& make) {
  FURLONG_TRY(const auto store, open_with_importer(make));
  IncomingBatch batch = a_batch("import:logs", 1, {a_race(1, 10)});
  add_refused(batch, std::string("a zero \0 and half a letter \xc3", 29));
  FURLONG_TRY(const BatchOutcome outcome, add_one(*store, batch));
  FURLONG_WANT(outcome.fates.front() == Fate::accepted, "what is sound is kept");
  FURLONG_TRY(const Machine machine, the_machine(*store, "import:logs"));
  FURLONG_WANT(machine.last_refusal.starts_with("a zero ") && machine.refused == 1, "and told");
  return {};
}

}  // namespace

std::vector<StoreCase> machine_cases() {
  return {{"tokens_are_listed_the_oldest_first", tokens_are_listed_the_oldest_first},
          {"a_token_is_added_once", a_token_is_added_once},
          {"a_token_takes_one_key_in", a_token_takes_one_key_in},
          {"the_same_token_and_key_are_answered_the_same", the_same_token_and_key_are_answered_the_same},
          {"enrolment_is_denied", enrolment_is_denied},
          {"a_replacement_retires_the_old_machine", a_replacement_retires_the_old_machine},
          {"a_key_may_be_enrolled_anew", a_key_may_be_enrolled_anew},
          {"machines_are_listed_by_id", machines_are_listed_by_id},
          {"an_importer_is_made_once", an_importer_is_made_once},
          {"a_retired_machines_races_still_count", a_retired_machines_races_still_count},
          {"canaries_are_set_and_unset", canaries_are_set_and_unset},
          {"odd_texts_come_back_as_they_were", odd_texts_come_back_as_they_were},
          {"texts_that_are_no_text_do_no_harm", texts_that_are_no_text_do_no_harm}};
}

}  // namespace furlong::fleet::conformance
