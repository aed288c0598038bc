// shard-build: units of a real compile_commands.json on boxes of several sizes. A store is made, planned and
// run, jobs admitted by the sum of their predicted memory; beside it `make -jN` runs the same commands with
// the same processors, N as many as fit by the largest unit's peak.

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <thread>

#include "bench/harness.h"
#include "furlong/base/json.h"
#include "furlong/base/os/file.h"
#include "furlong/base/os/measured_process.h"
#include "furlong/base/os/process_tree.h"
#include "furlong/base/text.h"
#include "furlong/shard/engine/local/local.h"
#include "furlong/shard/executor/command/command.h"
#include "furlong/shard/executor/command/compiler.h"
#include "furlong/shard/executor/command/make_store.h"
#include "furlong/shard/make_plan.h"
#include "furlong/shard/run.h"

namespace {

using furlong::Code;
using furlong::fail;
using furlong::Json;
using furlong::Result;
using furlong::Status;
using furlong::bench::Bench;
using furlong::bench::Better;
namespace fs = std::filesystem;
namespace shard = furlong::shard;
namespace command = furlong::shard::command;

constexpr double kMiB = 1 << 20;

/// What is compiled, with outputs of the bench's own.
struct Entry {
  std::string directory, file, output;
  std::vector<std::string> argv;
};

// The build tree's own objects are not touched.
void redirect(std::vector<std::string>& argv, const std::string& output) {
  for (std::size_t i = 1; i < argv.size(); ++i) {
    if (argv[i] == "-o" && i + 1 < argv.size()) {
      argv[i + 1] = output;
      return;
    }
    if (argv[i].starts_with("-o") && argv[i].size() > 2) {
      argv[i] = "-o" + output;
      return;
    }
  }
  argv.insert(argv.end(), {"-o", output});
}

// `most` entries, spread evenly over the list.
Result<std::vector<Entry>> read_entries(const fs::path& file, std::size_t most, const fs::path& outputs) {
  FURLONG_TRY(const std::string text, furlong::system_files().read(file));
  FURLONG_TRY(const auto all,
              command::parse_command_list(text, fs::absolute(file).parent_path(), file.string()));
  std::vector<Entry> entries;
  const std::size_t count = std::min(most, all.size());
  for (std::size_t i = 0; i < count; ++i) {
    const command::Command& chosen = all[i * all.size() / count];
    if (!chosen.source) return fail(Code::invalid, "{}: not a compile_commands.json", file.string());
    Entry entry{chosen.folder, *chosen.source, (outputs / fmt::format("{}.o", i)).string(), chosen.argv};
    redirect(entry.argv, entry.output);
    entries.push_back(std::move(entry));
  }
  return entries;
}

// Three units that any compiler takes no time for.
Result<std::vector<Entry>> tiny_entries(const fs::path& folder, const fs::path& outputs) {
  std::vector<Entry> entries;
  for (const char* name : {"a", "b", "c"}) {
    const std::string source = (folder / fmt::format("{}.c", name)).string();
    FURLONG_CHECK(furlong::system_files().write_atomic(
        source, fmt::format("#include <stddef.h>\nsize_t {}(void) {{ return sizeof(size_t); }}\n", name)));
    const std::string output = (outputs / fmt::format("{}.o", name)).string();
    entries.push_back({folder.string(), source, output, {"cc", "-c", source, "-o", output}});
  }
  return entries;
}

Status write_database(const std::vector<Entry>& entries, const fs::path& file) {
  Json json = Json::array();
  for (const Entry& entry : entries)
    json.push_back({{"directory", entry.directory},
                    {"file", entry.file},
                    {"arguments", entry.argv},
                    {"output", entry.output}});
  return furlong::system_files().write_atomic(file, furlong::json_pretty(json));
}

// One word for the shell, in a makefile.
std::string quoted(const std::string& word) {
  return furlong::replace_all("'" + furlong::replace_all(word, "'", "'\\''") + "'", "$", "$$");
}

Status write_makefile(const std::vector<Entry>& entries, const fs::path& file) {
  std::string all = "all:", rules;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    all += fmt::format(" t{}", i);
    rules += fmt::format("t{}:\n\t@cd {} &&", i, quoted(entries[i].directory));
    for (const std::string& word : entries[i].argv) rules += " " + quoted(word);
    rules += "\n";
  }
  return furlong::system_files().write_atomic(file, all + "\n.PHONY:" + all.substr(4) + "\n" + rules);
}

/// The memory of this process and all it starts, while the object lives.
class TreePeak {
 public:
  TreePeak() : tree_(getpid()), thread_([this](const std::stop_token& stop) { watch(stop); }) {}
  double end_mib() {
    thread_.request_stop();
    thread_.join();
    return static_cast<double>(tree_.peak_bytes()) / kMiB;
  }

