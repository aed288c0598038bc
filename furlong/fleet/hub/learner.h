#pragma once
// What the races say, made anew in the background after a change and ready for readers.

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "furlong/base/log.h"
#include "furlong/base/os/clock.h"
#include "furlong/fleet/aggregate/aggregate.h"
#include "furlong/fleet/hub/reply.h"
#include "furlong/fleet/store/store.h"

namespace furlong::fleet {

/// Immutable.
struct Learned {
  std::uint64_t change = 0;  ///< of the store that it was made from
  std::int64_t made_ns = 0;  ///< by the steady clock
  double seconds = 0;        ///< that it took
  std::uint64_t races = 0;   ///< in the window
  std::int64_t updated_us = 0;
  Window window;
  std::shared_ptr<const record::Tuning> previous;  ///< what was in force; nullptr: nothing
  struct Card {
    std::string key, label, silicon;
    std::vector<std::string> aliases;
    Document document;
  };
  std::vector<Card> cards;  ///< by key
  std::size_t cards_left_out = 0;
  Document list, tuning, regressions;
  std::size_t regression_count = 0;
  /// By key, label, alias or hash of silicon, in this order; nullptr: none, or several.
  const Card* find(std::string_view name) const;
};
/// Of more than `most_cards`, those count that the most machines and races speak for: names of cards are the
/// machines' own words, and each has a document.
inline constexpr std::size_t most_cards = 2000;
Learned learn(Aggregate aggregate, const Regressions& regressions, std::size_t most = most_cards);

/// Thread safe.
class Learner {
 public:
  struct Options {
    AggregateOptions aggregate;
    RegressionOptions regressions;
    double refresh_s = 10;
    /// The tuning that machines obey at the moment: what it pins is shown as pinned. May return nullptr.
    std::function<std::shared_ptr<const record::Tuning>()> in_force;
  };
  /// Called in each step, once there is something: what else is to be made anew, by the same thread.
  using After = std::function<void(const Learned&)>;
  Learner(Options options, OpenStore open, Clock& clock, std::function<void(LogLevel, std::string_view)> say,
          After after = {});
  ~Learner();
  Learner(const Learner&) = delete;
  Learner& operator=(const Learner&) = delete;

  void start();  ///< its thread
  void stop();
  /// The store has changed.
  void nudge();
  /// Looks at the store and makes what is due; by the thread, and by tests without one.
  void step();

  std::shared_ptr<const Learned> latest() const;  ///< nullptr: none yet
  /// The store as it was last seen.
  StoreTotals totals() const;
  /// How far latest() lags behind the store.
  double stale_s() const;
  /// Why there is nothing newer; nullopt: all went well.
  std::optional<Error> problem() const;

 private:
  void loop();
  Status look();
  Status make(std::uint64_t change, std::shared_ptr<const record::Tuning> in_force);
  void note(const Status& status);

  const Options options_;
  const OpenStore open_;
  Clock& clock_;
  const std::function<void(LogLevel, std::string_view)> say_;
  const After after_;
  std::unique_ptr<Store> store_;  ///< of the one who steps
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false, nudged_ = false;
  std::shared_ptr<const Learned> latest_;
  StoreTotals totals_;
  std::int64_t changed_ns_ = 0;  ///< when the newest change was first seen
  std::int64_t next_ns_ = 0;     ///< not made again before
  std::optional<Error> problem_;
  std::thread thread_;
};

}  // namespace furlong::fleet
