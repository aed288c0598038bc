// What aggregation and pages read.
#include <algorithm>
#include <cmath>

#include "furlong/fleet/store/conformance/internal/rig.h"

namespace furlong::fleet::conformance {
namespace {

const std::string logs = "import:logs";

Status subjects_and_words_have_numbers(const MakePlace& make) {
  FURLONG_TRY(const auto store, open_with_importer(make));
  FURLONG_TRY(auto words, store->words());
  FURLONG_WANT(words == std::vector<std::string>{""}, "the empty word is number 0 from the start");
  FURLONG_TRY(const auto none, store->subjects());
  FURLONG_WANT(none.empty(), "no subject yet");
  DecodedRace other = a_race(2, 10);
  other.subject.program = "gemm";
  other.silicon.vendor = "other \"vendor\"";
  FURLONG_CHECK(add_one(*store, a_batch(logs, 1, {a_race(1, 10), other})));
  FURLONG_TRY(const auto subjects, store->subjects());
  FURLONG_WANT(subjects.size() == 2 && subjects[0].number == 1 && subjects[1].number == 2,
               "by number, from 1");
  FURLONG_WANT(subjects[0].subject == a_race(1, 0).subject && subjects[0].silicon == a_race(1, 0).silicon,
               "first");
  FURLONG_WANT(subjects[1].subject == other.subject && subjects[1].silicon == other.silicon, "second");
  FURLONG_TRY(words, store->words());
  for (const std::string word : {"s-77aa01", "NVIDIA_H200", "580.159.04", "b3d1c0", "u2", "base", "u8"})
    FURLONG_WANT(std::ranges::count(words, word) == 1, "'{}' has one number", word);
  FURLONG_TRY(const auto machines, store->machine_names());
  FURLONG_WANT((machines == std::vector<std::string>{"", logs}), "machines have numbers of their own");
  return {};
}

Status a_scan_gives_every_field(const MakePlace& make) {
  FURLONG_TRY(const auto store, open_with_importer(make));
  DecodedRace race = a_race(7, 1'740'830'400'123'456);
  race.epoch = "ffffffffffffffff";
  race.pinned = true;
  race.verdict = record::Verdict::dead_heat;
  race.ceiling = 120.5F;
  race.power_pct = 58.25F;
  FURLONG_CHECK(add_one(*store, a_batch(logs, 1, {race})));
  FURLONG_TRY(const auto words, store->words());
  Status status = fail(Code::mismatch, "no race came");
  const auto check = [&](const RaceRow& row) -> Status {
    FURLONG_WANT(row.machine == 1 && row.ts_us == race.ts_us && row.id == race.id, "who and when");
    FURLONG_WANT(words.at(row.slot) == race.slot && words.at(row.label) == race.label, "slot and label");
    FURLONG_WANT(words.at(row.driver) == race.driver && words.at(row.source) == race.source,
                 "driver, source");
    FURLONG_WANT(words.at(row.winner) == race.winner && row.verdict == race.verdict && row.pinned, "outcome");
    FURLONG_WANT(row.has_epoch && row.epoch == UINT64_MAX, "epoch");
    FURLONG_WANT(row.rate == race.rate && row.base_rate == race.base_rate, "rates");
    FURLONG_WANT(row.gain_pct == race.gain_pct && row.ceiling == race.ceiling, "gain and ceiling");
    FURLONG_WANT(row.power_limit_w == race.power_limit_w && row.power_pct == race.power_pct, "power");
    FURLONG_WANT(row.gains.size() == 3, "{} variants", row.gains.size());
    for (std::size_t i = 0; i < 3; ++i) {
      const PackedGain& gain = row.gains[i];
      const VariantGain back{words.at(gain.variant), gain.gain_pct, gain.half_pct, gain.rate,
                             gain.power_w,           gain.exit,     gain.fallback};
      FURLONG_WANT(back == race.variants[i], "variant {}", i);
    }
    return {};
  };
  FURLONG_CHECK(store->scan(1, {}, [&](const RaceRow& row) {
    status = check(row);
    return true;
  }));
  return status;
}

Status absent_numbers_stay_absent(const MakePlace& make) {
  FURLONG_TRY(const auto store, open_with_importer(make));
  DecodedRace race;
  race.id = a_race(1, 0).id;
  race.ts_us = -5;  // a clock that was never set
  race.subject = a_race(1, 0).subject;
  FURLONG_CHECK(add_one(*store, a_batch(logs, 1, {race})));
  std::size_t races = 0;
  bool all = true;
  FURLONG_CHECK(store->scan(1, {INT64_MIN, 0}, [&](const RaceRow& row) {
    ++races;
    for (const float value :
         {row.rate, row.base_rate, row.gain_pct, row.ceiling, row.power_limit_w, row.power_pct})
      all = all && std::isnan(value);
    all = all && row.winner == 0 && row.slot == 0 && !row.has_epoch && row.gains.empty() && row.ts_us == -5;
    return true;
  }));
  FURLONG_WANT(races == 1 && all, "{} races", races);
  FURLONG_TRY(const auto newest, store->newest_ts());
  FURLONG_WANT(newest == -5, "also before 1970");
  return {};
}

Status a_scan_goes_machine_by_machine_in_order_of_time(const MakePlace& make) {
  FURLONG_TRY(const auto store, open_new(make));
  Random random(5);
  std::vector<DecodedRace> races;
  for (std::uint32_t i = 1; i <= 60; ++i)
    races.push_back(a_race(i, static_cast<std::int64_t>(random.below(20))));
  random.shuffle(std::span(races));
  const std::vector<std::string> machines{"import:c", "import:a", "import:b"};
  for (const std::string& machine : machines) FURLONG_CHECK(store->add_importer(machine.substr(7), 1));
  for (std::size_t i = 0; i < races.size(); ++i)
    FURLONG_CHECK(add_one(*store, a_batch(machines[i % 3], static_cast<std::uint32_t>(i), {races[i]})));
  std::vector<std::tuple<MachineNumber, std::int64_t, RecordId>> seen;
  FURLONG_CHECK(store->scan(1, {5, 15}, [&](const RaceRow& row) {
    seen.emplace_back(row.machine, row.ts_us, row.id);
    return true;
  }));
  const auto inside =
      std::ranges::count_if(races, [](const auto& race) { return race.ts_us >= 5 && race.ts_us < 15; });
  FURLONG_WANT(std::cmp_equal(seen.size(), inside), "{} of {}: from is in the window, to is not", seen.size(),
               inside);
  FURLONG_WANT(std::ranges::is_sorted(seen), "in order");
  FURLONG_WANT(std::get<0>(seen.front()) == 1 && std::get<0>(seen.back()) == 3, "of all machines");
  return {};
}

Status a_scan_ends_when_the_visitor_says_so(const MakePlace& make) {
  FURLONG_TRY(const auto store, open_with_importer(make));
  FURLONG_CHECK(store->add_importer("other", 1));
  std::vector<DecodedRace> races;
  for (std::uint32_t i = 1; i <= 2000; ++i) races.push_back(a_race(i, i));
  FURLONG_CHECK(add_one(*store, a_batch(logs, 1, races)));
  for (DecodedRace& race : races) race.id[8] = 0x90;
  FURLONG_CHECK(add_one(*store, a_batch("import:other", 2, races)));
  std::size_t seen = 0;
  FURLONG_CHECK(store->scan(1, {}, [&](const RaceRow&) { return ++seen < 3; }));
  FURLONG_WANT(seen == 3, "{} were shown", seen);
  FURLONG_CHECK(store->scan(99, {}, [&](const RaceRow&) { return ++seen > 0; }));
  FURLONG_WANT(seen == 3, "a subject that is not there has no races");
  FURLONG_CHECK(store->scan(1, {10, 10}, [&](const RaceRow&) { return ++seen > 0; }));
  FURLONG_WANT(seen == 3, "an empty window has none");
  FURLONG_CHECK(store->scan(1, {}, [&](const RaceRow&) { return ++seen > 0; }));
  FURLONG_WANT(seen == 4003, "and all can be seen after that");
  return {};
}

Status a_page_shows_the_newest_first(const MakePlace& make) {
  FURLONG_TRY(const auto store, open_with_importer(make));
  std::vector<DecodedRace> races;
  for (std::uint32_t i = 1; i <= 1200; ++i) races.push_back(a_race(i, 5000 - i));
  FURLONG_CHECK(add_one(*store, a_batch(logs, 1, races)));
  FURLONG_TRY(const auto first, page_ids(*store));
  FURLONG_WANT(first.size() == 50 && first.front() == record_id_text(races.back().id), "by id, 50 of them");
  FURLONG_TRY(const auto second, page_ids(*store, {.before = first.back(), .limit = 3}));
  FURLONG_WANT((second == std::vector{record_id_text(races[1149].id), record_id_text(races[1148].id),
                                      record_id_text(races[1147].id)}),
               "the next page goes on");
  FURLONG_TRY(const auto most, page_ids(*store, {.limit = 5000}));
  FURLONG_WANT(most.size() == 1000, "at most 1000: {}", most.size());
  FURLONG_TRY(const auto none, page_ids(*store, {.before = record_id_text(races.front().id)}));
  FURLONG_WANT(none.empty(), "before the first there is none");
  FURLONG_TRY(const auto nothing, page_ids(*store, {.limit = 0}));
  FURLONG_WANT(nothing.empty(), "a page of none");
  FURLONG_CHECK(expect_code(store->races({.before = "x"}), Code::invalid, "before is no id"));
  return {};
}

Status a_page_shows_only_what_is_asked_for(const MakePlace& make) {
  FURLONG_TRY(const auto store, open_with_importer(make));
  FURLONG_CHECK(store->add_importer("other", 1));
  std::vector<DecodedRace> races;
  for (std::uint32_t i = 0; i < 9; ++i) races.push_back(a_race(i + 1, i));
  races[1].label = "card";
  races[2].subject.silicon = "label:x";
  races[3].subject.program = "gemm";
  races[4].driver = "600.1";
  races[5].subject.backend = "opencl";
  races[6].winner = "base";
  FURLONG_CHECK(add_one(*store, a_batch(logs, 1, {races.begin(), races.begin() + 8})));
  FURLONG_CHECK(add_one(*store, a_batch("import:other", 2, {races.back()})));
  const std::pair<RaceFilter, std::size_t> filters[] = {
      {{.label = "card"}, 1},
      {{.silicon = "label:x"}, 2},
      {{.program = "gemm"}, 3},
      {{.driver = "600.1"}, 4},
      {{.backend = "opencl"}, 5},
      {{.variant = "base"}, 6},
      {{.machine = "import:other"}, 8},
      {{.window = {7, 8}}, 7},
      {{.machine = logs, .label = "NVIDIA_H200", .program = "lottery", .window = {0, 1}}, 0}};
  for (const auto& [filter, index] : filters) {
    FURLONG_TRY(const auto ids, page_ids(*store, filter));
    FURLONG_WANT(ids == std::vector{record_id_text(races[index].id)}, "filter of {}: {} races", index,
                 ids.size());
  }
  const RaceFilter nothing[] = {
      {.machine = "import:none"}, {.label = "none"},   {.silicon = "none"},
      {.program = "none"},        {.driver = "none"},  {.backend = "none"},
      {.variant = "none"},        {.window = {9, 10}}, {.label = "card", .driver = "600.1"}};
  for (const RaceFilter& filter : nothing) {
    FURLONG_TRY(const auto ids, page_ids(*store, filter));
    FURLONG_WANT(ids.empty(), "{} races", ids.size());
  }
  FURLONG_TRY(const auto two, page_ids(*store, {.label = "NVIDIA_H200", .limit = 2}));
  FURLONG_WANT((two == std::vector{record_id_text(races[8].id), record_id_text(races[7].id)}), "filled up");
  return {};
}

Status a_page_looks_at_so_many_races_at_most(const MakePlace& make) {
  FURLONG_TRY(const auto store, open_with_importer(make));
  std::vector<DecodedRace> races;
  for (std::uint32_t i = 1; i <= 100; ++i) races.push_back(a_race(i, i));
  races[0].label = "rare";
  FURLONG_CHECK(add_one(*store, a_batch(logs, 1, races)));
  const auto id = [](std::uint32_t number) { return record_id_text(a_race(number, 0).id); };
  // What does not fit costs as much as what does.
  RaceFilter rare{.label = "rare", .limit = 5, .walk = 30};
  for (const std::uint32_t last : {71U, 41U, 11U}) {
    FURLONG_TRY(const RacePage page, store->page(rare));
    FURLONG_WANT(page.races.empty() && page.next == id(last), "{} races, next {}", page.races.size(),
                 page.next);
    rare.before = page.next;
  }
  FURLONG_TRY(RacePage page, store->page(rare));
  FURLONG_WANT(page.races.size() == 1 && page.races[0].id == id(1) && page.next.empty(), "the last: {}",
               page.next);
  FURLONG_TRY(const auto all, page_ids(*store, {.label = "rare", .limit = 5, .walk = 30}));
  FURLONG_WANT(all == std::vector{id(1)}, "races() goes on until it has them");
  FURLONG_TRY(page, store->page({.limit = 10, .walk = 4}));
  FURLONG_WANT(page.races.size() == 4 && page.next == id(97), "fewer than its limit: {}", page.next);
  FURLONG_TRY(page, store->page({.before = id(41), .limit = 10}));
  FURLONG_WANT(page.races.size() == 10 && page.next == id(31), "a full one: {}", page.next);
  FURLONG_TRY(page, store->page({.before = id(11), .limit = 10}));
  FURLONG_WANT(page.races.size() == 10 && page.next.empty(), "a full one may be the last");
  FURLONG_TRY(page, store->page({.window = {101, INT64_MAX}, .walk = 1}));
  FURLONG_WANT(page.races.empty() && page.next.empty(), "what is after all races is not looked for");
  FURLONG_TRY(page, store->page({.program = "none", .walk = 1}));
  FURLONG_WANT(page.races.empty(), "a name that is nowhere");
  return {};
}

Status pages_of_one_machine_among_many_are_whole(const MakePlace& make) {
  FURLONG_TRY(const auto store, open_with_importer(make));
  FURLONG_CHECK(store->add_importer("rare", 1));
  std::vector<DecodedRace> rare, others;
  for (std::uint32_t i = 1; i <= 12; ++i) {
    rare.push_back(a_race(i, 50 - i));  // time and id go opposite ways
    rare.back().subject.program = fmt::format("program {}", i % 3);
    if (i % 4 == 0) rare.back().label = "other card";
  }
  for (std::uint32_t i = 13; i <= 400; ++i) others.push_back(a_race(i, 20 + i % 40));
  FURLONG_CHECK(add_one(*store, a_batch("import:rare", 1, rare)));
  FURLONG_CHECK(add_one(*store, a_batch(logs, 2, others)));
  const RaceFilter filters[] = {{}, {.window = {40, 48}}, {.label = "other card"}, {.program = "program 1"}};
  for (RaceFilter filter : filters) {
    filter.machine = "import:rare";
    filter.limit = 2;
    filter.walk = 200;
    std::vector<std::string> expected, ids;
    for (auto race = rare.rbegin(); race != rare.rend(); ++race)
      if (race->ts_us >= filter.window.from_us && race->ts_us < filter.window.to_us &&
          (filter.label.empty() || filter.label == race->label) &&
          (filter.program.empty() || filter.program == race->subject.program))
        expected.push_back(record_id_text(race->id));
    do {
      FURLONG_TRY(const RacePage page, store->page(filter));
      FURLONG_WANT(page.races.size() <= 2, "its limit");
      for (const RaceSummary& race : page.races) ids.push_back(race.id);
      filter.before = page.next;
    } while (!filter.before.empty());
    FURLONG_WANT(ids == expected, "{} of {}: {}", ids.size(), expected.size(), fmt::join(ids, " "));
  }
  return {};
}

Status a_summary_gives_every_field(const MakePlace& make) {
  FURLONG_TRY(const auto store, open_with_importer(make));
  const DecodedRace race = a_race(300, 77);
  const IncomingBatch batch = a_batch(logs, 1, {race});
  FURLONG_CHECK(add_one(*store, batch));
  FURLONG_TRY(const auto page, store->races({}));
  const RaceSummary& one = page.at(0);
  FURLONG_WANT(one.id == record_id_text(race.id) && one.machine == logs && one.slot == race.slot, "who");
  FURLONG_WANT(one.label == race.label && one.driver == race.driver && one.source == race.source, "what");
  FURLONG_WANT(one.epoch == race.epoch && one.winner == race.winner && one.subject == race.subject, "'{}'",
               one.epoch);
  FURLONG_WANT(one.ts_us == 77 && one.received_us == batch.received_us, "when");
  FURLONG_WANT(one.verdict == race.verdict && !one.pinned && one.rate == race.rate, "outcome");
  FURLONG_WANT(one.base_rate == race.base_rate && one.gain_pct == race.gain_pct, "numbers");
  return {};
}

Status a_races_text_is_what_was_signed(const MakePlace& make) {
  FURLONG_TRY(const auto store, open_with_importer(make));
  IncomingBatch batch = a_batch(logs, 1, {a_race(1, 10), a_race(2, 20)});
  batch.body = "header\n{\"first\":1, \"odd\":\"\\u0000 \xc3\xa4\"}\n{\"second\":  2}\n";
  FURLONG_CHECK(add_one(*store, batch));
  FURLONG_TRY(const auto text, store->race(record_id_text(a_race(2, 0).id)));
  FURLONG_WANT(text && text->line == "{\"second\":  2}", "the last line");
  const StoredBatch& stored = text->batch;
  FURLONG_WANT(stored.body == batch.body && stored.signature == batch.signature, "the exact bytes");
  FURLONG_WANT(stored.id == batch.id && stored.machine == logs && stored.received_us == batch.received_us,
               "its head");
  FURLONG_WANT(stored.number > 0 && stored.refused.empty(), "its number");
  FURLONG_TRY(const auto none, store->race(record_id_text(a_race(3, 0).id)));
  FURLONG_WANT(!none, "an id that is not there");
  FURLONG_CHECK(expect_code(store->race("1234"), Code::invalid, "no id"));
  return {};
}

Status lines_are_those_of_the_pages(const MakePlace& make) {
  FURLONG_TRY(const auto store, open_with_importer(make));
  std::vector<std::string> expected;  // the newest first
  std::vector<IncomingBatch> batches;
  for (std::uint32_t b = 0; b < 1100; ++b) {
    IncomingBatch batch = a_batch(logs, b + 1, {a_race(2 * b + 1, b), a_race(2 * b + 2, b)});
    batch.body = fmt::format("header\n{{\"first\":{}}}\n{{\"second\":{}}}\n", b, b);
    expected.insert(expected.begin(),
                    {fmt::format("{{\"second\":{}}}", b), fmt::format("{{\"first\":{}}}", b)});
    batches.push_back(std::move(batch));
  }
  FURLONG_CHECK(store->add(batches));
  std::vector<std::string> lines;
  RaceFilter filter;
  filter.limit = 100'000;
  FURLONG_CHECK(store->lines(filter, [&](std::string_view line) {
    lines.emplace_back(line);
    return true;
  }));
  FURLONG_WANT(lines == expected, "{} lines, beyond a page", lines.size());
  lines.clear();
  FURLONG_CHECK(store->lines(filter, [&](std::string_view line) {
    lines.emplace_back(line);
    return lines.size() < 3;
  }));
  FURLONG_WANT(lines.size() == 3, "the visitor ends it");
  filter.limit = 1500;
  std::size_t count = 0;
  FURLONG_CHECK(store->lines(filter, [&](std::string_view) { return ++count > 0; }));
  FURLONG_WANT(count == 1500, "at most the limit: {}", count);
  filter.program = "no such program";
  FURLONG_CHECK(store->lines(filter, [&](std::string_view) { return ++count > 0; }));
  FURLONG_WANT(count == 1500, "only what is asked for");
  return {};
}

Status lines_of_ids_are_those_that_count(const MakePlace& make) {
  FURLONG_TRY(const auto store, open_with_importer(make));
  FURLONG_CHECK(store->add_importer("other", 1));
  const DecodedRace theirs = a_race(2, 20), early = a_race(1, 10), late = a_race(3, 30);
  IncomingBatch honest = a_batch(logs, 1, {theirs});
  honest.body = "header\n{\"honest\":1}\n";
  FURLONG_CHECK(add_one(*store, honest));
  // Another machine's batch states the same id twice: once as a duplicate, once in a line that is refused.
  IncomingBatch forged = a_batch("import:other", 2, {early, theirs});
  add_refused(forged, "forged");
  forged.lines.push_back({.id = record_id_text(late.id), .race = late});
  const std::string stated = record_id_text(theirs.id);
  forged.body = fmt::format(
      "header\n{{\"early\":1}}\n{{\"id\":\"{0}\"}}\n{{\"id\":\"{0}\"}}\n{{\"late\":1}}\n", stated);
  FURLONG_CHECK(add_one(*store, forged));
  std::vector<std::string> lines;
  const auto read = [&](std::span<const RecordId> ids, std::size_t most) {
    lines.clear();
    return store->lines_of(ids, [&](std::string_view line) -> Result<bool> {
      lines.emplace_back(line);
      return lines.size() < most;
    });
  };
  const std::vector<RecordId> ids{early.id, theirs.id, a_race(9, 0).id, late.id, theirs.id};
  FURLONG_CHECK(read(ids, 100));
  const std::vector<std::string> expected{R"({"early":1})", R"({"honest":1})", R"({"late":1})",
                                          R"({"honest":1})"};
  FURLONG_WANT(lines == expected, "{}", fmt::join(lines, " "));
  FURLONG_CHECK(read(ids, 2));
  FURLONG_WANT(lines.size() == 2, "the visitor ends it");
  FURLONG_CHECK(read({}, 2));
  FURLONG_WANT(lines.empty(), "none asked");
  const Status failed = store->lines_of(
      ids, [](std::string_view) -> Result<bool> { return fail(Code::exhausted, "the disk is full"); });
  return expect_code(failed, Code::exhausted, "the visitor's error");
}

Status totals_count_and_tell_of_changes(const MakePlace& make) {
  FURLONG_TRY(const auto store, open_new(make));
  FURLONG_TRY(StoreTotals before, store->totals());
  FURLONG_WANT(before.races == 0 && before.newest_ts_us == 0 && !before.version.empty(), "an empty store");
  FURLONG_TRY(const auto none, store->newest_ts());
  FURLONG_WANT(!none, "no race, no newest");
  const auto changes = [&](bool expected, std::string_view what) -> Status {
    FURLONG_TRY(const StoreTotals now, store->totals());
    const std::uint64_t change = before.change;
    before = now;
    FURLONG_WANT(expected ? now.change > change : now.change == change, "{}", what);
    return {};
  };
  FURLONG_CHECK(changes(false, "reading changes nothing"));
  FURLONG_CHECK(store->add_importer("logs", 1));
  FURLONG_CHECK(changes(true, "a machine"));
  FURLONG_CHECK(add_one(*store, a_batch(logs, 1, {a_race(1, 10), a_race(2, 90)})));
  FURLONG_CHECK(changes(true, "races"));
  FURLONG_WANT(before.races == 2 && before.batches == 1 && before.machines == 1 && before.subjects == 1,
               "counts");
  FURLONG_WANT(before.newest_ts_us == 90, "the newest: {}", before.newest_ts_us);
  FURLONG_CHECK(store->set_canary(logs, true));
  FURLONG_CHECK(changes(true, "a canary"));
  FURLONG_CHECK(store->retire(logs));
  FURLONG_CHECK(changes(true, "a retirement"));
  FURLONG_CHECK(store->prune(50));
  FURLONG_CHECK(changes(true, "what is forgotten"));
  FURLONG_WANT(before.races == 1, "{} left", before.races);
  FURLONG_CHECK(store_content(*store));
  FURLONG_CHECK(changes(false, "reading all of it changes nothing"));
  return {};
}

}  // namespace

std::vector<StoreCase> reading_cases() {
  return {
      {"subjects_and_words_have_numbers", subjects_and_words_have_numbers},
      {"a_scan_gives_every_field", a_scan_gives_every_field},
      {"absent_numbers_stay_absent", absent_numbers_stay_absent},
      {"a_scan_goes_machine_by_machine_in_order_of_time", a_scan_goes_machine_by_machine_in_order_of_time},
      {"a_scan_ends_when_the_visitor_says_so", a_scan_ends_when_the_visitor_says_so},
      {"a_page_shows_the_newest_first", a_page_shows_the_newest_first},
      {"a_page_shows_only_what_is_asked_for", a_page_shows_only_what_is_asked_for},
      {"a_page_looks_at_so_many_races_at_most", a_page_looks_at_so_many_races_at_most},
      {"pages_of_one_machine_among_many_are_whole", pages_of_one_machine_among_many_are_whole},
      {"a_summary_gives_every_field", a_summary_gives_every_field},
      {"a_races_text_is_what_was_signed", a_races_text_is_what_was_signed},
      {"lines_are_those_of_the_pages", lines_are_those_of_the_pages},
      {"lines_of_ids_are_those_that_count", lines_of_ids_are_those_that_count},
      {"totals_count_and_tell_of_changes", totals_count_and_tell_of_changes}};
}

}  // namespace furlong::fleet::conformance
