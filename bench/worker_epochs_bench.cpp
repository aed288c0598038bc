// worker-epochs: a worker over short epochs, each prepared while the one before is in service and swapped to
// on time: gaps, pauses, lost work, every find verified by the bench itself. Beside it the plain rule.

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <set>

#include "bench/harness.h"
#include "bench/program.h"
#include "furlong/base/json.h"
#include "furlong/base/log.h"
#include "furlong/base/os/clock.h"
#include "furlong/base/os/file.h"
#include "furlong/base/os/process.h"
#include "furlong/base/text.h"
#include "furlong/program/lottery/dataset.h"
#include "furlong/program/lottery/lottery.h"
#include "furlong/program/lottery/reference.h"
#include "furlong/program/lottery/specification.h"
#include "furlong/program/pack.h"
#include "furlong/record/race_line.h"
#include "furlong/record/worker_protocol.h"
#include "furlong/stats/centre.h"

namespace {

using furlong::Code;
using furlong::fail;
using furlong::Result;
using furlong::Status;
using furlong::bench::Bench;
using furlong::bench::Better;
namespace fs = std::filesystem;
namespace lottery = furlong::program::lottery;
namespace record = furlong::record;

double now_s() { return 1e-3 * furlong::system_clock().now_ms(); }

double quantile(std::vector<double> values, double share) {
  if (values.empty()) return NAN;
  std::ranges::sort(values);
  return values[std::min(values.size() - 1,
                         static_cast<std::size_t>(std::ceil(share * values.size())) - (share > 0))];
}

/// One epoch's pack, and what its finds are checked with: the reference, by this process.
struct Epoch {
  record::Pair pair;
  fs::path folder;
  lottery::LotteryProgram program;
  lottery::Geometry geometry;
  std::shared_ptr<const lottery::Cache> cache;

  std::uint64_t hash(std::uint64_t nonce) const {
    return lottery::reference_hash(program, nonce, geometry.dataset_words(), lottery::light_rows(*cache));
  }
};

Result<Epoch> make_epoch(std::uint64_t number, const std::string& geometry, const fs::path& folder) {
  lottery::Parameters parameters;
  const furlong::Digest seed = furlong::blake2b_256(fmt::format("worker-epochs {}", number));
  parameters.epoch_seed = seed.bytes;
  parameters.geometry = geometry;
  FURLONG_TRY(const auto pack, lottery::make_pack(parameters));
  Epoch epoch;
  epoch.pair = {seed.hex().substr(0, 16), 0};
  epoch.folder = folder / fmt::format("{}-0", epoch.pair.epoch);
  FURLONG_CHECK(furlong::program::write_pack(pack, epoch.folder));
  FURLONG_TRY(epoch.program, lottery::generate_program(parameters));
  FURLONG_TRY(epoch.geometry, lottery::geometry_of(parameters));
  epoch.cache = std::make_shared<const lottery::Cache>(parameters, epoch.geometry.cache_lines());
  return epoch;
}

/// What one run of a worker gave.
struct Seen {
  int swaps = 0, missed = 0, races = 0, decided = 0, errors = 0;
  std::vector<double> gap_ms, gap_chunks, late_ms, lost_ms, paused_ms, over_ms, rates;
  std::size_t finds = 0, wrong_finds = 0, finds_twice = 0;
  std::uint64_t hashes_done = 0, hashes_told = 0;
  std::set<std::string> winners;
  std::string first_error;
  record::ReadyEvent ready;
};

struct Asked {
  std::string device, race, geometry;
  int epochs = 0;
  double epoch_s = 0, lead_s = 0, budget_s = 0;
  bool classic = false;
};

class Run {
 public:
  Run(Asked asked, fs::path folder, Seen& seen)
      : asked_(std::move(asked)), folder_(std::move(folder)), seen_(seen) {}

  Status run() {
    FURLONG_CHECK(start());
    FURLONG_TRY(Epoch first, make_epoch(number_++, asked_.geometry, folder_));
    current_ = std::make_shared<const Epoch>(std::move(first));
    FURLONG_CHECK(send(record::PrepareCommand{current_->pair, current_->folder.string()}));
    FURLONG_CHECK(send_job(*current_));
    FURLONG_CHECK(wait_for([&] { return prepared_.contains(current_->pair.epoch); }, 600, "the first pair"));
    seen_.rates.clear();
    FURLONG_CHECK(wait_for([&] { return seen_.rates.size() >= 2; }, 60, "its rate"));
    seen_.lost_ms.clear();
    seen_.paused_ms.clear();
    seen_.over_ms.clear();
    choose_target();
    FURLONG_CHECK(send_job(*current_));
    FURLONG_CHECK(listen(1));
    int shown = 0;
    for (int i = 0; i < asked_.epochs; ++i) {
      FURLONG_CHECK(epoch());
      if (asked_.epochs >= 20 && 10 * i / asked_.epochs > shown) {
        shown = 10 * i / asked_.epochs;
        furlong::log_info("{} of {} epochs", i, asked_.epochs);
      }
    }
    FURLONG_CHECK(listen(0.5));
    FURLONG_CHECK(send(record::StopCommand{}));
    FURLONG_CHECK(send(record::StatusCommand{}));
    FURLONG_CHECK(wait_for([&] { return state_; }, 60, "its state"));
    FURLONG_CHECK(send(record::QuitCommand{}));
    FURLONG_CHECK(wait_for([&] { return bye_; }, 60, "its end"));
    const furlong::ProcessEnd end = child_->wait(10);
    if (end.exit_code != 0) return fail(Code::internal, "the worker: {}", end.text());
    return {};
  }

