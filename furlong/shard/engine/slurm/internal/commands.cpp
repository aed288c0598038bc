#include "furlong/shard/engine/slurm/internal/commands.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

#include "furlong/base/text.h"

namespace furlong::shard::slurm {
namespace {

constexpr double kCallSeconds = 60;  // Slurm's own commands give up after some ten seconds
constexpr std::size_t kJobsPerCancel = 500;

// What Slurm says when its controller is away or busy. Everything else that fails is a refusal.
constexpr std::array kPassing = {"Unable to contact",
                                 "timed out",
                                 "temporarily",
                                 "Connection refused",
                                 "Zero Bytes were",
                                 "standby",
                                 "Communication connection failure"};

std::string words(std::string_view text) {
  std::string line = one_line(trim(text));
  if (line.size() > 400) line = line.substr(0, 400) + "…";
  return line.empty() ? "(nothing)" : line;
}

// "1-02:03:04", "02:03:04", "3:04"; 0 for what is none ("INVALID").
double parse_elapsed(std::string_view text) {
  double days = 0;
  if (const auto dash = text.find('-'); dash != std::string_view::npos) {
    days = parse_number(text.substr(0, dash)).value_or(0);
    text = text.substr(dash + 1);
  }
  double seconds = 0;
  for (const std::string& part : split(text, ':')) {
    const auto number = parse_number(part);
    if (!number) return 0;
    seconds = seconds * 60 + *number;
  }
  return days * 86400 + seconds;
}

template <class Number>
std::optional<Number> parse_natural(std::string_view text) {
  const auto number = parse_integer(text);
  if (!number || *number < 0 || !std::in_range<Number>(*number)) return std::nullopt;
  return static_cast<Number>(*number);
}

// The value of "Key=value" in a line of scontrol.
std::optional<std::string> field(std::string_view line, std::string_view key) {
  for (const std::string& part : split(line, ' '))
    if (part.size() > key.size() && part.starts_with(key) && part[key.size()] == '=')
      return part.substr(key.size() + 1);
  return std::nullopt;
}

}  // namespace

bool is_passing(const Error& error) {
  return error.code() == Code::timeout || error.code() == Code::incompatible;
}

std::string JobId::text() const { return fmt::format("{}_{}", array, index); }

Result<std::string> Commands::call(const ProcessRequest& request, std::stop_token stop) {
  const std::string& name = request.argv.front();
  auto end = processes_.run(request, kCallSeconds, stop);
  if (!end && end.error().code() == Code::unavailable)
    return fail(Code::unavailable,
                "{} is not on this machine: the engine slurm needs Slurm's commands (Debian: the package "
                "slurm-client)",
                name);
  if (!end) return end.error();
  if (end->stopped) return fail(Code::timeout, "{} was stopped", name);
  if (end->timed_out) return fail(Code::timeout, "{} did not end in {:.0f} s", name, end->limit_s);
  if (end->signal != 0 || end->exit_code != 0) {
    const std::string said = end->standard_error + " " + end->standard_output;
    const bool passing = std::ranges::any_of(
        kPassing, [&](const char* phrase) { return said.find(phrase) != std::string::npos; });
    return fail(passing ? Code::timeout : Code::invalid, "{}: {}: {}", name, end->text(), words(said));
  }
  return std::move(end->standard_output);
}

Status Commands::present() {
  for (const char* name : {"sbatch", "squeue", "scontrol", "scancel"})
    FURLONG_CHECK(call({.argv = {name, "--version"}}));
  return {};
}

Result<std::uint32_t> Commands::max_array_size() {
  FURLONG_TRY(const std::string text, call({.argv = {"scontrol", "show", "config"}}));
  for (const std::string& line : split(text, '\n')) {
    if (!line.starts_with("MaxArraySize")) continue;
    const auto equals = line.find('=');
    const auto size = equals == std::string::npos
                          ? std::nullopt
                          : parse_natural<std::uint32_t>(trim(line.substr(equals + 1)));
    if (!size) return fail(Code::incompatible, "scontrol show config: '{}' has no number", words(line));
    if (*size < 2) return fail(Code::invalid, "this Slurm takes no job arrays (MaxArraySize is {})", *size);
    return *size;
  }
  return fail(Code::incompatible, "scontrol show config says nothing of MaxArraySize: {}", words(text));
}

Result<std::vector<JobRow>> parse_queue(std::string_view text) {
  std::vector<JobRow> rows;
  for (const std::string& line : split(text, '\n')) {
    if (trim(line).empty()) continue;
    // The name comes last, since it may hold anything.
    std::array<std::string_view, 7> parts;
    std::string_view rest = line;
    bool whole = true;
    for (std::size_t i = 0; i + 1 < parts.size() && whole; ++i) {
      const auto bar = rest.find('|');
      whole = bar != std::string_view::npos;
      if (!whole) break;
      parts[i] = rest.substr(0, bar);
      rest = rest.substr(bar + 1);
    }
    const auto array = parse_natural<std::uint64_t>(parts[0]);
    if (!whole || !array || parts[2].empty())
      return fail(Code::incompatible, "squeue printed what is no line of its queue: '{}'", words(line));
    rows.push_back({*array, parse_natural<std::uint32_t>(parts[1]), std::string(parts[2]),
                    parse_elapsed(parts[3]), std::string(parts[4]), std::string(parts[5]),
                    std::string(rest)});
  }
  return rows;
}

Result<std::vector<JobRow>> Commands::queue(std::stop_token stop) {
  // -t all: also those that have ended, as long as the controller remembers them (MinJobAge).
  const ProcessRequest request{.argv = {"squeue", "--noheader", "--array", "--states=all",
                                        "--user=" + std::to_string(::geteuid()),
                                        "--format=%F|%K|%T|%M|%N|%r|%j"}};
  auto text = call(request, stop);
  // squeue takes no arguments of ours that could be refused: what fails is Slurm's state.
  if (!text && text.error().code() == Code::invalid) return Error(Code::timeout, text.error().message());
  if (!text) return text.error();
  return parse_queue(*text);
}

Result<std::optional<JobEnd>> parse_job(std::string_view text, const JobId& job) {
  for (const std::string& line : split(text, '\n')) {
    if (field(line, "ArrayTaskId") != std::to_string(job.index)) continue;
    const auto state = field(line, "JobState"), code = field(line, "ExitCode");
    const auto parts = split(code.value_or(""), ':');
    const auto exit = parse_natural<int>(parts[0]);
    const auto signal = parts.size() == 2 ? parse_natural<int>(parts[1]) : std::nullopt;
    if (!state || !exit || !signal)
      return fail(Code::incompatible, "scontrol show job {}: no state or exit code in '{}'", job.text(),
                  words(line));
    return JobEnd{*state, field(line, "NodeList").value_or(""), *exit, *signal};
  }
  return std::optional<JobEnd>();
}

Result<std::optional<JobEnd>> Commands::ended(const JobId& job) {
  const auto text = call({.argv = {"scontrol", "--oneliner", "show", "job", job.text()}});
  if (!text && text.error().message().find("Invalid job id") != std::string::npos)
    return std::optional<JobEnd>();
  if (!text) return text.error();
  return parse_job(*text, job);
}

Result<std::uint64_t> Commands::submit(const Submission& submission) {
  // In the name of a file, Slurm takes % for a field.
  const std::string log = replace_all(submission.logs.string(), "%", "%%") + "/%A_%a.log";
  ProcessRequest request;
  // --no-requeue: a job that its node took down ends, and the engine alone decides who runs again.
  request.argv = {"sbatch",
                  "--parsable",
                  "--no-requeue",
                  "--ntasks=1",
                  fmt::format("--cpus-per-task={}", submission.cpus),
                  "--job-name=" + submission.name,
                  "--array=" + index_list(submission.indices) +
                      (submission.at_once == 0 ? "" : fmt::format("%{}", submission.at_once)),
                  "--output=" + log};
  if (submission.request.memory_mib != 0)
    request.argv.push_back(fmt::format("--mem={}M", submission.request.memory_mib));
  if (submission.request.minutes != 0)
    request.argv.push_back(fmt::format("--time={}", submission.request.minutes));
  request.argv.insert(request.argv.end(), submission.arguments.begin(), submission.arguments.end());
  request.input = submission.script;
  FURLONG_TRY(const std::string text, call(request));
  const auto id =
      parse_natural<std::uint64_t>(split(trim(text), ';').front());  // "12;cluster" in a federation
  if (!id) return fail(Code::incompatible, "sbatch printed no job's number: {}", words(text));
  return *id;
}

Status Commands::set_at_once(std::uint64_t array, unsigned at_once) {
  FURLONG_CHECK(call({.argv = {"scontrol", "update", fmt::format("JobId={}", array),
                               fmt::format("ArrayTaskThrottle={}", at_once)}}));
  return {};
}

Status Commands::cancel(std::span<const std::string> jobs, bool pending_alone) {
  for (std::size_t begin = 0; begin < jobs.size(); begin += kJobsPerCancel) {
    ProcessRequest request{.argv = {"scancel", "--quiet"}};
    if (pending_alone) request.argv.emplace_back("--state=PENDING");
    const auto some = jobs.subspan(begin, std::min(kJobsPerCancel, jobs.size() - begin));
    request.argv.insert(request.argv.end(), some.begin(), some.end());
    FURLONG_CHECK(call(request));
  }
  return {};
}

}  // namespace furlong::shard::slurm
