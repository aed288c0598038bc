#include "furlong/race/internal/build.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

namespace furlong::race {
namespace {

using Built = Result<std::shared_ptr<device::Module>>;

/// What the compiling threads and the caller share.
struct Bench {
  std::mutex mutex;
  std::condition_variable ended;
  std::size_t next = 0;
  std::deque<std::size_t> finished;
  std::vector<std::optional<Built>> built;
};

std::uint64_t shared_bytes(const Entrant& entrant) {
  std::uint64_t most = 0;
  for (const std::vector<program::LaunchPlan>& pipeline : entrant.pipelines)
    most = std::max(most, most_shared_bytes(pipeline));
  return most;
}

Built compile_one(const program::Instance& instance, const Context& context, const Entrant& entrant,
                  std::stop_token stop) {
  return context.device->compile(compile_request(instance, entrant.plan, shared_bytes(entrant)), stop);
}

Status take(Entrant& entrant, Built built, bool late) {
  if (built) {
    entrant.module = *std::move(built);
    entrant.outcome->kernel = entrant.module->facts();
    return {};
  }
  if (entrant.index == 0) return std::move(built).error().with("compiling base");
  entrant.outcome->exit = Exit::compile;
  entrant.late = late && built.error().code() == Code::timeout;
  entrant.outcome->why = entrant.late ? "not compiled within the race's budget" : built.error().text();
  return {};
}

/// One thread, in order.
Result<double> build_in_turn(const program::Instance& instance, const Context& context,
                             const BuildAsked& asked) {
  double base_ready_ms = 0;
  for (std::size_t i = 0; i < asked.entrants.size(); ++i) {
    if (context.stop.stop_requested()) return fail(Code::timeout, "stopped while compiling");
    Entrant& entrant = *asked.entrants[i];
    const bool late = i > 0 && context.clock->now_ms() - base_ready_ms >= 1e3 * asked.budget_s;
    FURLONG_CHECK(late ? take(entrant, fail(Code::timeout, "late"), true)
                       : take(entrant, compile_one(instance, context, entrant, context.stop), false));
    if (i == 0) base_ready_ms = context.clock->now_ms();
    asked.doing(i + 1, entrant);
  }
  return base_ready_ms;
}

/// Gives the threads their stop when the caller's is asked for or the budget is used up.
class Watch {
 public:
  Watch(const Context& context, double budget_s)
      : context_(context), budget_s_(budget_s), forward_(context.stop, [this] { source_.request_stop(); }) {}
  std::stop_token token() const { return source_.get_token(); }
  void base_is_ready() { base_ready_ms_ = context_.clock->now_ms(); }
  double base_ready_ms() const { return base_ready_ms_.value_or(context_.clock->now_ms()); }
  bool check() {
    if (!late_ && base_ready_ms_ && context_.clock->now_ms() - *base_ready_ms_ >= 1e3 * budget_s_) {
      late_ = true;
      source_.request_stop();
    }
    return late_;
  }
  void stop() { source_.request_stop(); }

 private:
  const Context& context_;
  double budget_s_;
  std::optional<double> base_ready_ms_;
  bool late_ = false;
  std::stop_source source_;
  std::stop_callback<std::function<void()>> forward_;
};

Result<double> build_at_once(const program::Instance& instance, const Context& context,
                             const BuildAsked& asked, std::size_t threads) {
  Bench bench;
  bench.built.resize(asked.entrants.size());
  Watch watch(context, asked.budget_s);
  const auto work = [&] {
    for (;;) {
      std::size_t mine = 0;
      {
        const std::lock_guard lock(bench.mutex);
        if (bench.next == asked.entrants.size()) return;
        mine = bench.next++;
      }
      Built built = watch.token().stop_requested()
                        ? Built(fail(Code::timeout, "stopped"))
                        : compile_one(instance, context, *asked.entrants[mine], watch.token());
      const std::lock_guard lock(bench.mutex);
      bench.built[mine] = std::move(built);
      bench.finished.push_back(mine);
      bench.ended.notify_one();
    }
  };
  std::vector<std::jthread> crew;
  for (std::size_t i = 0; i < threads; ++i) crew.emplace_back(work);
  Status failed;
  for (std::size_t done = 0; done < asked.entrants.size();) {
    std::unique_lock lock(bench.mutex);
    bench.ended.wait_for(lock, std::chrono::milliseconds(50), [&] { return !bench.finished.empty(); });
    const bool late = watch.check();
    if (bench.finished.empty()) continue;
    const std::size_t index = bench.finished.front();
    bench.finished.pop_front();
    Built built = std::move(*bench.built[index]);
    lock.unlock();
    if (index == 0) watch.base_is_ready();
    Status taken = take(*asked.entrants[index], std::move(built), late);
    if (!taken && failed) {
      failed = std::move(taken);
      watch.stop();
    }
    asked.doing(++done, *asked.entrants[index]);
  }
  FURLONG_CHECK(failed);
  if (context.stop.stop_requested()) return fail(Code::timeout, "stopped while compiling");
  return watch.base_ready_ms();
}

bool same_launches(const Entrant& a, const Entrant& b) { return a.launch_key == b.launch_key; }

}  // namespace

Result<double> build(const program::Instance& instance, const Context& context, const BuildAsked& asked) {
  const auto threads = static_cast<std::size_t>(std::max(1, context.device->compile_threads()));
  if (threads == 1 || asked.entrants.size() == 1 || context.device->facts().virtual_time)
    return build_in_turn(instance, context, asked);
  return build_at_once(instance, context, asked, std::min(threads, asked.entrants.size()));
}

void find_duplicates(std::span<Entrant* const> entrants) {
  std::multimap<std::string, Entrant*> first;
  for (Entrant* entrant : entrants) {
    if (!entrant->in() || !entrant->module) continue;
    const std::string& code = entrant->outcome->kernel.code_hash;
    if (code.empty()) continue;  // unknown: cannot be compared
    const auto [from, to] = first.equal_range(code);
    const auto same =
        std::find_if(from, to, [&](const auto& one) { return same_launches(*one.second, *entrant); });
    if (same == to) {
      first.emplace(code, entrant);
      continue;
    }
    entrant->outcome->exit = Exit::duplicate;
    entrant->outcome->same_code_as = same->second->name();
    entrant->outcome->why = fmt::format("the same machine code as {}, timed once", same->second->name());
  }
}

}  // namespace furlong::race
