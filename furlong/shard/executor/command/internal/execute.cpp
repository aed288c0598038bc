#include "furlong/shard/executor/command/internal/execute.h"

#include <sys/stat.h>

#include <cerrno>
#include <filesystem>
#include <limits>
#include <optional>
#include <system_error>

#include "furlong/base/os/file.h"
#include "furlong/base/text.h"

namespace furlong::shard::command {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kAnySize = std::numeric_limits<std::size_t>::max();

Error changed(const InputItem& input, std::string_view how) {
  return fail(Code::invalid,
              "the input {} is not what it was when the store was made ({}): make the store anew", input.path,
              how);
}

// So that what is there afterwards is this command's. Never anything but a file: a path that names a folder
// is a slip in the list.
Status clear_output(const std::string& path) {
  std::error_code error;
  const fs::file_status found = fs::symlink_status(path, error);
  if (fs::is_regular_file(found) || fs::is_symlink(found)) {
    if (!fs::remove(path, error) && error)
      return fail(Code::mismatch, "its output {} cannot be written anew: {}", path, error.message());
  } else if (fs::exists(found)) {
    return fail(Code::mismatch, "its output {} is there and no regular file: it is left alone", path);
  }
  fs::create_directories(fs::path(path).parent_path(), error);
  if (error) return fail(Code::mismatch, "the folder of its output {}: {}", path, error.message());
  return {};
}

Result<InputItem> hash_output(const std::string& path) {
  std::error_code error;
  if (!fs::exists(path, error)) return fail(Code::mismatch, "it left its output {} out", path);
  InputItem output;
  output.path = path;
  auto hash = system_files().hash(path, kAnySize);
  if (!hash) return fail(Code::mismatch, "its output: {}", hash.error().text());
  output.hash = *hash;
  output.bytes = fs::file_size(path, error);
  return output;
}

/// What the items of a unit say.
struct Contents {
  std::optional<Command> command;
  std::vector<InputItem> inputs;
};

Result<Contents> read_items(const Unit& unit, ItemSource& items) {
  Contents contents;
  const auto take = [&](const Key& key, bool own) -> Status {
    FURLONG_TRY(const ByteView bytes, items.item(key));
    FURLONG_TRY(auto item, decode(bytes));
    if (auto* input = std::get_if<InputItem>(&item)) {
      contents.inputs.push_back(std::move(*input));
      return {};
    }
    if (!own || contents.command) return fail(Code::mismatch, "it has a command that is not its only one");
    contents.command = std::get<Command>(std::move(item));
    return {};
  };
  for (const Key& key : unit.items) FURLONG_CHECK(take(key, true));
  for (const Key& key : unit.references) FURLONG_CHECK(take(key, false));
  return contents;
}

Status judge(const MeasuredEnd& measured, const ExecuteOptions& options, bool limited_space) {
  const ProcessEnd& end = measured.end;
  if (end.stopped) return fail(Code::timeout, "stopped, and its processes were killed");
  if (measured.over_cap)
    return fail(Code::exhausted, "its processes took {}, over the limit of {} on them ({}){}",
                human_bytes(measured.peak_bytes), human_bytes(options.cap_bytes),
                memory_meter_name(measured.meter), end.signal != 0 ? ", and were killed" : "");
  if (!end.timed_out && end.signal == 0 && end.exit_code == 0) return {};
  std::string hint;
  if (limited_space && end.standard_error.find("memory") != std::string::npos)
    hint = fmt::format(" (a process could reserve {} of address space: see \"any_address_space\")",
                       human_bytes(address_space_limit(options.cap_bytes)));
  return fail(Code::mismatch, "{}{}{}", end.text(), end_of_errors(end.standard_error), hint);
}

Status run_command(const Command& command, const ExecuteOptions& options, UnitRun& run) {
  MeasuredRequest request;
  request.process.argv = command.argv;
  request.process.environment = command.environment;
  request.process.folder = command.folder;
  request.memory_cap_bytes = options.cap_bytes;
  request.any_address_space = command.any_address_space;
  if (command.timeout_s > 0) request.timeout_s = command.timeout_s;
  request.stop = options.stop;
  const auto measured = run_measured(request);
  if (!measured) {
    // Of the unit, where its program or its folder is not there; "exhausted" would be taken for the cap's.
    const Code code = measured.error().code();
    return fail(code == Code::exhausted || code == Code::internal ? Code::internal : Code::mismatch, "{}",
                measured.error().text());
  }
  const bool limited_space =
      options.cap_bytes != 0 && measured->meter == MemoryMeter::sampled && !command.any_address_space;
  FURLONG_CHECK(judge(*measured, options, limited_space));
  run.seconds = measured->seconds;
  run.user_s = measured->end.user_s;
  run.system_s = measured->end.system_s;
  run.peak_bytes = measured->peak_bytes;
  run.meter = measured->meter;
  return {};
}

}  // namespace

