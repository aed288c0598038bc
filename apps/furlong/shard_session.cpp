#include "apps/furlong/shard_session.h"

#include <unistd.h>

#include <cmath>

#include "apps/furlong/executors.h"
#include "apps/furlong/session.h"
#include "furlong/base/json.h"
#include "furlong/base/os/clock.h"
#include "furlong/base/os/paths.h"
#include "furlong/base/table.h"
#include "furlong/base/text.h"

namespace furlong::app {

namespace fs = std::filesystem;

Result<OpenStore> open_store(const fs::path& file) {
  OpenStore open;
  open.file = file;
  FURLONG_TRY(open.store, as_input(shard::Store::open(file)));
  std::vector<std::string> names;
  for (const shard::ExecutorKind& kind : executor_kinds()) {
    names.push_back(kind.name);
    if (kind.name == open.store->executor()) open.executor = kind.executor;
  }
  if (!open.executor)
    return fail(Code::incompatible, "{}: the store is for the executor '{}'; this build has {}",
                file.string(), one_line(open.store->executor()), join(names, ", "));
  if (open.executor->version() != open.store->executor_version())
    return fail(Code::incompatible,
                "{}: the store is for version {} of the executor '{}', this build has {}: make it anew "
                "(furlong shard store)",
                file.string(), open.store->executor_version(), open.store->executor(),
                open.executor->version());
  return open;
}

Result<shard::Plan> open_plan(const fs::path& file) {
  return as_input(shard::read_plan(system_files(), file));
}

Result<std::uint64_t> bytes_option(const Arguments& arguments, std::string_view name, std::uint64_t bare_unit,
                                   std::uint64_t otherwise) {
  if (!arguments.given(name)) return otherwise;
  auto bytes = parse_bytes(arguments.value(name), bare_unit);
  if (!bytes) return Error(std::move(bytes).error()).with(std::string(name));
  if (*bytes == 0) return fail(Code::invalid, "{}: it must be more than nothing", name);
  return bytes;
}

Result<std::optional<shard::Model>> model_option(const Arguments& arguments, shard::Sizing& sizing,
                                                 shard::WorkSource source) {
  if (!arguments.given("--model")) return std::optional<shard::Model>();
  const fs::path file = arguments.value("--model");
  FURLONG_TRY(shard::Model model, as_input(shard::read_model(system_files(), file)));
  FURLONG_CHECK_DOING(shard::apply_model(model, sizing, source), "{}", file.string());
  return std::optional<shard::Model>(std::move(model));
}

std::vector<OptionSpec> fail_fast_options() {
  return {
      {.name = "--fail-fast",
       .value_name = "",
       .help = "Stop at the first unit or job that fails (default)."},
      {.name = "--no-fail-fast", .value_name = "", .help = "Go on, and name what failed in OUT.failed.csv."}};
}

Result<bool> fail_fast(const Arguments& arguments) {
  if (arguments.flag("--fail-fast") && arguments.flag("--no-fail-fast"))
    return fail(Code::invalid, "--fail-fast and --no-fail-fast together: choose one");
  return !arguments.flag("--no-fail-fast");
}

Result<std::optional<shard::ShardId>> shard_option(const Arguments& arguments, const shard::Plan& plan) {
  if (!arguments.given("--shard")) return std::optional<shard::ShardId>();
  FURLONG_TRY(const std::int64_t number, arguments.integer("--shard", 0, 0, shard::kJoin - 1));
  const auto id = static_cast<shard::ShardId>(number);
  if (plan.find(id) == nullptr)
    return fail(
        Code::invalid, "--shard {}: the plan has no such shard; it has {} of them{}", id, plan.shards.size(),
        plan.shards.empty() ? "" : fmt::format(" ({} to {})", plan.shards.front().id, plan.shards.back().id));
  return std::optional<shard::ShardId>(id);
}

Result<SigningKey> signing_key(const Arguments& arguments) {
  SigningKey signing;
  signing.file = arguments.value("--key", default_key_file().string());
  if (arguments.given("--key") || system_files().exists(signing.file)) {
    FURLONG_TRY(signing.key, read_signing_key(signing.file));
    return signing;
  }
  // Two programs that begin at once must end up with one key.
  FURLONG_TRY(const FileLock lock, FileLock::acquire(config_folder() / "signing-key.lock"));
  if (!system_files().exists(signing.file))
    FURLONG_CHECK(
        system_files().write_atomic_secret(signing.file, to_hex(KeyPair::generate().seed()) + "\n"));
  FURLONG_TRY(signing.key, read_signing_key(signing.file));
  return signing;
}

fs::path receipts_folder(const Arguments& arguments) {
  if (arguments.given("--cache")) return arguments.value("--cache");
  return cache_folder() / "receipts";
}

std::string duration_text(double seconds) {
  if (!(seconds >= 0)) return "?";
  if (seconds < 59.95) return fmt::format("{:.1f} s", seconds);
  const auto whole = static_cast<std::int64_t>(std::llround(seconds));
  const std::int64_t hours = whole / 3600, minutes = whole / 60 % 60;
  if (hours == 0) return fmt::format("{}:{:02}", minutes, whole % 60);
  return fmt::format("{}:{:02}:{:02}", hours, minutes, whole % 60);
}

Status write_json(const std::string& file, const Json& json) {
  if (file != "-") return system_files().write_atomic(file, json_pretty(json));
  print_out(json_pretty(json));
  return {};
}

StepLine::StepLine(bool enabled) : enabled_(enabled), terminal_(isatty(STDERR_FILENO) == 1) {}

StepLine::~StepLine() { clear(); }

void StepLine::show(const shard::ProgressState& state) {
  if (!enabled_) return;
  constexpr std::int64_t kInterval_ns = 30'000'000'000;
  const std::int64_t now_ns = system_clock().now_ns();
  const bool ended = state.total != 0 && state.done >= state.total;
  if (!terminal_ && !ended && state.step == step_ && now_ns - told_ns_ < kInterval_ns) return;
  if (!terminal_ && ended && state.step == step_ && told_ns_ < 0) return;  // its end was told
  std::string line = state.total == 0 ? fmt::format("{} {}", state.step, state.done)
                                      : fmt::format("{} {}/{}", state.step, state.done, state.total);
  if (state.rate > 0) line += fmt::format("  {:.3g}/s", state.rate);
  if (!ended && state.seconds_left >= 0) line += "  " + duration_text(state.seconds_left) + " left";
  if (!ended && !state.heaviest.empty()) {
    constexpr std::size_t kMost = 48;
    std::string name = one_line(state.heaviest);
    if (name.size() > kMost) name = name.substr(0, kMost - 1) + "…";
    line += fmt::format("  now {} ({})", name, duration_text(state.heaviest_seconds));
  }
  if (terminal_) {
    print_err("\r\033[K" + line);
    drawn_ = true;
  } else {
    print_err(line + "\n");
  }
  step_ = state.step;
  told_ns_ = ended && !terminal_ ? -1 : now_ns;
}

void StepLine::clear() {
  if (!drawn_) return;
  print_err("\r\033[K");
  drawn_ = false;
}

shard::Progress StepLine::progress() {
  if (!enabled_) return {};
  return [this](const shard::ProgressState& state) { show(state); };
}

}  // namespace furlong::app