 private:
  Status start() {
    FURLONG_TRY(const fs::path furlong_program, furlong::bench::program());
    furlong::ProcessRequest request;
    request.argv = {furlong_program.string(),
                    "worker",
                    "--serve",
                    "--device",
                    asked_.device,
                    "--race",
                    asked_.race,
                    "--race-budget-s",
                    fmt::format("{:g}", asked_.budget_s),
                    "--allow-unsigned",
                    "--rate-every-s",
                    "1"};
    if (asked_.classic) {
      request.argv.push_back("--classic");
      request.argv.insert(request.argv.end(), {"--max-pause-ms", "0"});  // the plain rule has no cap
    }
    request.environment = {{"FURLONG_STATE_DIR", (folder_ / "state").string()}};
    request.guarded = true;
    FURLONG_TRY(child_, furlong::system_processes().start(request));
    return wait_for([&] { return ready_; }, 120, "it to be ready");
  }

  Status send(const record::WorkerCommand& command) { return child_->write(record::print(command) + "\n"); }

  Status send_job(const Epoch& epoch) {
    const std::string name = fmt::format("j{}", ++job_);
    jobs_[name] = {std::make_shared<const Epoch>(epoch), target_};
    return send(record::JobCommand{epoch.pair, name, target_, std::uint64_t{0} - 1000, 0});
  }

  /// About two finds a second.
  void choose_target() {
    if (seen_.rates.empty() || seen_.rates.back() <= 0) return;
    const double per_s = 1e6 * furlong::stats::median(seen_.rates);
    target_ = static_cast<std::uint64_t>(0x1p64 * std::min(2 / per_s, 0.5));
  }

  /// Serves the current pair until its boundary; the next is prepared meanwhile.
  Status epoch() {
    const double begin_s = now_s();
    FURLONG_TRY(Epoch made, make_epoch(number_++, asked_.geometry, folder_));
    const auto next = std::make_shared<const Epoch>(std::move(made));
    FURLONG_CHECK(listen(begin_s + asked_.epoch_s - asked_.lead_s - now_s()));
    FURLONG_CHECK(send(record::PrepareCommand{next->pair, next->folder.string()}));
    FURLONG_CHECK(listen(begin_s + asked_.epoch_s - now_s()));
    const int before = seen_.swaps;
    FURLONG_CHECK(send_job(*next));
    FURLONG_CHECK(wait_for([&] { return seen_.swaps > before; }, 300, "a swap"));
    static_cast<void>(furlong::system_files().remove(current_->folder));
    current_ = next;
    return {};
  }

  Status listen(double seconds) {
    const double until_s = now_s() + seconds;
    while (now_s() < until_s) FURLONG_CHECK(turn(until_s - now_s()));
    return {};
  }

  Status wait_for(const std::function<bool()>& there, double limit_s, std::string_view what) {
    const double until_s = now_s() + limit_s;
    while (!there()) {
      if (now_s() > until_s) return fail(Code::timeout, "waited {:g} s for {}", limit_s, what);
      FURLONG_CHECK(turn(1));
    }
    return {};
  }

  Status turn(double limit_s) {
    const auto line = child_->read_line(std::max(limit_s, 0.001));
    if (!line) return line.error().code() == Code::timeout ? Status() : Status(line.error());
    if (!*line) {
      const furlong::ProcessEnd end = child_->wait(5);
      return fail(Code::internal, "the worker ended: {}: {}", end.text(), end.standard_error);
    }
    FURLONG_TRY(const record::WorkerEvent event, record::parse_worker_event(**line));
    take(event);
    return {};
  }