 private:
  void watch(const std::stop_token& stop) {
    std::mutex mutex;
    std::condition_variable_any wake;
    std::unique_lock lock(mutex);
    while (!stop.stop_requested()) {
      tree_.sample();
      wake.wait_for(lock, stop, std::chrono::nanoseconds(furlong::kSamplePeriodNs), [] { return false; });
    }
  }
  furlong::ProcessTree tree_;
  std::jthread thread_;
};

struct Setting {
  fs::path folder, journal, makefile;
  std::shared_ptr<const shard::Store> store;
  std::unique_ptr<shard::Executor> executor = command::make_executor();
  unsigned processors = std::max(1u, std::thread::hardware_concurrency());
  double largest_bytes = 0, longest_s = 0, total_s = 0;  ///< of units, as they were measured
};

Result<shard::PlanOutcome> plan(const Setting& setting, double box_bytes, double seconds) {
  shard::PlanRequest request;
  request.sizing.budget_bytes = static_cast<std::uint64_t>(box_bytes);
  request.sizing.budget_seconds = seconds;
  request.cost_kind = setting.executor->cost_kind();
  request.journal = setting.journal;
  FURLONG_TRY(auto outcome, shard::make_plan(setting.store, *setting.executor, request));
  if (outcome.complete) return outcome;
  return fail(Code::mismatch, "unit {} failed: {}", outcome.plan.failed.at(0).unit,
              outcome.plan.failed[0].why);
}

/// Executes every unit once, alone: what they cost serves the plans of all boxes.
Status measure_units(Setting& setting) {
  constexpr double kNoLimit = 1ull << 50;
  FURLONG_CHECK(plan(setting, kNoLimit, 1e9));
  FURLONG_TRY(const auto journal, furlong::system_files().read(setting.journal));
  for (const std::string& line : furlong::split(journal, '\n')) {
    const std::size_t blank = line.find(' ');
    if (blank == line.npos) continue;
    FURLONG_TRY(const Json json,
                furlong::json_parse(std::string_view(line).substr(blank + 1), "the journal"));
    if (!json.contains("kind") || json["kind"] != "unit") continue;
    const double seconds = json["value"]["seconds"].get<double>();
    setting.total_s += seconds;
    setting.longest_s = std::max(setting.longest_s, seconds);
    setting.largest_bytes = std::max(setting.largest_bytes, json["value"]["record_bytes"].get<double>());
  }
  return {};
}

/// What one box was.
struct Outcome {
  double shards = 0, seconds = 0, peak_mib = 0, oom = 0, failed = 0;
  double make_jobs = 0, make_seconds = 0, make_peak_mib = 0;
};

Status run_box(Bench& bench, const Setting& setting, double box_bytes, const std::string& name,
               Outcome& out) {
  const double seconds = std::max(setting.total_s / (4 * setting.processors), 1.5 * setting.longest_s);
  FURLONG_TRY(const shard::PlanOutcome planned, plan(setting, box_bytes, seconds));
  FURLONG_TRY(const shard::PlanOutcome again, plan(setting, box_bytes, seconds));
  bench.must(shard::print_plan(planned.plan) == shard::print_plan(again.plan),
             name + ": the same journal gives the same plan, byte for byte");
  out.shards = static_cast<double>(planned.plan.shards.size());

  const shard::ReceiptCache cache(setting.folder / ("cache-" + name));
  const shard::RunContext context{setting.store, *setting.executor, planned.plan, cache, 1, 1, {}};
  const furlong::KeyPair signer = furlong::KeyPair::generate();
  std::atomic<int> oom{0};
  const auto engine = shard::local::make_engine([&](const shard::EngineTask& task, std::stop_token) {
    shard::TaskEnd end;
    const auto job = shard::run_shard(context, *planned.plan.find(task.shard), signer);
    if (!job) {
      oom += job.error().code() == Code::exhausted ? 1 : 0;
      end.error = job.error();
    }
    return end;
  });
  shard::RunRequest request;
  request.engine.memory_bytes = static_cast<std::uint64_t>(box_bytes);
  request.engine.jobs = setting.processors;
  request.fail_fast = false;
  TreePeak peak;
  FURLONG_TRY(const shard::RunReport report, shard::run_plan(context, *engine, request));
  out.peak_mib = peak.end_mib();
  out.seconds = report.seconds;
  out.oom = oom;
  out.failed = static_cast<double>(report.failed);
  for (const shard::ShardOutcome& one : report.shards)
    if (!one.why.empty()) bench.must(false, fmt::format("{}: shard {}: {}", name, one.shard, one.why));
  FURLONG_TRY(const shard::RunReport second, shard::run_plan(context, *engine, request));
  bench.must(second.kept == second.shards.size(), name + ": a second run has nothing pending");

  out.make_jobs = std::clamp(std::floor(box_bytes / setting.largest_bytes), 1.0, double(setting.processors));
  furlong::MeasuredRequest make;
  make.process.argv = {"make", "-f", setting.makefile.string(), fmt::format("-j{}", out.make_jobs)};
  FURLONG_TRY(const furlong::MeasuredEnd made, furlong::run_measured(make));
  if (made.end.exit_code != 0)
    return fail(Code::mismatch, "make: {}: {}", made.end.text(), furlong::one_line(made.end.standard_error));
  out.make_seconds = made.seconds;
  out.make_peak_mib = static_cast<double>(made.peak_bytes) / kMiB;
  return {};
}

