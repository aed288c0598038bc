#include "bench/harness.h"

#include <sys/utsname.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "furlong/base/json.h"
#include "furlong/base/os/clock.h"
#include "furlong/base/os/file.h"
#include "furlong/base/os/process.h"
#include "furlong/base/table.h"
#include "furlong/base/text.h"

namespace furlong::bench {
namespace {

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name"))
      if (const std::size_t colon = line.find(':'); colon != std::string::npos)
        return "cpu: " + std::string(trim(std::string_view(line).substr(colon + 1)));
  return "cpu";
}

std::string kernel_name() {
  utsname names{};
  return uname(&names) == 0 ? fmt::format("{} {}", names.sysname, names.release) : "unknown";
}

std::string commit_name() {
  // On a machine without the repository whoever carried the program there knows the commit.
  if (const char* given = std::getenv("FURLONG_COMMIT"); given && *given) return given;
  ProcessRequest request;
  request.argv = {"git", "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"};
  const auto end = system_processes().run(request, 10);
  if (!end || end->signal != 0 || end->exit_code != 0) return "unknown";
  return std::string(trim(end->standard_output));
}

std::string compiler_name() {
#if defined(__clang__)
  return fmt::format("clang++ {}", __clang_version__);
#else
  return fmt::format("g++ {}", __VERSION__);
#endif
}

// Six significant digits: enough to compare, short enough to read.
std::string number(double value) { return std::isfinite(value) ? fmt::format("{:.6g}", value) : "-"; }

std::string help_text(std::string_view name, const std::vector<BenchOption>& options) {
  std::string text = fmt::format(
      "usage: ./dev bench {} [--json FILE] [--smoke]\n"
      "  --json FILE   write the result there\n"
      "  --smoke       a tiny run, for the tests\n"
      "  --help        this text\n",
      name);
  for (const BenchOption& option : options)
    text += fmt::format("  --{} VALUE   {} (default {})\n", option.name, option.help, option.value);
  return text + "exit: 0 ok, 1 could not run, 2 bad usage, 3 a bound was missed\n";
}

struct CommandLine {
  bool help = false, smoke = false;
  std::string json_file;
  std::map<std::string, std::string> options;
};

Result<CommandLine> parse(int argc, char** argv, const std::vector<BenchOption>& known) {
  CommandLine line;
  std::vector<std::string> names{"--json", "--smoke", "--help"};
  for (const BenchOption& option : known) {
    line.options[option.name] = option.value;
    names.push_back("--" + option.name);
  }
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--help" || word == "-h") {
      line.help = true;
    } else if (word == "--smoke") {
      line.smoke = true;
    } else if (word == "--json" || (word.starts_with("--") && line.options.contains(word.substr(2)))) {
      if (i + 1 >= argc) return fail(Code::invalid, "{} needs a value", word);
      ++i;
      (word == "--json" ? line.json_file : line.options[word.substr(2)]) = argv[i];
    } else {
      return fail(Code::invalid, "unknown option '{}'{}", word, did_you_mean(word, names));
    }
  }
  return line;
}

}  // namespace

Bench::Bench(std::string name, bool smoke, std::map<std::string, std::string> options)
    : name_(std::move(name)), smoke_(smoke), options_(std::move(options)) {
  environment_ = {{"device", processor_name()},
                  {"driver", kernel_name()},
                  {"compiler", compiler_name()},
                  {"commit", commit_name()},
                  {"date", iso_time(system_clock().wall_us())}};
}

void Bench::metric(std::string name, double value, Better better, Noise noise) {
  metrics_.push_back({std::move(name), value, better, noise});
}
void Bench::row(BenchRow row) { rows_.push_back(std::move(row)); }
void Bench::environment(std::string key, std::string value) {
  environment_[std::move(key)] = std::move(value);
}