  void take(const record::WorkerEvent& event) {
    if (const auto* e = std::get_if<record::ReadyEvent>(&event)) {
      seen_.ready = *e;
      ready_ = true;
    }
    if (const auto* e = std::get_if<record::PreparedEvent>(&event)) {
      prepared_.insert(e->pair.epoch);
      seen_.over_ms.push_back(e->ms);
      seen_.winners.insert(e->variant);
    }
    if (const auto* e = std::get_if<record::LostEvent>(&event)) {
      seen_.lost_ms.push_back(e->lost_ms);
      seen_.paused_ms.push_back(e->paused_ms);
    }
    if (const auto* e = std::get_if<record::RaceEvent>(&event)) take_race(e->line);
    if (const auto* e = std::get_if<record::RateEvent>(&event)) seen_.rates.push_back(e->mhs);
    if (const auto* e = std::get_if<record::StateEvent>(&event)) {
      state_ = true;
      if (const auto json = furlong::json_parse(e->json, "status"))
        if (const auto count = furlong::json_integer(*json, "hashes", "status"))
          seen_.hashes_told = static_cast<std::uint64_t>(*count);
    }
    if (const auto* e = std::get_if<record::SwapEvent>(&event)) take_swap(*e);
    if (const auto* e = std::get_if<record::FoundEvent>(&event)) take_find(*e);
    if (const auto* e = std::get_if<record::DoneEvent>(&event)) seen_.hashes_done += e->hashes;
    if (const auto* e = std::get_if<record::ErrorEvent>(&event)) {
      if (seen_.errors++ == 0) seen_.first_error = e->message;
    }
    if (std::holds_alternative<record::ByeEvent>(event)) bye_ = true;
  }

  void take_race(const std::string& text) {
    ++seen_.races;
    const auto line = record::parse_race_line(text);
    const auto verdict = line ? line->verdict : std::nullopt;
    seen_.decided += verdict == record::Verdict::winner || verdict == record::Verdict::dead_heat ||
                     verdict == record::Verdict::classic;
  }

  void take_swap(const record::SwapEvent& swap) {
    if (!swapped_once_) {  // to the first pair: there was nothing before
      swapped_once_ = true;
      return;
    }
    ++seen_.swaps;
    seen_.missed += !swap.prepared;
    seen_.gap_ms.push_back(swap.gap_ms);
    seen_.gap_chunks.push_back(swap.gap_chunks);
    seen_.late_ms.push_back(swap.late_ms);
  }

  void take_find(const record::FoundEvent& find) {
    ++seen_.finds;
    const auto job = jobs_.find(find.job);
    const bool right = job != jobs_.end() && find.hash < job->second.second &&
                       job->second.first->hash(find.nonce) == find.hash;
    seen_.wrong_finds += !right;
    seen_.finds_twice += !found_.insert(find.job + fmt::format(" {:x}", find.nonce)).second;
  }

