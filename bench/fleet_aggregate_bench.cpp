// fleet-aggregate: the races of a realistic fleet in a store, aggregated to a tuning: seconds and memory, on
// SQLite and on PostgreSQL. Beside it, on a part, the plain method: all races in maps of names, then sorts.
//
// The store is filled through its own intake, Store::add: the rows are those that a hub writes. The bodies of
// the batches, which aggregation never reads, are a few bytes instead of the records' text.

#include <cmath>
#include <ctime>
#include <filesystem>
#include <map>

#include "bench/harness.h"
#include "furlong/base/log.h"
#include "furlong/base/os/clock.h"
#include "furlong/base/os/file.h"
#include "furlong/base/os/memory.h"
#include "furlong/base/random.h"
#include "furlong/base/text.h"
#include "furlong/fleet/aggregate/aggregate.h"
#include "furlong/fleet/aggregate/internal/plain.h"
#include "furlong/fleet/store/postgres/postgres.h"
#include "furlong/fleet/store/postgres/testing.h"
#include "furlong/fleet/store/sqlite/sqlite.h"

namespace {

using furlong::Code;
using furlong::fail;
using furlong::Random;
using furlong::Result;
using furlong::Status;
using furlong::bench::Bench;
using furlong::bench::Better;
namespace fleet = furlong::fleet;

constexpr std::int64_t day_us = 86'400'000'000;
constexpr std::int64_t end_us = 1'772'323'200'000'000;  // 2026-03-01T00:00:00Z
constexpr int days = 7;

double mib(std::uint64_t bytes) { return static_cast<double>(bytes) / (1 << 20); }
double now_s() { return 1e-3 * furlong::system_clock().now_ms(); }

/// What cards are like, and what is true of their variants: gain at full power, and at half of it.
struct Model {
  const char* label;
  const char* silicon;
  double rate;
  std::vector<std::pair<const char*, std::pair<double, double>>> variants;
};

const std::vector<Model>& models() {
  static const std::vector<Model> all{
      {"NVIDIA_GeForce_RTX_5090",
       "9c1f0a5b7d3e2f46",
       118,
       {{"u2", {2.1, 1.8}}, {"u2-ldg", {2.4, 2.2}}, {"ldg", {1, 1}}, {"u4", {-1, 3}}, {"u8", {-6, -4}}}},
      {"NVIDIA_GeForce_RTX_4090",
       "1b2c3d4e5f607182",
       96,
       {{"u2", {3.1, 2}}, {"u2-ldg", {0.4, 1}}, {"ldg", {-1, 0}}, {"u4", {2, 2}}, {"u8", {-9, -5}}}},
      {"NVIDIA_GeForce_RTX_3090",
       "2b2c3d4e5f607182",
       71,
       {{"u2", {-0.4, -0.3}},
        {"u2-ldg", {-2, -2}},
        {"ldg", {-0.2, -0.1}},
        {"u4", {-3, -2}},
        {"u8", {-12, -9}}}},
      {"NVIDIA_H200",
       "3b2c3d4e5f607182",
       205,
       {{"u2", {1.2, 1.1}}, {"u2-ldg", {1.3, 1.2}}, {"ldg", {4, 3.8}}, {"u4", {0.1, 0.2}}, {"u8", {-2, -2}}}},
      {"AMD_Radeon_RX_7900_XTX",
       "5d2e8c41aa07b963",
       61,
       {{"g128", {1.9, 1.7}},
        {"u2-g128", {1.6, 1.5}},
        {"g256", {-4, -3}},
        {"u2", {0.3, 0.2}},
        {"u8", {-5, -5}}}}};
  return all;
}

const char* const classes[] = {R"({"loads":128,"wide":0})", R"({"loads":32,"wide":8})"};

/// A machine: one to eight equal cards under one cap, with one driver.
struct Box {
  const Model* model = nullptr;
  std::string id, driver;
  int cards = 1;
  double cap = 1;
  bool liar = false;
};

std::vector<Box> make_boxes(std::size_t machines) {
  std::vector<Box> boxes;
  for (std::size_t i = 0; i < machines; ++i) {
    Random random(i, "box");
    Box box{.model = &models()[random.below(models().size())], .id = fmt::format("{:016x}", random.next())};
    box.driver = fmt::format("580.{}", 65 + 30 * random.below(3));
    box.cards = 1 << random.below(4);
    box.cap = 0.5 + 0.1 * static_cast<double>(random.below(6));
    box.liar = random.below(50) == 0;
    boxes.push_back(std::move(box));
  }
  return boxes;
}

/// The next race of a box, `number`-th of all its cards together: epoch by epoch, card by card.
fleet::DecodedRace make_race(const Box& box, std::uint64_t number, std::int64_t ts_us, Random& random) {
  fleet::DecodedRace race;
  const std::uint64_t epoch = number / static_cast<std::uint64_t>(box.cards);
  std::uint64_t low = random.next();
  for (std::size_t i = 0; i < 16; ++i) {
    const auto millis = static_cast<std::uint64_t>(ts_us / 1000);
    race.id[i] = static_cast<std::uint8_t>(i < 6 ? millis >> (8 * (5 - i)) : low >> (8 * (i % 8)));
  }
  race.id[6] = static_cast<std::uint8_t>(0x70 | (number & 15));
  race.id[7] = static_cast<std::uint8_t>(number >> 4);
  race.id[8] = 0x80;
  race.ts_us = ts_us;
  race.slot = fmt::format("{}-{}", box.id, number % static_cast<std::uint64_t>(box.cards));
  race.subject = {.silicon = box.model->silicon,
                  .backend = "cuda",
                  .program = "lottery",
                  .program_class = classes[epoch % 2],
                  .metric = "",
                  .unit = "MH/s"};
  race.silicon.hash = box.model->silicon;
  race.label = box.model->label;
  race.driver = box.driver;
  race.epoch = fmt::format("{:016x}", 0x5eed0000 + epoch);
  race.source = fmt::format("{:016x}", 0x50000000 + epoch % 1024);
  race.power_pct = static_cast<float>(100 * box.cap - random.uniform());
  const double base = box.model->rate * (0.5 + 0.5 * box.cap) * (1 + 0.01 * random.normal());
  race.base_rate = static_cast<float>(base);
  race.ceiling = static_cast<float>(2 * box.model->rate);
  race.variants.push_back({.name = "base", .gain_pct = 0, .rate = race.base_rate, .power_w = 300});
  for (const auto& [name, gains] : box.model->variants) {
    const double there = gains.first + (gains.second - gains.first) * 2 * (1 - box.cap);
    const double gain = box.liar ? 100 * random.uniform() : there + 0.5 * random.normal();
    fleet::VariantGain variant{.name = name, .gain_pct = static_cast<float>(gain), .half_pct = 0.3F};
    variant.rate = static_cast<float>(base * (1 + gain / 100));
    variant.power_w = 300;
    if (gain < -3) variant.exit = fleet::Exit::eliminated;
    race.variants.push_back(std::move(variant));
  }
  const auto best = std::ranges::max_element(race.variants, {}, &fleet::VariantGain::gain_pct);
  race.winner = best->name;
  race.rate = best->rate;
  race.gain_pct = best->gain_pct;
  return race;
}

/// Day by day, each machine a batch at a time, as agents send them.
Status fill(fleet::Store& store, const std::vector<Box>& boxes, std::uint64_t races) {
  for (const Box& box : boxes) FURLONG_CHECK(store.put_machine({.id = box.id, .enrolled_us = 1}));
  constexpr std::uint64_t batch_races = 250;
  const std::uint64_t share = (races + boxes.size() * days - 1) / (boxes.size() * days);
  std::vector<fleet::IncomingBatch> batches;
  std::uint64_t made = 0, pending = 0;
  const auto send = [&]() -> Status {
    if (batches.empty()) return {};
    FURLONG_TRY(const auto outcomes, store.add(batches));
    for (const auto& outcome : outcomes)
      for (const fleet::Fate fate : outcome.fates)
        if (fate != fleet::Fate::accepted) return fail(Code::internal, "the store refused a race");
    batches.clear();
    pending = 0;
    return {};
  };
  for (int day = 0; day < days && made < races; ++day) {
    for (std::size_t i = 0; i < boxes.size() && made < races; ++i) {
      Random random(i * 1000 + static_cast<std::uint64_t>(day), "races");
      const std::int64_t begin_us = end_us - (days - day) * day_us;
      for (std::uint64_t at = 0; at < share && made < races; ++at, ++made) {
        if (at % batch_races == 0) {
          batches.push_back(
              {.id = fmt::format("{}-{}-{}", i, day, at), .machine = boxes[i].id, .body = "header\n"});
          batches.back().received_us = begin_us + day_us;
        }
        const std::int64_t ts_us =
            begin_us +
            static_cast<std::int64_t>(static_cast<double>(at) / static_cast<double>(share) *
                                      (day_us - 2'000'000)) +
            static_cast<std::int64_t>(i);
        batches.back().body += "r\n";
        batches.back().lines.push_back(
            {.id = "",
             .race = make_race(boxes[i], static_cast<std::uint64_t>(day) * share + at, ts_us, random)});
        ++pending;
      }
      if (pending >= 10'000) FURLONG_CHECK(send());
    }
    FURLONG_CHECK(send());
    furlong::log_info("day {} of {}: {} races are in the store", day + 1, days, made);
  }
  return {};
}

struct Measured {
  fleet::Aggregate aggregate;
  double seconds = 0;
  double cpu_s = 0;  ///< of all threads of this process; of PostgreSQL's server not
  double peak_mib = 0;
};

Result<Measured> measure(const fleet::OpenStore& open, const fleet::AggregateOptions& options) {
  Measured measured;
  const furlong::OwnMemoryWatch watch;
  const double begin = now_s();
  const std::clock_t cpu_begin = std::clock();
  FURLONG_TRY(measured.aggregate, fleet::aggregate(open, options));
  measured.seconds = now_s() - begin;
  measured.cpu_s = static_cast<double>(std::clock() - cpu_begin) / CLOCKS_PER_SEC;
  measured.peak_mib = mib(watch.peak_bytes());
  return measured;
}

bool near(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return std::abs(a - b) <= 1e-6 * std::max({1.0, std::abs(a), std::abs(b)});
}

/// Every variant's numbers, the winner and the candidates.
bool same(const fleet::RowEvidence& row, const fleet::plain::Row& plain) {
  if (row.variant != plain.winner || row.candidates != plain.candidates || row.machines != plain.voices)
    return false;
  std::size_t raced = 0;
  for (const fleet::VariantEvidence& variant : row.variants) {
    if (variant.gain_pct.samples == 0) continue;
    ++raced;
    const auto at = plain.variants.find(variant.name);
    if (at == plain.variants.end()) return false;
    const fleet::plain::Variant& other = at->second;
    if (variant.gain_pct.samples != other.samples || variant.gain_pct.races != other.races ||
        variant.gain_pct.machines != other.machines || !near(variant.gain_pct.median, other.gain) ||
        !near(variant.standing_pct, other.standing) || !near(variant.rate.median, other.rate))
      return false;
    if (variant.name != "base" && variant.gain_pct.ci.has_value() != other.ci.has_value()) return false;
    if (variant.name != "base" && other.ci &&
        (!near(variant.gain_pct.ci->lo, other.ci->first) || !near(variant.gain_pct.ci->hi, other.ci->second)))
      return false;
  }
  return raced == plain.variants.size();
}

/// The part that the plain method can hold: the newest races.
Status compare_with_plain(Bench& bench, const std::string& kind, const fleet::OpenStore& open,
                          std::uint64_t races, std::uint64_t part) {
  fleet::AggregateOptions options{.until_us = end_us};
  options.window_days = days * std::min(1.0, static_cast<double>(part) / static_cast<double>(races));
  FURLONG_TRY(const Measured measured, measure(open, options));
  FURLONG_TRY(const auto store, open());
  const double before_mib = mib(furlong::own_memory_bytes());
  const furlong::OwnMemoryWatch watch;
  const double begin = now_s();
  FURLONG_TRY(const auto plain, fleet::plain::aggregate(*store, measured.aggregate.window));
  const double seconds = now_s() - begin;
  const double peak_mib = mib(watch.peak_bytes());
  std::size_t rows = 0;
  bool equal = true;
  for (const fleet::CardEvidence& card : measured.aggregate.cards)
    for (const fleet::RowEvidence& row : card.rows) {
      ++rows;
      const auto at = plain.find(row.subject);
      equal = equal && at != plain.end() && same(row, at->second);
    }
  bench.must(equal && rows == plain.size() && rows > 0, "the plain method gives the same, on " + kind);
  const auto records = static_cast<double>(measured.aggregate.races);
  const std::string group = "A part, beside the plain method, on " + kind;
  bench.row({"this",
             {{"records", records}, {"seconds", measured.seconds}, {"peak MiB", measured.peak_mib}},
             group});
  bench.row({"plain", {{"records", records}, {"seconds", seconds}, {"peak MiB", peak_mib}}, group});
  if (!bench.smoke() && kind == "SQLite") {
    bench.metric("plain_s_per_million", 1e6 * seconds / records, Better::lower, {0.3, 0});
    bench.metric("plain_mib_per_million", 1e6 * (peak_mib - before_mib) / records, Better::lower, {0.3, 0});
  }
  return {};
}

Status run_store(Bench& bench, const std::string& kind, const fleet::OpenStore& open, std::uint64_t races) {
  FURLONG_TRY(const std::int64_t machines, furlong::parse_integer(bench.option("machines")));
  const std::vector<Box> boxes = make_boxes(bench.smoke() ? 25 : static_cast<std::size_t>(machines));
  const double begin = now_s();
  std::uint64_t bytes = 0;
  {
    FURLONG_TRY(const auto store, open());
    FURLONG_TRY(fleet::StoreTotals totals, store->totals());
    if (totals.races == 0) {
      FURLONG_CHECK(fill(*store, boxes, races));
      FURLONG_TRY(totals, store->totals());
    }
    if (totals.races != races) return fail(Code::invalid, "{} races are there, not {}", totals.races, races);
    bytes = totals.bytes;
  }
  const double fill_s = now_s() - begin;
  const fleet::AggregateOptions options{.until_us = end_us};
  FURLONG_TRY(const Measured first, measure(open, options));
  FURLONG_TRY(const Measured second, measure(open, options));
  bench.must(first.aggregate.races == races, fmt::format("every race lies in the window, on {}", kind));
  bench.must(furlong::record::print(fleet::to_tuning(first.aggregate)) ==
                 furlong::record::print(fleet::to_tuning(second.aggregate)),
             "the same races give the same bytes, on " + kind);
  const Measured& best = second.seconds < first.seconds ? second : first;
  bench.row({kind,
             {{"records", static_cast<double>(races)},
              {"store MiB", mib(bytes)},
              {"filled in s", fill_s},
              {"first s", first.seconds},
              {"again s", second.seconds},
              {"CPU s", best.cpu_s},
              {"records a second", static_cast<double>(races) / best.seconds},
              {"peak MiB", std::max(first.peak_mib, second.peak_mib)}},
             "Aggregation"});
  const std::string prefix = kind == "SQLite" ? "" : "postgresql_";
  bench.metric(prefix + "records", static_cast<double>(races), Better::higher, {0, 0});
  if (!bench.smoke()) {
    bench.metric(prefix + "seconds", best.seconds, Better::lower, {0.3, 0.2});
    bench.metric(prefix + "cpu_s", best.cpu_s, Better::lower, {0.2, 0.2});
    bench.metric(prefix + "peak_mib", std::max(first.peak_mib, second.peak_mib), Better::lower, {0.1, 16});
    if (kind == "SQLite" && races >= 10'000'000) {
      bench.at_most("seconds for 10 million records from SQLite", best.seconds, 15);
      bench.at_most("MiB for 10 million records from SQLite", std::max(first.peak_mib, second.peak_mib),
                    1024);
    }
  }
  return compare_with_plain(bench, kind, open, races, bench.smoke() ? races : 200'000);
}

fleet::OpenStore opener(fleet::StoreKind kind, std::string url) {
  return [kind = std::move(kind), url = std::move(url)] { return kind.open(url, {}); };
}

Status run(Bench& bench) {
  const auto races_of = [&](const char* option) -> Result<std::uint64_t> {
    if (bench.smoke()) return 5000;
    FURLONG_TRY(const std::int64_t races, furlong::parse_integer(bench.option(option)));
    if (races < 0) return fail(Code::invalid, "--{}: {} is no number of races", option, races);
    return static_cast<std::uint64_t>(races);
  };
  FURLONG_TRY(const std::uint64_t races, races_of("races"));
  FURLONG_TRY(const std::uint64_t postgres_races, races_of("postgresql-races"));
  if (races > 0) {
    FURLONG_TRY(const auto folder, furlong::TemporaryFolder::make("furlong-fleet-aggregate"));
    const std::string& kept = bench.option("file");
    const std::string file = kept.empty() ? (folder.path() / "fleet.sqlite").string() : kept;
    FURLONG_CHECK(run_store(bench, "SQLite", opener(fleet::sqlite::store_kind(), "sqlite:" + file), races));
  }
  if (postgres_races == 0) return {};
  const auto server = fleet::postgres::TestServer::start();
  if (!server) {
    furlong::log_warning("PostgreSQL is left out: {}", server.error().text());
    bench.environment("postgresql", server.error().text());
    return {};
  }
  FURLONG_TRY(const std::string url, (*server)->new_database());
  return run_store(bench, "PostgreSQL", opener(fleet::postgres::store_kind(), url), postgres_races);
}

}  // namespace

int main(int argc, char** argv) {
  return furlong::bench::bench_main(
      argc, argv, "fleet-aggregate", run,
      {{"races", "in SQLite; 0: none of it", "10000000"},
       {"postgresql-races", "in PostgreSQL; 0: none of it", "1000000"},
       {"machines", "that sent them", "2000"},
       {"file", "of SQLite, kept; what a run before has filled is taken as it is", ""}});
}