void Bench::must(bool held, std::string what) {
  if (!held) missed_.push_back(std::move(what));
}
void Bench::at_most(std::string_view what, double value, double limit) {
  must(value <= limit, fmt::format("{} is {}, at most {} is allowed", what, number(value), number(limit)));
}
void Bench::at_least(std::string_view what, double value, double limit) {
  must(value >= limit, fmt::format("{} is {}, at least {} is needed", what, number(value), number(limit)));
}

std::string Bench::json(std::string_view failure) const {
  Json file = Json::object();
  file["name"] = name_;
  file["version"] = kResultVersion;
  file["status"] = !failure.empty() ? "failed" : missed_.empty() ? "ok" : "missed";
  if (!failure.empty()) file["failure"] = failure;
  if (smoke_) file["smoke"] = true;
  for (const char* key : {"metrics", "better", "noise"}) file[key] = Json::object();
  for (const Metric& m : metrics_) {
    file["metrics"][m.name] = m.value;
    file["better"][m.name] = m.better == Better::lower ? "lower" : "higher";
    file["noise"][m.name] = {{"relative", m.noise.relative}, {"absolute", m.noise.absolute}};
  }
  file["rows"] = Json::array();
  for (const BenchRow& row : rows_) {
    Json cells = Json::object();
    if (!row.group.empty()) cells["group"] = row.group;
    cells["row"] = row.name;
    for (const auto& [key, value] : row.values) cells[key] = value;
    file["rows"].push_back(std::move(cells));
  }
  file["missed"] = missed_;
  file["environment"] = environment_;
  return json_pretty(file);
}

std::string Bench::text() const {
  std::string out;
  for (std::size_t begin = 0, end; begin < rows_.size(); begin = end) {
    for (end = begin; end < rows_.size() && rows_[end].group == rows_[begin].group;) ++end;
    if (!rows_[begin].group.empty()) out += rows_[begin].group + "\n";
    Table table;
    table.column("row");
    for (const auto& [key, value] : rows_[begin].values) table.column(key, Table::Align::right);
    for (std::size_t i = begin; i < end; ++i) {
      std::vector<std::string> cells{rows_[i].name};
      for (const auto& [key, value] : rows_[i].values) cells.push_back(number(value));
      table.row(std::move(cells));
    }
    out += table.text() + "\n";
  }
  Table metrics;
  metrics.column("metric");
  metrics.column("value", Table::Align::right);
  metrics.column("better");
  for (const Metric& m : metrics_)
    metrics.row({m.name, number(m.value), m.better == Better::lower ? "lower" : "higher"});
  if (metrics.rows() > 0) out += metrics.text();
  for (const std::string& what : missed_) out += "missed: " + what + "\n";
  return out;
}

int bench_main(int argc, char** argv, std::string_view name, const std::function<Status(Bench&)>& run,
               std::vector<BenchOption> options) {
  const auto line = parse(argc, argv, options);
  if (!line) {
    std::fprintf(stderr, "%s: %s\n%s", std::string(name).c_str(), line.error().text().c_str(),
                 help_text(name, options).c_str());
    return 2;
  }
  if (line->help) {
    std::fputs(help_text(name, options).c_str(), stdout);
    return 0;
  }
  Bench bench(std::string(name), line->smoke, line->options);
  const Status ran = run(bench);
  const std::string failure = ran ? "" : ran.error().text();
  std::fputs(bench.text().c_str(), stdout);
  if (!failure.empty()) std::fprintf(stderr, "%s: %s\n", std::string(name).c_str(), failure.c_str());
  if (!line->json_file.empty()) {
    if (const Status wrote = system_files().write_atomic(line->json_file, bench.json(failure)); !wrote) {
      std::fprintf(stderr, "%s: %s\n", std::string(name).c_str(), wrote.error().text().c_str());
      return 1;
    }
  }
  return !failure.empty() ? 1 : bench.missed().empty() ? 0 : 3;
}

}  // namespace furlong::bench
