// Stores that are opened several times, read only, or are not there.
#include <thread>

#include "furlong/fleet/store/conformance/internal/rig.h"

namespace furlong::fleet::conformance {
namespace {

const std::string logs = "import:logs";

Status two_that_are_open_see_each_other(const MakePlace& make) {
  FURLONG_TRY(const OpenPlace open, make());
  FURLONG_TRY(const auto one, open({}));
  FURLONG_TRY(const auto two, open({}));
  FURLONG_CHECK(one->add_importer("logs", 1));
  for (std::uint32_t i = 1; i <= 10; ++i) {
    DecodedRace race = a_race(i, i);
    race.label = fmt::format("card {}", i);  // a new word each time
    race.subject.program = fmt::format("program {}", i % 4);
    FURLONG_CHECK(add_one(i % 2 == 0 ? *one : *two, a_batch(logs, i, {race})));
  }
  FURLONG_TRY(const auto of_one, store_content(*one));
  FURLONG_TRY(const auto of_two, store_content(*two));
  FURLONG_WANT(of_one == of_two, "{}", content_difference(of_one, of_two));
  FURLONG_TRY(const auto words, one->words());
  FURLONG_WANT(words.size() == 1 + 10 + 6, "{} words, each once", words.size());
  return {};
}

Status writers_take_turns(const MakePlace& make) {
  FURLONG_TRY(const OpenPlace open, make());
  FURLONG_TRY(const auto store, open({}));
  FURLONG_CHECK(store->add_importer("logs", 1));
  constexpr std::uint32_t writers = 3, batches = 15;
  std::vector<Status> ends(writers);
  {
    std::vector<std::jthread> threads;
    for (std::uint32_t writer = 0; writer < writers; ++writer)
      threads.emplace_back([&, writer] {
        const auto work = [&]() -> Status {
          FURLONG_TRY(const auto own, open({}));
          for (std::uint32_t i = 0; i < batches; ++i) {
            // A third of the races is everybody's.
            std::vector races{a_race(1000 * (writer + 1) + i, i), a_race(i + 1, i)};
            races[0].slot = fmt::format("slot {} {}", writer, i);
            FURLONG_CHECK(add_one(*own, a_batch(logs, 100 * writer + i, races)));
            if (i % 5 == 0) FURLONG_CHECK(own->totals());
          }
          return {};
        };
        ends[writer] = work();
      });
  }
  for (const Status& end : ends) FURLONG_CHECK(end);
  FURLONG_TRY(const StoreTotals totals, store->totals());
  FURLONG_WANT(totals.races == batches * (writers + 1), "{} races", totals.races);
  FURLONG_TRY(const Machine machine, the_machine(*store, logs));
  FURLONG_WANT(machine.accepted == totals.races && machine.duplicate == batches * (writers - 1), "counts");
  FURLONG_TRY(const auto content, store_content(*store));
  FURLONG_WANT(!content.empty(), "all calls agree");
  return {};
}

Status a_reader_sees_one_moment(const MakePlace& make) {
  FURLONG_TRY(const OpenPlace open, make());
  FURLONG_TRY(const auto reader, open({}));
  FURLONG_TRY(const auto writer, open({}));
  FURLONG_CHECK(writer->add_importer("a", 1));
  FURLONG_CHECK(writer->add_importer("b", 1));
  FURLONG_CHECK(add_one(*writer, a_batch("import:a", 1, {a_race(1, 10)})));
  FURLONG_CHECK(add_one(*writer, a_batch("import:b", 2, {a_race(2, 10)})));
  Status added;
  std::size_t seen = 0;
  FURLONG_CHECK(reader->scan(1, {}, [&](const RaceRow&) {
    if (++seen != 1) return true;
    auto outcome = add_one(*writer, a_batch("import:b", 3, {a_race(3, 20), a_race(4, 20)}));
    if (!outcome) added = Error(std::move(outcome).error());
    return true;
  }));
  FURLONG_CHECK(added);
  FURLONG_WANT(seen == 2, "what came while it was reading is not seen: {}", seen);
  return {};
}

Status one_that_is_read_only_denies_every_write(const MakePlace& make) {
  FURLONG_TRY(const OpenPlace open, make());
  std::vector<std::string> before;
  {
    FURLONG_TRY(const auto store, open({}));
    FURLONG_CHECK(store->add_importer("logs", 1));
    FURLONG_CHECK(add_one(*store, a_batch(logs, 1, {a_race(1, 10)})));
    FURLONG_TRY(before, store_content(*store));
  }
  FURLONG_TRY(const auto store, open({.read_only = true}));
  FURLONG_TRY(const auto content, store_content(*store));
  FURLONG_WANT(content == before, "{}", content_difference(before, content));
  const std::vector batches{a_batch(logs, 2, {a_race(2, 10)})};
  FURLONG_CHECK(expect_code(store->add(batches), Code::denied, "add"));
  FURLONG_CHECK(expect_code(store->put_batches(batches), Code::denied, "put_batches"));
  FURLONG_CHECK(expect_code(store->prune(100), Code::denied, "prune"));
  FURLONG_CHECK(expect_code(store->add_token(a_token(1)), Code::denied, "add_token"));
  FURLONG_CHECK(expect_code(store->put_token(a_token(1)), Code::denied, "put_token"));
  FURLONG_CHECK(expect_code(store->enrol(a_token(1).digest, a_key(1), 1), Code::denied, "enrol"));
  FURLONG_CHECK(expect_code(store->retire(logs), Code::denied, "retire"));
  FURLONG_CHECK(expect_code(store->set_canary(logs, true), Code::denied, "set_canary"));
  FURLONG_CHECK(expect_code(store->add_importer("x", 1), Code::denied, "add_importer"));
  FURLONG_CHECK(expect_code(store->put_machine({.id = logs}), Code::denied, "put_machine"));
  FURLONG_TRY(const auto after, store_content(*store));
  FURLONG_WANT(after == before, "{}", content_difference(before, after));
  return {};
}

Status one_that_is_not_there_is_unavailable(const MakePlace& make) {
  FURLONG_TRY(const OpenPlace open, make());
  FURLONG_CHECK(expect_code(open({.create = false}), Code::unavailable, "not to be made"));
  FURLONG_CHECK(expect_code(open({.read_only = true}), Code::unavailable, "only to be read"));
  FURLONG_CHECK(expect_code(open({.create = false}), Code::unavailable, "the attempts have made none"));
  FURLONG_CHECK(open({}));
  FURLONG_TRY(const auto store, open({.create = false}));
  FURLONG_CHECK(store->add_importer("logs", 1));
  return {};
}

}  // namespace

std::vector<StoreCase> opening_cases() {
  return {{"two_that_are_open_see_each_other", two_that_are_open_see_each_other},
          {"writers_take_turns", writers_take_turns},
          {"a_reader_sees_one_moment", a_reader_sees_one_moment},
          {"one_that_is_read_only_denies_every_write", one_that_is_read_only_denies_every_write},
          {"one_that_is_not_there_is_unavailable", one_that_is_not_there_is_unavailable}};
}

}  // namespace furlong::fleet::conformance
