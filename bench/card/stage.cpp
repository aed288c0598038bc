#include "bench/card/stage.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

#include "apps/furlong/backends.h"
#include "apps/furlong/session.h"
#include "furlong/base/hash.h"
#include "furlong/base/json.h"
#include "furlong/base/os/clock.h"
#include "furlong/base/os/process.h"
#include "furlong/base/text.h"

namespace furlong::bench {
namespace {

/// Everything that the machine code follows from, in one string.
std::string request_key(const device::CompileRequest& request) {
  std::string key(device::language_name(request.language));
  const auto add = [&](std::string_view text) { key.append(1, '\0').append(text); };
  add(request.source);
  for (const std::string& entry : request.entries) add(entry);
  for (const auto& [name, value] : request.defines) add(name + "=" + value);
  for (const std::string& option : request.options) add(option);
  for (const auto& folder : request.include_folders) add(folder.string());
  add(std::to_string(request.dynamic_shared_bytes));
  return key;
}

}  // namespace

Result<std::shared_ptr<device::Module>> RememberingDevice::compile(const device::CompileRequest& request,
                                                                   std::stop_token stop) {
  const std::string key = request_key(request);
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = modules_.find(key); found != modules_.end()) return found->second;
  }
  FURLONG_TRY(auto module, below_.compile(request, std::move(stop)));
  const std::lock_guard lock(mutex_);
  return modules_.emplace(key, std::move(module)).first->second;
}

Result<std::unique_ptr<Stage>> Stage::open(const std::string& address) {
  auto stage = std::make_unique<Stage>();
  app::add_backends(stage->registry_);
  FURLONG_TRY(stage->device_, stage->registry_.open(address));
  if (auto host = stage->registry_.open("host:0")) stage->host_ = *std::move(host);
  stage->remembering_ = std::make_unique<RememberingDevice>(*stage->device_);
  return stage;
}

Result<program::Instance> Stage::bind(
    std::shared_ptr<const program::Program> program,
    const std::vector<std::pair<std::string, lattice::Value>>& problem) const {
  FURLONG_TRY(const std::string language, app::choose_language(*program, device_->facts()));
  return program::Instance::make(std::move(program), language, problem, app::device_facts(device_->facts()));
}

Result<program::Instance> Stage::lottery(std::int64_t epoch, std::int64_t loads, std::int64_t wide,
                                         std::int64_t mib) const {
  program::ProgramRequest request;
  request.what = "lottery";
  request.epoch_seed_hex = fmt::format("{:064x}", epoch);
  request.geometry = mib == 0 ? "small" : "default";
  request.dataset_mib = mib;
  request.loads = loads;
  request.wide = wide;
  FURLONG_TRY(auto program, program::open_program(request));
  return bind(std::move(program));
}

Result<std::filesystem::path> repository_file(const std::string& path) {
  if (std::filesystem::exists(path)) return std::filesystem::path(path);
  FURLONG_TRY(const auto own, own_executable());
  for (auto folder = own.parent_path(); folder.has_relative_path(); folder = folder.parent_path())
    if (std::filesystem::exists(folder / path)) return folder / path;
  return fail(Code::unavailable, "{} is neither in this folder nor above {}: run the bench in the repository",
              path, own.string());
}

Result<program::Instance> Stage::file(
    const std::string& path, const std::vector<std::pair<std::string, lattice::Value>>& problem) const {
  FURLONG_TRY(const auto where, repository_file(path));
  FURLONG_TRY(auto program, program::load_program_file(where));
  return bind(std::move(program), problem);
}

Result<race::Outcome> Stage::race(const program::Instance& instance,
                                  const std::vector<lattice::Point>& points, const race::Options& options,
                                  race::Kept* kept, device::Device* on) {
  race::Context context;
  context.device = on != nullptr ? on : device_.get();
  context.host = host_.get();
  context.clock = &system_clock();
  context.kept = kept;
  return race::run(instance, points, options, context);
}

double quantile(std::vector<double> values, double share) {
  if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
  std::ranges::sort(values);
  const double rank = std::ceil(share * static_cast<double>(values.size()));
  return values[static_cast<std::size_t>(std::clamp(rank, 1.0, static_cast<double>(values.size()))) - 1];
}

double median(std::vector<double> values) {
  if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
  std::ranges::sort(values);
  const std::size_t n = values.size();
  return n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

Allowance::Allowance(double limit_s)
    : limit_s_(limit_s), start_ms_(system_clock().now_ms()), turn_ms_(start_ms_) {}

bool Allowance::room() {
  const double now = system_clock().now_ms();
  if (begun_) longest_ms_ = std::max(longest_ms_, now - turn_ms_);
  const bool yes = !begun_ || limit_s_ <= 0 || now + longest_ms_ - start_ms_ <= 1e3 * limit_s_;
  begun_ = true;
  turn_ms_ = now;
  return yes;
}

double Allowance::left_s() const {
  return limit_s_ <= 0 ? 0 : std::max(1e-3, limit_s_ - 1e-3 * (system_clock().now_ms() - start_ms_));
}

Result<race::Options> race_options(const Bench& bench) {
  race::Options options;
  FURLONG_TRY(options.budget_s, number_option(bench, "race-budget-s"));
  FURLONG_TRY(options.max_pause_ms, number_option(bench, "max-pause-ms"));
  options.keep_samples = false;
  return options;
}

Result<double> number_option(const Bench& bench, const std::string& name) {
  const auto value = parse_number(bench.option(name));
  if (!value || !std::isfinite(*value) || *value < 0)
    return fail(Code::invalid, "--{} takes a number of at least 0, not '{}'", name, bench.option(name));
  return *value;
}

Result<std::vector<std::string>> list_option(const Bench& bench, const std::string& name) {
  if (bench.option(name) == "none") return std::vector<std::string>{};
  const std::vector<std::string> list = split(bench.option(name), ',');
  if (list.empty() || std::ranges::find(list, "") != list.end())
    return fail(Code::invalid, "--{} takes A,B,… or none, not '{}'", name, bench.option(name));
  return list;
}

void say(std::string_view text) {
  static const double start = system_clock().now_ms();
  std::fputs(fmt::format("[{:6.1f} s] {}\n", 1e-3 * (system_clock().now_ms() - start), text).c_str(), stderr);
}

Json& details() {
  static Json all = Json::object();
  return all;
}

}  // namespace furlong::bench