Result<InputCheck::Stamp> InputCheck::stamp(const std::string& path) {
  struct stat info{};
  if (stat(path.c_str(), &info) != 0)
    return fail(Code::unavailable, "{}", std::generic_category().message(errno));
  const auto ns = [](const timespec& time) {
    return static_cast<std::int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
  };
  return Stamp{info.st_dev, info.st_ino, static_cast<std::uint64_t>(info.st_size), ns(info.st_mtim),
               ns(info.st_ctim)};
}

Status InputCheck::check(const InputItem& input) {
  const auto before = stamp(input.path);
  if (!before) return changed(input, before.error().text());
  if (before->bytes != input.bytes)
    return changed(input, fmt::format("{} bytes, then {}", before->bytes, input.bytes));
  auto known = known_.find(input.path);
  if (known == known_.end() || known->second.stamp != *before) {
    const auto hash = system_files().hash(input.path, kAnySize);
    if (!hash) return changed(input, hash.error().text());
    known = known_.insert_or_assign(input.path, Known{*before, *hash}).first;
  }
  if (known->second.hash != input.hash) return changed(input, "another content");
  return {};
}

std::string end_of_errors(std::string_view standard_error) {
  constexpr std::size_t kKept = 1000;
  std::string_view text = trim(standard_error);
  if (text.empty()) return "";
  const bool cut = text.size() > kKept;
  if (cut) text.remove_prefix(text.size() - kKept);
  // Not in the middle of a character: what goes on in one has the bits 10 in front.
  while (cut && !text.empty() && (static_cast<unsigned char>(text.front()) & 0xC0) == 0x80)
    text.remove_prefix(1);
  std::string line = one_line(text);
  if (!is_valid_utf8(line))
    for (char& c : line)
      if (static_cast<unsigned char>(c) >= 0x80) c = '?';
  return fmt::format(": {}{}", cut ? "…" : "", line);
}

Result<UnitRun> execute_unit(const Unit& unit, ItemSource& items, InputCheck& inputs,
                             const ExecuteOptions& options) {
  if (options.stop.stop_requested()) return fail(Code::timeout, "stopped");
  FURLONG_TRY(const Contents contents, read_items(unit, items));
  UnitRun run;
  run.unit = unit.key;
  run.name = unit.name;
  for (const InputItem& input : contents.inputs) {
    FURLONG_CHECK(inputs.check(input));
    ++run.inputs;
    run.input_bytes += input.bytes;
  }
  if (!contents.command) return run;
  run.has_command = true;
  for (const std::string& output : contents.command->outputs) FURLONG_CHECK(clear_output(output));
  FURLONG_CHECK(run_command(*contents.command, options, run));
  // Whoever changed one meanwhile: what came out is of no known input.
  for (const InputItem& input : contents.inputs) FURLONG_CHECK(inputs.check(input));
  for (const std::string& path : contents.command->outputs) {
    FURLONG_TRY(InputItem output, hash_output(path));
    run.outputs.push_back(std::move(output));
  }
  return run;
}

Cost cost_of(const UnitRun& run) {
  Cost cost;
  cost.work = run.user_s + run.system_s;
  cost.seconds = run.seconds;
  cost.record_bytes = cost.peak_bytes = run.peak_bytes;
  double output_bytes = 0;
  for (const InputItem& output : run.outputs) output_bytes += static_cast<double>(output.bytes);
  cost.features = {{"commands", run.has_command ? 1 : 0},
                   {"inputs", static_cast<double>(run.inputs)},
                   {"input_bytes", static_cast<double>(run.input_bytes)},
                   {"outputs", static_cast<double>(run.outputs.size())},
                   {"output_bytes", output_bytes},
                   {"user_seconds", run.user_s},
                   {"system_seconds", run.system_s},
                   {"memory_sampled", run.has_command && run.meter == MemoryMeter::sampled ? 1 : 0}};
  return cost;
}

}  // namespace furlong::shard::command