void report_box(Bench& bench, const std::string& name, double box_bytes, const Outcome& out) {
  const std::string prefix = "boxes." + name + ".";
  const double ratio = out.seconds / out.make_seconds;
  bench.metric(prefix + "oom", out.oom, Better::lower, {0, 0});
  if (!bench.smoke()) {
    bench.metric(prefix + "shards", out.shards, Better::lower, {0.2, 1});
    bench.metric(prefix + "seconds", out.seconds, Better::lower, {0.2, 0});
    bench.metric(prefix + "make_seconds", out.make_seconds, Better::lower, {0.2, 0});
    bench.metric(prefix + "ratio", ratio, Better::lower, {0.1, 0});
    bench.metric(prefix + "peak_mib", out.peak_mib, Better::lower, {0.1, 0});
    // The sum of what all of them had at one time, this program's own memory with it.
    bench.at_most(name + ": peak over the box", out.peak_mib / (box_bytes / kMiB), 1.1);
  }
  bench.at_most(name + ": shards out of memory", out.oom, 0);
  bench.at_most(name + ": shards that failed", out.failed, 0);
  bench.row({name,
             {{"box MiB", box_bytes / kMiB},
              {"shards", out.shards},
              {"seconds", out.seconds},
              {"peak MiB", out.peak_mib},
              {"oom", out.oom},
              {"make -j", out.make_jobs},
              {"make s", out.make_seconds},
              {"make MiB", out.make_peak_mib},
              {"ratio", ratio}},
             "One build on boxes of several sizes (% of the largest unit's peak)"});
}

Status run(Bench& bench) {
  setenv("CCACHE_DISABLE", "1", 1);  // what is compared is compiling
  FURLONG_TRY(const auto folder, furlong::TemporaryFolder::make("shard-build"));
  Setting setting;
  setting.folder = folder.path();
  setting.journal = folder.path() / "journal";
  setting.makefile = folder.path() / "Makefile";
  const fs::path outputs = folder.path() / "outputs", database = folder.path() / "compile_commands.json";
  fs::create_directories(outputs);
  for (const char* program : {"make", "cc"}) {
    const auto there = furlong::system_processes().run({.argv = {program, "--version"}}, 60);
    if (there || !bench.smoke()) continue;
    bench.environment("skipped", there.error().text());
    return {};
  }
  FURLONG_TRY(const auto units, furlong::parse_integer(bench.option("units")));
  if (units < 1) return fail(Code::invalid, "--units {}: at least 1", units);
  FURLONG_TRY(const auto entries, bench.smoke() ? tiny_entries(folder.path(), outputs)
                                                : read_entries(bench.option("compile-commands"),
                                                               static_cast<std::size_t>(units), outputs));
  FURLONG_CHECK(write_database(entries, database));
  FURLONG_CHECK(write_makefile(entries, setting.makefile));

  const fs::path store = folder.path() / "build.store";
  FURLONG_TRY(const auto summary, command::make_command_store(database, store));
  bench.must(summary.without_headers.empty(), "the compiler tells the headers of every unit");
  FURLONG_TRY(setting.store, shard::Store::open(store));
  FURLONG_CHECK(measure_units(setting));
  bench.row({"units",
             {{"commands", static_cast<double>(summary.commands)},
              {"input files", static_cast<double>(summary.inputs)},
              {"shared", static_cast<double>(summary.shared)},
              {"seconds alone", setting.total_s},
              {"longest s", setting.longest_s},
              {"largest MiB", setting.largest_bytes / kMiB},
              {"processors", static_cast<double>(setting.processors)}},
             "What is built"});
  for (const std::string& percent : furlong::split(bench.option("boxes"), ',')) {
    FURLONG_TRY(const double share, furlong::parse_number(percent));
    if (!(share > 133)) return fail(Code::invalid, "--boxes {}: no job of the largest unit fits", percent);
    const double box_bytes = setting.largest_bytes * share / 100;
    Outcome out;
    FURLONG_CHECK(run_box(bench, setting, box_bytes, percent, out));
    report_box(bench, percent, box_bytes, out);
  }
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  return furlong::bench::bench_main(
      argc, argv, "shard-build", run,
      {{"compile-commands", "what is built", "build/release/compile_commands.json"},
       {"units", "how many of its units, spread evenly", "24"},
       {"boxes", "memory of each box, in percent of the largest unit's peak", "150,250,400"}});
}
