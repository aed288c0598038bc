#include "furlong/fleet/aggregate/internal/scan.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <system_error>
#include <thread>

namespace furlong::fleet::internal {
namespace {

class Work {
 public:
  Work(std::size_t count, const std::function<Status(Store&, std::size_t)>& work)
      : count_(count), work_(work) {}

  void run(Store& store) {
    for (;;) {
      const std::size_t number = next_.fetch_add(1);
      if (number >= count_) return;
      if (Status done = work_(store, number); !done) {
        fail_at(number, std::move(done).error());
        return;
      }
    }
  }

  void fail_at(std::size_t number, Error error) {
    next_.store(count_);
    const std::scoped_lock lock(mutex_);
    if (!error_ || number < at_) {
      error_ = std::move(error);
      at_ = number;
    }
  }

  Status status() {
    const std::scoped_lock lock(mutex_);
    if (error_) return *error_;
    return {};
  }

 private:
  const std::size_t count_;
  const std::function<Status(Store&, std::size_t)>& work_;
  std::atomic<std::size_t> next_{0};
  std::mutex mutex_;
  std::size_t at_ = 0;
  std::optional<Error> error_;
};

}  // namespace

Result<StoreContents> read_contents(Store& store) {
  StoreContents contents;
  FURLONG_TRY(const auto newest, store.newest_ts());
  contents.newest_us = newest.value_or(0);
  FURLONG_TRY(contents.subjects, store.subjects());
  FURLONG_TRY(contents.names.machines, store.machine_names());
  FURLONG_TRY(contents.names.words, store.words());
  contents.known.words = static_cast<WordNumber>(contents.names.words.size());
  contents.known.machines = static_cast<MachineNumber>(contents.names.machines.size());
  const auto base = std::ranges::find(contents.names.words, "base");
  if (base != contents.names.words.end())
    contents.known.base = static_cast<WordNumber>(base - contents.names.words.begin());
  // By content: numbers follow the order in which things came.
  std::ranges::sort(contents.subjects, {}, &SubjectRow::subject);
  return contents;
}

std::vector<bool> named_machines(const StoreNames& names, const std::vector<std::string>& ids) {
  std::vector<bool> named(names.machines.size());
  for (std::size_t i = 0; i < named.size(); ++i)
    named[i] = std::ranges::find(ids, names.machines[i]) != ids.end();
  return named;
}

Status check_judgement(double window_days, double threshold_pct, double error) {
  if (!(window_days >= 1e-3 && window_days <= 36500))
    return fail(Code::invalid, "the window in days is {:g}: 0.001 to 36500 is wanted", window_days);
  if (!(threshold_pct >= 0 && threshold_pct < 100))
    return fail(Code::invalid, "the threshold is {:g}%: 0 to 100 is wanted", threshold_pct);
  if (!(error > 0 && error < 1))
    return fail(Code::invalid, "the error is {:g}: more than 0 and less than 1 is wanted", error);
  return {};
}

Status for_each_subject(const OpenStore& open, std::unique_ptr<Store> first, std::size_t count,
                        unsigned threads, const std::function<Status(Store&, std::size_t)>& work) {
  if (threads == 0) threads = std::max(1u, std::thread::hardware_concurrency());
  Work all(count, work);
  {
    std::vector<std::jthread> crew;
    try {
      for (unsigned i = 1; i < std::min<std::size_t>(threads, count); ++i)
        crew.emplace_back([&] {
          if (auto store = open(); store)
            all.run(**store);
          else
            all.fail_at(count, std::move(store).error());
        });
    } catch (const std::system_error&) {
      // With fewer threads it takes longer, and no more.
    }
    all.run(*first);
  }
  return all.status();
}

}  // namespace furlong::fleet::internal