  Asked asked_;
  fs::path folder_;
  Seen& seen_;
  std::unique_ptr<furlong::Child> child_;
  std::uint64_t number_ = 0;
  int job_ = 0;
  std::uint64_t target_ = 1ull << 40;
  std::shared_ptr<const Epoch> current_;
  std::map<std::string, std::pair<std::shared_ptr<const Epoch>, std::uint64_t>> jobs_;
  std::set<std::string> prepared_, found_;
  bool ready_ = false, bye_ = false, state_ = false, swapped_once_ = false;
};

Result<double> number(const Bench& bench, const std::string& name) {
  return furlong::parse_number(bench.option(name));
}

Result<Asked> asked_of(const Bench& bench) {
  Asked asked;
  asked.device = bench.option("device");
  const bool cpu = asked.device.starts_with("host") || asked.device.starts_with("opencl");
  asked.race = bench.option("race");
  if (asked.race.empty())
    asked.race = !cpu ? "catalogue" : asked.device.starts_with("host") ? "n64,v8" : "g64,u2";
  asked.geometry = bench.option("geometry");
  if (asked.geometry.empty()) asked.geometry = cpu ? "small" : "default";
  FURLONG_TRY(const double epochs, number(bench, "epochs"));
  asked.epochs = bench.smoke() ? 2 : static_cast<int>(epochs);
  FURLONG_TRY(asked.epoch_s, number(bench, "epoch-s"));
  FURLONG_TRY(asked.lead_s, number(bench, "lead-s"));
  FURLONG_TRY(asked.budget_s, number(bench, "race-budget-s"));
  if (bench.smoke()) {
    asked.race = "off";
    asked.epoch_s = 4;
    asked.lead_s = 3;
  }
  return asked;
}

void tell(Bench& bench, const std::string& name, const Seen& seen) {
  bench.row({name,
             {{"swaps", seen.swaps},
              {"missed_swaps", seen.missed},
              {"races", seen.races},
              {"decided", seen.decided},
              {"gap_ms_p50", quantile(seen.gap_ms, 0.5)},
              {"gap_ms_p99", quantile(seen.gap_ms, 0.99)},
              {"gap_chunks_p99", quantile(seen.gap_chunks, 0.99)},
              {"late_ms_p99", quantile(seen.late_ms, 0.99)},
              {"paused_ms_p50", quantile(seen.paused_ms, 0.5)},
              {"lost_ms_p50", quantile(seen.lost_ms, 0.5)},
              {"lost_ms_p99", quantile(seen.lost_ms, 0.99)},
              {"lost_pct_of_hour", quantile(seen.lost_ms, 0.5) / 36e3},
              {"prepare_ms_p50", quantile(seen.over_ms, 0.5)},
              {"mhs", quantile(seen.rates, 0.5)},
              {"finds", static_cast<double>(seen.finds)}},
             "per epoch"});
}

void must_be_whole(Bench& bench, const std::string& name, const Seen& seen, int epochs) {
  bench.must(seen.swaps == epochs, fmt::format("{}: {} swaps of {} made", name, seen.swaps, epochs));
  bench.must(seen.wrong_finds == 0,
             fmt::format("{}: {} of {} finds are wrong", name, seen.wrong_finds, seen.finds));
  bench.must(seen.finds_twice == 0, fmt::format("{}: {} finds were told twice", name, seen.finds_twice));
  bench.must(seen.hashes_done == seen.hashes_told,
             fmt::format("{}: {} hashes done, {} told", name, seen.hashes_done, seen.hashes_told));
  bench.must(seen.errors == 0,
             fmt::format("{}: {} errors, the first: {}", name, seen.errors, seen.first_error));
}

Status run(Bench& bench) {
  FURLONG_TRY(const Asked asked, asked_of(bench));
  FURLONG_TRY(const auto folder, furlong::TemporaryFolder::make("furlong-worker-epochs-"));
  Seen raced, plain;
  FURLONG_CHECK(Run(asked, folder.path() / "race", raced).run());
  bench.environment("device", raced.ready.card);
  bench.environment("driver", raced.ready.driver);
  tell(bench, "race", raced);
  must_be_whole(bench, "race", raced, asked.epochs);
  FURLONG_TRY(const double plain_epochs, number(bench, "classic-epochs"));
  if (!bench.smoke() && plain_epochs > 0) {
    Asked classic = asked;
    classic.classic = true;
    classic.budget_s = 540;  // the plain rule takes the time that it takes
    classic.epochs = static_cast<int>(plain_epochs);
    FURLONG_TRY(const double classic_s, number(bench, "classic-epoch-s"));
    // Each variant's window is 2 s, and one more is the first pair's.
    classic.epoch_s = classic_s;
    classic.lead_s = classic_s - (asked.epoch_s - asked.lead_s);
    FURLONG_CHECK(Run(classic, folder.path() / "classic", plain).run());
    tell(bench, "plain rule", plain);
    must_be_whole(bench, "plain rule", plain, classic.epochs);
    bench.metric("lost_ms_per_epoch_p50_classic", quantile(plain.lost_ms, 0.5), Better::lower, {0.3, 100});
    bench.metric("paused_ms_per_race_p50_classic", quantile(plain.paused_ms, 0.5), Better::lower, {0.2, 50});
  }
  bench.metric("swaps", raced.swaps, Better::higher);
  bench.metric("missed_swaps", raced.missed, Better::lower, {0, 1});
  bench.metric("gap_chunks_p99", quantile(raced.gap_chunks, 0.99), Better::lower, {0.5, 0.05});
  bench.metric("paused_ms_per_race_p50", quantile(raced.paused_ms, 0.5), Better::lower, {0.2, 50});
  bench.metric("lost_ms_per_epoch_p50", quantile(raced.lost_ms, 0.5), Better::lower, {0.3, 100});
  if (bench.smoke()) return {};
  bench.at_least("finds", static_cast<double>(raced.finds), 1);
  bench.at_most("swaps that were not ready in time", raced.missed, 0);
  bench.at_most("first chunk after the job's line in ms, 99th percentile", quantile(raced.late_ms, 0.99),
                500);
  bench.at_most("gap in chunks, 99th percentile", quantile(raced.gap_chunks, 0.99), 1);
  bench.at_most("lost work an epoch in ms, median", quantile(raced.lost_ms, 0.5), 3600);
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  return furlong::bench::bench_main(
      argc, argv, "worker-epochs", run,
      {{"device", "The worker's device.", "host:0"},
       {"race", "Variants of a prepare; empty: a few on a CPU, the catalogue on a card.", ""},
       {"geometry", "Of the packs; empty: small on a CPU, default on a card.", ""},
       {"epochs", "Swaps to make.", "200"},
       {"epoch-s", "Length of an epoch.", "7"},
       {"lead-s", "When the next is prepared, before its boundary.", "6"},
       {"race-budget-s", "Of each race.", "5"},
       {"classic-epochs", "Swaps with the plain rule, beside it; 0: none.", "10"},
       {"classic-epoch-s", "Length of its epochs.", "20"}});
}
